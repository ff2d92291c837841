/* What all parts of an operator have in common (task of the whole, its schedule) and what each
 * device adds (target, factors). Prepared once, before any part is scored, so that scoring only
 * reads it. */
#include <stdlib.h>
#include <string.h>

#include "features/sketch/sketch.h"
#include "predictor/partition/shard/shard_cost_internal.h"

static cd_str text(const char *s) { return (cd_str){s ? s : "", s ? strlen(s) : 0}; }
static bool same(const char *a, const char *b) { return !a == !b && (!a || !strcmp(a, b)); }

/* ---- bytes ---- */
int64_t cd_shard_cost_weights(const cd_shard_cost *p, uint32_t op, const cd_te_shard *part) {
    const cd_shard_net_op *o = &p->a.net->op[op];
    int64_t sum = 0;
    for (uint32_t k = 0, n = part ? part->n_arg : o->n_arg; k + 1 < n; k++) {
        const uint32_t of = part ? part->of[k] : k;
        if (of >= o->n_arg) continue; /* a partial sum */
        const cd_shard_net_tensor *t = &p->a.net->tensor[o->arg[of]];
        if (!t->constant || p->first[o->arg[of]] != op) continue;
        int64_t n_element = part ? cd_box_elements(&part->box[k]) : 1;
        for (uint32_t d = 0; !part && d < t->rank; d++) n_element *= t->shape[d];
        sum += n_element * t->element_bytes;
    }
    return sum;
}

int64_t cd_shard_cost_moved(const cd_te_dag *dag) {
    int64_t sum = 0;
    for (uint32_t k = 0; k < dag->n_arg; k++) {
        const cd_te_op *op = &dag->op[dag->tensor_op[dag->arg[k]]];
        int64_t n = cd_expr_dtype_bytes(op->dtype[0]);
        for (uint32_t d = 0; d < op->rank; d++)
            if (__builtin_mul_overflow(n, op->shape[d], &n)) return -1;
        if (__builtin_add_overflow(sum, n, &sum)) return -1;
    }
    return sum;
}

static double bytes_of_tensor(const cd_shard_net_tensor *t) {
    double n = t->element_bytes;
    for (uint32_t d = 0; d < t->rank; d++) n *= (double)t->shape[d];
    return n;
}

/* A table of which rows are picked: no pass reads it whole. */
static bool is_table(const cd_shard_net *net, uint32_t tensor) {
    for (uint32_t i = 0; i < net->n_op; i++) {
        const cd_shard_net_op *o = &net->op[i];
        for (uint32_t k = 0; k + 1 < o->n_arg; k++)
            if (o->arg[k] == tensor) return cd_node_cost_picks_rows(o->type);
    }
    return false;
}

/* What the network reads and writes in a pass, and its weights. */
static cd_node_cost_bytes bytes_of_net(const cd_shard_net *net) {
    cd_node_cost_bytes sum = {0};
    for (uint32_t i = 0; i < net->n_op; i++)
        for (uint32_t k = 0; k < net->op[i].n_arg; k++)
            sum.traffic += bytes_of_tensor(&net->tensor[net->op[i].arg[k]]);
    for (uint32_t i = 0; i < net->n_tensor; i++)
        if (net->tensor[i].constant && !is_table(net, i))
            sum.weights += bytes_of_tensor(&net->tensor[i]);
    return sum;
}

/* ---- devices ---- */
/* Sketches need hardware limits: those that a record of such a device names, else the target's
 * defaults. */
static cd_hardware hardware_of(const cd_shard_cost *p, bool gpu) {
    for (uint32_t i = 0; i < p->a.net->n_op; i++)
        if (p->rule[i].record && p->rule[i].gpu == gpu && p->rule[i].record->has_hardware)
            return p->rule[i].record->hardware;
    return cd_target_hardware(gpu, 1, 32);
}

/* The device's own target; if it has none, the target of the schedules that such a device can run,
 * so that all devices without a target run the same programs. NULL: no memory. */
static const char *target_of(cd_shard_cost *p, const cd_machine_device *d,
                             const cd_shard_cost_model *by) {
    if (d->target) return d->target;
    const int k = by->model && by->device
                      ? cd_model_find_device(by->model, by->device, strlen(by->device))
                      : -1;
    const bool gpu = k >= 0 && cd_model_device_is_gpu(by->model, (size_t)k);
    if (d->kind && !strcmp(d->kind, "opencl")) return "opencl";
    for (uint32_t i = 0; i < p->a.net->n_op; i++)
        if (p->rule[i].record && p->rule[i].gpu == gpu)
            return cd_str_dup(&p->arena, p->rule[i].record->target);
    return gpu ? "cuda" : "llvm";
}

static cdmpp_status kind_of(cd_shard_cost *p, const cd_shard_cost_model *by, const char *target,
                            uint32_t *k, cdmpp_err *err) {
    *k = 0;
    while (*k < p->n_kind &&
           !(p->kind[*k].model == by->model && p->kind[*k].stands == by->stands &&
             p->kind[*k].numbers == by->numbers && same(p->kind[*k].as, by->device) &&
             same(p->kind[*k].target, target)))
        ++*k;
    if (*k < p->n_kind) return CDMPP_OK;
    const bool gpu = cd_target_is_gpu(text(target));
    p->kind[p->n_kind++] = (cd_shard_cost_kind){.model = by->model,
                                                .target = target,
                                                .as = by->device,
                                                .gpu = gpu,
                                                .stands = by->stands,
                                                .numbers = by->numbers,
                                                .hardware = hardware_of(p, gpu)};
    return by->model ? cd_node_cost_bias_read(by->model, by->stands ? NULL : by->device,
                                              &p->kind[*k].best, err)
                     : CDMPP_OK;
}

static cdmpp_status add_device(cd_shard_cost *p, uint32_t i, cd_node_cost_bytes bytes,
                               cdmpp_err *err) {
    const cd_machine_device *m = &p->a.machine->device[i];
    const cd_shard_cost_model by =
        p->a.model ? p->a.model[i] : (cd_shard_cost_model){.device = m->as};
    const cd_device *d = cd_node_cost_device(p->a.devices, by.model, m->as);
    cd_shard_cost_device *o = &p->device[i];
    const char *target = target_of(p, m, &by);
    if (!target) return CD_FAIL(err, ENOMEM, "target");
    CD_TRY(kind_of(p, &by, target, &o->kind, err));
    o->here = by.here;
    o->there = by.there;
    o->factor = m->scale * (m->times ? m->times : 1);
    const char *stands = by.stands && !by.here ? by.device : NULL; /* `here`: of another kind */
    const char *whose = cd_network_cost_whose(p->a.costs, m->as, d, stands);
    o->law = cd_node_cost_law(p->a.costs, whose, d, bytes);
    o->peak_bytes_per_s = p->a.machine->contention.peak_bytes_per_s;
    if (!(o->peak_bytes_per_s > 0))
        o->peak_bytes_per_s = d && d->bandwidth_gb_s > 0 ? d->bandwidth_gb_s * 1e9 : 0;
    return CDMPP_OK;
}

/* ---- operators ---- */
static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *reason(cd_shard_cost *p, const cdmpp_err *why) {
    char buf[512];
    cdmpp_err_format(why, buf, sizeof buf);
    return cd_str_dup(&p->arena, text(buf));
}

static cdmpp_status read_record(cd_shard_cost *p, cd_shard_cost_rule *r, cdmpp_err *err) {
    cd_record *rec = CD_NEW(&p->arena, cd_record);
    if (!rec) return CD_FAIL(err, ENOMEM, "schedule of %s", r->sched->key);
    cdmpp_err why = {0};
    const cdmpp_status st = cd_record_read(&p->arena, r->sched->line, r->sched->len, rec, &why);
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "schedule of %s", r->sched->key);
    if (st) r->sched = NULL; /* cannot happen: the database read its lines before */
    else r->record = rec;
    return CDMPP_OK;
}

/* Operators are added in order, so first[] becomes the first reader of each tensor: that one pays
 * for loading a weight. A whole that cannot become a task keeps the reason and is no error: its
 * shards may still have answers. */
static cdmpp_status add_rule(cd_shard_cost *p, uint32_t i, cdmpp_err *err) {
    const cd_shard_net_op *o = &p->a.net->op[i];
    cd_shard_cost_rule *r = &p->rule[i];
    cdmpp_err why = {0};
    for (uint32_t k = 0; k + 1 < o->n_arg; k++)
        if (p->first[o->arg[k]] == UINT32_MAX) p->first[o->arg[k]] = i;
    if (!o->key || !o->dag) {
        r->why = o->dag ? "no workload key" : o->why ? o->why : "nobody defines it";
        return CDMPP_OK;
    }
    const cdmpp_status st = cd_task_registry_add(p->tasks, text(o->key), o->dag, &r->task, &why);
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "task");
    if (st && !(r->why = reason(p, &why))) return CD_FAIL(err, ENOMEM, "reason");
    if (st) r->task = NULL;
    r->plain =
        p->a.n_plain && bsearch(&o->key, p->a.plain, p->a.n_plain, sizeof *p->a.plain, by_text);
    r->sched = p->a.schedules ? cd_schedule_db_find(p->a.schedules, o->key) : NULL;
    if (r->sched) CD_TRY(read_record(p, r, err));
    r->gpu = r->record && cd_target_is_gpu(r->record->target);
    return CDMPP_OK;
}

cdmpp_status cd_shard_cost_prepare_rules(cd_shard_cost *p, cdmpp_err *err) {
    const cd_shard_net *net = p->a.net;
    p->rule = CD_NEWN(&p->arena, cd_shard_cost_rule, (size_t)net->n_op + 1);
    p->first = CD_NEWN(&p->arena, uint32_t, (size_t)net->n_tensor + 1);
    if (!p->rule || !p->first) return CD_FAIL(err, ENOMEM, "%u operators", net->n_op);
    memset(p->first, 0xff, ((size_t)net->n_tensor + 1) * sizeof *p->first);
    for (uint32_t i = 0; i < net->n_op; i++) CD_TRY(add_rule(p, i, err));
    const cd_node_cost_bytes bytes = bytes_of_net(net);
    for (uint32_t i = 0; i < p->a.machine->n; i++) CD_TRY(add_device(p, i, bytes, err));
    return CDMPP_OK;
}
