/* The trees of a correction: what programs measured on a machine teach about the others. Trained by
 * XGBoost, kept as our own walk reads them. */
#include <stdio.h>
#include <string.h>

#include "learner/loss/loss.h"
#include "learner/model/model.h"

/* Some hundred programs: small steps, several trees in each, and a part of programs and columns for
 * each tree. Chosen on CPUs of examples/ that were left out of the model: one tree a step, or
 * shallower ones, were off by some percent more. */
enum { ROUNDS = 120 };
static const cd_xgb_param fixed[] = {{"tree_method", "hist"},   {"max_depth", "8"},
                                     {"eta", "0.08"},           {"num_parallel_tree", "3"},
                                     {"lambda", "1"},           {"max_bin", "64"},
                                     {"subsample", "0.8"},      {"colsample_bytree", "0.3"},
                                     {"min_child_weight", "1"}, {"nthread", "1"}};
enum { FIXED = sizeof fixed / sizeof *fixed };

typedef struct grower {
    cd_xgb_data *data;
    cd_xgb *trees;
    float *grad, *hess, *score; /* (n) */
} grower;

static cdmpp_status start(grower *g, const float *x, size_t n, size_t width, uint64_t seed,
                          cdmpp_err *err) {
    char text[32];
    cd_xgb_param p[FIXED + 1];
    snprintf(text, sizeof text, "%u", (unsigned)(seed & 0x7fffffff));
    memcpy(p, fixed, sizeof fixed);
    p[FIXED] = (cd_xgb_param){"seed", text};
    g->grad = cd_mem_zalloc(n + 1, sizeof *g->grad);
    g->hess = cd_mem_zalloc(n + 1, sizeof *g->hess);
    g->score = cd_mem_zalloc(n + 1, sizeof *g->score);
    if (!g->grad || !g->hess || !g->score) return CD_FAIL(err, ENOMEM, "%zu programs", n);
    CD_TRY(cd_xgb_data_new(x, n, width, 1, &g->data, err));
    return cd_xgb_new(g->data, NULL, p, sizeof p / sizeof *p, &g->trees, err);
}

static cdmpp_status grow(const grower *g, const double *off, double bias, size_t n,
                         cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) g->hess[i] = 1;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < n; i++)
            g->grad[i] = cd_tree_loss_round(
                cd_tree_loss_gradient(CD_TREE_LOSS_HUBER, bias + (double)g->score[i] - off[i], 1));
        CD_TRY(cd_xgb_boost(g->trees, g->data, g->grad, g->hess, err));
        CD_TRY(cd_xgb_scores(g->trees, g->data, g->score, err));
    }
    return CDMPP_OK;
}

/* As a file would hold it: a booster that was read is immutable and answers without XGBoost. */
static cdmpp_status keep(const grower *g, size_t width, cd_xgb **out, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_xgb_save(g->trees, &b, err);
    if (!st) st = cd_xgb_load(b.p, b.n, width, out, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status middle(const double *off, size_t n, double *out, cdmpp_err *err) {
    double *v = cd_mem_zalloc(n + 1, sizeof *v);
    if (!v) return CD_FAIL(err, ENOMEM, "%zu programs", n);
    for (size_t i = 0; i < n; i++) v[i] = off[i];
    cd_sort_doubles(v, n);
    *out = cd_sort_median(v, n);
    cd_mem_free(v);
    return CDMPP_OK;
}

cdmpp_status cd_here_fit(const float *x, const double *off, size_t n, size_t width, uint64_t seed,
                         cd_here_trees *out, cdmpp_err *err) {
    grower g = {0};
    *out = (cd_here_trees){.share = 1};
    if (!n) return CD_FAIL(err, ENODATA, "no program to learn from");
    CD_TRY(middle(off, n, &out->bias, err));
    cdmpp_status st = start(&g, x, n, width, seed, err);
    if (!st) st = grow(&g, off, out->bias, n, err);
    if (!st) st = keep(&g, width, &out->gbt, err);
    cd_xgb_free(g.trees);
    cd_xgb_data_free(g.data);
    cd_mem_free(g.grad);
    cd_mem_free(g.hess);
    cd_mem_free(g.score);
    return st;
}
