/* What a definition is made of, by EOP's categories of what there is to optimise. It is read off
 * the expressions; names of operators play no part. */
#include <float.h>
#include <string.h>

#include "features/te/te.h"

/* The usual reducers: sum, maximum, minimum. Their identity follows from the type. */

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

static bool is_condition(const cd_expr *e) {
    return e->op == CD_SELECT || (e->op == CD_CALL && !strcmp(e->u.name, "if_then_else"));
}

/* Sums of axes and of multiples of axes are what loops count themselves; everything else in an
 * index is work, or unknown before the run. */
static bool is_plain_index(const cd_expr *e) {
    if (e->op == CD_INT || e->op == CD_VAR) return true;
    if (e->op != CD_ADD && e->op != CD_SUB && e->op != CD_MUL && e->op != CD_CAST) return false;
    for (uint32_t k = 0; k < e->n; k++)
        if (!is_plain_index(e->a[k])) return false;
    return e->op != CD_MUL || e->a[0]->op == CD_INT || e->a[1]->op == CD_INT;
}

static unsigned of_expr(const cd_expr *e) {
    unsigned found = is_condition(e) ? CD_TE_CONDITION : 0;
    for (uint32_t k = 0; k < e->n; k++) {
        if (e->op == CD_LOAD && !is_plain_index(e->a[k])) found |= CD_TE_INDEX;
        found |= of_expr(e->a[k]);
    }
    return found;
}

/* An extent that depends on the element is an index expression, too. */
static unsigned of_op(const cd_te_op *op) {
    unsigned found = op->red ? CD_TE_REDUCE : 0;
    if (op->cond) found |= CD_TE_CONDITION;
    for (uint32_t k = 0; k < op->n_raxis; k++)
        if (op->raxis[k].extent->op != CD_INT || op->raxis[k].min->op != CD_INT)
            found |= CD_TE_INDEX;
    for (uint32_t k = 0; k < op->n_out; k++) found |= of_expr(op->body[k]);
    return found;
}

unsigned cd_te_constructs_of(const cd_te_dag *d) {
    unsigned found = 0;
    for (uint32_t i = 0; i < d->n_op; i++)
        if (!d->op[i].is_placeholder) found |= of_op(&d->op[i]);
    return found ? found : CD_TE_BASIC;
}

const char *cd_te_construct_name(unsigned bit) {
    static const char *const name[] = {"basic", "reduce", "condition", "index"};
    for (unsigned k = 0; k < sizeof name / sizeof *name; k++)
        if (bit == 1U << k) return name[k];
    return NULL;
}

/* Few: a definition has two or three types. */
unsigned cd_te_types_of(const cd_te_dag *d, cd_dtype type[CD_TE_TYPES]) {
    unsigned n = 0;
    for (uint32_t i = 0; i < d->n_op; i++)
        for (uint32_t k = 0; k < d->op[i].n_out; k++) {
            unsigned at = 0;
            while (at < n && type[at] != d->op[i].dtype[k]) at++;
            if (at == n && n < CD_TE_TYPES) type[n++] = d->op[i].dtype[k];
        }
    return n;
}
