/* plan_run_internal -- private to plan_run*.c: a plan while it becomes actions, and what of it
 * runs.
 *
 *   plan ──> piece[]    a part, a join, a whole operator: definition, boxes of its arguments
 *        ──> program[]  what pieces run, each distinct text once
 *        ──> buffers, actions (multi.h), and `of`: which operator and part an action is
 *
 *   (1) piece k of operator o: pieces first[o] .. first[o + 1]; its parts in the plan's order, then
 *       its join;
 *   (2) a tensor has coordinates: those of the definition that makes it, else the network's; a
 *       partial sum is a tensor too, behind the network's;
 *   (3) a byte is written by one action of a pass: an action waits for the actions that write what
 *       it reads, and no other order is needed;
 *   (4) only devices with work are opened: `number` is a device's in the net, `is` the machine's of
 *       one in the net. */
#ifndef CD_PLAN_RUN_INTERNAL_H
#define CD_PLAN_RUN_INTERNAL_H
#include "predictor/partition/run/plan_run.h"
#include "profiler/records/records.h"

#define CD_PLAN_EXEC_NONE UINT32_MAX
#define CD_PLAN_EXEC_COPY (UINT32_MAX - 1) /* in place of a part */

typedef struct cd_plan_exec_piece {
    uint32_t op, part; /* part: n_part: the join */
    uint32_t device, program;
    cd_te_shard *own; /* NULL: all of the operator */
    const cd_te_dag *dag;
    const char *key;
    uint32_t n_arg;
    const uint32_t *of; /* (n_arg) as in te_shard.h */
    const cd_box *box;  /* (n_arg) */
} cd_plan_exec_piece;

typedef struct cd_plan_exec_program {
    cd_record_program job;
    uint32_t piece; /* the first one that runs it */
    bool scheduled;
} cd_plan_exec_program;

typedef struct cd_plan_exec_origin {
    /* part: CD_PLAN_EXEC_COPY: a copy before the operator; op n_op: before the end */
    uint32_t op, part;
} cd_plan_exec_origin;

typedef struct cd_plan_exec_constant { /* a buffer with a piece of a weight */
    uint32_t buffer, tensor;
    uint32_t rank;
    int64_t shape[CD_BOX_RANK]; /* of the tensor, as the definition sees it */
    cd_box box;
} cd_plan_exec_constant;

typedef struct cd_plan_exec { /* a plan made ready */
    cd_arena arena;
    cd_shard_plan *plan;
    uint32_t n_piece, n_program, n_constant, cap_constant, cap_buffer, cap_action;
    uint32_t *first; /* (n_op + 1) pieces of operator o: first[o] .. first[o + 1] */
    cd_plan_exec_piece *piece;
    cd_plan_exec_program *program; /* (n_program) */
    cd_measure_item *item;         /* (n_program) */
    cd_multi_net dn;
    cd_multi_device device[CD_MACHINE_DEVICES];
    /* CD_PLAN_EXEC_NONE: not in the net */
    uint32_t number[CD_MACHINE_DEVICES], is[CD_MACHINE_DEVICES];
    cd_multi_buffer *buffer;
    cd_multi_action *action;
    cd_plan_exec_origin *of; /* (dn.n_action) */
    cd_plan_exec_constant *constant;
    /* (n_tensor) of inputs and results: the buffer of memory 0; else CD_PLAN_EXEC_NONE */
    uint32_t *home;
    cd_multi_executor *net;
} cd_plan_exec;

typedef struct cd_plan_exec_expected { /* the unsplit network's results, one behind the other */
    float *value;                      /* NULL: not asked for */
    size_t n;
} cd_plan_exec_expected;

struct cd_plan_run {
    cd_plan_run_options ask;
    cd_plan_exec *now;
    cd_plan_exec_expected want;
    uint32_t dead;                     /* bit d: device d has failed */
    unsigned slow[CD_MACHINE_DEVICES]; /* 0: as the machine says */
    /* times longer than predicted, of the watch; 1: as predicted */
    double factor[CD_MACHINE_DEVICES];
    const cd_shard_plan_options *again; /* of the watch; NULL: none */
    unsigned replans, failures;
};

static inline uint32_t cd_plan_exec_n_piece(const cd_shard_plan_op *o) {
    return o->n_part + (o->join != UINT32_MAX);
}
/* the workload's buffer of a tensor, borrowed */
const struct cd_workload_buffer *cd_plan_exec_buffer(const cd_network_loaded *l, uint32_t tensor);

/* plan_run_check.c: programs of all pieces, compiled and tried. */
cdmpp_status cd_plan_exec_programs(cd_plan_exec *m, const cd_plan_run_options *a, cdmpp_err *err);
/* plan_run_net.c: buffers, actions. */
cdmpp_status cd_plan_exec_actions(cd_plan_exec *m, const struct cd_plan_run *r, cdmpp_err *err);
/* Writes this content to all inputs and weights of the opened executor. Errors: also those of
 * cd_multi_executor_write, ENOMEM. */
cdmpp_status cd_plan_exec_fill(cd_plan_exec *m, const cd_plan_run_options *a, cdmpp_err *err);
/* Runs the unsplit network once on this content; its float32 results go to r->want. Errors:
 * EBACKEND, ENOMEM, those of cd_executor_open. */
cdmpp_status cd_plan_exec_reference(struct cd_plan_run *r, cdmpp_err *err);
/* The results of the last pass against r->want: the largest difference of a result over its largest
 * value, the maximum of all results. Errors: ENUMERIC (a value that is not finite), ENOMEM. */
cdmpp_status cd_plan_exec_compare(struct cd_plan_run *r, double *max_error, cdmpp_err *err);
/* plan_run.c: replaces r->now by a plan without failed devices, with each device's times
 * multiplied by its factor. After an error r->now is as before. Errors: EBACKEND (no device is
 * left), EUSAGE (nothing to plan with), those of cd_shard_plan_make and cd_plan_exec_make. */
cdmpp_status cd_plan_exec_replan(struct cd_plan_run *r, cdmpp_err *err);
cdmpp_status cd_plan_exec_pass(struct cd_plan_run *r, cd_multi_action_time **ran, double *total_s,
                               bool *anew, cdmpp_err *err);
#endif
