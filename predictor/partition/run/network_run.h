/* network_run -- a network run on this machine with the schedules of a schedule database: the
 * measurement that estimates are compared with.
 *
 *   network_load ─┐
 *   schedule_db ──┴─> programs, compiled ─> one memory plan ─> passes in a child ─> times of nodes,
 *     time of the whole
 *
 *   place  in passes of the whole network: median of each node
 *   alone  the program by itself, as records are measured (measure.h)
 *   warm   alone in the network's memory, run after run
 *   cool   the same after the core's own caches were emptied: its data are in the shared cache, as
 *          those of most
 *          operators are when their turn comes
 *
 *   (1) a task without a schedule in the database runs with a sampled one, the best of `trials` as
 *       measured here; each node says where its schedule is from, and the counts stand beside the
 *       total;
 *   (2) what has no program is left out of passes, with the reason, and the total says how many;
 *   (3) pass_s is the median of warm passes, one behind the other; cold_s of passes after all
 *       caches were emptied;
 *   (4) values: with `check` the results of one pass are compared with those of programs without
 *       schedules, on the same content; of several workers the results are those of one, to the
 *       bit.
 * Seconds, bytes. One thread; the measurer is opened before other threads and OpenMP
 * (measure.h). */
#ifndef CD_NETWORK_RUN_H
#define CD_NETWORK_RUN_H
#include "predictor/network/network.h"
#include "predictor/estimate/estimate.h"
#include "profiler/runtime/single/single.h"

typedef struct cd_network_run_options {
    CD_KEEP cd_measure *measure;
    const cd_schedule_db *schedules; /* the schedule database; NULL: every schedule is sampled */
    /* sampled schedules are added here, without their times; may be `book` itself. NULL: they are
     * not kept */
    cd_schedule_db *sampled;
    const char *target;          /* of the load */
    const cd_hardware *hardware; /* NULL: default of the target */
    uint32_t trials;             /* of a task without a schedule; 0: 4 */
    uint64_t seed;
    uint32_t workers;   /* nodes at a time; 0: 1 */
    const char *device; /* of an OpenCL target; NULL: the first */
    int threads;        /* of a program; 0: -num-cores of the target, else 1 */
    double budget_s;    /* of passes; 0: 2 */
    double limit_s;     /* of all passes; 0: 120 */
    /* of cd_clock_wall: no program is built or run later, and passes end; 0: whenever */
    double until_s;
    bool pin; /* on the last processors */
    /* processor time in place of the clock's: for a machine that others use too */
    bool cpu_time;
    bool alone, check;
    const volatile sig_atomic_t *stop;
} cd_network_run_options;

typedef enum cd_network_run_source {
    CD_NETWORK_RUN_NOTHING,
    CD_NETWORK_RUN_DB,
    CD_NETWORK_RUN_SAMPLED
} cd_network_run_source;

typedef struct cd_network_run_node {
    cd_network_run_source from;
    const char *schedule;                    /* origin; NULL: none */
    const char *why;                         /* not run: the reason; else NULL */
    double place_s, alone_s, warm_s, cool_s; /* NaN: not measured */
    double start_s, end_s;                   /* in the pass of the median time */
    uint32_t worker;
} cd_network_run_node;

typedef struct cd_network_run {
    cd_arena arena;
    uint32_t n;                        /* as the graph's nodes */
    cd_network_run_node *node;         /* (n) */
    uint32_t n_ran, n_sampled, n_left; /* nodes: run; of them with a sampled schedule; left out */
    uint32_t workers;
    cd_timing pass; /* of a warm pass */
    double pass_s, cold_s;
    double max_error; /* NaN: not compared */
    cd_executor_bytes_used memory;
} cd_network_run;

/* Errors: EBACKEND (no node has a program; the child died; until_s), ENUMERIC, EINTERRUPTED, those
 * of cd_program_select_run, ENOMEM. */
cdmpp_status cd_network_run_measure(const cd_network_loaded *l, const cd_network_run_options *a,
                                    CD_GIVE cd_network_run **out, cdmpp_err *err);
/* How many processors passes use. */
int cd_network_run_processors(const cd_network_run_options *a);
void cd_network_run_free(CD_TAKE cd_network_run *r); /* NULL is fine */
#endif
