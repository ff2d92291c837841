/* partition -- which device runs which part of a network, decided from predictions.
 *
 *   network ──┐
 *   model ────┼─> seconds of shards ──> plan and baselines ──┬─> text, JSON, trace, page
 *   machine ──┘                                              │   (predictor/partition/report)
 *                                                            └─> run here, measured in turns
 *
 *   cd_partition_open     reads models, machine, network, rules
 *   cd_partition_make     seconds, then the plan and its baselines
 *   cd_partition_place    whole operators placed by --goal
 *   cd_partition_rules    placement under the rules, sources
 *   cd_partition_stages   operators of a block side by side
 *   cd_partition_measure  the plan run on this machine
 *
 * Steps are called in this order; cd_partition_compute calls those that the options ask for. For
 * cdmpp-partition and cdmpp_partition_network(). It never prints: messages go to options.log.
 * Seconds, bytes. One thread calls it; scoring starts threads of its own. */
#ifndef CD_PARTITION_H
#define CD_PARTITION_H
#include <signal.h>

#include "base/cli/cli.h"
#include "predictor/estimate/estimate.h"
#include "predictor/network/network.h"
#include "predictor/partition/placement/placement.h"
#include "predictor/partition/plan/partition_rules.h"
#include "predictor/partition/run/run.h"
#include "profiler/host/host.h"

/* How stages may use operators: one after the other, side by side, convolutions merged into one, or
 * the last two. */
#define CD_PARTITION_STAGES "parallel|sequential|merge|both|split"
enum {
    CD_PARTITION_STAGES_PARALLEL,
    CD_PARTITION_STAGES_SEQUENTIAL,
    CD_PARTITION_STAGES_MERGE,
    CD_PARTITION_STAGES_BOTH,
    CD_PARTITION_STAGES_SPLIT
};

/* What is planned, and how. 0 and NULL are defaults but where cd_partition_defaults() says
 * otherwise. All texts are borrowed. */
typedef struct cd_partition_options {
    const char *network; /* ONNX file, or name of the zoo */
    /* files of cdmpp-train: of those that know a device the first one answers for it; those in the
     * folders of $CDMPP_MODELS come behind them */
    cd_texts cost_model;
    /* "cpu0,ocl0": the first holds inputs and results; NULL: all of `machine`, else cpu0,ocl0 */
    const char *devices;
    /* file of cdmpp-partition link measure; NULL: cpuN and oclN as they usually are */
    const char *machine;
    const char *descriptions; /* of the cost model's devices; NULL: the usual ones */
    /* "granite-rapids" for all devices, "ocl0=granite-rapids" for one */
    cd_texts as, target;
    cd_texts times;        /* "ocl0=30": that device runs every program 30 times */
    cd_texts dim, input;   /* of ONNX files (cd_onnx_options) */
    const char *layout;    /* of CD_WORKLOAD_LAYOUTS; NULL: auto */
    int batch, input_size; /* 0: as the file says, as published */
    /* schedules */
    cd_texts records, schedules, store;
    int trials, seed, jobs; /* candidates of a shard; jobs 0: a thread for each CPU */
    /* the plan */
    bool no_split; /* every operator runs whole */
    /* operators that nobody defines stay on the first device, outside of the times; else there is
     * no plan */
    bool allow_missing;
    const char *dims; /* "H,N": dimensions to split; NULL: all that are legal */
    int granules;     /* shares are multiples of one n-th; 0: 8 */
    double margin, min_us, cover, fixed_share; /* cd_shard_plan_options; NaN: its defaults */
    int goal;       /* also place whole operators: 0 sum, 1 makespan; -1: do not */
    const char *lp; /* file for that placement as a 0/1 problem; NULL: none */
    int stages;     /* CD_PARTITION_STAGES_...: also stages of operators; -1: do not */
    int stage_length, stage_groups;
    /* ONNX file for the network with its convolutions merged, without the contents of its weights;
     * NULL: none */
    const char *save_merged;
    const char *rules;  /* file of rules (docs/reference/offload.md); NULL: none */
    bool mac;           /* regions without a multiply-add stay on the first device */
    bool list_patterns; /* only open: no cost model is needed */
    const char *emit;   /* folder for sources; NULL: none */
    const char *plan;   /* file of a plan to read; NULL: make one */
    /* the run */
    /* measure the plan and each device alone; compare: all baselines too */
    bool run, compare;
    double budget_s; /* for measuring, half of it for the comparison; 0: 4 */
    cd_texts inject; /* "slow:ocl0=3", "break:ocl0" */
    /* plan as if nobody else used the machine; else a device whose processor others use is planned
     * as slow as it is now */
    bool ignore_load;
    cd_log *log;                       /* NULL: no messages */
    const volatile sig_atomic_t *stop; /* not 0: stop soon; NULL: never */
} cd_partition_options;
/* Options in which every number is its default; network and cost model are missing. */
cd_partition_options cd_partition_defaults(void);

typedef struct cd_partition_stage {
    uint32_t block;
    cd_stage_plan plan;
    const uint32_t *op;                  /* (n) operators of the network that are the block's */
    const double *solo_s;                /* (n) alone */
    double measured_s, alone_measured_s; /* options.run; NaN: not run */
} cd_partition_stage;

typedef struct cd_partition_stage_sum { /* sums over the blocks that were run */
    bool done;
    /* blocks; operators whose results differ from one after the other's */
    uint32_t n, differ;
    double predicted_s, seconds, alone_s;
} cd_partition_stage_sum;

/* A network in stages. Blocks have the same numbers in the network as it is and in the one with
 * merged convolutions. */
typedef struct cd_partition_staging {
    const cd_network_loaded *loaded;
    const cd_shard_net *net;
    cd_shard_cost *cost;
    double *solo_s, *bytes; /* (net's operators) alone on the first device; read and written */
    /* (net's operators) pieces that the parallel loop of the program has; NULL: operators are not
     * split */
    int64_t *iterations;
    uint32_t *block;           /* (net's operators) */
    bool *is_merged;           /* (net's operators) several convolutions as one */
    uint32_t n_stage;          /* blocks */
    cd_partition_stage *stage; /* (n_stage) */
    double stages_s, alone_s;
    cd_partition_stage_sum staged;
} cd_partition_staging;

typedef struct cd_partition_merge {
    const char *name; /* of the operators that are one: "a+b" */
    uint32_t block;
    /* its operations over those of its members: kernels that are padded */
    double work;
    /* sum of the members' times; of the one, with all that cuts its result into parts; predicted */
    double parts_s, merged_s;
} cd_partition_merge;

typedef struct cd_partition_merged {
    bool has; /* it was asked for, and merging pays somewhere by prediction */
    cd_arena arena;
    cd_network_loaded loaded;
    cd_shard_net net;
    cd_partition_staging in;
    const uint32_t *origin;           /* (nodes of the merged graph) node of the network */
    uint32_t n_set, n_found, n_tried; /* merged; sets that could be; networks that were planned */
    const cd_partition_merge *set;    /* (n_set) */
    /* options.run: results against the network's as it is, by each one's largest value; NaN: not
     * compared */
    double max_error;
} cd_partition_merged;

typedef struct cd_partition_run_result {
    bool done;
    cd_plan_run_result now; /* of the plan; with options.inject of what became of it */
    double max_error;       /* results against the unsplit network's; NaN: not compared */
    /* 0..1: of the devices' processors, what others used meanwhile; NaN: the system does not say */
    double others;
    /* the baseline that measured best and is `plan` since; NULL: the plan is the predicted one */
    const char *kept;
    uint32_t left_out; /* baselines that cannot be run */
} cd_partition_run_result;

typedef struct cd_partition {
    const cd_partition_options *o;
    cd_arena arena;
    cd_model_set models;
    /* nobody named it: the device of the default model, or the only one, that stands for this
     * machine; NULL: not asked yet */
    const char *host;
    /* as described; of options.devices, with a device of the model and a target for each */
    cd_machine all, machine;
    cd_shard_cost_model by[CD_MACHINE_DEVICES]; /* who answers for each device */
    /* the same for people and files: as it was when the plan was made */
    cd_shard_plan_source source[CD_MACHINE_DEVICES];
    /* options.run: 0..1, what others left of each device's processor before */
    double left[CD_MACHINE_DEVICES];
    cd_measure *measure; /* options.run */
    cd_threads *pool;
    cd_network_loaded loaded;
    cd_schedule_db *schedules;
    cd_shard_net net;
    cd_partition_rules rules; /* options.rules, options.emit */
    cd_shard_cost *cost;
    cd_shard_plan_options how; /* as the plan was asked for */
    cd_shard_plan *plan;
    cd_shard_plan **base; /* (n_base) NULL: the plan was read */
    uint32_t n_base;
    cd_place_plan placed; /* options.goal */
    bool has_placed;
    cd_partition_staging plain; /* options.stages */
    cd_partition_merged merged;
    double stage_search_s;
    cd_partition_run_result run;
    /* plans and blocks of stages that were to be measured and were not */
    size_t n_not_run;
    size_t bad_lines; /* of schedules and logs that cannot be used */
} cd_partition;

/* Whether the options make sense together; opens no file. Errors: EUSAGE. */
cdmpp_status cd_partition_check(const cd_partition_options *o, cdmpp_err *err);
/* Into a zeroed one. The options are borrowed until free. With options.run it forks, so call it
 * before there are threads. Errors: EUSAGE (no cost model, an unknown name), EMODEL (no model for a
 * device), ESCHEMA (no link), those of the readers of models, machines, networks and rules; ENOMEM.
 * Free `p` after an error too. */
cdmpp_status cd_partition_open(const cd_partition_options *o, cd_partition *p, cdmpp_err *err);
/* Everything behind open that the options ask for. Errors: those of the steps; EINTERRUPTED
 * (options.stop). */
cdmpp_status cd_partition_compute(cd_partition *p, cdmpp_err *err);
void cd_partition_free(cd_partition *p); /* zeroed is fine */

/* ---- the steps ---- */
/* Seconds of shards, then the plan with its baselines, or the plan of a file. Errors: those of
 * cd_shard_plan_make and cd_shard_plan_read; ESCHEMA (a plan for other devices or another network),
 * EUSAGE (dims that no operator has). */
cdmpp_status cd_partition_make(cd_partition *p, cdmpp_err *err);
/* options.goal, options.lp. Errors: those of cd_place_solve_within */
cdmpp_status cd_partition_place(cd_partition *p, cdmpp_err *err);
/* Errors: ESCHEMA (an operator without a time), those of cd_stage_search */
cdmpp_status cd_partition_stages(cd_partition *p, cdmpp_err *err);
/* Stages on this machine, beside one operator after the other, values compared. check: before
 * anything is run. Errors: EUSAGE (a device that is no processor). */
cdmpp_status cd_partition_stage_run_check(const cd_partition *p, cdmpp_err *err);
cdmpp_status cd_partition_stage_run(cd_partition *p, cdmpp_err *err);

/* ---- the result ---- */
/* Seconds of the best device alone, predicted or measured; NaN: unknown. */
double cd_partition_alone_s(const cd_partition *p, bool measured);
/* Whether a baseline is the one of a single device. */
bool cd_partition_is_alone(const cd_partition *p, const cd_shard_plan_baseline *b);
/* The least time of an operator on one device alone, and which. */
double cd_partition_best_s(const cd_shard_plan *plan, const cd_shard_plan_op *op, uint32_t *device);
bool cd_partition_stopped(const cd_partition *p); /* options.stop */
/* others used more than CD_HOST_LOAD_LIMIT of the processors while the plan was measured */
bool cd_partition_disturbed(const cd_partition *p);
/* run.now is of a plan made again, not of `plan` */
bool cd_partition_ran_another(const cd_partition *p);
/* Errors: EIO, ENOMEM */
cdmpp_status cd_partition_save_plan(const cd_partition *p, const char *path, cdmpp_err *err);
/* The network's ONNX file, with the plan in its metadata, to another path or the same. Errors:
 * EUSAGE (a network of the zoo), those of cd_onnx_metadata_write. */
cdmpp_status cd_partition_annotate(const cd_partition *p, const char *path, cdmpp_err *err);
#define CD_PARTITION_PLAN_KEY "cdmpp.plan" /* of the metadata */
#endif
