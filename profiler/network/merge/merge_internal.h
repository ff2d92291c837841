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

#endif
