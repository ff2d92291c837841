/* From options to a list of cases and back to nothing: check, open, run, free.
 *
 * Files are read in an order that lets later ones depend on earlier ones: tasks, models, graphs,
 * then devices (graphs may name theirs), then networks, which are loaded for a device's target. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/network_estimate/network_estimate_internal.h"
#include "profiler/network/source/source.h"

/* Sizes that a range stands for, and the law through their estimates.
 *
 *   -batch 1..64   ─> 1 3 8 23 64 ─> cases as any others ─┐
 *   -dim seq=16..512:7 ─> 7 sizes ─> cases ───────────────┴─> latency, low, high as curves over the
 *                                                             size ─> any size between
 *
 * Which sizes a range stands for: profiler/network/source. */

/* ---- which sizes ---- */

static cdmpp_status list_batches(cd_network_estimate *e, const char **text, size_t n,
                                 cdmpp_err *err) {
    if (!(e->batch = CD_NEWN(&e->arena, int64_t, n + 1))) return CD_FAIL(err, ENOMEM, "batches");
    for (size_t k = 0; k < n; k++) {
        char *end;
        const long v = strtol(text[k], &end, 10);
        if (*end || v < 1 || v > CD_SIZE_RANGE_MAX)
            return CD_FAIL(
                err, EUSAGE,
                "--batch: expected numbers in 1..%d, or one range as 1..64, found '%.60s'",
                CD_SIZE_RANGE_MAX, text[k]);
        size_t at = 0;
        while (at < e->n_batch && e->batch[at] != v) at++;
        if (at < e->n_batch)
            cd_log_put(e->o->log, CD_LOG_WARNING, "--batch: %ld is there already", v);
        else e->batch[e->n_batch++] = v;
    }
    if (!n) e->n_batch = 1;
    return CDMPP_OK;
}

cdmpp_status cd_network_estimate_sizes(cd_network_estimate *e, cdmpp_err *err) {
    const char **text = NULL;
    size_t n = 0;
    cd_network_sizes z;
    if (e->o->batch) CD_TRY(cd_network_estimate_split_list(&e->arena, e->o->batch, &text, &n, err));
    if (e->o->batch && !n)
        return CD_FAIL(err, EUSAGE, "--batch: expected numbers, found '%.60s'", e->o->batch);
    CD_TRY(cd_network_sizes_read(&e->arena, n == 1 ? text[0] : NULL, &e->o->dim, &z, err));
    const bool batch = z.over && z.place == SIZE_MAX;
    e->over = z.over, e->range_dim = z.place, e->size = z.size, e->n_size = z.n;
    if (batch) e->batch = e->size, e->n_batch = e->n_size;
    if (!batch) CD_TRY(list_batches(e, text, n, err));
    if (e->range_dim != SIZE_MAX && e->n_batch > 1)
        return CD_FAIL(err, EUSAGE, "--dim: a range of %s and several batches: one at a time",
                       e->over);
    return CDMPP_OK;
}

cdmpp_status cd_network_estimate_dims(cd_network_estimate *e, cd_network_estimate_source *s,
                                      cd_onnx_options *onnx, cdmpp_err *err) {
    if (e->range_dim == SIZE_MAX) return CDMPP_OK;
    const cd_network_sizes z = {.over = e->over, .place = e->range_dim};
    cd_network_source at = {
        .kind = CD_NETWORK_SOURCE_ONNX, .dim = e->o->dim.v, .n_dim = (uint32_t)e->o->dim.n};
    CD_TRY(cd_network_sizes_at(&z, &e->arena, s->size, &at, err));
    onnx->dim = at.dim;
    return CDMPP_OK;
}

/* ---- the law ---- */

/* Size of a case within the range. */
static int64_t network_estimate_size_of(const cd_network_estimate *e,
                                        const cd_network_estimate_case *c) {
    return e->range_dim == SIZE_MAX ? c->source->asked : c->source->size;
}

/* A size of which nothing tells how far off it is has no ends, and a law of ends through the others
 * would tell of it nevertheless. The law of the seconds needs no ends. */
static bool all_have_ends(const cd_network_estimate_curve *c) {
    for (size_t k = 0; k < c->n; k++)
        if (isnan(c->low_s[k]) || isnan(c->high_s[k])) return false;
    return true;
}

static cdmpp_status fit(cd_network_estimate_curve *c, cdmpp_err *err) {
    double *x = cd_mem_zalloc(c->n + 1, sizeof *x);
    if (!x) return CD_FAIL(err, ENOMEM, "a curve");
    for (size_t k = 0; k < c->n; k++) x[k] = (double)c->size[k];
    cdmpp_status st =
        c->n < 3
            ? CD_FAIL(err, ENODATA, "a law needs three sizes with an estimate, there are %zu", c->n)
            : CDMPP_OK;
    if (!st) st = cd_perf_curve_fit(x, c->seconds, c->n, NULL, &c->law, err);
    const bool ends = all_have_ends(c);
    if (!st && ends) st = cd_perf_curve_fit(x, c->low_s, c->n, NULL, &c->low, err);
    if (!st && ends) st = cd_perf_curve_fit(x, c->high_s, c->n, NULL, &c->high, err);
    cd_mem_free(x);
    return st;
}

/* Estimates of the network of case `first` on its device, in the order of the sizes. */
static cdmpp_status take(cd_network_estimate *e, size_t first, cd_network_estimate_curve *c,
                         cdmpp_err *err) {
    const cd_network_estimate_case *f = &e->item[first];
    *c = (cd_network_estimate_curve){.first = f};
    c->size = CD_NEWN(&e->arena, int64_t, e->n_size);
    c->of = CD_NEWN(&e->arena, const cd_network_estimate_case *, e->n_size);
    c->seconds = CD_NEWN(&e->arena, double, e->n_size);
    c->low_s = CD_NEWN(&e->arena, double, e->n_size);
    c->high_s = CD_NEWN(&e->arena, double, e->n_size);
    if (!c->size || !c->of || !c->seconds || !c->low_s || !c->high_s)
        return CD_FAIL(err, ENOMEM, "a curve");
    for (size_t k = first; k < e->n_item; k++) {
        const cd_network_estimate_case *x = &e->item[k];
        if (x->device != f->device || x->st || !x->source->asked_for ||
            strcmp(x->source->given, f->source->given) != 0)
            continue;
        c->size[c->n] = network_estimate_size_of(e, x);
        c->of[c->n] = x;
        c->seconds[c->n] = x->replay.makespan_s;
        c->low_s[c->n] = x->interval.low_s;
        c->high_s[c->n++] = x->interval.high_s;
    }
    c->st = fit(c, &c->err);
    return c->st == CDMPP_ENOMEM ? CD_FAIL(err, ENOMEM, "a curve") : CDMPP_OK;
}

cdmpp_status cd_network_estimate_curves(cd_network_estimate *e, cdmpp_err *err) {
    if (!e->over || !(e->curve = CD_NEWN(&e->arena, cd_network_estimate_curve, e->n_item + 1)))
        return e->over ? CD_FAIL(err, ENOMEM, "curves") : CDMPP_OK;
    for (size_t k = 0; k < e->n_item; k++) {
        const cd_network_estimate_case *c = &e->item[k];
        /* a graph of a file; a later size */
        if (!c->source->asked_for || network_estimate_size_of(e, c) != e->size[0]) continue;
        CD_TRY(take(e, k, &e->curve[e->n_curve++], err));
        CD_TRY(cd_network_estimate_one_schedule(e, &e->curve[e->n_curve - 1], err));
    }
    return CDMPP_OK;
}

void cd_network_estimate_curve_at(const cd_network_estimate_curve *c, int64_t size, double *seconds,
                                  double *low, double *high, bool *estimated) {
    size_t k = 0;
    while (k < c->n && c->size[k] != size) k++;
    *estimated = k < c->n;
    if (*estimated) {
        *seconds = c->seconds[k], *low = c->low_s[k], *high = c->high_s[k];
        return;
    }
    *seconds = cd_perf_curve_eval(&c->law, (double)size);
    *low = *high = (double)NAN;
    if (!all_have_ends(c)) return;
    *low = fmin(cd_perf_curve_eval(&c->low, (double)size), *seconds);
    *high = fmax(cd_perf_curve_eval(&c->high, (double)size), *seconds);
}

int64_t cd_network_estimate_curve_next(const cd_network_estimate *e, int64_t size) {
    const int64_t low = e->size[0], high = e->size[e->n_size - 1];
    int64_t next = size < low ? low : high;
    for (int64_t v = low; v < high; v *= 2)
        if (v > size && v < next) next = v;
    for (size_t k = 0; k < e->n_size; k++)
        if (e->size[k] > size && e->size[k] < next) next = e->size[k];
    return size >= high ? 0 : next;
}

/* Where networks come from, and the list of cases.
 *
 *   graph file  one source a network, whatever the device
 *   task file   the same: a network that the file names
 *   ONNX, zoo   one source for each batch and each kind of device, because layout and programs
 *               depend on both
 *
 * A network that cannot be read is a source with an error: its cases fail, the others go on. */

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

/* Fills e->source, e->device and e->item. Errors: where no network can be read, that of the first;
 * EUSAGE, ENOMEM.
 *
 * Graphs come before devices, because they may name theirs; networks behind them, because they are
 * loaded for a target. */
static cdmpp_status network_estimate_sources(cd_network_estimate *e, cdmpp_err *err) {
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

enum { MAX_CASES = 100000 };

cd_network_estimate_options cd_network_estimate_defaults(void) {
    return (cd_network_estimate_options){.policy = -1,
                                         .gap_s = NAN,
                                         .issue_s = NAN,
                                         .link_bytes_per_s = 12e9,
                                         .link_latency_s = 10e-6,
                                         .level = CD_REPLAY_LEVEL,
                                         .shared = CD_REPLAY_SHARED};
}

/* Blanks around a part are left out. */
cdmpp_status cd_network_estimate_split_list(cd_arena *a, const char *list, const char ***out,
                                            size_t *n, cdmpp_err *err) {
    size_t cap = 1;
    for (const char *s = list; *s; s++) cap += *s == ',';
    *n = 0;
    if (!(*out = CD_NEWN(a, const char *, cap))) return CD_FAIL(err, ENOMEM, "a list of %zu", cap);
    for (const char *s = list; *s;) {
        size_t len = strcspn(s, ",");
        const char *next = s + len + (s[len] == ',');
        while (len && *s == ' ') s++, len--;
        while (len && s[len - 1] == ' ') len--;
        if (!len) return CD_FAIL(err, EUSAGE, "'%.60s': a part of the list is empty", list);
        if (!((*out)[(*n)++] = cd_str_dup(a, (cd_str){s, len})))
            return CD_FAIL(err, ENOMEM, "a list of %zu", cap);
        s = next;
    }
    return CDMPP_OK;
}

/* How many networks the options name beside graphs. */
static size_t networks(const cd_network_estimate_options *o) {
    size_t n = o->network.n;
    for (size_t k = 0; k < o->mixed.n; k++) n += !cd_model_set_is_model(o->mixed.v[k]);
    return n;
}

static cdmpp_status parallel_plan(const cd_network_estimate_options *o, cd_parallel_plan *out,
                                  cdmpp_err *err) {
    if (!o->parallel) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_parallel_plan_parse(o->parallel, out, err), "--parallel"));
    out->link = (cd_parallel_link){o->link_latency_s, o->link_bytes_per_s};
    return CDMPP_OK;
}

cdmpp_status cd_network_estimate_check(const cd_network_estimate_options *o, cdmpp_err *err) {
    const bool any = networks(o) > 0;
    cd_workload_layout layout;
    cd_parallel_plan plan;
    CD_TRY(parallel_plan(o, &plan, err));
    if (!o->graph.n && !any && !o->tasks.n)
        return CD_FAIL(err, EUSAGE, "there is no network: --network NAME|FILE, or --graph FILE");
    if (o->layout && !cd_workload_layout_parse(o->layout, &layout))
        return CD_FAIL(err, EUSAGE,
                       "--layout: expected one of " CD_WORKLOAD_LAYOUTS ", found '%.40s'",
                       o->layout);
    if (!any && (o->batch || o->input_size || o->dim.n || o->input.n || o->layout || o->training))
        return CD_FAIL(err, EUSAGE,
                       "--batch, --input-size, --dim, --input, --layout and --training are for "
                       "networks, not for --graph");
    if (o->run && !any)
        return CD_FAIL(err, EUSAGE, "--run is for networks: a graph of a file has nothing to run");
    return CDMPP_OK;
}

static cdmpp_status tasks(cd_network_estimate *e, cdmpp_err *err) {
    if (!e->o->tasks.n) return CDMPP_OK;
    CD_TRY(cd_task_registry_new(&e->tasks, err));
    return cd_task_registry_load_all(e->tasks, e->o->tasks.v, e->o->tasks.n, e->o->log, err);
}

static void on_lines(void *ctx, const char *text) { cd_log_lines(ctx, CD_LOG_ERROR, text); }

static cdmpp_status models(cd_network_estimate *e, cdmpp_err *err) {
    const cd_model_set_options a = {.model = &e->o->cost_model,
                                    .mixed = &e->o->mixed,
                                    .devices = e->o->devices,
                                    .lines = on_lines,
                                    .language = true,
                                    .use_default = !e->o->replay_given && !e->o->from_records,
                                    .ctx = e->o->log};
    CD_TRY(cd_model_set_open(&a, &e->models, err));
    if (e->models.devices) cd_device_table_say(e->models.devices, e->o->log);
    return CDMPP_OK;
}

cdmpp_status cd_network_estimate_open(const cd_network_estimate_options *o, cd_network_estimate *e,
                                      cdmpp_err *err) {
    e->o = o;
    CD_TRY(parallel_plan(o, &e->parallel, err));
    CD_TRY(cd_network_estimate_measure_open(e, err)); /* forks: before any thread */
    CD_TRY(cd_network_estimate_sizes(e, err));
    CD_TRY(tasks(e, err));
    CD_TRY(models(e, err));
    CD_TRY(network_estimate_sources(e, err));
    return e->n_item > MAX_CASES ? CD_FAIL(err, ERANGE, "%zu estimates", e->n_item) : CDMPP_OK;
}

/* Where all cases fail, the first one's reason is the caller's; else each that fails is a
 * message. */
static cdmpp_status verdict(cd_network_estimate *e, cdmpp_err *err) {
    const cd_network_estimate_case *first = NULL;
    for (size_t k = 0; k < e->n_item; k++) {
        if (!e->item[k].st) continue;
        e->n_failed++;
        if (!first) first = &e->item[k];
    }
    for (size_t k = 0; k < e->n_item && e->n_failed < e->n_item; k++)
        if (e->item[k].st) cd_log_err(e->o->log, CD_LOG_WARNING, &e->item[k].err);
    if (!first || e->n_failed < e->n_item) return CDMPP_OK;
    if (err) *err = first->err;
    return first->st;
}

cdmpp_status cd_network_estimate_run(cd_network_estimate *e, cdmpp_err *err) {
    for (size_t k = 0; k < e->n_item; k++) {
        if (e->o->stop && *e->o->stop)
            return CD_FAIL(err, EINTERRUPTED, "after %zu of %zu estimates", k, e->n_item);
        cd_network_estimate_case_run(e, &e->item[k]);
        if (e->o->step) e->o->step(e->o->step_ctx, k + 1, e->n_item);
    }
    CD_TRY(verdict(e, err));
    return cd_network_estimate_curves(e, err);
}

/* Cases before the sources and models that they borrow from. */
void cd_network_estimate_free(cd_network_estimate *e) {
    for (size_t k = 0; k < e->n_curve; k++) {
        cd_perf_curve_free(&e->curve[k].law);
        cd_perf_curve_free(&e->curve[k].low);
        cd_perf_curve_free(&e->curve[k].high);
    }
    for (size_t k = 0; k < e->n_item; k++) cd_network_estimate_case_free(&e->item[k]);
    cd_mem_free(e->item);
    cd_measure_close(e->measure);
    for (size_t k = 0; k < e->n_source; k++) {
        if (e->source[k]->loaded) cd_network_load_free(e->source[k]->loaded);
        cd_network_graph_free(e->source[k]->owned);
    }
    cd_mem_free(e->source);
    for (size_t k = 0; k < e->n_device; k++) cd_schedule_db_free(e->device[k].schedules);
    for (cd_network_estimate_device *d = e->more; d; d = d->next) cd_schedule_db_free(d->schedules);
    cd_task_registry_free(e->tasks);
    cd_threads_free(e->pool);
    cd_model_set_free(&e->models);
    cd_arena_free(&e->arena);
}
