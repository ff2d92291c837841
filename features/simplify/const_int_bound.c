/* Constant bounds of integer expressions: TVM's const_int_bound. The two
 * infinities absorb; sums and products that would pass them stop at them. */
#include <math.h>

#include "features/simplify/simplify_internal.h"

static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }
static bool inf(int64_t x) { return x == CD_INF || x == CD_NEG_INF; }

int64_t cd_const_int_bound_add(int64_t x, int64_t y) {
    if (inf(x)) return x;
    if (inf(y)) return y;
    int64_t r;
    if (__builtin_add_overflow(x, y, &r) || r < CD_NEG_INF) return x > 0 ? CD_INF : CD_NEG_INF;
    return r;
}

int64_t cd_const_int_bound_mul(int64_t x, int64_t y) {
    int64_t r;
    if (!__builtin_mul_overflow(x, y, &r) && r >= CD_NEG_INF) return r;
    return (x > 0) == (y > 0) ? CD_INF : CD_NEG_INF;
}

static int64_t trunc_div(int64_t x, int64_t y) {
    return inf(x) ? (y > 0 ? x : -x) : cd_trunc_div(x, y);
}
static int64_t floor_div(int64_t x, int64_t y) {
    return inf(x) ? (y > 0 ? x : -x) : cd_expr_floordiv(x, y);
}
static int64_t shift_right(int64_t x, int64_t y) { return inf(x) ? x : x >> y; }

static int64_t shift_left(int64_t x, int64_t y) { /* x, y >= 0 */
    if (inf(x)) return x;
    const int bits = x ? 64 - __builtin_clzll((unsigned long long)x) : 0;
    return bits + y < 64 ? (int64_t)((uint64_t)x << y) : CD_INF;
}

cd_bound cd_const_int_bound_type(cd_dtype t) {
    const unsigned kind = cd_expr_dtype_kind(t), bits = cd_expr_dtype_bits(t);
    if (kind != CD_T_INT && kind != CD_T_UINT) return (cd_bound){CD_NEG_INF, CD_INF};
    const unsigned v = bits - (kind == CD_T_INT);
    const int64_t hi = v >= 63 ? CD_INF : ((int64_t)1 << v) - 1;
    if (kind == CD_T_UINT) return (cd_bound){0, hi};
    return (cd_bound){v >= 63 ? CD_NEG_INF : -hi - 1, hi};
}

cd_bound cd_const_int_bound_unite(cd_bound a, cd_bound b) {
    return (cd_bound){lesser(a.lo, b.lo), greater(a.hi, b.hi)};
}
static cd_bound meet(cd_bound a, cd_bound b) {
    return (cd_bound){greater(a.lo, b.lo), lesser(a.hi, b.hi)};
}

/* Extremes over the four corners, for an op monotonic in each operand. */
static cd_bound corners(cd_bound a, cd_bound b, int64_t (*op)(int64_t, int64_t)) {
    if (b.lo == b.hi) { /* a literal, mostly: two corners */
        const int64_t x = op(a.lo, b.lo), y = op(a.hi, b.lo);
        return (cd_bound){lesser(x, y), greater(x, y)};
    }
    const int64_t p = op(a.lo, b.lo), q = op(a.hi, b.hi), r = op(a.lo, b.hi), s = op(a.hi, b.lo);
    return (cd_bound){lesser(lesser(p, q), lesser(r, s)), greater(greater(p, q), greater(r, s))};
}

static cd_bound divide(cd_bound a, cd_bound b, cd_dtype t, int64_t (*op)(int64_t, int64_t)) {
    if (b.lo > 0 || b.hi < 0) return corners(a, b, op);
    const cd_bound all = cd_const_int_bound_type(t);
    if (b.lo == 0 && b.hi == 0) return all; /* division by zero */
    if (cd_expr_dtype_kind(t) == CD_T_UINT) return corners(a, (cd_bound){1, b.hi}, op);
    /* The divisor range holds zero: its two sides apart, a missing one by the type's range. */
    const cd_bound neg = {b.lo < 0 ? b.lo : all.lo, b.lo < 0 ? -1 : all.hi};
    const cd_bound pos = {b.hi > 0 ? 1 : all.lo, b.hi > 0 ? b.hi : all.hi};
    return cd_const_int_bound_unite(corners(a, neg, op), corners(a, pos, op));
}

static cd_bound modulo(cd_bound a, cd_bound b, const cd_expr *e) {
    const int64_t cap = cd_const_int_bound_add(b.hi, -1);
    if (b.lo > 0) {
        if (a.lo >= 0) return a.hi < b.lo ? a : (cd_bound){0, lesser(a.hi, cap)};
        if (e->op == CD_FMOD) return (cd_bound){0, cap};
        return (cd_bound){greater(a.lo, -cap), lesser(greater(a.hi, 0), cap)};
    }
    const cd_bound all = cd_const_int_bound_type(e->type);
    if (e->op == CD_MOD) return all;
    return meet((cd_bound){lesser(0, cd_const_int_bound_add(b.lo, 1)), greater(0, cap)}, all);
}

static cd_bound binary(cd_analyzer *a, const cd_expr *e) {
    const cd_bound x = cd_const_int_bound(a, e->a[0]), y = cd_const_int_bound(a, e->a[1]);
    switch ((cd_expr_op)e->op) {
    case CD_ADD:
        return (cd_bound){cd_const_int_bound_add(x.lo, y.lo), cd_const_int_bound_add(x.hi, y.hi)};
    case CD_SUB:
        return (cd_bound){cd_const_int_bound_add(x.lo, cd_wrap_sub(0, y.hi)),
                          cd_const_int_bound_add(x.hi, cd_wrap_sub(0, y.lo))};
    case CD_MUL: return corners(x, y, cd_const_int_bound_mul);
    case CD_DIV: return divide(x, y, e->type, trunc_div);
    case CD_FDIV: return divide(x, y, e->type, floor_div);
    case CD_MIN: return (cd_bound){lesser(x.lo, y.lo), lesser(x.hi, y.hi)};
    case CD_MAX: return (cd_bound){greater(x.lo, y.lo), greater(x.hi, y.hi)};
    default: return modulo(x, y, e);
    }
}

static cd_bound call(cd_analyzer *a, const cd_expr *e) {
    const cd_bound all = cd_const_int_bound_type(e->type);
    if (e->n != 2) return all;
    const bool left = cd_call_is(e, "shift_left"), right = cd_call_is(e, "shift_right");
    if (!left && !right && !cd_call_is(e, "bitwise_and")) return all;
    const cd_bound x = cd_const_int_bound(a, e->a[0]), y = cd_const_int_bound(a, e->a[1]);
    if (left) return x.lo < 0 || y.lo < 0 ? all : corners(x, y, shift_left);
    if (right) return y.lo < 0 || y.hi > 63 ? all : corners(x, y, shift_right);
    if (x.lo >= 0 && y.lo >= 0) return (cd_bound){0, lesser(x.hi, y.hi)};
    if (y.lo >= 0) return (cd_bound){0, y.hi};
    return x.lo >= 0 ? (cd_bound){0, x.hi} : all;
}

static int64_t ceil_log2(double v) {
    const double r = ceil(log2(v));
    return r >= -4e18 && r <= 4e18 ? (int64_t)r : v > 0 ? CD_INF : CD_NEG_INF;
}

/* int(ceil(log2(n))), TOPI's ceil_log2, is looked through. */
static cd_bound cast(cd_analyzer *a, const cd_expr *e) {
    const cd_bound all = cd_const_int_bound_type(e->type);
    const cd_expr *v = e->a[0];
    if (cd_expr_dtype_kind(e->type) != CD_T_INT || !cd_call_is(v, "ceil") ||
        !cd_call_is(v->a[0], "log2"))
        return meet(cd_const_int_bound(a, v), all);
    v = v->a[0]->a[0];
    if (v->op == CD_FLOAT) return meet((cd_bound){ceil_log2(v->u.f), ceil_log2(v->u.f)}, all);
    const cd_bound b = cd_const_int_bound(a, v);
    return meet((cd_bound){ceil_log2((double)b.lo), ceil_log2((double)b.hi)}, all);
}

static cd_bound node(cd_analyzer *a, const cd_expr *e) {
    switch ((cd_expr_op)e->op) {
    case CD_VAR: {
        const cd_var_info *v = cd_simplify_var(a, e);
        return v && v->known ? v->bound : cd_const_int_bound_type(e->type);
    }
    case CD_SELECT:
        return cd_const_int_bound_unite(cd_const_int_bound(a, e->a[1]),
                                        cd_const_int_bound(a, e->a[2]));
    case CD_CAST: return cast(a, e);
    case CD_CALL: return call(a, e);
    default:
        return cd_expr_op_is_arith((cd_expr_op)e->op) ? binary(a, e)
                                                      : cd_const_int_bound_type(e->type);
    }
}

static cd_bound with_extras(const cd_analyzer *a, const cd_expr *e, cd_bound r) {
    if (!(a->extra_mask >> (e->id % 64) & 1)) return r;
    for (uint32_t i = 0; i < a->n_extra; i++)
        if (a->extra[i].e == e) r = meet(r, a->extra[i].b);
    return r;
}

cd_bound cd_const_int_bound(cd_analyzer *a, const cd_expr *e) {
    if (e->op == CD_INT) return (cd_bound){e->u.i, e->u.i};
    if (e->op == CD_VAR) return with_extras(a, e, node(a, e));
    cd_simplifier *s = a->s;
    if (a->plain && s->nest < CD_SIMPLIFY_MAX_NEST) { /* expressions of a plain one are small */
        s->nest++;
        const cd_bound r = node(a, e);
        s->nest--;
        return r;
    }
    cd_memo *m = cd_simplify_memo(s, e);
    if (m && m->bd_ctx == a->ctx) return m->bd;
    if (!m || s->nest >= CD_SIMPLIFY_MAX_NEST) {
        s->oom = true;
        return cd_const_int_bound_type(e->type);
    }
    s->nest++;
    const cd_bound r = with_extras(a, e, node(a, e));
    s->nest--;
    if ((m = cd_simplify_memo(s, e))) {
        m->bd_ctx = a->ctx;
        m->bd = r;
    }
    return r;
}
