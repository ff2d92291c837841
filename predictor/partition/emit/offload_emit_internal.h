/* offload_emit_internal -- what the parts of offload_emit share. Private.
 *
 *   plan ─ regions made (offload_emit.c) ──> back ends ──> files
 *                                    └──> main.c, Makefile, network.json (offload_emit.c,
 *                                         offload_emit.c) */
#ifndef CD_OFFLOAD_EMIT_INTERNAL_H
#define CD_OFFLOAD_EMIT_INTERNAL_H
#include "predictor/partition/emit/emit.h"

typedef struct cd_emit_plan {
    const cd_offload_emit_options *a;
    const cd_network_loaded *l;
    cd_arena arena;
    uint32_t n_region;
    cd_emit_region *region; /* (n_region) */
    bool *used;             /* (buffers) by some region, or a result of the network */
} cd_emit_plan;

#endif
