/* Mode "records" of cdmpp-profile, measuring: lines become programs, programs times, times records.
 *
 *   batch k:   read, generate, compile │ measure, write      on the last processors
 *   batch k+1:                           read, generate, compile   on the others, at the same time
 *
 * At the same time only where the programs leave processors to the compilers, and where that is
 * faster: on two processors, where compiling takes longer than measuring, the two take turns and
 * compilers have both. Taking turns also disturbs nothing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/core/core.h"
#include "profiler/host/host.h"
#include "profiler/cmd/main_profile.h"
#include "profiler/records/records.h"

enum { BATCH = 64 };

typedef struct {
    cd_record_program job[BATCH];
    cd_measure_item item[BATCH];
    size_t n;
    int threads;                /* most of any program */
} batch;

typedef struct {
    cd_main_profile *o;
    cd_recmaker *maker;
    cd_record_reader *file;           /* of this round; the caller's in the first one */
    cd_record_reader *again;          /* ours */
    cd_record_log *log;
    FILE *stats;
    cd_main_profile_keep *keep; /* NULL: no --store */
    cd_measure *m;
    cd_record_stats sum;
    cd_affinity all;
    int cpus;
    int round;                  /* from 1 */
    size_t read;                /* lines of this round */
    batch two[2];
    int now;                    /* two[now] is measured, the other one is filled */
    int jobs;                   /* compilers at a time, now */
    double build_s, run_s;      /* of a program, lately: processor time of compilers; time of a worker; 0: unknown */
    bool over;                  /* nothing more is to be read */
} run;

/* ---- reading ---- */
static int threads_of(const run *r, const cd_record_program *j) {
    const int64_t cores = j->record.hardware.num_cores;
    if (r->o->threads > 0) return r->o->threads;
    return cores < 1 || cores > r->cpus ? r->cpus : (int)cores;
}

/* A program for another machine is no failure: it is not measured here, and no record says that it was. */
static cdmpp_status runs_here(const run *r, const cd_record_program *j, cdmpp_err *err) {
    const cd_backend_kind *k = cd_backend_for_target(j->record.target);
    const cd_str t = j->record.target;
    if (!k) return CD_FAIL(err, EBACKEND, "no back end (%s) for target '%.*s'; --target measures for another one", cd_backend_names(), (int)(t.n < 60 ? t.n : 60), t.p);
    return k->dialect == CD_DIALECT_C ? cd_isa_choose(r->o->isa, j->target, &(cd_isa_choice){0}, err) : CDMPP_OK;
}

static cdmpp_status add(run *r, batch *b, const cd_recline *l, cdmpp_err *err) {
    cd_record_program *j = &b->job[b->n];
    bool mine = false;
    cdmpp_status st = cd_record_program_make(r->maker, l, j, err);
    if (!st) st = cd_err_at(err, runs_here(r, j, err), l->path, l->number);
    if (!st) st = cd_record_log_claim(r->log, j->id, (unsigned)r->round, &mine, err);
    if (!st && mine) st = cd_record_program_code(r->maker, j, err);
    if (st || !mine) {
        r->sum.known += !st;
        cd_record_program_free(j);
        return st;
    }
    cd_measure_item *item = &b->item[b->n++];
    *item = (cd_measure_item){.code = &j->code, .arg = j->arg, .reference = r->o->check ? &j->reference : NULL, .target = j->target, .threads = threads_of(r, j)};
    if (item->threads > b->threads) b->threads = item->threads;
    if (j->why.code) cd_measure_result_fail(&item->out, 1, &j->why);
    return CDMPP_OK;
}

/* The next round reads the files again. */
static cdmpp_status next_round(run *r, cdmpp_err *err) {
    r->over = r->round >= r->o->rounds;
    if (r->over) return CDMPP_OK;
    r->round++;
    r->read = 0;
    cd_record_reader_close(r->again);
    r->again = NULL;
    CD_TRY(cd_record_reader_open(r->o->operand.v, r->o->operand.n, &r->again, err));
    r->file = r->again;
    return CDMPP_OK;
}

static cdmpp_status fill(run *r, batch *b, cdmpp_err *err) {
    b->n = 0;
    b->threads = 0;
    while (b->n < BATCH && !r->over && !*r->o->stop) {
        cdmpp_err why = {0};
        cd_recline l = {0};
        cdmpp_status st = r->o->limit && r->read >= (size_t)r->o->limit ? CDMPP_OK : cd_record_reader_next(r->file, &l, &why);
        if (!st && !l.text) {
            CD_TRY(next_round(r, err));
            continue;
        }
        r->read++;
        r->sum.lines += r->round == 1;
        if (!st) st = add(r, b, &l, &why);
        if (st && r->round == 1) CD_TRY(cd_main_profile_bad(r->o, &why, &r->sum.reason[why.code], err));
    }
    return CDMPP_OK;
}

/* ---- measuring ---- */
static cdmpp_status write_one(run *r, cd_record_program *j, const cd_measure_result *m, cdmpp_err *err) {
    cd_record record;
    cd_buf b = {0};
    long line = 0;
    CD_TRY(cd_record_program_record(j, m, &record, err));
    CD_TRY(cd_record_log_add(r->log, &record, &line, err));
    CD_TRY(cd_main_profile_keep_add(r->keep, &record, cd_task_registry_find(r->maker->tasks, record.workload_key), m, line, err));
    cd_record_stats_add(&r->sum, m);
    if (m->error_no) cd_log_put(r->o->log, CD_LOG_WARNING, "%s:%ld: %s (error %d): %s", j->path, j->number, cd_record_stats_error(m->error_no), m->error_no, m->err.msg);
    if (!r->stats) return CDMPP_OK;
    cd_record_stats_line(&b, j, line, m, NULL);
    const bool good = !b.oom && fwrite(b.p, 1, b.n, r->stats) == b.n && fflush(r->stats) == 0;
    cd_buf_free(&b);
    return good ? CDMPP_OK : cd_err_at(err, CD_FAIL(err, EIO, "cannot write: %s", strerror(errno)), r->o->stats, 0);
}

static cdmpp_status measure_batch(run *r, batch *b, cdmpp_err *err) {
    const double begin = cd_timing_clock_now(NULL);
    for (size_t i = 0; i < b->n; i++) {
        if (*r->o->stop) return CD_FAIL(err, EINTERRUPTED, "after %zu programs", r->sum.measured + r->sum.failed);
        CD_TRY(cd_measure_run(r->m, &b->item[i], err));
        CD_TRY(write_one(r, &b->job[i], &b->item[i].out, err));
    }
    if (b->n) r->run_s = (cd_timing_clock_now(NULL) - begin) / (double)b->n;
    return CDMPP_OK;
}

static void empty(batch *b) {
    for (size_t i = 0; i < b->n; i++) cd_record_program_free(&b->job[i]);
    b->n = 0;
}

/* ---- both ---- */
static cdmpp_status step(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    run *r = ctx;
    (void)end, (void)w;
    if (beg == 0) return measure_batch(r, &r->two[r->now], err);
    batch *b = &r->two[!r->now];
    CD_TRY(fill(r, b, err));
    const double begin = cd_timing_clock_now(NULL);
    CD_TRY(cd_measure_build(r->m, b->item, b->n, err));
    if (b->n) r->build_s = (cd_timing_clock_now(NULL) - begin) / (double)b->n * r->jobs;
    return CDMPP_OK;
}

/* Is a program done sooner when compiling has `rest` processors all the time than when it has all of them in its turn? */
static bool sooner(const run *r, int rest) {
    if (r->build_s <= 0 || r->run_s <= 0) return rest > r->cpus / 2; /* nothing is known yet */
    const double together = r->build_s / rest > r->run_s ? r->build_s / rest : r->run_s;
    return together < r->build_s / r->cpus + r->run_s;
}

/* Compilers stay off the processors of the programs that are measured meanwhile. */
static bool share(run *r, int threads) {
    const bool both = threads > 0 && threads < r->cpus && !r->o->no_pin && sooner(r, r->cpus - threads);
    r->jobs = both ? r->cpus - threads : r->cpus;
    if (r->o->jobs && r->o->jobs < r->jobs) r->jobs = r->o->jobs;
    cd_affinity_set(&r->all, both ? threads : 0);
    cd_measure_jobs(r->m, r->jobs);
    return both;
}

static cdmpp_status all_batches(run *r, cdmpp_err *err) {
    cd_threads *pool = NULL;
    (void)share(r, 0);
    r->now = 1;
    cdmpp_status st = step(r, 1, 2, 0, err); /* fills two[0] */
    if (!st) st = cd_threads_new(1, &pool, err);
    for (bool both = false; !st && r->two[!r->now].n;) {
        r->now = !r->now;
        if (share(r, r->two[r->now].threads) != both) {
            both = !both;
            cd_threads_free(pool);
            st = cd_threads_new(both ? 2 : 1, &pool, err); /* its thread begins with our processors */
        }
        if (!st) st = cd_threads_run(pool, 2, 1, step, r, err);
        empty(&r->two[r->now]);
    }
    if (!st && *r->o->stop) st = CD_FAIL(err, EINTERRUPTED, "after %zu programs", r->sum.measured + r->sum.failed);
    cd_threads_free(pool);
    for (int k = 0; k < 2; k++) empty(&r->two[k]);
    cd_affinity_set(&r->all, 0);
    return st;
}

/* ---- begin and end ---- */
cd_measure_options cd_main_profile_measure_options(const cd_main_profile *o) {
    return (cd_measure_options){.device = o->device,
                                .isa = o->isa,
                                .flags = o->cflags,
                                .cache = o->cache,
                                .cache_bytes = (uint64_t)o->cache_mb << 20,
                                .pin = !o->no_pin,
                                .build_limit_s = o->build_timeout_s,
                                .run_limit_s = o->timeout_s,
                                .memory_bytes = (uint64_t)o->memory_mb << 20,
                                .timing = {.budget_s = o->budget_ms * 1e-3, .cold = o->cold, .cool = o->cool},
                                .stop = o->stop};
}

static cdmpp_status begin(run *r, cdmpp_err *err) {
    cd_main_profile *o = r->o;
    cd_host_info h;
    cd_buf warnings = {0}, head = {0};
    const cd_measure_options m = cd_main_profile_measure_options(o);
    CD_TRY(cd_measure_open(&m, &r->m, err)); /* first of all: it forks */
    CD_TRY(cd_record_log_open(o->out, o->retry, &r->log, err));
    CD_TRY(cd_main_profile_keep_open(o, &r->keep, err));
    r->cpus = cd_affinity_count();
    cd_affinity_get(&r->all);
    cd_host_info_read("", &h);
    cd_host_info_warnings(&warnings, &h, o->threads > 0 ? o->threads : 1);
    if (warnings.n) cd_log_put(o->log, CD_LOG_WARNING, "times may be unsteady: %s", warnings.p);
    if (o->stats && !(r->stats = fopen(o->stats, "a"))) return cd_err_at(err, CD_FAIL(err, EIO, "cannot open: %s", strerror(errno)), o->stats, 0);
    if (r->stats) {
        const cd_timing_policy p = cd_timing_defaults(m.timing, cd_timing_clock_check(cd_timing_clock_now, NULL).tick_s);
        cd_record_stats_head(&head, &h, warnings.p ? warnings.p : "", &p, o->threads);
        if (!head.oom) (void)fwrite(head.p, 1, head.n, r->stats); /* the next line's check sees what went wrong */
    }
    cd_buf_free(&warnings);
    cd_buf_free(&head);
    return CDMPP_OK;
}

static cdmpp_status tell(run *r, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    const double now = cd_timing_clock_now(NULL);
    r->sum.bad = r->o->bad;
    r->o->bad += r->sum.failed;
    if (!r->o->json) {
        cd_record_stats_text(&b, &r->sum, now);
        return cd_command_print(&b, err);
    }
    cd_record_stats_json(&b, &r->sum, now);
    cd_command_json(&all, "cdmpp.profile_records", "cdmpp-profile", &b);
    return cd_command_print(&all, err);
}

cdmpp_status cd_main_profile_measure(cd_main_profile *o, cd_recmaker *maker, cd_record_reader *file, cdmpp_err *err) {
    run *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "batch");
    r->o = o;
    r->maker = maker;
    r->file = file;
    r->round = 1;
    if (o->rounds < 1) o->rounds = 1;
    cd_record_stats_begin(&r->sum, cd_timing_clock_now(NULL));
    cdmpp_status st = begin(r, err);
    if (!st) st = all_batches(r, err);
    cd_measure_close(r->m);
    const cdmpp_status closed = cd_record_log_close(r->log, st ? NULL : err);
    if (!st) st = closed;
    const cdmpp_status kept = cd_main_profile_keep_close(r->keep, st ? NULL : err);
    if (!st) st = kept;
    if (r->stats && fclose(r->stats) != 0 && !st) st = cd_err_at(err, CD_FAIL(err, EIO, "cannot write: %s", strerror(errno)), o->stats, 0);
    if (!st) st = tell(r, err);
    cd_record_reader_close(r->again);
    cd_mem_free(r);
    return st;
}
