/* fit -- train one network on some programs of a view.
 *
 *   labels -> transform --+                    +--> loss, gradient -> optimiser --+
 *   view -> scalers -> batch -> forward -------+                                  |
 *              ^ epoch e: a permutation of (seed, e)                              |
 *              +------------------------------------------- next step <-----------+
 *   every eval_every steps: the validation figure; the best parameters are kept
 *
 * (1) Every epoch shows each train program once, in an order of its own, in batches
 *     of equal size (within one; at most `batch`). Rank losses want programs of one
 *     task together: there the order is one of slices of `slice` programs of a group.
 * (2) Transform and scalers are fitted to the train part alone (fine-tuning: kept);
 *     validation programs decide the best step and when to stop and nothing else;
 *     what is held back for the test is never passed in.
 * (3) Random numbers are functions of seed, epoch and step. The result has the same
 *     bits for any pool, with or without checkpoints, interrupted or not. No clock
 *     decides anything.
 * (4) A loss or gradient that is not finite is ENUMERIC and names step and batch.
 * (5) A checkpoint holds everything (parameters, best ones, moments, step, scalers,
 *     transform, history), has a checksum, and takes its name in one step when it is on
 *     the disk: a kill, a full disk (EIO) or a crash leave the one before (a kill may
 *     also leave its temporary file). One that belongs to another training (data,
 *     options, start) is EMODEL. A file size limit is EIO too where SIGXFSZ is ignored.
 * (6) Data-parallel: the gradient of a step is the sum over `slices` of its batch, slice
 *     after slice, and ranks work on runs of slices. So `slices` decides the bits and the
 *     number of ranks does not, nor which of them read a checkpoint. Losses are divided by
 *     the whole batch and groups are not cut by rank losses, so the sum is the gradient of
 *     one slice up to rounding (dropout draws other elements). What mixes the programs of
 *     a batch otherwise (batch norm, cmd, mmd) is EUNSUPPORTED with more than one slice.
 *     Every rank is given the same arguments but `rank`, and sees the same checkpoint.
 * (7) A loss of order alone (rank, lambdarank, listnet) gives scores without a level. After the
 *     last step the transform, which must be log, takes them to ln seconds by least squares over
 *     the train part: the slope inside groups, the level of all. Such seconds are guesses.
 *
 * Calls share nothing: members of an ensemble may be trained side by side, each with
 * a pool of its own or none.
 *
 * Checkpoint file, version 1: a frame (base/io/io.h) around JSON (docs in fit_checkpoint.c)
 * and safetensors. */
#ifndef CD_FIT_H
#define CD_FIT_H
#include "learner/fit/learning_rate.h"
#include "learner/nn/nn.h"
#include "learner/fit/optim.h"
#include "learner/loss/loss.h"

/* What validation decides by: mean |predicted/measured - 1| of seconds; root mean square
 * of ln(predicted/measured); the loss without its domain terms. */
#define CD_FIT_METRICS "mape|rmse_log|loss"
typedef enum { CD_FIT_MAPE, CD_FIT_RMSE_LOG, CD_FIT_LOSS } cd_fit_metric;

typedef struct cd_fit_spec {
    cd_net_config net; /* n_out and, for head sum, temperature are set by cd_fit */
    cd_transform_kind transform;
    cd_scale scale;
    const char *loss;       /* "1000mse+1mape", learner/loss/loss.h */
    const double *quantile; /* (n_quantile) for pinball */
    size_t n_quantile;
    cd_optim_spec optim;
    bool decay_all; /* weight decay on biases and norms too, as published */
    /* total is set by cd_fit, per (of exponential) where 0: an epoch */
    cd_learning_rate lrate;
    double ema;           /* 0..1: evaluate and keep the moving average of parameters; 0: none */
    int64_t batch, slice; /* programs of a step; of one group in a row (rank losses) */
    /* of a batch, whose gradients are summed in order; 0, 1: the whole, or one a rank */
    int64_t slices;
    int64_t target_batch;          /* programs of the target domain in a step (cmd, mmd) */
    int64_t max_epochs, max_steps; /* whichever is less; 0: no limit, not both */
    int64_t eval_every;            /* steps; 0: an epoch */
    int64_t patience;              /* evaluations without a better one before it stops; 0: never */
    cd_fit_metric figure;
    bool freeze_encoder; /* transformer: projection and layers stay as they are */
    uint64_t seed;
} cd_fit_spec;
/* A net of minutes on two cores: head sum, log, standard, 1huber_log+0.3mape_s, AdamW, cosine
 * with warm-up. Chosen on the CPU set (one draw, validation part, 7.8k programs, 40 epochs):
 * MAPE of held-out tasks 54.1 % with head pool and 1huber_log, 49.9 with head sum, 46.8 with
 * 0.1mape_s and decay 0.1 too, 44.3 with 0.3mape_s and dropout 0.05; of records 45.5, 43.4,
 * 40.3, 38.5. */
cd_fit_spec cd_fit_spec_small(cd_net_kind kind);

/* Arrays over the view are read at the listed programs only. All borrowed. */
typedef struct cd_fit_data {
    const cd_program_view *view;
    const double *latency_s; /* (view->n) */
    const float *weight;     /* (view->n) > 0, of train programs; NULL: all 1 */
    const uint32_t *group;   /* (view->n) a task on a device; NULL unless the loss ranks */
    const uint32_t *train, *valid, *target; /* numbers of programs; target: cmd, mmd, no labels */
    size_t n_train, n_valid, n_target;      /* n_valid 0: the last step is the best */
    const float *device;                    /* (n_device, w_dev) vectors of the view's devices */
    size_t n_device, w_dev;
} cd_fit_data;

/* Fine-tuning: parameters, scalers and transform to begin with; spec's net, transform
 * and scale are ignored then. NULL net: from scratch. */
typedef struct cd_fit_start {
    const cd_net *net;
    const cd_scalers *scalers;
    const cd_transform *transform;
} cd_fit_start;

typedef struct cd_fit_progress {
    uint64_t epoch, step, steps; /* step: done so far; steps: at most */
    double train_loss;           /* mean since the evaluation before */
    double valid, best;          /* figure; NaN: none yet */
    bool evaluated;              /* at this step */
    double rate, norm;           /* learning rate and gradient of this step */
    double programs_per_s;       /* since the call began */
} cd_fit_progress;
/* After every step; false stops with EINTERRUPTED, after writing the checkpoint. A training
 * that goes on from a checkpoint begins with the evaluations before it. */
typedef bool cd_fit_progress_fn(void *ctx, const cd_fit_progress *p);
/* v: n_row >= 1 rows of n floats, n_row as the rank likes. The first row becomes the sum
 * over all rows of rank 0, one after another, then those of rank 1 and so on, on every
 * rank; the others are scratch. */
typedef cdmpp_status cd_fit_allreduce(void *ctx, float *v, size_t n_row, size_t n, cdmpp_err *err);

typedef struct cd_fit_run {
    cd_threads *pool;         /* NULL: this thread */
    cd_fit_progress_fn *tick; /* NULL: none */
    void *ctx;
    const char *checkpoint;      /* path, NULL: none */
    int64_t checkpoint_every;    /* steps; 0: only when interrupted and at the end */
    bool resume;                 /* go on from `checkpoint` if the file is there */
    cd_fit_allreduce *allreduce; /* NULL: one rank */
    void *allreduce_ctx;
    size_t rank, n_rank; /* n_rank 0 counts as 1; rank 0 writes checkpoints */
} cd_fit_run;

typedef struct cd_fit_result {
    cd_net *net; /* the best parameters */
    cd_scalers scalers;
    cd_transform transform;
    cd_net_loss loss; /* which outputs there are */
    uint64_t steps, best_step;
    double best;   /* figure at best_step, NaN without validation */
    size_t n_eval; /* history: step, mean train loss since the one before, figure */
    double *eval_step, *eval_train, *eval_valid; /* (n_eval), one block owned by eval_step */
} cd_fit_result;

/* start may be NULL. On error *out is empty. Errors: ESCHEMA and ERANGE (spec, with the
 * field as key), EMODEL (data or start do not fit; another training's checkpoint),
 * ENUMERIC, EUNSUPPORTED, EINTERRUPTED, EIO, EPARSE (damaged checkpoint), ENOMEM. */
cdmpp_status cd_fit(const cd_fit_spec *spec, const cd_fit_data *data, const cd_fit_start *start,
                    const cd_fit_run *run, cd_fit_result *out, cdmpp_err *err);
void cd_fit_result_free(cd_fit_result *f);

/* Outputs (n, n_out) of programs index[0 .. n) in eval mode, `batch` at a time. Errors:
 * EMODEL, ENOMEM. */
cdmpp_status cd_fit_outputs(const cd_net *net, const cd_scalers *s, const cd_program_view *view,
                            const uint32_t *index, size_t n, const float *device, size_t n_device,
                            size_t batch, cd_threads *pool, float *out, cdmpp_err *err);

/* The other headers of the room that are open to other rooms. */
#include "learner/fit/progress_event.h"
#endif
