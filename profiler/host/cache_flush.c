/* Flushes caches by going through memory of our own that is larger than they are: user programs
 * have no instruction that empties a whole cache. */
#include "profiler/host/host.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE = 64 };
#define ALL_MAX      ((size_t)256 << 20)
#define ALL_UNKNOWN  ((size_t)64 << 20) /* where the size of the last cache is unknown */
#define CORE_MAX     ((size_t)32 << 20)
#define CORE_UNKNOWN ((size_t)4 << 20)

/* Twice the last cache; of a core's own four times, since few replace the oldest line exactly. */
static size_t size_of(cd_cache_flush_what what) {
    const long cache = sysconf(what == CD_WIPE_ALL ? _SC_LEVEL3_CACHE_SIZE : _SC_LEVEL2_CACHE_SIZE);
    const size_t most = what == CD_WIPE_ALL ? ALL_MAX : CORE_MAX;
    const size_t n = cache <= 0 ? (what == CD_WIPE_ALL ? ALL_UNKNOWN : CORE_UNKNOWN)
                                : (size_t)cache * (what == CD_WIPE_ALL ? 2 : 4);
    return n > most ? most : n;
}

void cd_cache_flush_free(cd_cache_flush *w) {
    if (w->p) munmap(w->p, w->n);
    memset(w, 0, sizeof *w);
}

static cdmpp_status grow(cd_cache_flush *w, size_t n, cdmpp_err *err) {
    if (w->n >= n) return CDMPP_OK;
    cd_cache_flush_free(w);
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return CD_FAIL(err, ENOMEM, "%zu bytes to flush the caches", n);
    (void)madvise(p, n, MADV_HUGEPAGE);
    *w = (cd_cache_flush){.p = p, .n = n};
    /* untouched pages all map to one page of zeros, which would fit into any cache */
    memset(p, 1, n);
    return CDMPP_OK;
}

static void read_lines(cd_cache_flush *w, size_t n) {
    unsigned sum = 0;
    for (size_t i = 0; i < n; i += LINE) sum += w->p[i];
    w->sum += sum;
    __asm__ volatile("" ::: "memory");
}

/* The last cache is written, so that its lines must go back to memory. A core's caches are only
 * read: written lines would be evicted during the measured program, in its time. */
cdmpp_status cd_cache_flush_caches(cd_cache_flush *w, cd_cache_flush_what what, cdmpp_err *err) {
    const size_t n = size_of(what);
    CD_TRY(grow(w, n, err));
    if (what == CD_WIPE_CORE) read_lines(w, n);
    else
        for (size_t i = 0; i < n; i += LINE) w->p[i]++;
    __asm__ volatile("" ::: "memory");
    return CDMPP_OK;
}

cdmpp_status cd_cache_flush_bytes(cd_cache_flush *w, size_t n, cdmpp_err *err) {
    CD_TRY(grow(w, n, err));
    read_lines(w, n);
    return CDMPP_OK;
}
