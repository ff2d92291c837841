/* What the trees of set seen expect of operators: of a question, and of measured rows, of which it
 * is kept. */
#include <math.h>
#include <string.h>

#include "learner/llm_op/llm_op_ask_internal.h"

cdmpp_status cd_llm_op_expect_of(const cd_llm_op_asker *a, cd_llm_op_family f, const float *x,
                                 const cd_llm_op_estimate *e, double *out, cdmpp_err *err) {
    const cd_llm_op_part *p = &a->m->part[f][CD_LLM_OP_SET_SEEN];
    float y;
    *out = log(e->base_s) + p->bias;
    if (!p->gbt) return CDMPP_OK;
    CD_TRY(cd_xgb_predict(p->gbt, x, 1, cd_llm_op_feature_width(CD_LLM_OP_SET_SEEN), &y, err));
    *out += (double)y;
    return CDMPP_OK;
}

/* ---- measured rows ---- */
static bool load(const cd_llm_op_asker *a, size_t row, float *y) {
    __atomic_load(&a->expect[row], y, __ATOMIC_RELAXED);
    return fabsf(*y) > 0 || isnan(*y);
}

static void store(const cd_llm_op_asker *a, size_t row, float y) {
    __atomic_store(&a->expect[row], &y, __ATOMIC_RELAXED);
}

static cdmpp_status features(const cd_llm_op_asker *a, size_t row, cd_llm_op_known *known,
                             float x[CD_LLM_OP_N_FEATURE], cd_llm_op_estimate *e) {
    const cd_llm_op_record *r = &a->t->r[row];
    const cd_llm_op_codes c = cd_llm_op_asker_codes(a, r);
    CD_TRY(cd_llm_op_feature(r, a->t->known[a->t->device[row]], &c, known, x, e, NULL));
    cd_llm_op_model_types(a->m->range, r, x);
    return CDMPP_OK;
}

/* Each value is computed from the row alone, so threads that compute it twice write the same. */
double cd_llm_op_expect_row(const void *ctx, size_t row) {
    const cd_llm_op_asker *a = ctx;
    float x[CD_LLM_OP_N_FEATURE], y;
    cd_llm_op_estimate e;
    double v;
    if (load(a, row, &y)) return (double)y;
    cdmpp_status st = features(a, row, NULL, x, &e);
    if (!st)
        st = cd_llm_op_expect_of(a, cd_llm_op_family_of((cd_llm_op_kind)a->t->r[row].kind), x, &e,
                                 &v, NULL);
    y = st ? NAN : (float)v;
    store(a, row, y);
    return (double)y;
}

/* Those that cannot be scored stay as they are: they are computed one by one. */
void cd_llm_op_expect_flush(const cd_llm_op_asker *a, cd_llm_op_family f, cd_llm_op_known *known,
                            float *x, cd_llm_op_awaited *w) {
    const cd_llm_op_part *p = &a->m->part[f][CD_LLM_OP_SET_SEEN];
    const size_t width = cd_llm_op_feature_width(CD_LLM_OP_SET_SEEN);
    float y[CD_LLM_OP_AWAITED];
    double base[CD_LLM_OP_AWAITED];
    size_t n = 0;
    for (size_t i = 0; i < w->n && p->gbt; i++) {
        cd_llm_op_estimate e;
        if (features(a, w->row[i], known, x + n * width, &e)) continue;
        base[n] = log(e.base_s) + p->bias;
        w->row[n++] = w->row[i];
    }
    if (n && !cd_xgb_predict(p->gbt, x, n, width, y, NULL))
        for (size_t i = 0; i < n; i++) store(a, w->row[i], (float)(base[i] + (double)y[i]));
    w->n = 0;
}

void cd_llm_op_expect_await(const cd_llm_op_asker *a, cd_llm_op_family f, size_t row,
                            cd_llm_op_known *known, float *x, cd_llm_op_awaited *w) {
    float y;
    uint32_t *seen = &w->seen[row % CD_LLM_OP_AWAITED_SEEN];
    if (*seen == row + 1 || load(a, row, &y)) return;
    if (w->n == CD_LLM_OP_AWAITED) cd_llm_op_expect_flush(a, f, known, x, w);
    *seen = (uint32_t)row + 1;
    w->row[w->n++] = (uint32_t)row;
}
