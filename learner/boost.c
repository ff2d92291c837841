#include "learner/boost.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "features/cols.h"

/* One matrix with everything that belongs to its rows. */
typedef struct {
    const cd_boost_set *set;
    cd_gbt_data *data;
    size_t height;
    size_t *start;           /* (n+1) matrix rows of program i */
    double *offset, *margin; /* (height) */
    float *score, *grad, *hess;
    double *r;               /* (n) */
} side;

typedef struct {
    const cd_view *v;
    const cd_config *c;
    cd_form form;
    const cd_boost_run *run;
    side train, valid;
    cd_member *out;
} booster;

static void side_free(side *s) {
    cd_gbt_data_free(s->data);
    cd_free(s->start);
    cd_free(s->offset);
    cd_free(s->margin);
    cd_free(s->score);
    cd_free(s->grad);
    cd_free(s->hess);
    cd_free(s->r);
}

static size_t n_row_of(const cd_view *v, size_t i) { return (size_t)(v->row_ptr[i + 1] - v->row_ptr[i]); }

static cdmpp_status side_memory(side *s, const booster *b, cdmpp_err *err) {
    const size_t n = s->set->n;
    for (size_t i = 0; i < n; i++) s->height += cd_input_height(b->form, n_row_of(b->v, s->set->program[i]));
    const size_t h = s->height;
    s->start = cd_calloc(n + 1, sizeof *s->start);
    s->offset = cd_calloc(h, sizeof *s->offset);
    s->margin = cd_calloc(h, sizeof *s->margin);
    s->score = cd_calloc(h, sizeof *s->score);
    s->grad = cd_calloc(h, sizeof *s->grad);
    s->hess = cd_calloc(h, sizeof *s->hess);
    s->r = cd_calloc(n, sizeof *s->r);
    if (s->start && s->offset && s->margin && s->score && s->grad && s->hess && s->r) return CDMPP_OK;
    return CD_FAIL(err, ENOMEM, "%zu matrix rows", h);
}

/* Matrix and trip counts of a part; the float matrix dies as soon as XGBoost has it. */
static cdmpp_status side_new(side *s, const cd_boost_set *set, const booster *b, cdmpp_err *err) {
    const size_t width = cd_input_width(b->form);
    s->set = set;
    CD_TRY(side_memory(s, b, err));
    float *x = cd_calloc(s->height, width * sizeof *x);
    if (!x) return CD_FAIL(err, ENOMEM, "matrix of %zu x %zu values", s->height, width);
    for (size_t i = 0; i < set->n; i++) {
        const size_t p = set->program[i], n_row = n_row_of(b->v, p), h = cd_input_height(b->form, n_row), at = s->start[i];
        const float *row = b->v->row + b->v->row_ptr[p] * CD_N_COL;
        cd_input_fill(b->form, row, n_row, b->v->device[p], x + at * width);
        if (b->form == CD_FORM_ROWS)
            for (size_t k = 0; k < h; k++) s->offset[at + k] = cd_input_log_trips(row + k * CD_N_COL);
        s->start[i + 1] = at + h;
    }
    const cdmpp_status st = cd_gbt_data_new(x, s->height, width, b->run->nthread, &s->data, err);
    cd_free(x);
    return st;
}

/* ---- slope and bias: log-latency from trip counts alone ---- */
static double fit_bias(side *s, double slope, double *bias) {
    double sum = 0, sq = 0;
    for (size_t k = 0; k < s->height; k++) s->margin[k] = slope * s->offset[k];
    for (size_t i = 0; i < s->set->n; i++)
        sum += s->r[i] = s->set->log_s[i] - cd_log_sum_exp(s->margin + s->start[i], s->start[i + 1] - s->start[i]);
    *bias = sum / (double)s->set->n;
    for (size_t i = 0; i < s->set->n; i++) sq += (s->r[i] - *bias) * (s->r[i] - *bias);
    return sq;
}

static void fit_offset(side *s, cd_member *p) {
    double best = INFINITY;
    const int steps = p->kind == CD_MEMBER_ROWS ? 12 : 0;
    for (int k = 0; k <= steps; k++) {
        double bias;
        const double slope = 0.1 * k, sq = fit_bias(s, slope, &bias);
        if (sq >= best) continue;
        best = sq;
        p->slope = slope;
        p->bias = bias;
    }
    for (size_t k = 0; k < s->height; k++) s->offset[k] = p->bias + p->slope * s->offset[k];
}

/* ---- one round ---- */
/* Margins, residuals and the mean loss from the scores. */
static double residuals(side *s, cd_loss loss) {
    double sum = 0;
    for (size_t k = 0; k < s->height; k++) s->margin[k] = s->offset[k] + (double)s->score[k];
    for (size_t i = 0; i < s->set->n; i++) {
        const size_t at = s->start[i];
        s->r[i] = cd_log_sum_exp(s->margin + at, s->start[i + 1] - at) - s->set->log_s[i];
        sum += cd_loss_value(loss, s->r[i]);
    }
    return sum / (double)s->set->n;
}

static void gradients(side *s, cd_loss loss) {
    double sq = 0;
    for (size_t i = 0; i < s->set->n; i++) sq += s->r[i] * s->r[i];
    const double spread = sqrt(sq / (double)s->set->n);
    for (size_t i = 0; i < s->set->n; i++) {
        const double g = cd_loss_gradient(loss, s->r[i], spread), log_p = s->r[i] + s->set->log_s[i];
        for (size_t k = s->start[i]; k < s->start[i + 1]; k++) {
            const double share = exp(s->margin[k] - log_p);
            s->grad[k] = cd_loss_round(g * share);
            s->hess[k] = cd_loss_round(share);
        }
    }
}

static cdmpp_status rounds(booster *b, cdmpp_err *err) {
    const cd_loss loss = (cd_loss)b->c->train_loss;
    double best = INFINITY, train = residuals(&b->train, loss);
    int best_round = 0;
    for (int i = 1; i <= b->c->train_rounds; i++) {
        gradients(&b->train, loss);
        CD_TRY(cd_gbt_boost(b->out->gbt, b->train.data, b->train.grad, b->train.hess, err));
        CD_TRY(cd_gbt_scores(b->out->gbt, b->train.data, b->train.score, err));
        CD_TRY(cd_gbt_scores(b->out->gbt, b->valid.data, b->valid.score, err));
        train = residuals(&b->train, loss);
        const double valid = residuals(&b->valid, loss);
        if (!isfinite(train) || !isfinite(valid)) return CD_FAIL(err, ENUMERIC, "round %d: the loss is not finite", i);
        if (valid < best) {
            best = valid;
            best_round = i;
        }
        const bool end = i == b->c->train_rounds || (b->c->train_early_stop && i - best_round >= b->c->train_early_stop);
        const cd_tick t = {.member = b->run->name, .unit = "round", .step = (uint64_t)i, .n_step = (uint64_t)b->c->train_rounds,
                           .n_sample = b->train.set->n, .train = train, .valid = valid, .end = end};
        if (b->run->tick && !b->run->tick(b->run->ctx, &t)) return CD_FAIL(err, EINTERRUPTED, "round %d", i);
        if (end) break;
    }
    return cd_gbt_cut(b->out->gbt, best_round, err);
}

static cdmpp_status new_gbt(booster *b, cdmpp_err *err) {
    const cd_config *c = b->c;
    char v[9][32];
    const char *name[9] = {"eta", "min_child_weight", "lambda", "subsample", "colsample_bytree", "max_depth", "max_bin", "seed", "nthread"};
    const double real[5] = {c->train_eta, c->train_min_child_weight, c->train_lambda, c->train_subsample, c->train_colsample};
    const int64_t integer[4] = {c->train_max_depth, c->train_max_bin, c->train_seed, b->run->nthread};
    cd_gbt_param p[10] = {{"tree_method", "hist"}};
    for (int i = 0; i < 9; i++) {
        if (i < 5) snprintf(v[i], sizeof v[i], "%.9g", real[i]);
        else snprintf(v[i], sizeof v[i], "%lld", (long long)integer[i - 5]);
        p[i + 1] = (cd_gbt_param){name[i], v[i]};
    }
    return cd_gbt_new(b->train.data, b->valid.data, p, 10, &b->out->gbt, err);
}

cdmpp_status cd_boost(const cd_view *v, const cd_boost_set *train, const cd_boost_set *valid, const cd_config *c,
                      const cd_boost_run *run, cd_member *m, cdmpp_err *err) {
    booster b = {.v = v, .c = c, .form = cd_member_form(m->kind), .run = run, .out = m};
    cdmpp_status st = side_new(&b.train, train, &b, err);
    if (!st) st = side_new(&b.valid, valid, &b, err);
    if (!st) {
        fit_offset(&b.train, m);
        for (size_t k = 0; k < b.valid.height; k++) b.valid.offset[k] = m->bias + m->slope * b.valid.offset[k];
        st = new_gbt(&b, err);
    }
    if (!st) st = rounds(&b, err);
    side_free(&b.train);
    side_free(&b.valid);
    return st;
}
