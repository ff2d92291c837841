/* made_batch.h -- random batches for tests of networks: program i has
 * 1 + (seed-dependent) leaves, values about -1..1. */
#ifndef MADE_BATCH_H
#define MADE_BATCH_H
#include <string.h>

#include "base/rng.h"
#include "learner/net.h"

static inline float made_value(uint64_t seed, uint64_t i) { return (float)(2 * cd_rng_unit(seed, i) - 1); }

static inline void made_floats(float *x, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++) x[i] = made_value(seed, i);
}

/* n programs of 1 .. most leaves; values of program i depend on first + i only. */
static inline cdmpp_status made_batch(cd_batch *b, const cd_net_spec *s, size_t first, size_t n, size_t most, uint64_t seed,
                                      cdmpp_err *err) {
    const cd_batch_spec spec = cd_net_batch_spec(s, NULL, 0);
    const cd_batch_dims dims = {n, n * most, most};
    CD_TRY(cd_batch_init(b, &spec, &dims, err));
    b->n = n;
    b->max_leaf = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = cd_rng_at(seed, first + i);
        const size_t leaves = b->w_tok ? 1 + key % most : 0, at = b->n_tok;
        made_floats(b->tok + at * b->w_tok, leaves * b->w_tok, cd_rng_at(key, 1));
        for (size_t l = 0; l < leaves; l++) b->pos[at + l] = (int32_t)(1 + 3 * l);
        made_floats(b->prog + i * b->w_prog, b->w_prog, cd_rng_at(key, 2));
        made_floats(b->dev + i * b->w_dev, b->w_dev, cd_rng_at(key, 3));
        b->n_tok += leaves;
        b->tok_ptr[i + 1] = (uint32_t)b->n_tok;
        if (leaves > b->max_leaf) b->max_leaf = leaves;
    }
    return CDMPP_OK;
}
#endif
