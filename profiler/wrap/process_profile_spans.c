/* process_profile_spans -- libcdmpp-wrap.so: what is live at most between two calls of the program,
 * and its OpenCL buffers.
 *
 *   begin A        begin B         end B          end A
 *     │── recent ──│── recent ─────│── recent ────│
 *   recent = the most that was live since the last of these calls
 *   A = max of all three, B = the second: each call folds `recent` into every span that is open,
 *   and starts it anew
 *
 * (1) spans may be nested, and open on several threads at once: each counts the whole process, all
 *     threads;
 * (2) allocations take no lock; begin and end do;
 * (3) OpenCL buffers are counted in programs that are linked with libOpenCL. One that looks its
 *     functions up with dlsym is not. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "profiler/wrap/process_profile_map.h"

#define SHOWN __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cd_wrap_span *open_spans;

void cd_wrap_spans_in_child(void) {
    pthread_mutex_init(&lock, NULL);
    const cd_wrap_state w = cd_wrap_counted();
    uint32_t n = 0;
    for (const cd_wrap_span *s = open_spans; s; s = s->next) n++;
    if (w.slot) atomic_store(&w.slot->n_open, n);
}

/* What `recent` came to, which begins anew with what is live: also what an allocation added in
 * between. */
static int64_t take_recent(_Atomic int64_t *recent, _Atomic int64_t *live) {
    const int64_t most = atomic_exchange(recent, atomic_load(live));
    int64_t now = atomic_load(live), was = atomic_load(recent);
    while (now > was && !atomic_compare_exchange_weak(recent, &was, now)) continue;
    return most;
}

static void fold(cd_process_profile_slot *p) {
    const int64_t heap = take_recent(&p->recent_bytes, &p->live_bytes),
                  device = take_recent(&p->recent_device_bytes, &p->device_bytes);
    for (cd_wrap_span *s = open_spans; s; s = s->next) {
        if (heap - s->live > s->peak) s->peak = heap - s->live;
        if (device - s->device_live > s->device_peak) s->device_peak = device - s->device_live;
    }
}

/* While it is open, live and device_live are what was live at its begin. */
SHOWN void cdmpp_wrap_span_begin(cd_wrap_span *s);
SHOWN void cdmpp_wrap_span_begin(cd_wrap_span *s) {
    pthread_mutex_lock(&lock);
    cd_process_profile_slot *p = cd_wrap_count().slot;
    memset(s, 0, sizeof *s);
    if (p) {
        fold(p);
        atomic_fetch_add(&p->n_open, 1);
        s->total = atomic_load(&p->total_bytes);
        s->live = atomic_load(&p->live_bytes);
        s->device_live = atomic_load(&p->device_bytes);
        (void)take_recent(&p->recent_bytes, &p->live_bytes);
        (void)take_recent(&p->recent_device_bytes, &p->device_bytes);
    }
    s->next = open_spans;
    open_spans = s;
    pthread_mutex_unlock(&lock);
}

/* The entry of this process and name, or a new one; NULL: the table is full. Other processes write
 * other entries. */
static cd_process_profile_span *entry(cd_process_profile_map *m, const char *name) {
    const int32_t pid = (int32_t)getpid();
    const uint32_t n =
        atomic_load(&m->n_span) < CD_WRAP_SPANS ? atomic_load(&m->n_span) : CD_WRAP_SPANS;
    for (uint32_t k = 0; k < n; k++)
        if (atomic_load(&m->span[k].pid) == pid &&
            !strncmp(m->span[k].name, name, sizeof m->span[k].name - 1))
            return &m->span[k];
    const uint32_t k = atomic_fetch_add(&m->n_span, 1);
    if (k >= CD_WRAP_SPANS) return NULL;
    memcpy(m->span[k].name, name, strnlen(name, sizeof m->span[k].name - 1));
    atomic_store(&m->span[k].pid, pid);
    return &m->span[k];
}

static void add(cd_process_profile_map *m, const cd_wrap_span *s, const char *name, uint64_t ns) {
    cd_process_profile_span *e = entry(m, name);
    if (!e) return;
    e->n++;
    e->ns += ns;
    e->total_bytes += s->total;
    e->live_bytes += s->live;
    e->device_live_bytes += s->device_live;
    if (s->peak > e->peak_bytes) e->peak_bytes = s->peak;
    if (s->device_peak > e->device_peak_bytes) e->device_peak_bytes = s->device_peak;
}

SHOWN void cdmpp_wrap_span_end(cd_wrap_span *s, const char *name, uint64_t ns);
SHOWN void cdmpp_wrap_span_end(cd_wrap_span *s, const char *name, uint64_t ns) {
    pthread_mutex_lock(&lock);
    const cd_wrap_state w = cd_wrap_counted();
    cd_wrap_span **at = &open_spans;
    while (*at && *at != s) at = &(*at)->next;
    if (*at) {
        if (w.slot) {
            fold(w.slot);
            atomic_fetch_sub(&w.slot->n_open, 1);
            s->total = atomic_load(&w.slot->total_bytes) - s->total;
            s->live = atomic_load(&w.slot->live_bytes) - s->live;
            s->device_live = atomic_load(&w.slot->device_bytes) - s->device_live;
        }
        *at = s->next;
        if (w.map) add(w.map, s, name, ns);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- OpenCL buffers: by functions of its headers, which this file does not need to be built
 * ---- */

/* The device's memory of a buffer is free: after its last reference, also those of commands under
 * way. */
static void buffer_ended(void *mem, void *size) {
    (void)mem;
    cd_process_profile_slot *s = cd_wrap_counted().slot;
    if (s) atomic_fetch_sub(&s->device_bytes, (int64_t)(intptr_t)size);
}

/* A buffer whose end nobody would tell is not counted. */
SHOWN void *clCreateBuffer(void *context, uint64_t flags, size_t size, void *host, int32_t *status);
SHOWN void *clCreateBuffer(void *context, uint64_t flags, size_t size, void *host,
                           int32_t *status) {
    void *(*real)(void *, uint64_t, size_t, void *, int32_t *);
    int32_t (*at_end)(void *, void (*)(void *, void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "clCreateBuffer");
    *(void **)&at_end = dlsym(RTLD_NEXT, "clSetMemObjectDestructorCallback");
    if (!real) {
        if (status) *status = -34; /* CL_INVALID_CONTEXT: there is no OpenCL */
        return NULL;
    }
    void *p = real(context, flags, size, host, status);
    cd_process_profile_slot *s = cd_wrap_counted().slot;
    if (p && s && at_end && !at_end(p, buffer_ended, (void *)(intptr_t)size))
        cd_wrap_grew(&s->device_bytes, (int64_t)size, NULL, &s->recent_device_bytes, s);
    return p;
}
