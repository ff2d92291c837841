/* emptied.h -- what the headers promise of structs that a caller owns: a zeroed one may be freed,
 * and it is empty behind that. */
#ifndef EMPTIED_H
#define EMPTIED_H
#include "check.h"

#define EMPTIED(type, free_it)                                                                     \
    do {                                                                                           \
        static const type none_;                                                                   \
        type x_ = none_;                                                                           \
        memset(&x_, 0, sizeof x_);                                                                 \
        free_it(&x_);                                                                              \
        assert_memory_equal(&x_, &none_, sizeof x_);                                               \
        free_it(&x_);                                                                              \
    } while (0)
#endif
