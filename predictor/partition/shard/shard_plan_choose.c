/* Chooses the plan: the solver's, unless a baseline is better (possible because the solver sees
 * only some options) or a split gains less than the margin. */
#include <math.h>
#include <string.h>

#include "predictor/partition/shard/shard_plan_internal.h"

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
