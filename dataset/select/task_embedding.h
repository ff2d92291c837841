/* task_embedding -- one vector per program from its feature rows, for choosing among inputs.
 *
 *   program p, column j  ->  mean over its rows, largest of its rows   (2 x 164)
 *                        ->  minus the mean over programs, over the deviation
 *                        ->  columns that do not vary among the programs are left out
 *
 * No label is looked at. The rows are on logarithmic scales already (features/rows/cols.h). */
#ifndef CD_TASK_EMBEDDING_H
#define CD_TASK_EMBEDDING_H
#include "dataset/file/file.h"

/* x (n, dim), row-major, for programs program[0 .. n-1] of d, each with at least one row. dim
 * is at least 1. Errors: ENOMEM. */
cdmpp_status cd_task_embedding_rows(const cd_dataset *d, const size_t *program, size_t n, CD_GIVE float **x, size_t *dim, cdmpp_err *err);
#endif
