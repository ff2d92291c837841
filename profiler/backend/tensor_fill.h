/* tensor_fill -- the content that every back end gives a program's buffers: the same on all devices.
 *
 *   element i of buffer k  ->  floats in [0.25, 1), integers 0 or 1, bool 0 or 1
 *
 * Reals are away from zero, so that no sum cancels and no product is denormal. Integers are often
 * indices, and 0 and 1 are valid ones nearly everywhere. No state, any thread. */
#ifndef CD_TENSOR_FILL_H
#define CD_TENSOR_FILL_H

#include "features/expr/expr.h"

/* Writes elements [first, first + n) of buffer k. Types: floats and bfloats of 16, 32, 64 bits,
 * integers of 1 (a byte) to 64; false: another one. */
bool cd_tensor_fill(cd_dtype type, uint32_t k, uint64_t first, size_t n, void *to);
/* A weight of a network, as buffer k: to (elements of shape). float32 with two dimensions and more: around 0, with a deviation of
 * 1/sqrt(fan-in), so that activations keep their size through the layers. Others (scales, biases): as cd_tensor_fill. false: another type. */
bool cd_tensor_fill_weight(cd_dtype type, uint32_t k, uint32_t rank, const int64_t *shape, void *to);
#endif
