/* What the files of a model's header share. */
#ifndef CD_LIBRARY_OP_MODEL_INTERNAL_H
#define CD_LIBRARY_OP_MODEL_INTERNAL_H
#include "learner/operators/operators.h"

#endif
