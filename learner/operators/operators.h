/* The door of learner/operators: other rooms include this header and no other of the room.
 *
 * Cost models of library operators (matrix products, convolutions, softmax ... as cuBLAS and cuDNN
 * run them) for devices where no schedule exists: the tables of measurements, features, the model,
 * its file and its figures. learner/train trains them, predictor/network uses them. */
#ifndef CD_LEARNER_OPERATORS_DOOR_H
#define CD_LEARNER_OPERATORS_DOOR_H
#include "learner/operators/library_op_feature.h"
#include "learner/operators/novelty.h"
#include "learner/operators/op_rows.h"
#include "learner/trees/trees.h"

/* library_op_data -- the rows of operator tables that a training uses.
 *
 *   files, folders -> rows -> device known? -> measured? -> wanted? -> seen before? -> kept
 *
 * (1) rows keep the order of the files; of rows that ask the same of the same device the
 *     first stays;
 * (2) `device` numbers the devices in order of their first row;
 * (3) what is left out is counted by reason, what the filter excludes by its entries, and bad lines
 *     are told one by one. */

typedef enum {
    CD_LIBRARY_OP_DROP_BAD,      /* lines that are no record, or of an unknown device */
    CD_LIBRARY_OP_DROP_QUESTION, /* no latency */
    CD_LIBRARY_OP_DROP_DEVICE,   /* another device than asked for */
    CD_LIBRARY_OP_DROP_EXCLUDED, /* by an entry of the filter */
    CD_LIBRARY_OP_DROP_REPEATED,
    CD_LIBRARY_OP_N_DROP
} cd_library_op_drop;
/* The reason in words, for reports. */
const char *cd_library_op_drop_text(cd_library_op_drop d);

typedef struct cd_library_op_data {
    CD_OP_ROWS(cd_library_op_record);
    size_t drop[CD_LIBRARY_OP_N_DROP];
    /* rows by the entry of the filter's `exclude` that is the first to name them; NULL: no row was
     * read */
    size_t *excluded;
} cd_library_op_data;

typedef struct cd_library_op_filter {
    cd_texts devices; /* only these; none: all */
    cd_texts exclude; /* "device/operator" or "device/class" */
} cd_library_op_filter;

/* Append what `path` (a table, or a folder) holds. Start from {0}. Errors: EIO and those of
 * cd_library_op_reader_open; ESCHEMA (a filter that names an unknown device, operator or class);
 * ENOMEM. All calls have the same filter. */
cdmpp_status cd_library_op_data_add(cd_library_op_data *d, const char *path,
                                    const cd_device_table *devices, const cd_library_op_filter *f,
                                    cd_op_bad_line *bad, void *ctx, cdmpp_err *err);
void cd_library_op_data_free(cd_library_op_data *d);
/* The row that asks the same of the device; NULL: there is none. */
CD_KEEP const cd_library_op_record *cd_library_op_data_find(const cd_library_op_data *d,
                                                            const cd_library_op_record *r,
                                                            const cd_device *device);

/* library_op_interval -- how far measured times are from predictions of what a training did not
 * see.
 *
 *   residuals r = ln(measured / predicted) of rows held out -> for each kind of holding out, for
 *   classes and devices:
 *     rows       scale(predicted seconds)    root of the mean of r^2 around a time, between knots;
 *                                            each class and device counts the same
 *     larger     between(octaves)            what the rows of a device have in common: root of
 *                                            the mean over devices of (their mean r)^2
 *     devices    between(predicted seconds)  the same around a time
 *                scale                       what is left: r less the device's mean around there
 *     times[level]                           quantile of |r| / scale, or of what is left
 *   interval = predicted * exp(-/+ half),  half = hypot(scale * times, between * sqrt(grow) * t)
 *     t                                      Student's quantile: a device is one draw, however
 *                                            many rows it has
 *     grow = (1 + distance / far) / 2        of a new device: its distance to the nearest that was
 *                                            trained on, over the mean of those held out
 *
 * Few devices tell the spread of all devices badly, so between^2 is a mean with the classes' median
 * (weight of two devices), and t has as many degrees of freedom as devices and weights. Where no
 * device of a stack (lockstep width) was trained on, between and scale are multiplied by what they
 * were when one stack was held out; where there is one stack alone, by what they are of the device
 * that errs most. Of one device alone nobody knows how devices differ: larger rows then have a
 * scale alone. How it was chosen: docs/internals/learner-choices.md.
 *
 * Larger rows: the scales depend on how far beyond the training's sizes a row is, in octaves
 * (factors of two), in place of its time. They never fall with that distance. Beyond the last knot
 * they go on with the slope of the knots.
 *
 * (1) a wider level never gives a narrower interval; the width is above 0, and never below that of
 *     a device's own rows;
 * (2) devices held out need three devices, else there is no interval for a device that was not
 *     seen;
 * (3) entries stand from narrow to wide: one class of one device, one class, matrix products,
 *     all. */

enum { CD_LIBRARY_OP_KNOTS = 6, CD_LIBRARY_OP_LEVELS = 5, CD_LIBRARY_OP_MAX_SPREADS = 65536 };
#define CD_LIBRARY_OP_ANY_DEVICE UINT32_MAX

/* What was held out of the training that gave a residual. */
typedef enum {
    CD_LIBRARY_OP_HELD_ROW,    /* rows of like sizes */
    CD_LIBRARY_OP_HELD_LARGE,  /* the rows with the largest sizes */
    CD_LIBRARY_OP_HELD_DEVICE, /* the device */
    /* all devices of its lockstep width; no entries are of it, it widens those of devices */
    CD_LIBRARY_OP_HELD_STACK,
    CD_LIBRARY_OP_N_HELD
} cd_library_op_held;
enum { CD_LIBRARY_OP_N_ENTRY = CD_LIBRARY_OP_HELD_STACK };
#define CD_LIBRARY_OP_HELD_NAMES "row|large|device"

typedef struct cd_library_op_residual {
    cd_library_op_held held;
    cd_library_op_class class;
    uint32_t device; /* number of the device */
    uint32_t part;   /* rows that were held out together: a fold, a device, a stack */
    /* number of the device's stack; used of CD_LIBRARY_OP_HELD_DEVICE and _STACK */
    uint32_t stack;
    double predicted_s, log_ratio;
    /* octaves beyond the sizes of the training, >= 0; used of CD_LIBRARY_OP_HELD_LARGE */
    double reach;
    /* cd_device_distance to the nearest device of the training, >= 0; used as the stack is */
    double distance;
} cd_library_op_residual;

typedef struct cd_library_op_spread {
    cd_library_op_held held;
    uint32_t classes; /* bit of each class that it is of */
    uint32_t device;  /* as in the residuals, or CD_LIBRARY_OP_ANY_DEVICE */
    uint64_t n_row, n_device;
    size_t n_knot;
    /* ln of predicted seconds or octaves, ascending; > 0 */
    double at[CD_LIBRARY_OP_KNOTS], scale[CD_LIBRARY_OP_KNOTS];
    /* at cd_library_op_level; > 0, never falling */
    double times[CD_LIBRARY_OP_LEVELS];
    /* at the knots; freedom 0: there is none */
    double between[CD_LIBRARY_OP_KNOTS], freedom;
    double far; /* 0: distance does not count */
    /* factors, >= 1, of between and scale for another stack; 0: as for the same one */
    double other[2], other_freedom;
    /* part of the variance that the rows of a device have in common, 0..1: of entries without
     * `between` */
    double shared;
} cd_library_op_spread;

/* How far a question is from what was trained on. */
typedef struct cd_library_op_apart {
    double reach;    /* octaves beyond the sizes */
    double distance; /* to the nearest device; below 0: it does not count */
    bool other;      /* no device of its stack */
} cd_library_op_apart;

/* Levels of `times`, ascending. */
extern const double cd_library_op_level[CD_LIBRARY_OP_LEVELS];

/* All entries that the residuals suffice for, in the arena; *n 0: none. Errors: ENOMEM. */
cdmpp_status cd_library_op_spread_fit(const cd_library_op_residual *r, size_t n, cd_arena *a,
                                      cd_library_op_spread **out, size_t *n_out, cdmpp_err *err);
/* The narrowest entry for a class and a device (CD_LIBRARY_OP_ANY_DEVICE: not one of them); NULL:
 * none. */
const cd_library_op_spread *cd_library_op_spread_find(const cd_library_op_spread *v, size_t n,
                                                      cd_library_op_held held,
                                                      cd_library_op_class c, uint32_t device);
/* Half the width of the interval as a logarithm, > 0. level: 0..1, both open. */
double cd_library_op_spread_half(const cd_library_op_spread *s, double predicted_s,
                                 const cd_library_op_apart *a, double level);
/* Part of the variance that the rows of a device have in common there, 0..1. */
double cd_library_op_spread_shared(const cd_library_op_spread *s, double predicted_s,
                                   const cd_library_op_apart *a);

/* Residuals inside the interval of the level, of entries that were fitted without the residual's
 * part. */
typedef struct cd_library_op_coverage {
    uint64_t n, inside, parts;
} cd_library_op_coverage;
/* Of one kind of holding out; class CD_N_LIBRARY_OP_CLASS: of all. Errors: ENOMEM. */
cdmpp_status cd_library_op_spread_check(const cd_library_op_residual *r, size_t n,
                                        cd_library_op_held held, double level,
                                        cd_library_op_coverage out[CD_N_LIBRARY_OP_CLASS + 1],
                                        cdmpp_err *err);

/* library_op_model -- latencies of library operators: a trained model and its file.
 *
 *   record + device -> library_op_feature.h -> base time, ratios
 *                   -> trees of the operator's family: those that know the device when the
 *                      operator's class was trained on it, else those that never saw what
 *                      tells devices apart
 *   latency = max(floor, base time * exp(bias + score))
 *
 * File: a frame (frame.h) with the header
 *   {"schema":"cdmpp.model","schema_version":2,
 *    "model":{"kind":"operators","feature_version","feature_digest",
 *             "devices":[{"name","classes":[names],"kind", numbers of device_keys.def}],
 *             "largest":[work of the largest training row of each class],
 *             "sizes":[[the largest b, m, n, k, ksize] of each class;
 *                      0: the class does not depend on it],
 *             "kinds":[names],"dtypes":[names],
 *             "intervals":[{"held":"row|large|device|large-shift|device-shift","classes":[names],
 *                           "device":name or null,"rows","devices","at":[ln s; large: octaves],
 *                           "scale":[..],"times":[one for each level],"shared",
 *                           of -shift: "between":[..],"freedom",
 *                           of device-shift: "far","other":[between, scale],"other_freedom"}],
 *             "parts":[{"family","seen":bool,"bias","rounds","bytes"}]}, provenance}
 * and the parts' boosters (XGBoost's UBJ) as weights, in that order.
 *
 * Intervals "large", "device" of several devices are of older programs: `scale` is of all that a
 * device misses, whatever its distance. Those programs refuse the -shift ones. Files without kinds,
 * dtypes and intervals: float32, every kind of a trained class, no intervals. Files without sizes:
 * work alone tells which rows are larger, and these have no interval.
 *
 * Devices that were trained on are described by the model, not by a file that may have
 * changed since. Immutable after loading: any thread. */

typedef struct cd_library_op_model cd_library_op_model;

/* Errors: EIO, EPARSE ESCHEMA ERANGE (damaged, or another kind of model: EMODEL),
 * EUNSUPPORTED, EMODEL (other features: train again), ENOMEM, EBACKEND. */
cdmpp_status cd_library_op_model_load(const char *path, CD_GIVE cd_library_op_model **out,
                                      cdmpp_err *err);
cdmpp_status cd_library_op_model_from_bytes(const void *p, size_t n,
                                            CD_GIVE cd_library_op_model **out, cdmpp_err *err);
void cd_library_op_model_free(CD_TAKE cd_library_op_model *m); /* NULL is fine */
CD_KEEP const char *cd_library_op_model_header(const cd_library_op_model *m);

/* Was the operator's class trained on this device? Products of one class tell less of the other
 * than other devices' do: linear of A100, V100 from their own bmm 19.5, 12.1 %, from other devices
 * alone 11.0, 13.9. */
bool cd_library_op_model_seen(const cd_library_op_model *m, cd_library_op_kind k,
                              const cd_device *d);
/* Sizes that the time of an operator depends on: work and b, m, n, k, ksize. */
enum { CD_LIBRARY_OP_N_SIZE = 6 };
/* Operations of a product, elements of a stream. */
double cd_library_op_record_work(const cd_library_op_record *r);
/* 0 for a size that the time of the operator's class does not depend on: an elementwise operator
 * has work alone, softmax and layer norm have rows and their length. */
void cd_library_op_record_sizes(const cd_library_op_record *r, double out[CD_LIBRARY_OP_N_SIZE]);
/* Is one of the record's sizes above that of every training row of its class? */
bool cd_library_op_model_beyond(const cd_library_op_model *m, const cd_library_op_record *r);

/* What makes an answer one for which the training rows do not speak. */
enum {
    CD_LIBRARY_OP_UNLIKE_DEVICE = 1,   /* its class was not trained on the device */
    CD_LIBRARY_OP_UNLIKE_DTYPE = 2,    /* no row of its type */
    CD_LIBRARY_OP_UNLIKE_OPERATOR = 4, /* no row of it on any device */
    CD_LIBRARY_OP_UNLIKE_BEYOND = 8,   /* cd_library_op_model_beyond */
    CD_LIBRARY_OP_UNLIKE_STACK = 16    /* with _DEVICE: nor on a device of its lockstep width */
};
typedef struct cd_library_op_range {
    /* interval of the level; NaN: the model has none, as files of older programs */
    double low_s, high_s;
    /* standard deviation of ln(measured / predicted), 0 without an interval; part of its variance
     * that the operators of the device have in common */
    double spread, shared;
    unsigned unlike; /* CD_LIBRARY_OP_UNLIKE_*: 0: in range */
} cd_library_op_range;
/* Threads in lockstep tell NVIDIA's GPUs from AMD's, and so whose libraries ran; two makers of one
 * width are taken for one. Not described: no. */
bool cd_library_op_same_stack(const cd_device *a, const cd_device *b);
/* From the devices that the operator's class was trained on; where it was trained on none, the
 * distance does not count. */
cd_library_op_apart cd_library_op_model_apart(const cd_library_op_model *m,
                                              const cd_library_op_record *r, const cd_device *d);
/* Of an answer `latency_s` of cd_library_op_model_predict. Devices that were not trained on get the
 * interval of devices held out, larger sizes that of the largest rows held out, all never a
 * narrower one than that of rows held out. None, where the model lacks one of these, and where
 * nothing was held out that tells: types, operators, another maker's devices where one maker alone
 * was trained on. level: 0..1, both open. */
cd_library_op_range cd_library_op_model_range(const cd_library_op_model *m,
                                              const cd_library_op_record *r, const cd_device *d,
                                              double latency_s, double level);
/* "device", or several as "device+beyond"; "" for 0. */
void cd_library_op_unlike_text(unsigned unlike, char out[40]);

/* Seconds, finite and > 0, of n records on their devices. Errors: EMODEL (a family that
 * was not trained, a device that lacks a number) with the index of the record as key,
 * EBACKEND, ENOMEM, ENUMERIC. */
cdmpp_status cd_library_op_model_predict(const cd_library_op_model *m,
                                         const cd_library_op_record *r,
                                         const cd_device *const *device, size_t n,
                                         double *latency_s, cdmpp_err *err);

/* library_op_model_build -- the fields of an operator model, for who fills one: its trainer
 * (learner/train) and its file. All others use library_op_model.h. */

typedef struct cd_library_op_model_part {
    cd_xgb *gbt; /* owned; NULL: the family was not trained */
    double bias;
} cd_library_op_model_part;

typedef struct cd_library_op_model_device {
    cd_device is;                      /* name in the model's arena */
    bool class[CD_N_LIBRARY_OP_CLASS]; /* trained on */
} cd_library_op_model_device;

struct cd_library_op_model {
    cd_library_op_model_part part[CD_LIBRARY_OP_N_FAMILY][2]; /* [family][seen] */
    cd_library_op_model_device *device;                       /* (n_device), in the arena */
    size_t n_device;
    /* of the training rows; 0: no row of this class */
    double largest[CD_N_LIBRARY_OP_CLASS][CD_LIBRARY_OP_N_SIZE];
    /* false: of a file that tells work alone, the rest is INFINITY */
    bool sizes_known;
    bool kind[CD_N_LIBRARY_OP_KIND], dtype[CD_N_LIBRARY_OP_DTYPE]; /* trained on */
    /* (n_spread), in the arena; devices are numbers into `device` */
    cd_library_op_spread *spread;
    size_t n_spread;
    const char *header;
    cd_arena arena;
};

/* Append the file; `provenance`: more members of the header, "" or starting with a comma.
 * Errors: ENOMEM, EBACKEND. */
cdmpp_status cd_library_op_model_encode(const cd_library_op_model *m, const char *provenance,
                                        cd_buf *out, cdmpp_err *err);

/* library_op_score -- how wrong predictions of operators are, by class, device and distance
 * from what was trained on.
 *
 *   predicted, measured of rows -> groups (class, device) -> table
 *                               -> totals (class, seen device?, within sizes?)
 *
 * One owner, one thread. */

typedef struct cd_library_op_score_row {
    cd_library_op_class class;
    const char *device; /* borrowed: outlives the score */
    bool seen, beyond;  /* device trained on; larger than any training row */
    double error;       /* predicted / measured - 1 */
    /* 1: the interval holds the measured time, 0: it does not, NaN: there is none */
    double inside;
} cd_library_op_score_row;

typedef struct cd_library_op_score {
    cd_library_op_score_row *row; /* owned */
    size_t n, cap;
} cd_library_op_score;

typedef struct cd_library_op_score_sum {
    size_t n;
    /* mean, median and 90 % quantile of |error|, median error, share with |error| <= 0.2 */
    double mape, median, p90, bias, within20;
    double mae_log; /* mean |ln(predicted/measured)| */
    /* share of rows with an interval that holds the measured time; NaN: none has one */
    double inside;
} cd_library_op_score_sum;

/* Of n errors, which are sorted by this; `inside` is left. */
void cd_library_op_score_errors(double *error, size_t n, cd_library_op_score_sum *out);
/* Appends a row. Errors: ENOMEM. */
cdmpp_status cd_library_op_score_add(cd_library_op_score *s, const cd_library_op_score_row *row,
                                     cdmpp_err *err);
/* Of rows that `want` says yes to (NULL: all); n 0: the rest is NaN. Errors: ENOMEM. */
typedef bool cd_library_op_score_want(const cd_library_op_score_row *r, const void *ctx);
cdmpp_status cd_library_op_score_sum_of(const cd_library_op_score *s,
                                        cd_library_op_score_want *want, const void *ctx,
                                        cd_library_op_score_sum *out, cdmpp_err *err);
/* A Markdown table, one row for each class and device, then totals. Errors: ENOMEM. */
cdmpp_status cd_library_op_score_text(cd_library_op_score *s, cd_buf *out, cdmpp_err *err);
/* A list of objects, one for each class and device: {"class":"..","device":"..","seen":true,"n":9,
 * "mape":..,"mae_log":..,"median":..,"bias":..,"within20":..,"inside":.. or null}.
 * Errors: ENOMEM. */
cdmpp_status cd_library_op_score_json(cd_library_op_score *s, cd_buf *out, cdmpp_err *err);
void cd_library_op_score_free(cd_library_op_score *s);

#include "learner/operators/library_op_scale.h"
#endif
