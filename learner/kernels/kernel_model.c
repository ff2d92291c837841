/* Boosted trees for each type of kernel. They learn the logarithm of the time over the analytic
 * time of its program, or, where that is unknown, over a plain guess from operations and bytes: so
 * a kernel that is larger than all samples still takes longer. */
#include <math.h>
#include <string.h>

#include "learner/kernels/kernels.h"
#include "learner/trees/trees.h"

enum { ROUNDS = 200, COLUMNS = CD_KERNEL_WIDTH + 1 };

typedef struct part {
    /* NULL: all types, for kernels of those with too few samples; only of samples with an analytic
     * time */
    const char *type;
    size_t n;    /* samples that it was trained on */
    cd_xgb *gbt; /* NULL: too few samples */
    double bias; /* mean of what it learns */
} part;

struct cd_kernel_model {
    cd_arena arena;
    size_t n, cap;
    part *part; /* (n) */
    part any;
};

void cd_kernel_model_free(cd_kernel_model *m) {
    if (!m) return;
    for (size_t k = 0; k < m->n; k++) cd_xgb_free(m->part[k].gbt);
    cd_xgb_free(m->any.gbt);
    cd_arena_free(&m->arena);
    cd_mem_free(m);
}

/* Seconds at 10 G operations and 10 GB a second; any fixed numbers would do. */
static double plain_guess(const cd_kernel *k) {
    return 1e-9 + (k->x[0] + k->x[1] + k->x[2] + k->x[3]) * 1e-10;
}
static double guess(const cd_kernel *k) {
    return k->analytic_s > 0 ? k->analytic_s : plain_guess(k);
}

/* The last column: how much slower the program is than its operations and bytes alone would be;
 * NaN: trees take it as missing. */
static void put_row(const cd_kernel *k, float *row) {
    for (size_t c = 0; c < CD_KERNEL_WIDTH; c++) row[c] = (float)log1p(k->x[c]);
    row[CD_KERNEL_WIDTH] = k->analytic_s > 0 ? (float)log(k->analytic_s / plain_guess(k)) : NAN;
}

static bool is_trained_on(const cd_kernel_sample *v, const char *type, int skip) {
    return !v->held && (skip < 0 || cd_kernel_fold(v->root) != skip) &&
           (!type || !strcmp(v->kernel.type, type));
}

static bool is_of(const part *p, const cd_kernel_sample *v, int skip) {
    return is_trained_on(v, p->type, skip) && (p->type || v->kernel.analytic_s > 0);
}

/* ---- training ---- */

static const cd_xgb_param param[] = {{"max_depth", "5"},        {"eta", "0.1"},
                                     {"min_child_weight", "1"}, {"lambda", "1"},
                                     {"base_score", "0"},       {"nthread", "1"}};

static cdmpp_status boost(part *p, const float *x, const double *y, size_t n, float *score,
                          cdmpp_err *err) {
    cd_xgb_data *d = NULL;
    float *grad = score + n, *hess = score + 2 * n;
    cdmpp_status st = cd_xgb_data_new(x, n, COLUMNS, 1, &d, err);
    if (!st) st = cd_xgb_new(d, NULL, param, sizeof param / sizeof *param, &p->gbt, err);
    for (int r = 0; !st && r < ROUNDS; r++) {
        st = cd_xgb_scores(p->gbt, d, score, err);
        for (size_t i = 0; i < n; i++) grad[i] = score[i] - (float)(y[i] - p->bias), hess[i] = 1;
        if (!st) st = cd_xgb_boost(p->gbt, d, grad, hess, err);
    }
    cd_xgb_data_free(d);
    return st;
}

static cdmpp_status train_part(const cd_kernel_samples *s, int skip, part *p, cdmpp_err *err) {
    float *x = cd_mem_alloc((p->n + 1) * (COLUMNS + 3) * sizeof *x);
    double *y = cd_mem_alloc((p->n + 1) * sizeof *y);
    cdmpp_status st = x && y ? CDMPP_OK : CD_FAIL(err, ENOMEM, "kernels");
    size_t n = 0;
    for (size_t i = 0; !st && i < s->n; i++) {
        const cd_kernel_sample *v = &s->v[i];
        if (!is_of(p, v, skip)) continue;
        put_row(&v->kernel, x + n * COLUMNS);
        y[n] = log(v->seconds / guess(&v->kernel));
        p->bias += y[n++] / (double)p->n;
    }
    if (!st) st = boost(p, x, y, n, x + n * COLUMNS, err);
    cd_mem_free(x);
    cd_mem_free(y);
    return st;
}

static part *find(const cd_kernel_model *m, const char *type) {
    for (size_t k = 0; k < m->n; k++)
        if (!strcmp(m->part[k].type, type)) return &m->part[k];
    return NULL;
}

static cdmpp_status count(const cd_kernel_samples *s, int skip, cd_kernel_model *m,
                          cdmpp_err *err) {
    for (size_t i = 0; i < s->n; i++) {
        if (!is_trained_on(&s->v[i], NULL, skip)) continue;
        m->any.n += is_of(&m->any, &s->v[i], skip);
        part *p = find(m, s->v[i].kernel.type);
        if (!p) {
            if (CD_GROW_IN(&m->arena, m->part, m->n, m->cap))
                return CD_FAIL(err, ENOMEM, "kernels");
            p = &m->part[m->n];
            *p = (part){.type = cd_str_dup(
                            &m->arena, (cd_str){s->v[i].kernel.type, strlen(s->v[i].kernel.type)})};
            if (!p->type) return CD_FAIL(err, ENOMEM, "kernels");
            m->n++;
        }
        p->n++;
    }
    return CDMPP_OK;
}

cdmpp_status cd_kernel_model_train(const cd_kernel_samples *s, int skip, cd_kernel_model **out,
                                   cdmpp_err *err) {
    cd_kernel_model *m = cd_mem_zalloc(1, sizeof *m);
    if (!m) return CD_FAIL(err, ENOMEM, "kernels");
    cdmpp_status st = count(s, skip, m, err);
    for (size_t k = 0; !st && k < m->n; k++)
        if (m->part[k].n >= CD_KERNEL_LEAST) st = train_part(s, skip, &m->part[k], err);
    /* cross-validation looks for types with few samples */
    if (!st && skip < 0 && m->any.n >= CD_KERNEL_LEAST) st = train_part(s, skip, &m->any, err);
    if (st) cd_kernel_model_free(m);
    else *out = m;
    return st;
}

/* ---- predicting ---- */

bool cd_kernel_model_knows(const cd_kernel_model *m, const char *type) {
    const part *p = find(m, type);
    return p && p->gbt;
}

cdmpp_status cd_kernel_model_predict(const cd_kernel_model *m, const cd_kernel *k, double *seconds,
                                     cdmpp_err *err) {
    const part *p =
        cd_kernel_model_knows(m, k->type) || !(k->analytic_s > 0) ? find(m, k->type) : &m->any;
    float row[COLUMNS], score;
    *seconds = (double)NAN;
    if (!p || !p->gbt) return CDMPP_OK;
    put_row(k, row);
    CD_TRY(cd_xgb_predict(p->gbt, row, 1, COLUMNS, &score, err));
    *seconds = exp((double)score + p->bias) * guess(k);
    return CDMPP_OK;
}

cdmpp_status cd_kernel_model_score(const cd_kernel_model *m, const cd_kernel_samples *s,
                                   double target, cd_kernel_score *out, cdmpp_err *err) {
    double sum = 0;
    *out = (cd_kernel_score){0};
    for (size_t i = 0; i < s->n; i++) {
        double t;
        if (!s->v[i].held) continue;
        CD_TRY(cd_kernel_model_predict(m, &s->v[i].kernel, &t, err));
        out->n++;
        if (isnan(t)) out->unknown++;
        if (isnan(t)) continue;
        out->within += fabs(t / s->v[i].seconds - 1) <= target;
        sum += fabs(t / s->v[i].seconds - 1);
    }
    out->error = sum / (double)(out->n - out->unknown); /* NaN for none */
    return CDMPP_OK;
}

cdmpp_status cd_kernel_model_network(const cd_kernel_model *m, const cd_workload *w,
                                     const double *analytic, double *out, double *sum,
                                     cdmpp_err *err) {
    cd_arena a = {0};
    cdmpp_status st = CDMPP_OK;
    *sum = 0;
    for (uint32_t g = 0; !st && g < w->n_group; g++, cd_arena_reset(&a)) {
        cd_kernel k;
        out[g] = (double)NAN;
        if (w->group[g].task != CD_GRAPH_NONE) {
            st = cd_kernel_of(w, g, &a, &k, err);
            if (analytic && isfinite(analytic[w->group[g].task]))
                k.analytic_s = analytic[w->group[g].task];
            if (!st) st = cd_kernel_model_predict(m, &k, &out[g], err);
        }
        if (!w->group[g].weights) *sum += out[g];
    }
    cd_arena_free(&a);
    return st;
}
