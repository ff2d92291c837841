/* What an estimate can be repeated from: its networks as graphs in our own form, and the schedules
 * that its tasks used. */
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/network_estimate/network_estimate_internal.h"

/* Fits what networks cost on a device over their operators, from the networks of this run that were
 * measured there, into a file. */

/* The median where the file has it: one run that waited counts nothing. */
static double measured_of(const cd_network_estimate_case *c) {
    return c->measured_median_s > 0 ? c->measured_median_s : c->measured_s;
}

static size_t rows_of(const cd_network_estimate *e, cd_network_cost_row *row) {
    size_t n = 0;
    for (size_t k = 0; k < e->n_item; k++) {
        const cd_network_estimate_case *c = &e->item[k];
        if (c->st || c->n_place > 1 || c->missing_share > 0 || !(measured_of(c) > 0)) continue;
        row[n] =
            cd_node_cost_row(c->cost[0], c->source->graph, c->device->about, c->replay.makespan_s);
        if (!(row[n].alone_s > 0)) continue;
        row[n++].measured_s = measured_of(c);
    }
    return n;
}

/* "e2e.json; times of records" */
static const char *source_of(cd_network_estimate *e) {
    cd_buf b = {0};
    for (size_t k = 0; k < e->o->graph.n; k++) {
        const char *slash = strrchr(e->o->graph.v[k], '/');
        cd_buf_putf(&b, "%s%s", k ? ", " : "", slash ? slash + 1 : e->o->graph.v[k]);
    }
    cd_buf_puts(&b, e->o->from_records ? "; times of records" : "; predicted times");
    const char *s = b.oom ? NULL : cd_str_dup(&e->arena, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    return s;
}

static cdmpp_status save(cd_network_estimate *e, const cd_network_cost_fit *f, const char *path,
                         cdmpp_err *err) {
    cd_diag diag = {0};
    const cdmpp_status st = cd_network_cost_save(path, f, &diag, err);
    if (diag.n) cd_log_lines(e->o->log, CD_LOG_ERROR, diag.text.p);
    cd_diag_free(&diag);
    if (st) return st;
    cd_log_put(e->o->log, CD_LOG_INFO,
               "%s: on %s a network takes %.3f times its operators alone and %.3g us a call, "
               "+- %.1f %% (%lld networks)",
               path, f->devices.v[0], f->lift, 1e6 * f->call_s, 100 * f->spread,
               (long long)f->networks);
    return CDMPP_OK;
}

cdmpp_status cd_network_estimate_fit_costs(cd_network_estimate *e, const char *path,
                                           cdmpp_err *err) {
    cd_network_cost_fit f;
    const cd_network_estimate_device *d = e->device;
    if (e->n_device != 1 || d->unnamed)
        return CD_FAIL(err, EUSAGE, "--fit-network-cost: expected one --device, found %zu",
                       d->unnamed ? 0 : e->n_device);
    cd_network_cost_row *row = cd_mem_zalloc(e->n_item + 1, sizeof *row);
    if (!row) return CD_FAIL(err, ENOMEM, "%zu networks", e->n_item);
    const cdmpp_status st = cd_err_key(err, cd_network_cost_fit_rows(row, rows_of(e, row), &f, err),
                                       "--fit-network-cost");
    cd_mem_free(row);
    if (st) return st;
    const char *name = d->about ? d->about->name : d->name;
    f.devices = (cd_texts){1, &name};
    if (!(f.source = source_of(e))) return CD_FAIL(err, ENOMEM, "source of a fit");
    return save(e, &f, path, err);
}

/* ---- graphs ---- */
static bool is_taken(const cd_network_graph *g, size_t n, const char *name) {
    for (size_t k = 0; k < n; k++)
        if (!strcmp(g[k].name, name)) return true;
    return false;
}

/* A name stands in a file once: of the second graph the batch is added, then a number. */
static cdmpp_status name_once(cd_network_estimate *e, cd_network_graph *g, size_t n,
                              const char *name, cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_puts(&b, name);
    if (is_taken(g, n, b.p ? b.p : "") && g[n].batch)
        cd_buf_putf(&b, ", batch %lld", (long long)g[n].batch);
    const size_t base = b.n;
    for (unsigned k = 2; !b.oom && is_taken(g, n, b.p); k++) {
        b.n = base;
        cd_buf_putf(&b, "#%u", k);
    }
    g[n].name = b.oom ? NULL : cd_str_dup(&e->arena, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    return g[n].name ? CDMPP_OK : CD_FAIL(err, ENOMEM, "name of a network");
}

static bool is_dot(const char *path) {
    const size_t n = strlen(path);
    return n > 4 && !strcmp(path + n - 4, ".dot");
}

cdmpp_status cd_network_estimate_save_graph(cd_network_estimate *e, const char *path,
                                            cdmpp_err *err) {
    cd_buf b = {0};
    size_t n = 0;
    cdmpp_status st = CDMPP_OK;
    cd_network_graph *g = cd_arena_alloc(&e->arena, e->n_source + 1, sizeof *g);
    cd_network_graph **at = cd_arena_alloc(&e->arena, e->n_source + 1, sizeof *at);
    if (!g || !at) return CD_FAIL(err, ENOMEM, "%zu graphs", e->n_source);
    for (size_t k = 0; !st && k < e->n_source; k++) {
        if (!e->source[k]->graph) continue;
        g[n] = *e->source[k]->graph; /* lent: only the name is another */
        at[n] = &g[n];
        st = name_once(e, g, n, e->source[k]->name, err);
        n++;
    }
    if (!st)
        st = (is_dot(path) ? cd_network_graph_write_dot : cd_network_graph_write)(&b, at, n, err);
    if (!st) st = cd_file_write(path, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

/* ---- schedules ---- */
/* "s.json" for k80: "s.k80.json". */
static cdmpp_status path_for(const char *path, const char *device, cd_buf *b, cdmpp_err *err) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    const size_t n = dot ? (size_t)(dot - path) : strlen(path);
    cd_buf_putf(b, "%.*s.%s%s", (int)n, path, device, dot ? dot : "");
    return b->oom ? CD_FAIL(err, ENOMEM, "a path") : CDMPP_OK;
}

static cdmpp_status save_device(const char *path, const cd_network_estimate_device *d, bool one,
                                cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = one ? CDMPP_OK : path_for(path, d->label, &b, err);
    if (!st && d->schedules) st = cd_schedule_db_write(d->schedules, b.p ? b.p : path, err);
    cd_buf_free(&b);
    return st;
}

cdmpp_status cd_network_estimate_save_schedules(cd_network_estimate *e, const char *path,
                                                cdmpp_err *err) {
    const bool one = e->n_device == 1 && !e->more;
    for (size_t k = 0; k < e->n_device; k++) CD_TRY(save_device(path, &e->device[k], one, err));
    for (const cd_network_estimate_device *d = e->more; d; d = d->next)
        CD_TRY(save_device(path, d, one, err));
    return CDMPP_OK;
}
