/* What the child of op_profile measures: passes and steps in place, on this processor or an OpenCL
 * device; on this processor also steps alone. Times of an OpenCL device's steps are by its own
 * clock. */
#include <math.h>
#include <string.h>

#include "profiler/runtime/single/single_internal.h"

enum { PLACE_MAX = 101, PLACE_MIN = 5, ALONE_MAX = 25, ALONE_MIN = 5, COLD = 5 };
#define ALONE_S 0.01 /* of a step alone, in each state of the caches */

typedef struct {
    const cd_op_profile_net *m;
    const cd_op_profile_options *o;
    cd_executor *r; /* this processor; NULL: a device */
    cd_op_profile_runner runner;
    cd_cache_flush flush;
    cd_op_profile_report *t;
    cd_op_profile_step *step;
} run;

static cdmpp_status one_pass(void *ctx, unsigned times, double *seconds, cdmpp_err *err) {
    const cd_op_profile_runner *r = ctx;
    double one;
    *seconds = 0;
    for (unsigned i = 0; i < times; i++) {
        CD_TRY(r->pass(r->run, NULL, &one, err));
        *seconds += one;
    }
    return CDMPP_OK;
}

/* ---- passes ---- */

/* As many passes as asked for, in up to 100 groups of equal size. */
static cdmpp_status exact(cd_op_profile_runner *r, unsigned n, cd_timing *t, cdmpp_err *err) {
    enum { GROUPS = 100 };
    t->n = n < GROUPS ? n : GROUPS;
    t->number = n / t->n;
    for (unsigned k = 0; k < t->n; k++) {
        double s;
        CD_TRY(one_pass(r, t->number, &s, err));
        t->sample_s[k] = s / t->number;
    }
    cd_timing_figures(t, NULL);
    return CDMPP_OK;
}

static double budget_of(const run *x) { return x->o->budget_s > 0 ? x->o->budget_s : 2; }

/* Passes back to back: a given number, or as many as the timing policy wants within the budget. */
static cdmpp_status warm_passes(run *x, cdmpp_err *err) {
    const cd_timing_policy policy =
        cd_timing_defaults((cd_timing_policy){.budget_s = budget_of(x), .min_repeat_s = 0.01},
                           cd_timing_clock_check(cd_timing_clock_now, NULL).tick_s);
    const cd_timing_subject s = {.ctx = &x->runner, .now = cd_timing_clock_now, .run = one_pass};
    const double begin = cd_timing_clock_now(NULL);
    CD_TRY(x->o->passes ? exact(&x->runner, x->o->passes, &x->t->pass, err)
                        : cd_timing_run(&policy, &s, &x->t->pass, err));
    x->t->wall_s = cd_timing_clock_now(NULL) - begin;
    x->t->passes = x->t->pass.n * x->t->pass.number;
    return CDMPP_OK;
}

/* Passes with all caches emptied before each. */
static cdmpp_status cold_passes(run *x, cdmpp_err *err) {
    double v[COLD], begin = cd_timing_clock_now(NULL);
    unsigned n = 0;
    while (n < COLD && (n < 2 || cd_timing_clock_now(NULL) - begin < budget_of(x))) {
        CD_TRY(cd_cache_flush_caches(&x->flush, CD_WIPE_ALL, err));
        cd_executor_pass(x->r, NULL, &v[n++]);
    }
    x->t->cold_s = cd_sort_to_median(v, n);
    return CDMPP_OK;
}

/* ---- steps in place ---- */

/* Times and places of the pass that took the median of n; times of steps: medians of their own. */
static cdmpp_status in_place(run *x, unsigned n, cdmpp_err *err) {
    const uint32_t m = x->m->net.n_step;
    cd_executor_ran *all = cd_mem_zalloc((size_t)n * m, sizeof *all);
    double v[PLACE_MAX], total[PLACE_MAX];
    cdmpp_status st = all ? CDMPP_OK : CD_FAIL(err, ENOMEM, "passes");
    for (unsigned i = 0; i < n && !st; i++) {
        if (x->o->cool && x->r) st = cd_cache_flush_caches(&x->flush, CD_WIPE_CORE, err);
        if (!st) st = x->runner.pass(x->runner.run, all + (size_t)i * m, &total[i], err);
    }
    if (st) {
        cd_mem_free(all);
        return st;
    }
    memcpy(v, total, n * sizeof *v);
    cd_sort_doubles(v, n);
    x->t->clocked_s = v[n / 2];
    unsigned middle = 0;
    while (total[middle] != x->t->clocked_s) middle++;
    for (uint32_t k = 0; k < m; k++) {
        const cd_executor_ran *a = &all[(size_t)middle * m + k];
        for (unsigned i = 0; i < n; i++)
            v[i] = all[(size_t)i * m + k].end_s - all[(size_t)i * m + k].start_s;
        x->step[k].start_s = a->start_s;
        x->step[k].end_s = a->end_s;
        x->step[k].worker = a->worker;
        x->step[k].place_s = cd_sort_to_median(v, n);
        x->step[k].bytes = x->runner.bytes_of(x->runner.run, k);
    }
    cd_mem_free(all);
    return CDMPP_OK;
}

/* ---- steps alone ---- */

/* cool: what the core had is gone before each run. */
static cdmpp_status alone(run *x, uint32_t k, bool cool, double *out, cdmpp_err *err) {
    double v[ALONE_MAX], once;
    unsigned n = 0, times = 1;
    cd_executor_step(x->r, k, 2, &once); /* the first one warms the caches and is not kept */
    if (!cool && once < 2e-3) times = (unsigned)(1e-3 / (once / 2 + 1e-9)) + 1;
    const double begin = cd_timing_clock_now(NULL);
    while (n < ALONE_MAX && (n < ALONE_MIN || cd_timing_clock_now(NULL) - begin < ALONE_S)) {
        if (cool) CD_TRY(cd_cache_flush_caches(&x->flush, CD_WIPE_CORE, err));
        cd_executor_step(x->r, k, times, &v[n]);
        v[n++] /= times;
        if (cd_timing_clock_now(NULL) - begin > 50 * ALONE_S) break;
    }
    *out = cd_sort_to_median(v, n);
    return CDMPP_OK;
}

/* Groups of one task are measured once. */
static cdmpp_status all_alone(run *x, cdmpp_err *err) {
    for (uint32_t k = 0; k < x->m->net.n_step; k++) {
        uint32_t same = 0;
        while (x->m->task[same] != x->m->task[k]) same++;
        if (same < k) {
            x->step[k].warm_s = x->step[same].warm_s;
            x->step[k].cool_s = x->step[same].cool_s;
            continue;
        }
        CD_TRY(alone(x, k, false, &x->step[k].warm_s, err));
        CD_TRY(alone(x, k, true, &x->step[k].cool_s, err));
    }
    return CDMPP_OK;
}

/* ---- all of it ---- */

static cdmpp_status measure(run *x, cdmpp_err *err) {
    CD_TRY(cd_op_profile_write_scalars(x->m, &x->runner, err));
    CD_TRY(warm_passes(x, err));
    const double fit = x->o->passes ? 0 : budget_of(x) / x->t->pass.median_s;
    CD_TRY(in_place(x,
                    fit > PLACE_MAX   ? PLACE_MAX
                    : fit < PLACE_MIN ? PLACE_MIN
                                      : (unsigned)fit,
                    err));
    if (!x->r || !x->o->alone) return CDMPP_OK;
    CD_TRY(cold_passes(x, err));
    return all_alone(x, err);
}

/* A network of programs in OpenCL C, on its device: nothing alone, and no workers. */
static cdmpp_status measure_opencl(run *x, cdmpp_err *err) {
    cd_executor_opencl *r;
    if (x->o->workers > 1)
        return CD_FAIL(err, EUSAGE,
                       "on an OpenCL device operators run one after the other: workers %u",
                       x->o->workers);
    CD_TRY(cd_executor_opencl_open(&x->m->net, x->o->device, &r, err));
    x->runner = cd_op_profile_runner_opencl(r);
    cdmpp_status st =
        x->o->check ? cd_op_profile_check_with(x->m, &x->runner, x->t, err) : CDMPP_OK;
    if (!st) st = measure(x, err);
    x->t->memory.all = cd_executor_opencl_bytes(r);
    for (uint32_t k = 0; k < x->m->net.n_tensor; k++)
        if (x->m->tensor[k].role == CD_TENSOR_WEIGHT) x->t->memory.weights += x->m->tensor[k].bytes;
    cd_executor_opencl_close(r);
    return st;
}

/* The check runs first, on an executor of its own, and its failure ends the measurement: times of
 * wrong results are worth nothing. */
static cdmpp_status measure_cpu(run *x, cdmpp_err *err) {
    const cd_op_profile_options *o = x->o;
    const uint32_t workers = o->workers ? o->workers : 1;
    if (o->pin) (void)cd_affinity_last((int)workers * (o->threads > 0 ? o->threads : 1));
    if (o->check) CD_TRY(cd_op_profile_check(x->m, o, x->t, err));
    const cd_executor_options ro = {.threads = o->threads,
                                    .workers = workers,
                                    .seconds = o->by_chain ? x->m->seconds : NULL,
                                    .cpu_time = o->cpu_time};
    CD_TRY(cd_executor_open(&x->m->net, &ro, &x->r, err));
    x->runner = cd_op_profile_runner_cpu(x->r);
    const cdmpp_status st = measure(x, err);
    x->t->memory = cd_executor_bytes(x->r);
    cd_executor_close(x->r);
    cd_cache_flush_free(&x->flush);
    return st;
}

void cd_op_profile_measure(const cd_op_profile_net *m, const cd_op_profile_options *o,
                           cd_op_profile_report *t, cd_op_profile_step *step) {
    run x = {.m = m, .o = o, .t = t, .step = step};
    t->cold_s = t->max_error = (double)NAN;
    for (uint32_t k = 0; k < m->net.n_step; k++) step[k].warm_s = step[k].cool_s = (double)NAN;
    t->status = (m->step[0].build->code->dialect == CD_DIALECT_OPENCL ? measure_opencl
                                                                      : measure_cpu)(&x, &t->err);
}
