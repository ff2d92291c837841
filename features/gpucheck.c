#include "features/gpucheck.h"

typedef struct {
    const cd_ast *t;
    const cd_tensors *tensors;
    const cd_hardware *hw;
    cdmpp_err *err;
    int64_t thread[CD_TAG_COUNT]; /* extents seen in this kernel, 0: not yet */
    int64_t shared_bytes, local_bytes;
} checker;

static int64_t saturating_mul(int64_t a, int64_t b) {
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t realize_bytes(const checker *c, const cd_node *n) {
    int64_t size = c->tensors->info(c->tensors->ctx, n->tensor).elem_bytes;
    for (uint32_t d = 1; d < n->n; d += 2)
        if (cd_is_int(n->x[d])) size = saturating_mul(size, n->x[d]->u.i);
    return size;
}

static cdmpp_status thread(checker *c, const cd_node *n) {
    if (cd_tag_rank((cd_tag)n->tag) == 0) return CDMPP_OK;
    if (n->tag == CD_TAG_VTHREAD) return CDMPP_OK; /* virtual threads are loops by then */
    if (c->thread[n->tag] && c->thread[n->tag] != n->extent)
        return CD_FAIL(c->err, EREJECTED, "%s has extents %lld and %lld in one kernel", cd_tag_name((cd_tag)n->tag),
                       (long long)c->thread[n->tag], (long long)n->extent);
    c->thread[n->tag] = n->extent;
    return CDMPP_OK;
}

/* Nodes k .. end-1 are one kernel. */
static cdmpp_status kernel(checker *c, int32_t k, int32_t end) {
    *c = (checker){.t = c->t, .tensors = c->tensors, .hw = c->hw, .err = c->err};
    for (; k < end; k++) {
        const cd_node *n = &c->t->node[k];
        if (n->dead) continue;
        if (n->kind == CD_NODE_THREAD) CD_TRY(thread(c, n));
        if (n->kind != CD_NODE_REALIZE) continue;
        int64_t *sum = n->loop == 1 ? &c->shared_bytes : n->loop == 3 ? &c->local_bytes : NULL;
        if (sum && __builtin_add_overflow(*sum, realize_bytes(c, n), sum)) *sum = INT64_MAX;
    }
    int64_t threads = 1;
    for (int t = 0; t < CD_TAG_COUNT; t++)
        if (c->thread[t]) threads = saturating_mul(threads, c->thread[t]);
    if (threads > c->hw->max_threads_per_block)
        return CD_FAIL(c->err, EREJECTED, "%lld threads per block, at most %lld", (long long)threads,
                       (long long)c->hw->max_threads_per_block);
    if (c->shared_bytes > c->hw->max_shared_memory_per_block)
        return CD_FAIL(c->err, EREJECTED, "%lld bytes of shared memory, at most %lld", (long long)c->shared_bytes,
                       (long long)c->hw->max_shared_memory_per_block);
    if (c->local_bytes > c->hw->max_local_memory_per_block)
        return CD_FAIL(c->err, EREJECTED, "%lld bytes of local memory, at most %lld", (long long)c->local_bytes,
                       (long long)c->hw->max_local_memory_per_block);
    return CDMPP_OK;
}

cdmpp_status cd_gpu_check(const cd_ast *t, const cd_tensors *tensors, const cd_hardware *hw, cdmpp_err *err) {
    checker c = {.t = t, .tensors = tensors, .hw = hw, .err = err};
    for (int32_t k = 0; k < t->n; k++) {
        if (t->node[k].dead || t->node[k].kind != CD_NODE_THREAD) continue;
        CD_TRY(kernel(&c, k, t->node[k].end));
        k = t->node[k].end - 1;
    }
    return CDMPP_OK;
}
