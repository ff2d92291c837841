/* A plan made ready to run and run again: where a device fails, the pass is repeated by the others
 * with a new plan. */
#include <math.h>
#include <string.h>

#include "predictor/partition/run/plan_run_internal.h"

/* Deep copies of plans, because a run keeps its plan longer than the caller; and the check that a
 * plan fits the network and the machine that it is to run on. */

static const char *text(cd_arena *a, const char *s, bool *bad) {
    const char *t = s ? cd_str_dup(a, (cd_str){s, strlen(s)}) : NULL;
    if (s && !t) *bad = true;
    return t;
}

static void *bytes(cd_arena *a, const void *from, size_t n, size_t size, bool *bad) {
    void *p = cd_arena_zalloc(a, n + 1, size);
    if (!p) *bad = true;
    else if (n && from) memcpy(p, from, n * size);
    return p;
}

static void copy_op(cd_arena *a, cd_shard_plan_op *o, uint32_t n_device, bool *bad) {
    o->name = text(a, o->name, bad);
    o->type = text(a, o->type, bad);
    o->key = text(a, o->key, bad);
    o->dim = text(a, o->dim ? o->dim : "", bad);
    o->why = text(a, o->why, bad);
    o->part = bytes(a, o->part, o->n_part, sizeof *o->part, bad);
    o->alone_s = o->alone_s ? bytes(a, o->alone_s, n_device, sizeof *o->alone_s, bad) : NULL;
}

/* plan_run.c: a plan of one's own.
 *
 * `bad` collects failed allocations, so that one test at the end serves all copies. */
static cdmpp_status plan_exec_plan_copy(const cd_shard_plan *from, cd_shard_plan **out,
                                        cdmpp_err *err) {
    bool bad = false;
    cd_shard_plan *p = cd_mem_zalloc(1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "plan");
    *p = *from;
    p->arena = (cd_arena){0};
    cd_arena *a = &p->arena;
    p->network = text(a, from->network, &bad);
    p->verdict = text(a, from->verdict, &bad);
    p->device = bytes(a, from->device, from->n_device, sizeof *p->device, &bad);
    p->op = bytes(a, from->op, from->n_op, sizeof *p->op, &bad);
    p->copy = bytes(a, from->copy, from->copy ? from->n_copy : 0, sizeof *p->copy, &bad);
    p->base = bytes(a, from->base, from->base ? from->n_base : 0, sizeof *p->base, &bad);
    for (uint32_t k = 0; k < p->n_device && !bad; k++)
        p->device[k] = text(a, from->device[k], &bad);
    for (uint32_t k = 0; k < p->n_op && !bad; k++) copy_op(a, &p->op[k], p->n_device, &bad);
    for (uint32_t k = 0; p->base && k < p->n_base && !bad; k++)
        p->base[k].name = text(a, p->base[k].name, &bad);
    if (bad) {
        cd_shard_plan_free(p);
        return CD_FAIL(err, ENOMEM, "plan");
    }
    *out = p;
    return CDMPP_OK;
}

static cdmpp_status device_fits(const cd_machine *m, const cd_shard_net_op *o, uint32_t device,
                                cdmpp_err *err) {
    if (device >= m->n)
        return CD_FAIL(err, EINVALID, "operator %.80s: device %u of %u", o->name, device, m->n);
    if (!strcmp(m->device[device].kind, "model"))
        return CD_FAIL(
            err, EBACKEND,
            "operator %.80s is planned for %.40s, which is a description alone and not here",
            o->name, m->device[device].name);
    return CDMPP_OK;
}

static cdmpp_status op_fits(const cd_shard_plan_op *p, const cd_shard_net_op *o,
                            const cd_machine *m, cdmpp_err *err) {
    if (!o->dag)
        return CD_FAIL(err, EUNSUPPORTED,
                       "operator %.80s (%.40s) has no definition: it cannot be run", o->name,
                       o->type);
    if (p->key && o->key && strcmp(p->key, o->key))
        return CD_FAIL(err, EINVALID, "operator %.80s is another one in the plan, %.80s", o->name,
                       p->name ? p->name : "");
    if (!p->n_part) return CD_FAIL(err, EINVALID, "operator %.80s has no parts", o->name);
    for (uint32_t k = 0; k < p->n_part; k++) CD_TRY(device_fits(m, o, p->part[k].device, err));
    if (p->join != UINT32_MAX) CD_TRY(device_fits(m, o, p->join, err));
    if ((p->join != UINT32_MAX) != (p->reduce && p->n_part > 1))
        return CD_FAIL(err, EINVALID, "operator %.80s: sums, and only they, are joined", o->name);
    return CDMPP_OK;
}

/* Does the plan fit network and machine? Errors: EINVALID, EUNSUPPORTED, EBACKEND. */
static cdmpp_status plan_exec_plan_fits(const cd_shard_plan *p, const cd_shard_net *net,
                                        const cd_machine *m, cdmpp_err *err) {
    if (p->n_op != net->n_op)
        return CD_FAIL(err, EINVALID, "the plan is of %u operators, the network has %u", p->n_op,
                       net->n_op);
    if (p->n_device != m->n)
        return CD_FAIL(err, EINVALID, "the plan is for %u devices, the machine has %u", p->n_device,
                       m->n);
    for (uint32_t k = 0; k < m->n; k++)
        if (strcmp(p->device[k], m->device[k].name))
            return CD_FAIL(err, EINVALID, "device %u of the plan is %.40s, of the machine %.40s", k,
                           p->device[k], m->device[k].name);
    for (uint32_t k = 0; k < net->n_op; k++) CD_TRY(op_fits(&p->op[k], &net->op[k], m, err));
    return CDMPP_OK;
}

/* The pieces of a plan: the shards of each operator that is split, the join of its partial sums, or
 * the whole operator. Each has a definition and the boxes of its arguments. */

static cdmpp_status find_way(const cd_shard_net_op *o, const cd_shard_plan_op *p, cd_arena *a,
                             cd_te_shard_axis *out, cdmpp_err *err) {
    cd_te_shard_axis *w;
    uint32_t n;
    CD_TRY(cd_te_shard_axes(o->dag, a, &w, &n, err));
    for (uint32_t k = 0; k < n; k++)
        if (w[k].reduce == p->reduce && w[k].op == p->way_op && w[k].axis == p->axis)
            return *out = w[k], CDMPP_OK;
    return CD_FAIL(err, EINVALID, "operator %.80s cannot be split over %.20s", o->name, p->dim);
}

/* Shares of all of the extent, in order, none empty. */
static cdmpp_status check_shares(const cd_shard_net_op *o, const cd_shard_plan_op *p,
                                 const cd_te_shard_axis *w, cdmpp_err *err) {
    int64_t at = 0;
    for (uint32_t k = 0; k < p->n_part; at = p->part[k++].hi)
        if (p->part[k].lo != at || p->part[k].hi <= at)
            return CD_FAIL(err, EINVALID, "operator %.80s: part %u is %lld to %lld, from %lld on",
                           o->name, k, (long long)p->part[k].lo, (long long)p->part[k].hi,
                           (long long)at);
    if (at != w->extent)
        return CD_FAIL(err, EINVALID, "operator %.80s: parts end at %lld of %lld", o->name,
                       (long long)at, (long long)w->extent);
    return CDMPP_OK;
}

/* An operator that is not split keeps its own definition; its boxes are whole tensors. */
static cdmpp_status whole(cd_plan_exec *m, const cd_shard_net_op *o, cd_plan_exec_piece *p,
                          cdmpp_err *err) {
    uint32_t *of = CD_NEWN(&m->arena, uint32_t, o->n_arg);
    cd_box *box = CD_NEWN(&m->arena, cd_box, o->n_arg);
    if (!of || !box) return CD_FAIL(err, ENOMEM, "operator");
    for (uint32_t k = 0; k < o->n_arg; k++) {
        const cd_te_op *x = &o->dag->op[o->dag->tensor_op[o->dag->arg[k]]];
        if (x->rank > CD_BOX_RANK)
            return CD_FAIL(err, EUNSUPPORTED, "operator %.80s: argument %u has %u dimensions",
                           o->name, k, x->rank);
        of[k] = k;
        box[k] = cd_box_whole(x->rank, x->shape);
    }
    p->dag = o->dag;
    p->key = o->key;
    p->n_arg = o->n_arg;
    p->of = of;
    p->box = box;
    return CDMPP_OK;
}

static void take(cd_plan_exec_piece *p, cd_te_shard *t) {
    p->own = t;
    p->dag = t->dag;
    p->key = t->workload_key;
    p->n_arg = t->n_arg;
    p->of = t->of;
    p->box = t->box;
}

/* n_piece grows before anything can fail, so that plan_exec_free also frees the shards made so
 * far. */
static cdmpp_status make_op(cd_plan_exec *m, const cd_shard_net_op *o, uint32_t k, cdmpp_err *err) {
    const cd_shard_plan_op *p = &m->plan->op[k];
    const uint32_t n = cd_plan_exec_n_piece(p);
    cd_plan_exec_piece *piece = &m->piece[m->first[k]];
    cd_te_shard_axis w;
    for (uint32_t i = 0; i < n; i++)
        piece[i] = (cd_plan_exec_piece){
            .op = k, .part = i, .device = i < p->n_part ? p->part[i].device : p->join};
    m->n_piece += n;
    if (p->n_part == 1) return whole(m, o, piece, err);
    CD_TRY(find_way(o, p, &m->arena, &w, err));
    CD_TRY(check_shares(o, p, &w, err));
    for (uint32_t i = 0; i < n; i++) {
        cd_te_shard *t = NULL;
        if (i < p->n_part)
            CD_TRY(cd_err_key(
                err, cd_te_shard_make(o->dag, &w, p->part[i].lo, p->part[i].hi, &t, err), o->name));
        else CD_TRY(cd_err_key(err, cd_te_shard_join(o->dag, &w, p->n_part, &t, err), o->name));
        take(&piece[i], t);
    }
    return CDMPP_OK;
}

/* plan_run.c: pieces of all operators. Errors: EINVALID (a split axis or shares that the
 * operator does not have). */
static cdmpp_status plan_exec_pieces(cd_plan_exec *m, const cd_plan_run_options *a,
                                     cdmpp_err *err) {
    const uint32_t n = m->plan->n_op;
    uint32_t all = 0;
    m->first = CD_NEWN(&m->arena, uint32_t, n + 1);
    for (uint32_t k = 0; m->first && k < n; k++) {
        all += cd_plan_exec_n_piece(&m->plan->op[k]);
        m->first[k + 1] = all;
    }
    m->piece = CD_NEWN(&m->arena, cd_plan_exec_piece, all + 1);
    if (!m->first || !m->piece) return CD_FAIL(err, ENOMEM, "%u operators", n);
    for (uint32_t k = 0; k < n; k++) CD_TRY(make_op(m, &a->net->op[k], k, err));
    return CDMPP_OK;
}

/* ---- a plan made ready ---- */

/* Slowness is no part of the devices: 0 takes it away again, in a plan made again too. */
static void slow_all(const cd_plan_run *r, cd_plan_exec *m) {
    for (uint32_t d = 0; d < m->dn.n_device; d++)
        cd_multi_executor_slow(m->net, d, r->slow[m->is[d]]);
}

static void plan_exec_free(cd_plan_exec *m) {
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

/* plan_run.c: what runs a plan, ready; and one pass, repeated by other devices where one fails.
 * *anew (NULL: not wanted): by another plan.
 *
 * Each step needs the one before: pieces give programs, programs give the actions, and buffers
 * exist only after the executor is opened. */
static cdmpp_status plan_exec_make(cd_plan_run *r, const cd_shard_plan *plan, cd_plan_exec **out,
                                   cdmpp_err *err) {
    const cd_plan_run_options *a = &r->ask;
    cd_plan_exec *m = cd_mem_zalloc(1, sizeof *m);
    if (!m) return CD_FAIL(err, ENOMEM, "plan");
    cdmpp_status st = plan_exec_plan_fits(plan, a->net, a->machine, err);
    if (!st) st = plan_exec_plan_copy(plan, &m->plan, err);
    if (!st) st = plan_exec_pieces(m, a, err);
    if (!st) st = cd_plan_exec_programs(m, a, err);
    if (!st) st = cd_plan_exec_actions(m, r, err);
    if (!st) st = cd_multi_executor_open(&m->dn, &m->net, err);
    if (!st) st = cd_plan_exec_fill(m, a, err);
    if (st) {
        plan_exec_free(m);
        return st;
    }
    slow_all(r, m);
    *out = m;
    return CDMPP_OK;
}

/* ---- open ---- */

void cd_plan_run_close(cd_plan_run *r) {
    if (!r) return;
    plan_exec_free(r->now);
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
    cdmpp_status st = plan_exec_make(r, a->plan, &r->now, err);
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

/* A plan made again: without devices that have failed, with longer times for devices that are
 * slower than predicted. */

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
    CD_TRY(plan_exec_plan_copy(r->now->plan, &p, err));
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
    if (!st) st = plan_exec_make(r, p, &m, err);
    cd_shard_plan_free(p);
    if (st) return st;
    plan_exec_free(r->now);
    r->now = m;
    r->replans++;
    return CDMPP_OK;
}
