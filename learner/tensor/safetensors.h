/* safetensors -- named tensors of float32 as bytes, the format of Hugging Face.
 *
 *   (1) bytes 0..7   u64 little-endian H, bytes of the header
 *   (2) 8..8+H       one JSON object, padded with blanks to a multiple of 8:
 *                    {"__metadata__":{"key":"text",...},
 *                     "name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...}
 *   (3) ..           the values, little-endian, row-major, one after another;
 *                    data_offsets count from the end of the header
 *
 * Reading accepts F32 only and checks that every tensor lies inside the data and
 * is as long as its shape says. No state, any thread. */
#ifndef CD_SAFETENSORS_H
#define CD_SAFETENSORS_H
#include "base/core/core.h"
#include "base/text/text.h"

typedef struct cd_tensor {
    const char *name;
    size_t n_dim, dim[2];
    const float *value; /* dim[0] * dim[1], borrowed */
} cd_tensor;

/* Append tensors to `out`; `metadata`: a JSON object of texts, NULL: none. Out of
 * memory shows in out->oom. */
void cd_safetensors_write(cd_buf *out, const cd_tensor *t, size_t n, const char *metadata);

/* A parsed file: the header lives in the arena, values stay in `bytes`. */
typedef struct cd_safetensors {
    const cd_json *header;
    const char *data;
    size_t n_data;
} cd_safetensors;

/* Errors: EPARSE (not such a file, cut short), ENOMEM. */
cdmpp_status cd_safetensors_open(cd_arena *a, const void *bytes, size_t n, cd_safetensors *f, cdmpp_err *err);
/* Copy one tensor of exactly this shape to `value`. Errors: EMODEL (absent, other
 * shape or type), EPARSE (outside the data). */
cdmpp_status cd_safetensors_get(const cd_safetensors *f, const char *name, size_t n_dim, const size_t *dim, float *value,
                                cdmpp_err *err);
/* A text of __metadata__; NULL when absent. */
CD_KEEP const cd_json *cd_safetensors_meta(const cd_safetensors *f, const char *key);
/* Number of tensors in the file. */
size_t cd_safetensors_count(const cd_safetensors *f);
#endif
