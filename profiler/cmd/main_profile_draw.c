/* Mode "draw" of cdmpp-profile: records of random schedules, to be measured. */
#include <string.h>

#include "base/io/io.h"
#include "features/program/program.h"
#include "features/sketch/sketch.h"
#include "profiler/backend/backend.h"
#include "profiler/records/records.h"
#include "profiler/cmd/main_profile.h"

cdmpp_status cd_main_profile_draw_check(const cd_main_profile *o, cdmpp_err *err) {
    if (!o->task.n) return CD_FAIL(err, EUSAGE, "--tasks is missing");
    if (o->operand.n) return CD_FAIL(err, EUSAGE, "'%.60s': draw takes no file but --tasks", o->operand.v[0]);
    return CDMPP_OK;
}

static cd_hardware hardware(const char *target) {
    const bool gpu = cd_target_is_gpu((cd_str){target, strlen(target)});
    return cd_target_hardware(gpu, gpu ? 0 : cd_backend_cpu_threads(target), 64);
}

/* All records to b; a task without schedules costs only itself. */
static cdmpp_status draw_all(cd_main_profile *o, cd_random_schedules *d, cd_buf *b, size_t *n, cdmpp_err *err) {
    while (!*o->stop) {
        const size_t from = b->n;
        cdmpp_err why = {0};
        const cdmpp_status st = cd_random_schedules_next(d, b, &why);
        if (b->oom || st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "%zu records", *n);
        if (st) {
            o->bad++;
            cd_log_err(o->log, CD_LOG_WARNING, &why);
            continue;
        }
        if (b->n == from) return CDMPP_OK;
        ++*n;
    }
    return CD_FAIL(err, EINTERRUPTED, "after %zu records", *n);
}

static cdmpp_status tell(const cd_main_profile *o, cd_buf *lines, size_t n, cdmpp_err *err) {
    if (!o->out) return cd_command_print(lines, err);
    CD_TRY(cd_file_write(o->out, lines->p ? lines->p : "", lines->n, err));
    if (!o->json) {
        cd_log_put(o->log, CD_LOG_INFO, "%s: %zu records", o->out, n);
        return CDMPP_OK;
    }
    cd_buf b = {0}, all = {0};
    cd_buf_putf(&b, "{\"records\":%zu,\"tasks_without\":%zu}", n, o->bad);
    cd_command_json(&all, "cdmpp.profile_draw", "cdmpp-profile", &b);
    return cd_command_print(&all, err);
}

cdmpp_status cd_main_profile_draw(cd_main_profile *o, cdmpp_err *err) {
    const char *target = o->target ? o->target : "";
    const cd_random_schedules_options opt = {.trials = (uint32_t)o->trials, .seed = (uint64_t)o->seed, .target = target, .hardware = hardware(target)};
    cd_task_registry *tasks = NULL;
    cd_random_schedules *d = NULL;
    cd_buf b = {0};
    size_t n = 0;
    cdmpp_status st = cd_task_registry_new(&tasks, err);
    for (size_t i = 0; i < o->task.n && !st; i++) st = cd_task_registry_load(tasks, o->task.v[i], err);
    if (!st) st = cd_random_schedules_new(tasks, &opt, &d, err);
    if (!st) st = draw_all(o, d, &b, &n, err);
    if (!st) st = tell(o, &b, n, err);
    cd_buf_free(&b);
    cd_random_schedules_free(d);
    cd_task_registry_free(tasks);
    return st;
}
