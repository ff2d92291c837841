/* The order of the programs of one task for the rank objective. All pairs of a large task would be
 * n^2, so distances between places are sampled in octaves, each standing for its neighbours. */
#include <math.h>
#include <stdlib.h>

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

/* Member a is not slower than member b. The sums of g and h are exact, so the order of the pairs
 * does not matter. */
static void pair(cd_objective_part *p, const double *score, size_t a, size_t b, double weight,
                 sum *s) {
    double slope;
    s->loss += weight * cd_net_loss_softplus(score[a] - score[b], &slope);
    s->weight += weight;
    const double g = exact(weight * slope), h = exact(weight * slope * (1 - slope));
    p->g[a] += g;
    p->g[b] -= g;
    p->h[a] += h;
    p->h[b] += h;
}

/* ---- lambdarank: what a pair weighs ---- */
/* By score; of equal ones the slower first. */
static int by_score(const void *a, const void *b) {
    const cd_objective_place *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? -1 : 1;
    return (x->log_s < y->log_s) - (x->log_s > y->log_s);
}

static void lay_discounts(cd_objective_part *p, const double *score, const size_t *m, size_t n) {
    cd_objective_place *v = p->place;
    for (size_t i = 0; i < n; i++)
        v[i] = (cd_objective_place){.score = score[m[i]], .log_s = p->log_s[m[i]], .i = m[i]};
    qsort(v, n, sizeof *v, by_score);
    for (size_t beg = 0, end; beg < n; beg = end) {
        double mean = 0;
        for (end = beg; end < n && !by_score(&v[beg], &v[end]); end++)
            mean += cd_net_loss_discount(end);
        for (size_t i = beg; i < end; i++) p->discount[v[i].i] = mean / (double)(end - beg);
    }
}

/* How much DCG changes when both swap; NDCG has a factor of the task, which its sum of weights
 * takes away. */
static double swapped(const cd_objective_part *p, size_t a, size_t b) {
    return fabs((cd_net_loss_gain(p->y[a]) - cd_net_loss_gain(p->y[b])) *
                (p->discount[a] - p->discount[b]));
}

/* ---- one task, fastest first; each weighs by its number of programs, however many pairs it has
 * ---- */
static sum pairs(cd_objective_part *p, cd_rank_loss l, const double *score, const size_t *m,
                 size_t n) {
    const bool by_ndcg = l == CD_RANK_LOSS_LAMBDARANK;
    sum s = {0, 0};
    if (by_ndcg) lay_discounts(p, score, m, n);
    for (stride d = {.next = 1}; d.next < n;) {
        d = stride_at(d.next, n);
        for (size_t i = 0; i + d.d < n; i++) {
            const size_t a = m[i], b = m[i + d.d];
            if (!(p->log_s[a] < p->log_s[b])) continue;
            const double weight = (double)d.weight;
            pair(p, score, a, b, by_ndcg ? exact(weight * swapped(p, a, b)) : weight, &s);
        }
    }
    const double each = s.weight > 0 ? (double)n / s.weight : 0;
    for (size_t i = 0; i < n; i++) {
        p->g[m[i]] *= each;
        p->h[m[i]] *= each;
    }
    s.loss *= each;
    return s;
}

/* ln of the sum of exp(-by v) where the least v is `least`; terms are exact. */
static double log_sum(const double *v, double by, const size_t *m, size_t n, double least) {
    double all = 0;
    for (size_t i = 0; i < n; i++) all += exact(exp(by * (least - v[m[i]])));
    return log(all) - by * least;
}

static double least_of(const double *v, const size_t *m, size_t n) {
    double least = INFINITY;
    for (size_t i = 0; i < n; i++) least = fmin(least, v[m[i]]);
    return least;
}

/* The gradient of a cross entropy of softmaxes is their difference. */
static sum listnet(cd_objective_part *p, const double *score, const size_t *m, size_t n) {
    sum s = {0, p->log_s[m[0]] < p->log_s[m[n - 1]]};
    if (!(s.weight > 0)) return s;
    const double by = CD_OBJECTIVE_SHARP, want_all = log_sum(p->log_s, by, m, n, p->log_s[m[0]]),
                 got_all = log_sum(score, 1, m, n, least_of(score, m, n));
    for (size_t i = 0; i < n; i++) {
        const double want = exp(-by * p->log_s[m[i]] - want_all), got = exp(-score[m[i]] - got_all);
        s.loss += (double)n * want * (score[m[i]] + got_all);
        p->g[m[i]] = (double)n * (want - got);
        p->h[m[i]] = (double)n * got * (1 - got);
    }
    return s;
}

double cd_objective_order(cd_objective_part *p, cd_rank_loss l, const double *score) {
    double loss = 0;
    bool any = false;
    for (size_t i = 0; i < p->n; i++) p->g[i] = p->h[i] = 0;
    for (size_t at = 0, n; at < p->n; at += n) {
        n = cd_net_loss_group_size(p->group, p->order, at, p->n);
        const size_t *m = p->order + at;
        const sum s =
            l == CD_RANK_LOSS_LISTNET ? listnet(p, score, m, n) : pairs(p, l, score, m, n);
        loss += s.loss;
        any |= s.weight > 0;
    }
    return any ? loss / (double)p->n : (double)NAN;
}

/* ---- what early stopping looks at ---- */
/* 1 - NDCG; the loss of lambdarank will not do, because the weights of its pairs change with each
 * tree. Discounts are those of the loss, just before. */
static double missed(const cd_objective_part *p) {
    double all = 0;
    for (size_t at = 0, n; at < p->n; at += n) {
        const size_t *m = p->order + at;
        double got = 0, best = 0;
        n = cd_net_loss_group_size(p->group, p->order, at, p->n);
        for (size_t i = 0; i < n; i++) {
            const double gain = cd_net_loss_gain(p->y[m[i]]);
            got += gain * p->discount[m[i]];
            best += gain * cd_net_loss_discount(i);
        }
        all += (double)n * (1 - got / best);
    }
    return all / (double)p->n;
}

double cd_objective_figure(const cd_objective_part *p, const cd_objective_spec *s, double loss) {
    return s->kind == CD_OBJECTIVE_RANK && s->rank == CD_RANK_LOSS_LAMBDARANK ? missed(p) : loss;
}
