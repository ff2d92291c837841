/* Trains a model of operators of language models: for each family trees of three sets, and of their
 * spreads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learner/train/train_internal.h"

/* How much of what trees learned holds for a device that no training saw, and by how much answers
 * for it are lowered: where times are off by a factor on either side, those that are too long count
 * more. */

enum { STEPS = 80, SHARES = 16, MAX_FOLD = 256 };
#define STEP       0.01
#define SHARE_STEP 0.05

typedef struct {
    const double *target, *residual;
    const uint8_t *fold;
    size_t n;
} held_out_shift;

/* Mean over folds of the mean relative error of such answers. */
static double relative_error(const held_out_shift *h, cd_llm_op_care c) {
    double sum[MAX_FOLD] = {0}, count[MAX_FOLD] = {0}, all = 0, folds = 0;
    for (size_t i = 0; i < h->n; i++) {
        sum[h->fold[i]] += fmin(
            10, fabs(expm1(c.share * (h->target[i] - h->residual[i]) + c.shift - h->target[i])));
        count[h->fold[i]]++;
    }
    for (size_t k = 0; k < MAX_FOLD; k++)
        if (count[k] > 0) all += sum[k] / count[k], folds++;
    return all / fmax(folds, 1);
}

/* The error is convex in the shift but for its cap, so the first step that does not help is the
 * last. */
static double least(const held_out_shift *h, double share, double *shift) {
    double error = relative_error(h, (cd_llm_op_care){share, 0});
    *shift = 0;
    for (int k = 1; k <= STEPS; k++) {
        const double next = relative_error(h, (cd_llm_op_care){share, -STEP * k});
        if (!(next < error)) break;
        error = next;
        *shift = -STEP * k;
    }
    return error;
}

cd_llm_op_care cd_llm_op_shift(const double *target, const double *residual, const uint8_t *fold,
                               size_t n) {
    const held_out_shift h = {target, residual, fold, n};
    cd_llm_op_care best = {1, 0};
    double error = least(&h, 1, &best.shift);
    for (int k = 1; k <= SHARES; k++) {
        cd_llm_op_care c = {1 - SHARE_STEP * k, 0};
        const double next = least(&h, c.share, &c.shift);
        if (!(next < error)) continue;
        error = next;
        best = c;
    }
    return (cd_llm_op_care){(1 + best.share) / 2, best.shift / 2};
}

enum { FOLDS = 3, MIN_DEVICES = 3, /* for intervals */ MIN_ROWS = 60, SPREAD_ROUNDS = 60 };
#define SPREAD_FLOOR 1e-3 /* residuals below are noise of the clock */

typedef struct {
    const cd_config *c;
    const cd_llm_op_table *t;
    unsigned sets;
    cd_llm_op_model *m;
    const uint8_t *use;     /* (t->n) */
    const double *log_base; /* (t->n) ln of the estimate; NaN: the device cannot have run it */
    /* (t->n) ln of what set seen expects, of rows that it was trained on by trees without them; a
     * family's when its set is trained */
    double *expect;
    cd_progress_event_fn *tick;
    void *ctx;
    uint64_t n_member;
} training;

/* Rows of one part. */
typedef struct {
    cd_arena arena;
    const training *t;
    char name[48];
    cd_llm_op_set set;
    size_t n, width, n_fold;
    float *x, *score, *grad, *hess; /* (n, width), (n) ... */
    double *target, *residual;      /* (n) */
    uint32_t *row;                  /* (n) of the table */
    uint8_t *fold;                  /* (n) */
    float *some;                    /* (n, width) scratch */
    double *some_target;
    uint32_t *some_row;
} matrix;

/* ---- rows ---- */
/* A part of the rows that ask neighbours count as of curves, or of a grid with holes, that nobody
 * measured. */
static void hide(uint64_t number, cd_llm_op_near *q) {
    const double u = cd_rng_unit(number, 1);
    if (u < 0.6) return;
    q->hide_sizes = u < 0.85 ? 1u : (uint32_t)cd_rng_at(number, 2) & 0x7f;
    q->hide_alike = u < 0.85 || (cd_rng_at(number, 3) & 1);
}

static double expected(const void *ctx, size_t row) { return ((const double *)ctx)[row]; }

static cdmpp_status fill_row(const training *t, cd_llm_op_set s, size_t i, float *x, double *target,
                             bool *ok, cdmpp_err *err) {
    const cd_llm_op_record *r = &t->t->r[i];
    const cd_device *d = t->t->known[t->t->device[i]];
    const uint64_t number = cd_op_forest_number(t->c, t->t, i);
    cd_llm_op_codes c =
        cd_llm_op_model_codes(t->m, t->t->names.text[r->stack], t->t->names.text[r->kernel]);
    cd_llm_op_estimate e;
    /* before the names go: what a call waits for is known, so trees need not tell it */
    cd_llm_op_model_call(t->m, r, &c);
    if (cd_rng_unit(number, 4) < 0.2) c.kernel = NAN; /* another device has other kernels */
    if (cd_rng_unit(number, 5) < 0.1) c.stack = NAN;
    CD_TRY(cd_llm_op_feature(r, d, &c, NULL, x, &e, err));
    double said = log(e.base_s);
    *ok = true;
    if (s == CD_LLM_OP_SET_NEAR) {
        uint64_t curve[CD_LLM_OP_MAX_SIZE + 1];
        cd_llm_op_beside near;
        cd_llm_op_near q = {.t = t->t, .expect = expected, .ctx = t->expect, .curve = curve};
        cd_llm_op_table_curves(t->t, r, t->t->device[i], curve);
        hide(number, &q);
        cd_llm_op_feature_beside(&q, r, t->t->device[i], &near);
        *ok = cd_llm_op_feature_near(&q, r, t->t->device[i], &near, t->expect[i], x, &said) !=
              CD_LLM_OP_NO_SIDE;
    }
    *target = log(r->latency_s) - said;
    return CDMPP_OK;
}

static bool in_part(const training *t, size_t i, cd_llm_op_family f) {
    return t->use[i] && !isnan(t->log_base[i]) &&
           cd_llm_op_family_of((cd_llm_op_kind)t->t->r[i].kind) == f;
}

static cdmpp_status take(matrix *m, size_t n, cdmpp_err *err) {
    m->x = CD_NEWN(&m->arena, float, n * m->width);
    m->some = CD_NEWN(&m->arena, float, n * m->width);
    float **const f[] = {&m->score, &m->grad, &m->hess};
    for (size_t k = 0; k < 3; k++) *f[k] = CD_NEWN(&m->arena, float, n);
    double **const d[] = {&m->target, &m->residual, &m->some_target};
    for (size_t k = 0; k < 3; k++) *d[k] = CD_NEWN(&m->arena, double, n);
    m->fold = CD_NEWN(&m->arena, uint8_t, n);
    m->some_row = CD_NEWN(&m->arena, uint32_t, n);
    m->row = CD_NEWN(&m->arena, uint32_t, n);
    return m->arena.oom ? CD_FAIL(err, ENOMEM, "matrix of %zu rows", n) : CDMPP_OK;
}

static cdmpp_status fill(matrix *m, cd_llm_op_family f, cd_llm_op_set s, cdmpp_err *err) {
    const training *t = m->t;
    float x[CD_LLM_OP_N_FEATURE];
    size_t most = 0;
    bool device[256] = {false};
    m->width = cd_llm_op_feature_width(s);
    for (size_t i = 0; i < t->t->n; i++) most += in_part(t, i, f);
    if (!most) return CDMPP_OK;
    CD_TRY(take(m, most, err));
    for (size_t i = 0; i < t->t->n; i++) {
        bool ok;
        if (!in_part(t, i, f)) continue;
        CD_TRY(fill_row(t, s, i, x, &m->target[m->n], &ok, err));
        if (!ok) continue;
        memcpy(m->x + m->n * m->width, x, m->width * sizeof *x);
        m->row[m->n] = (uint32_t)i;
        m->fold[m->n] =
            (uint8_t)(s == CD_LLM_OP_SET_UNSEEN ? t->t->device[i] & 0xff
                                                : cd_op_forest_site(&t->t->r[i]) % FOLDS);
        device[m->fold[m->n++]] = true;
    }
    for (size_t k = 0; k < 256; k++) m->n_fold += device[k];
    return CDMPP_OK;
}

/* ---- trees ---- */
static cd_op_forest forest(matrix *m, const double *target) {
    return (cd_op_forest){.c = m->t->c,
                          .name = m->name,
                          .x = m->x,
                          .target = target,
                          .n = m->n,
                          .width = m->width,
                          .n_member = m->t->n_member,
                          .score = m->score,
                          .grad = m->grad,
                          .hess = m->hess,
                          .ctx = m->t->ctx};
}

/* Trees for a device that they never saw are few and flat: what they learn in detail is of the
 * devices that they saw. Chosen by three of the four devices for the fourth (for A100, H100 and
 * L40S), on rows to train on: depth 4, 5, 6, as many columns, 60 or 100 rows in a leaf. */
static cd_op_forest answer_forest(matrix *m) {
    const cd_config *c = m->t->c;
    const bool flat = m->set == CD_LLM_OP_SET_UNSEEN;
    cd_op_forest f = forest(m, m->target);
    f.rounds = (uint64_t)(flat ? (c->operators_rounds + 1) / 2 : c->operators_rounds);
    f.depth = flat ? 5 : (int)c->operators_max_depth;
    f.child = flat ? fmax(5, fmin(60, (double)m->n / 100)) : c->operators_min_child_weight;
    f.columns = flat ? 0.3 : c->operators_colsample;
    return f;
}

static cd_op_forest spread_forest(matrix *m) {
    cd_op_forest f = forest(m, m->target);
    f.rounds = SPREAD_ROUNDS, f.depth = 4, f.child = 40, f.columns = 0.6;
    return f;
}

/* ---- what a training did not see ---- */
/* Residuals of the fold's rows, by trees of the others; they stand in `residual`. */
static cdmpp_status one_fold(matrix *m, unsigned fold, cd_op_forest (*of)(matrix *),
                             cdmpp_err *err) {
    cd_xgb *g = NULL;
    double bias;
    size_t n = 0, k = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (m->fold[i] == fold) continue;
        memcpy(m->some + n * m->width, m->x + i * m->width, m->width * sizeof *m->x);
        m->some_target[n++] = m->target[i];
    }
    if (!n || n == m->n) return CDMPP_OK;
    cd_op_forest j = of(m);
    j.x = m->some, j.target = m->some_target, j.n = n;
    CD_TRY(cd_op_forest_grow(&j, &bias, &g, err));
    for (size_t i = 0; i < m->n; i++)
        if (m->fold[i] == fold) {
            memcpy(m->some + k * m->width, m->x + i * m->width, m->width * sizeof *m->x);
            m->some_row[k++] = (uint32_t)i;
        }
    const cdmpp_status st = cd_xgb_predict(g, m->some, k, m->width, m->score, err);
    for (size_t i = 0; !st && i < k; i++)
        m->residual[m->some_row[i]] = m->target[m->some_row[i]] - bias - (double)m->score[i];
    cd_xgb_free(g);
    return st;
}

/* Quantiles of |residual| / spread. */
static void quantiles(const matrix *m, double *scratch, double out[CD_LLM_OP_LEVELS]) {
    memcpy(scratch, m->residual, m->n * sizeof *scratch);
    cd_sort_doubles(scratch, m->n);
    for (size_t l = 0; l < CD_LLM_OP_LEVELS; l++) {
        const size_t at = (size_t)ceil(cd_llm_op_level[l] * (double)(m->n + 1));
        out[l] = scratch[at > m->n ? m->n - 1 : at - 1];
    }
}

/* Residuals of all rows, each by trees that saw nothing of its fold. False in *any: there are too
 * few folds. */
static cdmpp_status held_out(matrix *m, cd_llm_op_set s, bool *any, cdmpp_err *err) {
    const unsigned folds = s == CD_LLM_OP_SET_UNSEEN ? 256 : FOLDS;
    *any = m->n >= MIN_ROWS && m->n_fold >= 2;
    for (unsigned k = 0; *any && k < folds; k++) CD_TRY(one_fold(m, k, answer_forest, err));
    return CDMPP_OK;
}

/* Of what trees learn of a device that they do not see, a share holds: the target is made that much
 * smaller before they learn it from all devices. */
static double shrink(matrix *m) {
    const cd_llm_op_care c = cd_llm_op_shift(m->target, m->residual, m->fold, m->n);
    for (size_t i = 0; i < m->n; i++) {
        m->residual[i] = m->target[i] - c.share * (m->target[i] - m->residual[i]) - c.shift;
        m->target[i] *= c.share;
    }
    return c.shift;
}

/* Trees of the spread, and how many times it each level takes. Of a device that nobody saw the
 * spread is not known either, so there the times come from trees without the device of the row. Few
 * devices say little of a further one: the variance of one more is 1 + 1 / n that of n. */
static cdmpp_status spread(matrix *m, cd_llm_op_set s, cd_llm_op_part *p, cdmpp_err *err) {
    const bool unseen = s == CD_LLM_OP_SET_UNSEEN;
    for (size_t i = 0; i < m->n; i++) m->target[i] = log(fabs(m->residual[i]) + SPREAD_FLOOR);
    cd_op_forest j = spread_forest(m);
    CD_TRY(cd_op_forest_grow(&j, &p->spread_bias, &p->spread, err));
    CD_TRY(cd_xgb_predict(p->spread, m->x, m->n, m->width, m->score, err));
    for (size_t i = 0; i < m->n; i++)
        m->residual[i] = m->target[i] - p->spread_bias - (double)m->score[i];
    for (unsigned k = 0; unseen && k < 256; k++) CD_TRY(one_fold(m, k, spread_forest, err));
    for (size_t i = 0; i < m->n; i++) m->residual[i] = exp(m->residual[i]);
    quantiles(m, m->some_target, p->times);
    for (size_t l = 0; unseen && l < CD_LLM_OP_LEVELS; l++)
        p->times[l] *= sqrt(1 + 1 / (double)m->n_fold);
    return CDMPP_OK;
}

/* What set seen expects of all rows of the family. */
static cdmpp_status expect_all(const matrix *m, cd_llm_op_family f, bool any, cdmpp_err *err) {
    const training *t = m->t;
    const cd_llm_op_part *p = &t->m->part[f][CD_LLM_OP_SET_SEEN];
    for (size_t i = 0; i < t->t->n; i++) {
        const cd_llm_op_record *r = &t->t->r[i];
        cd_llm_op_codes c =
            cd_llm_op_model_codes(t->m, t->t->names.text[r->stack], t->t->names.text[r->kernel]);
        cd_llm_op_model_call(t->m, r, &c);
        float x[CD_LLM_OP_N_FEATURE], y;
        cd_llm_op_estimate e;
        if (cd_llm_op_family_of((cd_llm_op_kind)r->kind) != f || isnan(t->log_base[i])) continue;
        CD_TRY(cd_llm_op_feature(r, t->t->known[t->t->device[i]], &c, NULL, x, &e, err));
        CD_TRY(cd_xgb_predict(p->gbt, x, 1, m->width, &y, err));
        t->expect[i] = t->log_base[i] + p->bias + (double)y;
    }
    for (size_t i = 0; any && i < m->n; i++)
        t->expect[m->row[i]] = log(t->t->r[m->row[i]].latency_s) - m->residual[i];
    return CDMPP_OK;
}

static cdmpp_status answers(matrix *m, cd_llm_op_part *p, double shift, cdmpp_err *err) {
    cd_op_forest j = answer_forest(m);
    j.tick = m->t->tick;
    p->n_row = m->n;
    CD_TRY(cd_op_forest_grow(&j, &p->bias, &p->gbt, err));
    p->bias += shift;
    return CDMPP_OK;
}

static cdmpp_status train_set(const training *t, cd_llm_op_family f, cd_llm_op_set s,
                              cdmpp_err *err) {
    cd_llm_op_part *p = &t->m->part[f][s];
    const cd_str set = cd_enum_names_at(CD_LLM_OP_SET_NAMES, (int)s);
    const bool intervals = t->c->operators_calibration_rows > 0, seen = s == CD_LLM_OP_SET_SEEN;
    matrix m = {.t = t, .set = s};
    bool any = false;
    if (!(t->sets >> (unsigned)s & 1)) return CDMPP_OK;
    snprintf(m.name, sizeof m.name, "%s %.*s", cd_llm_op_family_name(f), (int)set.n, set.p);
    cdmpp_status st = fill(&m, f, s, err);
    if (!st && m.n && (intervals || seen)) st = held_out(&m, s, &any, err);
    const double shift = !st && any && s == CD_LLM_OP_SET_UNSEEN ? shrink(&m) : 0;
    if (!st && m.n) st = answers(&m, p, shift, err);
    if (!st && m.n && seen) st = expect_all(&m, f, any, err);
    if (!st && any && intervals && (s != CD_LLM_OP_SET_UNSEEN || m.n_fold >= MIN_DEVICES))
        st = spread(&m, s, p, err);
    cd_arena_free(&m.arena);
    return st;
}

/* Part `beg`: one family's set unseen, what is new to it, or its sets seen and near, of which the
 * second needs the first. */
enum { PARTS = 3 };
static cdmpp_status train_part(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const training *t = ctx;
    const cd_llm_op_family f = (cd_llm_op_family)(beg / PARTS);
    const cd_llm_op_novel_rows rows = {t->c, t->t, t->m, t->use, t->log_base};
    (void)end, (void)w;
    if (beg % PARTS == 1) return train_set(t, f, CD_LLM_OP_SET_UNSEEN, err);
    if (beg % PARTS == 2)
        return t->c->operators_calibration_rows > 0
                   ? cd_llm_op_novelties(&rows, f, t->m->novel[f], err)
                   : CDMPP_OK;
    CD_TRY(train_set(t, f, CD_LLM_OP_SET_SEEN, err));
    return train_set(t, f, CD_LLM_OP_SET_NEAR, err);
}

/* ---- all ---- */
static cdmpp_status name(cd_dict *d, const char *s, cdmpp_err *err) {
    uint32_t k;
    return s[0] ? cd_dict_add(d, (cd_str){s, strlen(s)}, &k, err) : CDMPP_OK;
}

/* Which of the names each family has. */
static cdmpp_status mark_names(const training *t, const double *log_base, cdmpp_err *err) {
    cd_llm_op_model *m = t->m;
    uint32_t k;
    for (int f = 0; f < CD_LLM_OP_N_FAMILY; f++) {
        m->has_stack[f] = CD_NEWN(&m->arena, bool, m->stacks.n + 1);
        m->has_kernel[f] = CD_NEWN(&m->arena, bool, m->kernels.n + 1);
        if (!m->has_stack[f] || !m->has_kernel[f])
            return CD_FAIL(err, ENOMEM, "%zu names", m->stacks.n + m->kernels.n);
    }
    for (size_t i = 0; i < t->t->n; i++) {
        const cd_llm_op_record *r = &t->t->r[i];
        const char *stack = t->t->names.text[r->stack], *kernel = t->t->names.text[r->kernel];
        const cd_llm_op_family f = cd_llm_op_family_of((cd_llm_op_kind)r->kind);
        if (isnan(log_base[i])) continue;
        if (stack[0] && cd_dict_find(&m->stacks, (cd_str){stack, strlen(stack)}, &k))
            m->has_stack[f][k] = true;
        if (kernel[0] && cd_dict_find(&m->kernels, (cd_str){kernel, strlen(kernel)}, &k))
            m->has_kernel[f][k] = true;
    }
    return CDMPP_OK;
}

/* Names, devices and ranges of all rows, not only of those drawn: they say what the table knows. */
static cdmpp_status describe(training *t, const uint8_t *use, const double *log_base,
                             cd_llm_op_train_result *out, cdmpp_err *err) {
    cd_llm_op_model *m = t->m;
    m->device = CD_NEWN(&m->arena, cd_llm_op_model_device, t->t->n_known + 1);
    if (!m->device) return CD_FAIL(err, ENOMEM, "%zu devices", t->t->n_known);
    for (; m->n_device < t->t->n_known; m->n_device++) {
        const char *s = t->t->known[m->n_device]->name;
        m->device[m->n_device].name = cd_str_dup(&m->arena, (cd_str){s, strlen(s)});
        m->device[m->n_device].warp = t->t->known[m->n_device]->warp;
        m->device[m->n_device].about = *t->t->known[m->n_device];
        if (!(m->device[m->n_device].about.name = m->device[m->n_device].name))
            return CD_FAIL(err, ENOMEM, "device name");
    }
    for (size_t i = 0; i < t->t->n; i++) {
        const cd_llm_op_record *r = &t->t->r[i];
        cd_llm_op_range *g = &m->range[r->kind];
        out->n_row += use[i];
        out->n_refused += use[i] && isnan(log_base[i]);
        if (isnan(log_base[i])) continue;
        const cd_llm_op_family f = cd_llm_op_family_of((cd_llm_op_kind)r->kind);
        m->device[t->t->device[i]].family[f] = true;
        m->device[t->t->device[i]].types[f] |= 1u << r->type;
        CD_TRY(name(&m->stacks, t->t->names.text[r->stack], err));
        CD_TRY(name(&m->kernels, t->t->names.text[r->kernel], err));
        for (size_t k = 0; k < cd_llm_op_n_size((cd_llm_op_kind)r->kind); k++) {
            g->low[k] = g->any ? fmin(g->low[k], r->size[k]) : r->size[k];
            g->high[k] = g->any ? fmax(g->high[k], r->size[k]) : r->size[k];
        }
        g->any = g->type[r->type] = true;
        g->kv[r->type] |= 1u << r->kv;
    }
    CD_TRY(mark_names(t, log_base, err));
    return out->n_row > out->n_refused
               ? CDMPP_OK
               : CD_FAIL(err, ERANGE, "expected rows to train on, found none");
}

/* Estimates with what is known of the kernels. */
static cdmpp_status raise_estimates(const training *t, const uint8_t *use, double *log_base,
                                    double *expect, cdmpp_err *err) {
    CD_TRY(cd_llm_op_calls(t->t, use, log_base, t->m, err));
    for (size_t i = 0; i < t->t->n; i++) {
        const cd_llm_op_record *r = &t->t->r[i];
        cd_llm_op_codes c =
            cd_llm_op_model_codes(t->m, t->t->names.text[r->stack], t->t->names.text[r->kernel]);
        cd_llm_op_estimate e;
        cd_llm_op_model_call(t->m, r, &c);
        if (isnan(log_base[i]) || (!c.alone && !(c.host_s > 0))) continue;
        CD_TRY(cd_llm_op_estimate_of(r, t->t->known[t->t->device[i]], &e, err));
        cd_llm_op_estimate_raise(&e, c.alone, c.host_s);
        expect[i] = log_base[i] = log(e.base_s);
    }
    return CDMPP_OK;
}

cdmpp_status cd_llm_op_train(const cd_config *c, const cd_llm_op_table *table, unsigned sets,
                             cd_threads *pool, cd_progress_event_fn *tick, void *ctx,
                             cd_llm_op_train_result *out, cdmpp_err *err) {
    training t = {.c = c,
                  .t = table,
                  .sets = sets,
                  .m = cd_mem_zalloc(1, sizeof *t.m),
                  .tick = tick,
                  .ctx = ctx};
    uint8_t *use = cd_mem_zalloc(table->n + 1, 1);
    double *base = cd_mem_zalloc(table->n + 1, sizeof *base),
           *expect = cd_mem_zalloc(table->n + 1, sizeof *expect);
    cd_buf source = {0};
    cdmpp_status st =
        t.m && use && base && expect ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu rows", table->n);
    for (size_t i = 0; !st && i < table->n; i++) {
        cd_llm_op_estimate e;
        base[i] = cd_llm_op_estimate_of(&table->r[i], table->known[table->device[i]], &e, NULL)
                      ? (double)NAN
                      : log(e.base_s);
        expect[i] = base[i];
    }
    if (!st) st = cd_op_forest_draw(c, table, use, err);
    if (!st) st = describe(&t, use, base, out, err);
    if (!st) st = raise_estimates(&t, use, base, expect, err);
    t.use = use, t.log_base = base, t.expect = expect, t.n_member = 1;
    if (!st) st = cd_threads_run(pool, PARTS * CD_LLM_OP_N_FAMILY, 1, train_part, &t, err);
    if (!st) {
        cd_op_provenance(&source, c, table->n, out->n_row - out->n_refused);
        if (source.oom) st = CD_FAIL(err, ENOMEM, "model header");
        else st = cd_llm_op_model_encode(t.m, source.p, &out->file, err);
    }
    if (st) cd_llm_op_model_free(t.m);
    else out->model = t.m;
    cd_buf_free(&source);
    cd_mem_free(use);
    cd_mem_free(base);
    cd_mem_free(expect);
    return st;
}

void cd_llm_op_train_result_free(cd_llm_op_train_result *l) {
    cd_llm_op_model_free(l->model);
    cd_buf_free(&l->file);
    memset(l, 0, sizeof *l);
}
