/* model_build -- the fields of a model, for who fills one: the trainer (learner/train) and the file (model_read.c).
 * All others use model.h. */
#ifndef CD_MODEL_BUILD_H
#define CD_MODEL_BUILD_H
#include "base/core/core.h"
#include "base/text/text.h"
#include "learner/model/calibration.h"
#include "learner/model/member.h"
#include "learner/model/model.h"

struct cd_model {
    size_t n_kind;
    cd_member_kind kind[CD_N_MEMBER_KIND]; /* each once, in the order of the configuration */
    size_t n_member;
    cd_member *member;       /* (n_member) owned */
    cd_calibration *calib;         /* owned; NULL in files of version 1: then `weight` */
    double weight[CD_N_MEMBER_KIND];
    double log_min, log_max; /* of the latencies trained on, widened by a factor e */
    size_t n_device;
    const char **device;
    uint8_t *device_is_gpu;
    size_t w_device;         /* numbers that describe a device, as they were when it was trained */
    float *device_vector;    /* (n_device, w_device); zeros when the device is not described */
    const cd_trained_on *trained_on; /* in the arena; NULL: not known */
    const char *header;
    char digest[65];         /* of the file */
    struct cd_model *tuner;  /* profile tuner, owned; its device arrays are this model's; NULL: none */
    cd_arena arena;          /* names, vectors, header */
};

/* ln seconds of each kind: mean over those of its members that `fold` admits, kind_log_s
 * (n_kind, n). fold -1: all members; else only those of this fold. */
cdmpp_status cd_model_kinds(const cd_model *m, cd_model_scratch *s, const cd_program_view *v, const uint32_t *index, size_t n, int fold,
                            double *kind_log_s, cdmpp_err *err);
/* From those to the answer. */
cdmpp_status cd_model_answer(const cd_model *m, cd_model_scratch *s, const cd_program_view *v, const uint32_t *index, size_t n,
                             const double *kind_log_s, cd_model_prediction *out, cdmpp_err *err);

/* Write file and header; `provenance` is the inside of a JSON object (without
 * braces). Errors: EIO, ENOMEM, EBACKEND. */
cdmpp_status cd_model_encode(const cd_model *m, const char *provenance, cd_buf *out, cdmpp_err *err);
/* Makes m->tuner, empty, on the devices of m; NULL: out of memory. */
cd_model *cd_model_new_tuner(cd_model *m);
#endif
