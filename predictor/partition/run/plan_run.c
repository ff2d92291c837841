/* A plan made ready to run and run again: where a device fails, the pass is repeated by the others
 * with a new plan. */
#include <string.h>

#include "predictor/partition/run/plan_run_internal.h"

/* ---- a plan made ready ---- */

/* Slowness is no part of the devices: 0 takes it away again, in a plan made again too. */
static void slow_all(const cd_plan_run *r, cd_plan_exec *m) {
    for (uint32_t d = 0; d < m->dn.n_device; d++)
        cd_multi_executor_slow(m->net, d, r->slow[m->is[d]]);
}

void cd_plan_exec_free(cd_plan_exec *m) {
    if (!m) return;
    cd_multi_executor_close(m->net);
    for (uint32_t k = 0; k < m->n_program; k++) cd_record_program_free(&m->program[k].job);
    for (uint32_t k = 0; k < m->n_piece; k++) cd_te_shard_free(m->piece[k].own);
    cd_mem_free(m->buffer);
    cd_mem_free(m->action);
    cd_mem_free(m->of);
    cd_mem_free(m->constant);
    cd_shard_plan_free(m->plan);
    cd_arena_free(&m->arena);
    cd_mem_free(m);
}

/* Each step needs the one before: pieces give programs, programs give the actions, and buffers
 * exist only after the executor is opened. */
cdmpp_status cd_plan_exec_make(cd_plan_run *r, const cd_shard_plan *plan, cd_plan_exec **out,
                               cdmpp_err *err) {
    const cd_plan_run_options *a = &r->ask;
    cd_plan_exec *m = cd_mem_zalloc(1, sizeof *m);
    if (!m) return CD_FAIL(err, ENOMEM, "plan");
    cdmpp_status st = cd_plan_exec_plan_fits(plan, a->net, a->machine, err);
    if (!st) st = cd_plan_exec_plan_copy(plan, &m->plan, err);
    if (!st) st = cd_plan_exec_pieces(m, a, err);
    if (!st) st = cd_plan_exec_programs(m, a, err);
    if (!st) st = cd_plan_exec_actions(m, r, err);
    if (!st) st = cd_multi_executor_open(&m->dn, &m->net, err);
    if (!st) st = cd_plan_exec_fill(m, a, err);
    if (st) {
        cd_plan_exec_free(m);
        return st;
    }
    slow_all(r, m);
    *out = m;
    return CDMPP_OK;
}

/* ---- open ---- */

void cd_plan_run_close(cd_plan_run *r) {
    if (!r) return;
    cd_plan_exec_free(r->now);
    cd_mem_free(r->want.value);
    cd_mem_free(r);
}

static cdmpp_status expect_as(cd_plan_run *r, const cd_plan_run *other, cdmpp_err *err) {
    r->want.n = other->want.n;
    r->want.value = cd_mem_alloc((r->want.n + 1) * sizeof *r->want.value);
    if (!r->want.value) return CD_FAIL(err, ENOMEM, "results");
    memcpy(r->want.value, other->want.value, r->want.n * sizeof *r->want.value);
    return CDMPP_OK;
}

cdmpp_status cd_plan_run_open(const cd_plan_run_options *a, cd_plan_run **out, cdmpp_err *err) {
    cd_plan_run *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "plan");
    r->ask = *a;
    r->ask.plan = NULL; /* the caller's may go: ours is a copy */
    r->ask.expect = NULL;
    for (uint32_t k = 0; k < CD_MACHINE_DEVICES; k++) r->factor[k] = 1;
    cdmpp_status st = cd_plan_exec_make(r, a->plan, &r->now, err);
    if (!st && a->check) st = cd_plan_exec_reference(r, err);
    else if (!st && a->expect && a->expect->want.value) st = expect_as(r, a->expect, err);
    if (st) cd_plan_run_close(r);
    else *out = r;
    return st;
}

const cd_shard_plan *cd_plan_run_now(const cd_plan_run *r) { return r->now->plan; }

void cd_plan_run_slow(cd_plan_run *r, uint32_t device, unsigned times) {
    if (device >= r->ask.machine->n) return;
    r->slow[device] = times;
    if (r->now->number[device] != CD_PLAN_EXEC_NONE)
        cd_multi_executor_slow(r->now->net, r->now->number[device], times);
}

void cd_plan_run_break(cd_plan_run *r, uint32_t device, uint32_t after) {
    if (device < r->ask.machine->n && r->now->number[device] != CD_PLAN_EXEC_NONE)
        cd_multi_executor_break(r->now->net, r->now->number[device], after);
}

/* ---- a pass ---- */

/* The loop ends: each repetition has one device fewer, and cd_plan_exec_replan fails when none is
 * left. *ran is allocated for each try, because a new plan has another number of actions. */
cdmpp_status cd_plan_exec_pass(cd_plan_run *r, cd_multi_action_time **ran, double *total_s,
                               bool *anew, cdmpp_err *err) {
    bool again = false;
    for (;;) {
        uint32_t failed = UINT32_MAX;
        cdmpp_err why = {0};
        if (r->ask.stop && *r->ask.stop) return CD_FAIL(err, EINTERRUPTED, "while a plan was run");
        if (ran) {
            cd_mem_free(*ran);
            *ran = cd_mem_zalloc(r->now->dn.n_action + 1, sizeof **ran);
            if (!*ran) return CD_FAIL(err, ENOMEM, "%u actions", r->now->dn.n_action);
        }
        const cdmpp_status st =
            cd_multi_executor_pass(r->now->net, ran ? *ran : NULL, total_s, &failed, &why);
        if (anew) *anew = again;
        if (!st) return CDMPP_OK;
        if (err) *err = why;
        if (st != CDMPP_EBACKEND || failed >= r->now->dn.n_device) return st;
        r->dead |= 1u << r->now->is[failed];
        r->failures++;
        again = true;
        CD_TRY(cd_plan_exec_replan(r, err));
    }
}
