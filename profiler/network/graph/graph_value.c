/* Content of folded tensors: memory for it, walking over positions, wrapping and rounding to the
 * type. There is a limit for one tensor and one for all, so that a hostile file cannot use up the
 * memory. */

#include "profiler/network/graph/graph_call_internal.h"

cdmpp_status cd_graph_call_content(cd_graph_call *c, uint32_t o, int64_t **v, double **f,
                                   cdmpp_err *err) {
    cd_graph_tensor *t = &c->out[o];
    const int64_t n = cd_graph_shape_elements(&t->shape);
    *v = NULL;
    *f = NULL;
    if (!cd_graph_type_is_computed(t->dtype) || n > CD_GRAPH_MAX_VALUE ||
        n > CD_GRAPH_MAX_VALUES - c->g->n_value)
        return CDMPP_OK;
    /* one more: empty content is content */
    void *p = cd_arena_zalloc(&c->g->arena, (size_t)n + 1, sizeof(int64_t));
    if (!p) return CD_FAIL(err, ENOMEM, "content of %lld elements", (long long)n);
    c->g->n_value += n;
    if (cd_expr_dtype_is_float(t->dtype)) t->fvalue = *f = p;
    else t->value = *v = p;
    return CDMPP_OK;
}

bool cd_graph_call_may_read(cd_graph_call *c, int64_t n) {
    if (n > CD_GRAPH_MAX_STEPS - c->g->n_step) return false;
    c->g->n_step += n;
    return true;
}

void cd_graph_call_share_content(cd_graph_call *c, uint32_t i) {
    const cd_graph_tensor *t = cd_graph_call_input(c, i);
    c->out[0].value = t->value;
    c->out[0].fvalue = t->fvalue;
}

bool cd_graph_shape_next(const cd_graph_shape *s, int64_t *at) {
    for (uint32_t d = s->rank; d > 0; d--) {
        if (++at[d - 1] < s->dim[d - 1]) return true;
        at[d - 1] = 0;
    }
    return false;
}

int64_t cd_graph_shape_offset(const cd_graph_shape *s, uint32_t rank, const int64_t *at) {
    int64_t k = 0;
    for (uint32_t d = 0; d < s->rank; d++)
        k = k * s->dim[d] + (s->dim[d] == 1 ? 0 : at[rank - s->rank + d]);
    return k;
}

int64_t cd_graph_type_wrap(cd_dtype t, int64_t v) {
    const unsigned bits = cd_expr_dtype_bits(t);
    if (bits >= 64) return v;
    if (bits == 1) return v != 0;
    const uint64_t mask = ((uint64_t)1 << bits) - 1, low = (uint64_t)v & mask;
    if (cd_expr_dtype_kind(t) == CD_T_UINT || !(low >> (bits - 1))) return (int64_t)low;
    return (int64_t)(low | ~mask);
}

double cd_graph_type_round(cd_dtype t, double v) { return t == CD_F32 ? (double)(float)v : v; }

cdmpp_status cd_graph_call_gather(cd_graph_call *c, uint32_t i, cd_graph_gather_fn *from,
                                  const void *ctx, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, i);
    const cd_graph_shape *s = &c->out[0].shape;
    int64_t *v, at[CD_GRAPH_MAX_RANK] = {0}, n = cd_graph_shape_elements(s);
    double *f;
    if (cd_expr_dtype_is_float(c->out[0].dtype) != (x->fvalue != NULL)) return CDMPP_OK;
    CD_TRY(cd_graph_call_content(c, 0, &v, &f, err));
    if (!v && !f) return CDMPP_OK;
    for (int64_t k = 0; k < n; k++, cd_graph_shape_next(s, at)) {
        const int64_t j = from(ctx, at);
        if (j < 0) continue; /* stays 0 */
        if (f) f[k] = x->fvalue[j];
        else v[k] = x->value[j];
    }
    return CDMPP_OK;
}
