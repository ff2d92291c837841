/* cdmpp_estimate: a table of estimates and everything that its texts point into.
 *
 * The handle owns copies of all options, because the table refers to them as long as it lives. It
 * is the same computation as cdmpp-replay's, without messages and without a cache unless the caller
 * names one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predictor/partition/report/report.h"
#include "predictor/api/api_internal.h"
#include "predictor/network_report/network_report.h"

struct cdmpp_network {
    cd_arena arena;
    cd_network_estimate_options ask; /* the fields about networks; its texts are in the arena */
    const char **name;               /* (n) */
    size_t n;
};

struct cdmpp_estimate {
    cd_arena arena; /* the texts of ask */
    cd_network_estimate_options ask;
    cd_log log;               /* prints nothing, keeps warnings for the JSON form */
    cd_network_estimate impl; /* borrows ask, log */
    /* (n_item) each (n_op) of a row that has a result, else NULL */
    bool **critical;
};

/* cdmpp_network: what is to be estimated, as copies of what the caller named.
 *
 * The handle keeps names and options and not the graph, because a network is loaded for a device:
 * its layout and the programs of its operators depend on the target. It is loaded once here all the
 * same, so that a wrong file is found where it is named. */

static bool network_handle_text(cd_arena *a, const char *s, const char **out) {
    *out = s ? cd_str_dup(a, (cd_str){s, strlen(s)}) : NULL;
    return !s || *out;
}

/* A copy of a list of texts, and of a text (NULL: NULL), in the arena; false: out of memory. */
static bool network_handle_texts(cd_arena *a, const char *const *v, size_t n, cd_texts *out) {
    *out = (cd_texts){.n = n, .v = CD_NEWN(a, const char *, n + 1)};
    for (size_t k = 0; out->v && k < n; k++)
        if (!network_handle_text(a, v[k], &out->v[k])) return false;
    return out->v != NULL;
}

/* The fields about networks from `from` to `to`, their texts copied into the arena. False: out of
 * memory. */
static bool network_handle_copy(cd_arena *a, const cd_network_estimate_options *from,
                                cd_network_estimate_options *to) {
    to->input_size = from->input_size;
    to->training = from->training;
    return network_handle_texts(a, from->graph.v, from->graph.n, &to->graph) &&
           network_handle_texts(a, from->network.v, from->network.n, &to->network) &&
           network_handle_texts(a, from->tasks.v, from->tasks.n, &to->tasks) &&
           network_handle_texts(a, from->dim.v, from->dim.n, &to->dim) &&
           network_handle_texts(a, from->input.v, from->input.n, &to->input) &&
           network_handle_text(a, from->batch, &to->batch) &&
           network_handle_text(a, from->layout, &to->layout);
}

/* A graph file has its shapes already: batch, layout, dimensions and inputs apply to a model file
 * only. */
static cdmpp_status copy_options_network(cdmpp_network *n, const char *from, bool graph,
                                         const cdmpp_network_options *o, cdmpp_err *err) {
    cd_network_estimate_options *a = &n->ask;
    char batch[24];
    *a = cd_network_estimate_defaults();
    if (o->batch < 0 || o->input_size < 0)
        return CD_FAIL(err, EUSAGE,
                       "cdmpp_network_options: expected a batch and an input_size of 0 or more");
    bool ok = network_handle_texts(&n->arena, &from, 1, graph ? &a->graph : &a->network) &&
              network_handle_texts(&n->arena, o->tasks, o->n_tasks, &a->tasks);
    if (!graph) {
        snprintf(batch, sizeof batch, "%lld", (long long)o->batch);
        a->input_size = o->input_size;
        a->training = o->training != 0;
        ok = ok && network_handle_text(&n->arena, o->batch ? batch : NULL, &a->batch) &&
             network_handle_text(&n->arena, o->layout, &a->layout) &&
             network_handle_texts(&n->arena, o->dim, o->n_dim, &a->dim) &&
             network_handle_texts(&n->arena, o->input, o->n_input, &a->input);
    }
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "network handle");
}

/* Reads the network for a device that needs no model, and keeps the names that it finds. */
static cdmpp_status look(cdmpp_network *n, cdmpp_err *err) {
    cd_network_estimate_options a = n->ask;
    cd_network_estimate e = {0};
    a.device = "device";
    a.replay_given = true;
    cdmpp_status st = cd_network_estimate_check(&a, err);
    if (!st) st = cd_network_estimate_open(&a, &e, err);
    if (!st && !(n->name = CD_NEWN(&n->arena, const char *, e.n_source + 1)))
        st = CD_FAIL(err, ENOMEM, "network handle");
    for (size_t k = 0; !st && k < e.n_source; k++)
        if (!network_handle_text(&n->arena, e.source[k]->name, &n->name[n->n++]))
            st = CD_FAIL(err, ENOMEM, "network handle");
    cd_network_estimate_free(&e);
    return st;
}

static cdmpp_status new_network(const char *from, bool graph, const cdmpp_network_options *options,
                                cdmpp_network **out, cdmpp_err *err) {
    cdmpp_network_options o = {0};
    if (options)
        CD_TRY(cd_api_copy_struct(&o, sizeof o, options, sizeof o, "cdmpp_network_options", err));
    cdmpp_network *n = cd_mem_zalloc(1, sizeof *n);
    if (!n) return CD_FAIL(err, ENOMEM, "network handle");
    cdmpp_status st = copy_options_network(n, from, graph, &o, err);
    if (!st) st = look(n, err);
    if (st) cdmpp_network_free(n);
    else *out = n;
    return st;
}

cdmpp_status cdmpp_network_load(const char *from, const cdmpp_network_options *options,
                                cdmpp_network **out, cdmpp_err *err) {
    return new_network(from, false, options, out, err);
}

cdmpp_status cdmpp_network_load_graph(const char *path, const cdmpp_network_options *options,
                                      cdmpp_network **out, cdmpp_err *err) {
    return new_network(path, true, options, out, err);
}

size_t cdmpp_network_count(const cdmpp_network *n) { return n->n; }
const char *cdmpp_network_name(const cdmpp_network *n, size_t i) {
    return i < n->n ? n->name[i] : NULL;
}

void cdmpp_network_free(cdmpp_network *n) {
    if (!n) return;
    cd_arena_free(&n->arena);
    cd_mem_free(n);
}

/* cdmpp_partition: a plan of a network over devices, made by the rooms of cdmpp-partition and kept
 * whole, so that every accessor reads what the command prints. Texts of the caller's options are
 * copied, because parts of the result refer to them. */

struct cdmpp_partition {
    cd_arena arena; /* texts of options */
    cd_partition_options options;
    cd_partition impl; /* borrows options */
};

/* ---- options ---- */

static cdmpp_status check(const cdmpp_partition_options *o, cdmpp_err *err) {
    if (o->batch < 0 || o->batch > 1048576 || o->input_size < 0 || o->trials < 0 || o->seed < 0 ||
        o->nthreads < 0)
        return CD_FAIL(err, EUSAGE,
                       "cdmpp_partition_options: a number below 0, or a batch above 1048576");
    if (o->granules && (o->granules < 2 || o->granules > 64))
        return CD_FAIL(err, EUSAGE, "cdmpp_partition_options.granules: expected 2..64, found %d",
                       o->granules);
    if ((o->n_model && !o->model) || (o->n_as && !o->as) || (o->n_schedules && !o->schedules) ||
        (o->n_records && !o->records))
        return CD_FAIL(err, EUSAGE, "cdmpp_partition_options: a list is NULL");
    return CDMPP_OK;
}

static cdmpp_status copy_options_partition(cdmpp_partition *p, const char *from,
                                           const cdmpp_partition_options *o, cdmpp_err *err) {
    cd_partition_options *to = &p->options;
    cd_arena *a = &p->arena;
    *to = cd_partition_defaults();
    to->batch = (int)o->batch;
    to->input_size = o->input_size;
    to->trials = o->trials;
    to->seed = o->seed;
    to->jobs = o->nthreads ? o->nthreads : 1;
    to->no_split = o->whole != 0;
    to->granules = o->granules;
    const bool ok = network_handle_text(a, from, &to->network) &&
                    network_handle_text(a, o->devices, &to->devices) &&
                    network_handle_text(a, o->machine, &to->machine) &&
                    network_handle_text(a, o->devices_file, &to->descriptions) &&
                    network_handle_text(a, o->layout, &to->layout) &&
                    network_handle_text(a, o->dims, &to->dims) &&
                    network_handle_text(a, o->rules, &to->rules) &&
                    network_handle_texts(a, o->model, o->n_model, &to->cost_model) &&
                    network_handle_texts(a, o->as, o->n_as, &to->as) &&
                    network_handle_texts(a, o->schedules, o->n_schedules, &to->schedules) &&
                    network_handle_texts(a, o->records, o->n_records, &to->records);
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "partition handle");
}

/* ---- making ---- */

/* The caller may pass no err; the rooms below always get one. */
cdmpp_status cdmpp_partition_network(const char *from, const cdmpp_partition_options *options,
                                     cdmpp_partition **out, cdmpp_err *err) {
    cdmpp_partition_options o = {0};
    cdmpp_err none;
    err = err ? err : &none;
    if (options)
        CD_TRY(cd_api_copy_struct(&o, sizeof o, options, sizeof o, "cdmpp_partition_options", err));
    CD_TRY(check(&o, err));
    cdmpp_partition *p = cd_mem_zalloc(1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "partition handle");
    cdmpp_status st = copy_options_partition(p, from, &o, err);
    if (!st) st = cd_partition_check(&p->options, err);
    if (!st) st = cd_partition_open(&p->options, &p->impl, err);
    if (!st) st = cd_partition_compute(&p->impl, err);
    if (st) cdmpp_partition_free(p);
    else *out = p;
    return st;
}

void cdmpp_partition_free(cdmpp_partition *p) {
    if (!p) return;
    cd_partition_free(&p->impl);
    cd_arena_free(&p->arena);
    cd_mem_free(p);
}

/* ---- reading ---- */

/* Ours into the caller's struct, as much as fits: an older caller has a shorter one. `first`: size
 * in the version that brought it. */
static cdmpp_status give_partition(void *out, const void *ours, size_t size, size_t first,
                                   const char *name, cdmpp_err *err) {
    size_t theirs;
    memcpy(&theirs, out, sizeof theirs);
    if (theirs < first || theirs > 4096)
        return CD_FAIL(err, EUSAGE, "%s.size: expected %zu, found %zu", name, size, theirs);
    memset(out, 0, theirs);
    memcpy(out, ours, theirs < size ? theirs : size);
    memcpy(out, &theirs, sizeof theirs);
    return CDMPP_OK;
}

static double known(double v) { return isfinite(v) ? v : (double)NAN; }
static const char *text(const char *s) { return s ? s : ""; }

cdmpp_status cdmpp_partition_summary(const cdmpp_partition *p, cdmpp_partition_total *out,
                                     cdmpp_err *err) {
    const cd_shard_plan *n = p->impl.plan;
    const cdmpp_partition_total t = {.network = text(n->network),
                                     .verdict = text(n->verdict),
                                     .seconds = known(n->predicted_s),
                                     .alone = cd_partition_alone_s(&p->impl, false),
                                     .gain = known(n->predicted_gain),
                                     .ceiling = known(n->ceiling),
                                     .bound = known(n->bound_s),
                                     .split = n->split,
                                     .n_device = n->n_device,
                                     .n_op = n->n_op};
    return give_partition(out, &t, sizeof t, sizeof t, "cdmpp_partition_total", err);
}

const char *cdmpp_partition_device(const cdmpp_partition *p, size_t d) {
    return d < p->impl.plan->n_device ? p->impl.plan->device[d] : NULL;
}

double cdmpp_partition_alone(const cdmpp_partition *p, size_t d) {
    const cd_shard_plan *n = p->impl.plan;
    const char *name = cdmpp_partition_device(p, d);
    for (uint32_t k = 0; name && k < n->n_base; k++)
        if (!strcmp(n->base[k].name, name)) return known(n->base[k].predicted_s);
    return (double)NAN;
}

cdmpp_status cdmpp_partition_operator(const cdmpp_partition *p, size_t i, cdmpp_partition_op *out,
                                      cdmpp_err *err) {
    const cd_shard_plan *n = p->impl.plan;
    uint32_t d;
    if (i >= n->n_op) return CD_FAIL(err, ERANGE, "operator %zu of %u", i, n->n_op);
    const cd_shard_plan_op *o = &n->op[i];
    const cdmpp_partition_op t = {.name = text(o->name),
                                  .type = text(o->type),
                                  .dim = text(o->dim),
                                  .why = text(o->why),
                                  .n_shard = o->n_part,
                                  .seconds = known(o->seconds),
                                  .exchange = known(o->exchange_s),
                                  .alone = known(cd_partition_best_s(n, o, &d))};
    return give_partition(out, &t, sizeof t, sizeof t, "cdmpp_partition_op", err);
}

cdmpp_status cdmpp_partition_shard(const cdmpp_partition *p, size_t i, size_t k,
                                   cdmpp_partition_piece *out, cdmpp_err *err) {
    const cd_shard_plan *n = p->impl.plan;
    if (i >= n->n_op || k >= n->op[i].n_part)
        return CD_FAIL(err, ERANGE, "shard %zu of operator %zu", k, i);
    const cd_shard_plan_part *s = &n->op[i].part[k];
    const cdmpp_partition_piece t = {
        .device = s->device, .lo = s->lo, .hi = s->hi, .seconds = known(s->seconds)};
    return give_partition(out, &t, sizeof t, sizeof t, "cdmpp_partition_piece", err);
}

cdmpp_status cdmpp_partition_json(const cdmpp_partition *p, char *to, size_t cap, size_t *len,
                                  cdmpp_err *err) {
    cd_buf b = {0};
    cd_partition_report_json(&p->impl, &b);
    return cd_api_give_text(&b, "partition as text", to, cap, len, err);
}

/* Names of cd_cost_source. */
static const char *const source_name[] = {"model", "library", "given",  "record",
                                          "free",  "scaled",  "missing"};

static cdmpp_status check_numbers(const cdmpp_estimate_options *o, cdmpp_err *err) {
    enum { MAX_TRIALS = 1000000, MAX_WORKERS = 1024 };
    if (o->trials < 0 || o->trials > MAX_TRIALS)
        return CD_FAIL(err, EUSAGE, "trials: expected 0 to %d, found %d", MAX_TRIALS, o->trials);
    if (o->seed < 0) return CD_FAIL(err, EUSAGE, "seed: expected 0 or more, found %d", o->seed);
    if (o->nthreads < 0 || o->nthreads > CD_MAX_THREADS)
        return CD_FAIL(err, EUSAGE, "nthreads: expected 0 to %d, found %d", CD_MAX_THREADS,
                       o->nthreads);
    if (o->workers < 0 || o->workers > MAX_WORKERS)
        return CD_FAIL(err, EUSAGE, "workers: expected 0 to %d, found %d", MAX_WORKERS, o->workers);
    if (o->level != 0 && !(o->level >= 0.01 && o->level <= 0.999))
        return CD_FAIL(err, EUSAGE, "level: expected 0.01 to 0.999, found %g", o->level);
    return CDMPP_OK;
}

/* 0 means the default of a number. An empty name of the cache switches it off. */
static cdmpp_status copy_options(cdmpp_estimate *e, const cdmpp_network *n,
                                 const cdmpp_estimate_options *o, cdmpp_err *err) {
    cd_network_estimate_options *a = &e->ask;
    cd_arena *m = &e->arena;
    CD_TRY(check_numbers(o, err));
    *a = cd_network_estimate_defaults();
    a->trials = o->trials;
    a->seed = o->seed;
    a->jobs = o->nthreads ? o->nthreads : 1;
    a->workers = o->workers;
    a->nearest = o->nearest_device != 0;
    a->allow_missing = o->allow_missing != 0;
    a->replay_given = o->given_times != 0;
    if (o->level > 0) a->level = o->level;
    const bool ok = network_handle_copy(m, &n->ask, a) &&
                    network_handle_texts(m, o->model, o->n_model, &a->cost_model) &&
                    network_handle_texts(m, o->records, o->n_records, &a->records) &&
                    network_handle_texts(m, o->schedules, o->n_schedules, &a->schedules) &&
                    network_handle_texts(m, &o->target, o->target != NULL, &a->target) &&
                    network_handle_text(m, o->device, &a->device) &&
                    network_handle_text(m, o->devices_file, &a->devices) &&
                    network_handle_text(m, o->cache ? o->cache : "", &a->cache);
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "estimate handle");
}

static cdmpp_status mark_critical(cdmpp_estimate *e, cdmpp_err *err) {
    if (!(e->critical = cd_mem_zalloc(e->impl.n_item + 1, sizeof *e->critical)))
        return CD_FAIL(err, ENOMEM, "estimate handle");
    for (size_t k = 0; k < e->impl.n_item; k++) {
        const cd_network_estimate_case *c = &e->impl.item[k];
        if (!c->st && !(e->critical[k] = cd_network_estimate_critical(c)))
            return CD_FAIL(err, ENOMEM, "estimate handle");
    }
    return CDMPP_OK;
}

cdmpp_status cdmpp_estimate_network(const cdmpp_network *n, const cdmpp_estimate_options *options,
                                    cdmpp_estimate **out, cdmpp_err *err) {
    cdmpp_estimate_options o = {0};
    if (options)
        CD_TRY(cd_api_copy_struct(&o, sizeof o, options, sizeof o, "cdmpp_estimate_options", err));
    cdmpp_estimate *e = cd_mem_zalloc(1, sizeof *e);
    if (!e) return CD_FAIL(err, ENOMEM, "estimate handle");
    cd_log_init(&e->log, "", NULL);
    e->log.keep = true;
    cdmpp_status st = copy_options(e, n, &o, err);
    e->ask.log = &e->log;
    if (!st) st = cd_network_estimate_open(&e->ask, &e->impl, err);
    if (!st) st = cd_network_estimate_run(&e->impl, err);
    if (!st) st = mark_critical(e, err);
    if (st) cdmpp_estimate_free(e);
    else *out = e;
    return st;
}

void cdmpp_estimate_free(cdmpp_estimate *e) {
    if (!e) return;
    for (size_t k = 0; e->critical && k < e->impl.n_item; k++) cd_mem_free(e->critical[k]);
    cd_mem_free(e->critical);
    cd_network_estimate_free(&e->impl);
    cd_log_done(&e->log);
    cd_arena_free(&e->arena);
    cd_mem_free(e);
}

/* ---- rows ---- */
size_t cdmpp_estimate_count(const cdmpp_estimate *e) { return e->impl.n_item; }

/* Copies our struct into the caller's. The first field is the size of the caller's. It may be
 * longer: its end is not changed; or shorter by the fields behind `least`, which came later. */
static cdmpp_status give(void *to, const void *from, size_t n, size_t least, const char *name,
                         cdmpp_err *err) {
    size_t size;
    memcpy(&size, to, sizeof size);
    if (size < least)
        return CD_FAIL(err, EUSAGE, "%s.size: expected %zu, found %zu", name, n, size);
    memcpy((char *)to + sizeof size, (const char *)from + sizeof size,
           (size < n ? size : n) - sizeof size);
    return CDMPP_OK;
}

static cdmpp_status case_of(const cdmpp_estimate *e, size_t i, const cd_network_estimate_case **out,
                            cdmpp_err *err) {
    if (i >= e->impl.n_item) return CD_FAIL(err, ERANGE, "row %zu of %zu", i, e->impl.n_item);
    *out = &e->impl.item[i];
    return CDMPP_OK;
}

/* A row whose estimate failed is no error of this call: its status and message are in the row, its
 * numbers are NaN or -1. */
cdmpp_status cdmpp_estimate_row(const cdmpp_estimate *e, size_t i, cdmpp_estimate_total *out,
                                cdmpp_err *err) {
    const cd_network_estimate_case *c = NULL;
    CD_TRY(case_of(e, i, &c, err));
    cdmpp_estimate_total t = {.network = c->source->name,
                              .device = c->device->label,
                              .batch = c->source->batch > 0 ? c->source->batch : -1,
                              .status = c->st,
                              .error = c->st ? c->err.msg : "",
                              .seconds = NAN,
                              .low = NAN,
                              .high = NAN,
                              .missing_share = NAN,
                              .unlike_share = NAN,
                              .peak_bytes = -1};
    if (!c->st) {
        t.seconds = c->replay.makespan_s;
        t.low = c->interval.low_s;
        t.high = c->interval.high_s;
        t.missing_share = c->missing_share;
        t.unlike_share = c->ops_s > 0 ? c->unlike_s / c->ops_s : 0;
        t.peak_bytes = c->use[c->fullest].peak;
        t.n_node = c->net->net.n_op;
    }
    return give(out, &t, sizeof t, sizeof t, "cdmpp_estimate_total", err);
}

cdmpp_status cdmpp_estimate_node(const cdmpp_estimate *e, size_t i, size_t k,
                                 cdmpp_estimate_op *out, cdmpp_err *err) {
    const cd_network_estimate_case *c = NULL;
    CD_TRY(case_of(e, i, &c, err));
    if (c->st || k >= c->net->net.n_op)
        return CD_FAIL(err, ERANGE, "operator %zu of %u", k, c->st ? 0 : c->net->net.n_op);
    const uint32_t op = (uint32_t)k;
    const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, c->net->of[op]);
    const cd_network_node *v = cd_network_estimate_node(c, op);
    const bool stood = n->source == CD_COST_MODEL && c->place[c->net->net.op[op].device]->stands;
    const cdmpp_estimate_op o = {
        .name = v->name,
        .type = v->op ? v->op : "",
        .device = c->lane[c->net->net.op[op].device].name,
        .source = source_name[n->source],
        .schedule = n->schedule,
        .repeat = v->repeat,
        .start = c->replay.op[op].start_s,
        .end = c->replay.op[op].end_s,
        .seconds = n->seconds,
        .low = n->low_s,
        .high = n->high_s,
        .critical = e->critical[i][op],
        .flags = (n->flags & CD_MODEL_OUT_OF_RANGE ? CDMPP_FLAG_OUT_OF_RANGE : 0) |
                 (stood ? CDMPP_FLAG_UNKNOWN_DEVICE : 0),
        .reason = n->reason,
        .unlike = n->unlike ? n->unlike : ""};
    return give(out, &o, sizeof o, offsetof(cdmpp_estimate_op, reason), "cdmpp_estimate_op", err);
}

cdmpp_status cdmpp_estimate_json(const cdmpp_estimate *e, int nodes, char *text, size_t cap,
                                 size_t *len, cdmpp_err *err) {
    const cd_network_report r = {.e = &e->impl, .ops = nodes != 0, .deadline_s = NAN};
    cd_buf b = {0};
    cd_network_report_json(&r, &b);
    return cd_api_give_text(&b, "estimate as text", text, cap, len, err);
}
