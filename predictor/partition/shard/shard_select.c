/* One option for each operator such that options and exchanges between neighbours cost least: exact
 * by variable elimination where the graph is narrow, else by local search. */
#include "predictor/partition/shard/shard_select.h"

#include <math.h>
#include <string.h>

#include "predictor/partition/placement/placement.h"

void cd_shard_select_plan_free(cd_shard_select_plan *r) {
    cd_arena_free(&r->arena);
    *r = (cd_shard_select_plan){0};
}

/* ---- check ---- */

static cdmpp_status check_option(const cd_shard_select_problem *p, uint32_t k, uint32_t i,
                                 cdmpp_err *err) {
    const cd_shard_select_op *o = &p->op[k];
    const cd_shard_select_option *c = &o->option[i];
    double sum = 0;
    if (!(c->seconds >= 0))
        return CD_FAIL(err, ERANGE, "operator %u (%s), option %s: %g seconds", k, o->name, c->name,
                       c->seconds);
    for (uint32_t d = 0; d < p->n_device; d++) {
        if (!(c->share[d] >= 0 && c->share[d] <= 1))
            return CD_FAIL(err, ERANGE,
                           "operator %u (%s), option %s: ratio %g on %s: expected 0 to 1", k,
                           o->name, c->name, c->share[d], p->device[d]);
        sum += c->share[d];
    }
    if (fabs(sum - 1) > 1e-9)
        return CD_FAIL(err, ERANGE,
                       "operator %u (%s), option %s: ratios are %g together, expected 1", k,
                       o->name, c->name, sum);
    return CDMPP_OK;
}

static cdmpp_status check_edge(const cd_shard_select_problem *p, uint32_t e, cdmpp_err *err) {
    const cd_shard_select_edge *x = &p->edge[e];
    if (x->from >= p->n_op || x->to >= p->n_op)
        return CD_FAIL(err, EINVALID, "edge %u: operators %u to %u of %u", e, x->from, x->to,
                       p->n_op);
    if (x->from == x->to)
        return CD_FAIL(err, EINVALID, "operator %u (%s) reads its own result: a cycle", x->to,
                       p->op[x->to].name);
    const cd_shard_select_op *a = &p->op[x->from], *b = &p->op[x->to];
    for (uint32_t i = 0; i < a->n_option; i++)
        for (uint32_t j = 0; j < b->n_option; j++)
            if (!(x->seconds[(size_t)i * b->n_option + j] >= 0))
                return CD_FAIL(err, ERANGE, "exchange from %s (%s) to %s (%s): %g seconds", a->name,
                               a->option[i].name, b->name, b->option[j].name,
                               x->seconds[(size_t)i * b->n_option + j]);
    return CDMPP_OK;
}

/* pos (n_op): position of each operator in a topological order. */
static cdmpp_status sort(const cd_shard_select_problem *p, cd_arena *a, uint32_t *pos,
                         cdmpp_err *err) {
    uint32_t *first = CD_NEWN(a, uint32_t, (size_t)p->n_op + 2),
             *to = CD_NEWN(a, uint32_t, (size_t)p->n_edge + 1),
             *left = CD_NEWN(a, uint32_t, (size_t)p->n_op + 1),
             *queue = CD_NEWN(a, uint32_t, (size_t)p->n_op + 1), n = 0;
    if (!first || !to || !left || !queue) return CD_FAIL(err, ENOMEM, "%u operators", p->n_op);
    for (uint32_t e = 0; e < p->n_edge; e++) first[p->edge[e].from + 2]++, left[p->edge[e].to]++;
    for (uint32_t k = 0; k < p->n_op; k++) first[k + 2] += first[k + 1];
    for (uint32_t e = 0; e < p->n_edge; e++) to[first[p->edge[e].from + 1]++] = p->edge[e].to;
    for (uint32_t k = 0; k < p->n_op; k++)
        if (!left[k]) queue[n++] = k;
    for (uint32_t at = 0; at < n; at++) {
        pos[queue[at]] = at;
        for (uint32_t j = first[queue[at]]; j < first[queue[at] + 1]; j++)
            if (!--left[to[j]]) queue[n++] = to[j];
    }
    for (uint32_t k = 0; k < p->n_op && n < p->n_op; k++)
        if (left[k])
            return CD_FAIL(err, EINVALID,
                           "operator %u (%s) comes after itself: a cycle, or behind one", k,
                           p->op[k].name);
    return CDMPP_OK;
}

static cdmpp_status check(const cd_shard_select_problem *p, cd_arena *a, uint32_t **pos,
                          cdmpp_err *err) {
    for (uint32_t k = 0; k < p->n_op; k++) {
        if (!p->op[k].n_option)
            return CD_FAIL(err, EINVALID, "operator %u (%s) has no option", k, p->op[k].name);
        for (uint32_t i = 0; i < p->op[k].n_option; i++) CD_TRY(check_option(p, k, i, err));
    }
    for (uint32_t e = 0; e < p->n_edge; e++) CD_TRY(check_edge(p, e, err));
    if (!(*pos = CD_NEWN(a, uint32_t, (size_t)p->n_op + 1)))
        return CD_FAIL(err, ENOMEM, "%u operators", p->n_op);
    return sort(p, a, *pos, err);
}

double cd_shard_select_cost(const cd_shard_select_problem *p, const uint32_t *choice,
                            double *exchange_s) {
    double sum = 0, exchange = 0;
    for (uint32_t k = 0; k < p->n_op; k++) sum += p->op[k].option[choice[k]].seconds;
    for (uint32_t e = 0; e < p->n_edge; e++)
        exchange +=
            p->edge[e].seconds[(size_t)choice[p->edge[e].from] * p->op[p->edge[e].to].n_option +
                               choice[p->edge[e].to]];
    if (exchange_s) *exchange_s = exchange;
    return sum + exchange;
}

/* ---- baselines ---- */

static bool whole(const cd_shard_select_problem *p, const cd_shard_select_option *c) {
    for (uint32_t d = 0; d < p->n_device; d++)
        if (c->share[d] == 1) return true;
    return false;
}

/* The distance of option c from what the baseline asks for; infinity: the baseline cannot use it.
 * Options that do not split are far (2), but possible. */
static double distance(const cd_shard_select_problem *p, const cd_shard_select_option *c,
                       cd_shard_select_base kind, uint32_t d, double ratio) {
    double far = 0;
    switch (kind) {
    case CD_SHARD_SELECT_ALONE: return c->share[d] == 1 ? 0 : (double)INFINITY;
    case CD_SHARD_SELECT_PLACE: return whole(p, c) ? 0 : (double)INFINITY;
    case CD_SHARD_SELECT_GREEDY: return 0;
    case CD_SHARD_SELECT_FIXED: return whole(p, c) ? 2 : fabs(c->share[0] - ratio);
    case CD_SHARD_SELECT_EQUAL: break;
    }
    for (uint32_t k = 0; k < p->n_device; k++)
        far = fmax(far, fabs(c->share[k] - 1.0 / p->n_device));
    return whole(p, c) ? 2 : far;
}

/* The nearest option wins; among equally near ones (within 1e-12, for rounded shares) the
 * fastest. */
cdmpp_status cd_shard_select_baseline(const cd_shard_select_problem *p, cd_shard_select_base kind,
                                      uint32_t d, double ratio, uint32_t *choice, cdmpp_err *err) {
    if (kind == CD_SHARD_SELECT_FIXED && !(ratio >= 0 && ratio <= 1))
        return CD_FAIL(err, ERANGE, "ratio %g: expected 0 to 1", ratio);
    if (kind == CD_SHARD_SELECT_ALONE && d >= p->n_device)
        return CD_FAIL(err, EINVALID, "device %u of %u", d, p->n_device);
    for (uint32_t k = 0; k < p->n_op; k++) {
        double far = (double)INFINITY, least = (double)INFINITY;
        for (uint32_t i = 0; i < p->op[k].n_option; i++) {
            const cd_shard_select_option *c = &p->op[k].option[i];
            const double f = distance(p, c, kind, d, ratio);
            if (isinf(f) || f > far + 1e-12 || (f > far - 1e-12 && c->seconds >= least)) continue;
            far = f, least = c->seconds, choice[k] = i;
        }
        if (isinf(far))
            return CD_FAIL(err, EINVALID, "operator %u (%s) has no option that is all of %s", k,
                           p->op[k].name,
                           kind == CD_SHARD_SELECT_ALONE ? p->device[d] : "one device");
    }
    return CDMPP_OK;
}

/* ---- the plan ---- */

/* One table of one variable for each operator, one of two variables for each edge. Variables are
 * numbered in topological order. */
static cdmpp_status make_tables(const cd_shard_select_problem *p, cd_arena *a, const uint32_t *pos,
                                cd_variable_elimination *out, cdmpp_err *err) {
    uint32_t *size = CD_NEWN(a, uint32_t, (size_t)p->n_op + 1),
             *var = CD_NEWN(a, uint32_t, (size_t)p->n_op + 2 * (size_t)p->n_edge + 1);
    cd_variable_elimination_table *t =
        CD_NEWN(a, cd_variable_elimination_table, (size_t)p->n_op + p->n_edge + 1);
    if (!size || !var || !t) return CD_FAIL(err, ENOMEM, "%u operators", p->n_op);
    *out = (cd_variable_elimination){.n_var = p->n_op, .n_main = p->n_op, .size = size, .table = t};
    for (uint32_t k = 0; k < p->n_op; k++) {
        double *cost = CD_NEWN(a, double, p->op[k].n_option);
        if (!cost) return CD_FAIL(err, ENOMEM, "%u options", p->op[k].n_option);
        for (uint32_t i = 0; i < p->op[k].n_option; i++) cost[i] = p->op[k].option[i].seconds;
        size[pos[k]] = p->op[k].n_option, *var = pos[k];
        t[out->n_table++] = (cd_variable_elimination_table){1, var++, cost};
    }
    for (uint32_t e = 0; e < p->n_edge; e++) {
        var[0] = pos[p->edge[e].from], var[1] = pos[p->edge[e].to];
        t[out->n_table++] = (cd_variable_elimination_table){2, var, p->edge[e].seconds};
        var += 2;
    }
    return CDMPP_OK;
}

/* The best of the baselines; choice is indexed by position in the order. */
static double begin(const cd_shard_select_problem *p, const uint32_t *pos, uint32_t *now,
                    uint32_t *choice) {
    double least = (double)INFINITY;
    memset(choice, 0, p->n_op * sizeof *choice);
    for (int kind = CD_SHARD_SELECT_ALONE; kind <= CD_SHARD_SELECT_GREEDY; kind++)
        for (uint32_t d = 0; d < (kind == CD_SHARD_SELECT_ALONE ? p->n_device : 1); d++) {
            if (cd_shard_select_baseline(p, (cd_shard_select_base)kind, d, 0.5, now, NULL))
                continue;
            const double cost = cd_shard_select_cost(p, now, NULL);
            if (!(cost < least)) continue;
            least = cost;
            for (uint32_t k = 0; k < p->n_op; k++) choice[pos[k]] = now[k];
        }
    return least;
}

static double least_alone(const cd_shard_select_problem *p) {
    double sum = 0;
    for (uint32_t k = 0; k < p->n_op; k++) {
        double least = (double)INFINITY;
        for (uint32_t i = 0; i < p->op[k].n_option; i++)
            least = fmin(least, p->op[k].option[i].seconds);
        sum += least;
    }
    return sum * (1 - 1e-12);
}

/* The best baseline is the start: elimination replaces it by the optimum; where the graph is too
 * wide, local search improves it and the bound is the sum of the operators' least times. A result
 * of infinity means that no plan exists: the end finds an exchange or operator to name. */
static cdmpp_status solve(const cd_shard_select_problem *p, size_t most, cd_arena *a,
                          cd_shard_select_plan *out, cdmpp_err *err) {
    uint32_t *pos, *choice;
    cd_variable_elimination e;
    bool wide;
    uint64_t looked = 0;
    CD_TRY(check(p, a, &pos, err));
    CD_TRY(make_tables(p, a, pos, &e, err));
    out->choice = CD_NEWN(&out->arena, uint32_t, (size_t)p->n_op + 1);
    if (!out->choice || !(choice = CD_NEWN(a, uint32_t, (size_t)p->n_op + 1)))
        return CD_FAIL(err, ENOMEM, "%u operators", p->n_op);
    begin(p, pos, out->choice, choice);
    CD_TRY(cd_variable_elimination_solve(&e, most, choice, &wide, &looked, err));
    if (wide)
        CD_TRY(cd_variable_elimination_improve(&e, most < 4096 ? most : 4096, looked + 400000000,
                                               choice, &looked, err));
    for (uint32_t k = 0; k < p->n_op; k++) out->choice[k] = choice[pos[k]];
    out->total_s = cd_shard_select_cost(p, out->choice, &out->exchange_s);
    out->exact = !wide, out->bound_s = wide ? fmin(least_alone(p), out->total_s) : out->total_s;
    if (isfinite(out->total_s)) return CDMPP_OK;
    for (uint32_t i = 0; i < p->n_edge; i++) {
        const cd_shard_select_edge *x = &p->edge[i];
        if (isinf(x->seconds[(size_t)out->choice[x->from] * p->op[x->to].n_option +
                             out->choice[x->to]]))
            return CD_FAIL(
                err, EINVALID,
                "no plan is possible: %s and %s have no options between which an exchange can be",
                p->op[x->from].name, p->op[x->to].name);
    }
    uint32_t k = 0;
    while (k + 1 < p->n_op && isfinite(p->op[k].option[out->choice[k]].seconds)) k++;
    return CD_FAIL(err, EINVALID, "no plan is possible: operator %u (%s) has no option that can be",
                   k, p->op[k].name);
}

cdmpp_status cd_shard_select_solve(const cd_shard_select_problem *p, size_t most,
                                   cd_shard_select_plan *out, cdmpp_err *err) {
    cd_arena own = {0};
    *out = (cd_shard_select_plan){0};
    const cdmpp_status st = solve(p, most ? most : (size_t)1 << 20, &own, out, err);
    cd_arena_free(&own);
    return st;
}
