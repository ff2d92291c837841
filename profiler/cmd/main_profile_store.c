/* Mode "store" of cdmpp-profile: a store of measurements, filled and asked. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "features/device/device.h"
#include "profiler/cmd/main_profile.h"
#include "profiler/network/source/source.h"
#include "profiler/store/store.h"
#include "profiler/trace/trace.h"

/* Mode "trace" of cdmpp-profile: files of profilers, summed up, as a network and as a table of
 * operators. */

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

static cdmpp_status on_bad_trace(void *ctx, cdmpp_status st, const cdmpp_err *e, cdmpp_err *err) {
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

/* Lines about a file, as warnings (main_profile_store.c). */
static void main_profile_said(const cd_main_profile *o, const char *path, const cd_buf *said) {
    for (const char *line = said->p, *end; line && (end = strchr(line, '\n')) != NULL;
         line = end + 1)
        cd_log_put(o->log, CD_LOG_WARNING, "%s: %.*s", path, (int)(end - line), line);
}

static cdmpp_status read_all(tracing *t, cdmpp_err *err) {
    const cd_trace_reading how = {
        .device = t->o->device, .bad = on_bad_trace, .ctx = t->o, .stop = t->o->stop};
    t->trace = CD_NEWN(&t->arena, cd_trace *, t->o->operand.n);
    if (!t->trace) return CD_FAIL(err, ENOMEM, "traces");
    for (; t->n < t->o->operand.n; t->n++) {
        CD_TRY(cd_trace_read(t->o->operand.v[t->n], &how, &t->trace[t->n], err));
        const cdmpp_status st = cd_trace_link(t->trace[t->n], err);
        if (t->trace[t->n]->empty)
            cd_log_put(t->o->log, CD_LOG_WARNING,
                       "%s: %llu events of 0 s were left out: too short for the clock of the trace",
                       t->o->operand.v[t->n], (unsigned long long)t->trace[t->n]->empty);
        if (!st) main_profile_said(t->o, t->o->operand.v[t->n], &t->trace[t->n]->said);
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

#define VERBS "import|list|best|near|export|stats|tables"
typedef enum { IMPORT, LIST, BEST, NEAR, EXPORT, STATS, TABLES } verb;
enum { BEST_LIMIT = 10 };

static int verb_of(const cd_main_profile *o) {
    const char *w = o->operand.n ? o->operand.v[0] : "";
    return cd_enum_names_find(VERBS, (cd_str){w, strlen(w)});
}

cdmpp_status cd_main_profile_store_check(const cd_main_profile *o, cdmpp_err *err) {
    const int v = verb_of(o);
    if (v < 0)
        return CD_FAIL(err, EUSAGE, "store: expected one of %s, found '%.60s'", VERBS,
                       o->operand.n ? o->operand.v[0] : "");
    if (!o->store) return CD_FAIL(err, EUSAGE, "--store is missing");
    if (v == IMPORT && o->operand.n < 2) return CD_FAIL(err, EUSAGE, "nothing to import");
    if (v != IMPORT && o->operand.n > 1)
        return CD_FAIL(err, EUSAGE, "store: unexpected '%.60s'", o->operand.v[1]);
    if (v == BEST && !o->workload && !o->operator_name)
        return CD_FAIL(err, EUSAGE, "store best: expected --workload or --operator");
    if (v == NEAR && !o->workload && !(o->operator_name && o->shape))
        return CD_FAIL(err, EUSAGE, "store near: expected --workload, or --operator and --shape");
    return CDMPP_OK;
}

/* ---- import ---- */
typedef struct {
    cd_main_profile *o;
    cd_progress bar;
} importing;

static void on_bad(void *ctx, const cdmpp_err *e) {
    cd_main_profile_listener(((importing *)ctx)->o).bad(((importing *)ctx)->o, e);
}
static void on_said(void *ctx, const char *path, const cd_buf *lines) {
    main_profile_said(((importing *)ctx)->o, path, lines);
}
static void on_progress(void *ctx, const cd_store_tally *t) {
    cd_progress_step(&((importing *)ctx)->bar, t->lines);
}

static cdmpp_status print_import(const cd_main_profile *o, const cd_store_tally *t,
                                 cdmpp_err *err) {
    cd_buf b = {0};
    cd_store_put_tally(&b, t, o->json);
    return cd_main_profile_print(o, "cdmpp.store_import", &b, err);
}

/* An import that leaves the store as it was is no success, unless all of it was there before. */
static cdmpp_status check_import(const cd_main_profile *o, const cd_store_tally *t,
                                 cdmpp_err *err) {
    const unsigned long long lines = t->lines, empty = t->empty, bad = t->bad;
    if (t->added) return CDMPP_OK;
    if (t->known || t->skipped_lines)
        return cd_log_put(o->log, CD_LOG_INFO,
                          "nothing was added: the store has all of it already"),
               CDMPP_OK;
    if (bad)
        return CD_FAIL(
            err, ENODATA,
            "nothing was imported: %llu of %llu lines are bad, and no other has a measurement", bad,
            lines);
    if (empty)
        return CD_FAIL(err, ENODATA, "nothing was imported: all %llu launches take 0 s", empty);
    return CD_FAIL(err, ENODATA, "nothing was imported: the %llu files have no measurement",
                   (unsigned long long)t->files);
}

/* An import that was interrupted keeps what it has read, so it is reported like one that ended. */
static cdmpp_status import(cd_main_profile *o, cd_store *s, cdmpp_err *err) {
    importing i = {.o = o};
    cd_task_registry *tasks = NULL;
    cd_store_tally t = {0};
    cdmpp_status st = o->task.n ? cd_main_profile_tasks_load(o, &tasks, err) : CDMPP_OK;
    const cd_store_import how = {.form = (cd_store_form)o->form,
                                 .tasks = tasks,
                                 .device = o->device,
                                 .strict = o->strict,
                                 .bad = on_bad,
                                 .progress = on_progress,
                                 .said = on_said,
                                 .ctx = &i,
                                 .stop = o->stop};
    if (!st) cd_progress_begin(&i.bar, o->log, "import", "lines", 0);
    for (size_t k = 1; k < o->operand.n && !st; k++)
        st = cd_store_import_path(s, o->operand.v[k], &how, &t, err);
    if (i.bar.done) cd_progress_end(&i.bar);
    if (!st || st == CDMPP_EINTERRUPTED) {
        const cdmpp_status printed = print_import(o, &t, st ? NULL : err);
        st = st ? st : printed;
    }
    if (!st) st = check_import(o, &t, err);
    cd_task_registry_free(tasks);
    return st;
}

/* Before the store is opened, which would make a file: a name that is misspelt leaves none
 * behind. */
static cdmpp_status all_there(const cd_main_profile *o, cdmpp_err *err) {
    for (size_t k = 1; k < o->operand.n; k++) {
        const char *path = o->operand.v[k];
        if (strcmp(path, "-") != 0 && access(path, R_OK) != 0)
            return cd_err_at(err, CD_FAIL(err, EIO, "cannot open: %s", strerror(errno)), path, 0);
    }
    return CDMPP_OK;
}

/* ---- is there anything to answer with? ---- */
static cdmpp_status seen(void *ctx, const cd_store_hit *h, cdmpp_err *err) {
    (void)h, (void)err;
    *(bool *)ctx = true;
    return CDMPP_OK;
}

static cdmpp_status fits(cd_store *s, cd_store_filter f, bool *any, cdmpp_err *err) {
    f.limit = 1;
    *any = false;
    return cd_store_query(s, &f, seen, any, err);
}

/* A device or operator that the store has nowhere is a misspelt one; what only together fits
 * nothing gets an empty answer, and that is said. */
static cdmpp_status check_filter(const cd_main_profile *o, cd_store *s, verb v,
                                 const cd_store_filter *f, cdmpp_err *err) {
    const struct {
        const char *option, *value;
        cd_store_filter alone;
    } part[] = {
        {"device", f->device, {.device = f->device, .errors = true}},
        {"operator",
         v == NEAR ? NULL : f->operator_name,
         {.operator_name = f->operator_name, .errors = true}},
    };
    bool any;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        if (!part[i].value) continue;
        CD_TRY(fits(s, part[i].alone, &any, err));
        if (!any)
            return cd_err_key(
                err,
                CD_FAIL(err, ENODATA,
                        "the store has nothing of '%.60s'; store stats lists what it has",
                        part[i].value),
                part[i].option);
    }
    if (v == NEAR) return CDMPP_OK;
    CD_TRY(fits(s, *f, &any, err));
    if (!any)
        cd_log_put(o->log, CD_LOG_WARNING, "no measurement%s fits these options",
                   o->errors ? "" : " without an error");
    return CDMPP_OK;
}

/* ---- the answers ---- */
static cdmpp_status ask(cd_main_profile *o, cd_store *s, verb v, cd_store_filter *f,
                        cdmpp_err *err) {
    static const char *const schema[] = {"cdmpp.store_list", "cdmpp.store_best",
                                         "cdmpp.store_near"};
    const cd_store_report_options ro = {(cd_store_report_kind)(v - LIST), o->json, o->steps,
                                        o->shape, (uint32_t)o->each};
    cd_buf b = {0};
    if (v == BEST && !f->limit) f->limit = BEST_LIMIT;
    const cdmpp_status st = cd_store_report(s, f, &ro, stdout, &b, err);
    if (!st && o->json) return cd_main_profile_print(o, schema[ro.kind], &b, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status export(cd_main_profile *o, cd_store *s, const cd_store_filter *f,
                           cdmpp_err *err) {
    size_t skipped = 0;
    CD_TRY(cd_store_export(s, f, (cd_store_export_form)o->as, o->out, o->stop, &skipped, err));
    if (skipped)
        cd_log_put(o->log, CD_LOG_WARNING, "%zu measurements were no records: --as csv has them",
                   skipped);
    return CDMPP_OK;
}

static cdmpp_status stats(const cd_main_profile *o, cd_store *s, cdmpp_err *err) {
    cd_buf b = {0};
    const cdmpp_status st =
        o->json ? cd_store_put_stats(&b, s, err) : cd_store_put_report(&b, s, err);
    return st ? cd_buf_free(&b), st : cd_main_profile_print(o, "cdmpp.store_stats", &b, err);
}

/* A file NAME.html becomes a page; else it is Markdown. */
static cdmpp_status tables(cd_main_profile *o, cd_store *s, cdmpp_err *err) {
    const size_t n = o->out ? strlen(o->out) : 0;
    const bool html = n > 5 && !strcmp(o->out + n - 5, ".html");
    cd_store_tables *t = NULL;
    cd_buf b = {0};
    CD_TRY(cd_store_tables_make(s, &t, err));
    cd_store_tables_print(&b, t,
                          o->json ? CD_STORE_TABLE_JSON
                          : html  ? CD_STORE_TABLE_HTML
                                  : CD_STORE_TABLE_MARKDOWN,
                          o->store);
    cd_store_tables_free(t);
    return o->json ? cd_main_profile_print(o, "cdmpp.store_tables", &b, err)
                   : cd_main_profile_write(o->out, &b, err);
}

cdmpp_status cd_main_profile_store(cd_main_profile *o, cdmpp_err *err) {
    const verb v = (verb)verb_of(o);
    cd_store_filter f = {.device = o->device,
                         .target = o->target,
                         .operator_name = o->operator_name,
                         .workload = o->workload,
                         .dtype = o->dtype,
                         .layout = o->layout,
                         .limit = (uint64_t)o->limit,
                         .errors = o->errors};
    cd_store *s = NULL;
    if (v == IMPORT) CD_TRY(all_there(o, err));
    CD_TRY(cd_store_open(o->store, v == IMPORT, &s, err));
    cdmpp_status st =
        v == IMPORT || v == STATS || v == TABLES ? CDMPP_OK : check_filter(o, s, v, &f, err);
    if (st) {
        cd_store_close(s);
        return st;
    }
    if (v == IMPORT) st = import(o, s, err);
    else if (v == EXPORT) st = export(o, s, &f, err);
    else if (v == STATS) st = stats(o, s, err);
    else if (v == TABLES) st = tables(o, s, err);
    else st = ask(o, s, v, &f, err);
    cd_store_close(s);
    return st;
}
