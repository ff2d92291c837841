/* All heap memory comes from here. Built with CD_FAULT, the k-th allocation fails, so tests can walk through every
 * path that runs out of memory. */
#include "base/core/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef CD_FAULT
static long fail_at = -1, live;

void cd_mem_fail_at(long k) { fail_at = k; }
long cd_mem_live(void) { return live; }

void *cd_mem_alloc(size_t n) {
    if (fail_at == 0) return NULL;
    if (fail_at > 0) fail_at--;
    void *p = malloc(n ? n : 1);
    if (p) live++;
    return p;
}

void cd_mem_free(void *p) {
    if (p) live--;
    free(p);
}
#else
void *cd_mem_alloc(size_t n) { return malloc(n ? n : 1); }
void cd_mem_free(void *p) { free(p); }
#endif

void *cd_mem_zalloc(size_t n, size_t size) {
    if (size && n > SIZE_MAX / size) return NULL;
    void *p = cd_mem_alloc(n * size);
    return p ? memset(p, 0, n * size) : NULL;
}

void *cd_mem_realloc(void *p, size_t old, size_t n) {
    void *q = cd_mem_alloc(n);
    if (!q) return NULL;
    if (p) memcpy(q, p, old < n ? old : n);
    cd_mem_free(p);
    return q;
}

char *cd_mem_text(const char *s) {
    const size_t n = strlen(s) + 1;
    char *p = cd_mem_alloc(n);
    return p ? memcpy(p, s, n) : NULL;
}
