/* The door of learner/inputs: other rooms include this header and no other of the room.
 *
 * From a data set to what an estimator reads: rows, batches, scalers, transforms, loop nests as trees. */
#ifndef CD_LEARNER_INPUTS_DOOR_H
#define CD_LEARNER_INPUTS_DOOR_H
#include "learner/inputs/batch.h"
#include "learner/inputs/batch.h"
#include "learner/inputs/normal.h"
#include "learner/inputs/program_view.h"
#include "learner/inputs/program_view_dataset.h"
#include "learner/inputs/transform.h"
#include "learner/inputs/tree_input.h"
#endif
