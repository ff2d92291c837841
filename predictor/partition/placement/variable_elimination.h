/* variable_elimination -- the least sum of small tables over choices. Private to placement and
 * splits.
 *
 *   choices x0 x1 x2  tables f(x0) g(x0, x1) h(x1, x2)  least of f + g + h: take x2 out: m(x1) =
 *                                                       min h, then x1, then x0
 *
 *   (1) a choice is taken out by one table over its neighbours; next is the one whose table is
 *       smallest (then the lowest number);
 *   (2) no table has more than `most` states: if one would, the graph is too wide and there is no
 *       answer;
 *   (3) ties go to the lower option, so the same problem has the same answer.
 * O(n D^(width + 1)). Tables may have infinity, not NaN. Any thread. Source: Bertele and Brioschi
 * 1972 (nonserial dynamic programming). */
#ifndef CD_VARIABLE_ELIMINATION_H
#define CD_VARIABLE_ELIMINATION_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"

enum { CD_VARIABLE_ELIMINATION_SCOPE = 24 };

typedef struct cd_variable_elimination_table {
    uint32_t n_var;
    const uint32_t *var; /* (n_var) different ones */
    const double *cost;  /* (product of sizes) the last variable fastest */
} cd_variable_elimination_table;

typedef struct cd_variable_elimination {
    uint32_t n_var, n_table;
    uint32_t n_main;      /* those before are chosen; the rest follow from them */
    const uint32_t *size; /* (n_var) options, >= 1 */
    const cd_variable_elimination_table *table; /* (n_table) */
} cd_variable_elimination;

/* choice (n_var). *wide: too wide, choice untouched. *looked grows by the states that were costed.
 * Errors: ENOMEM. */
cdmpp_status cd_variable_elimination_solve(const cd_variable_elimination *p, size_t most,
                                           uint32_t *choice, bool *wide, uint64_t *looked,
                                           cdmpp_err *err);
/* From a choice to a better one: windows of neighbouring variables are solved to the end, the rest
 * held, until none of them helps or *looked has reached `looks`. Variables from n_main on belong to
 * every window that they touch. Errors: ENOMEM. */
cdmpp_status cd_variable_elimination_improve(const cd_variable_elimination *p, size_t most,
                                             uint64_t looks, uint32_t *choice, uint64_t *looked,
                                             cdmpp_err *err);
#endif
