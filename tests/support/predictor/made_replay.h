/* made_replay.h -- drawn networks to replay. */
#ifndef MADE_REPLAY_H
#define MADE_REPLAY_H
#include "base/core/core.h"
#include "predictor/replay/replay.h"

enum { MAX_OP = 200, MAX_EDGE = 800, MAX_DEVICE = 4, MAX_LINK = 12 };

typedef struct {
    cd_replay_net n;
    cd_replay_op op[MAX_OP];
    uint32_t after[MAX_EDGE];
    cd_replay_device device[MAX_DEVICE + 1];
    cd_replay_link link[MAX_LINK];
} made_replay;

static inline uint64_t pick(uint64_t seed, uint64_t i, uint64_t n) {
    return cd_rng_at(seed, i) % n;
}

static inline void make_replay(made_replay *m, uint64_t seed, bool contended) {
    *m = (made_replay){0};
    cd_replay_net *n = &m->n;
    *n = (cd_replay_net){.n_op = 1 + (uint32_t)pick(seed, 1, MAX_OP),
                         .n_device = 1 + (uint32_t)pick(seed, 2, MAX_DEVICE),
                         .op = m->op,
                         .after = m->after,
                         .device = m->device,
                         .link = m->link};
    for (uint32_t d = 0; d < n->n_device; d++) {
        m->device[d] = (cd_replay_device){.name = "d",
                                          .workers = 1 + (uint32_t)pick(seed, 10 + d, 3),
                                          .policy = (cd_replay_policy)pick(seed, 20 + d, 3),
                                          .gap_s = pick(seed, 30 + d, 2) ? 0.25 : 0,
                                          .issue_s = pick(seed, 40 + d, 3) ? 0 : 0.5};
        for (uint32_t e = 0; e < n->n_device; e++)
            if (e != d)
                m->link[n->n_link++] =
                    (cd_replay_link){d, e, 0.125, (double)(1 << pick(seed, 50 + d * 4 + e, 4))};
    }
    for (uint32_t k = 0; k < n->n_op; k++) {
        cd_replay_op *o = &m->op[k];
        const uint64_t s = cd_rng_at(seed, 1000 + k);
        *o = (cd_replay_op){.name = "op",
                            .device = (uint32_t)pick(s, 1, n->n_device),
                            .like = (uint32_t)pick(s, 2, 9),
                            .seconds = (double)pick(s, 3, 64) / 8,
                            .spread = 0.2,
                            .bytes = (int64_t)pick(s, 4, 16),
                            .memory_share = contended ? (double)pick(s, 5, 5) / 4 : 0,
                            .first = n->n_after};
        for (uint64_t j = pick(s, 6, 4); j-- > 0 && k && n->n_after < MAX_EDGE; o->n_after++)
            m->after[n->n_after++] = (uint32_t)pick(s, 10 + j, k);
    }
}
#endif
