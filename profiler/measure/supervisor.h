/* supervisor -- a process that starts workers, gives them jobs, and outlives their crashes.
 *
 *   opener ──job──> supervisor ──job──> worker (fork)      answer, or its end:
 *                                                          killed by a signal, exit, over its limit
 *
 *   (1) forked early, while the opener has one thread and no OpenMP: every worker starts from that;
 *   (2) it leads a process group of its own: ^C reaches the opener only;
 *   (3) it ends when the opener's end of the socket is closed, by close() or by death, and kills its worker;
 *   (4) a worker dies with it, and is what the system kills first when memory is short. */
#ifndef CD_SUPERVISOR_H
#define CD_SUPERVISOR_H
#include <signal.h>

#include "profiler/measure/worker_protocol.h"

typedef struct cd_supervisor cd_supervisor;

/* Errors: EIO (no process), ENOMEM. */
cdmpp_status cd_supervisor_open(CD_GIVE cd_supervisor **out, cdmpp_err *err);
void cd_supervisor_close(CD_TAKE cd_supervisor *k); /* NULL is fine; kills and reaps */
/* One job and its answer. Errors: EINTERRUPTED (*stop), EIO (the supervisor is gone), ENOMEM; after an error only close() is left. */
cdmpp_status cd_supervisor_do(cd_supervisor *k, const cd_job *job, cd_worker_result *out, const volatile sig_atomic_t *stop, cdmpp_err *err);
#endif
