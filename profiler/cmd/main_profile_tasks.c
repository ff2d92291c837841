/* Mode --list-tasks of cdmpp-profile: what a network asks a tuner to do. */
#include <string.h>

#include "base/io/io.h"
#include "features/program/program.h"
#include "features/sketch/sketch.h"
#include "profiler/backend/backend.h"
#include "profiler/cmd/main_profile.h"
#include "profiler/network/workload/workload.h"

cdmpp_status cd_main_profile_tasks_check(const cd_main_profile *o, cdmpp_err *err) {
    cd_workload_layout layout;
    if (o->layout && !cd_workload_layout_parse(o->layout, &layout))
        return CD_FAIL(err, EUSAGE, "--layout: expected one of " CD_WORKLOAD_LAYOUTS ", found '%.40s'", o->layout);
    return cd_main_profile_model_check(o, err);
}

/* What the reader could not take, in the workload's terms. */
static cdmpp_status missing(cd_graph *g, const cd_onnx_miss *miss, uint32_t n, cd_workload_options *w, cdmpp_err *err) {
    cd_workload_unsupported *list = CD_NEWN(&g->arena, cd_workload_unsupported, n + 1);
    if (!list) return CD_FAIL(err, ENOMEM, "out of memory for a list");
    for (uint32_t i = 0; i < n; i++) list[i] = (cd_workload_unsupported){miss[i].op, miss[i].node, miss[i].reason};
    w->missing = list;
    w->n_missing = n;
    return CDMPP_OK;
}

static cdmpp_status write_file(const cd_main_profile *o, const cd_workload *w, cdmpp_err *err) {
    cd_buf b = {0};
    if (!o->out_tasks) return CDMPP_OK;
    cdmpp_status st = cd_task_registry_write(&b, w->tasks, err);
    if (!st) st = cd_file_write(o->out_tasks, b.p ? b.p : "", b.n, err);
    cd_buf_free(&b);
    return st;
}

/* The list's own members beside those of every answer. */
static cdmpp_status tell(const cd_main_profile *o, const cd_workload *w, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    if (!o->json) {
        CD_TRY(cd_workload_text(&all, w, err));
        return cd_command_print(&all, err);
    }
    const cdmpp_status st = cd_workload_json(&b, w, err);
    if (!st) {
        cd_buf_puts(&all, "{\"schema\":\"cdmpp.profile_tasks\",\"command\":\"cdmpp-profile\",");
        cd_buf_put(&all, b.p + 1, b.n - 3); /* between its braces */
        cd_buf_puts(&all, ",\"warnings\":[]}\n");
    }
    cd_buf_free(&b);
    return st ? st : cd_command_print(&all, err);
}

static void complain(cd_main_profile *o, const cd_workload *w) {
    for (uint32_t i = 0; i < w->n_unsupported; i++) {
        cdmpp_err why = {0};
        (void)CD_FAIL(&why, EUNSUPPORTED, "%s: %s", w->unsupported[i].op, w->unsupported[i].reason);
        cd_err_add_key(&why, w->unsupported[i].node);
        cd_err_add_place(&why, o->model_name, 0);
        cd_log_err(o->log, CD_LOG_WARNING, &why);
    }
    o->bad += w->n_unsupported;
}

static cdmpp_status list(cd_main_profile *o, cd_graph *g, const cd_onnx_miss *miss, uint32_t n_miss, cdmpp_err *err) {
    const char *target = o->target ? o->target : "llvm";
    const bool gpu = cd_target_is_gpu((cd_str){target, strlen(target)});
    const cd_hardware hw = cd_target_hardware(gpu, gpu ? 0 : cd_backend_cpu_threads(target), 64);
    cd_workload_options opt = {.target = target, .hardware = &hw};
    cd_workload *w;
    if (o->layout) (void)cd_workload_layout_parse(o->layout, &opt.layout);
    CD_TRY(missing(g, miss, n_miss, &opt, err));
    CD_TRY(cd_workload_build(g, &opt, &w, err));
    complain(o, w);
    cdmpp_status st = write_file(o, w, err);
    if (!st) st = tell(o, w, err);
    cd_workload_free(w);
    return st;
}

cdmpp_status cd_main_profile_tasks(cd_main_profile *o, cdmpp_err *err) {
    const cd_onnx_miss *miss;
    uint32_t n;
    cd_graph *g;
    CD_TRY(cd_main_profile_model(o, &g, &miss, &n, err));
    const cdmpp_status st = list(o, g, miss, n, err);
    cd_graph_free(g);
    return st;
}
