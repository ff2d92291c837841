/* Which steps of a network may run at the same time, and which of its tensors therefore live at once.
 *
 *   step 0 ─> 1 ─┬─> 2 ─┐            1 may not run beside any, 2 and 3 may beside each other
 *                └─> 3 ─┴─> 4
 *
 *   (1) of two steps that use one tensor, one of them writing it, the first in the list comes first;
 *   (2) b before a: there is a chain from b to a; two steps without a chain either way may run together;
 *   (3) two tensors may share bytes only where all users of one come before the step that makes the other.
 * Read-only once made; any thread. */
#ifndef CD_EXECUTOR_DEPS_H
#define CD_EXECUTOR_DEPS_H
#include "profiler/runtime/single/executor.h"

#define CD_EXECUTOR_DEPS_MAX 32768    /* steps: chains are kept as bits, n^2 / 8 bytes */

typedef struct cd_executor_deps {
    uint32_t n, words;
    uint32_t *n_after;          /* (n) steps that it waits for */
    uint32_t *first, *next;     /* (n + 1), next[first[k] .. first[k+1]): those that wait for k */
    uint64_t *before;           /* (n, words) bit b of row a: b comes before a */
} cd_executor_deps;

/* All in the arena. Errors: ERANGE (too many steps), ENOMEM. */
cdmpp_status cd_executor_deps_make(const cd_executor_net *n, cd_arena *a, cd_executor_deps *out, cdmpp_err *err);
/* Is there a chain from b to a? */
static inline bool cd_executor_deps_before(const cd_executor_deps *d, uint32_t b, uint32_t a) {
    return d->before[(size_t)a * d->words + b / 64] >> b % 64 & 1;
}
/* chain (n): seconds of the longest chain that begins with each step; seconds (n): of each step. */
void cd_executor_deps_chains(const cd_executor_deps *d, const double *seconds, double *chain);
#endif
