/* Chunks of an arena. Each new chunk is twice as large as the one before, so the last one is the
 * largest, and a reset keeps it: after a few records no record needs the heap any more. */
#include "base/core/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#if CD_ARENA_CAREFUL && CD_FAULT + 0 < 2
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#define CHUNK_MIN ((size_t)16 * 1024)

struct cd_arena_chunk {
    struct cd_arena_chunk *next;
    size_t cap;
    alignas(max_align_t) unsigned char data[];
};
_Static_assert(alignof(max_align_t) <= CD_ARENA_ALIGN, "an arena aligns for any type");

static void use(cd_arena *a, struct cd_arena_chunk *c) {
    a->head = c;
    a->at = c->data;
    a->end = c->data + c->cap;
    POISON(c->data, c->cap);
}

static int grow(cd_arena *a, size_t need) {
    size_t cap = a->head ? a->head->cap * 2 : CHUNK_MIN;
    if (cap < need) cap = need;
    struct cd_arena_chunk *c = cd_mem_alloc(sizeof *c + cap);
    if (!c) return 0;
    c->next = a->head;
    c->cap = cap;
    use(a, c);
    return 1;
}

#if CD_FAULT + 0 > 1
#define REFUSED() cd_mem_refuse_piece()
#else
#define REFUSED() false
#endif

void *cd_arena_take(cd_arena *a, size_t n) {
    const size_t need = (n + CD_ARENA_ALIGN - 1) & ~(CD_ARENA_ALIGN - 1);
    const bool more = !a->at || (size_t)(a->end - a->at) < need;
    if (REFUSED() || (more && !grow(a, need))) {
        a->oom = true;
        return NULL;
    }
    void *p = a->at;
    a->at += need;
    UNPOISON(p, n);
    return p;
}

void *cd_arena_zalloc(cd_arena *a, size_t n, size_t size) {
    void *p = cd_arena_alloc(a, n, size);
    return p ? memset(p, 0, n * size) : NULL;
}

static void free_chunks(struct cd_arena_chunk *c) {
    while (c) {
        struct cd_arena_chunk *next = c->next;
        UNPOISON(c->data, c->cap);
        cd_mem_free(c);
        c = next;
    }
}

char *cd_arena_text(cd_arena *a, const char *s) {
    const size_t n = strlen(s) + 1;
    char *p = cd_arena_alloc(a, n, 1);
    return p ? memcpy(p, s, n) : NULL;
}

void cd_arena_reset(cd_arena *a) {
    a->oom = false;
    if (!a->head) return;
    free_chunks(a->head->next); /* head is the largest: chunks double */
    a->head->next = NULL;
    use(a, a->head);
}

void cd_arena_free(cd_arena *a) {
    free_chunks(a->head);
    *a = (cd_arena){0};
}
