/* Reads data set files into memory: all are opened and measured first, then read into arrays of the
 * final size. Dictionaries of several files are joined by name. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "features/rows/rows.h"
#include "features/task/task.h"
#include "dataset/file/file.h"
#include "base/text/text.h"

typedef enum {
    CD_NAME_TASK,
    CD_NAME_DEVICE,
    CD_NAME_SOURCE,
    CD_NAME_NETWORK,
    CD_NAME_KIND,
    CD_NAME_COUNT
} cd_name_id;

/* How many of each: of one file, or where the next file goes in the joined arrays. */
typedef struct cd_sizes {
    uint64_t program, row, net, leaf, own, tree, path; /* the last three: 0 without ASTs */
    uint64_t step;                                     /* 0 unless they are read */
    uint64_t fact; /* programs with a place for facts; 0 unless they are read */
} cd_sizes;

/* One file of a data set: its sizes, and its numbers of names in the joined lists. */
typedef struct cd_dataset_file {
    cd_h5 h;
    cd_sizes n;
    uint32_t *map[CD_NAME_COUNT];
    size_t n_map[CD_NAME_COUNT];
    uint32_t no_kind; /* number of the kind that is not known, where the file has none */
    char digest[65];
    cd_spool *spool; /* rests while arrays are read; NULL: none */
} cd_dataset_file;

/* Programs between two rests of a loop over all. */
enum { CD_DATASET_REST = 16384 };

/* Puts the rows of a loaded data set into the one order that models read (features/rows:
 * cd_rows_order). The file keeps the order of the extractor, which can be compared with TVM's. */

static size_t most_rows(const cd_dataset *d, size_t first, size_t n) {
    int64_t most = 1;
    for (size_t p = first; p < first + n; p++)
        if (d->row_ptr[p + 1] - d->row_ptr[p] > most) most = d->row_ptr[p + 1] - d->row_ptr[p];
    return (size_t)most;
}

/* Leaves that show a row go where it went. */
static void move_leaves(cd_dataset *d, size_t p, const uint32_t *from, uint32_t *to) {
    const int64_t row = d->row_ptr[p];
    const size_t n = (size_t)(d->row_ptr[p + 1] - d->row_ptr[p]);
    for (size_t k = 0; k < n; k++) to[from[k]] = (uint32_t)k;
    for (int64_t l = d->leaf_ptr[p]; l < d->leaf_ptr[p + 1]; l++)
        if (d->leaf_row[l] >= 0) d->leaf_row[l] = row + to[d->leaf_row[l] - row];
}

/* The rows of one file, all of which is read; its place is `at`. Errors: ENOMEM. */
static cdmpp_status dataset_order(const cd_dataset_file *f, cd_dataset *d, const cd_sizes *at,
                                  cdmpp_err *err) {
    const size_t first = (size_t)at->program, n = (size_t)f->n.program,
                 most = most_rows(d, first, n);
    uint32_t *from = cd_mem_alloc(2 * most * sizeof *from);
    if (!from) return CD_FAIL(err, ENOMEM, "order of %zu rows", most);
    for (size_t p = first; p < first + n; p++) {
        if (p % CD_DATASET_REST == 0) cd_spool_rest(d->spool);
        cd_rows_order(d->row + (size_t)d->row_ptr[p] * d->n_col,
                      (size_t)(d->row_ptr[p + 1] - d->row_ptr[p]), from);
        if (d->leaf_row) move_leaves(d, p, from, from + most);
    }
    for (uint64_t k = 0; d->own && k < f->n.own; k++) {
        if (k % CD_DATASET_REST == 0) cd_spool_rest(d->spool);
        cd_rows_order_blocks(d->own + (at->own + k) * d->n_col);
    }
    cd_mem_free(from);
    return CDMPP_OK;
}

static const char *const name_path[CD_NAME_COUNT] = {
    "/dict/task", "/dict/device", "/dict/source_file", "/network/names", "/dict/kind"};

typedef struct dataset {
    cd_dataset pub; /* first: the caller's pointer is ours */
    cd_dict name[CD_NAME_COUNT];
} dataset;

/* ESCHEMA about an object of the file. */
static cdmpp_status dataset_fail(const cd_dataset_file *f, const char *object, const char *what,
                                 cdmpp_err *err) {
    const cdmpp_status st = CD_FAIL(err, ESCHEMA, "%s", what);
    return cd_err_at(err, cd_err_key(err, st, object), f->h.path, 0);
}

/* --- one file: header, names ------------------------------------------------ */

static cdmpp_status join_names(dataset *d, cd_dataset_file *f, cd_name_id k, cdmpp_err *err) {
    char **text = NULL;
    size_t n = 0;
    if (k == CD_NAME_KIND && !cd_h5_has(&f->h, name_path[k])) return CDMPP_OK;
    CD_TRY(cd_h5_read_text(&f->h, name_path[k], &n, &text, err));
    cdmpp_status st = cd_layout_check_crc(&f->h, name_path[k],
                                          cd_layout_text_crc(n, (const char *const *)text), err);
    f->map[k] = cd_mem_zalloc(n ? n : 1, sizeof **f->map);
    f->n_map[k] = n;
    if (st == CDMPP_OK && !f->map[k]) st = CD_FAIL(err, ENOMEM, "%zu names", n);
    for (size_t i = 0; i < n && st == CDMPP_OK; i++)
        st = cd_dict_add(&d->name[k], (cd_str){text[i], strlen(text[i])}, &f->map[k][i], err);
    cd_mem_free(text);
    return st;
}

/* Elements of an array. */
static cdmpp_status dataset_count(const cd_dataset_file *f, cd_layout_array a, uint64_t *n,
                                  cdmpp_err *err) {
    return cd_h5_size(&f->h, cd_layout[a].path, cd_layout[a].type, cd_layout[a].n_col, n, err);
}

static cdmpp_status count_steps(cd_dataset_file *f, cdmpp_err *err) {
    const char *path = cd_layout[CD_LAYOUT_ARRAY_STEP_PTR].path;
    if (cd_h5_has(&f->h, path)) return dataset_count(f, CD_LAYOUT_ARRAY_STEP, &f->n.step, err);
    const cdmpp_status st = CD_FAIL(
        err, ENODATA,
        "the file has no steps of schedules: extract the logs again, with cdmpp-extract --steps");
    return cd_err_at(err, cd_err_key(err, st, path), f->h.path, 0);
}

static cdmpp_status count_facts(cd_dataset_file *f, cdmpp_err *err) {
    const char *path = cd_layout[CD_LAYOUT_ARRAY_FACTS].path;
    if (cd_h5_has(&f->h, path)) {
        CD_TRY(cd_layout_check_facts(&f->h, CD_FACTS_OF_CPU, err));
        return dataset_count(f, CD_LAYOUT_ARRAY_FACTS, &f->n.fact, err);
    }
    const cdmpp_status st = CD_FAIL(
        err, ENODATA,
        "the file has no facts of loop nests, it is of an earlier version: extract the logs again");
    return cd_err_at(err, cd_err_key(err, st, path), f->h.path, 0);
}

static cdmpp_status dataset_ast_count(cd_dataset_file *f, cdmpp_err *err);

static cdmpp_status open_file(dataset *d, cd_dataset_file *f, const char *path,
                              const cd_dataset_options *how, cdmpp_err *err) {
    CD_TRY(cd_h5_open(&f->h, path, err));
    CD_TRY(cd_layout_check(&f->h, f->digest, err));
    CD_TRY(dataset_count(f, CD_LAYOUT_ARRAY_LATENCY, &f->n.program, err));
    CD_TRY(dataset_count(f, CD_LAYOUT_ARRAY_ROWS, &f->n.row, err));
    CD_TRY(dataset_count(f, CD_LAYOUT_ARRAY_LEAF_NODE, &f->n.leaf, err));
    CD_TRY(cd_h5_size(&f->h, "/network/net", CD_H5_U32, 0, &f->n.net, err));
    for (int k = 0; k < CD_NAME_COUNT; k++) CD_TRY(join_names(d, f, (cd_name_id)k, err));
    if (how->steps) CD_TRY(count_steps(f, err));
    if (how->facts) CD_TRY(count_facts(f, err));
    return how->ast ? dataset_ast_count(f, err) : CDMPP_OK;
}

/* chunks that are read at once: 10 MB of rows; bytes in memory of arrays on disk */
enum { PIECE = 16, RESIDENT = 64 << 20 };

/* --- arrays ------------------------------------------------------------------ */

/* X(array, member): what is held in memory, one element per program. */
#define MEMBER_MAP(X)                                                                              \
    X(LATENCY, latency_s)                                                                          \
    X(LATENCY_MEAN, latency_mean_s)                                                                \
    X(LATENCY_STD, latency_std_s)                                                                  \
    X(LATENCY_MIN, latency_min_s)                                                                  \
    X(FLOP, flop)                                                                                  \
    X(REPEATS, repeats)                                                                            \
    X(ERROR, error)                                                                                \
    X(TASK, task)                                                                                  \
    X(DEVICE, device)                                                                              \
    X(SOURCE_FILE, source_file)                                                                    \
    X(SOURCE_LINE, source_line)                                                                    \
    X(IS_GPU, is_gpu)

/* (n) elements of d, zeroed, never NULL for n == 0. */
static void *dataset_alloc(cd_dataset *d, uint64_t n, size_t size) {
    return d->spool ? cd_spool_take(d->spool, (size_t)n, size)
                    : cd_mem_zalloc(n ? (size_t)n : 1, size);
}

/* Networks are small, and every process has its own. */
static cdmpp_status allocate(cd_dataset *d, const cd_dataset_options *how, cdmpp_err *err) {
    bool ok = (d->row = dataset_alloc(d, d->n_row, CD_N_COL * sizeof *d->row)) != NULL;
    ok = ok && (d->row_ptr = dataset_alloc(d, d->n + 1, sizeof *d->row_ptr)) != NULL;
    ok = ok && (d->leaf_ptr = dataset_alloc(d, d->n + 1, sizeof *d->leaf_ptr)) != NULL;
#define CD_X(ID, member) ok = ok && (d->member = dataset_alloc(d, d->n, sizeof *d->member)) != NULL;
    MEMBER_MAP(CD_X)
#undef CD_X
    ok = ok && (d->kind = dataset_alloc(d, d->n, sizeof *d->kind)) != NULL;
    ok = ok && (d->net_network = cd_mem_zalloc(d->n_net_task + 1, sizeof *d->net_network)) != NULL;
    ok = ok && (d->net_task = cd_mem_zalloc(d->n_net_task + 1, sizeof *d->net_task)) != NULL;
    ok = ok && (d->net_weight = cd_mem_zalloc(d->n_net_task + 1, sizeof *d->net_weight)) != NULL;
    if (how->steps)
        ok = ok && (d->step_ptr = dataset_alloc(d, d->n + 1, sizeof *d->step_ptr)) != NULL;
    if (how->steps) ok = ok && (d->step = dataset_alloc(d, d->n_step, sizeof *d->step)) != NULL;
    if (how->facts)
        ok = ok && (d->facts = dataset_alloc(d, d->n, CD_N_FACTS * sizeof *d->facts)) != NULL;
    if (how->facts) ok = ok && (d->facts_state = dataset_alloc(d, d->n, 1)) != NULL;
    if (!ok && d->spool) CD_TRY(cd_spool_failed(d->spool, err));
    return ok ? CDMPP_OK
              : CD_FAIL(err, ENOMEM, "data set of %zu programs, %zu rows", d->n, d->n_row);
}

/* All n elements of an array, its checksum compared. */
static cdmpp_status dataset_read(const cd_dataset_file *f, cd_layout_array a, uint64_t n, void *out,
                                 cdmpp_err *err) {
    const cd_layout_array_info *info = &cd_layout[a];
    uint64_t have = 0;
    CD_TRY(dataset_count(f, a, &have, err));
    if (have != n) return dataset_fail(f, info->path, "its length does not fit the others", err);
    const uint64_t step = PIECE * (uint64_t)cd_layout_array_chunk(a);
    const size_t bytes = cd_layout_array_bytes(a);
    uLong crc = crc32(0, NULL, 0);
    uint64_t at = 0;
    do { /* once for an empty array: its type is looked at */
        const uint64_t m = n - at < step ? n - at : step;
        char *to = (char *)out + at * bytes;
        CD_TRY(
            cd_h5_read(&f->h, info->path, (cd_h5_shape){info->type, m, info->n_col}, at, to, err));
        crc = crc32_z(crc, (const Bytef *)to, (size_t)m * bytes);
        cd_spool_rest(f->spool);
        at += m;
    } while (at < n);
    return cd_layout_check_crc(&f->h, info->path, (uint32_t)crc, err);
}

/* n+1 offsets, rising from 0 to `end`; `base` is added to each. */
static cdmpp_status dataset_read_ptr(const cd_dataset_file *f, cd_layout_array a, uint64_t n,
                                     uint64_t end, uint64_t base, int64_t *ptr, cdmpp_err *err) {
    CD_TRY(dataset_read(f, a, n + 1, ptr, err));
    bool ok = ptr[0] == 0 && ptr[n] == (int64_t)end;
    for (uint64_t i = 0; i < n; i++) ok = ok && ptr[i] <= ptr[i + 1];
    if (!ok)
        return dataset_fail(f, cd_layout[a].path,
                            "expected rising offsets from 0 to the length of its array", err);
    for (uint64_t i = 0; i <= n; i++) ptr[i] += (int64_t)base;
    return CDMPP_OK;
}

static cdmpp_status map_names(const cd_dataset_file *f, cd_name_id k, const char *object,
                              uint32_t *v, uint64_t n, cdmpp_err *err) {
    for (uint64_t i = 0; i < n; i++) {
        if (v[i] >= f->n_map[k])
            return dataset_fail(f, object, "an index beyond its dictionary", err);
        v[i] = f->map[k][v[i]];
    }
    return CDMPP_OK;
}

static cdmpp_status read_kinds(const cd_dataset_file *f, cd_dataset *d, uint64_t at,
                               cdmpp_err *err) {
    uint32_t *v = d->kind + at;
    const uint64_t n = f->n.program;
    if (f->map[CD_NAME_KIND]) {
        CD_TRY(dataset_read(f, CD_LAYOUT_ARRAY_KIND, n, v, err));
        return map_names(f, CD_NAME_KIND, "/key/kind", v, n, err);
    }
    for (uint64_t i = 0; i < n; i++) v[i] = f->no_kind;
    return CDMPP_OK;
}

static cdmpp_status read_steps(const cd_dataset_file *f, cd_dataset *d, const cd_sizes *at,
                               cdmpp_err *err) {
    const uint64_t n = f->n.program;
    const int64_t *ptr = d->step_ptr + at->program;
    CD_TRY(dataset_read(f, CD_LAYOUT_ARRAY_STEP, f->n.step, d->step + at->step, err));
    CD_TRY(dataset_read_ptr(f, CD_LAYOUT_ARRAY_STEP_PTR, n, f->n.step, at->step,
                            d->step_ptr + at->program, err));
    for (uint64_t p = 0; p < n; p++) {
        if (p % CD_DATASET_REST == 0) cd_spool_rest(d->spool);
        if (!cd_step_codes_sound(d->step + ptr[p], (size_t)(ptr[p + 1] - ptr[p])))
            return dataset_fail(
                f, "/steps/code",
                "expected of each step its kind, the number of its values, and these", err);
    }
    return CDMPP_OK;
}

/* Nobody takes a program for one with facts that has none. */
static cdmpp_status read_facts(const cd_dataset_file *f, cd_dataset *d, uint64_t at,
                               cdmpp_err *err) {
    const uint64_t n = f->n.program;
    CD_TRY(dataset_read(f, CD_LAYOUT_ARRAY_FACTS, n, d->facts + at * CD_N_FACTS, err));
    CD_TRY(dataset_read(f, CD_LAYOUT_ARRAY_FACTS_STATE, n, d->facts_state + at, err));
    bool checked = false;
    for (uint64_t p = 0; p < n; p++) {
        const float *x = d->facts + (at + p) * CD_N_FACTS;
        const uint8_t state = d->facts_state[at + p];
        if (p % CD_DATASET_REST == 0) cd_spool_rest(d->spool);
        if (state == CD_FACTS_THERE_GPU && !checked)
            CD_TRY(cd_layout_check_facts(&f->h, CD_FACTS_OF_GPU, err));
        checked |= state == CD_FACTS_THERE_GPU;
        for (size_t c = 0; cd_facts_are_there(state) && c < CD_N_FACTS; c++)
            if (!isfinite(x[c]))
                return dataset_fail(f, "/facts/value",
                                    "expected finite numbers where /facts/state is 0 or 4", err);
    }
    return CDMPP_OK;
}

static cdmpp_status read_networks(const cd_dataset_file *f, cd_dataset *d, size_t at,
                                  cdmpp_err *err) {
    const cd_h5_shape u = {CD_H5_U32, f->n.net, 0}, w = {CD_H5_I64, f->n.net, 0};
    CD_TRY(cd_h5_read(&f->h, "/network/net", u, 0, d->net_network + at, err));
    CD_TRY(cd_h5_read(&f->h, "/network/task", u, 0, d->net_task + at, err));
    CD_TRY(cd_h5_read(&f->h, "/network/weight", w, 0, d->net_weight + at, err));
    CD_TRY(map_names(f, CD_NAME_NETWORK, "/network/net", d->net_network + at, f->n.net, err));
    return map_names(f, CD_NAME_TASK, "/network/task", d->net_task + at, f->n.net, err);
}

static cdmpp_status read_file(const cd_dataset_file *f, cd_dataset *d, const cd_sizes *at,
                              cdmpp_err *err) {
    const uint64_t p = at->program, n = f->n.program;
    CD_TRY(dataset_read(f, CD_LAYOUT_ARRAY_ROWS, f->n.row, d->row + at->row * CD_N_COL, err));
    CD_TRY(dataset_read_ptr(f, CD_LAYOUT_ARRAY_ROW_PTR, n, f->n.row, at->row, d->row_ptr + p, err));
    CD_TRY(dataset_read_ptr(f, CD_LAYOUT_ARRAY_LEAF_PTR, n, f->n.leaf, at->leaf, d->leaf_ptr + p,
                            err));
#define CD_X(ID, member) CD_TRY(dataset_read(f, CD_LAYOUT_ARRAY_##ID, n, d->member + p, err));
    MEMBER_MAP(CD_X)
#undef CD_X
    CD_TRY(map_names(f, CD_NAME_TASK, "/key/task", d->task + p, n, err));
    CD_TRY(map_names(f, CD_NAME_DEVICE, "/key/device", d->device + p, n, err));
    return map_names(f, CD_NAME_SOURCE, "/key/source_file", d->source_file + p, n, err);
}

/* --- all files --------------------------------------------------------------- */

/* A task in a network counts once, whichever file says so. */
static void drop_repeats(cd_dataset *d) {
    size_t m = 0;
    for (size_t i = 0; i < d->n_net_task; i++) {
        size_t j = 0;
        while (j < m &&
               (d->net_network[j] != d->net_network[i] || d->net_task[j] != d->net_task[i]))
            j++;
        if (j < m) continue;
        d->net_network[m] = d->net_network[i];
        d->net_task[m] = d->net_task[i];
        d->net_weight[m++] = d->net_weight[i];
    }
    d->n_net_task = m;
}

static void name_content(cd_dataset *d, const cd_dataset_file *f, size_t n) {
    cd_sha256 h;
    cd_sha256_init(&h);
    for (size_t i = 0; i < n; i++) cd_sha256_add(&h, f[i].digest, 64);
    if (n == 1) memcpy(d->content_digest, f[0].digest, 65);
    else cd_sha256_hex(&h, d->content_digest);
    cd_cols_digest(d->feature_digest);
}

static void publish_names(dataset *d) {
    cd_dataset *p = &d->pub;
    p->task_name = d->name[CD_NAME_TASK].text, p->n_task = d->name[CD_NAME_TASK].n;
    p->device_name = d->name[CD_NAME_DEVICE].text, p->n_device = d->name[CD_NAME_DEVICE].n;
    p->source_name = d->name[CD_NAME_SOURCE].text, p->n_source = d->name[CD_NAME_SOURCE].n;
    p->kind_name = d->name[CD_NAME_KIND].text, p->n_kind = d->name[CD_NAME_KIND].n;
    p->network_name = d->name[CD_NAME_NETWORK].text, p->n_network = d->name[CD_NAME_NETWORK].n;
}

static void add_sizes(cd_sizes *to, const cd_sizes *n) {
    to->program += n->program, to->row += n->row, to->net += n->net;
    to->leaf += n->leaf, to->own += n->own, to->tree += n->tree, to->path += n->path,
        to->step += n->step, to->fact += n->fact;
}

/* What the arrays of all files take in memory. */
static uint64_t bytes_of(const cd_sizes *n, bool ast, bool steps) {
    enum {
        ROW = CD_N_COL * sizeof(float),
        PROGRAM = 2 * 8 + 5 * 8 + 2 * 4 + 2 * 4 + 2 * 4 + 8 + 2,
        LEAF = 8 + 2 * 4 + 8
    };
    return n->row * ROW + n->program * PROGRAM + n->fact * (CD_N_FACTS * sizeof(float) + 1) +
           (steps ? n->program * 8 + n->step * 4 : 0) +
           (ast ? n->program * 8 + n->own * ROW + n->leaf * LEAF + n->tree * 4 + n->path * 9 : 0);
}

/* Arrays that are larger than asked for go to a file; little of them need be in memory at a time.
 * Those that other processes read go to one in memory. */
static cdmpp_status choose_place(cd_dataset *p, cd_dataset_file *f, size_t n,
                                 const cd_dataset_options *how, cdmpp_err *err) {
    const bool disk = how->memory && p->bytes > how->memory;
    if (!disk && !how->share) return CDMPP_OK;
    CD_TRY(cd_spool_new(disk ? how->folder : NULL, p->bytes, RESIDENT, &p->spool, err));
    for (size_t i = 0; i < n; i++) f[i].spool = p->spool;
    return CDMPP_OK;
}

/* The sizes of all files must be known before the arrays can be made. The kinds of a file of an
 * earlier version are not known. */
static cdmpp_status open_files(dataset *d, cd_dataset_file *f, const char *const *path, size_t n,
                               const cd_dataset_options *how, cdmpp_err *err) {
    cd_sizes all = {0};
    cd_dataset *p = &d->pub;
    for (size_t i = 0; i < n; i++) {
        CD_TRY(cd_err_at(err, open_file(d, &f[i], path[i], how, err), path[i], 0));
        add_sizes(&all, &f[i].n);
    }
    for (size_t i = 0; i < n; i++)
        if (!f[i].map[CD_NAME_KIND])
            CD_TRY(cd_dict_add(&d->name[CD_NAME_KIND], (cd_str){"", 0}, &f[i].no_kind, err));
    p->n = all.program, p->n_row = all.row, p->n_net_task = all.net, p->n_col = CD_N_COL;
    p->n_leaf = all.leaf, p->n_own = all.own, p->n_tree = all.tree, p->n_path = all.path,
    p->n_step = all.step;
    p->bytes = bytes_of(&all, how->ast, how->steps);
    return CDMPP_OK;
}

static cdmpp_status dataset_ast_alloc(cd_dataset *d, cdmpp_err *err);

static cdmpp_status make_arrays(cd_dataset *p, const cd_dataset_options *how, cdmpp_err *err) {
    cdmpp_status st = allocate(p, how, err);
    if (!st && how->ast) st = dataset_ast_alloc(p, err);
    return st;
}

static cdmpp_status dataset_ast_read(const cd_dataset_file *f, cd_dataset *d, const cd_sizes *at,
                                     cdmpp_err *err);

static cdmpp_status read_files(dataset *d, cd_dataset_file *f, const char *const *path, size_t n,
                               const cd_dataset_options *how, cdmpp_err *err) {
    cd_sizes at = {0};
    cd_dataset *p = &d->pub;
    cdmpp_status st = choose_place(p, f, n, how, err);
    if (!st) st = make_arrays(p, how, err);
    if (st)
        return how->folder_key && st != CDMPP_ENOMEM ? cd_err_key(err, st, how->folder_key) : st;
    for (size_t i = 0; i < n; i++) {
        CD_TRY(cd_err_at(err, read_file(&f[i], p, &at, err), path[i], 0));
        CD_TRY(cd_err_at(err, read_kinds(&f[i], p, at.program, err), path[i], 0));
        if (how->steps) CD_TRY(cd_err_at(err, read_steps(&f[i], p, &at, err), path[i], 0));
        if (how->facts) CD_TRY(cd_err_at(err, read_facts(&f[i], p, at.program, err), path[i], 0));
        if (how->ast) CD_TRY(cd_err_at(err, dataset_ast_read(&f[i], p, &at, err), path[i], 0));
        if (!how->as_written) CD_TRY(dataset_order(&f[i], p, &at, err));
        add_sizes(&at, &f[i].n);
    }
    return CDMPP_OK;
}

/* One process of a machine reads, the others map what it read. One that may not (in a container of
 * its own) reads for itself. */
static cdmpp_status share_files(dataset *d, cd_dataset_file *f, const char *const *path, size_t n,
                                const cd_dataset_options *how, cdmpp_status st, cdmpp_err *err) {
    cd_dataset *p = &d->pub;
    cd_spool_place place = {0};
    if (!st && how->share->first) st = read_files(d, f, path, n, how, err);
    if (!st && how->share->first) place = cd_spool_place_of(p->spool);
    st = how->share->meet(how->share->ctx, st, &place, err);
    if (st || how->share->first) return st;
    p->borrowed = cd_spool_open(place, RESIDENT, &p->spool, NULL) == CDMPP_OK;
    return p->borrowed ? make_arrays(p, how, err) : read_files(d, f, path, n, how, err);
}

static cdmpp_status load_files(dataset *d, cd_dataset_file *f, const char *const *path, size_t n,
                               const cd_dataset_options *how, cdmpp_err *err) {
    size_t net = 0;
    cd_dataset *p = &d->pub;
    cdmpp_status st = open_files(d, f, path, n, how, err);
    if (how->share) st = share_files(d, f, path, n, how, st, err);
    else if (!st) st = read_files(d, f, path, n, how, err);
    for (size_t i = 0; !st && i < n; net += f[i++].n.net)
        st = cd_err_at(err, read_networks(&f[i], p, net, err), path[i], 0);
    if (st) return st;
    if (n > 1) drop_repeats(p);
    publish_names(d);
    name_content(p, f, n);
    return CDMPP_OK;
}

/* Files are closed here whatever happens. */
cdmpp_status cd_dataset_load_within(const char *const *path, size_t n_path,
                                    const cd_dataset_options *how, cd_dataset **out,
                                    cdmpp_err *err) {
    dataset *d = cd_mem_zalloc(1, sizeof *d);
    cd_dataset_file *f = cd_mem_zalloc(n_path ? n_path : 1, sizeof *f);
    for (size_t i = 0; f && i < n_path; i++) f[i].h.file = -1;
    cdmpp_status st;
    if (d && f) st = load_files(d, f, path, n_path, how, err);
    else st = CD_FAIL(err, ENOMEM, "data set of %zu files", n_path);
    if (!(d && f) && how->share)
        st = how->share->meet(how->share->ctx, st, &(cd_spool_place){0}, err);
    for (size_t i = 0; f && i < n_path; i++) {
        (void)cd_h5_close(&f[i].h, NULL);
        for (int k = 0; k < CD_NAME_COUNT; k++) cd_mem_free(f[i].map[k]);
    }
    cd_mem_free(f);
    if (st) cd_dataset_free((cd_dataset *)d);
    else *out = &d->pub;
    return st;
}

cdmpp_status cd_dataset_load(const char *const *path, size_t n_path, cd_dataset **out,
                             cdmpp_err *err) {
    return cd_dataset_load_within(path, n_path, &(cd_dataset_options){0}, out, err);
}

cdmpp_status cd_dataset_load_ast(const char *const *path, size_t n_path, cd_dataset **out,
                                 cdmpp_err *err) {
    return cd_dataset_load_within(path, n_path, &(cd_dataset_options){.ast = true}, out, err);
}

static void dataset_ast_free(cd_dataset *d);

static void free_arrays(cd_dataset *pub) {
    cd_mem_free(pub->row);
    cd_mem_free(pub->row_ptr);
    cd_mem_free(pub->leaf_ptr);
#define CD_X(ID, member) cd_mem_free(pub->member);
    MEMBER_MAP(CD_X)
#undef CD_X
    cd_mem_free(pub->kind);
    cd_mem_free(pub->step_ptr);
    cd_mem_free(pub->step);
    cd_mem_free(pub->facts);
    cd_mem_free(pub->facts_state);
    dataset_ast_free(pub);
}

/* The public struct is the first member of the private one. */
void cd_dataset_free(cd_dataset *pub) {
    dataset *d = (dataset *)pub;
    if (!d) return;
    if (pub->spool) cd_spool_free(pub->spool);
    else free_arrays(pub);
    cd_mem_free(pub->net_network);
    cd_mem_free(pub->net_task);
    cd_mem_free(pub->net_weight);
    for (int k = 0; k < CD_NAME_COUNT; k++) cd_dict_free(&d->name[k]);
    cd_mem_free(d);
}

/* The compact ASTs of a data set: read, check, say which row a leaf shows. */

static cdmpp_status dataset_ast_count(cd_dataset_file *f, cdmpp_err *err) {
    CD_TRY(dataset_count(f, CD_LAYOUT_ARRAY_LEAF_ROWS, &f->n.own, err));
    CD_TRY(dataset_count(f, CD_LAYOUT_ARRAY_TREE, &f->n.tree, err));
    return dataset_count(f, CD_LAYOUT_ARRAY_PATH_EXTENT, &f->n.path, err);
}

/* X(member, elements): what is held in memory. */
#define AST_MAP(X)                                                                                 \
    X(leaf_row, d->n_leaf)                                                                         \
    X(leaf_pos, d->n_leaf)                                                                         \
    X(leaf_node, d->n_leaf)                                                                        \
    X(own, d->n_own * d->n_col)                                                                    \
    X(path_ptr, d->n_leaf + 1)                                                                     \
    X(path_extent, d->n_path)                                                                      \
    X(path_kind, d->n_path)                                                                        \
    X(tree_ptr, d->n + 1)                                                                          \
    X(tree, d->n_tree)

/* d's sizes are set */
static cdmpp_status dataset_ast_alloc(cd_dataset *d, cdmpp_err *err) {
    bool ok = true;
#define CD_X(member, n) ok = ok && (d->member = dataset_alloc(d, n, sizeof *d->member)) != NULL;
    AST_MAP(CD_X)
#undef CD_X
    if (!ok && d->spool) CD_TRY(cd_spool_failed(d->spool, err));
    return ok ? CDMPP_OK
              : CD_FAIL(err, ENOMEM, "ASTs of %zu programs, %zu leaves", d->n, d->n_leaf);
}

static void dataset_ast_free(cd_dataset *d) {
#define CD_X(member, n) cd_mem_free(d->member);
    AST_MAP(CD_X)
#undef CD_X
}

/* Nodes are numbered in pre-order from 0 and each is closed once, the root last. */
static bool tree_is_sound(const int32_t *tree, int64_t n) {
    int32_t next = 0;
    int64_t open = 0;
    for (int64_t k = 0; k < n; k++) {
        if (tree[k] == -1) open--;
        else if (tree[k] == next++) open++;
        else return false;
        if (open < 0 || (open == 0 && k + 1 < n)) return false;
    }
    return open == 0;
}

static cdmpp_status check_trees(const cd_dataset_file *f, const cd_dataset *d, const cd_sizes *at,
                                cdmpp_err *err) {
    for (uint64_t p = at->program; p < at->program + f->n.program; p++) {
        const int32_t *tree = d->tree + d->tree_ptr[p];
        const int64_t n = d->tree_ptr[p + 1] - d->tree_ptr[p];
        if (p % CD_DATASET_REST == 0) cd_spool_rest(d->spool);
        if (!tree_is_sound(tree, n))
            return dataset_fail(f, "/ast/tree", "expected nodes in pre-order, each closed by -1",
                                err);
        for (int64_t l = d->leaf_ptr[p]; l < d->leaf_ptr[p + 1]; l++)
            if (d->leaf_pos[l] < 0 || d->leaf_pos[l] >= n || d->leaf_node[l] < 0 ||
                tree[d->leaf_pos[l]] != d->leaf_node[l])
                return dataset_fail(f, "/ast/leaf_pos",
                                    "expected the place of the leaf's node in its tree", err);
    }
    return CDMPP_OK;
}

static cdmpp_status read_paths(const cd_dataset_file *f, cd_dataset *d, const cd_sizes *at,
                               cdmpp_err *err) {
    CD_TRY(dataset_read_ptr(f, CD_LAYOUT_ARRAY_PATH_PTR, f->n.leaf, f->n.path, at->path,
                            d->path_ptr + at->leaf, err));
    CD_TRY(dataset_read(f, CD_LAYOUT_ARRAY_PATH_EXTENT, f->n.path, d->path_extent + at->path, err));
    CD_TRY(dataset_read(f, CD_LAYOUT_ARRAY_PATH_KIND, f->n.path, d->path_kind + at->path, err));
    for (uint64_t k = at->path; k < at->path + f->n.path; k++)
        if (d->path_kind[k] > 4)
            return dataset_fail(f, "/ast/path_kind", "not a kind of loop", err);
    return CDMPP_OK;
}

/* Which row each leaf of program p shows; own rows are given out in order. */
static cdmpp_status point_leaves(const cd_dataset_file *f, cd_dataset *d, uint64_t p,
                                 const int32_t *leaf_row, const uint8_t *leaf_own, int64_t own,
                                 int64_t own_end, cdmpp_err *err) {
    const int64_t *row = d->row_ptr + p, *leaf = d->leaf_ptr + p;
    for (int64_t l = leaf[0], k = 0; l < leaf[1]; l++, k++) {
        if (leaf_row[k] < 0 || leaf_row[k] >= row[1] - row[0])
            return dataset_fail(f, "/ast/leaf_row",
                                "a leaf names a row that its program does not have", err);
        if (leaf_own[k] && own >= own_end)
            return dataset_fail(f, "/ast/own_ptr", "fewer own rows than leaves that say so", err);
        d->leaf_row[l] = leaf_own[k] ? ~own++ : row[0] + leaf_row[k];
    }
    return own == own_end
               ? CDMPP_OK
               : dataset_fail(f, "/ast/own_ptr", "more own rows than leaves that say so", err);
}

/* Leaves whose columns equal the row of their buffer are not stored twice; here they are put
 * together again. */
static cdmpp_status read_leaves(const cd_dataset_file *f, cd_dataset *d, const cd_sizes *at,
                                cdmpp_err *err) {
    int32_t *leaf_row = cd_mem_zalloc((size_t)f->n.leaf + 1, sizeof *leaf_row);
    uint8_t *leaf_own = cd_mem_zalloc((size_t)f->n.leaf + 1, 1);
    int64_t *own_ptr = cd_mem_zalloc((size_t)f->n.program + 1, sizeof *own_ptr);
    cdmpp_status st =
        leaf_row && leaf_own && own_ptr ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu leaves", d->n_leaf);
    if (!st) st = dataset_read(f, CD_LAYOUT_ARRAY_LEAF_ROW, f->n.leaf, leaf_row, err);
    if (!st) st = dataset_read(f, CD_LAYOUT_ARRAY_LEAF_OWN, f->n.leaf, leaf_own, err);
    if (!st)
        st = dataset_read_ptr(f, CD_LAYOUT_ARRAY_OWN_PTR, f->n.program, f->n.own, at->own, own_ptr,
                              err);
    for (uint64_t p = 0; p < f->n.program && !st; p++) {
        const uint64_t k = (uint64_t)d->leaf_ptr[at->program + p] - at->leaf;
        if (p % CD_DATASET_REST == 0) cd_spool_rest(d->spool);
        st = point_leaves(f, d, at->program + p, leaf_row + k, leaf_own + k, own_ptr[p],
                          own_ptr[p + 1], err);
    }
    cd_mem_free(leaf_row);
    cd_mem_free(leaf_own);
    cd_mem_free(own_ptr);
    return st;
}

/* One file to its place `at`; its rows, row_ptr and leaf_ptr are there already. */
static cdmpp_status dataset_ast_read(const cd_dataset_file *f, cd_dataset *d, const cd_sizes *at,
                                     cdmpp_err *err) {
    CD_TRY(dataset_read(f, CD_LAYOUT_ARRAY_LEAF_ROWS, f->n.own, d->own + at->own * d->n_col, err));
    CD_TRY(dataset_read(f, CD_LAYOUT_ARRAY_LEAF_POS, f->n.leaf, d->leaf_pos + at->leaf, err));
    CD_TRY(dataset_read(f, CD_LAYOUT_ARRAY_LEAF_NODE, f->n.leaf, d->leaf_node + at->leaf, err));
    CD_TRY(dataset_read_ptr(f, CD_LAYOUT_ARRAY_TREE_PTR, f->n.program, f->n.tree, at->tree,
                            d->tree_ptr + at->program, err));
    CD_TRY(dataset_read(f, CD_LAYOUT_ARRAY_TREE, f->n.tree, d->tree + at->tree, err));
    CD_TRY(check_trees(f, d, at, err));
    CD_TRY(read_paths(f, d, at, err));
    return read_leaves(f, d, at, err);
}
