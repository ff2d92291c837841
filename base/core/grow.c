/* Arrays that double, in one place, so that the overflow checks are in one place too. */
#include "base/core/core.h"

#include <string.h>

/* The next capacity; 0: more than the counter or the address space holds. */
static size_t next_cap(size_t n, size_t cap, size_t size, size_t limit) {
    size_t more = cap ? cap : 8;
    while (more <= n) {
        if (more > limit / 2) return 0;
        more *= 2;
    }
    return more <= SIZE_MAX / 4 / size ? more : 0;
}

void *cd_grow_heap(void *p, size_t n, size_t *cap, size_t size, size_t limit) {
    const size_t more = next_cap(n, *cap, size, limit);
    void *q = more ? cd_mem_realloc(p, n * size, more * size) : NULL;
    if (q) *cap = more;
    return q;
}

void *cd_grow_arena(cd_arena *a, const void *p, size_t n, size_t *cap, size_t size, size_t limit) {
    const size_t more = next_cap(n, *cap, size, limit);
    void *q = more ? cd_arena_alloc(a, more, size) : NULL;
    if (q && n) memcpy(q, p, n * size);
    if (q) *cap = more;
    return q;
}
