/* Losses that compare the samples of one group (a task on a device): only their order counts, not
 * their size. */
#include <math.h>
#include <string.h>

#include "learner/loss/loss_internal.h"

/* Merge sort, stable; tmp (n). */
void cd_net_loss_by_group(const uint32_t *group, size_t n, size_t *order, size_t *tmp) {
    for (size_t i = 0; i < n; i++) order[i] = i;
    for (size_t run = 1; run < n; run *= 2)
        for (size_t beg = 0; beg + run < n; beg += 2 * run) {
            const size_t mid = beg + run, end = n - mid < run ? n : mid + run;
            size_t a = 0, b = mid, k = beg;
            memcpy(tmp, order + beg, run * sizeof *tmp);
            while (a < run && b < end)
                order[k++] = group[order[b]] < group[tmp[a]] ? order[b++] : tmp[a++];
            while (a < run) order[k++] = tmp[a++];
        }
}

size_t cd_net_loss_group_size(const uint32_t *group, const size_t *order, size_t at, size_t n) {
    size_t k = at + 1;
    while (k < n && group[order[k]] == group[order[at]]) k++;
    return k - at;
}

double cd_net_loss_softplus(double x, double *slope) {
    *slope = x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* One group: its members in the batch, and sums. */
typedef struct {
    const cd_net_loss *p;
    const cd_net_loss_batch *b;
    const size_t *m; /* (n) */
    size_t n, width;
    double *term;
    cd_net_loss_scratch *s;
} group;

static double *slope_of(const group *g, size_t i) { return g->s->grad + g->m[i] * g->width; }
static double label(const group *g, size_t i) { return g->b->z[g->m[i]]; }
static double pred(const group *g, size_t i) { return g->s->pred[g->m[i]]; }

/* Pairs that should be p_i < p_j; share: what one counts, NULL: `each`. Logistic loss of each pair
 * in the wrong order or too close. */
static void pairs(const group *g, cd_net_loss_term t, double each, const double *gain,
                  const double *discount) {
    double sum = 0;
    for (size_t i = 0; i < g->n; i++)
        for (size_t j = 0; j < g->n; j++) {
            if (!(label(g, i) < label(g, j))) continue;
            double slope, share = each;
            if (gain) share *= fabs((gain[i] - gain[j]) * (discount[i] - discount[j]));
            sum += share * cd_net_loss_softplus(pred(g, i) - pred(g, j), &slope);
            const double d = g->p->weight[t] * share * slope;
            *slope_of(g, i) += d;
            *slope_of(g, j) -= d;
        }
    g->term[t] += sum;
}

/* place[i]: how many members come before i by v, ties in the order of the batch. */
static void places(const double *v, size_t n, size_t *place) {
    for (size_t i = 0; i < n; i++) {
        place[i] = 0;
        for (size_t j = 0; j < n; j++) place[i] += v[j] < v[i] || (v[j] <= v[i] && j < i);
    }
}

double cd_net_loss_gain(double ratio) { return exp2(ratio) - 1; }
double cd_net_loss_discount(size_t place) { return 1 / log2(2 + (double)place); }

/* Places by label give the ideal DCG, places by prediction the discounts. A pair weighs as much as
 * NDCG changes when both swap. */
static void lambdarank(const group *g, double each) {
    double *gain = g->s->score, *discount = gain + g->n, *v = discount + g->n, ideal = 0,
           fastest = INFINITY;
    size_t *place = g->s->place;
    for (size_t i = 0; i < g->n; i++) fastest = fmin(fastest, g->b->log_s[g->m[i]]);
    for (size_t i = 0; i < g->n; i++) {
        gain[i] = cd_net_loss_gain(exp(fastest - g->b->log_s[g->m[i]]));
        v[i] = label(g, i);
    }
    places(v, g->n, place);
    for (size_t i = 0; i < g->n; i++) ideal += gain[i] * cd_net_loss_discount(place[i]);
    for (size_t i = 0; i < g->n; i++) v[i] = pred(g, i);
    places(v, g->n, place);
    for (size_t i = 0; i < g->n; i++) discount[i] = cd_net_loss_discount(place[i]);
    pairs(g, CD_NET_LOSS_lambdarank, each / ideal, gain, discount);
}

/* softmax(-v) in place. */
static double softmax(double *v, size_t n) {
    double least = INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++) least = fmin(least, v[i]);
    for (size_t i = 0; i < n; i++) sum += v[i] = exp(least - v[i]);
    for (size_t i = 0; i < n; i++) v[i] /= sum;
    return log(sum) - least; /* -ln softmax_i = v_i + this */
}

/* Cross entropy of two softmaxes: its gradient is their difference. */
static void listnet(const group *g, double each) {
    double *want = g->s->score, *got = want + g->n, sum = 0;
    for (size_t i = 0; i < g->n; i++) {
        want[i] = label(g, i);
        got[i] = pred(g, i);
    }
    softmax(want, g->n);
    const double shift = softmax(got, g->n);
    for (size_t i = 0; i < g->n; i++) {
        sum += want[i] * (pred(g, i) + shift);
        *slope_of(g, i) += g->p->weight[CD_NET_LOSS_listnet] * each * (want[i] - got[i]);
    }
    g->term[CD_NET_LOSS_listnet] += each * sum;
}

static bool all_equal(const group *g) {
    for (size_t i = 1; i < g->n; i++)
        if (label(g, i) < label(g, 0) || label(g, i) > label(g, 0)) return false;
    return true;
}

void cd_net_loss_rank_terms(const cd_net_loss *p, const cd_net_loss_batch *b,
                            const cd_net_loss_norm *norm, size_t width, double *term,
                            cd_net_loss_scratch *s) {
    for (size_t at = 0, n; at < b->n; at += n) {
        n = cd_net_loss_group_size(b->group, s->order, at, b->n);
        const group g = {p, b, s->order + at, n, width, term, s};
        if (all_equal(&g)) continue;
        if (p->weight[CD_NET_LOSS_rank] > 0)
            pairs(&g, CD_NET_LOSS_rank, 1 / norm->pairs, NULL, NULL);
        if (p->weight[CD_NET_LOSS_lambdarank] > 0) lambdarank(&g, 1 / norm->groups);
        if (p->weight[CD_NET_LOSS_listnet] > 0) listnet(&g, 1 / norm->groups);
    }
}
