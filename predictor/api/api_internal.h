/* What is behind the opaque types of cdmpp.h.
 *
 *   cdmpp_context: worker 0 | worker 1 | ...   each a scorer and room for one chunk
 *                  batch -> chunks of CD_CHUNK candidates -> workers
 *
 * (1) Chunks depend on n only, so the bits do not depend on the number of threads.
 * (2) Structs of the caller are copied by cd_api_copy_struct, which knows their size. */
#ifndef CD_API_INTERNAL_H
#define CD_API_INTERNAL_H
#include <sys/types.h>

#include "base/core/core.h"
#include "predictor/score/score.h"

enum { CD_CHUNK = 128, CD_MAX_THREADS = 1024, CD_MAX_ROWS = 16384 };

struct cdmpp_tasks {
    cd_task_registry *impl;
};
struct cdmpp_task {
    cd_aim aim;
    char *text; /* key, target */
};
struct cdmpp_model {
    cd_model *impl;
};
struct cdmpp_observer {
    cd_online_adapt *impl;
    char model[65]; /* SHA-256 of the header of the model it is about */
};

typedef struct cd_api_worker {
    cd_scorer *scorer;
    cd_scored *scored;     /* (CD_CHUNK) */
    cd_hash *key;          /* (CD_CHUNK) with a cache: of each candidate */
    bool missed[CD_CHUNK]; /* it was looked for and not found */
    size_t n_ok;           /* of the call */
} cd_api_worker;

struct cdmpp_context {
    const cdmpp_model *m;
    const cd_model *impl;  /* whose answers: the whole model's, or its tuner's */
    cdmpp_context *second; /* profile two-stage: of profile full, for the best; else NULL */
    double *first_s;       /* (6 cap) two-stage: times of the tuner, and work space */
    size_t *best;          /* (cap) */
    size_t cap;
    cdmpp_observer *observer; /* borrowed; NULL: none */
    cd_answer_cache *cache;   /* NULL: none */
    cd_device_table *devices; /* NULL: none needed */
    cd_threads *pool;         /* NULL: one thread */
    pid_t owner;              /* whose threads the pool has */
    int n_worker;
    cd_api_worker *worker; /* (n_worker) */
    size_t *at;            /* (cap_at) of a packed batch */
    size_t cap_at;
};

/* Struct of the caller into ours, zero behind its end. Errors: EUSAGE: too small, or it sets what
 * this version does not know. */
cdmpp_status cd_api_copy_struct(void *to, size_t to_size, const void *from, size_t least,
                                const char *name, cdmpp_err *err);

/* The text into the caller's (to, cap), *len its length; to NULL: only the length. b is freed.
 * Errors: ENOMEM (what: of the text), ERANGE (no room). */
cdmpp_status cd_api_give_text(CD_TAKE cd_buf *b, const char *what, char *to, size_t cap,
                              size_t *len, cdmpp_err *err);

/* Score a checked batch; `done` gets the chunk's results, candidates first .. first+n, from any
 * worker's thread. Errors: those of cdmpp_score. */
typedef cdmpp_status cd_chunk_fn(void *arg, cd_api_worker *w, size_t first, size_t n,
                                 cdmpp_err *err);
cdmpp_status cd_score_batch(cdmpp_context *c, const cdmpp_batch *b, cd_chunk_fn *done, void *arg,
                            cdmpp_err *err);

/* The same of n candidates in forms of their own. Forms of rows: of a model that takes them. */
cdmpp_status cd_score_candidates(cdmpp_context *c, const cd_candidate *ask, size_t n,
                                 cd_chunk_fn *done, void *arg, cdmpp_err *err);

/* ---- score.c ---- */
/* EMODEL: the model reads loop nests, which rows do not hold. */
cdmpp_status cd_score_check_rows(const cd_model *m, cdmpp_err *err);
/* Score of a time, within float's range whatever the model says; CDMPP_FLAG_* of a result. */
double cd_score_of(double seconds);
uint32_t cd_score_flags(const cd_scored *o, bool observed);
/* What two-stage asks of each candidate beside its results, (n) each: what orders it and the
 * median, infinity where it failed; the answer; cd_scored.least_s. */
typedef struct cd_score_times {
    double *order, *median, *point, *least; /* point, least NULL: not wanted */
} cd_score_times;
#endif
