#include "dataset/dataset.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/sha256.h"
#include "dataset/dict.h"
#include "dataset/layout.h"
#include "features/cols.h"

typedef enum { NAME_TASK, NAME_DEVICE, NAME_SOURCE, NAME_NETWORK, NAME_COUNT } name_id;
static const char *const name_path[NAME_COUNT] = {"/dict/task", "/dict/device", "/dict/source_file",
                                                  "/network/names"};

typedef struct dataset {
    cd_dataset pub; /* first: the caller's pointer is ours */
    cd_dict name[NAME_COUNT];
} dataset;

/* One part: its file, sizes, and its numbers of names in the joined lists. */
typedef struct part {
    cd_h5 h;
    uint64_t n, n_row, n_net;
    uint32_t *map[NAME_COUNT];
    size_t n_map[NAME_COUNT];
    char digest[65];
} part;

static cdmpp_status fail_part(const part *p, const char *object, const char *what, cdmpp_err *err) {
    const cdmpp_status st = CD_FAIL(err, ESCHEMA, "%s", what);
    return cd_err_at(err, cd_err_key(err, st, object), p->h.path, 0);
}

/* --- one part: header, names ------------------------------------------------ */

static cdmpp_status join_names(dataset *d, part *p, name_id k, cdmpp_err *err) {
    char **text = NULL;
    size_t n = 0;
    CD_TRY(cd_h5_read_text(&p->h, name_path[k], &n, &text, err));
    cdmpp_status st = cd_layout_check_crc(&p->h, name_path[k], cd_text_crc(n, (const char *const *)text), err);
    p->map[k] = cd_calloc(n ? n : 1, sizeof **p->map);
    p->n_map[k] = n;
    if (st == CDMPP_OK && !p->map[k]) st = CD_FAIL(err, ENOMEM, "%zu names", n);
    for (size_t i = 0; i < n && st == CDMPP_OK; i++)
        st = cd_dict_add(&d->name[k], (cd_str){text[i], strlen(text[i])}, &p->map[k][i], err);
    cd_free(text);
    return st;
}

static cdmpp_status size_of(const part *p, cd_array a, uint64_t *n, cdmpp_err *err) {
    return cd_h5_size(&p->h, cd_layout[a].path, cd_layout[a].type, cd_layout[a].n_col, n, err);
}

static cdmpp_status open_part(dataset *d, part *p, const char *path, cdmpp_err *err) {
    CD_TRY(cd_h5_open(&p->h, path, err));
    CD_TRY(cd_layout_check(&p->h, p->digest, err));
    CD_TRY(size_of(p, CD_ARRAY_LATENCY, &p->n, err));
    CD_TRY(size_of(p, CD_ARRAY_ROWS, &p->n_row, err));
    CD_TRY(cd_h5_size(&p->h, "/network/net", CD_H5_U32, 0, &p->n_net, err));
    for (int k = 0; k < NAME_COUNT; k++) CD_TRY(join_names(d, p, (name_id)k, err));
    return CDMPP_OK;
}

/* --- arrays ------------------------------------------------------------------ */

/* X(array, member): what is held in memory, one element per program. */
#define MEMBER_MAP(X)                                                                           \
    X(LATENCY, latency_s) X(LATENCY_MEAN, latency_mean_s) X(LATENCY_STD, latency_std_s)          \
    X(LATENCY_MIN, latency_min_s) X(FLOP, flop) X(REPEATS, repeats) X(ERROR, error) X(TASK, task) \
    X(DEVICE, device) X(SOURCE_FILE, source_file) X(SOURCE_LINE, source_line) X(IS_GPU, is_gpu)

static void *zalloc2(uint64_t n, size_t size) { return cd_calloc(n ? (size_t)n : 1, size); }

static cdmpp_status allocate(cd_dataset *d, cdmpp_err *err) {
    bool ok = (d->row = zalloc2(d->n_row, CD_N_COL * sizeof *d->row)) != NULL;
    ok = ok && (d->row_ptr = zalloc2(d->n + 1, sizeof *d->row_ptr)) != NULL;
#define CD_X(ID, member) ok = ok && (d->member = zalloc2(d->n, sizeof *d->member)) != NULL;
    MEMBER_MAP(CD_X)
#undef CD_X
    ok = ok && (d->net_network = zalloc2(d->n_net_task, sizeof *d->net_network)) != NULL;
    ok = ok && (d->net_task = zalloc2(d->n_net_task, sizeof *d->net_task)) != NULL;
    ok = ok && (d->net_weight = zalloc2(d->n_net_task, sizeof *d->net_weight)) != NULL;
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "data set of %zu programs, %zu rows", d->n, d->n_row);
}

static cdmpp_status read_array(const part *p, cd_array a, uint64_t n, void *out, cdmpp_err *err) {
    const cd_array_info *info = &cd_layout[a];
    uint64_t have = 0;
    CD_TRY(size_of(p, a, &have, err));
    if (have != n) return fail_part(p, info->path, "its length does not fit /label/latency_s", err);
    CD_TRY(cd_h5_read(&p->h, info->path, (cd_h5_shape){info->type, n, info->n_col}, 0, out, err));
    return cd_layout_check_crc(&p->h, info->path, (uint32_t)crc32_z(0, out, (size_t)n * cd_array_bytes(a)), err);
}

static cdmpp_status read_row_ptr(const part *p, int64_t *ptr, int64_t base, cdmpp_err *err) {
    CD_TRY(read_array(p, CD_ARRAY_ROW_PTR, p->n + 1, ptr, err));
    bool ok = ptr[0] == 0 && ptr[p->n] == (int64_t)p->n_row;
    for (uint64_t i = 0; i < p->n; i++) ok = ok && ptr[i] <= ptr[i + 1];
    if (!ok) return fail_part(p, cd_layout[CD_ARRAY_ROW_PTR].path, "expected rising offsets from 0 to the number of rows", err);
    for (uint64_t i = 0; i <= p->n; i++) ptr[i] += base;
    return CDMPP_OK;
}

static cdmpp_status map_names(const part *p, name_id k, const char *object, uint32_t *v, uint64_t n, cdmpp_err *err) {
    for (uint64_t i = 0; i < n; i++) {
        if (v[i] >= p->n_map[k]) return fail_part(p, object, "an index beyond its dictionary", err);
        v[i] = p->map[k][v[i]];
    }
    return CDMPP_OK;
}

static cdmpp_status read_networks(const part *p, cd_dataset *d, size_t at, cdmpp_err *err) {
    const cd_h5_shape u = {CD_H5_U32, p->n_net, 0}, w = {CD_H5_I64, p->n_net, 0};
    CD_TRY(cd_h5_read(&p->h, "/network/net", u, 0, d->net_network + at, err));
    CD_TRY(cd_h5_read(&p->h, "/network/task", u, 0, d->net_task + at, err));
    CD_TRY(cd_h5_read(&p->h, "/network/weight", w, 0, d->net_weight + at, err));
    CD_TRY(map_names(p, NAME_NETWORK, "/network/net", d->net_network + at, p->n_net, err));
    return map_names(p, NAME_TASK, "/network/task", d->net_task + at, p->n_net, err);
}

static cdmpp_status read_part(const part *p, cd_dataset *d, size_t at, size_t row_at, size_t net_at, cdmpp_err *err) {
    CD_TRY(read_array(p, CD_ARRAY_ROWS, p->n_row, d->row + row_at * CD_N_COL, err));
    CD_TRY(read_row_ptr(p, d->row_ptr + at, (int64_t)row_at, err));
#define CD_X(ID, member) CD_TRY(read_array(p, CD_ARRAY_##ID, p->n, d->member + at, err));
    MEMBER_MAP(CD_X)
#undef CD_X
    CD_TRY(map_names(p, NAME_TASK, "/key/task", d->task + at, p->n, err));
    CD_TRY(map_names(p, NAME_DEVICE, "/key/device", d->device + at, p->n, err));
    CD_TRY(map_names(p, NAME_SOURCE, "/key/source_file", d->source_file + at, p->n, err));
    return read_networks(p, d, net_at, err);
}

/* --- all parts --------------------------------------------------------------- */

/* A task in a network counts once, whichever part says so. */
static void drop_repeats(cd_dataset *d) {
    size_t m = 0;
    for (size_t i = 0; i < d->n_net_task; i++) {
        size_t j = 0;
        while (j < m && (d->net_network[j] != d->net_network[i] || d->net_task[j] != d->net_task[i])) j++;
        if (j < m) continue;
        d->net_network[m] = d->net_network[i];
        d->net_task[m] = d->net_task[i];
        d->net_weight[m++] = d->net_weight[i];
    }
    d->n_net_task = m;
}

static void name_content(cd_dataset *d, const part *p, size_t n) {
    cd_sha256 h;
    cd_sha256_init(&h);
    for (size_t i = 0; i < n; i++) cd_sha256_add(&h, p[i].digest, 64);
    if (n == 1) memcpy(d->content_digest, p[0].digest, 65);
    else cd_sha256_hex(&h, d->content_digest);
    cd_cols_digest(d->feature_digest);
}

static void publish_names(dataset *d) {
    cd_dataset *p = &d->pub;
    p->task_name = d->name[NAME_TASK].text, p->n_task = d->name[NAME_TASK].n;
    p->device_name = d->name[NAME_DEVICE].text, p->n_device = d->name[NAME_DEVICE].n;
    p->source_name = d->name[NAME_SOURCE].text, p->n_source = d->name[NAME_SOURCE].n;
    p->network_name = d->name[NAME_NETWORK].text, p->n_network = d->name[NAME_NETWORK].n;
}

static cdmpp_status load_parts(dataset *d, part *p, const char *const *path, size_t n, cdmpp_err *err) {
    size_t at = 0, row_at = 0, net_at = 0;
    for (size_t i = 0; i < n; i++) {
        CD_TRY(cd_err_at(err, open_part(d, &p[i], path[i], err), path[i], 0));
        d->pub.n += p[i].n;
        d->pub.n_row += p[i].n_row;
        d->pub.n_net_task += p[i].n_net;
    }
    d->pub.n_col = CD_N_COL;
    CD_TRY(allocate(&d->pub, err));
    for (size_t i = 0; i < n; i++) {
        CD_TRY(cd_err_at(err, read_part(&p[i], &d->pub, at, row_at, net_at, err), path[i], 0));
        at += p[i].n, row_at += p[i].n_row, net_at += p[i].n_net;
    }
    if (n > 1) drop_repeats(&d->pub);
    publish_names(d);
    name_content(&d->pub, p, n);
    return CDMPP_OK;
}

cdmpp_status cd_dataset_load(const char *const *path, size_t n_path, cd_dataset **out, cdmpp_err *err) {
    dataset *d = cd_calloc(1, sizeof *d);
    part *p = cd_calloc(n_path ? n_path : 1, sizeof *p);
    for (size_t i = 0; p && i < n_path; i++) p[i].h.file = -1;
    cdmpp_status st;
    if (d && p) st = load_parts(d, p, path, n_path, err);
    else st = CD_FAIL(err, ENOMEM, "data set of %zu files", n_path);
    for (size_t i = 0; p && i < n_path; i++) {
        (void)cd_h5_close(&p[i].h, NULL);
        for (int k = 0; k < NAME_COUNT; k++) cd_free(p[i].map[k]);
    }
    cd_free(p);
    if (st) cd_dataset_free((cd_dataset *)d);
    else *out = &d->pub;
    return st;
}

void cd_dataset_free(cd_dataset *pub) {
    dataset *d = (dataset *)pub;
    if (!d) return;
    cd_free(pub->row);
    cd_free(pub->row_ptr);
#define CD_X(ID, member) cd_free(pub->member);
    MEMBER_MAP(CD_X)
#undef CD_X
    cd_free(pub->net_network);
    cd_free(pub->net_task);
    cd_free(pub->net_weight);
    for (int k = 0; k < NAME_COUNT; k++) cd_dict_free(&d->name[k]);
    cd_free(d);
}
