/* model_internal -- reading the parts of a model file: model_file.c calls, model_read.c does. */
#ifndef CD_MODEL_INTERNAL_H
#define CD_MODEL_INTERNAL_H
#include "learner/model/model_build.h"

/* Header key "model" into m (empty but for its header). */
cdmpp_status cd_model_read_v1(cd_model *m, const cd_json *model, cd_str weights, cdmpp_err *err);
cdmpp_status cd_model_read_v2(cd_model *m, const cd_json *model, cd_str weights, cdmpp_err *err);
/* Weights of the model, and what is behind them for the tuner; all and none where there is none. */
cdmpp_status cd_model_split(const cd_json *root, cd_str *weights, cd_str *tuner, cdmpp_err *err);
/* m->tuner, if the header has one; m is read. */
cdmpp_status cd_model_read_tuner(cd_model *m, const cd_json *root, cd_str weights, cdmpp_err *err);
#endif
