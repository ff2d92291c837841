/* Fusion groups become groups with buffers and tasks; then it is found where each operator of the
 * graph went. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/network/workload/workload_internal.h"

/* ---- buffers ---- */

static uint32_t buffer(cd_workload_builder *b, uint32_t node) {
    const uint32_t base = cd_workload_base_node(b->f, node);
    const cd_fuse_node *n = &b->f->node[base];
    if (b->buffer_of[base] != CD_GRAPH_NONE) return b->buffer_of[base];
    const uint32_t k = b->w->n_buffer++;
    const bool leaf = n->op == CD_FUSE_OP_LEAF || n->op == CD_FUSE_OP_EXTERN;
    b->w->buffer[k] =
        (cd_workload_buffer){.dtype = n->dtype,
                             .shape = n->shape,
                             .group = b->group_of[base],
                             .tensor = leaf ? n->tensor : CD_GRAPH_NONE,
                             .value = n->op == CD_FUSE_OP_CONST ? n->value : (double)NAN,
                             .is_const = n->is_const};
    return b->buffer_of[base] = k;
}

/* ---- groups ---- */

static cdmpp_status no_memory(cd_workload_builder *b) {
    return CD_FAIL(b->err, ENOMEM, "out of memory for a workload");
}

/* Append group k to its list of predecessors. */
static void need(cd_workload_group *g, uint32_t *after, uint32_t k) {
    for (uint32_t i = 0; i < g->n_after; i++)
        if (after[i] == k) return;
    after[g->n_after++] = k;
}

/* Predecessors are the groups that write what this one reads. */
static cdmpp_status add_group(cd_workload_builder *b, uint32_t task, uint32_t node,
                              const uint32_t *read, uint32_t n_read) {
    cd_workload *w = b->w;
    cd_workload_group *g = &w->group[w->n_group];
    uint32_t *reads = CD_NEWN(&w->arena, uint32_t, n_read + 1),
             *after = CD_NEWN(&w->arena, uint32_t, n_read + 1);
    if (!reads || !after) return no_memory(b);
    *g = (cd_workload_group){.task = task,
                             .n_read = n_read,
                             .read = reads,
                             .after = after,
                             .weights = b->f->node[node].is_const};
    for (uint32_t i = 0; i < n_read; i++) {
        reads[i] = buffer(b, read[i]);
        const uint32_t from = w->buffer[reads[i]].group;
        if (from != CD_GRAPH_NONE) need(g, after, from);
    }
    b->group_of[node] = w->n_group;
    g->write = buffer(b, node);
    w->n_group++;
    return CDMPP_OK;
}

static void refuse(cd_workload_builder *b, uint32_t node, const char *why) {
    const cd_fuse_node *n = &b->f->node[node];
    const cd_graph_node *g = n->origin != CD_GRAPH_NONE ? &b->w->graph->node[n->origin] : NULL;
    b->w->unsupported[b->w->n_unsupported++] = (cd_workload_unsupported){
        g ? g->op : cd_fuse_op_name(n->op), g && g->name ? g->name : "", why};
    if (g) b->w->node[n->origin].state = CD_WORKLOAD_NODE_UNSUPPORTED;
}

/* The definition of a group that ends in `last`; a refused one stands as a group without a task. */
static cdmpp_status define(cd_workload_builder *b, uint32_t root, uint32_t last) {
    cd_te_compute *c = b->c;
    cdmpp_err own = {0};
    const char *why = NULL;
    uint32_t task = CD_GRAPH_NONE;
    cdmpp_status st = cd_te_compute_group(c, root, last, &own);
    if (st == CDMPP_ENOMEM) return no_memory(b);
    if (st) why = cd_str_dup(&b->w->arena, (cd_str){own.msg, strlen(own.msg)});
    if (st && !why) return no_memory(b);
    if (!why) CD_TRY(cd_workload_make_task(b, &task, &why));
    if (why) refuse(b, last, why);
    uint32_t *read = CD_NEWN(&b->scratch, uint32_t, c->n + b->f->node[last].n_in + 1), n = 0;
    if (!read) return no_memory(b);
    for (uint32_t i = 0; !why && i + 1 < c->n_arg; i++) read[n++] = c->stage[c->arg[i]].node;
    for (uint32_t k = 0; why && k < b->f->node[last].n_in; k++) read[n++] = b->f->node[last].in[k];
    return add_group(b, task, last, read, n);
}

/* A group ends before the views at its end: they are names for its result. */
static uint32_t last_of(const cd_fuse_graph *f, uint32_t root) {
    uint32_t last = root;
    while (cd_fuse_is_view(&f->node[last]) && f->group[f->node[last].in[0]] == root)
        last = f->node[last].in[0];
    return last;
}

static cdmpp_status external(cd_workload_builder *b, uint32_t i) {
    return add_group(b, CD_GRAPH_NONE, i, b->f->node[i].in, b->f->node[i].n_in);
}

static cdmpp_status one(cd_workload_builder *b, uint32_t i) {
    const cd_fuse_node *n = &b->f->node[i];
    if (n->is_const) {
        const bool plain = n->op == CD_FUSE_OP_LEAF || n->op == CD_FUSE_OP_CONST ||
                           n->op == CD_FUSE_OP_RESHAPE || n->op == CD_FUSE_OP_TUPLE;
        return b->o->weights && !plain ? define(b, CD_GRAPH_NONE, i) : CDMPP_OK;
    }
    if (n->op == CD_FUSE_OP_EXTERN) return external(b, i);
    if (b->f->group[i] != i) return CDMPP_OK;
    const uint32_t last = last_of(b->f, i);
    if (cd_fuse_is_view(&b->f->node[last]) || b->f->node[last].op == CD_FUSE_OP_TUPLE ||
        !cd_graph_shape_elements(&n->shape))
        return CDMPP_OK;
    return define(b, i, last);
}

cdmpp_status cd_workload_make_groups(cd_workload_builder *b) {
    for (uint32_t i = 0; i < b->f->n_bad; i++) {
        const cd_graph_node *g = &b->w->graph->node[b->f->bad[i].node];
        /* the fusion graph's own text ends with it */
        const char *why =
            cd_str_dup(&b->w->arena, (cd_str){b->f->bad[i].why, strlen(b->f->bad[i].why)});
        if (!why) return no_memory(b);
        b->w->unsupported[b->w->n_unsupported++] =
            (cd_workload_unsupported){g->op, g->name ? g->name : "", why};
        b->w->node[b->f->bad[i].node].state = CD_WORKLOAD_NODE_UNSUPPORTED;
    }
    for (uint32_t i = 1; i < b->f->n; i++) CD_TRY(one(b, i));
    for (uint32_t k = 0; k < b->f->n_out; k++) b->w->output[k] = buffer(b, b->f->out[k]);
    return CDMPP_OK;
}

/* ---- the graph's operators ---- */

/* Group that a node's operator runs in; CD_GRAPH_NONE: a view, weights. */
static uint32_t group_at(const cd_workload_builder *b, uint32_t i) {
    const cd_fuse_graph *f = b->f;
    const uint32_t root = f->group[i];
    if (root == CD_GRAPH_NONE || f->node[i].op == CD_FUSE_OP_EXTERN) return CD_GRAPH_NONE;
    return b->group_of[last_of(f, root)];
}

/* The last group that holds a node which the operator made. An operator without one (its work went
 * into a neighbour) gets its reader's, in state_of. */
static void find_homes(cd_workload_builder *b, uint32_t *home) {
    const cd_graph *g = b->w->graph;
    for (uint32_t i = 0; i < g->n_node; i++) home[i] = CD_GRAPH_NONE;
    for (uint32_t i = 1; i < b->f->n; i++) {
        const uint32_t o = b->f->node[i].origin, k = group_at(b, i);
        if (o != CD_GRAPH_NONE && k != CD_GRAPH_NONE && b->w->group[k].task != CD_GRAPH_NONE &&
            !cd_fuse_is_view(&b->f->node[i]))
            home[o] = k;
    }
}

typedef struct readers {
    uint32_t *first; /* (tensors) a node that reads it; CD_GRAPH_NONE */
} readers;

/* All operands are constant, so the operator runs before the network does. */
static bool only_weights(const cd_graph *g, const cd_graph_node *n, const bool *is_const) {
    if (n->folded || n->opaque) return n->folded;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != CD_GRAPH_NONE && !is_const[n->in[k]]) return false;
    return g->n_node > 0 && (n->n_in > 0 || n->folded);
}

/* Called from the last node to the first, so that the home of a reader is known. */
static void state_of(cd_workload_builder *b, uint32_t i, const readers *r, uint32_t *home,
                     const bool *is_const) {
    const cd_graph *g = b->w->graph;
    const cd_graph_node *n = &g->node[i];
    cd_workload_node *s = &b->w->node[i];
    s->group = CD_GRAPH_NONE;
    if (s->state == CD_WORKLOAD_NODE_UNSUPPORTED) return;
    if (only_weights(g, n, is_const)) {
        s->state = CD_WORKLOAD_NODE_FOLDED;
        return;
    }
    uint32_t by = CD_GRAPH_NONE;
    for (uint32_t k = 0; k < n->n_out && by == CD_GRAPH_NONE; k++) by = r->first[n->out[k]];
    if (home[i] == CD_GRAPH_NONE && !n->view && by != CD_GRAPH_NONE) home[i] = home[by];
    if (home[i] != CD_GRAPH_NONE) *s = (cd_workload_node){CD_WORKLOAD_NODE_TASK, home[i]};
    else if (by == CD_GRAPH_NONE && !n->view) s->state = CD_WORKLOAD_NODE_UNUSED;
    else s->state = CD_WORKLOAD_NODE_VIEW;
}

static void mark_weights(const cd_graph *g, bool *is_const) {
    for (uint32_t t = 0; t < g->n_tensor; t++)
        is_const[t] = cd_graph_tensor_is_static(&g->tensor[t]);
    for (uint32_t i = 0; i < g->n_node; i++)
        if (only_weights(g, &g->node[i], is_const))
            for (uint32_t k = 0; k < g->node[i].n_out; k++) is_const[g->node[i].out[k]] = true;
}

/* ---- a group's operators, a task's weight ---- */

typedef struct part {
    uint32_t group, node;
} part;

static int by_group(const void *x, const void *y) {
    const part *a = x, *b = y;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* Operators that leave work in a group, and those whose work went into it. A recurrent layer is in
 * many. */
static uint32_t collect(const cd_workload_builder *b, part *p) {
    uint32_t n = 0, kept = 0;
    for (uint32_t i = 1; i < b->f->n; i++) {
        const cd_fuse_node *f = &b->f->node[i];
        const uint32_t k = group_at(b, i);
        if (k != CD_GRAPH_NONE && f->origin != CD_GRAPH_NONE && !cd_fuse_is_view(f))
            p[n++] = (part){k, f->origin};
    }
    for (uint32_t i = 0; i < b->w->n_node; i++)
        if (b->w->node[i].state == CD_WORKLOAD_NODE_TASK) p[n++] = (part){b->w->node[i].group, i};
    if (n) qsort(p, n, sizeof *p, by_group);
    for (uint32_t i = 0; i < n; i++)
        if (!kept || by_group(&p[kept - 1], &p[i])) p[kept++] = p[i];
    return kept;
}

/* The list of all groups' nodes is one array, sorted by group; each group points into it. */
static cdmpp_status list_nodes(cd_workload_builder *b) {
    cd_workload *w = b->w;
    part *p = CD_NEWN(&b->scratch, part, b->f->n + w->n_node + 1);
    if (!p) return no_memory(b);
    const uint32_t n = collect(b, p);
    uint32_t *all = CD_NEWN(&w->arena, uint32_t, n + 1);
    if (!all) return no_memory(b);
    for (uint32_t i = 0; i < n; i++) all[i] = p[i].node;
    for (uint32_t i = 0; i < n; i++) {
        cd_workload_group *g = &w->group[p[i].group];
        if (!g->n_node++) g->node = all + i;
    }
    return CDMPP_OK;
}

/* What a task is called that no operator of the graph asks for: a change of layout. */
static cdmpp_status name_layout(cd_workload_task *t) {
    static const char *const layout[] = {"LayoutTransform"};
    t->op = layout;
    t->n_op = 1;
    return CDMPP_OK;
}

/* The operators of a task are those of its first group. */
static cdmpp_status weigh(cd_workload_builder *b, cd_workload_group *g) {
    if (g->task == CD_GRAPH_NONE || g->weights) return CDMPP_OK;
    cd_workload_task *t = &b->w->task[g->task];
    t->weight++;
    if (t->n_op) return CDMPP_OK;
    if (!g->n_node) return name_layout(t);
    const char **op = CD_NEWN(&b->w->arena, const char *, g->n_node);
    if (!op) return no_memory(b);
    for (uint32_t i = 0; i < g->n_node; i++) op[i] = b->w->graph->node[g->node[i]].op;
    t->op = op;
    t->n_op = g->n_node;
    return CDMPP_OK;
}

cdmpp_status cd_workload_make_nodes(cd_workload_builder *b) {
    const cd_graph *g = b->w->graph;
    uint32_t *home = CD_NEWN(&b->scratch, uint32_t, g->n_node + 1);
    readers r = {CD_NEWN(&b->scratch, uint32_t, g->n_tensor + 1)};
    bool *is_const = CD_NEWN(&b->scratch, bool, g->n_tensor + 1);
    if (!home || !r.first || !is_const) return no_memory(b);
    b->w->n_node = g->n_node;
    mark_weights(g, is_const);
    find_homes(b, home);
    for (uint32_t t = 0; t < g->n_tensor; t++) r.first[t] = CD_GRAPH_NONE;
    for (uint32_t i = g->n_node; i-- > 0;) { /* readers come before what they read */
        state_of(b, i, &r, home, is_const);
        for (uint32_t k = 0; k < g->node[i].n_in; k++)
            if (g->node[i].in[k] != CD_GRAPH_NONE) r.first[g->node[i].in[k]] = i;
    }
    CD_TRY(list_nodes(b));
    for (uint32_t k = 0; k < b->w->n_group; k++) CD_TRY(weigh(b, &b->w->group[k]));
    return CDMPP_OK;
}
