/* Builds the workload: fuses the graph, asks for a definition of each group, and loads the distinct
 * ones as tasks into a registry. The tasks pass through the same text reader as task files, so that
 * both mean the same. */
#include "profiler/network/workload/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "features/program/program.h"
#include "profiler/network/workload/workload_internal.h"

/* Fusion groups become groups with buffers and tasks; then it is found where each operator of the
 * graph went. */

/* ---- buffers ---- */

static uint32_t workload_base_node(const cd_fuse_graph *f, uint32_t node);

static uint32_t buffer(cd_workload_builder *b, uint32_t node) {
    const uint32_t base = workload_base_node(b->f, node);
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

/* Groups for all nodes; the tasks' texts go to b->def. */
static cdmpp_status workload_make_groups(cd_workload_builder *b) {
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

/* States of the graph's nodes, the groups' nodes and operators, weights. */
static cdmpp_status workload_make_nodes(cd_workload_builder *b) {
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

bool cd_workload_layout_parse(const char *name, cd_workload_layout *out) {
    static const char *const names[] = {"auto", "nchw", "nhwc"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(names[i], name)) {
            *out = (cd_workload_layout)i;
            return true;
        }
    return false;
}

static bool channels_last(const cd_workload_options *o) {
    const char *t = o->target ? o->target : "llvm";
    if (o->layout != CD_WORKLOAD_LAYOUT_AUTO) return o->layout == CD_WORKLOAD_LAYOUT_NHWC;
    return !cd_target_is_gpu((cd_str){t, strlen(t)});
}

void cd_workload_free(cd_workload *w) {
    if (!w) return;
    cd_task_registry_free(w->tasks);
    cd_fusion_rules_free(&w->open);
    cd_arena_free(&w->arena);
    cd_mem_free(w);
}

/* The node that a node is a view of, after all views; itself if it is none. */
static uint32_t workload_base_node(const cd_fuse_graph *f, uint32_t node) {
    while (cd_fuse_is_view(&f->node[node])) node = f->node[node].in[0];
    return node;
}

/* ---- the registry ---- */

static void put_hardware(cd_buf *out, const cd_hardware *h) {
    static const char *const name[] = {"num_cores",
                                       "vector_unit_bytes",
                                       "cache_line_bytes",
                                       "max_shared_memory_per_block",
                                       "max_local_memory_per_block",
                                       "max_threads_per_block",
                                       "max_vthread_extent",
                                       "warp_size"};
    const int64_t v[] = {h->num_cores,
                         h->vector_unit_bytes,
                         h->cache_line_bytes,
                         h->max_shared_memory_per_block,
                         h->max_local_memory_per_block,
                         h->max_threads_per_block,
                         h->max_vthread_extent,
                         h->warp_size};
    cd_buf_puts(out, "\"hardware\": {");
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        cd_buf_putf(out, "%s\"%s\": %lld", i ? ", " : "", name[i], (long long)v[i]);
    cd_buf_puts(out, "}, ");
}

static void put_tasks(cd_buf *out, const cd_workload_builder *b) {
    const char *target = b->o->target ? b->o->target : "llvm";
    for (uint32_t i = 0; i < b->w->n_task; i++) {
        cd_buf_puts(out, i ? ",\n{\"workload_key\": " : "\n{\"workload_key\": ");
        cd_buf_put_json_str(out, b->def[i].key, strlen(b->def[i].key));
        cd_buf_puts(out, ", \"target\": ");
        cd_buf_put_json_str(out, target, strlen(target));
        cd_buf_puts(out, ", ");
        if (b->o->hardware) put_hardware(out, b->o->hardware);
        cd_buf_puts(out, b->def[i].body);
        cd_buf_puts(out, "}");
    }
}

/* The registry's network: its tasks with their weights. Tasks of weight 0 (of weights) are left
 * out. */
static void put_network(cd_buf *out, const cd_workload_builder *b) {
    const char *name = b->w->graph->name && *b->w->graph->name ? b->w->graph->name : "network";
    bool any = false;
    cd_buf_puts(out, "], \"networks\": {");
    cd_buf_put_json_str(out, name, strlen(name));
    cd_buf_puts(out, ": [");
    for (uint32_t i = 0; i < b->w->n_task; i++) {
        if (!b->w->task[i].weight) continue;
        cd_buf_puts(out, any ? ", {\"workload_key\": " : "{\"workload_key\": ");
        cd_buf_put_json_str(out, b->def[i].key, strlen(b->def[i].key));
        cd_buf_putf(out, ", \"weight\": %lld}", (long long)b->w->task[i].weight);
        any = true;
    }
    cd_buf_puts(out, "]}}");
}

/* Writes all tasks as one task file in memory, reads it, and finds each task's number by its
 * key. */
static cdmpp_status load(cd_workload_builder *b) {
    cd_buf text = {0};
    cdmpp_status st = CDMPP_OK;
    CD_TRY(cd_task_registry_new(&b->w->tasks, b->err));
    if (!b->w->n_task) return CDMPP_OK;
    cd_buf_puts(&text, "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [");
    put_tasks(&text, b);
    put_network(&text, b);
    if (text.oom) st = CD_FAIL(b->err, ENOMEM, "out of memory for tasks");
    if (!st) st = cd_task_registry_load_text(b->w->tasks, "network", text.p, text.n, b->err);
    cd_buf_free(&text);
    for (uint32_t i = 0; !st && i < b->w->n_task; i++) {
        const cd_task *t =
            cd_task_registry_find(b->w->tasks, (cd_str){b->def[i].key, strlen(b->def[i].key)});
        if (!t) return CD_FAIL(b->err, ESCHEMA, "a task that is lost");
        b->w->task[i].task = (uint32_t)cd_task_registry_index(b->w->tasks, t);
    }
    return st;
}

/* ---- the way there ---- */

/* Arrays are as long as the number of fusion nodes: no group, task or buffer is without a node. The
 * hash table of definitions is at most half full. */
static cdmpp_status set_up(cd_workload_builder *b) {
    const uint32_t n = b->f->n;
    cd_arena *a = &b->w->arena;
    for (b->n_slot = 64; b->n_slot < 2 * n; b->n_slot *= 2) {
    }
    b->group_of = CD_NEWN(&b->scratch, uint32_t, n);
    b->buffer_of = CD_NEWN(&b->scratch, uint32_t, n);
    b->def = CD_NEWN(&b->scratch, cd_workload_definition, n);
    b->slot = CD_NEWN(&b->scratch, uint32_t, b->n_slot);
    b->w->task = CD_NEWN(a, cd_workload_task, n);
    b->w->group = CD_NEWN(a, cd_workload_group, n);
    b->w->buffer = CD_NEWN(a, cd_workload_buffer, n);
    b->w->node = CD_NEWN(a, cd_workload_node, b->w->graph->n_node + 1);
    b->w->unsupported = CD_NEWN(a, cd_workload_unsupported,
                                b->w->graph->n_node + b->f->n_bad + n + b->o->n_missing);
    b->w->output = CD_NEWN(a, uint32_t, b->f->n_out + 1);
    if (!b->group_of || !b->buffer_of || !b->def || !b->slot || !b->w->task || !b->w->group ||
        !b->w->buffer || !b->w->node || !b->w->unsupported || !b->w->output)
        return CD_FAIL(b->err, ENOMEM, "out of memory for a workload");
    for (uint32_t i = 0; i < n; i++) b->group_of[i] = b->buffer_of[i] = CD_GRAPH_NONE;
    CD_TRY(cd_task_registry_new(&b->one, b->err));
    return cd_te_compute_new(b->f, &b->c, b->err);
}

/* The reader's reason is more precise than ours: it replaces it. */
static void list_missing(cd_workload *w, const cd_workload_options *o) {
    for (uint32_t i = 0; i < o->n_missing; i++) {
        uint32_t k = 0;
        while (k < w->n_unsupported && strcmp(w->unsupported[k].node, o->missing[i].node)) k++;
        w->unsupported[k] = o->missing[i];
        if (k == w->n_unsupported) w->n_unsupported++;
    }
}

/* Groups first: states of nodes depend on them. */
static cdmpp_status take_apart(cd_workload_builder *b) {
    CD_TRY(set_up(b));
    CD_TRY(workload_make_groups(b));
    CD_TRY(workload_make_nodes(b));
    list_missing(b->w, b->o);
    return load(b);
}

/* The fusion graphs on the way; they are needed only here. */
typedef struct graphs {
    cd_fuse_graph *first, *exact, *f;
} graphs;

/* Of networks without quantisation nothing changes, so that nothing is copied. */
static bool is_quantised(const cd_fuse_graph *f, const cd_workload_options *o) {
    if (o->quantize && o->quantize->mode != CD_QUANTIZE_FILE) return true;
    for (uint32_t i = 1; i < f->n; i++)
        if (f->node[i].op == CD_FUSE_OP_DEQUANTIZE) return true;
    return false;
}

/* Import, 8 bits, layout, groups: the nodes that remain. */
static cdmpp_status fused(const cd_graph *g, const cd_workload_options *o, graphs *s,
                          cdmpp_err *err) {
    CD_TRY(cd_fuse_new(g, &s->first, err));
    CD_TRY(cd_fuse_import(s->first, err));
    if (is_quantised(s->first, o)) CD_TRY(cd_fuse_quantize(s->first, o->quantize, &s->exact, err));
    CD_TRY(cd_fuse_layout(s->exact ? s->exact : s->first, channels_last(o), &s->f, err));
    s->f->bad = s->first->bad;
    s->f->n_bad = s->first->n_bad;
    return cd_fuse_groups(s->f, o->max_depth ? o->max_depth : 256, o->rules, err);
}

static cdmpp_status keep_layers(cd_workload *w, const cd_fuse_graph *f, cdmpp_err *err) {
    if (!f) return CDMPP_OK;
    cd_quantize_layer *layer = CD_NEWN(&w->arena, cd_quantize_layer, f->n_layer + 1);
    if (!layer) return CD_FAIL(err, ENOMEM, "out of memory for a workload");
    if (f->n_layer) memcpy(layer, f->layer, f->n_layer * sizeof *layer);
    w->layer = layer;
    w->n_layer = f->n_layer;
    w->n_observed = f->n_observed;
    return CDMPP_OK;
}

cdmpp_status cd_workload_build(const cd_graph *g, const cd_workload_options *o, cd_workload **out,
                               cdmpp_err *err) {
    static const cd_workload_options none = {0};
    graphs s = {0};
    cd_workload *w = cd_mem_zalloc(1, sizeof *w);
    *out = NULL;
    if (!w) return CD_FAIL(err, ENOMEM, "out of memory for a workload");
    w->graph = g;
    if (!o) o = &none;
    cdmpp_status st = fused(g, o, &s, err);
    cd_workload_builder b = {.w = w, .o = o, .f = s.f, .err = err};
    if (!st) st = keep_layers(w, s.exact, err);
    if (!st) st = take_apart(&b);
    if (!st) {
        w->open = s.f->open;
        s.f->open = (cd_fusion_rules){0};
    }
    cd_te_compute_free(b.c);
    cd_task_registry_free(b.one);
    cd_arena_free(&b.scratch);
    cd_fuse_free(s.f);
    cd_fuse_free(s.exact);
    cd_fuse_free(s.first);
    if (st) cd_workload_free(w);
    else *out = w;
    return st;
}

double cd_workload_flop(const cd_workload *w) {
    double sum = 0;
    for (uint32_t i = 0; i < w->n_task; i++) sum += w->task[i].flop * (double)w->task[i].weight;
    return sum;
}

/* A workload as JSON and as text. */

/* EOP's categories, and types of tensors. */
static void put_constructs(cd_json_writer *w, const cd_te_dag *d) {
    cd_dtype type[CD_TE_TYPES];
    const unsigned found = cd_te_constructs_of(d), n = cd_te_types_of(d, type);
    char name[16];
    cd_json_write_key(w, "constructs"), cd_json_write_open(w, '[');
    for (unsigned bit = 1; cd_te_construct_name(bit); bit *= 2)
        if (found & bit) cd_json_write_str(w, cd_te_construct_name(bit));
    cd_json_write_close(w, ']');
    cd_json_write_key(w, "types"), cd_json_write_open(w, '[');
    for (unsigned k = 0; k < n; k++)
        cd_json_write_str(w, cd_expr_dtype_format(type[k], name, sizeof name));
    cd_json_write_close(w, ']');
}

static void put_task(cd_json_writer w, const cd_workload *g, const cd_workload_task *t) {
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "workload_key",
                             cd_task_registry_at(g->tasks, t->task)->workload_key);
    cd_json_write_member_int(&w, "weight", t->weight);
    cd_json_write_member_real(&w, "flop", t->flop);
    cd_json_write_key(&w, "operators"), cd_json_write_open(&w, '[');
    for (uint32_t i = 0; i < t->n_op; i++) cd_json_write_str(&w, t->op[i]);
    cd_json_write_close(&w, ']');
    put_constructs(&w, cd_task_registry_at(g->tasks, t->task)->dag);
    cd_json_write_close(&w, '}');
}

static void put_unsupported(cd_json_writer w, const cd_workload_unsupported *u) {
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "operator", u->op);
    cd_json_write_member_str(&w, "node", u->node);
    cd_json_write_member_str(&w, "reason", u->reason);
    cd_json_write_close(&w, '}');
}

/* A task a line, an unsupported operator a line. */
cdmpp_status cd_workload_json(cd_buf *out, const cd_workload *w, cdmpp_err *err) {
    const cd_json_writer line = {.out = out, .colon = ": ", .sep = ", "};
    cd_json_writer head = line;
    bool any = false;
    cd_json_write_open(&head, '{');
    cd_json_write_member_str(&head, "network", w->graph->name ? w->graph->name : "");
    cd_json_write_member_real(&head, "flop", cd_workload_flop(w));
    cd_buf_puts(out, ", \"tasks\": [");
    for (uint32_t i = 0; i < w->n_task; i++) {
        if (!w->task[i].weight) continue;
        cd_buf_puts(out, any ? ",\n  " : "\n  ");
        put_task(line, w, &w->task[i]);
        any = true;
    }
    cd_buf_puts(out, "], \"unsupported\": [");
    for (uint32_t i = 0; i < w->n_unsupported; i++) {
        cd_buf_puts(out, i ? ",\n  " : "\n  ");
        put_unsupported(line, &w->unsupported[i]);
    }
    cd_buf_puts(out, "]}\n");
    return out->oom ? CD_FAIL(err, ENOMEM, "out of memory for text") : CDMPP_OK;
}

static void put_operators(cd_buf *out, const cd_workload_task *t) {
    for (uint32_t i = 0; i < t->n_op; i++) {
        uint32_t same = 1;
        if (i == 8) {
            cd_buf_putf(out, " + %u more", t->n_op - i);
            return;
        }
        while (i + same < t->n_op && !strcmp(t->op[i], t->op[i + same])) same++;
        cd_buf_putf(out, "%s%s", i ? " " : "", t->op[i]);
        if (same > 1) cd_buf_putf(out, "*%u", same);
        i += same - 1;
    }
}

static void put_constructs_text(cd_buf *out, const cd_te_dag *d) {
    const unsigned found = cd_te_constructs_of(d);
    for (unsigned bit = 1; cd_te_construct_name(bit); bit *= 2)
        if (found & bit)
            cd_buf_putf(out, "%s%s", found & (bit - 1) ? ", " : "  (", cd_te_construct_name(bit));
    cd_buf_puts(out, ")");
}

cdmpp_status cd_workload_text(cd_buf *out, const cd_workload *w, cdmpp_err *err) {
    cd_buf_putf(out, "%6s %14s  %s\n", "weight", "flop",
                "operators (what they are made of), workload key");
    for (uint32_t i = 0; i < w->n_task; i++) {
        const cd_workload_task *t = &w->task[i];
        if (!t->weight) continue;
        cd_buf_putf(out, "%6lld %14.6g  ", (long long)t->weight, t->flop);
        put_operators(out, t);
        put_constructs_text(out, cd_task_registry_at(w->tasks, t->task)->dag);
        cd_buf_putf(out, "\n%22s  %s\n", "", cd_task_registry_at(w->tasks, t->task)->workload_key);
    }
    for (uint32_t i = 0; i < w->n_unsupported; i++)
        cd_buf_putf(out, "unsupported: %s %s: %s\n", w->unsupported[i].op, w->unsupported[i].node,
                    w->unsupported[i].reason);
    return out->oom ? CD_FAIL(err, ENOMEM, "out of memory for text") : CDMPP_OK;
}
