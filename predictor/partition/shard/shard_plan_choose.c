/* Chooses the plan: the solver's, unless a baseline is better (possible because the solver sees
 * only some options) or a split gains less than the margin. */
#include <math.h>
#include <string.h>

#include "predictor/partition/placement/placement.h"
#include "predictor/partition/shard/shard_plan_internal.h"
#include "predictor/partition/shard/shard_select.h"

/* One option for each operator such that options and exchanges between neighbours cost least: exact
 * by variable elimination where the graph is narrow, else by local search. */

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
static cdmpp_status solve_select(const cd_shard_select_problem *p, size_t most, cd_arena *a,
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
    const cdmpp_status st = solve_select(p, most ? most : (size_t)1 << 20, &own, out, err);
    cd_arena_free(&own);
    return st;
}

static const cd_shard_planner_kind *kind_of(const cd_shard_planner *s, uint32_t op) {
    return &s->kind[s->node[op].kind];
}

/* Wake-up times of the devices that the plan uses: once each. */
static double wakes(const cd_shard_planner *s, const uint32_t *choice) {
    bool used[CD_MACHINE_DEVICES] = {false};
    double sum = 0;
    for (uint32_t op = 0; op < s->net->n_op; op++) {
        const cd_shard_planner_option *o = &kind_of(s, op)->option[choice[op]];
        for (uint32_t i = 0; i < o->n_part; i++)
            used[o->part[i].device] = used[o->part[i].device] || o->part[i].seconds > 0;
    }
    for (uint32_t d = 0; d < s->n_device; d++) sum += used[d] ? s->m->device[d].wake_s : 0;
    return sum;
}

/* The one function that adds up a plan, for the solver's plans and the baselines alike: operators,
 * their inputs and results, exchanges, and the wake-up time of each device that is used. The
 * solver's tables lack the last, because it is no sum over operators and edges. */
double cd_shard_planner_cost(const cd_shard_planner *s, const uint32_t *choice, double *exchange) {
    double sum = wakes(s, choice);
    for (uint32_t op = 0; op < s->net->n_op; op++) {
        const cd_shard_planner_option *o = &kind_of(s, op)->option[choice[op]];
        sum += o->seconds + s->node[op].io[choice[op]];
        if (exchange) exchange[op] = cd_shard_planner_inputs(s, op, o, NULL);
    }
    for (uint32_t i = 0; i < s->n_edge; i++) {
        const uint32_t a = s->edge[i].from, b = s->edge[i].to;
        const double t = cd_shard_planner_exchange(s, a, &kind_of(s, a)->option[choice[a]], b,
                                                   &kind_of(s, b)->option[choice[b]], NULL);
        if (exchange) exchange[b] += t;
        sum += t;
    }
    return sum;
}

/* ---- shard_select.h's problem: with all options for the baselines, with some and all costs for
 * the solver ---- */
static cdmpp_status problem(const cd_shard_planner *s, bool all, const double *bytes,
                            const double *price, cd_arena *a, cd_shard_select_problem *p,
                            cdmpp_err *err) {
    cd_shard_select_op *op = CD_NEWN(a, cd_shard_select_op, (size_t)s->net->n_op + 1);
    const char **device = CD_NEWN(a, const char *, s->n_device);
    if (!op || !device) return CD_FAIL(err, ENOMEM, "%u operators", s->net->n_op);
    for (uint32_t d = 0; d < s->n_device; d++) device[d] = s->m->device[d].name;
    for (uint32_t k = 0; k < s->net->n_op; k++) {
        const cd_shard_planner_node *x = &s->node[k];
        const uint32_t n = all ? x->n_all : x->n_some, *which = all ? x->all : x->some;
        cd_shard_select_option *option = CD_NEWN(a, cd_shard_select_option, (size_t)n + 1);
        if (!option) return CD_FAIL(err, ENOMEM, "%u options", n);
        for (uint32_t i = 0; i < n; i++) {
            const cd_shard_planner_option *o = &kind_of(s, k)->option[which[i]];
            option[i] = (cd_shard_select_option){
                o->name, o->way == CD_SHARD_PLANNER_NONE ? -1 : (int)o->way,
                o->seconds + (all ? 0 : x->io[which[i]]), o->share};
            for (uint32_t m = 0; bytes && m < s->n_device; m++)
                option[i].seconds += price[m] * *bytes++;
        }
        op[k] = (cd_shard_select_op){s->net->op[k].name, n, option};
    }
    *p = (cd_shard_select_problem){s->net->n_op, all ? 0 : s->n_edge, s->n_device, op, s->edge,
                                   device};
    return CDMPP_OK;
}

/* As cd_shard_planner_solve. */
static cdmpp_status solve_priced(void *ctx, const double *bytes, const double *price,
                                 uint32_t *choice, cdmpp_err *err) {
    const cd_shard_planner *s = ctx;
    cd_arena a = {0};
    cd_shard_select_problem p;
    cd_shard_select_plan r = {0};
    cdmpp_status st = problem(s, false, bytes, price, &a, &p, err);
    if (!st) st = cd_shard_select_solve(&p, 0, &r, err);
    for (uint32_t k = 0; !st && k < s->net->n_op; k++) choice[k] = s->node[k].some[r.choice[k]];
    cd_shard_select_plan_free(&r);
    cd_arena_free(&a);
    return st;
}

/* If the best plan does not fit into the memories, replaces it by the best one that fits. */
static cdmpp_status keep_limits(const cd_shard_planner *s, cd_shard_planner_solution *f,
                                uint32_t *choice, cdmpp_err *err) {
    uint32_t full;
    if (!s->limited) return CDMPP_OK;
    CD_TRY(cd_shard_planner_memory_used(s, choice, NULL, &full, err));
    if (full == CD_SHARD_PLANNER_NONE) return CDMPP_OK;
    f->tight = full;
    CD_TRY(cd_shard_planner_solve_within(s, solve_priced, (void *)(uintptr_t)s, f->total_s, choice,
                                         &f->exact, err));
    if (f->exact) f->bound_s = cd_shard_planner_cost(s, choice, NULL);
    return CDMPP_OK;
}

static cdmpp_status solve(const cd_shard_planner *s, cd_arena *a, cd_shard_planner_solution *f,
                          uint32_t *choice, cdmpp_err *err) {
    cd_shard_select_problem p;
    cd_shard_select_plan r;
    CD_TRY(problem(s, false, NULL, NULL, a, &p, err));
    const cdmpp_status st = cd_shard_select_solve(&p, 0, &r, err);
    for (uint32_t k = 0; !st && k < s->net->n_op; k++) choice[k] = s->node[k].some[r.choice[k]];
    f->total_s = r.total_s, f->bound_s = r.bound_s, f->exact = r.exact;
    cd_shard_select_plan_free(&r);
    return st ? st : keep_limits(s, f, choice, err);
}

/* ---- baselines ---- */
static bool all_on(const cd_shard_planner *s, uint32_t d, uint32_t *choice) {
    for (uint32_t k = 0; k < s->net->n_op; k++) {
        const cd_shard_planner_node *x = &s->node[k];
        const uint32_t want = s->net->op[k].pin == UINT32_MAX ? d : s->net->op[k].pin;
        uint32_t i = 0;
        while (i < x->n_all && kind_of(s, k)->option[x->all[i]].share[want] != 1) i++;
        if (i == x->n_all) return false;
        choice[k] = x->all[i];
    }
    return true;
}

/* Keeps a baseline. One that does not fit into the memories counts as impossible. */
static cdmpp_status kept(const cd_shard_planner *s, cd_shard_planner_solution *f, const char *name,
                         uint32_t *choice, cdmpp_err *err) {
    uint32_t full = CD_SHARD_PLANNER_NONE;
    if (choice && s->limited) CD_TRY(cd_shard_planner_memory_used(s, choice, NULL, &full, err));
    f->name[f->n_base] = name;
    f->base_s[f->n_base] = choice && full == CD_SHARD_PLANNER_NONE
                               ? cd_shard_planner_cost(s, choice, NULL)
                               : (double)INFINITY;
    f->base[f->n_base] = choice && isfinite(f->base_s[f->n_base]) ? choice : NULL;
    f->n_base++;
    return CDMPP_OK;
}

static cdmpp_status kinds_of_base(cd_shard_planner *s, cd_arena *a, cd_shard_planner_solution *f,
                                  cdmpp_err *err) {
    static const cd_shard_select_base kind[] = {CD_SHARD_SELECT_PLACE, CD_SHARD_SELECT_EQUAL,
                                                CD_SHARD_SELECT_FIXED, CD_SHARD_SELECT_GREEDY};
    const char *const name[] = {
        "place", "equal", cd_shard_planner_format(&s->arena, "fixed %.2f", s->fixed), "greedy"};
    cd_shard_select_problem p;
    CD_TRY(problem(s, true, NULL, NULL, a, &p, err));
    for (uint32_t i = 0; i < (s->ask->split ? 4 : 1); i++) {
        uint32_t *choice = CD_NEWN(&s->arena, uint32_t, (size_t)s->net->n_op + 1);
        if (!choice || !name[i]) return CD_FAIL(err, ENOMEM, "a baseline");
        const bool can = !cd_shard_select_baseline(&p, kind[i], 0, s->fixed, choice, NULL);
        for (uint32_t k = 0; can && k < s->net->n_op; k++) choice[k] = s->node[k].all[choice[k]];
        CD_TRY(kept(s, f, name[i], can ? choice : NULL, err));
    }
    return CDMPP_OK;
}

static cdmpp_status baselines(cd_shard_planner *s, cd_arena *a, cd_shard_planner_solution *f,
                              cdmpp_err *err) {
    double slow = 0;
    f->alone = CD_SHARD_PLANNER_NONE, f->alone_s = (double)INFINITY;
    for (uint32_t d = 0; d < s->n_device; d++) {
        uint32_t *choice = CD_NEWN(&s->arena, uint32_t, (size_t)s->net->n_op + 1);
        if (!choice) return CD_FAIL(err, ENOMEM, "a baseline");
        CD_TRY(kept(s, f, s->m->device[d].name, all_on(s, d, choice) ? choice : NULL, err));
        slow = fmax(slow, f->base_s[d]);
        if (f->base_s[d] < f->alone_s) f->alone_s = f->base_s[d], f->alone = d;
    }
    f->rho = s->n_device > 1 && f->alone_s > 0 && isfinite(f->alone_s) ? slow / f->alone_s
                                                                       : (double)INFINITY;
    return kinds_of_base(s, a, f, err);
}

static bool splits(const cd_shard_planner *s, const uint32_t *choice) {
    for (uint32_t k = 0; k < s->net->n_op; k++)
        if (kind_of(s, k)->option[choice[k]].way != CD_SHARD_PLANNER_NONE) return true;
    return false;
}

/* Adds the baselines' options to those of the solver: operators that save too little one by one may
 * save enough together. */
static cdmpp_status widen(cd_shard_planner *s, const cd_shard_planner_solution *f, cdmpp_err *err) {
    for (uint32_t k = 0; k < s->net->n_op; k++) {
        cd_shard_planner_node *x = &s->node[k];
        uint32_t *some = CD_NEWN(&s->arena, uint32_t, (size_t)x->n_some + f->n_base);
        if (!some) return CD_FAIL(err, ENOMEM, "options of %s", s->net->op[k].name);
        memcpy(some, x->some, x->n_some * sizeof *some);
        for (uint32_t i = 0; i < f->n_base; i++) {
            uint32_t at = 0;
            while (f->base[i] && at < x->n_some && some[at] != f->base[i][k]) at++;
            if (f->base[i] && at == x->n_some) some[x->n_some++] = f->base[i][k];
        }
        x->some = some;
    }
    return cd_shard_planner_edges(s, err);
}

static uint32_t best_base(const cd_shard_planner_solution *f) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < f->n_base; i++)
        if (f->base_s[i] < f->base_s[best]) best = i;
    return best;
}

static cdmpp_status solved(cd_shard_planner *s, cd_arena *a, cd_shard_planner_solution *f,
                           cdmpp_err *err) {
    const uint32_t best = best_base(f);
    CD_TRY(solve(s, a, f, f->wanted, err));
    /* one function adds up all plans, so that they compare */
    f->total_s = cd_shard_planner_cost(s, f->wanted, NULL);
    /* the solver does not know wake-up times */
    for (uint32_t d = 0; d < s->n_device; d++)
        f->exact = f->exact && (s->n_device < 3 || !(s->m->device[d].wake_s > 0));
    if (!(f->base_s[best] < f->total_s * (1 - 1e-12))) return CDMPP_OK;
    CD_TRY(widen(s, f, err));
    CD_TRY(solve(s, a, f, f->wanted, err));
    f->total_s = cd_shard_planner_cost(s, f->wanted, NULL);
    if (!(f->base_s[best] < f->total_s * (1 - 1e-12))) return CDMPP_OK;
    memcpy(f->wanted, f->base[best], s->net->n_op * sizeof *f->wanted);
    f->total_s = f->base_s[best];
    return CDMPP_OK;
}

static cdmpp_status choose(cd_shard_planner *s, cd_arena *a, cd_shard_planner_solution *f,
                           cdmpp_err *err) {
    CD_TRY(baselines(s, a, f, err));
    CD_TRY(solved(s, a, f, err));
    memcpy(f->choice, f->wanted, s->net->n_op * sizeof *f->choice);
    f->refused = splits(s, f->wanted) && f->alone != CD_SHARD_PLANNER_NONE &&
                 f->total_s > (1 - s->margin) * f->alone_s;
    if (f->refused) {
        memcpy(f->choice, f->base[f->alone], s->net->n_op * sizeof *f->choice);
        f->exact = f->exact && f->total_s >= f->alone_s * (1 - 1e-12);
        f->total_s = f->alone_s;
    }
    f->bound_s = fmin(f->bound_s, f->total_s);
    return CDMPP_OK;
}

cdmpp_status cd_shard_planner_choose(cd_shard_planner *s, cd_shard_planner_solution *f,
                                     cdmpp_err *err) {
    const size_t most = (size_t)s->n_device + 4;
    cd_arena own = {0};
    *f = (cd_shard_planner_solution){.tight = CD_SHARD_PLANNER_NONE};
    f->choice = CD_NEWN(&s->arena, uint32_t, (size_t)s->net->n_op + 1);
    f->wanted = CD_NEWN(&s->arena, uint32_t, (size_t)s->net->n_op + 1);
    f->name = CD_NEWN(&s->arena, const char *, most);
    f->base = CD_NEWN(&s->arena, uint32_t *, most);
    f->base_s = CD_NEWN(&s->arena, double, most);
    if (!f->choice || !f->wanted || !f->name || !f->base || !f->base_s)
        return CD_FAIL(err, ENOMEM, "%u operators", s->net->n_op);
    const cdmpp_status st = choose(s, &own, f, err);
    cd_arena_free(&own);
    return st;
}
