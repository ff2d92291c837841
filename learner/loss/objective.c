/* What trees are fitted to: gradients and Hessians for each row of the matrix, from a loss on the
 * program that the rows make up. XGBoost is called with these, so any loss of a sum of rows can be
 * trained. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/loss/loss.h"
#include "learner/loss/loss_internal.h"

/* Losses on r = ln(predicted/measured) for trees. Gradients are clipped and rounded, for the
 * reasons in the header. */

static double clip(double x, double limit) { return fmax(-limit, fmin(x, limit)); }

/* Quadratic up to d, then linear. */
static double huber(double r, double d) {
    return fabs(r) <= d ? 0.5 * r * r : d * (fabs(r) - 0.5 * d);
}

double cd_tree_loss_value(cd_tree_loss l, double r) {
    switch (l) {
    case CD_TREE_LOSS_SQUARED: return 0.5 * r * r;
    case CD_TREE_LOSS_HUBER: return huber(r, 0.5);
    case CD_TREE_LOSS_ABSOLUTE: return huber(r, 0.05) / 0.05;
    case CD_TREE_LOSS_MAPE: break;
    }
    return fabs(expm1(fmin(r, 50)));
}

double cd_tree_loss_gradient(cd_tree_loss l, double r, double spread) {
    switch (l) {
    case CD_TREE_LOSS_SQUARED: return clip(r, 31);
    case CD_TREE_LOSS_HUBER: return clip(r, fmin(fmax(0.5, spread), 31));
    case CD_TREE_LOSS_ABSOLUTE:
    case CD_TREE_LOSS_MAPE: break;
    }
    const double g = clip(r, fmin(fmax(0.05, 0.5 * spread), 7));
    return l == CD_TREE_LOSS_ABSOLUTE ? g : g * fmin(exp(fmin(r, 50)), 4);
}

float cd_tree_loss_round(double g) { return (float)(rint(g * 0x1p20) * 0x1p-20); }

static const char *const names[CD_N_OBJECTIVE] = {"log_latency", "pack_sum", "rank"};
const char *cd_objective_name(cd_objective_kind k) { return names[k]; }

double cd_loss_log_sum_exp(const double *score, size_t n) {
    if (n == 1) return score[0]; /* what the sums below give, too */
    double max = score[0], sum = 0;
    for (size_t i = 1; i < n; i++) max = fmax(max, score[i]);
    for (size_t i = 0; i < n; i++) sum += exp(score[i] - max);
    return max + log(sum);
}

double cd_objective_score(cd_objective_kind k, const double *v, size_t n) {
    double sum = 0;
    if (k != CD_OBJECTIVE_PACK_SUM) return cd_loss_log_sum_exp(v, n);
    for (size_t i = 0; i < n; i++) sum += v[i];
    return sum;
}

/* ---- the programs of a part ---- */
/* Ties by number, so that the order is one. */
static int by_task_and_latency(const void *a, const void *b) {
    const cd_objective_place *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->log_s != y->log_s) return x->log_s < y->log_s ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

static cdmpp_status sort(cd_objective_part *p, cdmpp_err *err) {
    cd_objective_place *v = cd_mem_zalloc(p->n + 1, sizeof *v);
    if (!v) return CD_FAIL(err, ENOMEM, "order of %zu programs", p->n);
    for (size_t i = 0; i < p->n; i++)
        v[i] = (cd_objective_place){.group = p->group[i], .log_s = p->log_s[i], .i = i};
    qsort(v, p->n, sizeof *v, by_task_and_latency);
    for (size_t i = 0; i < p->n; i++) p->order[i] = v[i].i;
    cd_mem_free(v);
    return CDMPP_OK;
}

/* Throughputs; both parts are in order of their tasks. */
static void normalise(cd_objective_part *p, const cd_objective_part *seen) {
    for (size_t at = 0, n, s = 0; at < p->n; at += n) {
        const size_t first = p->order[at];
        double fastest = p->log_s[first];
        n = cd_net_loss_group_size(p->group, p->order, at, p->n);
        while (seen && s < seen->n && seen->group[seen->order[s]] < p->group[first]) s++;
        if (seen && s < seen->n && seen->group[seen->order[s]] == p->group[first])
            fastest = fmin(fastest, seen->log_s[seen->order[s]]);
        for (size_t i = at; i < at + n; i++)
            p->y[p->order[i]] = exp(fastest - p->log_s[p->order[i]]);
    }
}

/* What lambdarank needs beside the rest. */
static bool places(cd_objective_part *p) {
    p->discount = CD_NEWN(&p->arena, double, p->n);
    p->place = CD_NEWN(&p->arena, cd_objective_place, p->n);
    return !p->arena.oom;
}

cdmpp_status cd_objective_begin(cd_objective_part *p, const cd_objective_spec *s,
                                const cd_objective_part *seen, cdmpp_err *err) {
    const size_t n = p->n;
    p->margin = CD_NEWN(&p->arena, double, p->start[p->n]);
    p->r = CD_NEWN(&p->arena, double, n);
    p->g = CD_NEWN(&p->arena, double, n);
    p->h = CD_NEWN(&p->arena, double, n);
    p->y = CD_NEWN(&p->arena, double, n);
    p->order = CD_NEWN(&p->arena, size_t, n);
    if (p->arena.oom) return CD_FAIL(err, ENOMEM, "objective of %zu programs", p->n);
    if (s->kind == CD_OBJECTIVE_LOG_LATENCY) return CDMPP_OK;
    CD_TRY(sort(p, err));
    const cd_rank_loss order = s->kind == CD_OBJECTIVE_RANK ? s->rank : CD_RANK_LOSS_PAIRWISE;
    if (order == CD_RANK_LOSS_LAMBDARANK && !places(p))
        return CD_FAIL(err, ENOMEM, "places of %zu programs", n);
    if (s->kind == CD_OBJECTIVE_PACK_SUM || order == CD_RANK_LOSS_LAMBDARANK) normalise(p, seen);
    if (isnan(cd_objective_order(p, order, p->r)))
        return CD_FAIL(err, ERANGE,
                       "expected tasks with two different latencies in the %s part, found none",
                       seen ? "validation" : "train");
    return CDMPP_OK;
}

void cd_objective_end(cd_objective_part *p) { cd_arena_free(&p->arena); }

/* ---- losses ---- */
/* Residuals and the mean loss from the scores. Seconds of rows add up, so the score of a program is
 * ln sum exp; r is ln(predicted/measured). */
static double log_latency(cd_objective_part *p, cd_tree_loss loss, const float *score) {
    double sum = 0, all = 0;
    for (size_t k = 0; k < p->start[p->n]; k++) p->margin[k] = p->offset[k] + (double)score[k];
    for (size_t i = 0; i < p->n; i++) {
        const double w = p->weight ? p->weight[i] : 1;
        p->r[i] = cd_loss_log_sum_exp(p->margin + p->start[i], p->start[i + 1] - p->start[i]) -
                  p->log_s[i];
        sum += w * cd_tree_loss_value(loss, p->r[i]);
        all += w;
    }
    return sum / all;
}

/* The Hessian is at least 1, else eta times the number of rows: a step moves all rows of a program
 * at once and must not overshoot. */
static double pack_sum(cd_objective_part *p, double eta, const float *score) {
    double sum = 0;
    for (size_t k = 0; k < p->start[p->n]; k++) p->margin[k] = (double)score[k];
    for (size_t i = 0; i < p->n; i++) {
        const size_t n = p->start[i + 1] - p->start[i];
        p->r[i] = cd_objective_score(CD_OBJECTIVE_PACK_SUM, p->margin + p->start[i], n) - p->y[i];
        p->g[i] = p->y[i] * fmax(-31, fmin(p->r[i], 31));
        p->h[i] = p->y[i] * fmax(1, eta * (double)n);
        sum += 0.5 * p->y[i] * p->r[i] * p->r[i];
    }
    return sum / (double)p->n;
}

static double rank(cd_objective_part *p, cd_rank_loss l, const float *score) {
    for (size_t k = 0; k < p->start[p->n]; k++) p->margin[k] = p->offset[k] + (double)score[k];
    for (size_t i = 0; i < p->n; i++)
        p->r[i] = cd_loss_log_sum_exp(p->margin + p->start[i], p->start[i + 1] - p->start[i]);
    const double loss = cd_objective_order(p, l, p->r);
    for (size_t i = 0; i < p->n; i++) p->r[i] -= p->log_s[i];
    return loss;
}

double cd_objective_loss(cd_objective_part *p, const cd_objective_spec *s, const float *score) {
    if (s->kind == CD_OBJECTIVE_RANK) return rank(p, s->rank, score);
    return s->kind == CD_OBJECTIVE_PACK_SUM ? pack_sum(p, s->eta, score)
                                            : log_latency(p, s->loss, score);
}

/* ---- gradients ---- */
static double spread(const cd_objective_part *p) {
    double sq = 0;
    for (size_t i = 0; i < p->n; i++) sq += p->r[i] * p->r[i];
    return sqrt(sq / (double)p->n);
}

/* d score / d margin_k is the share of row k in the sum of exponentials; 1 where scores are plain
 * sums. */
void cd_objective_gradient(cd_objective_part *p, const cd_objective_spec *s, float *grad,
                           float *hess) {
    const bool log = s->kind == CD_OBJECTIVE_LOG_LATENCY;
    const double width = log ? spread(p) : 0;
    for (size_t i = 0; i < p->n; i++) {
        const double w = log && p->weight ? p->weight[i] : 1;
        const double g = log ? w * cd_tree_loss_gradient(s->loss, p->r[i], width) : p->g[i],
                     h = log ? w : p->h[i];
        for (size_t k = p->start[i]; k < p->start[i + 1]; k++) {
            const double d =
                s->kind == CD_OBJECTIVE_PACK_SUM ? 0 : p->margin[k] - (p->r[i] + p->log_s[i]);
            const double share = d == 0 ? 1 : exp(d); /* the only row of its program: mostly 0 */
            grad[k] = cd_tree_loss_round(g * share);
            hess[k] = cd_tree_loss_round(h * share);
        }
    }
}

/* ---- seconds ---- */
static double bent(double p) { return -asinh(p / (2 * CD_OBJECTIVE_KNEE)); }

double cd_objective_answer(cd_objective_kind k, double p, double level, double scale,
                           double shift) {
    if (k == CD_OBJECTIVE_RANK) return shift + scale * p;
    return k == CD_OBJECTIVE_PACK_SUM ? level + shift + scale * bent(p) : p;
}

/* Least squares in two passes, means first. A slope of 0 or less would turn the order around, so it
 * is kept above. */
void cd_objective_map(const cd_objective_part *p, cd_objective_kind k, const double *level,
                      double *scale, double *shift) {
    double mx = 0, my = 0, xx = 0, xy = 0;
    const double n = (double)p->n;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < p->n; i++) {
            const double x =
                k == CD_OBJECTIVE_RANK ? p->r[i] + p->log_s[i] : bent(p->r[i] + p->y[i]);
            const double y = k == CD_OBJECTIVE_RANK ? p->log_s[i] : p->log_s[i] - level[i];
            if (!pass) mx += x / n, my += y / n;
            else xx += (x - mx) * (x - mx), xy += (x - mx) * (y - my);
        }
    *scale = xx > 0 && xy > 0 ? fmax(xy / xx, 1e-3) : 1;
    *shift = my - *scale * mx;
}
