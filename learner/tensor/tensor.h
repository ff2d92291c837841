/* The door of learner/tensor: other rooms include this header and no other of the room.
 *
 * Matrix and vector operations of the networks, parameters, safetensors files. */
#ifndef CD_LEARNER_TENSOR_DOOR_H
#define CD_LEARNER_TENSOR_DOOR_H
#include "learner/tensor/ops.h"
#include "learner/tensor/params.h"
#include "learner/tensor/safetensors.h"
#include "learner/tensor/slab.h"
#endif
