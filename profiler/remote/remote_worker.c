/* The worker's side: makes a program of each record that comes in, measures it, and answers with
 * its times and statistics. Tasks come once, as text, so that a worker needs no files. */
#include <stdio.h>
#include <unistd.h>

#include "profiler/describe/describe.h"
#include "profiler/remote/remote.h"

typedef struct {
    const cd_remote_worker_options *o;
    cd_task_registry *tasks;
    cd_program *program;
    cd_record_maker maker;
    cd_measure *m;
} worker;

/* {"tasks": our text form, "check": true} */
static cdmpp_status on_setup(void *ctx, const cd_json *setup, cdmpp_err *err) {
    worker *w = ctx;
    cd_str text;
    const cd_json *check = cd_json_get(setup, "check");
    CD_TRY(cd_json_need_str(setup, "tasks", &text, err));
    CD_TRY(cd_task_registry_load_text(w->tasks, "setup", text.p, text.n, err));
    w->maker.reference = check && check->kind == CD_JSON_BOOL && check->u.i;
    return CDMPP_OK;
}

static void put_stats(const cd_measure_result *m, cd_remote_times *out) {
    const cd_timing *t = &m->time;
    snprintf(out->message, sizeof out->message, "%.199s", m->err.msg);
    out->has_stats = !m->error_no;
    out->stats = (cd_remote_stats){.n = t->n,
                                   .kept = t->n_kept,
                                   .number = t->number,
                                   .disturbed = t->disturbed,
                                   .attempts = m->attempts,
                                   .flags = m->flags,
                                   .min_s = t->min_s,
                                   .median_s = t->median_s,
                                   .mean_s = t->mean_s,
                                   .std_s = t->std_s,
                                   .cv = t->cv,
                                   .ci = t->ci,
                                   .quiet_before = m->quiet_before,
                                   .quiet_after = m->quiet_after,
                                   .build_s = m->build_s,
                                   .run_s = m->run_s,
                                   .max_error = m->max_error,
                                   .cycles = m->cycles,
                                   .instructions = m->instructions,
                                   .cache_misses = m->cache_misses};
}

static cdmpp_status measure_job(worker *w, cd_record_program *j, cd_remote_times *out,
                                cdmpp_err *err) {
    cd_record r;
    /* it makes the shapes, too: packed parameters need them */
    CD_TRY(cd_record_program_code(&w->maker, j, err));
    cd_measure_item item = {.code = &j->code,
                            .arg = j->arg,
                            .reference = w->maker.reference ? &j->reference : NULL,
                            .target = j->target,
                            .threads =
                                cd_record_program_threads(j, w->o->threads, cd_affinity_count())};
    /* an answer with an error number, not a refusal */
    if (j->why.code) cd_measure_result_fail(&item.out, 1, &j->why);
    else CD_TRY(cd_measure_one(w->m, &item, err));
    CD_TRY(cd_record_program_record(j, &item.out, &r, err));
    out->error_no = r.error_no;
    out->total_s = r.total_s;
    out->timestamp = r.timestamp;
    put_stats(&item.out, out);
    for (uint32_t i = 0; i < r.n_cost && i < CD_REMOTE_COSTS; i++)
        out->cost_s[out->n_cost++] = r.cost_s[i];
    return CDMPP_OK;
}

static cdmpp_status on_job(void *ctx, cd_str line, cd_remote_times *out, cdmpp_err *err) {
    worker *w = ctx;
    cd_record_program j;
    const cd_recline l = {.path = "job", .number = 0, .text = line.p, .len = line.n};
    cdmpp_status st = cd_record_program_make(&w->maker, &l, &j, err);
    if (!st) st = measure_job(w, &j, out, err);
    cd_record_program_free(&j);
    return st;
}

/* The name is that which records of a local run get, so that both ways of measuring make the same
 * log. */
static void describe(const char *core, cd_remote_about *a) {
    /* by cd_isa */
    static const char *const isa[] = {"", "avx512", "avx2", "sse2", "aarch64", "armv7"};
    cd_describe_namer namer = {.core = core};
    cd_host_info h;
    cd_host_info_read("", &h);
    const char *name = cd_describe_namer_ask(&namer, (cd_str){"llvm", 4});
    snprintf(a->device, sizeof a->device, "%s", h.cpu);
    snprintf(a->model, sizeof a->model, "%s", name ? name : "");
    snprintf(a->isa, sizeof a->isa, "%s", isa[cd_isa_here()]);
    snprintf(a->core, sizeof a->core, "%s", core ? core : "");
    a->cpus = cd_affinity_count();
}

cdmpp_status cd_remote_worker_run(const cd_remote_worker_options *o, cdmpp_err *err) {
    worker w = {.o = o};
    cd_remote_about about = {0};
    /* before the thread of cd_remote_serve: it forks */
    cdmpp_status st = cd_measure_open(&o->measure, &w.m, err);
    if (!st) st = cd_task_registry_new(&w.tasks, err);
    if (!st) st = cd_program_new(&w.program, err);
    if (!st) {
        w.maker = (cd_record_maker){
            .tasks = w.tasks, .program = w.program, .dialect = o->dialect, .isa = o->measure.isa};
        describe(o->core, &about);
        const cd_remote_service s = {on_setup, on_job, &w, &about, 0};
        st = cd_remote_serve(STDIN_FILENO, STDOUT_FILENO, &s, err);
    }
    cd_measure_close(w.m);
    cd_program_free(w.program);
    cd_task_registry_free(w.tasks);
    return st;
}
