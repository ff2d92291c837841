/* live_plan_int -- private to live_plan*.c: a plan while it becomes actions, and what of it runs.
 *
 *   plan ──> piece[]    a part, a join, a whole operator: definition, boxes of its arguments
 *        ──> program[]  what pieces run, each distinct text once
 *        ──> buffers, actions (devnet.h), and `of`: which operator and part an action is
 *
 *   (1) piece k of operator o: pieces first[o] .. first[o + 1]; its parts in the plan's order, then its join;
 *   (2) a tensor has coordinates: those of the definition that makes it, else the network's; a partial sum is a tensor too,
 *       behind the network's;
 *   (3) a byte is written by one action of a pass: what an action reads names who writes it, and that is all the order
 *       there must be;
 *   (4) only devices with work are opened: `number` is a device's in the net, `is` the machine's of one in the net. */
#ifndef CD_LIVE_PLAN_INT_H
#define CD_LIVE_PLAN_INT_H
#include "predictor/partition/run/plan_run.h"
#include "profiler/records/records.h"

#define CD_LP_NONE UINT32_MAX
#define CD_LP_COPY (UINT32_MAX - 1) /* in place of a part */

typedef struct cd_lp_piece {
    uint32_t op, part;          /* part: n_part: the join */
    uint32_t device, program;
    cd_te_shard *own;            /* NULL: all of the operator */
    const cd_te_dag *dag;
    const char *key;
    uint32_t n_arg;
    const uint32_t *of;         /* (n_arg) as in te_part.h */
    const cd_box *box;          /* (n_arg) */
} cd_lp_piece;

typedef struct cd_lp_program {
    cd_record_program job;
    uint32_t piece;             /* the first one that runs it */
    bool scheduled;
} cd_lp_program;

typedef struct cd_lp_of {
    uint32_t op, part;          /* part: CD_LP_COPY: a copy before the operator; op n_op: before the end */
} cd_lp_of;

typedef struct cd_lp_constant { /* a buffer with a piece of a weight */
    uint32_t buffer, tensor;
    uint32_t rank;
    int64_t shape[CD_BOX_RANK]; /* of the tensor, as the definition sees it */
    cd_box box;
} cd_lp_constant;

typedef struct cd_lp {          /* a plan made ready */
    cd_arena arena;
    cd_shard_plan *plan;
    uint32_t n_piece, n_program, n_constant, cap_constant, cap_buffer, cap_action;
    uint32_t *first;            /* (n_op + 1) */
    cd_lp_piece *piece;
    cd_lp_program *program;     /* (n_program) */
    cd_measure_item *item;      /* (n_program) */
    cd_dn dn;
    cd_dn_device device[CD_MACHINE_DEVICES];
    uint32_t number[CD_MACHINE_DEVICES], is[CD_MACHINE_DEVICES]; /* CD_LP_NONE: not in the net */
    cd_dn_buffer *buffer;
    cd_dn_action *action;
    cd_lp_of *of;               /* (dn.n_action) */
    cd_lp_constant *constant;
    uint32_t *home;             /* (n_tensor) of inputs and results: the buffer of memory 0; else CD_LP_NONE */
    cd_multi_executor *net;
} cd_lp;

typedef struct cd_lp_want {     /* the unsplit network's results, one behind the other */
    float *value;               /* NULL: not asked for */
    size_t n;
} cd_lp_want;

struct cd_plan_run {
    cd_plan_run_ask ask;
    cd_lp *now;
    cd_lp_want want;
    uint32_t dead;              /* bit d: device d has failed */
    unsigned slow[CD_MACHINE_DEVICES]; /* 0: as the machine says */
    double factor[CD_MACHINE_DEVICES]; /* times longer than predicted, of the watch; 1: as predicted */
    const cd_splan_ask *again;  /* of the watch; NULL: none */
    unsigned replans, failures;
};

static inline uint32_t cd_lp_n_piece(const cd_plan_op *o) { return o->n_part + (o->join != UINT32_MAX); }
const struct cd_wbuffer *cd_lp_buffer(const cd_live *l, uint32_t tensor);
size_t cd_lp_size(const cd_live *l, uint32_t tensor); /* bytes of an element */

/* live_plan_copy.c: a plan of one's own. */
cdmpp_status cd_lp_plan_copy(const cd_shard_plan *from, CD_GIVE cd_shard_plan **out, cdmpp_err *err);
/* Does the plan fit network and machine? Errors: EINVALID, EUNSUPPORTED, EBACKEND. */
cdmpp_status cd_lp_plan_fits(const cd_shard_plan *p, const cd_snet *net, const cd_machine *m, cdmpp_err *err);
/* live_plan_piece.c. Errors: EINVALID (a way or shares that the operator does not have). */
cdmpp_status cd_lp_pieces(cd_lp *m, const cd_plan_run_ask *a, cdmpp_err *err);
/* live_plan_code.c: programs of all pieces, compiled and tried. */
cdmpp_status cd_lp_programs(cd_lp *m, const cd_plan_run_ask *a, cdmpp_err *err);
/* A program without a schedule: C, or of a GPU's dialect the first that its rules give. Free the job after an error too. */
cdmpp_status cd_lp_plain(const cd_te_dag *dag, const char *key, const char *target, bool gpu, cd_program *scratch, cd_record_program *out, cdmpp_err *err);
/* live_plan_net.c: buffers, actions. */
cdmpp_status cd_lp_actions(cd_lp *m, const struct cd_plan_run *r, cdmpp_err *err);
/* live_plan_check.c: the content of an input or weight; every input and constant of the net is given it. */
cdmpp_status cd_lp_content(const cd_live *l, const cd_snet *net, uint32_t tensor, void *to, cdmpp_err *err);
cdmpp_status cd_lp_fill(cd_lp *m, const cd_plan_run_ask *a, cdmpp_err *err);
cdmpp_status cd_lp_reference(struct cd_plan_run *r, cdmpp_err *err);
cdmpp_status cd_lp_compare(struct cd_plan_run *r, double *max_error, cdmpp_err *err);
/* live_plan_fail.c: r->now is made again without dead devices, with the factors. */
cdmpp_status cd_lp_again(struct cd_plan_run *r, cdmpp_err *err);
/* live_plan.c: what runs a plan, ready; and one pass, repeated by other devices where one fails. *anew (NULL: not wanted): by another plan. */
cdmpp_status cd_lp_make(struct cd_plan_run *r, const cd_shard_plan *plan, CD_GIVE cd_lp **out, cdmpp_err *err);
void cd_lp_free(CD_TAKE cd_lp *m);
cdmpp_status cd_lp_pass(struct cd_plan_run *r, cd_dn_ran **ran, double *total_s, bool *anew, cdmpp_err *err);
#endif
