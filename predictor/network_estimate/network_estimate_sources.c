/* Where networks come from, and the list of cases.
 *
 *   graph file  one source a network, whatever the device
 *   task file   the same: a network that the file names
 *   ONNX, zoo   one source for each batch and each kind of device, because layout and programs
 *               depend on both
 *
 * A network that cannot be read is a source with an error: its cases fail, the others go on. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predictor/network_estimate/network_estimate_internal.h"
#include "profiler/network/source/source.h"

static cdmpp_status source_add(cd_network_estimate *e, const char *name,
                               cd_network_estimate_source **out, cdmpp_err *err) {
    if (CD_GROW(e->source, e->n_source, e->cap_source))
        return CD_FAIL(err, ENOMEM, "%zu networks", e->n_source);
    cd_network_estimate_source *s = CD_NEW(&e->arena, cd_network_estimate_source);
    if (!s) return CD_FAIL(err, ENOMEM, "a network");
    s->name = name;
    s->tasks = e->tasks;
    s->weight_bytes = -1;
    e->source[e->n_source++] = *out = s;
    return CDMPP_OK;
}

/* ---- graphs of files ---- */

static void bad_graph(void *ctx, const char *network, const cdmpp_err *why) {
    cd_network_estimate *e = ctx;
    cd_network_estimate_source *s;
    const char *name = cd_str_dup(&e->arena, (cd_str){network, strlen(network)});
    if (source_add(e, name ? name : "", &s, NULL)) {
        cd_log_err(e->o->log, CD_LOG_ERROR, why); /* no memory to keep it */
        e->n_failed++;
        return;
    }
    s->given = e->reading;
    s->st = why->code;
    s->err = *why;
}

/* Graphs move into sources one by one; those that did not are freed after an error. */
static cdmpp_status read_graphs(cd_network_estimate *e, const char *path, cdmpp_err *err) {
    cd_network_graph **g = NULL;
    size_t n = 0, k = 0;
    cd_network_estimate_source *s;
    e->reading = path;
    cdmpp_status st = cd_network_graph_read_good(path, bad_graph, e, &g, &n, err);
    for (; !st && k < n; k++) {
        st = source_add(e, g[k]->name, &s, err);
        if (st) break;
        s->given = path;
        cd_network_estimate_times_of(e, path, g[k]);
        s->owned = g[k];
        s->graph = g[k];
        s->batch = g[k]->batch;
        if (g[k]->layers_unknown)
            cd_log_put(e->o->log, CD_LOG_WARNING,
                       "%s: its rows are of one layer, and no file beside it says how many the "
                       "network has (num_layer in the .json of the same name): "
                       "estimated with one",
                       path);
    }
    for (; g && k < n; k++) cd_network_graph_free(g[k]);
    cd_mem_free(g);
    return st;
}

/* ---- networks of task files ---- */
/* Task files name a network "(resnet_18,[(1,3,224,224)])"; it may be asked for as "resnet_18". */
static bool is_called(const char *name, const char *asked) {
    const size_t n = strlen(asked);
    if (!strcmp(name, asked)) return true;
    return name[0] == '(' && !strncmp(name + 1, asked, n) &&
           (name[1 + n] == ',' || name[1 + n] == ')');
}

static const cd_network *task_network(const cd_task_registry *t, const char *asked) {
    for (size_t k = 0; t && k < cd_task_registry_network_count(t); k++)
        if (is_called(cd_task_registry_network(t, k)->name, asked))
            return cd_task_registry_network(t, k);
    return NULL;
}

static cdmpp_status of_tasks(cd_network_estimate *e, const cd_network *w, cdmpp_err *err) {
    cd_network_estimate_source *s;
    CD_TRY(source_add(e, w->name, &s, err));
    s->given = w->name;
    CD_TRY(cd_network_graph_of_network(e->tasks, w, &s->owned, err));
    s->graph = s->owned;
    s->batch = s->owned->batch;
    return CDMPP_OK;
}

/* ---- ONNX and the zoo: one load for a target and a batch ---- */
/* "net, seq=128": sizes of a dimension are networks of their own in every report. */
static cdmpp_status name_size(cd_network_estimate *e, cd_network_estimate_source *s,
                              const char *network, cdmpp_err *err) {
    s->name = network;
    if (!s->size) return CDMPP_OK;
    const size_t cap = strlen(network) + strlen(e->over) + 32;
    char *name = cd_arena_alloc(&e->arena, cap, 1);
    if (!name) return CD_FAIL(err, ENOMEM, "a network");
    snprintf(name, cap, "%s, %s=%lld", network, e->over, (long long)s->size);
    s->name = name;
    return CDMPP_OK;
}

/* The same file for another batch or device has the same notes. */
const cd_graph *cd_network_estimate_notes(const cd_network_estimate *e,
                                          const cd_network_estimate_source *s) {
    for (size_t k = 0; k < e->n_source && e->source[k] != s; k++)
        if (e->source[k]->loaded && s->given && e->source[k]->given &&
            !strcmp(s->given, e->source[k]->given))
            return NULL;
    return !s->loaded ? NULL : s->loaded->forward ? s->loaded->forward : s->loaded->source;
}

static void load(cd_network_estimate *e, cd_network_estimate_source *s, const char *network,
                 const cd_network_estimate_device *d) {
    const cd_network_estimate_options *o = e->o;
    cd_onnx_options onnx = {.dim = o->dim.v,
                            .n_dim = (uint32_t)o->dim.n,
                            .input = o->input.v,
                            .n_input = (uint32_t)o->input.n};
    cd_network_load_options a = {.network = network,
                                 .batch = s->asked,
                                 .size = o->input_size,
                                 .onnx = &onnx,
                                 .target = d->target,
                                 .hardware = &d->hardware,
                                 .training = o->training};
    if (o->layout) (void)cd_workload_layout_parse(o->layout, &a.layout);
    if ((s->st = cd_network_estimate_dims(e, s, &onnx, &s->err)) ||
        (s->st = name_size(e, s, network, &s->err)))
        return;
    if (!(s->loaded = CD_NEW(&e->arena, cd_network_loaded))) {
        s->st = CD_FAIL(&s->err, ENOMEM, "a network");
        return;
    }
    if ((s->st = cd_network_load(&a, s->loaded, &s->err))) {
        s->loaded = NULL;
        return;
    }
    s->graph = s->loaded->graph;
    if (cd_network_estimate_notes(e, s))
        cd_network_source_say(cd_network_estimate_notes(e, s), o->log);
    if ((s->st = name_size(e, s, s->graph->name, &s->err))) return;
    s->batch = s->graph->batch;
    s->tasks = s->loaded->work->tasks;
    cd_network_estimate_weights(s);
}

/* Tasks take from a target only its kind and hardware: devices that agree in these share a
 * source. */
static bool same_programs(const cd_network_estimate_device *a,
                          const cd_network_estimate_device *b) {
    const char *s = a->target, *t = b->target;
    return strcspn(s, " ") == strcspn(t, " ") && !strncmp(s, t, strcspn(s, " ")) &&
           !memcmp(&a->hardware, &b->hardware, sizeof a->hardware);
}

/* The network's source for this device and batch; `from`: the first source of this network. A
 * source is of the device whose target it has. */
static cdmpp_status live_source(cd_network_estimate *e, const char *network,
                                const cd_network_estimate_device *d, int64_t batch, int64_t size,
                                size_t from, cd_network_estimate_source **out, cdmpp_err *err) {
    for (size_t k = from; k < e->n_source; k++) {
        const cd_network_estimate_device *of = e->source[k]->target ? &e->device[0] : NULL;
        while (of && of < d && of->target != e->source[k]->target) of++;
        if (of && of <= d && e->source[k]->asked == batch && e->source[k]->size == size &&
            same_programs(of, d)) {
            *out = e->source[k];
            return CDMPP_OK;
        }
    }
    CD_TRY(source_add(e, network, out, err));
    (*out)->given = network;
    (*out)->target = d->target;
    (*out)->asked_for = true;
    (*out)->asked = batch;
    (*out)->size = size;
    load(e, *out, network, d);
    return CDMPP_OK;
}

/* ---- cases ---- */
static cdmpp_status add_case(cd_network_estimate *e, cd_network_estimate_source *s,
                             cd_network_estimate_device *d, size_t cap, cdmpp_err *err) {
    if (e->n_item == cap) return CD_FAIL(err, ERANGE, "more than %zu estimates", cap);
    e->item[e->n_item++] = (cd_network_estimate_case){.source = s,
                                                      .device = d,
                                                      .before_s = NAN,
                                                      .run_s = NAN,
                                                      .measured_s = NAN,
                                                      .measured_median_s = NAN};
    return CDMPP_OK;
}

/* Cases of a network on a device: batches, or the sizes of a dimension with a range. */
static size_t n_live_size(const cd_network_estimate *e) {
    return e->range_dim == SIZE_MAX ? e->n_batch : e->n_size;
}

static cdmpp_status live_cases(cd_network_estimate *e, const char *network, size_t cap,
                               cdmpp_err *err) {
    const size_t from = e->n_source;
    cd_network_estimate_source *s;
    for (size_t d = 0; d < e->n_device; d++)
        for (size_t k = 0; k < n_live_size(e); k++) {
            const bool dim = e->range_dim != SIZE_MAX;
            CD_TRY(live_source(e, network, &e->device[d], e->batch[dim ? 0 : k],
                               dim ? e->size[k] : 0, from, &s, err));
            CD_TRY(add_case(e, s, &e->device[d], cap, err));
        }
    return CDMPP_OK;
}

/* Where no network can be read, that is the caller's error: one wrong name would else be reported
 * for each device. */
static cdmpp_status all_failed(const cd_network_estimate *e, cdmpp_err *err) {
    for (size_t k = 0; k < e->n_source; k++)
        if (!e->source[k]->st) return CDMPP_OK;
    if (!e->n_source) return CD_FAIL(err, EUSAGE, "there is no network in these files");
    if (err) *err = e->source[0]->err;
    return e->source[0]->st;
}

static bool is_live(const cd_network_estimate *e, const char *name) {
    return !task_network(e->tasks, name);
}

/* The k-th network that is not a graph: options.network, then those of options.mixed. NULL: no
 * more. */
static const char *name_at(const cd_network_estimate_options *o, size_t k) {
    if (k < o->network.n) return o->network.v[k];
    k -= o->network.n;
    for (size_t i = 0; i < o->mixed.n; i++) {
        if (cd_model_set_is_model(o->mixed.v[i])) continue;
        if (!k--) return o->mixed.v[i];
    }
    return NULL;
}

/* Task files alone: all networks that they name. */
static cdmpp_status all_of_tasks(cd_network_estimate *e, cdmpp_err *err) {
    const size_t n = e->tasks ? cd_task_registry_network_count(e->tasks) : 0;
    if (!n)
        return CD_FAIL(err, EUSAGE,
                       "the task files name no network: --network NAME|FILE, or --graph FILE");
    for (size_t k = 0; k < n; k++) CD_TRY(of_tasks(e, cd_task_registry_network(e->tasks, k), err));
    return CDMPP_OK;
}

static cdmpp_status files(cd_network_estimate *e, cdmpp_err *err) {
    const char *name;
    if (!e->o->graph.n && !name_at(e->o, 0)) CD_TRY(all_of_tasks(e, err));
    for (size_t k = 0; k < e->o->graph.n; k++) CD_TRY(read_graphs(e, e->o->graph.v[k], err));
    for (size_t k = 0; (name = name_at(e->o, k)); k++)
        if (!is_live(e, name)) CD_TRY(of_tasks(e, task_network(e->tasks, name), err));
    for (size_t k = 0; k < e->n_source; k++) cd_network_estimate_weights(e->source[k]);
    return CDMPP_OK;
}

/* Graphs come before devices, because they may name theirs; networks behind them, because they are
 * loaded for a target. */
cdmpp_status cd_network_estimate_sources(cd_network_estimate *e, cdmpp_err *err) {
    const char *name;
    size_t n_live = 0;
    CD_TRY(files(e, err));
    if (!e->o->graph.n && !e->o->from_records) CD_TRY(cd_model_set_need_programs(&e->models, err));
    CD_TRY(cd_network_estimate_devices(e, err));
    for (size_t k = 0; (name = name_at(e->o, k)); k++) n_live += is_live(e, name);
    const size_t n_file = e->n_source,
                 cap = n_file * e->n_device + n_live * e->n_device * n_live_size(e);
    e->graphs = !n_live && e->n_device == 1;
    if (!(e->item = cd_mem_zalloc(cap + 1, sizeof *e->item)))
        return CD_FAIL(err, ENOMEM, "%zu estimates", cap);
    for (size_t k = 0; k < n_file; k++)
        for (size_t d = 0; d < e->n_device; d++)
            CD_TRY(add_case(e, e->source[k], &e->device[d], cap, err));
    for (size_t k = 0; (name = name_at(e->o, k)); k++)
        if (is_live(e, name)) CD_TRY(live_cases(e, name, cap, err));
    CD_TRY(cd_network_estimate_unique_names(e, err));
    return all_failed(e, err);
}
