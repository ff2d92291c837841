/* loopmask -- which loops an expression depends on, as bits.
 *
 * A loop's bit is its depth in the nest. Masks are memoised by expression until a
 * variable turns up at another depth: a thread of a reduction is one loop in the
 * nest that clears the element and in the one that adds up. Loops deeper than 62
 * share the last bit: there the answer may be "yes" too often. */
#ifndef CD_LOOPMASK_H
#define CD_LOOPMASK_H
#include "features/expr/expr.h"

#define CD_MASK_LAST 63U

typedef struct cd_mask_slot {
    uint64_t mask;
    uint32_t stamp;
} cd_mask_slot;

typedef struct cd_masks {
    cd_mask_slot *memo, *var; /* by expression id; by variable number */
    uint32_t cap_memo, cap_var, epoch, memo_epoch;
    bool oom;
} cd_masks;

void cd_masks_begin(cd_masks *m); /* a new program */
void cd_masks_free(cd_masks *m);
void cd_masks_loop(cd_masks *m, const cd_expr *var, uint32_t depth);
uint64_t cd_masks_of(cd_masks *m, const cd_expr *e);
static inline uint64_t cd_mask_bit(uint32_t depth) { return (uint64_t)1 << (depth < CD_MASK_LAST ? depth : CD_MASK_LAST); }
#endif
