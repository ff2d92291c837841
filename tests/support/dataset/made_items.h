/* made_items.h -- programs for tests of the data set layer: item i depends on i
 * only, some of them large, empty, or failed. */
#ifndef MADE_ITEMS_H
#define MADE_ITEMS_H
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dataset/extract/extract.h"

typedef struct made_item {
    cd_item it;
    float row[16 * 164], own[16 * 164];
    int32_t leaf_node[16], leaf_pos[16], leaf_row[16], tree[64], path_ptr[17];
    uint8_t leaf_own[16], path_kind[64];
    int64_t path_extent[64];
    char task[64], source[64];
} made_item;

static inline cd_str made_str(const char *s) { return (cd_str){s, strlen(s)}; }

/* A root with its leaves below: 0, 1, -1, 2, -1, ... -1. */
static inline void make_ast(made_item *m, unsigned i) {
    cd_item *it = &m->it;
    it->n_leaf = it->n_row ? it->n_row + i % 2 : 0;
    it->n_tree = it->n_leaf ? 2 * it->n_leaf + 2 : 0;
    it->n_own = 0;
    m->path_ptr[0] = 0;
    for (unsigned k = 0; k < it->n_leaf; k++) {
        m->leaf_node[k] = (int32_t)(k + 1);
        m->leaf_pos[k] = (int32_t)(2 * k + 1);
        m->leaf_row[k] = (int32_t)(k % it->n_row);
        m->leaf_own[k] = (uint8_t)((k + i) % 3 == 0);
        for (int c = 0; m->leaf_own[k] && c < 164; c++)
            m->own[it->n_own * 164 + (unsigned)c] = (float)(i + k) + 0.5f * (float)c;
        it->n_own += m->leaf_own[k];
        m->path_ptr[k + 1] = m->path_ptr[k] + (int32_t)(k % 4);
    }
    for (int k = 0; k < m->path_ptr[it->n_leaf]; k++)
        m->path_extent[k] = (int64_t)i * 1000 + k, m->path_kind[k] = (uint8_t)(k % 5);
    for (unsigned k = 0; k < it->n_tree; k++) m->tree[k] = k % 2 ? (int32_t)(k + 1) / 2 : -1;
    if (it->n_tree) m->tree[0] = 0, m->tree[it->n_tree - 1] = -1;
}

static inline const cd_item *make_item(made_item *m, unsigned i) {
    cd_item *it = &m->it;
    memset(m, 0, sizeof *m);
    it->n_row = i % 97 == 5 ? 0 : i % 50 == 7 ? 13 : 1 + i % 4;
    for (unsigned k = 0; k < it->n_row * 164; k++)
        m->row[k] = (float)((i * 2654435761u + k * 40503u) % 1000u) / 16.0f;
    make_ast(m, i);
    it->row = m->row, it->own = m->own, it->leaf_node = m->leaf_node, it->leaf_pos = m->leaf_pos,
    it->leaf_row = m->leaf_row;
    it->leaf_own = m->leaf_own, it->tree = m->tree, it->path_ptr = m->path_ptr;
    it->path_extent = m->path_extent, it->path_kind = m->path_kind;
    it->error = i % 31 == 3 ? 4 : 0;
    it->latency_s = it->error ? (double)NAN : 1e-6 * (1 + i);
    it->latency_mean_s = it->latency_s * 1.01, it->latency_std_s = it->latency_s * 0.1;
    it->latency_min_s = it->latency_s * 0.9, it->flop = 1000.0 * i,
    it->repeats = it->error ? 0 : 1 + i % 10;
    it->is_gpu = i % 2;
    it->source_line = i % 40 + 1;
    snprintf(m->task, sizeof m->task, "[\"task%u\", %u]", i / 25, i / 25);
    snprintf(m->source, sizeof m->source, "dir/dev%u/file%u.json", i / 1000, i / 40);
    it->text[CD_LAYOUT_DICT_TASK] = made_str(m->task);
    it->text[CD_LAYOUT_DICT_DEVICE] = made_str(i % 2 ? "v100" : "zen5");
    it->text[CD_LAYOUT_DICT_TARGET] = made_str(i % 2 ? "cuda -model=v100" : "llvm -model=zen5");
    it->text[CD_LAYOUT_DICT_SOURCE] = made_str(m->source);
    it->text[CD_LAYOUT_DICT_KIND] =
        made_str(i % 3 ? "dtype float32" : "dtype float16; intrinsic exp");
    return it;
}

/* Item i with steps: i % 3 of them, so some have none. */
static inline void make_steps(made_item *m, unsigned i) {
    static int32_t code[9];
    for (unsigned k = 0; k < i % 3; k++)
        code[3 * k] = 9, code[3 * k + 1] = 1, code[3 * k + 2] = (int32_t)(i + k);
    m->it.step = code;
    m->it.n_step = 3 * (i % 3);
}

static const cd_net_entry made_net[] = {
    {"net b", "[\"task3\", 3]", 2},     {"net a", "[\"task1\", 1]", 1},
    {"net b", "[\"task0\", 0]", 7},     {"net b", "[\"task3\", 3]", 2},
    {"net c", "[\"no such task\"]", 1},
};
static const cd_finish made_finish = {sizeof made_net / sizeof *made_net, made_net, "test", "0"};
static const char made_print[] = "0123456789012345678901234567890123456789012345678901234567890123";

/* Items first .. last into a file, each changed by `spoil` (NULL: not). */
static inline cdmpp_status make_spoilt(const char *path, unsigned first, unsigned last,
                                       void (*spoil)(made_item *, unsigned), cdmpp_err *err) {
    static made_item m;
    cd_writer *w = NULL;
    cd_buf place = {0};
    CD_TRY(cd_writer_open(&w, path, made_print, true, NULL, &place, err));
    cdmpp_status st = CDMPP_OK;
    for (unsigned i = first; i < last && st == CDMPP_OK; i++) {
        make_item(&m, i);
        if (spoil) spoil(&m, i);
        st = cd_writer_add(w, &m.it, err);
    }
    if (st == CDMPP_OK) st = cd_writer_finish(w, &made_finish, err);
    cd_writer_free(w);
    cd_buf_free(&place);
    return st;
}
static inline cdmpp_status make_file(const char *path, unsigned first, unsigned last,
                                     cdmpp_err *err) {
    return make_spoilt(path, first, last, NULL, err);
}
#endif
