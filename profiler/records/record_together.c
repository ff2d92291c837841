/* Measures the programs of records alone with several numbers of threads, and keeps them compiled,
 * so that they can be run together. */
#include "profiler/records/record_together.h"

#include "profiler/host/host.h"

/* 1, 2, 3, 4, 6, 8, 12, 16 ... and the last one itself. */
static void choose_counts(cd_record_together *t) {
    for (int k = 1; k < t->threads && t->n_count < CD_RECORD_TOGETHER_COUNTS - 1;
         k = k < 2         ? k + 1
             : k & (k - 1) ? k / 3 * 4
                           : k / 2 * 3)
        t->count[t->n_count++] = k;
    t->count[t->n_count++] = t->threads;
}

static cdmpp_status make(cd_record_together *t, size_t at, int count, cdmpp_err *err) {
    const cd_record_best *b = &t->best[at];
    cd_record_program *job = &t->job[at][count];
    cd_measure_item *item = &t->item[at][count];
    cd_record r;
    cd_buf line = {0};
    CD_TRY(cd_record_read(&t->arena, b->text, b->len, &r, err));
    if (r.has_hardware) r.hardware.num_cores = t->count[count];
    cdmpp_status st = cd_record_write(&line, &r, err);
    if (!st)
        st = cd_record_program_make(
            &t->maker,
            &(cd_recline){.path = b->path, .number = b->number, .text = line.p, .len = line.n - 1},
            job, err);
    if (!st) st = cd_record_program_code(&t->maker, job, err);
    cd_buf_free(&line);
    *item = (cd_measure_item){.code = &job->code,
                              .arg = job->arg,
                              .reference = &job->reference,
                              .target = job->target,
                              .threads = t->count[count]};
    if (!st && job->why.code) cd_measure_result_fail(&item->out, 1, &job->why);
    return st;
}

static cdmpp_status alone(const cd_record_together_options *o, cd_record_together *t, size_t at,
                          cdmpp_err *err) {
    for (int k = 0; k < t->n_count; k++) CD_TRY(make(t, at, k, err));
    CD_TRY(cd_measure_build(t->measure, t->item[at], (size_t)t->n_count, err));
    for (int k = 0; k < t->n_count; k++) {
        const cd_measure_item *i = &t->item[at][k];
        if (!i->out.error_no) CD_TRY(cd_measure_run(t->measure, &t->item[at][k], err));
        if (!i->out.error_no) continue;
        t->bad++;
        cd_record_listener_note(o->best.listener, "%s:%ld: %d threads: error %d: %s",
                                t->best[at].path, t->best[at].number, t->count[k], i->out.error_no,
                                i->out.err.msg);
    }
    return CDMPP_OK;
}

static cdmpp_status measure(const cd_record_together_options *o, cd_record_together *t,
                            cdmpp_err *err) {
    cd_measure_options mo = o->measure;
    const int cpus = cd_affinity_count();
    t->threads = o->threads > 0 ? o->threads : cpus;
    if (t->threads > cpus)
        return CD_FAIL(err, EUSAGE, "%d threads need as many processors, there are %d", t->threads,
                       cpus);
    mo.threads = t->threads;
    mo.pin = false; /* a worker that is pinned has a fixed number of processors */
    choose_counts(t);
    CD_TRY(cd_measure_open(&mo, &t->measure, err)); /* first of all, it forks */
    t->maker = (cd_record_maker){
        .target = o->target, .dialect = CD_DIALECT_C, .isa = o->measure.isa, .reference = true};
    CD_TRY(cd_record_program_maker_open(&t->maker, o->task_file, o->n_task_file, o->log, err));
    CD_TRY(cd_record_best_read(&t->arena, &o->best, t->best, &t->n, err));
    if (!t->n) return CD_FAIL(err, ENODATA, "no record to measure");
    for (size_t k = 0; k < t->n; k++) CD_TRY(alone(o, t, k, err));
    return CDMPP_OK;
}

cdmpp_status cd_record_together_measure(const cd_record_together_options *o,
                                        cd_record_together **out, cdmpp_err *err) {
    cd_record_together *t = *out = cd_mem_zalloc(1, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "programs");
    return measure(o, t, err);
}

int cd_record_together_find(const cd_record_together *t, size_t at, int threads) {
    const cd_measure_item *i = t->item[at];
    int found = -1;
    for (int k = 0; k < t->n_count && t->count[k] <= threads; k++)
        if (!i[k].out.error_no &&
            (found < 0 || i[k].out.time.median_s < i[found].out.time.median_s))
            found = k;
    return found;
}

bool cd_record_together_way(const cd_record_together *t, const uint32_t *threads, bool at_once,
                            cd_corun_way *out) {
    *out = (cd_corun_way){.n = (unsigned)t->n, .at_once = at_once};
    for (size_t k = 0; k < t->n; k++) {
        const int at = cd_record_together_find(t, k, (int)threads[k]);
        if (at < 0) return false;
        out->build[k] = &t->item[k][at].build;
        out->threads[k] = t->count[at];
    }
    return true;
}

void cd_record_together_free(cd_record_together *t) {
    if (!t) return;
    cd_measure_close(t->measure);
    for (size_t i = 0; i < t->n; i++)
        for (int k = 0; k < t->n_count; k++) cd_record_program_free(&t->job[i][k]);
    cd_record_program_maker_close(&t->maker);
    cd_arena_free(&t->arena);
    cd_mem_free(t);
}
