/* The plan and its baselines measured on this machine: in turns, so that a change of the machine's
 * speed meets all of them; values compared with the unsplit network's; devices slowed or broken on
 * purpose, to show that the plan is made again and the result stays right. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/partition/plan/partition_internal.h"
#include "profiler/machine/machine.h"

enum { MAX_SLOW = 1000000 };
#define NONE UINT32_MAX

/* ---- --inject ---- */
/* "slow:ocl0=3": the device and its factor; "break:ocl0": factor 0. */
static cdmpp_status injected(const char *text, char *name, size_t n, unsigned *times,
                             cdmpp_err *err) {
    const char *at = strchr(text, ':'), *eq = strchr(text, '=');
    const bool slow = !strncmp(text, "slow:", 5), broken = !strncmp(text, "break:", 6);
    char *end = NULL;
    *times = 0;
    if ((!slow && !broken) || (slow && !eq) || (broken && eq))
        return CD_FAIL(err, EUSAGE,
                       "--inject: expected slow:DEVICE=N or break:DEVICE, found '%.60s'", text);
    const long v = slow ? strtol(eq + 1, &end, 10) : 0;
    if (slow && (end == eq + 1 || *end || v < 1 || v > MAX_SLOW))
        return CD_FAIL(err, EUSAGE, "--inject: expected a number in 1..%d, found '%.40s'", MAX_SLOW,
                       eq + 1);
    const size_t len = slow ? (size_t)(eq - at - 1) : strlen(at + 1);
    if (!len || len >= n)
        return CD_FAIL(err, EUSAGE, "--inject: expected the name of a device in '%.60s'", text);
    memcpy(name, at + 1, len);
    name[len] = 0;
    *times = (unsigned)v;
    return CDMPP_OK;
}

cdmpp_status cd_partition_check_inject(const cd_texts *inject, cdmpp_err *err) {
    char name[64];
    unsigned times;
    for (size_t k = 0; k < inject->n; k++)
        CD_TRY(injected(inject->v[k], name, sizeof name, &times, err));
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

typedef struct {
    uint32_t n;
    cd_plan_run **run;          /* (n) the plan first */
    const cd_shard_plan **plan; /* (n) */
    double *seconds;            /* (n) */
    uint32_t *at;               /* (n_base) which run is a baseline's; NONE: it is not run */
    cd_host_load_mark mark;     /* when the first was ready to run */
    bool marked;
} runs;

/* Results that are expected are computed once, for the plan. */
static cdmpp_status open_one(cd_partition *p, runs *r, const cd_shard_plan *plan, cdmpp_err *err) {
    const cd_plan_run_options a = {.loaded = &p->loaded,
                                   .net = &p->net,
                                   .machine = &p->machine,
                                   .plan = plan,
                                   .cost = p->cost,
                                   .measure = p->measure,
                                   .check = !r->n,
                                   .expect = r->run[0],
                                   .stop = p->o->stop};
    CD_TRY(cd_plan_run_open(&a, &r->run[r->n], err));
    r->plan[r->n++] = plan;
    return CDMPP_OK;
}

/* What costs nothing to price is a candidate: each device alone, whole operators placed, equal and
 * greedy shares; the fixed shares are the caller's, with options.compare. */
static bool is_candidate(const cd_partition *p, uint32_t k) {
    return p->base[k] && isfinite(p->plan->base[k].predicted_s) &&
           (p->o->compare || strncmp(p->plan->base[k].name, "fixed ", 6) != 0);
}

/* A baseline that is the plan, or one before it, is not run twice. One that cannot be built is a
 * warning and left out. */
static cdmpp_status open_all(cd_partition *p, runs *r, cdmpp_err *err) {
    cdmpp_err why = {0};
    CD_TRY(open_one(p, r, p->plan, err));
    for (uint32_t k = 0; k < p->n_base; k++) {
        uint32_t i = 0;
        r->at[k] = NONE;
        if (!is_candidate(p, k)) continue;
        while (i < r->n && !cd_shard_plan_same(r->plan[i], p->base[k])) i++;
        if (cd_partition_stopped(p))
            return CD_FAIL(err, EINTERRUPTED, "while baselines were built");
        if (i < r->n || !open_one(p, r, p->base[k], &why)) {
            r->at[k] = i;
            continue;
        }
        cd_log_err(p->o->log, CD_LOG_WARNING, &why);
        p->run.left_out++;
        p->n_not_run++;
    }
    return CDMPP_OK;
}

/* Plans in turns. A plan in which a device failed has no time (NaN). */
static cdmpp_status compare(cd_partition *p, runs *r, double budget, cdmpp_err *err) {
    CD_TRY(cd_plan_run_compare(r->run, r->n, budget, r->seconds, err));
    p->plan->measured_s = r->seconds[0];
    for (uint32_t k = 0; k < p->n_base; k++)
        if (r->at[k] != NONE) p->plan->base[k].measured_s = r->seconds[r->at[k]];
    for (uint32_t i = 0; i < r->n; i++) {
        uint32_t k = 0;
        if (!isnan(r->seconds[i])) continue;
        while (i && r->at[k] != i) k++;
        p->n_not_run++;
        cd_log_put(p->o->log, CD_LOG_WARNING, "a device failed while %s was compared: not told%s",
                   i ? p->plan->base[k].name : "the plan",
                   i ? "" : ", and what is told of its run is of another plan");
    }
    p->plan->measured_gain = cd_partition_alone_s(p, true) / r->seconds[0];
    return CDMPP_OK;
}

/* The kept plan's run becomes the first one. What is injected is about the plan as it was made:
 * then none is kept. */
static cdmpp_status keep_best(cd_partition *p, runs *r, cdmpp_err *err) {
    const uint32_t k = p->o->inject.n ? UINT32_MAX : cd_partition_best_measured(p);
    if (k == UINT32_MAX) return CDMPP_OK;
    cd_plan_run *best = r->run[r->at[k]];
    r->run[r->at[k]] = r->run[0];
    r->run[0] = best;
    CD_TRY(cd_partition_keep(p, k, err));
    return cd_partition_interval(p, p->plan, err);
}

/* The plan is the only candidate: baselines that are that plan were measured with it. */
static void alone(cd_partition *p, const runs *r) {
    p->plan->measured_s = p->run.now.median_s;
    for (uint32_t k = 0; k < p->n_base; k++)
        if (r->at[k] != NONE) p->plan->base[k].measured_s = p->plan->measured_s;
    p->plan->measured_gain = cd_partition_alone_s(p, true) / p->plan->measured_s;
}

/* Values are compared before anything is slowed, and again behind it. What was injected is in no
 * time of the plan. */
static cdmpp_status measure(cd_partition *p, runs *r, cdmpp_err *err) {
    const double budget = p->o->budget_s / 2; /* 0: the default of the runs */
    int core[CD_MACHINE_DEVICES];
    CD_TRY(open_all(p, r, err));
    /* from here on: compiling is no load of others, nor rest */
    cd_host_load_begin(&r->mark, core, cd_partition_counted(p, core));
    r->marked = true;
    CD_TRY(cd_plan_run_check(r->run[0], &p->run.max_error, err));
    if (r->n > 1 || p->o->inject.n) CD_TRY(compare(p, r, budget, err));
    CD_TRY(keep_best(p, r, err));
    if (p->run.kept) CD_TRY(cd_plan_run_check(r->run[0], &p->run.max_error, err));
    CD_TRY(inject(p, r->run[0], err));
    p->run.done = true;
    if (!p->o->inject.n) CD_TRY(cd_plan_run_passes(r->run[0], budget, &p->run.now, err));
    else {
        CD_TRY(cd_plan_run_watch(r->run[0], &p->how, &(cd_plan_run_watch_options){0}, budget,
                                 &p->run.now, err));
        CD_TRY(cd_plan_run_check(r->run[0], &p->run.max_error, err));
    }
    if (r->n < 2 && !p->o->inject.n) alone(p, r);
    return CDMPP_OK;
}

cdmpp_status cd_partition_measure(cd_partition *p, cdmpp_err *err) {
    const size_t most = (size_t)p->n_base + 1;
    runs r = {.run = CD_NEWN(&p->arena, cd_plan_run *, most),
              .plan = CD_NEWN(&p->arena, const cd_shard_plan *, most),
              .seconds = CD_NEWN(&p->arena, double, most),
              .at = CD_NEWN(&p->arena, uint32_t, most)};
    p->run.max_error = NAN;
    if (!r.run || !r.plan || !r.seconds || !r.at)
        return CD_FAIL(err, ENOMEM, "%u plans", p->n_base);
    const cdmpp_status st = measure(p, &r, err);
    if (r.marked) p->run.others = cd_host_load_since(&r.mark);
    for (uint32_t k = 0; k < r.n; k++) cd_plan_run_close(r.run[k]);
    return st ? st : cd_partition_verdict(p, err);
}
