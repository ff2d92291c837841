/* workload_internal -- a workload while it is built. Private to the room.
 *
 *   nodes of fuse ── one group after the other ──> definition (JSON) ── equal ones once ──> task */
#ifndef CD_WORKLOAD_INTERNAL_H
#define CD_WORKLOAD_INTERNAL_H
#include "profiler/network/compute/compute.h"
#include "profiler/network/workload/workload.h"

typedef struct cd_workload_definition { /* a distinct definition */
    const char *body;                   /* "args" and "ops" of its task, as JSON */
    const char *key;
} cd_workload_definition;

typedef struct cd_workload_builder {
    cd_workload *w;
    const cd_workload_options *o;
    const cd_fuse_graph *f;
    cd_te_compute *c;
    cd_arena scratch;
    uint32_t *group_of;          /* (f->n) group that the node's value comes from; CD_GRAPH_NONE */
    uint32_t *buffer_of;         /* (f->n) CD_GRAPH_NONE: none yet */
    cd_workload_definition *def; /* (n_task) */
    uint32_t *slot, n_slot;      /* definitions by body: task + 1 */
    /* a registry that definitions are read into one by one, for their DAG */
    cd_task_registry *one;
    cdmpp_err *err;
} cd_workload_builder;

/* The task for the definition in b->c, a new one or an equal one; *why not NULL: the task reader
 * refuses the definition. Errors: ENOMEM. */
cdmpp_status cd_workload_make_task(cd_workload_builder *b, uint32_t *task, const char **why);
#endif
