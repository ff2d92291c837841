/* Who reads whom in a program, and who is attached to whom: found once, when bodies and attach
 * points are final, so that no later step looks through all stages for each stage.
 *
 *   operator     0      1            2
 *   first        0      2            3      5
 *   use          r4,x0  r5,x0' | r5,x1 | r4,x2  r4,x2'     (reader's stage id, a load of its body)
 *
 *   (1) use[first[op] .. first[op+1]) are the loads of that operator's tensors: readers by
 *       ascending stage id, loads of one reader in pre-order, each once;
 *   (2) inlined stages read nothing: their bodies are part of their readers'. */
#ifndef CD_READERS_H
#define CD_READERS_H
#include "features/schedule/schedule.h"

typedef struct cd_schedule_use {
    const cd_expr *load;
    uint32_t reader; /* stage id */
    bool again;      /* the load occurs more than once in the reader */
} cd_schedule_use;

typedef struct cd_schedule_readers {
    uint32_t *first;      /* (n_op + 1) */
    cd_schedule_use *use; /* (first[n_op]) */
} cd_schedule_readers;

/* Stages attached to a stage (of stages by number, not id): the first, then each one's next,
 * ascending by id; -1 ends a list. */
typedef struct cd_schedule_attached {
    int32_t *first, *next; /* (n_stage) */
} cd_schedule_attached;

/* As above. */
cdmpp_status cd_schedule_attached_find(cd_schedule *s, cd_schedule_attached *out, cdmpp_err *err);
#endif
