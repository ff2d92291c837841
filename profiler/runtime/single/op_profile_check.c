/* Results of a network's programs against those of the same tasks without a schedule. */
#include <math.h>
#include <string.h>

#include "profiler/runtime/single/single_internal.h"

/* Matrices get values scaled as trained weights are, so that results neither vanish nor overflow
 * after many layers. */
cdmpp_status cd_op_profile_write_weights(const cd_executor_net *n, const cd_op_profile_runner *r,
                                         cdmpp_err *err) {
    for (uint32_t t = 0; t < n->n_tensor; t++) {
        const cd_executor_net_tensor *x = &n->tensor[t];
        if (x->role != CD_TENSOR_WEIGHT || x->dtype != CD_F32 || x->rank < 2) continue;
        float *v = cd_mem_alloc(x->bytes ? (size_t)x->bytes : 4);
        if (!v) return CD_FAIL(err, ENOMEM, "weights");
        (void)cd_tensor_fill_weight(CD_F32, t, x->rank, x->shape, v);
        const cdmpp_status st = r->write(r->run, t, v, err);
        cd_mem_free(v);
        CD_TRY(st);
    }
    return CDMPP_OK;
}

cdmpp_status cd_op_profile_write_scalars(const cd_op_profile_net *m, const cd_op_profile_runner *r,
                                         cdmpp_err *err) {
    for (uint32_t k = 0; k < m->net.n_tensor; k++) {
        const float f = (float)m->scalar[k];
        if (m->known[k] && m->tensor[k].role != CD_TENSOR_INNER)
            CD_TRY(r->write(r->run, k, m->known[k], err));
        if (isnan(m->scalar[k]) || m->tensor[k].dtype != CD_F32 ||
            m->tensor[k].role == CD_TENSOR_INNER || m->tensor[k].bytes != 4)
            continue;
        CD_TRY(r->write(r->run, k, &f, err));
    }
    return CDMPP_OK;
}

/* One pass, and all results behind one another. */
static cdmpp_status results(const cd_op_profile_net *m, const cd_op_profile_runner *r, float *to,
                            cdmpp_err *err) {
    const cd_executor_net *n = &m->net;
    double total;
    CD_TRY(cd_op_profile_write_weights(n, r, err));
    CD_TRY(cd_op_profile_write_scalars(m, r, err));
    CD_TRY(r->pass(r->run, NULL, &total, err));
    for (uint32_t t = 0; t < n->n_tensor; t++) {
        if (n->tensor[t].role != CD_TENSOR_RESULT || n->tensor[t].dtype != CD_F32) continue;
        CD_TRY(r->read(r->run, t, to, err));
        to += n->tensor[t].bytes / 4;
    }
    return CDMPP_OK;
}

/* Largest difference of a result, by its largest value. */
static cdmpp_status compare(const cd_executor_net *n, const float *want, const float *got,
                            double *max_error, cdmpp_err *err) {
    *max_error = 0;
    for (uint32_t t = 0; t < n->n_tensor; t++) {
        if (n->tensor[t].role != CD_TENSOR_RESULT || n->tensor[t].dtype != CD_F32) continue;
        const size_t elements = (size_t)n->tensor[t].bytes / 4;
        double far = 0, large = 0;
        for (size_t i = 0; i < elements; i++) {
            if (!isfinite(want[i]) || !isfinite(got[i]))
                return CD_FAIL(err, ENUMERIC, "result %u: element %zu is %g, of the reference %g",
                               t, i, (double)got[i], (double)want[i]);
            far = fmax(far, fabs((double)want[i] - (double)got[i]));
            large = fmax(large, fabs((double)want[i]));
        }
        *max_error = fmax(*max_error, large > 0 ? far / large : far);
        want += elements;
        got += elements;
    }
    return CDMPP_OK;
}

/* ---- this processor ---- */

static cdmpp_status write_here(void *r, uint32_t t, const void *from, cdmpp_err *err) {
    return cd_executor_write(r, t, from, err);
}
static cdmpp_status read_here(void *r, uint32_t t, void *to, cdmpp_err *err) {
    return cd_executor_read(r, t, to, err);
}
static cdmpp_status pass_here(void *r, cd_executor_ran *ran, double *total_s, cdmpp_err *err) {
    (void)err;
    cd_executor_pass(r, ran, total_s);
    return CDMPP_OK;
}

static cd_executor_step_bytes bytes_here(const void *r, uint32_t step) {
    return cd_executor_bytes_of(r, step);
}

cd_op_profile_runner cd_op_profile_runner_cpu(cd_executor *r) {
    return (cd_op_profile_runner){r, write_here, read_here, pass_here, bytes_here};
}

/* ---- an OpenCL device ---- */

static cdmpp_status write_there(void *r, uint32_t t, const void *from, cdmpp_err *err) {
    return cd_executor_opencl_write(r, t, from, err);
}
static cdmpp_status read_there(void *r, uint32_t t, void *to, cdmpp_err *err) {
    return cd_executor_opencl_read(r, t, to, err);
}
static cdmpp_status pass_there(void *r, cd_executor_ran *ran, double *total_s, cdmpp_err *err) {
    return cd_executor_opencl_pass(r, ran, total_s, err);
}

static cd_executor_step_bytes bytes_there(const void *r, uint32_t step) {
    return cd_executor_opencl_bytes_of(r, step);
}

static cd_op_profile_runner op_profile_runner_opencl(cd_executor_opencl *r) {
    return (cd_op_profile_runner){r, write_there, read_there, pass_there, bytes_there};
}

/* ---- comparing ---- */

/* The results of the same network with the reference programs, on this processor with one
 * thread. */
static cdmpp_status plain_results(const cd_op_profile_net *m, float *to, cdmpp_err *err) {
    cd_executor_net plain = m->net;
    cd_executor *r = NULL;
    cd_executor_net_step *step = cd_mem_zalloc(plain.n_step + 1, sizeof *step);
    cdmpp_status st = step ? CDMPP_OK : CD_FAIL(err, ENOMEM, "steps");
    for (uint32_t k = 0; k < plain.n_step && !st; k++) {
        if (!m->plain[k])
            st = CD_FAIL(err, EUSAGE, "step %u (%.60s) has no reference to compare with", k,
                         m->step[k].name);
        else
            step[k] = (cd_executor_net_step){m->step[k].name, m->plain[k], m->step[k].tensor,
                                             m->step[k].shape};
    }
    plain.step = step;
    if (!st) st = cd_executor_open(&plain, &(cd_executor_options){.threads = 1}, &r, err);
    const cd_op_profile_runner here = cd_op_profile_runner_cpu(r);
    if (!st) st = results(m, &here, to, err);
    cd_executor_close(r);
    cd_mem_free(step);
    return st;
}

/* Runs the network on r, and on this processor the same network of programs without schedules, on
 * the same content: t->max_error says how far the results are apart. Errors: EUSAGE (a step without
 * a reference), ENUMERIC (a result that is no number), those of the runner. */
static cdmpp_status op_profile_check_with(const cd_op_profile_net *m, const cd_op_profile_runner *r,
                                          cd_op_profile_report *t, cdmpp_err *err) {
    size_t bytes = 0;
    for (uint32_t k = 0; k < m->net.n_tensor; k++)
        if (m->tensor[k].role == CD_TENSOR_RESULT) bytes += (size_t)m->tensor[k].bytes;
    float *want = cd_mem_alloc(bytes + 4), *got = cd_mem_alloc(bytes + 4);
    cdmpp_status st = want && got ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu bytes of results", bytes);
    if (!st) st = plain_results(m, want, err);
    if (!st) st = results(m, r, got, err);
    if (!st) st = compare(&m->net, want, got, &t->max_error, err);
    cd_mem_free(want);
    cd_mem_free(got);
    return st;
}

/* The same with the network run on this processor. */
static cdmpp_status op_profile_check(const cd_op_profile_net *m, const cd_op_profile_options *o,
                                     cd_op_profile_report *t, cdmpp_err *err) {
    cd_executor *r = NULL;
    CD_TRY(cd_executor_open(
        &m->net, &(cd_executor_options){.threads = o->threads, .workers = o->workers}, &r, err));
    const cd_op_profile_runner here = cd_op_profile_runner_cpu(r);
    const cdmpp_status st = op_profile_check_with(m, &here, t, err);
    cd_executor_close(r);
    return st;
}

/* What the child of op_profile measures: passes and steps in place, on this processor or an OpenCL
 * device; on this processor also steps alone. Times of an OpenCL device's steps are by its own
 * clock. */

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
    x->runner = op_profile_runner_opencl(r);
    cdmpp_status st = x->o->check ? op_profile_check_with(x->m, &x->runner, x->t, err) : CDMPP_OK;
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
    if (o->check) CD_TRY(op_profile_check(x->m, o, x->t, err));
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
