/* The loss of a batch as a weighted sum of terms, and its gradient with respect to the outputs of
 * the network. Terms are tables of value and slope, so a new one is one line in the table and one
 * here. */

#include <math.h>
#include <string.h>

#include "learner/loss/loss_internal.h"

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
        cd_net_loss_rank_terms(p, b, norm, width, sum.term, s);
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
