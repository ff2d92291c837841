/* Matrix products: MatMul, Gemm, their quantized forms, Einsum. Operations are counted as two for
 * each multiply-add. */
#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

/* numpy's matmul of the shapes a and b. */
static cdmpp_status product(const cd_graph_call *c, const cd_graph_shape *a,
                            const cd_graph_shape *b, cd_graph_shape *o, cdmpp_err *err) {
    char ta[96], tb[96];
    if (!a->rank || !b->rank) return CD_FAIL(err, ESCHEMA, "%s of a scalar", c->op);
    const int64_t k = a->dim[a->rank - 1], kb = b->dim[b->rank < 2 ? 0 : b->rank - 2];
    if (k != kb)
        return CD_FAIL(err, ESCHEMA, "%s of %s and %s", c->op,
                       cd_graph_shape_text(a, ta, sizeof ta),
                       cd_graph_shape_text(b, tb, sizeof tb));
    cd_graph_shape ba = *a, bb = *b;
    ba.rank = a->rank < 2 ? 0 : a->rank - 2;
    bb.rank = b->rank < 2 ? 0 : b->rank - 2;
    CD_TRY(cd_graph_shape_broadcast(&ba, &bb, err));
    *o = ba;
    if (a->rank > 1) CD_TRY(cd_graph_shape_push(o, a->dim[a->rank - 2], err));
    if (b->rank > 1) CD_TRY(cd_graph_shape_push(o, b->dim[b->rank - 1], err));
    return CDMPP_OK;
}

cdmpp_status cd_graph_infer_matmul(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *a = cd_graph_call_input(c, 0), *b = cd_graph_call_input(c, 1);
    cd_graph_shape o;
    CD_TRY(product(c, &a->shape, &b->shape, &o, err));
    return cd_graph_call_set_output(c, 0, !strcmp(c->op, "MatMulInteger") ? CD_I32 : a->dtype, &o,
                                    err);
}

/* a, scale, zero point, b, scale, zero point, y scale, y zero point */
cdmpp_status cd_graph_infer_qmatmul(cd_graph_call *c, cdmpp_err *err) {
    cd_graph_shape o;
    CD_TRY(
        product(c, &cd_graph_call_input(c, 0)->shape, &cd_graph_call_input(c, 3)->shape, &o, err));
    return cd_graph_call_set_output(c, 0, cd_graph_call_input(c, 7)->dtype, &o, err);
}

double cd_graph_flop_matmul(const cd_graph_call *c) {
    const cd_graph_shape *a = &cd_graph_call_input(c, 0)->shape;
    return 2 * cd_graph_flop_out(c) * (double)a->dim[a->rank - 1];
}

/* The bias broadcasts into the product, never the other way. */
cdmpp_status cd_graph_infer_gemm(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *a = cd_graph_call_input(c, 0), *b = cd_graph_call_input(c, 1),
                          *y = cd_graph_call_input(c, 2);
    int64_t ta, tb;
    CD_TRY(cd_graph_call_rank(c, 0, 2, 2, err));
    CD_TRY(cd_graph_call_rank(c, 1, 2, 2, err));
    CD_TRY(cd_graph_call_default_int(c, "transA", 0, &ta, err));
    CD_TRY(cd_graph_call_default_int(c, "transB", 0, &tb, err));
    CD_TRY(cd_graph_call_default_float(c, "alpha", 1, err));
    CD_TRY(cd_graph_call_default_float(c, "beta", 1, err));
    const int64_t k = a->shape.dim[!ta], kb = b->shape.dim[tb != 0];
    if (k != kb)
        return CD_FAIL(err, ESCHEMA, "Gemm: inner dimensions %lld and %lld", (long long)k,
                       (long long)kb);
    const cd_graph_shape o = {2, {a->shape.dim[ta != 0], b->shape.dim[!tb]}};
    cd_graph_shape both = o;
    if (y) CD_TRY(cd_graph_shape_broadcast(&both, &y->shape, err));
    if (both.rank != 2 || memcmp(both.dim, o.dim, 2 * sizeof *o.dim))
        return CD_FAIL(err, ESCHEMA, "Gemm: operand 2 is larger than the product");
    return cd_graph_call_set_output(c, 0, a->dtype, &o, err);
}

double cd_graph_flop_gemm(const cd_graph_call *c) {
    const cd_graph_attr *t = cd_graph_call_attr(c, "transA");
    return cd_graph_flop_out(c) * (2 * (double)cd_graph_call_input(c, 0)->shape.dim[!(t && t->i)] +
                                   (cd_graph_call_input(c, 2) != NULL));
}

/* ---- Einsum: "bij,bjk->bik"; dots stand for dimensions that broadcast ---- */
/* letters, then the dimensions behind "..." from the last */
enum { DOTS = 52, LABELS = DOTS + CD_GRAPH_MAX_RANK };

typedef struct einsum {
    int64_t dim[LABELS]; /* 0: not seen */
    int times[LABELS];
    uint32_t dots; /* most dimensions behind a "..." */
} einsum;

static int label(char ch) {
    return ch >= 'a' && ch <= 'z' ? ch - 'a' : ch >= 'A' && ch <= 'Z' ? 26 + ch - 'A' : -1;
}

/* One more dimension for a label: all of a label's dimensions are equal, or 1 and broadcast. */
static cdmpp_status meet(einsum *e, int at, int64_t d, cdmpp_err *err) {
    if (e->times[at]++ && e->dim[at] != d && e->dim[at] != 1 && d != 1)
        return CD_FAIL(err, ESCHEMA, "Einsum: one letter for %lld and %lld", (long long)e->dim[at],
                       (long long)d);
    if (e->times[at] == 1 || d != 1) e->dim[at] = d;
    return CDMPP_OK;
}

/* Letters and dots of one term: labels as numbers; DOTS stands for "...". */
static cdmpp_status term(const char **s, int *out, uint32_t *n, bool *dots, cdmpp_err *err) {
    *n = 0;
    *dots = false;
    for (; **s && **s != ',' && **s != '-'; ++*s) {
        if (**s == ' ') continue;
        const bool d = !strncmp(*s, "...", 3);
        const int at = d ? DOTS : label(**s);
        if (at < 0 || (d && *dots))
            return CD_FAIL(err, ESCHEMA, "Einsum: \"%c\" in the equation", **s);
        if (*n == CD_GRAPH_MAX_RANK + 1)
            return CD_FAIL(err, ERANGE, "Einsum: more than %d letters", CD_GRAPH_MAX_RANK);
        out[(*n)++] = at;
        *dots |= d;
        if (d) *s += 2;
    }
    return CDMPP_OK;
}

/* The letters of one operand against its shape. "..." takes the dimensions that no letter names;
 * they are counted from the last, so that operands of different rank broadcast. */
static cdmpp_status read_operand(einsum *e, const char **s, const cd_graph_shape *x,
                                 cdmpp_err *err) {
    int at[CD_GRAPH_MAX_RANK + 1];
    uint32_t n, d = 0;
    bool dots;
    CD_TRY(term(s, at, &n, &dots, err));
    if (dots ? n - 1 > x->rank : n != x->rank)
        return CD_FAIL(err, ESCHEMA, "Einsum: %u letters for an operand of %u dimensions", n - dots,
                       x->rank);
    const uint32_t more = dots ? x->rank - (n - 1) : 0;
    if (more > e->dots) e->dots = more;
    for (uint32_t i = 0; i < n; i++) {
        if (at[i] != DOTS) CD_TRY(meet(e, at[i], x->dim[d++], err));
        else
            for (uint32_t k = more; k > 0; k--)
                CD_TRY(meet(e, DOTS + (int)k - 1, x->dim[d++], err));
    }
    return CDMPP_OK;
}

static cdmpp_status push_dots(const einsum *e, cd_graph_shape *o, cdmpp_err *err) {
    for (uint32_t k = e->dots; k > 0; k--)
        CD_TRY(cd_graph_shape_push(o, e->dim[DOTS + k - 1], err));
    return CDMPP_OK;
}

static cdmpp_status read_result(const einsum *e, const char *s, cd_graph_shape *o, cdmpp_err *err) {
    int at[CD_GRAPH_MAX_RANK + 1];
    uint32_t n;
    bool dots;
    CD_TRY(term(&s, at, &n, &dots, err));
    if (*s) return CD_FAIL(err, ESCHEMA, "Einsum: \"%s\" behind the result", s);
    for (uint32_t i = 0; i < n; i++) {
        if (at[i] == DOTS) CD_TRY(push_dots(e, o, err));
        else if (!e->times[at[i]])
            return CD_FAIL(err, ESCHEMA, "Einsum: a letter of the result is in no operand");
        else CD_TRY(cd_graph_shape_push(o, e->dim[at[i]], err));
    }
    return CDMPP_OK;
}

static cdmpp_status read_operands(const cd_graph_call *c, einsum *e, const char **s,
                                  cdmpp_err *err) {
    for (uint32_t i = 0; i < c->n_in; i++) {
        const cd_graph_tensor *x = cd_graph_call_input(c, i);
        if (!x) return CD_FAIL(err, ESCHEMA, "Einsum: operand %u is missing", i);
        CD_TRY(read_operand(e, s, &x->shape, err));
        if (i + 1 == c->n_in) break;
        if (**s != ',')
            return CD_FAIL(err, ESCHEMA, "Einsum: an equation for fewer than %u operands", c->n_in);
        ++*s;
    }
    return CDMPP_OK;
}

cdmpp_status cd_graph_infer_einsum(cd_graph_call *c, cdmpp_err *err) {
    einsum e = {{0}, {0}, 0};
    const char *s;
    cd_graph_shape o = {0};
    CD_TRY(cd_graph_call_str(c, "equation", NULL, &s, err));
    if (!s) return CD_FAIL(err, ESCHEMA, "Einsum: expected attribute equation");
    CD_TRY(read_operands(c, &e, &s, err));
    if (!strncmp(s, "->", 2)) CD_TRY(read_result(&e, s + 2, &o, err));
    else if (*s) return CD_FAIL(err, ESCHEMA, "Einsum: expected -> at \"%s\"", s);
    else { /* implicit: dots, then letters that occur once, by alphabet: capitals first */
        CD_TRY(push_dots(&e, &o, err));
        for (int i = 0; i < DOTS; i++)
            if (e.times[(i + 26) % 52] == 1)
                CD_TRY(cd_graph_shape_push(&o, e.dim[(i + 26) % 52], err));
    }
    return cd_graph_call_set_output(c, 0, cd_graph_call_input(c, 0)->dtype, &o, err);
}

/* As one nest over all letters: a multiplication for each further operand, one addition where
 * letters are summed. */
double cd_graph_flop_einsum(const cd_graph_call *c) {
    einsum e = {{0}, {0}, 0};
    const char *s = cd_graph_call_attr(c, "equation")->s;
    double n = 1;
    if (read_operands(c, &e, &s, NULL)) return 0;
    for (int i = 0; i < LABELS; i++)
        if (e.times[i]) n *= (double)e.dim[i];
    return n * (c->n_in - 1 + (n > cd_graph_flop_out(c)));
}
