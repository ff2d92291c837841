/* The door of learner/inputs: other rooms include this header and no other of the room.
 *
 * What estimators read: the view of programs that all of them get (program_view.h), matrix rows for
 * trees (tree_input.h), scaled batches for networks (batch.h), and the transform of their labels
 * (transform.h). */
#ifndef CD_LEARNER_INPUTS_DOOR_H
#define CD_LEARNER_INPUTS_DOOR_H
#include "learner/inputs/batch.h"
#include "learner/inputs/facts_input.h"
#include "learner/inputs/normal.h"
#include "learner/inputs/program_view.h"
#include "learner/inputs/program_view_dataset.h"
#include "learner/inputs/transform.h"
#include "learner/inputs/tree_input.h"
#endif
