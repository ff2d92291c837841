/* Placements checked and costed, then the methods in the order of their strength: the exact one
 * where it applies, else bounds and local search. */
#include "predictor/partition/placement/place.h"

#include <string.h>

#include "predictor/partition/placement/place_internal.h"

static const uint64_t USUAL = 2000000; /* replayed operators, or states of windows by 200 */

void cd_place_plan_free(cd_place_plan *r) {
    cd_arena_free(&r->arena);
    *r = (cd_place_plan){0};
}

/* ---- baselines ---- */

static uint32_t fastest(const cd_place_problem *p, uint32_t k) {
    uint32_t at = 0;
    for (uint32_t d = 1; d < p->n_device; d++)
        if (cd_place_seconds(p, k, d) < cd_place_seconds(p, k, at)) at = d;
    return at;
}

void cd_place_alone(const cd_place_problem *p, uint32_t d, uint32_t *where) {
    for (uint32_t k = 0; k < p->n_op; k++)
        where[k] = p->op[k].pin == CD_PLACE_FREE ? d : p->op[k].pin;
}

void cd_place_greedy(const cd_place_problem *p, uint32_t *where) {
    for (uint32_t k = 0; k < p->n_op; k++) where[k] = fastest(p, k);
}

/* ---- the best of several ---- */

typedef struct {
    cd_place_net g;
    cd_place_goal goal;
    uint32_t *now, *best;
    double cost, bound;
    bool exact;
    const char *method;
} solver;

static cdmpp_status cost_of(solver *s, const uint32_t *where, double *out, cdmpp_err *err) {
    if (s->goal == CD_PLACE_MAKESPAN) return cd_place_makespan(&s->g, where, out, NULL, err);
    *out = cd_place_sum(&s->g, where, NULL);
    s->g.looked++;
    return CDMPP_OK;
}

static cdmpp_status offer(solver *s, const char *method, cdmpp_err *err) {
    double cost;
    CD_TRY(cost_of(s, s->now, &cost, err));
    if (!(cost < s->cost)) return CDMPP_OK;
    s->cost = cost, s->method = method;
    memcpy(s->best, s->now, s->g.p->n_op * sizeof *s->best);
    return CDMPP_OK;
}

static cdmpp_status baselines(solver *s, cdmpp_err *err) {
    for (uint32_t d = 0; d < s->g.p->n_device; d++) {
        cd_place_alone(s->g.p, d, s->now);
        CD_TRY(offer(s, "one device", err));
    }
    cd_place_greedy(s->g.p, s->now);
    return offer(s, "greedy", err);
}

/* What no placement is below by the sum: each operator where it is fastest. */
static double least_sum(const cd_place_problem *p) {
    double sum = 0;
    for (uint32_t k = 0; k < p->n_op; k++) sum += cd_place_seconds(p, k, fastest(p, k));
    return sum;
}

/* The simple bound comes first: it stays where neither method below is exact. The factor 1 - 1e-12
 * covers sums in another order. Windows cost a state at a time, which is about 200 times cheaper
 * than a replayed operator: hence effort * 200. */
static cdmpp_status best_sum(solver *s, uint64_t effort, cdmpp_err *err) {
    const cd_place_problem *p = s->g.p;
    s->bound = least_sum(p) * (1 - 1e-12);
    if (p->n_device == 2) {
        CD_TRY(cd_place_solve_by_cut(&s->g, s->now, err));
        CD_TRY(offer(s, "minimum cut", err));
        s->exact = true;
    } else {
        memcpy(s->now, s->best, p->n_op * sizeof *s->now);
        CD_TRY(cd_place_solve_by_elimination(&s->g, effort * 200, s->now, &s->exact, err));
        CD_TRY(offer(s, s->exact ? "elimination" : "elimination of parts", err));
    }
    if (s->exact && s->goal == CD_PLACE_SUM) s->bound = s->cost;
    return CDMPP_OK;
}

/* The plan of the least sum is one to begin with. */
static cdmpp_status best_span(solver *s, uint64_t effort, cdmpp_err *err) {
    enum { SMALL = 24 };
    CD_TRY(best_sum(s, effort / 20, err));
    CD_TRY(cd_place_list_schedule(&s->g, s->now, err));
    CD_TRY(offer(s, "list", err));
    const bool small = s->g.p->n_op <= SMALL;
    double was = s->cost;
    CD_TRY(cd_place_local_search(&s->g, small ? effort / 20 : effort, s->best, &s->cost, err));
    if (s->cost < was) s->method = "list and search";
    was = s->cost;
    CD_TRY(cd_place_bound(&s->g, small ? effort : 0, s->best, &s->cost, &s->bound, &s->exact, err));
    if (s->exact || s->cost < was) s->method = "branch and bound";
    if (s->exact) s->bound = s->cost;
    return CDMPP_OK;
}

/* No placement joins all: name a pair that cannot be joined, or the first that the fastest devices
 * cannot. */
static cdmpp_status impossible(const cd_place_net *g, uint32_t *where, cdmpp_err *err) {
    const cd_place_problem *p = g->p;
    cd_place_greedy(p, where);
    for (uint32_t k = 0; k < p->n_op; k++)
        for (uint32_t j = g->first_in[k]; j < g->first_in[k + 1]; j++) {
            const uint32_t from = g->in[j], a = where[from], b = where[k];
            if (a != b && isinf(g->latency[a][b]))
                return CD_FAIL(err, EINVALID,
                               "no placement is possible: %s on %s is read by %s on %s, and there "
                               "is no link from %s to %s",
                               p->op[from].name, p->device[a].name, p->op[k].name,
                               p->device[b].name, p->device[a].name, p->device[b].name);
        }
    return CD_FAIL(err, EINVALID, "no placement is possible: costs of %u operators are no numbers",
                   p->n_op);
}

static cdmpp_status solve(solver *s, uint64_t effort, cd_place_plan *out, cdmpp_err *err) {
    const uint32_t n = s->g.p->n_op;
    s->now = CD_NEWN(s->g.a, uint32_t, (size_t)n + 1);
    s->best = out->where = CD_NEWN(&out->arena, uint32_t, (size_t)n + 1);
    if (!s->now || !s->best) return CD_FAIL(err, ENOMEM, "%u operators", n);
    cd_place_greedy(s->g.p, s->best);
    CD_TRY(baselines(s, err));
    CD_TRY(s->goal == CD_PLACE_SUM ? best_sum(s, effort, err) : best_span(s, effort, err));
    if (!isfinite(s->cost)) return impossible(&s->g, s->now, err);
    cd_place_sum(&s->g, s->best, &out->cost);
    CD_TRY(cd_place_makespan(&s->g, s->best, &out->cost.makespan_s, NULL, err));
    out->bound_s = fmin(s->bound, s->cost), out->exact = s->exact, out->method = s->method,
    out->n_look = s->g.looked;
    return CDMPP_OK;
}

cdmpp_status cd_place_solve(const cd_place_problem *p, cd_place_goal goal, uint64_t effort,
                            cd_place_plan *out, cdmpp_err *err) {
    cd_arena own = {0};
    solver s = {.goal = goal, .cost = (double)INFINITY, .method = "none"};
    *out = (cd_place_plan){0};
    cdmpp_status st = cd_place_prepare(p, &own, &s.g, err);
    if (!st) st = solve(&s, effort ? effort : USUAL, out, err);
    cd_arena_free(&own);
    return st;
}
