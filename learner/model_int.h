/* model_int -- inside of a model, for the trainer and the file. */
#ifndef CD_MODEL_INT_H
#define CD_MODEL_INT_H
#include "base/arena.h"
#include "base/buf.h"
#include "learner/gbt.h"
#include "learner/input.h"
#include "learner/model.h"

#define CD_MODEL_MAX_PART 2
#define CD_MODEL_VERSION 1

typedef struct cd_model_part {
    cd_form form;        /* ROWS or PROGRAM */
    double weight, slope, bias;
    cd_gbt *gbt;         /* owned */
} cd_model_part;

struct cd_model {
    size_t n_part;
    cd_model_part part[CD_MODEL_MAX_PART];
    double log_min, log_max; /* of the latencies trained on, widened by a factor e */
    size_t n_device;
    const char **device;
    uint8_t *device_is_gpu;
    const char *header;
    cd_arena arena;      /* names, header */
};

/* log(latency) of n programs under one part: seg_log[i]. */
cdmpp_status cd_model_part_predict(const cd_model_part *p, cd_model_scratch *s, const float *row, const int64_t *row_ptr,
                                   const uint32_t *device, size_t n, double *log_s, cdmpp_err *err);
/* log(sum of exp(score)) over n >= 1 scores. */
double cd_log_sum_exp(const double *score, size_t n);

/* Write file and header; `provenance` is the inside of a JSON object (without
 * braces). Errors: EIO, ENOMEM, EBACKEND. */
cdmpp_status cd_model_encode(const cd_model *m, const char *provenance, cd_buf *out, cdmpp_err *err);
#endif
