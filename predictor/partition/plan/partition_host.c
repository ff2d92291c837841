/* What others leave of this machine's processors before a run. Shares for devices that are alike are wrong where others use one of them. */
#include <string.h>

#include "predictor/partition/plan/partition_internal.h"

static bool on_processor(const cd_machine_device *d) { return d->core >= 0 && (!strcmp(d->kind, "cpu") || !strcmp(d->kind, "native")); }

unsigned cd_partition_cores(const cd_partition *p, int core[CD_MACHINE_DEVICES]) {
    unsigned n = 0;
    for (uint32_t d = 0; d < p->machine.n; d++)
        if (on_processor(&p->machine.device[d])) core[n++] = p->machine.device[d].core;
    return n;
}

/* Programs take longer by the share that is left. What waiting takes is left as it is: a thread that slept has its turn soon. */
void cd_partition_look(cd_partition *p) {
    int core[CD_MACHINE_DEVICES];
    double share[CD_MACHINE_DEVICES];
    const bool counts = !p->o->plan && !p->o->ignore_load;
    const unsigned n_all = cd_partition_cores(p, core);
    unsigned of[CD_MACHINE_DEVICES], n_core = 0, n = 0;
    if (!p->o->run) return;
    for (unsigned i = 0, j; i < n_all; i++) { /* one look at a core that two devices have: two would disturb each other */
        for (j = 0; j < n_core && core[j] != core[i]; j++) continue;
        if (j == n_core) core[n_core++] = core[i];
        of[i] = j;
    }
    (void)cd_host_load_probe(core, n_core, CD_HOST_LOAD_LOOK_S, share);
    for (uint32_t d = 0; d < p->machine.n; d++) {
        cd_machine_device *v = &p->machine.device[d];
        p->left[d] = on_processor(v) ? share[of[n++]] : 1;
        if (!(p->left[d] < CD_HOST_LOAD_IDLE) || !(p->left[d] > 0)) continue;
        if (counts) v->scale /= p->left[d];
        cd_log_put(p->o->log, CD_LOG_WARNING, "others use the processor of %s: %.0f %% of it is left%s", v->name, 100 * p->left[d], counts ? ", and the plan counts with that" : "");
    }
}
