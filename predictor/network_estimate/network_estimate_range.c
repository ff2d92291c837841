/* Sizes that a range stands for, and the law through their estimates.
 *
 *   -batch 1..64   ─> 1 3 8 23 64 ─> cases as any others ─┐
 *   -dim seq=16..512:7 ─> 7 sizes ─> cases ───────────────┴─> latency, low, high as curves over the
 *                                                             size ─> any size between
 *
 * Which sizes a range stands for: profiler/network/source. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/network_estimate/network_estimate_internal.h"

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

int64_t cd_network_estimate_size_of(const cd_network_estimate *e,
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
        c->size[c->n] = cd_network_estimate_size_of(e, x);
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
        if (!c->source->asked_for || cd_network_estimate_size_of(e, c) != e->size[0]) continue;
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
