/* The usual reducers: sum, maximum, minimum. Their identity follows from the type. */
#include <float.h>

#include "features/te/te.h"

const cd_expr *cd_te_identity(cd_expr_pool *p, cd_expr_op op, cd_dtype t) {
    const unsigned bits = cd_expr_dtype_bits(t);
    if (cd_expr_dtype_is_float(t)) {
        const double max = cd_expr_dtype_kind(t) == CD_T_BFLOAT ? 3.3895313892515355e38
                           : bits == 16                         ? 65504.0
                           : bits == 32                         ? (double)FLT_MAX
                                                                : DBL_MAX;
        return cd_expr_new_float(p, t, op == CD_ADD ? 0 : op == CD_MAX ? -max : max);
    }
    const bool is_signed = cd_expr_dtype_kind(t) == CD_T_INT;
    const int64_t max = bits >= 64 ? INT64_MAX : (int64_t)(((uint64_t)1 << (bits - is_signed)) - 1);
    return cd_expr_new_int(p, t, op == CD_ADD ? 0 : op == CD_MIN ? max : is_signed ? -max - 1 : 0);
}

cdmpp_status cd_te_reducer_usual(cd_te_dag *dag, cd_expr_op op, cd_dtype t, cd_te_reducer *out,
                                 cdmpp_err *err) {
    cd_expr_pool *p = &dag->pool;
    const cd_expr **e = CD_NEWN(&dag->arena, const cd_expr *, 4);
    if (!e) return CD_FAIL(err, ENOMEM, "reducer");
    e[0] = cd_expr_new_var(p, t, cd_expr_pool_var_number(p));
    e[1] = cd_expr_new_var(p, t, cd_expr_pool_var_number(p));
    e[2] = cd_expr_new_bin(p, op, e[0], e[1]);
    e[3] = cd_te_identity(p, op, t);
    *out = (cd_te_reducer){1, &e[0], &e[1], &e[2], &e[3]};
    return CDMPP_OK;
}
