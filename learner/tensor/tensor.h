/* The door of learner/tensor: other rooms include this header and no other of the room.
 *
 * Arithmetic of networks: matrix products, activations, norms and attention with their gradients (ops.h), named parameters
 * (params.h), working memory (slab.h), the safetensors format. For learner/nn above all. Float32, row-major. */
#ifndef CD_LEARNER_TENSOR_DOOR_H
#define CD_LEARNER_TENSOR_DOOR_H
#include "learner/tensor/ops.h"
#include "learner/tensor/params.h"
#include "learner/tensor/safetensors.h"
#include "learner/tensor/slab.h"
#endif
