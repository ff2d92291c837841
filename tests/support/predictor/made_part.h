/* made_part.h -- drawn placement problems, and the slow truth about them: every placement. */
#ifndef MADE_PART_H
#define MADE_PART_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "predictor/partition/placement/place.h"

enum { MP_OPS = 64, MP_TO = 512 };

typedef struct {
    cd_place_problem p;
    cd_place_op op[MP_OPS];
    cd_place_value value[MP_OPS + 8];
    uint32_t to[MP_TO];
    cd_place_device device[CD_PLACE_MAX_DEVICE];
    cd_place_link link[64];
    double seconds[MP_OPS * CD_PLACE_MAX_DEVICE];
    char name[MP_OPS][16];
    uint64_t seed, at;
} made_part;

static inline double mp_unit(made_part *m) { return cd_rng_unit(m->seed, m->at++); }
static inline uint32_t mp_below(made_part *m, uint32_t n) { return (uint32_t)(mp_unit(m) * n); }

static inline void mp_links(made_part *m, bool all) {
    for (uint32_t a = 0; a < m->p.n_device; a++)
        for (uint32_t b = 0; b < m->p.n_device; b++)
            if (a != b && (all || mp_unit(m) < 0.7))
                m->link[m->p.n_link++] = (cd_place_link){a,
                                                         b,
                                                         mp_unit(m) * 2e-6,
                                                         1e9 * (1 + mp_unit(m)),
                                                         mp_unit(m) < 0.3 ? 0.25 : 0,
                                                         mp_unit(m) < 0.3 ? 1e-6 : 0,
                                                         mp_unit(m) < 0.3 ? 1e-10 : 0};
}

/* n operators on D devices; each reads some of those before it. chain: each the one before. */
static inline void mp_make(made_part *m, uint64_t seed, uint32_t n, uint32_t D, bool chain,
                           bool all_links) {
    static const char *const device[] = {"d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7"};
    memset(m, 0, sizeof *m);
    m->seed = seed;
    m->p =
        (cd_place_problem){n, 0, 0, D, 0, m->op, m->value, m->to, m->device, m->link, m->seconds};
    for (uint32_t d = 0; d < D; d++)
        m->device[d] = (cd_place_device){device[d], mp_unit(m) < 0.1 ? 2 : 0};
    mp_links(m, all_links);
    for (uint32_t k = 0; k < n; k++) {
        snprintf(m->name[k], sizeof m->name[k], "op%u", k);
        m->op[k] = (cd_place_op){m->name[k], CD_PLACE_FREE, NULL};
        for (uint32_t d = 0; d < D; d++)
            m->seconds[k * D + d] = mp_unit(m) < 0.15  ? (double)INFINITY
                                    : mp_unit(m) < 0.1 ? 0
                                                       : mp_unit(m) * 1e-5;
        const uint32_t sure = mp_below(m, D);
        if (isinf(m->seconds[k * D + sure])) m->seconds[k * D + sure] = mp_unit(m) * 1e-5;
        if (mp_unit(m) < 0.1) m->op[k].pin = sure, m->op[k].pin_why = "test:1";
        const uint32_t values = mp_unit(m) < 0.15 ? 2 : 1;
        for (uint32_t v = 0; v < values && m->p.n_value < MP_OPS; v++)
            m->value[m->p.n_value++] =
                (cd_place_value){k, mp_unit(m) < 0.1 ? 0 : (int64_t)(mp_unit(m) * 20000), 0, 0};
    }
    for (uint32_t v = 0; v < m->p.n_value; v++) {
        cd_place_value *x = &m->value[v];
        x->first = m->p.n_to;
        for (uint32_t k = x->from + 1; k < n; k++)
            if (m->p.n_to < MP_TO - 2 &&
                (chain ? k == x->from + 1 && (v == 0 || m->value[v - 1].from != x->from)
                       : mp_unit(m) < 2.0 / n)) {
                m->to[m->p.n_to++] = k;
                if (mp_unit(m) < 0.05) m->to[m->p.n_to++] = k; /* read twice is one copy */
            }
        x->n_to = m->p.n_to - x->first;
    }
}

/* The sum, read slowly: for every value and device, is somebody there? */
static inline double mp_sum(const cd_place_problem *p, const uint32_t *where) {
    double sum = 0;
    for (uint32_t k = 0; k < p->n_op; k++) {
        if (p->op[k].pin != CD_PLACE_FREE && p->op[k].pin != where[k]) return (double)INFINITY;
        sum += p->seconds[k * p->n_device + where[k]];
    }
    for (uint32_t v = 0; v < p->n_value; v++)
        for (uint32_t d = 0; d < p->n_device; d++) {
            bool there = false;
            for (uint32_t j = 0; j < p->value[v].n_to; j++)
                there = there || where[p->to[p->value[v].first + j]] == d;
            if (!there || d == where[p->value[v].from]) continue;
            double copy = (double)INFINITY;
            for (uint32_t l = 0; l < p->n_link; l++)
                if (p->link[l].from == where[p->value[v].from] && p->link[l].to == d) {
                    const cd_place_link *q = &p->link[l];
                    copy = q->latency_s + q->convert_s +
                           (double)p->value[v].bytes *
                               ((q->packed > 0 ? q->packed : 1) / q->bytes_per_s +
                                q->convert_s_per_byte);
                }
            sum += copy;
        }
    return sum;
}

/* The next placement; false after the last. */
static inline bool mp_next(uint32_t *where, uint32_t n, uint32_t D) {
    for (uint32_t k = 0; k < n; k++) {
        if (++where[k] < D) return true;
        where[k] = 0;
    }
    return false;
}
#endif
