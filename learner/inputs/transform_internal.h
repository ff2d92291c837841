/* transform_internal -- what fitting, applying and reading a transform share. */
#ifndef CD_TRANSFORM_INTERNAL_H
#define CD_TRANSFORM_INTERNAL_H
#include "learner/inputs/transform.h"

/* low and high from the rest. */
void cd_transform_set_ends(cd_transform *t);
#endif
