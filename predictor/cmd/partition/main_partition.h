/* main_partition -- what the parts of cdmpp-partition's own work share. Its verbs: main_partition_tools.h. Not in the library.
 *
 *   network ──┐
 *   model ────┼─> seconds of parts ──> plan and baselines ──┬─> tables, JSON, trace, page
 *   machine ──┘                                             └─> run here, measured in turns */
#ifndef CD_MAIN_PARTITION_H
#define CD_MAIN_PARTITION_H
#include <signal.h>

#include "base/cli/cli.h"
#include "predictor/network/network.h"
#include "predictor/partition/run/run.h"
#include "predictor/cmd/partition/main_partition_offload.h"
#include "predictor/cmd/partition/main_partition_tools.h"
#include "predictor/estimate/estimate.h"
#include "predictor/partition/placement/placement.h"

typedef struct cd_main_partition {
    /* what */
    cd_texts model, cost_model, network, dim, input, target, as, times;
    const char *devices, *machine, *descriptions, *layout;
    int batch, input_size;
    /* schedules */
    cd_texts records, schedules, store;
    int trials, seed, jobs;
    /* the plan */
    bool split, no_split, compare, stages, explain, run, verbose, list_patterns, mac;
    const char *dims, *margin, *least_us, *cover, *share, *rules, *plan;
    int granules, goal, stage_r, stage_s;
    /* the run */
    const char *budget;
    cd_texts inject;
    /* what is told */
    const char *save_plan, *lp, *html, *trace, *emit;
    /* numbers of the texts above */
    double margin_v, least_v, cover_v, share_v, budget_v;
    /* every command */
    bool json;
    size_t bad;                 /* lines of books and logs that cannot be used: exit status 3 */
    cd_log *log;
    const volatile sig_atomic_t *stop;
} cd_main_partition;

typedef struct cd_partition_stage {
    uint32_t block;
    cd_stage_plan plan;
    const uint32_t *op;         /* (n) the network's operators of the block's */
    const double *solo_s;       /* (n) alone */
    double measured_s, alone_measured_s; /* --run: NaN: not run */
} cd_partition_stage;

typedef struct cd_partition_stage_run_sum { /* --stages --run: sums over blocks that were run */
    bool done;
    uint32_t n, differ;         /* blocks; operators whose results differ from one after the other's */
    double predicted_s, seconds, alone_s;
} cd_partition_stage_run_sum;

typedef struct cd_partition_run_result {     /* --run */
    bool done;
    cd_plan_run_result now;    /* of the plan */
    double max_error;           /* results against the unsplit network's; NaN: not compared */
    uint32_t left;              /* baselines that cannot be run */
} cd_partition_run_result;

typedef struct cd_partition_job {
    cd_main_partition *o;
    cd_arena arena;
    cd_model_set models;
    const cd_model *model;      /* NULL: none */
    cd_machine all, machine;    /* as described; of --devices */
    const cd_hardware *hardware;
    cd_measure *measure;        /* --run */
    cd_threads *pool;
    cd_network_loaded live;
    cd_schedule_db *book;
    cd_shard_net net;
    cd_partition_offload offload;      /* --rules, --emit */
    cd_shard_cost *cost;
    cd_shard_plan_options ask;
    cd_shard_plan *plan;
    cd_shard_plan **base;             /* (n_base) NULL: the plan was given */
    uint32_t n_base;
    cd_place_plan placed;        /* --goal, --lp: the placement alone */
    bool has_placed;
    cd_partition_stage *stage;        /* (n_stage) --stages */
    uint32_t n_stage;
    double stages_s, alone_s, stage_search_s;
    cd_partition_stage_run_sum staged;
    cd_partition_run_result run;
} cd_partition_job;

/* ---- main_partition_machine.c: devices ---- */
/* Fills all and machine, with a device of the model and a target for each. Needs models. */
cdmpp_status cd_partition_machine(cd_partition_job *p, cdmpp_err *err);

/* ---- main_partition_load.c: models, network, rules; then schedules ---- */
cdmpp_status cd_partition_load(cd_partition_job *p, cdmpp_err *err);
cdmpp_status cd_partition_costs(cd_partition_job *p, cdmpp_err *err);
void cd_partition_free(cd_partition_job *p);

/* ---- main_partition_make.c: the plan ---- */
cdmpp_status cd_partition_plan(cd_partition_job *p, cdmpp_err *err);
cdmpp_status cd_partition_save_plan(const cd_partition_job *p, cdmpp_err *err); /* --save-plan */
double cd_partition_alone_s(const cd_partition_job *p, bool measured); /* of the better device alone; NaN: nobody knows */
bool cd_partition_is_alone(const cd_partition_job *p, const cd_shard_plan_baseline *b);

/* ---- main_partition_place.c: partition.h's problem ---- */
cdmpp_status cd_partition_place(cd_partition_job *p, cdmpp_err *err);

/* ---- main_partition_stages.c ---- */
cdmpp_status cd_partition_stages(cd_partition_job *p, cdmpp_err *err);
void cd_partition_print_stages(const cd_partition_job *p, cd_buf *b);
void cd_partition_json_stages(const cd_partition_job *p, cd_buf *b);

/* ---- main_partition_staged.c: --run of stages ---- */
cdmpp_status cd_partition_stage_run_check(const cd_partition_job *p, cdmpp_err *err); /* before anything is run */
cdmpp_status cd_partition_stage_run(cd_partition_job *p, cdmpp_err *err);
void cd_partition_print_stage_run(const cd_partition_job *p, cd_buf *b);
void cd_partition_json_stage_run(const cd_partition_job *p, cd_buf *b);

/* ---- main_partition_run.c ---- */
cdmpp_status cd_partition_run_check(cd_main_partition *o, cdmpp_err *err); /* --inject */
cdmpp_status cd_partition_run_open(cd_partition_job *p, cdmpp_err *err);             /* first of all: it forks */
cdmpp_status cd_partition_run_measure(cd_partition_job *p, cdmpp_err *err);

/* ---- what is told ---- */
void cd_partition_print(const cd_partition_job *p, cd_buf *b);         /* main_partition_tell.c */
void cd_partition_print_ops(const cd_partition_job *p, cd_buf *b);     /* main_partition_ops.c */
void cd_partition_shares(const cd_partition_job *p, const cd_shard_plan_op *op, cd_buf *b); /* "H cpu0 0..27, ocl0 27..56" */
double cd_partition_best_s(const cd_shard_plan *plan, const cd_shard_plan_op *op, uint32_t *device); /* of one device alone */
void cd_partition_json(const cd_partition_job *p, cd_buf *b);         /* main_partition_json.c */
cdmpp_status cd_partition_write_trace(const cd_partition_job *p, cdmpp_err *err); /* main_partition_html.c */
cdmpp_status cd_partition_write_html(const cd_partition_job *p, cdmpp_err *err);
extern const char *const cd_partition_page_body[], *const cd_partition_page_script[], *const cd_partition_page_drawing[]; /* main_partition_page.c */
#endif
