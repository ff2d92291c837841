/* The loss of a batch as a weighted sum of terms, and its gradient with respect to the outputs of
 * the network. Terms are tables of value and slope, so a new one is one line in the table and one
 * here. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learner/loss/loss.h"
#include "learner/loss/loss_internal.h"

/* "1000mse+1mape" to weights. A word that is unknown is answered with the nearest one, for the
 * names come from papers and are easily mixed up. */

static const char *const names[] = {
#define CD_NET_LOSS_X(name, what) #name,
    CD_NET_LOSS_MAP(CD_NET_LOSS_X)
#undef CD_NET_LOSS_X
};

size_t cd_net_loss_quantile_at(const cd_net_loss *p) {
    return p->weight[CD_NET_LOSS_nll] > 0 ? 2 : 1;
}
size_t cd_net_loss_width(const cd_net_loss *p) {
    return cd_net_loss_quantile_at(p) + p->n_quantile;
}
bool cd_net_loss_domains(const cd_net_loss *p) {
    return p->weight[CD_NET_LOSS_cmd] > 0 || p->weight[CD_NET_LOSS_mmd] > 0;
}
bool cd_net_loss_ranks(const cd_net_loss *p) {
    return p->weight[CD_NET_LOSS_rank] > 0 || p->weight[CD_NET_LOSS_lambdarank] > 0 ||
           p->weight[CD_NET_LOSS_listnet] > 0;
}

/* Terms on samples stand before those that compare samples. */
bool cd_net_loss_knows_level(const cd_net_loss *p) {
    for (int t = 0; t < CD_NET_LOSS_rank; t++)
        if (p->weight[t] > 0) return true;
    return false;
}

enum { WORD = 40 };

static cdmpp_status unknown(const char *word, cdmpp_err *err) {
    int best = 0;
    for (int t = 1; t < CD_NET_LOSS_TERMS; t++)
        if (cd_did_you_mean_distance(word, names[t]) < cd_did_you_mean_distance(word, names[best]))
            best = t;
    return CD_FAIL(err, ESCHEMA, "unknown loss term '%s', the nearest is '%s'", word, names[best]);
}

static const char *skip(const char *s) {
    while (isspace((unsigned char)*s)) s++;
    return s;
}

/* One "1000mse" at *text, which moves behind it. */
static cdmpp_status term(const char **text, cd_net_loss *out, cdmpp_err *err) {
    const char *s = skip(*text);
    const bool has_weight = isdigit((unsigned char)*s) || *s == '.' || *s == '-' || *s == '+';
    char *end = (char *)(uintptr_t)s, word[WORD];
    const double w = has_weight ? strtod(s, &end) : 0;
    const char *beg = skip(end);
    const size_t n = strspn(beg, "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    snprintf(word, sizeof word, "%.*s", (int)(n < WORD ? n : WORD - 1), beg);
    if (!n) return CD_FAIL(err, ESCHEMA, "expected a loss term such as '1mse', found '%.40s'", s);
    if (!has_weight || end == s)
        return CD_FAIL(err, ESCHEMA, "loss term '%s' has no weight, expected for example '1%s'",
                       word, word);
    if (!(w > 0 && w <= 1e9))
        return CD_FAIL(err, ERANGE,
                       "loss term '%s': expected a weight > 0 and at most 1e9, found %g", word, w);
    int t = 0;
    while (t < CD_NET_LOSS_TERMS && strcmp(names[t], word) != 0) t++;
    if (t == CD_NET_LOSS_TERMS) return unknown(word, err);
    if (out->weight[t] > 0) return CD_FAIL(err, ESCHEMA, "loss term '%s' appears twice", word);
    out->weight[t] = w;
    *text = skip(beg + n);
    return CDMPP_OK;
}

static cdmpp_status quantiles(const double *q, size_t n, cd_net_loss *out, cdmpp_err *err) {
    if (!n) return CD_FAIL(err, ESCHEMA, "loss term 'pinball' needs quantiles, found none");
    if (n > CD_NET_LOSS_QUANTILES)
        return CD_FAIL(err, ERANGE, "expected at most %d quantiles, found %zu",
                       CD_NET_LOSS_QUANTILES, n);
    for (size_t k = 0; k < n; k++)
        if (!(q[k] > 0 && q[k] < 1 && (!k || q[k] > q[k - 1])))
            return CD_FAIL(err, ERANGE,
                           "quantile %zu: expected rising numbers between 0 and 1, found %g", k,
                           q[k]);
    memcpy(out->quantile, q, n * sizeof *q);
    out->n_quantile = n;
    return CDMPP_OK;
}

static bool trains_prediction(const cd_net_loss *p) {
    for (int t = 0; t < CD_NET_LOSS_cmd; t++)
        if (p->weight[t] > 0) return true;
    return false;
}

cdmpp_status cd_net_loss_parse(const char *text, const double *quantile, size_t n_quantile,
                               cd_net_loss *out, cdmpp_err *err) {
    const char *at = text;
    *out = (cd_net_loss){0};
    do CD_TRY(term(&at, out, err));
    while (*at == '+' && at++);
    if (*at) return CD_FAIL(err, ESCHEMA, "expected '+' or the end of the loss, found '%.40s'", at);
    if (!trains_prediction(out))
        return CD_FAIL(err, ESCHEMA,
                       "expected a loss term on labels beside cmd and mmd, found '%.80s'", text);
    return out->weight[CD_NET_LOSS_pinball] > 0 ? quantiles(quantile, n_quantile, out, err)
                                                : CDMPP_OK;
}

/* Losses that compare the samples of one group (a task on a device): only their order counts, not
 * their size. */

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

/* ln(1 + e^x) and its slope. */
static double net_loss_softplus(double x, double *slope) {
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
            sum += share * net_loss_softplus(pred(g, i) - pred(g, j), &slope);
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

/* lambdarank: what a program is worth whose task has one that is `ratio` (0..1) of its time; what a
 * place (0: the first) counts. */
static double net_loss_gain(double ratio) { return exp2(ratio) - 1; }
static double net_loss_discount(size_t place) { return 1 / log2(2 + (double)place); }

/* Places by label give the ideal DCG, places by prediction the discounts. A pair weighs as much as
 * NDCG changes when both swap. */
static void lambdarank(const group *g, double each) {
    double *gain = g->s->score, *discount = gain + g->n, *v = discount + g->n, ideal = 0,
           fastest = INFINITY;
    size_t *place = g->s->place;
    for (size_t i = 0; i < g->n; i++) fastest = fmin(fastest, g->b->log_s[g->m[i]]);
    for (size_t i = 0; i < g->n; i++) {
        gain[i] = net_loss_gain(exp(fastest - g->b->log_s[g->m[i]]));
        v[i] = label(g, i);
    }
    places(v, g->n, place);
    for (size_t i = 0; i < g->n; i++) ideal += gain[i] * net_loss_discount(place[i]);
    for (size_t i = 0; i < g->n; i++) v[i] = pred(g, i);
    places(v, g->n, place);
    for (size_t i = 0; i < g->n; i++) discount[i] = net_loss_discount(place[i]);
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

/* Adds the rank terms: values before weights to term, gradients with respect to
 * the predictions s->pred to s->grad (one of every `width`). s->order is by group. */
static void net_loss_rank_terms(const cd_net_loss *p, const cd_net_loss_batch *b,
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

/* The order of the programs of one task for the rank objective. All pairs of a large task would be
 * n^2, so distances between places are sampled in octaves, each standing for its neighbours. */

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
} weighted_loss;

/* Member a is not slower than member b. The sums of g and h are exact, so the order of the pairs
 * does not matter. */
static void pair(cd_objective_part *p, const double *score, size_t a, size_t b, double weight,
                 weighted_loss *s) {
    double slope;
    s->loss += weight * net_loss_softplus(score[a] - score[b], &slope);
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
            mean += net_loss_discount(end);
        for (size_t i = beg; i < end; i++) p->discount[v[i].i] = mean / (double)(end - beg);
    }
}

/* How much DCG changes when both swap; NDCG has a factor of the task, which its sum of weights
 * takes away. */
static double swapped(const cd_objective_part *p, size_t a, size_t b) {
    return fabs((net_loss_gain(p->y[a]) - net_loss_gain(p->y[b])) *
                (p->discount[a] - p->discount[b]));
}

/* ---- one task, fastest first; each weighs by its number of programs, however many pairs it has
 * ---- */
static weighted_loss pairs_rank(cd_objective_part *p, cd_rank_loss l, const double *score,
                                const size_t *m, size_t n) {
    const bool by_ndcg = l == CD_RANK_LOSS_LAMBDARANK;
    weighted_loss s = {0, 0};
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
static weighted_loss listnet_rank(cd_objective_part *p, const double *score, const size_t *m,
                                  size_t n) {
    weighted_loss s = {0, p->log_s[m[0]] < p->log_s[m[n - 1]]};
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
        const weighted_loss s = l == CD_RANK_LOSS_LISTNET ? listnet_rank(p, score, m, n)
                                                          : pairs_rank(p, l, score, m, n);
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
            const double gain = net_loss_gain(p->y[m[i]]);
            got += gain * p->discount[m[i]];
            best += gain * net_loss_discount(i);
        }
        all += (double)n * (1 - got / best);
    }
    return all / (double)p->n;
}

double cd_objective_figure(const cd_objective_part *p, const cd_objective_spec *s, double loss) {
    return s->kind == CD_OBJECTIVE_RANK && s->rank == CD_RANK_LOSS_LAMBDARANK ? missed(p) : loss;
}

/* ---- one sample ---- */
typedef struct {
    double value, slope; /* slope: with respect to the argument */
} point;

static point absolute(double x) { return (point){fabs(x), (x > 0) - (x < 0)}; }

static point huber(double x, double d) {
    if (fabs(x) <= d) return (point){0.5 * x * x, x};
    return (point){d * (fabs(x) - 0.5 * d), copysign(d, x)};
}

/* |e^r - 1|, straight beyond r = 2. */
static point ratio(double r) {
    const double end = 2, top = exp(end);
    if (r > end) return (point){top - 1 + top * (r - end), top};
    const point a = absolute(expm1(r));
    return (point){a.value, a.slope * exp(r)};
}

/* e = prediction - z. */
static point pinball(double e, double q) {
    if (e > 0) return (point){(1 - q) * e, 1 - q};
    return (point){-q * e, e < 0 ? -q : 0};
}

typedef struct {
    const cd_net_loss *p;
    double *term; /* sums so far */
    double share; /* w / W */
} sums;

/* Adds a term of one sample; the result is its part of the gradient. */
static double add(const sums *s, cd_net_loss_term t, point v) {
    s->term[t] += s->share * v.value;
    return s->p->weight[t] * s->share * v.slope;
}

static double z_terms(const sums *s, double e, double z) {
    const double *w = s->p->weight, f = fmax(fabs(z), CD_NET_LOSS_Z_FLOOR), rel = e / f;
    double g = 0;
    if (w[CD_NET_LOSS_mse] > 0) g += add(s, CD_NET_LOSS_mse, (point){e * e, 2 * e});
    if (w[CD_NET_LOSS_mape] > 0) g += add(s, CD_NET_LOSS_mape, absolute(rel)) / f;
    if (w[CD_NET_LOSS_mspe] > 0) g += add(s, CD_NET_LOSS_mspe, (point){rel * rel, 2 * rel}) / f;
    if (w[CD_NET_LOSS_mae] > 0) g += add(s, CD_NET_LOSS_mae, absolute(e));
    if (w[CD_NET_LOSS_huber] > 0) g += add(s, CD_NET_LOSS_huber, huber(e, 1));
    return g;
}

static bool has_log_terms(const cd_net_loss *p) {
    return p->weight[CD_NET_LOSS_mape_s] > 0 || p->weight[CD_NET_LOSS_mse_log] > 0 ||
           p->weight[CD_NET_LOSS_huber_log] > 0;
}

static double log_terms(const sums *s, double r, double slope) {
    const double *w = s->p->weight;
    double g = 0;
    if (w[CD_NET_LOSS_mape_s] > 0) g += add(s, CD_NET_LOSS_mape_s, ratio(r));
    if (w[CD_NET_LOSS_mse_log] > 0) g += add(s, CD_NET_LOSS_mse_log, (point){r * r, 2 * r});
    if (w[CD_NET_LOSS_huber_log] > 0) g += add(s, CD_NET_LOSS_huber_log, huber(r, 0.5));
    return g * slope;
}

/* v is the log variance. Outside of -10..10 it counts as the limit, and the wall leads it back. */
static void nll_term(const sums *s, double e, double v, double *g) {
    const double in = fmax(-10, fmin(v, 10)), wall = v - in, precision = exp(-in);
    s->term[CD_NET_LOSS_nll] += s->share * 0.5 * (in + e * e * precision + wall * wall);
    const double w = s->p->weight[CD_NET_LOSS_nll] * s->share;
    g[0] += w * e * precision;
    g[1] += w * (wall == 0 ? 0.5 * (1 - e * e * precision) : wall);
}

static void pinball_terms(const sums *s, double z, const float *out, double *g) {
    const size_t at = cd_net_loss_quantile_at(s->p);
    g[0] += add(s, CD_NET_LOSS_pinball, pinball((double)out[0] - z, 0.5));
    for (size_t k = 0; k < s->p->n_quantile; k++)
        g[at + k] +=
            add(s, CD_NET_LOSS_pinball, pinball((double)out[at + k] - z, s->p->quantile[k]));
}

static void sample_terms(const sums *s, const cd_net_loss_batch *b, size_t i, const float *out,
                         double *g) {
    const double e = (double)out[0] - b->z[i];
    g[0] += z_terms(s, e, b->z[i]);
    if (has_log_terms(s->p)) {
        double slope;
        const double log_s = cd_transform_log_s(b->transform, (double)out[0], &slope);
        g[0] += log_terms(s, log_s - b->log_s[i], slope);
    }
    if (s->p->weight[CD_NET_LOSS_nll] > 0) nll_term(s, e, (double)out[1], g);
    if (s->p->weight[CD_NET_LOSS_pinball] > 0) pinball_terms(s, b->z[i], out, g);
}

/* ---- a batch ---- */
/* The gradient is added up in double and rounded once at the end. */
double cd_net_loss_eval(const cd_net_loss *p, const cd_net_loss_batch *b,
                        const cd_net_loss_norm *norm, const float *out, float *grad, double *term,
                        cd_net_loss_scratch *s) {
    double own[CD_NET_LOSS_TERMS], loss = 0;
    const size_t width = cd_net_loss_width(p);
    sums sum = {p, term ? term : own, 0};
    memset(sum.term, 0, sizeof own);
    memset(s->grad, 0, b->n * width * sizeof *s->grad);
    for (size_t i = 0; i < b->n; i++) {
        sum.share = (b->weight ? (double)b->weight[i] : 1) / norm->weight;
        s->pred[i] = (double)out[i * width];
        sample_terms(&sum, b, i, out + i * width, s->grad + i * width);
    }
    if (cd_net_loss_ranks(p)) {
        cd_net_loss_by_group(b->group, b->n, s->order, s->place);
        net_loss_rank_terms(p, b, norm, width, sum.term, s);
    }
    for (int t = 0; t < CD_NET_LOSS_TERMS; t++)
        if (p->weight[t] > 0) loss += p->weight[t] * sum.term[t];
    for (size_t k = 0; grad && k < b->n * width; k++) grad[k] = (float)s->grad[k];
    return loss;
}

/* Counts over the whole batch, so that losses of slices add up to the loss of the batch. */
cd_net_loss_norm cd_net_loss_count(const cd_net_loss *p, const cd_net_loss_batch *b,
                                   cd_net_loss_scratch *s) {
    cd_net_loss_norm norm = {0};
    for (size_t i = 0; i < b->n; i++) norm.weight += b->weight ? (double)b->weight[i] : 1;
    if (!cd_net_loss_ranks(p)) return norm;
    cd_net_loss_by_group(b->group, b->n, s->order, s->place);
    for (size_t at = 0, n; at < b->n; at += n) {
        const size_t *m = s->order + at;
        double pairs = 0;
        n = cd_net_loss_group_size(b->group, s->order, at, b->n);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) pairs += b->z[m[i]] < b->z[m[j]];
        norm.pairs += pairs;
        norm.groups += pairs > 0;
    }
    return norm;
}

cdmpp_status cd_net_loss_scratch_new(const cd_net_loss *p, size_t max_n, cd_net_loss_scratch **out,
                                     cdmpp_err *err) {
    cd_net_loss_scratch *s = *out = cd_mem_zalloc(1, sizeof *s);
    if (s) {
        s->order = cd_arena_zalloc(&s->arena, max_n, sizeof *s->order);
        s->place = cd_arena_zalloc(&s->arena, max_n, sizeof *s->place);
        s->score = cd_arena_zalloc(&s->arena, max_n, 3 * sizeof *s->score);
        s->pred = cd_arena_zalloc(&s->arena, max_n, sizeof *s->pred);
        s->grad = cd_arena_zalloc(&s->arena, max_n, cd_net_loss_width(p) * sizeof *s->grad);
        if (!s->arena.oom) return CDMPP_OK;
    }
    cd_net_loss_scratch_free(s);
    *out = NULL;
    return CD_FAIL(err, ENOMEM, "loss of %zu samples", max_n);
}

void cd_net_loss_scratch_free(cd_net_loss_scratch *s) {
    if (!s) return;
    cd_arena_free(&s->arena);
    cd_mem_free(s);
}
