/* rabit_tracker -- tells the ranks of XGBoost's collective (rabit, as in 1.7) who their neighbours are.
 *
 *   rank r       magic, rank, ranks, task "r", "start"                 ->   tracker, a thread of rank 0
 *                <-   r, parent, ranks, neighbours in the tree, in the ring before and behind
 *                how many links it has, which                          ->
 *                <-   whom to call (address, port, rank), how many calls to wait for
 *                calls that failed (then once more), own port          ->
 *   later        the same up to "shutdown", or "print" and what nobody reads   ->
 *
 * (1) Integers are of 4 bytes as the machine has them, texts have their length in front.
 * (2) A task is called by its rank, so ranks are those of the caller. Tree: the parent of r is (r+1)/2-1;
 *     ring: r-1 and r+1. A rank calls its neighbours below it, which listen already.
 * (3) Ranks are told when all have come. Nobody is waited for longer than limit_s: then all
 *     connections are closed, which the ranks see.
 * (4) Who does not speak like this is sent away; the others do not suffer.
 * The thread touches no heap and nothing of the caller's. */
#ifndef CD_RABIT_TRACKER_H
#define CD_RABIT_TRACKER_H
#include "base/core/core.h"

typedef struct cd_rabit_tracker cd_rabit_tracker;

/* Listens at an IPv4 address of this machine, any free port. Errors: EBACKEND, ENOMEM. */
cdmpp_status cd_rabit_tracker_start(const char *address, size_t n_rank, int limit_s, CD_GIVE cd_rabit_tracker **out, cdmpp_err *err);
int cd_rabit_tracker_port(const cd_rabit_tracker *t);
/* Waits at most wait_s for those who have not shut down, then ends. NULL is fine. Errors:
 * EBACKEND (a rank did not come, or ended without a word). */
cdmpp_status cd_rabit_tracker_end(CD_TAKE cd_rabit_tracker *t, int wait_s, cdmpp_err *err);
#endif
