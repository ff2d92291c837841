/* Memory of one record or program: many small allocations, one reset.
 *
 *   [chunk 0: used | free] -> [chunk 1: used | free] -> NULL
 *
 * Everything made while parsing one record (JSON tree, AST, feature rows) dies together at
 * cd_arena_reset(), which keeps the largest chunk so that the next record of that size allocates
 * nothing.  Not thread-safe: one arena a thread. Under AddressSanitizer the free part of a chunk is
 * poisoned; under CD_FAULT=2 each piece may be refused. */
#ifndef CD_ARENA_H
#define CD_ARENA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/mem.h"

typedef struct cd_arena {
    struct cd_arena_chunk *head; /* chunk being filled */
    unsigned char *at, *end;     /* its free part */
    /* an allocation was refused since the arena was new or reset: many arrays need one check */
    bool oom;
} cd_arena;

#define CD_ARENA_ALIGN ((size_t)16)
#if defined(__SANITIZE_ADDRESS__) || CD_FAULT + 0 > 1
#define CD_ARENA_CAREFUL 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CD_ARENA_CAREFUL 1
#endif
#endif
#ifndef CD_ARENA_CAREFUL
#define CD_ARENA_CAREFUL 0
#endif

/* n bytes, from a new chunk where needed: the slow half of cd_arena_alloc. */
CD_KEEP void *cd_arena_take(cd_arena *a, size_t n);

/* n*size bytes, undefined, aligned for any type; NULL when out of memory or when
 * n*size overflows. In the header because the JSON parser lives on it. */
CD_KEEP static inline void *cd_arena_alloc(cd_arena *a, size_t n, size_t size) {
    if (size && n > (SIZE_MAX / 4) / size) {
        a->oom = true;
        return NULL;
    }
    const size_t need = (n * size + CD_ARENA_ALIGN - 1) & ~(CD_ARENA_ALIGN - 1);
    if (CD_ARENA_CAREFUL || (size_t)(a->end - a->at) < need || !a->at)
        return cd_arena_take(a, n * size);
    void *p = a->at;
    a->at += need;
    return p;
}
/* The same, zeroed. */
CD_KEEP void *cd_arena_zalloc(cd_arena *a, size_t n, size_t size);
/* A copy of a text; NULL when out of memory. */
CD_KEEP char *cd_arena_text(cd_arena *a, const char *s);
/* Everything in the arena is gone; the largest chunk is kept, or all memory is given back. */
void cd_arena_reset(cd_arena *a);
void cd_arena_free(cd_arena *a);

#define CD_NEW(a, T)     ((T *)cd_arena_zalloc((a), 1, sizeof(T)))
#define CD_NEWN(a, T, n) ((T *)cd_arena_zalloc((a), (n), sizeof(T)))
#endif
