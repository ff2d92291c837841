/* transform_internal -- what fitting, applying and reading a transform share. */
#ifndef CD_TRANSFORM_INTERNAL_H
#define CD_TRANSFORM_INTERNAL_H
#include "learner/inputs/transform.h"

/* f of the table for the kinds without knots, before mean and std. */
double cd_transform_power(cd_transform_kind kind, double lambda, double centre, double y_s);
/* low and high from the rest. */
void cd_transform_set_ends(cd_transform *t);
#endif
