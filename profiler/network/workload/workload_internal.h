/* workload_part -- a workload while it is built. Private to workload*.c.
 *
 *   nodes of fuse ── one group after the other ──> definition (JSON) ── equal ones once ──> task */
#ifndef CD_WORKLOAD_PART_H
#define CD_WORKLOAD_PART_H
#include "profiler/network/compute/compute.h"
#include "profiler/network/workload/workload.h"

typedef struct cd_wdef {        /* a distinct definition */
    const char *body;           /* "args" and "ops" of its task, as JSON */
    const char *key;
} cd_wdef;

typedef struct cd_wbuild {
    cd_workload *w;
    const cd_workload_options *o;
    const cd_fgraph *f;
    cd_te_compute *c;
    cd_arena scratch;
    uint32_t *group_of;         /* (f->n) group that the node's value comes from; CD_GRAPH_NONE */
    uint32_t *buffer_of;        /* (f->n) CD_GRAPH_NONE: none yet */
    cd_wdef *def;               /* (n_task) */
    uint32_t *slot, n_slot;     /* definitions by body: task + 1 */
    cd_tasks *one;              /* keys are found from here */
    cdmpp_err *err;
} cd_wbuild;

/* The node whose memory a node is: behind views. */
uint32_t cd_wb_base(const cd_fgraph *f, uint32_t node);
/* Groups for all nodes; the tasks' texts go to b->def. */
cdmpp_status cd_wb_groups(cd_wbuild *b);
/* Task for the definition in b->c; *why: a definition that cannot be read. */
cdmpp_status cd_wb_task(cd_wbuild *b, uint32_t *task, const char **why);
/* States of the graph's nodes, the groups' nodes and operators, weights. */
cdmpp_status cd_wb_nodes(cd_wbuild *b);
#endif
