/* Counts the operations of a value, by kind and by float or integer: the first columns of a feature
 * row. Index expressions inside loads count too, as in TVM (docs/internals/ansor.md, Feature
 * rows). */
#include "features/expr/expr.h"

static int binary_slot(cd_expr_op op) {
    switch (op) {
    case CD_ADD:
    case CD_SUB: return CD_CNT_F_ADDSUB;
    case CD_MUL: return CD_CNT_F_MUL;
    case CD_DIV:
    case CD_MOD:
    case CD_FDIV:
    case CD_FMOD: return CD_CNT_F_DIVMOD;
    default: return CD_CNT_F_CMP;
    }
}

static int slot_of(const cd_expr *e) {
    const cd_expr_op op = (cd_expr_op)e->op;
    if (op == CD_AND || op == CD_OR || op == CD_NOT) return CD_CNT_BOOL;
    if (op == CD_SELECT) return CD_CNT_SELECT;
    if (op == CD_CALL) {
        const int k = e->flags & CD_EXPR_PURE ? CD_CNT_F_MATH : CD_CNT_F_OTHER;
        return cd_expr_dtype_is_float(e->type) ? k : k + (CD_CNT_I_ADDSUB - CD_CNT_F_ADDSUB);
    }
    if (!cd_expr_op_is_arith(op) && !cd_expr_op_is_cmp(op)) return -1;
    return binary_slot(op) +
           (cd_expr_dtype_is_float(e->a[0]->type) ? 0 : CD_CNT_I_ADDSUB - CD_CNT_F_ADDSUB);
}

bool cd_opcount_add(cd_opcount *c, const cd_expr *e) {
    if (++c->nodes > CD_OPCOUNT_MAX) return false;
    const int k = slot_of(e);
    if (cd_expr_is_dot4(e)) c->n[CD_CNT_I_MUL] += 4, c->n[CD_CNT_I_ADDSUB] += 3;
    else if (k >= 0) c->n[k]++;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->a[i]->n && !cd_opcount_add(c, e->a[i])) return false;
    return true;
}
