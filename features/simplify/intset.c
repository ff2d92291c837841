/* Intervals with symbolic ends, and expressions evaluated over them: how bound inference knows
 * which part of a tensor is read. The rules are TVM's, also where they lose more than necessary
 * (docs/internals/ansor.md, Bounds). */
#include "features/simplify/simplify.h"

const cd_expr cd_intset_inf_node = {.op = CD_EXPR_OP_COUNT};

#define BIN(op, a, b) cd_expr_bin(env->pool, CD_##op, (a), (b))

bool cd_intset_is_point(cd_expr_pool *p, cd_analyzer *fresh, cd_intset s) {
    if (!cd_intset_finite(s)) return false;
    if (s.lo == s.hi) return true;
    if (cd_expr_is_int(s.lo) && cd_expr_is_int(s.hi)) return s.lo->u.i == s.hi->u.i;
    const cd_expr *d = cd_expr_bin(p, CD_SUB, s.lo, s.hi);
    return cd_simplify_prove(fresh, cd_expr_bin(p, CD_EQ, d, cd_expr_new_int(p, d->type, 0)));
}

cd_intset cd_intset_range(cd_expr_pool *p, const cd_expr *min, const cd_expr *extent) {
    if (cd_expr_is_int_value(extent, 1)) return cd_intset_point(min);
    if (cd_expr_is_int(min) && cd_expr_is_int(extent) && min->type == CD_I32 &&
        extent->type == CD_I32)
        return (cd_intset){min, cd_expr_int(p, min->u.i + extent->u.i - 1)};
    const cd_expr *end = cd_expr_bin(p, CD_ADD, extent, min);
    return (cd_intset){min, cd_expr_bin(p, CD_SUB, end, cd_expr_new_int(p, end->type, 1))};
}

static const cd_expr *set_min(cd_expr_pool *p, const cd_expr *a, const cd_expr *b) {
    return a == CD_INTSET_INF || b == CD_INTSET_INF ? CD_INTSET_INF : cd_expr_bin(p, CD_MIN, a, b);
}

static const cd_expr *set_max(cd_expr_pool *p, const cd_expr *a, const cd_expr *b) {
    return a == CD_INTSET_INF || b == CD_INTSET_INF ? CD_INTSET_INF : cd_expr_bin(p, CD_MAX, a, b);
}

void cd_intset_union_add(cd_expr_pool *p, cd_intset_union *u, cd_intset s) {
    u->s = u->n++ ? (cd_intset){set_min(p, u->s.lo, s.lo), set_max(p, u->s.hi, s.hi)} : s;
}

cd_intset cd_intset_union_get(cd_analyzer *fresh, const cd_intset_union *u) {
    cd_intset s = u->s;
    if (u->n == 1) return s;
    if (s.lo != CD_INTSET_INF) s.lo = cd_simplify_expr(fresh, s.lo);
    if (s.hi != CD_INTSET_INF) s.hi = cd_simplify_expr(fresh, s.hi);
    return s;
}

bool cd_intset_cover(cd_expr_pool *p, cd_analyzer *fresh, cd_intset s, const cd_expr **min,
                     const cd_expr **extent) {
    if (!cd_intset_finite(s)) return false;
    if (cd_expr_is_int(s.lo) && cd_expr_is_int(s.hi)) {
        *min = s.lo;
        *extent = cd_expr_new_int(p, s.hi->type, s.hi->u.i + 1 - s.lo->u.i);
        return true;
    }
    *min = cd_simplify_expr(fresh, s.lo);
    if (s.lo == s.hi && cd_expr_dtype_is_index(s.lo->type)) { /* (x + 1) - x */
        *extent = cd_expr_new_int(p, s.lo->type, 1);
        return true;
    }
    const cd_expr *end = cd_expr_bin(p, CD_ADD, s.hi, cd_expr_new_int(p, s.hi->type, 1));
    *extent = cd_simplify_expr(fresh, cd_expr_bin(p, CD_SUB, end, s.lo));
    return true;
}

bool cd_intset_matches(cd_expr_pool *p, cd_analyzer *fresh, cd_intset s, const cd_expr *min,
                       const cd_expr *extent) {
    if (!cd_intset_finite(s)) return false;
    if (cd_expr_is_int(s.lo) && cd_expr_is_int(min) && s.lo->u.i != min->u.i) return false;
    if (cd_expr_is_int(s.lo) && cd_expr_is_int(min) && cd_expr_is_int(s.hi) &&
        cd_expr_is_int(extent))
        return s.hi->u.i == extent->u.i + min->u.i - 1;
    const cd_expr *d = cd_simplify_expr(fresh, cd_expr_bin(p, CD_SUB, s.lo, min));
    if (!cd_expr_is_int_value(d, 0)) return false;
    const cd_expr *end = cd_expr_bin(p, CD_ADD, extent, min);
    end = cd_expr_bin(p, CD_SUB, end, cd_expr_new_int(p, end->type, 1));
    return cd_expr_is_int_value(cd_simplify_expr(fresh, cd_expr_bin(p, CD_SUB, s.hi, end)), 0);
}

/* ---- evaluation ---- */

static const cd_expr *both(cd_intset_env *env, cd_expr_op op, const cd_expr *a, const cd_expr *b) {
    return a == CD_INTSET_INF || b == CD_INTSET_INF ? CD_INTSET_INF
                                                    : cd_expr_bin(env->pool, op, a, b);
}

/* The smaller of a number and of what has no upper end is at most the number; so with the larger
 * and no lower end. */
static const cd_expr *either(cd_intset_env *env, cd_expr_op op, const cd_expr *a,
                             const cd_expr *b) {
    return a == CD_INTSET_INF ? b : b == CD_INTSET_INF ? a : cd_expr_bin(env->pool, op, a, b);
}

/* Both ends by a point: the sign of the point says which end is which. */
static cd_intset scale(cd_intset_env *env, cd_expr_op op, cd_intset a, const cd_expr *by) {
    const cd_expr *first = both(env, op, a.lo, by), *last = both(env, op, a.hi, by),
                  *zero = cd_expr_new_int(env->pool, by->type, 0);
    if (cd_simplify_prove_ge(env->ana, by, 0)) return (cd_intset){first, last};
    if (cd_simplify_prove_ge(env->ana, BIN(SUB, zero, by), 1)) return (cd_intset){last, first};
    if (!cd_intset_finite(a)) return cd_intset_all();
    const cd_expr *plus = BIN(GE, by, zero);
    return (cd_intset){cd_expr_new_select(env->pool, plus, first, last),
                       cd_expr_new_select(env->pool, plus, last, first)};
}

static cd_intset multiply(cd_intset_env *env, cd_intset a, cd_intset b) {
    if (cd_intset_is_point(env->pool, env->fresh, a)) {
        const cd_intset t = a;
        a = b;
        b = t;
    }
    if (!cd_intset_is_point(env->pool, env->fresh, b)) return cd_intset_all();
    if (cd_expr_is_int_value(b.lo, 0)) return b;
    if (cd_expr_is_int_value(b.lo, 1)) return a;
    return scale(env, CD_MUL, a, b.lo);
}

static cd_intset divide(cd_intset_env *env, cd_expr_op op, cd_intset a, cd_intset b) {
    if (!cd_intset_is_point(env->pool, env->fresh, b)) return cd_intset_all();
    return cd_expr_is_int_value(b.lo, 1) ? a : scale(env, op, a, b.lo);
}

/* When both ends have the same quotient the interval moves as a whole, else it is [0, m - 1]. */
static cd_intset modulo(cd_intset_env *env, cd_expr_op op, cd_intset a, cd_intset b) {
    if (!cd_intset_is_point(env->pool, env->fresh, b)) return cd_intset_all();
    const cd_expr *d = b.lo, *one = cd_expr_new_int(env->pool, d->type, 1),
                  *zero = cd_expr_new_int(env->pool, d->type, 0);
    if (cd_expr_is_int_value(d, 0)) return cd_intset_all();
    if (!cd_simplify_prove_ge(env->ana, d, 0)) {
        const cd_expr *minus = BIN(SUB, zero, d);
        const cd_expr *size = cd_expr_is_int(d)
                                  ? minus
                                  : cd_expr_new_select(env->pool, BIN(GE, d, zero), d, minus),
                      *m = BIN(SUB, size, one);
        return (cd_intset){BIN(SUB, zero, m), m};
    }
    if (op == CD_FMOD && cd_expr_is_int(d) && cd_intset_finite(a)) {
        const cd_expr *top = BIN(FDIV, a.hi, d), *low = BIN(FDIV, a.lo, d);
        if (cd_simplify_prove(env->ana, BIN(EQ, top, low))) {
            const cd_expr *base = BIN(MUL, d, low);
            return (cd_intset){BIN(SUB, a.lo, base), BIN(SUB, a.hi, base)};
        }
    }
    return (cd_intset){zero, BIN(SUB, d, one)};
}

static cd_intset combine(cd_intset_env *env, cd_expr_op op, cd_intset a, cd_intset b) {
    if (cd_intset_is_point(env->pool, env->fresh, a) &&
        cd_intset_is_point(env->pool, env->fresh, b))
        return cd_intset_point(cd_expr_bin(env->pool, op, a.lo, b.lo));
    switch (op) {
    case CD_ADD: return (cd_intset){both(env, op, a.lo, b.lo), both(env, op, a.hi, b.hi)};
    case CD_SUB: return (cd_intset){both(env, op, a.lo, b.hi), both(env, op, a.hi, b.lo)};
    case CD_MUL: return multiply(env, a, b);
    case CD_DIV:
    case CD_FDIV: return divide(env, op, a, b);
    case CD_MOD:
    case CD_FMOD: return modulo(env, op, a, b);
    case CD_MIN: return (cd_intset){both(env, op, a.lo, b.lo), either(env, op, a.hi, b.hi)};
    case CD_MAX: return (cd_intset){either(env, op, a.lo, b.lo), both(env, op, a.hi, b.hi)};
    default: /* comparisons and logic */
        return (cd_intset){cd_expr_new_int(env->pool, CD_BOOL, 0),
                           cd_expr_new_int(env->pool, CD_BOOL, 1)};
    }
}

static bool find_var(const cd_intset_env *env, const cd_expr *e, cd_intset *out) {
    if (!env->dom) {
        const uint64_t k = (uint64_t)e->u.i;
        if (k >= env->n_var || !env->by_var[k].lo) return false;
        *out = env->by_var[k];
        return true;
    }
    for (uint32_t k = 0; k < env->n; k++)
        if (env->dom[k].var == e) return *out = env->dom[k].set, true;
    return false;
}

static cd_intset eval_var(cd_intset_env *env, const cd_expr *e) {
    cd_intset s;
    if (!find_var(env, e, &s)) return cd_intset_point(e);
    if (s.lo == e && s.hi == e) return s;
    if (env->depth >= env->n) return s;
    env->depth++;
    const cd_intset r = {s.lo == CD_INTSET_INF ? s.lo : cd_intset_eval(env, s.lo).lo,
                         s.hi == CD_INTSET_INF ? s.hi : cd_intset_eval(env, s.hi).hi};
    env->depth--;
    return r;
}

static const cd_expr *cast_end(cd_intset_env *env, cd_dtype t, const cd_expr *e) {
    return e == CD_INTSET_INF ? e : cd_expr_cast(env->pool, t, e);
}

/* An expression whose operands evaluate to themselves is a point: itself. Calls and loads are
 * everything. */
cd_intset cd_intset_eval(cd_intset_env *env, const cd_expr *e) {
    if (e->op == CD_INT) return cd_intset_point(e);
    if (e->op == CD_VAR) return eval_var(env, e);
    if (cd_expr_op_is_binary((cd_expr_op)e->op)) {
        const cd_intset a = cd_intset_eval(env, e->a[0]), b = cd_intset_eval(env, e->a[1]);
        if (a.lo == e->a[0] && a.hi == e->a[0] && b.lo == e->a[1] && b.hi == e->a[1])
            return cd_intset_point(e);
        return combine(env, (cd_expr_op)e->op, a, b);
    }
    if (e->op == CD_SELECT) {
        const cd_intset t = cd_intset_eval(env, e->a[1]), f = cd_intset_eval(env, e->a[2]);
        return (cd_intset){set_min(env->pool, f.lo, t.lo), set_max(env->pool, f.hi, t.hi)};
    }
    if (e->op == CD_CAST) {
        const cd_intset a = cd_intset_eval(env, e->a[0]);
        return (cd_intset){cast_end(env, e->type, a.lo), cast_end(env, e->type, a.hi)};
    }
    return cd_intset_all();
}
