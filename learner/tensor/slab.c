/* One aligned block for all arrays of a batch or a network's working memory: taken twice, first to
 * count and then to carve. */
#include "learner/tensor/tensor.h"

#include <assert.h>
#include <stdint.h>

enum { ALIGN = 64 };

/* In the planning pass only `used` grows; an amount that no machine has is remembered, and
 * cd_slab_alloc refuses it. */
void *cd_slab_take(cd_slab *s, size_t n, size_t size) {
    const size_t at = s->used, room = SIZE_MAX / 2 - at;
    if (n > room / size) { /* more than any machine has: cd_slab_alloc refuses it */
        s->used = SIZE_MAX / 2;
        return NULL;
    }
    s->used += (n * size + ALIGN - 1) / ALIGN * ALIGN;
    if (!s->base) return NULL;
    assert(s->used <= s->cap);
    return s->base + at;
}

cdmpp_status cd_slab_alloc(cd_slab *s, cdmpp_err *err) {
    const size_t n = s->used;
    s->raw = n < SIZE_MAX / 2 ? cd_mem_zalloc(n + ALIGN, 1) : NULL;
    if (!s->raw) return CD_FAIL(err, ENOMEM, "%zu bytes for a network", n);
    s->base = (char *)s->raw + (ALIGN - (uintptr_t)s->raw % ALIGN) % ALIGN;
    s->cap = n;
    s->used = 0;
    return CDMPP_OK;
}

void cd_slab_free(cd_slab *s) {
    cd_mem_free(s->raw);
    *s = (cd_slab){0};
}
