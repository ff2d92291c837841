/* library_op_model_build -- the fields of an operator model, for who fills one: its trainer (learner/train) and its file.
 * All others use library_op_model.h. */
#ifndef CD_LIBRARY_OP_MODEL_BUILD_H
#define CD_LIBRARY_OP_MODEL_BUILD_H
#include "base/core/core.h"
#include "learner/trees/trees.h"
#include "learner/operators/library_op_model.h"

typedef struct cd_library_op_model_part {
    cd_xgb *gbt;   /* owned; NULL: the family was not trained */
    double bias;
} cd_library_op_model_part;

typedef struct cd_library_op_model_device {
    cd_device is;               /* name in the model's arena */
    bool class[CD_N_LIBRARY_OP_CLASS]; /* trained on */
} cd_library_op_model_device;

struct cd_library_op_model {
    cd_library_op_model_part part[CD_LIBRARY_OP_N_FAMILY][2]; /* [family][seen] */
    cd_library_op_model_device *device;        /* (n_device), in the arena */
    size_t n_device;
    double largest[CD_N_LIBRARY_OP_CLASS];     /* 0: no row of this class */
    bool kind[CD_N_LIBRARY_OP_KIND], dtype[CD_N_LIBRARY_OP_DTYPE]; /* trained on */
    cd_library_op_spread *spread;              /* (n_spread), in the arena; devices are numbers into `device` */
    size_t n_spread;
    const char *header;
    cd_arena arena;
};

/* Hex digest of version, names and order of the features. */
void cd_library_op_feature_digest(char out[65]);
/* Append the file; `provenance`: more members of the header, "" or starting with a comma.
 * Errors: ENOMEM, EBACKEND. */
cdmpp_status cd_library_op_model_encode(const cd_library_op_model *m, const char *provenance, cd_buf *out, cdmpp_err *err);
#endif
