/* bench_repeat FROM.h5 TO.h5 N [SEED] -- a data set of N programs, to measure memory and time of
 * large trainings.
 *
 * Program i is program i mod n of FROM. Each pass over FROM after the first moves latencies and
 * features a little (seeded, so the same call gives the same file), and every 20 passes the tasks
 * get a new name. Figures of errors on such data mean nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "dataset/extract/extract.h"
#include "dataset/file/file.h"

enum { MOST = 512, MOST_PATH = 8192, PASSES = 20 };

typedef struct {
    const cd_dataset *d;
    cd_writer *w;
    uint64_t seed;
    float row[MOST * 164], own[MOST * 164];
    int32_t leaf_row[MOST], path_ptr[MOST + 1];
    uint8_t leaf_own[MOST];
    char task[4096];
} rig;

/* Values that are not zero, by up to 2 %: zero columns stay zero, as they do in real sets. */
static void move_rows(float *to, const float *from, size_t n, uint64_t key) {
    for (size_t k = 0; k < n * 164; k++)
        to[k] = key ? from[k] * (float)(0.98 + 0.04 * cd_rng_unit(key, k)) : from[k];
}

static void put_leaves(rig *r, cd_item *it, size_t p, uint64_t key) {
    const cd_dataset *d = r->d;
    const int64_t l0 = d->leaf_ptr[p];
    for (uint32_t k = 0; k < it->n_leaf; k++) {
        const int64_t at = d->leaf_row[l0 + k];
        const float *x =
            at < 0 ? d->own + ~at * (int64_t)d->n_col : d->row + at * (int64_t)d->n_col;
        r->leaf_own[k] = at < 0;
        r->leaf_row[k] = at < 0 ? 0 : (int32_t)(at - d->row_ptr[p]);
        if (r->leaf_own[k]) move_rows(r->own + it->n_own++ * 164, x, 1, key ? key + 1 : 0);
        r->path_ptr[k + 1] = (int32_t)(d->path_ptr[l0 + k + 1] - d->path_ptr[l0]);
    }
    it->leaf_node = d->leaf_node + l0;
    it->leaf_pos = d->leaf_pos + l0;
    it->path_extent = d->path_extent + d->path_ptr[l0];
    it->path_kind = d->path_kind + d->path_ptr[l0];
}

static cdmpp_status add(rig *r, size_t i, cdmpp_err *err) {
    const cd_dataset *d = r->d;
    const size_t p = i % d->n, pass = i / d->n;
    const uint64_t key = pass ? cd_rng_at(r->seed, i) | 1 : 0;
    const double f = key ? exp(0.1 * (cd_rng_unit(key, 1000000) - 0.5)) : 1;
    cd_item it = {.n_row = (uint32_t)(d->row_ptr[p + 1] - d->row_ptr[p]),
                  .n_leaf = (uint32_t)(d->leaf_ptr[p + 1] - d->leaf_ptr[p]),
                  .n_tree = (uint32_t)(d->tree_ptr[p + 1] - d->tree_ptr[p]),
                  .row = r->row,
                  .own = r->own,
                  .leaf_row = r->leaf_row,
                  .leaf_own = r->leaf_own,
                  .tree = d->tree + d->tree_ptr[p],
                  .path_ptr = r->path_ptr,
                  .latency_s = d->latency_s[p] * f,
                  .latency_mean_s = d->latency_mean_s[p] * f,
                  .latency_std_s = d->latency_std_s[p] * f,
                  .latency_min_s = d->latency_min_s[p] * f,
                  .flop = d->flop[p],
                  .repeats = d->repeats[p],
                  .error = d->error[p],
                  .is_gpu = d->is_gpu[p],
                  .source_line = d->source_line[p] + pass * 1000000};
    if (it.n_row > MOST || it.n_leaf > MOST)
        return CD_FAIL(err, ERANGE, "program %zu: %u rows, %u leaves", p, it.n_row, it.n_leaf);
    move_rows(r->row, d->row + (size_t)d->row_ptr[p] * d->n_col, it.n_row, key);
    put_leaves(r, &it, p, key);
    snprintf(r->task, sizeof r->task, pass < PASSES ? "%s" : "%s #%zu", d->task_name[d->task[p]],
             pass / PASSES);
    const char *text[CD_LAYOUT_DICT_COUNT] = {
        [CD_LAYOUT_DICT_TASK] = r->task,
        [CD_LAYOUT_DICT_DEVICE] = d->device_name[d->device[p]],
        [CD_LAYOUT_DICT_TARGET] = "llvm",
        [CD_LAYOUT_DICT_SOURCE] = d->source_name[d->source_file[p]],
        [CD_LAYOUT_DICT_KIND] = d->kind_name[d->kind[p]]};
    for (int k = 0; k < CD_LAYOUT_DICT_COUNT; k++) it.text[k] = (cd_str){text[k], strlen(text[k])};
    return cd_writer_add(r->w, &it, err);
}

static cdmpp_status finish(cd_writer *w, const cd_dataset *d, const char *digest, cdmpp_err *err) {
    cd_net_entry *net = cd_mem_zalloc(d->n_net_task + 1, sizeof *net);
    if (!net) return CD_FAIL(err, ENOMEM, "networks");
    for (size_t k = 0; k < d->n_net_task; k++)
        net[k] = (cd_net_entry){d->network_name[d->net_network[k]], d->task_name[d->net_task[k]],
                                d->net_weight[k]};
    const cd_finish f = {d->n_net_task, net, "bench_repeat", digest};
    const cdmpp_status st = cd_writer_finish(w, &f, err);
    cd_mem_free(net);
    return st;
}

int main(int argc, char **argv) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    cd_buf place = {0};
    const cd_compressor here = {0};
    static rig r;
    if (argc < 4) return fprintf(stderr, "bench_repeat FROM.h5 TO.h5 N [SEED]\n"), 2;
    const size_t n = strtoull(argv[3], NULL, 10);
    r.seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
    const char *const from = argv[1];
    cdmpp_status st = cd_dataset_load_ast(&from, 1, &d, &err);
    r.d = d;
    if (!st) st = cd_writer_open(&r.w, argv[2], d->content_digest, true, &here, &place, &err);
    for (size_t i = 0; !st && i < n; i++) st = add(&r, i, &err);
    if (!st) st = finish(r.w, d, d->content_digest, &err);
    if (st) fprintf(stderr, "bench_repeat: %s\n", err.msg);
    cd_writer_free(r.w);
    cd_buf_free(&place);
    cd_dataset_free(d);
    return st ? 1 : 0;
}
