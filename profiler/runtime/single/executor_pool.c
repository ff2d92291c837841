/* Workers that share a heap of ready steps. A pass is a number that grows: workers wait for it,
 * first by polling, then asleep on a condition. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "profiler/runtime/single/single_internal.h"

/* From a plan to what each of its calls waits for, and whether the plan can be run at all: every
 * iteration once, and no units that wait for each other. */

#define NONE UINT32_MAX

typedef struct {
    const cd_executor_net *n;
    const cd_executor_plan *plan;
    const cd_executor_deps *d;
    cd_executor_pieces *out;
    uint32_t *unit;                  /* (n_call) */
    uint32_t *node_of;               /* (n_step + 1) first node of each step */
    uint32_t *before_first, *before; /* steps that a step needs */
    uint32_t *own;                   /* (n_node) the unit of all pieces; NONE: several */
    uint64_t *done;                  /* (n_node) iterations that calls have so far */
} maker;

static uint32_t parts_of(const maker *m, uint32_t step) {
    const uint32_t n = m->n->step[step].build->code->n_part;
    return n ? n : 1;
}

static cdmpp_status allocate(maker *m, cd_arena *a, cdmpp_err *err) {
    cd_executor_pieces *o = m->out;
    const uint32_t n_step = m->n->n_step;
    uint32_t n_edge = 0;
    o->n_unit = m->plan->n_unit;
    o->n_call = m->plan->first[o->n_unit];
    m->node_of = CD_NEWN(a, uint32_t, n_step + 1);
    if (!m->node_of) return CD_FAIL(err, ENOMEM, "plan of %u calls", o->n_call);
    for (uint32_t k = 0; k < n_step; k++)
        m->node_of[k + 1] = m->node_of[k] + parts_of(m, k), n_edge += m->d->n_after[k];
    o->n_node = m->node_of[n_step];
    uint32_t *first = CD_NEWN(a, uint32_t, o->n_unit + 1);
    cd_executor_call *call = CD_NEWN(a, cd_executor_call, o->n_call + 1);
    m->before_first = CD_NEWN(a, uint32_t, n_step + 2),
    m->before = CD_NEWN(a, uint32_t, n_edge + 1);
    m->own = CD_NEWN(a, uint32_t, o->n_node + 1), m->done = CD_NEWN(a, uint64_t, o->n_node + 1);
    m->unit = CD_NEWN(a, uint32_t, o->n_call + 1), o->node = CD_NEWN(a, uint32_t, o->n_call + 1);
    o->n_piece = CD_NEWN(a, uint32_t, o->n_node + 1),
    o->wait_first = CD_NEWN(a, uint32_t, o->n_call + 2);
    if (!first || !call || !m->before_first || !m->before || !m->own || !m->done || !m->unit ||
        !o->node || !o->n_piece || !o->wait_first)
        return CD_FAIL(err, ENOMEM, "plan of %u calls", o->n_call);
    memcpy(first, m->plan->first, (o->n_unit + 1) * sizeof *first);
    if (o->n_call) memcpy(call, m->plan->call, o->n_call * sizeof *call);
    o->first = first, o->call = call;
    return CDMPP_OK;
}

/* The lists of who waits for a step, turned around: filled from their ends, which are then their
 * beginnings. */
static void turn(maker *m) {
    const cd_executor_deps *d = m->d;
    for (uint32_t k = 0; k < d->n; k++) m->before_first[k + 1] = m->before_first[k] + d->n_after[k];
    for (uint32_t k = d->n; k-- > 0;)
        for (uint32_t e = d->first[k]; e < d->first[k + 1]; e++)
            m->before[--m->before_first[d->next[e] + 1]] = k;
    for (uint32_t k = 0; k < d->n; k++) m->before_first[k] = m->before_first[k + 1];
}

/* ---- every iteration once ---- */

/* A whole program and its parts exclude each other: the whole is all iterations of all of its
 * nodes. */
static cdmpp_status take_pieces(maker *m, uint32_t k, cdmpp_err *err) {
    const cd_executor_call *c = &m->out->call[k];
    if (c->step >= m->n->n_step)
        return CD_FAIL(err, EINVALID, "call %u: there is no step %u", k, c->step);
    const cd_codegen_code *code = m->n->step[c->step].build->code;
    const bool whole = c->part == CD_EXECUTOR_WHOLE;
    if (!whole && c->part >= code->n_part)
        return CD_FAIL(err, EINVALID, "call %u: step %u has no part %u", k, c->step, c->part);
    const int64_t most = whole ? 1 : code->part[c->part].iterations;
    if (c->begin >= c->end || c->end > most)
        return CD_FAIL(err, EINVALID, "call %u: iterations %u to %u of %lld", k, c->begin, c->end,
                       (long long)most);
    const uint32_t from = m->node_of[c->step] + (whole ? 0 : c->part),
                   to = whole ? m->node_of[c->step + 1] : from + 1;
    m->out->node[k] = to - 1; /* others wait for the last one */
    for (uint32_t i = from; i < to; i++) {
        m->done[i] +=
            whole && code->n_part ? (uint64_t)code->part[i - from].iterations : c->end - c->begin;
        m->own[i] = m->out->n_piece[i] && m->own[i] != m->unit[k] ? NONE : m->unit[k];
        m->out->n_piece[i]++;
    }
    return CDMPP_OK;
}

/* With the right number of iterations a plan can still be wrong: some twice, some never. */
static cdmpp_status check_pieces(const maker *m, cdmpp_err *err) {
    const cd_executor_pieces *o = m->out;
    for (uint32_t s = 0; s < m->n->n_step; s++)
        for (uint32_t i = m->node_of[s]; i < m->node_of[s + 1]; i++) {
            const cd_codegen_code *c = m->n->step[s].build->code;
            const uint64_t want = c->n_part ? (uint64_t)c->part[i - m->node_of[s]].iterations : 1;
            if (m->done[i] != want)
                return CD_FAIL(
                    err, EINVALID, "step %u (%.60s): the plan runs %llu iterations of %llu", s,
                    m->n->step[s].name, (unsigned long long)m->done[i], (unsigned long long)want);
        }
    for (uint32_t a = 0; a < o->n_call; a++)
        for (uint32_t b = 0; b < a && o->n_piece[o->node[a]] > 1; b++)
            if (o->node[a] == o->node[b] && o->call[a].begin < o->call[b].end &&
                o->call[b].begin < o->call[a].end)
                return CD_FAIL(err, EINVALID,
                               "step %u (%.60s): calls %u and %u run the same iterations",
                               o->call[a].step, m->n->step[o->call[a].step].name, b, a);
    return CDMPP_OK;
}

/* ---- who waits for whom ---- */

/* The nodes before a call, whichever unit has them: to (as many as there are); how many. */
static uint32_t nodes_before(const maker *m, uint32_t k, uint32_t *to) {
    const cd_executor_call *c = &m->out->call[k];
    const uint32_t from = m->before_first[c->step], n = m->d->n_after[c->step];
    if (c->part != CD_EXECUTOR_WHOLE && c->part) {
        to[0] = m->node_of[c->step] + c->part - 1;
        return 1;
    }
    for (uint32_t e = 0; e < n; e++) to[e] = m->node_of[m->before[from + e] + 1] - 1;
    return n;
}

/* What a unit has waited for once in a pass, it need not wait for again: `seen` (n_node) is the
 * last unit that did. Units come one after the other. */
static cdmpp_status list_waits(maker *m, cd_arena *a, uint32_t *before, uint32_t *seen,
                               cdmpp_err *err) {
    cd_executor_pieces *o = m->out;
    size_t cap = 0;
    for (uint32_t i = 0; i < o->n_node; i++) seen[i] = NONE;
    for (uint32_t k = 0, n_wait = 0; k < o->n_call; k++) {
        const uint32_t n = nodes_before(m, k, before), u = m->unit[k];
        for (uint32_t e = 0; e < n; e++) {
            const uint32_t i = before[e];
            if (m->own[i] == u || seen[i] == u) continue;
            if (CD_GROW_IN(a, o->wait, n_wait, cap))
                return CD_FAIL(err, ENOMEM, "plan of %u calls", o->n_call);
            o->wait[n_wait++] = i;
            seen[i] = u;
        }
        o->wait_first[k + 1] = n_wait;
        o->n_wait += n_wait > o->wait_first[k];
    }
    return CDMPP_OK;
}

/* The plan played through: every unit goes as far as it can, again and again. left (n_node): pieces
 * that have not ended. */
static cdmpp_status play(const maker *m, uint32_t *at, uint32_t *left, uint32_t *before,
                         cdmpp_err *err) {
    const cd_executor_pieces *o = m->out;
    uint32_t ended = 0, last = NONE;
    memcpy(left, o->n_piece, o->n_node * sizeof *left);
    for (uint32_t u = 0; u < o->n_unit; u++) at[u] = o->first[u];
    while (ended < o->n_call && ended != last) {
        last = ended;
        for (uint32_t u = 0; u < o->n_unit; u++)
            for (bool go = true; go && at[u] < o->first[u + 1];) {
                const uint32_t n = nodes_before(m, at[u], before);
                for (uint32_t e = 0; e < n; e++) go = go && !left[before[e]];
                if (go) left[o->node[at[u]++]]--, ended++;
            }
    }
    for (uint32_t u = 0; u < o->n_unit; u++)
        if (at[u] < o->first[u + 1])
            return CD_FAIL(err, EINVALID, "unit %u waits for ever at step %u (%.60s)", u,
                           o->call[at[u]].step, m->n->step[o->call[at[u]].step].name);
    return CDMPP_OK;
}

cdmpp_status cd_executor_pieces_make(const cd_executor_net *n, const cd_executor_plan *p,
                                     const cd_executor_deps *d, cd_arena *a,
                                     cd_executor_pieces *out, cdmpp_err *err) {
    maker m = {.n = n, .plan = p, .d = d, .out = out};
    *out = (cd_executor_pieces){0};
    if (!p->n_unit || p->n_unit > CD_EXECUTOR_POOL_MAX)
        return CD_FAIL(err, ERANGE, "%u units; from 1 to %d", p->n_unit, CD_EXECUTOR_POOL_MAX);
    CD_TRY(allocate(&m, a, err));
    turn(&m);
    for (uint32_t u = 0; u < out->n_unit; u++)
        for (uint32_t k = out->first[u]; k < out->first[u + 1]; k++) {
            m.unit[k] = u;
            CD_TRY(take_pieces(&m, k, err));
        }
    CD_TRY(check_pieces(&m, err));
    uint32_t *before = CD_NEWN(a, uint32_t, n->n_step + 1),
             *node = CD_NEWN(a, uint32_t, out->n_node + 1), *at = CD_NEWN(a, uint32_t, out->n_unit);
    if (!before || !node || !at) return CD_FAIL(err, ENOMEM, "plan of %u calls", out->n_call);
    CD_TRY(list_waits(&m, a, before, node, err));
    return play(&m, at, node, before, err);
}

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
