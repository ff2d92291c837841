/* options.run: the network run on this machine with the schedules of the estimate, to compare
 * both. */
#include <math.h>
#include <string.h>

#include "predictor/network_estimate/network_estimate_internal.h"
#include "profiler/host/host.h"

/* Unique names of networks: results are reported by name. The first network keeps its name, the
 * next one gets "#2" behind it. Networks that could not be read come last, so that they do not
 * change the names of the others. */

/* Adds the first of "#2", "#3", ... that makes a name nobody has. */
static cdmpp_status rename_it(cd_network_estimate *e, cd_dict *names, cd_network_estimate_source *s,
                              cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = CDMPP_OK;
    uint32_t id;
    for (unsigned k = 2; !st; k++) {
        const size_t before = names->n;
        cd_buf_clear(&b);
        cd_buf_putf(&b, "%s#%u", s->name, k);
        if (b.oom) st = CD_FAIL(err, ENOMEM, "a name");
        else st = cd_dict_add(names, (cd_str){b.p, b.n}, &id, err);
        if (!st && names->n > before) break;
    }
    const char *name = st ? NULL : cd_str_dup(&e->arena, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    if (st) return st;
    if (!name) return CD_FAIL(err, ENOMEM, "a name");
    cd_log_put(e->o->log, CD_LOG_WARNING, "%s: another network is called %s; this one is called %s",
               s->given, s->name, name);
    s->name = name;
    return CDMPP_OK;
}

/* A network that is loaded again for another device or batch is the same network. `called`: name
 * that `before` had on its own. */
static bool is_same(const cd_network_estimate_source *s, const cd_network_estimate_source *before,
                    const char *called) {
    return before && s->target && before->target && !strcmp(s->given, before->given) &&
           !strcmp(s->name, called);
}

/* One pass: networks that are wrong, or all others. Loads of one network are neighbours in the
 * list, so one step back is enough. */
static cdmpp_status name_all(cd_network_estimate *e, cd_dict *names, bool wrong, cdmpp_err *err) {
    const cd_network_estimate_source *before = NULL;
    const char *called = NULL; /* the one before, by itself */
    for (size_t k = 0; k < e->n_source; k++) {
        cd_network_estimate_source *s = e->source[k];
        const char *own = s->name;
        const size_t n = names->n;
        uint32_t id;
        if ((s->st != CDMPP_OK) != wrong) continue;
        if (is_same(s, before, called)) s->name = before->name;
        else {
            CD_TRY(cd_dict_add(names, (cd_str){s->name, strlen(s->name)}, &id, err));
            if (names->n == n) CD_TRY(rename_it(e, names, s, err));
        }
        before = s;
        called = own;
    }
    return CDMPP_OK;
}

cdmpp_status cd_network_estimate_unique_names(cd_network_estimate *e, cdmpp_err *err) {
    cd_dict names = {0};
    cdmpp_status st = name_all(e, &names, false, err);
    if (!st) st = name_all(e, &names, true, err);
    cd_dict_free(&names);
    return st;
}

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
