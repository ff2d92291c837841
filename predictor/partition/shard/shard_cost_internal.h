/* shard_cost_internal -- the objects that the files of shard_cost share: kinds of devices, rules of
 * operators, entries of questions. Private to shard_cost*.c. */
#ifndef CD_SHARD_COST_INTERNAL_H
#define CD_SHARD_COST_INTERNAL_H
#include "base/core/core.h"
#include "base/text/text.h"
#include "predictor/estimate/estimate.h"
#include "predictor/partition/shard/shard_cost.h"

/* Devices that their model cannot tell apart: they have the same schedules and the same times
 * alone. */
typedef struct cd_shard_cost_kind {
    const cd_model *model;   /* NULL: none */
    const char *target, *as; /* as: of the model; NULL: what the target says */
    cd_node_cost_bias best;
    const cd_device_numbers *numbers; /* of cd_shard_cost_model */
    bool gpu, stands;
    cd_hardware hardware;
} cd_shard_cost_kind;

/* A machine's device. */
typedef struct cd_shard_cost_device {
    uint32_t kind;
    double factor;             /* its seconds over the model's */
    const float *here, *there; /* of cd_shard_cost_model */
    double peak_bytes_per_s;   /* 0: unknown */
    cd_node_cost_scaling_law law;
} cd_shard_cost_device;

/* What all parts of an operator have in common. */
typedef struct cd_shard_cost_rule {
    const cd_task *task; /* the whole; NULL: see why */
    const char *why;
    const cd_schedule_db_entry *sched; /* the whole's schedule; NULL: the database has none */
    const cd_record *record;           /* sched, read */
    bool gpu, plain;                   /* of the record; no parameter may be packed */
} cd_shard_cost_rule;

/* A question that is asked once. */
typedef struct cd_shard_cost_entry {
    uint32_t op, kind;
    const cd_task *task;            /* NULL: see why */
    int64_t moved;                  /* bytes read and written; -1: unknown */
    struct cd_shard_cost_entry *of; /* the whole, asked before; NULL: this is it */
    bool asked, counted, due;       /* scored; in asked(); in the list that is scored now */
    double seconds;                 /* alone, of the model's device; infinity: see why */
    double spread, least_s;         /* cd_node_cost_entry, of the model's device */
    double low, high;               /* ends of its interval over `seconds`; 1: none */
    uint32_t reason;                /* CD_UNLIKE_*: what of the program the model has not seen */
    cd_buf line, why;               /* line: no newline; empty: none */
} cd_shard_cost_entry;

typedef struct cd_shard_cost_worker {
    cd_scorer **scorer; /* (n_kind) NULL: not yet */
    cd_arena mem;
} cd_shard_cost_worker;

struct cd_shard_cost {
    cd_shard_cost_options a;
    cd_arena arena;
    cd_task_registry *tasks;
    uint32_t n_kind;
    cd_shard_cost_kind kind[CD_MACHINE_DEVICES];
    cd_shard_cost_device device[CD_MACHINE_DEVICES];
    cd_shard_cost_rule *rule;    /* (net's n_op) */
    uint32_t *first;             /* (net's n_tensor) the first operator that reads it */
    cd_dict index;               /* of names of questions */
    cd_shard_cost_entry **entry; /* (n_entry) by number in index */
    uint32_t n_entry, cap_entry;
    int n_worker;
    cd_shard_cost_worker *worker; /* (n_worker) */
    size_t n_asked, n_failed;
};

/* ---- shard_cost.c ---- */
/* Bytes of all arguments of a definition; -1: they overflow. */
int64_t cd_shard_cost_moved(const cd_te_dag *dag);

/* ---- shard_cost_score.c ---- */
/* Fills the entry's line and seconds, or why there are none. Entries may be scored on several
 * threads, each with its own worker; the entry of the whole
 * (of) must be scored before. Errors: ENOMEM, EBACKEND. */
cdmpp_status cd_shard_cost_score(const cd_shard_cost *p, cd_shard_cost_worker *w,
                                 cd_shard_cost_entry *e, cdmpp_err *err);
#endif
