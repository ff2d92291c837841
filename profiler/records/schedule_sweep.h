/* schedule_sweep -- variants of one schedule (schedule_variants.h), measured: a table and a plot.
 *
 *   cd_variant[0..n) ── program, measure ──> cd_schedule_sweep_row[0..n) ──> CSV, SVG, JSON
 *
 * Row 0 is the base; `ratio` is a row's median over the base's, which is measured before and behind
 * every few variants: a frame whose two measurements differ is measured again, and ratios that stay
 * disturbed are marked. One thread. */
#ifndef CD_SCHEDULE_SWEEP_H
#define CD_SCHEDULE_SWEEP_H
#include "profiler/records/record_best.h"
#include "profiler/records/record_program.h"
#include "profiler/records/schedule_variants.h"

typedef struct cd_schedule_sweep_row {
    const cd_variant *v;
    cd_measure_result out;
    double ratio; /* 0 where it, or the base, failed */
    /* by the intervals of its own time and of both bases; NaN: one of them is not known */
    double ratio_low, ratio_high;
    double base_s; /* of the base round it, the ratio's divisor */
    /* the base took another time behind it than before it, or much longer than at other times */
    bool disturbed;
} cd_schedule_sweep_row;

/* All measurements of the base. */
typedef struct cd_schedule_sweep_base {
    unsigned n;
    double low_s, high_s; /* least and largest median */
    cd_measure_result last;
} cd_schedule_sweep_base;

typedef struct cd_schedule_sweep_options {
    const char *const *task_file; /* (n_task_file) definitions of tasks */
    size_t n_task_file;
    cd_record_best_options best; /* where the base comes from; its `max` is not used */
    cd_measure_options measure;  /* how; its cold, cool and threads are set here */
    unsigned factors;            /* bit k: vary factor k, CD_VARY_* */
    int threads;                 /* of a program, unless the variant says */
    const char *target;          /* in place of the record's; NULL: as it is */
    struct cd_log *log;          /* of warnings about task files; NULL: none */
} cd_schedule_sweep_options;

typedef struct cd_schedule_sweep {
    cd_arena arena;
    cd_record base;
    cd_schedule_sweep_row *row;      /* (n) row 0 is the base itself, as it was measured last */
    cd_schedule_sweep_base measured; /* the base */
    size_t n;
} cd_schedule_sweep;

/* Take the fastest record of the workload, of the first workload where none is named, make its
 * variants and measure them all. Call it before other threads are begun: it forks. Free *out, after
 * an error too. Errors: ENODATA (no record), ENOTASK (no file has its task), those of
 * cd_schedule_variants, cd_measure_build and cd_measure_run, ENOMEM. */
cdmpp_status cd_schedule_sweep_run(const cd_schedule_sweep_options *o, cd_schedule_sweep *out,
                                   cdmpp_err *err);
void cd_schedule_sweep_free(cd_schedule_sweep *s); /* zeroed is fine */

/* One line a variant. Errors of all printers: ENOMEM. */
cdmpp_status cd_schedule_sweep_csv(cd_buf *b, const cd_schedule_sweep *s, cdmpp_err *err);
/* {"workload_key":.., "base":{..}, "variants":[..]} */
cdmpp_status cd_schedule_sweep_json(cd_buf *b, const cd_schedule_sweep *s, cdmpp_err *err);
/* One bar a variant, log scale of the ratio, in the groups of the factors. */
cdmpp_status cd_schedule_sweep_svg(cd_buf *b, const cd_schedule_sweep *s, cdmpp_err *err);
/* For people: the best and the worst of each factor. */
cdmpp_status cd_schedule_sweep_text(cd_buf *b, const cd_schedule_sweep *s, cdmpp_err *err);
#endif
