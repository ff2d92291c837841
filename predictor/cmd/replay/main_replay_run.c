/* --run of cdmpp-replay: the network run on this machine with the schedules of the estimate. */
#include <math.h>
#include <string.h>

#include "predictor/cmd/replay/main_replay.h"
#include "profiler/host/host.h"

cdmpp_status cd_main_replay_run_open(cd_main_replay_plan *p, cdmpp_err *err) {
    const cd_measure_options m = {.jobs = p->o->jobs, .pin = true, .stop = p->o->stop};
    return p->o->run ? cd_measure_open(&m, &p->measure, err) : CDMPP_OK;
}

void cd_main_replay_run(cd_main_replay_plan *p, cd_main_replay_case *c) {
    const cd_main_replay_device *d = c->device;
    const cd_network_run_options a = {.measure = p->measure, .book = d->book, .target = d->target, .hardware = &d->hardware, .seed = (uint64_t)p->o->seed,
                               .workers = c->lane[0].workers, .pin = true, .cpu_time = p->o->cpu_time, .alone = p->o->ops, .stop = p->o->stop};
    cdmpp_err why = {0};
    if (!c->source->live) return;
    if (d->gpu && strncmp(d->target ? d->target : "", "opencl", 6)) {
        cd_log_put(p->o->log, CD_LOG_WARNING, "%s: programs for %s are not run here", c->source->name, d->name);
        return;
    }
    if ((int)a.workers > cd_affinity_count())
        cd_log_put(p->o->log, CD_LOG_WARNING, "%s: %u workers share %d processors: they wait for each other, and the run says little", c->source->name, a.workers, cd_affinity_count());
    if (cd_network_run_measure(c->source->live, &a, &c->ran, &why)) {
        cd_log_err(p->o->log, CD_LOG_WARNING, &why);
        return;
    }
    c->run_s = c->ran->pass_s;
    if (c->ran->n_left) cd_log_put(p->o->log, CD_LOG_WARNING, "%s: %u operators have no program and were not run", c->source->name, c->ran->n_left);
    if (c->ran->n_drawn) cd_log_put(p->o->log, CD_LOG_WARNING, "%s: %u operators ran with drawn schedules", c->source->name, c->ran->n_drawn);
}
