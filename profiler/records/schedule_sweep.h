/* sweep -- variants of one schedule (vary.h), measured: a table and a plot.
 *
 *   cd_variant[0..n) ── recjob, measure ──> cd_schedule_sweep_row[0..n) ──> CSV, SVG, JSON
 *
 * Row 0 is the base; `ratio` is a row's median over the base's. One thread. */
#ifndef CD_SCHEDULE_SWEEP_H
#define CD_SCHEDULE_SWEEP_H
#include "profiler/measure/measure.h"
#include "profiler/records/record_program.h"
#include "profiler/records/schedule_variants.h"

typedef struct cd_schedule_sweep_row {
    const cd_variant *v;
    cd_measure_result out;
    double ratio;               /* 0 where it failed */
} cd_schedule_sweep_row;

/* Measure all: `warm` those of a warm cache, `cold` the others (NULL: none is). Programs are compiled
 * for maker's target with `threads` threads unless the variant says. Errors: those of cd_measure_build
 * and cd_measure_run, ENOMEM. */
cdmpp_status cd_schedule_sweep_run(cd_recmaker *maker, const cd_variant *v, size_t n, int threads, cd_measure *warm, cd_measure *cold,
                          const volatile sig_atomic_t *stop, cd_schedule_sweep_row *row, cdmpp_err *err);

const char *cd_schedule_sweep_factor(int factor); /* "base", "tile" ... */
/* Errors: ENOMEM. */
cdmpp_status cd_schedule_sweep_csv(cd_buf *b, const cd_schedule_sweep_row *row, size_t n, cdmpp_err *err);
cdmpp_status cd_schedule_sweep_json(cd_buf *b, const char *workload_key, const cd_schedule_sweep_row *row, size_t n, cdmpp_err *err);
/* One bar a variant, log scale of the ratio, in the groups of the factors. */
cdmpp_status cd_schedule_sweep_svg(cd_buf *b, const cd_schedule_sweep_row *row, size_t n, cdmpp_err *err);
/* For people: the best and the worst of each factor. */
cdmpp_status cd_schedule_sweep_text(cd_buf *b, const cd_schedule_sweep_row *row, size_t n, cdmpp_err *err);
#endif
