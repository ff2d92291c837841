/* Intervals of what a training did not have, from values that were held out one after another. */
#include "learner/operators/novelty.h"

#include <math.h>
#include <stdlib.h>

#include "learner/inputs/inputs.h"

const double cd_novelty_level[CD_NOVELTY_LEVELS] = {0.5, 0.8, 0.9, 0.95, 0.99};

static int by_value(const void *a, const void *b) {
    const cd_novelty_residual *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return (x->r > y->r) - (x->r < y->r);
}

/* How far a row is from the mean of its value, and its weight: each value has as much. */
typedef struct {
    double far, weight;
} point;

static int by_far(const void *a, const void *b) {
    const point *x = a, *y = b;
    return (x->far > y->far) - (x->far < y->far);
}

/* p is sorted by far, and its weights add up to n_value. */
static void quantiles(const point *p, size_t n, double n_value, double out[CD_NOVELTY_LEVELS]) {
    double sum = 0;
    size_t i = 0;
    for (size_t l = 0; l < CD_NOVELTY_LEVELS; l++) {
        while (i + 1 < n && sum + p[i].weight < cd_novelty_level[l] * n_value) sum += p[i++].weight;
        out[l] = p[i].far;
    }
}

cdmpp_status cd_novelty_fit(cd_novelty_residual *r, size_t n, cd_novelty *out, cdmpp_err *err) {
    double square = 0;
    *out = (cd_novelty){0};
    if (!n) return CDMPP_OK;
    point *p = cd_mem_zalloc(n, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "%zu residuals", n);
    qsort(r, n, sizeof *r, by_value);
    for (size_t i = 0, end; i < n; i = end) {
        double mean = 0;
        for (end = i; end < n && r[end].value == r[i].value; end++) mean += r[end].r;
        mean /= (double)(end - i);
        for (size_t k = i; k < end; k++) p[k] = (point){fabs(r[k].r - mean), 1 / (double)(end - i)};
        square += mean * mean;
        out->n_value++;
    }
    qsort(p, n, sizeof *p, by_far);
    out->n_row = n;
    out->between = sqrt(square / (double)out->n_value);
    quantiles(p, n, (double)out->n_value, out->rest);
    cd_mem_free(p);
    return CDMPP_OK;
}

static double rest_at(const cd_novelty *v, double level) {
    size_t k = 0;
    if (level <= cd_novelty_level[0]) return v->rest[0] * level / cd_novelty_level[0];
    while (k + 2 < CD_NOVELTY_LEVELS && level > cd_novelty_level[k + 1]) k++;
    const double at =
        (level - cd_novelty_level[k]) / (cd_novelty_level[k + 1] - cd_novelty_level[k]);
    return v->rest[k] + at * (v->rest[k + 1] - v->rest[k]);
}

double cd_novelty_half(const cd_novelty *v, double level) {
    if (v->n_value < CD_NOVELTY_LEAST) return (double)NAN;
    return hypot(rest_at(v, level),
                 v->between * cd_normal_student((1 + level) / 2, (double)v->n_value));
}

double cd_novelty_join(double of_like, const double *half, size_t n) {
    double all = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(half[i])) return (double)NAN;
        all = hypot(all, half[i]);
    }
    return of_like > all ? of_like : all; /* NaN of like rows: what is new is known alone */
}
