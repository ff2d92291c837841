/* Interval arithmetic on expressions, saturating at the two infinities. Unknown variables and
 * operators give everything, so that an answer is always safe. */
#include "profiler/codegen/code/code.h"

#include <string.h>

static const cd_bound everything = {CD_NEG_INF, CD_INF};

static bool inf(int64_t x) { return x == CD_INF || x == CD_NEG_INF; }
static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

/* b > 0 */
static int64_t floordiv(int64_t a, int64_t b) { return inf(a) ? a : cd_expr_floordiv(a, b); }
static int64_t truncdiv(int64_t a, int64_t b) { return inf(a) ? a : a / b; }

static cd_bound corners(cd_bound a, cd_bound b) {
    const int64_t p = cd_const_int_bound_mul(a.lo, b.lo), q = cd_const_int_bound_mul(a.lo, b.hi),
                  r = cd_const_int_bound_mul(a.hi, b.lo), s = cd_const_int_bound_mul(a.hi, b.hi);
    return (cd_bound){lesser(lesser(p, q), lesser(r, s)), greater(greater(p, q), greater(r, s))};
}

/* Remainder of a division by one positive number; `floor`: never negative. Within one period it is
 * exact. */
static cd_bound remainder_of(cd_bound a, int64_t by, bool floor) {
    if (a.lo >= 0 && a.hi < by) return a;
    if (floor && !inf(a.lo) && !inf(a.hi) &&
        cd_expr_floordiv(a.lo, by) == cd_expr_floordiv(a.hi, by))
        return (cd_bound){cd_expr_floormod(a.lo, by), cd_expr_floormod(a.hi, by)};
    return (cd_bound){floor || a.lo >= 0 ? 0 : -(by - 1), a.hi <= 0 && !floor ? 0 : by - 1};
}

static cd_bound quotient(const cd_expr *e, cd_bound a, cd_bound b) {
    if (b.lo != b.hi || b.lo <= 0) return everything;
    switch ((cd_expr_op)e->op) {
    case CD_FDIV: return (cd_bound){floordiv(a.lo, b.lo), floordiv(a.hi, b.lo)};
    case CD_DIV: return (cd_bound){truncdiv(a.lo, b.lo), truncdiv(a.hi, b.lo)};
    default: return remainder_of(a, b.lo, e->op == CD_FMOD);
    }
}

static cd_bound binary(const cd_codegen_ranges *r, const cd_expr *e) {
    const cd_bound a = cd_codegen_range_of(r, e->a[0]), b = cd_codegen_range_of(r, e->a[1]);
    switch ((cd_expr_op)e->op) {
    case CD_ADD:
        return (cd_bound){cd_const_int_bound_add(a.lo, b.lo), cd_const_int_bound_add(a.hi, b.hi)};
    case CD_SUB:
        return (cd_bound){cd_const_int_bound_add(a.lo, -b.hi), cd_const_int_bound_add(a.hi, -b.lo)};
    case CD_MUL: return corners(a, b);
    case CD_MIN: return (cd_bound){lesser(a.lo, b.lo), lesser(a.hi, b.hi)};
    case CD_MAX: return (cd_bound){greater(a.lo, b.lo), greater(a.hi, b.hi)};
    default: return quotient(e, a, b);
    }
}

static cd_bound call(const cd_codegen_ranges *r, const cd_expr *e) {
    if (!strcmp(e->u.name, "likely") && e->n == 1) return cd_codegen_range_of(r, e->a[0]);
    if (!strcmp(e->u.name, "if_then_else") && e->n == 3)
        return cd_const_int_bound_unite(cd_codegen_range_of(r, e->a[1]),
                                        cd_codegen_range_of(r, e->a[2]));
    return everything;
}

cd_bound cd_codegen_range_of(const cd_codegen_ranges *r, const cd_expr *e) {
    if (cd_expr_dtype_is_float(e->type)) return everything;
    switch ((cd_expr_op)e->op) {
    case CD_INT: return (cd_bound){e->u.i, e->u.i};
    case CD_VAR:
        if (!r || e->u.i >= (int64_t)r->n || r->var[e->u.i].lo > r->var[e->u.i].hi)
            return everything;
        return r->var[e->u.i];
    case CD_SELECT:
        return cd_const_int_bound_unite(cd_codegen_range_of(r, e->a[1]),
                                        cd_codegen_range_of(r, e->a[2]));
    case CD_CAST:
        return cd_expr_dtype_is_index(e->type) && cd_expr_dtype_is_index(e->a[0]->type)
                   ? cd_codegen_range_of(r, e->a[0])
                   : everything;
    case CD_CALL: return call(r, e);
    default: return cd_expr_op_is_arith((cd_expr_op)e->op) ? binary(r, e) : everything;
    }
}

/* a < b or a <= b over ranges. */
static int less(cd_bound a, cd_bound b, bool equal) {
    if (equal ? a.hi <= b.lo : a.hi < b.lo) return 1;
    if (equal ? a.lo > b.hi : a.lo >= b.hi) return 0;
    return -1;
}

static int same(cd_bound a, cd_bound b) {
    if (a.lo == a.hi && b.lo == b.hi && a.lo == b.lo) return 1;
    return a.hi < b.lo || b.hi < a.lo ? 0 : -1;
}

static int compare(const cd_codegen_ranges *r, const cd_expr *e) {
    const cd_bound a = cd_codegen_range_of(r, e->a[0]), b = cd_codegen_range_of(r, e->a[1]);
    switch ((cd_expr_op)e->op) {
    case CD_LT: return less(a, b, false);
    case CD_LE: return less(a, b, true);
    case CD_GT: return less(b, a, false);
    case CD_GE: return less(b, a, true);
    case CD_EQ: return same(a, b);
    default: return same(a, b) < 0 ? -1 : !same(a, b);
    }
}

static int logic(const cd_codegen_ranges *r, const cd_expr *e) {
    const int a = cd_codegen_range_decide(r, e->a[0]), b = cd_codegen_range_decide(r, e->a[1]);
    const int strong = e->op == CD_OR; /* what either operand decides alone */
    if (a == strong || b == strong) return strong;
    return a < 0 || b < 0 ? -1 : !strong;
}

int cd_codegen_range_decide(const cd_codegen_ranges *r, const cd_expr *cond) {
    if (cond->op == CD_INT) return cond->u.i != 0;
    if (cond->op == CD_CALL && !strcmp(cond->u.name, "likely") && cond->n == 1)
        return cd_codegen_range_decide(r, cond->a[0]);
    if (cond->op == CD_NOT) {
        const int a = cd_codegen_range_decide(r, cond->a[0]);
        return a < 0 ? -1 : !a;
    }
    if (cond->op == CD_AND || cond->op == CD_OR) return logic(r, cond);
    if (!cd_expr_op_is_cmp((cd_expr_op)cond->op) || cd_expr_dtype_is_float(cond->a[0]->type))
        return -1;
    return compare(r, cond);
}

void cd_codegen_ranges_of_nest(const cd_ast *ast, cd_bound *var, uint32_t n_var) {
    for (uint32_t v = 0; v < n_var; v++) var[v] = (cd_bound){1, 0};
    for (int32_t k = 0; k < ast->n; k++) {
        const cd_ast_node *n = &ast->node[k];
        if (n->dead || (n->kind != CD_AST_FOR && n->kind != CD_AST_THREAD) ||
            n->var->u.i >= (int64_t)n_var)
            continue;
        cd_bound *b = &var[n->var->u.i];
        const int64_t hi = n->extent > 0 ? n->extent - 1 : 0;
        if (b->lo > b->hi) *b = (cd_bound){0, hi};
        else if (hi > b->hi) b->hi = hi; /* a thread axis that several nodes name */
    }
}
