/* Rules on the network: what they allow goes into the plan of shards, whole operators are placed by
 * cost under them, and their regions become sources. */
#include "predictor/partition/plan/partition_rules.h"

#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/partition/plan/partition_internal.h"

/* ---- rules ---- */

static cdmpp_status read_rules(cd_partition_rules *o, const char *path, cdmpp_err *err) {
    char text[256];
    if (path) return cd_offload_read(path, &o->file, err);
    snprintf(text, sizeof text, "host %.200s\n", o->device[0]);
    return cd_offload_parse("(no rules)", text, strlen(text), &o->file, err);
}

/* What the plan of shards may do with each operator. It knows no match of several groups, so groups
 * that only such a match allows are allowed one by one only where nothing else is. */
static cdmpp_status into_net(cd_partition_rules *o, cd_shard_net *net, cdmpp_err *err) {
    cd_shard_net_op *op = CD_NEWN(&o->arena, cd_shard_net_op, (size_t)net->n_op + 1);
    if (!op) return CD_FAIL(err, ENOMEM, "%u operators", net->n_op);
    memcpy(op, net->op, net->n_op * sizeof *op);
    for (uint32_t k = 0; k < net->n_op && k < o->rules.n_group; k++) {
        const cd_offload_group *g = &o->rules.group[k];
        const bool all = g->allowed == (1u << o->rules.n_device) - 1;
        op[k].allowed = all ? 0 : g->allowed ? g->allowed : g->together;
        if (g->pin == CD_PLACE_FREE) continue;
        op[k].pin = g->pin;
        op[k].pin_why = g->pin_why;
    }
    net->op = op;
    return CDMPP_OK;
}

cdmpp_status cd_partition_rules_open(cd_partition_rules *o, const char *path,
                                     const cd_network_loaded *network, const cd_machine *machine,
                                     cd_shard_net *net, cdmpp_err *err) {
    *o = (cd_partition_rules){.network = network, .machine = machine, .given = path != NULL};
    for (uint32_t d = 0; d < machine->n; d++) o->device[d] = machine->device[d].name;
    CD_TRY(read_rules(o, path, err));
    CD_TRY(cd_offload_match_apply(
        &(cd_offload_match_options){network, o->file, machine->n, o->device}, &o->rules, err));
    return net ? into_net(o, net, err) : CDMPP_OK;
}

void cd_partition_rules_close(cd_partition_rules *o) {
    cd_offload_net_plan_free(&o->plan);
    cd_offload_match_done(&o->rules);
    cd_offload_free(o->file);
    cd_arena_free(&o->arena);
    *o = (cd_partition_rules){0};
}

/* ---- the placement ---- */

/* Bytes a second of a link between devices of one memory: nothing is copied there, the reader only
 * waits. */
static const double IN_PLACE = 1e18;

/* Links between the devices of a machine for a placement, to[] has room for n * n; how many.
 * Devices of one memory have one that copies nothing: the reader only waits. */
static uint32_t partition_links(const cd_machine *m, cd_place_link *to) {
    uint32_t n = 0;
    for (uint32_t a = 0; a < m->n; a++)
        for (uint32_t b = 0; b < m->n; b++) {
            const cd_link *l = cd_link_table_find(&m->links, m->device[a].name, m->device[b].name);
            const bool same = m->device[a].memory == m->device[b].memory;
            if (a == b || (!same && !l)) continue;
            to[n++] =
                (cd_place_link){.from = a,
                                .to = b,
                                .latency_s = m->device[b].sync_s + (same ? 0 : cd_link_latency(l)),
                                .bytes_per_s = same ? IN_PLACE : cd_link_bandwidth(l)};
        }
    return n;
}

/* A network that has changes of layout has images with their channels last. */
static cd_offload_edge_layout layout_of(const cd_offload_net_match *r) {
    for (uint32_t k = 0; k < r->ops.graph.n_op; k++)
        if (!strcmp(r->ops.graph.op[k].type, "layout_transform")) return CD_OFFLOAD_EDGE_NHWC;
    return CD_OFFLOAD_EDGE_NCHW;
}

/* (n_group, n_device) seconds; infinity: not allowed there, or no task. */
static cdmpp_status times(cd_partition_rules *o, cd_shard_plan_time *time, void *ctx,
                          double *seconds, cdmpp_err *err) {
    const uint32_t D = o->machine->n;
    for (uint32_t g = 0; g < o->rules.n_group; g++)
        for (uint32_t d = 0; d < D; d++) {
            cd_shard_plan_estimate a = {0};
            const bool wanted = (o->rules.group[g].allowed | o->rules.group[g].together) >> d & 1;
            seconds[(size_t)g * D + d] = (double)INFINITY;
            if (!wanted || o->network->work->group[g].task == CD_GRAPH_NONE) continue;
            CD_TRY(time(ctx, g, d, NULL, &a, err));
            seconds[(size_t)g * D + d] = a.seconds + o->machine->device[d].launch_s;
        }
    return CDMPP_OK;
}

/* Placed by cost, or as `where` says. */
static cdmpp_status place(cd_partition_rules *o, cd_shard_plan_time *time, void *ctx,
                          const uint32_t *where, cd_place_goal goal, bool mac, cdmpp_err *err) {
    const cd_machine *m = o->machine;
    const cd_link *own = cd_link_table_find(&m->links, m->device[0].name, m->device[0].name);
    double *seconds = CD_NEWN(&o->arena, double, (size_t)o->rules.n_group * m->n + 1);
    cd_place_link *link = CD_NEWN(&o->arena, cd_place_link, (size_t)m->n * m->n + 1);
    if (!seconds || !link) return CD_FAIL(err, ENOMEM, "%u groups", o->rules.n_group);
    CD_TRY(times(o, time, ctx, seconds, err));
    const cd_offload_plan_options a = {.rules = &o->rules,
                                       .seconds = seconds,
                                       .link = link,
                                       .n_link = partition_links(m, link),
                                       .rate = own ? cd_link_bandwidth(own) : 0,
                                       .start_s = m->device[0].launch_s,
                                       .layout = layout_of(&o->rules),
                                       .goal = goal,
                                       .mac = mac};
    cd_offload_net_plan_free(&o->plan);
    CD_TRY(cd_offload_plan_make(&a, where, &o->plan, err));
    o->placed = true;
    return CDMPP_OK;
}

cdmpp_status cd_partition_rules_place(cd_partition_rules *o, cd_shard_plan_time *time, void *ctx,
                                      cd_place_goal goal, bool mac, cdmpp_err *err) {
    return place(o, time, ctx, NULL, goal, mac, err);
}

/* ---- sources ---- */

typedef struct {
    cd_shard_cost *cost;
    cdmpp_err why; /* why the last schedule is missing */
} schedules;

static const char *schedule(void *ctx, uint32_t group, uint32_t device) {
    schedules *b = ctx;
    const char *line = NULL;
    return b->cost && !cd_shard_cost_schedule(b->cost, group, device, NULL, &line, &b->why) ? line
                                                                                            : NULL;
}

static const cd_emit_backend *backend_of(const cd_machine_device *d) {
    if (!strcmp(d->kind, "opencl")) return &cd_emit_opencl;
    return !strcmp(d->kind, "model") ? &cd_emit_json : &cd_emit_c;
}

/* The device of every operator of a plan that splits none. */
static cdmpp_status places(const cd_partition_rules *o, const cd_shard_plan *plan, uint32_t *where,
                           cdmpp_err *err) {
    for (uint32_t k = 0; k < o->rules.n_group; k++) {
        if (k >= plan->n_op || !plan->op[k].n_part)
            return CD_FAIL(err, ESCHEMA, "the plan has no operator %u", k);
        if (plan->op[k].n_part > 1)
            return CD_FAIL(err, EUNSUPPORTED,
                           "%s is split: sources are of whole operators (--no-split)",
                           plan->op[k].name);
        where[k] = plan->op[k].part[0].device;
    }
    return CDMPP_OK;
}

/* A plan is first placed again as whole groups, because sources are written of regions, and only a
 * placement has regions. */
cdmpp_status cd_partition_rules_emit(cd_partition_rules *o, const cd_shard_plan *plan,
                                     cd_shard_plan_time *time, void *ctx, cd_shard_cost *cost,
                                     const char *dir, cd_log *log, cdmpp_err *err) {
    const cd_emit_backend *back[CD_MACHINE_DEVICES];
    const char *target[CD_MACHINE_DEVICES];
    cd_emit_files files = {0};
    schedules b = {.cost = cost};
    if (plan) {
        uint32_t *where = CD_NEWN(&o->arena, uint32_t, (size_t)o->rules.n_group + 1);
        if (!where) return CD_FAIL(err, ENOMEM, "placement");
        CD_TRY(places(o, plan, where, err));
        CD_TRY(place(o, time, ctx, where, CD_PLACE_SUM, false, err));
    }
    if (!o->placed) return CD_FAIL(err, EUSAGE, "nothing is placed yet");
    for (uint32_t d = 0; d < o->machine->n; d++) {
        back[d] = backend_of(&o->machine->device[d]);
        target[d] = o->machine->device[d].target ? o->machine->device[d].target
                    : back[d] == &cd_emit_opencl ? "opencl"
                                                 : "llvm";
    }
    cdmpp_status st = cd_offload_emit(
        &(cd_offload_emit_options){
            .plan = &o->plan, .backend = back, .target = target, .schedule = schedule, .ctx = &b},
        &files, err);
    if (!st) st = cd_emit_write(&files, dir, err);
    for (uint32_t k = 0; k < o->plan.n_region && !st; k++)
        cd_log_put(log, CD_LOG_INFO, "%s/region%u: %s, %u groups of %s", dir, k,
                   back[o->plan.region[k].device]->brief, o->plan.region[k].n,
                   o->device[o->plan.region[k].device]);
    cd_emit_files_free(&files);
    return st;
}

/* Whole operators on devices as a problem of predictor/partition/placement: solved for
 * options.goal, written for options.lp. Inputs and results of the network are operators of 0 s that
 * are pinned to the first device, so that bringing them there and back has its price. */

typedef struct {
    cd_partition *p;
    cd_place_problem problem;
    cd_place_op *op;
    cd_place_value *value;
    cd_place_device *device;
    cd_place_link *link;
    uint32_t *to;
    double *seconds;
} builder;

/* Whether an operator reads the tensor; its last argument is what it writes. */
static bool into(const cd_shard_net_op *o, uint32_t tensor) {
    for (uint32_t k = 0; k + 1 < o->n_arg; k++)
        if (o->arg[k] == tensor) return true;
    return false;
}

/* ---- operators ---- */
static cdmpp_status one_op(builder *m, uint32_t k, cdmpp_err *err) {
    cd_partition *p = m->p;
    const cd_shard_net_op *o = &p->net.op[k];
    m->op[k] = (cd_place_op){.name = o->name,
                             .pin = o->pin == UINT32_MAX ? CD_PLACE_FREE : o->pin,
                             .pin_why = o->pin_why};
    for (uint32_t d = 0; d < p->machine.n; d++) {
        cd_shard_plan_estimate a = {0};
        double *s = &m->seconds[(size_t)k * p->machine.n + d];
        *s = INFINITY;
        if (o->allowed && !(o->allowed >> d & 1)) continue;
        CD_TRY(p->how.time(p->how.ctx, k, d, NULL, &a, err));
        *s = a.seconds + p->machine.device[d].launch_s;
    }
    return CDMPP_OK;
}

/* Adds an operator of 0 s on the first device, for an input or a result. */
static uint32_t add_fixed(builder *m, const char *name) {
    const uint32_t k = m->problem.n_op++;
    m->op[k] = (cd_place_op){
        .name = name, .pin = 0, .pin_why = "inputs and results are the first device's"};
    for (uint32_t d = 0; d < m->p->machine.n; d++) m->seconds[(size_t)k * m->p->machine.n + d] = 0;
    return k;
}

/* ---- values ---- */
static int64_t bytes_of(const cd_shard_net_tensor *t) {
    int64_t n = t->element_bytes;
    for (uint32_t k = 0; k < t->rank; k++) n *= t->shape[k];
    return n;
}

/* A value is a tensor that one operator writes and others read; constants are no values, because
 * every device has its own copy. */
static void values(builder *m) {
    const cd_shard_net *n = &m->p->net;
    for (uint32_t t = 0; t < n->n_tensor; t++) {
        const cd_shard_net_tensor *x = &n->tensor[t];
        if (x->constant) continue;
        cd_place_value v = {.from = x->from, .bytes = bytes_of(x), .first = m->problem.n_to};
        for (uint32_t k = 0; k < n->n_op; k++)
            if (into(&n->op[k], t)) m->to[m->problem.n_to++] = k;
        if (x->result) m->to[m->problem.n_to++] = add_fixed(m, "result");
        v.n_to = m->problem.n_to - v.first;
        if (!v.n_to) continue;
        if (x->from == CD_SHARD_NET_OUTSIDE) v.from = add_fixed(m, x->name ? x->name : "input");
        m->value[m->problem.n_value++] = v;
    }
}

/* The problem in the partition's arena. Arrays are sized for the worst case: every tensor an input
 * and a result. */
static cdmpp_status build(builder *m, cdmpp_err *err) {
    cd_partition *p = m->p;
    const cd_shard_net *n = &p->net;
    const uint32_t D = p->machine.n;
    size_t reads = n->n_tensor + 1, most = (size_t)n->n_op + 2 * (size_t)n->n_tensor;
    for (uint32_t k = 0; k < n->n_op; k++) reads += n->op[k].n_arg;
    m->op = CD_NEWN(&p->arena, cd_place_op, most);
    m->value = CD_NEWN(&p->arena, cd_place_value, (size_t)n->n_tensor + 1);
    m->to = CD_NEWN(&p->arena, uint32_t, reads);
    m->seconds = CD_NEWN(&p->arena, double, most *D);
    m->device = CD_NEWN(&p->arena, cd_place_device, D);
    m->link = CD_NEWN(&p->arena, cd_place_link, (size_t)D * D + 1);
    if (!m->op || !m->value || !m->to || !m->seconds || !m->device || !m->link)
        return CD_FAIL(err, ENOMEM, "a problem of %u operators", n->n_op);
    for (uint32_t d = 0; d < D; d++) m->device[d] = (cd_place_device){p->machine.device[d].name, 1};
    for (uint32_t k = 0; k < n->n_op; k++) CD_TRY(one_op(m, k, err));
    m->problem.n_op = n->n_op;
    m->problem.n_device = D;
    values(m);
    m->problem.n_link = partition_links(&p->machine, m->link);
    m->problem.op = m->op;
    m->problem.value = m->value;
    m->problem.to = m->to;
    m->problem.seconds = m->seconds;
    m->problem.device = m->device;
    m->problem.link = m->link;
    return CDMPP_OK;
}

static cdmpp_status write_lp(const cd_place_problem *problem, cd_place_goal goal, const char *path,
                             cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_place_lp(problem, goal, &b, err);
    if (!st && b.oom) st = CD_FAIL(err, ENOMEM, "a problem of %u operators", problem->n_op);
    if (!st) st = cd_file_write(path, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

/* Weights of one operator are its own; others are shared. */
static cdmpp_status weights_of(const cd_partition *p, cd_arena *a, cd_place_limits *l, double *own,
                               cdmpp_err *err) {
    const uint32_t n_tensor = p->net.n_tensor, n_op = p->net.n_op;
    uint32_t *first = CD_NEWN(a, uint32_t, (size_t)n_tensor + 2), n = 0;
    if (!first) return CD_FAIL(err, ENOMEM, "%u tensors", n_tensor);
    for (uint32_t k = 0; k < n_op; k++)
        for (uint32_t i = 0; i + 1 < p->net.op[k].n_arg; i++)
            first[p->net.op[k].arg[i] + 1] += p->net.tensor[p->net.op[k].arg[i]].constant;
    for (uint32_t t = 0; t < n_tensor; t++) first[t + 1] += first[t];
    n = first[n_tensor];
    uint32_t *reader = CD_NEWN(a, uint32_t, (size_t)n + 1),
             *count = CD_NEWN(a, uint32_t, (size_t)n_tensor + 1);
    cd_place_shared *shared = CD_NEWN(a, cd_place_shared, (size_t)n_tensor + 1);
    if (!reader || !count || !shared) return CD_FAIL(err, ENOMEM, "%u tensors", n_tensor);
    for (uint32_t k = 0; k < n_op; k++)
        for (uint32_t i = 0; i + 1 < p->net.op[k].n_arg; i++) {
            const uint32_t t = p->net.op[k].arg[i];
            if (!p->net.tensor[t].constant || (count[t] && reader[first[t] + count[t] - 1] == k))
                continue;
            reader[first[t] + count[t]++] = k;
        }
    for (uint32_t t = 0; t < n_tensor; t++) {
        const double bytes = count[t] ? (double)bytes_of(&p->net.tensor[t]) : 0;
        if (count[t] == 1) own[reader[first[t]]] += bytes;
        else if (count[t])
            shared[l->n_shared++] = (cd_place_shared){bytes, &reader[first[t]], count[t]};
    }
    l->weights = own;
    l->shared = shared;
    return CDMPP_OK;
}

/* Solves within the memories of the machine. Devices of one memory share it: the least size that
 * any of them says counts. Weights count where their operator is. */
static cdmpp_status place_whole(builder *m, cd_place_goal goal, cdmpp_err *err) {
    cd_partition *p = m->p;
    uint32_t memory[CD_MACHINE_DEVICES];
    double bytes[CD_MACHINE_DEVICES] = {0};
    double *weights = CD_NEWN(&p->arena, double, (size_t)m->problem.n_op + 1);
    cd_place_limits l = {.n_memory = p->machine.n, .memory = memory, .bytes = bytes};
    if (!weights) return CD_FAIL(err, ENOMEM, "%u operators", m->problem.n_op);
    for (uint32_t d = 0; d < p->machine.n; d++) {
        const double has = p->machine.device[d].mem_gb * 1e9;
        memory[d] = 0;
        while (p->machine.device[memory[d]].memory != p->machine.device[d].memory) memory[d]++;
        if (has > 0 && !(bytes[memory[d]] > 0 && bytes[memory[d]] <= has)) bytes[memory[d]] = has;
    }
    CD_TRY(weights_of(p, &p->arena, &l, weights, err));
    return cd_place_solve_within(&m->problem, goal, 0, &l, &p->placed, err);
}

cdmpp_status cd_partition_place(cd_partition *p, cdmpp_err *err) {
    builder m = {.p = p};
    const cd_place_goal goal = p->o->goal > 0 ? CD_PLACE_MAKESPAN : CD_PLACE_SUM;
    CD_TRY(build(&m, err));
    if (p->o->lp) CD_TRY(write_lp(&m.problem, goal, p->o->lp, err));
    p->has_placed = p->o->goal >= 0;
    return p->has_placed ? place_whole(&m, goal, err) : CDMPP_OK;
}
