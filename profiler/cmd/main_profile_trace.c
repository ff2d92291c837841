/* Mode "trace" of cdmpp-profile: files of profilers, summed up, as a network and as a table of
 * operators. */
#include <string.h>

#include "features/device/device.h"
#include "profiler/cmd/main_profile.h"
#include "profiler/network/source/source.h"
#include "profiler/trace/trace.h"

cdmpp_status cd_main_profile_trace_check(const cd_main_profile *o, cdmpp_err *err) {
    if (!o->operand.n) return CD_FAIL(err, EUSAGE, "trace: expected a file of a profiler");
    for (size_t i = 0; i < o->operand.n; i++)
        if (!strcmp(o->operand.v[i], "-"))
            return CD_FAIL(err, EUSAGE,
                           "trace: expected files, a trace is not read from standard input");
    return CDMPP_OK;
}

/* ---- reading ---- */
typedef struct {
    cd_main_profile *o;
    cd_trace **trace; /* (n) */
    size_t n;
    cd_graph *graph; /* --network */
    cd_workload *work;
    cd_trace_operator *op; /* (n_op) its groups */
    size_t n_op;
    cd_trace_map map;
    cd_arena arena;
} tracing;

static cdmpp_status on_bad(void *ctx, cdmpp_status st, const cdmpp_err *e, cdmpp_err *err) {
    cd_main_profile *o = ctx;
    if (o->strict && err) *err = *e;
    if (o->strict) return st;
    cd_main_profile_listener(o).bad(o, e);
    return CDMPP_OK;
}

/* The device's name in the tables of devices, where its name in the trace is known there; else as
 * it is. */
static const char *known_device(tracing *t, const char *name) {
    const char *path = NULL;
    const cd_device *d = NULL;
    cd_device_table *table = NULL;
    cd_diag diag = {0};
    if (name && *name && !cd_device_table_path(&t->arena, "", NULL, &path, NULL) &&
        !cd_device_table_load(path, &diag, &table, NULL) &&
        !cd_device_table_find(table, name, &d, NULL))
        name = cd_arena_text(&t->arena, d->name);
    cd_diag_free(&diag);
    cd_device_table_free(table);
    return name;
}

void cd_main_profile_said(const cd_main_profile *o, const char *path, const cd_buf *said) {
    for (const char *line = said->p, *end; line && (end = strchr(line, '\n')) != NULL;
         line = end + 1)
        cd_log_put(o->log, CD_LOG_WARNING, "%s: %.*s", path, (int)(end - line), line);
}

static cdmpp_status read_all(tracing *t, cdmpp_err *err) {
    const cd_trace_reading how = {
        .device = t->o->device, .bad = on_bad, .ctx = t->o, .stop = t->o->stop};
    t->trace = CD_NEWN(&t->arena, cd_trace *, t->o->operand.n);
    if (!t->trace) return CD_FAIL(err, ENOMEM, "traces");
    for (; t->n < t->o->operand.n; t->n++) {
        CD_TRY(cd_trace_read(t->o->operand.v[t->n], &how, &t->trace[t->n], err));
        const cdmpp_status st = cd_trace_link(t->trace[t->n], err);
        if (t->trace[t->n]->empty)
            cd_log_put(t->o->log, CD_LOG_WARNING,
                       "%s: %llu events of 0 s were left out: too short for the clock of the trace",
                       t->o->operand.v[t->n], (unsigned long long)t->trace[t->n]->empty);
        if (!st) cd_main_profile_said(t->o, t->o->operand.v[t->n], &t->trace[t->n]->said);
        if (st) return t->n++, st;
    }
    return CDMPP_OK;
}

/* ---- the operators of a network, in order ---- */
static const char *group_name(tracing *t, const cd_workload_group *g) {
    cd_buf b = {0};
    for (uint32_t i = 0; i < g->n_node; i++)
        cd_buf_putf(&b, "%s%s", i ? "+" : "", t->graph->node[g->node[i]].op);
    const char *name = b.oom ? NULL : cd_arena_text(&t->arena, b.n ? b.p : "");
    cd_buf_free(&b);
    return name;
}

static cdmpp_status read_network(tracing *t, cdmpp_err *err) {
    const cd_main_profile *o = t->o;
    const cd_network_source s = {.kind = cd_main_profile_source(o),
                                 .name = o->network,
                                 .batch = o->batch,
                                 .size = o->input_size,
                                 .dim = o->dim.v,
                                 .input = o->input.v,
                                 .n_dim = (uint32_t)o->dim.n,
                                 .n_input = (uint32_t)o->input.n,
                                 .training = o->training};
    const cd_hardware hw = cd_main_profile_hardware(o->target ? o->target : "cuda");
    cd_workload_options opt = {.target = o->target ? o->target : "cuda", .hardware = &hw};
    const cd_onnx_miss *miss;
    uint32_t n;
    if (!o->network) return CDMPP_OK;
    CD_TRY(cd_network_source_read(&s, &t->graph, &miss, &n, err));
    cd_network_source_say(t->graph, o->log);
    CD_TRY(cd_network_source_missing(t->graph, miss, n, &opt, err));
    CD_TRY(cd_workload_build(t->graph, &opt, &t->work, err));
    t->op = CD_NEWN(&t->arena, cd_trace_operator, t->work->n_group + 1);
    for (uint32_t i = 0; t->op && i < t->work->n_group; i++) {
        const cd_workload_group *g = &t->work->group[i];
        if (g->weights) continue;
        const cd_trace_operator op = {
            group_name(t, g),
            g->task == CD_GRAPH_NONE
                ? NULL
                : cd_task_registry_at(t->work->tasks, t->work->task[g->task].task)->workload_key};
        if (!op.name) return CD_FAIL(err, ENOMEM, "operators");
        t->op[t->n_op++] = op;
    }
    return t->op ? CDMPP_OK : CD_FAIL(err, ENOMEM, "operators");
}

/* ---- writing ---- */
static cdmpp_status write_files(tracing *t, const cd_trace_runs *r, cdmpp_err *err) {
    const cd_main_profile *o = t->o;
    const char *device = known_device(t, o->device   ? o->device
                                         : r->n_step ? r->step[0].device
                                                     : NULL),
               *name = o->network;
    const char *slash = strrchr(r->run[r->first].path, '/');
    cd_buf b = {0};
    size_t rows = 0;
    cdmpp_status st = CDMPP_OK;
    if (!name) name = slash ? slash + 1 : r->run[r->first].path;
    for (size_t i = 1; i < r->n_step && !o->device; i++) /* several: each has its own */
        if (device && strcmp(r->step[i].device, r->step[0].device)) device = NULL;
    if (device && !*device) device = NULL;
    if (o->save_graph) st = cd_trace_put_graph(&b, r, name, device, err);
    if (!st && o->save_graph)
        st = cd_main_profile_write(strcmp(o->save_graph, "-") ? o->save_graph : NULL, &b, err);
    if (!st && o->labels) st = cd_trace_put_table(&b, r, device, &rows, err);
    if (!st && o->labels && !rows)
        cd_log_put(o->log, CD_LOG_WARNING,
                   "no operator of the trace is known by its sizes: %s has no row", o->labels);
    if (!st && o->labels && rows && !device && !*r->step[0].device)
        cd_log_put(o->log, CD_LOG_WARNING,
                   "the trace does not say which device it is of; name it with --device, else the "
                   "rows of %s have none",
                   o->labels);
    if (!st && o->labels)
        st = cd_main_profile_write(strcmp(o->labels, "-") ? o->labels : NULL, &b, err);
    cd_buf_free(&b);
    return st;
}

static void report(const tracing *t, const cd_trace_runs *r) {
    for (size_t i = 0; i < r->n_run; i++) {
        const cd_trace_run *w = &r->run[i];
        if (!w->why) continue;
        cd_log_put(t->o->log, CD_LOG_WARNING, "%s%s%s: left out, %s", w->path, w->range ? ": " : "",
                   w->range ? w->range : "", w->why);
        t->o->bad++;
    }
}

static cdmpp_status run(tracing *t, cdmpp_err *err) {
    const cd_main_profile *o = t->o;
    cd_trace_runs r;
    cd_buf b = {0};
    CD_TRY(read_network(t, err));
    if (o->map) CD_TRY(cd_trace_map_read(&t->map, o->map, err));
    CD_TRY(read_all(t, err));
    const cd_trace_combining how = {
        .range = o->range, .map = o->map ? &t->map : NULL, .network = t->op, .n_network = t->n_op};
    cdmpp_status st =
        cd_trace_combine((const cd_trace *const *)t->trace, o->operand.v, t->n, &how, &r, err);
    if (!st) report(t, &r);
    if (!st) st = write_files(t, &r, err);
    if (!st) {
        if (o->json) cd_trace_put_json(&b, &r);
        else cd_trace_put_text(&b, &r, (size_t)o->limit);
        st = cd_main_profile_print(o, "cdmpp.trace", &b, err);
    }
    cd_trace_runs_free(&r);
    return st;
}

cdmpp_status cd_main_profile_trace(cd_main_profile *o, cdmpp_err *err) {
    tracing t = {.o = o};
    const cdmpp_status st = run(&t, err);
    for (size_t i = 0; i < t.n; i++) cd_trace_free(t.trace[i]);
    cd_trace_map_free(&t.map);
    cd_workload_free(t.work);
    cd_graph_free(t.graph);
    cd_arena_free(&t.arena);
    return st;
}
