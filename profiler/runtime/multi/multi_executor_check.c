/* What no net of devices may be: numbers that point nowhere, sizes, memories, and actions on the
 * same bytes whose order is left open. */
#include <stdlib.h>

#include "profiler/runtime/multi/multi_executor_internal.h"

enum { MOST_RUNS = 1 << 18, MOST_ACTIONS = 32768 };

/* ---- buffers and devices ---- */

static cdmpp_status check_buffer(const cd_multi_net *n, uint32_t k, cdmpp_err *err) {
    const cd_multi_buffer *b = &n->buffer[k];
    if (b->bytes < 0 || b->offset < 0)
        return CD_FAIL(err, EINVALID, "buffer %u (%.60s): a size or offset below 0", k, b->name);
    if (b->of == CD_MULTI_OWN) return CDMPP_OK;
    if (b->of >= k || n->buffer[b->of].of != CD_MULTI_OWN)
        return CD_FAIL(err, EINVALID,
                       "buffer %u (%.60s): a window of %u, which is no buffer of its own before it",
                       k, b->name, b->of);
    const cd_multi_buffer *of = &n->buffer[b->of];
    if (b->constant && !of->constant)
        return CD_FAIL(err, EINVALID,
                       "buffer %u (%.60s): a constant window of %.60s, which is none", k, b->name,
                       of->name);
    if (of->memory != b->memory)
        return CD_FAIL(err, EINVALID,
                       "buffer %u (%.60s): a window in another memory than its buffer", k, b->name);
    if (b->bytes > of->bytes - b->offset)
        return CD_FAIL(err, EINVALID, "buffer %u (%.60s): a window outside of %.60s", k, b->name,
                       of->name);
    return CDMPP_OK;
}

static cdmpp_status check_device(const cd_multi_net *n, uint32_t k, cdmpp_err *err) {
    const cd_multi_device *d = &n->device[k];
    if (d->kind > CD_MULTI_OPENCL)
        return CD_FAIL(err, EINVALID, "device %u (%.60s): no kind", k, d->name);
    if (d->kind == CD_MULTI_CPU && d->memory)
        return CD_FAIL(err, EINVALID, "device %u (%.60s): a processor has the host's memory, 0", k,
                       d->name);
    for (uint32_t i = 0; d->memory && i < k; i++)
        if (n->device[i].memory == d->memory)
            return CD_FAIL(err, EINVALID, "devices %.60s and %.60s: one memory %u of their own",
                           n->device[i].name, d->name, d->memory);
    return CDMPP_OK;
}

/* ---- actions ---- */

/* A program's parameter p: its buffer exists, is in the device's memory, is large enough, is not a
 * constant that the program writes, and is a constant with a shape where the program wants it
 * packed. */
static cdmpp_status check_param(const cd_multi_net *n, uint32_t k, uint32_t p, cdmpp_err *err) {
    const cd_multi_action *a = &n->action[k];
    const cd_codegen_buffer *c = &a->build->code->buffer[p];
    const uint32_t at = a->buffer[p];
    if (at >= n->n_buffer)
        return CD_FAIL(err, EINVALID, "action %u (%.60s): there is no buffer %u", k, a->name, at);
    const cd_multi_buffer *b = &n->buffer[at];
    if (b->memory != n->device[a->device].memory)
        return CD_FAIL(err, EINVALID,
                       "action %u (%.60s): buffer %.60s is in memory %u, the device in %u", k,
                       a->name, b->name, b->memory, n->device[a->device].memory);
    if (b->bytes < c->elements * cd_expr_dtype_bytes(c->dtype))
        return CD_FAIL(err, EINVALID,
                       "action %u (%.60s): parameter %.60s does not fit buffer %.60s", k, a->name,
                       c->name, b->name);
    if (c->written && (b->constant || n->buffer[cd_multi_buffer_root(n, at)].constant))
        return CD_FAIL(err, EINVALID, "action %u (%.60s) writes %.60s, a constant", k, a->name,
                       b->name);
    if (c->n_digit && !b->constant)
        return CD_FAIL(err, EINVALID,
                       "action %u (%.60s): parameter %.60s is packed, and %.60s is no constant", k,
                       a->name, c->name, b->name);
    if (c->n_digit && (!b->rank || !b->shape))
        return CD_FAIL(err, EINVALID, "action %u (%.60s): %.60s is to be packed and has no shape",
                       k, a->name, b->name);
    return CDMPP_OK;
}

bool cd_multi_splits(const cd_codegen_code *c) {
    bool apart = c->dialect == CD_DIALECT_C && c->n_part == 1;
    for (uint32_t b = c->n_arg; b < c->n_buffer; b++) apart = apart && c->buffer[b].per_thread;
    return apart;
}

static cdmpp_status check_piece(const cd_multi_net *n, uint32_t k, cdmpp_err *err) {
    const cd_multi_action *a = &n->action[k];
    const cd_codegen_code *c = a->build->code;
    if (!cd_multi_splits(c))
        return CD_FAIL(err, EINVALID, "action %u (%.60s): the program runs whole only", k, a->name);
    if (a->begin >= 0 && a->begin < a->end && a->end <= c->part[0].iterations) return CDMPP_OK;
    return CD_FAIL(err, EINVALID, "action %u (%.60s): iterations %lld to %lld of %lld", k, a->name,
                   (long long)a->begin, (long long)a->end, (long long)c->part[0].iterations);
}

static cdmpp_status check_program(const cd_multi_net *n, uint32_t k, cdmpp_err *err) {
    const cd_multi_action *a = &n->action[k];
    const cd_build *b = a->build;
    const bool opencl = n->device[a->device].kind == CD_MULTI_OPENCL;
    if ((b->code->dialect == CD_DIALECT_OPENCL) != opencl || b->code->dialect == CD_DIALECT_CUDA)
        return CD_FAIL(err, EINVALID, "action %u (%.60s): a program that device %.60s does not run",
                       k, a->name, n->device[a->device].name);
    if (b->status || (!b->object && !opencl))
        return CD_FAIL(err, EBACKEND, "action %u (%.60s) has not been compiled", k, a->name);
    for (uint32_t p = 0; p < b->code->n_arg; p++) CD_TRY(check_param(n, k, p, err));
    return a->end ? check_piece(n, k, err) : CDMPP_OK;
}

/* The last element of a box, from its first. */
static bool reach(uint32_t rank, const int64_t *n, const int64_t *stride, int64_t first,
                  int64_t *last) {
    *last = first;
    for (uint32_t d = 0; d < rank; d++) {
        int64_t more;
        if (n[d] < 0 || stride[d] < 0) return false;
        if (__builtin_mul_overflow(n[d] > 0 ? n[d] - 1 : 0, stride[d], &more) ||
            __builtin_add_overflow(*last, more, last))
            return false;
    }
    return first >= 0;
}

/* One end of a copy (to: the target): its buffer exists, the device may reach its memory, the box
 * lies inside, and it is not a constant. */
static cdmpp_status check_side(const cd_multi_net *n, uint32_t k, bool to, cdmpp_err *err) {
    const cd_multi_action *a = &n->action[k];
    const cd_multi_copy *c = &a->copy;
    const uint32_t at = to ? c->to : c->from;
    int64_t last;
    if (at >= n->n_buffer)
        return CD_FAIL(err, EINVALID, "action %u (%.60s): there is no buffer %u", k, a->name, at);
    const cd_multi_buffer *b = &n->buffer[at];
    if (b->memory && b->memory != n->device[a->device].memory)
        return CD_FAIL(
            err, EINVALID,
            "action %u (%.60s): buffer %.60s is in memory %u; only its own device copies there", k,
            a->name, b->name, b->memory);
    const bool good = reach(c->rank, c->n, to ? c->to_stride : c->from_stride,
                            to ? c->to_first : c->from_first, &last);
    bool empty = false;
    for (uint32_t d = 0; d < c->rank; d++) empty = empty || c->n[d] == 0;
    if (!good || (!empty && last >= b->bytes / (int64_t)c->size))
        return CD_FAIL(err, EINVALID, "action %u (%.60s): a copy outside of buffer %.60s", k,
                       a->name, b->name);
    if (to && (b->constant || n->buffer[cd_multi_buffer_root(n, at)].constant))
        return CD_FAIL(err, EINVALID, "action %u (%.60s) writes %.60s, a constant", k, a->name,
                       b->name);
    return CDMPP_OK;
}

static cdmpp_status check_action(const cd_multi_net *n, uint32_t k, cdmpp_err *err) {
    const cd_multi_action *a = &n->action[k];
    if (a->device >= n->n_device)
        return CD_FAIL(err, EINVALID, "action %u (%.60s): there is no device %u", k, a->name,
                       a->device);
    for (uint32_t e = 0; e < a->n_after; e++)
        if (a->after[e] >= k)
            return CD_FAIL(err, EINVALID, "action %u (%.60s): after %u, which is not before it", k,
                           a->name, a->after[e]);
    if (a->build) return check_program(n, k, err);
    if (a->copy.rank > CD_BOX_RANK || !a->copy.size)
        return CD_FAIL(err, EINVALID, "action %u (%.60s): a copy of rank %u, elements of %zu bytes",
                       k, a->name, a->copy.rank, a->copy.size);
    CD_TRY(check_side(n, k, false, err));
    return check_side(n, k, true, err);
}

cdmpp_status cd_multi_check(const cd_multi_net *n, cdmpp_err *err) {
    if (n->n_action > MOST_ACTIONS)
        return CD_FAIL(err, EINVALID, "%u actions; at most %d", n->n_action, MOST_ACTIONS);
    for (uint32_t k = 0; k < n->n_device; k++) CD_TRY(check_device(n, k, err));
    for (uint32_t k = 0; k < n->n_buffer; k++) CD_TRY(check_buffer(n, k, err));
    for (uint32_t k = 0; k < n->n_action; k++) CD_TRY(check_action(n, k, err));
    return CDMPP_OK;
}

/* ---- (7): bytes that two actions touch ---- */

/* A box in bytes: the innermost dimension is a run. */
typedef struct {
    uint32_t root, action, rank;
    bool written;
    int64_t lo, hi; /* all of it is in here */
    int64_t n[CD_BOX_RANK + 1], stride[CD_BOX_RANK + 1];
} touch;

typedef struct {
    const cd_multi_net *n;
    touch *touch;
    size_t n_touch;
    uint64_t *before; /* (n_action, words) bit b of row a: b comes before a */
    size_t words;
} order;

static int by_place(const void *a, const void *b) {
    const touch *x = a, *y = b;
    if (x->root != y->root) return x->root < y->root ? -1 : 1;
    if (x->lo != y->lo) return x->lo < y->lo ? -1 : 1;
    return (x->action > y->action) - (x->action < y->action);
}

static void add(order *o, uint32_t action, uint32_t buffer, touch t) {
    const cd_multi_buffer *b = &o->n->buffer[buffer];
    const int64_t at = b->of == CD_MULTI_OWN ? 0 : b->offset;
    for (uint32_t d = 0; d < t.rank; d++)
        if (!t.n[d]) return;
    /* nobody writes it */
    if (b->constant || o->n->buffer[cd_multi_buffer_root(o->n, buffer)].constant) return;
    t.root = cd_multi_buffer_root(o->n, buffer);
    t.action = action;
    t.lo += at;
    t.hi = t.lo + 1;
    for (uint32_t d = 0; d < t.rank; d++) t.hi += (t.n[d] - 1) * t.stride[d];
    o->touch[o->n_touch++] = t;
}

static void add_copy(order *o, uint32_t k, bool to) {
    const cd_multi_copy *c = &o->n->action[k].copy;
    const int64_t size = (int64_t)c->size, *stride = to ? c->to_stride : c->from_stride;
    touch t = {.rank = c->rank + 1, .written = to, .lo = (to ? c->to_first : c->from_first) * size};
    for (uint32_t d = 0; d < c->rank; d++) {
        t.n[d] = c->n[d];
        t.stride[d] = stride[d] * size;
    }
    t.n[c->rank] = size;
    t.stride[c->rank] = 1;
    /* longer runs */
    while (t.rank > 1 && (t.n[t.rank - 2] == 1 || t.stride[t.rank - 2] == t.n[t.rank - 1])) {
        t.n[t.rank - 2] *= t.n[t.rank - 1];
        t.stride[t.rank - 2] = 1;
        t.rank--;
    }
    add(o, k, to ? c->to : c->from, t);
}

/* Every range of bytes that an action touches, sorted by the buffer that owns them and by place. */
static void list(order *o) {
    for (uint32_t k = 0; k < o->n->n_action; k++) {
        const cd_multi_action *a = &o->n->action[k];
        if (!a->build) {
            add_copy(o, k, false);
            add_copy(o, k, true);
            continue;
        }
        for (uint32_t p = 0; p < a->build->code->n_arg; p++) {
            const cd_codegen_buffer *c = &a->build->code->buffer[p];
            add(o, k, a->buffer[p],
                (touch){.rank = 1,
                        .written = c->written,
                        .n = {c->elements * cd_expr_dtype_bytes(c->dtype)},
                        .stride = {1}});
        }
    }
    qsort(o->touch, o->n_touch, sizeof *o->touch, by_place);
}

/* Is a byte of [lo, hi) in the box from dimension d on, whose first byte is `at`? */
static bool in_range(const touch *t, uint32_t d, int64_t at, int64_t lo, int64_t hi) {
    int64_t span = 1;
    for (uint32_t e = d; e < t->rank; e++) span += (t->n[e] - 1) * t->stride[e];
    if (at >= hi || at + span <= lo) return false;
    if ((at >= lo && at < hi) || d + 1 >= t->rank) return true; /* its first byte; a run */
    const int64_t s = t->stride[d], part = span - (t->n[d] - 1) * s;
    if (!s) return in_range(t, d + 1, at, lo, hi);
    int64_t i = lo - at - part >= 0 ? (lo - at - part) / s + 1 : 0;
    for (; i < t->n[d] && at + i * s < hi; i++)
        if (in_range(t, d + 1, at + i * s, lo, hi)) return true;
    return false;
}

static int64_t runs(const touch *t) {
    int64_t n = 1;
    for (uint32_t d = 0; d + 1 < t->rank && n <= MOST_RUNS; d++) n *= t->n[d];
    return n;
}

/* Exact, but for boxes of too many runs: those meet where their ranges do. */
static bool meet(const touch *a, const touch *b) {
    if (a->lo >= b->hi || b->lo >= a->hi) return false;
    if (runs(a) > runs(b)) {
        const touch *x = a;
        a = b;
        b = x;
    }
    const int64_t n = runs(a);
    if (n > MOST_RUNS) return true;
    for (int64_t k = 0; k < n; k++) {
        int64_t at = a->lo, rest = k;
        for (uint32_t d = a->rank - 1; d-- > 0; rest /= a->n[d])
            at += rest % a->n[d] * a->stride[d];
        if (in_range(b, 0, b->lo, at, at + a->n[a->rank - 1])) return true;
    }
    return false;
}

/* before: the transitive closure of `after` and of each device's own order. Actions only follow
 * smaller numbers, so one sweep is enough. */
static void close_order(order *o) {
    const cd_multi_net *n = o->n;
    for (uint32_t k = 0; k < n->n_action; k++) {
        uint64_t *row = o->before + k * o->words;
        uint32_t last = k; /* the action before on this device */
        while (last-- > 0 && n->action[last].device != n->action[k].device) {
        }
        for (uint32_t e = 0; e <= n->action[k].n_after; e++) {
            const uint32_t b = e < n->action[k].n_after ? n->action[k].after[e] : last;
            if (b == UINT32_MAX) continue;
            for (size_t i = 0; i < o->words; i++) row[i] |= o->before[b * o->words + i];
            row[b / 64] |= (uint64_t)1 << b % 64;
        }
    }
}

static bool ordered(const order *o, uint32_t a, uint32_t b) {
    return (o->before[a * o->words + b / 64] >> b % 64 & 1) ||
           (o->before[b * o->words + a / 64] >> a % 64 & 1);
}

/* Pieces of one program on the same buffers, of other iterations: what one writes no other
 * touches. */
static bool are_apart(const cd_multi_action *a, const cd_multi_action *b) {
    if (!a->end || !b->end || a->build != b->build || (a->begin < b->end && b->begin < a->end))
        return false;
    for (uint32_t p = 0; p < a->build->code->n_arg; p++)
        if (a->buffer[p] != b->buffer[p]) return false;
    return true;
}

/* All pairs of touches that can overlap, found by a sweep over the sorted list. */
static cdmpp_status check_pairs(const order *o, cdmpp_err *err) {
    const cd_multi_net *n = o->n;
    for (size_t i = 0; i < o->n_touch; i++)
        for (size_t j = i + 1; j < o->n_touch && o->touch[j].root == o->touch[i].root &&
                               o->touch[j].lo < o->touch[i].hi;
             j++) {
            const touch *x = &o->touch[i], *y = &o->touch[j];
            if (!x->written && !y->written) continue;
            if (x->action == y->action ? !n->action[x->action].build
                                       : ordered(o, x->action, y->action))
                continue;
            if (!meet(x, y)) continue;
            if (x->action != y->action && are_apart(&n->action[x->action], &n->action[y->action]))
                continue;
            if (x->action == y->action)
                return CD_FAIL(err, EINVALID, "action %u (%.60s) writes what it reads", x->action,
                               n->action[x->action].name);
            return CD_FAIL(err, EINVALID,
                           "actions %u (%.60s) and %u (%.60s) touch the same bytes of %.60s, one "
                           "writing, in no order",
                           x->action, n->action[x->action].name, y->action,
                           n->action[y->action].name, n->buffer[x->root].name);
        }
    return CDMPP_OK;
}

/* Two actions may touch the same bytes, one of them writing, only where one comes before the
 * other. */
cdmpp_status cd_multi_check_order(const cd_multi_net *n, cdmpp_err *err) {
    order o = {.n = n, .words = ((size_t)n->n_action + 63) / 64};
    size_t most = 1;
    for (uint32_t k = 0; k < n->n_action; k++)
        most += n->action[k].build ? n->action[k].build->code->n_arg : 2;
    o.touch = cd_mem_zalloc(most, sizeof *o.touch);
    o.before = cd_mem_zalloc(n->n_action * o.words + 1, sizeof *o.before);
    cdmpp_status st =
        o.touch && o.before ? CDMPP_OK : CD_FAIL(err, ENOMEM, "order of %u actions", n->n_action);
    if (!st) {
        close_order(&o);
        list(&o);
        st = check_pairs(&o, err);
    }
    cd_mem_free(o.touch);
    cd_mem_free(o.before);
    return st;
}
