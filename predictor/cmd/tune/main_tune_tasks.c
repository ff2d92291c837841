/* What cdmpp-tune tunes: the tasks of a network, or those of task files. */
#include <stdlib.h>
#include <string.h>

#include "features/program/program.h"
#include "features/sketch/sketch.h"
#include "predictor/cmd/tune/main_tune.h"
#include "profiler/backend/backend.h"
#include "profiler/network/onnx/onnx.h"
#include "profiler/network/zoo/zoo.h"

enum { FROM_ZOO, FROM_ONNX, VECTOR_BYTES = 64, NAME = 80 };

cdmpp_status cd_main_tune_tasks_check(const cd_main_tune *o, cdmpp_err *err) {
    cd_workload_layout layout;
    if (o->operand.n) return CD_FAIL(err, EUSAGE, "unexpected '%.60s'", o->operand.v[0]);
    if (!o->model_name == !o->tasks.n) return CD_FAIL(err, EUSAGE, "expected either --model-name or --tasks%s", o->model_name ? ", found both" : "");
    if (o->network && !o->tasks.n) return CD_FAIL(err, EUSAGE, "--network is for --tasks");
    if (o->tasks.n && (o->batch || o->input_size || o->dim.n || o->input.n || o->layout))
        return CD_FAIL(err, EUSAGE, "--batch-size, --input-size, --dim, --input and --layout are for --model-name");
    if (o->model_source == FROM_ZOO && (o->dim.n || o->input.n)) return CD_FAIL(err, EUSAGE, "--dim and --input are for --model-source onnx");
    if (o->model_source == FROM_ONNX && o->input_size) return CD_FAIL(err, EUSAGE, "--input-size is for --model-source zoo; use --dim");
    if (o->layout && !cd_workload_layout_parse(o->layout, &layout)) return CD_FAIL(err, EUSAGE, "--layout: expected one of " CD_WORKLOAD_LAYOUTS ", found '%.40s'", o->layout);
    if (o->target && !cd_backend_for_target((cd_str){o->target, strlen(o->target)}))
        return CD_FAIL(err, EUSAGE, "--target: expected llvm, c, opencl or cuda, with options, found '%.60s'", o->target);
    return CDMPP_OK;
}

void cd_main_tune_tasks_free(cd_main_tune_tasks *t) {
    cd_workload_free(t->workload);
    cd_graph_free(t->graph);
    cd_task_registry_free(t->owned);
    cd_arena_free(&t->arena);
}

static bool is_gpu(const char *target) { return cd_target_is_gpu((cd_str){target, strlen(target)}); }

/* Programs are for this machine, whatever the task's file says of another one. */
static cd_tune_unit unit_of(const cd_main_tune *o, const cd_task *t, double weight) {
    const char *target = o->target ? o->target : t->target[0] ? t->target : "llvm";
    const bool gpu = is_gpu(target);
    const int threads = o->threads ? o->threads : cd_backend_cpu_threads(target);
    return (cd_tune_unit){.of = {.task = t, .target = target, .gpu = gpu, .hardware = cd_target_hardware(gpu, gpu ? 0 : threads, VECTOR_BYTES), .flop = cd_task_flop(t)},
                          .weight = weight, .name = t->desc[0] ? t->desc : t->workload_key};
}

/* "Conv+Relu" */
static cdmpp_status name_of(cd_main_tune_tasks *out, const cd_workload_task *w, const char **name, cdmpp_err *err) {
    cd_buf b = {0};
    for (uint32_t k = 0; k < w->n_op && b.n < NAME; k++) cd_buf_putf(&b, "%s%s", k ? "+" : "", w->op[k]);
    char *s = b.n ? cd_arena_zalloc(&out->arena, b.n + 1, 1) : NULL;
    if (s) memcpy(s, b.p, b.n);
    if (s) *name = s;
    const bool failed = b.oom || (b.n && !s);
    cd_buf_free(&b);
    return failed ? CD_FAIL(err, ENOMEM, "names") : CDMPP_OK;
}

/* ---- networks ---- */
static cdmpp_status read_graph(const cd_main_tune *o, cd_main_tune_tasks *out, const cd_onnx_miss **miss, uint32_t *n_miss, cdmpp_err *err) {
    const cd_onnx_options onnx = {.batch = o->batch, .dim = o->dim.v, .n_dim = (uint32_t)o->dim.n, .input = o->input.v, .n_input = (uint32_t)o->input.n};
    const cd_zoo_options zoo = {.batch = o->batch, .size = o->input_size};
    *miss = NULL;
    *n_miss = 0;
    if (o->model_source == FROM_ONNX) return cd_onnx_read(o->model_name, &onnx, &out->graph, miss, n_miss, err);
    return cd_zoo_build(o->model_name, &zoo, &out->graph, err);
}

static cdmpp_status network(cd_main_tune *o, cd_main_tune_tasks *out, cdmpp_err *err) {
    const cd_onnx_miss *miss;
    uint32_t n_miss;
    const char *target = o->target ? o->target : "llvm";
    const bool gpu = is_gpu(target);
    const cd_hardware hw = cd_target_hardware(gpu, gpu ? 0 : o->threads ? o->threads : cd_backend_cpu_threads(target), VECTOR_BYTES);
    cd_workload_options wo = {.target = target, .hardware = &hw};
    if (o->layout) (void)cd_workload_layout_parse(o->layout, &wo.layout);
    CD_TRY(read_graph(o, out, &miss, &n_miss, err));
    CD_TRY(cd_workload_build(out->graph, &wo, &out->workload, err));
    const cd_workload *w = out->workload;
    for (uint32_t k = 0; k < n_miss; k++) cd_log_put(o->log, CD_LOG_WARNING, "%s (%s) is left out: %s", miss[k].node, miss[k].op, miss[k].reason);
    for (uint32_t k = 0; k < w->n_unsupported; k++)
        cd_log_put(o->log, CD_LOG_WARNING, "%s (%s) is left out: %s", w->unsupported[k].node, w->unsupported[k].op, w->unsupported[k].reason);
    o->bad += n_miss + w->n_unsupported;
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

/* ---- task files ---- */
static cdmpp_status of_network(const cd_main_tune *o, cd_main_tune_tasks *out, cdmpp_err *err) {
    const cd_network *net = NULL;
    for (size_t k = 0; k < cd_task_registry_network_count(out->tasks) && !net; k++)
        if (!strcmp(cd_task_registry_network(out->tasks, k)->name, o->network)) net = cd_task_registry_network(out->tasks, k);
    if (!net) return CD_FAIL(err, EUSAGE, "--network: no task file knows '%.60s'", o->network);
    out->unit = CD_NEWN(&out->arena, cd_tune_unit, net->n + 1);
    if (!out->unit) return CD_FAIL(err, ENOMEM, "%u tasks", net->n);
    for (uint32_t k = 0; k < net->n; k++) out->unit[out->n++] = unit_of(o, cd_task_registry_at(out->tasks, net->task[k]), (double)net->weight[k]);
    return CDMPP_OK;
}

static cdmpp_status files(const cd_main_tune *o, cd_main_tune_tasks *out, cdmpp_err *err) {
    CD_TRY(cd_task_registry_new(&out->owned, err));
    for (size_t i = 0; i < o->tasks.n; i++) CD_TRY(cd_task_registry_load(out->owned, o->tasks.v[i], err));
    out->tasks = out->owned;
    if (o->network) return of_network(o, out, err);
    const size_t n = cd_task_registry_count(out->tasks);
    out->unit = CD_NEWN(&out->arena, cd_tune_unit, n + 1);
    if (!out->unit || n > UINT32_MAX) return CD_FAIL(err, ENOMEM, "%zu tasks", n);
    for (size_t k = 0; k < n; k++) out->unit[out->n++] = unit_of(o, cd_task_registry_at(out->tasks, k), 1);
    return CDMPP_OK;
}

/* ---- choosing ---- */
static bool fits(const char *what, uint32_t i, const cd_tune_unit *u) {
    char *end;
    if (what[0] != '#') return !strncmp(u->of.task->workload_key, what, strlen(what));
    return strtoul(what + 1, &end, 10) == i && end != what + 1 && !*end;
}

static cdmpp_status choose(const cd_main_tune *o, cd_main_tune_tasks *out, cdmpp_err *err) {
    bool *keep = CD_NEWN(&out->arena, bool, out->n + 1u);
    uint32_t n = 0;
    if (!o->task.n) return CDMPP_OK;
    if (!keep) return CD_FAIL(err, ENOMEM, "%u tasks", out->n);
    for (size_t k = 0; k < o->task.n; k++) {
        bool any = false;
        for (uint32_t i = 0; i < out->n; i++)
            if (fits(o->task.v[k], i, &out->unit[i])) keep[i] = any = true;
        if (!any) return CD_FAIL(err, EUSAGE, "--task: none of %u tasks is '%.80s'", out->n, o->task.v[k]);
    }
    for (uint32_t i = 0; i < out->n; i++)
        if (keep[i]) out->unit[n++] = out->unit[i];
    out->n = n;
    return CDMPP_OK;
}

/* A task of a file may have no definition, or a target that nothing here runs. */
static cdmpp_status drop_bad(cd_main_tune *o, cd_main_tune_tasks *out, cdmpp_err *err) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < out->n; i++) {
        const cd_tune_unit *u = &out->unit[i];
        const char *target = u->of.target;
        if (u->of.task->dag && cd_backend_for_target((cd_str){target, strlen(target)})) {
            out->unit[n++] = *u;
            continue;
        }
        o->bad++;
        cd_log_put(o->log, CD_LOG_WARNING, "%.80s is left out: %.120s", u->of.task->workload_key,
                   !u->of.task->dag ? (u->of.task->why ? u->of.task->why->msg : "it has no definition") : "nothing here runs its target; use --target");
    }
    out->n = n;
    return !n ? CD_FAIL(err, ENOTASK, "no task is left to tune") : CDMPP_OK;
}

cdmpp_status cd_main_tune_tasks_get(cd_main_tune *o, cd_main_tune_tasks *out, cdmpp_err *err) {
    CD_TRY(o->model_name ? network(o, out, err) : files(o, out, err));
    CD_TRY(choose(o, out, err));
    return drop_bad(o, out, err);
}
