/* shard_cost -- schedules and predicted times of shards of operators, for shard_plan.h and
 * predictor/partition/run. A part is a shard here.
 *
 *   whole's schedule (database) ── match (features/sketch/sketch.h) ──> the part's ──┐
 *   `trials` mutations of it, else drawn candidates of the part ─────────────────────┤
 *                                                                                    │
 *                  record, seconds <── best predicted <──────────────────────────────┘
 *
 *   (1) a part is a task of its own in a registry of this object; equal parts are scored once. The
 *       same schedule serves for the prediction of the plan and for its execution;
 *   (2) times are those of the machine's device: the prediction of the device's model, multiplied
 *       by scale and by the number of times that the device runs each program (times). The scaling
 *       law of node latencies (cd_node_cost_law) adds what a task takes longer in a network than
 *       alone; for a part it uses the part's own weights;
 *   (3) the time of a part that cannot be scored is infinity, and the reason is kept;
 *   (4) equal questions have equal answers: the order of questions, batches and the number of
 *       threads make no difference.
 * One thread calls. Seconds. */
#ifndef CD_SHARD_COST_H
#define CD_SHARD_COST_H
#include "base/core/core.h"
#include "predictor/estimate/estimate.h"
#include "predictor/partition/shard/shard_plan.h"

/* The value for cd_shard_plan_options.steady. It was chosen on measured parts of 20 operators
 * (docs/reference/partition.md, Times of parts). */
#define CD_SHARD_COST_STEADY 0.5

typedef struct cd_shard_cost cd_shard_cost;
typedef struct cd_shard_cost_model { /* who answers for a device of the machine */
    const cd_model *model;           /* NULL: nobody, schedules alone */
    const char *device;              /* as that model calls it; NULL: what the target says */
    bool stands;                     /* `device` stands for the machine's */
    /* the machine's device's own, for analytic times; NULL: those of `device` */
    const cd_device_numbers *numbers;
    /* `device` is of another kind: descriptions of the machine's device and of `device`, of which
     * the rooflines' ratio multiplies times; NULL: of the same kind */
    const float *here, *there;
} cd_shard_cost_model;
typedef struct cd_shard_cost_options {
    /* (machine's n) they need not be of one model; NULL: no times, schedules alone */
    const cd_shard_cost_model *model;
    const cd_schedule_db *schedules; /* schedules of whole operators; may be NULL */
    const cd_machine *machine;
    const cd_shard_net *net;
    const cd_device_table *devices; /* features/device/device.h; may be NULL */
    const cd_network_cost *costs;   /* what a network costs over its operators; may be NULL */
    /* candidates beside the part's schedule that follows the whole's: mutations of it, drawn ones
     * where there is none. 0: CD_SCHEDULE_DB_TRIALS where there is none, 64 mutations where it
     * takes more than 1.15 times its share of the whole's time; else no candidates */
    uint32_t trials;
    uint64_t seed;
    /* (n_plain) sorted keys whose free parameters may not be packed (network_load.h) */
    const char *const *plain;
    size_t n_plain;
    /* an operator that nobody defines takes no time on device 0; else it has none anywhere */
    bool allow_missing;
    cd_threads *pool; /* NULL: one thread */
} cd_shard_cost_options;

/* Registers the tasks of all whole operators. What the options point to must outlive the object.
 * Errors: EINVALID (no machine, network or positive scale), ENOMEM, those of the model's header. */
cdmpp_status cd_shard_cost_new(const cd_shard_cost_options *a, CD_GIVE cd_shard_cost **out,
                               cdmpp_err *err);
void cd_shard_cost_free(CD_TAKE cd_shard_cost *p); /* NULL is fine */
cd_shard_plan_time cd_shard_cost_time;             /* ctx: a cd_shard_cost */
typedef cd_shard_plan_query cd_shard_cost_want;
/* Scores the questions that were not asked yet, on all threads of the pool. Called before a plan
 * asks them one by one. The parts need not outlive the call. Errors: EINVALID (no such operator or
 * device), ENOMEM, EBACKEND. */
cd_shard_plan_prepare cd_shard_cost_prepare; /* ctx: a cd_shard_cost */
/* Why there is no prediction. NULL: there is one, or the question was not asked. Valid until
 * free. */
cd_shard_plan_why cd_shard_cost_why; /* ctx: a cd_shard_cost */
/* *line: the record that the part runs with, without a newline; NULL: no schedule. Valid until
 * free. Errors: EINVALID (no such operator or device), ENOMEM, EBACKEND. */
cdmpp_status cd_shard_cost_schedule(cd_shard_cost *p, uint32_t op, uint32_t device,
                                    const cd_te_shard *part, CD_KEEP const char **line,
                                    cdmpp_err *err);
/* The registry with the tasks of all parts so far; whoever compiles a part finds its definition
 * there. */
CD_KEEP const cd_task_registry *cd_shard_cost_tasks(const cd_shard_cost *p);
/* Of the time of all whole operators on a device, the share whose programs are unlike those that
 * the model was trained on; of_s: the share with each reason (cd_trained_on_reason), which may add
 * up to more. Errors: those of cd_shard_cost_time. */
cdmpp_status cd_shard_cost_unlike(cd_shard_cost *p, uint32_t device, double of_s[CD_N_UNLIKE],
                                  double *share, cdmpp_err *err);
/* How far off the time of a whole operator on a device may be. Errors: those of
 * cd_shard_cost_time. */
typedef struct cd_shard_cost_doubts {
    double spread; /* standard deviation of ln(true / predicted); 0: not known */
    /* ends of its interval over the time; 1: it is known; NaN: nothing tells */
    double low, high;
    double least_s; /* what the device needs at best; 0: nobody knows */
} cd_shard_cost_doubts;
cdmpp_status cd_shard_cost_doubt(cd_shard_cost *p, uint32_t op, uint32_t device,
                                 cd_shard_cost_doubts *out, cdmpp_err *err);
/* The share of programs of each type that the model was not trained on. Errors: those of
 * cd_shard_cost_time. */
cdmpp_status cd_shard_cost_types(cd_shard_cost *p, uint32_t device, double share[CD_TE_N_LEAST],
                                 cdmpp_err *err);
/* The number of different questions that were asked; *failed (may be NULL): those of them without a
 * prediction. */
size_t cd_shard_cost_asked(const cd_shard_cost *p, size_t *failed);
#endif
