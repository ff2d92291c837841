/* Arithmetic on known content, as a run time would do it: integers wrap, float32 rounds after each
 * operation. Shapes that exporters compute with Shape, Gather, Mul, Concat become known in this
 * way; what has no exact result here stays unknown. */
#include <math.h>
#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

/* Content of folded tensors: memory for it, walking over positions, wrapping and rounding to the
 * type. There is a limit for one tensor and one for all, so that a hostile file cannot use up the
 * memory. */

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

/* Output 0 has operand i's content. */
static void graph_call_share_content(cd_graph_call *c, uint32_t i) {
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

/* Reductions of known content: ReduceProd over a shape is how many exporters ask for a size. */

enum { SUM, MEAN, PROD, MIN, MAX, KINDS };
static const char *const names[KINDS] = {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMin",
                                         "ReduceMax"};

static double real_step(int kind, double a, double b) {
    switch (kind) {
    case PROD: return a * b;
    case MIN: return a < b ? a : b;
    case MAX: return a > b ? a : b;
    default: return a + b;
    }
}

static int64_t int_step(int kind, int64_t a, int64_t b) {
    switch (kind) {
    case PROD: return (int64_t)((uint64_t)a * (uint64_t)b);
    case MIN: return a < b ? a : b;
    case MAX: return a > b ? a : b;
    default: return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

/* Element of the result that operand element `at` belongs to. */
static int64_t target(const cd_graph_shape *x, uint32_t gone, const int64_t *at) {
    int64_t k = 0;
    for (uint32_t d = 0; d < x->rank; d++)
        if (!(gone >> d & 1)) k = k * x->dim[d] + at[d];
    return k;
}

static uint32_t reduced(const cd_graph_call *c) {
    const cd_graph_attr *a = cd_graph_call_attr(c, "axes");
    uint32_t mask = 0;
    for (uint32_t i = 0; a && i < a->n; i++) mask |= 1U << a->ints[i];
    return mask;
}

/* One pass over the operand: each element goes to the element of the result that it belongs to.
 * `seen` tells the first one, so no identity is needed. A mean of integers is truncated, as C
 * division does. */
cdmpp_status cd_graph_fold_reduce(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    const int64_t n = cd_graph_shape_elements(&x->shape),
                  m = cd_graph_shape_elements(&c->out[0].shape);
    const uint32_t gone = reduced(c);
    int64_t *v, at[CD_GRAPH_MAX_RANK] = {0};
    double *f;
    int kind = 0;
    while (kind < KINDS && strcmp(names[kind], c->op)) kind++;
    if (kind == KINDS || n == 0 || m == 0) return CDMPP_OK;
    CD_TRY(cd_graph_call_content(c, 0, &v, &f, err));
    bool *seen = CD_NEWN(&c->g->arena, bool, (size_t)(v || f ? m : 0) + 1);
    if (!seen) return CD_FAIL(err, ENOMEM, "a reduction");
    for (int64_t k = 0; k < n && (v || f); k++, cd_graph_shape_next(&x->shape, at)) {
        const int64_t j = target(&x->shape, gone, at);
        if (f)
            f[j] = seen[j] ? cd_graph_type_round(x->dtype, real_step(kind, f[j], x->fvalue[k]))
                           : x->fvalue[k];
        if (v) v[j] = seen[j] ? int_step(kind, v[j], x->value[k]) : x->value[k];
        seen[j] = true;
    }
    for (int64_t k = 0; k < m && kind == MEAN; k++) {
        if (f) f[k] = cd_graph_type_round(x->dtype, f[k] / ((double)n / (double)m));
        if (v) v[k] /= n / m;
    }
    for (int64_t k = 0; k < m && v; k++) v[k] = cd_graph_type_wrap(x->dtype, v[k]);
    return CDMPP_OK;
}

typedef bool int_op(int64_t a, int64_t b, int64_t *out); /* false: not defined */
typedef double real_op(double a, double b);

static bool add_i(int64_t a, int64_t b, int64_t *o) {
    *o = (int64_t)((uint64_t)a + (uint64_t)b);
    return true;
}
static bool sub_i(int64_t a, int64_t b, int64_t *o) {
    *o = (int64_t)((uint64_t)a - (uint64_t)b);
    return true;
}
static bool mul_i(int64_t a, int64_t b, int64_t *o) {
    *o = (int64_t)((uint64_t)a * (uint64_t)b);
    return true;
}
static bool div_i(int64_t a, int64_t b, int64_t *o) {
    if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
    *o = a / b;
    return true;
}
/* Mod of ONNX with fmod 0: the sign of the divisor, as Python */
static bool mod_i(int64_t a, int64_t b, int64_t *o) {
    if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
    *o = cd_expr_floormod(a, b);
    return true;
}
static bool fmod_i(int64_t a, int64_t b, int64_t *o) {
    if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
    *o = a % b;
    return true;
}
static bool pow_i(int64_t a, int64_t b, int64_t *o) {
    int64_t r = 1;
    if (b < 0 || b > 64) return false;
    while (b-- > 0) mul_i(r, a, &r);
    *o = r;
    return true;
}
static bool min_i(int64_t a, int64_t b, int64_t *o) {
    *o = a < b ? a : b;
    return true;
}
static bool max_i(int64_t a, int64_t b, int64_t *o) {
    *o = a > b ? a : b;
    return true;
}
static bool and_i(int64_t a, int64_t b, int64_t *o) {
    *o = a & b;
    return true;
}
static bool or_i(int64_t a, int64_t b, int64_t *o) {
    *o = a | b;
    return true;
}
static bool xor_i(int64_t a, int64_t b, int64_t *o) {
    *o = a ^ b;
    return true;
}
static bool eq_i(int64_t a, int64_t b, int64_t *o) {
    *o = a == b;
    return true;
}
static bool lt_i(int64_t a, int64_t b, int64_t *o) {
    *o = a < b;
    return true;
}
static bool le_i(int64_t a, int64_t b, int64_t *o) {
    *o = a <= b;
    return true;
}
static bool gt_i(int64_t a, int64_t b, int64_t *o) {
    *o = a > b;
    return true;
}
static bool ge_i(int64_t a, int64_t b, int64_t *o) {
    *o = a >= b;
    return true;
}
static double add_f(double a, double b) { return a + b; }
static double sub_f(double a, double b) { return a - b; }
static double mul_f(double a, double b) { return a * b; }
static double div_f(double a, double b) { return a / b; }
static double eq_f(double a, double b) { return a == b; }
static double lt_f(double a, double b) { return a < b; }
static double le_f(double a, double b) { return a <= b; }
static double gt_f(double a, double b) { return a > b; }
static double ge_f(double a, double b) { return a >= b; }

static const struct {
    const char *op;
    int_op *i;
    real_op *f; /* NULL: of integers alone */
} ops[] = {{"Add", add_i, add_f},       {"Sub", sub_i, sub_f},
           {"Mul", mul_i, mul_f},       {"Div", div_i, div_f},
           {"Mod", mod_i, fmod},        {"Pow", pow_i, pow},
           {"Min", min_i, fmin},        {"Max", max_i, fmax},
           {"Sum", add_i, add_f},       {"And", and_i, NULL},
           {"Or", or_i, NULL},          {"Xor", xor_i, NULL},
           {"BitwiseAnd", and_i, NULL}, {"BitwiseOr", or_i, NULL},
           {"BitwiseXor", xor_i, NULL}, {"Equal", eq_i, eq_f},
           {"Less", lt_i, lt_f},        {"LessOrEqual", le_i, le_f},
           {"Greater", gt_i, gt_f},     {"GreaterOrEqual", ge_i, ge_f}};

static bool find(const cd_graph_call *c, int_op **i, real_op **f) {
    const cd_graph_attr *fm = cd_graph_call_attr(c, "fmod");
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        if (!strcmp(c->op, ops[k].op)) {
            *i = fm && fm->i ? fmod_i : ops[k].i;
            *f = ops[k].f;
            return true;
        }
    return false;
}

/* Element `at` of the operands' fold from the left; false: not defined. */
static bool element(const cd_graph_call *c, uint32_t rank, const int64_t *at, int_op *op,
                    int64_t *out) {
    for (uint32_t i = 0; i < c->n_in; i++) {
        const cd_graph_tensor *x = cd_graph_call_input(c, i);
        const int64_t v = x->value[cd_graph_shape_offset(&x->shape, rank, at)];
        if (i == 0) *out = v;
        else if (!op(*out, v, out)) return false;
    }
    *out = cd_graph_type_wrap(c->out[0].dtype, *out);
    return true;
}

static double real_element(const cd_graph_call *c, uint32_t rank, const int64_t *at, real_op *op) {
    double out = 0;
    for (uint32_t i = 0; i < c->n_in; i++) {
        const cd_graph_tensor *x = cd_graph_call_input(c, i);
        const double v = x->fvalue[cd_graph_shape_offset(&x->shape, rank, at)];
        out = i == 0 ? v : cd_graph_type_round(x->dtype, op(out, v));
    }
    return out;
}

/* All operands integers, or all reals? */
static bool alike(const cd_graph_call *c, bool real) {
    for (uint32_t i = 0; i < c->n_in; i++)
        if (!cd_graph_call_input(c, i) || (cd_graph_call_input(c, i)->fvalue != NULL) != real)
            return false;
    return true;
}

/* Comparisons of reals give integers, so there are three cases: reals, integers from reals,
 * integers. A missing function or operands of mixed kinds leave the content unknown. */
cdmpp_status cd_graph_fold_binary(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_shape *s = &c->out[0].shape;
    int64_t *v, at[CD_GRAPH_MAX_RANK] = {0}, n = cd_graph_shape_elements(s);
    double *f;
    int_op *i = NULL;
    real_op *r = NULL;
    const bool real = cd_graph_call_input(c, 0)->fvalue != NULL;
    if (!find(c, &i, &r) || !alike(c, real) || (real && !r)) return CDMPP_OK;
    CD_TRY(cd_graph_call_content(c, 0, &v, &f, err));
    if (!v && !f) return CDMPP_OK;
    for (int64_t k = 0; k < n; k++, cd_graph_shape_next(s, at)) {
        int64_t x = 0;
        if (f) f[k] = real_element(c, s->rank, at, r);
        else if (real) v[k] = real_element(c, s->rank, at, r) != 0;
        else if (element(c, s->rank, at, i, &x)) v[k] = x;
        else {
            c->out[0].value = NULL; /* division by zero: left to the run time */
            return CDMPP_OK;
        }
    }
    return CDMPP_OK;
}

cdmpp_status cd_graph_fold_compare(cd_graph_call *c, cdmpp_err *err) {
    return cd_graph_fold_binary(c, err);
}

static double sign(double x) { return (x > 0) - (x < 0); }
static double neg(double x) { return -x; }
static double reciprocal(double x) { return 1 / x; }

static const struct {
    const char *op;
    double (*f)(double);
} functions[] = {{"Floor", floor},     {"Ceil", ceil},
                 {"Round", nearbyint}, {"Sqrt", sqrt},
                 {"Exp", exp},         {"Log", log},
                 {"Abs", fabs},        {"Neg", neg},
                 {"Sign", sign},       {"Reciprocal", reciprocal},
                 {"Sin", sin},         {"Cos", cos},
                 {"Tanh", tanh}};

static bool int_unary(const char *op, int64_t a, int64_t *out) {
    if (!strcmp(op, "Neg") || (!strcmp(op, "Abs") && a < 0)) *out = (int64_t)(0 - (uint64_t)a);
    else if (!strcmp(op, "Abs")) *out = a;
    else if (!strcmp(op, "Sign")) *out = (a > 0) - (a < 0);
    else if (!strcmp(op, "Not")) *out = !a;
    else if (!strcmp(op, "BitwiseNot")) *out = ~a;
    else return false;
    return true;
}

/* For integers int_unary is asked once with 0 whether it has the operator. */
cdmpp_status cd_graph_fold_unary(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    int64_t *v, n = cd_graph_shape_elements(&x->shape), ignored;
    double *f;
    size_t k = 0;
    while (k < sizeof functions / sizeof *functions && strcmp(c->op, functions[k].op)) k++;
    if (x->fvalue ? k == sizeof functions / sizeof *functions : !int_unary(c->op, 0, &ignored))
        return CDMPP_OK;
    CD_TRY(cd_graph_call_content(c, 0, &v, &f, err));
    for (int64_t i = 0; i < n && f && x->fvalue; i++)
        f[i] = cd_graph_type_round(x->dtype, functions[k].f(x->fvalue[i]));
    for (int64_t i = 0; i < n && v && x->value; i++) {
        int_unary(c->op, x->value[i], &v[i]);
        v[i] = cd_graph_type_wrap(c->out[0].dtype, v[i]);
    }
    return CDMPP_OK;
}

/* The branches must both be integers or both reals; the condition chooses element by element, with
 * broadcasting. */
cdmpp_status cd_graph_fold_where(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *p = cd_graph_call_input(c, 0), *a = cd_graph_call_input(c, 1),
                          *b = cd_graph_call_input(c, 2);
    const cd_graph_shape *s = &c->out[0].shape;
    int64_t *v, at[CD_GRAPH_MAX_RANK] = {0}, n = cd_graph_shape_elements(s);
    double *f;
    if (!p->value || (a->value != NULL) != (b->value != NULL)) return CDMPP_OK;
    CD_TRY(cd_graph_call_content(c, 0, &v, &f, err));
    for (int64_t k = 0; k < n && (v || f); k++, cd_graph_shape_next(s, at)) {
        const cd_graph_tensor *x = p->value[cd_graph_shape_offset(&p->shape, s->rank, at)] ? a : b;
        const int64_t j = cd_graph_shape_offset(&x->shape, s->rank, at);
        if (f) f[k] = x->fvalue[j];
        else v[k] = x->value[j];
    }
    return CDMPP_OK;
}

/* Reals become integers towards zero; what no integer of 64 bits can hold stays unknown. */
cdmpp_status cd_graph_fold_cast(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    const cd_dtype t = c->out[0].dtype;
    int64_t *v, n = cd_graph_shape_elements(&x->shape);
    double *f;
    for (int64_t k = 0; k < n && x->fvalue && !cd_expr_dtype_is_float(t); k++)
        if (!(fabs(x->fvalue[k]) < 9e18)) return CDMPP_OK;
    CD_TRY(cd_graph_call_content(c, 0, &v, &f, err));
    for (int64_t k = 0; k < n && f; k++)
        f[k] = cd_graph_type_round(t, x->fvalue ? x->fvalue[k] : (double)x->value[k]);
    for (int64_t k = 0; k < n && v; k++) {
        if (t == CD_BOOL) v[k] = x->fvalue ? x->fvalue[k] != 0 : x->value[k] != 0;
        else v[k] = cd_graph_type_wrap(t, x->fvalue ? (int64_t)x->fvalue[k] : x->value[k]);
    }
    return CDMPP_OK;
}

/* One integer of operand i; false: absent. */
static bool int_bound(const cd_graph_call *c, uint32_t i, int64_t *v) {
    const cd_graph_tensor *t = cd_graph_call_input(c, i);
    if (!t || !t->value || cd_graph_shape_elements(&t->shape) != 1) return false;
    *v = t->value[0];
    return true;
}

cdmpp_status cd_graph_fold_clip(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    int64_t *v, lo = INT64_MIN, hi = INT64_MAX, n = cd_graph_shape_elements(&x->shape);
    double *f;
    if (!x->value) return CDMPP_OK; /* reals: weights, no shapes */
    if (cd_graph_call_input(c, 1) && !int_bound(c, 1, &lo)) return CDMPP_OK;
    if (cd_graph_call_input(c, 2) && !int_bound(c, 2, &hi)) return CDMPP_OK;
    if (lo > hi) lo = hi;
    CD_TRY(cd_graph_call_content(c, 0, &v, &f, err));
    for (int64_t k = 0; k < n && v; k++)
        v[k] = x->value[k] > hi ? hi : x->value[k] < lo ? lo : x->value[k];
    return CDMPP_OK;
}

cdmpp_status cd_graph_fold_share(cd_graph_call *c, cdmpp_err *err) {
    (void)err;
    graph_call_share_content(c, 0);
    return CDMPP_OK;
}
