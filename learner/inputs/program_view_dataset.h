/* program_view_dataset -- the programs of a data set as a model sees them (program_view.h). */
#ifndef CD_PROGRAM_VIEW_DATASET_H
#define CD_PROGRAM_VIEW_DATASET_H
#include "dataset/file/file.h"
#include "learner/inputs/program_view.h"

/* All programs of d, borrowed; `device` (d->n): the number of the program's device in the model.
 * Without ASTs (cd_dataset_load) no program has leaves, and none has steps that were not loaded. */
cd_program_view cd_program_view_dataset(CD_KEEP const cd_dataset *d,
                                        CD_KEEP const uint32_t *device);
/* The same with facts, where d has them; analytic (d->n, CD_N_ANALYTIC). */
cd_program_view cd_program_view_facts(CD_KEEP const cd_dataset *d, CD_KEEP const uint32_t *device,
                                      CD_KEEP const float *analytic, int set);
/* Programs first .. first+n of a view. */
cd_program_view cd_program_view_range(const cd_program_view *v, size_t first, size_t n);
#endif
