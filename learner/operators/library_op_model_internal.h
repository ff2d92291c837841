/* What the files of a model's header share. */
#ifndef CD_LIBRARY_OP_MODEL_INTERNAL_H
#define CD_LIBRARY_OP_MODEL_INTERNAL_H
#include "learner/operators/operators.h"

/* Append the members "kinds", "dtypes" and "intervals", each with a comma behind it. */
void cd_library_op_spread_put(cd_buf *b, const cd_library_op_model *m);
/* Fill kind, dtype and spread of a model whose devices and largest rows are read. Errors: ESCHEMA,
 * ERANGE, ENOMEM. */
cdmpp_status cd_library_op_spread_read(cd_library_op_model *m, const cd_json *model,
                                       cdmpp_err *err);
#endif
