/* onnx_map_internal -- names of one scope -> numbers. Keys are borrowed, memory is an arena's. */
#ifndef CD_ONNX_MAP_INTERNAL_H
#define CD_ONNX_MAP_INTERNAL_H

#include "base/core/core.h"

typedef struct cd_onnx_map {
    struct cd_onnx_slot *slot;  /* (cap) open addressing, a power of two */
    uint32_t n, cap;
} cd_onnx_map;

/* Number of `name`; NULL when it is not there. Valid until the next put. */
uint32_t *cd_onnx_map_find(const cd_onnx_map *m, const char *name);
/* Set it; *old: it was there. Errors: ENOMEM. */
cdmpp_status cd_onnx_map_put(cd_onnx_map *m, cd_arena *a, CD_KEEP const char *name, uint32_t value, bool *old, cdmpp_err *err);
#endif
