/* onnx_quota_internal -- an allocator for protobuf-c with a limit: each message becomes a struct of some 100
 * bytes, however short it was in the file, so a small hostile file could use up the memory. Nothing is freed before the arena. */
#ifndef CD_ONNX_QUOTA_INTERNAL_H
#define CD_ONNX_QUOTA_INTERNAL_H
#include <protobuf-c/protobuf-c.h>

#include "base/core/core.h"

typedef struct cd_onnx_quota {
    cd_arena *a;
    size_t n, most, used;
    bool over, oom;
} cd_onnx_quota;

/* For unpacking n bytes: 16 MiB and 40 bytes for each of them, 2 GiB at most. `q` outlives the allocator. */
ProtobufCAllocator cd_onnx_quota_begin(cd_onnx_quota *q, CD_KEEP cd_arena *a, size_t n);
/* Why it failed: ERANGE, ENOMEM, or else EPARSE with this text. */
cdmpp_status cd_onnx_quota_why(const cd_onnx_quota *q, const char *text, cdmpp_err *err);
#endif
