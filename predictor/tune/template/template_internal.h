/* What the files of predictor/tune/template share among themselves. */
#ifndef CD_PREDICTOR_TUNE_TEMPLATE_INTERNAL_H
#define CD_PREDICTOR_TUNE_TEMPLATE_INTERNAL_H
#include <stdlib.h>

#include "predictor/tune/template/template.h"

/* Bytes. WAY: of L1, a page, for it is looked up before addresses are translated. */
enum { CD_TEMPLATE_ELEMENT = 4, CD_TEMPLATE_LINE = 64, CD_TEMPLATE_WAY = 4096 };
/* What of a cache the tiles may have: the rest is for stacks, pointers and lines that came too
 * many. */
#define CD_TEMPLATE_L1_SHARE 0.75
#define CD_TEMPLATE_L2_SHARE 0.6

/* Products of extents stop at the end of the type: shapes are anybody's. Both >= 0. */
static inline int64_t cd_template_mul(int64_t a, int64_t b) {
    int64_t c;
    return __builtin_mul_overflow(a, b, &c) ? INT64_MAX : c;
}

/* How an operand lies: without gaps; in rows, seen by L1; in rows, seen by a larger cache. */
typedef enum cd_template_place {
    CD_TEMPLATE_PACKED,
    CD_TEMPLATE_NEAR,
    CD_TEMPLATE_FAR
} cd_template_place;
/* Bytes of a cache that the elements of an operand take which a tile touches. */
int64_t cd_template_bytes(const cd_template_nest *n, const cd_template_machine *m,
                          const cd_template_operand *o, const int64_t *tile,
                          cd_template_place place);
/* Sets the cheapest of these limits of the unroll pragma, the cheapest place of the copy, and the
 * cost. */
void cd_template_choose(const cd_template_nest *n, const cd_template_machine *m,
                        const uint32_t *limit, uint32_t n_limit, cd_template_block *b);
#endif
