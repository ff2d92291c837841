/* Compares the best program of a task with the untuned one: both must be right, and the faster one
 * is kept. */
#include "predictor/tune/session/tune_result.h"

#include <limits.h>
#include <string.h>

#include "predictor/tune/session/session.h"
#include "predictor/tune/session/tune_measure.h"

/* Compiles and measures candidates. On this machine: while a chunk runs the next one is compiled,
 * where that saves time: the times of the last programs decide how many processors the compilers
 * get. */

enum { CHUNK = 8 }; /* programs of one run of the compiler */

struct cd_tune_measure {
    cd_tune_measure_setup s;
    cd_record_maker maker;
    cd_buf line;
    cd_affinity all;
    int cpus, jobs; /* jobs: compilers at a time, now */
    /* of a program, lately: processor time of compilers; time of a worker; 0: unknown */
    double build_s, run_s;
    /* the batch that is measured */
    const cd_tune_task *task;
    const cd_tune_cand *cand;
    cd_tune_trial *trial;
    cd_record_program *job;    /* (n) */
    cd_measure_item *item;     /* (n) */
    size_t n, built, ran, end; /* [ran, built) is run, [built, end) compiled meanwhile */
};

static cd_str text(const char *s) { return (cd_str){s, strlen(s)}; }

void cd_tune_record(const cd_tune_task *t, const cd_tune_cand *c, cd_record *r) {
    static const double never = CD_TUNE_FAILED_S;
    *r = (cd_record){.workload_key = text(t->task->workload_key),
                     .target = text(t->target),
                     .target_host = text(""),
                     .hardware = t->hardware,
                     .has_hardware = true,
                     .has_host = true,
                     .has_layout = true,
                     .has_inputs = true,
                     .n_step = c->n_step,
                     .step = c->step,
                     .layout_rewrite = cd_target_layout(t->gpu),
                     .n_cost = 1,
                     .cost_s = &never,
                     .error_no = CD_ERROR_NO_MAX,
                     .version = text("v0.6")};
}

/* For cd_record_maker.device: the board's name, of its processor. */
static const char *board_name(void *ctx, cd_str target) {
    const cd_remote_about *a = cd_remote_measure_about(ctx);
    return a->model[0] && !cd_target_is_gpu(target) ? a->model : NULL;
}

/* Code for a board, which only its user sees (--emit), is for its instructions; those of this
 * machine are never taken for them. */
static void of_board(cd_tune_measure *m) {
    const cd_remote_about *a = cd_remote_measure_about(m->s.board);
    m->maker.device = board_name;
    m->maker.ctx = m->s.board;
    if (!m->maker.isa && a->isa[0]) m->maker.isa = a->isa;
    m->cpus = a->cpus > 0 ? a->cpus : INT_MAX;
}

cdmpp_status cd_tune_measure_new(const cd_tune_measure_setup *s, cd_tune_measure **out,
                                 cdmpp_err *err) {
    cd_tune_measure *m = cd_mem_zalloc(1, sizeof *m);
    if (!m) return CD_FAIL(err, ENOMEM, "measuring");
    m->s = *s;
    m->maker = (cd_record_maker){.tasks = s->tasks,
                                 .dialect = -1,
                                 .isa = s->isa,
                                 .device = s->namer ? cd_describe_namer_ask : NULL,
                                 .ctx = s->namer};
    m->cpus = cd_affinity_count();
    cd_affinity_get(&m->all);
    if (s->board) of_board(m);
    const cdmpp_status st = cd_program_new(&m->maker.program, err);
    if (st) cd_tune_measure_free(m);
    else *out = m;
    return st;
}

void cd_tune_measure_free(cd_tune_measure *m) {
    if (!m) return;
    cd_program_free(m->maker.program);
    cd_buf_free(&m->line);
    cd_mem_free(m);
}

/* ---- programs ---- */
static int threads_of(const cd_tune_measure *m, const cd_record_program *j) {
    const int64_t cores = j->record.hardware.num_cores;
    if (m->s.threads > 0) return m->s.threads;
    return cores < 1 || cores > m->cpus ? m->cpus : (int)cores;
}

static cdmpp_status make_job(cd_tune_measure *m, const cd_tune_task *t, const cd_tune_cand *c,
                             cd_record_program *out, cdmpp_err *err) {
    cd_record r;
    memset(out, 0, sizeof *out);
    cd_tune_record(t, c, &r);
    cd_buf_clear(&m->line);
    CD_TRY(cd_record_write(&m->line, &r, err));
    const cd_recline l = {.path = "tune", .text = m->line.p, .len = m->line.n};
    return cd_record_program_make(&m->maker, &l, out, err);
}

cdmpp_status cd_tune_measure_job(cd_tune_measure *m, const cd_tune_task *t, const cd_tune_cand *c,
                                 bool reference, cd_record_program *out, cdmpp_err *err) {
    m->maker.reference = reference;
    CD_TRY(make_job(m, t, c, out, err));
    return cd_record_program_code(&m->maker, out, err);
}

/* What to measure of it. */
static cd_measure_item tune_measure_item(const cd_tune_measure *m, const cd_record_program *j,
                                         bool reference) {
    cd_measure_item item = {.code = &j->code,
                            .arg = j->arg,
                            .reference = reference ? &j->reference : NULL,
                            .target = j->target,
                            .threads = threads_of(m, j)};
    if (j->why.code) cd_measure_result_fail(&item.out, 1, &j->why);
    return item;
}

/* ---- a batch ---- */
static cdmpp_status compile(cd_tune_measure *m, cdmpp_err *err) {
    const double begin = cd_clock_wall();
    const size_t from = m->built;
    for (size_t i = from; i < m->end; i++) {
        CD_TRY(cd_tune_measure_job(m, m->task, &m->cand[i], m->s.check, &m->job[i], err));
        m->item[i] = tune_measure_item(m, &m->job[i], m->s.check);
    }
    CD_TRY(cd_measure_build(m->s.measure, m->item + from, m->end - from, err));
    if (m->end > from) m->build_s = (cd_clock_wall() - begin) / (double)(m->end - from) * m->jobs;
    return CDMPP_OK;
}

static cdmpp_status write_down(cd_tune_measure *m, size_t i, cdmpp_err *err) {
    const cd_measure_result *out = &m->item[i].out;
    cd_record r;
    CD_TRY(cd_record_program_record(&m->job[i], out, &r, err));
    if (m->s.log) CD_TRY(cd_record_log_add(m->s.log, &r, NULL, err));
    m->trial[i] =
        (cd_tune_trial){cd_record_program_cost_s(&r), out->error_no, out->build_s, out->run_s};
    m->ran = i + 1;
    if (m->s.each) m->s.each(m->s.ctx, &m->job[i], out);
    return CDMPP_OK;
}

static cdmpp_status measure_some(cd_tune_measure *m, size_t to, cdmpp_err *err) {
    const double begin = cd_clock_wall();
    const size_t from = m->ran;
    for (size_t i = from; i < to; i++) {
        if (m->s.stop && *m->s.stop)
            return CD_FAIL(err, EINTERRUPTED, "while candidates were measured");
        CD_TRY(cd_measure_run(m->s.measure, &m->item[i], err));
        CD_TRY(write_down(m, i, err));
    }
    if (to > from) m->run_s = (cd_clock_wall() - begin) / (double)(to - from);
    return CDMPP_OK;
}

static cdmpp_status step(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    cd_tune_measure *m = ctx;
    (void)end, (void)w;
    return beg == 0 ? measure_some(m, m->built, err) : compile(m, err);
}

/* Is a program done sooner when compiling has `rest` processors all the time than when it has all
 * of them in its turn? */
static bool sooner(const cd_tune_measure *m, int rest) {
    if (m->build_s <= 0 || m->run_s <= 0) return rest > m->cpus / 2; /* nothing is known yet */
    const double together = m->build_s / rest > m->run_s ? m->build_s / rest : m->run_s;
    return together < m->build_s / m->cpus + m->run_s;
}

/* Both at once for this batch? */
static bool share(cd_tune_measure *m, int threads) {
    const bool both = !m->s.alternate && m->n > CHUNK && m->s.pin && threads < m->cpus &&
                      sooner(m, m->cpus - threads);
    m->jobs = both ? m->cpus - threads : m->cpus;
    if (m->s.jobs && m->s.jobs < m->jobs) m->jobs = m->s.jobs;
    cd_affinity_set(&m->all, both ? threads : 0);
    cd_measure_jobs(m->s.measure, m->jobs);
    return both;
}

static cdmpp_status all_chunks(cd_tune_measure *m, bool both, cdmpp_err *err) {
    cd_threads *pool = NULL;
    const size_t chunk = both ? CHUNK : m->n;
    m->built = m->ran = 0;
    m->end = chunk;
    cdmpp_status st = compile(m, err);
    if (!st && both) st = cd_threads_new(2, &pool, err); /* its thread begins with our processors */
    while (!st && m->built < m->n) {
        m->built = m->end;
        m->end = m->built + chunk < m->n ? m->built + chunk : m->n;
        st = cd_threads_run(pool, 2, 1, step, m, err);
    }
    cd_threads_free(pool);
    cd_affinity_set(&m->all, 0);
    return st;
}

/* ---- boards ---- */
static cdmpp_status on_candidate(void *ctx, size_t i, const cd_measure_result *r, cdmpp_err *err) {
    cd_tune_measure *m = ctx;
    m->item[i].out = *r;
    return write_down(m, i, err);
}

static cdmpp_status on_board(cd_tune_measure *m, cdmpp_err *err) {
    const cd_record_program **job = cd_mem_zalloc(m->n + 1, sizeof *job);
    const cd_remote_measure_jobs j = {.tasks = m->s.tasks,
                                      .job = job,
                                      .n = m->n,
                                      .check = m->s.check,
                                      .each = on_candidate,
                                      .ctx = m};
    cdmpp_status st = job ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu candidates", m->n);
    for (size_t i = 0; !st && i < m->n; i++) {
        job[i] = &m->job[i];
        st = make_job(m, m->task, &m->cand[i], &m->job[i], err);
    }
    if (!st) st = cd_remote_measure_run(m->s.board, &j, err);
    cd_mem_free(job);
    return st;
}

typedef struct {
    const cd_tune_turn *turn;
    size_t *of; /* (sent) the turn of each that was sent */
    void (*each)(void *ctx, size_t k);
    void *ctx;
} turns;

static cdmpp_status on_turn(void *ctx, size_t i, const cd_measure_result *r, cdmpp_err *err) {
    const turns *t = ctx;
    (void)err;
    t->turn[t->of[i]].item->out = *r;
    t->each(t->ctx, t->of[i]);
    return CDMPP_OK;
}

/* What has failed already is not sent. */
static cdmpp_status turns_on_board(cd_tune_measure *m, const turns *t, size_t n, cdmpp_err *err) {
    const cd_record_program **job = cd_mem_zalloc(n + 1, sizeof *job);
    cd_remote_measure_jobs j = {.tasks = m->s.tasks, .job = job, .one = true, .each = on_turn};
    turns sent = *t;
    sent.of = cd_mem_zalloc(n + 1, sizeof *sent.of);
    j.ctx = &sent;
    cdmpp_status st = job && sent.of ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu measurements", n);
    for (size_t k = 0; !st && k < n; k++) {
        if (t->turn[k].item->out.error_no) {
            t->each(t->ctx, k);
            continue;
        }
        j.check = t->turn[k].item->reference != NULL;
        sent.of[j.n] = k;
        job[j.n++] = t->turn[k].job;
    }
    if (!st && j.n) st = cd_remote_measure_run(m->s.board, &j, err);
    cd_mem_free(job);
    cd_mem_free(sent.of);
    return st;
}

/* Compile it; for a board nothing is to do. Errors: those of cd_measure_build. */
static cdmpp_status tune_measure_build(cd_tune_measure *m, cd_measure_item *item, cdmpp_err *err) {
    return m->s.board ? CDMPP_OK : cd_measure_build(m->s.measure, item, 1, err);
}

/* Measure in this order, on a single board; each(ctx, k) when turn k has its result in item->out.
 * All of them have a reference or none has. Errors: those of cd_measure_run and
 * cd_remote_measure_run. */
static cdmpp_status tune_measure_turns(cd_tune_measure *m, const cd_tune_turn *turn, size_t n,
                                       void (*each)(void *ctx, size_t k), void *ctx,
                                       cdmpp_err *err) {
    const turns t = {.turn = turn, .each = each, .ctx = ctx};
    if (m->s.board) return turns_on_board(m, &t, n, err);
    for (size_t k = 0; k < n; k++) {
        CD_TRY(cd_measure_run(m->s.measure, turn[k].item, err));
        each(ctx, k);
    }
    return CDMPP_OK;
}

/* cd_tune_measure_kind.measure. *done counts what was run, also after an error: these trials are in
 * the log already. */
static cdmpp_status measure(void *ctx, const cd_tune_task *t, const cd_tune_cand *c, size_t n,
                            cd_tune_trial *out, size_t *done, cdmpp_err *err) {
    cd_tune_measure *m = ctx;
    const cd_record_program of = {.record.hardware = t->hardware};
    *done = 0;
    m->task = t;
    m->cand = c;
    m->trial = out;
    m->n = n;
    m->ran = 0;
    m->job = cd_mem_zalloc(n + 1, sizeof *m->job);
    m->item = cd_mem_zalloc(n + 1, sizeof *m->item);
    cdmpp_status st = m->job && m->item ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu candidates", n);
    if (!st) st = m->s.board ? on_board(m, err) : all_chunks(m, share(m, threads_of(m, &of)), err);
    *done = m->ran;
    for (size_t i = 0; m->job && i < n; i++) cd_record_program_free(&m->job[i]);
    cd_mem_free(m->job);
    cd_mem_free(m->item);
    m->job = NULL;
    m->item = NULL;
    return st;
}

cd_tune_measure_kind cd_tune_measure_of(cd_tune_measure *m) {
    return (cd_tune_measure_kind){m, measure, cd_timing_clock_now};
}

enum { REPEATS = 5, FEW = 3 };
#define LONG_S 0.05 /* programs that take longer are measured FEW times */

const char *cd_tune_verdict_name(cd_tune_verdict v) {
    static const char *const name[] = {"better", "worse", "wrong",  "fails",
                                       "alone",  "none",  "untuned"};
    return name[v];
}

void cd_tune_result_free(cd_tune_result *r) {
    cd_record_program_free(&r->untuned.job);
    cd_record_program_free(&r->tuned.job);
    cd_arena_free(&r->arena);
    memset(r, 0, sizeof *r);
}

/* ---- one side ---- */
static void lost(cd_tune_side *s, const cdmpp_err *why) {
    s->seconds = CD_TUNE_FAILED_S;
    s->why = *why;
}

static cdmpp_status make_side(cd_tune_measure *m, const cd_tune_task *t, cd_tune_side *s,
                              cdmpp_err *err) {
    CD_TRY(cd_tune_measure_job(m, t, &s->cand, true, &s->job, err));
    s->item = tune_measure_item(m, &s->job, true);
    s->there = true;
    return CDMPP_OK;
}

/* ---- what is measured ---- */
typedef struct {
    cd_tune_side *side[2]; /* (n) those that are measured */
    int n, failed;         /* failed: the side that did not run at its turn; -1: none */
    double x[2][REPEATS];
} sides;

static void checked(void *ctx, size_t k) {
    cd_tune_side *s = ((const sides *)ctx)->side[k];
    const cd_measure_result *out = &s->item.out;
    s->checked = (out->flags & CD_MEASURE_CHECKED) != 0 || out->error_no == 5;
    s->max_error = out->max_error;
    s->seconds = out->error_no ? CD_TUNE_FAILED_S : out->time.median_s;
    if (out->error_no) s->why = out->err;
}

/* Both are compared with the reference, and this once. */
static cdmpp_status check(cd_tune_measure *m, sides *s, cdmpp_err *err) {
    cd_tune_turn turn[2];
    for (int i = 0; i < s->n; i++) turn[i] = (cd_tune_turn){&s->side[i]->job, &s->side[i]->item};
    CD_TRY(tune_measure_turns(m, turn, (size_t)s->n, checked, s, err));
    for (int i = 0; i < s->n; i++) s->side[i]->item.reference = NULL;
    return CDMPP_OK;
}

static void took(void *ctx, size_t k) {
    sides *s = ctx;
    const int i = (int)k % s->n;
    const cd_measure_result *out = &s->side[i]->item.out;
    s->x[i][k / (size_t)s->n] = out->time.median_s;
    if (s->failed >= 0 || !out->error_no) return;
    s->failed = i;
    lost(s->side[i], &out->err);
}

/* Untuned, tuned, untuned ...: a disturbance of some seconds hits both sides. The median of a few
 * repeats decides. */
static cdmpp_status by_turns(cd_tune_measure *m, sides *s, cdmpp_err *err) {
    cd_tune_turn turn[2 * REPEATS];
    const int times =
        s->side[0]->seconds > LONG_S || s->side[s->n - 1]->seconds > LONG_S ? FEW : REPEATS;
    for (int k = 0; k < s->n * times; k++)
        turn[k] = (cd_tune_turn){&s->side[k % s->n]->job, &s->side[k % s->n]->item};
    s->failed = -1;
    CD_TRY(tune_measure_turns(m, turn, (size_t)(s->n * times), took, s, err));
    for (int i = 0; i < s->n && s->failed < 0; i++) {
        cd_sort_doubles(s->x[i], (size_t)times);
        s->side[i]->seconds = s->x[i][times / 2];
    }
    return CDMPP_OK;
}

/* ---- both ---- */
static bool runs(const cd_tune_side *s) { return s->there && s->seconds < CD_TUNE_FAILED_S; }

static cd_tune_verdict verdict_of(const cd_tune_result *r, bool tuned) {
    if (!tuned) return runs(&r->untuned) ? CD_TUNE_UNTUNED : CD_TUNE_NONE;
    if (!runs(&r->tuned))
        return !runs(&r->untuned)                ? CD_TUNE_NONE
               : r->tuned.item.out.error_no == 5 ? CD_TUNE_WRONG
                                                 : CD_TUNE_FAILS;
    if (!runs(&r->untuned)) return CD_TUNE_ALONE;
    return r->tuned.seconds > r->untuned.seconds ? CD_TUNE_WORSE : CD_TUNE_BETTER;
}

static cdmpp_status make_default(const cd_tune_task *t, cd_tune_result *r, cdmpp_err *err) {
    cd_program *p = NULL;
    CD_TRY(cd_program_new(&p, err));
    cdmpp_err why = {0};
    const cdmpp_status st = cd_tune_baseline(&r->arena, p, t, &r->untuned.cand, &why);
    cd_program_free(p);
    if (st) lost(&r->untuned, &why);
    r->untuned.there = !st;
    if (st == CDMPP_ENOMEM && err) *err = why;
    return st == CDMPP_ENOMEM ? st : CDMPP_OK;
}

static sides those(cd_tune_result *r, bool (*which)(const cd_tune_side *s)) {
    sides s = {.failed = -1};
    if (which(&r->untuned)) s.side[s.n++] = &r->untuned;
    if (which(&r->tuned)) s.side[s.n++] = &r->tuned;
    return s;
}

static bool is_there(const cd_tune_side *s) { return s->there; }

/* Both programs are compiled before either is run, because compilers disturb measurements. */
cdmpp_status cd_tune_result_make(cd_tune_measure *m, const cd_tune_task *t,
                                 const cd_tune_cand *best, cd_tune_result *r, cdmpp_err *err) {
    memset(r, 0, sizeof *r);
    r->tuned.seconds = r->untuned.seconds = CD_TUNE_FAILED_S;
    CD_TRY(make_default(t, r, err));
    if (r->untuned.there) CD_TRY(make_side(m, t, &r->untuned, err));
    if (best) {
        CD_TRY(cd_tune_cand_copy(&r->arena, best, &r->tuned.cand, err));
        CD_TRY(make_side(m, t, &r->tuned, err));
    }
    sides s = those(r, is_there);
    for (int i = 0; i < s.n; i++) CD_TRY(tune_measure_build(m, &s.side[i]->item, err));
    CD_TRY(check(m, &s, err));
    s = those(r, runs);
    if (s.n) CD_TRY(by_turns(m, &s, err));
    r->verdict = verdict_of(r, best != NULL);
    return CDMPP_OK;
}

cd_tune_side *cd_tune_result_kept(cd_tune_result *r) {
    switch (r->verdict) {
    case CD_TUNE_BETTER:
    case CD_TUNE_ALONE: return &r->tuned;
    case CD_TUNE_NONE: return NULL;
    default: return &r->untuned;
    }
}

cdmpp_status cd_tune_result_record(cd_tune_side *s, cd_record *out, cdmpp_err *err) {
    return cd_record_program_record(&s->job, &s->item.out, out, err);
}
