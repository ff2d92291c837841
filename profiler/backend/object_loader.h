/* cpuobj -- a compiled C program in this process: its function, and OpenMP's number of threads.
 * The object is loaded whole; who closes the handle ends the function's life. Any thread. */
#ifndef CD_OBJECT_LOADER_H
#define CD_OBJECT_LOADER_H
#include "profiler/backend/backend.h"

typedef void cd_object_loader_entry(void *const *arg);
/* OpenMP's library stays loaded: threads of a parallel program outlive it, waiting in there. Errors: EBACKEND. */
cdmpp_status cd_object_loader_open(const cd_build *p, int threads, CD_GIVE void **handle, cd_object_loader_entry **entry, cdmpp_err *err);
/* OpenMP's number of threads is each thread's own: who calls the function from another thread says it there again. */
void cd_object_loader_threads(void *handle, int threads);
void cd_object_loader_close(CD_TAKE void *handle); /* NULL is fine */
#endif
