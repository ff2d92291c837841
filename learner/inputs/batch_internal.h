/* batch_int -- unscaled columns, for filling and for fitting scalers. */
#ifndef CD_BATCH_INTERNAL_H
#define CD_BATCH_INTERNAL_H
#include "learner/inputs/batch.h"

/* Columns of the program's leaves, first .. first+n rows of w_tok. x: (leaves, w_tok). */
void cd_batch_raw_tokens(const cd_batch_spec *s, const cd_program_view *v, size_t program, float *x);
/* x: (w_prog). */
void cd_batch_raw_program(const cd_program_view *v, size_t program, float *x);
/* Leaves of a program, or its rows. */
size_t cd_batch_leaves(const cd_batch_spec *s, const cd_program_view *v, size_t program);
/* EMODEL when the program cannot be shown as `s` wants it. */
cdmpp_status cd_batch_check(const cd_batch_spec *s, const cd_program_view *v, size_t program, cdmpp_err *err);
#endif
