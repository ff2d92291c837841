/* Which processors a thread may use, by the system's masks. Programs that are timed get the last
 * processors, because the system's own work and interrupts gather on the first ones. */
#include "profiler/host/host.h"

#include <sched.h>
#include <string.h>

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
