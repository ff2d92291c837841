/* Finds an order in which nodes can be read: a depth-first search from each node to the makers of
 * its operands, with a stack of its own, since a file may hold a chain of a million nodes. The
 * standard asks for this order in the file, but exporters do not always follow. */
#include "profiler/network/onnx/onnx_internal.h"

enum { NEW, OPEN, DONE };

typedef struct sorter {
    cd_arena *a;
    CdOnnx__NodeProto *const *node;
    cd_onnx_map maker;    /* name -> node */
    unsigned char *state; /* (n) */
    uint32_t *order, n_order;
    uint32_t *stack, *next; /* (n) nodes that wait for an operand, and which one is next */
    uint32_t *from, *to;    /* (n) of around: what its bodies read and is not looked at yet */
    uint32_t *around, n_around, cap_around;
} sorter;

/* A body may read what is around it: the nodes that make these names come first, too. They are
 * listed once for each node, since a body may be long and read much. */
static cdmpp_status captured(sorter *s, uint32_t self, const CdOnnx__GraphProto *g, cdmpp_err *err);

static cdmpp_status note(sorter *s, uint32_t self, const char *name, cdmpp_err *err) {
    const uint32_t *m = *name ? cd_onnx_map_find(&s->maker, name) : NULL;
    if (!m || *m == self || s->state[*m] != NEW) return CDMPP_OK;
    if (CD_GROW_IN(s->a, s->around, s->n_around, s->cap_around))
        return CD_FAIL(err, ENOMEM, "%u names", s->n_around);
    s->around[s->n_around++] = *m;
    return CDMPP_OK;
}

static cdmpp_status captured_by(sorter *s, uint32_t self, const CdOnnx__NodeProto *n,
                                cdmpp_err *err) {
    for (size_t k = 0; k < n->n_attribute; k++)
        if (n->attribute[k]->g) CD_TRY(captured(s, self, n->attribute[k]->g, err));
    return CDMPP_OK;
}

static cdmpp_status captured(sorter *s, uint32_t self, const CdOnnx__GraphProto *g,
                             cdmpp_err *err) {
    for (size_t i = 0; i < g->n_node; i++) {
        for (size_t k = 0; k < g->node[i]->n_input; k++)
            CD_TRY(note(s, self, cd_onnx_text(g->node[i]->input[k]), err));
        CD_TRY(captured_by(s, self, g->node[i], err));
    }
    for (size_t k = 0; k < g->n_output; k++)
        CD_TRY(note(s, self, cd_onnx_text(g->output[k]->name), err));
    return CDMPP_OK;
}

/* The next operand's node that is to come first; UINT32_MAX: none. */
static cdmpp_status operand(sorter *s, uint32_t i, uint32_t *before, cdmpp_err *err) {
    const CdOnnx__NodeProto *n = s->node[i];
    *before = UINT32_MAX;
    while (s->next[i] < n->n_input) {
        const char *name = cd_onnx_text(n->input[s->next[i]++]);
        const uint32_t *m = *name ? cd_onnx_map_find(&s->maker, name) : NULL;
        if (!m || s->state[*m] == DONE) continue;
        if (s->state[*m] == OPEN)
            return CD_FAIL(err, ESCHEMA, "\"%s\" depends on itself: the graph has a cycle", name);
        *before = *m;
        return CDMPP_OK;
    }
    if (s->next[i] == n->n_input) { /* behind its operands for the first time */
        s->from[i] = s->n_around;
        CD_TRY(captured_by(s, i, n, err));
        s->to[i] = s->n_around;
        s->next[i]++;
    }
    while (s->from[i] < s->to[i]) {
        const uint32_t m = s->around[s->from[i]++];
        if (s->state[m] != NEW) continue;
        *before = m;
        return CDMPP_OK;
    }
    return CDMPP_OK;
}

/* An open node that is met again means a cycle; operand() and captured_by() find the next maker
 * that is not done. */
static cdmpp_status visit(sorter *s, uint32_t i, cdmpp_err *err) {
    uint32_t n = 0, before;
    s->stack[n++] = i;
    s->state[i] = OPEN;
    while (n > 0) {
        i = s->stack[n - 1];
        CD_TRY(operand(s, i, &before, err));
        if (before != UINT32_MAX) {
            s->state[before] = OPEN;
            s->stack[n++] = before;
            continue;
        }
        s->state[i] = DONE;
        s->order[s->n_order++] = i;
        n--;
    }
    return CDMPP_OK;
}

/* First all names that nodes make, then the search in the order of the file: a file that is in
 * order stays as it is. */
cdmpp_status cd_onnx_order(cd_arena *a, CdOnnx__NodeProto *const *node, size_t n,
                           const uint32_t **order, cdmpp_err *err) {
    sorter s = {.a = a,
                .node = node,
                .state = CD_NEWN(a, unsigned char, n + 1),
                .order = CD_NEWN(a, uint32_t, n + 1),
                .stack = CD_NEWN(a, uint32_t, n + 1),
                .next = CD_NEWN(a, uint32_t, n + 1),
                .from = CD_NEWN(a, uint32_t, n + 1),
                .to = CD_NEWN(a, uint32_t, n + 1)};
    bool old;
    if (!s.state || !s.order || !s.stack || !s.next || !s.from || !s.to || n >= UINT32_MAX)
        return CD_FAIL(err, ENOMEM, "%zu nodes", n);
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < node[i]->n_output; k++) {
            const char *name = cd_onnx_text(node[i]->output[k]);
            if (!*name) continue;
            CD_TRY(cd_onnx_map_put(&s.maker, a, name, i, &old, err));
            if (old) return CD_FAIL(err, ESCHEMA, "\"%s\" is defined twice", name);
        }
    for (uint32_t i = 0; i < n; i++)
        if (s.state[i] == NEW) CD_TRY(visit(&s, i, err));
    *order = s.order;
    return CDMPP_OK;
}
