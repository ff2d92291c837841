/* timing -- runs a program until its time is known.
 *
 *   warm-up │ repeat 1 │ repeat 2 │ ... │      a repeat: `number` runs in a row, their mean
 *           └─ until the interval is narrow, or the budget is spent
 *
 * Policy alone, on two functions: one runs the program, one reads the clock. Tests replace both.
 *
 *   (1) `number` is so large that a repeat takes min_repeat_s, far above the clock's resolution;
 *       in a cold or cool measurement it is 1 and the caches are flushed before every repeat;
 *   (2) samples further from the median than 3 deviations (1.4826 times the median distance, at
 *       least 0.5 % of the median) are outliers: counted, in `sample`, but in no figure;
 *   (3) done when the half-width of the 95 % interval of the mean of what is kept is below `ci`
 *       of it, after at least min_repeat repeats; or at max_repeat; or when the next repeat
 *       would end behind budget_s. Two repeats are made in any case, but one where that alone
 *       is longer than the budget.
 * No state, any thread. */
#ifndef CD_TIMING_H
#define CD_TIMING_H

#include "base/core/core.h"

#define CD_TIMING_MAX 256

typedef struct cd_timing_policy {
    double budget_s;            /* of all repeats and the warm-up; 0: 0.1 */
    double warmup_s;            /* at least, and two runs; 0: 0.005 */
    double min_repeat_s;        /* 0: 0.001; at least 1000 ticks of the clock */
    double ci;                  /* relative half-width; 0: 0.01 */
    unsigned min_repeat, max_repeat; /* 0: 5, 100; at most CD_TIMING_MAX */
    bool cold;
    bool cool;                  /* as cold, but only of the core's own caches: data stay in the shared one (cache_flush.h) */
} cd_timing_policy;

typedef struct cd_timing_subject {
    void *ctx;
    double (*now)(void *ctx);   /* seconds */
    /* Run `times` times in a row; *seconds: of all together. */
    cdmpp_status (*run)(void *ctx, unsigned times, double *seconds, cdmpp_err *err);
    cdmpp_status (*flush)(void *ctx, cdmpp_err *err); /* NULL where nothing is measured cold */
    /* Was the last repeat disturbed, by another process for one? NULL: nobody knows. */
    bool (*disturbed)(void *ctx);
} cd_timing_subject;

typedef struct cd_timing {
    unsigned n, n_kept, number; /* samples; those in the figures; runs of a repeat */
    double min_s, median_s, mean_s, std_s, cv; /* of what is kept; cv = std / mean */
    double ci;                  /* relative half-width reached; 1: unknown */
    unsigned disturbed;         /* repeats that were, left out where enough others are there */
    double sample_s[CD_TIMING_MAX]; /* (n) in the order of time */
    bool kept[CD_TIMING_MAX];   /* (n) */
} cd_timing;

/* Defaults in place of zeros; tick_s: of the clock (cd_timing_clock_check). */
cd_timing_policy cd_timing_defaults(cd_timing_policy p, double tick_s);
/* Errors: those of run and flush; ENUMERIC (a time that is not a number above 0). */
cdmpp_status cd_timing_run(const cd_timing_policy *p, const cd_timing_subject *s, cd_timing *out, cdmpp_err *err);
/* The figures of out->sample_s[0 .. n): (2). `left_out` (n) or NULL: samples that may not be kept. */
void cd_timing_figures(cd_timing *out, const bool *left_out);

/* The resolution of a clock and what a reading costs, by reading it. */
typedef struct cd_timing_clock_quality {
    double tick_s, cost_s;
    bool monotonic;             /* never went back */
} cd_timing_clock_quality;
/* Ask the clock some thousand times: takes about a millisecond. */
cd_timing_clock_quality cd_timing_clock_check(double (*now)(void *ctx), void *ctx);
/* cd_clock_wall() as cd_timing_subject.now; ctx is ignored. */
double cd_timing_clock_now(void *ctx);
#endif
