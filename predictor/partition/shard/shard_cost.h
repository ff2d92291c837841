/* shard_cost -- schedules and predicted seconds of parts of operators, for shard_plan.h and plan_run.h.
 *
 *   whole's schedule (book) ── follow (features/sketch/sketch.h) ──> the part's ──┐
 *   `trials` mutations of it, else drawn candidates of the part ─────────┴─> best predicted ──> record, seconds
 *
 *   (1) a part is a task of its own in a registry of this object; equal parts are asked once; the same schedule serves what
 *       the plan predicts and what is run;
 *   (2) seconds are of the machine's device: model's device `as` times scale, as many times as it runs each program (times), with
 *       what a task takes longer in a network (node_cost.h, cd_node_cost_law), of a part by the part's own weights;
 *   (3) a part that cannot be scored: `measured` (below) is asked; without it infinity, and the reason is kept;
 *   (4) measured: seconds of (key, device) that were really measured take the prediction's place where they are given.
 *   (5) equal questions have equal answers, whatever was asked before, together or alone, with any number of threads.
 * One thread calls. Seconds. */
#ifndef CD_SHARD_COST_H
#define CD_SHARD_COST_H
#include "base/core/core.h"
#include "predictor/estimate/estimate.h"
#include "predictor/partition/shard/shard_plan.h"

/* For cd_shard_plan_options.steady: chosen on 20 operators' parts that were measured (docs/reference/partition.md, Times of parts). */
#define CD_SHARD_COST_STEADY 0.5

typedef struct cd_shard_cost cd_shard_cost;
typedef struct cd_shard_cost_options {
    const cd_model *model;      /* NULL: measured times alone */
    const cd_schedule_db *book;   /* schedules of whole operators; may be NULL */
    const cd_machine *machine;
    const cd_shard_net *net;
    const cd_device_table *devices;  /* features/device/device.h; may be NULL */
    uint32_t trials;            /* candidates beside the one that follows: its mutations, drawn where nothing follows. 0: 64 where nothing follows, or
                                 * what follows is more than 1.15 times its share of the whole's time; else none */
    uint64_t seed;
    const char *const *plain;   /* (n_plain) sorted keys whose free parameters may not be packed (network_load.h) */
    size_t n_plain;
    cd_threads *pool;           /* NULL: one thread */
} cd_shard_cost_options;

cdmpp_status cd_shard_cost_new(const cd_shard_cost_options *a, CD_GIVE cd_shard_cost **out, cdmpp_err *err);
void cd_shard_cost_free(CD_TAKE cd_shard_cost *p); /* NULL is fine */
cd_shard_plan_time cd_shard_cost_time; /* ctx: a cd_shard_cost */
typedef cd_shard_plan_query cd_shard_cost_want;
/* Scores those that were not asked yet, on all threads of the pool: before a plan, so that its questions one by one find their answers.
 * Needs no part afterwards. Errors: EINVALID (no such operator or device), ENOMEM. */
cd_shard_plan_prepare cd_shard_cost_prepare; /* ctx: a cd_shard_cost */
/* Why there is no answer, or none but the measured one; NULL: there is one, or nobody asked. Valid until free. */
CD_KEEP const char *cd_shard_cost_why(const cd_shard_cost *p, uint32_t op, uint32_t device, const cd_te_shard *part);
/* The record that part runs with (NULL: no schedule), valid until free. */
cdmpp_status cd_shard_cost_schedule(cd_shard_cost *p, uint32_t op, uint32_t device, const cd_te_shard *part, CD_KEEP const char **line, cdmpp_err *err);
/* The registry with all parts' tasks so far: definitions for who compiles them. */
CD_KEEP const cd_task_registry *cd_shard_cost_tasks(const cd_shard_cost *p);
/* (4). Errors: ERANGE, ENOMEM. */
cdmpp_status cd_shard_cost_tell(cd_shard_cost *p, const char *workload_key, uint32_t device, double seconds, cdmpp_err *err);
size_t cd_shard_cost_asked(const cd_shard_cost *p, size_t *failed); /* different parts asked and scored; of them without an answer */
#endif
