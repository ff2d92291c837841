/* Scalar expressions as text. Tables give the names of types and intrinsics in each dialect; all
 * else is the same for the three. Parentheses are written always: the compiler does not care, and
 * precedence cannot go wrong. */
#include "profiler/codegen/code/code.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- types ---- */

typedef struct {
    cd_dtype type;
    const char *suffix, *name[3], *storage[3]; /* by dialect; storage NULL: as name */
} type_row;

static const type_row types[] = {
    {CD_DTYPE(CD_T_UINT, 1), "u8", {"unsigned char", "uchar", "unsigned char"}, {0}},
    {CD_DTYPE(CD_T_INT, 8), "i8", {"signed char", "char", "signed char"}, {0}},
    {CD_DTYPE(CD_T_INT, 16), "i16", {"short", "short", "short"}, {0}},
    {CD_I32, "i32", {"int", "int", "int"}, {0}},
    {CD_I64, "i64", {"long long", "long", "long long"}, {0}},
    {CD_DTYPE(CD_T_UINT, 8), "u8", {"unsigned char", "uchar", "unsigned char"}, {0}},
    {CD_DTYPE(CD_T_UINT, 16), "u16", {"unsigned short", "ushort", "unsigned short"}, {0}},
    {CD_DTYPE(CD_T_UINT, 32), "u32", {"unsigned", "uint", "unsigned"}, {0}},
    {CD_DTYPE(CD_T_UINT, 64), "u64", {"unsigned long long", "ulong", "unsigned long long"}, {0}},
    {CD_DTYPE(CD_T_FLOAT, 16), "f16", {"_Float16", "half", "__half"}, {0}},
    {CD_F32, "f32", {"float", "float", "float"}, {0}},
    {CD_DTYPE(CD_T_FLOAT, 64), "f64", {"double", "double", "double"}, {0}},
    {CD_DTYPE(CD_T_BFLOAT, 16),
     "f32",
     {"float", "float", "float"},
     {"unsigned short", "ushort", "unsigned short"}},
};

static const type_row *row_of(cd_dtype t) {
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (types[k].type == t) return &types[k];
    return NULL;
}

const char *cd_codegen_value_type(cd_dialect d, cd_dtype t) {
    const type_row *r = row_of(t);
    return r ? r->name[d] : NULL;
}

const char *cd_codegen_storage_type(cd_dialect d, cd_dtype t) {
    const type_row *r = row_of(t);
    return !r ? NULL : r->storage[d] ? r->storage[d] : r->name[d];
}

static bool is_bfloat(cd_dtype t) { return cd_expr_dtype_kind(t) == CD_T_BFLOAT; }
const char *cd_codegen_expr_load_wrap(cd_dtype t) { return is_bfloat(t) ? "cd_bf16_to_f32" : ""; }
const char *cd_codegen_expr_store_wrap(cd_dtype t) { return is_bfloat(t) ? "cd_f32_to_bf16" : ""; }

static cdmpp_status type_error(cd_dtype t, cdmpp_err *err) {
    char name[32];
    return CD_FAIL(err, EUNSUPPORTED, "values of type %s",
                   cd_expr_dtype_format(t, name, sizeof name));
}

/* ---- literals ---- */

static void put_float(cd_buf *out, double v, bool is_double) {
    char text[40];
    if (isnan(v)) {
        cd_buf_puts(out, is_double ? "((double)NAN)" : "NAN");
        return;
    }
    if (isinf(v)) {
        cd_buf_putf(out, "(%s%sINFINITY)", v < 0 ? "-" : "", is_double ? "(double)" : "");
        return;
    }
    snprintf(text, sizeof text, is_double ? "%.17g" : "%.9g", v);
    cd_buf_putf(out, "%s%s%s%s%s", v < 0 ? "(" : "", text, strpbrk(text, ".e") ? "" : ".0",
                is_double ? "" : "f", v < 0 ? ")" : "");
}

static void put_int(cd_dialect d, cd_buf *out, cd_dtype t, int64_t v) {
    const bool wide = cd_expr_dtype_bits(t) > 32;
    const char *suffix = cd_expr_dtype_kind(t) == CD_T_UINT ? (wide ? "UL" : "U") : wide ? "L" : "";
    const char *more = wide && d != CD_DIALECT_OPENCL ? "L" : "";
    if (cd_expr_dtype_kind(t) == CD_T_UINT)
        cd_buf_putf(out, "%llu%s%s", (unsigned long long)v, suffix, more);
    else if (v == INT64_MIN)
        cd_buf_putf(out, "(-%lld%s%s - 1)", (long long)INT64_MAX, suffix, more);
    else if (v == INT32_MIN && !wide) cd_buf_puts(out, "(-2147483647 - 1)");
    else cd_buf_putf(out, v < 0 ? "(%lld%s%s)" : "%lld%s%s", (long long)v, suffix, more);
}

static cdmpp_status write_literal(cd_dialect d, cd_buf *out, const cd_expr *e, cdmpp_err *err) {
    if (!row_of(e->type)) return type_error(e->type, err);
    const bool half = e->type == CD_DTYPE(CD_T_FLOAT, 16);
    if (e->op == CD_INT) {
        put_int(d, out, e->type, e->u.i);
        return CDMPP_OK;
    }
    if (half) cd_buf_putf(out, "((%s)", cd_codegen_value_type(d, e->type));
    put_float(out, e->u.f, cd_expr_dtype_bits(e->type) == 64);
    if (half) cd_buf_puts(out, ")");
    return CDMPP_OK;
}

/* ---- intrinsics ---- */

/* X(TVM's name, C and CUDA without the "f", OpenCL). Names with cd_ are in the prelude. */
#define INTRINSICS(X)                                                                              \
    X("exp", "exp", "exp")                                                                         \
    X("exp2", "exp2", "exp2")                                                                      \
    X("exp10", "cd_exp10", "exp10")                                                                \
    X("log", "log", "log")                                                                         \
    X("log2", "log2", "log2")                                                                      \
    X("log10", "log10", "log10")                                                                   \
    X("log1p", "log1p", "log1p")                                                                   \
    X("sqrt", "sqrt", "sqrt")                                                                      \
    X("rsqrt", "cd_rsqrt", "rsqrt")                                                                \
    X("tanh", "tanh", "tanh")                                                                      \
    X("sigmoid", "cd_sigmoid", "cd_sigmoid")                                                       \
    X("erf", "erf", "erf")                                                                         \
    X("pow", "pow", "pow")                                                                         \
    X("floor", "floor", "floor")                                                                   \
    X("ceil", "ceil", "ceil")                                                                      \
    X("trunc", "trunc", "trunc")                                                                   \
    X("round", "round", "round")                                                                   \
    X("nearbyint", "nearbyint", "rint")                                                            \
    X("fabs", "fabs", "fabs")                                                                      \
    X("sin", "sin", "sin")                                                                         \
    X("cos", "cos", "cos")                                                                         \
    X("tan", "tan", "tan")                                                                         \
    X("asin", "asin", "asin")                                                                      \
    X("acos", "acos", "acos")                                                                      \
    X("atan", "atan", "atan")                                                                      \
    X("atan2", "atan2", "atan2")                                                                   \
    X("sinh", "sinh", "sinh")                                                                      \
    X("cosh", "cosh", "cosh")                                                                      \
    X("asinh", "asinh", "asinh")                                                                   \
    X("acosh", "acosh", "acosh")                                                                   \
    X("atanh", "atanh", "atanh")                                                                   \
    X("fmod", "fmod", "fmod")                                                                      \
    X("hypot", "hypot", "hypot")                                                                   \
    X("copysign", "copysign", "copysign")                                                          \
    X("nextafter", "nextafter", "nextafter")                                                       \
    X("fma", "fma", "fma")

const char *cd_codegen_expr_function(cd_dialect d, const char *name, cd_dtype t) {
    static const struct {
        const char *tvm, *f64, *f32, *opencl;
    } row[] = {
#define CD_X(tvm, c, cl) {tvm, c, c "f", cl},
        INTRINSICS(CD_X)
#undef CD_X
    };
    if (!cd_expr_dtype_is_float(t)) return NULL;
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        if (!strcmp(row[k].tvm, name))
            return d == CD_DIALECT_OPENCL        ? row[k].opencl
                   : cd_expr_dtype_bits(t) == 64 ? row[k].f64
                                                 : row[k].f32;
    return NULL;
}

static cdmpp_status arguments(cd_codegen_expr *w, const cd_expr *e, uint32_t from, cdmpp_err *err) {
    for (uint32_t k = from; k < e->n; k++) {
        if (k > from) cd_buf_puts(w->out, ", ");
        CD_TRY(cd_codegen_expr_write(w, e->a[k], err));
    }
    return CDMPP_OK;
}

/* name(a, b), through float where the type has no functions of its own. */
static cdmpp_status function(cd_codegen_expr *w, const cd_expr *e, const char *name, uint32_t from,
                             cdmpp_err *err) {
    const bool half = e->type == CD_DTYPE(CD_T_FLOAT, 16) && w->dialect != CD_DIALECT_OPENCL;
    if (half) cd_buf_putf(w->out, "((%s)", cd_codegen_value_type(w->dialect, e->type));
    cd_buf_putf(w->out, "%s(", name);
    CD_TRY(arguments(w, e, from, err));
    cd_buf_puts(w->out, half ? "))" : ")");
    return CDMPP_OK;
}

static cdmpp_status infix(cd_codegen_expr *w, const cd_expr *a, const char *op, const cd_expr *b,
                          cdmpp_err *err) {
    cd_buf_puts(w->out, "(");
    CD_TRY(cd_codegen_expr_write(w, a, err));
    cd_buf_putf(w->out, " %s ", op);
    CD_TRY(cd_codegen_expr_write(w, b, err));
    cd_buf_puts(w->out, ")");
    return CDMPP_OK;
}

static cdmpp_status wrapped(cd_codegen_expr *w, const char *before, const cd_expr *a,
                            const char *after, cdmpp_err *err) {
    cd_buf_puts(w->out, before);
    CD_TRY(cd_codegen_expr_write(w, a, err));
    cd_buf_puts(w->out, after);
    return CDMPP_OK;
}

static cdmpp_status choice(cd_codegen_expr *w, const cd_expr *e, cdmpp_err *err) {
    cd_buf_puts(w->out, "(");
    CD_TRY(cd_codegen_expr_write(w, e->a[0], err));
    cd_buf_puts(w->out, " ? ");
    CD_TRY(cd_codegen_expr_write(w, e->a[1], err));
    cd_buf_puts(w->out, " : ");
    CD_TRY(cd_codegen_expr_write(w, e->a[2], err));
    cd_buf_puts(w->out, ")");
    return CDMPP_OK;
}

/* Functions of C's library that TVM's operators call by name. */
static cdmpp_status call_by_name(cd_codegen_expr *w, const cd_expr *e, cdmpp_err *err) {
    if (!e->n || e->a[0]->op != CD_STR) return CD_FAIL(err, EUNSUPPORTED, "a call without a name");
    const char *name = e->a[0]->u.name;
    const size_t n = strlen(name);
    char base[40];
    const bool f32 = n > 1 && name[n - 1] == 'f' && strcmp(name, "erf") != 0;
    snprintf(base, sizeof base, "%.*s", (int)(f32 ? n - 1 : n), name);
    const char *f = n < sizeof base ? cd_codegen_expr_function(w->dialect, base, e->type) : NULL;
    if (!f) return CD_FAIL(err, EUNSUPPORTED, "a call of the function \"%.60s\"", name);
    return function(w, e, f, 1, err);
}

static bool is(const cd_expr *e, const char *name, uint32_t n) {
    return e->n == n && !strcmp(e->u.name, name);
}

static const char *suffix_of(cd_dtype t) {
    const type_row *r = row_of(t);
    return r ? r->suffix : NULL;
}

static cdmpp_status by_suffix(cd_codegen_expr *w, const char *name, const cd_expr *e, cd_dtype t,
                              cdmpp_err *err) {
    if (!suffix_of(t)) return type_error(t, err);
    cd_buf_putf(w->out, "cd_%s_%s(", name, suffix_of(t));
    CD_TRY(arguments(w, e, 0, err));
    cd_buf_puts(w->out, ")");
    return CDMPP_OK;
}

static cdmpp_status bits(cd_codegen_expr *w, const cd_expr *e, bool *done, cdmpp_err *err) {
    static const char *const row[][2] = {{"shift_left", "<<"},
                                         {"shift_right", ">>"},
                                         {"bitwise_and", "&"},
                                         {"bitwise_or", "|"},
                                         {"bitwise_xor", "^"}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        if (is(e, row[k][0], 2)) {
            *done = true;
            return infix(w, e->a[0], row[k][1], e->a[1], err);
        }
    *done = is(e, "bitwise_not", 1);
    return *done ? wrapped(w, "(~", e->a[0], ")", err) : CDMPP_OK;
}

static cdmpp_status test_float(cd_codegen_expr *w, const cd_expr *e, bool *done, cdmpp_err *err) {
    static const char *const name[] = {"isnan", "isinf", "isfinite"};
    for (size_t k = 0; k < sizeof name / sizeof *name; k++)
        if (is(e, name[k], 1)) {
            *done = true;
            cd_buf_putf(w->out, "(%s(", name[k]);
            CD_TRY(cd_codegen_expr_write(w, e->a[0], err));
            cd_buf_puts(w->out, ") != 0)");
        }
    return CDMPP_OK;
}

static cdmpp_status call(cd_codegen_expr *w, const cd_expr *e, cdmpp_err *err) {
    bool done = false;
    if (is(e, "if_then_else", 3)) return choice(w, e, err);
    if (is(e, "likely", 1)) return cd_codegen_expr_write(w, e->a[0], err);
    if (is(e, "abs", 1)) return by_suffix(w, "abs", e, e->type, err);
    if (cd_expr_is_dot4(e)) return function(w, e, "cd_dot4", 0, err);
    if (is(e, "reinterpret", 1)) return by_suffix(w, "as", e, e->type, err);
    if (!strcmp(e->u.name, "call_pure_extern") || !strcmp(e->u.name, "call_extern"))
        return call_by_name(w, e, err);
    CD_TRY(bits(w, e, &done, err));
    if (!done) CD_TRY(test_float(w, e, &done, err));
    if (done) return CDMPP_OK;
    const char *f = cd_codegen_expr_function(w->dialect, e->u.name, e->type);
    if (f) return function(w, e, f, 0, err);
    return CD_FAIL(err, EUNSUPPORTED, "the intrinsic \"%.60s\"", e->u.name);
}

/* ---- operators ---- */

static int log2_of(const cd_expr *e) {
    if (e->op != CD_INT || e->u.i < 1 || (e->u.i & (e->u.i - 1))) return -1;
    return __builtin_ctzll((unsigned long long)e->u.i);
}

/* Signed types shift and mask as TVM's floor division wants it; so do all compilers that are meant
 * here. */
static cdmpp_status floor_op(cd_codegen_expr *w, const cd_expr *e, cdmpp_err *err) {
    const bool div = e->op == CD_FDIV;
    const bool plain = cd_expr_dtype_kind(e->type) == CD_T_UINT ||
                       (cd_codegen_range_of(w->ranges, e->a[0]).lo >= 0 &&
                        cd_codegen_range_of(w->ranges, e->a[1]).lo >= 0);
    const int shift = plain ? -1 : log2_of(e->a[1]);
    if (plain) return infix(w, e->a[0], div ? "/" : "%", e->a[1], err);
    if (shift < 0) return by_suffix(w, div ? "floordiv" : "floormod", e, e->type, err);
    cd_buf_puts(w->out, "(");
    CD_TRY(cd_codegen_expr_write(w, e->a[0], err));
    cd_buf_putf(w->out, div ? " >> %lld)" : " & %lld)",
                div ? (long long)shift : (long long)e->a[1]->u.i - 1);
    return CDMPP_OK;
}

static cdmpp_status cast(cd_codegen_expr *w, const cd_expr *e, cdmpp_err *err) {
    const char *name = cd_codegen_value_type(w->dialect, e->type);
    if (!name) return type_error(e->type, err);
    if (e->type == CD_BOOL) return wrapped(w, "(", e->a[0], " != 0)", err);
    if (is_bfloat(e->type))
        return wrapped(w, "cd_bf16_to_f32(cd_f32_to_bf16((float)", e->a[0], "))", err);
    cd_buf_putf(w->out, "((%s)", name);
    return wrapped(w, "", e->a[0], ")", err);
}

/* Floor division needs ranges, min and max are helpers of the prelude, all others are infix. */
static cdmpp_status binary(cd_codegen_expr *w, const cd_expr *e, cdmpp_err *err) {
    static const char *const text[CD_EXPR_OP_COUNT] = {
        [CD_ADD] = "+", [CD_SUB] = "-",  [CD_MUL] = "*", [CD_DIV] = "/", [CD_MOD] = "%",
        [CD_EQ] = "==", [CD_NE] = "!=",  [CD_LT] = "<",  [CD_LE] = "<=", [CD_GT] = ">",
        [CD_GE] = ">=", [CD_AND] = "&&", [CD_OR] = "||"};
    const bool is_float = cd_expr_dtype_is_float(e->a[0]->type);
    switch ((cd_expr_op)e->op) {
    case CD_FDIV:
    case CD_FMOD:
        if (is_float) return CD_FAIL(err, EUNSUPPORTED, "floor division of floats");
        return floor_op(w, e, err);
    case CD_MOD:
        if (is_float) return CD_FAIL(err, EUNSUPPORTED, "modulo of floats");
        return infix(w, e->a[0], "%", e->a[1], err);
    case CD_MIN:
    case CD_MAX: return by_suffix(w, e->op == CD_MIN ? "min" : "max", e, e->type, err);
    default: return infix(w, e->a[0], text[e->op], e->a[1], err);
    }
}

cdmpp_status cd_codegen_expr_write(cd_codegen_expr *w, const cd_expr *e, cdmpp_err *err) {
    switch ((cd_expr_op)e->op) {
    case CD_INT:
    case CD_FLOAT: return write_literal(w->dialect, w->out, e, err);
    case CD_VAR: return w->var(w, e, err);
    case CD_LOAD: return w->load(w, e, err);
    case CD_NOT: return wrapped(w, "(!", e->a[0], ")", err);
    case CD_SELECT: return choice(w, e, err);
    case CD_CAST: return cast(w, e, err);
    case CD_CALL: return call(w, e, err);
    case CD_STR: return CD_FAIL(err, EUNSUPPORTED, "text among values");
    default: return row_of(e->type) ? binary(w, e, err) : type_error(e->type, err);
    }
}
