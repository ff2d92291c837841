/* codegen_range -- lower and upper bound of an integer expression.
 *
 *   i in [0,7]  ──>  (i*4 + 3) // 2  in [1,15]
 *
 * Interval arithmetic over known ranges of variables. It decides whether a floor division
 * may be a plain one, and whether a condition always holds. No state, any thread. */
#ifndef CD_CODEGEN_RANGE_H
#define CD_CODEGEN_RANGE_H
#include "features/nest/nest.h"

typedef struct cd_codegen_ranges {
    uint32_t n;
    const cd_bound *var; /* (n) by variable number; lo > hi: nothing known */
} cd_codegen_ranges;

/* Bounds of e, both included; CD_NEG_INF and CD_INF where nothing is known. `r` NULL: no variable is known. */
cd_bound cd_codegen_range_of(const cd_codegen_ranges *r, const cd_expr *e);
/* Does a condition hold? 1: always, 0: never, -1: not known. */
int cd_codegen_range_decide(const cd_codegen_ranges *r, const cd_expr *cond);

/* Range of every variable that a FOR or THREAD node of the nest binds: var (n_var). */
void cd_codegen_ranges_of_nest(const cd_ast *ast, cd_bound *var, uint32_t n_var);
#endif
