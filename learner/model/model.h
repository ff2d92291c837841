/* model -- a trained cost model: what predicting needs, and the file it lives in.
 *
 *   program --> member 0 (kind rows,        fold 0) --> ln s --\ mean of a kind's
 *           --> member 1 (kind rows,        fold 1) --> ln s --/ folds -----------+
 *           --> member 2 (kind transformer, fold 0) --> ...      -----------------+
 *                                                                                 |
 *   cd_model_prediction <-- weights, shift, uncertainty (calibration.h) <---------+
 *   and the result is kept inside the range of training
 *
 * Model file, version 2 to 5, all numbers little-endian:
 *   (1) bytes 0..7    "CDMPPMDL"
 *   (2) 8..11         u32 version, 3 with profile tuner or where trees have a
 *                     train.objective but log_latency or read facts, else 2; 4 where it
 *                     is corrected for a machine (here.h), 5 where it has members for
 *                     the order
 *   (3) 12..15        u32 zero
 *   (4) 16..23        u64 H, bytes of the header
 *   (5) 24..31        u64 B, bytes of the weights
 *   (6) 32..32+H      header: one JSON object, docs/reference/model.md lists its keys
 *   (7) ..+B          weights: of each member in the order and with the sizes of header key
 *                     "model.members" (trees: XGBoost's UBJ; networks: safetensors), then
 *                     those of "model.calib" (UBJ), then from byte "order.at" on, if there
 *                     is such a key, those of "order.members", likewise from "tuner.at" on those of
 *                     "tuner.members" and "tuner.calib", and from byte "here.at" on the trees
 *                     of a correction (here.h)
 *   (8) ..+64         SHA-256 of everything before, 64 lower-case hex digits
 *   (9) the file ends here
 * Every length is checked against the file before it is used, and nothing of (7) is
 * read before (8) agreed. The same seed and data give the same bytes for any number of
 * threads. Version 1 (trees only, "model.parts") is still read.
 *
 * A model is immutable: share it between threads, one scratch for each. */
#ifndef CD_MODEL_H
#define CD_MODEL_H
#include <stdbool.h>
#include <stdint.h>

#include "features/task/task.h"
#include "learner/model/calibration.h"
#include "learner/model/member.h"

/* trained_on -- which kinds of programs a model was trained on, and what a new program has that
 * they lack.
 *
 *   signatures of training programs (features/task/task.h) ──> marks, and which device saw which
 *   signature of a new program, device ──────────────────────> reasons, text
 *
 * Rows of features do not show a type of numbers, and a column inside its range says nothing about
 * an operator that never occurred: this is held beside the ranges of calibration.h, which stay as
 * they are.
 *   (1) operators, their types and intrinsics: seen on any device, because devices share what they
 *       learn;
 *   (2) types of buffers, threads, width of vectors, features: seen on the device itself. Where its
 *       targets never said threads or a processor, these are not compared.
 *   (3) each reason has a law of its own, of programs that were left out of training for it
 *       (learner/train/train_internal.h): the interval of a program is at least as wide as those of
 *       all its reasons. Where a training could leave out nothing of the kind, nothing tells: the
 *       program has no interval.
 * Immutable once made: any thread. */

/* X(bit, name): why a program is unlike what the model was trained on. cdmpp.h has the same as
 * CDMPP_REASON_*. */
#define CD_UNLIKE_MAP(X)                                                                           \
    X(RANGE, "range of features")                                                                  \
    X(DTYPE, "dtype")                                                                              \
    X(OPERATOR, "operator kind")                                                                   \
    X(INTRINSIC, "intrinsic")                                                                      \
    X(THREADS, "threads")                                                                          \
    X(FEATURE, "target feature")                                                                   \
    X(DEVICE, "device")                                                                            \
    X(PEAK, "peak of the device")
enum {
#define CD_X(id, name) CD_UNLIKE_BIT_##id,
    CD_UNLIKE_MAP(CD_X)
#undef CD_X
        CD_N_UNLIKE
};
enum {
#define CD_X(id, name) CD_UNLIKE_##id = 1 << CD_UNLIKE_BIT_##id,
    CD_UNLIKE_MAP(CD_X)
#undef CD_X
        CD_UNLIKE_TEXT = 96
};
/* "dtype" of CD_UNLIKE_BIT_DTYPE; bit < CD_N_UNLIKE. */
const char *cd_trained_on_reason(uint32_t bit);
/* "dtype 80 %, operator kind 12 %": parts of all_s seconds with each reason; those of less than a
 * hundredth are left out. */
enum { CD_UNLIKE_SHARES = 256 };
void cd_trained_on_shares(const double part_s[CD_N_UNLIKE], double all_s,
                          char to[CD_UNLIKE_SHARES]);

typedef struct cd_unlike {
    uint32_t reason; /* CD_UNLIKE_*, 0: like */
    /* "dtype float16, operator kind sum 4+3", one entry a reason, cut where it is too long; ""
     * where reason is 0 */
    char text[CD_UNLIKE_TEXT];
} cd_unlike;
/* Adds a reason with its text, "" for the name alone. */
void cd_trained_on_add(cd_unlike *u, uint32_t bit, const char *detail, size_t n);

/* Reasons that have such a law: not the device (cd_device_law), nor its peak, which is a bound. */
enum {
    CD_UNLIKE_LEARNED = CD_UNLIKE_RANGE | CD_UNLIKE_DTYPE | CD_UNLIKE_OPERATOR |
                        CD_UNLIKE_INTRINSIC | CD_UNLIKE_THREADS | CD_UNLIKE_FEATURE
};
typedef struct cd_unlike_law {
    /* kinds that were left out, each once; 0: none could be, and nothing below */
    uint32_t n;
    /* ln(measured/answer): ends of the interval's level for a program of the next kind */
    double low, high;
    /* ln: standard deviation of what all programs of a kind have in common; a network has it as a
     * program has */
    double shift;
} cd_unlike_law;

typedef struct cd_trained_on {
    size_t n, n_device;
    const char **mark; /* (n) rising */
    uint8_t *seen;     /* (n_device, n) */
    /* a program of known kind is out of range only beyond this distance
     * (learner/train/unlike_range.h); 0: the range's own limit */
    double range;
    cd_unlike_law law[CD_N_UNLIKE];
} cd_trained_on;

/* Of n pairs of a signature's text and a device; *out NULL where one is "": then it is not known
 * what was trained on. Errors: ENOMEM. */
cdmpp_status cd_trained_on_make(cd_arena *a, const char *const *text, const uint32_t *device,
                                size_t n, size_t n_device, cd_trained_on **out, cdmpp_err *err);
/* Whether programs of this device were trained on; not those whose times were unknown. */
bool cd_trained_on_saw(const cd_trained_on *t, uint32_t device);
/* What of the signature is new to the device of the model, added to *out. stranger: the device
 * answers for another one, whose instructions are its own: that it is another one says so, and
 * features are not compared. */
void cd_trained_on_check(const cd_trained_on *t, uint32_t device, bool stranger,
                         const cd_signature *s, cd_unlike *out);
/* Whether a mark of a device itself (types, threads, vectors, features) is new to it, whatever
 * others saw. */
bool cd_trained_on_lacks(const cd_trained_on *t, uint32_t device, const char *mark);
/* `old` with `more` (n) seen by a device; the device n_device is one more, which saw what `like`
 * did. Errors: ENOMEM. */
cdmpp_status cd_trained_on_more(cd_arena *a, const cd_trained_on *old, uint32_t device,
                                uint32_t like, const char *const *more, size_t n,
                                cd_trained_on **out, cdmpp_err *err);
/* Widens an interval of seconds around the answer for these reasons; a reason without a law makes
 * all three NaN. t NULL: nothing. */
void cd_trained_on_widen(const cd_trained_on *t, uint32_t reason, double latency_s, double *low_s,
                         double *high_s, double *rel_std);
/* The standard deviation that programs with these reasons have in common, each reason by its part
 * (0 to 1) of the time; NaN parts are none. t NULL: 0. */
double cd_trained_on_shift(const cd_trained_on *t, const double part[CD_N_UNLIKE]);

/* Key "trained_on" of a model's header: as JSON, and back. Errors: ESCHEMA, ERANGE, ENOMEM. */
void cd_trained_on_write(const cd_trained_on *t, cd_buf *b);
cdmpp_status cd_trained_on_read(const cd_json *v, size_t n_device, cd_arena *a, cd_trained_on **out,
                                cdmpp_err *err);

/* device_law -- how far off a model is on a device that it never saw, where another device of its
 * kind stands for it.
 *
 *   ln(measured / median) of a program  =  shift of the device  +  what the model errs anywhere
 *                                          +  own of the program
 *
 *   machines of the training, each left out once ──> law ──> header key "unseen"
 *       (learner/train/device_law_fit.c)
 *   law, distance of the device to its stand-in ──> doubt ──> wider intervals
 *
 *   (1) shift is one number for all programs of a device: the sum of a network has it as a program
 *       has. Own is drawn for each program.
 *   (2) a law of few machines has the quantiles of Student's t; it is pooled with the least spread,
 *       and no shift is less than that.
 *   (3) a model of one device has no law: the least spread answers. A device that is farther from
 *       its stand-in than the machines that were left out has a larger shift;
 *   (4) peaks of both that differ by a factor are an end of the interval of 90 %: a program need
 *       not profit from a peak, few profit more. Where analytic times are computed with the
 *       device's own description, only what is beyond the peaks of machines that were left out in
 *       this way is: of those the shift tells;
 *   (5) GPUs that run another number of threads in lockstep (other makers, other compilers) have a
 *       law of their own, WIDTH: all machines of a width are left out at once. */
enum { CD_DEVICE_LAW_CPU, CD_DEVICE_LAW_GPU, CD_DEVICE_LAW_WIDTH, CD_N_DEVICE_LAW };
/* Standard deviations of the least spread and the distance that it is of: measured once
 * (device_law.c). */
#define CD_DEVICE_LAW_LEAST_SHIFT 0.20
#define CD_DEVICE_LAW_LEAST_OWN   0.43
#define CD_DEVICE_LAW_DISTANCE    0.105

typedef struct cd_device_law {
    uint32_t n;      /* machines that were left out; 0: none, and nothing below */
    double shift;    /* root mean square over them */
    double own;      /* beyond what the model says of its programs: standard deviation */
    double distance; /* mean over them, to their stand-ins (cd_device_distance) */
    /* cd_device_law_peaks of a machine and its stand-in, the most, where analytic times are the
     * machine's own; 0: they are not */
    double peaks;
} cd_device_law;

/* Standard deviations of ln(true / median) that a stand-in adds; of an interval of 90 % that many
 * times 1.645. */
typedef struct cd_device_doubt {
    double shift, own;
} cd_device_doubt;

/* distance: of the device to its stand-in; NaN, infinity: not known. peaks: cd_device_law_peaks of
 * both; 0: not known. */
cd_device_doubt cd_device_law_at(const cd_device_law *l, double distance, double peaks);
/* Of two descriptions as vectors: logarithm of the ratio of peaks, of arithmetic or of memory, that
 * differs most; 0: one of them does not say any. */
double cd_device_law_peaks(const float *a, const float *b);
bool cd_device_law_any(const cd_device_law law[CD_N_DEVICE_LAW]);
void cd_device_law_write(const cd_device_law law[CD_N_DEVICE_LAW], cd_buf *b);
/* Errors: ESCHEMA, ERANGE. */
cdmpp_status cd_device_law_read(const cd_json *v, cd_device_law law[CD_N_DEVICE_LAW],
                                cdmpp_err *err);

/* What machines that are left out say of it (learner/train/device_law_fit.c). */
typedef struct cd_device_law_error {
    double r; /* ln(measured / answer) */
    uint32_t task;
    double weight; /* set by the callee */
} cd_device_law_error;
/* Mean of n errors, in which each task counts the same, and the spread of what is left: a normal
 * law of this standard deviation has nine of ten within. Reorders e; 0, 0: there is none. */
void cd_device_law_parts(cd_device_law_error *e, size_t n, double *shift, double *spread);
/* Are these descriptions of one machine, for two instruction sets? */
bool cd_device_law_one_machine(const float *a, const float *b);

typedef struct cd_model cd_model;
typedef struct cd_model_scratch cd_model_scratch;

/* Errors: EIO, EPARSE (no model file, cut short, checksum), EUNSUPPORTED (a newer
 * version), EMODEL (made for other feature columns: says both digests), ENOMEM. */
cdmpp_status cd_model_load(const char *path, CD_GIVE cd_model **out, cdmpp_err *err);
cdmpp_status cd_model_from_bytes(const void *p, size_t n, CD_GIVE cd_model **out, cdmpp_err *err);
void cd_model_free(CD_TAKE cd_model *m); /* NULL is fine */

/* The header, one JSON object, NUL-terminated. */
CD_KEEP const char *cd_model_header(const cd_model *m);

/* Tasks that a model was trained on, each on a device of it, as hashes; none where the header does
 * not say. Free after an error too. */
typedef struct cd_trained_tasks {
    uint64_t *v; /* (n) sorted, owned */
    size_t n;
} cd_trained_tasks;
/* From the list of the header ("best.tasks"), and from a model. Errors: ESCHEMA, ENOMEM. */
cdmpp_status cd_trained_tasks_read(const cd_json *list, cd_trained_tasks *out, cdmpp_err *err);
cdmpp_status cd_trained_tasks_of(const cd_model *m, cd_trained_tasks *out, cdmpp_err *err);
void cd_trained_tasks_free(cd_trained_tasks *t);
/* Was the model trained on programs of this task on this device of its? */
bool cd_trained_tasks_knows(const cd_trained_tasks *t, const char *key, const char *device);

/* The SHA-256 at the end of its file, 64 hex digits: two files of one digest are the same model. */
CD_KEEP const char *cd_model_digest(const cd_model *m);
/* The small model for schedule search in the same file: same devices, no header of its own, lives
 * as long as m. NULL: none. */
CD_KEEP const cd_model *cd_model_tuner(const cd_model *m);
/* The members that were taught the order inside a task and give order_s below: kinds, members and
 * weights alone. NULL: the median orders. */
CD_KEEP const cd_model *cd_model_order(const cd_model *m);
size_t cd_model_n_device(const cd_model *m);
const char *cd_model_device(const cd_model *m, size_t i);
/* Number of a device in the model; -1 when it was not trained on. */
int cd_model_find_device(const cd_model *m, const char *name, size_t n);
/* Whether the programs of device i were GPU programs. */
int cd_model_device_is_gpu(const cd_model *m, size_t i);

/* Its kinds of members in the order of the configuration, and the weight of each in the answer. */
size_t cd_model_n_kind(const cd_model *m);
cd_member_kind cd_model_kind(const cd_model *m, size_t k);
double cd_model_weight(const cd_model *m, size_t k);
/* Its members, in the order of header key model.members. */
size_t cd_model_n_member(const cd_model *m);
CD_KEEP const cd_member *cd_model_member(const cd_model *m, size_t i);

/* The kinds of programs that it was trained on; NULL: not known, of models and data sets of earlier
 * versions. */
CD_KEEP const cd_trained_on *cd_model_trained_on(const cd_model *m);

/* The numbers that describe device i, features/device/device.h; *width 0: the file has none; all
 * zero: the device was not described. */
CD_KEEP const float *cd_model_device_vector(const cd_model *m, size_t i, size_t *width);

/* Working memory of one thread; it grows with what it is used for. Errors: ENOMEM. */
cdmpp_status cd_model_scratch_new(CD_GIVE cd_model_scratch **out, cdmpp_err *err);
void cd_model_scratch_free(CD_TAKE cd_model_scratch *s); /* NULL is fine */

/* Does it read the rows of programs in the order of cd_rows_order (features/rows), as all do but
 * those of input version 1, which read them as they come? */
bool cd_model_orders_rows(const cd_model *m);
/* Do members read the steps of schedules, so that a view must have them? */
bool cd_model_needs_steps(const cd_model *m);
/* Do members read facts of loop nests, so that a view must have them with analytic times? */
bool cd_model_needs_facts(const cd_model *m);
/* Of which programs: facts of CPU and of GPU programs have different columns. */
cd_facts_set cd_model_facts_set(const cd_model *m);
/* What the analytic times of device i were computed with; NULL: no member reads facts. */
CD_KEEP const cd_device_numbers *cd_model_device_numbers(const cd_model *m, size_t i);
/* Do members read the leaves of programs, so that a view must have them? */
bool cd_model_needs_leaves(const cd_model *m);
/* The kind of the first member that does, for messages; NULL: rows alone suffice. */
CD_KEEP const char *cd_model_leaf_reader(const cd_model *m);
/* Leaves that the network with the fewest slots tells apart (head flatten); further ones
 * share its last slot. 0: no such limit. */
size_t cd_model_slots(const cd_model *m);

#define CD_MODEL_OUT_OF_RANGE 1u /* unlike what the model was trained on; see calibration.h */

/* Seconds are finite and > 0, low_s < latency_s < high_s. A model of version 1 knows no
 * uncertainty: low_s, high_s and rel_std are NaN. So are those of a program that is unlike in a way
 * of which nothing tells how far off it is. */
typedef struct cd_model_prediction {
    double latency_s;     /* the answer: least mean |error| (docs/reference/model.md) */
    double median_s;      /* as often too high as too low */
    double low_s, high_s; /* interval of the level in the header, for a new task */
    double rel_std;       /* expected size of ln(measured/median) */
    uint32_t flags;       /* CD_MODEL_* */
    /* CD_UNLIKE_*: why it is out of range, as far as rows tell; the scorer adds what the task
     * tells */
    uint32_t reason;
    /* how far it lies outside of the range of training, in widths of columns (calibration.h) */
    double outside;
    /* rel_std before that of an unlike program was widened: what the point is made with */
    double like_std;
    /* > 0: less comes first among the programs of a task. median_s, unless the model has members
     * for the order: then no time */
    double order_s;
} cd_model_prediction;
/* What a ranking takes for the expected size of ln(measured/median): rel_std; of a program of which
 * nothing tells how far off it is, what programs that are like the training have; 0 where a model
 * knows neither. Never NaN: a candidate without an interval has its place among the others. */
double cd_model_expected_error(const cd_model_prediction *p);
/* What is known of a program beside its features. */
typedef struct cd_model_asked {
    /* its kind was: the range of features is judged by trained_on's limit */
    bool compared;
    bool uncorrected;             /* the correction of a machine (here.h) is not wanted */
    uint32_t reason;              /* CD_UNLIKE_*: what its kind has that was not trained on */
    const cd_device_doubt *doubt; /* another device answers for its own; NULL: the model knows it */
} cd_model_asked;
/* From what the members say of program p of a view to the answer, in this order and nowhere else:
 * corrected for the machine, which learned from answers without marks; marked as unlike, which is
 * as wide as such errors are whatever a correction says of others; widened where another device
 * answers. Errors: those of cd_here_apply. */
cdmpp_status cd_model_settle(const cd_model *m, const cd_program_view *v, size_t p,
                             const cd_model_asked *asked, cd_model_prediction *io, cdmpp_err *err);
/* The answer for a program that is unlike for these reasons, and out of range: flagged, with an
 * interval that is as wide as such errors are, or none where nothing tells. */
void cd_model_mark_unlike(const cd_model *m, bool compared, uint32_t reason,
                          cd_model_prediction *p);
/* The interval of a program of a device for which device i of the model answered. want, has:
 * descriptions of both as vectors; NULL: nobody describes one. */
void cd_device_doubt_widen(const cd_device_doubt *d, cd_model_prediction *p);
cd_device_doubt cd_model_device_doubt(const cd_model *m, size_t i, const float *want,
                                      const float *has, bool own_times);
/* Whether the model computes analytic times of programs of a described device with its own numbers,
 * though another one stands for it: it reads facts, and the description says enough. NULL:
 * false. */
bool cd_model_own_times(const cd_model *m, const cd_device *about);

/* Score programs index[0 .. n) of the view (NULL: 0 .. n), whose `device` are numbers in the model.
 * Errors: EMODEL, ENUMERIC, EBACKEND, ENOMEM; out is then untouched or partly written. */
cdmpp_status cd_model_predict(const cd_model *m, cd_model_scratch *s, const cd_program_view *v,
                              const uint32_t *index, size_t n, cd_model_prediction *out,
                              cdmpp_err *err);
/* The same at a fraction of the cost, to put many programs in order before the model is asked about
 * the best: of each kind one member answers, and of its trees the first 100. See
 * predictor/estimate/schedule_db_pick.c for what that costs. */
cdmpp_status cd_model_sketch(const cd_model *m, cd_model_scratch *s, const cd_program_view *v,
                             const uint32_t *index, size_t n, cd_model_prediction *out,
                             cdmpp_err *err);

/* model_build -- the fields of a model, for who fills one: the trainer (learner/train) and the file
 * (model_read.c). All others use model.h. */

struct cd_model {
    size_t n_kind;
    cd_member_kind kind[CD_N_MEMBER_KIND]; /* each once, in the order of the configuration */
    size_t n_member;
    cd_member *member;     /* (n_member) owned */
    cd_calibration *calib; /* owned; NULL in files of version 1: then `weight` */
    double weight[CD_N_MEMBER_KIND];
    double log_min, log_max; /* of the latencies trained on, widened by a factor e */
    size_t n_device;
    const char **device;
    uint8_t *device_is_gpu;
    size_t w_device;        /* numbers that describe a device, as they were when it was trained */
    float *device_vector;   /* (n_device, w_device); zeros when the device is not described */
    cd_facts_set facts_set; /* of which programs members read facts; with numbers */
    /* (n_device) in the arena: what analytic times were computed with; NULL: no member reads
     * facts */
    cd_device_numbers *numbers;
    const cd_trained_on *trained_on;    /* in the arena; NULL: not known */
    cd_device_law law[CD_N_DEVICE_LAW]; /* of devices that it never saw */
    bool rows_as_given; /* of input version 1: its answers depend on the order of rows */
    const char *header;
    char digest[65];      /* of the file */
    struct cd_here *here; /* in the arena, but for its trees; NULL: not corrected */
    /* profile tuner, owned; its device arrays are this model's; NULL: none */
    struct cd_model *tuner;
    struct cd_model *order; /* members for the order, without calib, owned likewise; NULL: none */
    /* 0 to 1: ln order_s = share * mean of the kinds of order + (1 - share) * ln median_s */
    double order_share;
    cd_arena arena; /* names, vectors, header */
};

/* ln seconds of each kind: mean over those of its members that `fold` admits, kind_log_s
 * (n_kind, n). fold -1: all members; else only those of this fold. */
cdmpp_status cd_model_kinds(const cd_model *m, cd_model_scratch *s, const cd_program_view *v,
                            const uint32_t *index, size_t n, int fold, double *kind_log_s,
                            cdmpp_err *err);
/* From those to the answer; fold as of cd_calibration_apply. */
cdmpp_status cd_model_answer(const cd_model *m, cd_model_scratch *s, const cd_program_view *v,
                             const uint32_t *index, size_t n, int fold, const double *kind_log_s,
                             cd_model_prediction *out, cdmpp_err *err);

/* Write file and header; `provenance` is the inside of a JSON object (without
 * braces). Errors: EIO, ENOMEM, EBACKEND. */
cdmpp_status cd_model_encode(const cd_model *m, const char *provenance, cd_buf *out,
                             cdmpp_err *err);
/* Makes m->tuner, or m->order, empty, on the devices of m; NULL: out of memory. */
cd_model *cd_model_new_tuner(cd_model *m);
cd_model *cd_model_new_order(cd_model *m);
/* order_s of n answers from what the kinds of m->order say, kind_log_s (m->order->n_kind, n);
 * nothing where m has no order. */
void cd_model_mix_order(const cd_model *m, const double *kind_log_s, size_t n,
                        cd_model_prediction *out);

/* online_adapt -- measured programs of a task correct what the model says about others.
 *
 *   device --+-- shift b (all tasks together)
 *            +-- task --+-- item: trait (CD_N_TRAIT), median_log, sigma, measured_log
 *                       +-- item ...                       e = measured_log - median_log
 *
 *   e of a program = b + sigma * z,   z ~ Gaussian process of the task,
 *   cov(z, z') = 0.1 + 0.5 exp(-d/2) + 0.4 [same program],
 *   d = mean over traits of ((t - t')/4)^2 + (median_log - median_log')^2
 *
 * The prior is the model's own: sigma is what it expects of its error for that program, so nothing
 * is trained and nothing measured means nothing changed. The shares were chosen on held-out tasks
 * of a CPU set: half of the errors' variance lies within a task and is shared by like programs
 * (docs/reference/api.md has the figures). b has variance 0.01 for a device that the model was
 * trained on; for another one it is a Gaussian process over all programs (online_adapt.c).
 *
 * (1) Robust: items beyond 1.5 noise deviations of their fit count less (Huber, four rounds).
 * (2) The result depends on the items of each task, not on their order, up to rounding; of a task
 *     with more than CD_ONLINE_ADAPT_MAX the oldest are forgotten.
 * (3) The answer's shift against the median and its interval shrink with the variance that is left,
 *     which is scaled by how well the items of the task agree with the prior.
 * (4) add changes what fit uses; apply sees the last fit. apply: any number of threads and no heap,
 *     add and fit: one thread, and none in apply meanwhile. */

enum { CD_N_TRAIT = 13, CD_ONLINE_ADAPT_MAX = 128 };

typedef struct cd_online_adapt cd_online_adapt;

typedef struct cd_online_adapt_item {
    double median_log, sigma, measured_log; /* ln s; sigma > 0 */
    float trait[CD_N_TRAIT];
} cd_online_adapt_item;

/* What makes programs of a task like or unlike, from its rows, n_row >= 1. */
void cd_online_adapt_traits(const float *row, size_t n_row, float trait[CD_N_TRAIT]);
/* Of a prediction and its measurement, both > 0 s; `unknown` as below. */
cd_online_adapt_item cd_online_adapt_item_of(const cd_model_prediction *p, bool unknown,
                                             const float trait[CD_N_TRAIT], double measured_s);

/* Nothing measured yet. Errors: ENOMEM. */
cdmpp_status cd_online_adapt_new(CD_GIVE cd_online_adapt **out, cdmpp_err *err);
void cd_online_adapt_free(CD_TAKE cd_online_adapt *a); /* NULL is fine */
/* `unknown`: no program of the device was trained on. Errors: ENOMEM; then nothing is entered. */
cdmpp_status cd_online_adapt_add(cd_online_adapt *a, const char *device, bool unknown,
                                 const char *task, const cd_online_adapt_item *item,
                                 cdmpp_err *err);
/* Errors: ENOMEM; then the last fit stands for the tasks that were not reached. */
cdmpp_status cd_online_adapt_fit(cd_online_adapt *a, cdmpp_err *err);
/* Correct *p; false: nothing was measured on that device, *p is as it was. */
bool cd_online_adapt_apply(const cd_online_adapt *a, const char *device, const char *task,
                           const float trait[CD_N_TRAIT], cd_model_prediction *p);
/* Items kept. */
size_t cd_online_adapt_count(const cd_online_adapt *a);

/* ---- online_adapt_file.c: {"schema":"cdmpp.observer","schema_version":1,"model":"...",
 * "devices":[{"name","unknown","tasks":[{"key",
 * "items":[[median_log, sigma, measured_log, 13 traits], ...]}]}]} ---- */
/* `model`: which one the items belong to. Out of memory is in out->oom. */
void cd_online_adapt_write(const cd_online_adapt *a, const char *model, cd_buf *out);
/* Fitted. Errors: EPARSE, ESCHEMA, ERANGE, EUNSUPPORTED (version), EMODEL (of another model),
 * ENOMEM. */
cdmpp_status cd_online_adapt_read(const char *text, size_t n, const char *model,
                                  CD_GIVE cd_online_adapt **out, cdmpp_err *err);

/* attribution -- which rows and leaves of a program its predicted time belongs to.
 *
 *   member: ln seconds --+-- rows, rank of rows, head sum: its seconds are a sum, its terms --+
 *                        |                                                                    |
 *                        +-- any other: Shapley values of its seconds, rows in or out --------+
 *                                                                                             |
 *   shares of a member <----------------------------------------------------------------------+
 *   shares of members -- mean over folds, weighted like the kinds --> share of a row, of a leaf
 *
 * (1) Shares are >= 0 and sum to 1 up to rounding, over rows and over leaves; a row's is the sum of
 *     its leaves'. So share * seconds sums to the seconds, whichever of cd_model_prediction they
 *     are.
 * (2) The answer is a product of the kinds' seconds to the power of their weights. If every member
 *     had a term of it r % larger, the answer would be share * r % larger, to first order: that is
 *     what the weighted mean of shares means. Corrections (calibration.h) scale all terms alike.
 * (3) Players of a Shapley value are the rows, taken out of the program (no row: 0 s); of a network
 *     that reads leaves they are the leaves, whose columns become zeros, for the tree stays. Exact
 *     for up to CD_SHARE_EXACT players; then over CD_SHARE_ORDERS orders and their reverses, drawn
 *     with a fixed key; beyond CD_SHARE_DRAWN players in proportion to the seconds that each has
 *     alone. A value below 0 (the member answers less with the row than without) counts as 0.
 * (4) Members that see rows do not tell the leaves of a row apart: its share is divided by trip
 *     counts. The other way round leaves add up to rows.
 * Asks the heap; one thread, the model is shared. */

enum { CD_SHARE_EXACT = 7, CD_SHARE_ORDERS = 16, CD_SHARE_DRAWN = 48 };

/* The only program of v, with its leaves; leaf_row (leaves): the row of each. row (rows) and leaf
 * (leaves) are filled. Errors: those of cd_model_predict; EMODEL (no leaves, a row without one). */
cdmpp_status cd_attribution_shares(const cd_model *m, const cd_program_view *v,
                                   const int32_t *leaf_row, double *row, double *leaf,
                                   cdmpp_err *err);

/* The columns of the row with most operations halfway between the least and the largest that the
 * model was trained on, (164). False: the model does not know (version 1). */
bool cd_model_middle(const cd_model *m, float *column);

#include "learner/model/calibration.h"
#include "learner/model/here.h"
#endif
