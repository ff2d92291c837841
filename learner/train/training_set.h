/* training_set -- the data of one training, chosen and cut.
 *
 *   data set -> choose -> part of each program
 *   train + validation -> F folds         a member of fold f is trained without fold f
 *
 *   folds   fold of a train program    fold of a validation program
 *     1     ALWAYS                     0
 *     F     0 .. F-1, drawn            0 .. F-1, drawn
 *
 * With F > 1 train and validation programs are one pool, cut by task (splits that hold out tasks,
 * networks or devices; by whole networks with model.fold_by) or by program (record, interleaved).
 * "Out of fold" are the programs with a fold, judged by members that never saw theirs. The test
 * part is only listed.
 *
 * train.facts auto is decided here (training_set.c), by what a training with prior would
 * refuse. */
#ifndef CD_TRAINING_SET_H
#define CD_TRAINING_SET_H
#include "learner/config/config.h"

enum { CD_FOLD_BY_TASK, CD_FOLD_BY_NETWORK }; /* model.fold_by */
#define CD_FOLD_ALWAYS 255
#define CD_FOLD_NEVER  254

typedef struct cd_training_set {
    /* borrowed; of train.facts auto a copy with what was chosen, which borrows */
    const cd_config *c;
    const cd_dataset *d; /* borrowed, or own */
    cd_dataset *own;
    cd_split *split;
    cd_filter_count filter;
    uint8_t *keep;                      /* (d->n) */
    uint8_t *fold;                      /* (d->n) */
    double *log_s;                      /* (d->n) ln of the label; 0 for programs in no part */
    uint32_t *group;                    /* (d->n) its task on its device */
    float *weight;                      /* (d->n) of its label in training; NULL: all 1 */
    uint32_t *device;                   /* (d->n) number of its device in the model */
    uint32_t *program[CD_SPLIT_N_PART]; /* (split->n_program[p]) in the order of the data set */
    uint32_t *oof;                      /* (n_oof) out-of-fold programs, by fold */
    size_t n_oof;
    int n_fold;
    size_t n_device; /* devices of the chosen programs, by name */
    const char **device_name;
    uint8_t *device_is_gpu;
    size_t w_device;        /* numbers of a device: device.features */
    float *device_vector;   /* (n_device, w_device) */
    cd_facts_set facts_set; /* which facts the programs have; with numbers */
    /* (n_device) that analytic times are of; NULL: no member reads facts */
    cd_device_numbers *numbers;
    float *analytic;        /* (d->n, CD_N_ANALYTIC) NaN of programs in no part; likewise */
    unsigned facts_without; /* train.facts_without: groups of CD_FACTS_GROUPS, a bit each */
    cd_buf unusual;         /* numbers of the descriptions that no chip has, a line each */
    /* why train.facts auto takes none, and what helps; empty: it takes some, or nothing reads
     * them */
    cd_buf no_facts;
    cd_program_view view; /* of all programs of d */
    cd_arena arena;
} cd_training_set;

/* The data of data.files, all that the members of `plan` need (its leaves and trees). Where a
 * training in memory would take more than train.memory they are on disk (cd_spool_on_disk). share:
 * NULL, or with the other ranks of this machine. Errors: those of cd_dataset_load_within. */
cdmpp_status cd_training_set_load(const cd_config *c, const cd_member_plan *plan,
                                  const cd_dataset_share *share, CD_GIVE cd_dataset **out,
                                  cdmpp_err *err);
/* How many trainings of d have room in train.memory at the same time; at least 1, INT_MAX without a
 * limit. Of data on disk: 1. */
int cd_training_set_at_once(const cd_config *c, const cd_member_plan *plan, const cd_dataset *d);
/* d NULL: loads data.files. Leaves are loaded when a member wants them. Free t after an
 * error too. Errors: those of loading, choosing and splitting; ESCHEMA (a device without
 * description where networks need it), ENOMEM. */
cdmpp_status cd_training_set_make(cd_training_set *t, const cd_config *c, const cd_dataset *d,
                                  cd_threads *pool, cdmpp_err *err);
void cd_training_set_free(cd_training_set *t);
/* Does a part have program i, or is it used without its latency? */
static inline bool cd_training_set_chosen(const cd_training_set *t, size_t i) {
    return t->split->part[i] < CD_SPLIT_N_PART || (t->split->unlabelled && t->split->unlabelled[i]);
}
#endif
