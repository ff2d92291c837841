/* Modes that measure variants and pairs of programs: "sweep" (one schedule, changed in one thing at
 * a time), "corun" (two programs at the same time); and "draw", which only makes records. */
#include "profiler/cmd/main_profile.h"
#include "profiler/machine/machine.h"

/* ---- sweep ---- */
cdmpp_status cd_main_profile_sweep_check(const cd_main_profile *o, cdmpp_err *err) {
    unsigned mask;
    cd_str bad = {0};
    CD_TRY(cd_main_profile_logs_check(o, "no records to begin from", err));
    if (!cd_schedule_variants_mask(o->factor, &mask, &bad))
        return CD_FAIL(err, EUSAGE,
                       "--factor: expected some of %s, separated by commas, found '%.*s'",
                       CD_VARY_FACTORS, cd_str_shown(bad, 60), bad.p);
    return CDMPP_OK;
}

static cdmpp_status print_sweep(cd_main_profile *o, const cd_schedule_sweep *s, cdmpp_err *err) {
    cd_buf b = {0};
    size_t disturbed = 0;
    for (size_t i = 0; i < s->n; i++)
        o->bad += s->row[i].out.error_no != 0, disturbed += s->row[i].disturbed;
    if (disturbed)
        cd_log_put(
            o->log, CD_LOG_WARNING,
            "%zu of %zu ratios are disturbed, marked '?': meanwhile the base took %.4g to %.4g ms",
            disturbed, s->n - 1, s->measured.low_s * 1e3, s->measured.high_s * 1e3);
    if (o->out) {
        CD_TRY(cd_schedule_sweep_csv(&b, s, err));
        CD_TRY(cd_main_profile_write(o->out, &b, err));
    }
    if (o->plot) {
        CD_TRY(cd_schedule_sweep_svg(&b, s, err));
        CD_TRY(cd_main_profile_write(o->plot, &b, err));
    }
    CD_TRY(o->json ? cd_schedule_sweep_json(&b, s, err) : cd_schedule_sweep_text(&b, s, err));
    return cd_main_profile_print(o, "cdmpp.profile_sweep", &b, err);
}

cdmpp_status cd_main_profile_sweep(cd_main_profile *o, cdmpp_err *err) {
    const cd_record_listener l = cd_main_profile_listener(o);
    cd_schedule_sweep_options so = {
        .task_file = o->task.v,
        .n_task_file = o->task.n,
        .log = o->log,
        .best = {o->operand.v, o->operand.n, o->workload, 1, &l, o->stop},
        .measure = cd_main_profile_measure_options(o),
        .target = o->target,
        .threads =
            o->threads > 0 ? o->threads : cd_backend_cpu_threads(o->target ? o->target : "")};
    cd_schedule_sweep s;
    cd_str ignored;
    so.measure.flags = NULL; /* --cflags and --memory-mb are for records */
    so.measure.memory_bytes = 0;
    so.measure.jobs = o->jobs;
    (void)cd_schedule_variants_mask(o->factor, &so.factors, &ignored);
    cdmpp_status st = cd_schedule_sweep_run(&so, &s, err);
    if (!st) st = print_sweep(o, &s, err);
    cd_schedule_sweep_free(&s);
    return st;
}

/* ---- corun ---- */
cdmpp_status cd_main_profile_corun_check(const cd_main_profile *o, cdmpp_err *err) {
    CD_TRY(cd_main_profile_logs_check(o, "no records to read", err));
    if (o->limit > CD_RECORD_CORUN_MAX)
        return CD_FAIL(err, EUSAGE, "--limit: at most %d workloads in one table",
                       CD_RECORD_CORUN_MAX);
    if (o->rounds > CD_CORUN_ROUNDS)
        return CD_FAIL(err, EUSAGE, "--rounds: at most %d", CD_CORUN_ROUNDS);
    if ((o->pairs || o->trials || o->seed) && !o->corun_group)
        return CD_FAIL(err, EUSAGE, "--pairs, --trials and --seed are about --group");
    return CDMPP_OK;
}

static cdmpp_status print_corun(cd_main_profile *o, const cd_record_corun *c, cdmpp_err *err) {
    cd_buf b = {0};
    o->bad += c->bad;
    if (o->out) {
        cd_record_corun_csv(&b, c);
        CD_TRY(cd_main_profile_write(o->out, &b, err));
    }
    (o->json ? cd_record_corun_json : cd_record_corun_text)(&b, c);
    return cd_main_profile_print(o, "cdmpp.profile_corun", &b, err);
}

static cdmpp_status put_groups(cd_main_profile *o, const cd_record_corun *c,
                               const cd_corun_table *t, cd_arena *a, cdmpp_err *err) {
    cd_buf b = {0};
    cd_corun_check k;
    double *predicted = CD_NEWN(a, double, c->n_group *CD_CORUN_GROUP);
    if (!predicted) return CD_FAIL(err, ENOMEM, "%zu groups", c->n_group);
    CD_TRY(cd_corun_table_check(t, c, predicted, &k, err));
    if (o->out) {
        cd_corun_table_csv(&b, c, t, predicted);
        CD_TRY(cd_main_profile_write(o->out, &b, err));
    }
    (o->json ? cd_corun_table_json : cd_corun_table_text)(&b, c, t, predicted, &k);
    return cd_main_profile_print(o, "cdmpp.profile_corun_groups", &b, err);
}

static cdmpp_status print_groups(cd_main_profile *o, const cd_record_corun *c, cdmpp_err *err) {
    cd_corun_table t = {0};
    o->bad += c->bad;
    cdmpp_status st =
        o->pairs ? cd_corun_table_read(o->pairs, &t, err) : cd_corun_table_of(c, &t, err);
    if (!st) st = cd_err_at(err, put_groups(o, c, &t, &t.arena, err), o->pairs, 0);
    cd_corun_table_free(&t);
    return st;
}

cdmpp_status cd_main_profile_corun(cd_main_profile *o, cdmpp_err *err) {
    const cd_record_listener l = cd_main_profile_listener(o);
    const cd_record_corun_options co = {.task_file = o->task.v,
                                        .n_task_file = o->task.n,
                                        .log = o->log,
                                        .measure = cd_main_profile_measure_options(o),
                                        .target = o->target,
                                        .best = {o->operand.v, o->operand.n, o->workload,
                                                 o->limit > 0 ? (size_t)o->limit : 6, &l, o->stop},
                                        .group = (unsigned)o->corun_group,
                                        .n_group = o->trials > 0 ? (unsigned)o->trials : 10,
                                        .seed = (uint64_t)o->seed,
                                        .no_pairs = o->pairs != NULL,
                                        .policy = {.threads = o->threads > 0 ? o->threads : 1,
                                                   .window_s = o->budget_ms * 1e-3,
                                                   .rounds = (unsigned)o->rounds,
                                                   .limit_s = o->timeout_s,
                                                   .stop = o->stop}};
    cd_record_corun *c = NULL;
    cdmpp_status st = cd_record_corun_run(&co, &c, err);
    if (!st) st = o->corun_group ? print_groups(o, c, err) : print_corun(o, c, err);
    cd_record_corun_free(c);
    return st;
}

/* ---- draw ---- */
cdmpp_status cd_main_profile_draw_check(const cd_main_profile *o, cdmpp_err *err) {
    if (!o->task.n) return CD_FAIL(err, EUSAGE, "--tasks is missing");
    if (o->operand.n)
        return CD_FAIL(err, EUSAGE, "'%.60s': draw takes no file but --tasks", o->operand.v[0]);
    return CDMPP_OK;
}

static cdmpp_status print_draw(const cd_main_profile *o, cd_buf *lines, size_t n, cdmpp_err *err) {
    cd_buf b = {0};
    CD_TRY(cd_main_profile_write(o->out, lines, err));
    if (o->out && !o->json) cd_log_put(o->log, CD_LOG_INFO, "%s: %zu records", o->out, n);
    if (!o->out || !o->json) return CDMPP_OK;
    cd_buf_putf(&b, "{\"records\":%zu,\"tasks_without\":%zu}", n, o->bad);
    return cd_main_profile_print(o, "cdmpp.profile_draw", &b, err);
}

/* All lines are made before the first is written: a file of half the records would look
 * complete. */
cdmpp_status cd_main_profile_draw(cd_main_profile *o, cdmpp_err *err) {
    const char *target = o->target ? o->target : "";
    const cd_random_schedules_options opt = {.trials = (uint32_t)o->trials,
                                             .seed = (uint64_t)o->seed,
                                             .target = target,
                                             .hardware = cd_main_profile_hardware(target)};
    const cd_record_listener l = cd_main_profile_listener(o);
    cd_task_registry *tasks = NULL;
    cd_random_schedules *d = NULL;
    cd_buf b = {0};
    size_t n = 0;
    cdmpp_status st = cd_main_profile_tasks_load(o, &tasks, err);
    if (!st) st = cd_random_schedules_new(tasks, &opt, &d, err);
    if (!st) st = cd_random_schedules_all(d, &l, o->stop, &b, &n, err);
    if (!st) st = print_draw(o, &b, n, err);
    if (!st && !n) {
        cd_log_put(o->log, CD_LOG_WARNING, "draw: no task has a record");
        o->exit_code = 3;
    }
    cd_buf_free(&b);
    cd_random_schedules_free(d);
    cd_task_registry_free(tasks);
    return st;
}
