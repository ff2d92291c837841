/* Where the tensors of a network lie while it runs.
 *
 *   step    0   1   2   3            offset
 *   a      ███████                   0        a tensor lives from the step that makes it
 *   b          ███████               64K      to the last one that reads it; two that live
 *   c              ███████           0        at the same time never share a byte
 *
 * Greedy by size (Pisarchyk & Lee 2020): the largest first, each at the lowest
 * place that is free while it lives. Inputs, weights and results live always.
 * No state, any thread. */
#ifndef CD_EXECUTOR_MEMORY_H
#define CD_EXECUTOR_MEMORY_H

#include "base/core/core.h"

#define CD_EXECUTOR_MEMORY_ALIGN 64

typedef struct cd_executor_memory_tensor {
    int64_t bytes;              /* in */
    uint32_t first, last;       /* in: steps in which it lives, first <= last */
    int64_t offset;             /* out: a multiple of CD_EXECUTOR_MEMORY_ALIGN */
} cd_executor_memory_tensor;

/* *total: bytes of all together; *least: the most that live at once, which no plan
 * can go below (NULL: not wanted). Errors: ERANGE (a size below 0, a sum beyond
 * int64, first > last), ENOMEM. */
cdmpp_status cd_executor_memory_plan(cd_executor_memory_tensor *t, uint32_t n, int64_t *total, int64_t *least, cdmpp_err *err);

/* The same where steps have no one order: meet() tells which two tensors may live at the same time. It is symmetric, and
 * true at least for those whose lives, by number, overlap. *least stays that of the order. */
typedef bool cd_executor_memory_meet(const void *ctx, uint32_t a, uint32_t b);
cdmpp_status cd_executor_memory_apart(cd_executor_memory_tensor *t, uint32_t n, cd_executor_memory_meet *meet, const void *ctx, int64_t *total, int64_t *least, cdmpp_err *err);
#endif
