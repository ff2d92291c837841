/* What others leave of processors. Both ways are needed: the probe answers in tenths of a second,
 * but only while nothing else of us runs; the system's counts hold while we run, but only over
 * seconds, because a tick is 10 ms. */
#include "profiler/host/host_load.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/core/core.h"
#include "profiler/host/host.h"

enum { STAT_MAX = 1 << 18, COUNTS = 8 };
static const double TAKEN_S = 1e-4; /* reading the clock takes less by far; a time slice more */

/* ---- now ---- */

typedef struct {
    int core;
    double seconds, off_s, wall_s;
    bool asked, begun;
    pthread_t thread;
} prober;

static void *probe(void *arg) {
    prober *p = arg;
    if (p->core >= 0 && !cd_affinity_at(p->core)) return NULL;
    const double begin = cd_clock_wall();
    double now = begin;
    while (now - begin < p->seconds) {
        const double next = cd_clock_wall();
        p->off_s += next - now > TAKEN_S ? next - now : 0;
        now = next;
    }
    p->wall_s = now - begin;
    p->asked = true;
    return NULL;
}

unsigned cd_host_load_probe(const int *core, unsigned n, double seconds, double *share) {
    prober p[CD_HOST_LOAD_CORES] = {0};
    unsigned silent = 0;
    for (unsigned k = 0; k < n && k < CD_HOST_LOAD_CORES; k++) {
        p[k].core = core[k];
        p[k].seconds = seconds;
        p[k].begun = !pthread_create(&p[k].thread, NULL, probe, &p[k]);
    }
    for (unsigned k = 0; k < n; k++) {
        share[k] = 1;
        if (k < CD_HOST_LOAD_CORES && p[k].begun) (void)pthread_join(p[k].thread, NULL);
        if (k < CD_HOST_LOAD_CORES && p[k].asked) share[k] = 1 - p[k].off_s / p[k].wall_s;
        else silent++;
    }
    return silent;
}

double cd_host_load_left(int n) {
    int core[CD_HOST_LOAD_CORES];
    double share[CD_HOST_LOAD_CORES], least = 1;
    const unsigned k = cd_affinity_last_cores(n < 1                    ? 1
                                              : n > CD_HOST_LOAD_CORES ? CD_HOST_LOAD_CORES
                                                                       : (unsigned)n,
                                              core);
    (void)cd_host_load_probe(core, k, CD_HOST_LOAD_LOOK_S, share);
    for (unsigned i = 0; i < k; i++) least = share[i] < least ? share[i] : least;
    return least;
}

/* ---- over a time ---- */

/* user nice system idle iowait irq softirq steal: all but idle and iowait are busy. guest is in
 * user. */
static bool busy_of(const char *line, double *ticks) {
    double v[COUNTS];
    const int n = sscanf(line, "%lf %lf %lf %lf %lf %lf %lf %lf", &v[0], &v[1], &v[2], &v[3], &v[4],
                         &v[5], &v[6], &v[7]);
    if (n < COUNTS) return false;
    *ticks += v[0] + v[1] + v[2] + v[5] + v[6] + v[7];
    return true;
}

static bool wanted(int cpu, const int *core, unsigned n) {
    bool is = !n;
    for (unsigned k = 0; k < n; k++) is = is || core[k] == cpu;
    return is;
}

double cd_host_load_busy(const char *stat, const int *core, unsigned n, double hz) {
    double ticks = 0;
    unsigned found = 0, different = 0;
    for (const char *line = stat; line && *line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        int cpu = -1, end = 0;
        /* "cpu  ..." is their sum */
        if (strncmp(line, "cpu", 3) != 0 || line[3] < '0' || line[3] > '9') continue;
        if (sscanf(line, "cpu%d%n", &cpu, &end) != 1 || !wanted(cpu, core, n)) continue;
        if (!busy_of(line + end, &ticks)) return (double)NAN;
        found++;
    }
    for (unsigned k = 0; k < n; k++) different += !wanted(core[k], core, k) || !k;
    return found && found >= different ? ticks / hz / found : (double)NAN;
}

static double read_busy(const cd_host_load_mark *m) {
    FILE *f = fopen("/proc/stat", "r");
    char *text = f ? cd_mem_alloc(STAT_MAX) : NULL;
    const size_t n = text ? fread(text, 1, STAT_MAX - 1, f) : 0;
    if (f) (void)fclose(f);
    if (text) text[n] = 0;
    const double busy =
        text ? cd_host_load_busy(text, m->core, m->n, (double)sysconf(_SC_CLK_TCK)) : (double)NAN;
    cd_mem_free(text);
    return busy;
}

void cd_host_load_begin(cd_host_load_mark *m, const int *core, unsigned n) {
    *m = (cd_host_load_mark){.n = n <= CD_HOST_LOAD_CORES ? n : 0};
    for (unsigned k = 0; k < m->n; k++) m->core[k] = core[k];
    m->own_s = cd_process_time_own();
    m->busy_s = read_busy(m);
    m->wall_s = cd_clock_wall();
}

double cd_host_load_since(const cd_host_load_mark *m) {
    cd_host_load_mark now;
    cd_host_load_begin(&now, m->core, m->n);
    unsigned n = m->n ? 0 : (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    for (unsigned k = 0; k < m->n; k++) n += !k || !wanted(m->core[k], m->core, k);
    const double wall = now.wall_s - m->wall_s,
                 others = now.busy_s - m->busy_s - (now.own_s - m->own_s) / n;
    return wall > 0 && others == others ? fmin(1, fmax(0, others / wall)) : (double)NAN;
}
