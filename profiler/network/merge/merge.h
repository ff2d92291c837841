/* The door of profiler/network/merge: other rooms include this header and no other of the room.
 *
 * merge -- convolutions that read one tensor become one convolution (operator merge of IOS,
 * MLSys'21).
 *
 *   x ─┬─ Conv 1x1, 64 ── Relu ── a          x ── Conv 3x3, 128 ── Relu ─┬─ Slice 0:64 ── a
 *      └─ Conv 3x3, 64 ── Relu ── b                                     └─ Slice 64:128 ── b
 *
 *   (1) members read the same tensor, have one group, the same strides, dilations, type and size of
 *       the result, and weights that are computed before the network runs; all have a bias or none
 *       has;
 *   (2) the kernel covers all members' kernels, as their padding places them: a smaller one has
 *       zeros around it. It costs the work of the larger;
 *   (3) what follows each member in the same way is merged too: batch norms, activations, each with
 *       one reader;
 *   (4) parts that a Concat reads side by side in their order are read without a Slice; where they
 *       are all of it, there is no Concat any more;
 *   (5) weights are stacked by operators of the graph (Pad, Concat) that are folded: they are
 *       weights themselves, and cd_merge_weight has their content;
 *   (6) other nodes keep their names, and results of the network too.
 * One thread. */
#ifndef CD_PROFILER_NETWORK_MERGE_DOOR_H
#define CD_PROFILER_NETWORK_MERGE_DOOR_H
#include "profiler/network/graph/graph.h"

enum { CD_MERGE_MOST = 5 };
typedef struct cd_merge_set {
    uint32_t n; /* 2 to CD_MERGE_MOST */
    /* (n) convolutions of the graph, in the order of their channels */
    uint32_t node[CD_MERGE_MOST];
} cd_merge_set;

/* The largest sets; each of their parts of two or more could be merged as well. A convolution is in
 * one set at most; those beyond CD_MERGE_MOST make another set. In `a`. Errors: ENOMEM. */
cdmpp_status cd_merge_find(const cd_graph *g, cd_arena *a, cd_merge_set **out, uint32_t *n,
                           cdmpp_err *err);
/* A new graph with the sets merged, which borrows nothing. *origin (may be NULL), (nodes of *out):
 * the node of g that each stands for, of a merged one its first member; in *out's arena. Errors:
 * EINVALID (a set that cannot be merged: a node), ENOMEM, those of cd_graph_add. */
cdmpp_status cd_merge_apply(const cd_graph *g, const cd_merge_set *set, uint32_t n,
                            CD_GIVE cd_graph **out, CD_KEEP const uint32_t **origin,
                            cdmpp_err *err);
/* What merging multiplies the members' operations by: kernels that are padded. 1: nothing is. */
double cd_merge_work(const cd_graph *g, const cd_merge_set *s);
/* Content of a weight, (elements, row-major): of one that merging stacked from what `fill` says of
 * the weights in it, of every other what `fill` says of it. Errors: ENOMEM, those of fill. */
typedef cdmpp_status cd_merge_fill(void *ctx, const cd_graph *g, uint32_t tensor, float *to,
                                   cdmpp_err *err);
cdmpp_status cd_merge_weight(const cd_graph *g, uint32_t tensor, cd_merge_fill *fill, void *ctx,
                             float *to, cdmpp_err *err);
#endif
