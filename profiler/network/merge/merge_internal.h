/* merge_internal -- what finding and merging share. Private to the room. */
#ifndef CD_MERGE_INTERNAL_H
#define CD_MERGE_INTERNAL_H
#include "profiler/network/merge/merge.h"

#define CD_MERGE_MARK "cdmpp.merge/" /* names of operators on weights begin so */
enum { CD_MERGE_SPATIAL = CD_GRAPH_MAX_RANK - 2 };

typedef struct cd_merge_readers {
    /* (tensors of the graph) how many read it, a result of the network counts as one; the last that
     * does */
    uint32_t *n, *last;
} cd_merge_readers;

typedef struct cd_merge_window {
    uint32_t n;
    int64_t kernel[CD_MERGE_SPATIAL], pad[2 * CD_MERGE_SPATIAL]; /* pad: begins, then ends */
} cd_merge_window;

/* Errors: ENOMEM. */
cdmpp_status cd_merge_count_readers(const cd_graph *g, cd_arena *a, cd_merge_readers *out,
                                    cdmpp_err *err);
/* Could the convolution be merged with any other, one that stands at node `first` or behind it? */
bool cd_merge_is_member(const cd_graph *g, uint32_t node, uint32_t first);
/* The window that covers those of all members; false: there is none. */
bool cd_merge_window_of(const cd_graph *g, const cd_merge_set *s, cd_merge_window *out);
/* Whether the set keeps to rule (1). */
bool cd_merge_fits(const cd_graph *g, const cd_merge_set *s);
/* What follows each member in the same way: next[i] of the node that reads tensor[i] (set->n).
 * false: nothing, or not the same. */
bool cd_merge_next(const cd_graph *g, const cd_merge_readers *r, const cd_merge_set *s,
                   const uint32_t *tensor, uint32_t *next);
/* The members' tensors behind all that follows in the same way. */
void cd_merge_ends(const cd_graph *g, const cd_merge_readers *r, const cd_merge_set *s,
                   uint32_t *tensor);
/* Strides, dilations, pads ...: resolved ints of a node (graph.h, 6). */
const int64_t *cd_merge_ints(const cd_graph_node *n, const char *name);
#endif
