/* What others leave of this machine's processors before a run. Shares for devices that are alike
 * are wrong where others use one of them. */
#include <string.h>

#include "predictor/partition/plan/partition_internal.h"

static bool on_processor(const cd_machine_device *d) {
    return d->core >= 0 && (!strcmp(d->kind, "cpu") || !strcmp(d->kind, "native"));
}

/* A processor that two devices have is there once: two looks at it would disturb each other. */
unsigned cd_partition_cores(const cd_partition *p, int core[CD_MACHINE_DEVICES]) {
    unsigned n = 0;
    for (uint32_t d = 0; d < p->machine.n; d++) {
        const cd_machine_device *v = &p->machine.device[d];
        unsigned k = 0;
        while (k < n && core[k] != v->core) k++;
        if (on_processor(v) && k == n) core[n++] = v->core;
    }
    return n;
}

unsigned cd_partition_counted(const cd_partition *p, int core[CD_MACHINE_DEVICES]) {
    for (uint32_t d = 0; d < p->machine.n; d++)
        if (!on_processor(&p->machine.device[d])) return 0;
    return cd_partition_cores(p, core);
}

/* Programs take longer by the share that is left. What waiting takes is left as it is: a thread
 * that slept has its turn soon. */
void cd_partition_count_left(cd_partition *p) {
    const bool counts = !p->o->plan && !p->o->ignore_load;
    for (uint32_t d = 0; d < p->machine.n; d++) {
        cd_machine_device *v = &p->machine.device[d];
        p->source[d].left = p->left[d];
        if (!(p->left[d] < CD_HOST_LOAD_IDLE) || !(p->left[d] > 0)) continue;
        if (counts) v->scale /= p->left[d];
        cd_log_put(p->o->log, CD_LOG_WARNING,
                   "others use the processor of %s: %.0f %% of it is left%s", v->name,
                   100 * p->left[d], counts ? ", and the plan counts with that" : "");
    }
}

void cd_partition_look(cd_partition *p) {
    int core[CD_MACHINE_DEVICES];
    double share[CD_MACHINE_DEVICES];
    if (!p->o->run) return;
    const unsigned n = cd_partition_cores(p, core);
    (void)cd_host_load_probe(core, n, CD_HOST_LOAD_LOOK_S, share);
    for (uint32_t d = 0; d < p->machine.n; d++) {
        const cd_machine_device *v = &p->machine.device[d];
        p->left[d] = 1;
        for (unsigned k = 0; k < n && on_processor(v); k++)
            if (core[k] == v->core) p->left[d] = share[k];
    }
    cd_partition_count_left(p);
}
