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
 *             "kinds":[names],"dtypes":[names],
 *             "intervals":[{"held":"row|large|device","classes":[names],"device":name or null,"rows","devices","at":[ln s],
 *                           "scale":[..],"times":[one for each level],"shared"}],
 *             "parts":[{"family","seen":bool,"bias","rounds","bytes"}]}, provenance}
 * and the parts' boosters (XGBoost's UBJ) as weights, in that order.
 *
 * Files without kinds, dtypes and intervals: float32, every kind of a trained class, no intervals.
 *
 * Devices that were trained on are described by the model, not by a file that may have
 * changed since. Immutable after loading: any thread. */
#ifndef CD_LIBRARY_OP_MODEL_H
#define CD_LIBRARY_OP_MODEL_H
#include "base/core/core.h"
#include "learner/operators/library_op_feature.h"
#include "learner/operators/library_op_interval.h"

typedef struct cd_library_op_model cd_library_op_model;

/* Errors: EIO, EPARSE ESCHEMA ERANGE (damaged, or another kind of model: EMODEL),
 * EUNSUPPORTED, EMODEL (other features: train again), ENOMEM, EBACKEND. */
cdmpp_status cd_library_op_model_load(const char *path, CD_GIVE cd_library_op_model **out, cdmpp_err *err);
cdmpp_status cd_library_op_model_from_bytes(const void *p, size_t n, CD_GIVE cd_library_op_model **out, cdmpp_err *err);
void cd_library_op_model_free(CD_TAKE cd_library_op_model *m); /* NULL is fine */
CD_KEEP const char *cd_library_op_model_header(const cd_library_op_model *m);

/* Was the operator's class trained on this device? Products of one class tell less of the other than other devices' do:
 * linear of A100, V100 from their own bmm 19.5, 12.1 %, from other devices alone 11.0, 13.9. */
bool cd_library_op_model_seen(const cd_library_op_model *m, cd_library_op_kind k, const cd_device *d);
/* Does the record ask for more work than any training row of its class? */
bool cd_library_op_model_beyond(const cd_library_op_model *m, const cd_library_op_record *r);
/* Operations of a product, elements of a stream: what cd_library_op_model_beyond compares. */
double cd_library_op_record_work(const cd_library_op_record *r);

/* What makes an answer one for which the training rows do not speak. */
enum {
    CD_LIBRARY_OP_UNLIKE_DEVICE = 1,   /* its class was not trained on the device */
    CD_LIBRARY_OP_UNLIKE_DTYPE = 2,    /* no row of its type */
    CD_LIBRARY_OP_UNLIKE_OPERATOR = 4, /* no row of it on any device */
    CD_LIBRARY_OP_UNLIKE_BEYOND = 8    /* cd_library_op_model_beyond */
};
typedef struct cd_library_op_range {
    double low_s, high_s;  /* interval of the level; NaN: the model has none, as files of older programs */
    double spread, shared; /* standard deviation of ln(measured / predicted), 0 without an interval; part of its variance that the
                            * operators of the device have in common */
    unsigned unlike;       /* CD_LIBRARY_OP_UNLIKE_*: 0: in range */
} cd_library_op_range;
/* Of an answer `latency_s` of cd_library_op_model_predict. Devices, types and operators that were not trained on get the interval of
 * devices held out, larger sizes that of the largest rows held out, all never a narrower one than that of rows held out. level: 0..1, both open. */
cd_library_op_range cd_library_op_model_range(const cd_library_op_model *m, const cd_library_op_record *r, const cd_device *d, double latency_s,
                                              double level);
/* "device", or several as "device+beyond"; "" for 0. */
void cd_library_op_unlike_text(unsigned unlike, char out[40]);

/* Seconds, finite and > 0, of n records on their devices. Errors: EMODEL (a family that
 * was not trained, a device that lacks a number) with the index of the record as key,
 * EBACKEND, ENOMEM, ENUMERIC. */
cdmpp_status cd_library_op_model_predict(const cd_library_op_model *m, const cd_library_op_record *r, const cd_device *const *device, size_t n,
                                double *latency_s, cdmpp_err *err);
#endif
