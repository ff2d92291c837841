/* object_loader -- a compiled C program in this process: its function, and OpenMP's number of threads.
 * The function is valid until the handle is closed. Any thread. */
#ifndef CD_OBJECT_LOADER_H
#define CD_OBJECT_LOADER_H
#include "profiler/backend/backend_kind.h"

typedef void cd_object_loader_entry(void *const *arg);
/* Loads the object of a C program and finds its function. OpenMP's library is never unloaded: its threads outlive the program. Errors: EBACKEND. */
cdmpp_status cd_object_loader_open(const cd_build *p, int threads, CD_GIVE void **handle, cd_object_loader_entry **entry, cdmpp_err *err);
/* Sets OpenMP's number of threads for the calling thread: it is a setting of each thread. */
void cd_object_loader_threads(void *handle, int threads);
void cd_object_loader_close(CD_TAKE void *handle); /* NULL is fine */
#endif
