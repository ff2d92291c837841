/* compute -- a group of fused operators as a compute definition: the text form of a task
 * (docs/reference/tasks.md).
 *
 *   group {conv, add, relu} ──> pad_temp, conv2d_nhwc, T_add, T_relu + placeholders
 *
 * The workload room asks for one definition a group; equal definitions are one task. Stages, their
 * order, names, axes and tags are those of TVM's TOPI (v0.9), so that equal operators give TVM's
 * workload keys, and records of TVM's logs fit: tests/profiler/network/compute/test_te_compute.c
 * checks this.
 *   (1) stage k of a definition has the ref "t<k>"; it reads stages before it;
 *   (2) arguments are in the order in which a depth-first walk from the last stage finds them; the
 *       last stage comes last.
 * One thread. */
#ifndef CD_COMPUTE_H
#define CD_COMPUTE_H
#include "profiler/network/fusion/fusion.h"

typedef struct cd_te_compute_stage {
    uint32_t node; /* of a placeholder, else CD_GRAPH_NONE */
    uint32_t rank;
    int64_t dim[CD_GRAPH_MAX_RANK];
    uint32_t first_in, n_in; /* in reads[] */
    const char *name;
} cd_te_compute_stage;

typedef struct cd_te_compute {
    const cd_fuse_graph *f;
    uint32_t group; /* root that f->group has for the members */
    bool single;    /* a group of this node alone (weights) */
    cd_arena arena;
    cd_buf ops, axis, raxis, body; /* JSON of the stages so far; the open stage */
    cd_te_compute_stage *stage;
    uint32_t n, cap;
    uint32_t *reads, n_read, cap_read;
    uint32_t *stage_of;                        /* (f->n) stage + 1 */
    uint32_t *touched, n_touched, cap_touched; /* nodes with a stage, to be cleared */
    uint32_t *arg, n_arg; /* (n) stages that are arguments, after cd_te_compute_group */
    uint32_t open_first;  /* reads[] of the open stage begin here */
    const char *reduce;   /* of the open stage: JSON */
    cd_graph_shape shape; /* of the open stage */
    cdmpp_status st;
    cdmpp_err *err;
} cd_te_compute;

/* A writer of definitions for the groups of f, which it borrows. Errors: ENOMEM. */
cdmpp_status cd_te_compute_new(CD_KEEP const cd_fuse_graph *f, CD_GIVE cd_te_compute **out,
                               cdmpp_err *err);
void cd_te_compute_free(CD_TAKE cd_te_compute *c); /* NULL is fine */

/* The definition of the nodes that share f->group[root], up to `last` of them; or of node `last`
 * alone when root is CD_GRAPH_NONE. Fills ops (the items of the JSON array), stage and arg, which
 * are valid until the next call. Errors: EUNSUPPORTED (with the reason), ENOMEM. */
cdmpp_status cd_te_compute_group(cd_te_compute *c, uint32_t root, uint32_t last, cdmpp_err *err);
#endif
