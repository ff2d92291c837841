/* Room for one more element of an array that doubles.
 *
 *   if (CD_GROW(list->item, list->n, list->cap)) return CD_FAIL(err, ENOMEM, "items");
 *   list->item[list->n++] = x;
 *
 * The array is (cap) elements from the heap, or NULL with cap 0; free it with cd_mem_free. `cap` is size_t or uint32_t.
 * CD_GROW_IN does the same in an arena, where the old array stays until the arena is reset. */
#ifndef CD_GROW_H
#define CD_GROW_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/arena.h"

/* A block of at least n + 1 elements of `size` bytes with the first n of `p` in it, and its new *cap; NULL: out of
 * memory, nothing has changed. `limit` is the largest capacity that the caller's counter can hold. */
void *cd_grow_heap(void *p, size_t n, size_t *cap, size_t size, size_t limit);
void *cd_grow_arena(cd_arena *a, const void *p, size_t n, size_t *cap, size_t size, size_t limit);

#define CD_GROW_LIMIT(cap) (sizeof(cap) == sizeof(uint32_t) ? (size_t)UINT32_MAX : SIZE_MAX / 2)
/* True: out of memory. */
#define CD_GROW(p, n, cap)                                                                              \
    ((n) >= (cap) && __extension__({                                                                    \
         size_t cd_cap_ = (cap);                                                                        \
         void *cd_new_ = cd_grow_heap((p), (n), &cd_cap_, sizeof *(p), CD_GROW_LIMIT(cap));             \
         if (cd_new_) (p) = cd_new_, (cap) = (__typeof__(cap))cd_cap_;                                  \
         !cd_new_;                                                                                      \
     }))
#define CD_GROW_IN(a, p, n, cap)                                                                        \
    ((n) >= (cap) && __extension__({                                                                    \
         size_t cd_cap_ = (cap);                                                                        \
         void *cd_new_ = cd_grow_arena((a), (p), (n), &cd_cap_, sizeof *(p), CD_GROW_LIMIT(cap));       \
         if (cd_new_) (p) = cd_new_, (cap) = (__typeof__(cap))cd_cap_;                                  \
         !cd_new_;                                                                                      \
     }))
#endif
