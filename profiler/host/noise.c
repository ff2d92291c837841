/* How noisy a measurement was, and whether that is too much to be written down. */
#include "profiler/host/noise.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/core/core.h"
#include "profiler/host/host.h"
#include "profiler/host/host_load.h"

/* Measures how fast the processor is right now. The loop uses all arithmetic units of a core at
 * once, so that it also notices a neighbour on the same core, which a virtual machine hides. */

enum { ROUNDS = 40000, CHAINS = 12, CALIBRATE = 60, ASK = 5 }; /* a loop: about 0.1 ms */
typedef double pair __attribute__((vector_size(16)));

/* More independent sums than the units can begin at once, so that another hardware thread of the
 * core, which we cannot see in a virtual machine, takes a part of them. (A loop in which every
 * operation waits for the one before runs as fast beside such a neighbour, while programs take 1.3
 * times as long.) */
double cd_noise_probe_loop(void) {
    const double begin = cd_clock_wall();
    pair x[CHAINS];
    for (int k = 0; k < CHAINS; k++) x[k] = (pair){1 + k, 2 + k};
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < CHAINS; k++) {
            x[k] = x[k] * (pair){0.75, 0.75} + (pair){0.5, 0.5}; /* stays near 2 */
            __asm__ volatile("" : "+x"(x[k]));
        }
    return cd_clock_wall() - begin;
}

void cd_noise_probe_calibrate(cd_noise_probe *q) {
    for (int i = 0; i < CALIBRATE; i++) {
        const double t = cd_noise_probe_loop();
        if (q->best_s <= 0 || t < q->best_s) q->best_s = t;
    }
}

double cd_noise_probe_ratio(cd_noise_probe *q) {
    double v[ASK];
    if (q->best_s <= 0) cd_noise_probe_calibrate(q);
    for (int i = 0; i < ASK; i++) {
        const double t = cd_noise_probe_loop();
        if (t < q->best_s) q->best_s = t;
        int k = i;
        for (; k > 0 && v[k - 1] > t; k--) v[k] = v[k - 1];
        v[k] = t;
    }
    return v[ASK / 2] / q->best_s;
}

void cd_noise_probe_begin(cd_noise_probe_mark *m) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    m->switches = u.ru_nivcsw;
    m->cpu_s = cd_clock_process();
    m->wall_s = cd_clock_wall();
}

bool cd_noise_probe_lost(const cd_noise_probe_mark *m, int threads, double share) {
    cd_noise_probe_mark now;
    cd_noise_probe_begin(&now);
    if (threads > 1) return now.switches > m->switches;
    const double wall = now.wall_s - m->wall_s, cpu = now.cpu_s - m->cpu_s;
    return wall - cpu > share * wall + 5e-6; /* reading the clocks itself takes microseconds */
}

/* Processor time of processes with what they waited for: of a measurement that runs in processes of
 * its own, none of it is in CLOCK_PROCESS_CPUTIME_ID. */

/* /proc/PID/stat: the name is in brackets and may hold any character. utime, stime, cutime and
 * cstime are the 14th to 17th fields; the state behind the name is the 3rd. */
double cd_process_time_of(pid_t pid) {
    char path[64], text[1024];
    double tick[4] = {0};
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) (void)fclose(f);
    text[n] = 0;
    const char *at = strrchr(text, ')');
    if (!at || sscanf(at + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lf %lf %lf %lf",
                      &tick[0], &tick[1], &tick[2], &tick[3]) != 4)
        return 0;
    return (tick[0] + tick[1] + tick[2] + tick[3]) / (double)sysconf(_SC_CLK_TCK);
}

static double seconds_of(const struct timeval *t) {
    return (double)t->tv_sec + 1e-6 * (double)t->tv_usec;
}

double cd_process_time_own(void) {
    static const int who[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    double sum = 0;
    for (int k = 0; k < 2; k++) {
        struct rusage u;
        if (!getrusage(who[k], &u)) sum += seconds_of(&u.ru_utime) + seconds_of(&u.ru_stime);
    }
    return sum;
}

/* What others leave of processors. Both ways are needed: the probe answers in tenths of a second,
 * but only while nothing else of us runs; the system's counts hold while we run, but only over
 * seconds, because a tick is 10 ms. */

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

void cd_noise_begin(cd_noise *n) {
    *n = (cd_noise){.others = (double)NAN};
    cd_host_load_begin(&n->mark, NULL, 0);
}

void cd_noise_spread(cd_noise *n, const char *figure, double spread) {
    if (!(spread > n->spread)) return;
    n->spread = spread;
    snprintf(n->worst, sizeof n->worst, "%s", figure);
}

void cd_noise_repeats(cd_noise *n, const char *figure, double *seconds, size_t n_s) {
    if (!n || n_s < 2) return;
    cd_sort_doubles(seconds, n_s);
    const double low = seconds[n_s / 4];
    if (low > 0) cd_noise_spread(n, figure, seconds[n_s / 2] / low - 1);
}

/* "SPREAD,OTHERS" */
static bool made(cd_noise *n) {
    const char *text = getenv("CDMPP_TEST_NOISE");
    char *end = NULL;
    if (!text || !text[0]) return false;
    n->spread = strtod(text, &end);
    n->others = *end == ',' ? strtod(end + 1, NULL) : (double)NAN;
    if (!n->worst[0]) snprintf(n->worst, sizeof n->worst, "made");
    return true;
}

void cd_noise_end(cd_noise *n) {
    if (!made(n)) n->others = cd_host_load_since(&n->mark);
}

void cd_noise_join(cd_noise *n, const cd_noise *other) {
    cd_noise_spread(n, other->worst, other->spread);
    if (!(n->others >= other->others)) n->others = isnan(other->others) ? n->others : other->others;
}

bool cd_noise_is_much(const cd_noise *n) {
    return n->spread > CD_NOISE_SPREAD || n->others > CD_NOISE_OTHERS;
}

void cd_noise_put(cd_buf *b, const cd_noise *n) {
    if (n->worst[0])
        cd_buf_putf(b, "repeats lie %.0f %% apart at most (%s), ", 100 * n->spread, n->worst);
    if (isnan(n->others)) cd_buf_puts(b, "what others used of the processors is not known");
    else cd_buf_putf(b, "others used %.0f %% of the processors' time", 100 * n->others);
}

cdmpp_status cd_noise_check(const cd_noise *n, bool keep, const char *what, const char *how,
                            cdmpp_err *err) {
    cd_buf b = {0};
    if (keep || !cd_noise_is_much(n)) return CDMPP_OK;
    cd_noise_put(&b, n);
    const cdmpp_status st = CD_FAIL(
        err, ERANGE,
        "%s: the machine is too noisy: %.160s (at most %.0f and %.0f %%): stop other work, or %s",
        what, b.p ? b.p : "", 100 * CD_NOISE_SPREAD, 100 * CD_NOISE_OTHERS, how);
    cd_buf_free(&b);
    return st;
}

/* Whether a processor is quiet enough to measure on: the same short program runs there many times
 * over, on each processor that measured programs use. */

enum { LOOPS = 20, RUNS = 4096 };
static const double made_s = 1e-3; /* the fastest run of made figures */

typedef struct runner {
    int core;
    double seconds;
    double *run_s; /* (RUNS) */
    size_t n;
    bool begun;
    pthread_t thread;
} runner;

static void *run_many(void *arg) {
    runner *r = arg;
    if (r->core >= 0) (void)cd_affinity_at(r->core);
    const double begin = cd_clock_wall();
    double now = begin;
    while (r->n < RUNS && now - begin < r->seconds) {
        for (int k = 0; k < LOOPS; k++) (void)cd_noise_probe_loop();
        const double next = cd_clock_wall();
        r->run_s[r->n++] = next - now;
        now = next;
    }
    return NULL;
}

/* The slowest twentieth is left out: a measured program, too, drops the few of its runs that were
 * disturbed. */
void cd_noise_program_of(double *run_s, size_t n, cd_noise_program *out) {
    const size_t kept = n - n / 20;
    double sum = 0;
    *out = (cd_noise_program){0};
    if (n < 2) return;
    cd_sort_doubles(run_s, n);
    for (size_t i = 0; i < kept; i++) sum += run_s[i];
    out->low_s = run_s[n / 10];
    out->high_s = run_s[n - 1 - n / 10];
    out->noise = fmax(0, log(sum / (double)kept / out->low_s));
}

static bool made_program(cd_noise_program *out) {
    cd_noise n = {.spread = -1};
    cd_noise_end(&n);
    if (n.spread < 0) return false;
    *out = (cd_noise_program){made_s, made_s * (1 + n.spread), log1p(n.spread)};
    return true;
}

void cd_noise_program_run(int n, double seconds, cd_noise_program *out) {
    int core[CD_HOST_LOAD_CORES];
    runner r[CD_HOST_LOAD_CORES] = {{0}};
    *out = (cd_noise_program){0};
    if (made_program(out)) return;
    const unsigned most = n < 1                    ? 1
                          : n > CD_HOST_LOAD_CORES ? CD_HOST_LOAD_CORES
                                                   : (unsigned)n,
                   n_core = cd_affinity_last_cores(most, core);
    for (unsigned k = 0; k < n_core; k++) {
        r[k] = (runner){
            .core = core[k], .seconds = seconds, .run_s = cd_mem_zalloc(RUNS, sizeof(double))};
        r[k].begun = r[k].run_s && !pthread_create(&r[k].thread, NULL, run_many, &r[k]);
    }
    for (unsigned k = 0; k < n_core; k++) {
        cd_noise_program one = {0};
        if (r[k].begun) (void)pthread_join(r[k].thread, NULL);
        if (r[k].begun) cd_noise_program_of(r[k].run_s, r[k].n, &one);
        if (!k || one.noise > out->noise) *out = one;
        cd_mem_free(r[k].run_s);
    }
}

cdmpp_status cd_noise_program_check(const cd_noise_program *p, double most, bool keep,
                                    cdmpp_err *err) {
    if (keep || !(p->noise > most)) return CDMPP_OK;
    return CD_FAIL(
        err, ERANGE,
        "this machine is too busy: the same program took between %.3g and %.3g ms. Wait until "
        "other work has ended and run the same command again, or --force --out FILE: intervals "
        "become wider",
        1e3 * p->low_s, 1e3 * p->high_s);
}
