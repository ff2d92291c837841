/* cdmpp_estimate: a table of estimates and everything that its texts point into.
 *
 * The handle owns copies of all options, because the table refers to them as long as it lives. It
 * is the same computation as cdmpp-replay's, without messages and without a cache unless the caller
 * names one. */
#include <math.h>
#include <string.h>

#include "predictor/api/network_handle_internal.h"

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
    const bool ok = cd_network_handle_copy(m, &n->ask, a) &&
                    cd_network_handle_texts(m, o->model, o->n_model, &a->cost_model) &&
                    cd_network_handle_texts(m, o->records, o->n_records, &a->records) &&
                    cd_network_handle_texts(m, o->schedules, o->n_schedules, &a->schedules) &&
                    cd_network_handle_texts(m, &o->target, o->target != NULL, &a->target) &&
                    cd_network_handle_text(m, o->device, &a->device) &&
                    cd_network_handle_text(m, o->devices_file, &a->devices) &&
                    cd_network_handle_text(m, o->cache ? o->cache : "", &a->cache);
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
