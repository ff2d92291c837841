/* Replace variables (and redirect loads) in expressions, memoised.
 *
 * A substitution is started, given its replacements, then applied to any number
 * of expressions; starting the next one costs nothing (stamps). Replacements
 * are not substituted again. Nodes are rebuilt as they are, without folding,
 * as TVM's Substitute does. */
#ifndef CD_SUBST_H
#define CD_SUBST_H
#include "features/expr/expr.h"

typedef struct cd_subst_slot {
    const cd_expr *val;
    uint32_t stamp;
} cd_subst_slot;

typedef struct cd_subst {
    cd_expr_pool *pool;
    cd_subst_slot *memo, *var; /* by expression id; by variable number */
    uint32_t cap_memo, cap_var, epoch, n_set;
    bool oom;
    /* Called for each LOAD after its operands were rewritten; NULL: keep. */
    const cd_expr *(*load)(void *ctx, const cd_expr *e);
    void *load_ctx;
} cd_subst;

void cd_subst_init(cd_subst *s, cd_expr_pool *pool); /* results are made in `pool`, which is borrowed */
void cd_subst_free(cd_subst *s);
void cd_subst_begin(cd_subst *s); /* a new substitution without replacements */
/* `to` == the variable itself is fine (no change). */
void cd_subst_set(cd_subst *s, const cd_expr *var, const cd_expr *to);
/* `e` with all replacements made. Out of memory: sets oom and returns some valid expression. */
const cd_expr *cd_subst_apply(cd_subst *s, const cd_expr *e);
#endif
