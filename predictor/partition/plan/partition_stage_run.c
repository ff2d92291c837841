/* Stages on this machine, block by block, in turns with one operator after the other; the results
 * of all operators are compared bit by bit. */
#include <math.h>
#include <string.h>

#include "base/core/core.h"
#include "features/sketch/sketch.h"
#include "predictor/partition/plan/partition_internal.h"

enum { VECTOR_BYTES = 64 };
static const double BUDGET_S = 2;

typedef struct {
    cd_partition *p;
    /* of the network as it is, with convolutions merged (NULL: nothing is) */
    cd_program_select *pick, *pick_merged;
    int core[CD_MACHINE_DEVICES];
    double budget_s;         /* of a block */
    unsigned char *value[2]; /* results of an operator, both ways */
    size_t room;
} runner;

/* Stages need units like the first device: processors of this machine, whether they are called
 * directly or through OpenCL's native kernels. */
cdmpp_status cd_partition_stage_run_check(const cd_partition *p, cdmpp_err *err) {
    for (uint32_t d = 0; d < p->machine.n; d++) {
        const cd_machine_device *v = &p->machine.device[d];
        if (strcmp(v->kind, "cpu") != 0 && strcmp(v->kind, "native") != 0)
            return CD_FAIL(
                err, EUSAGE,
                "--stages --run: stages run on processors of this machine, and %s is none",
                v->name);
    }
    return CDMPP_OK;
}

/* Programs of whole operators on the first device, by the plan's schedules. */
static cdmpp_status lines(cd_partition *p, const cd_partition_staging *s, const char ***out,
                          size_t *n, cdmpp_err *err) {
    const cd_shard_net *net = s->net;
    *out = CD_NEWN(&p->arena, const char *, (size_t)net->n_op + 1);
    *n = 0;
    if (!*out) return CD_FAIL(err, ENOMEM, "%u operators", net->n_op);
    for (uint32_t k = 0; k < net->n_op; k++) {
        if (!net->op[k].dag) continue;
        CD_TRY(cd_shard_cost_schedule(s->cost, k, 0, NULL, &(*out)[*n], err));
        *n += (*out)[*n] != NULL;
    }
    return CDMPP_OK;
}

static cdmpp_status pick(runner *r, const cd_partition_staging *s, cd_program_select **out,
                         cdmpp_err *err) {
    cd_partition *p = r->p;
    const char **line;
    size_t n_line;
    CD_TRY(lines(p, s, &line, &n_line, err));
    const cd_program_select_options o = {.line = line,
                                         .n_line = n_line,
                                         .trials = 1,
                                         .target = p->machine.device[0].target,
                                         .hardware = cd_target_hardware(false, 1, VECTOR_BYTES),
                                         .threads = 1,
                                         .measure = p->measure,
                                         .stop = p->o->stop};
    return cd_program_select_run(s->loaded->work, &o, out, err);
}

/* ---- a block ---- */

static size_t bytes_of(const cd_partition *p, uint32_t op) {
    const cd_workload_buffer *b = &p->loaded.work->buffer[p->loaded.work->group[op].write];
    return (size_t)cd_graph_shape_elements(&b->shape) * cd_expr_dtype_bytes(b->dtype);
}

static uint32_t ops_of(const cd_partition_stage *b) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < b->plan.n_stage; k++)
        n += b->plan.stage[k].first[b->plan.stage[k].n_group];
    return n;
}

static cdmpp_status compare_values(runner *r, const cd_partition_stage *b, uint32_t n,
                                   cd_stage_exec *const *s, cdmpp_err *err) {
    for (uint32_t i = 0; i < n; i++) {
        const size_t bytes = bytes_of(r->p, b->op[i]);
        for (int k = 0; k < 2; k++) CD_TRY(cd_stage_exec_result(s[k], i, r->value[k], err));
        r->p->plain.staged.differ += memcmp(r->value[0], r->value[1], bytes) != 0;
    }
    return CDMPP_OK;
}

/* of[1] NULL: nothing is merged. Values of the merged network are compared apart (check_merged). */
static cdmpp_status all_ways(runner *r, uint32_t k, cd_stage_run *const *of, cdmpp_err *err) {
    cd_partition_stage *b = &r->p->plain.stage[k], *m = of[1] ? &r->p->merged.in.stage[k] : NULL;
    cd_stage_exec *s[3] = {NULL, NULL, NULL};
    double seconds[3];
    cdmpp_status st = cd_stage_exec_open(of[0], NULL, 0, &s[0], err);
    if (!st) st = cd_stage_exec_open(of[0], b->plan.stage, b->plan.n_stage, &s[1], err);
    if (!st && m) st = cd_stage_exec_open(of[1], m->plan.stage, m->plan.n_stage, &s[2], err);
    if (!st) st = cd_stage_exec_compare(s, m ? 3 : 2, r->budget_s, seconds, err);
    if (!st) st = compare_values(r, b, ops_of(b), s, err);
    for (int i = 0; i < 3; i++) cd_stage_exec_close(s[i]);
    if (st) return st;
    b->alone_measured_s = seconds[0];
    b->measured_s = seconds[1];
    if (m) m->alone_measured_s = seconds[0], m->measured_s = seconds[2];
    return CDMPP_OK;
}

/* The first operator that has no program of its own; NULL: the block can be run. */
static const char *missing(const cd_partition_staging *s, const cd_program_select *p,
                           const cd_partition_stage *b) {
    const cd_workload *w = s->loaded->work;
    for (uint32_t i = 0; i < ops_of(b); i++) {
        const cd_workload_group *g = &w->group[b->op[i]];
        if (g->task == CD_GRAPH_NONE || g->weights || p->task[g->task].status)
            return s->net->op[b->op[i]].name;
    }
    return NULL;
}

static cdmpp_status open_block(const runner *r, const cd_partition_staging *s,
                               const cd_program_select *pick, uint32_t k, cd_stage_run **out,
                               cdmpp_err *err) {
    const cd_partition_stage *b = &s->stage[k];
    const cd_stage_run_options a = {.work = s->loaded->work,
                                    .pick = pick,
                                    .n_op = ops_of(b),
                                    .group = b->op,
                                    .solo_s = b->solo_s,
                                    .n_core = r->p->machine.n,
                                    .core = r->core};
    return cd_stage_run_open(&a, out, err);
}

static void add_up(cd_partition_staging *s, uint32_t k) {
    const cd_partition_stage *b = &s->stage[k];
    s->staged.n++;
    s->staged.predicted_s += b->plan.total_s;
    s->staged.seconds += b->measured_s;
    s->staged.alone_s += b->alone_measured_s;
}

/* A block is run alone, its inputs filled: blocks before it need not run. One without programs is a
 * warning. */
static cdmpp_status block(runner *r, uint32_t k, cdmpp_err *err) {
    cd_partition *p = r->p;
    cd_partition_staging *const way[] = {&p->plain, &p->merged.in};
    cd_stage_run *of[2] = {NULL, NULL};
    const char *who = missing(way[0], r->pick, &way[0]->stage[k]);
    if (!who && p->merged.has) who = missing(way[1], r->pick_merged, &way[1]->stage[k]);
    for (int i = 0; i < (p->merged.has ? 2 : 1); i++)
        way[i]->stage[k].measured_s = way[i]->stage[k].alone_measured_s = (double)NAN;
    if (cd_partition_stopped(p)) return CD_FAIL(err, EINTERRUPTED, "while stages were run");
    if (who) {
        p->n_not_run++;
        cd_log_put(p->o->log, CD_LOG_WARNING,
                   "block %u of the stages is not run: %.60s has no program", k, who);
        return CDMPP_OK;
    }
    cdmpp_status st = open_block(r, way[0], r->pick, k, &of[0], err);
    if (!st && p->merged.has) st = open_block(r, way[1], r->pick_merged, k, &of[1], err);
    if (!st) st = all_ways(r, k, of, err);
    for (int i = 0; i < 2; i++) cd_stage_run_close(of[i]);
    for (int i = 0; i < 2 && !st; i++)
        if (i == 0 || p->merged.has) add_up(way[i], k);
    return st;
}

/* ---- values of the merged network ---- */

static cdmpp_status values_of(cd_partition *p, const cd_partition_staging *s, float **out,
                              size_t *n, cdmpp_err *err) {
    const char **line;
    size_t n_line;
    CD_TRY(lines(p, s, &line, &n_line, err));
    cd_network_values_options o = {.graph = s->loaded->source,
                                   .target = p->machine.device[0].target,
                                   .hardware = cd_target_hardware(false, 1, VECTOR_BYTES),
                                   .line = line,
                                   .n_line = n_line,
                                   .measure = p->measure,
                                   .stop = p->o->stop};
    if (p->o->layout) (void)cd_workload_layout_parse(p->o->layout, &o.layout);
    return cd_network_values(&o, out, n, err);
}

/* Operators have no counterparts in the other network, so results of whole networks are compared,
 * of one content by names. */
static cdmpp_status check_merged(cd_partition *p, cdmpp_err *err) {
    cd_partition_merged *m = &p->merged;
    float *v[2] = {NULL, NULL};
    size_t n[2] = {0, 0};
    double far = 0, large = 0;
    cdmpp_status st = values_of(p, &p->plain, &v[0], &n[0], err);
    if (!st) st = values_of(p, &m->in, &v[1], &n[1], err);
    for (size_t i = 0; !st && i < n[0]; i++) {
        far = fmax(far, isfinite(v[0][i]) && isfinite(v[1][i])
                            ? fabs((double)v[0][i] - (double)v[1][i])
                            : (double)INFINITY);
        large = fmax(large, fabs((double)v[0][i]));
    }
    if (!st && !(large > 0)) st = CD_FAIL(err, EUNSUPPORTED, "all results are zero");
    m->max_error = st ? (double)NAN : far / large;
    for (int k = 0; k < 2; k++) cd_mem_free(v[k]);
    if (!st || (st != CDMPP_EUNSUPPORTED && st != CDMPP_EBACKEND)) return st;
    cd_log_put(p->o->log, CD_LOG_WARNING, "values of the merged network are not compared: %s",
               err->msg);
    return CDMPP_OK;
}

static cdmpp_status run_all(runner *r, cdmpp_err *err) {
    cd_partition *p = r->p;
    for (uint32_t d = 0; d < p->machine.n; d++) r->core[d] = p->machine.device[d].core;
    CD_TRY(pick(r, &p->plain, &r->pick, err));
    if (p->merged.has) CD_TRY(pick(r, &p->merged.in, &r->pick_merged, err));
    for (uint32_t k = 0; k < p->net.n_op; k++)
        if (bytes_of(p, k) > r->room) r->room = bytes_of(p, k);
    for (int k = 0; k < 2; k++)
        if (!(r->value[k] = cd_mem_alloc(r->room + 1)))
            return CD_FAIL(err, ENOMEM, "results of %zu bytes", r->room);
    for (uint32_t k = 0; k < p->plain.n_stage; k++) CD_TRY(block(r, k, err));
    p->plain.staged.done = true;
    p->merged.in.staged.done = p->merged.has;
    return p->merged.has ? check_merged(p, err) : CDMPP_OK;
}

cdmpp_status cd_partition_stage_run(cd_partition *p, cdmpp_err *err) {
    runner r = {.p = p};
    r.budget_s = (p->o->budget_s > 0 ? p->o->budget_s / 2 : BUDGET_S) /
                 (p->plain.n_stage ? p->plain.n_stage : 1);
    const cdmpp_status st = run_all(&r, err);
    for (int k = 0; k < 2; k++) cd_mem_free(r.value[k]);
    cd_program_select_free(r.pick);
    cd_program_select_free(r.pick_merged);
    return st;
}
