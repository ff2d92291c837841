/* Makes a plan step by step: check, kinds of operators, options, exchanges, choice, result. Each
 * step is a file of its own; all work on one cd_shard_planner, whose arena is freed at the end. The
 * result has an arena of its own. */
#include "predictor/partition/shard/shard_plan.h"

#include <string.h>

#include "predictor/partition/shard/shard_plan_internal.h"

void cd_shard_plan_free(cd_shard_plan *p) {
    if (!p) return;
    cd_arena own = p->arena;
    cd_mem_free(p);
    cd_arena_free(&own);
}

void cd_shard_plan_free_all(cd_shard_plan **p, size_t n) {
    for (size_t i = 0; p && i < n; i++) cd_shard_plan_free(p[i]);
    cd_mem_free(p);
}

static bool same_op(const cd_shard_plan_op *a, const cd_shard_plan_op *b) {
    bool same = a->n_part == b->n_part && a->join == b->join && !strcmp(a->dim, b->dim) &&
                a->way_op == b->way_op && a->axis == b->axis;
    for (uint32_t i = 0; same && i < a->n_part; i++)
        same = a->part[i].device == b->part[i].device && a->part[i].lo == b->part[i].lo &&
               a->part[i].hi == b->part[i].hi;
    return same;
}

bool cd_shard_plan_same(const cd_shard_plan *a, const cd_shard_plan *b) {
    bool same = a->n_op == b->n_op;
    for (uint32_t k = 0; same && k < a->n_op; k++) same = same_op(&a->op[k], &b->op[k]);
    return same;
}

static cdmpp_status base_plans(const cd_shard_planner *s, const cd_shard_planner_solution *f,
                               cd_shard_plan ***out, cdmpp_err *err) {
    cd_shard_plan **p = cd_mem_zalloc(f->n_base, sizeof *p);
    cdmpp_status st = p ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%u baselines", f->n_base);
    for (uint32_t i = 0; i < f->n_base && !st; i++)
        if (f->base[i]) st = cd_shard_planner_result(s, f, f->base[i], f->name[i], &p[i], err);
    if (st) cd_shard_plan_free_all(p, f->n_base);
    else *out = p;
    return st;
}

static cdmpp_status make(cd_shard_planner *s, const cd_shard_plan_options *a, cd_shard_plan **out,
                         cd_shard_plan ***base, cdmpp_err *err) {
    cd_shard_planner_solution f;
    CD_TRY(cd_shard_planner_begin(s, a, err));
    CD_TRY(cd_shard_planner_kinds(s, err));
    CD_TRY(cd_shard_planner_nodes(s, err));
    CD_TRY(cd_shard_planner_edges(s, err));
    CD_TRY(cd_shard_planner_choose(s, &f, err));
    CD_TRY(cd_shard_planner_result(s, &f, f.choice, NULL, out, err));
    const cdmpp_status st = base ? base_plans(s, &f, base, err) : CDMPP_OK;
    if (st) cd_shard_plan_free(*out), *out = NULL;
    return st;
}

cdmpp_status cd_shard_plan_make(const cd_shard_plan_options *a, cd_shard_plan **out,
                                cd_shard_plan ***base, cdmpp_err *err) {
    cd_shard_planner s;
    *out = NULL;
    if (base) *base = NULL;
    const cdmpp_status st = make(&s, a, out, base, err);
    cd_arena_free(&s.arena);
    return st;
}
