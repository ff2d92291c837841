/* From an ONNX file or the zoo to a graph whose nodes are the groups of the workload. Operators
 * that have no definition become UNKNOWN nodes with the reason, so that a total can name what it
 * lacks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/io.h"
#include "features/sketch/sketch.h"
#include "predictor/network/network.h"
#include "profiler/network/gradient/gradient.h"
#include "profiler/network/source/source.h"
#include "profiler/network/zoo/zoo.h"
#include "profiler/runtime/single/single.h"

/* What a file is that a command was given without an option: its content decides, of CSV its name.
 */

enum { FIRST = 64, JSON_MAX = 256 << 20 };

static bool ends_in(const char *path, const char *end) {
    const size_t n = strlen(path), k = strlen(end);
    return n > k && !strcmp(path + n - k, end);
}

static bool has(const cd_json *root, const char *key) {
    return root->kind == CD_JSON_OBJ && cd_json_get(root, key);
}

static cd_network_operand of_json(const char *path) {
    cd_arena a = {0};
    const cd_json *root;
    cd_str schema;
    char *text = NULL;
    size_t n;
    cd_network_operand is = CD_NETWORK_OPERAND_GRAPH; /* whose reader says what is wrong with it */
    if (!cd_file_read(path, JSON_MAX, &text, &n, NULL) &&
        !cd_json_parse(&a, text, n, &root, NULL)) {
        if (has(root, "model_type") || has(root, "architectures")) is = CD_NETWORK_OPERAND_LANGUAGE;
        else if (has(root, "schema") && !cd_json_need_str(root, "schema", &schema, NULL) &&
                 cd_str_is(schema, "cdmpp.tasks"))
            is = CD_NETWORK_OPERAND_TASKS;
    }
    cd_mem_free(text);
    cd_arena_free(&a);
    return is;
}

/* A folder as Hugging Face has them: its config.json is the language model. */
static cd_network_operand of_folder(const char *path) {
    cd_buf config = {0};
    cd_buf_putf(&config, "%s/config.json", path);
    const bool is = !config.oom && of_json(config.p) == CD_NETWORK_OPERAND_LANGUAGE;
    cd_buf_free(&config);
    return is ? CD_NETWORK_OPERAND_LANGUAGE : CD_NETWORK_OPERAND_NETWORK;
}

cd_network_operand cd_network_operand_of(const char *path) {
    char first[FIRST] = "";
    struct stat st;
    if (!stat(path, &st) && S_ISDIR(st.st_mode)) return of_folder(path);
    FILE *f = stat(path, &st) || !S_ISREG(st.st_mode) ? NULL : fopen(path, "rb");
    if (!f) return CD_NETWORK_OPERAND_NETWORK;
    const size_t n = fread(first, 1, sizeof first - 1, f);
    (void)fclose(f);
    const char *text = first + (n >= 3 && !memcmp(first, "\357\273\277", 3) ? 3 : 0);
    text += strspn(text, " \t\r\n");
    if (n >= 8 && !memcmp(first, "CDMPPMDL", 8)) return CD_NETWORK_OPERAND_MODEL;
    if (*text == '{') return of_json(path);
    if (ends_in(path, ".csv") || *text == '[') return CD_NETWORK_OPERAND_GRAPH;
    return ends_in(path, ".tasks.json.xz") || ends_in(path, ".task.pkl")
               ? CD_NETWORK_OPERAND_TASKS
               : CD_NETWORK_OPERAND_NETWORK;
}

bool cd_network_operand_is_onnx(const char *path) {
    return ends_in(path, ".onnx") && !access(path, R_OK);
}

enum { VECTOR_BYTES = 64 };

/* ---- the operators ---- */

typedef struct {
    const cd_onnx_miss *v; /* (n) */
    uint32_t n;
    const cd_gradient_miss *grad; /* (n_grad) */
    uint32_t n_grad;
    const uint8_t *phase; /* (source's nodes) NULL: all forward */
} misses;

static cdmpp_status read_source(const cd_network_load_options *a, cd_graph **g, misses *m,
                                cdmpp_err *err) {
    cd_onnx_options o = a->onnx ? *a->onnx : (cd_onnx_options){0};
    o.batch = a->batch;
    *g = a->graph;
    if (a->graph) return CDMPP_OK;
    if (!cd_network_source_is_file(a->network)) {
        if (o.n_dim || o.n_input)
            return CD_FAIL(err, EUSAGE,
                           "names of dimensions and inputs are for ONNX files, and '%.80s' is none",
                           a->network);
        return cd_zoo_build(a->network, &(cd_zoo_options){.batch = a->batch, .size = a->size}, g,
                            err);
    }
    if (a->size)
        return CD_FAIL(
            err, EUSAGE,
            "a size is for networks of the zoo; an ONNX file's dimensions have names ('%.80s')",
            a->network);
    return cd_network_source_onnx(a->network, &o, g, &m->v, &m->n, err);
}

static cdmpp_status read_all(const cd_network_load_options *a, cd_network_loaded *l, misses *m,
                             cdmpp_err *err) {
    cd_gradient g;
    if (!a->training) return read_source(a, &l->source, m, err);
    CD_TRY(read_source(a, &l->forward, m, err));
    CD_TRY(cd_autodiff(l->forward, NULL, &g, err));
    l->source = g.graph;
    l->source->batch_axis = l->forward->batch_axis;
    m->grad = g.missing;
    m->n_grad = g.n_missing;
    m->phase = g.phase;
    return CDMPP_OK;
}

/* Operators without a gradient stand in the graph as cd_autodiff calls them. */
static cdmpp_status list_misses(cd_graph *g, const misses *m, cd_workload_unsupported **out,
                                cdmpp_err *err) {
    cd_workload_unsupported *w = *out =
        CD_NEWN(&g->arena, cd_workload_unsupported, (size_t)m->n + m->n_grad + 1);
    if (!w) return CD_FAIL(err, ENOMEM, "operators that are missing");
    for (uint32_t k = 0; k < m->n; k++)
        *w++ = (cd_workload_unsupported){m->v[k].op, m->v[k].node, m->v[k].reason};
    for (uint32_t k = 0; k < m->n_grad; k++, w++) {
        char op[80], node[200];
        snprintf(op, sizeof op, "%.60sGrad", m->grad[k].op);
        snprintf(node, sizeof node, "%.120s/%sGrad", m->grad[k].node, m->grad[k].op);
        *w = (cd_workload_unsupported){cd_str_dup(&g->arena, (cd_str){op, strlen(op)}),
                                       cd_str_dup(&g->arena, (cd_str){node, strlen(node)}),
                                       m->grad[k].reason};
        if (!w->op || !w->node) return CD_FAIL(err, ENOMEM, "operators that are missing");
    }
    return CDMPP_OK;
}

static cdmpp_status build_work(const cd_network_load_options *a, const misses *m,
                               cd_network_loaded *l, cdmpp_err *err) {
    const char *target = a->target && a->target[0] ? a->target : "llvm";
    const cd_backend_kind *kind = cd_backend_for_target((cd_str){target, strlen(target)});
    const bool gpu = kind && kind->dialect != CD_DIALECT_C;
    const cd_hardware usual =
        cd_target_hardware(gpu, gpu ? 0 : cd_backend_cpu_threads(target), VECTOR_BYTES);
    cd_workload_unsupported *w;
    CD_TRY(list_misses(l->source, m, &w, err));
    const cd_workload_options o = {.layout = a->layout,
                                   .target = target,
                                   .hardware = a->hardware ? a->hardware : &usual,
                                   .missing = w,
                                   .n_missing = m->n + m->n_grad};
    return cd_workload_build(l->source, &o, &l->work, err);
}

/* ---- nodes ---- */

typedef struct {
    const cd_workload *w;
    cd_network_builder *maker;
    cd_buf op;            /* "Conv+Relu" */
    const uint8_t *phase; /* (graph's nodes) NULL: all forward */
    cd_node_phase *of;    /* (groups) */
    bool *had;            /* (buffers) read by a node before */
    /* (graph's nodes) 1 + group of an operator without a definition; 0: none yet */
    uint32_t *seen;
} walk;

static int64_t bytes_of(const cd_workload_buffer *b) {
    return cd_graph_shape_bytes(&b->shape, b->dtype);
}

/* The graph's operator that a group is named after; CD_GRAPH_NONE: a change of layout. */
static uint32_t head_of(const cd_workload *w, const cd_workload_group *g) {
    const cd_workload_buffer *b = &w->buffer[g->write];
    if (g->n_node) return g->node[0];
    return b->tensor != CD_GRAPH_NONE ? w->graph->tensor[b->tensor].node : CD_GRAPH_NONE;
}

static const char *reason(const cd_workload *w, const char *name) {
    for (uint32_t k = 0; k < w->n_unsupported; k++)
        if (!strcmp(w->unsupported[k].node, name)) return w->unsupported[k].reason;
    return "the operator has no definition";
}

static const char *op_text(walk *k, const cd_workload_group *g, uint32_t head) {
    cd_buf_clear(&k->op);
    if (g->n_node || head == CD_GRAPH_NONE) cd_op_profile_operators(&k->op, k->w, g, '+');
    else cd_buf_puts(&k->op, k->w->graph->node[head].op);
    cd_buf_put(&k->op, "", 1);
    return k->op.oom ? NULL : k->op.p;
}

/* One of several results of an operator without a definition is that operator, the others come with
 * it. */
static bool comes_with(walk *k, uint32_t group, uint32_t head) {
    if (k->w->group[group].task != CD_GRAPH_NONE || head == CD_GRAPH_NONE) return false;
    if (k->seen[head]) return true;
    k->seen[head] = group + 1;
    return false;
}

/* Of its first operator; a change of layout is part of what it comes after. */
static cd_node_phase phase_of(walk *k, uint32_t group, uint32_t head) {
    static const cd_node_phase as[] = {[CD_GRADIENT_FORWARD] = CD_PHASE_FORWARD,
                                       [CD_GRADIENT_BACKWARD] = CD_PHASE_BACKWARD,
                                       [CD_GRADIENT_UPDATE] = CD_PHASE_UPDATE};
    const cd_workload_group *g = &k->w->group[group];
    cd_node_phase p = CD_PHASE_FORWARD;
    if (k->phase && head != CD_GRAPH_NONE) p = as[k->phase[head]];
    for (uint32_t i = 0; head == CD_GRAPH_NONE && i < g->n_after; i++)
        if (k->of[g->after[i]] > p) p = k->of[g->after[i]];
    return k->of[group] = p;
}

static void count_bytes(walk *k, const cd_workload_group *g, cd_network_node *n) {
    n->read_bytes = n->weight_bytes = 0;
    for (uint32_t i = 0; i < g->n_read; i++) {
        const cd_workload_buffer *b = &k->w->buffer[g->read[i]];
        n->read_bytes += bytes_of(b);
        if (b->is_const && !k->had[g->read[i]]) n->weight_bytes += bytes_of(b);
        k->had[g->read[i]] = true;
    }
}

/* A group without a task is free where it comes with another group of the same operator, as a
 * second result does; else unknown. */
static cdmpp_status add_group(walk *k, uint32_t group, cdmpp_err *err) {
    const cd_workload *w = k->w;
    const cd_workload_group *g = &w->group[group];
    const uint32_t head = head_of(w, g);
    const char *op = op_text(k, g, head),
               *name = head == CD_GRAPH_NONE ? "layout_transform" : w->graph->node[head].name;
    if (!op) return CD_FAIL(err, ENOMEM, "name of a node");
    cd_network_node n = cd_network_node_init(name && name[0] ? name : op, op, CD_NODE_TASK);
    const bool with = comes_with(k, group, head);
    n.phase = phase_of(k, group, head);
    if (g->task != CD_GRAPH_NONE) {
        n.key = cd_task_registry_at(w->tasks, w->task[g->task].task)->workload_key;
        n.flop = w->task[g->task].flop;
    } else {
        n.kind = with ? CD_NODE_FREE : CD_NODE_UNKNOWN;
        n.why = with ? NULL : reason(w, name);
        if (head != CD_GRAPH_NONE && !with) n.flop = w->graph->node[head].flop;
    }
    count_bytes(k, g, &n);
    n.write_bytes = bytes_of(&w->buffer[g->write]);
    uint32_t id;
    CD_TRY(cd_network_builder_node(k->maker, &n, &id, err));
    if (with) CD_TRY(cd_network_builder_edge(k->maker, k->seen[head] - 1, id, err));
    for (uint32_t i = 0; i < g->n_after; i++)
        CD_TRY(cd_network_builder_edge(k->maker, g->after[i], id, err));
    return CDMPP_OK;
}

/* Has it a node already, as a group? */
static bool is_there(const walk *k, const char *name) {
    for (uint32_t i = 0; i < k->w->graph->n_node; i++)
        if (k->seen[i] && !strcmp(k->w->graph->node[i].name, name)) return true;
    return false;
}

/* What the file's reader could not even put into the graph stands behind, alone. */
static cdmpp_status add_missing(walk *k, cdmpp_err *err) {
    for (uint32_t i = 0; i < k->w->n_unsupported; i++) {
        const cd_workload_unsupported *u = &k->w->unsupported[i];
        if (is_there(k, u->node)) continue;
        cd_network_node n =
            cd_network_node_init(u->node && u->node[0] ? u->node : u->op, u->op, CD_NODE_UNKNOWN);
        uint32_t id;
        n.why = u->reason;
        CD_TRY(cd_network_builder_node(k->maker, &n, &id, err));
    }
    return CDMPP_OK;
}

/* As asked; a file that was not asked for one has it in front. */
static int64_t batch_of(const cd_network_load_options *a, const cd_graph *g) {
    if (a->batch || (!a->graph && !cd_network_source_is_file(a->network)))
        return a->batch ? a->batch : 1;
    const cd_graph_shape *s = g->n_input ? &g->tensor[g->input[0]].shape : NULL;
    return s && s->rank > g->batch_axis ? s->dim[g->batch_axis] : 0;
}

/* "a/resnet.onnx" is resnet: the name within a file is its exporter's. */
static cdmpp_status name_of(const cd_network_load_options *a, cd_network_loaded *l,
                            const char **out, cdmpp_err *err) {
    *out = l->forward ? l->forward->name : l->source->name;
    if (a->graph || !cd_network_source_is_file(a->network)) return CDMPP_OK;
    const char *slash = strrchr(a->network, '/'), *base = slash ? slash + 1 : a->network;
    size_t n = strlen(base);
    if (n > 5 && !strcmp(base + n - 5, ".onnx")) n -= 5;
    *out = cd_str_dup(&l->source->arena, (cd_str){base, n});
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "name of a network");
}

static cdmpp_status add_all(walk *k, const cd_network_load_options *a, cdmpp_err *err) {
    k->seen = cd_mem_zalloc(k->w->graph->n_node + 1, sizeof *k->seen);
    k->of = cd_mem_zalloc(k->w->n_group + 1, sizeof *k->of);
    k->had = cd_mem_zalloc(k->w->n_buffer + 1, sizeof *k->had);
    if (!k->seen || !k->of || !k->had) return CD_FAIL(err, ENOMEM, "operators");
    for (uint32_t g = 0; g < k->w->n_group; g++) CD_TRY(add_group(k, g, err));
    CD_TRY(add_missing(k, err));
    cd_network_builder_graph(k->maker)->batch = batch_of(a, k->w->graph);
    return CDMPP_OK;
}

static cdmpp_status make_graph(const cd_network_load_options *a, const misses *m,
                               cd_network_loaded *l, cdmpp_err *err) {
    walk k = {.w = l->work, .phase = m->phase};
    const char *name;
    CD_TRY(name_of(a, l, &name, err));
    CD_TRY(cd_network_builder_new(name, &k.maker, err));
    cdmpp_status st = add_all(&k, a, err);
    if (!st) st = cd_network_builder_finish(k.maker, &l->graph, err);
    cd_network_builder_free(k.maker);
    cd_buf_free(&k.op);
    cd_mem_free(k.seen);
    cd_mem_free(k.had);
    cd_mem_free(k.of);
    return st;
}

/* ---- what cannot be packed beforehand ---- */

static bool reads_made(const cd_workload *w, const cd_workload_group *g, const cd_te_dag *d) {
    for (uint32_t i = 0; i < g->n_read && i < d->n_arg; i++)
        if (d->op[d->tensor_op[d->arg[i]]].layout_free && !w->buffer[g->read[i]].is_const)
            return true;
    return false;
}

/* Keys of tasks whose free parameter is another operator's result in some group, sorted. */
static cdmpp_status list_plain(cd_network_loaded *l, cdmpp_err *err) {
    const cd_workload *w = l->work;
    l->plain = CD_NEWN(&l->graph->arena, const char *, w->n_task + 1);
    bool *is = cd_mem_zalloc(w->n_task + 1, sizeof *is);
    for (uint32_t g = 0; l->plain && is && g < w->n_group; g++) {
        const cd_workload_group *x = &w->group[g];
        const cd_task *t =
            x->task == CD_GRAPH_NONE ? NULL : cd_task_registry_at(w->tasks, w->task[x->task].task);
        if (t && t->dag && !is[x->task] && reads_made(w, x, t->dag)) {
            is[x->task] = true;
            l->plain[l->n_plain++] = t->workload_key;
        }
    }
    const bool ok = l->plain && is;
    cd_mem_free(is);
    if (!ok) return CD_FAIL(err, ENOMEM, "tasks");
    qsort(l->plain, l->n_plain, sizeof *l->plain, cd_sort_by_text);
    return CDMPP_OK;
}

/* ---- all of it ---- */

void cd_network_load_free(cd_network_loaded *l) {
    cd_network_graph_free(l->graph);
    cd_workload_free(l->work);
    cd_graph_free(l->source);
    cd_graph_free(l->forward);
    memset(l, 0, sizeof *l);
}

cdmpp_status cd_network_load(const cd_network_load_options *a, cd_network_loaded *out,
                             cdmpp_err *err) {
    cd_network_loaded l = {0};
    misses m = {0};
    memset(out, 0, sizeof *out);
    if (!a->graph && (!a->network || !a->network[0]))
        return CD_FAIL(err, EUSAGE, "no network is named");
    cdmpp_status st = read_all(a, &l, &m, err);
    if (!st) st = build_work(a, &m, &l, err);
    if (!st) st = make_graph(a, &m, &l, err);
    if (!st) st = list_plain(&l, err);
    if (st) cd_network_load_free(&l);
    else *out = l;
    return st;
}

cdmpp_status cd_network_load_nothing(uint32_t nodes, cdmpp_err *err) {
    return CD_FAIL(err, ESCHEMA, "none of its %u nodes takes time: there is nothing to estimate",
                   nodes);
}

cdmpp_status cd_network_load_unexpected(const char *word, cdmpp_err *err) {
    const size_t n = strlen(word);
    if (n > 5 && !strcmp(word + n - 5, ".onnx"))
        return CD_FAIL(err, EUSAGE, "unexpected '%.60s', did you mean --network %s?", word, word);
    return CD_FAIL(err, EUSAGE, "unexpected '%.60s'", word);
}
