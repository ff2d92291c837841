/* Measured times that are far from what the description of their GPU says: most often they are in
 * another unit. */
#include <math.h>

#include "base/cli/cli.h"
#include "learner/inputs/inputs.h"
#include "learner/llm_op/llm_op_internal.h"

/* Tables of four GPUs and several libraries have no time so far from its estimate, but for some
 * calls that wait for their host; a wrong unit is a factor of 1000 or more. */
#define FAR 300

/* Time over estimate; 1 where there is no estimate. */
static double over(const cd_llm_op_table *t, size_t row, cd_llm_op_known *known, double *estimate) {
    cd_llm_op_estimate e;
    cdmpp_err err = {0};
    if (cd_llm_op_estimate_by(&t->r[row], t->known[t->device[row]], known, &e, &err)) return 1;
    *estimate = e.base_s;
    return t->r[row].latency_s / e.base_s;
}

void cd_llm_op_table_say_far(const cd_llm_op_table *t, struct cd_log *log) {
    cd_llm_op_known *known = cd_mem_zalloc(1, sizeof *known); /* NULL: slower */
    double most = log10(FAR), estimate = 0, of_most = 0;
    size_t n = 0, at = 0;
    for (size_t i = 0; i < t->n; i++) {
        const double far = fabs(log10(over(t, i, known, &estimate)));
        if (!(far > log10(FAR))) continue;
        n++;
        if (far > most) most = far, at = i, of_most = estimate;
    }
    cd_mem_free(known);
    if (!n) return;
    cd_buf b = {0};
    cd_llm_op_repeats_put_time(
        &t->again, &(cd_llm_op_time){t->r[at].latency_s, (uint32_t)at, t->place[at]}, &b);
    if (!b.oom)
        cd_log_put(
            log, CD_LOG_WARNING,
            "%zu of %zu measured rows %s more than %d times off the analytic estimate (the "
            "farthest: %s, estimate %.2g s), and answer as they stand: latency_s is in seconds, "
            "latency_ms in milliseconds",
            n, t->n, n > 1 ? "are" : "is", FAR, b.p, of_most);
    cd_buf_free(&b);
}
