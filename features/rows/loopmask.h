/* Which loops an expression depends on, as bits.
 *
 * A loop's bit is its depth in the nest. Masks are memoised by expression until a
 * variable turns up at another depth: a thread of a reduction is one loop in the
 * nest that clears the element and in the one that adds up. Loops deeper than 62
 * share the last bit: there the answer may be "yes" too often. */
#ifndef CD_LOOPMASK_H
#define CD_LOOPMASK_H
#include "features/expr/expr.h"

#define CD_LOOPMASK_LAST 63U

typedef struct cd_loopmask_slot {
    uint64_t mask;
    uint32_t stamp;
} cd_loopmask_slot;

typedef struct cd_loopmask {
    cd_loopmask_slot *memo, *var; /* by expression id; by variable number */
    uint32_t cap_memo, cap_var, epoch, memo_epoch;
    bool oom;
} cd_loopmask;

void cd_loopmask_begin(cd_loopmask *m); /* a new program */
void cd_loopmask_free(cd_loopmask *m);
/* The variable is that of the loop at this depth; the loops that `e` depends on. */
void cd_loopmask_set(cd_loopmask *m, const cd_expr *var, uint32_t depth);
uint64_t cd_loopmask_get(cd_loopmask *m, const cd_expr *e);
static inline uint64_t cd_loopmask_bit(uint32_t depth) { return (uint64_t)1 << (depth < CD_LOOPMASK_LAST ? depth : CD_LOOPMASK_LAST); }
#endif
