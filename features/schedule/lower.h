/* Building blocks of loop nests (docs/internals/ansor.md,
 * Lowering). */
#ifndef CD_LOWER_H
#define CD_LOWER_H
#include "features/schedule/readers.h"

typedef struct cd_lowerer {
    cd_schedule *s;
    cd_ast *t;
    cdmpp_err *err;
    cd_schedule_attached attached;
} cd_lowerer;

/* A stage's stores, ready to be emitted. */
typedef struct cd_stores {
    uint32_t n;
    const cd_expr **value; /* (n) */
    const cd_expr **index; /* (rank) shared by all outputs */
    cd_schedule_preds preds;
} cd_stores;

#endif
