/* What a log teaches, and how good that is on programs of which it has seen nothing: five parts of
 * whole tasks, each of them left out of everything once.
 *
 *   part o: its programs by trees and marks of the four others; how far these are believed and
 *           how wide the intervals are by the others' programs, each by trees without its own part
 *           ──> figures of the programs of o
 *   all:    the same by all five ──> what is written, with trees of all programs
 *
 * What the programs of o do to their own figures is what they teach the trees of other parts, by
 * which the width was found (cross-conformal prediction). */
#include <math.h>
#include <string.h>

#include "predictor/calibrate/calibrate_internal.h"

enum { PARTS = CD_CALIBRATE_PARTS, NONE = PARTS, SEED = 1, SHARES = 10 };
/* of the factor of intervals: what few programs can say */
static const double narrowest = 0.25, widest = 10;

typedef cd_calibrate_point point;
typedef struct choice {
    uint32_t out; /* the part that has no say; NONE: all have */
    double share, picks, widen, most;
} choice;

double cd_calibrate_time_of(const point *p) {
    if (isnan(p->again_log)) return exp(p->measured_log);
    const bool quiet = fabs(p->again_log - p->measured_log) <= log(CD_CALIBRATE_APART);
    return exp(quiet ? (p->measured_log + p->again_log) / 2 : fmin(p->measured_log, p->again_log));
}

static double off(const point *p) { return log(cd_calibrate_time_of(p) / p->pred.median_s); }

/* ---- trees without a part ---- */
/* By the programs that are not in the part. */
static cdmpp_status learn(const cd_calibrate_points *f, uint32_t without, cd_here_trees *out,
                          cdmpp_err *err) {
    float *x = cd_mem_zalloc(f->n + 1, f->width * sizeof *x);
    double *y = cd_mem_zalloc(f->n + 1, sizeof *y);
    size_t n = 0;
    cdmpp_status st = x && y ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", f->n);
    for (size_t i = 0; !st && i < f->n; i++) {
        const point *p = &f->v[i];
        if (p->part == without) continue;
        memcpy(x + n * f->width, p->x, f->width * sizeof *x);
        y[n++] = off(p);
    }
    if (!st) st = cd_here_fit(x, y, n, f->width, SEED, out, err);
    cd_mem_free(x);
    cd_mem_free(y);
    return st;
}

/* The programs of a part by trees without it. */
static cdmpp_status cross(cd_calibrate_points *f, uint32_t part, cdmpp_err *err) {
    cd_here_trees t = {0};
    CD_TRY(cd_calibrate_mark_part(f, part, err));
    CD_TRY(learn(f, part, &t, err));
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; !st && i < f->n; i++) {
        point *p = &f->v[i];
        if (p->part != part) continue;
        st = cd_here_off(&t, p->x, f->width, &p->own, err);
        p->common = t.bias;
        p->own -= t.bias;
    }
    cd_xgb_free(t.gbt);
    return st;
}

/* ---- what is chosen ---- */
static bool has_a_say(const point *p, uint32_t out) { return p->part != out; }
static double by_of(const point *p, const choice *c) { return p->common + c->share * p->own; }

/* The answer of the model that would be written, without marks. */
static cd_model_prediction moved(const point *p, const choice *c, double widen, double most,
                                 double noise) {
    cd_model_prediction out = p->pred;
    cd_here_move(by_of(p, c), widen, most, noise, &out);
    return out;
}

/* Of few programs trees learn accidents: the share of their answer that leaves the least |ln| is
 *   believed. */
static void choose_share(const cd_calibrate_points *f, choice *c) {
    double best = (double)INFINITY;
    choice at = *c;
    for (int k = 0; k <= SHARES; k++) {
        double sum = 0;
        at.share = (double)k / SHARES;
        for (size_t i = 0; i < f->n; i++)
            if (has_a_say(&f->v[i], c->out)) sum += fabs(by_of(&f->v[i], &at) - off(&f->v[i]));
        if (!(sum < best)) continue;
        best = sum;
        c->share = at.share;
    }
}

static double corrected_log(const point *p, const choice *c) {
    return log(p->pred.median_s) + by_of(p, c);
}

/* Is it what a replay would choose of the programs of its task: the one that is predicted fastest
 * by trees without its part? Of equal ones the first. */
static bool chosen(const cd_calibrate_points *f, const choice *c, size_t i) {
    const double own = corrected_log(&f->v[i], c);
    for (size_t k = 0; k < f->n; k++) {
        if (!has_a_say(&f->v[k], c->out) || strcmp(f->v[k].key, f->v[i].key) != 0) continue;
        const double other = corrected_log(&f->v[k], c);
        if (other < own || (other == own && k < i)) return false;
    }
    return true;
}

/* Networks are made of chosen programs, and their times are added up. Trees that learn from some
 * hundred programs move fast ones too little, and who chooses is flattered: both together are
 * measured here. */
static double picks_of(const cd_calibrate_points *f, const choice *c) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (has_a_say(&f->v[i], c->out) && chosen(f, c, i))
            f->work[n++] = cd_calibrate_time_of(&f->v[i]) / exp(corrected_log(&f->v[i], c));
    return cd_here_picks(f->work, n);
}

/* ---- the width ---- */
/* The interval that a program has for being unlike alone; a point where it is like the others. NaN:
 * it has none. */
static cd_model_prediction floor_of(const cd_calibrate_points *f, const point *p, const choice *c) {
    cd_model_prediction out = moved(p, c, 1, (double)INFINITY, 0);
    out.low_s = out.high_s = out.latency_s;
    cd_model_mark_unlike(f->m, p->compared, p->reason, &out);
    return out;
}

/* How far off a program's answer is, and by how much its interval is too narrow; no interval, no
 * answer. */
static double how_far(const cd_calibrate_points *f, const point *p, const choice *c) {
    (void)f;
    return fabs(by_of(p, c) - off(p));
}
static double how_beyond(const cd_calibrate_points *f, const point *p, const choice *c) {
    const double y = cd_calibrate_time_of(p);
    const cd_model_prediction least = floor_of(f, p, c), m = moved(p, c, 1, (double)INFINITY, 0);
    return least.low_s <= y && y <= least.high_s ? 0 : cd_here_beyond(&m, c->most, y);
}

/* Split conformal: the k-th smallest of n and one more, which is counted as above. */
double cd_calibrate_bound(double *v, size_t n) {
    const size_t k = (size_t)ceil((double)(n + 1) * CD_CALIBRATE_LEVEL);
    cd_sort_doubles(v, n);
    return n ? v[(k < n ? k : n) - 1] : 1;
}

/* Of programs of tasks that the trees had not seen. */
static double ranked(const cd_calibrate_points *f, const choice *c,
                     double (*what)(const cd_calibrate_points *f, const point *p,
                                    const choice *c)) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (has_a_say(&f->v[i], c->out) && !isnan(floor_of(f, &f->v[i], c).low_s))
            f->work[n++] = what(f, &f->v[i], c);
    return cd_calibrate_bound(f->work, n);
}

/* Times of a noisy machine make no interval narrower: what they say of the others may be chance. So
 * far from the median as `most` lie nine in ten programs, whatever the model knows of them; what it
 * knows makes an interval narrower than that, or it is wide by itself: then a factor would only
 * make it wider. */
static choice choose(const cd_calibrate_points *f, uint32_t out) {
    choice c = {.out = out, .share = 0};
    choose_share(f, &c);
    c.picks = picks_of(f, &c);
    c.most = ranked(f, &c, how_far);
    c.widen = fmin(fmax(ranked(f, &c, how_beyond),
                        f->out->measured_noise > CD_CALIBRATE_NOISE ? 1 : narrowest),
                   widest);
    return c;
}

/* ---- figures ---- */
typedef struct tally {
    cd_calibrate_figures sum;
    double *ape; /* (n) */
} tally;

static void count(tally *t, const cd_model_prediction *p, double y) {
    t->ape[t->sum.n++] = fabs(p->latency_s / y - 1);
    t->sum.mape += fabs(p->latency_s / y - 1);
    t->sum.mean_log += fabs(log(p->median_s / y));
    if (!isnan(p->low_s)) t->sum.ranged++;
    t->sum.inside += p->low_s <= y && y <= p->high_s;
}

static cd_calibrate_figures total(tally *t) {
    cd_calibrate_figures f = t->sum;
    f.mape /= (double)f.n;
    f.mean_log /= (double)f.n;
    f.inside = f.ranged ? f.inside / (double)f.ranged : (double)NAN;
    cd_sort_doubles(t->ape, f.n);
    f.median = cd_sort_median(t->ape, f.n);
    return f;
}

/* Each program by a correction of the other parts. */
static void figures(const cd_calibrate_points *f, cd_calibrate_figures *before,
                    cd_calibrate_figures *after) {
    tally was = {.ape = f->work};
    for (size_t i = 0; i < f->n; i++) {
        cd_model_prediction p = f->v[i].pred;
        cd_model_mark_unlike(f->m, f->v[i].compared, f->v[i].before, &p);
        count(&was, &p, cd_calibrate_time_of(&f->v[i]));
    }
    *before = total(&was);
    tally is = {.ape = f->work};
    choice c[PARTS];
    for (uint32_t o = 0; o < PARTS; o++) c[o] = choose(f, o);
    for (size_t i = 0; i < f->n; i++) {
        const point *x = &f->v[i];
        cd_model_prediction p =
            moved(x, &c[x->part], c[x->part].widen, c[x->part].most, f->out->measured_noise);
        cd_model_mark_unlike(f->m, x->compared, x->reason, &p);
        count(&is, &p, cd_calibrate_time_of(x));
    }
    *after = total(&is);
}

static void noise(const cd_calibrate_points *f) {
    cd_calibrate_result *r = f->out;
    r->programs = f->n;
    for (size_t i = 0; i < f->n; i++) {
        bool first = true;
        for (size_t k = 0; k < i && first; k++) first = strcmp(f->v[k].key, f->v[i].key) != 0;
        r->tasks += first;
        if (!isnan(f->v[i].again_log))
            f->work[r->pairs++] = fabs(f->v[i].again_log - f->v[i].measured_log);
    }
    cd_sort_doubles(f->work, r->pairs);
    r->noise = r->pairs < CD_CALIBRATE_PAIRS ? (double)NAN : cd_sort_median(f->work, r->pairs);
    r->measured_noise = fmax(r->measured_noise, isnan(r->noise) ? 0 : r->noise);
}

/* Without a part there must be enough to learn from. */
static bool enough(const cd_calibrate_points *f) {
    size_t size[PARTS] = {0}, most = 0;
    for (size_t i = 0; i < f->n; i++) size[f->v[i].part]++;
    for (int a = 0; a < PARTS; a++) most = size[a] > most ? size[a] : most;
    return f->n >= CD_CALIBRATE_LEAST + most;
}

cdmpp_status cd_calibrate_cross(cd_calibrate_points *f, cdmpp_err *err) {
    cd_calibrate_result *r = f->out;
    if (!(f->work = cd_mem_zalloc(f->n + 1, sizeof *f->work)))
        return CD_FAIL(err, ENOMEM, "%zu programs", f->n);
    noise(f);
    if (!enough(f)) return CDMPP_ENODATA;
    for (uint32_t part = 0; part < PARTS; part++) CD_TRY(cross(f, part, err));
    figures(f, &r->before, &r->after);
    const choice c = choose(f, NONE);
    r->share = c.share, r->picks = c.picks, r->widen = c.widen, r->most = c.most;
    CD_TRY(cd_calibrate_marks_of(f, &r->marks, err));
    CD_TRY(learn(f, NONE, &r->trees, err));
    r->trees.share = r->share;
    return CDMPP_OK;
}
