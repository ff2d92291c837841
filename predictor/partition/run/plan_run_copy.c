/* Deep copies of plans, because a run keeps its plan longer than the caller; and the check that a
 * plan fits the network and the machine that it is to run on. */
#include <string.h>

#include "predictor/partition/run/plan_run_internal.h"

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

/* `bad` collects failed allocations, so that one test at the end serves all copies. */
cdmpp_status cd_plan_exec_plan_copy(const cd_shard_plan *from, cd_shard_plan **out,
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

cdmpp_status cd_plan_exec_plan_fits(const cd_shard_plan *p, const cd_shard_net *net,
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
