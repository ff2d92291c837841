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

/* "" where it is absent. */
static const char *onnx_expand_text(cd_expand *x, const char *name) {
    const CdOnnx__AttributeProto *a = cd_onnx_attr(x->s, x->n, name);
    const char *s =
        a && a->has_s ? cd_str_dup(x->r->a, (cd_str){(const char *)a->s.data, a->s.len}) : "";
    if (!s && !x->st) x->st = CD_FAIL(x->err, ENOMEM, "an attribute");
    return s ? s : "";
}

/* Floats of an attribute; *n 0: absent. */
static const float *onnx_expand_floats(cd_expand *x, const char *name, size_t *n) {
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

/* The same with several results; CD_GRAPH_NONE each where nothing is appended. */
static void onnx_expand_several(cd_expand *x, const char *op, const uint32_t *in, uint32_t n_in,
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
    onnx_expand_several(x, op, in, n_in, attr, n_attr, &out, 1);
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

/* An activation by the name that fused operators have for it, with its parameters p (n_p). */
static uint32_t onnx_expand_activation(cd_expand *x, uint32_t a, const char *name, const double *p,
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

/* Normalisations, activations, products and embeddings that are several standard operators. */

#define MS "com.microsoft"

static cd_graph_attr int_attr(const char *name, int64_t v) {
    return (cd_graph_attr){.name = name, .kind = CD_GRAPH_ATTR_INT, .i = v};
}
/* ---- norms ---- */

/* With parameters of axis -1 and an epsilon. gamma, beta: CD_GRAPH_NONE is none.
 *
 * x / sqrt(mean(x^2) + epsilon) * gamma over the dimensions from `axis` on, as ONNX's function has
 * it: sums of short reals are in float32. */
static uint32_t onnx_expand_rms_norm(cd_expand *x, uint32_t a, uint32_t gamma, int64_t axis,
                                     double epsilon) {
    int64_t axes[CD_GRAPH_MAX_RANK];
    const int64_t rank = cd_onnx_expand_shape(x, a).rank;
    const cd_dtype type = cd_onnx_expand_type(x, a);
    uint32_t n = 0;
    if (x->st || x->why) return CD_GRAPH_NONE;
    if (cd_expr_dtype_bits(type) < 32) a = cd_onnx_expand_cast(x, a, CD_F32);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) cd_onnx_expand_wrong(x, "no such axis");
    for (int64_t d = axis; !x->st && !x->why && d < rank; d++) axes[n++] = d;
    const uint32_t in[] = {cd_onnx_expand_binary(x, "Mul", a, a), cd_onnx_expand_ints(x, axes, n)};
    const uint32_t mean = cd_onnx_expand_add(x, "ReduceMean", in, 2, NULL, 0);
    const uint32_t root = cd_onnx_expand_unary(
        x, "Sqrt",
        cd_onnx_expand_binary(x, "Add", mean,
                              cd_onnx_expand_real(x, cd_onnx_expand_type(x, a), epsilon)));
    return cd_onnx_expand_binary(
        x, "Mul", cd_onnx_expand_cast(x, cd_onnx_expand_binary(x, "Div", a, root), type), gamma);
}

static void rms_norm(cd_expand *x) {
    cd_onnx_expand_out(x, 0,
                       onnx_expand_rms_norm(x, cd_onnx_expand_in(x, 0), cd_onnx_expand_in(x, 1),
                                            cd_onnx_expand_int(x, "axis", -1),
                                            cd_onnx_expand_float(x, "epsilon", 1e-5)));
}

/* LayerNormalization's further results are those of the fused operator, too: the mean and the
 * inverse of the deviation. */
static void layer_norm(cd_expand *x, uint32_t a, uint32_t gamma, uint32_t beta, double epsilon) {
    const uint32_t in[] = {a, gamma, beta};
    uint32_t out[3];
    const cd_graph_attr p[] = {int_attr("axis", -1), real_attr("epsilon", epsilon)};
    const uint32_t n_out = cd_onnx_expand_wants(x, 2) ? 3 : cd_onnx_expand_wants(x, 1) ? 2 : 1;
    onnx_expand_several(x, "LayerNormalization", in, 3, p, 2, out, n_out);
    for (uint32_t k = 0; k < n_out; k++) cd_onnx_expand_out(x, k, out[k]);
}

/* The sum of what is skipped, what comes through, and a bias. */
static uint32_t skipped(cd_expand *x, uint32_t bias) {
    const uint32_t sum =
        cd_onnx_expand_binary(x, "Add", cd_onnx_expand_in(x, 0), cd_onnx_expand_in(x, 1));
    const uint32_t all = cd_onnx_expand_has(x, bias)
                             ? cd_onnx_expand_binary(x, "Add", sum, cd_onnx_expand_in(x, bias))
                             : sum;
    cd_onnx_expand_out(x, 3, all);
    return all;
}

static void skip_layer_norm(cd_expand *x) {
    const uint32_t sum = skipped(x, 4);
    layer_norm(x, sum, cd_onnx_expand_in(x, 2), cd_onnx_expand_has(x, 3) ? x->in[3] : CD_GRAPH_NONE,
               cd_onnx_expand_float(x, "epsilon", 1e-12));
}

static void skip_rms_norm(cd_expand *x) {
    const uint32_t sum = skipped(x, 3);
    cd_onnx_expand_out(x, 0,
                       onnx_expand_rms_norm(x, sum, cd_onnx_expand_in(x, 2), -1,
                                            cd_onnx_expand_float(x, "epsilon", 1e-12)));
}

/* Rows of the tables of words, positions and segments, added and normalised. */
static void embed_layer_norm(cd_expand *x) {
    const uint32_t ids = cd_onnx_expand_in(x, 0), places = cd_onnx_expand_in(x, 3);
    const cd_graph_shape s = cd_onnx_expand_shape(x, ids);
    if (!cd_onnx_expand_rank(x, ids, 2, 2) || !cd_onnx_expand_rank(x, places, 2, 2)) return;
    const uint32_t at = cd_onnx_expand_has(x, 8)
                            ? cd_onnx_expand_gather(x, places, x->in[8], 0)
                            : cd_onnx_expand_slice(x, places, 0, 0, s.dim[1], 1);
    uint32_t sum = cd_onnx_expand_binary(
        x, "Add", cd_onnx_expand_gather(x, cd_onnx_expand_in(x, 2), ids, 0), at);
    if (cd_onnx_expand_has(x, 1) && cd_onnx_expand_has(x, 4))
        sum = cd_onnx_expand_binary(x, "Add", sum, cd_onnx_expand_gather(x, x->in[4], x->in[1], 0));
    layer_norm(x, sum, cd_onnx_expand_in(x, 5), cd_onnx_expand_in(x, 6),
               cd_onnx_expand_float(x, "epsilon", 1e-12));
    if (x->n_out > 1) x->out[1] = CD_GRAPH_NONE;
    if (x->n_out > 2) x->out[2] = sum;
    if (!cd_onnx_expand_wants(x, 1)) return;
    if (cd_onnx_expand_has(x, 7)) { /* how many of each row the mask lets through */
        const int64_t last = 1;
        const uint32_t in[] = {x->in[7], cd_onnx_expand_ints(x, &last, 1)};
        const cd_graph_attr keep = int_attr("keepdims", 0);
        cd_onnx_expand_out(
            x, 1,
            cd_onnx_expand_cast(x, cd_onnx_expand_add(x, "ReduceSum", in, 2, &keep, 1), CD_I32));
    } else {
        const cd_graph_shape rows = {1, {s.dim[0]}};
        int64_t *zero = CD_NEWN(x->r->a, int64_t,
                                (size_t)s.dim[0] < CD_GRAPH_MAX_VALUE ? (size_t)s.dim[0] + 1 : 1);
        uint32_t t = CD_GRAPH_NONE;
        if (s.dim[0] >= CD_GRAPH_MAX_VALUE) cd_onnx_expand_wrong(x, "more rows than are kept");
        else if (!zero && !x->st) x->st = CD_FAIL(x->err, ENOMEM, "a mask");
        else if (!x->st)
            x->st = cd_graph_constant(x->r->g, "mask", CD_I32, &rows, zero, NULL, &t, x->err);
        cd_onnx_expand_out(x, 1, t);
    }
}

/* ---- activations ---- */

static uint32_t gelu_of(cd_expand *x, uint32_t a, bool fast) {
    const cd_graph_attr how = {
        .name = "approximate", .kind = CD_GRAPH_ATTR_STR, .s = fast ? "tanh" : "none"};
    return cd_onnx_expand_add(x, "Gelu", &a, 1, &how, 1);
}

static uint32_t biased(cd_expand *x, uint32_t a, uint32_t k) {
    return cd_onnx_expand_has(x, k) ? cd_onnx_expand_binary(x, "Add", a, x->in[k]) : a;
}

static void gelu(cd_expand *x) {
    cd_onnx_expand_out(x, 0, gelu_of(x, biased(x, cd_onnx_expand_in(x, 0), 1), false));
}
static void fast_gelu(cd_expand *x) {
    cd_onnx_expand_out(x, 0, gelu_of(x, biased(x, cd_onnx_expand_in(x, 0), 1), true));
}

static uint32_t swish_of(cd_expand *x, uint32_t a, double alpha) {
    return cd_onnx_expand_binary(
        x, "Mul", a, cd_onnx_expand_unary(x, "Sigmoid", cd_onnx_expand_times(x, a, alpha)));
}

static void swish(cd_expand *x) {
    cd_onnx_expand_out(x, 0,
                       swish_of(x, cd_onnx_expand_in(x, 0), cd_onnx_expand_float(x, "alpha", 1)));
}
static void quick_gelu(cd_expand *x) {
    cd_onnx_expand_out(
        x, 0,
        swish_of(x, cd_onnx_expand_in(x, 0), cd_onnx_expand_float(x, "alpha", (double)1.702f)));
}
static void swiglu(cd_expand *x) {
    cd_onnx_expand_out(x, 0,
                       cd_onnx_expand_binary(x, "Mul",
                                             swish_of(x, cd_onnx_expand_in(x, 0),
                                                      cd_onnx_expand_float(x, "alpha", 1)),
                                             cd_onnx_expand_in(x, 1)));
}

static void thresholded(cd_expand *x) {
    const uint32_t a = cd_onnx_expand_in(x, 0);
    const uint32_t in[] = {
        cd_onnx_expand_binary(
            x, "Greater", a,
            cd_onnx_expand_real(x, cd_onnx_expand_type(x, a), cd_onnx_expand_float(x, "alpha", 1))),
        a, cd_onnx_expand_real(x, cd_onnx_expand_type(x, a), 0)};
    cd_onnx_expand_out(x, 0, cd_onnx_expand_add(x, "Where", in, 3, NULL, 0));
}

/* Data, bias, what is skipped. */
static void bias_add(cd_expand *x) {
    cd_onnx_expand_out(x, 0, biased(x, biased(x, cd_onnx_expand_in(x, 0), 1), 2));
}

/* Half of the channels is the gate of the other half. */
static void bias_split_gelu(cd_expand *x) {
    const uint32_t a = biased(x, cd_onnx_expand_in(x, 0), 1);
    const cd_graph_shape s = cd_onnx_expand_shape(x, a);
    const int64_t n = s.rank ? s.dim[s.rank - 1] : 0;
    cd_onnx_expand_out(
        x, 0,
        cd_onnx_expand_binary(x, "Mul", cd_onnx_expand_slice(x, a, -1, 0, n / 2, 1),
                              gelu_of(x, cd_onnx_expand_slice(x, a, -1, n / 2, n, 1), false)));
}

/* ---- products with what comes behind ---- */

static uint32_t flipped(cd_expand *x, uint32_t a) {
    int64_t perm[CD_GRAPH_MAX_RANK];
    const uint32_t rank = cd_onnx_expand_shape(x, a).rank;
    if (rank < 2) return a;
    for (uint32_t d = 0; d < rank; d++)
        perm[d] = d + 2 < rank ? d : d + 2 == rank ? rank - 1 : rank - 2;
    return cd_onnx_expand_transpose(x, a, rank, perm);
}

static void fused_matmul(cd_expand *x) {
    uint32_t a = cd_onnx_expand_in(x, 0), b = cd_onnx_expand_in(x, 1);
    if (cd_onnx_expand_int(x, "transBatchA", 0) || cd_onnx_expand_int(x, "transBatchB", 0))
        x->why = "batches that are turned";
    if (cd_onnx_expand_int(x, "transA", 0)) a = flipped(x, a);
    if (cd_onnx_expand_int(x, "transB", 0)) b = flipped(x, b);
    cd_onnx_expand_out(x, 0,
                       cd_onnx_expand_times(x, cd_onnx_expand_binary(x, "MatMul", a, b),
                                            cd_onnx_expand_float(x, "alpha", 1)));
}

static void fused_gemm(cd_expand *x) {
    const uint32_t in[] = {cd_onnx_expand_in(x, 0), cd_onnx_expand_in(x, 1),
                           cd_onnx_expand_has(x, 2) ? x->in[2] : CD_GRAPH_NONE};
    const cd_graph_attr p[] = {int_attr("transA", cd_onnx_expand_int(x, "transA", 0)),
                               int_attr("transB", cd_onnx_expand_int(x, "transB", 0)),
                               real_attr("alpha", cd_onnx_expand_float(x, "alpha", 1)),
                               real_attr("beta", cd_onnx_expand_float(x, "beta", 1))};
    const double of[] = {cd_onnx_expand_float(x, "activation_alpha", 0.01),
                         cd_onnx_expand_float(x, "activation_beta", 0.5)};
    cd_onnx_expand_out(x, 0,
                       onnx_expand_activation(x, cd_onnx_expand_add(x, "Gemm", in, 3, p, 4),
                                              onnx_expand_text(x, "activation"), of, 2));
}

static void fused_conv(cd_expand *x) {
    static const char *const own[] = {"auto_pad",     "dilations", "group",
                                      "kernel_shape", "pads",      "strides"};
    cd_graph_attr *all, some[6];
    uint32_t n, m = 0;
    size_t n_p;
    double p[2] = {0};
    const float *of = onnx_expand_floats(x, "activation_params", &n_p);
    if (!x->st) x->st = cd_onnx_attrs(x->r, x->s, x->n, &all, &n, x->err);
    for (uint32_t i = 0; !x->st && i < n; i++)
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            if (!strcmp(all[i].name, own[k]) && m < 6) some[m++] = all[i];
    for (size_t i = 0; i < n_p && i < 2; i++) p[i] = (double)of[i];
    const uint32_t in[] = {cd_onnx_expand_in(x, 0), cd_onnx_expand_in(x, 1),
                           cd_onnx_expand_has(x, 2) ? x->in[2] : CD_GRAPH_NONE};
    const uint32_t y = biased(x, cd_onnx_expand_add(x, "Conv", in, 3, some, m), 3);
    cd_onnx_expand_out(x, 0,
                       onnx_expand_activation(x, y, onnx_expand_text(x, "activation"), p,
                                              n_p > 2 ? 2 : (uint32_t)n_p));
}

#define CONV "auto_pad dilations group kernel_shape pads strides activation activation_params"
const cd_expansion cd_onnx_expansions_norm[] = {
    {"", "RMSNormalization", rms_norm, "axis epsilon stash_type"},
    {"", "SimplifiedLayerNormalization", rms_norm, "axis epsilon stash_type"},
    {MS, "SimplifiedLayerNormalization", rms_norm, "axis epsilon stash_type"},
    {MS, "SkipLayerNormalization", skip_layer_norm, "epsilon"},
    {MS, "SkipSimplifiedLayerNormalization", skip_rms_norm, "epsilon"},
    {MS, "EmbedLayerNormalization", embed_layer_norm, "epsilon mask_index_type"},
    {"", "Swish", swish, "alpha"},
    {"", "SwiGLU", swiglu, "alpha"},
    {"", "ThresholdedRelu", thresholded, "alpha"},
    {MS, "Gelu", gelu, ""},
    {MS, "BiasGelu", gelu, ""},
    {MS, "FastGelu", fast_gelu, ""},
    {MS, "QuickGelu", quick_gelu, "alpha"},
    {MS, "BiasAdd", bias_add, ""},
    {MS, "BiasSplitGelu", bias_split_gelu, ""},
    {MS, "FusedMatMul", fused_matmul, "alpha transA transB transBatchA transBatchB"},
    {MS, "TransposeMatMul", fused_matmul, "alpha transA transB"},
    {MS, "FusedGemm", fused_gemm,
     "alpha beta transA transB activation activation_alpha activation_beta activation_gamma"},
    {MS, "FusedConv", fused_conv, CONV},
    {NULL, NULL, NULL, NULL},
};

/* Operators on quantised numbers that ONNX Runtime writes: numbers are dequantised, the operator of
 * that name works on reals, and its result is quantised; products of whole numbers are
 * MatMulInteger. */

static uint32_t some(const cd_expand *x, uint32_t k) {
    return cd_onnx_expand_has(x, k) ? x->in[k] : CD_GRAPH_NONE;
}

static uint32_t dequantized(cd_expand *x, uint32_t k) {
    const uint32_t in[] = {cd_onnx_expand_in(x, k), cd_onnx_expand_in(x, k + 1), some(x, k + 2)};
    return cd_onnx_expand_add(x, "DequantizeLinear", in, 3, NULL, 0);
}

/* With the scale that is operand k, and its zero point. */
static void give_quantized(cd_expand *x, uint32_t y, uint32_t k) {
    const uint32_t in[] = {y, cd_onnx_expand_in(x, k), some(x, k + 1)};
    cd_onnx_expand_out(x, 0, cd_onnx_expand_add(x, "QuantizeLinear", in, 3, NULL, 0));
}

/* The float operator's attributes are those of the node by the same name. */
static uint32_t same_op(cd_expand *x, const char *op, const uint32_t *in, uint32_t n_in) {
    cd_graph_attr *all;
    uint32_t n, m = 0;
    if (!x->st) x->st = cd_onnx_attrs(x->r, x->s, x->n, &all, &n, x->err);
    if (x->st) return CD_GRAPH_NONE;
    for (uint32_t i = 0; i < n; i++)
        if (cd_graph_attr_is_known(op, all[i].name)) all[m++] = all[i];
    return cd_onnx_expand_add(x, op, in, n_in, all, m);
}

/* ---- one operand: x, scale, zero point, scale and zero point of the result ---- */
static void unary(cd_expand *x) {
    const char *op = cd_onnx_text(x->n->op_type) + strlen("QLinear");
    if (cd_onnx_expand_int(x, "channels_last", 0)) x->why = "channels that come last";
    const uint32_t in = dequantized(x, 0);
    give_quantized(x, same_op(x, op, &in, 1), 3);
}

static void binary(cd_expand *x) {
    const char *op = cd_onnx_text(x->n->op_type) + strlen("QLinear");
    give_quantized(x, cd_onnx_expand_binary(x, op, dequantized(x, 0), dequantized(x, 3)), 6);
}

/* Scale and zero point of the result, then three for each operand. */
static void concat(cd_expand *x) {
    uint32_t y = dequantized(x, 2);
    const int64_t axis = cd_onnx_expand_int(x, "axis", 0);
    for (uint32_t k = 5; k + 1 < x->n_in && !x->st; k += 3)
        y = cd_onnx_expand_concat(x, y, dequantized(x, k), axis);
    give_quantized(x, y, 0);
}

static void same_domain(cd_expand *x) {
    uint32_t in[3] = {cd_onnx_expand_in(x, 0), cd_onnx_expand_in(x, 1), some(x, 2)};
    cd_onnx_expand_out(x, 0, same_op(x, cd_onnx_text(x->n->op_type), in, 3));
}

/* ---- products ---- */

/* Whole numbers are multiplied, then the sum is scaled and a bias added. */
uint32_t cd_onnx_expand_integer_product(cd_expand *x, const cd_onnx_expand_product *p) {
    const uint32_t in[] = {p->a, p->b, p->a_zero, p->b_zero};
    const uint32_t y =
        cd_onnx_expand_cast(x, cd_onnx_expand_add(x, "MatMulInteger", in, 4, NULL, 0), CD_F32);
    const uint32_t scaled =
        cd_onnx_expand_binary(x, "Mul", y, cd_onnx_expand_binary(x, "Mul", p->a_scale, p->b_scale));
    return p->bias == CD_GRAPH_NONE ? scaled : cd_onnx_expand_binary(x, "Add", scaled, p->bias);
}

/* A, B, their scales, their zero points, bias */
static void integer_to_float(cd_expand *x) {
    const cd_onnx_expand_product p = {cd_onnx_expand_in(x, 0),
                                      cd_onnx_expand_in(x, 1),
                                      cd_onnx_expand_in(x, 2),
                                      cd_onnx_expand_in(x, 3),
                                      some(x, 4),
                                      some(x, 5),
                                      some(x, 6)};
    cd_onnx_expand_out(x, 0, cd_onnx_expand_integer_product(x, &p));
}

/* A in float32, B, its scale and zero point, bias: A is quantised as the network runs. */
static void dynamic_product(cd_expand *x) {
    uint32_t q[3];
    const uint32_t a = cd_onnx_expand_in(x, 0);
    onnx_expand_several(x, "DynamicQuantizeLinear", &a, 1, NULL, 0, q, 3);
    const cd_onnx_expand_product p = {
        q[0], cd_onnx_expand_in(x, 1), q[1], cd_onnx_expand_in(x, 2), q[2], some(x, 3), some(x, 4)};
    cd_onnx_expand_out(x, 0, cd_onnx_expand_integer_product(x, &p));
}

/* A, scale, zero point, B, scale, zero point, C in units of alpha and both scales (it is added to
 * whole numbers), scale and zero point of the result: without these it is float32. */
static void gemm(cd_expand *x) {
    const uint32_t a = dequantized(x, 0), b = dequantized(x, 3), in[] = {a, b};
    uint32_t y = same_op(x, "Gemm", in, 2);
    if (cd_onnx_expand_has(x, 6)) {
        const uint32_t units = cd_onnx_expand_times(
            x, cd_onnx_expand_binary(x, "Mul", cd_onnx_expand_in(x, 1), cd_onnx_expand_in(x, 4)),
            cd_onnx_expand_float(x, "alpha", 1));
        y = cd_onnx_expand_binary(
            x, "Add", y,
            cd_onnx_expand_binary(x, "Mul", cd_onnx_expand_cast(x, x->in[6], CD_F32), units));
    }
    if (cd_onnx_expand_has(x, 7)) give_quantized(x, y, 7);
    else cd_onnx_expand_out(x, 0, y);
}

#define POOL "auto_pad ceil_mode count_include_pad kernel_shape pads strides channels_last"
const cd_expansion cd_onnx_expansions_quantized[] = {
    {MS, "QuantizeLinear", same_domain, "axis saturate"},
    {MS, "DequantizeLinear", same_domain, "axis"},
    {MS, "QLinearAdd", binary, ""},
    {MS, "QLinearMul", binary, ""},
    {MS, "QLinearSigmoid", unary, ""},
    {MS, "QLinearLeakyRelu", unary, "alpha"},
    {MS, "QLinearSoftmax", unary, "axis opset"},
    {MS, "QLinearAveragePool", unary, POOL},
    {MS, "QLinearGlobalAveragePool", unary, "channels_last"},
    {MS, "QLinearReduceMean", unary, "axes keepdims"},
    {MS, "QLinearConcat", concat, "axis"},
    {MS, "QGemm", gemm, "alpha transA transB"},
    {MS, "MatMulIntegerToFloat", integer_to_float, ""},
    {MS, "DynamicQuantizeMatMul", dynamic_product, ""},
    {NULL, NULL, NULL, NULL},
};
