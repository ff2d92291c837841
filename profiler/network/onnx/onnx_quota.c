/* The allocator that protobuf-c gets: memory of an arena, with a limit that grows with the size of
 * the input. free does nothing, the arena is freed at the end. */
#include "profiler/network/onnx/onnx_internal.h"

static void *take(void *ctx, size_t n) {
    cd_onnx_quota *q = ctx;
    if (n > q->most - q->used) {
        q->over = true;
        return NULL;
    }
    q->used += n;
    void *p = cd_arena_alloc(q->a, n ? n : 1, 1);
    q->oom |= !p;
    return p;
}

static void drop(void *ctx, void *p) { /* dies with the arena */
    (void)ctx;
    (void)p;
}

ProtobufCAllocator cd_onnx_quota_begin(cd_onnx_quota *q, cd_arena *a, size_t n) {
    const size_t want = CD_ONNX_QUOTA_BASE + CD_ONNX_QUOTA_PER_BYTE * n, most = CD_ONNX_QUOTA_MOST;
    *q = (cd_onnx_quota){.a = a, .n = n, .most = want < most ? want : most};
    return (ProtobufCAllocator){take, drop, q};
}

cdmpp_status cd_onnx_quota_why(const cd_onnx_quota *q, const char *text, cdmpp_err *err) {
    if (q->over)
        return CD_FAIL(err, ERANGE,
                       "%zu bytes would become more than %zu MiB: no ONNX model of sense", q->n,
                       q->most >> 20);
    return q->oom ? CD_FAIL(err, ENOMEM, "a model of %zu bytes", q->n)
                  : CD_FAIL(err, EPARSE, "%s", text);
}
