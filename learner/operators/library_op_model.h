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
 *             "parts":[{"family","seen":bool,"bias","rounds","bytes"}]}, provenance}
 * and the parts' boosters (XGBoost's UBJ) as weights, in that order.
 *
 * Devices that were trained on are described by the model, not by a file that may have
 * changed since. Immutable after loading: any thread. */
#ifndef CD_LIBRARY_OP_MODEL_H
#define CD_LIBRARY_OP_MODEL_H
#include "base/core/core.h"
#include "learner/operators/library_op_feature.h"

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

/* Seconds, finite and > 0, of n records on their devices. Errors: EMODEL (a family that
 * was not trained, a device that lacks a number) with the index of the record as key,
 * EBACKEND, ENOMEM, ENUMERIC. */
cdmpp_status cd_library_op_model_predict(const cd_library_op_model *m, const cd_library_op_record *r, const cd_device *const *device, size_t n,
                                double *latency_s, cdmpp_err *err);
#endif
