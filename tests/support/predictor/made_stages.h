/* Stages of a workload that are planned by running each of them here, as IOS does: what plans by
 * prediction are compared with. */
#ifndef MADE_STAGES_H
#define MADE_STAGES_H
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/partition/run/stage_run.h"

static bool ms_has_program(const cd_workload *w, const cd_program_select *p, uint32_t g) {
    const cd_workload_group *x = &w->group[g];
    return x->task != CD_GRAPH_NONE && !x->weights && !p->task[x->task].status;
}

/* Groups of a workload that have programs, and their graph: op i is group[i]. Both live in `a`.
 * Groups are in topological order, so a predecessor has its number already. An edge to a group
 * without a program is dropped. */
static cdmpp_status ms_graph(const cd_workload *w, const cd_program_select *p, cd_arena *a,
                             cd_stage_graph *out, uint32_t **group, cdmpp_err *why) {
    size_t edges = 0;
    for (uint32_t g = 0; g < w->n_group; g++) edges += w->group[g].n_after;
    uint32_t *of = CD_NEWN(a, uint32_t, w->n_group + 1),
             *op_of = CD_NEWN(a, uint32_t, w->n_group + 1),
             *after = CD_NEWN(a, uint32_t, edges + 1), n_after = 0;
    cd_stage_op *op = CD_NEWN(a, cd_stage_op, w->n_group + 1);
    *out = (cd_stage_graph){.op = op, .after = after};
    *group = of;
    if (!of || !op_of || !after || !op)
        return CD_FAIL(why, ENOMEM, "graph of %u groups", w->n_group);
    for (uint32_t g = 0; g < w->n_group; g++) {
        op_of[g] = UINT32_MAX;
        if (!ms_has_program(w, p, g)) continue;
        const uint32_t k = out->n_op++, first = n_after;
        of[k] = g;
        op_of[g] = k;
        for (uint32_t e = 0; e < w->group[g].n_after; e++)
            if (op_of[w->group[g].after[e]] != UINT32_MAX)
                after[n_after++] = op_of[w->group[g].after[e]];
        op[k] = (cd_stage_op){
            cd_task_registry_at(w->tasks, w->task[w->group[g].task].task)->workload_key, first,
            n_after - first};
    }
    out->n_after = n_after;
    return CDMPP_OK;
}

/* Those of one block of it (cd_stage_blocks). Only edges inside the block stay: blocks run one
 * after the other, so those from earlier blocks always hold. */
static cdmpp_status ms_block(const cd_stage_graph *g, const uint32_t *group, const uint32_t *block,
                             uint32_t which, cd_arena *a, cd_stage_graph *out, uint32_t **of,
                             cdmpp_err *why) {
    uint32_t *mine = CD_NEWN(a, uint32_t, g->n_op + 1), *number = CD_NEWN(a, uint32_t, g->n_op + 1),
             *after = CD_NEWN(a, uint32_t, g->n_after + 1), n_after = 0;
    cd_stage_op *op = CD_NEWN(a, cd_stage_op, g->n_op + 1);
    *out = (cd_stage_graph){.op = op, .after = after};
    *of = mine;
    if (!mine || !number || !after || !op)
        return CD_FAIL(why, ENOMEM, "block of %u operators", g->n_op);
    for (uint32_t k = 0; k < g->n_op; k++) {
        if (block[k] != which) continue;
        const uint32_t at = out->n_op++, first = n_after;
        number[k] = at;
        mine[at] = group[k];
        for (uint32_t e = 0; e < g->op[k].n_after; e++) {
            const uint32_t b = g->after[g->op[k].first + e];
            if (block[b] == which) after[n_after++] = number[b];
        }
        op[at] = (cd_stage_op){g->op[k].name, first, n_after - first};
    }
    out->n_after = n_after;
    return CDMPP_OK;
}

/* A cd_stage_time: each set of operators is run once, `passes` behind each other with warm data;
 * the median. The groups of a stage follow from its set. A callback has no status, so an error is
 * kept and the answer is NaN, which ends the search. */
enum { MS_MOST = 4096, MS_PASSES = 99 };
typedef struct {
    cd_stage_run *run;
    unsigned passes;
    uint32_t n; /* stages run so far */
    uint64_t set[MS_MOST];
    double seconds[MS_MOST];
    cdmpp_err why;
} ms_measured;

static int ms_ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static cdmpp_status ms_measure(ms_measured *m, const cd_stage_step *g, double *seconds) {
    double v[MS_PASSES];
    const unsigned n = m->passes && m->passes < MS_PASSES ? m->passes : 5;
    cd_stage_exec *s = NULL;
    CD_TRY(cd_stage_exec_open(m->run, g, 1, &s, &m->why));
    /* pages and caches are there from now on */
    cdmpp_status st = cd_stage_exec_pass(s, NULL, &v[0], &m->why);
    for (unsigned k = 0; k < n && !st; k++) st = cd_stage_exec_pass(s, NULL, &v[k], &m->why);
    cd_stage_exec_close(s);
    qsort(v, n, sizeof *v, ms_ascending);
    if (!st) *seconds = v[n / 2];
    return st;
}

static double ms_time(const cd_stage_step *g, void *measured) {
    ms_measured *m = measured;
    uint64_t set = 0;
    for (uint32_t i = 0; i < g->first[g->n_group]; i++) set |= (uint64_t)1 << g->op[i];
    for (uint32_t k = 0; k < m->n; k++)
        if (m->set[k] == set) return m->seconds[k];
    if (m->why.code || m->n == MS_MOST || ms_measure(m, g, &m->seconds[m->n])) return (double)NAN;
    m->set[m->n] = set;
    return m->seconds[m->n++];
}
#endif
