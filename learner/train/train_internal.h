/* What the files of learner/train share among themselves. */
#ifndef CD_LEARNER_TRAIN_INTERNAL_H
#define CD_LEARNER_TRAIN_INTERNAL_H
#include "learner/distributed/distributed.h"
#include "learner/train/train.h"

/* boost -- train the trees of one member: trees from feature rows to an objective.
 *
 *   margin of a matrix row f = score + bias + slope * log(trips)
 *   program: L = log(sum over its matrix rows of exp(f)),  r = L - log(measured)
 *   row:     gradient g(r) * share, Hessian share;  share = exp(f - L)
 *
 * That is train.objective = log_latency; learner/loss/loss.h has the others. Slope and bias are
 * fitted to the train part by least squares before the first tree (and the map to seconds of the
 * others after the last), rounds to the validation part. The test part is not passed in. Of a view
 * on disk (cd_spool_on_disk) the matrix to train on has bins alone, cut at those of some rows, and
 * is filled by pages. With train.together trees are those of learner/distributed/distributed.h, for
 * any number of ranks. */

/* Some programs of a view. */
typedef struct cd_boost_set {
    size_t n;
    const uint32_t *program; /* (n) borrowed */
    const double *log_s;     /* (n) ln of the measured latency, borrowed */
    const uint32_t *group;   /* (n) its task on its device, borrowed; NULL: log_latency only */
} cd_boost_set;

typedef struct cd_boost_run {
    const char *name;           /* member name in a tick */
    int nthread;                /* of XGBoost */
    cd_progress_event_fn *tick; /* NULL: none; called from this thread after each round */
    void *ctx;
    /* all its ranks make this call, and grow the trees together; NULL: this process alone */
    const cd_process_group *ranks;
    /* matrix rows to train on that this process has are added; NULL: nobody counts */
    _Atomic size_t *rows;
} cd_boost_run;

/* Trees, slope and bias of m, whose kind says what the trees see. To be freed by the
 * caller after an error too. Errors: EBACKEND, ENOMEM, ENUMERIC, EINTERRUPTED, ERANGE (a part
 * without two programs of one task, where the objective compares such). */
cdmpp_status cd_boost(const cd_program_view *v, const cd_boost_set *train,
                      const cd_boost_set *valid, const cd_config *c, const cd_boost_run *run,
                      cd_member *m, cdmpp_err *err);

/* ---- boost.c ---- */
struct cd_booster;
/* One part of a member's programs, its matrix with everything that belongs to the rows. */
typedef struct cd_boost_side {
    cd_arena arena;
    const struct cd_booster *b;
    float *page;               /* (page_rows, width) of a view on disk */
    size_t page_rows, page_at; /* page_at: the first program of the next */
    const cd_boost_set *set;
    cd_xgb_data *data;          /* of the rows of this rank */
    size_t first, last;         /* its programs of the set; without ranks all */
    size_t height, beg, end;    /* matrix rows of all; those of this rank */
    size_t *start;              /* (n+1) matrix rows of program i */
    double *offset, *level;     /* (height); (n) of the whole program */
    double *weight;             /* (n) train.fast; NULL: all 1 */
    float *score, *grad, *hess; /* (height) */
    cd_objective_part part;
} cd_boost_side;

typedef struct cd_booster {
    const cd_program_view *v;
    const cd_config *c;
    cd_tree_input_form form;
    cd_objective_spec objective;
    const cd_boost_run *run;
    cd_boost_side train, valid;
    cd_member *out;
    cd_distributed_trees together;
} cd_booster;

/* calibrate_model -- the uncertainty of a trained model, from programs that its members never
 * saw. */

/* m->calib from kind_log_s (m->n_kind, n), the answers for programs program[0 .. n). The range of
 * training is of the programs in all folds but `without` (-1: in all). plain: a width without
 * trees, which costs no time to predict. Errors: those of cd_calibration_fit. */
cdmpp_status cd_calibrate_model(const cd_training_set *t, const uint32_t *program, size_t n,
                                int without, bool plain, const double *kind_log_s, cd_threads *pool,
                                cd_model *m, cdmpp_err *err);

/* member_checkpoint -- trained members as files in a folder, so that a stopped training goes on.
 *
 *   DIR/rows-0.member         a trained member (fold 0)
 *   DIR/transformer-0.fit     a network under way (learner/fit/fit.h); gone when it is trained
 *
 * (1) A file names all that its member depends on by a digest: configuration, data, part
 *     and label of each program, devices, the member to go on from, our version and
 *     XGBoost's. One of another training is EMODEL, a damaged one EPARSE; nothing is
 *     overwritten then.
 * (2) It takes its name in one step when it is on the disk: a kill at any moment leaves
 *     whole files (and perhaps a temporary one, removed with the next of its member).
 * (3) A member read back gives the bytes of one just trained.
 * (4) A file also holds what the training told (learner/fit/progress_event.h) at evaluations, and
 *     tells it again when it is read: a report shows all curves.
 *
 * Member file: a frame (base/io/io.h) around {"schema": "cdmpp.member", "digest", "unit",
 * "n_step", "n_sample", "curve": [[step, train, valid], ..], "member"} and the weights.
 *
 * Calls for different members may come from several threads. */

typedef struct cd_member_checkpoint {
    char *dir;      /* owned; NULL: no folder, for encoding only */
    cd_sha256 base; /* of all that members share */
} cd_member_checkpoint;

/* What a member told while it was trained. */
typedef struct cd_member_checkpoint_log {
    cd_progress_event_fn *tick; /* passed on to; NULL: nobody */
    void *ctx;
    cd_buf curve; /* "[step,train,valid],.." */
    char unit[16];
    uint64_t n_step, n_sample;
} cd_member_checkpoint_log;
/* A cd_progress_event_fn whose ctx is a cd_member_checkpoint_log: notes it and passes it on. */
bool cd_member_checkpoint_tick(void *told, const cd_progress_event *t);

/* `dir` NULL: none; else it is made when missing, its parent is not. `start` NULL: from
 * scratch. Free k after an error too. Errors: EIO, ENOMEM. */
cdmpp_status cd_member_checkpoint_open(cd_member_checkpoint *k, const char *dir,
                                       const cd_training_set *t, const cd_model *start,
                                       cdmpp_err *err);
void cd_member_checkpoint_free(cd_member_checkpoint *k);
/* Path of e's network under way. ENOMEM. */
cdmpp_status cd_member_checkpoint_fit_path(const cd_member_checkpoint *k, const cd_member *e,
                                           CD_GIVE char **path, cdmpp_err *err);

/* The file's bytes, appended, and back. `e` has kind and fold; `name` is told to `tick`.
 * Errors of decoding: EPARSE, EUNSUPPORTED, EMODEL, EINTERRUPTED (tick), those of loading. */
cdmpp_status cd_member_checkpoint_encode(const cd_member_checkpoint *k, const cd_member *e,
                                         const cd_member_checkpoint_log *told, cd_buf *out,
                                         cdmpp_err *err);
cdmpp_status cd_member_checkpoint_decode(const cd_member_checkpoint *k, const void *p, size_t n,
                                         const char *name, cd_member_checkpoint_log *told,
                                         cd_member *e, cdmpp_err *err);
/* The same from and to the folder; *found false: no such file. */
cdmpp_status cd_member_checkpoint_read(const cd_member_checkpoint *k, const char *name,
                                       cd_member_checkpoint_log *told, cd_member *e, bool *found,
                                       cdmpp_err *err);
cdmpp_status cd_member_checkpoint_write(const cd_member_checkpoint *k, const cd_member *e,
                                        const cd_member_checkpoint_log *told, cdmpp_err *err);

/* ensemble -- the members of a model, trained, and what they say out of fold.
 *
 *   kinds x folds --> one training each, side by side on the pool
 *   out-of-fold programs --> kind_log_s (n_kind, n_oof) --> weights, point, uncertainty
 */

typedef struct cd_ensemble_run {
    cd_threads *pool;           /* NULL: one thread */
    cd_progress_event_fn *tick; /* NULL: none; by any thread */
    void *ctx;
    bool alone;            /* set by the callee: one member has the pool to itself */
    const cd_model *start; /* fine-tuning: networks go on from its members; NULL: from scratch */
    /* members are kept there (learner/train/train_internal.h); NULL: nowhere */
    const char *folder;
    const cd_member_checkpoint *keep; /* set by the callee */
    const cd_process_group *ranks;    /* NULL: this process alone */
    bool together;                    /* set by the callee: all ranks train this member */
    const char *before; /* names of members in events begin with that; NULL: nothing */
    cd_log *log;        /* rank 0 says there what each rank has of the data; NULL: nowhere */
} cd_ensemble_run;

/* Share of the programs that trees of a kind are grown from (train), or are stopped by: 1 where the
 * data are in memory; of data on disk as many as their matrix has room for in train.memory, drawn
 * by train.seed and program. Networks see all. */
double cd_ensemble_share(const cd_training_set *t, cd_member_kind kind, int fold, bool train);
/* Fills kinds, members and calib of m, whose devices are set, and the members of m->order where
 * model.order has any. *kind_log_s (n_kind, n_oof) is the caller's to free; ranks but 0 of a
 * process group get NULL and members of their own only. Errors: those of training a member,
 * EINTERRUPTED. */
cdmpp_status cd_ensemble_train(const cd_training_set *t, const cd_ensemble_run *run, cd_model *m,
                               CD_GIVE double **kind_log_s, cdmpp_err *err);

/* order_train -- the members of a model for the order, and how much they count.
 *
 *   model.order x folds --> members of losses of ranks --> out of fold: ln order (n_kind, n_oof) -+
 *   members of seconds, calibrated ----------------------> out of fold: ln median ----------------+
 *                                                                                                 |
 *                                      share with the best Spearman in a task <-------------------+
 */

/* m->order_share of a trained and calibrated model with an order. kind_log_s (n_kind, n_oof):
 * answers of seconds out of fold; *order_log_s (m->order->n_kind, n_oof): those of the order, the
 * caller's to free. Errors: those of evaluating, ENOMEM. */
cdmpp_status cd_order_weigh(const cd_training_set *t, cd_threads *pool, const double *kind_log_s,
                            cd_model *m, CD_GIVE double **order_log_s, cdmpp_err *err);

/* evaluate -- a model's answers on the programs of a training, in parallel.
 *
 * Chunks do not depend on the number of threads, and an answer only on its program. */

/* kind_log_s (n_kind, n) of programs program[0 .. n), which lie by fold, each by the members of its
 * fold. */
cdmpp_status cd_evaluate_oof(const cd_training_set *t, const cd_model *m, cd_threads *pool,
                             const uint32_t *program, size_t n, double *kind_log_s, cdmpp_err *err);
/* out (n) of programs program[0 .. n) by the whole model. */
cdmpp_status cd_evaluate(const cd_training_set *t, const cd_model *m, cd_threads *pool,
                         const uint32_t *program, size_t n, cd_model_prediction *out,
                         cdmpp_err *err);
/* out (n) of programs program[0 .. n) from kind_log_s (n_kind, n), as cd_evaluate_oof gives
 * them. */
cdmpp_status cd_evaluate_answers(const cd_training_set *t, const cd_model *m, cd_threads *pool,
                                 const uint32_t *program, size_t n, const double *kind_log_s,
                                 cd_model_prediction *out, cdmpp_err *err);

/* What the files of operator training share. */

/* ---- op_forest.c ---- */
typedef struct cd_op_forest {
    const cd_config *c;
    const char *name;     /* of its progress */
    const float *x;       /* (n, width) */
    const double *target; /* (n) */
    size_t n, width;
    uint64_t rounds, n_member;
    int depth;
    double child, columns;      /* least weight of a child; part of the columns of a tree */
    float *score, *grad, *hess; /* (n) room for its use */
    cd_progress_event_fn *tick; /* NULL: it is not told of */
    void *ctx;
} cd_op_forest;
/* prediction = *bias + score of the trees. Errors: EBACKEND, ENUMERIC, EINTERRUPTED, ENOMEM. */
cdmpp_status cd_op_forest_grow(const cd_op_forest *f, double *bias, CD_GIVE cd_xgb **out,
                               cdmpp_err *err);
/* Members of a model's header: program, rows of the tables and of these trained on, configuration.
 * b->oom on ENOMEM. */
void cd_op_provenance(cd_buf *b, const cd_config *c, size_t n_row, size_t n_trained);

/* A row in its group, an operator on a device; `number` is drawn from the row itself. */
typedef struct cd_op_place {
    uint64_t group, number;
    double work; /* where rows are sorted by it */
    size_t row;
} cd_op_place;
/* For qsort(): by group, then by number. */
int cd_op_place_by_number(const void *a, const void *b);
/* use[row] = 1 for at most `most` rows of each group, 0 for the others. */
void cd_op_draw(const cd_op_place *p, size_t n, size_t most, uint8_t *use);

/* trees of a family */
enum { CD_LIBRARY_OP_SET_UNSEEN = 1, CD_LIBRARY_OP_SET_SEEN = 2, CD_LIBRARY_OP_SET_BOTH = 3 };

typedef struct cd_library_op_fitting {
    const cd_config *c;
    const cd_library_op_data *d;
    cd_threads *pool;
    cd_progress_event_fn *tick;
    void *ctx;
} cd_library_op_fitting;

/* ---- op_forest.c: rows of operators of language models ---- */
/* A hash of all sizes but the axis's; a random number of a row of the table. */
uint64_t cd_op_forest_site(const cd_llm_op_record *r);
uint64_t cd_op_forest_number(const cd_config *c, const cd_llm_op_table *t, size_t i);
/* use[i] = 1 for at most operators.max_rows rows of each kind and device. Errors: ENOMEM. */
cdmpp_status cd_op_forest_draw(const cd_config *c, const cd_llm_op_table *t, uint8_t *use,
                               cdmpp_err *err);

/* ---- llm_op_novel.c ---- */
/* What is known of the kernels in the rows that are used, into m->call. log_base (n): ln of the
 * estimate without them, NaN: none. Names must be in m. Errors: ENOMEM. */
cdmpp_status cd_llm_op_calls(const cd_llm_op_table *t, const uint8_t *use, const double *log_base,
                             cd_llm_op_model *m, cdmpp_err *err);
/* Rows that are trained on, and a model with their names, devices, ranges and calls. */
typedef struct cd_llm_op_novel_rows {
    const cd_config *c;
    const cd_llm_op_table *t;
    const cd_llm_op_model *m;
    const uint8_t *use;     /* (t->n) */
    const double *log_base; /* (t->n) NaN: the device cannot have run it */
} cd_llm_op_novel_rows;
/* Of a family: how far off answers of what is new are (learner/operators/novelty.h). out: zeroed.
 * Errors: ENOMEM, EBACKEND, ENUMERIC. */
cdmpp_status cd_llm_op_novelties(const cd_llm_op_novel_rows *a, cd_llm_op_family f,
                                 cd_novelty out[CD_LLM_OP_N_NOVEL], cdmpp_err *err);

/* ---- llm_op_train.c ---- */
/* Answers for a device that no training saw: of ln(time / estimate) that trees give this share
 * counts, and then the shift is added. Chosen together so that the mean relative error of devices
 * that were left out (folds count alike) is least, and of both changes half is made: a model of all
 * devices knows more than those that lacked one. target (n): ln(time / estimate); residual (n):
 * what trees without the row's fold miss of it. */
typedef struct {
    double share, shift;
} cd_llm_op_care;
cd_llm_op_care cd_llm_op_shift(const double *target, const double *residual, const uint8_t *fold,
                               size_t n);

/* ---- library_op_train.c ---- */

/* provenance -- where a model comes from, as members of its JSON header: tool,
 * configuration, data, filter, split and figures. No time and no host: the same
 * training must give the same bytes. */

/* ranking_profile -- profile tuner of a model: one small network for schedule search.
 *
 *   ln label = (ln measured + ln answer of members that never saw the program) / 2
 *   programs of all folds -------> transformer of rows, 64 wide, one layer of attention = the tuner
 *   programs of all folds but f -> another like it, f = 0 .. F-1 --> answers for fold f --+
 *                                                                                         |
 *                        constant uncertainty, figures out of fold; then dropped <--------+
 *
 * It is to put the schedules of a task in the order of the whole model, in a twentieth of its time
 * (rows to score). docs/internals/decisions.md has what was tried. */

/* m->tuner of a trained and calibrated model; kind_log_s (n_kind, n_oof) as the members answered
 * out of fold. *log_s (n_oof): ln seconds of t->oof by networks that never saw them. Errors: those
 * of cd_fit, ENOMEM, EINTERRUPTED. */
cdmpp_status cd_ranking_profile_train(const cd_training_set *t, const double *kind_log_s,
                                      const cd_ensemble_run *run, cd_model *m,
                                      CD_GIVE double **log_s, cdmpp_err *err);

/* train_net -- one network as a member: cd_fit on some programs of a training set. */

/* Network, scalers and label of e. Errors: those of cd_fit, EMODEL (nothing in `start` to go on
 * from). */
cdmpp_status cd_train_net(const cd_training_set *t, const cd_boost_set *train,
                          const cd_boost_set *valid, const cd_ensemble_run *er,
                          const cd_boost_run *run, cd_member *e, cdmpp_err *err);
/* For cd_fit_run.tick, of a network called `name` with batches of n_sample programs: passes its
 * steps on as events. */
typedef struct cd_train_net_tick {
    cd_progress_event_fn *tick; /* NULL: nobody */
    void *ctx;
    const char *name;
    size_t n_sample;
} cd_train_net_tick;
/* A cd_fit_run.tick; `tick` is a cd_train_net_tick. False: training is to stop. */
bool cd_train_net_step(void *tick, const cd_fit_progress *p);
/* What was fitted becomes the member's; f is empty afterwards, also on error. Errors: ENOMEM. */
cdmpp_status cd_train_net_store(CD_TAKE cd_fit_result *f, cd_member *e, cdmpp_err *err);

/* unlike_fit -- which kinds of programs a model was trained on, and how far off it is for kinds
 * that were left out.
 *
 *   kinds of the training programs ──> marks (learner/model/model.h)
 *   reductions of the kinds ──> 4 folds of whole operator kinds ──> trees without a fold ─────────┐
 *   an intrinsic; a type, threads, vectors or features of a device                                │
 *       ──> trees without the programs of one ────────────────────────────────────────────────────┤
 *   programs of a device that is another for its instructions alone (device_law_fit.c) ───────────┤
 *   the tasks farthest outside of the range, out of fold by the model itself (unlike_range.h) ────┤
 *                                                                                                 │
 *   a law of the reason (unlike_range.h) <── their errors on what is left out <───────────────────┘
 *
 * The trees are few and see program vectors: they stand for the model, which would take a training
 * for each. Of what a device itself has something can be left out only where the device has
 * programs beside it. Where fewer than two kinds could be left out there is no law, and a program
 * that is unlike for this reason has no interval. */

/* Sets m->trained_on, in the arena of m; kind_log_s as in cd_unlike_range. Where the data set does
 * not know the kinds of all programs: NULL, and a line in `notes`. Errors: EBACKEND, ENOMEM,
 * ENUMERIC. */
cdmpp_status cd_unlike_fit(const cd_training_set *t, cd_threads *pool, const double *kind_log_s,
                           cd_model *m, cd_buf *notes, cdmpp_err *err);
#endif
