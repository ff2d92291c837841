/* The door of predictor/network_estimate: how long networks take on devices, before they are run
 * there.
 *
 *   graphs ─────────────┐
 *   cost models ────────┼─> case: network x device x batch ─> node costs ─> simulated queues
 *   schedule databases ─┘     ─> latency, interval, memory
 *
 * For cdmpp-replay, which prints the result with predictor/network_report, and for
 * cdmpp_estimate_network() of cdmpp.h. It takes file names and limits, and gives a table of cases.
 * A case that fails keeps its error and the others go on. It never prints: messages go to
 * options.log. Seconds, bytes. One thread calls it; the search for schedules starts threads of its
 * own. */
#ifndef CD_NETWORK_ESTIMATE_H
#define CD_NETWORK_ESTIMATE_H
#include <signal.h>

#include "base/cli/cli.h"
#include "predictor/estimate/estimate.h"
#include "predictor/partition/run/run.h"
#include "predictor/replay/replay.h"
#include "profiler/curves/curves.h"

typedef struct cd_network_estimate_options {
    /* networks */
    cd_texts graph;   /* files of cd_network_graph_read_good */
    cd_texts network; /* ONNX files, names of the zoo, networks that `tasks` know */
    /* files of cdmpp-train; those in the folders of $CDMPP_MODELS come behind them */
    cd_texts cost_model;
    cd_texts mixed; /* each either a cost model or a network: its content decides */
    cd_texts tasks; /* task definitions of graphs */
    /* "v100,k80", "here,v100", "1,4" or a range "1..64", "1..64:7"; NULL: the only one that is
     * known, as the file says */
    const char *device, *batch;
    const char *devices; /* descriptions; NULL: the usual ones */
    cd_texts target;     /* "cuda -model=v100", or of one device "v100=cuda -model=v100" */
    /* of ONNX files (cd_onnx_options); one of dim may be a range, "seq=16..512" */
    cd_texts dim, input;
    const char *layout; /* of CD_WORKLOAD_LAYOUTS; NULL: auto */
    int input_size;     /* of networks of the zoo; 0: as published */
    bool training;      /* an iteration of training */
    /* schedules */
    /* schedule databases, measure logs, stores: the first that knows a task decides */
    cd_texts schedules, records, store;
    const char *cache; /* folder of chosen candidates; "": none, NULL: the user's */
    /* candidates of a task; 0: CD_SCHEDULE_DB_TRIALS, and none where schedules are given */
    int trials;
    int seed, jobs; /* jobs 0: a thread for each CPU */
    /* node costs */
    bool allow_missing; /* a total without the operators that cannot be scored */
    /* a device that no model knows and nobody describes is taken for the only one that a model
     * knows */
    bool nearest;
    bool from_records; /* tasks take the measured time of their record */
    bool replay_given; /* operators take the times in the graph */
    /* nothing is added for standing in a network: what a fit starts from */
    bool alone;
    cd_texts what_if;          /* cd_node_cost_what_if */
    double refill_bytes_per_s; /* cd_node_cost_options; 0: none */
    /* queues */
    int policy, workers;                     /* cd_replay_policy, -1: the device's; 0: 1 */
    double gap_s, issue_s;                   /* NaN: the device's */
    double link_bytes_per_s, link_latency_s; /* between devices of one graph */
    double level, shared;                    /* cd_replay_sample */
    const char *parallel;                    /* cd_parallel_plan_parse; NULL: none */
    /* the networks run here */
    bool run, run_ops, cpu_time; /* run_ops: each operator alone too */
    bool says_device;            /* the caller reports what stands in: no message of it */
    /* Called after each estimate; NULL: not called. */
    void (*step)(void *ctx, size_t done, size_t all);
    void *step_ctx;
    cd_log *log;                       /* NULL: no messages */
    const volatile sig_atomic_t *stop; /* not 0: stop soon; NULL: never */
} cd_network_estimate_options;
/* Everything as the fields above call their default. */
cd_network_estimate_options cd_network_estimate_defaults(void);

/* A network for one batch and one kind of device. */
typedef struct cd_network_estimate_source {
    const char *name;          /* unique: of the second "resnet", "resnet#2" */
    const char *given;         /* file or network as it was asked for */
    const char *target;        /* that it was loaded for; NULL: a graph of a file */
    bool asked_for;            /* by name, loaded for a batch: not a graph of a file */
    int64_t asked;             /* batch */
    int64_t size;              /* of the dimension that has a range; 0: none has */
    int64_t batch;             /* as loaded; 0: unknown */
    cd_network_loaded *loaded; /* NULL: a graph of a file */
    const cd_network_graph *graph;
    cd_network_graph *owned; /* NULL: loaded's */
    const cd_task_registry *tasks;
    int64_t weight_bytes; /* of a graph: with inputs that are nodes; -1: unknown */
    int64_t input_bytes;  /* of a network that was loaded; else 0 */
    cdmpp_status st;      /* why there is no graph */
    cdmpp_err err;
} cd_network_estimate_source;

typedef struct cd_network_estimate_device {
    const char *name;
    /* in answers: its name, or "here" where that was given and another device stands for this
     * machine */
    const char *label;
    /* what records of this machine call it, where it stands for this machine; NULL: nothing else */
    const char *also;
    const cd_device *about; /* NULL: not described */
    const char *target;     /* of its programs, with the vectors that they are scored for */
    /* the same as it was given: what is run here has the vectors that are here */
    const char *runs;
    cd_hardware hardware;
    bool gpu;
    bool unnamed;          /* nobody named one: times of the file are enough */
    const cd_model *model; /* of tasks; NULL: none */
    /* device of the model that answers for it; NULL: the model knows it */
    const char *stands;
    /* no name, or "here": it is this machine, and `stands`, which is `name` then, is only the
     * nearest that the model knows */
    bool guessed;
    /* its own, for analytic times that another device's model computes; NULL: those of the device
     * that answers */
    const cd_device_numbers *numbers;
    /* it is of another kind: the programs are its, their times go by the peaks of both */
    bool scaled;
    bool said_stands, said_costs; /* in a message */
    const cd_library_op_model *opmodel;
    const cd_llm_op_asker *narrow;
    cd_schedule_db *schedules; /* those that are given, then candidates; NULL: not read yet */
    struct cd_network_estimate_device *next; /* of those that only graphs name */
} cd_network_estimate_device;

/* Memory of a device that a case uses. */
typedef struct cd_network_estimate_use {
    /* results alive at once, weights, inputs; of results alone where weights are unknown; -1:
     * unknown */
    int64_t peak;
    int64_t least;   /* peak as far as sizes are known */
    int64_t weights; /* -1: unknown */
    int64_t memory;  /* 0: unknown */
} cd_network_estimate_use;

typedef struct cd_network_estimate_case {
    cd_network_estimate_source *source;
    cd_network_estimate_device *device;
    cd_network_estimate_device **place; /* (n_place) the case's own, then those that nodes name */
    cd_node_cost **cost;                /* (n_place) of all nodes there */
    cd_replay_device *lane;             /* (n_place) */
    cd_replay_link *link;               /* (n_link) */
    uint32_t n_place, n_link;
    uint32_t *where; /* (n_node); NULL: all on the first */
    /* distinct tasks; those without a schedule in the logs that were given */
    size_t n_task, n_bare;
    double ops_s;   /* sum of all operators */
    double given_s; /* of them, those that took the file's time */
    /* of the whole in the file, if measured on this device; NaN */
    double measured_s, measured_median_s;
    bool unsaid; /* times were used of which the file does not say the device */
    /* of them, those whose programs are unlike what the model was trained on */
    double unlike_s;
    /* of these, those that are unlike in more than their device, its instructions and threads */
    double unlike_else_s;
    /* of these, those with each reason; a program may have several */
    double unlike_of_s[CD_N_UNLIKE];
    cd_node_cost_net *net;
    cd_replay replay;
    cd_replay_interval interval;
    const char *no_interval;    /* why its ends are NaN; NULL: they are not */
    double before_s;            /* without options.what_if; NaN */
    cd_parallel_result cluster; /* options.parallel */
    cd_network_run *ran;        /* options.run; NULL: not run */
    double run_s;               /* of a pass; NaN */
    /* 0..1: what others left of the processor that they used most, before the run; 0: not looked */
    double run_left;
    cd_network_estimate_use *use; /* (n_place) */
    /* of use: one that has too little; else the one with the largest peak */
    uint32_t fullest;
    double missing_share; /* over all places */
    bool missing_of_work; /* cd_node_cost */
    /* (n_place) standard deviation of ln(true / predicted) that all tasks there have in common,
     * beside the model's */
    double *spread;
    double device_spread; /* of the network; 0: none */
    cdmpp_status st;
    cdmpp_err err;
} cd_network_estimate_case;

/* A network on a device over a range of sizes. */
typedef struct cd_network_estimate_curve {
    const cd_network_estimate_case *first; /* of the least size: network and device */
    size_t n;                              /* sizes with an estimate */
    const cd_network_estimate_case **of;   /* (n) */
    int64_t *size;                         /* (n) ascending */
    double *seconds, *low_s, *high_s;      /* (n) latency and its interval */
    cd_perf_curve law, low, high;          /* through each of the three */
    cdmpp_status st;                       /* why there is no law */
    cdmpp_err err;
    bool has_one; /* one schedule of each task for all sizes: */
    /* (n) share by which the sum of operators is above that with the best schedules of the size: >=
     *     0 */
    double *loss;
    /* (n) share of operators that no one schedule fits at all sizes: they keep the best of each */
    double *apart;
    const char *why_not; /* why there is none; "" */
} cd_network_estimate_curve;

typedef struct cd_network_estimate {
    const cd_network_estimate_options *o;
    cd_arena arena;
    cd_model_set models;
    cd_task_registry *tasks; /* of options.tasks */
    cd_parallel_plan parallel;
    cd_network_estimate_device *device; /* (n_device) asked for */
    size_t n_device;
    cd_network_estimate_device *more;    /* list of those that only graphs name */
    cd_network_estimate_source **source; /* (n_source) */
    size_t n_source, cap_source;
    cd_network_estimate_case *item; /* (n_item) */
    size_t n_item;
    /* graph files alone on one device: a case is named by its network */
    bool graphs;
    const char *reading; /* file */
    bool said_interval;  /* that times which were given have none */
    cd_threads *pool;
    cd_measure *measure; /* options.run */
    int64_t *batch;      /* (n_batch) asked for; 0: as the file says */
    size_t n_batch;
    const char *over; /* "batch", or the dimension with a range; NULL: none has */
    size_t range_dim; /* of options.dim; SIZE_MAX: none */
    int64_t *size;    /* (n_size) of the range, ascending */
    size_t n_size;
    cd_network_estimate_curve *curve; /* (n_curve) of networks with a range, after run */
    size_t n_curve;
    /* cases without a result, and networks that could not be kept as one */
    size_t n_failed;
    size_t n_not_run; /* of options.run, those that were not run as a whole */
    size_t bad_lines; /* of logs and schedule databases that cannot be used */
} cd_network_estimate;

/* Whether the options make sense together; no file is read but to tell models from networks.
 * Errors: EUSAGE. */
cdmpp_status cd_network_estimate_check(const cd_network_estimate_options *o, cdmpp_err *err);
/* Reads networks, models and descriptions, and makes the list of cases. The options are borrowed
 * until free; *e is zeroed by the caller and freed even after an error. With options.run it forks,
 * so call it before there are threads. Errors: EUSAGE, EMODEL (no model for a device), those of the
 * readers of models, tasks and networks, ERANGE, ENOMEM. */
cdmpp_status cd_network_estimate_open(const cd_network_estimate_options *o, cd_network_estimate *e,
                                      cdmpp_err *err);
/* Estimates every case. Errors: EINTERRUPTED (options.stop); where no case succeeds, the error of
 * the first one. */
cdmpp_status cd_network_estimate_run(cd_network_estimate *e, cdmpp_err *err);
void cd_network_estimate_free(cd_network_estimate *e); /* zeroed is fine */
/* All networks in our own graph form; before or after run. Errors: EIO, ENOMEM. */
cdmpp_status cd_network_estimate_save_graph(cd_network_estimate *e, const char *path,
                                            cdmpp_err *err);
/* The schedules that the cases used; "s.json" of several devices: "s.v100.json", ... Errors: EIO,
 * ENOMEM. */
cdmpp_status cd_network_estimate_save_schedules(cd_network_estimate *e, const char *path,
                                                cdmpp_err *err);

/* What networks cost over their operators (network_cost.h), fitted on the measured ones of a run
 * with options.alone on one device, into a file. Errors: EUSAGE (not one device), those of
 * cd_network_cost_fit_rows and cd_network_cost_save. */
cdmpp_status cd_network_estimate_fit_costs(cd_network_estimate *e, const char *path,
                                           cdmpp_err *err);

/* Latency and interval at any size of the range: as estimated where it was, else by the law; no
 * interval (NaN) between sizes of which one has none. Only where c->st is OK. */
void cd_network_estimate_curve_at(const cd_network_estimate_curve *c, int64_t size, double *seconds,
                                  double *low, double *high, bool *estimated);
/* For tables: of the estimated sizes and the doublings between them the first above `size`; 0:
 * there is none. */
int64_t cd_network_estimate_curve_next(const cd_network_estimate *e, int64_t size);

/* "resnet-50, v100, batch 4" */
void cd_network_estimate_case_name(const cd_network_estimate *e, const cd_network_estimate_case *c,
                                   cd_buf *b);
/* Cost of a node of the graph on the device where it runs. */
const cd_node_cost_entry *cd_network_estimate_case_cost(const cd_network_estimate_case *c,
                                                        uint32_t node);
/* Node of operator `op` of the simulated net. */
const cd_network_node *cd_network_estimate_node(const cd_network_estimate_case *c, uint32_t op);
/* (n_op) whether each operator is on the critical path, the caller's to free; NULL: out of
 * memory. */
CD_GIVE bool *cd_network_estimate_critical(const cd_network_estimate_case *c);
/* items a second; NaN: batch unknown */
double cd_network_estimate_throughput(const cd_network_estimate_case *c);
/* Cores of a processor that its times are of; 0: a GPU, or nobody says. */
double cd_network_estimate_cores(const cd_network_estimate *e, const cd_network_estimate_device *d);
/* Relative error of the latency against measured_s; NaN: measured_s is not above 0. */
double cd_network_estimate_error(const cd_network_estimate_case *c, double measured_s);

/* Whether the memory of a device (of all devices of a case) is enough. */
typedef enum cd_network_fits {
    CD_NETWORK_FITS_NO,
    CD_NETWORK_FITS_YES,
    CD_NETWORK_FITS_UNKNOWN
} cd_network_fits;
cd_network_fits cd_network_estimate_use_fits(const cd_network_estimate_use *u);
cd_network_fits cd_network_estimate_fits(const cd_network_estimate_case *c);
/* Seconds by programs that are unlike those of the training, as the table and the warning count
 * them: in more than their device where another one stands in for it. */
double cd_network_estimate_unlike_s(const cd_network_estimate_case *c);
/* "dtype 4 %, operator kind 12 %": shares of the time with each reason, without those of less than
 * a hundredth; "" where none is. */
enum { CD_NETWORK_ESTIMATE_WHY = CD_UNLIKE_SHARES };
void cd_network_estimate_unlike(const cd_network_estimate_case *c,
                                char why[CD_NETWORK_ESTIMATE_WHY]);
/* The graph whose notes (cd_graph_note) tell what was guessed as this network was read; NULL: it
 * was not read from a file, or an earlier source of the same file has them. */
const cd_graph *cd_network_estimate_notes(const cd_network_estimate *e,
                                          const cd_network_estimate_source *s);
#endif
