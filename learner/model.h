/* model -- a trained cost model: what predicting needs, and the file it lives in.
 *
 *   rows of a program -> part 0: one score per row, latency = sum of exp(score)
 *                     -> part 1: one score per program = log(latency)
 *   log latency = sum of weight[k] * part k, kept inside the range of training
 *
 * A score is the trees' answer plus bias, for rows plus slope * log(trip count).
 *
 * Model file, version 1, all numbers little-endian:
 *   (1) bytes 0..7    "CDMPPMDL"
 *   (2) 8..11         u32 version, 1
 *   (3) 12..15        u32 zero
 *   (4) 16..23        u64 H, bytes of the header
 *   (5) 24..31        u64 B, bytes of the trees
 *   (6) 32..32+H      header: one JSON object, docs/model.md lists its keys
 *   (7) ..+B          the boosters of all parts, XGBoost's UBJ, one after another in
 *                     the order and with the sizes of header key "model.parts"
 *   (8) ..+64         SHA-256 of everything before, 64 lower-case hex digits
 *   (9) the file ends here
 * Every length is checked against the file before it is used, and XGBoost's own
 * reader sees the trees only after (8) agreed. The same seed and data give the
 * same bytes for any number of threads.
 *
 * A model is immutable: share it between threads, one scratch for each. */
#ifndef CD_MODEL_H
#define CD_MODEL_H
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

typedef struct cd_model cd_model;
typedef struct cd_model_scratch cd_model_scratch;

/* Errors: EIO, EPARSE (no model file, cut short, checksum), EUNSUPPORTED (a newer
 * version), EMODEL (made for other feature columns: says both digests), ENOMEM. */
cdmpp_status cd_model_load(const char *path, CD_GIVE cd_model **out, cdmpp_err *err);
cdmpp_status cd_model_from_bytes(const void *p, size_t n, CD_GIVE cd_model **out, cdmpp_err *err);
void cd_model_free(CD_TAKE cd_model *m); /* NULL is fine */

/* The header, one JSON object, NUL-terminated. */
CD_KEEP const char *cd_model_header(const cd_model *m);
size_t cd_model_n_device(const cd_model *m);
const char *cd_model_device(const cd_model *m, size_t i);
/* Number of a device in the model; -1 when it was not trained on. */
int cd_model_find_device(const cd_model *m, const char *name, size_t n);
/* Whether the programs of device i were GPU programs. */
int cd_model_device_is_gpu(const cd_model *m, size_t i);

cdmpp_status cd_model_scratch_new(CD_GIVE cd_model_scratch **out, cdmpp_err *err);
void cd_model_scratch_free(CD_TAKE cd_model_scratch *s); /* NULL is fine */

/* Score n programs: program i has rows row_ptr[i] .. row_ptr[i+1] of row (each
 * 164 columns), at least one, and ran on device[i]. Writes seconds, > 0 and
 * finite. Errors: EMODEL, ENUMERIC, EBACKEND, ENOMEM; latency_s is untouched. */
cdmpp_status cd_model_predict(const cd_model *m, cd_model_scratch *s, const float *row, const int64_t *row_ptr,
                              const uint32_t *device, size_t n, double *latency_s, cdmpp_err *err);
#endif
