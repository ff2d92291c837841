/* Measures candidates in their order until the time is over. Each result is a line of the log at
 * once; what the log has already is passed over. Where nothing runs from the beginning, something
 * is wrong with the device or its compiler: the run ends, and the log does not say that these
 * programs fail. */
#include <math.h>
#include <string.h>

#include "base/cli/cli.h"
#include "dataset/split/split.h"
#include "predictor/calibrate/calibrate.h"
#include "profiler/host/host.h"

/* How long the fit takes that comes after the measurements: scoring and trees of a few candidates,
 * timed here and now. Whatever else runs on the machine is in it. */

/* Trees of more programs have more nodes, of few also more ends that a split can have; beyond
 * `many` programs the depth of the trees keeps the number of nodes down: there the power that was
 * measured is 0.5 to 0.8. What may change until then is in the last factor. */
static const double many = 64, power = 0.85, safety = 1.25;
enum { TREES = CD_CALIBRATE_PARTS + 1 };

typedef struct trial {
    const cd_calibrate_costs_options *o;
    size_t n, width;       /* programs; of x */
    cd_predict_line *line; /* (n) */
    cd_scored *scored;     /* (n) */
    float *x;              /* (n, width) */
    double *off;           /* (n) made: that there is something to learn is enough */
} trial;

static double now(const trial *t) { return t->o->now(t->o->ctx); }

static void see(void *ctx, const cd_scored *s, const cd_program_view *v, size_t p) {
    const trial *t = ctx;
    cd_here_see(t->o->model, v, p, &s->pred, t->x + (size_t)(s - t->scored) * t->width);
}

static cdmpp_status score(trial *t, cd_calibrate_costs *out, cdmpp_err *err) {
    const cd_scorer_options so = {.which = {.device = t->o->device},
                                  .traits = true,
                                  .tap = {see, t},
                                  .numbers = t->o->numbers};
    cd_scorer *s = NULL;
    const double begin = now(t);
    CD_TRY(cd_scorer_new(t->o->model, t->o->tasks, &so, &s, err));
    const double ready = now(t);
    const cdmpp_status st = cd_scorer_run(s, t->line, t->n, t->scored, err);
    out->begin_s = ready - begin;
    out->line_s = (now(t) - ready) / (double)t->n;
    cd_scorer_free(s);
    return st;
}

static cdmpp_status learn(trial *t, cd_calibrate_costs *out, cdmpp_err *err) {
    cd_here_trees trees = {0};
    const double begin = now(t);
    const cdmpp_status st = cd_here_fit(t->x, t->off, t->n, t->width, 1, &trees, err);
    out->trees_s = now(t) - begin;
    out->programs = t->n;
    cd_xgb_free(trees.gbt);
    return st;
}

cdmpp_status cd_calibrate_costs_of(const cd_calibrate_costs_options *o, cd_calibrate_costs *out,
                                   cdmpp_err *err) {
    const size_t n = o->programs < o->pool->n_order ? o->programs : o->pool->n_order;
    trial t = {.o = o, .n = n, .width = cd_here_width(o->model)};
    *out = (cd_calibrate_costs){0};
    if (!n) return CDMPP_OK;
    t.line = cd_mem_zalloc(n, sizeof *t.line);
    t.scored = cd_mem_zalloc(n, sizeof *t.scored);
    t.x = cd_mem_zalloc(n, t.width * sizeof *t.x);
    t.off = cd_mem_zalloc(n, sizeof *t.off);
    cdmpp_status st =
        t.line && t.scored && t.x && t.off ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", n);
    for (size_t i = 0; !st && i < n; i++) {
        const cd_calibrate_candidate *c = &o->pool->v[o->pool->order[i]];
        t.line[i] = (cd_predict_line){c->line, c->len, "candidate", (long)i};
        t.off[i] = cd_rng_unit(1, i) - 0.5;
    }
    if (!st) st = score(&t, out, err);
    if (!st) st = learn(&t, out, err);
    cd_mem_free(t.line);
    cd_mem_free(t.scored);
    cd_mem_free(t.x);
    cd_mem_free(t.off);
    return st;
}

static double grown(double n) { return n <= many ? n : many * pow(n / many, power); }

double cd_calibrate_costs_s(const cd_calibrate_costs *c, size_t n) {
    const double trees =
        c->programs ? TREES * c->trees_s * grown((double)n) / grown((double)c->programs) : 0;
    return safety * (c->begin_s + c->line_s * (double)n + trees);
}

enum { FEW = 4 };                /* compiled together; measured one after the other */
static const double first_s = 1; /* of a program, before one was measured */

typedef struct run {
    const cd_calibrate_measure_options *o;
    cd_calibrate_measured *out;
    size_t step;           /* of the sequence */
    double worst_s, all_s; /* of a program, in the slowest batch; of all batches */
    size_t all;            /* programs in these */
    cd_record_program job[CD_CALIBRATE_BATCH];
    bool repeat[CD_CALIBRATE_BATCH];
    size_t n;
    size_t vain; /* failed, before one ran */
} run;

/* ---- the sequence: programs in their order, and from time to time one of the earlier half once
 * more ---- */
static bool next(run *r, const cd_calibrate_candidate **c, bool *repeat) {
    const cd_calibrate_pool *p = r->o->pool;
    const size_t most = r->o->most && r->o->most < p->n_order ? r->o->most : p->n_order;
    const size_t step = r->step, block = step / CD_CALIBRATE_TWICE, at = step % CD_CALIBRATE_TWICE;
    *repeat = at == CD_CALIBRATE_TWICE - 1;
    const size_t k =
        *repeat ? block * (CD_CALIBRATE_TWICE - 1) / 2 : block * (CD_CALIBRATE_TWICE - 1) + at;
    if (!*repeat && k >= most) return false;
    r->step++;
    *c = &p->v[p->order[k]];
    return true;
}

/* To the batch, unless the log has it. A candidate that makes no program is no failure of the
 * machine: it is passed over. */
static cdmpp_status add(run *r, const cd_calibrate_candidate *c, bool repeat, cdmpp_err *err) {
    const cd_recline l = {
        .path = "candidate", .number = (long)r->step, .text = c->line, .len = c->len};
    cd_record_program *j = &r->job[r->n];
    bool mine = false;
    cdmpp_status st = cd_record_program_make(r->o->maker, &l, j, err);
    if (!st) st = cd_record_log_claim(r->o->log, j->id, repeat ? 2 : 1, &mine, err);
    if (!st && mine) st = cd_record_program_code(r->o->maker, j, err);
    if (!st && mine) r->repeat[r->n++] = repeat;
    else cd_record_program_free(j);
    if (!st && !mine && !repeat) r->out->programs++;
    return st;
}

/* All that the log has is learned from, also what an earlier run drew and this one did not. */
static size_t programs_of(const run *r) {
    size_t known = cd_record_log_programs(r->o->log);
    for (size_t i = 0; i < r->n; i++) known -= !r->repeat[i]; /* claimed, and not measured yet */
    return r->out->programs > known ? r->out->programs : known;
}

/* When a batch that makes n programs more has to end. */
static double latest(const run *r, size_t n) {
    const cd_calibrate_measure_options *o = r->o;
    const double after = o->after ? cd_calibrate_costs_s(o->after, programs_of(r) + n) : 0;
    return fmin(o->until_s, o->after ? o->end_s - after : (double)INFINITY);
}

/* What a program is expected to take: where late ones are ended the mean serves, and no outlier
 * ends the run. */
static double each_of(const run *r) {
    if (!(r->worst_s > 0)) return first_s;
    return r->o->clock->until ? r->all_s / (double)r->all : r->worst_s;
}

/* Few until one is measured: how long they take is not known. Then no more than there is time for.
 */
static size_t most_of(const run *r) {
    const cd_calibrate_clock *c = r->o->clock;
    const size_t asked = c->batch < FEW                  ? FEW
                         : c->batch < CD_CALIBRATE_BATCH ? c->batch
                                                         : CD_CALIBRATE_BATCH,
                 least = c->until ? 1 : FEW;
    if (!(r->worst_s > 0) || (asked == FEW && !c->until)) return FEW;
    const double fit = floor((latest(r, asked) - c->now(c->ctx)) / each_of(r));
    return fit < (double)least ? least : fit < (double)asked ? (size_t)fit : asked;
}

static cdmpp_status fill(run *r, cdmpp_err *err) {
    const cd_calibrate_candidate *c;
    bool repeat;
    const size_t most = most_of(r);
    r->n = 0;
    while (r->n < most && next(r, &c, &repeat)) CD_TRY(add(r, c, repeat, err));
    return CDMPP_OK;
}

/* ---- a batch ---- */
static bool one_ran(const run *r, const cd_measure_result *m, size_t n) {
    bool any = r->out->fresh > r->out->failed;
    for (size_t i = 0; i < n; i++) any |= !m[i].error_no;
    return any;
}

static cdmpp_status in_vain(run *r, const cd_measure_result *m, size_t n, cdmpp_err *err) {
    r->vain += n;
    if (r->vain < CD_CALIBRATE_VAIN) return CDMPP_OK;
    return CD_FAIL(err, EBACKEND, "none of the first %zu programs runs: %s", r->vain, m->err.msg);
}

static cdmpp_status write_down(run *r, const cd_measure_result *m, size_t n, cdmpp_err *err) {
    if (!one_ran(r, m, n)) return in_vain(r, m, n, err);
    for (size_t i = 0; i < n; i++) {
        cd_record record;
        CD_TRY(cd_record_program_record(&r->job[i], &m[i], &record, err));
        CD_TRY(cd_record_log_add(r->o->log, &record, NULL, err));
        r->out->fresh++;
        r->out->programs += !r->repeat[i];
        r->out->repeats += r->repeat[i];
        r->out->failed += m[i].error_no != 0;
        if (m[i].error_no) r->out->why = m[i].err;
    }
    return CDMPP_OK;
}

/* How many of a batch were measured: a lost connection, or the end of the time, costs no
 * measurement. */
static size_t answered(const run *r, const cd_measure_result *m) {
    size_t n = 0;
    while (n < r->n && (m[n].error_no || m[n].time.n)) n++;
    return n;
}

static cdmpp_status measure(run *r, cdmpp_err *err) {
    const cd_calibrate_clock *c = r->o->clock;
    cd_measure_result *m = cd_mem_zalloc(r->n, sizeof *m);
    const double begin = c->now(c->ctx);
    if (!m) return CD_FAIL(err, ENOMEM, "results");
    if (c->until) c->until(c->ctx, latest(r, r->n));
    const cdmpp_status st = c->measure(c->ctx, r->job, r->n, m, err);
    const size_t n = answered(r, m);
    const cdmpp_status kept = n ? write_down(r, m, n, st ? NULL : err) : CDMPP_OK;
    r->worst_s = fmax(r->worst_s, (c->now(c->ctx) - begin) / (double)r->n);
    r->all_s += c->now(c->ctx) - begin;
    r->all += r->n;
    if (r->out->fresh) r->out->each_s = r->all_s / (double)r->out->fresh;
    cd_mem_free(m);
    return st ? st : kept;
}

/* Is there time for this batch, and for what is done with all programs afterwards? */
static bool in_time(run *r) {
    const cd_calibrate_clock *c = r->o->clock;
    r->out->late = c->now(c->ctx) + each_of(r) * (double)r->n > latest(r, r->n);
    return !r->out->late;
}

/* Is there time for so many programs that something can be learned of them? Before one is measured
 * nobody knows. */
static bool hopeless(const run *r) {
    const cd_calibrate_clock *c = r->o->clock;
    const size_t least = r->o->least, has = programs_of(r);
    if (has >= least || !r->all) return false;
    const double repeats = (double)CD_CALIBRATE_TWICE / (CD_CALIBRATE_TWICE - 1);
    return c->now(c->ctx) + each_of(r) * repeats * (double)(least - has) > latest(r, least - has);
}

static void empty(run *r) {
    for (size_t i = 0; i < r->n; i++) cd_record_program_free(&r->job[i]);
    r->n = 0;
}

cdmpp_status cd_calibrate_measure(const cd_calibrate_measure_options *o, cd_calibrate_measured *out,
                                  cdmpp_err *err) {
    run *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "measuring");
    r->o = o;
    r->out = out;
    *out = (cd_calibrate_measured){0};
    cdmpp_status st = CDMPP_OK;
    for (bool more = true; !st && more;) {
        out->hopeless = hopeless(r);
        if (!out->hopeless) st = fill(r, err);
        more = !st && r->n && in_time(r);
        if (more && o->stop && *o->stop)
            st = CD_FAIL(err, EINTERRUPTED, "after %zu programs, which are in the log", out->fresh);
        else if (more) st = measure(r, err);
        if (!st && o->told) o->told(o->ctx, out->fresh);
        empty(r);
    }
    out->known = programs_of(r);
    cd_mem_free(r);
    return st;
}

/* ---- this machine ---- */
static double now_here(void *ctx) {
    const cd_calibrate_here *h = ctx;
    return h->cpu_time ? cd_measure_process_time(h->measure) : cd_clock_wall();
}

static void until_here(void *ctx, double until_s) {
    cd_calibrate_here *h = ctx;
    h->until_s = until_s;
    cd_measure_until(h->measure, until_s);
}

static bool over_here(const cd_calibrate_here *h) {
    return h->until_s > 0 && cd_clock_wall() >= h->until_s;
}

/* Compiling or running it took longer than there was time: that says nothing of the program. */
static bool cut_here(const cd_calibrate_here *h, const cd_measure_item *item) {
    return over_here(h) && (item->out.error_no == 6 || item->out.error_no == 7);
}

static cdmpp_status measure_here(void *ctx, cd_record_program *job, size_t n,
                                 cd_measure_result *out, cdmpp_err *err) {
    cd_calibrate_here *h = ctx;
    cd_measure_item *item = cd_mem_zalloc(n + 1, sizeof *item);
    cdmpp_status st = item ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", n);
    for (size_t i = 0; !st && i < n; i++) {
        const bool gpu = cd_target_is_gpu((cd_str){job[i].target, strlen(job[i].target)});
        item[i] = (cd_measure_item){
            .code = &job[i].code,
            .arg = job[i].arg,
            .target = job[i].target,
            .threads = gpu ? 0 : cd_record_program_threads(&job[i], 0, cd_affinity_count())};
        if (job[i].why.code) cd_measure_result_fail(&item[i].out, 1, &job[i].why);
    }
    if (!st) st = cd_measure_build(h->measure, item, n, err);
    for (size_t i = 0;
         !st && i < n && !(over_here(h) && !item[i].out.error_no) && !cut_here(h, &item[i]); i++) {
        st = cd_measure_run(h->measure, &item[i], err);
        if (!st && cut_here(h, &item[i])) break;
        if (!st) out[i] = item[i].out;
    }
    cd_mem_free(item);
    return st;
}

static cdmpp_status network_here(void *ctx, const cd_network_loaded *l,
                                 const cd_network_run_options *o, cd_network_run **out,
                                 cdmpp_err *err) {
    cd_network_run_options here = *o;
    const bool gpu = cd_target_is_gpu((cd_str){o->target, strlen(o->target)});
    const double left = gpu ? 1 : cd_host_load_left(o->threads > 1 ? o->threads : 1);
    if (left < CD_HOST_LOAD_IDLE)
        return CD_FAIL(err, EBACKEND,
                       "others use the processors: %.0f %% of one is left; stop other work",
                       100 * left);
    here.measure = ((cd_calibrate_here *)ctx)->measure;
    cd_measure_until(here.measure, (double)INFINITY); /* the run has its own */
    return cd_network_run_measure(l, &here, out, err);
}

cd_calibrate_clock cd_calibrate_clock_here(cd_calibrate_here *h) {
    return (cd_calibrate_clock){.ctx = h,
                                .now = now_here,
                                .measure = measure_here,
                                .network = network_here,
                                .until = h->cpu_time ? NULL : until_here,
                                .cpu_time = h->cpu_time};
}

/* ---- is it quiet? ---- */
static const double quiet_s = 1.5;

cdmpp_status cd_calibrate_quiet(int threads, bool force, struct cd_log *log, cd_noise_program *out,
                                cdmpp_err *err) {
    cd_noise_program_run(threads, quiet_s, out);
    CD_TRY(cd_noise_program_check(out, CD_CALIBRATE_NOISE, force, err));
    const bool busy = out->noise > CD_CALIBRATE_NOISE;
    cd_log_put(log, busy ? CD_LOG_WARNING : CD_LOG_INFO,
               busy ? "this machine is busy: the same program took between %.3g and %.3g ms; "
                      "intervals become wider for that"
                    : "noise: the same program took between %.3g and %.3g ms",
               1e3 * out->low_s, 1e3 * out->high_s);
    return CDMPP_OK;
}
