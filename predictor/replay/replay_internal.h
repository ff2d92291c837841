/* What the files of replay share.
 *
 *   cd_replay_sim    net checked: who comes after whom, both ways; an order; longest chains behind
 *                    and before
 *   simulate     (replay.c)  events in time, one heap
 *   memory       (replay_trace.c) from the times */
#ifndef CD_REPLAY_INTERNAL_H
#define CD_REPLAY_INTERNAL_H
#include "predictor/replay/replay.h"

#define CD_REPLAY_NONE UINT32_MAX
enum { CD_REPLAY_MAX_DEVICE = 4096, CD_REPLAY_MAX_WORKER = 1024 };

typedef struct cd_replay_sim {
    const cd_replay_net *n;
    uint32_t *first, *to; /* (n_op + 1), (n_after): to[first[k] .. first[k+1]) come after k */
    uint32_t *order;      /* (n_op) */
    uint32_t *link;       /* (n_device, n_device) CD_REPLAY_NONE: no such link */
    /* (n_op) longest chain from its start to the end, copies left out */
    double *tail;
} cd_replay_sim;

static inline double cd_replay_runs(const cd_replay_op *o) { return o->runs > 0 ? o->runs : 1; }

/* Bytes alive, from the times. Errors: ENOMEM. */
cdmpp_status cd_replay_memory(const cd_replay_sim *p, cd_arena *scratch, cd_replay *out,
                              cdmpp_err *err);
#endif
