/* The order of a task's stages: TVM's, reproduced (docs/internals/ansor.md, Tasks).
 *
 * Two sorts one after the other: a topological one that only decides the order
 * of the outputs, then a depth-first post-order from those outputs. All walks
 * use explicit stacks: a chain of 10^5 operators is slow input, not a crash. */
#include "features/te/te.h"

typedef struct {
    const cd_te_reads *r;
    uint32_t *priority;      /* (n_op) 0: not reached, else counter + 1 */
    uint32_t *degree;        /* (n_op) */
    uint32_t *out_ptr, *out; /* successors, one per tensor read */
    uint32_t *heap, n_heap;  /* max-heap on priority */
    uint32_t *topo, n_topo, n_reached;
} sorter;

static cdmpp_status no_memory(cdmpp_err *err) { return CD_FAIL(err, ENOMEM, "operator order"); }

static cdmpp_status sorter_init(sorter *s, cd_arena *a, const cd_te_reads *r, cdmpp_err *err) {
    const uint32_t n = r->n_op;
    *s = (sorter){.r = r};
    s->priority = CD_NEWN(a, uint32_t, n + 1);
    s->degree = CD_NEWN(a, uint32_t, n + 1);
    s->out_ptr = CD_NEWN(a, uint32_t, n + 2);
    s->out = CD_NEWN(a, uint32_t, r->in_ptr[n] + 1);
    s->heap = CD_NEWN(a, uint32_t, n + 1);
    s->topo = CD_NEWN(a, uint32_t, n + 1);
    if (!s->priority || !s->degree || !s->out_ptr || !s->out || !s->heap || !s->topo)
        return no_memory(err);
    return CDMPP_OK;
}

/* Priorities in the order of TVM's stack walk. */
static cdmpp_status visit(sorter *s, cd_arena *a, cdmpp_err *err) {
    const cd_te_reads *r = s->r;
    uint32_t *stack = CD_NEWN(a, uint32_t, (size_t)r->n_arg + r->in_ptr[r->n_op] + 1), top = 0;
    if (!stack) return no_memory(err);
    for (uint32_t i = 0; i < r->n_arg; i++) stack[top++] = r->arg[i];
    while (top) {
        const uint32_t op = stack[--top];
        if (s->priority[op]) continue;
        s->priority[op] = ++s->n_reached;
        s->degree[op] = r->in_ptr[op + 1] - r->in_ptr[op];
        for (uint32_t k = r->in_ptr[op]; k < r->in_ptr[op + 1]; k++) stack[top++] = r->in[k];
    }
    return CDMPP_OK;
}

static void link_readers(sorter *s) {
    const cd_te_reads *r = s->r;
    for (uint32_t op = 0; op < r->n_op; op++)
        for (uint32_t k = r->in_ptr[op]; s->priority[op] && k < r->in_ptr[op + 1]; k++)
            s->out_ptr[r->in[k] + 2]++;
    for (uint32_t i = 1; i <= r->n_op; i++) s->out_ptr[i + 1] += s->out_ptr[i];
    for (uint32_t op = 0; op < r->n_op; op++)
        for (uint32_t k = r->in_ptr[op]; s->priority[op] && k < r->in_ptr[op + 1]; k++)
            s->out[s->out_ptr[r->in[k] + 1]++] = op;
}

static void heap_push(sorter *s, uint32_t op) {
    uint32_t i = s->n_heap++;
    for (; i && s->priority[s->heap[(i - 1) / 2]] < s->priority[op]; i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = op;
}

static uint32_t heap_pop(sorter *s) {
    const uint32_t top = s->heap[0], last = s->heap[--s->n_heap];
    uint32_t i = 0;
    for (;;) {
        uint32_t c = 2 * i + 1;
        if (c >= s->n_heap) break;
        if (c + 1 < s->n_heap && s->priority[s->heap[c + 1]] > s->priority[s->heap[c]]) c++;
        if (s->priority[s->heap[c]] <= s->priority[last]) break;
        s->heap[i] = s->heap[c];
        i = c;
    }
    s->heap[i] = last;
    return top;
}

static cdmpp_status kahn(sorter *s, cdmpp_err *err) {
    for (uint32_t op = 0; op < s->r->n_op; op++)
        if (s->priority[op] && s->degree[op] == 0) heap_push(s, op);
    while (s->n_heap) {
        const uint32_t op = heap_pop(s);
        s->topo[s->n_topo++] = op;
        for (uint32_t k = s->out_ptr[op]; k < s->out_ptr[op + 1]; k++)
            if (--s->degree[s->out[k]] == 0) heap_push(s, s->out[k]);
    }
    if (s->n_topo != s->n_reached)
        return CD_FAIL(err, ESCHEMA, "operators read each other in a cycle (%u of %u)",
                       s->n_reached - s->n_topo, s->n_reached);
    return CDMPP_OK;
}

/* Post-order from `root`; `done` marks what is in `order` already. */
static void post_order(const cd_te_reads *r, uint32_t root, uint32_t *stack, uint32_t *next,
                       uint8_t *done, uint32_t *order, uint32_t *n) {
    uint32_t top = 0;
    if (done[root]) return;
    done[root] = 1;
    stack[top] = root;
    next[top++] = r->in_ptr[root];
    while (top) {
        const uint32_t op = stack[top - 1];
        if (next[top - 1] == r->in_ptr[op + 1]) {
            order[(*n)++] = op;
            top--;
            continue;
        }
        const uint32_t child = r->in[next[top - 1]++];
        if (done[child]) continue;
        done[child] = 1;
        stack[top] = child;
        next[top++] = r->in_ptr[child];
    }
}

/* Operators that nobody reads are the outputs; each is followed by what it reads, inputs first. */
cdmpp_status cd_te_stage_order(cd_arena *scratch, const cd_te_reads *r, uint32_t *order,
                               uint32_t *n_order, cdmpp_err *err) {
    sorter s;
    CD_TRY(sorter_init(&s, scratch, r, err));
    CD_TRY(visit(&s, scratch, err));
    link_readers(&s);
    CD_TRY(kahn(&s, err));
    uint32_t *stack = CD_NEWN(scratch, uint32_t, r->n_op + 1),
             *next = CD_NEWN(scratch, uint32_t, r->n_op + 1);
    uint8_t *done = CD_NEWN(scratch, uint8_t, r->n_op + 1);
    if (!stack || !next || !done) return no_memory(err);
    *n_order = 0;
    for (uint32_t i = 0; i < s.n_topo; i++) {
        const uint32_t op = s.topo[i];
        if (s.out_ptr[op] == s.out_ptr[op + 1])
            post_order(r, op, stack, next, done, order, n_order);
    }
    return CDMPP_OK;
}
