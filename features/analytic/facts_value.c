/* What a stored value takes: float operations, those that fuse, selections, functions. Addresses inside loads are not looked at. */
#include <string.h>

#include "features/analytic/analytic_internal.h"

static bool one_of(const char *name, const char *const *list) {
    for (; *list; list++)
        if (!strcmp(name, *list)) return true;
    return false;
}

typedef struct {
    const cd_expr *inner;
    cd_an_value *v;
} counter;

/* Not moved by the innermost loop: done once outside of it. */
static bool outside(const counter *c, const cd_expr *e) { return c->inner && !cd_expr_uses(e, c->inner); }

static void call(const counter *c, const cd_expr *e) {
    cd_an_value *v = c->v;
    static const char *const exps[] = {"exp", "exp2", "exp10", "sigmoid", "log", "log2", "log10", "log1p", NULL};
    static const char *const tanhs[] = {"tanh", "erf", NULL};
    static const char *const roots[] = {"sqrt", "rsqrt", NULL};
    static const char *const cheap[] = {"likely", "floor", "ceil", "trunc", "round", "nearbyint", "fabs", "isnan", "isfinite", "bitwise_and", "bitwise_or",
                                        "bitwise_xor", "bitwise_not", "shift_left", "shift_right", "reinterpret", NULL};
    const char *name = e->u.name;
    if (!strcmp(name, "if_then_else")) v->conditions++;
    else if (outside(c, e)) return;
    else if (one_of(name, exps)) v->exps++;
    else if (one_of(name, tanhs)) v->tanhs++;
    else if (one_of(name, roots)) v->divides++;
    else if (one_of(name, cheap)) v->others++;
    else v->calls++;
}

static bool is_mul(const cd_expr *e) { return e->op == CD_MUL && cd_expr_dtype_is_float(e->type); }

static void arithmetic(const counter *c, const cd_expr *e) {
    cd_an_value *v = c->v;
    if (!cd_expr_dtype_is_float(e->type)) {
        v->ints++;
        return;
    }
    switch ((cd_expr_op)e->op) {
    case CD_ADD: case CD_SUB:
        v->adds++;
        v->fused += is_mul(e->a[0]) || is_mul(e->a[1]);
        return;
    case CD_MUL: v->muls++; return;
    case CD_MIN: case CD_MAX: v->others++; return;
    default: v->divides += !outside(c, e);
    }
}

static void visit(const counter *c, const cd_expr *e) {
    cd_an_value *v = c->v;
    uint32_t from = 0;
    switch ((cd_expr_op)e->op) {
    case CD_LOAD: v->loads = true; return;
    case CD_CALL:
        call(c, e);
        from = !strcmp(e->u.name, "if_then_else"); /* conditions are counted, not looked into */
        break;
    case CD_SELECT:
        v->selects++;
        from = e->a[0]->flags & CD_EXPR_HAS_LOAD ? 0 : 1;
        break;
    case CD_CAST: v->casts++; break;
    default:
        if (cd_expr_op_is_arith((cd_expr_op)e->op)) arithmetic(c, e);
        else if (cd_expr_op_is_cmp((cd_expr_op)e->op)) v->selects++;
    }
    for (uint32_t i = from; i < e->n; i++) visit(c, e->a[i]);
}

static bool plain(const cd_expr *e) {
    if (e->op == CD_LOAD) return true;
    if (e->op == CD_CALL && e->n == 3 && !strcmp(e->u.name, "if_then_else")) return (plain(e->a[1]) || !(e->a[1]->flags & CD_EXPR_HAS_LOAD)) && (plain(e->a[2]) || !(e->a[2]->flags & CD_EXPR_HAS_LOAD));
    return false;
}

void cd_an_value_of(const cd_expr *e, const cd_expr *inner, cd_an_value *out) {
    const counter c = {inner, out};
    *out = (cd_an_value){.plain = (e->flags & CD_EXPR_HAS_LOAD) && plain(e)};
    visit(&c, e);
}
