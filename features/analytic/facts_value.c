/* What a stored value takes: float operations, those that fuse, selections, functions. Addresses
 * inside loads are not looked at. */
#include <string.h>

#include "features/analytic/analytic_internal.h"

static bool one_of(const char *name, const char *const *list) {
    for (; *list; list++)
        if (!strcmp(name, *list)) return true;
    return false;
}

typedef struct {
    cd_an *w;
    const cd_expr *inner;
    cd_an_value *v;
} counter;

/* Not moved by the innermost loop: done once outside of it. */
static bool outside(const counter *c, const cd_expr *e) {
    return c->inner && !cd_expr_uses(e, c->inner);
}

static void call(const counter *c, const cd_expr *e, double part) {
    cd_an_value *v = c->v;
    static const char *const exps[] = {"exp",  "exp2",  "exp10", "sigmoid", "log",
                                       "log2", "log10", "log1p", NULL};
    static const char *const tanhs[] = {"tanh", "erf", NULL};
    static const char *const roots[] = {"sqrt", "rsqrt", NULL};
    static const char *const cheap[] = {
        "likely",      "floor",      "ceil",        "trunc",       "round",      "nearbyint",
        "fabs",        "isnan",      "isfinite",    "bitwise_and", "bitwise_or", "bitwise_xor",
        "bitwise_not", "shift_left", "shift_right", "reinterpret", NULL};
    const char *name = e->u.name;
    if (outside(c, e)) return;
    if (one_of(name, exps)) v->exps += part;
    else if (one_of(name, tanhs)) v->tanhs += part;
    else if (one_of(name, roots)) v->divides += part;
    else if (one_of(name, cheap)) v->others += part;
    else v->calls += part;
}

static bool is_mul(const cd_expr *e) { return e->op == CD_MUL && cd_expr_dtype_is_float(e->type); }

static void arithmetic(const counter *c, const cd_expr *e, double part) {
    cd_an_value *v = c->v;
    if (e->op == CD_ADD && (cd_expr_is_dot4(e->a[0]) || cd_expr_is_dot4(e->a[1]))) {
        v->adds += part, v->fused += part;
        return;
    }
    if (!cd_expr_dtype_is_float(e->type)) {
        v->ints += part;
        return;
    }
    switch ((cd_expr_op)e->op) {
    case CD_ADD:
    case CD_SUB:
        v->adds += part;
        if (is_mul(e->a[0]) || is_mul(e->a[1])) v->fused += part;
        return;
    case CD_MUL: v->muls += part; return;
    case CD_MIN:
    case CD_MAX: v->others += part; return;
    default:
        if (!outside(c, e)) v->divides += part;
    }
}

static void visit(const counter *c, const cd_expr *e, double part);

/* One of two values is computed; the condition is counted, not looked into. */
static void branch(const counter *c, const cd_expr *e, double part) {
    const double chance = e->flags & CD_EXPR_HAS_VAR ? cd_facts_affine_chance(c->w, e->a[0]) : 1;
    c->v->conditions += part;
    visit(c, e->a[1], part * chance);
    visit(c, e->a[2], part * (1 - chance));
}

static void visit(const counter *c, const cd_expr *e, double part) {
    cd_an_value *v = c->v;
    switch ((cd_expr_op)e->op) {
    case CD_LOAD: v->loads = true; return;
    case CD_CALL:
        if (e->n == 3 && !strcmp(e->u.name, "if_then_else")) {
            branch(c, e, part);
            return;
        }
        if (cd_expr_is_dot4(e)) v->muls += part;
        else call(c, e, part);
        break;
    case CD_SELECT: v->selects += part; break;
    case CD_CAST: v->casts += part; break;
    default:
        if (cd_expr_op_is_arith((cd_expr_op)e->op)) arithmetic(c, e, part);
        else if (cd_expr_op_is_cmp((cd_expr_op)e->op)) v->selects += part;
    }
    const bool address = e->op == CD_SELECT && !(e->a[0]->flags & CD_EXPR_HAS_LOAD);
    for (uint32_t i = address; i < e->n; i++) visit(c, e->a[i], part);
}

static bool plain(const cd_expr *e) {
    if (e->op == CD_LOAD) return true;
    if (e->op != CD_CALL || e->n != 3 || strcmp(e->u.name, "if_then_else")) return false;
    for (uint32_t i = 1; i < 3; i++)
        if ((e->a[i]->flags & CD_EXPR_HAS_LOAD) && !plain(e->a[i])) return false;
    return true;
}

void cd_facts_value_of(cd_an *w, const cd_expr *e, const cd_expr *inner, cd_an_value *out) {
    const counter c = {w, inner, out};
    *out = (cd_an_value){.plain = (e->flags & CD_EXPR_HAS_LOAD) && plain(e)};
    visit(&c, e, 1);
}
