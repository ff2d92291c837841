/* The best placement that fits into the memories: each byte gets a price in seconds, which rises
 * until the solver's placement fits. Of small graphs every placement is tried too. */
#include <string.h>

#include "predictor/partition/placement/place_internal.h"

enum { MOST_OPS = 24, DOUBLINGS = 40, HALVINGS = 8 };
/* replays are dear, and prices ask often */
static const uint64_t MOST_LOOKS = 2000000, PRICED_EFFORT = 20000;

typedef struct {
    const cd_place_limits *l;
    cd_place_net g;
    cd_place_goal goal;
    uint32_t *where, *best; /* (n_op) CD_PLACE_NONE: not placed */
    double *rest;           /* (n_op + 1) least seconds of all from there on */
    double best_s;
    uint64_t looks;
} within;

/* Does an operator that is placed in this memory make or read the value? */
static bool is_held(const within *w, const cd_place_value *v, uint32_t memory) {
    const uint32_t *to = w->g.p->to + v->first, at = w->where[v->from];
    bool held = at != CD_PLACE_NONE && w->l->memory[at] == memory;
    for (uint32_t i = 0; i < v->n_to && !held; i++)
        held = w->where[to[i]] != CD_PLACE_NONE && w->l->memory[w->where[to[i]]] == memory;
    return held;
}

static bool is_read(const within *w, const cd_place_shared *s, uint32_t memory) {
    for (uint32_t i = 0; i < s->n_op; i++)
        if (w->where[s->op[i]] != CD_PLACE_NONE && w->l->memory[w->where[s->op[i]]] == memory)
            return true;
    return false;
}

static double held(const within *w, uint32_t memory) {
    const cd_place_problem *p = w->g.p;
    double n = 0;
    for (uint32_t k = 0; k < p->n_op; k++)
        if (w->where[k] != CD_PLACE_NONE && w->l->memory[w->where[k]] == memory)
            n += w->l->weights[k];
    for (uint32_t s = 0; s < w->l->n_shared; s++)
        n += is_read(w, &w->l->shared[s], memory) ? w->l->shared[s].bytes : 0;
    for (uint32_t v = 0; v < p->n_value; v++)
        n += is_held(w, &p->value[v], memory) ? (double)p->value[v].bytes : 0;
    return n;
}

/* The fullest memory of those over their limit, what is there; CD_PLACE_NONE: all fit. */
static uint32_t over(const within *w, double *bytes) {
    uint32_t worst = CD_PLACE_NONE;
    double most = 1;
    for (uint32_t m = 0; m < w->l->n_memory; m++) {
        const double n = w->l->bytes[m] > 0 ? held(w, m) : 0;
        if (!(n > most * w->l->bytes[m]) || !(w->l->bytes[m] > 0)) continue;
        most = n / w->l->bytes[m], worst = m;
        if (bytes) *bytes = n;
    }
    return worst;
}

static cdmpp_status cost_of(within *w, double *out, cdmpp_err *err) {
    if (w->goal == CD_PLACE_MAKESPAN) return cd_place_makespan(&w->g, w->where, out, NULL, err);
    *out = cd_place_sum(&w->g, w->where, NULL);
    return CDMPP_OK;
}

static cdmpp_status offer(within *w, cdmpp_err *err) {
    double cost;
    CD_TRY(cost_of(w, &cost, err));
    if (!(cost < w->best_s)) return CDMPP_OK;
    w->best_s = cost;
    memcpy(w->best, w->where, w->g.p->n_op * sizeof *w->best);
    return CDMPP_OK;
}

/* ---- prices ---- */

static void put_prices(const within *w, const double *full_price, double scale, double *seconds) {
    double price[CD_PLACE_MAX_DEVICE]; /* of each device's memory */
    const cd_place_problem *p = w->g.p;
    const uint32_t D = p->n_device;
    for (uint32_t d = 0; d < D; d++) price[d] = scale * full_price[w->l->memory[d]];
    for (uint32_t k = 0; k < p->n_op; k++)
        for (uint32_t d = 0; d < D; d++)
            seconds[(size_t)k * D + d] =
                p->seconds[(size_t)k * D + d] + price[d] * w->l->weights[k];
    /* as dear for each reader as if it were alone: a guide, as for values */
    for (uint32_t s = 0; s < w->l->n_shared; s++)
        for (uint32_t i = 0; i < w->l->shared[s].n_op; i++)
            for (uint32_t d = 0; d < D; d++)
                seconds[(size_t)w->l->shared[s].op[i] * D + d] += price[d] * w->l->shared[s].bytes;
    for (uint32_t v = 0; v < p->n_value; v++)
        for (uint32_t d = 0; d < D; d++) {
            const double s = price[d] * (double)p->value[v].bytes;
            seconds[(size_t)p->value[v].from * D + d] += s;
            for (uint32_t i = 0; i < p->value[v].n_to; i++)
                seconds[(size_t)p->to[p->value[v].first + i] * D + d] += s;
        }
}

typedef struct {
    cd_place_problem dear;   /* with prices */
    double *price, *seconds; /* (n_memory), (n_op, n_device) */
    uint32_t full;           /* memory that the last placement is over; CD_PLACE_NONE: it fits */
    double bytes;            /* of the last that did not */
} prices;

static cdmpp_status priced(within *w, prices *x, double scale, cdmpp_err *err) {
    cd_place_plan r;
    put_prices(w, x->price, scale, x->seconds);
    const cdmpp_status st = cd_place_solve(
        &x->dear, w->goal, w->goal == CD_PLACE_MAKESPAN ? PRICED_EFFORT : 0, &r, err);
    if (!st) memcpy(w->where, r.where, w->g.p->n_op * sizeof *w->where);
    cd_place_plan_free(&r);
    CD_TRY(st);
    x->full = over(w, &x->bytes);
    return x->full == CD_PLACE_NONE ? offer(w, err) : CDMPP_OK;
}

/* Twice as dear each time for the memory that is fullest, until all fit; then as little as it
 * takes. */
static cdmpp_status raise_prices(within *w, double cost, prices *x, cdmpp_err *err) {
    const cd_place_problem *p = w->g.p;
    double lo = 0.25, hi = 1;
    x->price = CD_NEWN(w->g.a, double, (size_t)w->l->n_memory + 1),
    x->seconds = CD_NEWN(w->g.a, double, (size_t)p->n_op * p->n_device + 1);
    if (!x->price || !x->seconds) return CD_FAIL(err, ENOMEM, "%u operators", p->n_op);
    x->dear = *p;
    x->dear.seconds = x->seconds;
    for (int k = 0; k < DOUBLINGS && x->full != CD_PLACE_NONE; k++) {
        double *v = &x->price[x->full];
        *v = *v > 0 ? 2 * *v : 1e-3 * (cost > 0 ? cost : 1e-9) / w->l->bytes[x->full];
        CD_TRY(priced(w, x, 1, err));
    }
    for (int k = 0; k < HALVINGS && isfinite(w->best_s); k++) {
        const double mid = 0.5 * (lo + hi);
        CD_TRY(priced(w, x, mid, err));
        *(x->full == CD_PLACE_NONE ? &hi : &lo) = mid;
    }
    return CDMPP_OK;
}

/* ---- every placement ---- */

/* A lower bound. Sum: what is placed and the least of the rest. Makespan: the seconds of the
 * fullest device over its workers. */
static double bound(const within *w, uint32_t n, double sum) {
    const cd_place_problem *p = w->g.p;
    if (w->goal == CD_PLACE_SUM) return (sum + w->rest[n]) * (1 - 1e-12);
    double load[CD_PLACE_MAX_DEVICE] = {0}, most = 0;
    for (uint32_t i = 0; i < n; i++)
        load[w->where[w->g.order[i]]] +=
            cd_place_seconds(p, w->g.order[i], w->where[w->g.order[i]]);
    for (uint32_t d = 0; d < p->n_device; d++)
        most = fmax(most, load[d] / (p->device[d].workers ? p->device[d].workers : 1));
    return most * (1 - 1e-12);
}

static cdmpp_status step(within *w, uint32_t n, double sum, cdmpp_err *err) {
    const cd_place_problem *p = w->g.p;
    if (n == p->n_op) return offer(w, err);
    const uint32_t k = w->g.order[n];
    for (uint32_t d = 0; d < p->n_device && w->looks < MOST_LOOKS; d++) {
        const double s = cd_place_seconds(p, k, d);
        w->looks++;
        w->where[k] = d;
        if (isfinite(s) && bound(w, n + 1, sum + s) < w->best_s && over(w, NULL) == CD_PLACE_NONE)
            CD_TRY(step(w, n + 1, sum + s, err));
        w->where[k] = CD_PLACE_NONE;
    }
    return CDMPP_OK;
}

/* Depth first in the topological order. *all becomes true only if the search ended before
 * MOST_LOOKS, that is if the best one is exact. */
static cdmpp_status every_placement(within *w, bool *all, cdmpp_err *err) {
    const cd_place_problem *p = w->g.p;
    if (p->n_op > MOST_OPS) return CDMPP_OK;
    if (!(w->rest = CD_NEWN(w->g.a, double, (size_t)p->n_op + 1)))
        return CD_FAIL(err, ENOMEM, "%u operators", p->n_op);
    w->rest[p->n_op] = 0;
    for (uint32_t i = p->n_op; i-- > 0;) {
        double least = (double)INFINITY;
        for (uint32_t d = 0; d < p->n_device; d++)
            least = fmin(least, cd_place_seconds(p, w->g.order[i], d));
        w->rest[i] = w->rest[i + 1] + least;
        w->where[w->g.order[i]] = CD_PLACE_NONE;
    }
    CD_TRY(step(w, 0, 0, err));
    *all = w->looks < MOST_LOOKS;
    return CDMPP_OK;
}

/* ---- the best that fits ---- */

static cdmpp_status check(const cd_place_problem *p, const cd_place_limits *l, cdmpp_err *err) {
    for (uint32_t d = 0; d < p->n_device; d++)
        if (l->memory[d] >= l->n_memory)
            return CD_FAIL(err, EINVALID, "device %s has memory %u of %u", p->device[d].name,
                           l->memory[d], l->n_memory);
    for (uint32_t m = 0; m < l->n_memory; m++)
        if (!(l->bytes[m] >= 0 && isfinite(l->bytes[m])))
            return CD_FAIL(err, ERANGE, "memory %u has %g bytes", m, l->bytes[m]);
    for (uint32_t k = 0; k < p->n_op; k++)
        if (!(l->weights[k] >= 0 && isfinite(l->weights[k])))
            return CD_FAIL(err, ERANGE, "operator %s has %g bytes of weights", p->op[k].name,
                           l->weights[k]);
    for (uint32_t s = 0; s < l->n_shared; s++) {
        if (!(l->shared[s].bytes >= 0 && isfinite(l->shared[s].bytes)))
            return CD_FAIL(err, ERANGE, "a weight of %u operators has %g bytes", l->shared[s].n_op,
                           l->shared[s].bytes);
        for (uint32_t i = 0; i < l->shared[s].n_op; i++)
            if (l->shared[s].op[i] >= p->n_op)
                return CD_FAIL(err, EINVALID, "a weight is read by operator %u of %u",
                               l->shared[s].op[i], p->n_op);
    }
    return CDMPP_OK;
}

/* Prices come first: what they find prunes the complete search. The bound of the solution without
 * limits stays valid, because limits only remove placements. */
static cdmpp_status fit(within *w, prices *x, cd_place_plan *out, cdmpp_err *err) {
    const cd_place_problem *p = w->g.p;
    const double free_s = w->goal == CD_PLACE_SUM ? out->cost.sum_s : out->cost.makespan_s;
    bool all = false;
    uint32_t who = 0;
    CD_TRY(raise_prices(w, free_s, x, err));
    CD_TRY(every_placement(w, &all, err));
    if (!isfinite(w->best_s)) {
        while (x->full != CD_PLACE_NONE && w->l->memory[who] != x->full) who++;
        return CD_FAIL(err, EINVALID,
                       "no placement fits%s: %.6g GB would be in the memory of %s, which has %.6g",
                       all ? "" : " that was found", x->bytes * 1e-9, p->device[who].name,
                       x->full == CD_PLACE_NONE ? 0 : w->l->bytes[x->full] * 1e-9);
    }
    memcpy(out->where, w->best, p->n_op * sizeof *out->where);
    cd_place_sum(&w->g, out->where, &out->cost);
    CD_TRY(cd_place_makespan(&w->g, out->where, &out->cost.makespan_s, NULL, err));
    out->exact = all, out->method = all ? "every placement that fits" : "prices on bytes";
    if (all) out->bound_s = w->best_s;
    out->n_look += w->looks;
    return CDMPP_OK;
}

/* The placement without limits is tried first: if it fits, no other one is better. */
cdmpp_status cd_place_solve_within(const cd_place_problem *p, cd_place_goal goal, uint64_t effort,
                                   const cd_place_limits *l, cd_place_plan *out, cdmpp_err *err) {
    cd_arena own = {0};
    prices x = {.full = CD_PLACE_NONE};
    CD_TRY(cd_place_solve(p, goal, effort, out, err));
    within w = {.l = l,
                .goal = goal,
                .best_s = (double)INFINITY,
                .where = CD_NEWN(&own, uint32_t, (size_t)p->n_op + 1),
                .best = CD_NEWN(&own, uint32_t, (size_t)p->n_op + 1)};
    cdmpp_status st = check(p, l, err);
    if (!st && (!w.where || !w.best)) st = CD_FAIL(err, ENOMEM, "%u operators", p->n_op);
    if (!st) st = cd_place_prepare(p, &own, &w.g, err);
    if (!st) {
        memcpy(w.where, out->where, p->n_op * sizeof *w.where);
        x.full = over(&w, &x.bytes);
        if (x.full != CD_PLACE_NONE) st = fit(&w, &x, out, err);
    }
    cd_arena_free(&own);
    return st;
}
