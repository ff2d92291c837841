/* Tuning on this machine: the mode of cdmpp-tune without a flag of its own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "learner/model/model.h"
#include "predictor/cmd/tune/main_tune.h"
#include "profiler/host/host.h"

enum { PER_TASK = 64, PER_ROUND = 16 };

/* ---- options ---- */
static cdmpp_status check_emit(const cd_main_tune *o, cdmpp_err *err) {
    static const char *const kind[] = {"cpu", "opencl", "cuda"};
    if (o->emit_dir && o->emit < 0) return CD_FAIL(err, EUSAGE, "--emit-dir goes with --emit");
    if (o->emit < 0 || (!o->target && !o->model_name)) return CDMPP_OK; /* a task file may say its own target */
    const char *target = o->target ? o->target : "llvm";
    const cd_backend_kind *k = cd_backend_for_target((cd_str){target, strlen(target)});
    if (k && !strcmp(k->name, kind[o->emit])) return CDMPP_OK;
    return CD_FAIL(err, EUSAGE, "--emit: programs for target '%.40s' are not in that language", target);
}

static cdmpp_status check_search(const cd_main_tune *o, cdmpp_err *err) {
    const cd_tune_tuner *t = NULL;
    double x;
    if (o->tuner >= 0) CD_TRY(cd_main_tune_tuner(o, "", &t, err));
    if (t && t->ranker && t->ranker->needs_model && !o->model) return CD_FAIL(err, EUSAGE, "--tuner %s needs --model", t->name);
    if (!o->model && (o->device || o->nearest || o->frozen)) return CD_FAIL(err, EUSAGE, "--device, --nearest and --frozen are about --model");
    if (o->epsilon) CD_TRY(cd_main_tune_real("epsilon", o->epsilon, 0, 1, &x, err));
    if (o->min_gain) CD_TRY(cd_main_tune_real("min-gain", o->min_gain, 0, 100, &x, err));
    if (!o->tune && (o->tuner >= 0 || o->compare || o->trials || o->trials_per_task || o->warm.n || o->curves))
        return CD_FAIL(err, EUSAGE, "--tune=false leaves nothing for --tuner, --compare, --trials, --trials-per-task, --warm and --curves");
    if (o->at && !o->compare) return CD_FAIL(err, EUSAGE, "--at goes with --compare or --replay");
    return o->compare ? cd_main_tune_compare_check(o, err) : CDMPP_OK;
}

cdmpp_status cd_main_tune_live_check(const cd_main_tune *o, cdmpp_err *err) {
    cd_isa_choice c;
    CD_TRY(cd_main_tune_tasks_check(o, err));
    CD_TRY(check_search(o, err));
    CD_TRY(check_emit(o, err));
    if (o->isa && o->isa[0]) CD_TRY(cd_err_key(err, cd_isa_choose(o->isa, "", &c, err), "--isa"));
    return o->out || !o->tune || o->dry_run ? CDMPP_OK : CD_FAIL(err, EUSAGE, "--out is missing");
}

static cd_measure_options measure_options(const cd_main_tune *o) {
    return (cd_measure_options){.device = o->opencl_device, .isa = o->isa, .flags = o->cflags, .cache = o->cache, .cache_bytes = (uint64_t)o->cache_mb << 20,
                                .jobs = o->jobs, .pin = !o->no_pin, .build_limit_s = o->build_timeout_s, .run_limit_s = o->timeout_s,
                                .memory_bytes = (uint64_t)o->memory_mb << 20, .timing = {.budget_s = o->budget_ms * 1e-3}, .stop = o->stop};
}

static cd_tune_run_options run_options(cd_main_tune_live *l) {
    const cd_main_tune *o = l->o;
    const uint32_t n = l->what->n;
    double epsilon = -1, gain = 0;
    cd_tune_run_options r = {.tuner = l->tuner, .seed = (uint64_t)o->seed, .population = (uint32_t)o->population, .generations = (uint32_t)o->generations, .stop = o->stop};
    if (o->epsilon) (void)cd_main_tune_real("epsilon", o->epsilon, 0, 1, &epsilon, NULL);
    if (o->min_gain) (void)cd_main_tune_real("min-gain", o->min_gain, 0, 100, &gain, NULL);
    r.epsilon = epsilon;
    r.ranker = (cd_tune_ranker_setup){.model = l->model, .device = o->device, .nearest = o->nearest, .frozen = o->frozen, .threads = 1, .seed = r.seed};
    r.sched = (cd_tune_task_scheduler_options){.trials = (uint64_t)o->trials, .trials_per_task = (uint64_t)o->trials_per_task, .seconds = o->seconds,
                                      .per_round = (uint32_t)o->per_round, .early_stop = (uint64_t)o->early_stopping, .runs = o->runs, .min_gain = gain / 100};
    if (!o->trials && !o->trials_per_task && !o->seconds) r.sched.trials_per_task = PER_TASK;
    if (!o->per_round) {
        r.sched.per_round = PER_ROUND;
        if (o->trials && (uint32_t)o->trials / n < PER_ROUND) r.sched.per_round = (uint32_t)o->trials / n < 1 ? 1 : (uint32_t)o->trials / n;
    }
    r.meter = cd_tune_measure_of(l->meter);
    return r;
}

/* ---- tuning ---- */
static cdmpp_status on_round(void *ctx, const cd_tune_round *r, cdmpp_err *err) {
    cd_main_tune_live *l = ctx;
    const cd_tune_unit *u = &l->what->unit[r->task];
    cd_progress_step(&l->progress, r->trials);
    if (r->best_s < r->task_best_s_before)
        cd_log_put(l->o->log, CD_LOG_DEBUG, "%s: best of %llu trials %.4g ms", u->name, (unsigned long long)r->task_trials, r->best_s * 1e3);
    return cd_main_tune_stats(l, r, err);
}

static void on_trial(void *ctx, const cd_record_program *job, const cd_measure_result *m) {
    cd_main_tune_live *l = ctx;
    (void)job;
    l->wrong += m->error_no == 5;
    if (m->error_no) cd_log_put(l->o->log, CD_LOG_DEBUG, "a candidate failed (error %d): %s", m->error_no, m->err.msg);
}

static cdmpp_status open_all(cd_main_tune_live *l, cdmpp_err *err) {
    const cd_main_tune *o = l->o;
    if (l->tuner) CD_TRY(cd_record_log_open(l->out, false, &l->log, err));
    const cd_tune_measure_setup s = {.measure = l->measure, .tasks = l->what->tasks, .log = l->log, .isa = o->isa, .threads = o->threads, .jobs = o->jobs,
                                   .pin = !o->no_pin, .check = o->check, .each = on_trial, .ctx = l, .stop = o->stop};
    CD_TRY(cd_tune_measure_new(&s, &l->meter, err));
    if (o->stats && !(l->stats = fopen(o->stats, "a"))) return cd_err_at(err, CD_FAIL(err, EIO, "cannot open: %s", strerror(errno)), o->stats, 0);
    return CDMPP_OK;
}

static void say_spaces(cd_main_tune_live *l) {
    for (uint32_t i = 0; i < l->what->n; i++) {
        const cd_tune_task_state *s = cd_tune_run_state(l->run, i);
        if (s->naive) cd_log_put(l->o->log, CD_LOG_WARNING, "%s: no rule fits it; its naive program is all there is", l->what->unit[i].name);
        if (!s->status) continue;
        l->o->bad++;
        cd_log_put(l->o->log, CD_LOG_WARNING, "%s has no space: %s", l->what->unit[i].name, s->why.msg);
    }
}

static cdmpp_status tune(cd_main_tune_live *l, cdmpp_err *err) {
    const cd_main_tune *o = l->o;
    cd_tune_run_options ro = run_options(l);
    uint64_t total = ro.sched.trials;
    ro.round = on_round;
    ro.ctx = l;
    CD_TRY(cd_tune_run_new(l->what->unit, l->what->n, &ro, &l->run, err));
    say_spaces(l);
    CD_TRY(cd_tune_resume_resume(l->run, l->what->unit, l->what->n, l->out, &l->warm, err));
    if (o->warm.n) CD_TRY(cd_tune_resume_start(l->run, l->what->unit, l->what->n, o->warm.v, o->warm.n, &l->warm, err));
    if (l->warm.known || l->warm.other)
        cd_log_put(o->log, CD_LOG_INFO, "%s: %zu trials of before, %zu records of other tasks or targets", l->out, l->warm.known, l->warm.other);
    if (o->warm.n) cd_log_put(o->log, CD_LOG_INFO, "warm start: %zu candidates, %zu of them from other shapes", l->warm.first, l->warm.near);
    if (!total && ro.sched.trials_per_task) total = ro.sched.trials_per_task * l->what->n;
    cd_progress_begin(&l->progress, o->log, "tuning", "trials", total);
    const cdmpp_status st = cd_tune_run_go(l->run, &l->end, err);
    cd_progress_end(&l->progress);
    return st;
}

static cdmpp_status results(cd_main_tune_live *l, cdmpp_err *err) {
    l->result = cd_mem_zalloc(l->what->n + 1u, sizeof *l->result);
    if (!l->result) return CD_FAIL(err, ENOMEM, "%u tasks", l->what->n);
    for (uint32_t i = 0; i < l->what->n; i++) {
        const cd_tune_task_state *s = l->run ? cd_tune_run_state(l->run, i) : NULL;
        if (*l->o->stop) return CD_FAIL(err, EINTERRUPTED, "while results were checked");
        CD_TRY(cd_tune_result_make(l->meter, l->measure, &l->what->unit[i].of, s && s->best_s < CD_TUNE_FAILED_S ? &s->best : NULL, &l->result[i], err));
    }
    return CDMPP_OK;
}

cdmpp_status cd_main_tune_live_run(cd_main_tune_live *l, cdmpp_err *err) {
    CD_TRY(open_all(l, err));
    if (l->tuner) CD_TRY(tune(l, err));
    return results(l, err);
}

void cd_main_tune_live_free(cd_main_tune_live *l) {
    for (uint32_t i = 0; l->result && i < l->what->n; i++) cd_tune_result_free(&l->result[i]);
    cd_mem_free(l->result);
    cd_tune_run_free(l->run);
    cd_tune_measure_free(l->meter);
    (void)cd_record_log_close(l->log, NULL);
    if (l->stats) (void)fclose(l->stats);
}

static cdmpp_status finish(cd_main_tune_live *l, cdmpp_err *err) {
    cd_record_log *log = l->log;
    l->log = NULL;
    CD_TRY(cd_record_log_close(log, err));
    CD_TRY(cd_main_tune_keep_best(l, err));
    if (l->o->curves) CD_TRY(cd_main_tune_keep_curves(l, l->o->curves, err));
    if (l->o->emit >= 0) CD_TRY(cd_main_tune_emit(l, err));
    return cd_main_tune_text(l, err);
}

static cdmpp_status with_model(cd_main_tune_live *l, cdmpp_err *err) {
    cd_main_tune *o = l->o;
    cd_model *model = NULL;
    if (o->model) CD_TRY(cd_model_load(o->model, &model, err));
    l->model = model;
    cdmpp_status st = CDMPP_OK;
    if (o->tune && !o->compare) st = cd_main_tune_tuner(o, model ? "cdmpp" : "ansor", &l->tuner, err);
    if (!st && o->compare) st = cd_main_tune_compare(l, err);
    else if (!st) {
        st = cd_main_tune_live_run(l, err);
        if (!st) st = finish(l, err);
    }
    cd_main_tune_live_free(l);
    cd_model_free(model);
    return st;
}

cdmpp_status cd_main_tune_live_mode(cd_main_tune *o, cdmpp_err *err) {
    cd_main_tune_tasks what = {0};
    cd_main_tune_live l = {.o = o, .what = &what, .out = o->out};
    const cd_measure_options mo = measure_options(o);
    cdmpp_status st = o->dry_run ? CDMPP_OK : cd_measure_open(&mo, &l.measure, err); /* first of all: it forks */
    if (!st) st = cd_main_tune_tasks_get(o, &what, err);
    if (!st) st = o->dry_run ? cd_main_tune_text_tasks(o, &what, err) : with_model(&l, err);
    cd_measure_close(l.measure);
    cd_main_tune_tasks_free(&what);
    return st;
}
