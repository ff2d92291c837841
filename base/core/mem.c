/* All heap memory comes from here. Built with CD_FAULT, the k-th allocation fails, so tests can
 * walk through every path that runs out of memory. */
#include "base/core/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef CD_FAULT
static long fail_at = -1, live;
static bool pieces, refused;

void cd_mem_fail_at(long k) { fail_at = k, pieces = refused = false; }
void cd_mem_fail_at_piece(long k) { cd_mem_fail_at(k), pieces = true; }
bool cd_mem_refused(void) { return refused; }
long cd_mem_live(void) { return live; }

static bool refuse(void) {
    if (fail_at > 0) fail_at--;
    else if (fail_at == 0) return refused = true;
    return false;
}

bool cd_mem_refuse_piece(void) { return pieces && refuse(); }

void *cd_mem_alloc(size_t n) {
    if (refuse()) return NULL;
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
