/* process_profile_heap -- libcdmpp-wrap.so: counts the heap of the program that it is loaded into
 * (LD_PRELOAD).
 *
 *   malloc ──> the next library's malloc ─> counters of this process's slot (process_profile_map.h)
 *
 * (1) No call of it allocates. What dlsym allocates while the real functions are looked up comes
 *     from a static block and is never given back.
 * (2) Until the map is there, and in programs that were not started by cdmpp-profile, calls go
 *     through uncounted, up to the first span (process_profile_spans.c).
 * (3) Any thread, any time, in signal handlers as far as the real functions allow it: only atomic
 *     operations here. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/wrap/process_profile_map.h"

#define SHOWN __attribute__((visibility("default")))

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);
static int (*real_posix_memalign)(void **, size_t, size_t);
static void *(*real_aligned_alloc)(size_t, size_t);
static void *(*real_memalign)(size_t, size_t);
static size_t (*real_usable)(void *);

enum { NEW, LOOKING, READY };
static _Atomic int state;
static cd_process_profile_map *map;
static cd_process_profile_slot *_Atomic slot;

/* ---- the static block ---- */
static char block[1 << 16] __attribute__((aligned(16)));
static _Atomic size_t block_used;

static void *from_block(size_t n) {
    const size_t need = (n + 31) & ~(size_t)15; /* its size stands before it */
    const size_t at = atomic_fetch_add(&block_used, need);
    if (n > sizeof block || at + need > sizeof block) {
        errno = ENOMEM;
        return NULL;
    }
    memcpy(block + at, &n, sizeof n);
    return block + at + 16;
}

static bool in_block(const void *p) {
    return (const char *)p >= block && (const char *)p < block + sizeof block;
}

static size_t block_size(const void *p) {
    size_t n;
    memcpy(&n, (const char *)p - 16, sizeof n);
    return n;
}

/* ---- begin ---- */
static void take_name(char to[32]) {
    const int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, to, 31) : 0;
    if (fd >= 0) close(fd);
    to[n > 0 ? n : 0] = 0;
    to[strcspn(to, "\n")] = 0;
}

/* A new slot for this process image; `live`: bytes that a forked child has from its parent. */
static void take_slot(int64_t live) {
    if (!map) return;
    const uint32_t k = atomic_fetch_add(&map->n_slot, 1);
    if (k >= CD_WRAP_SLOTS) {
        atomic_store(&slot, NULL);
        return;
    }
    cd_process_profile_slot *s = &map->slot[k];
    s->parent = (int32_t)getppid();
    take_name(s->name);
    atomic_store(&s->live_bytes, live);
    atomic_store(&s->peak_bytes, live);
    atomic_store(&s->pid, (int32_t)getpid());
    atomic_store(&slot, s);
}

static void open_map(void) {
    const char *path = getenv(CD_WRAP_ENV);
    struct stat f;
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    if (!fstat(fd, &f) && f.st_size == (off_t)sizeof *map) {
        void *p = mmap(NULL, sizeof *map, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p != MAP_FAILED && ((cd_process_profile_map *)p)->magic == CD_WRAP_MAGIC) map = p;
    }
    close(fd);
}

static void look_up(void) {
    const int saved = errno;
    int expected = NEW;
    /* within dlsym, or another thread's work */
    if (!atomic_compare_exchange_strong(&state, &expected, LOOKING)) return;
    /* dlsym gives object pointers */
    *(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&real_free = dlsym(RTLD_NEXT, "free");
    *(void **)&real_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    *(void **)&real_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    *(void **)&real_memalign = dlsym(RTLD_NEXT, "memalign");
    *(void **)&real_usable = dlsym(RTLD_NEXT, "malloc_usable_size");
    open_map();
    take_slot(0);
    atomic_store(&state, READY);
    errno = saved;
}

/* Are the real functions known? If not, memory comes from the static block. */
static inline bool ready(void) {
    if (__builtin_expect(atomic_load_explicit(&state, memory_order_acquire) == READY, 1))
        return true;
    look_up();
    return atomic_load(&state) == READY;
}

static void in_child(void) {
    take_slot(atomic_load(&slot) ? atomic_load(&atomic_load(&slot)->live_bytes) : 0);
    cd_wrap_spans_in_child();
}

__attribute__((constructor)) static void start(void) {
    (void)ready();
    if (map) pthread_atfork(NULL, NULL, in_child);
}

/* VmHWM of /proc/self/status: of this image only, not of what exec'ed it. */
__attribute__((destructor)) static void stop(void) {
    char text[4096];
    cd_process_profile_slot *s = atomic_load(&slot);
    const int fd = s ? open("/proc/self/status", O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *at = strstr(text, "VmHWM:");
    uint64_t kb = 0;
    for (at = at ? at + 6 : ""; *at == ' ' || *at == '\t'; at++) continue;
    for (; *at >= '0' && *at <= '9'; at++) kb = 10 * kb + (uint64_t)(*at - '0');
    atomic_store(&s->high_water_kb, kb);
}

/* Shells end in this way, without destructors. */
SHOWN void _exit(int code) {
    stop();
    for (;;) syscall(SYS_exit_group, code);
}
SHOWN void _Exit(int code) { _exit(code); }

/* ---- counting ---- */
#define COUNT(member) atomic_fetch_add_explicit(&s->member, 1, memory_order_relaxed)

static void raise_to(_Atomic int64_t *most, int64_t now) {
    int64_t was = atomic_load_explicit(most, memory_order_relaxed);
    while (now > was && !atomic_compare_exchange_weak_explicit(
                            most, &was, now, memory_order_relaxed, memory_order_relaxed))
        continue;
}

void cd_wrap_grew(_Atomic int64_t *live, int64_t bytes, _Atomic int64_t *peak,
                  _Atomic int64_t *recent, cd_process_profile_slot *s) {
    const int64_t now = atomic_fetch_add_explicit(live, bytes, memory_order_relaxed) + bytes;
    if (peak) raise_to(peak, now);
    if (atomic_load_explicit(&s->n_open, memory_order_relaxed)) raise_to(recent, now);
}

static void grew(cd_process_profile_slot *s, int64_t bytes) {
    cd_wrap_grew(&s->live_bytes, bytes, &s->peak_bytes, &s->recent_bytes, s);
}

cd_wrap_state cd_wrap_counted(void) { return (cd_wrap_state){map, atomic_load(&slot)}; }

cd_wrap_state cd_wrap_count(void) {
    static cd_process_profile_slot own;
    cd_process_profile_slot *expected = NULL;
    if (ready()) atomic_compare_exchange_strong(&slot, &expected, &own);
    return cd_wrap_counted();
}

static cd_process_profile_slot *mine(void) {
    return atomic_load_explicit(&slot, memory_order_relaxed);
}

static int64_t usable(void *p) { return p ? (int64_t)real_usable(p) : 0; }

static void *took(cd_process_profile_slot *s, void *p, size_t asked) {
    if (!p) return NULL;
    atomic_fetch_add_explicit(&s->total_bytes, asked, memory_order_relaxed);
    grew(s, usable(p));
    return p;
}

/* ---- the functions ---- */
SHOWN void *malloc(size_t n) {
    if (!ready()) return from_block(n);
    cd_process_profile_slot *s = mine();
    void *p = real_malloc(n);
    if (s) COUNT(n_malloc), took(s, p, n);
    return p;
}

SHOWN void *calloc(size_t k, size_t n) {
    if (!ready()) return n && k > sizeof block / n ? NULL : from_block(k * n);
    cd_process_profile_slot *s = mine();
    void *p = real_calloc(k, n);
    if (s) COUNT(n_calloc), took(s, p, k * n);
    return p;
}

SHOWN void free(void *p) {
    if (!p || in_block(p) || !ready()) return;
    cd_process_profile_slot *s = mine();
    if (s)
        COUNT(n_free), atomic_fetch_sub_explicit(&s->live_bytes, usable(p), memory_order_relaxed);
    real_free(p);
}

/* A block of the static area moves to the heap: its size stands before it. */
SHOWN void *realloc(void *p, size_t n) {
    if (in_block(p) || !ready()) {
        void *q = malloc(n);
        const size_t old = p ? block_size(p) : 0;
        if (q && p) memcpy(q, p, old < n ? old : n);
        return q;
    }
    cd_process_profile_slot *s = mine();
    const int64_t before = s ? usable(p) : 0;
    void *q = real_realloc(p, n);
    if (!s) return q;
    COUNT(n_realloc);
    if (q || !n) {
        atomic_fetch_add_explicit(&s->total_bytes, n, memory_order_relaxed);
        grew(s, usable(q) - before);
    }
    return q;
}

SHOWN void *reallocarray(void *p, size_t k, size_t n) {
    if (n && k > SIZE_MAX / n) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(p, k * n);
}

SHOWN int posix_memalign(void **out, size_t align, size_t n) {
    if (!ready()) return ENOMEM;
    cd_process_profile_slot *s = mine();
    const int rc = real_posix_memalign(out, align, n);
    if (s) COUNT(n_aligned);
    if (s && !rc) took(s, *out, n);
    return rc;
}

SHOWN void *aligned_alloc(size_t align, size_t n) {
    if (!ready()) return NULL;
    cd_process_profile_slot *s = mine();
    void *p = real_aligned_alloc(align, n);
    if (s) COUNT(n_aligned), took(s, p, n);
    return p;
}

SHOWN void *memalign(size_t align, size_t n) {
    if (!ready()) return NULL;
    cd_process_profile_slot *s = mine();
    void *p = real_memalign(align, n);
    if (s) COUNT(n_aligned), took(s, p, n);
    return p;
}

SHOWN size_t malloc_usable_size(void *p) {
    if (!p || !ready()) return 0;
    return in_block(p) ? block_size(p) : real_usable(p);
}
