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
#include <math.h>
#include <stdlib.h>

#include "learner/model/model_internal.h"

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
