/* Errors of kinds that were left out, as a law of the next kind. */
#include "learner/train/unlike_law.h"

#include <math.h>
#include <stdlib.h>

static const double most = 20; /* ln: no law says more */

static int by_group(const void *a, const void *b) {
    const cd_unlike_error *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return (x->r > y->r) - (x->r < y->r);
}

static int by_r(const void *a, const void *b) {
    const cd_unlike_error *x = a, *y = b;
    return (x->r > y->r) - (x->r < y->r);
}

/* Where the sum of the weights, which is 1, passes p. */
static double quantile(const cd_unlike_error *e, size_t n, double p) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if ((sum += e[i].weight) >= p) return e[i].r;
    return e[n - 1].r;
}

/* Number of groups; the mean square of their means. `take_off`: their means, too. */
static size_t groups(cd_unlike_error *e, size_t n, bool take_off, double *square) {
    size_t count = 0;
    *square = 0;
    qsort(e, n, sizeof *e, by_group);
    for (size_t i = 0, j; i < n; i = j, count++) {
        double mean = 0;
        for (j = i; j < n && e[j].group == e[i].group; j++) mean += e[j].r;
        mean /= (double)(j - i);
        *square += mean * mean;
        for (size_t k = i; k < j; k++) {
            e[k].weight = 1 / (double)(j - i);
            if (take_off) e[k].r -= mean;
        }
    }
    *square /= (double)(count ? count : 1);
    for (size_t i = 0; i < n; i++) e[i].weight /= (double)count;
    return count;
}

void cd_unlike_law_of(cd_unlike_error *e, size_t n, double level, cd_unlike_law *out) {
    const double half = (1 + level) / 2;
    double square;
    *out = (cd_unlike_law){0};
    size_t kinds = groups(e, n, false, &square);
    if (kinds < CD_UNLIKE_LAW_LEAST) return;
    const double m = (double)kinds, tail = 1 - half * (1 + 1 / m);
    const bool few = tail <= 0;
    if (few) kinds = groups(e, n, true, &square);
    out->n = (uint32_t)kinds;
    out->shift = fmin(sqrt(square), most);
    qsort(e, n, sizeof *e, by_r);
    const double shift = few ? cd_normal_student(half, m) * out->shift * sqrt(1 + 1 / m) : 0, at = few ? 1 - half : tail;
    out->low = fmax(-most, fmin(0, -hypot(shift, fmin(0, quantile(e, n, at)))));
    out->high = fmin(most, fmax(0, hypot(shift, fmax(0, quantile(e, n, 1 - at)))));
}
