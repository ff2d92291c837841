/* Reads what Linux tells about a machine from small files. Nothing here fails: a container or
 * another kernel may lack any of them, so what cannot be read is unknown. */
#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/host/host.h"

/* What the packages of this machine have taken, by their own counters: RAPL, as Linux shows it
 * (powercap). Most systems let root alone read them. */

/* Microjoules; false: there is none, or it may not be read. */
static bool read_count(const char *root, unsigned package, const char *name, uint64_t *out) {
    char path[512];
    unsigned long long v;
    snprintf(path, sizeof path, "%s/sys/class/powercap/intel-rapl:%u/%s", root, package, name);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const bool ok = fscanf(f, "%llu", &v) == 1;
    fclose(f);
    if (ok) *out = v;
    return ok;
}

void cd_host_energy_begin(const char *root, cd_host_energy *m) {
    *m = (cd_host_energy){0};
    while (m->n < CD_HOST_ENERGY_PACKAGES && read_count(root, m->n, "energy_uj", &m->at_uj[m->n]))
        m->n++;
}

double cd_host_energy_since(const char *root, const cd_host_energy *m) {
    double sum = 0;
    for (unsigned k = 0; k < m->n; k++) {
        uint64_t now, range;
        if (!read_count(root, k, "energy_uj", &now)) return (double)NAN;
        if (now < m->at_uj[k] && !read_count(root, k, "max_energy_range_uj", &range))
            return (double)NAN;
        sum += now >= m->at_uj[k] ? (double)(now - m->at_uj[k])
                                  : (double)(range - m->at_uj[k]) + (double)now;
    }
    return m->n ? 1e-6 * sum : (double)NAN;
}

/* GPUs by what NVIDIA's driver leaves under /proc: no driver library is loaded, which would take a
 * second. */

/* "Model: \t\t NVIDIA H200" of one board's file; false: it has no such line. */
static bool read_model(const char *path, char *to, size_t n) {
    char line[256];
    FILE *f = fopen(path, "r");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        if (strncmp(line, "Model:", 6) != 0) continue;
        const char *at = line + 6 + strspn(line + 6, " \t");
        (void)snprintf(to, n, "%.*s", (int)strcspn(at, "\n"), at);
        found = to[0] != 0;
    }
    if (f) (void)fclose(f);
    return found;
}

static int no_dots(const struct dirent *e) { return e->d_name[0] != '.'; }

size_t cd_host_gpus_read(const char *root, cd_host_gpu *out, size_t cap) {
    char folder[512], path[800];
    struct dirent **name = NULL;
    size_t n = 0;
    (void)snprintf(folder, sizeof folder, "%s/proc/driver/nvidia/gpus", root);
    const int all = scandir(folder, &name, no_dots, alphasort);
    for (int k = 0; k < all; k++) {
        (void)snprintf(path, sizeof path, "%s/%.200s/information", folder, name[k]->d_name);
        if (n < cap && read_model(path, out[n].name, sizeof out[n].name)) n++;
        free(name[k]);
    }
    free(name);
    return n;
}

/* Counts by Linux's perf_event_open. A counter that cannot be opened stays -1: that is the usual
 * case in containers, and no reason to fail. */

#if defined(__linux__)
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

static int open_one(uint32_t type, uint64_t config) {
    struct perf_event_attr a;
    memset(&a, 0, sizeof a);
    a.size = sizeof a;
    a.type = type;
    a.config = config;
    a.disabled = 1;
    a.inherit = 1;
    a.exclude_kernel = 1;
    a.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Reads of a cache that were not in it. */
static uint64_t misses(uint64_t cache) {
    return cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
}

void cd_perf_counters_open(cd_perf_counters *p) {
    p->fd[CD_PERF_CYCLES] = open_one(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
    p->fd[CD_PERF_INSTRUCTIONS] = open_one(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
    p->fd[CD_PERF_CACHE_MISSES] = open_one(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES);
    p->fd[CD_PERF_L1_MISSES] = open_one(PERF_TYPE_HW_CACHE, misses(PERF_COUNT_HW_CACHE_L1D));
    p->fd[CD_PERF_BRANCH_MISSES] = open_one(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES);
    p->fd[CD_PERF_TLB_MISSES] = open_one(PERF_TYPE_HW_CACHE, misses(PERF_COUNT_HW_CACHE_DTLB));
}

void cd_perf_counters_start(cd_perf_counters *p) {
    for (int k = 0; k < CD_PERF_COUNT; k++) {
        if (p->fd[k] < 0) continue;
        (void)ioctl(p->fd[k], PERF_EVENT_IOC_RESET, 0);
        (void)ioctl(p->fd[k], PERF_EVENT_IOC_ENABLE, 0);
    }
}

void cd_perf_counters_stop(cd_perf_counters *p, double value[CD_PERF_COUNT]) {
    for (int k = 0; k < CD_PERF_COUNT; k++) {
        uint64_t n = 0;
        value[k] = -1;
        if (p->fd[k] < 0) continue;
        (void)ioctl(p->fd[k], PERF_EVENT_IOC_DISABLE, 0);
        /* 0: the counter never ran */
        if (read(p->fd[k], &n, sizeof n) == (ssize_t)sizeof n && n) value[k] = (double)n;
    }
}
#else
void cd_perf_counters_open(cd_perf_counters *p) {
    for (int k = 0; k < CD_PERF_COUNT; k++) p->fd[k] = -1;
}
void cd_perf_counters_start(cd_perf_counters *p) { (void)p; }
void cd_perf_counters_stop(cd_perf_counters *p, double value[CD_PERF_COUNT]) {
    (void)p;
    for (int k = 0; k < CD_PERF_COUNT; k++) value[k] = -1;
}
#endif

void cd_perf_counters_close(cd_perf_counters *p) {
    for (int k = 0; k < CD_PERF_COUNT; k++)
        if (p->fd[k] >= 0) close(p->fd[k]);
}

/* ---- small files ---- */
static FILE *open_below(const char *root, const char *path) {
    char p[512];
    if (!strcmp(path, "/proc/cpuinfo")) return cd_cpuinfo_open(root);
    return snprintf(p, sizeof p, "%s%s", root, path) < (int)sizeof p ? fopen(p, "r") : NULL;
}

/* The first line without its end; false: there is none. */
static bool first_line(const char *root, const char *path, char *to, size_t n) {
    FILE *f = open_below(root, path);
    const bool found = f && fgets(to, (int)n, f);
    if (f) fclose(f);
    if (!found) return to[0] = 0, false;
    to[strcspn(to, "\n")] = 0;
    return true;
}

static double number(const char *root, const char *path, double absent) {
    char b[64], *end;
    if (!first_line(root, path, b, sizeof b)) return absent;
    const double v = strtod(b, &end);
    return end == b ? absent : v;
}

/* Behind "name  : " or "name: " of the first such line. */
static bool field(const char *root, const char *path, const char *name, char *to, size_t n) {
    char line[8192];
    FILE *f = open_below(root, path);
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        const size_t k = strlen(name);
        const char *colon = strncmp(line, name, k) ? NULL : line + k + strspn(line + k, " \t");
        if (!colon || *colon != ':') continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(to, n, "%.*s", (int)strcspn(colon, "\n"), colon);
        found = true;
    }
    if (f) fclose(f);
    if (!found) to[0] = 0;
    return found;
}

bool cd_host_info_field(const char *root, const char *name, char *to, size_t n) {
    return field(root, "/proc/cpuinfo", name, to, n);
}

/* ---- parts ---- */
/* Cache of this level and kind of the first processor: its directories are numbered, not named. */
static int64_t cache_size(const char *root, int level, const char *kind) {
    for (int k = 0; k < 8; k++) {
        char p[96], b[32];
        snprintf(p, sizeof p, "/sys/devices/system/cpu/cpu0/cache/index%d/type", k);
        if (!first_line(root, p, b, sizeof b)) break;
        if (strcmp(b, kind) != 0) continue;
        snprintf(p, sizeof p, "/sys/devices/system/cpu/cpu0/cache/index%d/level", k);
        if (!first_line(root, p, b, sizeof b) || strtol(b, NULL, 10) != level) continue;
        snprintf(p, sizeof p, "/sys/devices/system/cpu/cpu0/cache/index%d/size", k);
        if (!first_line(root, p, b, sizeof b)) break;
        char *unit;
        const int64_t n = strtol(b, &unit, 10);
        return *unit == 'K' ? n << 10 : *unit == 'M' ? n << 20 : n;
    }
    return -1;
}

/* Where the kernel gives no directory of caches (containers, small virtual machines), the C library
 * asks the processor. `name` is that of sysconf(). Only for this machine (root is empty), and not
 * for the third level: of that it tells the sum of all sockets. */
static int64_t cache_of(const char *root, int level, const char *kind, int name) {
    const int64_t n = cache_size(root, level, kind);
    const long asked = n <= 0 && !*root ? sysconf(name) : 0;
    return n > 0 || asked <= 0 ? n : asked;
}

static int turbo_of(const char *root) {
    const double no = number(root, "/sys/devices/system/cpu/intel_pstate/no_turbo", -1);
    const double boost = number(root, "/sys/devices/system/cpu/cpufreq/boost", -1);
    return no >= 0 ? no < 0.5 : boost >= 0 ? boost > 0.5 : -1;
}

/* Version 2: "max 100000" or "150000 100000"; version 1: two files. */
static double quota_of(const char *root) {
    char b[64], *end;
    if (first_line(root, "/sys/fs/cgroup/cpu.max", b, sizeof b)) {
        const double quota = strtod(b, &end), period = strtod(end, NULL);
        return end != b && period > 0 ? quota / period : 0;
    }
    const double quota = number(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", -1),
                 period = number(root, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", -1);
    return quota > 0 && period > 0 ? quota / period : 0;
}

static int64_t memory_of(const char *root, const char *name) {
    char b[64];
    return field(root, "/proc/meminfo", name, b, sizeof b) ? strtoll(b, NULL, 10) * 1024 : -1;
}

/* "0-3,6": 5 */
static int count_list(const char *s) {
    int n = 0;
    while (*s) {
        char *end;
        const long a = strtol(s, &end, 10);
        if (end == s) return -1;
        const long b = *end == '-' ? strtol(end + 1, &end, 10) : a;
        n += (int)(b - a + 1);
        s = end + (*end == ',');
    }
    return n ? n : -1;
}

/* Arm's /proc/cpuinfo has "Model" in place of "model name". */
void cd_host_info_read(const char *root, cd_host_info *h) {
    char b[8192];
    cpu_set_t set;
    memset(h, 0, sizeof *h);
    if (!field(root, "/proc/cpuinfo", "model name", h->cpu, sizeof h->cpu))
        (void)field(root, "/proc/cpuinfo", "Model", h->cpu, sizeof h->cpu);
    (void)first_line(root, "/proc/sys/kernel/osrelease", h->kernel, sizeof h->kernel);
    (void)first_line(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", h->governor,
                     sizeof h->governor);
    h->n_cpu = first_line(root, "/sys/devices/system/cpu/online", b, sizeof b) ? count_list(b) : -1;
    h->n_allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
    h->l1d_bytes = cache_of(root, 1, "Data", _SC_LEVEL1_DCACHE_SIZE);
    h->l2_bytes = cache_of(root, 2, "Unified", _SC_LEVEL2_CACHE_SIZE);
    h->l3_bytes = cache_size(root, 3, "Unified");
    h->mhz = field(root, "/proc/cpuinfo", "cpu MHz", b, sizeof b) ? strtod(b, NULL) : -1;
    h->max_mhz = number(root, "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", -1e3) / 1e3;
    h->turbo = turbo_of(root);
    h->load = number(root, "/proc/loadavg", -1);
    h->cgroup_cpus = quota_of(root);
    h->memory_bytes = memory_of(root, "MemTotal");
    h->available_bytes = memory_of(root, "MemAvailable");
    h->virtual_machine =
        field(root, "/proc/cpuinfo", "flags", b, sizeof b) && strstr(b, " hypervisor");
}

/* The first line of /proc/stat: user nice system idle iowait irq softirq steal. Waiting for a disk
 * counts as idle. */
void cd_host_time_read(const char *root, cd_host_time *t) {
    char b[512], *p = b + 3;
    int64_t v[8];
    *t = (cd_host_time){-1, -1, -1};
    if (!first_line(root, "/proc/stat", b, sizeof b) || strncmp(b, "cpu", 3) != 0) return;
    int64_t sum = 0;
    for (int i = 0; i < 8; i++) {
        char *end;
        v[i] = strtoll(p, &end, 10);
        if (end == p) return;
        sum += v[i];
        p = end;
    }
    *t = (cd_host_time){sum, v[3] + v[4], v[7]};
}

/* ---- printing ---- */
static void put_text(cd_buf *b, const char *name, const char *v) {
    if (!v[0]) return;
    cd_buf_putf(b, "%s\"%s\":", b->n && b->p[b->n - 1] == '{' ? "" : ",", name);
    cd_buf_put_json_str(b, v, strlen(v));
}

static void put_real(cd_buf *b, const char *name, double v) {
    if (v < 0) return;
    cd_buf_putf(b, "%s\"%s\":", b->n && b->p[b->n - 1] == '{' ? "" : ",", name);
    cd_buf_put_json_real(b, v);
}

/* Unknown members are left out, so that a reader need not know which value means unknown. */
void cd_host_info_json(cd_buf *b, const cd_host_info *h) {
    cd_buf_puts(b, "{");
    put_text(b, "cpu", h->cpu);
    put_text(b, "kernel", h->kernel);
    put_text(b, "governor", h->governor);
    put_real(b, "cpus", h->n_cpu);
    put_real(b, "cpus_allowed", h->n_allowed);
    put_real(b, "l1d_bytes", (double)h->l1d_bytes);
    put_real(b, "l2_bytes", (double)h->l2_bytes);
    put_real(b, "l3_bytes", (double)h->l3_bytes);
    put_real(b, "mhz", h->mhz);
    put_real(b, "max_mhz", h->max_mhz);
    put_real(b, "turbo", h->turbo);
    put_real(b, "load", h->load);
    if (h->cgroup_cpus > 0) put_real(b, "cgroup_cpus", h->cgroup_cpus);
    put_real(b, "memory_bytes", (double)h->memory_bytes);
    cd_buf_putf(b, ",\"virtual\":%s}", h->virtual_machine ? "true" : "false");
}

static void warn(cd_buf *b, const char *text) { cd_buf_putf(b, "%s%s", b->n ? "; " : "", text); }

/* What a user can change comes first: governor, turbo, load, limits; then what he cannot. */
void cd_host_info_warnings(cd_buf *b, const cd_host_info *h, int threads) {
    char t[160];
    if (h->governor[0] && strcmp(h->governor, "performance") != 0) {
        snprintf(t, sizeof t, "the frequency governor is %s, not performance", h->governor);
        warn(b, t);
    }
    if (h->turbo == 1) warn(b, "the processor may change its frequency (turbo)");
    if (h->load >= 0 && h->n_allowed > 0 && h->load + threads > h->n_allowed + 0.5) {
        snprintf(t, sizeof t, "a load of %.2g on %d processors", h->load, h->n_allowed);
        warn(b, t);
    }
    if (h->cgroup_cpus > 0 && h->cgroup_cpus < threads) {
        snprintf(t, sizeof t, "the control group may use %.2g processors, %d threads are asked for",
                 h->cgroup_cpus, threads);
        warn(b, t);
    }
    if (h->n_allowed > 0 && threads > h->n_allowed) {
        snprintf(t, sizeof t, "%d threads on %d processors", threads, h->n_allowed);
        warn(b, t);
    }
    if (h->virtual_machine) warn(b, "a virtual machine: its neighbours cannot be seen");
}
