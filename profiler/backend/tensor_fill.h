/* fill -- the content that every back end gives a program's buffers: the same on all devices.
 *
 *   element i of buffer k  ->  floats in [0.25, 1), integers 0 or 1, bool 0 or 1
 *
 * Away from zero, so that no sum cancels and no product is denormal; integers are indices as
 * often as not, and 0 and 1 are inside of most things. No state, any thread. */
#ifndef CD_TENSOR_FILL_H
#define CD_TENSOR_FILL_H
#include <stddef.h>

#include "features/expr/expr.h"

/* Elements [first, first + n) of buffer k to `to`. Types: floats and bfloats of 16, 32, 64 bits,
 * integers of 1 (a byte) to 64; false: another one. */
bool cd_tensor_fill(cd_dtype type, uint32_t k, uint64_t first, size_t n, void *to);
/* A network's weight, buffer k. Two dimensions and more, of float32: around 0, and as small as they are many: sums stay as
 * large as what goes in. Else, scales and biases, as cd_tensor_fill has it. to (elements of shape). false: another type. */
bool cd_tensor_fill_weight(cd_dtype type, uint32_t k, uint32_t rank, const int64_t *shape, void *to);
#endif
