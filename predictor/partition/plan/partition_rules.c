/* Rules on the network: what they allow goes into the plan of shards, whole operators are placed by
 * cost under them, and their regions become sources. */
#include "predictor/partition/plan/partition_rules.h"

#include <math.h>
#include <string.h>

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

uint32_t cd_partition_links(const cd_machine *m, cd_place_link *to) {
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
                                       .n_link = cd_partition_links(m, link),
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
