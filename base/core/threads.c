/* A pool of threads with one lock. A worker takes the next chunk under the lock, runs it without,
 * and records a failure under the lock again. Chunks are large (milliseconds), so the lock is not a
 * bottleneck. */
#include "base/core/core.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

typedef struct worker {
    struct cd_threads *pool;
    int index;
    pthread_t thread;
} worker;

struct cd_threads {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    int n;             /* workers, the caller included */
    int n_started;     /* threads */
    int busy;          /* threads still inside this run */
    unsigned long run; /* counts runs; a thread waits for it to change */
    bool quit;
    /* the run */
    cd_threads_fn *fn;
    void *ctx;
    size_t n_item, chunk, next; /* next: first item of the next chunk */
    size_t failed_at;           /* first item of the first failed chunk; n_item: none */
    cdmpp_status status;
    cdmpp_err err;
    worker worker[];
};

static size_t chunk_end(size_t beg, size_t n, size_t chunk) {
    return n - beg < chunk ? n : beg + chunk;
}

/* Called and left with the lock held. */
static void work(cd_threads *t, int w) {
    while (t->next < t->n_item && t->next < t->failed_at) {
        const size_t beg = t->next, end = chunk_end(beg, t->n_item, t->chunk);
        cdmpp_err err = {0};
        t->next = end;
        pthread_mutex_unlock(&t->lock);
        const cdmpp_status st = t->fn(t->ctx, beg, end, w, &err);
        pthread_mutex_lock(&t->lock);
        if (st && beg < t->failed_at) {
            t->failed_at = beg;
            t->status = st;
            t->err = err;
        }
    }
}

/* Sleeps until the number of the run changes, works until no chunk is left, and reports the end. */
static void *thread_main(void *arg) {
    const worker *self = arg;
    cd_threads *t = self->pool;
    unsigned long seen = 0;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (t->run == seen && !t->quit) pthread_cond_wait(&t->wake, &t->lock);
        if (t->quit) break;
        seen = t->run;
        work(t, self->index);
        if (--t->busy == 0) pthread_cond_signal(&t->done);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static int cpus(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

/* `n_started` counts what must be joined, so that a pool whose third thread cannot start is freed
 * like any other. */
cdmpp_status cd_threads_new(int n, cd_threads **out, cdmpp_err *err) {
    *out = NULL;
    if (n <= 0) n = cpus();
    cd_threads *t = cd_mem_zalloc(1, sizeof *t + (size_t)n * sizeof t->worker[0]);
    if (!t) return CD_FAIL(err, ENOMEM, "pool of %d threads", n);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, NULL);
    pthread_cond_init(&t->done, NULL);
    t->n = n;
    for (int w = 1; w < n; w++) {
        t->worker[w] = (worker){.pool = t, .index = w};
        if (pthread_create(&t->worker[w].thread, NULL, thread_main, &t->worker[w]) != 0) {
            cd_threads_free(t);
            return CD_FAIL(err, EBACKEND, "cannot start thread %d of %d", w + 1, n);
        }
        t->n_started++;
    }
    *out = t;
    return CDMPP_OK;
}

void cd_threads_free(cd_threads *t) {
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    t->quit = true;
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
    for (int w = 1; w <= t->n_started; w++) pthread_join(t->worker[w].thread, NULL);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->wake);
    pthread_cond_destroy(&t->done);
    cd_mem_free(t);
}

int cd_threads_count(const cd_threads *t) { return t ? t->n : 1; }

static cdmpp_status run_here(size_t n, size_t chunk, cd_threads_fn *fn, void *ctx, cdmpp_err *err) {
    for (size_t beg = 0, end; beg < n; beg = end) {
        end = chunk_end(beg, n, chunk);
        CD_TRY(fn(ctx, beg, end, 0, err));
    }
    return CDMPP_OK;
}

/* One chunk or one worker: no lock. Else all workers are woken, the caller works as worker 0, and
 * waits for the others. */
cdmpp_status cd_threads_run(cd_threads *t, size_t n, size_t chunk, cd_threads_fn *fn, void *ctx,
                            cdmpp_err *err) {
    if (!chunk) chunk = 1;
    if (!t || t->n == 1 || n <= chunk) return run_here(n, chunk, fn, ctx, err);
    pthread_mutex_lock(&t->lock);
    t->fn = fn;
    t->ctx = ctx;
    t->n_item = t->failed_at = n;
    t->chunk = chunk;
    t->next = 0;
    t->status = CDMPP_OK;
    t->busy = t->n_started;
    t->run++;
    pthread_cond_broadcast(&t->wake);
    work(t, 0);
    while (t->busy) pthread_cond_wait(&t->done, &t->lock);
    const cdmpp_status st = t->status;
    if (st && err) *err = t->err;
    pthread_mutex_unlock(&t->lock);
    return st;
}
