/* Kernels timed by our executor. */
#include <math.h>

#include "learner/kernels/kernels.h"

static cd_program_select_options options_of(const cd_kernel_executor *x) {
    return (cd_program_select_options){.trials = x->trials ? x->trials : 8,
                                       .pool = x->pool,
                                       .device = x->device,
                                       .seed = x->seed,
                                       .target = x->target,
                                       .hardware = x->hardware,
                                       .threads = x->threads,
                                       .measure = x->measure,
                                       .stop = x->stop};
}

cdmpp_status cd_kernel_executor_estimate(const cd_kernel_executor *x, const cd_workload *w,
                                         double *analytic, cdmpp_err *err) {
    const cd_program_select_options so = options_of(x);
    return cd_program_select_estimate(w, &so, analytic, err);
}

/* A task without a program leaves its group without a time. */
static cdmpp_status run(const cd_kernel_executor *x, const cd_workload *w, bool cool,
                        cd_kernel_time *out, double *pass_s, cdmpp_err *err) {
    const cd_program_select_options so = options_of(x);
    const cd_op_profile_options po = {.threads = x->threads,
                                      .budget_s = x->budget_s > 0 ? x->budget_s : 0.1,
                                      .cpu_time = x->threads == 1,
                                      .cool = cool};
    cd_program_select *s = NULL;
    cd_op_profile *p = NULL;
    cdmpp_status st = cd_program_select_run(w, &so, &s, err);
    if (!st) st = cd_op_profile_run(w, s, &po, &p, err);
    for (uint32_t g = 0; !st && g < w->n_group; g++) {
        const double analytic_s =
            w->group[g].task == CD_GRAPH_NONE ? 0 : s->task[w->group[g].task].analytic_s;
        out[g] = (cd_kernel_time){p->group[g].ran ? p->group[g].place_s : (double)NAN,
                                  isfinite(analytic_s) ? analytic_s : 0};
    }
    if (!st) *pass_s = p->pass.median_s;
    cd_op_profile_free(p);
    cd_program_select_free(s);
    return st;
}

cdmpp_status cd_kernel_executor_time(const cd_kernel_executor *x, const cd_workload *w,
                                     cd_kernel_time *out, double *pass_s, cdmpp_err *err) {
    return run(x, w, false, out, pass_s, err);
}

/* In a network other kernels have run since this one did: its weights are not in the core's own
 * caches. */
static cdmpp_status time_of(void *ctx, const cd_workload *w, uint64_t draw, cd_kernel_time *out,
                            cdmpp_err *err) {
    double pass_s;
    (void)draw;
    return run(ctx, w, true, out, &pass_s, err);
}

cd_kernel_clock cd_kernel_executor_clock(cd_kernel_executor *x) {
    return (cd_kernel_clock){.ctx = x, .time = time_of, .now = cd_timing_clock_now};
}
