/* Which processors a thread may use, by the system's masks. Programs that are timed get the last
 * processors, because the system's own work and interrupts gather on the first ones. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/host/host.h"

_Static_assert(sizeof(cd_affinity) == sizeof(cpu_set_t), "a mask of the system's size");

int cd_affinity_count(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* The last n of `of`, or all others. */
static cpu_set_t part(const cpu_set_t *of, int n, bool last) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t k = CPU_SETSIZE, left = (size_t)n; k-- > 0;) {
        if (!CPU_ISSET(k, of)) continue;
        if ((left > 0) == last) CPU_SET(k, &set);
        left -= left > 0;
    }
    return set;
}

bool cd_affinity_last(int n) {
    cpu_set_t may;
    if (n < 1 || sched_getaffinity(0, sizeof may, &may) != 0 || CPU_COUNT(&may) <= n) return false;
    const cpu_set_t set = part(&may, n, true);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

bool cd_affinity_one(unsigned n, unsigned k) {
    cpu_set_t may, one;
    if (k >= n || sched_getaffinity(0, sizeof may, &may) != 0 || CPU_COUNT(&may) < (int)n)
        return false;
    CPU_ZERO(&one);
    int skip = CPU_COUNT(&may) - (int)n + (int)k;
    for (size_t c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &may) && skip-- == 0) CPU_SET(c, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

unsigned cd_affinity_last_cores(unsigned n, int *core) {
    cpu_set_t may;
    unsigned k = 0;
    if (sched_getaffinity(0, sizeof may, &may) != 0) return 0;
    const cpu_set_t last = part(&may, (int)n, true);
    for (int c = 0; c < CPU_SETSIZE && k < n; c++)
        if (CPU_ISSET((size_t)c, &last)) core[k++] = c;
    return k;
}

bool cd_affinity_at(int cpu) {
    cpu_set_t one;
    if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

void cd_affinity_get(cd_affinity *a) {
    cpu_set_t set;
    CPU_ZERO(&set);
    (void)sched_getaffinity(0, sizeof set, &set);
    memcpy(a, &set, sizeof set);
}

void cd_affinity_set(const cd_affinity *all, int but_last) {
    cpu_set_t set;
    memcpy(&set, all, sizeof set);
    if (but_last < 0 || CPU_COUNT(&set) <= but_last) return;
    if (but_last) set = part(&set, but_last, false);
    (void)sched_setaffinity(0, sizeof set, &set);
}

/* Flushes caches by going through memory of our own that is larger than they are: user programs
 * have no instruction that empties a whole cache. */

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

/* What a thread's arithmetic does with numbers that are too small to be normal. */

#if defined(__SSE2__)
enum { FLUSH_RESULTS = 0x8000, FLUSH_OPERANDS = 0x40 };
void cd_denormals_are_zero(void) {
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | FLUSH_RESULTS | FLUSH_OPERANDS);
}
#elif defined(__aarch64__)
void cd_denormals_are_zero(void) {
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1 << 24));
}
#else
void cd_denormals_are_zero(void) {}
#endif

/* Finds the processors of a type in what Linux says, and keeps this process on them. Big and little
 * cores differ in capacity, which ARM kernels compute; where there is none, in their highest
 * frequency; Intel's hybrid processors list both kinds. */

/* of the larger one: favoured cores of one kind differ by a few percent in frequency */
#define ALIKE 0.9

typedef struct {
    double speed; /* in units of `by`; negative: not told */
    int first;    /* its first sibling: names the core */
} processor;

typedef struct {
    processor cpu[CPU_SETSIZE];
    cpu_set_t allowed;
    const char *by;     /* what tells speeds apart; NULL: nothing does */
    double least, most; /* of the allowed */
} machine;

const char *cd_core_type_name(cd_core_type t) {
    static const char *const name[] = {"big", "little", "smt-idle", "smt-busy"};
    return name[t];
}

/* ---- what the system says ---- */
static bool read_line(const char *root, const char *path, char *to, size_t n) {
    char p[512];
    FILE *f = snprintf(p, sizeof p, "%s%s", root, path) < (int)sizeof p ? fopen(p, "r") : NULL;
    const bool good = f && fgets(to, (int)n, f);
    if (f) fclose(f);
    return good;
}

/* "0-3,6" */
static bool read_list(const char *root, const char *path, cpu_set_t *out) {
    char text[4096], *s = text, *end;
    CPU_ZERO(out);
    if (!read_line(root, path, text, sizeof text)) return false;
    for (;; s = end + 1) {
        const long a = strtol(s, &end, 10);
        const long b = end > s && *end == '-' ? strtol(end + 1, &end, 10) : a;
        if (end == s || a < 0 || b >= CPU_SETSIZE) return CPU_COUNT(out) > 0;
        for (long k = a; k <= b; k++) CPU_SET((size_t)k, out);
        if (*end != ',') return CPU_COUNT(out) > 0;
    }
}

static double read_cpu(const char *root, size_t k, const char *name) {
    char path[128], text[64], *end;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/%s", k, name);
    if (!read_line(root, path, text, sizeof text)) return -1;
    const double v = strtod(text, &end);
    return end > text ? v : -1;
}

/* Every allowed processor tells it. */
static bool read_speeds(machine *m, const char *root, const char *name) {
    for (size_t k = 0; k < CPU_SETSIZE; k++) {
        if (!CPU_ISSET(k, &m->allowed)) continue;
        m->cpu[k].speed = read_cpu(root, k, name);
        if (m->cpu[k].speed <= 0) return false;
    }
    return true;
}

static bool read_hybrid(machine *m, const char *root) {
    cpu_set_t core, atom;
    if (!read_list(root, "/sys/devices/cpu_core/cpus", &core) ||
        !read_list(root, "/sys/devices/cpu_atom/cpus", &atom))
        return false;
    for (size_t k = 0; k < CPU_SETSIZE; k++)
        m->cpu[k].speed = CPU_ISSET(k, &core) ? 2 : CPU_ISSET(k, &atom) ? 1 : -1;
    return true;
}

static void read_machine(const char *root, const cd_affinity *allowed, machine *m) {
    memcpy(&m->allowed, allowed, sizeof m->allowed);
    for (size_t k = 0; k < CPU_SETSIZE; k++) {
        char path[128];
        cpu_set_t siblings;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list",
                 k);
        m->cpu[k] = (processor){-1, (int)k};
        if (!CPU_ISSET(k, &m->allowed) || !read_list(root, path, &siblings)) continue;
        for (size_t s = CPU_SETSIZE; s-- > 0;)
            if (CPU_ISSET(s, &siblings)) m->cpu[k].first = (int)s;
    }
    m->by = read_hybrid(m, root)                               ? "kind"
            : read_speeds(m, root, "cpu_capacity")             ? "capacity"
            : read_speeds(m, root, "cpufreq/cpuinfo_max_freq") ? "highest frequency in kHz"
                                                               : NULL;
    m->least = m->most = -1;
    for (size_t k = 0; m->by && k < CPU_SETSIZE; k++) {
        const double v = m->cpu[k].speed;
        if (!CPU_ISSET(k, &m->allowed) || v < 0) continue;
        if (m->least < 0 || v < m->least) m->least = v;
        if (v > m->most) m->most = v;
    }
}

/* ---- choosing ---- */
/* The siblings of k among the allowed ones, without k. */
static cpu_set_t siblings_of(const machine *m, const char *root, size_t k) {
    char path[128];
    cpu_set_t all, out;
    CPU_ZERO(&out);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list", k);
    if (!read_list(root, path, &all)) return out;
    CPU_AND(&out, &all, &m->allowed);
    CPU_CLR(k, &out);
    return out;
}

static cdmpp_status by_speed(const machine *m, cd_core_type t, cpu_set_t *out, cdmpp_err *err) {
    const bool big = t == CD_CORE_BIG;
    const int n = CPU_COUNT(&m->allowed);
    if (!m->by)
        return CD_FAIL(err, EBACKEND,
                       "no %s core: this system tells neither kinds, capacities nor frequencies of "
                       "its %d processors",
                       cd_core_type_name(t), n);
    if (m->least > m->most * ALIKE)
        return CD_FAIL(err, EBACKEND,
                       "no %s core: the %d processors that may be used are alike (%s %g to %g)",
                       cd_core_type_name(t), n, m->by, m->least, m->most);
    for (size_t k = 0; k < CPU_SETSIZE; k++) {
        const double v = m->cpu[k].speed;
        if (CPU_ISSET(k, &m->allowed) && v > 0 &&
            (big ? v >= m->most * ALIKE : v * ALIKE <= m->least))
            CPU_SET(k, out);
    }
    return CDMPP_OK;
}

static cdmpp_status by_sibling(const machine *m, const char *root, cd_core_type t, cpu_set_t *out,
                               cpu_set_t *sibling, cdmpp_err *err) {
    for (size_t k = 0; k < CPU_SETSIZE; k++) {
        if (!CPU_ISSET(k, &m->allowed) || CPU_ISSET(k, sibling)) continue;
        const cpu_set_t others = siblings_of(m, root, k);
        if (!CPU_COUNT(&others)) continue;
        CPU_SET(k, out);
        CPU_OR(sibling, sibling, &others);
    }
    if (CPU_COUNT(out)) return CDMPP_OK;
    return CD_FAIL(
        err, EBACKEND,
        "no core for %s: none of the %d processors that may be used has a sibling among them",
        cd_core_type_name(t), CPU_COUNT(&m->allowed));
}

cdmpp_status cd_core_type_find(const char *root, const cd_affinity *allowed, cd_core_type t,
                               cd_core_set *out, cdmpp_err *err) {
    machine *m = cd_mem_zalloc(1, sizeof *m);
    cpu_set_t cpu, sibling;
    if (!m) return CD_FAIL(err, ENOMEM, "processors");
    CPU_ZERO(&cpu);
    CPU_ZERO(&sibling);
    read_machine(root, allowed, m);
    const cdmpp_status st = t <= CD_CORE_LITTLE ? by_speed(m, t, &cpu, err)
                                                : by_sibling(m, root, t, &cpu, &sibling, err);
    memcpy(&out->cpu, &cpu, sizeof cpu);
    memcpy(&out->sibling, &sibling, sizeof sibling);
    out->n = CPU_COUNT(&cpu);
    cd_mem_free(m);
    return st;
}

/* ---- using ---- */
/* Multiplies and adds in registers until it is killed. */
static void burn(size_t cpu) {
    volatile float keep[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float x[8];
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (sched_setaffinity(0, sizeof one, &one)) _exit(1);
    for (int k = 0; k < 8; k++) x[k] = keep[k];
    for (;;) {
        for (int i = 0; i < 4096; i++)
            for (int k = 0; k < 8; k++) x[k] = x[k] * 0.999f + 1e-3f;
        for (int k = 0; k < 8; k++) keep[k] = x[k];
    }
}

static cdmpp_status load_siblings(cd_core_hold *h, const cd_core_set *s, cdmpp_err *err) {
    cpu_set_t sibling;
    memcpy(&sibling, &s->sibling, sizeof sibling);
    h->pid = cd_mem_zalloc((size_t)CPU_COUNT(&sibling) + 1, sizeof *h->pid);
    if (!h->pid) return CD_FAIL(err, ENOMEM, "processors");
    for (size_t k = 0; k < CPU_SETSIZE; k++) {
        if (!CPU_ISSET(k, &sibling)) continue;
        const pid_t pid = fork();
        if (pid < 0) return CD_FAIL(err, EIO, "no process: %s", strerror(errno));
        if (!pid) burn(k);
        h->pid[h->n++] = pid;
    }
    return CDMPP_OK;
}

cdmpp_status cd_core_type_begin(const char *root, cd_core_type t, cd_core_hold *h, cdmpp_err *err) {
    cd_core_set s;
    *h = (cd_core_hold){0};
    cd_affinity_get(&h->before);
    CD_TRY(cd_core_type_find(root, &h->before, t, &s, err));
    if (t == CD_CORE_SMT_BUSY) CD_TRY(load_siblings(h, &s, err));
    cd_affinity_set(&s.cpu, 0);
    h->held = true;
    return CDMPP_OK;
}

void cd_core_type_end(cd_core_hold *h) {
    for (size_t i = 0; i < h->n; i++) {
        kill(h->pid[i], SIGKILL);
        while (waitpid(h->pid[i], NULL, 0) < 0 && errno == EINTR) continue;
    }
    cd_mem_free(h->pid);
    if (h->held) cd_affinity_set(&h->before, 0);
    *h = (cd_core_hold){0};
}
