/* --rules and --list-patterns: rules on the network, and the placement under them. */
#include "predictor/cmd/partition/main_partition_offload.h"

#include <math.h>
#include <string.h>

/* ---- rules ---- */

static cdmpp_status read_rules(cd_partition_offload *o, const char *path, cdmpp_err *err) {
    char text[256];
    if (path) return cd_offload_read(path, &o->file, err);
    snprintf(text, sizeof text, "host %.200s\n", o->device[0]);
    return cd_offload_parse("(no rules)", text, strlen(text), &o->file, err);
}

/* What the plan of splits may do: a match of several groups cannot be told there, so its groups stay. */
static cdmpp_status into_net(cd_partition_offload *o, cd_shard_net *net, cdmpp_err *err) {
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

cdmpp_status cd_partition_offload_open(cd_partition_offload *o, const char *path, const cd_network_loaded *live, const cd_machine *machine, cd_shard_net *net, cdmpp_err *err) {
    *o = (cd_partition_offload){.live = live, .machine = machine, .given = path != NULL};
    for (uint32_t d = 0; d < machine->n; d++) o->device[d] = machine->device[d].name;
    CD_TRY(read_rules(o, path, err));
    CD_TRY(cd_offload_match_apply(&(cd_offload_match_options){live, o->file, machine->n, o->device}, &o->rules, err));
    return net ? into_net(o, net, err) : CDMPP_OK;
}

void cd_partition_offload_close(cd_partition_offload *o) {
    cd_offload_net_plan_free(&o->plan);
    cd_offload_match_done(&o->rules);
    cd_offload_free(o->file);
    cd_arena_free(&o->arena);
    *o = (cd_partition_offload){0};
}

/* ---- what they match ---- */

static void put_match(const cd_partition_offload *o, const cd_offload_match *m, cd_buf *out) {
    const char *const *device;
    (void)cd_offload_devices(o->file, &device);
    cd_buf_putf(out, "match  %-8s %-16s line %-4ld %s", device[m->device], m->pattern, m->line, m->taken ? "      " : "(over) ");
    for (uint32_t i = 0; i < m->n_op; i++) cd_buf_putf(out, " %s", o->rules.ops.graph.op[o->rules.found.member[m->first + i]].name);
    cd_buf_puts(out, "\n");
}

static void put_counts(const cd_partition_offload *o, cd_buf *out) {
    for (uint32_t d = 0; d < o->rules.n_device; d++) {
        uint32_t may = 0, together = 0, pinned = 0;
        for (uint32_t g = 0; g < o->rules.n_group; g++) {
            may += o->rules.group[g].allowed >> d & 1;
            together += o->rules.group[g].together >> d & 1;
            pinned += o->rules.group[g].pin == d;
        }
        cd_buf_putf(out, "%-8s %u of %u groups may run there", o->rules.device[d], may, o->rules.n_group);
        if (together) cd_buf_putf(out, ", %u more with a match of several groups", together);
        if (pinned) cd_buf_putf(out, ", %u are placed there", pinned);
        cd_buf_puts(out, "\n");
    }
}

/* Reasons, each once, with how many groups they keep away and the first of them. */
static void put_reasons(const cd_partition_offload *o, uint32_t d, cd_buf *out) {
    const cd_offload_net_match *r = &o->rules;
    for (uint32_t g = 0; g < r->n_group; g++) {
        const char *why = r->group[g].why[d], *tail = why ? strstr(why, "): ") : NULL;
        uint32_t n = 0;
        bool said = !why;
        for (uint32_t k = 0; k < r->n_group && !said; k++) {
            const char *other = r->group[k].why[d], *end = other ? strstr(other, "): ") : NULL;
            const bool same = other && (tail && end ? !strcmp(tail, end) : !strcmp(why, other));
            if (same && k < g) said = true;
            n += same;
        }
        if (!said) cd_buf_putf(out, "not on %-8s %3u  %s: %s\n", r->device[d], n, r->live->graph->node[g].name, why);
    }
}

void cd_partition_offload_list(const cd_partition_offload *o, cd_buf *out) {
    cd_buf_puts(out, " line  rule\n");
    cd_offload_print(o->file, UINT32_MAX, false, out);
    for (uint32_t i = 0; i < o->rules.found.n_match; i++) put_match(o, &o->rules.found.match[i], out);
    for (uint32_t i = 0; i < o->rules.n_cut; i++) {
        if (!o->rules.cut[i].stops) continue;
        cd_offload_match_print_cut(&o->rules, i, out);
        cd_buf_puts(out, "\n");
    }
    put_counts(o, out);
    for (uint32_t d = 1; d < o->rules.n_device; d++) put_reasons(o, d, out);
}

/* ---- the placement ---- */

/* Nothing is copied within a memory: a link that only makes wait. */
static const double IN_PLACE = 1e18;

static uint32_t links(const cd_machine *m, cd_place_link *to) {
    uint32_t n = 0;
    for (uint32_t a = 0; a < m->n; a++)
        for (uint32_t b = 0; b < m->n; b++) {
            const cd_link *l = cd_link_table_find(&m->links, m->device[a].name, m->device[b].name);
            const bool same = m->device[a].memory == m->device[b].memory;
            if (a == b || (!same && !l)) continue;
            to[n++] = (cd_place_link){.from = a, .to = b, .latency_s = m->device[b].sync_s + (same ? 0 : cd_link_latency(l)), .bytes_per_s = same ? IN_PLACE : cd_link_bandwidth(l)};
        }
    return n;
}

/* Changes of layout are there where images have their channels last. */
static cd_offload_edge_layout layout_of(const cd_offload_net_match *r) {
    for (uint32_t k = 0; k < r->ops.graph.n_op; k++)
        if (!strcmp(r->ops.graph.op[k].type, "layout_transform")) return CD_OFFLOAD_EDGE_NHWC;
    return CD_OFFLOAD_EDGE_NCHW;
}

static cdmpp_status ask_all(cd_partition_offload *o, cd_shard_plan_time *time, void *ctx, double *seconds, cdmpp_err *err) {
    const uint32_t D = o->machine->n;
    for (uint32_t g = 0; g < o->rules.n_group; g++)
        for (uint32_t d = 0; d < D; d++) {
            cd_shard_plan_estimate a = {0};
            const bool wanted = (o->rules.group[g].allowed | o->rules.group[g].together) >> d & 1;
            seconds[(size_t)g * D + d] = (double)INFINITY;
            if (!wanted || o->live->work->group[g].task == CD_GRAPH_NONE) continue;
            CD_TRY(time(ctx, g, d, NULL, &a, err));
            seconds[(size_t)g * D + d] = a.seconds + o->machine->device[d].launch_s;
        }
    return CDMPP_OK;
}

static cdmpp_status with(cd_partition_offload *o, cd_shard_plan_time *time, void *ctx, const uint32_t *where, cd_place_goal goal, bool mac, cdmpp_err *err) {
    const cd_machine *m = o->machine;
    const cd_link *own = cd_link_table_find(&m->links, m->device[0].name, m->device[0].name);
    double *seconds = CD_NEWN(&o->arena, double, (size_t)o->rules.n_group * m->n + 1);
    cd_place_link *link = CD_NEWN(&o->arena, cd_place_link, (size_t)m->n * m->n + 1);
    if (!seconds || !link) return CD_FAIL(err, ENOMEM, "%u groups", o->rules.n_group);
    CD_TRY(ask_all(o, time, ctx, seconds, err));
    const cd_offload_plan_options a = {.rules = &o->rules, .seconds = seconds, .link = link, .n_link = links(m, link), .rate = own ? cd_link_bandwidth(own) : 0,
                                   .start_s = m->device[0].launch_s, .layout = layout_of(&o->rules), .goal = goal, .mac = mac};
    cd_offload_net_plan_free(&o->plan);
    CD_TRY(where ? cd_offload_plan_of(&a, where, &o->plan, err) : cd_offload_plan_make(&a, &o->plan, err));
    o->placed = true;
    return CDMPP_OK;
}

cdmpp_status cd_partition_offload_place(cd_partition_offload *o, cd_shard_plan_time *time, void *ctx, cd_place_goal goal, bool mac, cdmpp_err *err) {
    return with(o, time, ctx, NULL, goal, mac, err);
}

void cd_partition_offload_print(const cd_partition_offload *o, cd_buf *out) {
    if (!o->placed || !o->given) return;
    cd_buf_puts(out, "\n");
    cd_offload_plan_text(&o->plan, out);
}

void cd_partition_offload_json(const cd_partition_offload *o, cd_buf *out) {
    if (o->placed) cd_offload_plan_json(&o->plan, out);
    else cd_buf_puts(out, "null");
}

/* ---- sources ---- */

typedef struct {
    cd_shard_cost *cost;
    cdmpp_err why;              /* of the last schedule that could not be had */
} book;

static const char *schedule(void *ctx, uint32_t group, uint32_t device) {
    book *b = ctx;
    const char *line = NULL;
    return b->cost && !cd_shard_cost_schedule(b->cost, group, device, NULL, &line, &b->why) ? line : NULL;
}

static const cd_emit_backend *backend_of(const cd_machine_device *d) {
    if (!strcmp(d->kind, "opencl")) return &cd_emit_opencl;
    return !strcmp(d->kind, "model") ? &cd_emit_json : &cd_emit_c;
}

static cdmpp_status places(const cd_partition_offload *o, const cd_shard_plan *plan, uint32_t *where, cdmpp_err *err) {
    for (uint32_t k = 0; k < o->rules.n_group; k++) {
        if (k >= plan->n_op || !plan->op[k].n_part) return CD_FAIL(err, ESCHEMA, "the plan has no operator %u", k);
        if (plan->op[k].n_part > 1) return CD_FAIL(err, EUNSUPPORTED, "%s is split: sources are of whole operators (--no-split)", plan->op[k].name);
        where[k] = plan->op[k].part[0].device;
    }
    return CDMPP_OK;
}

cdmpp_status cd_partition_offload_emit(cd_partition_offload *o, const cd_shard_plan *plan, cd_shard_plan_time *time, void *ctx, cd_shard_cost *cost, const char *dir, cd_log *log, cdmpp_err *err) {
    const cd_emit_backend *back[CD_MACHINE_DEVICES];
    const char *target[CD_MACHINE_DEVICES];
    cd_emit_files files = {0};
    book b = {.cost = cost};
    if (plan) {
        uint32_t *where = CD_NEWN(&o->arena, uint32_t, (size_t)o->rules.n_group + 1);
        if (!where) return CD_FAIL(err, ENOMEM, "placement");
        CD_TRY(places(o, plan, where, err));
        CD_TRY(with(o, time, ctx, where, CD_PLACE_SUM, false, err));
    }
    if (!o->placed) return CD_FAIL(err, EUSAGE, "nothing is placed yet");
    for (uint32_t d = 0; d < o->machine->n; d++) {
        back[d] = backend_of(&o->machine->device[d]);
        target[d] = o->machine->device[d].target ? o->machine->device[d].target : back[d] == &cd_emit_opencl ? "opencl" : "llvm";
    }
    cdmpp_status st = cd_offload_emit(&(cd_offload_emit_options){.plan = &o->plan, .backend = back, .target = target, .schedule = schedule, .ctx = &b}, &files, err);
    if (!st) st = cd_emit_write(&files, dir, err);
    for (uint32_t k = 0; k < o->plan.n_region && !st; k++)
        cd_log_put(log, CD_LOG_INFO, "%s/region%u: %s, %u groups of %s", dir, k, back[o->plan.region[k].device]->brief, o->plan.region[k].n, o->device[o->plan.region[k].device]);
    cd_emit_files_free(&files);
    return st;
}
