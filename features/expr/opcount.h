/* Operations of one value expression, by kind: docs/internals/ansor.md, Feature rows. */
#ifndef CD_OPCOUNT_H
#define CD_OPCOUNT_H
#include "features/expr/expr.h"

/* In the order of columns 1..6, 8..13, 14, 15 of a row. */
enum {
    CD_CNT_F_ADDSUB, CD_CNT_F_MUL, CD_CNT_F_DIVMOD, CD_CNT_F_CMP, CD_CNT_F_MATH, CD_CNT_F_OTHER,
    CD_CNT_I_ADDSUB, CD_CNT_I_MUL, CD_CNT_I_DIVMOD, CD_CNT_I_CMP, CD_CNT_I_MATH, CD_CNT_I_OTHER,
    CD_CNT_BOOL, CD_CNT_SELECT, CD_CNT_COUNT
};
#define CD_OPCOUNT_MAX 10000000U /* nodes of one value; more is EUNSUPPORTED, not an hour of counting */

typedef struct cd_opcount {
    uint32_t n[CD_CNT_COUNT];
    uint32_t nodes;
} cd_opcount;

/* Adds the nodes of `e`, index expressions inside loads included. False: too many. */
bool cd_opcount_add(cd_opcount *c, const cd_expr *e);
#endif
