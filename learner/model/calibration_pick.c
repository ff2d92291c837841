/* The programs of a fit in an order of their own: by a hash of all that is known of each. So sums
 * do not depend on the caller's order, and the first CD_CALIBRATION_MAX_PROGRAM of them are a fair
 * sample. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/model/model_internal.h"

/* Quantiles of z = (ln y - m) / sigma for the interval of a new program of a new task.
 *
 * Programs of a task err together, so a set of many programs may hold few independent
 * errors. Each task weighs the same, whatever its number of programs, and a quantile
 * at p is asked of the data at p (1 + 1/e): were all z independent, the next one is
 * equally likely to have any rank among n + 1 (conformal prediction), e = n; were all
 * z of a task the same, the same holds for tasks, e = tasks. Between the two e =
 * n / (1 + (n0 - 1) rho), the usual design effect of clusters of n0 programs with
 * correlation rho inside, estimated by an analysis of variance of z and of its
 * distance from the median; the larger rho counts.
 *
 * Where p (1 + 1/e) reaches 1 (e < 19 at level 0.9) no rank holds that share: even the farthest z
 * seen is passed too often. Then the interval is that of Student's t for the next of e normal
 * numbers, mean +- t s sqrt(1 + 1/e), and not narrower than what was seen. Of one task only, how
 * tasks differ is not known: its programs count. */

typedef struct {
    double z, weight;
} weighted;

static int by_z(const void *a, const void *b) {
    const weighted *x = a, *y = b;
    if (x->z != y->z) return x->z < y->z ? -1 : 1;
    return (x->weight > y->weight) - (x->weight < y->weight);
}

bool cd_calibration_few(double e, double level) { return (1 + level) / 2 * (1 + 1 / e) >= 1; }

/* ---- how many independent errors ---- */
typedef struct {
    double n, sum, sq;
} tally;

/* Intraclass correlation by an analysis of variance with groups of unequal size; values beyond 5
 * count as 5, so that outliers do not decide. */
static double correlation(const cd_calibration_set *s, const double *v, tally *g, double *n0) {
    const double n = (double)s->n, k = (double)s->n_group;
    double within = 0, between = 0, sizes = 0, all = 0;
    for (size_t i = 0; i < s->n_group; i++) g[i] = (tally){0};
    for (size_t i = 0; i < s->n; i++) {
        const double x = fmax(-5, fmin(v[i], 5));
        tally *t = &g[s->group[i]];
        t->n++;
        t->sum += x;
        t->sq += x * x;
        all += x;
    }
    for (size_t i = 0; i < s->n_group; i++) {
        const double d = g[i].sum / g[i].n - all / n;
        within += g[i].sq - g[i].sum * g[i].sum / g[i].n;
        between += g[i].n * d * d;
        sizes += g[i].n * g[i].n;
    }
    *n0 = (n - sizes / n) / (k - 1);
    between /= k - 1;
    within = fmax(within / (n - k), 1e-12);
    return fmax(0, fmin((between - within) / (between + (*n0 - 1) * within), 1));
}

/* d (n) is scratch. */
static cdmpp_status independent(const cd_calibration_set *s, const double *z, double middle,
                                double *d, double *e, cdmpp_err *err) {
    *e = (double)s->n_group;
    if (s->n_group < 2 || s->n_group == s->n) return CDMPP_OK;
    tally *g = cd_mem_zalloc(s->n_group, sizeof *g);
    double n0;
    if (!g) return CD_FAIL(err, ENOMEM, "%zu tasks", s->n_group);
    for (size_t i = 0; i < s->n; i++) d[i] = fabs(z[i] - middle);
    const double rho = fmax(correlation(s, z, g, &n0), correlation(s, d, g, &n0));
    *e = fmax(*e, (double)s->n / (1 + (n0 - 1) * rho));
    cd_mem_free(g);
    return CDMPP_OK;
}

/* Smallest z with at least the share p of the weight at or below it. */
static double quantile(const weighted *v, size_t n, double total, double p) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if ((sum += v[i].weight) >= p * total * (1 - 1e-12)) return v[i].z;
    return v[n - 1].z;
}

/* Each task's programs share a weight of 1. */
static void share(const cd_calibration_set *s, const double *z, uint32_t *count, weighted *v,
                  double sign) {
    for (size_t i = 0; i < s->n_group; i++) count[i] = 0;
    for (size_t i = 0; i < s->n; i++) count[s->group[i]]++;
    for (size_t i = 0; i < s->n; i++) v[i] = (weighted){sign * z[i], 1.0 / count[s->group[i]]};
    qsort(v, s->n, sizeof *v, by_z);
}

/* q widened to what e errors allow; q[3] is then their standard deviation. v as `share` left it. */
static void widen_few(const weighted *v, size_t n, double total, double p, double e, double q[4]) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; i++) mean += v[i].weight * v[i].z / total;
    for (size_t i = 0; i < n; i++)
        square += v[i].weight * (v[i].z - mean) * (v[i].z - mean) / total;
    q[3] = sqrt(square * e / (e - 1));
    const double far = cd_normal_student(p, floor(e) - 1) * q[3] * sqrt(1 + 1 / e);
    q[0] = fmin(q[0], mean - far);
    q[2] = fmax(q[2], mean + far);
}

/* The lower end is the upper end of -z. */
cdmpp_status cd_calibration_quantiles(const cd_calibration_set *s, const double *z, double level,
                                      double q[4], double *e, cdmpp_err *err) {
    weighted *v = cd_mem_zalloc(s->n, sizeof *v);
    uint32_t *count = cd_mem_zalloc(s->n_group, sizeof *count);
    cdmpp_status st = v && count ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", s->n);
    if (!st) {
        for (size_t i = 0; i < s->n; i++) s->work[i] = z[i];
        q[1] = cd_sort_to_quantile(s->work, s->n, 0.5);
        st = independent(s, z, q[1], s->work, e, err);
    }
    if (!st) {
        const double half = (1 + level) / 2, p = half * (1 + 1 / *e), total = (double)s->n_group;
        const double n_few = s->n_group < 2 ? (double)s->n : *e;
        share(s, z, count, v, -1);
        q[0] = -quantile(v, s->n, total, p);
        share(s, z, count, v, 1);
        q[2] = quantile(v, s->n, total, p);
        q[1] = fmax(q[0], fmin(q[1], q[2]));
        q[3] = (q[2] - q[0]) / (2 * cd_normal_quantile(half));
        if (cd_calibration_few(n_few, level)) widen_few(v, s->n, total, half, n_few, q);
    }
    cd_mem_free(v);
    cd_mem_free(count);
    return st;
}

/* How far a program lies outside the programs of training.
 *
 *   outside(x) = sum over columns of min(1, distance from [least, largest] / (largest - least))
 *
 * A column that was the same in all of training (an operator that never occurred, an
 * annotation that was never used) gives 1 as soon as it differs. */

static const double narrow = 1e-6;

void cd_calibration_range_add(float *range, const float *x, size_t n, size_t width, bool first) {
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < width; c++) {
            const float v = x[i * width + c];
            if (first && !i) range[c] = range[width + c] = v;
            if (v < range[c]) range[c] = v;
            if (v > range[width + c]) range[width + c] = v;
        }
}

/* Distances in units of the range of the column, each counted up to 1. */
double cd_calibration_outside_of(const float *range, const float *x, size_t width, size_t *n) {
    double sum = 0;
    *n = 0;
    for (size_t c = 0; c < width; c++) {
        const double lo = (double)range[c], hi = (double)range[width + c], v = (double)x[c];
        if (v >= lo && v <= hi) continue;
        const double far = fmax(lo - v, v - hi) / fmax(hi - lo, narrow);
        sum += fmin(far, 1);
        ++*n;
    }
    return sum;
}

const float *cd_calibration_range(const cd_calibration *c) { return c->range; }

enum { INNER_FOLDS = 5 };

typedef struct {
    uint64_t key, key2;
    size_t at;
} ticket;

static uint64_t absorb(uint64_t h, const void *p, size_t n) {
    const unsigned char *b = p;
    for (; n >= 8; n -= 8, b += 8) {
        uint64_t v;
        memcpy(&v, b, 8);
        h = cd_rng_mix(h ^ v);
    }
    uint64_t v = 0;
    if (n) memcpy(&v, b, n);
    return n ? cd_rng_mix(h ^ v) : h;
}

static ticket ticket_of(const cd_calibration_input *in, uint64_t seed, size_t i) {
    uint64_t h = absorb(cd_rng_mix(seed), &in->log_y[i], sizeof in->log_y[i]);
    for (size_t k = 0; k < in->n_kind; k++)
        h = absorb(h, &in->kind_log_s[k * in->n + i], sizeof *in->kind_log_s);
    h = absorb(h, &in->group[i], sizeof in->group[i]);
    if (in->fold) h = absorb(h, &in->fold[i], sizeof in->fold[i]);
    const uint64_t x = absorb(h, in->x + i * in->width, in->width * sizeof *in->x);
    return (ticket){x, cd_rng_mix(h) ^ x, i};
}

/* Two programs with equal keys are equal in all that a fit sees, so either may come first. */
static int by_key(const void *a, const void *b) {
    const ticket *p = a, *q = b;
    if (p->key != q->key) return p->key < q->key ? -1 : 1;
    return (p->key2 > q->key2) - (p->key2 < q->key2);
}

/* A value that is not finite would spread into every number of the fit, so all are looked at. */
static cdmpp_status check(const cd_calibration_input *in, cdmpp_err *err) {
    if (in->n < 2 || !in->width || !in->n_fold)
        return CD_FAIL(err, ESCHEMA, "expected at least 2 programs, found %zu", in->n);
    if (!in->n_kind || in->n_kind > CD_CALIBRATION_MAX_KIND)
        return CD_FAIL(err, ESCHEMA, "expected 1 to %d kinds, found %zu", CD_CALIBRATION_MAX_KIND,
                       in->n_kind);
    if (in->n_fold > CD_CALIBRATION_MAX_FOLD || (in->n_fold > 1 && !in->fold))
        return CD_FAIL(err, ESCHEMA, "%zu folds", in->n_fold);
    for (size_t i = 0; i < in->n; i++) {
        if (in->n_fold > 1 && in->fold[i] >= in->n_fold)
            return CD_FAIL(err, ESCHEMA, "program %zu: fold %u of %zu", i, in->fold[i], in->n_fold);
        if (!isfinite(in->log_y[i]))
            return CD_FAIL(err, ENUMERIC, "program %zu: the measured latency is not finite", i);
        for (size_t k = 0; k < in->n_kind; k++)
            if (!isfinite(in->kind_log_s[k * in->n + i]))
                return CD_FAIL(err, ENUMERIC, "program %zu: answer of kind %zu is not finite", i,
                               k);
        for (size_t c = 0; c < in->width; c++)
            if (!isfinite(in->x[i * in->width + c]))
                return CD_FAIL(err, ENUMERIC, "program %zu: column %zu is not finite", i, c);
    }
    return CDMPP_OK;
}

static cdmpp_status memory(cd_calibration_set *s, cdmpp_err *err) {
    const size_t n = s->n;
    double **column[] = {&s->y, &s->m, &s->r, &s->spread, &s->outside, &s->raw, &s->work};
    s->kind = CD_NEWN(&s->arena, double, n * s->n_kind);
    s->at = CD_NEWN(&s->arena, size_t, n);
    s->group = CD_NEWN(&s->arena, uint32_t, n);
    s->fold = CD_NEWN(&s->arena, uint32_t, n);
    for (size_t k = 0; k < sizeof column / sizeof *column; k++)
        *column[k] = CD_NEWN(&s->arena, double, n);
    return s->arena.oom ? CD_FAIL(err, ENOMEM, "%zu programs", n) : CDMPP_OK;
}

void cd_calibration_set_free(cd_calibration_set *s) { cd_arena_free(&s->arena); }

/* ---- groups and folds ---- */
/* Task ids become 0, 1, .. in an order drawn from the seed: fold = number mod 5 is then a cut by
 * task. */
static cdmpp_status number_groups(cd_calibration_set *s, const uint32_t *id, uint64_t seed,
                                  cdmpp_err *err) {
    ticket *t = cd_mem_zalloc(s->n, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "%zu programs", s->n);
    for (size_t i = 0; i < s->n; i++)
        t[i] = (ticket){cd_rng_at(seed, id[s->at[i]]), id[s->at[i]], i};
    qsort(t, s->n, sizeof *t, by_key);
    for (size_t i = 0; i < s->n; i++) {
        if (i && t[i].key2 != t[i - 1].key2) s->n_group++;
        s->group[t[i].at] = (uint32_t)s->n_group;
    }
    s->n_group++;
    cd_mem_free(t);
    return CDMPP_OK;
}

/* The caller's folds where at least two have programs, else our own by task. */
static void number_folds(cd_calibration_set *s, const cd_calibration_input *in) {
    bool used[CD_CALIBRATION_MAX_SIGMA] = {0};
    uint32_t n_used = 0;
    s->n_fold =
        in->n_fold < CD_CALIBRATION_MAX_SIGMA ? (uint32_t)in->n_fold : CD_CALIBRATION_MAX_SIGMA;
    for (size_t i = 0; in->fold && i < s->n; i++) {
        s->fold[i] = in->n_fold > 1 ? in->fold[s->at[i]] % s->n_fold : 0;
        n_used += !used[s->fold[i]];
        used[s->fold[i]] = true;
    }
    s->own_fold = n_used < 2;
    if (!s->own_fold) return;
    s->n_fold = INNER_FOLDS;
    for (size_t i = 0; i < s->n; i++) s->fold[i] = s->group[i] % INNER_FOLDS;
}

/* Two hashes of 64 bits: programs with equal keys are equal in everything that a fit sees. */
static cdmpp_status order(const cd_calibration_input *in, uint64_t seed, cd_calibration_set *s,
                          cdmpp_err *err) {
    ticket *t = cd_mem_zalloc(in->n, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "%zu programs", in->n);
    for (size_t i = 0; i < in->n; i++) t[i] = ticket_of(in, seed, i);
    qsort(t, in->n, sizeof *t, by_key);
    for (size_t i = 0; i < s->n; i++) {
        const size_t p = s->at[i] = t[i].at;
        s->y[i] = in->log_y[p];
        for (size_t k = 0; k < in->n_kind; k++)
            s->kind[k * s->n + i] = in->kind_log_s[k * in->n + p];
    }
    cd_mem_free(t);
    return CDMPP_OK;
}

cdmpp_status cd_calibration_pick(const cd_calibration_input *in, uint64_t seed,
                                 cd_calibration_set *s, cdmpp_err *err) {
    *s = (cd_calibration_set){0};
    CD_TRY(check(in, err));
    s->n = in->n < CD_CALIBRATION_MAX_PROGRAM ? in->n : CD_CALIBRATION_MAX_PROGRAM;
    s->n_kind = in->n_kind;
    s->width = in->width;
    CD_TRY(memory(s, err));
    CD_TRY(order(in, seed, s, err));
    CD_TRY(number_groups(s, in->group, seed, err));
    number_folds(s, in);
    return CDMPP_OK;
}
