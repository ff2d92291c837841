/* A parallel loop that gives the same work whatever -j is.
 *
 *   n = 10, chunk = 4:   [0 1 2 3] [4 5 6 7] [8 9]
 *
 * (1) The cut depends on n and chunk only, never on the number of threads, so a
 *     caller that reduces per chunk and in chunk order gets the same bits.
 * (2) Chunks are handed out in order; worker w runs one at a time, so scratch
 *     indexed by w needs no lock. The caller works too, as worker 0.
 * (3) The first failing chunk in chunk order wins: the status and error are the
 *     ones a single thread would have given. Chunks behind it may have run or
 *     not, chunks before it all have.
 * A pool serves one run at a time. The library makes none: commands do, from -j. */
#ifndef CD_THREADS_H
#define CD_THREADS_H
#include <stddef.h>

#include "base/core/err.h"
#include "base/core/mem.h"

typedef struct cd_threads cd_threads;

/* [beg, end) of 0..n-1 on behalf of worker 0 <= w < cd_threads_count(). */
typedef cdmpp_status cd_threads_fn(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err);

/* n workers, the caller included, so n = 1 starts no thread; n <= 0: one for each
 * CPU this process may use. Errors: ENOMEM, EBACKEND (no thread to be had). */
cdmpp_status cd_threads_new(int n, CD_GIVE cd_threads **out, cdmpp_err *err);
void cd_threads_free(CD_TAKE cd_threads *t); /* NULL is fine */
int cd_threads_count(const cd_threads *t);   /* NULL: 1 */
/* t may be NULL: everything runs here. chunk 0 counts as 1. */
cdmpp_status cd_threads_run(cd_threads *t, size_t n, size_t chunk, cd_threads_fn *fn, void *ctx, cdmpp_err *err);
#endif
