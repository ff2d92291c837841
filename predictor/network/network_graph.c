/* Nodes and edges collected, checked, named and put in order. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "predictor/network/network.h"
#include "predictor/network/network_internal.h"

/* Networks as text of Graphviz's language DOT, to draw them (dot -Tsvg). It is written and never
 * read. */

static void put_text(cd_buf *b, const char *s) { cd_escape_dot(b, cd_str_of(s)); }

static void put_node(cd_buf *b, size_t graph, uint32_t k, const cd_network_node *n) {
    cd_buf_putf(b, "  n%zu_%u [label=\"", graph, k);
    put_text(b, n->name);
    if (n->op && *n->op && strcmp(n->op, n->name) != 0) {
        cd_buf_puts(b, "\\n");
        put_text(b, n->op);
    }
    if (n->repeat > 1) cd_buf_putf(b, "\\n%lld times", (long long)n->repeat);
    cd_buf_puts(b, "\"");
    if (n->kind == CD_NODE_UNKNOWN) cd_buf_puts(b, ", style=dashed");
    if (n->kind == CD_NODE_FREE) cd_buf_puts(b, ", shape=plaintext");
    cd_buf_puts(b, "];\n");
}

cdmpp_status cd_network_graph_write_dot(cd_buf *out, cd_network_graph *const *g, size_t n,
                                        cdmpp_err *err) {
    cd_buf_puts(out, "digraph cdmpp {\n node [shape=box];\n");
    for (size_t i = 0; i < n; i++) {
        cd_buf_putf(out, " subgraph cluster_%zu {\n  label=\"", i);
        put_text(out, g[i]->name);
        cd_buf_puts(out, "\";\n");
        for (uint32_t k = 0; k < g[i]->n_node; k++) put_node(out, i, k, &g[i]->node[k]);
        for (uint32_t k = 0; k < g[i]->n_node; k++)
            for (uint32_t j = 0; j < g[i]->node[k].n_after; j++)
                cd_buf_putf(out, "  n%zu_%u -> n%zu_%u;\n", i, g[i]->after[g[i]->node[k].first + j],
                            i, k);
        cd_buf_puts(out, " }\n");
    }
    cd_buf_puts(out, "}\n");
    return out->oom ? CD_FAIL(err, ENOMEM, "a drawing of %zu networks", n) : CDMPP_OK;
}

/* The order to run in: depth first along the edges into a node, from the nodes as they were added.
 * A graph that is already in an order keeps it. */

enum { MOST_NAMED = 8 };

/* path (n): each comes after the next, the last after the first. */
static cdmpp_status fail_cycle(const cd_network_builder *m, const uint32_t *path, uint32_t n,
                               cdmpp_err *err) {
    char text[512];
    size_t at = 0;
    for (uint32_t i = 0; i < n && i < MOST_NAMED; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "\"%.40s\" after ",
                               m->node[path[i]].name);
    snprintf(text + at, sizeof text - at, n > MOST_NAMED ? "... after \"%.40s\"" : "\"%.40s\"",
             m->node[path[0]].name);
    return CD_FAIL(err, EINVALID, "a cycle of %u: %s", n, text);
}

static cdmpp_status cycle_at(const cd_network_builder *m, const uint32_t *stack, uint32_t depth,
                             uint32_t again, cdmpp_err *err) {
    uint32_t from = depth - 1;
    while (stack[from] != again) from--;
    return fail_cycle(m, stack + from, depth - from, err);
}

/* order (n_node): every node behind those before it, and else as they were added. Errors: EINVALID
 * (a cycle), ENOMEM.
 *
 * Depth-first search with its own stack: a graph may be a chain of a million nodes. A node is put
 * down when all before it are; an edge to an open node closes a cycle. */
static cdmpp_status network_graph_order(const cd_network_builder *m, const cd_network_in_edges *e,
                                        cd_arena *scratch, uint32_t *order, cdmpp_err *err) {
    enum { NEW, OPEN, DONE };
    const uint32_t n = (uint32_t)m->n_node;
    uint32_t *stack = cd_arena_alloc(scratch, (size_t)n + 1, sizeof *stack), end = 0;
    uint32_t *next = cd_arena_alloc(scratch, (size_t)n + 1, sizeof *next);
    unsigned char *is = CD_NEWN(scratch, unsigned char, (size_t)n + 1);
    if (!stack || !next || !is) return CD_FAIL(err, ENOMEM, "order of %u nodes", n);
    memcpy(next, e->first, n * sizeof *next);
    for (uint32_t root = 0; root < n; root++) {
        uint32_t depth = 0;
        if (is[root] == NEW) is[root] = OPEN, stack[depth++] = root;
        while (depth) {
            const uint32_t k = stack[depth - 1];
            if (next[k] == e->first[k + 1]) {
                is[k] = DONE;
                order[end++] = k;
                depth--;
                continue;
            }
            const uint32_t before = e->into[next[k]++];
            if (is[before] == OPEN) return cycle_at(m, stack, depth, before, err);
            if (is[before] == NEW) is[before] = OPEN, stack[depth++] = before;
        }
    }
    return CDMPP_OK;
}

void cd_network_graph_free(cd_network_graph *g) {
    if (!g) return;
    cd_arena_free(&g->arena);
    cd_arena_free(&g->text);
    cd_mem_free(g);
}

cd_network_node cd_network_node_init(const char *name, const char *op, cd_node_kind kind) {
    return (cd_network_node){.name = name,
                             .op = op ? op : "",
                             .kind = kind,
                             .given_s = (double)NAN,
                             .flop = (double)NAN,
                             .read_bytes = -1,
                             .write_bytes = -1,
                             .weight_bytes = -1,
                             .repeat = 1};
}

cdmpp_status cd_network_builder_new(const char *name, cd_network_builder **out, cdmpp_err *err) {
    cd_network_builder *m = cd_mem_zalloc(1, sizeof *m);
    cd_network_graph *g = m ? cd_mem_zalloc(1, sizeof *g) : NULL;
    if (m) m->g = g;
    if (g) g->name = cd_str_dup(&g->arena, (cd_str){name, strlen(name)});
    if (!g || !g->name) {
        cd_network_builder_free(m);
        return CD_FAIL(err, ENOMEM, "graph");
    }
    g->measured_s = g->measured_median_s = (double)NAN;
    *out = m;
    return CDMPP_OK;
}

void cd_network_builder_free(cd_network_builder *m) {
    if (!m) return;
    cd_network_graph_free(m->g);
    cd_dict_free(&m->text);
    cd_mem_free(m->owner);
    cd_mem_free(m->suffix);
    cd_mem_free(m->node);
    cd_mem_free(m->edge);
    cd_mem_free(m);
}

cd_network_graph *cd_network_builder_graph(cd_network_builder *m) { return m->g; }

/* ---- texts ---- */

/* Room in owner and suffix for every text that the dictionary can hold. */
static bool follow(cd_network_builder *m) {
    const size_t old = m->n_owner, cap = m->text.cap;
    if (old == cap) return true;
    uint32_t *owner = cd_mem_realloc(m->owner, old * sizeof *owner, cap * sizeof *owner);
    if (owner) m->owner = owner;
    uint32_t *suffix =
        owner ? cd_mem_realloc(m->suffix, old * sizeof *suffix, cap * sizeof *suffix) : NULL;
    if (!suffix) return false;
    m->suffix = suffix;
    memset(owner + old, 0, (cap - old) * sizeof *owner);
    memset(suffix + old, 0, (cap - old) * sizeof *suffix);
    m->n_owner = cap;
    return true;
}

static cdmpp_status keep(cd_network_builder *m, const char *s, uint32_t *id, cdmpp_err *err) {
    CD_TRY(cd_dict_add(&m->text, (cd_str){s, strlen(s)}, id, err));
    return follow(m) ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu names", m->text.n);
}

/* *s becomes a copy that lives as long as the graph; NULL stays NULL. */
static cdmpp_status keep_text(cd_network_builder *m, const char **s, cdmpp_err *err) {
    uint32_t id;
    if (!*s) return CDMPP_OK;
    CD_TRY(keep(m, *s, &id, err));
    *s = m->text.text[id];
    return CDMPP_OK;
}

/* *s becomes a name that no node has; *id its text. Each base counts on, so that a million equal
 * names take a million steps. */
static cdmpp_status keep_name(cd_network_builder *m, const char **s, uint32_t *id, cdmpp_err *err) {
    uint32_t base;
    CD_TRY(keep(m, **s ? *s : "node", &base, err));
    cd_buf name = {0};
    cdmpp_status st = CDMPP_OK;
    for (*id = base; !st && m->owner[*id];) {
        if (m->suffix[base] < 2) m->suffix[base] = 2;
        cd_buf_clear(&name);
        cd_buf_putf(&name, "%s#%u", m->text.text[base], m->suffix[base]++);
        if (name.oom) st = CD_FAIL(err, ENOMEM, "name");
        else st = keep(m, name.p, id, err);
    }
    cd_buf_free(&name);
    if (!st) *s = m->text.text[*id];
    return st;
}

bool cd_network_builder_find(const cd_network_builder *m, cd_str name, uint32_t *id) {
    uint32_t text;
    if (!cd_dict_find(&m->text, name, &text) || text >= m->n_owner || !m->owner[text]) return false;
    *id = m->owner[text] - 1;
    return true;
}

/* ---- nodes and edges ---- */
static bool is_size(double v) { return isnan(v) || (v >= 0 && isfinite(v)); }

static cdmpp_status check(const cd_network_node *n, cdmpp_err *err) {
    const char *lacks =
        n->kind == CD_NODE_TASK && !(n->key && *n->key) ? "task without a key"
        : n->kind == CD_NODE_LIBRARY && !n->question    ? "library operator without its question"
        : n->kind == CD_NODE_GIVEN && isnan(n->given_s) ? "given without a time"
        : n->kind == CD_NODE_UNKNOWN && !(n->why && *n->why) ? "unknown without a reason"
                                                             : NULL;
    if (lacks) return CD_FAIL(err, EINVALID, "node \"%.60s\": %s", n->name, lacks);
    if (!is_size(n->given_s))
        return CD_FAIL(err, ERANGE, "node \"%.60s\": a time of %g s", n->name, n->given_s);
    if (!is_size(n->flop))
        return CD_FAIL(err, ERANGE, "node \"%.60s\": %g operations", n->name, n->flop);
    if (n->read_bytes < -1 || n->write_bytes < -1 || n->weight_bytes < -1 || n->repeat < 0)
        return CD_FAIL(err, ERANGE,
                       "node \"%.60s\": reads %lld, writes %lld bytes, runs %lld times", n->name,
                       (long long)n->read_bytes, (long long)n->write_bytes, (long long)n->repeat);
    return CDMPP_OK;
}

/* Indices of nodes and edges are 32 bits wide. */
static cdmpp_status too_many(size_t n, cdmpp_err *err) {
    return n < UINT32_MAX - 1
               ? CDMPP_OK
               : CD_FAIL(err, ERANGE, "a graph of more than %u nodes or edges", UINT32_MAX - 1);
}

/* Texts and the question are copied. Room is made before anything else can fail, so that the name
 * and its owner agree. */
cdmpp_status cd_network_builder_node(cd_network_builder *m, const cd_network_node *n, uint32_t *id,
                                     cdmpp_err *err) {
    cd_network_node c = *n;
    uint32_t name;
    CD_TRY(check(n, err));
    CD_TRY(too_many(m->n_node, err));
    if (CD_GROW(m->node, m->n_node, m->cap_node))
        return CD_FAIL(err, ENOMEM, "graph of %zu nodes", m->n_node);
    c.first = c.n_after = 0;
    CD_TRY(keep_text(m, &c.op, err));
    CD_TRY(keep_text(m, &c.key, err));
    CD_TRY(keep_text(m, &c.ran_as, err));
    CD_TRY(keep_text(m, &c.why, err));
    CD_TRY(keep_text(m, &c.device, err));
    if (n->question) {
        cd_library_op_record *q = CD_NEW(&m->g->arena, cd_library_op_record);
        if (!q) return CD_FAIL(err, ENOMEM, "question");
        *q = *n->question;
        c.question = q;
    }
    CD_TRY(keep_name(m, &c.name, &name, err));
    m->node[m->n_node] = c;
    *id = (uint32_t)m->n_node++;
    m->owner[name] = *id + 1;
    return CDMPP_OK;
}

cdmpp_status cd_network_builder_edge(cd_network_builder *m, uint32_t from, uint32_t to,
                                     cdmpp_err *err) {
    if (from >= m->n_node || to >= m->n_node)
        return CD_FAIL(err, EINVALID, "an edge from node %u to node %u of %zu", from, to,
                       m->n_node);
    CD_TRY(too_many(m->n_edge, err));
    if (CD_GROW(m->edge, m->n_edge, m->cap_edge))
        return CD_FAIL(err, ENOMEM, "graph of %zu edges", m->n_edge);
    m->edge[m->n_edge++] = (cd_network_edge){from, to};
    return CDMPP_OK;
}

/* ---- finish ---- */

/* Sorted by where they go, doubles left out. The maker's own edges are given back meanwhile. */
static cdmpp_status turn_around(cd_network_builder *m, cd_arena *scratch, cd_network_in_edges *out,
                                cdmpp_err *err) {
    const size_t n = m->n_node;
    out->first = CD_NEWN(scratch, uint32_t, n + 2);
    out->into = cd_arena_alloc(scratch, m->n_edge + 1, sizeof *out->into);
    uint32_t *seen = CD_NEWN(scratch, uint32_t, n + 1), at = 0;
    if (!out->first || !out->into || !seen) return CD_FAIL(err, ENOMEM, "%zu edges", m->n_edge);
    for (size_t i = 0; i < m->n_edge; i++) out->first[m->edge[i].to + 2]++;
    for (size_t k = 2; k < n + 2; k++) out->first[k] += out->first[k - 1];
    for (size_t i = 0; i < m->n_edge; i++)
        out->into[out->first[m->edge[i].to + 1]++] = m->edge[i].from;
    cd_mem_free(m->edge);
    m->edge = NULL;
    m->n_edge = m->cap_edge = 0;
    for (uint32_t k = 0, from = 0; k < n; k++) {
        const uint32_t end = out->first[k + 1];
        out->first[k] = at;
        for (; from < end; from++) {
            if (seen[out->into[from]] == k + 1) continue;
            seen[out->into[from]] = k + 1;
            out->into[at++] = out->into[from];
        }
    }
    out->first[n] = at;
    return CDMPP_OK;
}

/* Nodes and edges into the graph, in their order. */
static cdmpp_status publish(cd_network_builder *m, const cd_network_in_edges *e,
                            const uint32_t *order, uint32_t *rank, cdmpp_err *err) {
    cd_network_graph *g = m->g;
    const uint32_t n = (uint32_t)m->n_node, n_edge = e->first[n];
    g->node = cd_arena_alloc(&g->arena, (size_t)n + 1, sizeof *g->node);
    g->after = cd_arena_alloc(&g->arena, (size_t)n_edge + 1, sizeof *g->after);
    if (!g->node || !g->after) return CD_FAIL(err, ENOMEM, "graph of %u nodes", n);
    for (uint32_t i = 0; i < n; i++) rank[order[i]] = i;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t k = order[i];
        g->node[i] = m->node[k];
        g->node[i].first = g->n_after;
        g->node[i].n_after = e->first[k + 1] - e->first[k];
        for (uint32_t j = e->first[k]; j < e->first[k + 1]; j++)
            g->after[g->n_after++] = rank[e->into[j]];
    }
    g->n_node = n;
    return CDMPP_OK;
}

/* On success graph and texts go to the caller; the builder then has no graph, which a second call
 * finds. */
cdmpp_status cd_network_builder_finish(cd_network_builder *m, cd_network_graph **out,
                                       cdmpp_err *err) {
    cd_arena scratch = {0};
    cd_network_in_edges e;
    if (!m->g) return CD_FAIL(err, EINVALID, "a graph that is finished already");
    cdmpp_status st = turn_around(m, &scratch, &e, err);
    uint32_t *order = st ? NULL : cd_arena_alloc(&scratch, m->n_node + 1, sizeof *order);
    uint32_t *rank = st ? NULL : cd_arena_alloc(&scratch, m->n_node + 1, sizeof *rank);
    if (!st && (!order || !rank)) st = CD_FAIL(err, ENOMEM, "order of %zu nodes", m->n_node);
    if (!st) st = network_graph_order(m, &e, &scratch, order, err);
    if (!st) st = publish(m, &e, order, rank, err);
    if (!st) {
        m->g->text = m->text.arena;
        m->text.arena = (cd_arena){0};
        *out = m->g;
        m->g = NULL;
    }
    cd_arena_free(&scratch);
    return st;
}

/* A network of a task file as a graph: its tasks one behind the other, for nothing is known of what
 * needs what. */

/* Bytes of the arguments that are not results, and of those that are; -1: too many to count. */
static void bytes_of(const cd_te_dag *dag, int64_t *reads, int64_t *writes) {
    *reads = *writes = 0;
    for (uint32_t i = 0; i < dag->n_op; i++) {
        const cd_te_op *o = &dag->op[i];
        int64_t *into = o->is_placeholder ? reads : o->is_output ? writes : NULL;
        for (uint32_t k = 0; into && *into >= 0 && k < o->n_out; k++) {
            int64_t n = (int64_t)cd_expr_dtype_bytes(o->dtype[k]);
            for (uint32_t d = 0; d < o->rank; d++)
                if (__builtin_mul_overflow(n, o->shape[d], &n)) n = -1, d = o->rank - 1;
            if (n < 0 || __builtin_add_overflow(*into, n, into)) *into = -1;
        }
    }
}

static cdmpp_status add_task(cd_network_builder *m, const cd_task *task, int64_t weight,
                             uint32_t *id, cdmpp_err *err) {
    const bool named = task->desc && task->desc[0];
    char name[128];
    snprintf(name, sizeof name, "%s", named ? task->desc : task->workload_key);
    cd_network_node n = cd_network_node_init(name, named ? task->desc : "", CD_NODE_TASK);
    n.key = task->workload_key;
    n.repeat = weight;
    if (task->dag) {
        if (cd_task_flop(task) >= 0) n.flop = cd_task_flop(task);
        bytes_of(task->dag, &n.read_bytes, &n.write_bytes);
    }
    return cd_network_builder_node(m, &n, id, err);
}

cdmpp_status cd_network_graph_of_network(const cd_task_registry *t, const cd_network *w,
                                         cd_network_graph **out, cdmpp_err *err) {
    cd_network_builder *m = NULL;
    CD_TRY(cd_network_builder_new(w->name, &m, err));
    const int64_t batch = cd_network_alias_batch(w->name);
    cd_network_builder_graph(m)->batch = batch > 0 ? batch : 0;
    cdmpp_status st = CDMPP_OK;
    for (uint32_t i = 0, last = 0, id = 0; !st && i < w->n; i++, last = id) {
        st = add_task(m, cd_task_registry_at(t, w->task[i]), w->weight[i], &id, err);
        if (!st && i) st = cd_network_builder_edge(m, last, id, err);
    }
    if (!st) st = cd_network_builder_finish(m, out, err);
    cd_network_builder_free(m);
    return st;
}
