/* Affine forms of index expressions. Simplifying here, with the values of unrolled copies known,
 * makes the text of vectorised and unrolled bodies short, and lets accesses share pointers. */
#include "profiler/codegen/code/code.h"

#include <string.h>

cdmpp_status cd_codegen_env_init(cd_codegen_env *v, const cd_ast *ast, uint32_t n_var,
                                 cdmpp_err *err) {
    *v = (cd_codegen_env){.n_var = n_var,
                          .var = cd_mem_zalloc(n_var + 1, sizeof *v->var),
                          .plain = cd_mem_zalloc(n_var + 1, sizeof *v->plain),
                          .bound = cd_mem_zalloc(n_var + 1, sizeof *v->bound)};
    if (!v->var || !v->plain || !v->bound) {
        cd_codegen_env_free(v);
        return CD_FAIL(err, ENOMEM, "variables");
    }
    cd_codegen_ranges_of_nest(ast, v->bound, n_var);
    v->bound[n_var] = (cd_bound){0, 0};
    v->ranges = (cd_codegen_ranges){n_var + 1, v->bound};
    const cdmpp_status st = cd_expr_pool_init(&v->pool, NULL, err);
    if (st) cd_codegen_env_free(v);
    return st;
}

void cd_codegen_env_free(cd_codegen_env *v) {
    cd_mem_free(v->var);
    cd_mem_free(v->plain);
    cd_mem_free(v->bound);
    cd_expr_pool_free(&v->pool);
    *v = (cd_codegen_env){0};
}

cdmpp_status cd_codegen_env_check(const cd_codegen_env *v, cdmpp_err *err) {
    if (v->pool.oom) return CD_FAIL(err, ENOMEM, "expressions");
    if (v->many || v->pool.big)
        return CD_FAIL(err, EUNSUPPORTED, "an index of more than %d terms", CD_CODEGEN_MAX_AFFINE);
    return CDMPP_OK;
}

static bool not_lane(void *ctx, const cd_expr *e) { return !cd_codegen_env_is_lane(ctx, e); }
bool cd_codegen_env_has_lane(const cd_codegen_env *v, const cd_expr *e) {
    return (e->flags & CD_EXPR_HAS_VAR) && !cd_expr_visit(e, not_lane, (void *)(uintptr_t)v);
}

void cd_codegen_env_set_lanes(cd_codegen_env *v, int64_t n) {
    v->bound[v->n_var] = (cd_bound){0, n - 1};
}

/* ---- sums ---- */

/* Terms are kept in order of their atoms' ids, so that equal sums have equal forms. A term that
 * becomes 0 goes. */
static void add_term(cd_codegen_env *v, cd_codegen_affine *a, int64_t k, const cd_expr *atom) {
    uint32_t at = 0;
    while (at < a->n && a->t[at].atom->id < atom->id) at++;
    if (at < a->n && a->t[at].atom == atom) {
        a->t[at].k += k;
        if (a->t[at].k) return;
        memmove(&a->t[at], &a->t[at + 1], (a->n - at - 1) * sizeof *a->t);
        a->n--;
        return;
    }
    if (!k) return;
    if (a->n == CD_CODEGEN_MAX_AFFINE) {
        v->many = true;
        return;
    }
    memmove(&a->t[at + 1], &a->t[at], (a->n - at) * sizeof *a->t);
    a->t[at] = (cd_codegen_affine_term){k, atom};
    a->n++;
}

void cd_codegen_affine_add(cd_codegen_env *v, cd_codegen_affine *to, const cd_codegen_affine *from,
                           int64_t times) {
    to->c += times * from->c;
    for (uint32_t k = 0; k < from->n; k++) add_term(v, to, times * from->t[k].k, from->t[k].atom);
}

cd_bound cd_codegen_affine_range(const cd_codegen_env *v, const cd_codegen_affine *a) {
    cd_bound r = {a->c, a->c};
    for (uint32_t k = 0; k < a->n; k++) {
        const cd_bound b = cd_codegen_range_of(&v->ranges, a->t[k].atom);
        if (b.lo == CD_NEG_INF || b.hi == CD_INF) return (cd_bound){CD_NEG_INF, CD_INF};
        const int64_t x = a->t[k].k * b.lo, y = a->t[k].k * b.hi;
        r.lo += x < y ? x : y;
        r.hi += x < y ? y : x;
    }
    return r;
}

static const cd_expr *as_type(cd_codegen_env *v, cd_dtype t, const cd_expr *e) {
    return e->type == t ? e : cd_expr_cast(&v->pool, t, e);
}

static const cd_expr *expr_of(cd_codegen_env *v, cd_dtype t, const cd_codegen_affine *a) {
    const cd_expr *sum = NULL;
    for (uint32_t k = 0; k < a->n; k++) {
        const cd_expr *x = as_type(v, t, a->t[k].atom);
        if (a->t[k].k != 1)
            x = cd_expr_bin(&v->pool, CD_MUL, x, cd_expr_new_int(&v->pool, t, a->t[k].k));
        sum = sum ? cd_expr_bin(&v->pool, CD_ADD, sum, x) : x;
    }
    if (!sum) return cd_expr_new_int(&v->pool, t, a->c);
    return a->c ? cd_expr_bin(&v->pool, CD_ADD, sum, cd_expr_new_int(&v->pool, t, a->c)) : sum;
}

/* ---- quotients ---- */

/* a = whole * d + rest; what is a multiple of d goes to whole. */
static void split(const cd_codegen_affine *a, int64_t d, cd_codegen_affine *whole,
                  cd_codegen_affine *rest) {
    *whole = (cd_codegen_affine){.c = cd_expr_floordiv(a->c, d)};
    *rest = (cd_codegen_affine){.c = cd_expr_floormod(a->c, d)};
    for (uint32_t k = 0; k < a->n; k++) {
        const bool even = a->t[k].k % d == 0;
        cd_codegen_affine *to = even ? whole : rest;
        to->t[to->n++] = (cd_codegen_affine_term){even ? a->t[k].k / d : a->t[k].k, a->t[k].atom};
    }
}

static bool within(const cd_codegen_env *v, const cd_codegen_affine *a, int64_t d) {
    const cd_bound b = cd_codegen_affine_range(v, a);
    return b.lo >= 0 && b.hi < d;
}

/* Common divisor of all that multiplies an atom, and d. */
static int64_t common(const cd_codegen_affine *a, int64_t d) {
    for (uint32_t k = 0; k < a->n; k++) d = cd_expr_gcd(a->t[k].k, d);
    return d;
}

/* a / g where g divides all but the number; returns that one's remainder. */
static int64_t shrink(cd_codegen_affine *a, int64_t g) {
    const int64_t r = cd_expr_floormod(a->c, g);
    a->c = cd_expr_floordiv(a->c, g);
    for (uint32_t k = 0; k < a->n; k++) a->t[k].k /= g;
    return r;
}

static bool is_atom(const cd_codegen_affine *a, cd_expr_op op) {
    return a->n == 1 && a->t[0].k == 1 && a->c == 0 && a->t[0].atom->op == op &&
           a->t[0].atom->a[1]->op == CD_INT && a->t[0].atom->a[1]->u.i > 0;
}

/* Multiples of d leave the quotient. What is left is 0 if it lies within [0, d); else a common
 * divisor is taken out, and only then a quotient remains as an atom. */
void cd_codegen_affine_divide(cd_codegen_env *v, cd_dtype t, cd_codegen_affine *a, int64_t d) {
    cd_codegen_affine whole, rest;
    if (d == 1) return;
    split(a, d, &whole, &rest);
    if (!within(v, &rest, d)) {
        const int64_t g = common(&rest, d);
        shrink(&rest, g);
        d /= g;
        if (d == 1) {
            cd_codegen_affine_add(v, &whole, &rest, 1);
        } else if (!within(v, &rest, d)) {
            const cd_expr *x = expr_of(v, t, &rest);
            if (is_atom(&rest, CD_FDIV)) { /* (y // e) // d */
                d *= rest.t[0].atom->a[1]->u.i;
                x = as_type(v, t, rest.t[0].atom->a[0]);
            }
            add_term(v, &whole, 1,
                     cd_expr_bin(&v->pool, CD_FDIV, x, cd_expr_new_int(&v->pool, t, d)));
        }
    }
    *a = whole;
}

/* Multiples of d vanish; a common divisor g of the factors and d is taken out: (g*x + r) mod d =
 * g*(x mod (d/g)) + r. */
void cd_codegen_affine_modulo(cd_codegen_env *v, cd_dtype t, cd_codegen_affine *a, int64_t d) {
    cd_codegen_affine whole, rest;
    split(a, d, &whole, &rest);
    *a = rest;
    if (within(v, &rest, d)) return;
    const int64_t g = common(&rest, d), r = shrink(&rest, g);
    *a = (cd_codegen_affine){.c = r};
    d /= g;
    if (d == 1) return;
    if (within(v, &rest, d)) {
        cd_codegen_affine_add(v, a, &rest, g);
        return;
    }
    const cd_expr *x = expr_of(v, t, &rest);
    if (is_atom(&rest, CD_FMOD) && rest.t[0].atom->a[1]->u.i % d == 0)
        x = as_type(v, t, rest.t[0].atom->a[0]);
    add_term(v, a, g, cd_expr_bin(&v->pool, CD_FMOD, x, cd_expr_new_int(&v->pool, t, d)));
}

/* ---- expressions ---- */

/* The four states of a variable: see the header. */
static void variable(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out) {
    const struct cd_codegen_env_var *x = e->u.i <= (int64_t)v->n_var ? &v->var[e->u.i] : NULL;
    *out = (cd_codegen_affine){0};
    if (x && (x->fixed || x->lane)) out->c = x->value;
    if (x && x->fixed) return;
    if (x && x->lane) add_term(v, out, 1, cd_expr_new_var(&v->pool, e->type, v->n_var));
    if (!x || !x->lane || x->both)
        add_term(v, out, 1, cd_expr_new_var(&v->pool, e->type, (uint32_t)e->u.i));
}

/* An expression that is not linear is rebuilt on applied operands and becomes one atom, or a number
 * if it folds. */
static void opaque(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out) {
    const cd_expr *small[4], **a = small;
    if (e->n > 4 && !(a = cd_arena_alloc(&v->pool.arena, e->n, sizeof *a))) {
        v->pool.oom = true;
        *out = (cd_codegen_affine){0};
        return;
    }
    for (uint32_t k = 0; k < e->n; k++) a[k] = cd_codegen_env_apply(v, e->a[k]);
    const cd_expr *r;
    if (cd_expr_op_is_binary((cd_expr_op)e->op))
        r = cd_expr_bin(&v->pool, (cd_expr_op)e->op, a[0], a[1]);
    else if (e->op == CD_LOAD) r = cd_expr_new_load(&v->pool, e->type, (uint32_t)e->u.i, a, e->n);
    else if (e->op == CD_CALL) r = cd_expr_new_call(&v->pool, e->type, e->u.name, a, e->n);
    else if (e->op == CD_CAST) r = cd_expr_cast(&v->pool, e->type, a[0]);
    else
        r = e->op == CD_NOT ? cd_expr_new_not(&v->pool, a[0])
                            : cd_expr_new_select(&v->pool, a[0], a[1], a[2]);
    *out = (cd_codegen_affine){0};
    if (r->op == CD_INT) out->c = r->u.i;
    else add_term(v, out, 1, r);
}

static bool plain_division(const cd_codegen_env *v, const cd_expr *e, const cd_codegen_affine *a) {
    (void)v;
    if (e->a[1]->op != CD_INT || e->a[1]->u.i <= 0) return false;
    return e->op == CD_FDIV || e->op == CD_FMOD || cd_codegen_affine_range(v, a).lo >= 0;
}

static void quotient(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out) {
    cd_codegen_env_affine(v, e->a[0], out);
    if (!plain_division(v, e, out)) opaque(v, e, out);
    else if (e->op == CD_FDIV || e->op == CD_DIV)
        cd_codegen_affine_divide(v, e->type, out, e->a[1]->u.i);
    else cd_codegen_affine_modulo(v, e->type, out, e->a[1]->u.i);
}

static void product(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out) {
    cd_codegen_affine a, b;
    cd_codegen_env_affine(v, e->a[0], &a);
    cd_codegen_env_affine(v, e->a[1], &b);
    *out = (cd_codegen_affine){0};
    if (!a.n) cd_codegen_affine_add(v, out, &b, a.c);
    else if (!b.n) cd_codegen_affine_add(v, out, &a, b.c);
    else opaque(v, e, out);
}

static bool decided(cd_codegen_env *v, const cd_expr *e, const cd_expr **out);

/* The form of what cd_codegen_env_apply made: its variables stand for themselves. */
static void applied(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out) {
    cd_codegen_affine b;
    *out = (cd_codegen_affine){0};
    if (e->op == CD_INT) {
        out->c = e->u.i;
    } else if (e->op == CD_ADD) {
        applied(v, e->a[0], out);
        applied(v, e->a[1], &b);
        cd_codegen_affine_add(v, out, &b, 1);
    } else if (e->op == CD_MUL && e->a[1]->op == CD_INT) {
        applied(v, e->a[0], &b);
        cd_codegen_affine_add(v, out, &b, e->a[1]->u.i);
    } else {
        add_term(v, out, 1, e);
    }
}
void cd_codegen_env_affine_applied(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out) {
    applied(v, e, out);
}

/* The form of e; e itself may still hold variables with known values. */
void cd_codegen_env_affine(cd_codegen_env *v, const cd_expr *e, cd_codegen_affine *out) {
    const cd_expr *r;
    cd_codegen_affine b;
    switch ((cd_expr_op)e->op) {
    case CD_INT: *out = (cd_codegen_affine){.c = e->u.i}; return;
    case CD_VAR: variable(v, e, out); return;
    case CD_ADD:
    case CD_SUB:
        cd_codegen_env_affine(v, e->a[0], out);
        cd_codegen_env_affine(v, e->a[1], &b);
        cd_codegen_affine_add(v, out, &b, e->op == CD_ADD ? 1 : -1);
        return;
    case CD_MUL: product(v, e, out); return;
    case CD_DIV:
    case CD_MOD:
    case CD_FDIV:
    case CD_FMOD: quotient(v, e, out); return;
    default: break;
    }
    if (decided(v, e, &r)) applied(v, r, out);
    else opaque(v, e, out);
}

/* A selection whose condition is decided by the ranges is the chosen side. */
static bool decided(cd_codegen_env *v, const cd_expr *e, const cd_expr **out) {
    const bool ite = e->op == CD_CALL && !strcmp(e->u.name, "if_then_else") && e->n == 3;
    if (e->op != CD_SELECT && !ite) return false;
    const int d = cd_codegen_range_decide(&v->ranges, cd_codegen_env_apply(v, e->a[0]));
    if (d < 0) return false;
    *out = cd_codegen_env_apply(v, e->a[d ? 1 : 2]);
    return true;
}

/* Index types go through their affine form; other types are rebuilt operand by operand. */
const cd_expr *cd_codegen_env_apply(cd_codegen_env *v, const cd_expr *e) {
    cd_codegen_affine a;
    const cd_expr *r;
    switch ((cd_expr_op)e->op) {
    case CD_INT: return cd_expr_new_int(&v->pool, e->type, e->u.i);
    case CD_FLOAT: return cd_expr_new_float(&v->pool, e->type, e->u.f);
    case CD_STR: return cd_expr_new_str(&v->pool, e->u.name);
    default: break;
    }
    if (decided(v, e, &r)) return r;
    if (cd_expr_dtype_is_index(e->type)) {
        cd_codegen_env_affine(v, e, &a);
        return expr_of(v, e->type, &a);
    }
    if (e->op == CD_VAR) return cd_expr_new_var(&v->pool, e->type, (uint32_t)e->u.i);
    opaque(v, e, &a);
    if (!a.n) return cd_expr_new_int(&v->pool, e->type, a.c);
    r = a.t[0].atom;
    const int d = e->type == CD_BOOL ? cd_codegen_range_decide(&v->ranges, r) : -1;
    return d < 0 ? r : cd_expr_new_int(&v->pool, CD_BOOL, d);
}

const cd_expr *cd_codegen_env_at_lane(cd_codegen_env *v, const cd_expr *e, int64_t k) {
    struct cd_codegen_env_var *now = v->var;
    v->var = v->plain;
    v->var[v->n_var] = (struct cd_codegen_env_var){.fixed = true, .value = k};
    const cd_expr *r = cd_codegen_env_apply(v, e);
    v->var = now;
    return r;
}
