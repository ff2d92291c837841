/* trace_link -- which operator or range launched what.
 *
 *   launch ─ External id ─> operator
 *   launch ─ correlation ─> call ── External id ──> operator
 *                            └───── same thread, around its start ─> innermost operator or range */
#include <math.h>
#include <stdlib.h>

#include "profiler/trace/trace_internal.h"

typedef struct key {
    int64_t id;
    uint32_t event;
} key;

typedef struct linking {
    cd_trace *t;
    key *op, *call;         /* (n_op), (n_call) sorted by id */
    uint32_t *host, *stack; /* (n_host) by thread, start, the longer one first */
    size_t n_op, n_call, n_host;
} linking;

static int64_t end_of(const cd_trace_event *e) { return e->start_ns + llround(e->time_s * 1e9); }

static int by_start(const void *a, const void *b) {
    const cd_trace_event *x = a, *y = b;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static int by_id(const void *a, const void *b) {
    const key *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

static int by_thread(const void *a, const void *b, void *events) {
    const cd_trace_event *e = events, *x = &e[*(const uint32_t *)a], *y = &e[*(const uint32_t *)b];
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    if (x->time_s != y->time_s) return x->time_s > y->time_s ? -1 : 1;
    return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind) : (x > y) - (x < y);
}

/* The first event with that id; CD_TRACE_NONE. */
static uint32_t find(const key *k, size_t n, int64_t id) {
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (k[mid].id < id) lo = mid + 1;
        else hi = mid;
    }
    return id >= 0 && lo < n && k[lo].id == id ? k[lo].event : CD_TRACE_NONE;
}

/* Host events know the innermost operator or range around them. */
static void nest(linking *l) {
    cd_trace_event *e = l->t->event;
    size_t depth = 0;
    for (size_t i = 0; i < l->n_host; i++) {
        cd_trace_event *x = &e[l->host[i]];
        if (i && e[l->host[i - 1]].thread != x->thread) depth = 0;
        while (depth && end_of(&e[l->stack[depth - 1]]) <= x->start_ns) depth--;
        x->owner = depth ? l->stack[depth - 1] : CD_TRACE_NONE;
        if (x->kind != CD_TRACE_CALL) l->stack[depth++] = l->host[i];
    }
}

static void own(const linking *l, cd_trace_event *e) {
    const uint32_t call = find(l->call, l->n_call, e->link);
    if (call != CD_TRACE_NONE) e->called_ns = l->t->event[call].start_ns;
    e->owner = find(l->op, l->n_op, e->external);
    if (e->owner != CD_TRACE_NONE || call == CD_TRACE_NONE) return;
    const cd_trace_event *c = &l->t->event[call];
    const uint32_t said = find(l->op, l->n_op, c->external);
    e->owner = said != CD_TRACE_NONE ? said : c->owner;
}

static void gather(linking *l) {
    for (size_t i = 0; i < l->t->n; i++) {
        const cd_trace_event *e = &l->t->event[i];
        if (e->kind < CD_TRACE_OP || e->start_ns == CD_TRACE_UNTIMED) continue;
        l->host[l->n_host++] = (uint32_t)i;
        if (e->kind == CD_TRACE_OP && e->external >= 0)
            l->op[l->n_op++] = (key){e->external, (uint32_t)i};
        if (e->kind == CD_TRACE_CALL && e->link >= 0)
            l->call[l->n_call++] = (key){e->link, (uint32_t)i};
    }
    qsort(l->op, l->n_op, sizeof *l->op, by_id);
    qsort(l->call, l->n_call, sizeof *l->call, by_id);
    qsort_r(l->host, l->n_host, sizeof *l->host, by_thread, l->t->event);
}

cdmpp_status cd_trace_link(cd_trace *t, cdmpp_err *err) {
    const size_t n = t->n + 1;
    linking l = {.t = t,
                 .op = cd_mem_zalloc(n, sizeof *l.op),
                 .call = cd_mem_zalloc(n, sizeof *l.call),
                 .host = cd_mem_zalloc(n, sizeof *l.host),
                 .stack = cd_mem_zalloc(n, sizeof *l.stack)};
    const bool good = l.op && l.call && l.host && l.stack && t->n < CD_TRACE_NONE;
    if (good) {
        if (t->n) qsort(t->event, t->n, sizeof *t->event, by_start);
        gather(&l);
        nest(&l);
        for (size_t i = 0; i < t->n; i++)
            if (t->event[i].kind < CD_TRACE_OP) own(&l, &t->event[i]);
    }
    cd_mem_free(l.op);
    cd_mem_free(l.call);
    cd_mem_free(l.host);
    cd_mem_free(l.stack);
    return good ? CDMPP_OK : CD_FAIL(err, ENOMEM, "links of a trace");
}
