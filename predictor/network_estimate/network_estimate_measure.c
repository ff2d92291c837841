/* options.run: the network run on this machine with the schedules of the estimate, to compare
 * both. */
#include <math.h>
#include <string.h>

#include "predictor/network_estimate/network_estimate_internal.h"
#include "profiler/host/host.h"

cdmpp_status cd_network_estimate_measure_open(cd_network_estimate *e, cdmpp_err *err) {
    const cd_measure_options m = {.jobs = e->o->jobs, .pin = true, .stop = e->o->stop};
    return e->o->run ? cd_measure_open(&m, &e->measure, err) : CDMPP_OK;
}

/* A network that is not run, in whole or in part, is counted: its estimate stands, and the
 * command's exit status says so. Only a loaded network has something to run: a graph of a file has
 * no operators, only tasks. */
void cd_network_estimate_measure(cd_network_estimate *e, cd_network_estimate_case *c) {
    const cd_network_estimate_device *d = c->device;
    const cd_network_run_options a = {.measure = e->measure,
                                      .schedules = d->schedules,
                                      .target = d->runs,
                                      .hardware = &d->hardware,
                                      .seed = (uint64_t)e->o->seed,
                                      .workers = c->lane[0].workers,
                                      .pin = true,
                                      .cpu_time = e->o->cpu_time,
                                      .alone = e->o->run_ops,
                                      .stop = e->o->stop};
    cdmpp_err why = {0};
    if (!c->source->loaded) {
        cd_log_put(e->o->log, CD_LOG_WARNING, "%s: a graph of a file is not run", c->source->name);
        e->n_not_run++;
        return;
    }
    if (d->gpu && strncmp(d->target ? d->target : "", "opencl", 6)) {
        cd_log_put(e->o->log, CD_LOG_WARNING, "%s: programs for %s are not run here",
                   c->source->name, d->name);
        e->n_not_run++;
        return;
    }
    if ((int)a.workers > cd_affinity_count())
        cd_log_put(
            e->o->log, CD_LOG_WARNING,
            "%s: %u workers share %d processors: they wait for each other, and the run says little",
            c->source->name, a.workers, cd_affinity_count());
    c->run_left = cd_host_load_left(cd_network_run_processors(&a));
    if (c->run_left < CD_HOST_LOAD_IDLE)
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   "%s: others use the processors of the run: %.0f %% of one is left, so that the "
                   "run takes longer%s",
                   c->source->name, 100 * c->run_left,
                   e->o->cpu_time ? "" : " (--cpu-time counts without them)");
    if (cd_network_run_measure(c->source->loaded, &a, &c->ran, &why)) {
        cd_log_err(e->o->log, CD_LOG_WARNING, &why);
        e->n_not_run++;
        return;
    }
    c->run_s = c->ran->pass_s;
    if (c->ran->n_left && !e->o->allow_missing) e->n_not_run++;
    if (c->ran->n_left)
        cd_log_put(e->o->log, CD_LOG_WARNING, "%s: %u operators have no program and were not run",
                   c->source->name, c->ran->n_left);
    if (c->ran->n_sampled)
        cd_log_put(e->o->log, CD_LOG_WARNING, "%s: %u operators ran with drawn schedules",
                   c->source->name, c->ran->n_sampled);
}
