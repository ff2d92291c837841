/* A network of programs in OpenCL C, measured in the child on its device. */

#include "profiler/runtime/single/executor_opencl.h"
#include "profiler/runtime/single/op_profile_internal.h"

enum { PASSES_MAX = 101, PASSES_MIN = 5 };

typedef struct {
    const cd_op_profile_net *m;
    const cd_op_profile_options *o;
    cd_executor_opencl *r;
    cd_op_profile_report *t;
    cd_op_profile_step *step;
} run;

static cdmpp_status write_there(void *r, uint32_t t, const void *from, cdmpp_err *err) { return cd_executor_opencl_write(r, t, from, err); }
static cdmpp_status read_there(void *r, uint32_t t, void *to, cdmpp_err *err) { return cd_executor_opencl_read(r, t, to, err); }
static cdmpp_status pass_there(void *r, cdmpp_err *err) {
    double total;
    return cd_executor_opencl_pass(r, NULL, &total, err);
}

static cdmpp_status passes(void *ctx, unsigned times, double *seconds, cdmpp_err *err) {
    *seconds = 0;
    for (unsigned i = 0; i < times; i++) {
        double one;
        CD_TRY(cd_executor_opencl_pass(ctx, NULL, &one, err));
        *seconds += one;
    }
    return CDMPP_OK;
}

/* As in op_profile_child.c, by the device's clock. */
static cdmpp_status in_place(run *x, unsigned n, cdmpp_err *err) {
    const uint32_t m = x->m->net.n_step;
    cd_executor_ran *all = cd_mem_zalloc((size_t)n * m, sizeof *all);
    double v[PASSES_MAX], total[PASSES_MAX];
    cdmpp_status st = all ? CDMPP_OK : CD_FAIL(err, ENOMEM, "passes");
    for (unsigned i = 0; i < n && !st; i++) st = cd_executor_opencl_pass(x->r, all + (size_t)i * m, &total[i], err);
    for (unsigned i = 0; i < n; i++) v[i] = total[i];
    if (!st) (void)cd_op_profile_median(v, n);
    unsigned middle = 0;
    while (!st && total[middle] != v[n / 2]) middle++;
    for (uint32_t k = 0; k < m && !st; k++) {
        const cd_executor_ran *a = &all[(size_t)middle * m + k];
        x->step[k].start_s = a->start_s;
        x->step[k].end_s = a->end_s;
        for (unsigned i = 0; i < n; i++) v[i] = all[(size_t)i * m + k].end_s - all[(size_t)i * m + k].start_s;
        x->step[k].place_s = cd_op_profile_median(v, n);
    }
    if (!st) x->t->clocked_s = total[middle];
    cd_mem_free(all);
    return st;
}

static cdmpp_status measure(run *x, cdmpp_err *err) {
    const cd_op_profile_runner there = {x->r, write_there, read_there, pass_there};
    const double budget = x->o->budget_s > 0 ? x->o->budget_s : 2, begin = cd_timing_clock_now(NULL);
    const cd_timing_policy policy = cd_timing_defaults((cd_timing_policy){.budget_s = budget, .min_repeat_s = 0.01}, cd_timing_clock_check(cd_timing_clock_now, NULL).tick_s);
    const cd_timing_subject s = {.ctx = x->r, .now = cd_timing_clock_now, .run = passes};
    if (x->o->check) CD_TRY(cd_op_profile_check_with(x->m, &there, x->t, err));
    CD_TRY(cd_op_profile_write_scalars(x->m, &there, err));
    CD_TRY(cd_timing_run(&policy, &s, &x->t->pass, err));
    x->t->wall_s = cd_timing_clock_now(NULL) - begin;
    x->t->passes = x->t->pass.n * x->t->pass.number;
    const double fit = budget / x->t->pass.median_s;
    return in_place(x, fit > PASSES_MAX ? PASSES_MAX : fit < PASSES_MIN ? PASSES_MIN : (unsigned)fit, err);
}

void cd_op_profile_measure_opencl(const cd_op_profile_net *m, const cd_op_profile_options *o, cd_op_profile_report *t, cd_op_profile_step *step) {
    run x = {.m = m, .o = o, .t = t, .step = step};
    if (o->workers > 1) t->status = CD_FAIL(&t->err, EUSAGE, "on an OpenCL device operators run one after the other: workers %u", o->workers);
    if (!t->status) t->status = cd_executor_opencl_open(&m->net, o->device, &x.r, &t->err);
    if (!t->status) t->status = measure(&x, &t->err);
    if (!t->status) t->memory.all = cd_executor_opencl_bytes(x.r);
    for (uint32_t k = 0; k < m->net.n_tensor && !t->status; k++)
        if (m->tensor[k].role == CD_TENSOR_WEIGHT) t->memory.weights += m->tensor[k].bytes;
    cd_executor_opencl_close(x.r);
}
