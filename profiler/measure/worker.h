/* worker -- loads, checks and times one program, in a process of its own (supervisor.h).
 *
 *   job -> back end -> [reference: run, its results kept -> program: run, results compared]
 *       -> noise probe -> timing -> noise probe -> answer      not quiet: again, the quietest is kept */
#ifndef CD_WORKER_H
#define CD_WORKER_H
#include "profiler/measure/worker_protocol.h"

/* A back end stays open between jobs that name the same one. */
typedef struct cd_measure_worker {
    const cd_backend_kind *kind;
    cd_backend *backend;
    char name[256];             /* backend, device, target */
} cd_measure_worker;

/* Do the job. Never fails: what goes wrong is in *out. */
void cd_worker_do(cd_measure_worker *w, const cd_job *job, cd_worker_result *out);
void cd_worker_close(cd_measure_worker *w); /* close its back end; zeroed is fine */
#endif
