/* Writes measured programs. The record comes first: what follows names its line, and a run that is
 * killed in between repeats only the statistics. Local and remote measuring share this file, so
 * that their outputs cannot differ. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "features/task/task.h"
#include "profiler/records/records.h"

/* Of which kind logs are: the first record that can be read tells. A command that is given no model
 * chooses the default one by it. */

/* What a pipe has given cannot be read again. */
static bool is_stored(const char *path) {
    struct stat s;
    return !stat(path, &s) && (S_ISREG(s.st_mode) || S_ISDIR(s.st_mode));
}

bool cd_record_first_is_gpu(const char *const *path, size_t n) {
    enum { LINES = 1000 };
    cd_record_reader *r = NULL;
    cd_record record = {0};
    cd_arena a = {0};
    bool found = false, over = false;
    for (size_t k = 0; k < n; k++) over |= !is_stored(path[k]);
    over = over || !n || cd_record_reader_open(path, n, &r, NULL) != CDMPP_OK;
    for (int k = 0; k < LINES && !found && !over; k++) {
        cd_recline line = {0};
        /* a bad line: told when all are used */
        if (cd_record_reader_next(r, &line, NULL)) continue;
        over = !line.text;
        if (!over) found = !cd_record_read(&a, line.text, line.len, &record, NULL);
    }
    const bool gpu = found && cd_target_is_gpu(record.target);
    cd_arena_free(&a);
    cd_record_reader_close(r);
    return gpu;
}

/* Statistics of a run beside its records: a JSON line for each program, and the counts at the end
 * as JSON or as text. */

void cd_record_stats_begin(cd_record_stats *s, double now_s) {
    memset(s, 0, sizeof *s);
    s->begin_s = now_s;
    cd_host_time_read("", &s->begin);
}

const char *cd_record_stats_error(int error_no) {
    static const char *const text[] = {"",
                                       "no program",
                                       "compile error",
                                       "device compile error",
                                       "error while running",
                                       "wrong result",
                                       "compiling took too long",
                                       "running took too long",
                                       "unknown"};
    return text[error_no >= 0 && error_no <= CD_ERROR_NO_MAX ? error_no : CD_ERROR_NO_MAX];
}

void cd_record_stats_add(cd_record_stats *s, const cd_measure_result *m) {
    s->build_s += m->build_s;
    s->run_s += m->run_s;
    s->error_no[m->error_no >= 0 && m->error_no <= CD_ERROR_NO_MAX ? m->error_no
                                                                   : CD_ERROR_NO_MAX]++;
    if (m->error_no) {
        s->failed++;
        return;
    }
    s->measured++;
    s->noisy += (m->flags & CD_MEASURE_NOISY) != 0;
    s->wide += (m->flags & CD_MEASURE_WIDE) != 0;
    s->cached += (m->flags & CD_MEASURE_CACHED) != 0;
}

/* ---- lines ---- */
static void put_real(cd_buf *b, const char *name, double v) {
    cd_buf_putf(b, ",\"%s\":", name);
    cd_buf_put_json_real(b, v);
}

static void put_text(cd_buf *b, const char *name, const char *v, size_t n) {
    cd_buf_putf(b, ",\"%s\":", name);
    cd_buf_put_json_str(b, v, n);
}

void cd_record_stats_head(cd_buf *b, const cd_host_info *h, const char *warnings,
                          const cd_timing_policy *p, int threads, const char *core) {
    cd_buf_puts(b, "{\"schema\":\"cdmpp.profile_stats\",\"host\":");
    cd_host_info_json(b, h);
    put_text(b, "warnings", warnings, strlen(warnings));
    if (core) put_text(b, "core_type", core, strlen(core));
    cd_buf_putf(
        b,
        ",\"threads\":%d,\"policy\":{\"cold\":%s,\"cool\":%s,\"min_repeat\":%u,\"max_repeat\":%u",
        threads, p->cold ? "true" : "false", p->cool ? "true" : "false", p->min_repeat,
        p->max_repeat);
    put_real(b, "budget_s", p->budget_s);
    put_real(b, "warmup_s", p->warmup_s);
    put_real(b, "min_repeat_s", p->min_repeat_s);
    put_real(b, "ci", p->ci);
    cd_buf_puts(b, "}}\n");
}

/* Counters that were not available are left out. */
static void put_figures(cd_buf *b, const cd_measure_result *m) {
    const cd_timing *t = &m->time;
    cd_buf_putf(b, ",\"n\":%u,\"kept\":%u,\"number\":%u,\"disturbed\":%u,\"attempts\":%u", t->n,
                t->n_kept, t->number, t->disturbed, m->attempts);
    put_real(b, "min_s", t->min_s);
    put_real(b, "median_s", t->median_s);
    put_real(b, "mean_s", t->mean_s);
    put_real(b, "std_s", t->std_s);
    put_real(b, "cv", t->cv);
    put_real(b, "ci", t->ci);
    put_real(b, "quiet_before", m->quiet_before);
    put_real(b, "quiet_after", m->quiet_after);
    if (m->cycles >= 0) put_real(b, "cycles", m->cycles);
    if (m->instructions >= 0) put_real(b, "instructions", m->instructions);
    if (m->cache_misses >= 0) put_real(b, "cache_misses", m->cache_misses);
    if (m->flags & CD_MEASURE_CHECKED) put_real(b, "max_error", m->max_error);
}

/* A failed program has its error in place of figures. */
void cd_record_stats_line(cd_buf *b, const cd_record_program *j, long record,
                          const cd_measure_result *m, const char *host) {
    cd_buf_puts(b, "{\"file\":");
    cd_buf_put_json_str(b, j->path, strlen(j->path));
    cd_buf_putf(b, ",\"line\":%ld,\"record\":%ld", j->number, record);
    put_text(b, "workload_key", j->record.workload_key.p, j->record.workload_key.n);
    put_text(b, "target", j->target, strlen(j->target));
    cd_buf_putf(b, ",\"id\":\"%016llx%016llx\",\"at\":%lld", (unsigned long long)j->id.a,
                (unsigned long long)j->id.b, (long long)m->at);
    if (host) put_text(b, "host", host, strlen(host));
    if (j->flop >= 0) put_real(b, "flop", j->flop);
    put_real(b, "build_s", m->build_s);
    put_real(b, "run_s", m->run_s);
    cd_buf_putf(b, ",\"error_no\":%d", m->error_no);
    if (m->error_no) put_text(b, "error", m->err.msg, strlen(m->err.msg));
    else put_figures(b, m);
    cd_buf_putf(b, ",\"flags\":[%s", m->flags & CD_MEASURE_NOISY ? "\"noisy\"," : "");
    cd_buf_putf(b, "%s%s%s", m->flags & CD_MEASURE_WIDE ? "\"wide\"," : "",
                m->flags & CD_MEASURE_CACHED ? "\"cached\"," : "",
                m->flags & CD_MEASURE_CHECKED ? "\"checked\"," : "");
    if (b->n && b->p[b->n - 1] == ',') b->n--;
    cd_buf_puts(b, "]}\n");
}

/* ---- sums ---- */
/* Share of all processors' time that the machine's host took; negative: unknown. */
static double steal_of(const cd_record_stats *s) {
    cd_host_time now;
    cd_host_time_read("", &now);
    if (now.steal < 0 || s->begin.steal < 0 || now.total <= s->begin.total) return -1;
    return (double)(now.steal - s->begin.steal) / (double)(now.total - s->begin.total);
}

static double rate(const cd_record_stats *s, double now_s) {
    return now_s > s->begin_s ? (double)(s->measured + s->failed) / (now_s - s->begin_s) : 0;
}

/* Error numbers and reasons that did not occur are left out. */
void cd_record_stats_json(cd_buf *b, const cd_record_stats *s, double now_s) {
    const double steal = steal_of(s);
    cd_buf_putf(b,
                "{\"records\":%zu,\"measured\":%zu,\"failed\":%zu,\"known\":%zu,\"bad\":%zu,"
                "\"noisy\":%zu,\"wide\":%zu,\"cached\":%zu,\"errors\":{",
                s->lines, s->measured, s->failed, s->known, s->bad, s->noisy, s->wide, s->cached);
    for (int k = 1, any = 0; k <= CD_ERROR_NO_MAX; k++)
        if (s->error_no[k]) cd_buf_putf(b, "%s\"%d\":%zu", any++ ? "," : "", k, s->error_no[k]);
    cd_buf_puts(b, "},\"reasons\":{");
    for (int k = 1, any = 0; k < CDMPP_STATUS_COUNT; k++)
        if (s->reason[k])
            cd_buf_putf(b, "%s\"%s\":%zu", any++ ? "," : "", cdmpp_status_name((cdmpp_status)k),
                        s->reason[k]);
    cd_buf_puts(b, "}");
    put_real(b, "seconds", now_s - s->begin_s);
    put_real(b, "programs_per_s", rate(s, now_s));
    put_real(b, "build_s", s->build_s);
    put_real(b, "run_s", s->run_s);
    if (steal >= 0) put_real(b, "steal", steal);
    cd_buf_puts(b, "}");
}

void cd_record_stats_text(cd_buf *b, const cd_record_stats *s, double now_s) {
    cd_buf_putf(b,
                "%zu records: %zu measured, %zu failed, %zu measured before, %zu cannot be used\n",
                s->lines, s->measured, s->failed, s->known, s->bad);
    for (int k = 1; k <= CD_ERROR_NO_MAX; k++)
        if (s->error_no[k]) cd_buf_putf(b, "%10zu  %s\n", s->error_no[k], cd_record_stats_error(k));
    if (s->noisy) cd_buf_putf(b, "%10zu  measured while something else ran\n", s->noisy);
    if (s->measured + s->failed)
        cd_buf_putf(b, "%.1f s, %.3g programs/s\n", now_s - s->begin_s, rate(s, now_s));
}

struct cd_record_output {
    const cd_record_output_options *o;
    cd_record_log *log;
    FILE *stats; /* NULL: none, or not begun */
};

cdmpp_status cd_record_output_open(const cd_record_output_options *o, cd_record_output **out,
                                   cdmpp_err *err) {
    cd_record_output *w = cd_mem_zalloc(1, sizeof *w);
    if (!w) return CD_FAIL(err, ENOMEM, "output");
    w->o = o;
    const cdmpp_status st = cd_record_log_open(o->path, o->retry, &w->log, err);
    if (st) cd_mem_free(w);
    else *out = w;
    return st;
}

cdmpp_status cd_record_output_begin(cd_record_output *w, const cd_buf *head, cdmpp_err *err) {
    if (!w->o->stats) return CDMPP_OK;
    w->stats = fopen(w->o->stats, "a");
    if (!w->stats)
        return cd_err_at(err, CD_FAIL(err, EIO, "cannot open: %s", strerror(errno)), w->o->stats,
                         0);
    /* the check of the next line sees what went wrong */
    if (!head->oom) (void)fwrite(head->p, 1, head->n, w->stats);
    return CDMPP_OK;
}

cdmpp_status cd_record_output_claim(cd_record_output *w, cd_record_id id, unsigned limit,
                                    bool *mine, cdmpp_err *err) {
    return cd_record_log_claim(w->log, id, limit, mine, err);
}

cdmpp_status cd_record_output_put(cd_record_output *w, cd_record_measured *m, cdmpp_err *err) {
    cd_buf b = {0};
    CD_TRY(cd_record_log_add(w->log, m->record, &m->line, err));
    if (w->o->more) CD_TRY(w->o->more(w->o->ctx, m, err));
    if (!w->stats) return CDMPP_OK;
    cd_record_stats_line(&b, m->job, m->line, m->result, m->host);
    const bool good = !b.oom && fwrite(b.p, 1, b.n, w->stats) == b.n && fflush(w->stats) == 0;
    cd_buf_free(&b);
    return good ? CDMPP_OK
                : cd_err_at(err, CD_FAIL(err, EIO, "cannot write: %s", strerror(errno)),
                            w->o->stats, 0);
}

cdmpp_status cd_record_output_close(cd_record_output *w, cdmpp_err *err) {
    if (!w) return CDMPP_OK;
    cdmpp_status st = cd_record_log_close(w->log, err);
    if (w->stats && fclose(w->stats) != 0 && !st)
        st = cd_err_at(err, CD_FAIL(err, EIO, "cannot write: %s", strerror(errno)), w->o->stats, 0);
    cd_mem_free(w);
    return st;
}

/* Measures a stream of records in batches: while one batch is measured, the next one is read and
 * compiled on the processors that the measured programs do not use. On two processors, where
 * compiling takes longer than measuring, the two alternate and the compilers have both processors.
 * The first batches are small, so that the first records are there soon: a run that is cut off
 * while it compiles has none. */

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
