/* fit_internal -- one training under way, for the files of this room.
 *
 *   fit_begin.c       checks, labels, memory
 *   fit.c             one step, the loop
 *   fit.c        which programs a step shows
 *   fit.c        outputs of many programs, the validation figure
 *   fit_checkpoint.c  everything below the line "goes on" to a file and back */
#ifndef CD_FIT_INTERNAL_H
#define CD_FIT_INTERNAL_H
#include "learner/loss/loss.h"
#include "learner/fit/fit.h"

/* Programs of a step and their labels, side by side. */
typedef struct cd_fit_pick {
    size_t n;
    uint32_t *program; /* (n) */
    double *z, *log_s;
    float *weight;
    uint32_t *group;
} cd_fit_pick;

/* One evaluation. */
typedef struct cd_fit_point {
    double step, train, valid;
} cd_fit_point;

typedef struct cd_fitting {
    cd_arena arena; /* of the arrays of labels and steps */
    const cd_fit_spec *spec;
    const cd_fit_data *data;
    const cd_fit_run *run;
    size_t rank, n_rank, n_out, n_latent;
    size_t n_slice, first, n_own; /* of a batch; [first, first + n_own) are this rank's */
    cd_net_loss loss;
    cd_learning_rate lrate;
    cd_batch_spec batch_spec;
    cd_batch_dims dims;
    uint64_t per_epoch, steps, eval_every; /* steps */
    char digest[65];                       /* of all that the result depends on */

    double *z, *log_s;      /* (view->n) labels of train and valid programs */
    uint32_t *order, *tmp;  /* (n_train): the epoch; scratch */
    size_t *sort;           /* (3 * n_train) scratch, rank losses only */
    uint32_t *target;       /* (n_target): the pass */
    uint64_t epoch, pass;   /* that order and target hold, +1; 0: none */
    cd_fit_pick whole, own; /* the batch; one slice of it */
    uint32_t *own_target;   /* (target_batch) */
    size_t n_own_target;

    cd_batch batch[2]; /* source, target */
    cd_net_state *state[2];
    cd_net_loss_scratch *scratch;
    cd_domain_distance *domain;
    float *out, *d_out, *latent[2], *d_latent[2];
    float *part;      /* (n_own, n_train) gradients of slices; NULL when there is one */
    float *side;      /* (n_own, 2) loss; does anybody want to stop? */
    float *zero;      /* (target_batch, n_out) */
    float *valid_out; /* (n_valid, n_out) */
    cd_slab average_slab;
    double began_s;
    uint64_t began_step;

    /* goes on */
    cd_net *net;
    cd_scalers scalers;
    cd_transform transform;
    cd_optim optim;
    float *best, *average; /* (n_float) NULL without validation; without ema */
    uint64_t step, best_step, since_best;
    double best_figure, loss_sum;
    uint64_t loss_n;
    cd_fit_point *point; /* (n_point) */
    size_t n_point, cap_point;
} cd_fitting;

/* Checks, transform, net, scalers, memory; cd_fit_end also after an error. */
cdmpp_status cd_fit_begin(cd_fitting *f, const cd_fit_start *start, uint64_t seed, cdmpp_err *err);
void cd_fit_end(cd_fitting *f);
/* Is the loss about the order inside groups and nothing else? */
bool cd_fit_order_alone(const cd_net_loss *p);

/* A permutation of v, a function of the key. */
void cd_fit_shuffle(uint32_t *v, size_t n, uint64_t key);
/* f->whole and the target programs of step f->step. */
void cd_fit_draw(cd_fitting *f);
/* f->own: a slice of f->whole. */
void cd_fit_cut(cd_fitting *f, size_t slice);

/* Appends to the history. Errors: ENOMEM. */
cdmpp_status cd_fit_add_point(cd_fitting *f, const cd_fit_point *p, cdmpp_err *err);

/* f->digest: of data, options and start. `net`: net, scalers and initial parameters as bytes. */
void cd_fit_digest(cd_fitting *f, const cd_buf *net);
/* Errors: EIO, ENOMEM. */
cdmpp_status cd_fit_checkpoint_write(const cd_fitting *f, cdmpp_err *err);
/* *found false: there is no such file. Errors: EIO, EPARSE, EMODEL, ENOMEM. */
cdmpp_status cd_fit_checkpoint_read(cd_fitting *f, bool *found, cdmpp_err *err);
#endif
