/* The policy of timing: warm up, choose how many runs make a repeat, repeat until the confidence
 * interval is narrow or the budget is spent, and leave out what was disturbed. It has no clock of
 * its own, so that tests can run it on made-up times. */
#include "profiler/measure/measure.h"

#include <math.h>
#include <string.h>

/* ---- the clock ---- */
double cd_timing_clock_now(void *ctx) {
    (void)ctx;
    return cd_clock_wall();
}

/* Asks until the clock has moved at least twice: a coarse one stands still for thousands of
 * calls. */
cd_timing_clock_quality cd_timing_clock_check(double (*now)(void *ctx), void *ctx) {
    enum { ASK = 2000, MORE = 1000000 };
    cd_timing_clock_quality q = {.tick_s = INFINITY, .monotonic = true};
    const double begin = now(ctx);
    double last = begin;
    for (int i = 0, moved = 0; i < ASK || (moved < 2 && i < MORE); i++) {
        const double t = now(ctx);
        if (t < last) q.monotonic = false;
        if (t > last) moved++;
        if (t > last && t - last < q.tick_s) q.tick_s = t - last;
        last = t;
        q.cost_s = (t - begin) / (i + 1);
    }
    if (!isfinite(q.tick_s)) q.tick_s = 1;
    return q;
}

/* ---- figures ---- */
/* Samples that may be kept, to v. */
static unsigned candidates(const cd_timing *t, const bool *left_out, double *v) {
    unsigned n = 0;
    for (unsigned i = 0; i < t->n; i++)
        if (!left_out || !left_out[i]) v[n++] = t->sample_s[i];
    return n;
}

/* The rule of outliers, timing.h (2). 1.4826: the median distance of a normal distribution is that
 * much below its deviation. */
static void mark_kept(cd_timing *t, const bool *left_out) {
    double v[CD_TIMING_MAX];
    unsigned n = candidates(t, left_out, v);
    const double middle = cd_sort_to_median(v, n);
    for (unsigned i = 0; i < n; i++) v[i] = fabs(v[i] - middle);
    const double spread = fmax(1.4826 * cd_sort_to_median(v, n), 0.005 * middle);
    for (unsigned i = 0; i < t->n; i++)
        t->kept[i] = (!left_out || !left_out[i]) && fabs(t->sample_s[i] - middle) <= 3 * spread;
}

/* 0.975 quantile of Student's distribution; the value for one degree more never lies below. */
static double student(unsigned degrees) {
    static const double t[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                               2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                               2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
    const unsigned n = sizeof t / sizeof *t;
    if (!degrees) return INFINITY;
    return degrees <= n ? t[degrees - 1] : 1.96 + (t[n - 1] - 1.96) * (double)n / degrees;
}

/* The figures of what is kept; ci: Student's interval, since there are few samples. */
void cd_timing_figures(cd_timing *t, const bool *left_out) {
    double v[CD_TIMING_MAX], sum = 0, squares = 0;
    unsigned n = 0;
    mark_kept(t, left_out);
    for (unsigned i = 0; i < t->n; i++)
        if (t->kept[i]) v[n++] = t->sample_s[i];
    t->n_kept = n;
    t->median_s = cd_sort_to_median(v, n);
    t->min_s = v[0];
    for (unsigned i = 0; i < n; i++) sum += v[i];
    t->mean_s = sum / n;
    for (unsigned i = 0; i < n; i++) squares += (v[i] - t->mean_s) * (v[i] - t->mean_s);
    t->std_s = n > 1 ? sqrt(squares / (n - 1)) : 0;
    t->cv = t->std_s / t->mean_s;
    t->ci = n > 1 ? fmin(1, student(n - 1) * t->cv / sqrt(n)) : 1;
}

/* ---- policy ---- */
cd_timing_policy cd_timing_defaults(cd_timing_policy p, double tick_s) {
    if (p.budget_s <= 0) p.budget_s = 0.1;
    if (p.warmup_s <= 0) p.warmup_s = 0.005;
    if (p.min_repeat_s <= 0) p.min_repeat_s = 0.001;
    p.min_repeat_s = fmax(p.min_repeat_s, 1000 * tick_s);
    if (p.ci <= 0) p.ci = 0.01;
    if (!p.min_repeat) p.min_repeat = 5;
    if (!p.max_repeat) p.max_repeat = 100;
    if (p.max_repeat > CD_TIMING_MAX) p.max_repeat = CD_TIMING_MAX;
    if (p.min_repeat > p.max_repeat) p.min_repeat = p.max_repeat;
    return p;
}

typedef struct {
    const cd_timing_policy *p;
    const cd_timing_subject *s;
    cd_timing *out;
    double begin_s;
    double repeat_s; /* what a repeat with all around it takes */
    bool left_out[CD_TIMING_MAX];
} course;

/* Mean seconds of a run. */
static cdmpp_status once(course *c, unsigned times, double *seconds, cdmpp_err *err) {
    CD_TRY(c->s->run(c->s->ctx, times, seconds, err));
    if (!isfinite(*seconds) || *seconds < 0)
        return CD_FAIL(err, ENUMERIC, "%u runs took %g s", times, *seconds);
    *seconds /= times;
    return CDMPP_OK;
}

static double spent(const course *c) { return c->s->now(c->s->ctx) - c->begin_s; }

/* Runs until warmup_s have gone by, and at least two unless that takes too long: the first one
 * meets cold caches. The fastest of them gives the number of runs of a repeat. */
static cdmpp_status warm_up(course *c, cdmpp_err *err) {
    double best = INFINITY, t = 0;
    unsigned times = 1, calls = 0;
    do {
        CD_TRY(once(c, times, &t, err));
        best = fmin(best, t);
        if (calls++ && times < 1024) times *= 2;
    } while (spent(c) < c->p->warmup_s || (calls < 2 && spent(c) < c->p->budget_s / 4));
    const double number =
        c->p->cold || c->p->cool || best <= 0 ? 1 : ceil(c->p->min_repeat_s / best);
    c->out->number = number < 1 ? 1 : number > 1e6 ? 1000000 : (unsigned)number;
    c->repeat_s = best * c->out->number;
    return CDMPP_OK;
}

static cdmpp_status repeat(course *c, cdmpp_err *err) {
    cd_timing *t = c->out;
    const double begin = c->s->now(c->s->ctx);
    if ((c->p->cold || c->p->cool) && c->s->flush) CD_TRY(c->s->flush(c->s->ctx, err));
    CD_TRY(once(c, t->number, &t->sample_s[t->n], err));
    if (t->sample_s[t->n] <= 0) return CD_FAIL(err, ENUMERIC, "%u runs took no time", t->number);
    c->left_out[t->n] = c->s->disturbed && c->s->disturbed(c->s->ctx);
    t->disturbed += c->left_out[t->n++];
    c->repeat_s = fmax(c->s->now(c->s->ctx) - begin, t->sample_s[t->n - 1]);
    return CDMPP_OK;
}

/* Disturbed repeats are left out if at least three others are there. */
static void figures(course *c) {
    const bool enough = c->out->n - c->out->disturbed >= 3;
    cd_timing_figures(c->out, enough ? c->left_out : NULL);
}

/* Two repeats in any case, unless one alone is longer than the budget; a third must fit into what
 * is left of it. */
static bool over(course *c) {
    const cd_timing *t = c->out;
    if (!t->n) return false;
    const double used = spent(c);
    if (used + c->repeat_s > c->p->budget_s && (t->n >= 2 || c->repeat_s > c->p->budget_s))
        return true;
    if (t->n >= c->p->max_repeat) return true;
    if (t->n - t->disturbed < c->p->min_repeat) return false;
    figures(c);
    return t->ci <= c->p->ci;
}

cdmpp_status cd_timing_run(const cd_timing_policy *p, const cd_timing_subject *s, cd_timing *out,
                           cdmpp_err *err) {
    memset(out, 0, sizeof *out);
    course c = {.p = p, .s = s, .out = out, .begin_s = s->now(s->ctx)};
    CD_TRY(warm_up(&c, err));
    while (!over(&c)) CD_TRY(repeat(&c, err));
    figures(&c);
    return CDMPP_OK;
}
