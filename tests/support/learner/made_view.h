/* made_view.h -- programs that never were: a view with features drawn from a seed and
 * latencies that a network can learn from them. */
#ifndef MADE_VIEW_H
#define MADE_VIEW_H
#include <math.h>
#include <string.h>

#include "base/core/core.h"
#include "features/rows/rows.h"
#include "features/task/task.h"
#include "learner/inputs/program_view.h"

enum { MADE_MOST = 4, MADE_CODES = 8 }; /* leaves of a program; numbers of a step */

/* n <= MADE_N programs of 1 .. 4 leaves on two devices; program i is a function of
 * (seed, i). `shift` moves the features of device 1, another domain. */
#ifndef MADE_N
#define MADE_N 400
#endif

typedef struct made_view {
    cd_program_view view;
    double latency_s[MADE_N];
    uint32_t group[MADE_N], device[MADE_N];
    float weight[MADE_N];
    float row[MADE_N * MADE_MOST * CD_N_COL];
    int64_t row_ptr[MADE_N + 1], leaf_ptr[MADE_N + 1], tree_ptr[MADE_N + 1],
        path_ptr[MADE_N * MADE_MOST + 1];
    const float *leaf_x[MADE_N * MADE_MOST];
    int32_t leaf_pos[MADE_N * MADE_MOST], leaf_node[MADE_N * MADE_MOST],
        tree[MADE_N * (4 * MADE_MOST + 2)];
    int64_t path_extent[MADE_N * MADE_MOST];
    uint8_t path_kind[MADE_N * MADE_MOST];
    double flop[MADE_N];
    int64_t step_ptr[MADE_N + 1];
    int32_t step[MADE_N * MADE_MOST * MADE_CODES];
} made_view;

/* The step of a leaf: a split whose values are the leaf's columns, in hundredths, and its loop's
 * trip count; device and all. */
static inline void made_step(made_view *m, size_t at, uint32_t dev) {
    int32_t *s = m->step + at * MADE_CODES;
    *s++ = CD_RECORD_STEP_SP;
    *s++ = MADE_CODES - 2;
    *s++ = (int32_t)dev;
    *s++ = (int32_t)m->path_extent[at];
    for (size_t c = 5; c < CD_N_COL; c += 40) *s++ = (int32_t)(100 * m->leaf_x[at][c]);
}

static inline double made_leaf(made_view *m, size_t at, uint64_t key, float shift) {
    float *x = m->row + at * CD_N_COL;
    double s = 0;
    for (uint64_t c = 5; c < CD_N_COL; c += 40) { /* five columns, the others are zeros */
        x[c] = (float)(4 * cd_rng_unit(key, c)) + shift;
        s += 0.4 * (double)x[c];
    }
    m->leaf_x[at] = x;
    m->path_extent[at] = 1 + (int64_t)(cd_rng_at(key, 1000) % 64);
    m->path_kind[at] = (uint8_t)(cd_rng_at(key, 1001) % 5);
    m->path_ptr[at + 1] = (int64_t)at + 1;
    return exp(s - 12) * sqrt((double)m->path_extent[at]);
}

static inline void made_view_fill(made_view *m, size_t n, uint64_t seed, float shift) {
    size_t at = 0, node = 0;
    memset(m, 0, sizeof *m);
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = cd_rng_at(seed, i);
        const size_t leaves = 1 + key % MADE_MOST;
        m->device[i] = (uint32_t)(cd_rng_at(key, 1) % 2);
        m->group[i] = (uint32_t)(cd_rng_at(key, 2) % 9) * 2 + m->device[i];
        m->weight[i] = (float)(0.5 + cd_rng_unit(key, 3));
        m->flop[i] = 1e6 * (1 + (double)(key % 1000));
        size_t t = (size_t)m->tree_ptr[i];
        m->tree[t++] = 0;
        for (size_t l = 0; l < leaves; l++, at++) { /* root, and a loop with a leaf for each */
            m->leaf_pos[at] = (int32_t)(t + 1 - (size_t)m->tree_ptr[i]);
            m->leaf_node[at] = (int32_t)(2 * l + 2);
            m->tree[t++] = (int32_t)(2 * l + 1);
            m->tree[t++] = (int32_t)(2 * l + 2);
            m->tree[t++] = -1;
            m->tree[t++] = -1;
            m->latency_s[i] += made_leaf(m, at, cd_rng_at(key, 10 + l), m->device[i] ? shift : 0);
            made_step(m, at, m->device[i]);
        }
        m->tree[t++] = -1;
        m->latency_s[i] *= m->device[i] ? 0.25 : 1;
        m->row_ptr[i + 1] = m->leaf_ptr[i + 1] = (int64_t)at;
        m->tree_ptr[i + 1] = (int64_t)t;
        m->step_ptr[i + 1] = (int64_t)(at * MADE_CODES);
        node += leaves;
    }
    m->view = (cd_program_view){.n = n,
                                .row = m->row,
                                .row_ptr = m->row_ptr,
                                .leaf_ptr = m->leaf_ptr,
                                .leaf_x = m->leaf_x,
                                .leaf_pos = m->leaf_pos,
                                .leaf_node = m->leaf_node,
                                .path_ptr = m->path_ptr,
                                .path_extent = m->path_extent,
                                .path_kind = m->path_kind,
                                .tree_ptr = m->tree_ptr,
                                .tree = m->tree,
                                .step_ptr = m->step_ptr,
                                .step = m->step,
                                .device = m->device,
                                .flop = m->flop};
}
#endif
