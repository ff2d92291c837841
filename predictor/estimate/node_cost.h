/* node_cost -- a time for each node of a network on one device, and the net that simulates it.
 *
 *   TASK     its schedule ── scorer ──> seconds, interval
 *   GIVEN    the file's
 *   LIBRARY  opmodel ──> seconds, interval
 *   UNKNOWN  missing: named; no total unless allowed
 *
 * A TASK that is a matrix product in 16 or 8 bits, or elementwise in 16, may be answered as an
 * operator of a library, too (node_cost_size.c). A node that no model can score takes the time
 * that its file gives, is counted as given and says why. A time that the file says to be of
 * another device is none here.
 *
 *   (1) a node that cannot be scored is missing, with the reason; it never counts as 0 s silently:
 *       a total without it says which share is missing (by operations where all are known, else by
 *       number);
 *   (2) equal questions are asked once: nodes of one task and schedule share `like`;
 *   (3) overheads of the device (gap between operators, issue by the host) come from the caller;
 *       what a task takes longer in a network than alone is a fit of measured networks
 *       (network_cost.h); without one nothing is added;
 *   (4) of a schedule that was measured fastest the model's median is multiplied by what its
 *       training found for such (learner/train/selection_bias.h), apart for tasks that it was
 *       trained on and others; where the log has the slower ones, by how they are predicted.
 * One thread. Seconds. */
#ifndef CD_NODE_COST_H
#define CD_NODE_COST_H
#include "learner/llm_op/llm_op.h"
#include "learner/operators/operators.h"
#include "predictor/estimate/network_cost.h"
#include "predictor/network/network.h"
#include "predictor/replay/replay.h"
#include "predictor/estimate/schedule_db.h"

typedef enum cd_cost_source {
    CD_COST_MODEL,
    CD_COST_LIBRARY,
    CD_COST_GIVEN,
    CD_COST_RECORD,
    CD_COST_FREE,
    CD_COST_SCALED,
    CD_COST_MISSING
} cd_cost_source;
#define CD_COST_SOURCES "model|library|given|record|free|scaled|missing"

typedef struct cd_node_cost_entry {
    double seconds; /* of one run; NaN: missing */
    /* interval of the model's level; = seconds where known; NaN: the model has none */
    double low_s, high_s;
    /* what the device needs at best (features/device/device.h); 0: nobody knows */
    double least_s;
    double spread; /* standard deviation of ln(true/seconds) */
    /* part of its variance that operators of the device have in common, as far as known */
    double shared;
    double memory_share;  /* 0..1 */
    int64_t bytes, moved; /* of its result; read and written; -1: unknown */
    uint32_t like;        /* cd_replay_op.like */
    cd_cost_source source;
    uint32_t flags;  /* CD_MODEL_* */
    uint32_t reason; /* CD_UNLIKE_* */
    /* its number type is answered as this one, of as many bytes on the same units; NULL: as
     * itself */
    const char *alike;
    const char *unlike;   /* these reasons as a text; NULL: none */
    const char *schedule; /* origin, NULL: none */
    const char *why;      /* missing, or given because nobody can score it: the reason */
} cd_node_cost_entry;

typedef struct cd_node_cost {
    cd_arena arena;
    uint32_t n;               /* as the graph's nodes */
    cd_node_cost_entry *node; /* (n) */
    uint32_t n_missing, n_given, n_model, n_library;
    double missing_share; /* 0..1, see (1) */
    /* it is a share of the operations; else of the number of operators */
    bool missing_of_work;
    double traffic; /* bytes that a pass moves, as far as known */
} cd_node_cost;

typedef struct cd_node_cost_options {
    const cd_model *model;              /* NULL: no tasks can be scored */
    const cd_library_op_model *opmodel; /* NULL: no library operators */
    /* answers products in 16 and 8 bits and elementwise tasks in 16, on GPUs, in place of `model`;
     * NULL: nobody does */
    const cd_llm_op_asker *narrow;
    const cd_task_registry *tasks;
    const cd_schedule_db *schedules; /* schedules of the tasks; NULL: none */
    const char *device;              /* name in devices.yaml and in the model */
    const cd_device_table *devices;
    const char *stands; /* device of the model that answers for it; NULL: itself */
    /* what analytic times are computed with; NULL: with those of the device that answers */
    CD_KEEP const cd_device_numbers *numbers;
    /* tasks take the measured time of their schedule's record: checks the simulation apart from the
     * model */
    bool from_records;
    /* candidates that were drawn of each task without a schedule; 0: none were */
    uint32_t tried;
    bool from_given; /* every node that has given_s takes it */
    /* times of the file are taken whatever device they are of: `device` is not the name of one */
    bool any_times;
    /* 0: none. Of CPUs: tasks take longer than alone by their bytes read and written over this: in
     * a network they are not in the core's caches, as bench_network_run measures */
    double refill_bytes_per_s;
    const cd_network_cost *costs; /* fits of devices; NULL: none */
    /* tasks take as long as alone: nothing added for standing in a network */
    bool alone;
} cd_node_cost_options;

/* The device that the node's given_s was measured on: the node's, else the file's; NULL: the file
 * does not say. */
CD_KEEP const char *cd_node_cost_times_of(const cd_network_graph *g, uint32_t node);
/* Errors: EMODEL (device not known to any model: names those that are), ENOMEM; nodes that fail are
 * missing. */
cdmpp_status cd_node_cost_of(const cd_network_graph *g, const cd_node_cost_options *a,
                             CD_GIVE cd_node_cost **out, cdmpp_err *err);
void cd_node_cost_free(CD_TAKE cd_node_cost *c); /* NULL is fine */
/* Part of a node's time that the device's memory is busy: bytes / (peak * seconds), at most 1; 0
 * where either is unknown. */
double cd_node_cost_share(int64_t bytes, double seconds, const cd_device *d);
/* What training found for a program that was measured fastest of its task. */
typedef struct cd_node_cost_fastest {
    bool measured; /* its schedule was measured fastest */
    bool chosen;   /* and training found something for such */
    double ratio, spread;
    /* times the median, of one that nobody measured; 0: the mean, by the error that the model takes
     * it to have */
    double picks;
} cd_node_cost_fastest;
/* Time, interval and spread of a node, from the answer of a model. least_s: as of
 * cd_node_cost_entry. */
void cd_node_cost_predicted(cd_node_cost_entry *n, const cd_node_cost_fastest *f,
                            const cd_model_prediction *p, double least_s);
/* No predicted time, and no end of its interval, is below least_s afterwards; a time that was gets
 * the reason. */
void cd_node_cost_at_least(cd_node_cost_entry *n);
/* Counts and the missing share, after a node's time has changed. */
void cd_node_cost_tally(cd_node_cost *c, const cd_network_graph *g);

/* What a task takes in a network over what it takes alone; of a device without a fit nothing
 * more. */
typedef struct cd_node_cost_scaling_law {
    /* seconds times lift, plus call_s, plus bytes of weights at the rate of refill, where */
    double lift, call_s;
    double refill_bytes_per_s, stays_bytes; /* they are fewer than stays_bytes; 0: never */
} cd_node_cost_scaling_law;
/* Bytes of a network: what a pass moves, and its weights, of which a cache that holds all is asked
 * for none from one pass to the next. */
typedef struct cd_node_cost_bytes {
    double traffic, weights;
} cd_node_cost_bytes;
bool cd_node_cost_picks_rows(const char *op); /* of a table, as an embedding does; op NULL: no */
/* Weights of a graph; a table of which rows are picked counts as none. */
double cd_node_cost_weights(const cd_network_graph *g);
/* The description of a device. A machine that the model `m` is corrected for, and that has none,
 * has that of its stand-in: also for what a network adds to its operators, which no correction
 * measures. m, name NULL: none. NULL: there is none. */
CD_KEEP const cd_device *cd_node_cost_device(const cd_device_table *devices, const cd_model *m,
                                             const char *name);
/* d: description of the device `name` (NULL: no name), NULL: none. */
cd_node_cost_scaling_law cd_node_cost_law(const cd_network_cost *costs, const char *name,
                                          const cd_device *d, cd_node_cost_bytes bytes);
/* What the costs of a network alone say to a fit: all but the measured time. latency_s: of the
 * network with these costs. The rate of memory is that of one thread, where the description has it,
 * else of all. */
cd_network_cost_row cd_node_cost_row(const cd_node_cost *c, const cd_network_graph *g,
                                     const cd_device *d, double latency_s);
/* The same of a network whose nodes (g->n_node) were measured alone; NaN among them: alone_s is
 * NaN. */
cd_network_cost_row cd_node_cost_row_alone(const cd_network_graph *g, const cd_task_registry *t,
                                           const double *alone_s, const cd_device *d);
/* weight_bytes -1: not known. */
double cd_node_cost_law_s(const cd_node_cost_scaling_law *l, double seconds, int64_t weight_bytes);

/* "op=conv3,scale=0.5" or "op=conv3,seconds=1e-3"; op: a node's name, an operator type, or a
 * pattern with *. Applied to all that fit. Errors: EUSAGE (text), ESCHEMA (nothing fits; names the
 * nearest). */
cdmpp_status cd_node_cost_what_if(cd_node_cost *c, const cd_network_graph *g, const char *text,
                                  cdmpp_err *err);

typedef struct cd_node_cost_placement {
    uint32_t n_device, n_link;
    const cd_replay_device *device; /* (n_device) */
    const cd_replay_link *link;     /* (n_link) */
    const uint32_t *where;          /* (n_node) or NULL: all on device 0 */
} cd_node_cost_placement;
/* The net to replay: free nodes and repeats are taken out (edges go through; repeats are multiplied
 * in), missing ones refused unless `allow_missing` (then taken out as free ones). op i of the net
 * is node of[i]. cost (n_device): of each device. Errors: ESCHEMA (a missing node: its name and
 * why), ENOMEM. */
typedef struct cd_node_cost_net {
    cd_arena arena;
    cd_replay_net net;
    uint32_t *of; /* (net.n_op) */
} cd_node_cost_net;
/* The comment above says how; free *out with cd_node_cost_net_free. */
cdmpp_status cd_node_cost_net_make(const cd_network_graph *g,
                                   CD_KEEP const cd_node_cost *const *cost,
                                   const cd_node_cost_placement *p, bool allow_missing,
                                   CD_GIVE cd_node_cost_net **out, cdmpp_err *err);
void cd_node_cost_net_free(CD_TAKE cd_node_cost_net *r); /* NULL is fine */
#endif
