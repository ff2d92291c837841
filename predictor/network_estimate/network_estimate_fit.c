/* Fits what networks cost on a device over their operators, from the networks of this run that were
 * measured there, into a file. */
#include <math.h>
#include <string.h>

#include "predictor/network_estimate/network_estimate_internal.h"

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
