/* What the packages of this machine have taken, by their own counters: RAPL, as Linux shows it
 * (powercap). Most systems let root alone read them. */
#include <math.h>
#include <stdio.h>

#include "profiler/host/host.h"

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
