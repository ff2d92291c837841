/* handles -- what is behind the opaque types of cdmpp.h.
 *
 *   cdmpp_context: worker 0 | worker 1 | ...   each a scorer and room for one chunk
 *                  batch -> chunks of CD_CHUNK candidates -> workers
 *
 * (1) Chunks depend on n only, so the bits do not depend on the number of threads.
 * (2) Structs of the caller are copied by cd_take, which knows their size. */
#ifndef CD_HANDLES_H
#define CD_HANDLES_H
#include <sys/types.h>

#include "base/threads.h"
#include "predictor/predict.h"

enum { CD_CHUNK = 128, CD_MAX_THREADS = 1024, CD_MAX_ROWS = 16384 };

struct cdmpp_tasks {
    cd_tasks *impl;
};
struct cdmpp_task {
    cd_aim aim;
    char *text; /* key, target */
};
struct cdmpp_model {
    cd_model *impl;
};
struct cdmpp_observer {
    cd_adapt *impl;
    char model[65]; /* SHA-256 of the header of the model it is about */
};

typedef struct cd_worker {
    cd_scorer *scorer;
    cd_scored *scored; /* (CD_CHUNK) */
    size_t n_ok;       /* of the call */
} cd_worker;

struct cdmpp_context {
    const cdmpp_model *m;
    cdmpp_observer *observer; /* borrowed; NULL: none */
    cd_devices *devices;  /* NULL: none needed */
    cd_threads *pool;     /* NULL: one thread */
    pid_t owner;          /* whose threads the pool has */
    int n_worker;
    cd_worker *worker;    /* (n_worker) */
    size_t *at;           /* (cap_at) of a packed batch */
    size_t cap_at;
};

/* Struct of the caller into ours, zero behind its end. Errors: EUSAGE: too small, or it sets what
 * this version does not know. */
cdmpp_status cd_take(void *to, size_t to_size, const void *from, size_t least, const char *name, cdmpp_err *err);

/* Score a checked batch; `done` gets the chunk's results, candidates first .. first+n, from any
 * worker's thread. Errors: those of cdmpp_score. */
typedef cdmpp_status cd_chunk_fn(void *arg, cd_worker *w, size_t first, size_t n, cdmpp_err *err);
cdmpp_status cd_batch_run(cdmpp_context *c, const cdmpp_batch *b, cd_chunk_fn *done, void *arg, cdmpp_err *err);

/* ---- observe.c ---- */
void cd_observer_digest(const cdmpp_model *m, char out[65]);
#endif
