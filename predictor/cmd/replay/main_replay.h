/* main_replay -- what the parts of cdmpp-replay share. Not in the library.
 *
 *   graphs ─┐
 *   models ─┼─> case: network x device x batch ─> costs ─> replay ─> table, JSON, CSV, trace, page
 *   books  ─┘
 *
 * A case that fails keeps its error; the others go on. */
#ifndef CD_MAIN_REPLAY_H
#define CD_MAIN_REPLAY_H
#include <signal.h>
#include <string.h>

#include "base/cli/cli.h"
#include "predictor/estimate/estimate.h"
#include "predictor/partition/run/run.h"
#include "predictor/replay/replay.h"

typedef struct cd_main_replay {
    /* what */
    cd_texts graph, model, cost_model, network, tasks, dim, input;
    const char *device, *batch, *layout, *devices, *save_graph;
    cd_texts target;
    int input_size;
    bool training;
    /* schedules */
    cd_texts records, schedules, store;
    const char *save_schedules, *cache;
    int trials, seed;
    /* costs */
    bool allow_missing, nearest, from_records, replay_given;
    cd_texts what_if;
    /* queues */
    int policy, workers;        /* policy -1: the device's */
    const char *gap_us, *issue_us, *link_gbs, *link_us, *level, *shared, *refill_gbs, *parallel;
    /* what is told */
    bool ops, csv, measured, run, cpu_time, verbose;
    const char *trace, *html, *prices, *deadline_ms;
    int jobs;
    /* numbers of the texts above */
    double gap_s, issue_s;      /* NaN: the device's */
    double refill_bytes_per_s;  /* 0: none */
    double link_bytes_per_s, link_latency_s, level_v, shared_v, deadline_s; /* deadline NaN: none */
    cd_parallel_plan plan;              /* --parallel */
    /* every command */
    bool json;
    cd_log *log;
    const volatile sig_atomic_t *stop;
    size_t bad;                 /* cases that failed: exit code 3 */
    size_t bad_lines;           /* of books and logs that cannot be used: the same */
} cd_main_replay;

/* ---- main_replay_graphs.c: what is replayed ---- */
typedef struct cd_main_replay_source {
    const char *name;           /* no other network's */
    const char *given;          /* file or network as it was asked for */
    const char *target;         /* of a network that was loaded for it; NULL: a graph of a file */
    int64_t asked;              /* batch */
    int64_t batch;              /* as loaded; 0: unknown */
    cd_network_loaded *live;              /* NULL: of a file */
    const cd_network_graph *graph;
    cd_network_graph *owned;         /* NULL: live's */
    const cd_task_registry *tasks;
    int64_t weight_bytes;       /* of a graph: with inputs that are nodes; -1: unknown */
    int64_t input_bytes;        /* of a network that was loaded; else 0 */
    cdmpp_status st;            /* why there is none */
    cdmpp_err err;
} cd_main_replay_source;

typedef struct cd_main_replay_device {
    const char *name;
    const cd_device *about;     /* NULL: not described */
    const char *target;
    cd_hardware hardware;
    bool gpu;
    const cd_model *model;      /* NULL: none of tasks */
    const cd_library_op_model *opmodel;
    cd_schedule_db *book;         /* of --schedules, --records, --store, then candidates; NULL: not read yet */
    struct cd_main_replay_device *next;  /* of those that only graphs name */
    double price;               /* an hour; NaN */
    const char *currency;
} cd_main_replay_device;

/* Memory of a device that a case uses. */
typedef struct cd_main_replay_use {
    int64_t peak;               /* results alive at once, weights, inputs; of results alone where weights are unknown; -1: unknown */
    int64_t least;              /* peak as far as sizes are known */
    int64_t weights;            /* -1: unknown */
    int64_t memory;             /* 0: unknown */
} cd_main_replay_use;

typedef struct cd_main_replay_case {
    cd_main_replay_source *source;
    cd_main_replay_device *device;
    cd_main_replay_device **place;       /* (n_place) the case's own, then those that nodes name */
    cd_node_cost **cost;          /* (n_place) of all nodes there */
    cd_replay_device *lane;     /* (n_place) */
    cd_replay_link *link;       /* (n_link) */
    uint32_t n_place, n_link;
    uint32_t *where;            /* (n_node); NULL: all on the first */
    size_t n_task, n_bare;      /* distinct tasks; those without a schedule in the logs that were given */
    double ops_s;               /* of all operators */
    double given_s;             /* of them, those that took the file's time */
    double unlike_s;            /* of them, those whose programs are unlike what the model was trained on */
    cd_node_cost_net *net;
    cd_replay replay;
    cd_replay_interval interval;
    double before_s;            /* without --what-if; NaN */
    cd_parallel_result cluster;         /* --parallel */
    cd_network_run *ran;           /* --run; NULL: not run */
    double run_s;               /* of a pass; NaN */
    cd_main_replay_use *use;             /* (n_place) */
    uint32_t fullest;           /* of use: one that has too little; else of the largest peak */
    double missing_share;       /* of all places */
    cdmpp_status st;
    cdmpp_err err;
} cd_main_replay_case;

typedef struct cd_main_replay_plan {
    cd_main_replay *o;
    cd_arena arena;
    cd_model_set models;
    cd_task_registry *tasks;            /* of --tasks */
    cd_main_replay_device *device;       /* (n_device) asked for */
    size_t n_device;
    cd_main_replay_device *more;         /* list */
    cd_main_replay_source **source;      /* (n_source) */
    size_t n_source, cap_source;
    cd_main_replay_case *item;           /* (n_item) */
    size_t n_item;
    bool graphs;                /* of graph files alone: one device, JSON by name */
    const char *reading;        /* file */
    cd_threads *pool;
    cd_measure *measure;        /* --run */
    int64_t *batch;             /* (n_batch) asked for; 0: as the file says */
    size_t n_batch;
} cd_main_replay_plan;
cdmpp_status cd_main_replay_plan_check(const cd_main_replay *o, cdmpp_err *err);
cdmpp_status cd_main_replay_plan_make(cd_main_replay_plan *p, cdmpp_err *err);
void cd_main_replay_plan_free(cd_main_replay_plan *p);
/* "v100,k80" apart, in the arena. */
cdmpp_status cd_main_replay_split_list(cd_arena *a, const char *list, CD_KEEP const char ***out, size_t *n, cdmpp_err *err);

/* ---- main_replay_devices.c: devices, their targets and queues ---- */
cdmpp_status cd_main_replay_devices(cd_main_replay_plan *p, cdmpp_err *err);
/* One that a graph names. Errors: EMODEL (no model knows it). */
cdmpp_status cd_main_replay_device_get(cd_main_replay_plan *p, const char *name, CD_KEEP cd_main_replay_device **out, cdmpp_err *err);
/* A queue of the device as --policy, --workers, --gap-us and --issue-us have it. */
cd_replay_device cd_main_replay_queue(const cd_main_replay *o, const cd_model_set *m, const char *name);

/* ---- main_replay_sources.c: graphs are read, networks loaded ---- */
cdmpp_status cd_main_replay_sources(cd_main_replay_plan *p, cdmpp_err *err);

/* ---- main_replay_names.c: two networks of one name are told apart. Errors: ENOMEM ---- */
cdmpp_status cd_main_replay_unique_names(cd_main_replay_plan *p, cdmpp_err *err);

/* ---- main_replay_memory.c ---- */
void cd_main_replay_weights(cd_main_replay_source *s); /* fills weight_bytes and input_bytes: what stays in memory between runs */
/* Fills use and fullest of a case that was replayed. Errors: ENOMEM. */
cdmpp_status cd_main_replay_memory(cd_main_replay_plan *p, cd_main_replay_case *c, cdmpp_err *err);
typedef enum cd_main_replay_fit { CD_MAIN_REPLAY_NO, CD_MAIN_REPLAY_YES, CD_MAIN_REPLAY_UNKNOWN } cd_main_replay_fit;
cd_main_replay_fit cd_main_replay_use_fits(const cd_main_replay_use *u);
cd_main_replay_fit cd_main_replay_fits(const cd_main_replay_case *c); /* all of its devices */

/* ---- main_replay_books.c: schedules ---- */
/* The device's book holds what the graph's tasks run with, as far as there is anything. */
cdmpp_status cd_main_replay_schedules(cd_main_replay_plan *p, cd_main_replay_case *c, cd_main_replay_device *d, cdmpp_err *err);
cdmpp_status cd_main_replay_save_schedules(cd_main_replay_plan *p, cdmpp_err *err);

/* ---- main_replay_save.c: --save-graph. Errors: EIO, ENOMEM ---- */
cdmpp_status cd_main_replay_save_graph(cd_main_replay_plan *p, cdmpp_err *err);

/* ---- main_replay_case.c: one case ---- */
void cd_main_replay_case_run(cd_main_replay_plan *p, cd_main_replay_case *c);
void cd_main_replay_case_free(cd_main_replay_case *c);
/* "resnet-50, v100, batch 4" */
void cd_main_replay_case_name(const cd_main_replay_plan *p, const cd_main_replay_case *c, cd_buf *b);
/* Cost of node i on the device where it runs. */
const cd_node_cost_entry *cd_main_replay_case_cost(const cd_main_replay_case *c, uint32_t node);
double cd_main_replay_throughput(const cd_main_replay_case *c); /* items a second; NaN: batch unknown */
double cd_main_replay_price(const cd_main_replay_case *c);      /* of a million inferences; NaN */
const cd_network_node *cd_main_replay_node(const cd_main_replay_case *c, uint32_t op);
/* Error of the prediction against what the file measured; NaN. */
double cd_main_replay_error(const cd_main_replay_case *c, double measured_s);

/* ---- main_replay_run.c: the network run here ---- */
/* First of all: it forks. Nothing without --run. */
cdmpp_status cd_main_replay_run_open(cd_main_replay_plan *p, cdmpp_err *err);
/* What cannot be run is a warning: the estimate stands. */
void cd_main_replay_run(cd_main_replay_plan *p, cd_main_replay_case *c);

/* ---- main_replay_price.c ---- */
cdmpp_status cd_main_replay_prices(cd_main_replay_plan *p, cdmpp_err *err);
/* The cheapest case of this network under the deadline, of those that fit; NULL: none. */
const cd_main_replay_case *cd_main_replay_cheapest(const cd_main_replay_plan *p, const char *network);

/* ---- what is told ---- */
void cd_main_replay_print(const cd_main_replay_plan *p, cd_buf *b);      /* main_replay_tell.c */
void cd_main_replay_print_ops(const cd_main_replay_plan *p, const cd_main_replay_case *c, cd_buf *b);
void cd_main_replay_json(const cd_main_replay_plan *p, cd_buf *b);      /* main_replay_json.c */
void cd_main_replay_csv(const cd_main_replay_plan *p, cd_buf *b);       /* main_replay_csv.c */
cdmpp_status cd_main_replay_write_trace(const cd_main_replay_plan *p, cdmpp_err *err);
cdmpp_status cd_main_replay_write_html(const cd_main_replay_plan *p, cdmpp_err *err); /* main_replay_html.c */
/* Lines; NULL ends. */
extern const char *const cd_main_replay_page_body[];                                 /* main_replay_page.c */
extern const char *const cd_main_replay_page_script[], *const cd_main_replay_page_drawing[];  /* main_replay_script.c, main_replay_drawing.c */

/* ---- main_replay_cluster.c: --parallel ---- */
cdmpp_status cd_main_replay_parallel_plan(cd_main_replay *o, cdmpp_err *err);
cdmpp_status cd_main_replay_parallel(const cd_main_replay_plan *p, cd_main_replay_case *c, cdmpp_err *err);
void cd_main_replay_parallel_json(const cd_main_replay_plan *p, const cd_main_replay_case *c, cd_buf *b);
#endif
