/* Measures how fast the processor is right now. The loop uses all arithmetic units of a core at
 * once, so that it also notices a neighbour on the same core, which a virtual machine hides. */
#include "profiler/host/host.h"

#include <sys/resource.h>

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
