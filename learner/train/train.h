/* The door of learner/train: other rooms include this header and no other of the room.
 *
 * Training: from a configuration and a data set to a model, its file and its figures (learner.h);
 * the same for library operators (library_op_train.h); what to measure of a new device before
 * (choose). For cdmpp-train, cdmpp-mpi and learner/hpo. Seeds decide the bytes, the number of
 * threads does not. */
#ifndef CD_LEARNER_TRAIN_DOOR_H
#define CD_LEARNER_TRAIN_DOOR_H
#include "base/cli/cli.h"
#include "learner/llm_op/llm_op.h"
#include "learner/operators/operators.h"
#include "learner/train/llm_op_train.h"
#include "learner/report/report.h"
#include "learner/train/selection_bias.h"

/* learner -- the training door: configuration -> model, file and figures.
 *
 *   load -> filter -> split -> folds -> members (trees, networks)
 *        -> weights and uncertainty from out-of-fold answers
 *        -> figures of all three parts -> model file
 *
 * The test part is looked at once, after everything is decided. The same
 * configuration and data give the same file for any number of threads. */

typedef struct cd_learner_result {
    cd_model *model; /* owned */
    cd_buf file;     /* the model file */
    cd_filter_count filter;
    size_t n_program[CD_SPLIT_N_PART], n_task[CD_SPLIT_N_PART];
    cd_split_kind kind;
    char split_digest[65];
    cd_metric metrics[CD_SPLIT_N_PART]; /* validation: of out-of-fold answers (training_set.h) */
    cd_uncertainty unsure[CD_SPLIT_N_PART];
    cd_selection_bias best[CD_SPLIT_N_PART]; /* of each task's fastest program */
    cd_buf best_of[CD_SPLIT_N_PART];         /* cd_selection_bias_by_device */
    cd_buf tasks;                            /* trained on, cd_selection_bias_tasks */
    /* profile tuner's (model.tuner, else zeros): out of fold, of the test part */
    cd_metric tuner[2];
    /* lines on the split, and on what a bounded memory changed, for people; may be empty */
    cd_buf notes;
    cd_train_artifacts *keep; /* owned; NULL unless output.report names a page */
} cd_learner_result;

/* What data.files hold, all that the members of `plan` need: its `leaves` and `trees`, those of one
 * training or of several. Errors: those of loading. */
cdmpp_status cd_learner_load(const cd_config *c, const cd_member_plan *plan,
                             CD_GIVE cd_dataset **out, cdmpp_err *err);
/* How many trainings of these data have room in train.memory at the same time; at least 1, INT_MAX
 * without a limit. */
int cd_learner_at_once(const cd_config *c, const cd_member_plan *plan, const cd_dataset *d);
/* How to train; all may be zero. */
typedef struct cd_learner_options {
    cd_threads *pool;           /* NULL: one thread */
    cd_progress_event_fn *tick; /* NULL: none */
    void *ctx;
    /* fine-tuning: networks go on from its members (EMODEL: it has none of their kind); trees are
     * trained anew. NULL: from scratch */
    const cd_model *start;
    /* trained members and checkpoints are kept there, and taken from there
     * (learner/train/train_internal.h); NULL: none */
    const char *folder;
    /* hears why train.facts auto took none; NULL, or one that drops warnings: that is a line of the
     * notes */
    struct cd_log *log;
    /* learner/distributed/distributed.h; NULL: this process alone. *out stays empty on ranks but
     * 0 */
    const struct cd_process_group *ranks;
} cd_learner_options;

/* `d`: what cd_learner_load gives, loaded by the caller; NULL: loaded here. Errors: those of
 * loading, splitting and boosting. */
cdmpp_status cd_learner_run(const cd_config *c, const cd_dataset *d, const cd_learner_options *how,
                            cd_learner_result *out, cdmpp_err *err);
/* One trial of a search: the same training, then only the figures of the validation part. Nothing
 * reads the latencies of the test part, no file is made. `notes` gets the lines of
 * cd_learner_result's. */
cdmpp_status cd_learner_try(const cd_config *c, const cd_dataset *d, cd_threads *pool,
                            cd_progress_event_fn *tick, void *ctx, cd_buf *notes, cd_metric *valid,
                            cdmpp_err *err);
void cd_learner_result_free(cd_learner_result *l);

/* library_op_train -- the training door of operator models: tables -> model, file, figures.
 *
 *   rows (library_op_data.h) -> at most operators.max_rows of each operator and device, drawn by a
 *   number of the row itself -> for each family two sets of trees: with and without what
 *   tells devices apart -> model file
 *
 * Before that, operators.check trains on a part and predicts the rest:
 *   large    the tenth of the rows of each operator and device with the most work
 *   device   one device after another, by a model that never saw it
 * Nothing is chosen by these figures; they say what to expect beyond the tables.
 *
 * Behind it trainings without a fold of rows of like sizes, without the largest rows and without a
 * device give the intervals (library_op_train.c, learner/operators/operators.h), unless
 * operators.calibration_rows is 0.
 *
 * The same tables and configuration give the same file for any number of threads. */

typedef struct cd_library_op_train_result {
    cd_library_op_model *model; /* owned */
    cd_buf file;                /* the model file */
    cd_library_op_score check;  /* of operators.check; rows point into the list of devices */
    /* of the level 0.9; the last: all classes */
    cd_library_op_coverage coverage[CD_LIBRARY_OP_N_HELD][CD_N_LIBRARY_OP_CLASS + 1];
    size_t n_row; /* trained on */
} cd_library_op_train_result;

/* `pool` NULL: one thread. Errors: ERANGE (no rows), EMODEL (a device that lacks a
 * number), EBACKEND, ENOMEM, EINTERRUPTED. */
cdmpp_status cd_library_op_train(const cd_config *c, const cd_library_op_data *d, cd_threads *pool,
                                 cd_progress_event_fn *tick, void *ctx,
                                 cd_library_op_train_result *out, cdmpp_err *err);
void cd_library_op_train_result_free(cd_library_op_train_result *l);

/* choose -- what to measure on a new device: programs or tasks of the training part, by their
 * inputs.
 *
 *   data.files -> data.*, filter.*, split.* -> train part -> at most CD_CHOICE_MOST programs, drawn
 *                                                            by data.seed
 *        -> vectors (dataset/select/select.h) -> k-means: of each cluster the nearest; with a
 *                                                budget medoids
 *        -> their records, line by line as they stand in the logs; their keys
 *
 * (1) No latency decides what is chosen, but for a budget: a measured one says what a program
 *     costs.
 * (2) Validation and test part are not chosen from: what is measured of them later is a test.
 * (3) The same for any order of files and number of threads. */
enum { CD_CHOICE_MOST = 4096 };

typedef struct cd_choice_options {
    size_t k;
    bool tasks; /* K tasks, not K programs */
    /* of programs: seconds of measuring, cheap ones are preferred; 0: no limit */
    double budget_s;
    cd_threads *pool; /* NULL: one thread */
} cd_choice_options;

typedef struct cd_choice {
    cd_arena arena;
    bool tasks;
    uint32_t *index; /* (n) programs or tasks of the data set, in the order of choice */
    size_t n;        /* fewer than k where there are not so many, or the budget is spent */
    size_t n_candidate, n_drawn; /* programs of the train part, and those that took part */
    double seconds;              /* programs: of measuring them all */
} cd_choice;

/* Estimated seconds of measuring a program that takes so long: short ones run for the budget of
 * repeats, long ones three times (profiler/measure/measure.h). Compiling is not counted. */
double cd_choose_seconds(double latency_s);
/* d: what cd_learner_load gives. Free *out after an error too. Errors: those of choosing and
 * splitting; ESCHEMA (programs of processors and of GPUs, key data.devices), ENUMERIC, ENOMEM. */
cdmpp_status cd_choose(const cd_config *c, const cd_dataset *d, const cd_choice_options *how,
                       cd_choice *out, cdmpp_err *err);
void cd_choose_free(cd_choice *out);
/* A line each: the records, or the workload keys. Logs are looked up from the working directory,
 * then from the folder of the configuration. Errors: ENODATA (no such log), ESCHEMA (the log has
 * changed), those of reading, ENOMEM. */
cdmpp_status cd_choose_put(const cd_config *c, const cd_dataset *d, const cd_choice *ch,
                           cd_buf *out, cdmpp_err *err);
/* In one line, and as a JSON object without schema. */
void cd_choose_text(cd_buf *b, const cd_dataset *d, const cd_choice *ch);
void cd_choose_json(cd_buf *b, const cd_dataset *d, const cd_choice *ch);

/* train_print -- results of a training as text and JSON, for standard output. */

/* What was left out, the split, the figures of each part, the files. path: of the model; report: ""
 * where there is none; level: of the prediction intervals. brief: the notes, the figures of the
 * test part and the model file alone. */
void cd_train_print_text(cd_buf *b, const cd_learner_result *l, const char *path,
                         const char *report, double level, bool brief);
/* Lines as a JSON list of texts. NULL: []. */
void cd_train_print_notes(cd_buf *b, const char *lines);
/* One object with '\n', schema "cdmpp.train". */
void cd_train_print_json(cd_buf *b, const cd_learner_result *l, const char *path);
/* Why rows of the tables did not train, a line for each reason; n_row: rows that did. d->n 0 and
 * nothing left out: no line. */
void cd_train_print_left_out(cd_buf *b, const cd_config *c, const cd_library_op_data *d,
                             size_t n_row);
/* The same of a model of library operators. Errors: ENOMEM. */
cdmpp_status cd_train_print_operators_text(cd_buf *b, const cd_config *c,
                                           const cd_library_op_data *d,
                                           cd_library_op_train_result *l, const char *path,
                                           cdmpp_err *err);
void cd_train_print_operators_json(cd_buf *b, const cd_config *c, const cd_library_op_data *d,
                                   const cd_library_op_train_result *l, const char *path);
/* The same of operators of language models. */
void cd_train_print_llm_text(cd_buf *b, const cd_config *c, const cd_llm_op_table *t,
                             const cd_llm_op_train_result *l, const char *path);
void cd_train_print_llm_json(cd_buf *b, const cd_llm_op_table *t, const cd_llm_op_train_result *l,
                             const char *path);

/* train_progress -- how far a training is: one line on a terminal, a log where one is asked for.
 *
 *   terminal  rows 123/300 0.0123 | program 98/300 0.0234 | 412k samples/s | ETA 0:20
 *             redrawn at most 5 times a second, cut to the terminal's width
 *   JSON      0:12 rows: round 123/300, loss 0.0101 train, 0.0123 validation; 412k samples/s, ETA
 *             0:20
 *             at most every 10 s, append-only; off a terminal without JSON nothing
 *   verbose   the second form for every step, on a terminal too
 *
 *   (1) a sample is one program in one step; the rate is over the whole training so far,
 *       from the first call on, so that loading the data does not count;
 *   (2) ETA takes it that every member uses all its steps: early stopping is sooner, and
 *       members that have not begun are taken to be like the latest one;
 *   (3) below the INFO level there is nothing.
 * For commands. Any thread may step. */

enum { CD_TRAIN_PROGRESS_MEMBERS = 64 };

typedef struct cd_train_progress_member {
    char name[24];
    cd_progress_event last; /* its names are not used */
} cd_train_progress_member;

typedef struct cd_train_progress {
    cd_log *log; /* borrowed */
    bool tty;
    int width;      /* of the terminal, columns */
    double every_s; /* between two lines; infinite: none */
    bool begun;
    double begin_s, shown_s; /* monotonic clock */
    double begin_sample;     /* what the first call had done: not timed */
    size_t n_member;         /* further ones are not shown */
    cd_train_progress_member member[CD_TRAIN_PROGRESS_MEMBERS];
    pthread_mutex_t lock;
} cd_train_progress;

/* `log` is borrowed until the end. */
void cd_train_progress_begin(cd_train_progress *p, cd_log *log);
/* One event, at the present time. */
void cd_train_progress_step(cd_train_progress *p, const cd_progress_event *t);
/* Takes the line away and reports samples, time and rate, when there was a step. */
void cd_train_progress_end(cd_train_progress *p);

/* ---- exposed to be tested ---- */
void cd_train_progress_step_at(cd_train_progress *p, const cd_progress_event *t, double now_s);
/* samples/s; 0: not known */
double cd_train_progress_rate(const cd_train_progress *p, double now_s);
double cd_train_progress_eta(const cd_train_progress *p, double now_s); /* s; NaN: not known */
#endif
