/* Workers that share a heap of ready steps. A pass is a number that grows: workers wait for it,
 * first by polling, then asleep on a condition. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "profiler/runtime/single/single_internal.h"

/* From the tensors that steps read and write to the steps that they wait for: a tensor's last
 * writer and its readers since then give the edges; one sweep over the steps, which are in an order
 * that respects them, gives the chains. */

typedef struct {
    uint32_t from, to;
} edge;

/* Who used a tensor last. */
typedef struct {
    uint32_t writer; /* UINT32_MAX: none yet */
    /* of the chain of readers since: number in `read`; UINT32_MAX: none */
    uint32_t reader;
} use;

typedef struct {
    uint32_t step, older;
} reading;

typedef struct {
    const cd_executor_net *n;
    use *use;      /* (n_tensor) */
    reading *read; /* (n_read) */
    edge *edge;    /* (n_edge, cap) */
    size_t n_read, n_edge, cap;
} walk;

/* An edge, once: all edges to one step are added one behind the other, so only the last ones need a
 * look. */
static void join(walk *w, uint32_t from, uint32_t to) {
    if (from == UINT32_MAX || from == to) return;
    for (size_t k = w->n_edge; k-- > 0 && w->edge[k].to == to;)
        if (w->edge[k].from == from) return;
    w->edge[w->n_edge++] = (edge){from, to};
}

/* Step k reads or writes a tensor: after its writer; a writer also after all that have read it
 * since. */
static void use_of(walk *w, uint32_t step, uint32_t tensor, bool written) {
    use *u = &w->use[tensor];
    join(w, u->writer, step);
    if (!written) {
        w->read[w->n_read] = (reading){step, u->reader};
        u->reader = (uint32_t)w->n_read++;
        return;
    }
    for (uint32_t r = u->reader; r != UINT32_MAX; r = w->read[r].older)
        join(w, w->read[r].step, step);
    *u = (use){step, UINT32_MAX};
}

static void find_edges(walk *w) {
    for (uint32_t t = 0; t < w->n->n_tensor; t++) w->use[t] = (use){UINT32_MAX, UINT32_MAX};
    for (uint32_t k = 0; k < w->n->n_step; k++) {
        const cd_codegen_code *c = w->n->step[k].build->code;
        for (uint32_t written = 0; written < 2; written++)
            for (uint32_t b = 0; b < c->n_arg; b++)
                if (c->buffer[b].written == (written == 1))
                    use_of(w, k, w->n->step[k].tensor[b], written);
    }
}

/* Edges sorted by where they begin (next), counts of those that end (n_after), and the closure
 * (before). */
static void order(const walk *w, cd_executor_deps *d) {
    for (size_t e = 0; e < w->n_edge; e++) d->first[w->edge[e].from + 1]++;
    for (uint32_t k = 0; k < d->n; k++) d->first[k + 1] += d->first[k];
    uint32_t *at = d->n_after; /* borrowed for places, then what it is for */
    memcpy(at, d->first, d->n * sizeof *at);
    for (size_t e = 0; e < w->n_edge; e++) d->next[at[w->edge[e].from]++] = w->edge[e].to;
    memset(d->n_after, 0, d->n * sizeof *d->n_after);
    for (size_t e = 0; e < w->n_edge; e++) {
        const edge x = w->edge[e];
        uint64_t *row = d->before + (size_t)x.to * d->words,
                 *of = d->before + (size_t)x.from * d->words;
        d->n_after[x.to]++;
        for (uint32_t i = 0; i < d->words; i++) row[i] |= of[i];
        row[x.from / 64] |= (uint64_t)1 << x.from % 64;
    }
}

/* Scratch of the walk is bounded by the number of uses: `read` and `edge` never grow. */
static cdmpp_status make(walk *w, cd_arena *a, cd_executor_deps *d, cdmpp_err *err) {
    size_t args = 0;
    for (uint32_t k = 0; k < w->n->n_step; k++) args += w->n->step[k].build->code->n_arg;
    w->cap = 2 * args + 1; /* each use has its writer; each reading is met by one writer */
    w->use = cd_mem_zalloc(w->n->n_tensor + 1, sizeof *w->use);
    w->read = cd_mem_zalloc(args + 1, sizeof *w->read);
    w->edge = cd_mem_zalloc(w->cap, sizeof *w->edge);
    if (!w->use || !w->read || !w->edge)
        return CD_FAIL(err, ENOMEM, "order of %u steps", w->n->n_step);
    find_edges(w);
    d->n = w->n->n_step;
    d->words = (d->n + 63) / 64;
    d->n_after = CD_NEWN(a, uint32_t, d->n + 1);
    d->first = CD_NEWN(a, uint32_t, d->n + 2);
    d->next = CD_NEWN(a, uint32_t, w->n_edge + 1);
    d->before = CD_NEWN(a, uint64_t, (size_t)d->n * d->words + 1);
    if (!d->n_after || !d->first || !d->next || !d->before)
        return CD_FAIL(err, ENOMEM, "order of %u steps", w->n->n_step);
    order(w, d);
    return CDMPP_OK;
}

cdmpp_status cd_executor_deps_make(const cd_executor_net *n, cd_arena *a, cd_executor_deps *out,
                                   cdmpp_err *err) {
    walk w = {.n = n};
    *out = (cd_executor_deps){0};
    if (n->n_step > CD_EXECUTOR_DEPS_MAX)
        return CD_FAIL(err, ERANGE, "%u steps; at most %d on several workers", n->n_step,
                       CD_EXECUTOR_DEPS_MAX);
    const cdmpp_status st = make(&w, a, out, err);
    cd_mem_free(w.use);
    cd_mem_free(w.read);
    cd_mem_free(w.edge);
    return st;
}

void cd_executor_deps_chains(const cd_executor_deps *d, const double *seconds, double *chain) {
    for (uint32_t k = d->n; k-- > 0;) {
        chain[k] = 0;
        for (uint32_t e = d->first[k]; e < d->first[k + 1]; e++)
            if (chain[d->next[e]] > chain[k]) chain[k] = chain[d->next[e]];
        chain[k] += seconds[k];
    }
}

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
