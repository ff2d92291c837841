/* Steps of a network on several threads, each as soon as what it waits for is done.
 *
 *   ready steps: a heap ──> worker 0 (the caller), worker 1, ...      of those ready the one with the largest rank
 *
 *   (1) a step runs once, after all that it waits for, on one worker; values do not depend on which;
 *   (2) worker w stays on one processor, where there are as many: of n workers the last n that the caller may use;
 *   (3) between passes workers wait without using a processor.
 * One pass at a time. */
#ifndef CD_EXECUTOR_POOL_H
#define CD_EXECUTOR_POOL_H
#include "profiler/runtime/single/executor_deps.h"

typedef struct cd_executor_pool cd_executor_pool;
typedef struct cd_executor_pool_options {
    uint32_t workers;           /* >= 1; at most CD_EXECUTOR_POOL_MAX */
    const cd_executor_deps *deps;     /* borrowed */
    const double *rank;         /* (n) borrowed; NULL: the lower the number the higher the rank */
    void (*begin)(void *ctx);   /* on each new thread, once; NULL: nothing */
    void (*step)(void *ctx, uint32_t k, uint32_t worker);
    void *ctx;
} cd_executor_pool_options;
#define CD_EXECUTOR_POOL_MAX 256

/* Errors: ERANGE (workers), EIO (no thread), ENOMEM. */
cdmpp_status cd_executor_pool_new(const cd_executor_pool_options *a, CD_GIVE cd_executor_pool **out, cdmpp_err *err);
void cd_executor_pool_free(CD_TAKE cd_executor_pool *p); /* NULL is fine; ends the threads */
/* Every step once. The caller is worker 0, on its processor while it is in here. */
void cd_executor_pool_pass(cd_executor_pool *p);
#endif
