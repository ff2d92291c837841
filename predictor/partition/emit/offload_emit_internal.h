/* offload_emit_internal -- what the parts of offload_emit share. Private.
 *
 *   plan ─ regions made (offload_emit.c) ──> back ends ──> files
 *                                    └──> main.c, Makefile, network.json (offload_emit_host.c,
 *                                         offload_emit_text.c) */
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

/* back end of the region's device */
const cd_emit_backend *cd_emit_of(const cd_emit_plan *p, uint32_t region);
/* devices: travels as int8 */
bool cd_emit_is_int8(const cd_emit_plan *p, uint32_t from, uint32_t to);
/* main.c and Makefile; network.json. After all regions are made. Errors: ENOMEM. */
cdmpp_status cd_emit_host(const cd_emit_plan *p, cd_emit_files *out, cdmpp_err *err);
cdmpp_status cd_emit_report(const cd_emit_plan *p, cd_emit_files *out, cdmpp_err *err);
/* 'f' 32 of float32, and so on: one of iufhb as codegen's kinds are. */
char cd_emit_kind(cd_dtype t);
#endif
