/* Stages on this machine, block by block, in turns with one operator after the other; the results of all operators are compared bit by bit. */
#include <math.h>
#include <string.h>

#include "base/core/core.h"
#include "features/sketch/sketch.h"
#include "predictor/partition/plan/partition_internal.h"

enum { VECTOR_BYTES = 64 };
static const double BUDGET_S = 2;

typedef struct {
    cd_partition *p;
    cd_program_select *pick;
    int core[CD_MACHINE_DEVICES];
    double budget_s;            /* of a block */
    unsigned char *value[2];    /* results of an operator, both ways */
    size_t room;
} runner;

/* Stages need units like the first device: processors of this machine, whether they are called directly or through OpenCL's native kernels. */
cdmpp_status cd_partition_stage_run_check(const cd_partition *p, cdmpp_err *err) {
    for (uint32_t d = 0; d < p->machine.n; d++) {
        const cd_machine_device *v = &p->machine.device[d];
        if (strcmp(v->kind, "cpu") != 0 && strcmp(v->kind, "native") != 0)
            return CD_FAIL(err, EUSAGE, "--stages --run: stages run on processors of this machine, and %s is none", v->name);
    }
    return CDMPP_OK;
}

/* Programs of whole operators on the first device, by the plan's schedules. */
static cdmpp_status pick(runner *r, cdmpp_err *err) {
    cd_partition *p = r->p;
    const char **line = CD_NEWN(&p->arena, const char *, (size_t)p->net.n_op + 1);
    cd_program_select_options o = {.line = line, .trials = 1, .target = p->machine.device[0].target, .hardware = cd_target_hardware(false, 1, VECTOR_BYTES), .threads = 1, .measure = p->measure,
                            .stop = p->o->stop};
    if (!line) return CD_FAIL(err, ENOMEM, "%u operators", p->net.n_op);
    for (uint32_t k = 0; k < p->net.n_op; k++) {
        if (!p->net.op[k].dag) continue;
        CD_TRY(cd_shard_cost_schedule(p->cost, k, 0, NULL, &line[o.n_line], err));
        o.n_line += line[o.n_line] != NULL;
    }
    return cd_program_select_run(p->loaded.work, &o, &r->pick, err);
}

/* ---- a block ---- */

static size_t bytes_of(const cd_partition *p, uint32_t op) {
    const cd_workload_buffer *b = &p->loaded.work->buffer[p->loaded.work->group[op].write];
    return (size_t)cd_graph_shape_elements(&b->shape) * cd_expr_dtype_bytes(b->dtype);
}

static cdmpp_status compare_values(runner *r, const cd_partition_stage *b, uint32_t n, cd_stage_exec *const *s, cdmpp_err *err) {
    for (uint32_t i = 0; i < n; i++) {
        const size_t bytes = bytes_of(r->p, b->op[i]);
        for (int k = 0; k < 2; k++) CD_TRY(cd_stage_exec_result(s[k], i, r->value[k], err));
        r->p->staged.differ += memcmp(r->value[0], r->value[1], bytes) != 0;
    }
    return CDMPP_OK;
}

static cdmpp_status both_ways(runner *r, cd_partition_stage *b, uint32_t n, cd_stage_run *of, cdmpp_err *err) {
    cd_stage_exec *s[2] = {NULL, NULL};
    double seconds[2];
    cdmpp_status st = cd_stage_exec_open(of, NULL, 0, &s[0], err);
    if (!st) st = cd_stage_exec_open(of, b->plan.stage, b->plan.n_stage, &s[1], err);
    if (!st) st = cd_stage_exec_compare(s, 2, r->budget_s, seconds, err);
    if (!st) st = compare_values(r, b, n, s, err);
    for (int k = 0; k < 2; k++) cd_stage_exec_close(s[k]);
    if (st) return st;
    b->alone_measured_s = seconds[0];
    b->measured_s = seconds[1];
    return CDMPP_OK;
}

static uint32_t ops_of(const cd_partition_stage *b) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < b->plan.n_stage; k++) n += b->plan.stage[k].first[b->plan.stage[k].n_group];
    return n;
}

/* The first operator that has no program of its own; NULL: the block can be run. */
static const char *missing(const runner *r, const cd_partition_stage *b, uint32_t n) {
    const cd_workload *w = r->p->loaded.work;
    for (uint32_t i = 0; i < n; i++) {
        const cd_workload_group *g = &w->group[b->op[i]];
        if (g->task == CD_GRAPH_NONE || g->weights || r->pick->task[g->task].status) return r->p->net.op[b->op[i]].name;
    }
    return NULL;
}

/* A block is run alone, its inputs filled: blocks before it need not run. One without programs is a warning. */
static cdmpp_status block(runner *r, uint32_t k, cdmpp_err *err) {
    cd_partition *p = r->p;
    cd_partition_stage *b = &p->stage[k];
    cd_stage_run *of = NULL;
    const uint32_t n = ops_of(b);
    const char *who = missing(r, b, n);
    b->measured_s = b->alone_measured_s = (double)NAN;
    if (cd_partition_stopped(p)) return CD_FAIL(err, EINTERRUPTED, "while stages were run");
    if (who) {
        p->n_not_run++;
        cd_log_put(p->o->log, CD_LOG_WARNING, "block %u of the stages is not run: %.60s has no program", k, who);
        return CDMPP_OK;
    }
    const cd_stage_run_options a = {.work = p->loaded.work, .pick = r->pick, .n_op = n, .group = b->op, .solo_s = b->solo_s, .n_core = p->machine.n, .core = r->core};
    CD_TRY(cd_stage_run_open(&a, &of, err));
    const cdmpp_status st = both_ways(r, b, n, of, err);
    cd_stage_run_close(of);
    if (st) return st;
    p->staged.n++;
    p->staged.predicted_s += b->plan.total_s;
    p->staged.seconds += b->measured_s;
    p->staged.alone_s += b->alone_measured_s;
    return CDMPP_OK;
}

static cdmpp_status run_all(runner *r, cdmpp_err *err) {
    cd_partition *p = r->p;
    for (uint32_t d = 0; d < p->machine.n; d++) r->core[d] = p->machine.device[d].core;
    CD_TRY(pick(r, err));
    for (uint32_t k = 0; k < p->net.n_op; k++)
        if (bytes_of(p, k) > r->room) r->room = bytes_of(p, k);
    for (int k = 0; k < 2; k++)
        if (!(r->value[k] = cd_mem_alloc(r->room + 1))) return CD_FAIL(err, ENOMEM, "results of %zu bytes", r->room);
    for (uint32_t k = 0; k < p->n_stage; k++) CD_TRY(block(r, k, err));
    p->staged.done = true;
    return CDMPP_OK;
}

cdmpp_status cd_partition_stage_run(cd_partition *p, cdmpp_err *err) {
    runner r = {.p = p};
    r.budget_s = (p->o->budget_s > 0 ? p->o->budget_s / 2 : BUDGET_S) / (p->n_stage ? p->n_stage : 1);
    const cdmpp_status st = run_all(&r, err);
    for (int k = 0; k < 2; k++) cd_mem_free(r.value[k]);
    cd_program_select_free(r.pick);
    return st;
}
