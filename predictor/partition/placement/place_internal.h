/* place_internal -- what the files of this room share. Private.
 *
 *   cd_place_net       the problem, checked and prepared (place_net.c): an order, who reads what,
 *                      what a copy costs
 *   cut, elimination   (place.c)   the least sum
 *   bound, list, search (place.c) the least makespan, each placement replayed */
#ifndef CD_PLACE_INTERNAL_H
#define CD_PLACE_INTERNAL_H
#include <math.h>

#include "predictor/partition/placement/place.h"

#define CD_PLACE_NONE UINT32_MAX

typedef struct cd_place_net {
    const cd_place_problem *p;
    cd_arena *a;
    /* (n_op) every operator behind those that it reads; its place there */
    uint32_t *order, *pos;
    /* operators that k reads: in[first_in[k] .. first_in[k+1]), once each */
    uint32_t *first_in, *in;
    uint32_t *first_out, *out;       /* operators that read k, once each */
    uint32_t *first_reader, *reader; /* of a value, once each */
    int64_t *bytes;                  /* (n_op) of all its values that are read */
    /* infinity, 0: no link */
    double latency[CD_PLACE_MAX_DEVICE][CD_PLACE_MAX_DEVICE],
        rate[CD_PLACE_MAX_DEVICE][CD_PLACE_MAX_DEVICE];
    uint64_t looked;
} cd_place_net;

/* Into the arena. Errors: those of cd_place_check. */
cdmpp_status cd_place_prepare(const cd_place_problem *p, cd_arena *a, cd_place_net *out,
                              cdmpp_err *err);

/* Infinity for a pin to elsewhere too. */
static inline double cd_place_seconds(const cd_place_problem *p, uint32_t op, uint32_t d) {
    return p->op[op].pin == CD_PLACE_FREE || p->op[op].pin == d
               ? p->seconds[(size_t)op * p->n_device + d]
               : (double)INFINITY;
}
static inline double cd_place_copy_s(const cd_place_net *g, int64_t bytes, uint32_t a, uint32_t b) {
    return a == b ? 0 : g->latency[a][b] + (double)bytes / g->rate[a][b];
}
/* all of *out but the makespan */
double cd_place_sum(const cd_place_net *g, const uint32_t *where, cd_place_cost *out);
/* r NULL: not wanted */
cdmpp_status cd_place_makespan(cd_place_net *g, const uint32_t *where, double *out, cd_replay *r,
                               cdmpp_err *err);

#endif
