/* Runs a program and reports its time and memory. The heap is counted inside the program by a
 * preloaded library (process_profile_heap.c), through a shared page of counters; times and page
 * faults come from the kernel. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/host/host.h"
#include "profiler/wrap/process_profile_map.h"
#include "profiler/wrap/wrap.h"

/* Spans of cdmpp.h. Times are ours; bytes come from libcdmpp-wrap.so (process_profile_spans.c)
 * where it is loaded. */

struct cdmpp_span {
    cd_wrap_span memory;
    cd_wrap_span_end_call *end; /* NULL: the library is not loaded */
    double wall, cpu;
    char name[48];
};

/* Our own allocation comes before the counters are read, and is released after them. */
cdmpp_status cdmpp_span_begin(const char *name, cdmpp_span **out, cdmpp_err *err) {
    cd_wrap_span_begin_call *begin;
    if (!name || !*name) return CD_FAIL(err, EINVALID, "a span without a name");
    cdmpp_span *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "span %.47s", name);
    memcpy(s->name, name, strnlen(name, sizeof s->name - 1));
    /* dlsym gives object pointers */
    *(void **)&begin = dlsym(RTLD_DEFAULT, CD_WRAP_SPAN_BEGIN);
    *(void **)&s->end = dlsym(RTLD_DEFAULT, CD_WRAP_SPAN_END);
    if (begin && s->end) begin(&s->memory);
    else s->end = NULL;
    s->wall = cd_clock_wall();
    s->cpu = cd_clock_process();
    *out = s;
    return CDMPP_OK;
}

static cdmpp_span_cost cost_of(const cdmpp_span *s) {
    cdmpp_span_cost c = {
        .size = sizeof c, .seconds = s->wall, .cpu_seconds = s->cpu, .missing = ""};
    c.heap_peak = c.heap_live = c.heap_total = c.device_peak = c.device_live = CDMPP_UNKNOWN;
    if (!s->end) {
        c.missing = "libcdmpp-wrap.so is not loaded: run the program by cdmpp-profile wrap";
        return c;
    }
    c.heap_peak = s->memory.peak;
    c.heap_live = s->memory.live;
    c.heap_total = (int64_t)s->memory.total;
    c.device_peak = s->memory.device_peak;
    c.device_live = s->memory.device_live;
    return c;
}

cdmpp_status cdmpp_span_end(cdmpp_span *span, cdmpp_span_cost *cost, cdmpp_err *err) {
    if (!span) return CD_FAIL(err, EINVALID, "no span");
    span->wall = cd_clock_wall() - span->wall;
    span->cpu = cd_clock_process() - span->cpu;
    if (span->end) span->end(&span->memory, span->name, (uint64_t)(span->wall * 1e9));
    const cdmpp_span_cost c = cost_of(span);
    cd_mem_free(span);
    if (!cost) return CDMPP_OK;
    if (cost->size < sizeof c)
        return CD_FAIL(err, EUSAGE, "cdmpp_span_cost.size: expected %zu, found %zu", sizeof c,
                       cost->size);
    const size_t size = cost->size;
    *cost = c;
    cost->size = size;
    return CDMPP_OK;
}

extern char **environ;

/* Beside the executable in a build folder, below the prefix when installed. */
static const char *wrap_library(cd_arena *a) {
    static const char *const place[] = {"libcdmpp-wrap.so", "../lib/cdmpp/libcdmpp-wrap.so",
                                        "../../../libcdmpp-wrap.so"};
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr(self, '/');
    if (!slash) return NULL;
    slash[1] = 0;
    for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
        const size_t cap = strlen(self) + strlen(place[i]) + 1;
        char *p = cd_arena_alloc(a, cap, 1);
        if (!p) return NULL;
        snprintf(p, cap, "%s%s", self, place[i]);
        if (access(p, R_OK) == 0) return p;
    }
    return NULL;
}

/* ---- the shared counters ---- */
typedef struct shared {
    int fd;
    cd_process_profile_map *map;
} shared;

static bool share(shared *s) {
    s->map = NULL;
    s->fd = memfd_create("cdmpp-wrap", MFD_CLOEXEC);
    if (s->fd < 0) return false;
    if (!ftruncate(s->fd, (off_t)sizeof *s->map)) {
        void *p = mmap(NULL, sizeof *s->map, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
        if (p != MAP_FAILED) s->map = p;
    }
    if (s->map) s->map->magic = CD_WRAP_MAGIC;
    else close(s->fd);
    return s->map != NULL;
}

static void unshare_map(shared *s) {
    if (!s->map) return;
    munmap(s->map, sizeof *s->map);
    close(s->fd);
}

static void read_slot(const cd_process_profile_slot *s, cd_process_profile_heap *h) {
    *h = (cd_process_profile_heap){.pid = s->pid,
                                   .parent = s->parent,
                                   .n_malloc = s->n_malloc,
                                   .n_calloc = s->n_calloc,
                                   .n_realloc = s->n_realloc,
                                   .n_aligned = s->n_aligned,
                                   .n_free = s->n_free,
                                   .total_bytes = s->total_bytes,
                                   .high_water_kb = s->high_water_kb,
                                   .live_bytes = s->live_bytes,
                                   .peak_bytes = s->peak_bytes};
    memcpy(h->name, s->name, sizeof h->name);
    h->name[sizeof h->name - 1] = 0;
}

static cdmpp_status read_spans(cd_arena *a, const cd_process_profile_map *m,
                               cd_process_profile_report *r, cdmpp_err *err) {
    const uint32_t n = m->n_span < CD_WRAP_SPANS ? m->n_span : CD_WRAP_SPANS;
    cd_process_profile_spans *to = cd_arena_alloc(a, n ? n : 1, sizeof *to);
    if (!to) return CD_FAIL(err, ENOMEM, "%u spans", n);
    r->n_span = m->n_span;
    r->n_span_lost = m->n_span - n;
    r->span = to;
    for (uint32_t k = 0; k < n; k++) {
        const cd_process_profile_span *s = &m->span[k];
        to[k] = (cd_process_profile_spans){.pid = s->pid,
                                           .n = s->n,
                                           .total_bytes = s->total_bytes,
                                           .seconds = 1e-9 * (double)s->ns,
                                           .peak_bytes = s->peak_bytes,
                                           .live_bytes = s->live_bytes,
                                           .device_peak_bytes = s->device_peak_bytes,
                                           .device_live_bytes = s->device_live_bytes};
        memcpy(to[k].name, s->name, sizeof to[k].name);
        to[k].name[sizeof to[k].name - 1] = 0;
    }
    return CDMPP_OK;
}

static cdmpp_status read_map(cd_arena *a, const cd_process_profile_map *m,
                             cd_process_profile_report *r, cdmpp_err *err) {
    const uint32_t n = m->n_slot < CD_WRAP_SLOTS ? m->n_slot : CD_WRAP_SLOTS;
    cd_process_profile_heap *h = cd_arena_alloc(a, n ? n : 1, sizeof *h);
    if (!h) return CD_FAIL(err, ENOMEM, "%u processes", n);
    r->n_image = m->n_slot;
    r->n_lost = m->n_slot - n;
    r->image = h;
    for (uint32_t k = 0; k < n; k++) {
        read_slot(&m->slot[k], &h[k]);
        if (h[k].pid != r->pid) continue;
        r->own = h[k]; /* of several images the last one */
        r->has_heap = true;
    }
    CD_TRY(read_spans(a, m, r, err));
    r->why_no_heap =
        r->has_heap ? "" : "the program did not load the library: is it static, or setuid?";
    if (r->has_heap && r->own.high_water_kb) {
        r->max_rss_kb = r->own.high_water_kb;
        r->rss_own = true;
    }
    return CDMPP_OK;
}

/* ---- the program ---- */

/* The environment with LD_PRELOAD before what it was and the place of the counters. */
static char **environment(cd_arena *a, const char *library, const shared *s) {
    size_t n = 0;
    while (environ[n]) n++;
    const char *old = getenv("LD_PRELOAD");
    const size_t cap = strlen(library) + (old ? strlen(old) : 0) + 32;
    char **env = cd_arena_zalloc(a, n + 3, sizeof *env), *load = cd_arena_alloc(a, cap, 1),
         *place = cd_arena_alloc(a, 96, 1);
    if (!env || !load || !place) return NULL;
    snprintf(load, cap, "LD_PRELOAD=%s%s%s", library, old && *old ? ":" : "", old ? old : "");
    snprintf(place, 96, CD_WRAP_ENV "=/proc/%ld/fd/%d", (long)getpid(), s->fd);
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0 &&
            strncmp(environ[i], CD_WRAP_ENV "=", sizeof CD_WRAP_ENV) != 0)
            env[k++] = environ[i];
    env[k++] = load;
    env[k] = place;
    return env;
}

static double seconds(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

/* ^C is for the program: it decides whether to end. */
static cdmpp_status begin(char *const *argv, char **env, pid_t *pid, cdmpp_err *err) {
    posix_spawnattr_t a;
    sigset_t def;
    posix_spawnattr_init(&a);
    sigemptyset(&def);
    const int take[] = {SIGPIPE, SIGINT, SIGTERM, SIGQUIT};
    for (size_t i = 0; i < 4; i++) sigaddset(&def, take[i]);
    posix_spawnattr_setsigdefault(&a, &def);
    posix_spawnattr_setflags(&a, POSIX_SPAWN_SETSIGDEF);
    const int rc = posix_spawnp(pid, argv[0], NULL, &a, argv, env);
    posix_spawnattr_destroy(&a);
    return rc ? CD_FAIL(err, EIO, "cannot run %s: %s", argv[0], strerror(rc)) : CDMPP_OK;
}

/* wait4 has the times and faults of this child alone. */
static cdmpp_status run(char *const *argv, char **env, cd_process_profile_report *r,
                        cdmpp_err *err) {
    struct rusage u;
    pid_t pid = 0, got;
    int rc = 0;
    cd_host_energy energy;
    cd_host_energy_begin("", &energy);
    const double t0 = cd_clock_wall();
    CD_TRY(begin(argv, env, &pid, err));
    while ((got = wait4(pid, &rc, 0, &u)) < 0 && errno == EINTR) continue;
    r->wall_s = cd_clock_wall() - t0;
    r->energy_j = cd_host_energy_since("", &energy);
    if (got < 0) return CD_FAIL(err, EIO, "wait4: %s", strerror(errno));
    r->pid = (int32_t)pid;
    r->signaled = WIFSIGNALED(rc);
    r->code = r->signaled ? WTERMSIG(rc) : WEXITSTATUS(rc);
    r->user_s = seconds(u.ru_utime);
    r->sys_s = seconds(u.ru_stime);
    r->max_rss_kb = (uint64_t)u.ru_maxrss;
    r->minor_faults = (uint64_t)u.ru_minflt;
    r->major_faults = (uint64_t)u.ru_majflt;
    r->waited = (uint64_t)u.ru_nvcsw;
    r->preempted = (uint64_t)u.ru_nivcsw;
    return CDMPP_OK;
}

/* Without the library the program runs all the same, and why_no_heap has the reason. */
cdmpp_status cd_process_profile_run(cd_arena *a, char *const *argv, const char *library,
                                    cd_process_profile_report *out, cdmpp_err *err) {
    shared s = {-1, NULL};
    char **env = environ;
    *out = (cd_process_profile_report){.why_no_heap = ""};
    if (!library) library = wrap_library(a);
    if (!library)
        out->why_no_heap = "libcdmpp-wrap.so is not beside cdmpp-profile nor in ../lib/cdmpp";
    else if (!*library) out->why_no_heap = "not asked for";
    else if (!share(&s)) out->why_no_heap = "no shared memory";
    else env = environment(a, library, &s);
    cdmpp_status st = CDMPP_OK;
    if (!env) st = CD_FAIL(err, ENOMEM, "environment");
    if (!st) st = run(argv, env, out, err);
    if (!st && s.map) st = read_map(a, s.map, out, err);
    unshare_map(&s);
    return st;
}

/* ---- printing ---- */
static void put_heap_text(cd_buf *b, const cd_process_profile_heap *h) {
    cd_buf_putf(b,
                "heap peak %.3f MB, live at the end %.3f MB; %llu allocations of %.3f MB, %llu "
                "reallocations, %llu freed",
                1e-6 * (double)h->peak_bytes, 1e-6 * (double)h->live_bytes,
                (unsigned long long)(h->n_malloc + h->n_calloc + h->n_aligned),
                1e-6 * (double)h->total_bytes, (unsigned long long)h->n_realloc,
                (unsigned long long)h->n_free);
}

static void put_spans_text(cd_buf *b, const cd_process_profile_report *r) {
    const uint64_t n = r->n_span - r->n_span_lost;
    if (n)
        cd_buf_puts(b, "spans: times, seconds together; heap: peak, left, asked for; device: peak, "
                       "left (MB)\n");
    for (uint64_t k = 0; k < n; k++) {
        const cd_process_profile_spans *s = &r->span[k];
        cd_buf_putf(b, "  %-24s %8llu %12.6f  %10.3f %10.3f %10.3f  %10.3f %10.3f\n", s->name,
                    (unsigned long long)s->n, s->seconds, 1e-6 * (double)s->peak_bytes,
                    1e-6 * (double)s->live_bytes, 1e-6 * (double)s->total_bytes,
                    1e-6 * (double)s->device_peak_bytes, 1e-6 * (double)s->device_live_bytes);
    }
    if (r->n_span_lost)
        cd_buf_putf(b, "  and %llu spans more\n", (unsigned long long)r->n_span_lost);
}

/* The program's own last image stands in the third line; other images, its children, follow one a
 * line. */
void cd_process_profile_put_text(cd_buf *out, const cd_process_profile_report *r) {
    cd_buf_putf(out, "%s %d, wall %.6f s, user %.6f s, system %.6f s\n",
                r->signaled ? "signal" : "exit status", r->code, r->wall_s, r->user_s, r->sys_s);
    cd_buf_putf(out,
                "resident peak %.3f MB%s; faults %llu minor, %llu major; switches %llu waiting, "
                "%llu preempted\n",
                1.024e-3 * (double)r->max_rss_kb, r->rss_own ? "" : " (of it and its children)",
                (unsigned long long)r->minor_faults, (unsigned long long)r->major_faults,
                (unsigned long long)r->waited, (unsigned long long)r->preempted);
    if (r->energy_j > 0)
        cd_buf_putf(out, "packages of the processors: %.3f J, %.1f W, other programs included\n",
                    r->energy_j, r->energy_j / r->wall_s);
    if (r->has_heap) put_heap_text(out, &r->own);
    else cd_buf_putf(out, "heap not known: %s", r->why_no_heap);
    cd_buf_puts(out, "\n");
    for (uint64_t k = 0; k < r->n_image - r->n_lost; k++) {
        const cd_process_profile_heap *h = &r->image[k];
        if (h->pid == r->pid && !memcmp(h, &r->own, sizeof *h)) continue;
        cd_buf_putf(out, "  %s[%d]: ", h->name, h->pid);
        put_heap_text(out, h);
        cd_buf_puts(out, "\n");
    }
    if (r->n_lost) cd_buf_putf(out, "  and %llu processes more\n", (unsigned long long)r->n_lost);
    put_spans_text(out, r);
}

static void put_heap_json(cd_buf *b, const cd_process_profile_heap *h) {
    cd_buf_putf(b, "{\"pid\":%d,\"parent\":%d,\"name\":", h->pid, h->parent);
    cd_buf_put_json_str(b, h->name, strlen(h->name));
    cd_buf_putf(b,
                ",\"peak_bytes\":%lld,\"live_bytes\":%lld,\"total_bytes\":%llu,\"malloc\":%llu,"
                "\"calloc\":%llu,\"realloc\":%llu,"
                "\"aligned\":%llu,\"free\":%llu,\"max_rss_kb\":",
                (long long)h->peak_bytes, (long long)h->live_bytes,
                (unsigned long long)h->total_bytes, (unsigned long long)h->n_malloc,
                (unsigned long long)h->n_calloc, (unsigned long long)h->n_realloc,
                (unsigned long long)h->n_aligned, (unsigned long long)h->n_free);
    if (h->high_water_kb) cd_buf_putf(b, "%llu}", (unsigned long long)h->high_water_kb);
    else cd_buf_puts(b, "null}");
}

static void put_spans_json(cd_buf *b, const cd_process_profile_report *r) {
    cd_buf_puts(b, ",\"spans\":[");
    for (uint64_t k = 0; k < r->n_span - r->n_span_lost; k++) {
        const cd_process_profile_spans *s = &r->span[k];
        cd_buf_puts(b, k ? ",{\"name\":" : "{\"name\":");
        cd_buf_put_json_str(b, s->name, strlen(s->name));
        cd_buf_putf(b,
                    ",\"pid\":%d,\"times\":%llu,\"seconds\":%.9g,\"peak_bytes\":%lld,\"live_"
                    "bytes\":%lld,\"total_bytes\":%llu,\"device_peak_bytes\":%lld,"
                    "\"device_live_bytes\":%lld}",
                    s->pid, (unsigned long long)s->n, s->seconds, (long long)s->peak_bytes,
                    (long long)s->live_bytes, (unsigned long long)s->total_bytes,
                    (long long)s->device_peak_bytes, (long long)s->device_live_bytes);
    }
    cd_buf_putf(b, "],\"spans_lost\":%llu", (unsigned long long)r->n_span_lost);
}

/* Heap figures are null where they are not known. */
void cd_process_profile_put_json(cd_buf *out, const cd_process_profile_report *r) {
    cd_buf_putf(out, "{\"%s\":%d", r->signaled ? "signal" : "exit", r->code);
    const double t[] = {r->wall_s, r->user_s, r->sys_s};
    static const char *const name[] = {"wall_s", "user_s", "sys_s"};
    for (size_t i = 0; i < 3; i++) {
        cd_buf_putf(out, ",\"%s\":", name[i]);
        cd_buf_put_json_real(out, t[i]);
    }
    cd_buf_puts(out, ",\"package_energy_j\":");
    cd_buf_put_json_real(out, r->energy_j > 0 ? r->energy_j : (double)NAN);
    cd_buf_putf(out,
                ",\"max_rss_kb\":%llu,\"max_rss_of\":\"%s\",\"minor_faults\":%llu,\"major_faults\":"
                "%llu,\"voluntary_switches\":%llu,"
                "\"involuntary_switches\":%llu,\"heap\":",
                (unsigned long long)r->max_rss_kb, r->rss_own ? "program" : "tree",
                (unsigned long long)r->minor_faults, (unsigned long long)r->major_faults,
                (unsigned long long)r->waited, (unsigned long long)r->preempted);
    if (r->has_heap) put_heap_json(out, &r->own);
    else cd_buf_puts(out, "null");
    cd_buf_puts(out, ",\"why_no_heap\":");
    cd_buf_put_json_str(out, r->why_no_heap, strlen(r->why_no_heap));
    cd_buf_puts(out, ",\"processes\":[");
    for (uint64_t k = 0; k < r->n_image - r->n_lost; k++) {
        if (k) cd_buf_puts(out, ",");
        put_heap_json(out, &r->image[k]);
    }
    cd_buf_putf(out, "],\"processes_lost\":%llu", (unsigned long long)r->n_lost);
    put_spans_json(out, r);
    cd_buf_puts(out, "}");
}
