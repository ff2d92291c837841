/* Times of networks that wait, in turns: a change of the machine's speed meets all of them. */
#include <math.h>
#include <time.h>

#include "predictor/quantize/quantize_internal.h"
#include "profiler/host/host.h"

enum { LEAST_TURNS = 7, PASSES = 3, MOST_NETS = 3 };
static const double BUDGET_S = 4;

static double now_s(bool cpu) {
    struct timespec t;
    (void)clock_gettime(cpu ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The fastest of some passes in a row; the first one finds the caches of another network. */
static double turn(cd_network_live *live, bool cpu) {
    double best = (double)INFINITY, total;
    for (int k = 0; k < PASSES; k++) {
        const double from = now_s(cpu);
        cd_network_live_pass(live, &total);
        best = fmin(best, now_s(cpu) - from);
    }
    return best;
}

void cd_quantize_settle(cd_quantize_form *f, const double *float_s, double *s, uint32_t n) {
    double ratio[CD_QUANTIZE_MOST_TURNS];
    for (uint32_t i = 0; i < n; i++) ratio[i] = float_s[i] / s[i];
    cd_sort_doubles(s, n);
    cd_sort_doubles(ratio, n);
    f->pass_s = cd_sort_median(s, n);
    f->ratio = cd_sort_median(ratio, n);
    f->low = cd_sort_quantile(ratio, n, 0.25), f->high = cd_sort_quantile(ratio, n, 0.75);
}

cdmpp_status cd_quantize_time(const cd_quantize_options *o, cd_quantize_net *net,
                              cd_quantize_result *r, cdmpp_err *err) {
    double s[MOST_NETS][CD_QUANTIZE_MOST_TURNS];
    const double until = now_s(false) + (o->budget_s > 0 ? o->budget_s : BUDGET_S);
    uint32_t n = 0;
    cd_affinity all;
    cd_affinity_get(&all);
    (void)cd_affinity_last(1);
    r->left = cd_host_load_left(1);
    for (; n < CD_QUANTIZE_MOST_TURNS && (n < LEAST_TURNS || now_s(false) < until) &&
           !(o->stop && *o->stop);
         n++)
        for (uint32_t k = 0; k <= r->n_form; k++) s[k][n] = turn(net[k].live, o->cpu_time);
    cd_affinity_set(&all, 0);
    if (o->stop && *o->stop) return CD_FAIL(err, EINTERRUPTED, "while networks were timed");
    r->turns = n;
    for (uint32_t k = 0; k < r->n_form; k++) cd_quantize_settle(&r->form[k], s[0], s[k + 1], n);
    cd_sort_doubles(s[0], n);
    r->float_s = cd_sort_median(s[0], n);
    return CDMPP_OK;
}
