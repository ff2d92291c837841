/* The door of learner/train: other rooms include this header and no other of the room.
 *
 * Training: from a configuration and a data set to a model, its file and its figures (learner.h); the same for library operators
 * (library_op_train.h). For cdmpp-train, cdmpp-mpi and learner/hpo. Seeds decide the bytes, the number of threads does not. */
#ifndef CD_LEARNER_TRAIN_DOOR_H
#define CD_LEARNER_TRAIN_DOOR_H
#include "learner/train/learner.h"
#include "learner/train/library_op_train.h"
#include "learner/train/train_print.h"
#include "learner/train/train_progress.h"
#endif
