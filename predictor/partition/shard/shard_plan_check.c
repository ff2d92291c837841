/* The request of a plan checked before anything is computed, and its defaults filled in: later
 * files rely on what is checked here. */
#include <math.h>

#include "predictor/partition/shard/shard_plan_internal.h"

static double or (double v, double otherwise) { return isnan(v) ? otherwise : v; }

static cdmpp_status settings(cd_shard_planner *s, const cd_shard_plan_options *a, cdmpp_err *err) {
    s->granules = a->granules ? a->granules : 8;
    s->margin = or (a->margin, 0.05), s->least_s = or (a->least_s, 20e-6),
    s->cover = or (a->cover, 1), s->fixed = or (a->fixed_share, 0.5);
    if (s->granules < 2 || s->granules > 256)
        return CD_FAIL(err, ERANGE, "%u granules: expected 2 to 256", s->granules);
    if (!(s->margin >= 0 && s->margin <= 1))
        return CD_FAIL(err, ERANGE, "margin %g: expected 0 to 1", s->margin);
    if (!(s->least_s >= 0))
        return CD_FAIL(err, ERANGE, "least saving of %g s: expected 0 or more", s->least_s);
    if (!(a->steady >= 0 && a->steady <= 1))
        return CD_FAIL(err, ERANGE, "steady %g: expected 0 to 1", a->steady);
    if (!(s->cover >= 0 && s->cover <= 1))
        return CD_FAIL(err, ERANGE, "cover %g: expected 0 to 1", s->cover);
    if (!(s->fixed >= 0 && s->fixed <= 1))
        return CD_FAIL(err, ERANGE, "fixed share %g: expected 0 to 1", s->fixed);
    return CDMPP_OK;
}

static cdmpp_status machine(cd_shard_planner *s, const cd_machine *m, cdmpp_err *err) {
    if (!m->n || m->n > CD_MACHINE_DEVICES)
        return CD_FAIL(err, EINVALID, "%u devices: expected 1 to %d", m->n, CD_MACHINE_DEVICES);
    for (uint32_t d = 0; d < m->n; d++) {
        const cd_machine_device *v = &m->device[d];
        if (!(v->launch_s >= 0 && isfinite(v->launch_s) && v->sync_s >= 0 && isfinite(v->sync_s)))
            return CD_FAIL(err, ERANGE, "device %s: launch %g s, sync %g s", v->name, v->launch_s,
                           v->sync_s);
        if (!(v->mem_gb >= 0 && isfinite(v->mem_gb)))
            return CD_FAIL(err, ERANGE, "device %s: a memory of %g GB", v->name, v->mem_gb);
        for (uint32_t e = 0; e < m->n; e++)
            s->link[d][e] = cd_link_table_find(&m->links, v->name, m->device[e].name);
    }
    s->contention = m->contention;
    if (!(s->contention.beside >= 1)) s->contention.beside = 1;
    if (!(s->contention.turn >= 1)) s->contention.turn = 1;
    return CDMPP_OK;
}

/* A tensor with more dimensions than a box has is flattened to one dimension: its boxes can only be
 * runs of memory. The limit on elements keeps sizes in bytes within 64 bits. */
static cdmpp_status tensor(cd_shard_planner *s, uint32_t t, cdmpp_err *err) {
    const cd_shard_net_tensor *v = &s->net->tensor[t];
    cd_shard_planner_shape *o = &s->shape[t];
    int64_t *flat;
    o->elements = 1;
    for (uint32_t d = 0; d < v->rank; d++)
        if (v->shape[d] < 0 || __builtin_mul_overflow(o->elements, v->shape[d], &o->elements) ||
            o->elements > INT64_MAX / 64)
            return CD_FAIL(err, ERANGE, "tensor %s: %lld elements in dimension %u", v->name,
                           (long long)v->shape[d], d);
    if (v->from != CD_SHARD_NET_OUTSIDE && v->from >= s->net->n_op)
        return CD_FAIL(err, EINVALID, "tensor %s is of operator %u of %u", v->name, v->from,
                       s->net->n_op);
    o->rank = v->rank, o->n = v->shape;
    if (v->rank <= CD_BOX_RANK) return CDMPP_OK;
    if (!(flat = CD_NEW(&s->arena, int64_t))) return CD_FAIL(err, ENOMEM, "tensor %s", v->name);
    *flat = o->elements, o->rank = 1, o->n = flat;
    return CDMPP_OK;
}

static int64_t elements_of(const cd_te_dag *dag, uint32_t arg) {
    const cd_te_op *o = &dag->op[dag->tensor_op[dag->arg[arg]]];
    int64_t n = 1;
    for (uint32_t d = 0; d < o->rank; d++)
        if (__builtin_mul_overflow(n, o->shape[d], &n)) return -1;
    return n;
}

/* Operators must come in an order to run in, and a definition must agree with the network's tensors
 * in the number of elements of each argument. Shapes may differ, because a view has the shape of
 * the definition. */
static cdmpp_status operator_of(const cd_shard_planner *s, uint32_t k, cdmpp_err *err) {
    const cd_shard_net_op *o = &s->net->op[k];
    if (o->dag && o->dag->n_arg != o->n_arg)
        return CD_FAIL(err, EINVALID, "operator %s has %u arguments, its definition %u", o->name,
                       o->n_arg, o->dag->n_arg);
    if (o->pin != UINT32_MAX && o->pin >= s->n_device)
        return CD_FAIL(err, EINVALID, "operator %s is pinned to device %u of %u", o->name, o->pin,
                       s->n_device);
    for (uint32_t i = 0; i < o->n_arg; i++) {
        if (o->arg[i] >= s->net->n_tensor)
            return CD_FAIL(err, EINVALID, "operator %s reads tensor %u of %u", o->name, o->arg[i],
                           s->net->n_tensor);
        const cd_shard_net_tensor *t = &s->net->tensor[o->arg[i]];
        if (t->from != CD_SHARD_NET_OUTSIDE && t->from > k)
            return CD_FAIL(
                err, EINVALID,
                "operator %s reads %s of %s, which comes behind it: a cycle, or a wrong order",
                o->name, t->name, s->net->op[t->from].name);
        if (o->dag && elements_of(o->dag, i) != s->shape[o->arg[i]].elements)
            return CD_FAIL(err, EINVALID,
                           "operator %s: argument %u has %lld elements, tensor %s %lld", o->name, i,
                           (long long)elements_of(o->dag, i), t->name,
                           (long long)s->shape[o->arg[i]].elements);
    }
    return CDMPP_OK;
}

cdmpp_status cd_shard_planner_begin(cd_shard_planner *s, const cd_shard_plan_options *a,
                                    cdmpp_err *err) {
    *s = (cd_shard_planner){.ask = a, .net = a->net, .m = a->machine, .n_device = a->machine->n};
    CD_TRY(settings(s, a, err));
    CD_TRY(machine(s, a->machine, err));
    cd_shard_planner_memory_limits(s);
    s->shape = CD_NEWN(&s->arena, cd_shard_planner_shape, (size_t)s->net->n_tensor + 1);
    s->node = CD_NEWN(&s->arena, cd_shard_planner_node, (size_t)s->net->n_op + 1);
    s->kind = CD_NEWN(&s->arena, cd_shard_planner_kind, (size_t)s->net->n_op + 1);
    if (!s->shape || !s->node || !s->kind)
        return CD_FAIL(err, ENOMEM, "%u operators", s->net->n_op);
    for (uint32_t t = 0; t < s->net->n_tensor; t++) CD_TRY(tensor(s, t, err));
    for (uint32_t k = 0; k < s->net->n_op; k++) CD_TRY(operator_of(s, k, err));
    return CDMPP_OK;
}
