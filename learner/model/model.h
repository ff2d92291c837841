/* model -- a trained cost model: what predicting needs, and the file it lives in.
 *
 *   program --> member 0 (kind rows,        fold 0) --> ln s --\ mean of a kind's    weights, shift,
 *           --> member 1 (kind rows,        fold 1) --> ln s --/ folds -------------> uncertainty ----> cd_model_prediction
 *           --> member 2 (kind transformer, fold 0) --> ...                           (calibration.h)
 *   and the result is kept inside the range of training
 *
 * Model file, version 2 or 3, all numbers little-endian:
 *   (1) bytes 0..7    "CDMPPMDL"
 *   (2) 8..11         u32 version, 3 with profile tuner or where trees have a
 *                     train.objective but log_latency, else 2
 *   (3) 12..15        u32 zero
 *   (4) 16..23        u64 H, bytes of the header
 *   (5) 24..31        u64 B, bytes of the weights
 *   (6) 32..32+H      header: one JSON object, docs/reference/model.md lists its keys
 *   (7) ..+B          weights: of each member in the order and with the sizes of header key
 *                     "model.members" (trees: XGBoost's UBJ; networks: safetensors), then
 *                     those of "model.calib" (UBJ), then from byte "tuner.at" on, if there
 *                     is such a key, those of "tuner.members" and "tuner.calib"
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

#include "base/core/core.h"
#include "learner/inputs/inputs.h"
#include "learner/model/member.h"
#include "learner/model/trained_on.h"

typedef struct cd_model cd_model;
typedef struct cd_model_scratch cd_model_scratch;

/* Errors: EIO, EPARSE (no model file, cut short, checksum), EUNSUPPORTED (a newer
 * version), EMODEL (made for other feature columns: says both digests), ENOMEM. */
cdmpp_status cd_model_load(const char *path, CD_GIVE cd_model **out, cdmpp_err *err);
cdmpp_status cd_model_from_bytes(const void *p, size_t n, CD_GIVE cd_model **out, cdmpp_err *err);
void cd_model_free(CD_TAKE cd_model *m); /* NULL is fine */

/* The header, one JSON object, NUL-terminated. */
CD_KEEP const char *cd_model_header(const cd_model *m);
/* The SHA-256 at the end of its file, 64 hex digits: two files of one digest are the same model. */
CD_KEEP const char *cd_model_digest(const cd_model *m);
/* The small model for schedule search in the same file: same devices, no header of its own, lives as long as m. NULL: none. */
CD_KEEP const cd_model *cd_model_tuner(const cd_model *m);
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

/* The kinds of programs that it was trained on; NULL: not known, of models and data sets of earlier versions. */
CD_KEEP const cd_trained_on *cd_model_trained_on(const cd_model *m);

/* The numbers that describe device i, features/device/device.h; *width 0: the file has none; all
 * zero: the device was not described. */
CD_KEEP const float *cd_model_device_vector(const cd_model *m, size_t i, size_t *width);

/* Working memory of one thread; it grows with what it is used for. Errors: ENOMEM. */
cdmpp_status cd_model_scratch_new(CD_GIVE cd_model_scratch **out, cdmpp_err *err);
void cd_model_scratch_free(CD_TAKE cd_model_scratch *s); /* NULL is fine */

/* Do members read the leaves of programs, so that a view must have them? */
bool cd_model_needs_leaves(const cd_model *m);
/* The kind of the first member that does, for messages; NULL: rows alone suffice. */
CD_KEEP const char *cd_model_leaf_reader(const cd_model *m);
/* Leaves that the network with the fewest slots tells apart (head flatten); further ones
 * share its last slot. 0: no such limit. */
size_t cd_model_slots(const cd_model *m);

#define CD_MODEL_OUT_OF_RANGE 1u /* unlike what the model was trained on; see calibration.h */

/* Seconds are finite and > 0, low_s <= latency_s <= high_s. A model of version 1 knows
 * no uncertainty: low_s, high_s and rel_std are NaN. */
typedef struct cd_model_prediction {
    double latency_s;    /* the answer: least mean |error| (docs/reference/model.md) */
    double median_s;     /* as often too high as too low */
    double low_s, high_s;/* interval of the level in the header, for a new task */
    double rel_std;      /* expected size of ln(measured/median) */
    uint32_t flags;      /* CD_MODEL_* */
    uint32_t reason;     /* CD_UNLIKE_*: why it is out of range, as far as rows tell; the scorer adds what the task tells */
    double outside;      /* how far it lies outside of the range of training, in widths of columns (calibration.h) */
    double like_std;     /* rel_std before that of an unlike program was widened: what the point is made with */
} cd_model_prediction;
/* The answer for a program that is unlike for these reasons: flagged, with an interval that is as wide as such errors are. compared: its kind was, so that
 * the range of features is judged by trained_on's limit. */
void cd_model_mark_unlike(const cd_model *m, bool compared, uint32_t reason, cd_model_prediction *p);

/* Score programs index[0 .. n) of the view (NULL: 0 .. n), whose `device` are numbers in
 * the model. Errors: EMODEL, ENUMERIC, EBACKEND, ENOMEM; out is then untouched or partly written. */
cdmpp_status cd_model_predict(const cd_model *m, cd_model_scratch *s, const cd_program_view *v, const uint32_t *index, size_t n,
                              cd_model_prediction *out, cdmpp_err *err);
/* The same at a fraction of the cost, to put many programs in order before the model is asked about the best: of each kind one member
 * answers, and of its trees the first 100. See predictor/estimate/schedule_db_pick.c for what that costs. */
cdmpp_status cd_model_sketch(const cd_model *m, cd_model_scratch *s, const cd_program_view *v, const uint32_t *index, size_t n, cd_model_prediction *out,
                             cdmpp_err *err);

/* The other headers of the room that are open to other rooms. */
#include "learner/model/attribution.h"
#include "learner/model/calibration.h"
#include "learner/model/model_build.h"
#include "learner/model/online_adapt.h"
#endif
