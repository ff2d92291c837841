/* plan_run -- a plan run on the devices of this machine: compiled parts, real copies, measured.
 *
 *   network_load (definitions, groups) ──> cd_shard_net ──> shard_plan ──> plan ─┐
 *   shard_cost (a schedule for each part) ───────────────────────────────────────┤
 *                                                                                │
 *       multi.h: passes <── programs, buffers, actions <─────────────────────────┘
 *
 *   (1) tensors: in each memory where one is needed, one buffer of its whole size; a box that is a
 *       run is a window of it, else it has a buffer of its own, filled by a copy where it is not
 *       what a part made there;
 *   (2) weights are cut and packed before passes;
 *   (3) values: the results of a plan are compared with those of the unsplit network's programs, on
 *       the same content; with nothing but axes of results split they differ by the compiler's
 *       rounding at most, sums within 1e-5 of the largest value;
 *   (4) a device that fails in a pass: the plan's operators are planned again without it and the
 *       pass is run again from the inputs: results are right or an error is returned, never
 *       something between;
 *   (5) watch: a device whose parts take `drift` times longer than predicted against the other's
 *       over `patience` passes has its times scaled by what was seen, and the plan is made again.
 * Devices that share memory 0 exchange runs without copies. One thread calls. Seconds, bytes. */
#ifndef CD_PLAN_RUN_H
#define CD_PLAN_RUN_H
#include <signal.h>

#include "predictor/network/network.h"
#include "predictor/partition/shard/shard.h"
#include "profiler/runtime/multi/multi.h"
#include "profiler/measure/measure.h"

/* The network of a load as a plan's: operator k is group k. Lives in `a`; the load must outlive it.
 * What has no definition has dag NULL. Errors: ENOMEM. */
cdmpp_status cd_plan_run_shard_net(const cd_network_loaded *l, cd_arena *a, cd_shard_net *out,
                                   cdmpp_err *err);

typedef struct cd_plan_run cd_plan_run;
typedef struct cd_plan_run_options {
    const cd_network_loaded *loaded; /* the loaded network, borrowed */
    const cd_shard_net *net;         /* of cd_plan_run_shard_net */
    const cd_machine *machine;
    const cd_shard_plan *plan; /* copied as far as needed */
    /* schedules of parts; NULL: programs without schedules (a GPU's: the first that the rules
     * give) */
    cd_shard_cost *cost;
    CD_KEEP cd_measure *measure; /* compiles; opened before threads */
    bool check;                  /* programs of the unsplit network without schedules too */
    /* without check: this run's expected results are expected here too, copied; NULL: none are */
    const cd_plan_run *expect;
    const volatile sig_atomic_t *stop;
} cd_plan_run_options;

/* Errors: EBACKEND (a device; a program that does not compile, with operator and part),
 * EUNSUPPORTED (an operator without a definition: named), EINTERRUPTED, those of the multi-device
 * executor, ENOMEM. */
cdmpp_status cd_plan_run_open(const cd_plan_run_options *a, CD_GIVE cd_plan_run **out,
                              cdmpp_err *err);
void cd_plan_run_close(CD_TAKE cd_plan_run *r); /* NULL is fine */

typedef struct cd_plan_run_step { /* of an operator, median over passes */
    /* from its first part's start to its last one's end, joins and copies before it included */
    double seconds;
    double start_s, end_s; /* in the pass of the median time */
    const double *part_s;  /* (n_part) */
} cd_plan_run_step;

typedef struct cd_plan_run_result {
    cd_arena arena;
    double median_s, low_s, high_s; /* of passes; 90 % interval of the median */
    unsigned passes;
    cd_plan_run_step *step;     /* (n_op) */
    int64_t between, within;    /* bytes copied in a pass */
    double max_error;           /* NaN: not compared */
    unsigned replans, failures; /* what happened meanwhile */
} cd_plan_run_result;

#define CD_PLAN_RUN_KNOWN 0.02 /* half the 90 % interval of a median, of it */
/* Passes until the median is known to this, or budget_s (0: 2). */
cdmpp_status cd_plan_run_passes(cd_plan_run *r, double budget_s, cd_plan_run_result *out,
                                cdmpp_err *err);
void cd_plan_run_result_free(cd_plan_run_result *o);
/* Several plans of one network measured in turns, a pass of each, so that a disturbance hits all
 * alike. seconds (n) medians; NaN of one that lost a device meanwhile and is another plan since. */
cdmpp_status cd_plan_run_compare(cd_plan_run *const *r, uint32_t n, double budget_s,
                                 double *seconds, cdmpp_err *err);
/* Largest difference of the results from those of the unsplit programs, by each result's largest
 * value. Errors: EUSAGE (opened without check). */
cdmpp_status cd_plan_run_check(cd_plan_run *r, double *max_error, cdmpp_err *err);
/* As cd_multi_executor_slow and cd_multi_executor_break, devices as the machine numbers them.
 * Slowness stays in plans made again; a device without work cannot break. */
void cd_plan_run_slow(cd_plan_run *r, uint32_t device, unsigned times);
void cd_plan_run_break(cd_plan_run *r, uint32_t device, uint32_t after);
CD_KEEP const cd_shard_plan *cd_plan_run_now(const cd_plan_run *r); /* after re-planning */

typedef struct cd_plan_run_watch_options {
    double drift;      /* 0: 1.3 */
    unsigned patience; /* 0: 8 passes */
} cd_plan_run_watch_options;
/* As run, watching (5); again: what to plan again with (its net, machine, time are used). When
 * budget_s is over it is planned once at most, and only if it was not before. */
cdmpp_status cd_plan_run_watch(cd_plan_run *r, const cd_shard_plan_options *again,
                               const cd_plan_run_watch_options *w, double budget_s,
                               cd_plan_run_result *out, cdmpp_err *err);
#endif
