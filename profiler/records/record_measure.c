/* Measures a stream of records in batches: while one batch is measured, the next one is read and
 * compiled on the processors that the measured programs do not use. On two processors, where
 * compiling takes longer than measuring, the two alternate and the compilers have both processors.
 * The first batches are small, so that the first records are there soon: a run that is cut off
 * while it compiles has none. */
#include "profiler/records/records.h"

enum { BATCH = 64, FIRST = 4 };

typedef struct {
    cd_record_program job[BATCH];
    cd_measure_item item[BATCH];
    size_t n;
    int threads; /* the largest number of any program */
} batch;

typedef struct {
    const cd_record_measure_options *o;
    const volatile sig_atomic_t *stop;
    cd_record_maker *maker;
    cd_record_reader *file;  /* of this round; the caller's in the first one */
    cd_record_reader *again; /* ours */
    cd_record_output *out;
    cd_measure *m;
    cd_record_stats *sum;
    cd_affinity all;
    int cpus, rounds;
    int round;   /* from 1 */
    size_t read; /* lines of this round */
    batch two[2];
    size_t fill; /* programs of the next batch */
    int now;     /* two[now] is measured, the other one is filled */
    int jobs;    /* compilers at a time, now */
    /* of a recent program: processor time of compilers; time of a worker; 0: unknown */
    double build_s, run_s;
    bool over; /* nothing more is to be read */
} run;

/* ---- reading ---- */

/* A program for another machine is no failure: it is not measured here, and no record says that it
 * was. */
static cdmpp_status runs_here(const run *r, const cd_record_program *j, cdmpp_err *err) {
    const cd_backend_kind *k = cd_backend_for_target(j->record.target);
    const cd_str t = j->record.target;
    if (!k)
        return CD_FAIL(err, EBACKEND,
                       "no back end (%s) for target '%.*s'; --target measures for another one",
                       cd_backend_names(), cd_str_shown(t, 60), t.p);
    return k->dialect == CD_DIALECT_C
               ? cd_isa_choose(r->o->measure.isa, j->target, &(cd_isa_choice){0}, err)
               : CDMPP_OK;
}

/* One line to the batch, unless the output has it: code is generated only for what is measured. */
static cdmpp_status add(run *r, batch *b, const cd_recline *l, cdmpp_err *err) {
    cd_record_program *j = &b->job[b->n];
    bool mine = false;
    cdmpp_status st = cd_record_program_make(r->maker, l, j, err);
    if (!st) st = cd_err_at(err, runs_here(r, j, err), l->path, l->number);
    if (!st) st = cd_record_output_claim(r->out, j->id, (unsigned)r->round, &mine, err);
    if (!st && mine) st = cd_record_program_code(r->maker, j, err);
    if (st || !mine) {
        r->sum->known += !st;
        cd_record_program_free(j);
        return st;
    }
    cd_measure_item *item = &b->item[b->n++];
    *item = (cd_measure_item){.code = &j->code,
                              .arg = j->arg,
                              .reference = r->maker->reference ? &j->reference : NULL,
                              .target = j->target,
                              .threads = cd_record_program_threads(j, r->o->threads, r->cpus)};
    const cd_backend_kind *k = cd_backend_for_target(j->record.target);
    /* of this machine, while it is measured */
    const int busy = k && k->dialect == CD_DIALECT_CUDA ? 1 : item->threads;
    if (busy > b->threads) b->threads = busy;
    if (j->why.code) cd_measure_result_fail(&item->out, 1, &j->why);
    return CDMPP_OK;
}

/* The next round reads the files again. */
static cdmpp_status next_round(run *r, cdmpp_err *err) {
    r->over = r->round >= r->rounds;
    if (r->over) return CDMPP_OK;
    r->round++;
    r->read = 0;
    cd_record_reader_close(r->again);
    r->again = NULL;
    CD_TRY(cd_record_reader_open(r->o->path, r->o->n_path, &r->again, err));
    r->file = r->again;
    return CDMPP_OK;
}

/* Read until the batch is full; bad lines are reported in the first round only, else each round
 * would repeat them. */
static cdmpp_status fill(run *r, batch *b, cdmpp_err *err) {
    b->n = 0;
    b->threads = 0;
    while (b->n < r->fill && !r->over && !*r->stop) {
        cdmpp_err why = {0};
        cd_recline l = {0};
        cdmpp_status st = r->o->limit && r->read >= r->o->limit
                              ? CDMPP_OK
                              : cd_record_reader_next(r->file, &l, &why);
        if (!st && !l.text) {
            CD_TRY(next_round(r, err));
            continue;
        }
        r->read++;
        r->sum->lines += r->round == 1;
        if (!st) st = add(r, b, &l, &why);
        if (!st || r->round > 1) continue;
        CD_TRY(cd_record_listener_bad(r->o->listener, &why, err));
        r->sum->reason[why.code]++;
    }
    r->fill = 2 * r->fill < BATCH ? 2 * r->fill : BATCH;
    return CDMPP_OK;
}

/* ---- measuring ---- */
static cdmpp_status write_one(run *r, cd_record_program *j, const cd_measure_result *m,
                              cdmpp_err *err) {
    cd_record record;
    CD_TRY(cd_record_program_record(j, m, &record, err));
    cd_record_measured x = {.job = j,
                            .record = &record,
                            .task = cd_task_registry_find(r->maker->tasks, record.workload_key),
                            .result = m};
    CD_TRY(cd_record_output_put(r->out, &x, err));
    cd_record_stats_add(r->sum, m);
    if (m->error_no)
        cd_record_listener_note(r->o->listener, "%s:%ld: %s (error %d): %s", j->path, j->number,
                                cd_record_stats_error(m->error_no), m->error_no, m->err.msg);
    return CDMPP_OK;
}

static cdmpp_status interrupted(const run *r, cdmpp_err *err) {
    return CD_FAIL(err, EINTERRUPTED, "after %zu programs", r->sum->measured + r->sum->failed);
}

static cdmpp_status measure_batch(run *r, batch *b, cdmpp_err *err) {
    const double begin = cd_clock_wall();
    for (size_t i = 0; i < b->n; i++) {
        if (*r->stop) return interrupted(r, err);
        CD_TRY(cd_measure_run(r->m, &b->item[i], err));
        CD_TRY(write_one(r, &b->job[i], &b->item[i].out, err));
    }
    if (b->n) r->run_s = (cd_clock_wall() - begin) / (double)b->n;
    return CDMPP_OK;
}

static void empty(batch *b) {
    for (size_t i = 0; i < b->n; i++) cd_record_program_free(&b->job[i]);
    b->n = 0;
}

/* ---- both ---- */

/* Item 0 of the pool measures a batch, item 1 fills and compiles the other one. */
static cdmpp_status step(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    run *r = ctx;
    (void)end, (void)w;
    if (beg == 0) return measure_batch(r, &r->two[r->now], err);
    batch *b = &r->two[!r->now];
    CD_TRY(fill(r, b, err));
    const double begin = cd_clock_wall();
    CD_TRY(cd_measure_build(r->m, b->item, b->n, err));
    if (b->n) r->build_s = (cd_clock_wall() - begin) / (double)b->n * r->jobs;
    return CDMPP_OK;
}

/* Is overlapping faster? Overlapped, a program takes the longer of compiling on `rest` processors
 * and of measuring; alternating, compiling on all processors and then measuring. */
static bool overlap_is_faster(const run *r, int rest) {
    if (r->build_s <= 0 || r->run_s <= 0) return rest > r->cpus / 2; /* nothing is known yet */
    const double together = r->build_s / rest > r->run_s ? r->build_s / rest : r->run_s;
    return together < r->build_s / r->cpus + r->run_s;
}

/* Compilers stay off the processors of the programs that are measured at the same time. True: the
 * two overlap. */
static bool divide_processors(run *r, int threads) {
    const bool both = threads > 0 && threads < r->cpus && r->o->measure.pin &&
                      overlap_is_faster(r, r->cpus - threads);
    r->jobs = both ? r->cpus - threads : r->cpus;
    if (r->o->jobs && r->o->jobs < r->jobs) r->jobs = r->o->jobs;
    cd_affinity_set(&r->all, both ? threads : 0);
    cd_measure_jobs(r->m, r->jobs);
    return both;
}

/* A pool of two threads overlaps the steps, a pool of one alternates them. A change between the two
 * makes a new pool, because its threads inherit the processors that this thread has when they
 * begin. */
static cdmpp_status all_batches(run *r, cdmpp_err *err) {
    cd_threads *pool = NULL;
    (void)divide_processors(r, 0);
    r->now = 1;
    r->fill = r->cpus < FIRST ? FIRST : r->cpus < BATCH ? (size_t)r->cpus : BATCH;
    cdmpp_status st = step(r, 1, 2, 0, err); /* fills two[0] */
    if (!st) st = cd_threads_new(1, &pool, err);
    for (bool both = false; !st && r->two[!r->now].n;) {
        r->now = !r->now;
        if (divide_processors(r, r->two[r->now].threads) != both) {
            both = !both;
            cd_threads_free(pool);
            st = cd_threads_new(both ? 2 : 1, &pool, err);
        }
        if (!st) st = cd_threads_run(pool, 2, 1, step, r, err);
        empty(&r->two[r->now]);
    }
    if (!st && *r->stop) st = interrupted(r, err);
    cd_threads_free(pool);
    for (int k = 0; k < 2; k++) empty(&r->two[k]);
    cd_affinity_set(&r->all, 0);
    return st;
}

/* Processors are counted before the first change of affinity; the statistics begin with this
 * machine and the timing policy. */
static cdmpp_status begin(run *r, cdmpp_err *err) {
    const cd_record_measure_options *o = r->o;
    cd_host_info h;
    cd_buf warnings = {0}, head = {0};
    r->cpus = cd_affinity_count();
    cd_affinity_get(&r->all);
    cd_host_info_read("", &h);
    cd_host_info_warnings(&warnings, &h, o->threads > 0 ? o->threads : 1);
    if (warnings.n) cd_record_listener_note(o->listener, "times may be unsteady: %s", warnings.p);
    const cd_timing_policy p = cd_timing_defaults(
        o->measure.timing, cd_timing_clock_check(cd_timing_clock_now, NULL).tick_s);
    cd_record_stats_head(&head, &h, warnings.p ? warnings.p : "", &p, o->threads, o->core);
    const cdmpp_status st = cd_record_output_begin(r->out, &head, err);
    cd_buf_free(&warnings);
    cd_buf_free(&head);
    return st;
}

/* Two batches of programs are too large for the stack. */
cdmpp_status cd_record_measure_run(const cd_record_measure_options *o, cd_measure *m,
                                   cd_record_maker *maker, cd_record_reader *file,
                                   cd_record_output *out, cd_record_stats *sum, cdmpp_err *err) {
    run *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "batch");
    r->o = o;
    r->stop = o->measure.stop;
    r->m = m;
    r->maker = maker;
    r->file = file;
    r->out = out;
    r->sum = sum;
    r->round = 1;
    r->rounds = o->rounds < 1 ? 1 : o->rounds;
    cdmpp_status st = begin(r, err);
    if (!st) st = all_batches(r, err);
    cd_record_reader_close(r->again);
    cd_mem_free(r);
    return st;
}
