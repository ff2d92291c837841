/* Turns a plan into the buffers and actions of the multi-device executor (multi.h): inputs, then
 * the pieces in their order with the copies that they need, then results brought to memory 0. */
#include <stdio.h>
#include <string.h>

#include "predictor/partition/run/plan_run_move_internal.h"

/* ---- devices ---- */

static bool has_work(const cd_plan_exec *m, uint32_t device) {
    for (uint32_t k = 0; k < m->dn.n_action; k++)
        if (m->action[k].device == device) return true;
    return false;
}

/* Those that do nothing, as a device that has failed, are not even opened. Actions get their
 * numbers. */
static void make_devices(cd_plan_exec *m, const struct cd_plan_run *r) {
    const cd_machine *x = r->ask.machine;
    for (uint32_t k = 0; k < x->n; k++) {
        const cd_machine_device *d = &x->device[k];
        const bool cpu = !strcmp(d->kind, "cpu");
        m->number[k] = CD_PLAN_EXEC_NONE;
        if (!has_work(m, k)) continue;
        m->number[k] = m->dn.n_device;
        m->is[m->dn.n_device] = k;
        m->device[m->dn.n_device++] =
            (cd_multi_device){.name = d->name,
                              .kind = cpu                          ? CD_MULTI_CPU
                                      : !strcmp(d->kind, "native") ? CD_MULTI_NATIVE
                                                                   : CD_MULTI_OPENCL,
                              .opencl = cpu ? NULL : d->opencl,
                              .core = d->core,
                              .memory = d->memory,
                              .times = d->times};
    }
    for (uint32_t k = 0; k < m->dn.n_action; k++)
        m->action[k].device = m->number[m->action[k].device];
    m->dn.device = m->device;
}

/* ---- tensors ---- */

static void set_shape(cd_plan_exec_tensor *t, uint32_t rank, const int64_t *shape, cd_dtype dtype,
                      size_t size) {
    t->rank = rank;
    memcpy(t->shape, shape, rank * sizeof *shape);
    t->dtype = dtype;
    t->size = size;
    t->last = &t->place;
    for (uint32_t k = 0; k <= CD_MACHINE_DEVICES; k++) t->whole[k] = CD_PLAN_EXEC_NONE;
}

static const cd_te_op *last_of(const cd_te_dag *d) {
    return &d->op[d->tensor_op[d->arg[d->n_arg - 1]]];
}

static cdmpp_status make_tensors(cd_plan_exec_maker *k, cdmpp_err *err) {
    const cd_shard_net *net = k->a->net;
    const uint32_t n = net->n_tensor + k->m->n_piece;
    k->tensor = CD_NEWN(&k->m->arena, cd_plan_exec_tensor, n + 1);
    k->m->home = CD_NEWN(&k->m->arena, uint32_t, net->n_tensor + 1);
    if (!k->tensor || !k->m->home) return CD_FAIL(err, ENOMEM, "%u tensors", n);
    k->n_tensor = n;
    for (uint32_t t = 0; t < net->n_tensor; t++) {
        const cd_shard_net_tensor *x = &net->tensor[t];
        const cd_te_op *o = x->from < net->n_op ? last_of(net->op[x->from].dag) : NULL;
        const cd_workload_buffer *b = cd_plan_exec_buffer(k->a->loaded, t);
        k->m->home[t] = CD_PLAN_EXEC_NONE;
        k->tensor[t].name = x->name;
        if (o) set_shape(&k->tensor[t], o->rank, o->shape, b->dtype, cd_expr_dtype_bytes(b->dtype));
        else set_shape(&k->tensor[t], x->rank, x->shape, b->dtype, cd_expr_dtype_bytes(b->dtype));
    }
    for (uint32_t i = 0; i < k->m->n_piece; i++) { /* each piece may make a partial sum */
        const cd_plan_exec_piece *p = &k->m->piece[i];
        const cd_te_op *o = last_of(p->dag);
        if (o->rank > CD_BOX_RANK)
            return CD_FAIL(err, EUNSUPPORTED, "operator %.80s makes %u dimensions",
                           net->op[p->op].name, o->rank);
        k->tensor[net->n_tensor + i].name = "partial sum";
        set_shape(&k->tensor[net->n_tensor + i], o->rank, p->box[p->n_arg - 1].n, o->dtype[0],
                  cd_expr_dtype_bytes(o->dtype[0]));
    }
    return CDMPP_OK;
}

static cdmpp_status give_inputs(cd_plan_exec_maker *k, cdmpp_err *err) {
    const cd_shard_net *net = k->a->net;
    for (uint32_t t = 0; t < net->n_tensor; t++)
        if (net->tensor[t].from == CD_SHARD_NET_OUTSIDE && !net->tensor[t].constant)
            CD_TRY(cd_plan_exec_input(k, t, &k->m->home[t], err));
    return CDMPP_OK;
}

/* ---- pieces ---- */

/* Argument i of a piece: which tensor, which box of it, seen how. */
static cdmpp_status view_of(const cd_plan_exec_maker *k, const cd_plan_exec_piece *p, uint32_t i,
                            cd_plan_exec_view *v, cdmpp_err *err) {
    const cd_shard_net_op *o = &k->a->net->op[p->op];
    const uint32_t of = p->of[i], n_part = k->m->plan->op[p->op].n_part;
    v->box = &p->box[i];
    /* of a join, which follows its parts: theirs; of a part: its own */
    if (of & CD_TE_SHARD_PARTIAL) {
        const uint32_t part = p->part < n_part ? p->part : of & ~CD_TE_SHARD_PARTIAL;
        v->tensor = k->a->net->n_tensor + k->m->first[p->op] + part;
        v->rank = k->tensor[v->tensor].rank;
        v->shape = k->tensor[v->tensor].shape;
    } else {
        if (of >= o->n_arg)
            return CD_FAIL(err, EINVALID, "operator %.80s: a part asks for argument %u of %u",
                           o->name, of, o->n_arg);
        const cd_te_op *x = &o->dag->op[o->dag->tensor_op[o->dag->arg[of]]];
        v->tensor = o->arg[of];
        v->rank = x->rank;
        v->shape = x->shape;
    }
    if (v->rank != v->box->rank)
        return CD_FAIL(err, EINVALID,
                       "operator %.80s: argument %u of a part has another rank than its tensor",
                       o->name, i);
    return CDMPP_OK;
}

/* The last argument is the result. Copies that reading needs are added as actions first; the piece
 * waits for them by k->after. */
static cdmpp_status add_piece(cd_plan_exec_maker *k, const cd_plan_exec_piece *p, cdmpp_err *err) {
    const cd_shard_net *net = k->a->net;
    uint32_t *buffer = CD_NEWN(&k->m->arena, uint32_t, p->n_arg + 1);
    char name[120];
    cd_plan_exec_view v;
    if (!buffer) return CD_FAIL(err, ENOMEM, "action");
    k->n_after = 0;
    for (uint32_t i = 0; i < p->n_arg; i++) {
        CD_TRY(view_of(k, p, i, &v, err));
        if (i + 1 == p->n_arg) CD_TRY(cd_plan_exec_write(k, &v, p->device, &buffer[i], err));
        else if (v.tensor < net->n_tensor && net->tensor[v.tensor].constant)
            CD_TRY(cd_plan_exec_weight(k, &v, p->device, &buffer[i], err));
        else CD_TRY(cd_plan_exec_read(k, &v, p->device, &buffer[i], err));
    }
    const cd_shard_plan_op *o = &k->m->plan->op[p->op];
    if (o->n_part == 1) snprintf(name, sizeof name, "%.100s", net->op[p->op].name);
    else if (p->part == o->n_part) snprintf(name, sizeof name, "%.100s.join", net->op[p->op].name);
    else snprintf(name, sizeof name, "%.80s.%.8s%u", net->op[p->op].name, o->dim, p->part);
    const char *kept = cd_str_dup(&k->m->arena, (cd_str){name, strlen(name)});
    if (!kept) return CD_FAIL(err, ENOMEM, "action");
    return cd_plan_exec_add_action(k,
                                   (cd_multi_action){.name = kept,
                                                     .device = p->device,
                                                     .build = &k->m->item[p->program].build,
                                                     .buffer = buffer},
                                   p->part, err);
}

static uint32_t first_alive(const struct cd_plan_run *r) {
    uint32_t d = 0;
    while (d + 1 < r->ask.machine->n && (r->dead >> d & 1)) d++;
    for (uint32_t k = d; k < r->ask.machine->n; k++)
        if (!(r->dead >> k & 1) && !r->ask.machine->device[k].memory) return k;
    return d;
}

static cdmpp_status bring_home(cd_plan_exec_maker *k, cdmpp_err *err) {
    const cd_shard_net *net = k->a->net;
    k->op = net->n_op;
    for (uint32_t t = 0; t < net->n_tensor; t++) {
        k->n_after = 0;
        if (net->tensor[t].result)
            CD_TRY(cd_plan_exec_home(k, t, first_alive(k->r), &k->m->home[t], err));
    }
    return CDMPP_OK;
}

/* Devices come last: only when all actions exist, copies too, is it known which devices have
 * work. */
cdmpp_status cd_plan_exec_actions(cd_plan_exec *m, const struct cd_plan_run *r, cdmpp_err *err) {
    cd_plan_exec_maker k = {.m = m, .r = r, .a = &r->ask};
    cdmpp_status st = make_tensors(&k, err);
    if (!st) st = give_inputs(&k, err);
    for (uint32_t i = 0; i < m->n_piece && !st; i++) {
        k.op = m->piece[i].op;
        st = cd_err_key(err, add_piece(&k, &m->piece[i], err), k.a->net->op[k.op].name);
    }
    if (!st) st = bring_home(&k, err);
    cd_mem_free(k.after);
    if (!st) make_devices(m, r);
    m->dn.buffer = m->buffer;
    m->dn.action = m->action;
    return st;
}
