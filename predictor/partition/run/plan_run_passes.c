/* Runs passes of a plan and measures them: the total, each operator, each part. The watch plans
 * again when a device is slower than predicted over several passes. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "predictor/partition/run/plan_run_internal.h"
#include "profiler/measure/measure.h"

enum { FEW = 5, MANY = 2000, PATIENCE = 8, MOST_PATIENCE = 64 };
#define BUDGET_S 2
#define DRIFT    1.3

/* ---- what passes took ---- */

typedef struct {
    unsigned n, cap;
    uint32_t n_op, n_piece;
    double *total; /* (cap) */
    double *op;    /* (cap, n_op, 2) start, end */
    double *piece; /* (cap, n_piece) */
} samples;

static void forget(samples *s) {
    cd_mem_free(s->total);
    cd_mem_free(s->op);
    cd_mem_free(s->piece);
    *s = (samples){0};
}

static cdmpp_status more(double **p, unsigned n, unsigned cap, uint32_t each, cdmpp_err *err) {
    double *q =
        cd_mem_realloc(*p, (size_t)n * each * sizeof *q, (size_t)cap * each * sizeof *q + 1);
    if (!q) return CD_FAIL(err, ENOMEM, "times of %u passes", cap);
    *p = q;
    return CDMPP_OK;
}

/* Of an operator: from the first of its parts, copies before it and join, to the last. */
static void take_actions(samples *s, const cd_plan_exec *m, const cd_multi_action_time *ran) {
    double *op = s->op + (size_t)s->n * 2 * s->n_op, *piece = s->piece + (size_t)s->n * s->n_piece;
    for (uint32_t k = 0; k < s->n_op; k++) op[2 * k] = (double)INFINITY, op[2 * k + 1] = 0;
    memset(piece, 0, s->n_piece * sizeof *piece);
    for (uint32_t i = 0; i < m->dn.n_action; i++) {
        const cd_plan_exec_origin *of = &m->of[i];
        if (of->op >= s->n_op) continue;
        op[2 * of->op] = fmin(op[2 * of->op], ran[i].start_s);
        op[2 * of->op + 1] = fmax(op[2 * of->op + 1], ran[i].end_s);
        if (of->part != CD_PLAN_EXEC_COPY)
            piece[m->first[of->op] + of->part] = ran[i].end_s - ran[i].start_s;
    }
}

/* All samples are of one plan: forget() empties them when the plan changes, so n_op and n_piece are
 * constant between. */
static cdmpp_status take(samples *s, const cd_plan_exec *m, const cd_multi_action_time *ran,
                         double total_s, cdmpp_err *err) {
    s->n_op = m->plan->n_op;
    s->n_piece = m->n_piece;
    if (s->n == s->cap) {
        const unsigned cap = s->cap ? 2 * s->cap : 32;
        CD_TRY(more(&s->total, s->n, cap, 1, err));
        CD_TRY(more(&s->op, s->n, cap, 2 * s->n_op, err));
        CD_TRY(more(&s->piece, s->n, cap, s->n_piece, err));
        s->cap = cap;
    }
    s->total[s->n] = total_s;
    take_actions(s, m, ran);
    s->n++;
    return CDMPP_OK;
}

/* The median and its 90 % interval, by ranks. v (n) is sorted. */
static double median(double *v, unsigned n, double *low, double *high) {
    const double wide = 0.822 * sqrt((double)n);
    cd_sort_doubles(v, n);
    const double lo = floor((double)n / 2 - wide), hi = ceil((double)n / 2 + wide);
    if (low) *low = v[lo > 0 ? (unsigned)lo : 0];
    if (high) *high = v[hi < (double)n ? (unsigned)hi : n - 1];
    return cd_sort_median(v, n);
}

/* scratch (n) */
static bool is_known(const double *total, unsigned n, double *scratch) {
    double low, high;
    if (n < FEW) return false;
    memcpy(scratch, total, n * sizeof *scratch);
    const double m = median(scratch, n, &low, &high);
    return high - low <= 2 * CD_PLAN_RUN_KNOWN * m;
}

/* Asked at every pass, it is answered at every 8th. */
static cdmpp_status enough(const samples *s, bool *out, cdmpp_err *err) {
    *out = s->n >= MANY;
    if (s->n % 8 || *out) return CDMPP_OK;
    double *scratch = cd_mem_alloc(s->n * sizeof *scratch + 1);
    if (!scratch) return CD_FAIL(err, ENOMEM, "times of %u passes", s->n);
    *out = s->n && is_known(s->total, s->n, scratch);
    cd_mem_free(scratch);
    return CDMPP_OK;
}

/* ---- the result ---- */

void cd_plan_run_result_free(cd_plan_run_result *o) {
    cd_arena_free(&o->arena);
    memset(o, 0, sizeof *o);
}

static double median_of(const double *v, unsigned n, size_t step, double *scratch) {
    for (unsigned i = 0; i < n; i++) scratch[i] = v[i * step];
    return median(scratch, n, NULL, NULL);
}

static cdmpp_status fill_steps(const samples *s, const cd_plan_exec *m, unsigned middle,
                               double *scratch, cd_plan_run_result *o, cdmpp_err *err) {
    o->step = CD_NEWN(&o->arena, cd_plan_run_step, s->n_op + 1);
    double *part = CD_NEWN(&o->arena, double, s->n_piece + 1);
    if (!o->step || !part) return CD_FAIL(err, ENOMEM, "%u operators", s->n_op);
    for (uint32_t k = 0; k < s->n_piece; k++)
        part[k] = median_of(s->piece + k, s->n, s->n_piece, scratch);
    for (uint32_t k = 0; k < s->n_op; k++) {
        const double *at = s->op + 2 * k, *mid = at + (size_t)middle * 2 * s->n_op;
        for (unsigned i = 0; i < s->n; i++)
            scratch[i] = at[(size_t)i * 2 * s->n_op + 1] - at[(size_t)i * 2 * s->n_op];
        o->step[k] = (cd_plan_run_step){.seconds = median(scratch, s->n, NULL, NULL),
                                        .start_s = mid[0],
                                        .end_s = mid[1],
                                        .part_s = part + m->first[k]};
    }
    return CDMPP_OK;
}

static cdmpp_status fill_result(const samples *s, cd_plan_run *r, cd_plan_run_result *o,
                                cdmpp_err *err) {
    double *scratch = cd_mem_alloc(s->n * sizeof *scratch + 1);
    unsigned middle = 0;
    if (!scratch) return CD_FAIL(err, ENOMEM, "times of %u passes", s->n);
    memcpy(scratch, s->total, s->n * sizeof *scratch);
    o->median_s = median(scratch, s->n, &o->low_s, &o->high_s);
    o->passes = s->n;
    for (unsigned i = 1; i < s->n; i++)
        if (fabs(s->total[i] - o->median_s) < fabs(s->total[middle] - o->median_s)) middle = i;
    const cdmpp_status st = fill_steps(s, r->now, middle, scratch, o, err);
    cd_multi_executor_moved(r->now->net, &o->between, &o->within);
    cd_mem_free(scratch);
    return st;
}

/* ---- the watch ---- */

typedef struct {
    double drift;
    unsigned patience, n; /* n: passes in a row in which a device was too slow */
    uint32_t device;      /* which */
    double ratio[CD_MACHINE_DEVICES][MOST_PATIENCE];
} watch;

/* Of each device, the measured seconds of its parts over the predicted ones; NaN: it has none. */
static void ratios(const samples *s, const cd_plan_exec *m, uint32_t n_device, double *out) {
    const double *took = s->piece + (size_t)(s->n - 1) * s->n_piece;
    double is[CD_MACHINE_DEVICES] = {0}, said[CD_MACHINE_DEVICES] = {0};
    for (uint32_t k = 0; k < m->n_piece; k++) {
        const cd_plan_exec_piece *p = &m->piece[k];
        const cd_shard_plan_op *o = &m->plan->op[p->op];
        const double t = p->part < o->n_part ? o->part[p->part].seconds : o->join_s;
        if (!(t > 0) || isinf(t)) continue;
        is[p->device] += took[k];
        said[p->device] += t;
    }
    for (uint32_t d = 0; d < n_device; d++) out[d] = said[d] > 0 ? is[d] / said[d] : (double)NAN;
}

/* Against the others': the least of theirs. True: so often in a row that it is no accident. */
static bool drifts(watch *w, const samples *s, const cd_plan_exec *m, uint32_t n_device) {
    double now[CD_MACHINE_DEVICES];
    double least = (double)INFINITY, most = 0;
    uint32_t slow = 0;
    ratios(s, m, n_device, now);
    for (uint32_t d = 0; d < n_device; d++) {
        if (now[d] < least) least = now[d];
        if (now[d] > most) most = now[d], slow = d;
    }
    if (!(most > w->drift * least)) return w->n = 0, false;
    if (w->n && w->device != slow) w->n = 0;
    w->device = slow;
    for (uint32_t d = 0; d < n_device; d++) w->ratio[d][w->n] = now[d];
    return ++w->n >= w->patience;
}

static cdmpp_status plan_anew(watch *w, cd_plan_run *r, cdmpp_err *err) {
    double least = (double)INFINITY;
    const uint32_t n = r->ask.machine->n;
    for (uint32_t d = 0; d < n; d++)
        if (!isnan(w->ratio[d][0])) r->factor[d] *= median(w->ratio[d], w->n, NULL, NULL);
    for (uint32_t d = 0; d < n; d++)
        if (!isnan(w->ratio[d][0])) least = fmin(least, r->factor[d]);
    for (uint32_t d = 0; d < n; d++)
        if (!isnan(w->ratio[d][0])) r->factor[d] /= least;
    w->n = 0;
    return cd_plan_exec_replan(r, err);
}

/* ---- running ---- */

/* One pass and its times. When another plan took over, the samples and the counts of the watch
 * begin again. */
static cdmpp_status pass(cd_plan_run *r, watch *w, samples *s, cd_multi_action_time **ran,
                         cdmpp_err *err) {
    double total;
    bool anew;
    CD_TRY(cd_plan_exec_pass(r, ran, &total, &anew, err));
    if (anew) {
        forget(s);
        if (w) w->n = 0;
    }
    CD_TRY(take(s, r->now, *ran, total, err));
    if (!w || !drifts(w, s, r->now, r->ask.machine->n)) return CDMPP_OK;
    forget(s);
    CD_TRY(plan_anew(w, r, err));
    return cd_plan_exec_pass(r, NULL, &total, NULL, err); /* its data come into the caches */
}

static cdmpp_status run_passes(cd_plan_run *r, watch *w, double budget_s, samples *s,
                               cd_multi_action_time **ran, cdmpp_err *err) {
    double total;
    const double end_s = cd_clock_wall() + (budget_s > 0 ? budget_s : BUDGET_S);
    /* a watch sees enough to judge */
    const unsigned least = w ? w->patience + 3 : 3, before = r->replans;
    CD_TRY(cd_plan_exec_pass(r, NULL, &total, NULL, err));
    for (bool done = false; !done;) {
        /* over the budget and planned again: the watch ends, else it could plan for ever */
        const bool late = r->replans > before && cd_clock_wall() >= end_s;
        CD_TRY(pass(r, late ? NULL : w, s, ran, err));
        if (!w) CD_TRY(enough(s, &done, err));
        if (s->n >= least && cd_clock_wall() >= end_s) done = true;
        if (s->n >= MANY) done = true;
    }
    return CDMPP_OK;
}

/* Failures and new plans are reported for this call, not since the opening. Values are compared
 * after the last pass, whose results are still in memory 0. */
static cdmpp_status run(cd_plan_run *r, watch *w, double budget_s, cd_plan_run_result *out,
                        cdmpp_err *err) {
    samples s = {0};
    cd_multi_action_time *ran = NULL;
    const unsigned replans = r->replans, failures = r->failures;
    *out = (cd_plan_run_result){.max_error = (double)NAN};
    cdmpp_status st = run_passes(r, w, budget_s, &s, &ran, err);
    if (!st) st = fill_result(&s, r, out, err);
    if (!st && r->want.value) st = cd_plan_exec_compare(r, &out->max_error, err);
    out->replans = r->replans - replans;
    out->failures = r->failures - failures;
    forget(&s);
    cd_mem_free(ran);
    if (st) cd_plan_run_result_free(out);
    return st;
}

cdmpp_status cd_plan_run_passes(cd_plan_run *r, double budget_s, cd_plan_run_result *out,
                                cdmpp_err *err) {
    return run(r, NULL, budget_s, out, err);
}

cdmpp_status cd_plan_run_watch(cd_plan_run *r, const cd_shard_plan_options *again,
                               const cd_plan_run_watch_options *w, double budget_s,
                               cd_plan_run_result *out, cdmpp_err *err) {
    watch mine = {.drift = w && w->drift > 0 ? w->drift : DRIFT,
                  .patience = w && w->patience ? w->patience : PATIENCE};
    if (mine.patience > MOST_PATIENCE) mine.patience = MOST_PATIENCE;
    r->again = again;
    const cdmpp_status st = run(r, &mine, budget_s, out, err);
    r->again = NULL; /* the caller's may go */
    return st;
}

/* ---- several ---- */

typedef struct {
    double *total; /* (n_plan, cap) */
    /* (n_plan) made again meanwhile: no longer the plan that was asked about */
    bool *out;
    unsigned n, cap;
} turns;

/* Threads of the plan before go to sleep first; a pass that is not counted brings this one's data
 * into the caches. */
static cdmpp_status turn(cd_plan_run *r, double *total_s, bool *out, cdmpp_err *err) {
    const struct timespec rest = {.tv_nsec = 1000000};
    (void)nanosleep(&rest, NULL);
    for (int k = 0; k < 2 && !*out; k++) CD_TRY(cd_plan_exec_pass(r, NULL, total_s, out, err));
    return CDMPP_OK;
}

static cdmpp_status take_turns(cd_plan_run *const *r, uint32_t n, double end_s, turns *t,
                               double *scratch, cdmpp_err *err) {
    for (bool done = false; !done && t->n < t->cap; t->n++) {
        uint32_t left = 0;
        for (uint32_t k = 0; k < n; k++) {
            if (!t->out[k])
                CD_TRY(turn(r[k], &t->total[(size_t)k * t->cap + t->n], &t->out[k], err));
            left += !t->out[k];
        }
        done = t->n % 8 == 7 || !left;
        for (uint32_t k = 0; k < n && done; k++)
            done = t->out[k] || is_known(t->total + (size_t)k * t->cap, t->n + 1, scratch);
        if (t->n >= 2 && cd_clock_wall() >= end_s) done = true;
    }
    return CDMPP_OK;
}

cdmpp_status cd_plan_run_compare(cd_plan_run *const *r, uint32_t n, double budget_s,
                                 double *seconds, cdmpp_err *err) {
    turns t = {.total = cd_mem_zalloc((size_t)n * MANY + 1, sizeof(double)),
               .out = cd_mem_zalloc((size_t)n + 1, sizeof(bool)),
               .cap = MANY};
    double *scratch = cd_mem_zalloc(MANY, sizeof *scratch), total;
    cdmpp_status st =
        t.total && t.out && scratch ? CDMPP_OK : CD_FAIL(err, ENOMEM, "times of %u plans", n);
    for (uint32_t k = 0; k < n && !st; k++)
        st = cd_plan_exec_pass(r[k], NULL, &total, &t.out[k], err);
    if (!st)
        st = take_turns(r, n, cd_clock_wall() + (budget_s > 0 ? budget_s : BUDGET_S), &t, scratch,
                        err);
    for (uint32_t k = 0; k < n && !st; k++)
        seconds[k] = t.out[k] ? (double)NAN : median(t.total + (size_t)k * t.cap, t.n, NULL, NULL);
    cd_mem_free(t.total);
    cd_mem_free(t.out);
    cd_mem_free(scratch);
    return st;
}
