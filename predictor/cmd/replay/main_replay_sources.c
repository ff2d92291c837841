/* What cdmpp-replay replays: graphs of files, networks loaded for each kind of device and batch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/cmd/replay/main_replay.h"

static cdmpp_status source_add(cd_main_replay_plan *p, const char *name, cd_main_replay_source **out, cdmpp_err *err) {
    if (p->n_source == p->cap_source) {
        const size_t cap = p->cap_source ? 2 * p->cap_source : 16;
        cd_main_replay_source **v = cd_mem_realloc(p->source, p->n_source * sizeof *v, cap * sizeof *v);
        if (!v) return CD_FAIL(err, ENOMEM, "%zu networks", cap);
        p->source = v;
        p->cap_source = cap;
    }
    cd_main_replay_source *s = CD_NEW(&p->arena, cd_main_replay_source);
    if (!s) return CD_FAIL(err, ENOMEM, "a network");
    s->name = name;
    s->tasks = p->tasks;
    s->weight_bytes = -1;
    p->source[p->n_source++] = *out = s;
    return CDMPP_OK;
}

/* ---- graphs of files ---- */

/* A network that is wrong is a case that fails; the others of the file go on. */
static void bad_graph(void *ctx, const char *network, const cdmpp_err *why) {
    cd_main_replay_plan *p = ctx;
    cd_main_replay_source *s;
    const char *name = cd_str_dup(&p->arena, (cd_str){network, strlen(network)});
    if (source_add(p, name ? name : "", &s, NULL)) {
        cd_log_err(p->o->log, CD_LOG_ERROR, why); /* no memory to keep it */
        p->o->bad++;
        return;
    }
    s->given = p->reading;
    s->st = why->code;
    s->err = *why;
}

static cdmpp_status read_graphs(cd_main_replay_plan *p, const char *path, cdmpp_err *err) {
    cd_network_graph **g = NULL;
    size_t n = 0, k = 0;
    cd_main_replay_source *s;
    p->reading = path;
    cdmpp_status st = cd_network_graph_read_good(path, bad_graph, p, &g, &n, err);
    for (; !st && k < n; k++) {
        st = source_add(p, g[k]->name, &s, err);
        if (st) break;
        s->given = path;
        s->owned = g[k];
        s->graph = g[k];
        s->batch = g[k]->batch;
    }
    for (; g && k < n; k++) cd_network_graph_free(g[k]);
    cd_mem_free(g);
    return st;
}

/* ---- networks of task files ---- */
/* "resnet_18" is "(resnet_18,[(1,3,224,224)])" too. */
static bool is_called(const char *name, const char *asked) {
    const size_t n = strlen(asked);
    if (!strcmp(name, asked)) return true;
    return name[0] == '(' && !strncmp(name + 1, asked, n) && (name[1 + n] == ',' || name[1 + n] == ')');
}

static const cd_network *task_network(const cd_task_registry *t, const char *asked) {
    for (size_t k = 0; t && k < cd_task_registry_network_count(t); k++)
        if (is_called(cd_task_registry_network(t, k)->name, asked)) return cd_task_registry_network(t, k);
    return NULL;
}

static cdmpp_status of_tasks(cd_main_replay_plan *p, const cd_network *w, cdmpp_err *err) {
    cd_main_replay_source *s;
    CD_TRY(source_add(p, w->name, &s, err));
    s->given = w->name;
    CD_TRY(cd_network_graph_of_network(p->tasks, w, &s->owned, err));
    s->graph = s->owned;
    s->batch = s->owned->batch;
    return CDMPP_OK;
}

/* ---- ONNX and the zoo: one load for a target and a batch ---- */
static void load(cd_main_replay_plan *p, cd_main_replay_source *s, const char *network, const cd_main_replay_device *d) {
    const cd_main_replay *o = p->o;
    const cd_onnx_options onnx = {.dim = o->dim.v, .n_dim = (uint32_t)o->dim.n, .input = o->input.v, .n_input = (uint32_t)o->input.n};
    cd_network_load_options a = {.network = network, .batch = s->asked, .size = o->input_size, .onnx = &onnx, .target = d->target,
                     .hardware = &d->hardware, .training = o->training};
    if (o->layout) (void)cd_workload_layout_parse(o->layout, &a.layout);
    if (!(s->live = CD_NEW(&p->arena, cd_network_loaded))) {
        s->st = CD_FAIL(&s->err, ENOMEM, "a network");
        return;
    }
    if ((s->st = cd_network_load(&a, s->live, &s->err))) {
        s->live = NULL;
        return;
    }
    s->graph = s->live->graph;
    s->name = s->graph->name;
    s->batch = s->graph->batch;
    s->tasks = s->live->work->tasks;
    cd_main_replay_weights(s);
}

/* Tasks carry no more of a target than its kind and hardware: devices that agree in these share a load. */
static bool same_programs(const cd_main_replay_device *a, const cd_main_replay_device *b) {
    const char *s = a->target, *t = b->target;
    return strcspn(s, " ") == strcspn(t, " ") && !strncmp(s, t, strcspn(s, " ")) && !memcmp(&a->hardware, &b->hardware, sizeof a->hardware);
}

static cdmpp_status live_source(cd_main_replay_plan *p, const char *network, const cd_main_replay_device *d, int64_t batch, size_t from, cd_main_replay_source **out, cdmpp_err *err) {
    for (size_t k = from; k < p->n_source; k++) {
        const cd_main_replay_device *e = p->source[k]->target ? &p->device[0] : NULL;
        while (e && e < d && e->target != p->source[k]->target) e++;
        if (e && e <= d && p->source[k]->asked == batch && same_programs(e, d)) {
            *out = p->source[k];
            return CDMPP_OK;
        }
    }
    CD_TRY(source_add(p, network, out, err));
    (*out)->given = network;
    (*out)->target = d->target;
    (*out)->asked = batch;
    load(p, *out, network, d);
    return CDMPP_OK;
}

/* ---- cases ---- */
static cdmpp_status add_case(cd_main_replay_plan *p, cd_main_replay_source *s, cd_main_replay_device *d, size_t cap, cdmpp_err *err) {
    if (p->n_item == cap) return CD_FAIL(err, ERANGE, "more than %zu estimates", cap);
    p->item[p->n_item++] = (cd_main_replay_case){.source = s, .device = d, .before_s = NAN, .run_s = NAN};
    return CDMPP_OK;
}

static cdmpp_status live_cases(cd_main_replay_plan *p, const char *network, size_t cap, cdmpp_err *err) {
    const size_t from = p->n_source;
    cd_main_replay_source *s;
    for (size_t d = 0; d < p->n_device; d++)
        for (size_t b = 0; b < p->n_batch; b++) {
            CD_TRY(live_source(p, network, &p->device[d], p->batch[b], from, &s, err));
            CD_TRY(add_case(p, s, &p->device[d], cap, err));
        }
    return CDMPP_OK;
}

/* One name that nobody knows is the command's error, not that of each device. */
static cdmpp_status all_failed(const cd_main_replay_plan *p, cdmpp_err *err) {
    for (size_t k = 0; k < p->n_source; k++)
        if (!p->source[k]->st) return CDMPP_OK;
    if (!p->n_source) return CD_FAIL(err, EUSAGE, "there is no network in these files");
    if (err) *err = p->source[0]->err;
    return p->source[0]->st;
}

static bool is_live(const cd_main_replay_plan *p, const char *name) { return !task_network(p->tasks, name); }

/* Names in the order they were given: --graph, --network, --model. */
static const char *name_at(const cd_main_replay *o, size_t k) {
    if (k < o->network.n) return o->network.v[k];
    k -= o->network.n;
    for (size_t i = 0; i < o->model.n; i++) {
        if (cd_model_set_is_model(o->model.v[i])) continue;
        if (!k--) return o->model.v[i];
    }
    return NULL;
}

static cdmpp_status files(cd_main_replay_plan *p, cdmpp_err *err) {
    const char *name;
    for (size_t k = 0; k < p->o->graph.n; k++) CD_TRY(read_graphs(p, p->o->graph.v[k], err));
    for (size_t k = 0; (name = name_at(p->o, k)); k++)
        if (!is_live(p, name)) CD_TRY(of_tasks(p, task_network(p->tasks, name), err));
    for (size_t k = 0; k < p->n_source; k++) cd_main_replay_weights(p->source[k]);
    return CDMPP_OK;
}

cdmpp_status cd_main_replay_sources(cd_main_replay_plan *p, cdmpp_err *err) {
    const char *name;
    size_t n_live = 0;
    CD_TRY(files(p, err));
    CD_TRY(cd_main_replay_devices(p, err)); /* graphs may name theirs */
    for (size_t k = 0; (name = name_at(p->o, k)); k++) n_live += is_live(p, name);
    const size_t n_file = p->n_source, cap = n_file * p->n_device + n_live * p->n_device * p->n_batch;
    p->graphs = !n_live && p->n_device == 1;
    if (!(p->item = cd_mem_zalloc(cap + 1, sizeof *p->item))) return CD_FAIL(err, ENOMEM, "%zu estimates", cap);
    for (size_t k = 0; k < n_file; k++)
        for (size_t d = 0; d < p->n_device; d++) CD_TRY(add_case(p, p->source[k], &p->device[d], cap, err));
    for (size_t k = 0; (name = name_at(p->o, k)); k++)
        if (is_live(p, name)) CD_TRY(live_cases(p, name, cap, err));
    CD_TRY(cd_main_replay_unique_names(p, err));
    return all_failed(p, err);
}
