/* A plan made again: without devices that have failed, with longer times for devices that are
 * slower than predicted. */
#include <math.h>

#include "predictor/partition/run/plan_run_internal.h"

static uint32_t alive(const cd_plan_run *r) { return ~r->dead & ((1u << r->ask.machine->n) - 1); }

/* ---- by predictions ---- */

typedef struct {
    cd_shard_plan_time *time;
    cd_shard_plan_prepare *prepare; /* NULL: none */
    void *ctx;
    const double *factor;
} slowed;

static cdmpp_status time_of(void *ctx, uint32_t op, uint32_t device, const cd_te_shard *part,
                            cd_shard_plan_estimate *out, cdmpp_err *err) {
    const slowed *s = ctx;
    CD_TRY(s->time(s->ctx, op, device, part, out, err));
    out->seconds *= s->factor[device];
    return CDMPP_OK;
}

static cdmpp_status prepare(void *ctx, const cd_shard_plan_query *w, size_t n, cdmpp_err *err) {
    const slowed *s = ctx;
    return s->prepare(s->ctx, w, n, err);
}

/* Who was to run on a device that has failed may run on any. */
static cdmpp_status without_dead(const cd_plan_run *r, const cd_shard_net *from, cd_arena *a,
                                 cd_shard_net *out, cdmpp_err *err) {
    cd_shard_net_op *op = CD_NEWN(a, cd_shard_net_op, from->n_op + 1);
    if (!op) return CD_FAIL(err, ENOMEM, "%u operators", from->n_op);
    for (uint32_t k = 0; k < from->n_op; k++) {
        op[k] = from->op[k];
        if (op[k].pin < CD_MACHINE_DEVICES && (r->dead >> op[k].pin & 1)) op[k].pin = UINT32_MAX;
        op[k].allowed = (op[k].allowed ? op[k].allowed : alive(r)) & alive(r);
        if (!op[k].allowed) op[k].allowed = alive(r);
    }
    *out = *from;
    out->op = op;
    return CDMPP_OK;
}

/* The same planner as before, with three changes: failed devices are forbidden, each time is
 * multiplied by its device's factor, and the options are those of the watch where there is one. */
static cdmpp_status plan_again(const cd_plan_run *r, cd_shard_plan **out, cdmpp_err *err) {
    const double none = (double)NAN;
    cd_shard_plan_options a = {.net = r->ask.net,
                               .machine = r->ask.machine,
                               .time = cd_shard_cost_time,
                               .steady = CD_SHARD_COST_STEADY,
                               .prepare = cd_shard_cost_prepare,
                               .ctx = r->ask.cost,
                               .margin = none,
                               .least_s = none,
                               .cover = none,
                               .fixed_share = none,
                               .split = true};
    if (r->again) a = *r->again;
    slowed s = {a.time, a.prepare, a.ctx, r->factor};
    cd_arena arena = {0};
    cd_shard_net net;
    cdmpp_status st = without_dead(r, a.net, &arena, &net, err);
    a.net = &net;
    a.time = time_of;
    a.prepare = a.prepare ? prepare : NULL;
    a.why = NULL;
    a.ctx = &s;
    if (!st) st = cd_shard_plan_make(&a, out, NULL, err);
    cd_arena_free(&arena);
    return st;
}

/* ---- without ---- */

static bool is_dead(const cd_plan_run *r, const cd_shard_plan_op *o) {
    bool dead = o->join != UINT32_MAX && (r->dead >> o->join & 1);
    for (uint32_t k = 0; k < o->n_part; k++) dead = dead || (r->dead >> o->part[k].device & 1);
    return dead;
}

/* The remaining device on which the whole operator is fastest; without predictions the first. */
static uint32_t best_alive(const cd_plan_run *r, const cd_shard_plan_op *o, double *seconds) {
    uint32_t best = UINT32_MAX;
    *seconds = 0;
    for (uint32_t d = 0; d < r->ask.machine->n; d++) {
        const double s = o->alone_s ? o->alone_s[d] : 0;
        if (!(alive(r) >> d & 1) || (best != UINT32_MAX && !(s < *seconds))) continue;
        best = d;
        *seconds = s;
    }
    return best;
}

/* Operators with a part on a device that has failed go to another one, whole. */
static cdmpp_status move_on(const cd_plan_run *r, cd_shard_plan **out, cdmpp_err *err) {
    cd_shard_plan *p;
    CD_TRY(cd_plan_exec_plan_copy(r->now->plan, &p, err));
    for (uint32_t k = 0; k < p->n_op; k++) {
        cd_shard_plan_op *o = &p->op[k];
        if (!is_dead(r, o)) continue;
        cd_shard_plan_part *part = CD_NEW(&p->arena, cd_shard_plan_part);
        if (!part) {
            cd_shard_plan_free(p);
            return CD_FAIL(err, ENOMEM, "plan");
        }
        part->device = best_alive(r, o, &part->seconds);
        o->dim = "";
        o->reduce = false;
        o->n_part = 1;
        o->part = part;
        o->join = UINT32_MAX;
        o->join_s = 0;
        o->seconds = part->seconds;
        o->why = "its device failed";
    }
    p->predicted_s = (double)NAN;
    p->exact = false;
    *out = p;
    return CDMPP_OK;
}

/* If planning fails after a device has failed, move_on still gives a plan that runs. r->now is
 * replaced only when the new one is ready. */
cdmpp_status cd_plan_exec_replan(cd_plan_run *r, cdmpp_err *err) {
    cd_shard_plan *p = NULL;
    cd_plan_exec *m = NULL;
    if (!alive(r)) return CD_FAIL(err, EBACKEND, "every device has failed");
    cdmpp_status st = CDMPP_OK;
    if (r->again || r->ask.cost) st = plan_again(r, &p, err);
    else st = CD_FAIL(err, EUSAGE, "nothing to plan again with");
    if (st && r->dead && st != CDMPP_ENOMEM && st != CDMPP_EINTERRUPTED) st = move_on(r, &p, err);
    if (!st) st = cd_plan_exec_make(r, p, &m, err);
    cd_shard_plan_free(p);
    if (st) return st;
    cd_plan_exec_free(r->now);
    r->now = m;
    r->replans++;
    return CDMPP_OK;
}
