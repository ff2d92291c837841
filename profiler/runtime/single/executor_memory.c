/* Offsets for tensors, greedy by size: the largest first, each in the lowest gap that those which
 * live with it leave. */
#include "profiler/runtime/single/single_internal.h"

#include <stdlib.h>

int64_t cd_executor_memory_room(int64_t bytes) {
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
            __builtin_add_overflow(sum, cd_executor_memory_room(t[k].bytes), &sum))
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
                taken[m++] = (span){y->offset, y->offset + cd_executor_memory_room(y->bytes)};
        }
        qsort(taken, m, sizeof *taken, by_begin);
        x->offset = gap(taken, m, cd_executor_memory_room(x->bytes));
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
        e[2 * k] = (event){t[k].first, cd_executor_memory_room(t[k].bytes)};
        e[2 * k + 1] = (event){t[k].last == UINT32_MAX ? UINT32_MAX : t[k].last + 1,
                               t[k].last == UINT32_MAX ? 0 : -cd_executor_memory_room(t[k].bytes)};
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
            if (t[k].offset + cd_executor_memory_room(t[k].bytes) > *total)
                *total = t[k].offset + cd_executor_memory_room(t[k].bytes);
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
