/* Reads the tasks to tune and gives each its target, hardware and weight. Tasks that cannot be
 * tuned here are left out with a warning: one of them must not stop a run of hours. */
#include "predictor/tune/session/tune_tasks.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/backend/backend.h"
#include "profiler/network/source/source.h"

enum { VECTOR_BYTES = 64, NAME = 80 };

void cd_tune_tasks_free(cd_tune_tasks *t) {
    cd_workload_free(t->workload);
    cd_graph_free(t->graph);
    cd_task_registry_free(t->owned);
    cd_arena_free(&t->arena);
}

static bool is_gpu(const char *target) {
    return cd_target_is_gpu((cd_str){target, strlen(target)});
}

/* Threads of a program for this target. */
static int threads_of(const cd_tune_tasks_options *o, const char *target) {
    if (o->threads) return o->threads;
    return o->cpus && !cd_target_option(target, "-num-cores").n ? o->cpus
                                                                : cd_backend_cpu_threads(target);
}

/* Programs are for the machine that measures, whatever the task's file says of another one. */
static cd_tune_unit unit_of(const cd_tune_tasks_options *o, const cd_task *t, double weight) {
    const char *target = o->target ? o->target : t->target[0] ? t->target : "llvm";
    const bool gpu = is_gpu(target);
    const int threads = threads_of(o, target);
    return (cd_tune_unit){
        .of = {.task = t,
               .target = target,
               .gpu = gpu,
               .hardware = cd_target_hardware(gpu, gpu ? 0 : threads, VECTOR_BYTES),
               .flop = cd_task_flop(t)},
        .weight = weight,
        .name = t->desc[0] ? t->desc : t->workload_key};
}

/* "Conv+Relu" */
static cdmpp_status name_of(cd_tune_tasks *out, const cd_workload_task *w, const char **name,
                            cdmpp_err *err) {
    cd_buf b = {0};
    for (uint32_t k = 0; k < w->n_op && b.n < NAME; k++)
        cd_buf_putf(&b, "%s%s", k ? "+" : "", w->op[k]);
    char *s = b.n ? cd_arena_zalloc(&out->arena, b.n + 1, 1) : NULL;
    if (s) memcpy(s, b.p, b.n);
    if (s) *name = s;
    const bool failed = b.oom || (b.n && !s);
    cd_buf_free(&b);
    return failed ? CD_FAIL(err, ENOMEM, "names") : CDMPP_OK;
}

/* One network at one size. */
typedef struct {
    cd_network_source source;
    cd_workload_options how;
    cd_graph *graph;
    cd_workload *w;
} loaded;

static cdmpp_status load(loaded *l, cd_log *log, cd_tune_tasks *out, cdmpp_err *err) {
    const cd_onnx_miss *miss;
    uint32_t n_miss;
    CD_TRY(cd_network_source_read(&l->source, &l->graph, &miss, &n_miss, err));
    cd_network_source_say(l->graph, log);
    CD_TRY(cd_workload_build(l->graph, &l->how, &l->w, err));
    const cd_workload *w = l->w;
    for (uint32_t k = 0; k < n_miss; k++)
        cd_log_put(log, CD_LOG_WARNING, "%s (%s) is left out: %s", miss[k].node, miss[k].op,
                   miss[k].reason);
    for (uint32_t k = 0; k < w->n_unsupported; k++)
        cd_log_put(log, CD_LOG_WARNING, "%s (%s) is left out: %s", w->unsupported[k].node,
                   w->unsupported[k].op, w->unsupported[k].reason);
    out->n_left_out += n_miss + w->n_unsupported;
    return CDMPP_OK;
}

/* A task of weight 0 is part of another one after fusion and is not tuned. */
static cdmpp_status network(const cd_tune_tasks_options *o, loaded *l, cd_log *log,
                            cd_tune_tasks *out, cdmpp_err *err) {
    const cdmpp_status st = load(l, log, out, err);
    out->graph = l->graph, out->workload = l->w;
    if (st) return st;
    const cd_workload *w = out->workload;
    out->tasks = w->tasks;
    out->unit = CD_NEWN(&out->arena, cd_tune_unit, w->n_task + 1);
    if (!out->unit) return CD_FAIL(err, ENOMEM, "%u tasks", w->n_task);
    for (uint32_t k = 0; k < w->n_task; k++) {
        if (w->task[k].weight < 1) continue;
        cd_tune_unit *u = &out->unit[out->n++];
        *u = unit_of(o, cd_task_registry_at(w->tasks, w->task[k].task), (double)w->task[k].weight);
        CD_TRY(name_of(out, &w->task[k], &u->name, err));
    }
    return CDMPP_OK;
}

/* ---- a network whose size is known at run time ---- */

/* A task that several sizes share is one, with all their weight. */
static cdmpp_status add_unit(const cd_tune_tasks_options *o, const cd_workload *w, uint32_t k,
                             cd_tune_tasks *out, cdmpp_err *err) {
    const cd_task *t = cd_task_registry_at(w->tasks, w->task[k].task), *added;
    uint32_t at = 0;
    if (w->task[k].weight < 1 || !t->dag) return CDMPP_OK;
    CD_TRY(cd_task_registry_add(out->owned, (cd_str){t->workload_key, strlen(t->workload_key)},
                                t->dag, &added, err));
    while (at < out->n && out->unit[at].of.task != added) at++;
    if (at < out->n) return out->unit[at].weight += (double)w->task[k].weight, CDMPP_OK;
    out->unit[out->n++] = unit_of(o, added, (double)w->task[k].weight);
    return name_of(out, &w->task[k], &out->unit[at].name, err);
}

static cdmpp_status add_size(const cd_tune_tasks_options *o, const cd_workload *w,
                             cd_tune_tasks *out, cdmpp_err *err) {
    cd_tune_unit *all = CD_NEWN(&out->arena, cd_tune_unit, (size_t)out->n + w->n_task + 1);
    if (!all) return CD_FAIL(err, ENOMEM, "%u tasks", w->n_task);
    if (out->n) memcpy(all, out->unit, out->n * sizeof *all);
    out->unit = all;
    for (uint32_t k = 0; k < w->n_task; k++) CD_TRY(add_unit(o, w, k, out, err));
    return CDMPP_OK;
}

static cdmpp_status network_sizes(const cd_tune_tasks_options *o, const cd_network_sizes *z,
                                  const loaded *what, cd_log *log, cd_tune_tasks *out,
                                  cdmpp_err *err) {
    CD_TRY(cd_task_registry_new(&out->owned, err));
    out->tasks = out->owned;
    for (size_t k = 0; k < z->n; k++) {
        loaded l = *what;
        cdmpp_status st = cd_network_sizes_at(z, &out->arena, z->size[k], &l.source, err);
        if (!st) st = load(&l, log, out, err);
        if (!st) st = add_size(o, l.w, out, err);
        cd_workload_free(l.w);
        cd_graph_free(l.graph);
        if (st) return st;
    }
    return CDMPP_OK;
}

static cdmpp_status networks(const cd_tune_tasks_options *o, cd_log *log, cd_tune_tasks *out,
                             cdmpp_err *err) {
    const char *target = o->target ? o->target : "llvm";
    const bool gpu = is_gpu(target);
    const cd_hardware hw = cd_target_hardware(gpu, gpu ? 0 : threads_of(o, target), VECTOR_BYTES);
    cd_network_sizes z;
    loaded l = {.source = {.kind = o->source,
                           .name = o->network,
                           .batch = o->batch,
                           .size = o->input_size,
                           .dim = o->dim.v,
                           .n_dim = (uint32_t)o->dim.n,
                           .input = o->input.v,
                           .n_input = (uint32_t)o->input.n},
                .how = {.target = target, .hardware = &hw}};
    if (o->layout) (void)cd_workload_layout_parse(o->layout, &l.how.layout);
    CD_TRY(cd_network_sizes_read(&out->arena, NULL, &o->dim, &z, err));
    return z.over ? network_sizes(o, &z, &l, log, out, err) : network(o, &l, log, out, err);
}

/* ---- task files ---- */
static cdmpp_status unknown_network(const cd_tune_tasks_options *o, const cd_task_registry *t,
                                    cdmpp_err *err) {
    const size_t n = cd_task_registry_network_count(t);
    const char **name = cd_mem_zalloc(n + 1, sizeof *name), *near = NULL;
    if (!name) return CD_FAIL(err, ENOMEM, "%zu networks", n);
    for (size_t k = 0; k < n; k++) name[k] = cd_task_registry_network(t, k)->name;
    (void)cd_did_you_mean_several(o->of_network, name, n, &near, 1);
    cd_mem_free(name);
    return CD_FAIL(err, EUSAGE, "--network: no task file knows '%.60s'%s%s%s", o->of_network,
                   near ? ", did you mean '"
                   : n  ? ""
                        : "; no network is in them",
                   near ? near : "", near ? "'?" : "");
}

static cdmpp_status of_network(const cd_tune_tasks_options *o, cd_tune_tasks *out, cdmpp_err *err) {
    const cd_network *net = NULL;
    for (size_t k = 0; k < cd_task_registry_network_count(out->tasks) && !net; k++)
        if (!strcmp(cd_task_registry_network(out->tasks, k)->name, o->of_network))
            net = cd_task_registry_network(out->tasks, k);
    if (!net) return unknown_network(o, out->tasks, err);
    out->unit = CD_NEWN(&out->arena, cd_tune_unit, net->n + 1);
    if (!out->unit) return CD_FAIL(err, ENOMEM, "%u tasks", net->n);
    for (uint32_t k = 0; k < net->n; k++)
        out->unit[out->n++] =
            unit_of(o, cd_task_registry_at(out->tasks, net->task[k]), (double)net->weight[k]);
    return CDMPP_OK;
}

static cdmpp_status files(const cd_tune_tasks_options *o, cd_log *log, cd_tune_tasks *out,
                          cdmpp_err *err) {
    CD_TRY(cd_task_registry_new(&out->owned, err));
    CD_TRY(cd_task_registry_load_all(out->owned, o->file.v, o->file.n, log, err));
    out->tasks = out->owned;
    if (o->of_network) return of_network(o, out, err);
    const size_t n = cd_task_registry_count(out->tasks);
    out->unit = CD_NEWN(&out->arena, cd_tune_unit, n + 1);
    if (!out->unit || n > UINT32_MAX) return CD_FAIL(err, ENOMEM, "%zu tasks", n);
    for (size_t k = 0; k < n; k++)
        out->unit[out->n++] = unit_of(o, cd_task_registry_at(out->tasks, k), 1);
    return CDMPP_OK;
}

/* ---- choosing ---- */
static bool fits(const char *what, uint32_t i, const cd_tune_unit *u) {
    char *end;
    if (what[0] != '#') return !strncmp(u->of.task->workload_key, what, strlen(what));
    return strtoul(what + 1, &end, 10) == i && end != what + 1 && !*end;
}

/* Each --task must fit something: a typing error must not shrink a long run without a word. A task
 * that fits twice is taken once. */
static cdmpp_status choose(const cd_tune_tasks_options *o, cd_tune_tasks *out, cdmpp_err *err) {
    bool *keep = CD_NEWN(&out->arena, bool, out->n + 1u);
    uint32_t n = 0;
    if (!o->only.n) return CDMPP_OK;
    if (!keep) return CD_FAIL(err, ENOMEM, "%u tasks", out->n);
    for (size_t k = 0; k < o->only.n; k++) {
        bool any = false;
        for (uint32_t i = 0; i < out->n; i++)
            if (fits(o->only.v[k], i, &out->unit[i])) keep[i] = any = true;
        if (!any)
            return CD_FAIL(err, EUSAGE, "--task: none of %u tasks is '%.80s'", out->n,
                           o->only.v[k]);
    }
    for (uint32_t i = 0; i < out->n; i++)
        if (keep[i]) out->unit[n++] = out->unit[i];
    out->n = n;
    return CDMPP_OK;
}

/* A task of a file may have no definition, or a target that nothing here runs. */
static cdmpp_status drop_bad(cd_log *log, cd_tune_tasks *out, cdmpp_err *err) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < out->n; i++) {
        const cd_tune_unit *u = &out->unit[i];
        const char *target = u->of.target;
        if (u->of.task->dag && cd_backend_for_target((cd_str){target, strlen(target)})) {
            out->unit[n++] = *u;
            continue;
        }
        out->n_left_out++;
        cd_log_put(log, CD_LOG_WARNING, "%.80s is left out: %.120s", u->of.task->workload_key,
                   !u->of.task->dag
                       ? (u->of.task->why ? u->of.task->why->msg : "it has no definition")
                       : "nothing here runs its target; use --target");
    }
    out->n = n;
    return !n ? CD_FAIL(err, ENOTASK, "no task is left to tune") : CDMPP_OK;
}

cdmpp_status cd_tune_tasks_read(const cd_tune_tasks_options *o, cd_log *log, cd_tune_tasks *out,
                                cdmpp_err *err) {
    CD_TRY(o->network ? networks(o, log, out, err) : files(o, log, out, err));
    CD_TRY(choose(o, out, err));
    return drop_bad(log, out, err);
}
