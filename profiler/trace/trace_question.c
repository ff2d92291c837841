/* trace_question -- the operators of the tables (features/operators) behind calls of PyTorch and
 * rows of cutlass_profiler. What differs from the tables' operators in anything (a mask, groups, a
 * dilation, TF32, a broadcast) is none of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/trace/trace_internal.h"

enum { MOST_INPUTS = 16, MOST_DIMS = 8 };

typedef struct call {
    size_t n; /* inputs */
    size_t rank[MOST_INPUTS];
    double dim[MOST_INPUTS][MOST_DIMS];
    cd_str value[MOST_INPUTS]; /* of a plain argument: "[1, 1]", "False"; empty for tensors */
} call;

static bool whole(double v) { return v >= 1 && v <= 0x1p53 && v == floor(v); }

static bool read_dims(call *c, const cd_json *dims) {
    if (!dims || dims->kind != CD_JSON_ARR || dims->n > MOST_INPUTS) return false;
    for (const cd_json *t = dims->u.child; t; t = t->next, c->n++) {
        if (t->kind != CD_JSON_ARR || t->n > MOST_DIMS) return false;
        for (const cd_json *d = t->u.child; d; d = d->next) {
            if (d->kind != CD_JSON_INT || !whole((double)d->u.i)) return false;
            c->dim[c->n][c->rank[c->n]++] = (double)d->u.i;
        }
    }
    return true;
}

/* All tensors have one type of the tables. */
static bool read_type(const cd_json *types, cd_library_op_dtype *out) {
    static const char *const name[] = {"float", "c10::Half", "c10::BFloat16"};
    int found = -1;
    for (const cd_json *t = types && types->kind == CD_JSON_ARR ? types->u.child : NULL; t;
         t = t->next) {
        if (t->kind != CD_JSON_STR) return false;
        int k = -1;
        for (int i = 0; i < 3; i++) k = cd_str_is(t->u.s, name[i]) ? i : k;
        if (k < 0 && (!t->u.s.n || cd_str_is(t->u.s, "Scalar") || cd_str_is(t->u.s, "ScalarList")))
            continue;
        if (k < 0 || (found >= 0 && found != k)) return false;
        found = k;
    }
    *out = (cd_library_op_dtype)found;
    return found >= 0;
}

static void read_values(call *c, const cd_json *values) {
    size_t i = 0;
    for (const cd_json *v = values && values->kind == CD_JSON_ARR ? values->u.child : NULL;
         v && i < c->n; v = v->next, i++)
        if (v->kind == CD_JSON_STR) c->value[i] = v->u.s;
}

/* ---- products ---- */
static bool product(const call *c, size_t a, size_t b, cd_library_op_record *o) {
    const size_t r = c->rank[a];
    if (b >= c->n || r != c->rank[b] || (r != 2 && r != 3)) return false;
    const double *x = c->dim[a], *y = c->dim[b];
    if (x[r - 1] != y[r - 2] || (r == 3 && x[0] != y[0])) return false;
    o->kind = r == 3 ? CD_LIBRARY_OP_BMM : CD_LIBRARY_OP_LINEAR;
    o->b = r == 3 ? x[0] : 1;
    o->m = x[r - 2];
    o->k = x[r - 1];
    o->n = y[r - 1];
    return true;
}

/* ---- rows ---- */
static bool rows(const call *c, cd_library_op_kind kind, cd_library_op_record *o) {
    const size_t r = c->rank[0];
    if (!r) return false;
    o->kind = kind;
    o->b = o->k = o->m = 1;
    o->n = c->dim[0][r - 1];
    for (size_t i = 0; i + 1 < r; i++) o->m *= c->dim[0][i];
    return whole(o->m);
}

/* Two tensors of one shape; a tensor and a number is the other kind. */
static bool two(const call *c, cd_library_op_kind both, cd_library_op_kind one,
                cd_library_op_record *o) {
    if (c->n < 2) return false;
    if (!c->rank[1]) return c->value[1].n && rows(c, one, o);
    return c->rank[0] == c->rank[1] && !memcmp(c->dim[0], c->dim[1], c->rank[0] * sizeof(double)) &&
           rows(c, both, o);
}

/* Numbers of "[1, 1]" or "1": how many, at most `most`. */
static size_t numbers(cd_str s, double *out, size_t most) {
    size_t n = 0;
    char text[64], *end;
    if (s.n + 1 > sizeof text) return 0;
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    for (char *p = text + strspn(text, "[ "); *p && *p != ']' && n < most;
         p = end + strspn(end, ", ")) {
        out[n++] = strtod(p, &end);
        if (end == p) return 0;
    }
    return n;
}

static bool last_dim(const call *c, size_t i) {
    double d;
    return i < c->n && numbers(c->value[i], &d, 1) == 1 && (d == -1 || d == (double)c->rank[0] - 1);
}

/* Normalised over the last dimension alone. */
static bool layer_norm(const call *c, cd_library_op_record *o) {
    double d[2];
    return c->n > 1 && c->rank[0] && numbers(c->value[1], d, 2) == 1 &&
           d[0] == c->dim[0][c->rank[0] - 1] && rows(c, CD_LIBRARY_OP_LN, o);
}

/* ---- convolutions ---- */
/* Both numbers of an argument are one number. */
static bool square(const call *c, size_t i, double *out) {
    double d[3];
    const size_t n = i < c->n ? numbers(c->value[i], d, 3) : 0;
    *out = n ? d[0] : (double)NAN;
    return n == 1 || (n == 2 && d[0] == d[1]);
}

static bool conv_of(double batch, double cin, double size, double cout, double ksize, double stride,
                    double pad, cd_library_op_record *o) {
    if (!whole(batch) || !whole(cin) || !whole(size) || !whole(cout) || !whole(ksize) ||
        !whole(stride) || !(pad == 0 || whole(pad)))
        return false;
    const double side = floor((size + 2 * pad - ksize) / stride) + 1;
    *o = (cd_library_op_record){.kind = CD_LIBRARY_OP_CONV,
                                .dtype = o->dtype,
                                .b = 1,
                                .m = batch * side * side,
                                .n = cout,
                                .k = cin * ksize * ksize,
                                .cin = cin,
                                .ksize = ksize,
                                .stride = stride,
                                .pad = pad,
                                .size = size};
    return side >= 1 && whole(o->m) && whole(o->k);
}

/* Positions of the arguments differ between the operators. */
static bool convolution(const call *c, size_t stride, size_t pad, size_t dilation, size_t groups,
                        size_t transposed, cd_library_op_record *o) {
    double s, p, d, g = 0;
    const double *x = c->dim[0], *w = c->dim[1];
    if (c->n < 2 || c->rank[0] != 4 || c->rank[1] != 4 || x[2] != x[3] || w[2] != w[3] ||
        w[1] != x[1])
        return false;
    if (!square(c, stride, &s) || !square(c, pad, &p) || !square(c, dilation, &d) || d != 1)
        return false;
    if (groups >= c->n || numbers(c->value[groups], &g, 1) != 1 || g != 1) return false;
    if (transposed && (transposed >= c->n || !cd_str_is(c->value[transposed], "False")))
        return false;
    return conv_of(x[0], x[1], x[2], w[0], w[2], s, p, o);
}

static bool named(cd_str name, const char *words) {
    static const char space[] = "aten::";
    const size_t n = sizeof space - 1;
    return name.n > n && !memcmp(name.p, space, n) &&
           cd_enum_names_find(words, (cd_str){name.p + n, name.n - n}) >= 0;
}

bool cd_trace_question_of(cd_str name, const cd_json *dims, const cd_json *types,
                          const cd_json *values, cd_library_op_record *out) {
    call c = {0};
    *out = (cd_library_op_record){0};
    if (!read_dims(&c, dims) || !c.n || !read_type(types, &out->dtype)) return false;
    read_values(&c, values);
    if (named(name, "mm|bmm")) return product(&c, 0, 1, out);
    if (named(name, "addmm|baddbmm")) return product(&c, 1, 2, out);
    if (named(name, "relu|relu_")) return rows(&c, CD_LIBRARY_OP_RELU, out);
    if (named(name, "clamp_min|clamp_min_"))
        return c.n > 1 && cd_str_is(c.value[1], "0") && rows(&c, CD_LIBRARY_OP_RELU, out);
    if (named(name, "gelu")) return rows(&c, CD_LIBRARY_OP_GELU, out);
    if (named(name, "tanh|tanh_")) return rows(&c, CD_LIBRARY_OP_TANH, out);
    if (named(name, "_softmax")) return last_dim(&c, 1) && rows(&c, CD_LIBRARY_OP_SOFTMAX, out);
    if (named(name, "native_layer_norm")) return layer_norm(&c, out);
    if (named(name, "add|add_")) return two(&c, CD_LIBRARY_OP_ADD, CD_LIBRARY_OP_ADDU, out);
    if (named(name, "mul|mul_")) return two(&c, CD_LIBRARY_OP_MUL, CD_LIBRARY_OP_MULU, out);
    if (named(name, "div|div_")) return two(&c, CD_LIBRARY_OP_DIV, CD_LIBRARY_OP_DIVU, out);
    if (named(name, "pow|pow_")) return two(&c, CD_LIBRARY_OP_POW, CD_LIBRARY_OP_POWU, out);
    if (named(name, "cudnn_convolution")) return convolution(&c, 3, 2, 4, 5, 0, out);
    if (named(name, "convolution|_convolution")) return convolution(&c, 3, 4, 5, 8, 6, out);
    return named(name, "conv2d") && convolution(&c, 3, 4, 5, 6, 0, out);
}

/* ---- CUTLASS ---- */
static bool starts(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

/* "f16:column" is float16. Tensor cores take float32 as TF32. */
static bool cutlass_type(const cd_trace_cutlass *c, cd_library_op_dtype *out) {
    static const char *const name[] = {"f32", "f16", "bf16"};
    const size_t n = strcspn(c->a, ":");
    for (int i = 0; i < 3; i++)
        if (strlen(name[i]) == n && starts(c->a, name[i]) && starts(c->b, name[i]) &&
            strcspn(c->b, ":") == n)
            return *out = (cd_library_op_dtype)i, i > 0 || !strcmp(c->op_class, "simt");
    return false;
}

bool cd_trace_cutlass_question(const cd_trace_cutlass *c, cd_library_op_record *o) {
    *o = (cd_library_op_record){0};
    if (!cutlass_type(c, &o->dtype)) return false;
    if (!strcmp(c->kind, "gemm")) {
        o->b = isnan(c->batch) ? 1 : c->batch;
        o->m = c->m, o->n = c->n, o->k = c->k;
        o->kind = o->b > 1 ? CD_LIBRARY_OP_BMM : CD_LIBRARY_OP_LINEAR;
        return whole(o->b) && whole(o->m) && whole(o->n) && whole(o->k);
    }
    const bool plain = c->h == c->w && c->r == c->s && c->pad_h == c->pad_w &&
                       c->stride_h == c->stride_w && c->dilation_h == 1 && c->dilation_w == 1 &&
                       (isnan(c->groups) || c->groups == 1);
    return !strcmp(c->kind, "conv2d") && !strcmp(c->conv_kind, "fprop") && plain &&
           conv_of(c->n, c->c, c->h, c->k, c->r, c->stride_h, c->pad_h, o);
}
