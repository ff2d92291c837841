/* Strides of an index: which loop variables it has, and by how many elements one step of each moves
 * it. */
#include "predictor/tune/rank/rank_internal.h"

static void add_term(cd_tune_feat_index *w, const cd_expr *e, double times) {
    for (uint32_t k = 0; k < w->n_term; k++)
        if (w->term[k].e == e) {
            w->term[k].times += times;
            return;
        }
    if (w->n_term == CD_TUNE_INDEX_TERMS) return;
    w->term[w->n_term].e = e;
    w->term[w->n_term++].times = times;
}

static void add_sum(cd_tune_feat_index *w, const cd_expr *e, double times) {
    if (e->op == CD_ADD || e->op == CD_SUB) {
        add_sum(w, e->a[0], times);
        add_sum(w, e->a[1], e->op == CD_ADD ? times : -times);
    } else if (e->op == CD_MUL && cd_expr_is_int(e->a[1])) {
        add_sum(w, e->a[0], times * (double)e->a[1]->u.i);
    } else if (e->op == CD_CAST) {
        add_sum(w, e->a[0], times);
    } else if (e->flags & CD_EXPR_HAS_VAR) {
        add_term(w, e, times);
    }
}

static void add_var(cd_tune_feat_index *w, uint32_t var, double stride) {
    for (uint32_t k = 0; k < w->n_var; k++)
        if (w->var[k].var == var) return;
    if (w->n_var == CD_TUNE_INDEX_TERMS) return;
    w->var[w->n_var].var = var;
    w->var[w->n_var++].stride = stride;
}

/* Variables inside something that is no sum: the literal next to them, else 1. */
static void add_inner(cd_tune_feat_index *w, const cd_expr *e) {
    if (!(e->flags & CD_EXPR_HAS_VAR)) return;
    if (e->op == CD_VAR) add_var(w, (uint32_t)e->u.i, 1);
    else if (e->op == CD_MUL && e->a[0]->op == CD_VAR && cd_expr_is_int(e->a[1]))
        add_var(w, (uint32_t)e->a[0]->u.i, (double)e->a[1]->u.i);
    else
        for (uint32_t k = 0; k < e->n; k++) add_inner(w, e->a[k]);
}

void cd_tune_feat_index_read(cd_tune_feat_index *w, const cd_expr *const *x, uint32_t n,
                             const cd_expr *const *region, const int64_t *shape) {
    double times = 1;
    w->n_term = w->n_var = 0;
    for (uint32_t d = n; d-- > 0;) {
        add_sum(w, x[d], times);
        if (region) add_sum(w, region[2 * d], -times);
        times *= (double)(region && cd_expr_is_int(region[2 * d + 1]) ? region[2 * d + 1]->u.i
                                                                      : shape[d]);
    }
    for (uint32_t k = 0; k < w->n_term; k++)
        if (w->term[k].e->op == CD_VAR && w->term[k].times != 0)
            add_var(w, (uint32_t)w->term[k].e->u.i, w->term[k].times);
    for (uint32_t k = 0; k < w->n_term; k++)
        if (w->term[k].e->op != CD_VAR && w->term[k].times != 0) add_inner(w, w->term[k].e);
}

double cd_tune_feat_index_stride(const cd_tune_feat_index *w, uint32_t var) {
    for (uint32_t k = 0; k < w->n_var; k++)
        if (w->var[k].var == var) return w->var[k].stride;
    return 0;
}
