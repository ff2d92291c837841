/* Times of shards by a cost model. Every different question (operator, shard, kind of device) has
 * one entry, which is scored once; a list of questions is scored on all threads, wholes before
 * shards, because a shard's time is compared with the whole's. */
#include "predictor/partition/shard/shard_cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "features/sketch/sketch.h"
#include "predictor/partition/shard/shard_cost_internal.h"

/* What all parts of an operator have in common (task of the whole, its schedule) and what each
 * device adds (target, factors). Prepared once, before any part is scored, so that scoring only
 * reads it. */

static cd_str text(const char *s) { return (cd_str){s ? s : "", s ? strlen(s) : 0}; }
static bool same(const char *a, const char *b) { return !a == !b && (!a || !strcmp(a, b)); }

/* ---- bytes ---- */
/* Bytes of weights that a part (NULL: the whole) reads and that no operator before it reads. */
static int64_t shard_cost_weights(const cd_shard_cost *p, uint32_t op, const cd_te_shard *part) {
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

/* Fills rules, devices and first: everything that does not depend on a part. Errors: ENOMEM. */
static cdmpp_status shard_cost_prepare_rules(cd_shard_cost *p, cdmpp_err *err) {
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

/* ---- the object ---- */
static cdmpp_status check(const cd_shard_cost_options *a, cdmpp_err *err) {
    if (!a->machine || !a->net || !a->machine->n || a->machine->n > CD_MACHINE_DEVICES)
        return CD_FAIL(err, EINVALID, "no machine, or no network");
    for (uint32_t i = 0; i < a->machine->n; i++)
        if (!(a->machine->device[i].scale > 0) || !isfinite(a->machine->device[i].scale))
            return CD_FAIL(err, EINVALID, "scale of device %s is %g", a->machine->device[i].name,
                           a->machine->device[i].scale);
    return CDMPP_OK;
}

static cdmpp_status fill(cd_shard_cost *p, cdmpp_err *err) {
    CD_TRY(cd_task_registry_new(&p->tasks, err));
    CD_TRY(shard_cost_prepare_rules(p, err));
    p->n_worker = cd_threads_count(p->a.pool);
    p->worker = CD_NEWN(&p->arena, cd_shard_cost_worker, (size_t)p->n_worker);
    for (int k = 0; p->worker && k < p->n_worker; k++)
        if (!(p->worker[k].scorer = CD_NEWN(&p->arena, cd_scorer *, p->n_kind + 1)))
            return CD_FAIL(err, ENOMEM, "workers");
    return p->worker ? CDMPP_OK : CD_FAIL(err, ENOMEM, "workers");
}

cdmpp_status cd_shard_cost_new(const cd_shard_cost_options *a, cd_shard_cost **out,
                               cdmpp_err *err) {
    CD_TRY(check(a, err));
    cd_shard_cost *p = cd_mem_zalloc(1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "costs of parts");
    p->a = *a;
    const cdmpp_status st = fill(p, err);
    if (st) cd_shard_cost_free(p);
    else *out = p;
    return st;
}

/* Entries lie in the arena, but their buffers are the heap's: they go first. */
void cd_shard_cost_free(cd_shard_cost *p) {
    if (!p) return;
    for (uint32_t i = 0; i < p->n_entry; i++) {
        cd_buf_free(&p->entry[i]->line);
        cd_buf_free(&p->entry[i]->why);
    }
    for (int k = 0; p->worker && k < p->n_worker; k++) {
        for (uint32_t i = 0; p->worker[k].scorer && i < p->n_kind; i++)
            cd_scorer_free(p->worker[k].scorer[i]);
        cd_arena_free(&p->worker[k].mem);
    }
    for (uint32_t i = 0; i < p->n_kind; i++) cd_node_cost_bias_free(&p->kind[i].best);
    cd_dict_free(&p->index);
    cd_mem_free(p->entry);
    cd_task_registry_free(p->tasks);
    cd_arena_free(&p->arena);
    cd_mem_free(p);
}

const cd_task_registry *cd_shard_cost_tasks(const cd_shard_cost *p) { return p->tasks; }

size_t cd_shard_cost_asked(const cd_shard_cost *p, size_t *failed) {
    if (failed) *failed = p->n_failed;
    return p->n_asked;
}

/* ---- questions ---- */
typedef struct {
    uint32_t op, device;
    const cd_te_shard *part; /* NULL: the whole */
    const char *key;         /* workload key; "": none */
    char name[33];           /* of its entry: a hash of key, whole operator and kind of device */
} question;

/* A part that covers all of its axis is the whole operator. */
static bool is_whole(const cd_shard_net_op *o, const cd_te_shard *part) {
    return !part || (o->key && !strcmp(part->workload_key, o->key)) ||
           (o->dag && cd_te_dag_equal(part->dag, o->dag));
}

static question understood(const cd_shard_cost *p, uint32_t op, uint32_t device,
                           const cd_te_shard *part) {
    const cd_shard_net_op *o = &p->a.net->op[op];
    question q = {.op = op, .device = device, .part = is_whole(o, part) ? NULL : part};
    cd_hash h = cd_hash_start();
    const cd_str whole = text(o->key ? o->key : o->name);
    q.key = q.part ? part->workload_key : o->key ? o->key : "";
    cd_hash_add(&h, q.key, strlen(q.key));
    cd_hash_add(&h, whole.p, whole.n);
    cd_hash_add(&h, &p->device[device].kind, sizeof p->device[device].kind);
    snprintf(q.name, sizeof q.name, "%016llx%016llx", (unsigned long long)h.a,
             (unsigned long long)h.b);
    return q;
}

static cdmpp_status bad_place(const cd_shard_cost *p, uint32_t op, uint32_t device,
                              cdmpp_err *err) {
    if (op >= p->a.net->n_op)
        return CD_FAIL(err, EINVALID, "operator %u of %u", op, p->a.net->n_op);
    return device < p->a.machine->n
               ? CDMPP_OK
               : CD_FAIL(err, EINVALID, "device %u of %u", device, p->a.machine->n);
}

/* The task of a question, or why there is none. */
static cdmpp_status give_task(cd_shard_cost *p, const question *q, cd_shard_cost_entry *e,
                              cdmpp_err *err) {
    const cd_shard_cost_rule *r = &p->rule[q->op];
    cdmpp_err why = {0};
    char buf[512];
    e->task = q->part ? NULL : r->task;
    if (!q->part && !e->task) cd_buf_puts(&e->why, r->why);
    if (!q->part) return e->why.oom ? CD_FAIL(err, ENOMEM, "reason") : CDMPP_OK;
    const cdmpp_status st =
        cd_task_registry_add(p->tasks, text(q->key), q->part->dag, &e->task, &why);
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "task");
    if (!st) return CDMPP_OK;
    e->task = NULL;
    cd_buf_puts(&e->why, cdmpp_err_format(&why, buf, sizeof buf));
    return e->why.oom ? CD_FAIL(err, ENOMEM, "reason") : CDMPP_OK;
}

/* of: the entry of the whole operator, NULL if q asks for the whole. A shard without a task gets an
 * entry too: its reason is kept, and the question is not examined again. */
static cdmpp_status make_entry(cd_shard_cost *p, const question *q, cd_shard_cost_entry *of,
                               cd_shard_cost_entry **out, cdmpp_err *err) {
    if (CD_GROW(p->entry, p->n_entry, p->cap_entry)) return CD_FAIL(err, ENOMEM, "parts");
    cd_shard_cost_entry *e = CD_NEW(&p->arena, cd_shard_cost_entry);
    if (!e) return CD_FAIL(err, ENOMEM, "part");
    *e = (cd_shard_cost_entry){.op = q->op,
                               .kind = p->device[q->device].kind,
                               .of = of,
                               .moved = -1,
                               .seconds = HUGE_VAL,
                               .low = 1,
                               .high = 1};
    cdmpp_status st = give_task(p, q, e, err);
    uint32_t number; /* every name has an entry, so it is n_entry */
    if (!st) st = cd_dict_add(&p->index, text(q->name), &number, err);
    if (st) {
        cd_buf_free(&e->why);
        return st;
    }
    if (e->task) e->moved = cd_shard_cost_moved(e->task->dag);
    p->entry[p->n_entry++] = e;
    *out = e;
    return CDMPP_OK;
}

/* The entry of a question. The entry of the whole is made first, because parts are compared with
 * it. */
static cdmpp_status entry_of(cd_shard_cost *p, const question *q, cd_shard_cost_entry **out,
                             cdmpp_err *err) {
    cd_shard_cost_entry *of = NULL;
    uint32_t at;
    if (cd_dict_find(&p->index, text(q->name), &at)) {
        *out = p->entry[at];
        return CDMPP_OK;
    }
    if (q->part) {
        const question whole = understood(p, q->op, q->device, NULL);
        CD_TRY(entry_of(p, &whole, &of, err));
    }
    return make_entry(p, q, of, out, err);
}

/* ---- scores ---- */
typedef struct {
    cd_shard_cost *p;
    cd_shard_cost_entry **entry; /* (n) */
} scoring;

static cdmpp_status score_some(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const scoring *s = ctx;
    for (size_t i = beg; i < end; i++)
        CD_TRY(cd_shard_cost_score(s->p, &s->p->worker[w], s->entry[i], err));
    return CDMPP_OK;
}

static void count(cd_shard_cost *p, cd_shard_cost_entry *e) {
    if (e->counted || !e->asked) return;
    e->counted = true;
    p->n_asked++;
    p->n_failed += !(e->seconds < HUGE_VAL);
}

static bool is_due(cd_shard_cost_entry *e) {
    const bool due = e && !e->asked && !e->due;
    if (due) e->due = true;
    return due;
}

/* entry (n): first the wholes of those that are due, then the parts. list (n) is scratch. */
static cdmpp_status score_all(cd_shard_cost *p, cd_shard_cost_entry **entry, size_t n,
                              cd_shard_cost_entry **list, cdmpp_err *err) {
    for (int parts = 0; parts < 2; parts++) {
        size_t m = 0;
        for (size_t i = 0; i < n; i++) {
            cd_shard_cost_entry *e = parts || !entry[i]->of ? entry[i] : entry[i]->of;
            if (is_due(e)) list[m++] = e;
        }
        scoring s = {p, list};
        const cdmpp_status st = cd_threads_run(m > 1 ? p->a.pool : NULL, m, 1, score_some, &s, err);
        for (size_t i = 0; i < m; i++) list[i]->due = false;
        CD_TRY(st);
    }
    for (size_t i = 0; i < n; i++) count(p, entry[i]);
    return CDMPP_OK;
}

static cdmpp_status find_entries(cd_shard_cost *p, const cd_shard_cost_want *w, size_t n,
                                 cd_shard_cost_entry **entry, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        CD_TRY(bad_place(p, w[i].op, w[i].device, err));
        const question q = understood(p, w[i].op, w[i].device, w[i].part);
        CD_TRY(entry_of(p, &q, &entry[i], err));
    }
    return CDMPP_OK;
}

cdmpp_status cd_shard_cost_prepare(void *ctx, const cd_shard_cost_want *w, size_t n,
                                   cdmpp_err *err) {
    cd_shard_cost *p = ctx;
    cd_shard_cost_entry **list = cd_mem_alloc((2 * n + 1) * sizeof(cd_shard_cost_entry *));
    if (!list) return CD_FAIL(err, ENOMEM, "%zu parts", n);
    cdmpp_status st = find_entries(p, w, n, list, err);
    if (!st) st = score_all(p, list, n, list + n, err);
    cd_mem_free(list);
    return st;
}

static cdmpp_status answered(cd_shard_cost *p, const question *q, cd_shard_cost_entry **e,
                             cdmpp_err *err) {
    cd_shard_cost_entry *list;
    CD_TRY(entry_of(p, q, e, err));
    if (!(*e)->asked) return score_all(p, e, 1, &list, err);
    count(p, *e);
    return CDMPP_OK;
}

/* ---- answers ---- */
/* What a time of the model is multiplied by where its device is of another kind. Work that nobody
 * knows goes by the bandwidths. */
static double of_kind(const cd_shard_cost_device *d, const cd_shard_cost_entry *e) {
    if (!d->here || !e->task) return 1;
    const double flop = cd_task_flop(e->task), bytes = e->moved > 0 ? (double)e->moved : 1;
    const double ratio = cd_model_set_rooflines(d->here, d->there, flop, bytes);
    return ratio > 0 ? ratio : 1;
}

cdmpp_status cd_shard_cost_time(void *ctx, uint32_t op, uint32_t device, const cd_te_shard *part,
                                cd_shard_plan_estimate *out, cdmpp_err *err) {
    cd_shard_cost *p = ctx;
    CD_TRY(bad_place(p, op, device, err));
    if (p->a.allow_missing && !p->a.net->op[op].dag && !device) {
        *out = (cd_shard_plan_estimate){0};
        return CDMPP_OK;
    }
    const question q = understood(p, op, device, part);
    const cd_shard_cost_device *d = &p->device[device];
    cd_shard_cost_entry *e = NULL;
    CD_TRY(answered(p, &q, &e, err));
    out->seconds = e->seconds < HUGE_VAL
                       ? d->factor * cd_node_cost_law_s(&d->law, e->seconds * of_kind(d, e),
                                                        shard_cost_weights(p, op, q.part))
                       : HUGE_VAL;
    out->memory_share = 0;
    if (e->moved > 0 && d->peak_bytes_per_s > 0 && out->seconds < HUGE_VAL)
        out->memory_share = fmin(1, (double)e->moved / (d->peak_bytes_per_s * out->seconds));
    return CDMPP_OK;
}

/* A device of another kind needs something else at best than the one that was asked about. */
cdmpp_status cd_shard_cost_doubt(cd_shard_cost *p, uint32_t op, uint32_t device,
                                 cd_shard_cost_doubts *out, cdmpp_err *err) {
    *out = (cd_shard_cost_doubts){.low = 1, .high = 1};
    CD_TRY(bad_place(p, op, device, err));
    const question q = understood(p, op, device, NULL);
    const cd_shard_cost_device *d = &p->device[device];
    cd_shard_cost_entry *e = NULL;
    CD_TRY(answered(p, &q, &e, err));
    if (e->seconds < HUGE_VAL)
        *out = (cd_shard_cost_doubts){e->spread, e->low, e->high,
                                      d->here ? 0 : e->least_s * d->factor};
    return CDMPP_OK;
}

cdmpp_status cd_shard_cost_unlike(cd_shard_cost *p, uint32_t device, double of_s[CD_N_UNLIKE],
                                  double *share, cdmpp_err *err) {
    double all = 0, unlike = 0;
    memset(of_s, 0, CD_N_UNLIKE * sizeof *of_s);
    for (uint32_t op = 0; op < p->a.net->n_op; op++) {
        const question q = understood(p, op, device, NULL);
        cd_shard_cost_entry *e = NULL;
        CD_TRY(answered(p, &q, &e, err));
        if (!(e->seconds < HUGE_VAL)) continue;
        all += e->seconds;
        unlike += e->reason ? e->seconds : 0;
        for (uint32_t b = 0; b < CD_N_UNLIKE; b++) of_s[b] += e->reason >> b & 1 ? e->seconds : 0;
    }
    for (uint32_t b = 0; b < CD_N_UNLIKE; b++) of_s[b] /= all > 0 ? all : 1;
    *share = all > 0 ? unlike / all : 0;
    return CDMPP_OK;
}

cdmpp_status cd_shard_cost_types(cd_shard_cost *p, uint32_t device, double share[CD_TE_N_LEAST],
                                 cdmpp_err *err) {
    double all = 0;
    memset(share, 0, CD_TE_N_LEAST * sizeof *share);
    for (uint32_t op = 0; op < p->a.net->n_op; op++) {
        const question q = understood(p, op, device, NULL);
        cd_shard_cost_entry *e = NULL;
        CD_TRY(answered(p, &q, &e, err));
        if (!(e->seconds < HUGE_VAL)) continue;
        all += e->seconds;
        for (int t = 0; t < CD_TE_N_LEAST; t++)
            share[t] +=
                e->reason & CD_UNLIKE_DTYPE && e->task->dag->least.flop[t] > 0 ? e->seconds : 0;
    }
    for (int t = 0; t < CD_TE_N_LEAST; t++) share[t] /= all > 0 ? all : 1;
    return CDMPP_OK;
}

cdmpp_status cd_shard_cost_schedule(cd_shard_cost *p, uint32_t op, uint32_t device,
                                    const cd_te_shard *part, const char **line, cdmpp_err *err) {
    cd_shard_cost_entry *e = NULL;
    CD_TRY(bad_place(p, op, device, err));
    const question q = understood(p, op, device, part);
    CD_TRY(answered(p, &q, &e, err));
    *line = e->line.n ? e->line.p : NULL;
    return CDMPP_OK;
}

const char *cd_shard_cost_why(void *ctx, uint32_t op, uint32_t device, const cd_te_shard *part) {
    const cd_shard_cost *p = ctx;
    if (bad_place(p, op, device, NULL)) return NULL;
    const question q = understood(p, op, device, part);
    uint32_t at;
    return cd_dict_find(&p->index, text(q.name), &at) && p->entry[at]->why.n ? p->entry[at]->why.p
                                                                             : NULL;
}
