/* Workers that share a heap of ready steps. A pass is a number that grows: workers wait for it,
 * first by polling, then asleep on a condition. */
#include "profiler/runtime/single/single_internal.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { SPINS = 2000 }; /* for the next pass, before a worker sleeps */

typedef struct {
    cd_executor_pool *pool;
    uint32_t number;
    pthread_t thread;
} worker;

struct cd_executor_pool {
    cd_executor_pool_options options;
    worker *worker; /* (workers), 0 is nobody's */
    uint32_t n_begun;
    atomic_uint pass; /* how many were begun */
    atomic_bool end;
    pthread_mutex_t sleep; /* of who waits for a pass */
    pthread_cond_t wake;
    pthread_mutex_t lock; /* of what follows */
    uint32_t *left;       /* (n) steps that it still waits for */
    uint32_t *ready;      /* (n) heap */
    uint32_t n_ready;
    atomic_uint done; /* steps of this pass */
    atomic_uint out;  /* workers that have left it */
};

/* ---- the heap ---- */

static bool above(const cd_executor_pool *p, uint32_t a, uint32_t b) {
    const double *r = p->options.rank;
    return r && r[a] != r[b] ? r[a] > r[b] : a < b;
}

static void push(cd_executor_pool *p, uint32_t k) {
    uint32_t at = p->n_ready++;
    for (; at && above(p, k, p->ready[(at - 1) / 2]); at = (at - 1) / 2)
        p->ready[at] = p->ready[(at - 1) / 2];
    p->ready[at] = k;
}

static uint32_t pop(cd_executor_pool *p) {
    const uint32_t top = p->ready[0], last = p->ready[--p->n_ready];
    uint32_t at = 0;
    for (uint32_t c; (c = 2 * at + 1) < p->n_ready; at = c) {
        if (c + 1 < p->n_ready && above(p, p->ready[c + 1], p->ready[c])) c++;
        if (!above(p, p->ready[c], last)) break;
        p->ready[at] = p->ready[c];
    }
    p->ready[at] = last;
    return top;
}

/* ---- a pass ---- */

static bool take(cd_executor_pool *p, uint32_t *k) {
    pthread_mutex_lock(&p->lock);
    const bool any = p->n_ready > 0;
    if (any) *k = pop(p);
    pthread_mutex_unlock(&p->lock);
    return any;
}

/* Step k is done: those that waited for nothing else become ready. */
static void finish(cd_executor_pool *p, uint32_t k) {
    const cd_executor_deps *d = p->options.deps;
    pthread_mutex_lock(&p->lock);
    for (uint32_t e = d->first[k]; e < d->first[k + 1]; e++)
        if (--p->left[d->next[e]] == 0) push(p, d->next[e]);
    pthread_mutex_unlock(&p->lock);
    atomic_fetch_add(&p->done, 1);
}

/* Takes and runs steps until all steps of the pass are done; yields where none is ready. */
static void work(cd_executor_pool *p, uint32_t number) {
    uint32_t k;
    while (atomic_load(&p->done) < p->options.deps->n) {
        if (!take(p, &k)) {
            (void)sched_yield();
            continue;
        }
        p->options.step(p->options.ctx, k, number);
        finish(p, k);
    }
}

/* The pass behind `seen`, or the end. */
static bool wait_for_pass(cd_executor_pool *p, unsigned seen) {
    for (int i = 0; i < SPINS && atomic_load(&p->pass) == seen && !atomic_load(&p->end); i++)
        (void)sched_yield();
    pthread_mutex_lock(&p->sleep);
    while (atomic_load(&p->pass) == seen && !atomic_load(&p->end))
        pthread_cond_wait(&p->wake, &p->sleep);
    pthread_mutex_unlock(&p->sleep);
    return !atomic_load(&p->end);
}

static void call_all(cd_executor_pool *p, bool end) {
    pthread_mutex_lock(&p->sleep);
    if (end) atomic_store(&p->end, true);
    else atomic_fetch_add(&p->pass, 1);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->sleep);
}

/* A worker's thread: one pass after the other, until the end. */
static void *worker_main(void *arg) {
    worker *w = arg;
    cd_executor_pool *p = w->pool;
    (void)cd_affinity_one(p->options.workers, w->number);
    if (p->options.begin) p->options.begin(p->options.ctx);
    for (unsigned seen = 0; wait_for_pass(p, seen); seen++) {
        work(p, w->number);
        atomic_fetch_add(&p->out, 1);
    }
    return NULL;
}

/* The counters are reset before the workers are called, and the caller leaves only after all of
 * them: no worker may see steps of the next pass. */
void cd_executor_pool_pass(cd_executor_pool *p) {
    const cd_executor_deps *d = p->options.deps;
    cd_affinity all;
    cd_affinity_get(&all);
    (void)cd_affinity_one(p->options.workers, 0);
    memcpy(p->left, d->n_after, d->n * sizeof *p->left);
    p->n_ready = 0;
    for (uint32_t k = 0; k < d->n; k++)
        if (!p->left[k]) push(p, k);
    atomic_store(&p->done, 0);
    atomic_store(&p->out, 0);
    call_all(p, false);
    work(p, 0);
    /* nobody may meet the next pass's steps */
    while (atomic_load(&p->out) < p->n_begun) (void)sched_yield();
    cd_affinity_set(&all, 0);
}

/* ---- threads ---- */

void cd_executor_pool_free(cd_executor_pool *p) {
    if (!p) return;
    call_all(p, true);
    for (uint32_t k = 1; k <= p->n_begun; k++) pthread_join(p->worker[k].thread, NULL);
    pthread_mutex_destroy(&p->sleep);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    cd_mem_free(p->worker);
    cd_mem_free(p->left);
    cd_mem_free(p->ready);
    cd_mem_free(p);
}

static cdmpp_status begin_all(cd_executor_pool *p, cdmpp_err *err) {
    const uint32_t n = p->options.deps->n;
    p->worker = cd_mem_zalloc(p->options.workers + 1, sizeof *p->worker);
    p->left = cd_mem_zalloc(n + 1, sizeof *p->left);
    p->ready = cd_mem_zalloc(n + 1, sizeof *p->ready);
    if (!p->worker || !p->left || !p->ready)
        return CD_FAIL(err, ENOMEM, "%u workers", p->options.workers);
    for (uint32_t k = 1; k < p->options.workers; k++, p->n_begun++) {
        p->worker[k] = (worker){.pool = p, .number = k};
        const int e = pthread_create(&p->worker[k].thread, NULL, worker_main, &p->worker[k]);
        if (e) return CD_FAIL(err, EIO, "no thread for worker %u: %s", k, strerror(e));
    }
    return CDMPP_OK;
}

cdmpp_status cd_executor_pool_new(const cd_executor_pool_options *a, cd_executor_pool **out,
                                  cdmpp_err *err) {
    if (a->workers < 1 || a->workers > CD_EXECUTOR_POOL_MAX)
        return CD_FAIL(err, ERANGE, "%u workers; from 1 to %d", a->workers, CD_EXECUTOR_POOL_MAX);
    cd_executor_pool *p = cd_mem_zalloc(1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "workers");
    p->options = *a;
    pthread_mutex_init(&p->sleep, NULL);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    const cdmpp_status st = begin_all(p, err);
    if (st) cd_executor_pool_free(p);
    else *out = p;
    return st;
}
