/* Mode "--ops" of cdmpp-profile: a network measured, group by group and as a whole. */
#include <string.h>

#include "base/io/io.h"
#include "features/program/program.h"
#include "features/sketch/sketch.h"
#include "profiler/backend/backend.h"
#include "profiler/cmd/main_profile.h"
#include "profiler/runtime/single/single.h"

enum { VECTOR_BYTES = 64 };

cdmpp_status cd_main_profile_run_check(const cd_main_profile *o, cdmpp_err *err) {
    const char *t = o->target ? o->target : "llvm";
    if (cd_backend_for_target((cd_str){t, strlen(t)}) != cd_backend_find("cpu"))
        return CD_FAIL(err, EUSAGE, "--ops runs on this machine's processor: expected --target llvm..., found '%.60s'", t);
    cd_main_profile model = *o; /* the operands are logs here */
    model.operand.n = 0;
    return cd_main_profile_model_check(&model, err);
}

typedef struct {
    cd_measure *measure;
    cd_graph *graph;
    cd_workload *workload;
    cd_program_select *pick;
    cd_op_profile *ops;
} state;

cdmpp_status cd_main_profile_network(const cd_main_profile *o, const cd_hardware *hw, cd_graph **g, cd_workload **w, cdmpp_err *err) {
    const cd_onnx_miss *miss;
    uint32_t n_miss = 0;
    CD_TRY(cd_main_profile_model(o, g, &miss, &n_miss, err));
    for (uint32_t k = 0; k < n_miss; k++) cd_log_put(o->log, CD_LOG_WARNING, "%s (%s): %s", miss[k].node, miss[k].op, miss[k].reason);
    const cd_workload_options wo = {.target = o->target ? o->target : "llvm", .hardware = hw};
    CD_TRY(cd_workload_build(*g, &wo, w, err));
    for (uint32_t k = 0; k < (*w)->n_unsupported; k++) {
        const cd_workload_unsupported *u = &(*w)->unsupported[k];
        cd_log_put(o->log, CD_LOG_WARNING, "%s (%s) is left out: %s", u->node, u->op, u->reason);
    }
    return CDMPP_OK;
}

cdmpp_status cd_main_profile_programs(cd_main_profile *o, const cd_workload *w, const cd_hardware *hw, cd_measure *m, cd_program_select **out, cdmpp_err *err) {
    const cd_program_select_options po = {.log = o->operand.v, .n_log = o->operand.n, .trials = (uint32_t)o->trials, .seed = (uint64_t)o->seed,
                                   .target = o->target ? o->target : "llvm", .hardware = *hw, .threads = (int)hw->num_cores, .measure = m, .stop = o->stop};
    CD_TRY(cd_program_select_run(w, &po, out, err));
    if ((*out)->bad_lines) cd_log_put(o->log, CD_LOG_WARNING, "%zu lines of the logs are no records", (*out)->bad_lines);
    for (uint32_t k = 0; k < (*out)->n; k++) {
        const cd_program_select_task *t = &(*out)->task[k];
        if (!t->status) continue;
        o->bad++;
        cd_log_put(o->log, CD_LOG_WARNING, "%.80s has no program: %s", cd_task_registry_at(w->tasks, w->task[k].task)->workload_key, t->err.msg);
    }
    return CDMPP_OK;
}

/* The chosen programs with their times, as records. */
static cdmpp_status write_records(const cd_main_profile *o, state *s, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = CDMPP_OK;
    if (!o->out) return st;
    for (uint32_t k = 0; k < s->pick->n && !st; k++) {
        cd_record r;
        if (s->pick->task[k].status) continue;
        st = cd_record_program_record(&s->pick->task[k].job, &s->pick->task[k].item.out, &r, err);
        if (!st) st = cd_record_write(&b, &r, err);
    }
    if (!st) st = cd_file_write(o->out, b.p ? b.p : "", b.n, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status tell(const cd_main_profile *o, const state *s, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    if (o->json) {
        CD_TRY(cd_op_profile_json(&b, s->workload, s->pick, s->ops, err));
        cd_command_json(&all, "cdmpp.profile_ops", "cdmpp-profile", &b);
        return cd_command_print(&all, err);
    }
    if (o->csv != CD_MAIN_PROFILE_NO_CSV) CD_TRY(cd_op_profile_csv(&b, s->workload, s->pick, s->ops, o->csv == CD_MAIN_PROFILE_EOP, err));
    else CD_TRY(cd_op_profile_text(&b, s->workload, s->pick, s->ops, o->key_only, err));
    return cd_command_print(&b, err);
}

cd_measure_options cd_main_profile_network_options(const cd_main_profile *o, cd_hardware *hw) {
    const int threads = o->threads > 0 ? o->threads : cd_backend_cpu_threads(o->target ? o->target : "");
    *hw = cd_target_hardware(false, threads, VECTOR_BYTES);
    return (cd_measure_options){.isa = o->isa, .cache = o->cache, .cache_bytes = (uint64_t)o->cache_mb << 20, .jobs = o->jobs, .threads = threads,
                                .pin = !o->no_pin, .build_limit_s = o->build_timeout_s, .run_limit_s = o->timeout_s,
                                .timing = {.budget_s = o->budget_ms * 1e-3}, .stop = o->stop};
}

static cdmpp_status all(cd_main_profile *o, state *s, cdmpp_err *err) {
    cd_hardware hw;
    const cd_measure_options mo = cd_main_profile_network_options(o, &hw);
    const cd_op_profile_options no = {.threads = mo.threads, .cover = o->cover / 100.0, .passes = (unsigned)o->passes};
    CD_TRY(cd_measure_open(&mo, &s->measure, err)); /* first of all: it forks */
    CD_TRY(cd_main_profile_network(o, &hw, &s->graph, &s->workload, err));
    CD_TRY(cd_main_profile_programs(o, s->workload, &hw, s->measure, &s->pick, err));
    CD_TRY(write_records(o, s, err));
    CD_TRY(cd_op_profile_run(s->workload, s->pick, &no, &s->ops, err));
    return tell(o, s, err);
}

cdmpp_status cd_main_profile_run(cd_main_profile *o, cdmpp_err *err) {
    state s = {0};
    const cdmpp_status st = all(o, &s, err);
    cd_op_profile_free(s.ops);
    cd_program_select_free(s.pick);
    cd_workload_free(s.workload);
    cd_graph_free(s.graph);
    cd_measure_close(s.measure);
    return st;
}
