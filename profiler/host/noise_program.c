/* Whether a processor is quiet enough to measure on: the same short program runs there many times
 * over, on each processor that measured programs use. */
#include "profiler/host/noise.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "base/core/core.h"
#include "profiler/host/host.h"

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

static bool made(cd_noise_program *out) {
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
    if (made(out)) return;
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
