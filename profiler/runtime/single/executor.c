/* A network on this processor: a plan of where tensors, packed weights and scratch lie, one block
 * of memory for all of it, the programs loaded, and the passes. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "profiler/runtime/single/single_internal.h"

/* What a tensor of so many bytes takes: a multiple of CD_EXECUTOR_MEMORY_ALIGN.
 *
 * Offsets for tensors, greedy by size: the largest first, each in the lowest gap that those which
 * live with it leave. */
static int64_t executor_memory_room(int64_t bytes) {
    return (bytes + CD_EXECUTOR_MEMORY_ALIGN - 1) / CD_EXECUTOR_MEMORY_ALIGN *
           CD_EXECUTOR_MEMORY_ALIGN;
}

static cdmpp_status check(const cd_executor_memory_tensor *t, uint32_t n, cdmpp_err *err) {
    int64_t sum = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (t[k].first > t[k].last)
            return CD_FAIL(err, ERANGE, "tensor %u lives from step %u to %u", k, t[k].first,
                           t[k].last);
        if (t[k].bytes < 0 || t[k].bytes > INT64_MAX - CD_EXECUTOR_MEMORY_ALIGN ||
            __builtin_add_overflow(sum, executor_memory_room(t[k].bytes), &sum))
            return CD_FAIL(err, ERANGE, "tensor %u: %lld bytes", k, (long long)t[k].bytes);
    }
    return CDMPP_OK;
}

typedef struct {
    uint32_t t; /* tensor */
    int64_t bytes;
} big;

/* Large before small, then in the order of numbers. */
static int by_size(const void *a, const void *b) {
    const big *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->t < y->t ? -1 : 1;
}

typedef struct {
    int64_t begin, end;
} span;

static int by_begin(const void *a, const void *b) {
    const span *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* The lowest gap of `bytes` between spans, sorted. */
static int64_t gap(const span *s, uint32_t n, int64_t bytes) {
    int64_t at = 0;
    for (uint32_t k = 0; k < n && s[k].begin < at + bytes; k++)
        if (s[k].end > at) at = s[k].end;
    return at;
}

typedef struct {
    cd_executor_memory_meet *meet; /* NULL: by first and last */
    const void *ctx;
} rule;

static bool together(const cd_executor_memory_tensor *t, const rule *r, uint32_t a, uint32_t b) {
    return r->meet ? r->meet(r->ctx, a, b) : t[b].first <= t[a].last && t[a].first <= t[b].last;
}

/* Offsets in the order given: for each tensor the spans of those placed before that may live with
 * it, sorted, and the lowest gap between them. */
static void place(cd_executor_memory_tensor *t, const rule *r, const big *order, uint32_t n,
                  span *taken) {
    for (uint32_t k = 0; k < n; k++) {
        cd_executor_memory_tensor *x = &t[order[k].t];
        uint32_t m = 0;
        for (uint32_t j = 0; j < k; j++) { /* those that are placed and live with it */
            const cd_executor_memory_tensor *y = &t[order[j].t];
            if (y->bytes && together(t, r, order[k].t, order[j].t))
                taken[m++] = (span){y->offset, y->offset + executor_memory_room(y->bytes)};
        }
        qsort(taken, m, sizeof *taken, by_begin);
        x->offset = gap(taken, m, executor_memory_room(x->bytes));
    }
}

typedef struct {
    uint32_t step;
    int64_t change;
} event;

/* At one step what begins counts before what ended the step before: events are at first and last +
 * 1. */
static int by_step(const void *a, const void *b) {
    const event *x = a, *y = b;
    return (x->step > y->step) - (x->step < y->step);
}

/* The most bytes that live at once when steps run in their order: a sum over births and deaths
 * sorted by step. */
static int64_t peak(const cd_executor_memory_tensor *t, uint32_t n, event *e) {
    int64_t now = 0, most = 0;
    for (uint32_t k = 0; k < n; k++) {
        e[2 * k] = (event){t[k].first, executor_memory_room(t[k].bytes)};
        e[2 * k + 1] = (event){t[k].last == UINT32_MAX ? UINT32_MAX : t[k].last + 1,
                               t[k].last == UINT32_MAX ? 0 : -executor_memory_room(t[k].bytes)};
    }
    qsort(e, 2 * (size_t)n, sizeof *e, by_step);
    for (uint32_t k = 0; k < 2 * n; k++) {
        now += e[k].change;
        if ((k + 1 == 2 * n || e[k + 1].step != e[k].step) && now > most) most = now;
    }
    return most;
}

/* Both plans of the header: the rule says who may live with whom. */
static cdmpp_status plan(cd_executor_memory_tensor *t, uint32_t n, const rule *r, int64_t *total,
                         int64_t *least, cdmpp_err *err) {
    CD_TRY(check(t, n, err));
    big *order = cd_mem_zalloc(n + 1, sizeof *order);
    span *taken = cd_mem_zalloc(n + 1, sizeof *taken);
    event *e = cd_mem_zalloc(2 * (size_t)n + 1, sizeof *e);
    const bool ok = order && taken && e;
    for (uint32_t k = 0; ok && k < n; k++) order[k] = (big){k, t[k].bytes};
    if (ok) {
        qsort(order, n, sizeof *order, by_size);
        place(t, r, order, n, taken);
        *total = 0;
        for (uint32_t k = 0; k < n; k++)
            if (t[k].offset + executor_memory_room(t[k].bytes) > *total)
                *total = t[k].offset + executor_memory_room(t[k].bytes);
        if (least) *least = peak(t, n, e);
    }
    cd_mem_free(order);
    cd_mem_free(taken);
    cd_mem_free(e);
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "plan of %u tensors", n);
}

cdmpp_status cd_executor_memory_plan(cd_executor_memory_tensor *t, uint32_t n, int64_t *total,
                                     int64_t *least, cdmpp_err *err) {
    return plan(t, n, &(rule){0}, total, least, err);
}

cdmpp_status cd_executor_memory_apart(cd_executor_memory_tensor *t, uint32_t n,
                                      cd_executor_memory_meet *meet, const void *ctx,
                                      int64_t *total, int64_t *least, cdmpp_err *err) {
    return plan(t, n, &(rule){meet, ctx}, total, least, err);
}

/* Threads that run the pieces of a plan, each its own list. Nothing is handed out in a pass: a unit
 * only looks at the counters of what it waits for. */

static const double SPIN_S = 2e-4; /* before who waits sleeps */

typedef struct {
    _Alignas(64) cd_counter ended; /* a cache line of its own */
} node;

typedef struct {
    cd_executor_units *of;
    uint32_t number;
    pthread_t thread;
} unit_in_use;

struct cd_executor_units {
    cd_executor_units_options options;
    unit_in_use *unit; /* (n_unit), 0 is nobody's */
    uint32_t n_begun;
    node *node; /* (n_node) in `block` */
    void *block;
    cd_counter pass, out; /* passes begun; units that have left one, over all passes */
    atomic_bool end;
};

/* The calls of a unit in the pass of this number, counted from 1. */
static void work(cd_executor_units *u, uint32_t number, uint32_t pass) {
    const cd_executor_pieces *p = u->options.pieces;
    for (uint32_t k = p->first[number]; k < p->first[number + 1]; k++) {
        for (uint32_t w = p->wait_first[k]; w < p->wait_first[k + 1]; w++)
            (void)cd_counter_wait(&u->node[p->wait[w]].ended, pass * p->n_piece[p->wait[w]],
                                  -SPIN_S);
        u->options.call(u->options.ctx, k, number);
        (void)cd_counter_increment(&u->node[p->node[k]].ended);
    }
}

static void *unit_main(void *arg) {
    unit_in_use *me = arg;
    cd_executor_units *u = me->of;
    (void)cd_affinity_one(u->options.pieces->n_unit, me->number);
    if (u->options.begin) u->options.begin(u->options.ctx);
    for (uint32_t pass = 1;; pass++) {
        (void)cd_counter_wait(&u->pass, pass, -SPIN_S);
        if (atomic_load(&u->end)) return NULL;
        work(u, me->number, pass);
        (void)cd_counter_increment(&u->out);
    }
}

/* The caller leaves after all units: the next pass may then write what this one reads. */
void cd_executor_units_pass(cd_executor_units *u) {
    cd_affinity all;
    cd_affinity_get(&all);
    (void)cd_affinity_one(u->options.pieces->n_unit, 0);
    const uint32_t pass = cd_counter_increment(&u->pass);
    work(u, 0, pass);
    (void)cd_counter_wait(&u->out, pass * u->n_begun, -SPIN_S);
    cd_affinity_set(&all, 0);
}

void cd_executor_units_free(cd_executor_units *u) {
    if (!u) return;
    atomic_store(&u->end, true);
    (void)cd_counter_increment(&u->pass);
    for (uint32_t k = 1; k <= u->n_begun; k++) pthread_join(u->unit[k].thread, NULL);
    cd_mem_free(u->unit);
    cd_mem_free(u->block);
    cd_mem_free(u);
}

static cdmpp_status begin_all(cd_executor_units *u, cdmpp_err *err) {
    const cd_executor_pieces *p = u->options.pieces;
    u->unit = cd_mem_zalloc(p->n_unit + 1, sizeof *u->unit);
    u->block = cd_mem_zalloc(p->n_node + 1, sizeof *u->node);
    if (!u->unit || !u->block) return CD_FAIL(err, ENOMEM, "%u units", p->n_unit);
    u->node = (node *)(((uintptr_t)u->block + sizeof(node) - 1) / sizeof(node) * sizeof(node));
    for (uint32_t k = 1; k < p->n_unit; k++, u->n_begun++) {
        u->unit[k] = (unit_in_use){.of = u, .number = k};
        const int e = pthread_create(&u->unit[k].thread, NULL, unit_main, &u->unit[k]);
        if (e) return CD_FAIL(err, EIO, "no thread for unit %u: %s", k, strerror(e));
    }
    return CDMPP_OK;
}

cdmpp_status cd_executor_units_new(const cd_executor_units_options *a, cd_executor_units **out,
                                   cdmpp_err *err) {
    cd_executor_units *u = cd_mem_zalloc(1, sizeof *u);
    if (!u) return CD_FAIL(err, ENOMEM, "units");
    u->options = *a;
    const cdmpp_status st = begin_all(u, err);
    if (st) cd_executor_units_free(u);
    else *out = u;
    return st;
}

typedef struct {
    void *handle;
    cd_object_loader_entry *entry;
    cd_object_loader_part *part; /* with a plan, of a program with parts */
    void **arg;                  /* (n_buffer) */
    uint32_t *place;             /* (n_buffer) of the plan */
} step;

/* A weight in the order that a program wants: one for all steps of that program. */
typedef struct copy {
    const cd_codegen_code *code;
    cd_executor_net_shape shape;
    uint32_t b, place;
    struct copy *next; /* of the tensor */
} copy;

/* Steps that use a place; none: it lives always. */
typedef struct {
    uint32_t n, *step;
} users;

struct cd_executor {
    cd_arena arena;
    const cd_executor_net *net;
    int threads;
    uint32_t workers;
    cd_executor_deps deps; /* of several workers, and what follows */
    users *users;          /* (n_plan) */
    double *rank;          /* (n_step) or NULL */
    cd_executor_pool *pool;
    const cd_executor_plan *by; /* while it is opened; NULL: no plan of calls */
    void *openmp;               /* handle of a program with OpenMP's loops; NULL: none */
    cd_executor_pieces pieces;  /* of a plan */
    cd_executor_units *units;   /* NULL: no plan */
    cd_executor_ran *ran;       /* (n_step) of the pass; with a plan (n_call) */
    copy **copy;                /* (n_tensor) */
    double begin_s;
    clockid_t clock;
    step *step;
    cd_executor_memory_tensor *plan; /* (n_plan) the net's tensors, packed copies, scratch */
    uint32_t n_plan;
    unsigned char *block;
    size_t n_block;
    cd_executor_bytes_used bytes;
};

static double now_s(const cd_executor *r) { return cd_clock_read(r->clock); }

static const cd_codegen_code *code_of(const cd_executor *r, uint32_t k) {
    return r->net->step[k].build->code;
}

/* ---- the plan ---- */

static uint32_t most_places(const cd_executor_net *n) {
    uint32_t m = n->n_tensor;
    for (uint32_t k = 0; k < n->n_step; k++) m += n->step[k].build->code->n_buffer;
    return m;
}

static bool always(const cd_executor_net_tensor *t) { return t->role != CD_TENSOR_INNER; }

/* Step k uses tensor t as its parameter b: they fit, and the tensor lives at least until k. */
static cdmpp_status touch(cd_executor *r, uint32_t t, uint32_t k, const cd_codegen_buffer *b,
                          cdmpp_err *err) {
    const cd_executor_net *n = r->net;
    if (t >= n->n_tensor || n->tensor[t].bytes < b->elements * cd_expr_dtype_bytes(b->dtype))
        return CD_FAIL(err, EINVALID, "step %u (%.60s): parameter %.60s does not fit its tensor", k,
                       n->step[k].name, b->name);
    if (b->n_digit && n->tensor[t].role != CD_TENSOR_WEIGHT)
        return CD_FAIL(err, EINVALID, "step %u (%.60s): parameter %.60s is packed, and no weight",
                       k, n->step[k].name, b->name);
    cd_executor_memory_tensor *p = &r->plan[t];
    if (always(&n->tensor[t])) return CDMPP_OK;
    if (p->first == UINT32_MAX && !b->written)
        return CD_FAIL(err, EINVALID, "step %u (%.60s) reads tensor %u before it is made", k,
                       n->step[k].name, t);
    if (p->first == UINT32_MAX) p->first = k;
    p->last = k;
    return CDMPP_OK;
}

/* The packed copy of parameter b of step k. */
static cdmpp_status place_copy(cd_executor *r, uint32_t k, uint32_t b, uint32_t t, cdmpp_err *err) {
    const cd_executor_net_step *s = &r->net->step[k];
    const cd_executor_net_tensor *x = &r->net->tensor[t];
    copy *c = r->copy[t];
    while (c && (c->code != code_of(r, k) || c->b != b)) c = c->next;
    if (!c) {
        c = CD_NEW(&r->arena, copy);
        if (!c) return CD_FAIL(err, ENOMEM, "packed weights");
        *c = (copy){code_of(r, k),
                    s->shape ? s->shape[b] : (cd_executor_net_shape){x->rank, x->shape}, b,
                    r->n_plan, r->copy[t]};
        r->copy[t] = c;
        r->plan[r->n_plan++] =
            (cd_executor_memory_tensor){.bytes = c->code->buffer[b].bytes, .last = UINT32_MAX};
        r->bytes.weights += c->code->buffer[b].bytes;
    }
    r->step[k].place[b] = c->place;
    return CDMPP_OK;
}

/* Where buffer b of step k is: the tensor's own place, a packed copy, or scratch. */
static cdmpp_status place_buffer(cd_executor *r, uint32_t k, uint32_t b, cdmpp_err *err) {
    const cd_codegen_buffer *buf = &code_of(r, k)->buffer[b];
    const uint32_t t = buf->is_arg ? r->net->step[k].tensor[b] : UINT32_MAX;
    if (buf->is_arg) CD_TRY(touch(r, t, k, buf, err));
    if (buf->is_arg && !buf->n_digit) {
        r->step[k].place[b] = t;
        return CDMPP_OK;
    }
    if (buf->is_arg) return place_copy(r, k, b, t, err);
    const int64_t times = !buf->per_thread ? 1 : r->by ? (int64_t)r->by->n_unit : r->threads;
    r->step[k].place[b] = r->n_plan;
    r->plan[r->n_plan++] =
        (cd_executor_memory_tensor){.bytes = buf->bytes * times, .first = k, .last = k};
    return CDMPP_OK;
}

/* What lives at once, without what lives always. */
static int64_t inner_least(const cd_executor *r, int64_t least) {
    for (uint32_t k = 0; k < r->n_plan; k++)
        if (r->plan[k].last == UINT32_MAX) least -= executor_memory_room(r->plan[k].bytes);
    return least;
}

/* ---- several workers ---- */

static bool all_before(const cd_executor *r, const users *a, const users *b) {
    for (uint32_t k = 0; k < a->n; k++)
        if (!cd_executor_deps_before(&r->deps, a->step[k], b->step[0])) return false;
    return true;
}

/* May two tensors live at the same time? Not if all users of one come before the first user of the
 * other, who makes it. */
static bool meet(const void *ctx, uint32_t a, uint32_t b) {
    const cd_executor *r = ctx;
    const users *x = &r->users[a], *y = &r->users[b];
    return !x->n || !y->n || (!all_before(r, x, y) && !all_before(r, y, x));
}

/* For each place of the plan the steps that use it, in order: counted first, then filled in. */
static cdmpp_status list_users(cd_executor *r, cdmpp_err *err) {
    r->users = CD_NEWN(&r->arena, users, r->n_plan + 1);
    if (!r->users) return CD_FAIL(err, ENOMEM, "network of %u steps", r->net->n_step);
    for (int fill = 0; fill < 2; fill++) {
        for (uint32_t t = 0; fill && t < r->n_plan; t++) {
            r->users[t].step = CD_NEWN(&r->arena, uint32_t, r->users[t].n + 1);
            if (!r->users[t].step)
                return CD_FAIL(err, ENOMEM, "network of %u steps", r->net->n_step);
            r->users[t].n = 0;
        }
        for (uint32_t k = 0; k < r->net->n_step; k++)
            for (uint32_t b = 0; b < code_of(r, k)->n_buffer; b++) {
                users *u = &r->users[r->step[k].place[b]];
                const cd_executor_memory_tensor *p = &r->plan[r->step[k].place[b]];
                if (p->last == UINT32_MAX) continue;
                if (fill) u->step[u->n] = k;
                u->n++;
            }
    }
    return CDMPP_OK;
}

static cdmpp_status place_all(cd_executor *r, int64_t *least, cdmpp_err *err) {
    if (r->workers < 2 && !r->by)
        return cd_executor_memory_plan(r->plan, r->n_plan, &r->bytes.all, least, err);
    CD_TRY(cd_executor_deps_make(r->net, &r->arena, &r->deps, err));
    CD_TRY(list_users(r, err));
    return cd_executor_memory_apart(r->plan, r->n_plan, meet, r, &r->bytes.all, least, err);
}

/* The plan's first entries are the net's tensors (same numbers); packed weights and scratch follow
 * as steps need them. */
static cdmpp_status make_plan(cd_executor *r, cdmpp_err *err) {
    const cd_executor_net *n = r->net;
    r->plan = CD_NEWN(&r->arena, cd_executor_memory_tensor, most_places(n) + 1);
    r->step = CD_NEWN(&r->arena, step, n->n_step + 1);
    r->copy = CD_NEWN(&r->arena, copy *, n->n_tensor + 1);
    if (!r->plan || !r->step || !r->copy)
        return CD_FAIL(err, ENOMEM, "network of %u steps", n->n_step);
    r->n_plan = n->n_tensor;
    for (uint32_t t = 0; t < n->n_tensor; t++) {
        r->plan[t] = (cd_executor_memory_tensor){.bytes = n->tensor[t].bytes,
                                                 .first = always(&n->tensor[t]) ? 0 : UINT32_MAX,
                                                 .last = UINT32_MAX};
        if (n->tensor[t].role == CD_TENSOR_WEIGHT) r->bytes.weights += n->tensor[t].bytes;
    }
    for (uint32_t k = 0; k < n->n_step; k++) {
        const uint32_t m = code_of(r, k)->n_buffer;
        r->step[k].arg = CD_NEWN(&r->arena, void *, m + 1);
        r->step[k].place = CD_NEWN(&r->arena, uint32_t, m + 1);
        if (!r->step[k].arg || !r->step[k].place)
            return CD_FAIL(err, ENOMEM, "network of %u steps", n->n_step);
        for (uint32_t b = 0; b < m; b++) CD_TRY(place_buffer(r, k, b, err));
    }
    for (uint32_t t = 0; t < n->n_tensor; t++) /* touched by nobody */
        if (r->plan[t].first == UINT32_MAX) r->plan[t] = (cd_executor_memory_tensor){0};
    int64_t least = 0;
    CD_TRY(place_all(r, &least, err));
    r->bytes.inner_least = inner_least(r, least);
    return CDMPP_OK;
}

/* ---- memory ---- */

/* One mapping for everything, with huge pages where the system gives them; the programs' arguments
 * point into it. */
static cdmpp_status make_block(cd_executor *r, cdmpp_err *err) {
    enum { PAGE = 4096 };
    r->n_block = (size_t)r->bytes.all + PAGE;
    void *p = mmap(NULL, r->n_block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return CD_FAIL(err, ENOMEM, "%zu bytes for a network: %s", r->n_block, strerror(errno));
    r->block = p;
    (void)madvise(p, r->n_block, MADV_HUGEPAGE);
    for (uint32_t k = 0; k < r->net->n_step; k++)
        for (uint32_t b = 0; b < code_of(r, k)->n_buffer; b++)
            r->step[k].arg[b] = r->block + r->plan[r->step[k].place[b]].offset;
    return CDMPP_OK;
}

static unsigned char *at(const cd_executor *r, uint32_t place) {
    return r->block + r->plan[place].offset;
}

/* Every packed copy of a tensor anew. */
static void pack_copies(cd_executor *r, uint32_t tensor) {
    for (const copy *c = r->copy[tensor]; c; c = c->next)
        cd_codegen_pack(&c->code->buffer[c->b], c->shape.rank, c->shape.shape, at(r, tensor),
                        at(r, c->place));
}

/* Inputs and weights get the content of cd_tensor_fill, by tensor number, so that the same network
 * computes the same values everywhere. */
static cdmpp_status fill(cd_executor *r, cdmpp_err *err) {
    for (uint32_t t = 0; t < r->net->n_tensor; t++) {
        const cd_executor_net_tensor *x = &r->net->tensor[t];
        const size_t size = cd_expr_dtype_bytes(x->dtype);
        if (x->role != CD_TENSOR_INPUT && x->role != CD_TENSOR_WEIGHT) continue;
        if (!size || !cd_tensor_fill(x->dtype, t, 0, (size_t)x->bytes / size, at(r, t)))
            return CD_FAIL(err, EUNSUPPORTED, "tensor %u: a type that cannot be filled", t);
        pack_copies(r, t);
    }
    return CDMPP_OK;
}

/* ---- programs ---- */

static cdmpp_status link_step(cd_executor *r, uint32_t k, cdmpp_err *err) {
    const cd_build *b = r->net->step[k].build;
    if (b->status || !b->object)
        return CD_FAIL(err, EBACKEND, "step %u (%.60s) has not been compiled", k,
                       r->net->step[k].name);
    CD_TRY(cd_object_loader_open(b, r->threads, &r->step[k].handle, &r->step[k].entry, err));
    if (b->code->parallel) r->openmp = r->step[k].handle;
    return r->by && b->code->n_part
               ? cd_object_loader_parts(r->step[k].handle, b->code, &r->step[k].part, err)
               : CDMPP_OK;
}

/* OpenMP's number of threads is a setting of the calling thread, for all programs. */
static void set_threads(void *ctx) {
    const cd_executor *r = ctx;
    cd_object_loader_threads(r->openmp, r->threads);
}

static void run_step(void *ctx, uint32_t k, uint32_t worker) {
    cd_executor *r = ctx;
    const double begin = now_s(r);
    r->step[k].entry(r->step[k].arg);
    r->ran[k] = (cd_executor_ran){begin - r->begin_s, now_s(r) - r->begin_s, worker};
}

/* A program that runs whole finds its scratch as that of the unit. */
static void run_call(void *ctx, uint32_t k, uint32_t unit) {
    cd_executor *r = ctx;
    const cd_executor_call *c = &r->pieces.call[k];
    const step *s = &r->step[c->step];
    const double begin = now_s(r);
    if (c->part == CD_EXECUTOR_WHOLE) s->entry(s->arg);
    else s->part(s->arg, (int)c->part, (int)unit, (int)c->begin, (int)c->end);
    r->ran[k] = (cd_executor_ran){begin - r->begin_s, now_s(r) - r->begin_s, unit};
}

static cdmpp_status make_units(cd_executor *r, cdmpp_err *err) {
    const cd_executor_units_options a = {
        .pieces = &r->pieces, .begin = set_threads, .call = run_call, .ctx = r};
    CD_TRY(cd_executor_pieces_make(r->net, r->by, &r->deps, &r->arena, &r->pieces, err));
    if (!(r->ran = CD_NEWN(&r->arena, cd_executor_ran, r->pieces.n_call + 1)))
        return CD_FAIL(err, ENOMEM, "plan of %u calls", r->pieces.n_call);
    return cd_executor_units_new(&a, &r->units, err);
}

/* Threads for several workers, and the rank of each step: the longest chain behind it. */
static cdmpp_status make_pool(cd_executor *r, const double *seconds, cdmpp_err *err) {
    const uint32_t n = r->net->n_step;
    r->ran = CD_NEWN(&r->arena, cd_executor_ran, n + 1);
    if (seconds && r->workers > 1) r->rank = CD_NEWN(&r->arena, double, n + 1);
    if (!r->ran || (seconds && r->workers > 1 && !r->rank))
        return CD_FAIL(err, ENOMEM, "network of %u steps", n);
    if (r->workers < 2) return CDMPP_OK;
    if (seconds) cd_executor_deps_chains(&r->deps, seconds, r->rank);
    const cd_executor_pool_options a = {.workers = r->workers,
                                        .deps = &r->deps,
                                        .rank = r->rank,
                                        .begin = set_threads,
                                        .step = run_step,
                                        .ctx = r};
    return cd_executor_pool_new(&a, &r->pool, err);
}

void cd_executor_close(cd_executor *r) {
    if (!r) return;
    cd_executor_pool_free(r->pool);
    cd_executor_units_free(r->units);
    for (uint32_t k = 0; r->step && k < r->net->n_step; k++)
        cd_object_loader_close(r->step[k].handle);
    if (r->block) munmap(r->block, r->n_block);
    cd_arena_free(&r->arena);
    cd_mem_free(r);
}

/* The threads of each program are what is left of the processors when every worker has its part. */
cdmpp_status cd_executor_open(const cd_executor_net *n, const cd_executor_options *o,
                              cd_executor **out, cdmpp_err *err) {
    cd_executor *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "network");
    r->net = n;
    r->by = o->plan;
    r->workers = o->plan ? o->plan->n_unit : o->workers ? o->workers : 1;
    r->clock = o->cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    const int all = cd_backend_cpu_threads(""), each = r->by ? 1 : all / (int)r->workers;
    r->threads = r->by ? 1 : o->threads > 0 ? o->threads : each > 0 ? each : 1;
    cdmpp_status st = make_plan(r, err);
    if (!st) st = make_block(r, err);
    if (!st) st = fill(r, err);
    for (uint32_t k = 0; k < n->n_step && !st; k++) st = link_step(r, k, err);
    if (!st) st = r->by ? make_units(r, err) : make_pool(r, o->seconds, err);
    r->by = NULL;
    if (st) cd_executor_close(r);
    else *out = r;
    return st;
}

/* ---- running ---- */

/* A step from the begin of its first piece to the end of its last. */
static void from_pieces(const cd_executor *r, cd_executor_ran *ran) {
    for (uint32_t s = 0; s < r->net->n_step; s++)
        ran[s] = (cd_executor_ran){(double)INFINITY, 0, 0};
    for (uint32_t k = 0; k < r->pieces.n_call; k++) {
        cd_executor_ran *to = &ran[r->pieces.call[k].step];
        if (r->ran[k].start_s < to->start_s) to->start_s = r->ran[k].start_s;
        if (r->ran[k].end_s >= to->end_s)
            to->end_s = r->ran[k].end_s, to->worker = r->ran[k].worker;
    }
}

/* With `ran` the clock is read around each step, which costs a little: total_s is then slightly
 * longer than without. */
void cd_executor_pass(cd_executor *r, cd_executor_ran *ran, double *total_s) {
    const uint32_t n = r->net->n_step;
    set_threads(r); /* another network may have set others */
    r->begin_s = now_s(r);
    if (r->pool) cd_executor_pool_pass(r->pool);
    if (r->units) cd_executor_units_pass(r->units);
    for (uint32_t k = 0; !r->pool && !r->units && k < n; k++) {
        if (ran) run_step(r, k, 0);
        else r->step[k].entry(r->step[k].arg);
    }
    *total_s = now_s(r) - r->begin_s;
    if (ran && r->units) from_pieces(r, ran);
    else if (ran) memcpy(ran, r->ran, n * sizeof *ran);
}

void cd_executor_plan_counts(const cd_executor *r, uint32_t *calls, uint32_t *waits) {
    *calls = r->pieces.n_call;
    *waits = r->pieces.n_wait;
}

void cd_executor_step(cd_executor *r, uint32_t k, unsigned times, double *seconds) {
    set_threads(r);
    const double begin = now_s(r);
    for (unsigned i = 0; i < times; i++) r->step[k].entry(r->step[k].arg);
    *seconds = now_s(r) - begin;
}

/* ---- content ---- */

cdmpp_status cd_executor_write(cd_executor *r, uint32_t tensor, const void *from, cdmpp_err *err) {
    if (tensor >= r->net->n_tensor || !always(&r->net->tensor[tensor]))
        return CD_FAIL(err, ERANGE, "tensor %u is no input, weight or result", tensor);
    memcpy(at(r, tensor), from, (size_t)r->net->tensor[tensor].bytes);
    pack_copies(r, tensor);
    return CDMPP_OK;
}

cdmpp_status cd_executor_read(const cd_executor *r, uint32_t tensor, void *to, cdmpp_err *err) {
    if (tensor >= r->net->n_tensor || !always(&r->net->tensor[tensor]))
        return CD_FAIL(err, ERANGE, "tensor %u is no input, weight or result", tensor);
    memcpy(to, at(r, tensor), (size_t)r->net->tensor[tensor].bytes);
    return CDMPP_OK;
}

cd_executor_bytes_used cd_executor_bytes(const cd_executor *r) { return r->bytes; }

/* Places behind those of tensors are packed weights, which live always, and scratch. */
cd_executor_step_bytes cd_executor_bytes_of(const cd_executor *r, uint32_t at_step) {
    cd_executor_step_bytes b = {0};
    for (uint32_t k = 0; k < r->n_plan; k++) {
        const cd_executor_memory_tensor *p = &r->plan[k];
        if (p->last == UINT32_MAX || p->first > at_step || p->last < at_step) continue;
        b.live += executor_memory_room(p->bytes);
        if (k >= r->net->n_tensor) b.scratch += executor_memory_room(p->bytes);
    }
    return b;
}
