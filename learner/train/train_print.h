/* train_print -- results of a training as text and JSON, for standard output. */
#ifndef CD_TRAIN_PRINT_H
#define CD_TRAIN_PRINT_H
#include "learner/train/learner.h"
#include "learner/train/library_op_train.h"

/* What was left out, the split, the figures of each part, the files. path: of the model; report: "" where there is none;
 * level: of the prediction intervals. brief: the figures of the test part and the model file alone. */
void cd_train_print_text(cd_buf *b, const cd_learner_result *l, const char *path, const char *report, double level, bool brief);
/* One object with '\n', schema "cdmpp.train". */
void cd_train_print_json(cd_buf *b, const cd_learner_result *l, const char *path);
/* The same of a model of library operators. Errors: ENOMEM. */
cdmpp_status cd_train_print_operators_text(cd_buf *b, const cd_config *c, const cd_library_op_data *d, cd_library_op_train_result *l,
                                           const char *path, cdmpp_err *err);
void cd_train_print_operators_json(cd_buf *b, const cd_library_op_train_result *l, const char *path);
#endif
