/* arith.h -- what an operator of two numbers gives, for every evaluator of expressions in tests. */
#ifndef ARITH_H
#define ARITH_H
#include <math.h>

#include "features/expr/expr.h"

static inline bool ar_divides(const cd_expr *e) {
    return e->op == CD_DIV || e->op == CD_MOD || e->op == CD_FDIV || e->op == CD_FMOD;
}

/* In doubles, by the type of e where that matters; false: not such an operator. A zero divisor is
 * the caller's business. */
static inline bool ar_binary(const cd_expr *e, double a, double b, double *out) {
    switch ((cd_expr_op)e->op) {
    case CD_ADD: *out = a + b; return true;
    case CD_SUB: *out = a - b; return true;
    case CD_MUL: *out = a * b; return true;
    case CD_MIN: *out = a < b ? a : b; return true;
    case CD_MAX: *out = a > b ? a : b; return true;
    case CD_EQ: *out = a == b; return true;
    case CD_NE: *out = a != b; return true;
    case CD_LT: *out = a < b; return true;
    case CD_LE: *out = a <= b; return true;
    case CD_GT: *out = a > b; return true;
    case CD_GE: *out = a >= b; return true;
    case CD_DIV: *out = cd_expr_dtype_is_float(e->type) ? a / b : trunc(a / b); return true;
    case CD_MOD: *out = a - b * trunc(a / b); return true;
    case CD_FDIV: *out = floor(a / b); return true;
    case CD_FMOD: *out = a - b * floor(a / b); return true;
    default: return false;
    }
}
#endif
