/* Rows equal to TVM's own, program by program (CDMPP_DATA; skipped without).
 *
 * Rows of a program are compared as a multiset and the five buffer blocks of a row
 * as a set, since TVM orders both by hash: 1e-4 relative, 1e-5 absolute. A program
 * that TVM rejects has no rows there, or one row of zeros, and must be refused here. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "base/io/io.h"
#include "features/program/program.h"

enum { BUF = CD_COL_B0_READ, BLOCK = CD_COL_BUFFER_STRIDE, N_BLOCK = 5, REST = CD_COL_CURVE_0 };

/* ---- TVM's file ---- */

typedef struct {
    size_t n, n_file, name_len;
    float *row;
    int64_t *ptr; /* (n + 1) */
    int32_t *file, *line;
    char *name; /* (n_file)(name_len), zero-padded */
} truth;

static void *dataset(hid_t f, const char *name, hid_t type, size_t size, size_t *n) {
    const hid_t d = H5Dopen2(f, name, H5P_DEFAULT), s = H5Dget_space(d);
    assert_true(d >= 0 && s >= 0);
    const hssize_t points = H5Sget_simple_extent_npoints(s);
    void *p = calloc((size_t)points + 1, size);
    assert_non_null(p);
    assert_true(H5Dread(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, p) >= 0);
    if (n) *n = (size_t)points;
    H5Sclose(s);
    H5Dclose(d);
    return p;
}

static truth load(const char *path) {
    truth t = {0};
    const hid_t f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(f >= 0);
    const hid_t d = H5Dopen2(f, "files", H5P_DEFAULT), type = H5Dget_type(d);
    t.name_len = H5Tget_size(type);
    t.name = dataset(f, "files", type, t.name_len, &t.n_file);
    H5Tclose(type);
    H5Dclose(d);
    t.row = dataset(f, "rows", H5T_NATIVE_FLOAT, sizeof *t.row, NULL);
    t.ptr = dataset(f, "row_ptr", H5T_NATIVE_INT64, sizeof *t.ptr, NULL);
    t.file = dataset(f, "file", H5T_NATIVE_INT32, sizeof *t.file, &t.n);
    t.line = dataset(f, "line", H5T_NATIVE_INT32, sizeof *t.line, NULL);
    H5Fclose(f);
    return t;
}

static void unload(truth *t) {
    free(t->row);
    free(t->ptr);
    free(t->file);
    free(t->line);
    free(t->name);
}

/* Number of the file whose name ends `path`; -1: TVM looked at none of it. */
static int32_t file_of(const truth *t, const char *path) {
    const size_t m = strlen(path);
    for (size_t k = 0; k < t->n_file; k++) {
        const char *name = t->name + k * t->name_len;
        const size_t n = strnlen(name, t->name_len);
        if (n <= m && !memcmp(path + m - n, name, n)) return (int32_t)k;
    }
    return -1;
}

/* ---- comparing ---- */

static bool close_to(const float *x, const float *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(x[i] - y[i]) <= 1e-5F + 1e-4F * fabsf(y[i]))) return false;
    return true;
}

static bool same_row(const float *x, const float *y) {
    bool used[N_BLOCK] = {false};
    if (!close_to(x, y, BUF) || !close_to(x + REST, y + REST, CD_N_COL - REST)) return false;
    for (int k = 0; k < N_BLOCK; k++) {
        int j = 0;
        while (j < N_BLOCK &&
               (used[j] || !close_to(x + BUF + j * BLOCK, y + BUF + k * BLOCK, BLOCK)))
            j++;
        if (j == N_BLOCK) return false;
        used[j] = true;
    }
    return true;
}

static bool same_rows(const cd_rows *r, const float *row, size_t n) {
    bool used[256] = {false};
    if (r->n_row != n || n > 256) return false;
    for (size_t k = 0; k < n; k++) {
        size_t j = 0;
        while (j < n && (used[j] || !same_row(r->row + j * CD_N_COL, row + k * CD_N_COL))) j++;
        if (j == n) return false;
        used[j] = true;
    }
    return true;
}

static bool is_rejected(const float *row, size_t n) {
    if (n > 1) return false;
    for (size_t i = 0; i < n * CD_N_COL; i++)
        if (row[i] != 0.0F) return false;
    return true;
}

/* ---- records in a tar archive ---- */

typedef struct {
    char name[600];
    int32_t line; /* of the record within its file, from 0 */
} member;

/* A line of the archive: blocks of headers may precede the record. */
static char *record_of(member *m, char *line, size_t *len) {
    char *zero = memrchr(line, '\0', *len);
    m->line++;
    if (!zero) return line;
    char *text = zero + 1, *h = text - 512;
    *len -= (size_t)(text - line);
    if (h < line) return text; /* the padding that ends the archive */
    /* GNU: header of the name, the name */
    const bool is_long = h - 1024 >= line && h[-1024 + 156] == 'L';
    snprintf(m->name, sizeof m->name, "%.*s", is_long ? 512 : 100, is_long ? h - 512 : h);
    m->line = 0;
    return text;
}

typedef struct {
    truth t;
    cd_task_registry *tasks;
    cd_program *p;
    cd_arena a;
    int32_t *index; /* programs by (file, line), see at */
    size_t at;      /* next one of the current file */
    long n, equal, rejected;
} comparison;

static const truth *sorting; /* qsort has no context */
static int by_place(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    const int32_t d = sorting->file[x] != sorting->file[y] ? sorting->file[x] - sorting->file[y]
                                                           : sorting->line[x] - sorting->line[y];
    return d < 0 ? -1 : d > 0;
}

static void one(comparison *c, const member *m, const char *text, size_t len, size_t i) {
    const float *row = c->t.row + c->t.ptr[i] * CD_N_COL;
    const size_t n = (size_t)(c->t.ptr[i + 1] - c->t.ptr[i]);
    cdmpp_err err = {0};
    cd_record r;
    cd_rows rows;
    char buf[512];
    cd_arena_reset(&c->a);
    assert_ok(cd_record_read(&c->a, text, len, &r, &err));
    const cd_task *task = cd_task_registry_find(c->tasks, r.workload_key);
    assert_non_null(task);
    const cdmpp_status st = cd_program_build(c->p, task, &r, &rows, &err);
    const bool none = is_rejected(row, n),
               ok = none ? st == CDMPP_EREJECTED : !st && same_rows(&rows, row, n);
    c->n++;
    c->equal += ok;
    c->rejected += none;
    if (!ok)
        print_error("%s:%d: %s\n", m->name, m->line + 1,
                    st ? cdmpp_err_format(&err, buf, sizeof buf) : "different rows");
}

static void archive(comparison *c, const char *path) {
    member m = {.line = -1};
    cd_file_lines *l;
    cdmpp_err err = {0};
    char *line;
    size_t len;
    int32_t file = -1;
    assert_ok(cd_file_lines_open(path, 0, &l, &err));
    for (;;) {
        assert_ok(cd_file_lines_next(l, &line, &len, &err));
        if (!line) break;
        const char *text = record_of(&m, line, &len);
        if (m.line == 0) {
            file = file_of(&c->t, m.name);
            for (c->at = 0; c->at < c->t.n && c->t.file[c->index[c->at]] != file;) c->at++;
        }
        if (c->at >= c->t.n) continue;
        const size_t i = (size_t)c->index[c->at];
        if (c->t.file[i] != file || c->t.line[i] != m.line) continue;
        one(c, &m, text, len, i);
        c->at++;
    }
    cd_file_lines_close(l);
}

/* `want` programs, `rejected` of them by TVM too: all equal. */
static void compare(const char *set, const char *const *archives, long want, long rejected) {
    const char *root = getenv("CDMPP_DATA");
    char path[4096];
    comparison c = {0};
    cdmpp_err err = {0};
    snprintf(path, sizeof path, "%s/%s/tvm_features.h5", root ? root : "", set);
    FILE *f = root ? fopen(path, "rb") : NULL;
    if (!f) {
        print_message("skipped: no %s/tvm_features.h5 under CDMPP_DATA\n", set);
        skip();
    }
    fclose(f);
    c.t = load(path);
    c.index = malloc(c.t.n * sizeof *c.index);
    assert_non_null(c.index);
    for (size_t i = 0; i < c.t.n; i++) c.index[i] = (int32_t)i;
    sorting = &c.t;
    qsort(c.index, c.t.n, sizeof *c.index, by_place);
    snprintf(path, sizeof path, "%s/%s/network_info/all_tasks.pkl", root, set);
    assert_ok(cd_task_registry_new(&c.tasks, &err));
    assert_ok(cd_task_registry_load(c.tasks, path, &err));
    assert_ok(cd_program_new(&c.p, &err));
    for (; *archives; archives++) {
        snprintf(path, sizeof path, "%s/%s/%s.tar.xz", root, set, *archives);
        archive(&c, path);
    }
    print_message("%s: %ld of %ld programs equal, %ld rejected by both\n", set, c.equal, c.n,
                  c.rejected);
    assert_int_equal(c.n, want);
    assert_int_equal(c.n, c.t.n);
    assert_int_equal(c.equal, c.n);
    assert_int_equal(c.rejected, rejected);
    free(c.index);
    unload(&c.t);
    cd_program_free(c.p);
    cd_task_registry_free(c.tasks);
    cd_arena_free(&c.a);
}

TEST(cpu) {
    static const char *const archives[] = {"records", NULL};
    compare("tenset-cpu", archives, 7808, 3);
}

TEST(gpu) {
    static const char *const archives[] = {"v100", "k80", "mi50", NULL};
    compare("gpu-ansor", archives, 4774, 55);
}

TESTS(NULL, NULL, cpu, gpu)
