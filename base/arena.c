#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(p, n) __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#define CHUNK_MIN ((size_t)16 * 1024)

struct cd_chunk {
    struct cd_chunk *next;
    size_t used, cap;
    alignas(max_align_t) unsigned char data[];
};

static size_t align_up(size_t n) {
    const size_t a = alignof(max_align_t);
    return (n + a - 1) & ~(a - 1);
}

static int grow(cd_arena *a, size_t need) {
    size_t cap = a->head ? a->head->cap * 2 : CHUNK_MIN;
    if (cap < need) cap = need;
    struct cd_chunk *c = cd_malloc(sizeof *c + cap);
    if (!c) return 0;
    c->next = a->head;
    c->used = 0;
    c->cap = cap;
    POISON(c->data, cap);
    a->head = c;
    return 1;
}

void *cd_arena_alloc(cd_arena *a, size_t n, size_t size) {
    if (size && n > (SIZE_MAX / 4) / size) return NULL;
    const size_t need = align_up(n * size);
    if (!a->head || a->head->cap - a->head->used < need)
        if (!grow(a, need)) return NULL;
    void *p = a->head->data + a->head->used;
    a->head->used += need;
    UNPOISON(p, n * size);
    return p;
}

void *cd_arena_zalloc(cd_arena *a, size_t n, size_t size) {
    void *p = cd_arena_alloc(a, n, size);
    return p ? memset(p, 0, n * size) : NULL;
}

static void free_chunks(struct cd_chunk *c) {
    while (c) {
        struct cd_chunk *next = c->next;
        UNPOISON(c->data, c->cap);
        cd_free(c);
        c = next;
    }
}

void cd_arena_reset(cd_arena *a) {
    if (!a->head) return;
    free_chunks(a->head->next); /* head is the largest: chunks double */
    a->head->next = NULL;
    a->head->used = 0;
    POISON(a->head->data, a->head->cap);
}

void cd_arena_free(cd_arena *a) {
    free_chunks(a->head);
    a->head = NULL;
}
