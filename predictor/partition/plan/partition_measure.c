/* The plan and its baselines measured on this machine: in turns, so that a change of the machine's speed meets all of them; values compared with the unsplit network's; devices
 * slowed or broken on purpose, to show that the plan is made again and the result stays right. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/partition/plan/partition_internal.h"
#include "profiler/machine/machine.h"

enum { MAX_SLOW = 1000000 };

/* ---- --inject ---- */
/* "slow:ocl0=3": the device and its factor; "break:ocl0": factor 0. */
static cdmpp_status injected(const char *text, char *name, size_t n, unsigned *times, cdmpp_err *err) {
    const char *at = strchr(text, ':'), *eq = strchr(text, '=');
    const bool slow = !strncmp(text, "slow:", 5), broken = !strncmp(text, "break:", 6);
    char *end = NULL;
    *times = 0;
    if ((!slow && !broken) || (slow && !eq) || (broken && eq)) return CD_FAIL(err, EUSAGE, "--inject: expected slow:DEVICE=N or break:DEVICE, found '%.60s'", text);
    const long v = slow ? strtol(eq + 1, &end, 10) : 0;
    if (slow && (end == eq + 1 || *end || v < 1 || v > MAX_SLOW)) return CD_FAIL(err, EUSAGE, "--inject: expected a number in 1..%d, found '%.40s'", MAX_SLOW, eq + 1);
    const size_t len = slow ? (size_t)(eq - at - 1) : strlen(at + 1);
    if (!len || len >= n) return CD_FAIL(err, EUSAGE, "--inject: expected the name of a device in '%.60s'", text);
    memcpy(name, at + 1, len);
    name[len] = 0;
    *times = (unsigned)v;
    return CDMPP_OK;
}

cdmpp_status cd_partition_check_inject(const cd_texts *inject, cdmpp_err *err) {
    char name[64];
    unsigned times;
    for (size_t k = 0; k < inject->n; k++) CD_TRY(injected(inject->v[k], name, sizeof name, &times, err));
    return CDMPP_OK;
}

static cdmpp_status inject(cd_partition *p, cd_plan_run *r, cdmpp_err *err) {
    char name[64];
    unsigned times;
    for (size_t k = 0; k < p->o->inject.n; k++) {
        CD_TRY(injected(p->o->inject.v[k], name, sizeof name, &times, err));
        const uint32_t d = cd_machine_find(&p->machine, name);
        if (d == UINT32_MAX) return CD_FAIL(err, EUSAGE, "--inject: no device '%.60s'", name);
        if (times) cd_plan_run_slow(r, d, times);
        else cd_plan_run_break(r, d, 0);
    }
    return CDMPP_OK;
}

/* ---- runs ---- */
cdmpp_status cd_partition_measure_open(cd_partition *p, cdmpp_err *err) {
    const cd_measure_options m = {.jobs = p->o->jobs, .pin = true, .stop = p->o->stop};
    if (!p->o->run) return CDMPP_OK;
    cd_machine_measure_pin();
    return cd_measure_open(&m, &p->measure, err);
}

static cdmpp_status open_one(cd_partition *p, const cd_shard_plan *plan, bool check, cd_plan_run **out, cdmpp_err *err) {
    const cd_plan_run_options a = {.loaded = &p->loaded, .net = &p->net, .machine = &p->machine, .plan = plan, .cost = p->cost, .measure = p->measure, .check = check, .stop = p->o->stop};
    return cd_plan_run_open(&a, out, err);
}

/* The plan first, then the baselines that are measured: devices alone, or all with options.compare. One that cannot be built is a warning and left out. of[k]: its number. */
static cdmpp_status open_all(cd_partition *p, cd_plan_run **r, uint32_t *of, uint32_t *n, cdmpp_err *err) {
    cdmpp_err why = {0};
    CD_TRY(open_one(p, p->plan, true, &r[0], err));
    *n = 1;
    for (uint32_t k = 0; k < p->n_base; k++) {
        if (!isfinite(p->plan->base[k].predicted_s) || (!p->o->compare && !cd_partition_is_alone(p, &p->plan->base[k]))) continue;
        if (cd_partition_stopped(p)) return CD_FAIL(err, EINTERRUPTED, "while baselines were built");
        if (open_one(p, p->base[k], false, &r[*n], &why)) {
            cd_log_err(p->o->log, CD_LOG_WARNING, &why);
            p->run.left_out++;
            p->n_not_run++;
            continue;
        }
        of[(*n)++] = k;
    }
    return CDMPP_OK;
}

/* Plans in turns. A plan in which a device failed has no time (NaN). */
static cdmpp_status compare(cd_partition *p, cd_plan_run *const *r, const uint32_t *of, uint32_t n, double budget, cdmpp_err *err) {
    double *seconds = CD_NEWN(&p->arena, double, n);
    if (!seconds) return CD_FAIL(err, ENOMEM, "%u plans", n);
    CD_TRY(cd_plan_run_compare(r, n, budget, seconds, err));
    for (uint32_t k = 0; k < n; k++)
        if (isnan(seconds[k])) {
            p->n_not_run++;
            cd_log_put(p->o->log, CD_LOG_WARNING, "a device failed while %s was compared: not told%s", k ? p->plan->base[of[k]].name : "the plan",
                       k ? "" : ", and what is told of its run is of another plan");
        }
    p->plan->measured_s = seconds[0];
    for (uint32_t k = 1; k < n; k++) p->plan->base[of[k]].measured_s = seconds[k];
    p->plan->measured_gain = cd_partition_alone_s(p, true) / seconds[0];
    return CDMPP_OK;
}

/* Values are compared before anything is slowed, and again behind it. Where there is nothing to compare with, the time of the passes counts. */
static cdmpp_status measure(cd_partition *p, cd_plan_run **r, uint32_t *of, uint32_t *n, cdmpp_err *err) {
    const double budget = p->o->budget_s / 2; /* 0: the default of the runs */
    CD_TRY(open_all(p, r, of, n, err));
    CD_TRY(cd_plan_run_check(r[0], &p->run.max_error, err));
    if (*n > 1) CD_TRY(compare(p, r, of, *n, budget, err));
    CD_TRY(inject(p, r[0], err));
    p->run.done = true;
    if (!p->o->inject.n) CD_TRY(cd_plan_run_passes(r[0], budget, &p->run.now, err));
    else {
        CD_TRY(cd_plan_run_watch(r[0], &p->how, &(cd_plan_run_watch_options){0}, budget, &p->run.now, err));
        CD_TRY(cd_plan_run_check(r[0], &p->run.max_error, err));
    }
    if (*n < 2) p->plan->measured_s = p->run.now.median_s;
    return CDMPP_OK;
}

cdmpp_status cd_partition_measure(cd_partition *p, cdmpp_err *err) {
    cd_plan_run **r = CD_NEWN(&p->arena, cd_plan_run *, (size_t)p->n_base + 1);
    uint32_t *of = CD_NEWN(&p->arena, uint32_t, (size_t)p->n_base + 1), n = 0;
    p->run.max_error = NAN;
    if (!r || !of) return CD_FAIL(err, ENOMEM, "%u plans", p->n_base);
    const cdmpp_status st = measure(p, r, of, &n, err);
    for (uint32_t k = 0; k <= p->n_base; k++) cd_plan_run_close(r[k]);
    return st;
}
