/* arena -- per-program memory: many small allocations, one reset.
 *
 *   [chunk 0: used | free] -> [chunk 1: used | free] -> NULL
 *
 * Everything made while parsing one record (JSON tree, AST, feature rows) dies
 * together at cd_arena_reset(), which keeps the largest chunk so that the next
 * record of that size allocates nothing.  Not thread-safe: one arena a thread.
 * Under AddressSanitizer the free part of a chunk is poisoned. */
#ifndef CD_ARENA_H
#define CD_ARENA_H
#include <stddef.h>

#include "base/mem.h"

typedef struct cd_arena {
    struct cd_chunk *head; /* chunk being filled */
} cd_arena;

/* n*size bytes, zeroed, aligned for any type; NULL when out of memory or when
 * n*size overflows. */
CD_KEEP void *cd_arena_zalloc(cd_arena *a, size_t n, size_t size);
/* The same, with undefined content. */
CD_KEEP void *cd_arena_alloc(cd_arena *a, size_t n, size_t size);
void cd_arena_reset(cd_arena *a);
void cd_arena_free(cd_arena *a);

#define CD_NEW(a, T) ((T *)cd_arena_zalloc((a), 1, sizeof(T)))
#define CD_NEWN(a, T, n) ((T *)cd_arena_zalloc((a), (n), sizeof(T)))
#endif
