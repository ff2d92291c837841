/* Trees of a family of operators: boosted on the logarithm of a factor over an estimate. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "learner/train/train_internal.h"

static cdmpp_status new_gbt(const cd_op_forest *f, cd_xgb_data *data, cd_xgb **out,
                            cdmpp_err *err) {
    const cd_config *c = f->c;
    char v[6][32];
    const char *name[6] = {"eta", "min_child_weight", "subsample", "colsample_bytree", "max_depth",
                           "seed"};
    const double real[4] = {c->operators_eta, f->child, c->operators_subsample, f->columns};
    cd_xgb_param p[8] = {{"tree_method", "hist"}, {"nthread", "1"}};
    for (int i = 0; i < 6; i++) {
        if (i < 4) snprintf(v[i], sizeof v[i], "%.9g", real[i]);
        else
            snprintf(v[i], sizeof v[i], "%lld",
                     i == 4 ? (long long)f->depth : (long long)c->operators_seed);
        p[i + 2] = (cd_xgb_param){name[i], v[i]};
    }
    return cd_xgb_new(data, NULL, p, 8, out, err);
}

/* Gradients of the next tree; returns the mean loss. */
static double gradients(const cd_op_forest *f, double bias) {
    double sum = 0;
    for (size_t i = 0; i < f->n; i++) {
        const double r = bias + (double)f->score[i] - f->target[i];
        f->grad[i] = cd_tree_loss_round(cd_tree_loss_gradient(CD_TREE_LOSS_HUBER, r, 0));
        f->hess[i] = 1;
        sum += cd_tree_loss_value(CD_TREE_LOSS_HUBER, r);
    }
    return sum / (double)f->n;
}

/* All rounds are kept: the number of rounds is a setting, not a choice on held-out rows. */
static cdmpp_status boost(const cd_op_forest *f, cd_xgb_data *data, double *bias, cd_xgb *g,
                          cdmpp_err *err) {
    double sum = 0;
    for (size_t i = 0; i < f->n; i++) sum += f->target[i], f->score[i] = 0;
    *bias = sum / (double)f->n;
    for (uint64_t i = 1; i <= f->rounds; i++) {
        const double loss = gradients(f, *bias);
        if (!isfinite(loss))
            return CD_FAIL(err, ENUMERIC, "%s, round %llu: the loss is not finite", f->name,
                           (unsigned long long)i);
        CD_TRY(cd_xgb_boost(g, data, f->grad, f->hess, err));
        CD_TRY(cd_xgb_scores(g, data, f->score, err));
        const cd_progress_event k = {.member = f->name,
                                     .unit = "round",
                                     .step = i,
                                     .n_step = f->rounds,
                                     .n_sample = f->n,
                                     .train = loss,
                                     .valid = (double)NAN,
                                     .end = i == f->rounds,
                                     .n_member = f->n_member};
        if (f->tick && !f->tick(f->ctx, &k))
            return CD_FAIL(err, EINTERRUPTED, "%s, round %llu", f->name, (unsigned long long)i);
    }
    return cd_xgb_cut(g, (int)f->rounds, err);
}

/* In the form that predicts: read back from its bytes, so that it is what a file gives. */
cdmpp_status cd_op_forest_grow(const cd_op_forest *f, double *bias, cd_xgb **out, cdmpp_err *err) {
    cd_xgb_data *data = NULL;
    cd_xgb *g = NULL;
    cd_buf b = {0};
    cdmpp_status st = cd_xgb_data_new(f->x, f->n, f->width, 1, &data, err);
    if (!st) st = new_gbt(f, data, &g, err);
    if (!st) st = boost(f, data, bias, g, err);
    if (!st) st = cd_xgb_save(g, &b, err);
    if (!st) st = cd_xgb_load(b.p, b.n, f->width, out, err);
    cd_buf_free(&b);
    cd_xgb_free(g);
    cd_xgb_data_free(data);
    return st;
}

void cd_op_provenance(cd_buf *b, const cd_config *c, size_t n_row, size_t n_trained) {
    cd_buf config = {0};
    cd_config_print(&config, c);
    cd_buf_putf(b,
                ",\"tool\":{\"name\":\"cdmpp-train\",\"version\":\"%s\"},\"data\":{\"rows\":%zu,"
                "\"trained\":%zu},\"config\":",
                cdmpp_version(), n_row, n_trained);
    cd_buf_put_json_str(b, config.p ? config.p : "", config.n);
    b->oom |= config.oom;
    cd_buf_free(&config);
}

/* ---- rows that are trained on ---- */
int cd_op_place_by_number(const void *a, const void *b) {
    const cd_op_place *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

void cd_op_draw(const cd_op_place *p, size_t n, size_t most, uint8_t *use) {
    for (size_t i = 0, k = 0; i < n; i++) {
        k = i && p[i].group == p[i - 1].group ? k + 1 : 0;
        use[p[i].row] = k < most;
    }
}

/* Of operators of language models they are drawn by a number of each row itself, so that the order
 * of the tables does not matter. */
uint64_t cd_op_forest_site(const cd_llm_op_record *r) {
    uint64_t h = r->kind;
    for (size_t i = 1; i < cd_llm_op_n_size((cd_llm_op_kind)r->kind); i++)
        h = cd_rng_at(h, (uint64_t)r->size[i]);
    return h;
}

uint64_t cd_op_forest_number(const cd_config *c, const cd_llm_op_table *t, size_t i) {
    const cd_llm_op_record *r = &t->r[i];
    const uint64_t names =
        (uint64_t)r->type << 40 | (uint64_t)r->kv << 32 | (uint64_t)r->stack << 16 | r->kernel;
    return cd_rng_at(cd_rng_at((uint64_t)c->operators_seed, cd_op_forest_site(r)),
                     cd_rng_at(names, (uint64_t)r->size[0] * 8 + (uint64_t)(4 * r->skew)));
}

/* The rows of each kind and device with the smallest numbers, at most operators.max_rows. */
cdmpp_status cd_op_forest_draw(const cd_config *c, const cd_llm_op_table *t, uint8_t *use,
                               cdmpp_err *err) {
    const size_t n = t->n, most = c->operators_max_rows ? (size_t)c->operators_max_rows : SIZE_MAX;
    cd_op_place *p = cd_mem_zalloc(n + 1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "%zu rows", n);
    for (size_t i = 0; i < n; i++)
        p[i] = (cd_op_place){(uint64_t)t->device[i] * CD_LLM_OP_N_KIND + t->r[i].kind,
                             cd_op_forest_number(c, t, i), 0, i};
    qsort(p, n, sizeof *p, cd_op_place_by_number);
    cd_op_draw(p, n, most, use);
    cd_mem_free(p);
    return CDMPP_OK;
}
