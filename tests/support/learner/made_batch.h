/* made_batch.h -- random batches for tests of networks: program i has
 * 1 + (seed-dependent) leaves, values about -1..1. */
#ifndef MADE_BATCH_H
#define MADE_BATCH_H
#include <string.h>

#include "base/core/core.h"
#include "learner/nn/nn.h"

static inline float made_value(uint64_t seed, uint64_t i) {
    return (float)(2 * cd_rng_unit(seed, i) - 1);
}

static inline void made_floats(float *x, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++) x[i] = made_value(seed, i);
}

enum { MADE_LEAVES = 60, MADE_CHAIN = 20 };
#define MADE_NODES(leaves) (MADE_CHAIN + 2 * (leaves)) /* at most */

/* A tree of `leaves` leaves: nodes open and close at random, some stay without a leaf,
 * and one program in three hangs on a chain of up to MADE_CHAIN. */
static inline size_t made_tree(uint64_t key, size_t leaves, int32_t *list, int32_t *leaf_pos) {
    const size_t chain = cd_rng_at(key, 0) % 3 ? 1 : 1 + cd_rng_at(key, 1) % MADE_CHAIN;
    size_t n = 0, open = 0, leaf = 0;
    int32_t node = 0;
    for (; open < chain; open++) list[n++] = node++;
    for (uint64_t i = 2; leaf < leaves; i++) {
        const uint64_t what = cd_rng_at(key, i) % 5;
        if (what < 2) {
            leaf_pos[leaf++] = (int32_t)n;
            list[n++] = node++;
            list[n++] = -1;
        } else if (what < 4 && (size_t)node - leaf < chain + 2 * leaves) {
            list[n++] = node++;
            open++;
        } else if (open > 1) {
            list[n++] = -1;
            open--;
        }
    }
    for (; open; open--) list[n++] = -1;
    return n;
}

static inline cdmpp_status made_tree_add(cd_program_tree *t, uint64_t key, size_t leaves,
                                         cdmpp_err *err) {
    int32_t list[2 * (MADE_NODES(MADE_LEAVES) + MADE_LEAVES)], leaf_pos[MADE_LEAVES];
    const size_t n = made_tree(key, leaves, list, leaf_pos);
    return cd_program_tree_add(t, list, n, leaf_pos, leaves, err);
}

/* n programs of 1 .. most leaves; values of program i depend on first + i only. */
static inline cdmpp_status made_batch(cd_batch *b, const cd_net_config *s, size_t first, size_t n,
                                      size_t most, uint64_t seed, cdmpp_err *err) {
    const cd_batch_spec spec = cd_net_batch_spec(s, NULL, 0);
    const cd_batch_dims dims = {n, n * most, most, n * MADE_NODES(most)};
    CD_TRY(cd_batch_init(b, &spec, &dims, err));
    b->n = n;
    b->max_leaf = 0;
    cd_program_tree_clear(&b->tree);
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = cd_rng_at(seed, first + i);
        const size_t leaves = b->w_tok ? 1 + key % most : 0, at = b->n_tok;
        made_floats(b->tok + at * b->w_tok, leaves * b->w_tok, cd_rng_at(key, 1));
        for (size_t l = 0; l < leaves; l++) b->pos[at + l] = (int32_t)(1 + 3 * l);
        if (b->has_tree) CD_TRY(made_tree_add(&b->tree, cd_rng_at(key, 4), leaves, err));
        made_floats(b->prog + i * b->w_prog, b->w_prog, cd_rng_at(key, 2));
        made_floats(b->dev + i * b->w_dev, b->w_dev, cd_rng_at(key, 3));
        b->n_tok += leaves;
        b->tok_ptr[i + 1] = (uint32_t)b->n_tok;
        if (leaves > b->max_leaf) b->max_leaf = leaves;
    }
    if (b->has_tree) cd_program_tree_close(&b->tree);
    return CDMPP_OK;
}
#endif
