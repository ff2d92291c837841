/* The calls with which expansions are written, and the choice of one. While an expansion appends
 * nodes the graph has the newest opset, so that its operators mean the same in every file. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/network/onnx/onnx_expand_internal.h"

enum { OPSET = 24, MOST_IN = 12 };

/* ---- reading ---- */

void cd_onnx_expand_wrong(cd_expand *x, const char *what) {
    if (!x->st && !x->why)
        x->st = CD_FAIL(x->err, ESCHEMA, "%s: %s", cd_onnx_text(x->n->op_type), what);
}

uint32_t cd_onnx_expand_in(cd_expand *x, uint32_t k) {
    if (cd_onnx_expand_has(x, k)) return x->in[k];
    if (!x->st && !x->why)
        x->st =
            CD_FAIL(x->err, ESCHEMA, "%s: operand %u is missing", cd_onnx_text(x->n->op_type), k);
    return CD_GRAPH_NONE;
}

cd_graph_shape cd_onnx_expand_shape(const cd_expand *x, uint32_t t) {
    return t < x->r->g->n_tensor ? x->r->g->tensor[t].shape : (cd_graph_shape){0};
}
cd_dtype cd_onnx_expand_type(const cd_expand *x, uint32_t t) {
    return t < x->r->g->n_tensor ? x->r->g->tensor[t].dtype : CD_F32;
}

int64_t cd_onnx_expand_int(cd_expand *x, const char *name, int64_t absent) {
    const CdOnnx__AttributeProto *a = cd_onnx_attr(x->s, x->n, name);
    return a ? a->i : absent;
}

double cd_onnx_expand_float(cd_expand *x, const char *name, double absent) {
    const CdOnnx__AttributeProto *a = cd_onnx_attr(x->s, x->n, name);
    return a ? (double)a->f : absent;
}

const char *cd_onnx_expand_text(cd_expand *x, const char *name) {
    const CdOnnx__AttributeProto *a = cd_onnx_attr(x->s, x->n, name);
    const char *s =
        a && a->has_s ? cd_str_dup(x->r->a, (cd_str){(const char *)a->s.data, a->s.len}) : "";
    if (!s && !x->st) x->st = CD_FAIL(x->err, ENOMEM, "an attribute");
    return s ? s : "";
}

const float *cd_onnx_expand_floats(cd_expand *x, const char *name, size_t *n) {
    const CdOnnx__AttributeProto *a = cd_onnx_attr(x->s, x->n, name);
    *n = a ? a->n_floats : 0;
    return a ? a->floats : NULL;
}

bool cd_onnx_expand_wants(const cd_expand *x, uint32_t k) {
    return k < x->n->n_output && *cd_onnx_text(x->n->output[k]);
}

bool cd_onnx_expand_rank(cd_expand *x, uint32_t t, uint32_t lo, uint32_t hi) {
    const uint32_t rank = cd_onnx_expand_shape(x, t).rank;
    if (x->st || x->why || (rank >= lo && rank <= hi)) return !x->st && !x->why;
    x->st = CD_FAIL(x->err, ESCHEMA, "%s: expected %u to %u dimensions, found %u",
                    cd_onnx_text(x->n->op_type), lo, hi, rank);
    return false;
}

/* ---- appending ---- */

void cd_onnx_expand_several(cd_expand *x, const char *op, const uint32_t *in, uint32_t n_in,
                            const cd_graph_attr *attr, uint32_t n_attr, uint32_t *out,
                            uint32_t n_out) {
    char name[300];
    cdmpp_err why = {0};
    for (uint32_t k = 0; k < n_out; k++) out[k] = CD_GRAPH_NONE;
    if (x->st || x->why) return;
    while (n_in > 1 && in[n_in - 1] == CD_GRAPH_NONE) n_in--;
    snprintf(name, sizeof name, "%.200s/%s", x->name, op);
    const cdmpp_status st =
        cd_graph_add(x->r->g, name, op, in, n_in, attr, n_attr, out, n_out, &why);
    if (!st) return;
    for (uint32_t k = 0; k < n_out; k++) out[k] = CD_GRAPH_NONE;
    if (st == CDMPP_EUNSUPPORTED && (x->why = cd_graph_keep(x->r->g, why.msg))) return;
    cd_err_from(x->err, &why);
    x->st = st;
}

uint32_t cd_onnx_expand_add(cd_expand *x, const char *op, const uint32_t *in, uint32_t n_in,
                            const cd_graph_attr *attr, uint32_t n_attr) {
    uint32_t out;
    cd_onnx_expand_several(x, op, in, n_in, attr, n_attr, &out, 1);
    return out;
}

uint32_t cd_onnx_expand_unary(cd_expand *x, const char *op, uint32_t a) {
    return cd_onnx_expand_add(x, op, &a, 1, NULL, 0);
}

uint32_t cd_onnx_expand_binary(cd_expand *x, const char *op, uint32_t a, uint32_t b) {
    const uint32_t in[2] = {a, b};
    return cd_onnx_expand_add(x, op, in, 2, NULL, 0);
}

uint32_t cd_onnx_expand_real(cd_expand *x, cd_dtype t, double v) {
    const cd_graph_shape scalar = {0};
    uint32_t c = CD_GRAPH_NONE;
    if (!cd_expr_dtype_is_float(t)) cd_onnx_expand_wrong(x, "expected real numbers");
    if (!x->st && !x->why)
        x->st = cd_graph_constant(x->r->g, "c", t, &scalar, NULL, &v, &c, x->err);
    return c;
}

uint32_t cd_onnx_expand_ints(cd_expand *x, const int64_t *v, uint32_t n) {
    const cd_graph_shape s = {1, {n}};
    uint32_t c = CD_GRAPH_NONE;
    if (!x->st && !x->why) x->st = cd_graph_constant(x->r->g, "c", CD_I64, &s, v, NULL, &c, x->err);
    return c;
}

uint32_t cd_onnx_expand_times(cd_expand *x, uint32_t a, double v) {
    return v >= 1 && v <= 1
               ? a
               : cd_onnx_expand_binary(x, "Mul", a,
                                       cd_onnx_expand_real(x, cd_onnx_expand_type(x, a), v));
}

uint32_t cd_onnx_expand_reshape(cd_expand *x, uint32_t a, uint32_t rank, const int64_t *dim) {
    return cd_onnx_expand_binary(x, "Reshape", a, cd_onnx_expand_ints(x, dim, rank));
}

uint32_t cd_onnx_expand_transpose(cd_expand *x, uint32_t a, uint32_t rank, const int64_t *perm) {
    const cd_graph_attr p = {.name = "perm", .kind = CD_GRAPH_ATTR_INTS, .n = rank, .ints = perm};
    return cd_onnx_expand_add(x, "Transpose", &a, 1, &p, 1);
}

uint32_t cd_onnx_expand_slice(cd_expand *x, uint32_t a, int64_t axis, int64_t from, int64_t to,
                              int64_t step) {
    const uint32_t in[] = {a, cd_onnx_expand_ints(x, &from, 1), cd_onnx_expand_ints(x, &to, 1),
                           cd_onnx_expand_ints(x, &axis, 1), cd_onnx_expand_ints(x, &step, 1)};
    return cd_onnx_expand_add(x, "Slice", in, 5, NULL, 0);
}

static cd_graph_attr axis_of(int64_t axis) {
    return (cd_graph_attr){.name = "axis", .kind = CD_GRAPH_ATTR_INT, .i = axis};
}

uint32_t cd_onnx_expand_concat(cd_expand *x, uint32_t a, uint32_t b, int64_t axis) {
    const uint32_t in[] = {a, b};
    const cd_graph_attr p = axis_of(axis);
    return cd_onnx_expand_add(x, "Concat", in, 2, &p, 1);
}

uint32_t cd_onnx_expand_gather(cd_expand *x, uint32_t table, uint32_t index, int64_t axis) {
    const uint32_t in[] = {table, index};
    const cd_graph_attr p = axis_of(axis);
    return cd_onnx_expand_add(x, "Gather", in, 2, &p, 1);
}

uint32_t cd_onnx_expand_softmax(cd_expand *x, uint32_t a) {
    const cd_graph_attr p = axis_of(-1);
    return cd_onnx_expand_add(x, "Softmax", &a, 1, &p, 1);
}

/* CastLike takes the type from a tensor, and so needs no number of it. */
uint32_t cd_onnx_expand_cast(cd_expand *x, uint32_t a, cd_dtype t) {
    if (x->st || x->why || cd_onnx_expand_type(x, a) == t) return a;
    for (int64_t k = 1; k < 17; k++) {
        cd_dtype of;
        const cd_graph_attr to = {.name = "to", .kind = CD_GRAPH_ATTR_INT, .i = k};
        if (cd_graph_dtype(k, &of) && of == t) return cd_onnx_expand_add(x, "Cast", &a, 1, &to, 1);
    }
    cd_onnx_expand_wrong(x, "a type that nothing can be cast to");
    return CD_GRAPH_NONE;
}

void cd_onnx_expand_out(cd_expand *x, uint32_t k, uint32_t t) {
    if (k < x->n_out) x->out[k] = t;
}

/* ---- activations ---- */

static cd_graph_attr real_attr(const char *name, double v) {
    return (cd_graph_attr){.name = name, .kind = CD_GRAPH_ATTR_FLOAT, .f = v};
}

uint32_t cd_onnx_expand_activation(cd_expand *x, uint32_t a, const char *name, const double *p,
                                   uint32_t n_p) {
    static const char *const plain[] = {"Relu",     "Sigmoid",  "Tanh",
                                        "Softsign", "Softplus", "HardSwish"};
    const cd_graph_attr alpha = real_attr("alpha", n_p > 0                        ? p[0]
                                                   : !strcmp(name, "HardSigmoid") ? 0.2
                                                                                  : 0.01);
    const cd_graph_attr both[] = {alpha, real_attr("beta", n_p > 1 ? p[1] : 0.5)};
    if (!*name) return a;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(plain[i], name)) return cd_onnx_expand_unary(x, name, a);
    if (!strcmp(name, "LeakyRelu")) return cd_onnx_expand_add(x, name, &a, 1, &alpha, 1);
    if (!strcmp(name, "HardSigmoid")) return cd_onnx_expand_add(x, name, &a, 1, both, 2);
    if (!strcmp(name, "Clip") && n_p == 2) {
        const uint32_t in[] = {a, cd_onnx_expand_real(x, cd_onnx_expand_type(x, a), p[0]),
                               cd_onnx_expand_real(x, cd_onnx_expand_type(x, a), p[1])};
        return cd_onnx_expand_add(x, "Clip", in, 3, NULL, 0);
    }
    x->why = "an activation that is not known";
    return CD_GRAPH_NONE;
}

/* ---- the choice ---- */

const cd_expansion *cd_onnx_expansion_of(const CdOnnx__NodeProto *n) {
    const cd_expansion *const table[] = {cd_onnx_expansions_norm, cd_onnx_expansions_attention,
                                         cd_onnx_expansions_quantized};
    const char *op = cd_onnx_text(n->op_type),
               *domain = cd_onnx_own_domain(n->domain) ? "" : cd_onnx_text(n->domain);
    for (size_t t = 0; t < sizeof table / sizeof *table; t++)
        for (const cd_expansion *e = table[t]; e->op; e++)
            if (!strcmp(e->op, op) && !strcmp(e->domain, domain)) return e;
    return NULL;
}

static bool has_word(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *s = list; n && (s = strstr(s, word)); s += n)
        if ((s == list || s[-1] == ' ') && (!s[n] || s[n] == ' ')) return true;
    return false;
}

static cdmpp_status check_attrs(cd_expand *x, const cd_expansion *e) {
    for (size_t i = 0; i < x->n->n_attribute; i++) {
        const char *name = cd_onnx_text(x->n->attribute[i]->name);
        if (!has_word(e->attrs, name))
            CD_TRY(cd_graph_note(x->r->g, x->err,
                                 "%.40s has an attribute \"%.60s\", which is not known: it is not "
                                 "taken into account",
                                 e->op, name));
    }
    return CDMPP_OK;
}

/* A result that was there before, or that is another result, too, needs a name of its own. */
static bool is_old(const cd_expand *x, uint32_t k, uint32_t first) {
    if (x->out[k] == CD_GRAPH_NONE || !cd_onnx_expand_wants(x, k)) return false;
    for (uint32_t i = 0; i < k; i++)
        if (x->out[i] == x->out[k]) return true;
    return x->out[k] < first;
}

cdmpp_status cd_onnx_expand(cd_onnx_reader *r, const cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                            const uint32_t *in, uint32_t *out, const char **why, cdmpp_err *err) {
    const cd_expansion *e = cd_onnx_expansion_of(n);
    const char *name = cd_onnx_text(n->name);
    cd_expand x = {.r = r,
                   .s = s,
                   .n = n,
                   .name = *name || !n->n_output ? name : cd_onnx_text(n->output[0]),
                   .in = in,
                   .n_in = (uint32_t)n->n_input,
                   .n_out = (uint32_t)n->n_output,
                   .out = out,
                   .err = err};
    const int outer = r->g->opset;
    const uint32_t first = r->g->n_tensor;
    for (size_t k = 0; k < n->n_output; k++) out[k] = CD_GRAPH_NONE;
    CD_TRY(check_attrs(&x, e));
    if (r->g->opset < OPSET) r->g->opset = OPSET;
    e->fn(&x);
    r->g->opset = outer;
    for (uint32_t k = 0; !x.st && !x.why && k < x.n_out; k++)
        if (cd_onnx_expand_wants(&x, k) && x.out[k] == CD_GRAPH_NONE)
            x.why = "one of its results is not known";
    for (uint32_t k = 0; !x.st && !x.why && k < x.n_out; k++)
        if (is_old(&x, k, first)) x.out[k] = cd_onnx_expand_unary(&x, "Identity", x.out[k]);
    *why = x.why;
    return x.st;
}
