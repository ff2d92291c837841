/* compare_tvm OURS.h5 TVM.h5 -- features of cdmpp-extract against TVM's own.
 *
 * TVM.h5: rows (R,164) f32, row_ptr (N+1) i64, file (N) i32 index into files, line (N) i32 0-based.
 * A program is found by the last two parts of its path and its line. Rows are compared as a
 * multiset and the five buffer blocks of a row as a set: TVM orders ties of both by addresses.
 * Equal: within 1e-4 of the value or 1e-5. Exit status 0: none is missing and 99.9 % are equal. It
 * also counts the programs whose rows have equal bits once both are in the order of models
 * (cd_rows_order). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/file/file.h"
#include "features/rows/rows.h"

#define N_BLOCK   5
#define MAX_SHOWN 50

typedef struct {
    size_t n;
    float *row;
    int64_t *ptr;
    int32_t *file, *line;
    char *name; /* of the files, name_len bytes each */
    size_t name_len;
} tvm;

typedef struct {
    const char *file;
    uint64_t line;
    size_t program;
} place;

static cdmpp_status read_array(const cd_h5 *h, const char *object, cd_h5_type type, uint32_t n_col,
                               void *out, uint64_t *n, cdmpp_err *err) {
    CD_TRY(cd_h5_size(h, object, type, n_col, n, err));
    void *p = malloc((size_t)(*n * (n_col ? n_col : 1)) * cd_h5_type_bytes(type) + 1);
    if (!p) return CD_FAIL(err, ENOMEM, "%s", object);
    *(void **)out = p;
    return cd_h5_read(h, object, (cd_h5_shape){type, *n, n_col}, 0, p, err);
}

/* Text of one length, whatever its character set; zero padded, maybe to the brim. */
static cdmpp_status read_names(const cd_h5 *h, tvm *t, cdmpp_err *err) {
    const hid_t ds = H5Dopen2(h->file, "/files", H5P_DEFAULT), type = H5Dget_type(ds),
                space = H5Dget_space(ds);
    const hssize_t n = H5Sget_simple_extent_npoints(space);
    t->name_len = H5Tget_size(type);
    t->name = n > 0 ? calloc((size_t)n + 1, t->name_len) : NULL;
    const bool ok = t->name && H5Dread(ds, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, t->name) >= 0;
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(ds);
    if (!ok) return CD_FAIL(err, EIO, "cannot read /files");
    return CDMPP_OK;
}

static cdmpp_status read_tvm(const char *path, tvm *t, cdmpp_err *err) {
    cd_h5 h;
    uint64_t n = 0, n_row = 0;
    CD_TRY(cd_h5_open(&h, path, err));
    CD_TRY(read_array(&h, "/rows", CD_H5_F32, CD_N_COL, &t->row, &n_row, err));
    CD_TRY(read_array(&h, "/row_ptr", CD_H5_I64, 0, &t->ptr, &n, err));
    CD_TRY(read_array(&h, "/file", CD_H5_I32, 0, &t->file, &n, err));
    CD_TRY(read_array(&h, "/line", CD_H5_I32, 0, &t->line, &n, err));
    CD_TRY(read_names(&h, t, err));
    t->n = (size_t)n;
    return cd_h5_close(&h, err);
}

/* "a/b/c.json" -> "b/c.json" */
static const char *tail(const char *path) {
    const char *p = path + strlen(path);
    for (int n = 0; p > path; p--)
        if (p[-1] == '/' && ++n == 2) break;
    return p;
}

static int by_place(const void *a, const void *b) {
    const place *x = a, *y = b;
    const int c = strcmp(x->file, y->file);
    return c ? c : x->line < y->line ? -1 : x->line > y->line;
}

static bool close_to(const float *x, const float *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)x[i] - (double)y[i]) <= 1e-5 + 1e-4 * fabs((double)y[i]))) return false;
    return true;
}

static bool same_row(const float *x, const float *y) {
    const size_t b0 = CD_COL_B0_READ, len = CD_COL_BUFFER_STRIDE, end = b0 + N_BLOCK * len;
    bool used[N_BLOCK] = {0};
    if (!close_to(x, y, b0) || !close_to(x + end, y + end, CD_N_COL - end)) return false;
    for (size_t k = 0; k < N_BLOCK; k++) {
        size_t j = 0;
        while (j < N_BLOCK && (used[j] || !close_to(x + b0 + j * len, y + b0 + k * len, len))) j++;
        if (j == N_BLOCK) return false;
        used[j] = true;
    }
    return true;
}

/* NULL when the programs are equal, else in what they differ. */
static const char *difference(const float *x, size_t nx, const float *y, size_t ny) {
    if (nx != ny) return "another number of rows";
    bool *used = calloc(nx + 1, sizeof *used);
    if (!used) return "out of memory";
    const char *why = NULL;
    for (size_t i = 0; i < ny && !why; i++) {
        size_t j = 0;
        while (j < nx && (used[j] || !same_row(x + j * CD_N_COL, y + i * CD_N_COL))) j++;
        if (j == nx) why = "a row that TVM has and we have not";
        else used[j] = true;
    }
    free(used);
    return why;
}

/* Both are put in the order of models. */
static bool same_bits(float *x, size_t nx, float *y, size_t ny) {
    if (nx != ny) return false;
    cd_rows_order(x, nx, NULL);
    cd_rows_order(y, ny, NULL);
    return !memcmp(x, y, nx * CD_N_COL * sizeof *x);
}

static int compare(const cd_dataset *d, const tvm *t) {
    size_t equal = 0, missing = 0, shown = 0, bits = 0;
    place *at = calloc(d->n + 1, sizeof *at);
    if (!at) return 1;
    for (size_t i = 0; i < d->n; i++)
        at[i] = (place){tail(d->source_name[d->source_file[i]]), d->source_line[i], i};
    qsort(at, d->n, sizeof *at, by_place);
    for (size_t i = 0; i < t->n; i++) {
        char name[512];
        snprintf(name, sizeof name, "%.*s", (int)t->name_len,
                 t->name + (size_t)t->file[i] * t->name_len);
        const place key = {tail(name), (uint64_t)t->line[i] + 1, 0};
        const place *p = bsearch(&key, at, d->n, sizeof *at, by_place);
        const size_t ny = (size_t)(t->ptr[i + 1] - t->ptr[i]);
        /* no rows in TVM: it rejects the program, so may we */
        const char *why = ny ? "missing" : NULL;
        if (p) {
            const int64_t *r = d->row_ptr + p->program;
            why = difference(d->row + (size_t)r[0] * CD_N_COL, (size_t)(r[1] - r[0]),
                             t->row + (size_t)t->ptr[i] * CD_N_COL, ny);
        } else if (ny) {
            missing++;
        }
        equal += !why;
        if (p && !why)
            bits += same_bits(d->row + (size_t)d->row_ptr[p->program] * CD_N_COL, ny,
                              t->row + (size_t)t->ptr[i] * CD_N_COL, ny);
        if (why && shown++ < MAX_SHOWN)
            printf("%s:%llu: %s\n", key.file, (unsigned long long)key.line, why);
    }
    printf("programs %zu, equal %zu (%.3f %%), missing %zu; %zu with equal bits in the order of "
           "models\n",
           t->n, equal, 100.0 * (double)equal / (double)t->n, missing, bits);
    free(at);
    return missing || (double)equal < 0.999 * (double)t->n;
}

int main(int argc, char **argv) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    tvm t = {0};
    char text[512];
    if (argc != 3) {
        fprintf(stderr, "usage: compare_tvm OURS.h5 TVM.h5\n");
        return 2;
    }
    cdmpp_status st = cd_dataset_load_within((const char *const *)(argv + 1), 1,
                                             &(cd_dataset_options){.as_written = true}, &d, &err);
    if (!st) st = read_tvm(argv[2], &t, &err);
    if (st) fprintf(stderr, "compare_tvm: %s\n", cdmpp_err_format(&err, text, sizeof text));
    const int rc = st ? 1 : compare(d, &t);
    cd_dataset_free(d);
    free(t.row);
    free(t.ptr);
    free(t.file);
    free(t.line);
    free(t.name);
    return rc;
}
