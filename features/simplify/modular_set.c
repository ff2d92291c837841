/* Modular sets: value == coeff * k + base. TVM's modular_set. */
#include "features/simplify/simplify_internal.h"

static const cd_modular everything = {1, 0};

static cd_modular make(int64_t coeff, int64_t base) {
    if (coeff < 0) return everything;
    return (cd_modular){coeff, coeff ? cd_expr_floormod(base, coeff) : base};
}

static int64_t magnitude(int64_t a) { return a < 0 ? cd_wrap_sub(0, a) : a; }

/* Greatest common divisor; 0 is neutral. */
static int64_t gcd(int64_t a, int64_t b) {
    a = magnitude(a);
    b = magnitude(b);
    while (b) {
        const int64_t r = cd_trunc_mod(a, b);
        a = b;
        b = r;
    }
    return a;
}

static cd_modular unite(cd_modular a, cd_modular b) {
    const int64_t c = gcd(a.coeff, b.coeff);
    if (c == 0) return a.base == b.base ? a : everything;
    const int64_t p = cd_trunc_mod(a.base, c), q = cd_trunc_mod(b.base, c);
    return p == q ? make(c, p) : make(gcd(gcd(p, q), c), p);
}

/* a*x + b*y == gcd(a, b) for a >= 0; returns the gcd, sets x and y as TVM does. */
static int64_t euclid(int64_t a, int64_t b, int64_t *x, int64_t *y) {
    int64_t s = 0, old_s = 1, r = b, old_r = a;
    while (r != 0) {
        const int64_t q = cd_trunc_div(old_r, r), t = old_r, u = old_s;
        old_r = r;
        r = cd_wrap_sub(t, cd_wrap_mul(q, r));
        old_s = s;
        s = cd_wrap_sub(u, cd_wrap_mul(q, s));
    }
    *x = old_s;
    *y = b ? cd_trunc_div(cd_wrap_sub(old_r, cd_wrap_mul(old_s, a)), b) : 1;
    return old_r;
}

cd_modular cd_modular_set_intersect(cd_modular a, cd_modular b) {
    int64_t x, y;
    const int64_t g = euclid(a.coeff, b.coeff, &x, &y), v = cd_wrap_sub(b.base, a.base);
    if (g == 0) return a;
    if (cd_trunc_mod(v, g) != 0) return (cd_modular){0, 1}; /* TVM's "nothing" */
    x = cd_wrap_mul(cd_trunc_div(v, g), x);
    return make(cd_wrap_mul(cd_trunc_div(a.coeff, g), b.coeff),
                cd_wrap_add(cd_wrap_mul(x, a.coeff), a.base));
}

static cd_modular divide(cd_analyzer *a, const cd_expr *e, int64_t v, bool round_down) {
    const cd_modular m = cd_modular_set(a, e);
    if (v == 0 || cd_trunc_mod(m.coeff, v) != 0) return everything;
    if (m.base == 0) return make(magnitude(cd_trunc_div(m.coeff, v)), 0);
    if (m.base > 0 && v > 0 && (round_down || cd_simplify_ge(a, e, 0)))
        return make(m.coeff / v, m.base / v);
    return everything;
}

static cd_modular modulo(cd_analyzer *a, const cd_expr *e, int64_t v, bool round_down) {
    if (v == 0) return everything;
    const cd_modular m = cd_modular_set(a, e);
    const int64_t c = gcd(m.coeff, v), r = cd_trunc_mod(m.base, c);
    if (r == 0 || (m.base > 0 && (round_down || cd_simplify_ge(a, e, 0)))) return make(c, r);
    return everything;
}

static cd_modular divmod(cd_analyzer *a, const cd_expr *e) {
    const cd_modular b = cd_modular_set(a, e->a[1]);
    if (b.coeff != 0) return everything;
    if (e->op == CD_DIV || e->op == CD_FDIV) return divide(a, e->a[0], b.base, e->op == CD_FDIV);
    return modulo(a, e->a[0], b.base, e->op == CD_FMOD);
}

static cd_modular product(cd_modular x, cd_modular y) {
    const int64_t p = cd_wrap_mul(x.coeff, y.coeff), q = cd_wrap_mul(x.coeff, y.base),
                  r = cd_wrap_mul(x.base, y.coeff);
    return make(gcd(p, gcd(q, r)), cd_wrap_mul(x.base, y.base));
}

/* What is not a sum, product, quotient, remainder or choice can be anything: coeff 1, base 0. */
static cd_modular node(cd_analyzer *a, const cd_expr *e) {
    switch ((cd_expr_op)e->op) {
    case CD_INT: return (cd_modular){0, e->u.i};
    case CD_VAR: {
        const cd_var_info *v = cd_simplify_var(a, e);
        return v ? v->mod : everything;
    }
    case CD_CAST: return cd_modular_set(a, e->a[0]);
    case CD_SELECT: return unite(cd_modular_set(a, e->a[1]), cd_modular_set(a, e->a[2]));
    case CD_CALL:
        if (e->n == 2 && cd_call_is(e, "shift_right")) {
            const cd_modular b = cd_modular_set(a, e->a[1]);
            if (b.coeff == 0 && b.base >= 0 && b.base < 63)
                return divide(a, e->a[0], (int64_t)1 << b.base, true);
        }
        return everything;
    case CD_DIV:
    case CD_FDIV:
    case CD_MOD:
    case CD_FMOD: return divmod(a, e);
    default: break;
    }
    if (!cd_expr_op_is_arith((cd_expr_op)e->op)) return everything;
    const cd_modular x = cd_modular_set(a, e->a[0]), y = cd_modular_set(a, e->a[1]);
    if (e->op == CD_ADD) return make(gcd(x.coeff, y.coeff), cd_wrap_add(x.base, y.base));
    if (e->op == CD_SUB) return make(gcd(x.coeff, y.coeff), cd_wrap_sub(x.base, y.base));
    return e->op == CD_MUL ? product(x, y) : unite(x, y);
}

cd_modular cd_modular_set(cd_analyzer *a, const cd_expr *e) {
    if (a->s->nest >= CD_SIMPLIFY_MAX_NEST) {
        a->s->oom = true;
        return everything;
    }
    a->s->nest++;
    const cd_modular r = node(a, e);
    a->s->nest--;
    return r;
}
