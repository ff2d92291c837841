/* Finds the processors of a type in what Linux says, and keeps this process on them. Big and little
 * cores differ in capacity, which ARM kernels compute; where there is none, in their highest
 * frequency; Intel's hybrid processors list both kinds. */
#include "profiler/host/host.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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
