/* batch_internal -- columns before they are scaled: batch.c fills batches with them, scaler.c fits
 * scalers to them. */
#ifndef CD_BATCH_INTERNAL_H
#define CD_BATCH_INTERNAL_H
#include "learner/inputs/batch.h"

/* Columns of the program's leaves, first .. first+n rows of w_tok. x: (leaves, w_tok). */
void cd_batch_raw_tokens(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                         float *x);
/* The program vector of a program, then its facts. x: (w_prog). */
void cd_batch_raw_program(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                          float *x);
/* Leaves of a program, or its rows, or the steps that are looked at. */
size_t cd_batch_leaves(const cd_batch_spec *s, const cd_program_view *v, size_t program);
#endif
