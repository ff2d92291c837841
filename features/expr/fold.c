/* TVM's folding operators: what becomes of `a + b` the moment it is built. Schedules, bounds and
 * the simplifier all build through them, so the form of every index depends on them
 * (docs/internals/ansor.md, Simplifier). */
#include <math.h>
#include <stddef.h>

#include "features/expr/expr.h"

static bool lit(const cd_expr *e) { return e->op == CD_INT || e->op == CD_FLOAT; }
static double val(const cd_expr *e) { return e->op == CD_FLOAT ? e->u.f : (double)e->u.i; }
/* exact: v is 0 or 1 */
static bool is(const cd_expr *e, double v) { return lit(e) && val(e) == v; }

/* Two literals. A division by zero stays as it is; arithmetic wraps as C++ does in practice. */
static const cd_expr *fold_int(cd_expr_pool *p, cd_expr_op op, const cd_expr *a, const cd_expr *b) {
    const int64_t x = a->u.i, y = b->u.i;
    int64_t r;
    if ((op == CD_MOD || op == CD_FMOD) && !cd_expr_dtype_is_index(a->type)) return NULL;
    switch (op) {
    case CD_ADD: r = (int64_t)((uint64_t)x + (uint64_t)y); break;
    case CD_SUB: r = (int64_t)((uint64_t)x - (uint64_t)y); break;
    case CD_MUL: r = (int64_t)((uint64_t)x * (uint64_t)y); break;
    case CD_DIV:
        if (y == 0) return NULL;
        r = y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
        break;
    case CD_MOD:
        if (y == 0) return NULL;
        r = y == -1 ? 0 : x % y;
        break;
    case CD_FDIV:
        if (y == 0) return NULL;
        r = cd_expr_floordiv(x, y);
        break;
    case CD_FMOD:
        if (y == 0) return NULL;
        r = cd_expr_floormod(x, y);
        break;
    case CD_MIN: r = x < y ? x : y; break;
    case CD_MAX: r = x > y ? x : y; break;
    case CD_EQ: return cd_expr_new_int(p, CD_BOOL, x == y);
    case CD_NE: return cd_expr_new_int(p, CD_BOOL, x != y);
    case CD_LT: return cd_expr_new_int(p, CD_BOOL, x < y);
    case CD_LE: return cd_expr_new_int(p, CD_BOOL, x <= y);
    case CD_GT: return cd_expr_new_int(p, CD_BOOL, x > y);
    case CD_GE: return cd_expr_new_int(p, CD_BOOL, x >= y);
    default: return NULL;
    }
    return cd_expr_new_int(p, a->type, r);
}

/* In double whatever the type: v0.9 does not round its literals. */
static const cd_expr *fold_float(cd_expr_pool *p, cd_expr_op op, const cd_expr *a,
                                 const cd_expr *b) {
    const double x = val(a), y = val(b);
    switch (op) {
    case CD_ADD: return cd_expr_new_float(p, a->type, x + y);
    case CD_SUB: return cd_expr_new_float(p, a->type, x - y);
    case CD_MUL: return cd_expr_new_float(p, a->type, x * y);
    case CD_DIV: return y != 0.0 ? cd_expr_new_float(p, a->type, x / y) : NULL;
    case CD_FDIV: return y != 0.0 ? cd_expr_new_float(p, a->type, floor(x / y)) : NULL;
    case CD_MIN: return cd_expr_new_float(p, a->type, y < x ? y : x);
    case CD_MAX: return cd_expr_new_float(p, a->type, x < y ? y : x);
    case CD_EQ: return cd_expr_new_int(p, CD_BOOL, x == y);
    case CD_NE: return cd_expr_new_int(p, CD_BOOL, x != y);
    case CD_LT: return cd_expr_new_int(p, CD_BOOL, x < y);
    case CD_LE: return cd_expr_new_int(p, CD_BOOL, x <= y);
    case CD_GT: return cd_expr_new_int(p, CD_BOOL, x > y);
    case CD_GE: return cd_expr_new_int(p, CD_BOOL, x >= y);
    default: return NULL;
    }
}

static const cd_expr *fold_identity(cd_expr_op op, const cd_expr *a, const cd_expr *b,
                                    cd_expr_pool *p) {
    switch (op) {
    case CD_ADD: return is(a, 0) ? b : is(b, 0) ? a : NULL;
    case CD_SUB: return is(b, 0) ? a : NULL;
    case CD_MUL: return is(a, 1) || is(b, 0) ? b : is(b, 1) || is(a, 0) ? a : NULL;
    case CD_DIV:
    case CD_FDIV: return is(a, 0) || is(b, 1) ? a : NULL;
    case CD_MOD:
    case CD_FMOD:
        if (!cd_expr_dtype_is_index(a->type) || !cd_expr_dtype_is_index(b->type)) return NULL;
        return cd_expr_is_int_value(a, 0)   ? a
               : cd_expr_is_int_value(b, 1) ? cd_expr_new_int(p, a->type, 0)
                                            : NULL;
    case CD_MIN:
    case CD_MAX: /* TVM: the same object; two equal loads are two objects */
        return a == b && cd_expr_dtype_is_index(a->type) ? a : NULL;
    case CD_AND:
        return a->op == CD_INT ? (a->u.i ? b : a) : b->op == CD_INT ? (b->u.i ? a : b) : NULL;
    case CD_OR:
        return a->op == CD_INT ? (a->u.i ? a : b) : b->op == CD_INT ? (b->u.i ? b : a) : NULL;
    default: return NULL;
    }
}

const cd_expr *cd_fold_bin(cd_expr_pool *p, cd_expr_op op, const cd_expr *a, const cd_expr *b) {
    if (op != CD_AND && op != CD_OR) {
        if (a->op == CD_INT && b->op == CD_INT) {
            const cd_expr *r = fold_int(p, op, a, b);
            if (r) return r;
        } else if (a->op == CD_FLOAT && b->op == CD_FLOAT) {
            const cd_expr *r = fold_float(p, op, a, b);
            if (r) return r;
        }
    }
    return fold_identity(op, a, b, p);
}

/* TVM promotes the narrower operand before it builds a binary node. */
static void match_types(cd_expr_pool *p, const cd_expr **a, const cd_expr **b) {
    const cd_dtype s = (*a)->type, t = (*b)->type;
    if (s == t) return;
    const bool fs = cd_expr_dtype_is_float(s), ft = cd_expr_dtype_is_float(t);
    if (fs != ft) {
        if (fs) *b = cd_expr_cast(p, s, *b);
        else *a = cd_expr_cast(p, t, *a);
    } else if (cd_expr_dtype_bits(s) < cd_expr_dtype_bits(t) ||
               /* signed meets unsigned */
               (cd_expr_dtype_bits(s) == cd_expr_dtype_bits(t) &&
                cd_expr_dtype_kind(s) == CD_T_INT)) {
        *a = cd_expr_cast(p, t, *a);
    } else {
        *b = cd_expr_cast(p, s, *b);
    }
}

const cd_expr *cd_expr_bin(cd_expr_pool *p, cd_expr_op op, const cd_expr *a, const cd_expr *b) {
    match_types(p, &a, &b);
    const cd_expr *r = cd_fold_bin(p, op, a, b);
    return r ? r : cd_expr_new_bin(p, op, a, b);
}

const cd_expr *cd_expr_cast(cd_expr_pool *p, cd_dtype t, const cd_expr *a) {
    if (a->type == t) return a;
    if (a->op == CD_INT && !cd_expr_dtype_is_float(t))
        return cd_expr_new_int(p, t, t == CD_BOOL ? a->u.i != 0 : a->u.i);
    if (a->op == CD_INT) return cd_expr_new_float(p, t, (double)a->u.i);
    if (a->op == CD_FLOAT && cd_expr_dtype_is_float(t)) return cd_expr_new_float(p, t, a->u.f);
    if (a->op == CD_FLOAT && fabs(a->u.f) < 9e18) return cd_expr_new_int(p, t, (int64_t)a->u.f);
    return cd_expr_new_cast(p, t, a);
}
