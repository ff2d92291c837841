/* Builds the workload: fuses the graph, asks for a definition of each group, and loads the distinct
 * ones as tasks into a registry. The tasks pass through the same text reader as task files, so that
 * both mean the same. */
#include "profiler/network/workload/workload.h"

#include <string.h>

#include "features/program/program.h"
#include "profiler/network/workload/workload_internal.h"

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

uint32_t cd_workload_base_node(const cd_fuse_graph *f, uint32_t node) {
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
    CD_TRY(cd_workload_make_groups(b));
    CD_TRY(cd_workload_make_nodes(b));
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
