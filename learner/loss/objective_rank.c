/* Pairs of programs of one task for the rank objective. All pairs of a large task would be n^2, so distances between places are
 * sampled in octaves, each standing for its neighbours. */
#include <math.h>

#include "learner/loss/loss_internal.h"

enum { NEAR = 16 };

/* One distance between places by latency, for `weight` of them. */
typedef struct {
    size_t d, weight, next;
} stride;

/* The stratum of distances that starts at `from`, in a task of n programs. */
static stride stride_at(size_t from, size_t n) {
    size_t step = 1;
    while (from > step * NEAR) step *= 2;
    if (from + step > n) step = n - from;
    return (stride){from + (step - 1) / 2, step, from + step};
}

/* Multiples of 2^-36: sums of up to 2^17 of them are exact in any order. */
static double exact(double x) { return rint(x * 0x1p36) * 0x1p-36; }

typedef struct {
    double loss, weight;
} sum;

/* Member a is not slower than member b. The sums of g and h are exact, so the order of the pairs does not matter. */
static void pair(cd_objective_part *p, const double *score, size_t a, size_t b, double weight, sum *s) {
    double slope;
    if (!(p->log_s[a] < p->log_s[b])) return;
    s->loss += weight * cd_net_loss_softplus(score[a] - score[b], &slope);
    s->weight += weight;
    const double g = exact(weight * slope), h = exact(weight * slope * (1 - slope));
    p->g[a] += g;
    p->g[b] -= g;
    p->h[a] += h;
    p->h[b] += h;
}

/* One task, fastest first. Each task weighs by its number of programs, however many pairs it has. */
static sum task(cd_objective_part *p, const double *score, const size_t *m, size_t n) {
    sum s = {0, 0};
    for (size_t i = 0; i < n; i++) p->g[m[i]] = p->h[m[i]] = 0;
    for (stride d = {.next = 1}; d.next < n;) {
        d = stride_at(d.next, n);
        for (size_t i = 0; i + d.d < n; i++) pair(p, score, m[i], m[i + d.d], (double)d.weight, &s);
    }
    const double each = s.weight > 0 ? (double)n / s.weight : 0;
    for (size_t i = 0; i < n; i++) {
        p->g[m[i]] *= each;
        p->h[m[i]] *= each;
    }
    s.loss *= each;
    return s;
}

double cd_objective_pairs(cd_objective_part *p, const double *score) {
    double loss = 0;
    bool any = false;
    for (size_t at = 0, n; at < p->n; at += n) {
        n = cd_net_loss_group_size(p->group, p->order, at, p->n);
        const sum s = task(p, score, p->order + at, n);
        loss += s.loss;
        any |= s.weight > 0;
    }
    return any ? loss / (double)p->n : (double)NAN;
}
