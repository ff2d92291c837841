/* A network opened at its points, and its calls. */
#include "predictor/dynamic/dynamic_internal.h"

#include <stdio.h>
#include <string.h>

#define LONGEST_BUILD_S 300 /* of many programs at a time, on a machine that others use */

/* ---- calls ---- */

size_t cd_dynamic_points(const cd_dynamic *d) { return d->n; }
uint32_t cd_dynamic_inputs(const cd_dynamic *d) { return d->n_input; }
uint32_t cd_dynamic_results(const cd_dynamic *d) { return d->n_result; }
const char *cd_dynamic_only_points(const cd_dynamic *d) { return d->only_points; }

int64_t cd_dynamic_bytes(const cd_dynamic *d) {
    int64_t sum = 0;
    for (size_t k = 0; k < d->n; k++) sum += cd_network_live_bytes(d->net[k].live).all;
    return sum;
}

void cd_dynamic_input_shape(const cd_dynamic *d, uint32_t k, int64_t size, cd_graph_shape *shape,
                            cd_dtype *dtype) {
    cd_dynamic_shape(&d->input[k], size, shape);
    *dtype = d->input[k].dtype;
}

void cd_dynamic_result_shape(const cd_dynamic *d, uint32_t k, int64_t size, cd_graph_shape *shape,
                             cd_dtype *dtype) {
    cd_dynamic_shape(&d->result[k], size, shape);
    *dtype = d->result[k].dtype;
}

cdmpp_status cd_dynamic_choose(const cd_dynamic *d, int64_t size, size_t *point, cdmpp_err *err) {
    size_t low = 0, high = d->n;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (d->net[mid].size < size) low = mid + 1;
        else high = mid;
    }
    *point = low;
    if (size < d->net[0].size || low == d->n)
        return CD_FAIL(err, ERANGE, "%s=%lld: programs are there for %lld to %lld",
                       d->o->sizes->over, (long long)size, (long long)d->net[0].size,
                       (long long)d->net[d->n - 1].size);
    if (d->net[low].size != size && d->only_points)
        return CD_FAIL(err, EUNSUPPORTED, "%s=%lld has no program of its own, and %.160s",
                       d->o->sizes->over, (long long)size, d->only_points);
    return CDMPP_OK;
}

/* Through the scratch where the program's is larger. */
static cdmpp_status put_input(cd_dynamic *d, cd_dynamic_net *n, int64_t size, uint32_t k,
                              const void *from, cdmpp_err *err) {
    cd_graph_shape box, whole;
    if (size == n->size) return cd_network_live_write(n->live, k, from, err);
    cd_dynamic_shape(&d->input[k], size, &box);
    cd_dynamic_shape(&d->input[k], n->size, &whole);
    memset(d->scratch, 0, (size_t)cd_dynamic_shape_bytes(&whole, d->input[k].dtype));
    cd_dynamic_copy_box(&box, cd_expr_dtype_bytes(d->input[k].dtype), &box, from, &whole,
                        d->scratch);
    return cd_network_live_write(n->live, k, d->scratch, err);
}

static cdmpp_status get_result(cd_dynamic *d, cd_dynamic_net *n, int64_t size, uint32_t k, void *to,
                               cdmpp_err *err) {
    cd_graph_shape box, whole;
    if (size == n->size) return cd_network_live_read(n->live, k, to, err);
    cd_dynamic_shape(&d->result[k], size, &box);
    cd_dynamic_shape(&d->result[k], n->size, &whole);
    CD_TRY(cd_network_live_read(n->live, k, d->scratch, err));
    cd_dynamic_copy_box(&box, cd_expr_dtype_bytes(d->result[k].dtype), &whole, d->scratch, &box,
                        to);
    return CDMPP_OK;
}

cdmpp_status cd_dynamic_run(cd_dynamic *d, cd_dynamic_net *n, int64_t size,
                            const void *const *input, void *const *result, cd_dynamic_times *t,
                            cdmpp_err *err) {
    double pass;
    const double from = cd_clock_wall();
    for (uint32_t k = 0; k < d->n_input; k++) CD_TRY(put_input(d, n, size, k, input[k], err));
    cd_network_live_pass(n->live, &pass);
    for (uint32_t k = 0; k < d->n_result; k++) CD_TRY(get_result(d, n, size, k, result[k], err));
    if (t) *t = (cd_dynamic_times){.copy_s = cd_clock_wall() - from - pass, .pass_s = pass};
    return CDMPP_OK;
}

cdmpp_status cd_dynamic_call(cd_dynamic *d, int64_t size, const void *const *input,
                             void *const *result, cd_dynamic_times *t, cdmpp_err *err) {
    size_t k;
    const double from = cd_clock_wall();
    CD_TRY(cd_dynamic_choose(d, size, &k, err));
    const double chosen = cd_clock_wall() - from;
    CD_TRY(cd_dynamic_run(d, &d->net[k], size, input, result, t, err));
    if (t) t->choose_s = chosen;
    return CDMPP_OK;
}

/* ---- open ---- */

static cdmpp_status make_scratch(cd_dynamic *d, cdmpp_err *err) {
    int64_t most = 0;
    for (size_t p = 0; p < d->n; p++)
        for (uint32_t k = 0; k < d->n_input + d->n_result; k++) {
            const cd_dynamic_value *v = k < d->n_input ? &d->input[k] : &d->result[k - d->n_input];
            cd_graph_shape s;
            cd_dynamic_shape(v, d->net[p].size, &s);
            const int64_t bytes = cd_dynamic_shape_bytes(&s, v->dtype);
            if (bytes > most) most = bytes;
        }
    d->scratch = cd_arena_alloc(&d->arena, (size_t)most + 1, 1);
    return d->scratch ? CDMPP_OK : CD_FAIL(err, ENOMEM, "a call");
}

/* (2) of dynamic.h, for the step from point k - 1 to point k. */
static cdmpp_status try_padding(cd_dynamic *d, size_t k, cdmpp_err *err) {
    const int64_t size = d->net[k - 1].size;
    cd_dynamic_data x = {0};
    cdmpp_status st = cd_dynamic_data_make(d, size, &x, err);
    if (!st)
        st = cd_dynamic_run(d, &d->net[k - 1], size, (const void *const *)x.input, x.expect, NULL,
                            err);
    if (!st)
        st = cd_dynamic_run(d, &d->net[k], size, (const void *const *)x.input, x.result, NULL, err);
    const double apart = st ? 0 : cd_dynamic_data_difference(d, size, &x);
    cd_arena_free(&x.arena);
    if (st || apart <= CD_DYNAMIC_SAME) return st;
    char text[200];
    (void)snprintf(text, sizeof text,
                   "padding changes results: data of %s=%lld in programs of %lld, by %.2g of the "
                   "largest value",
                   d->o->sizes->over, (long long)size, (long long)d->net[k].size, apart);
    d->only_points = cd_arena_text(&d->arena, text);
    return d->only_points ? CDMPP_OK : CD_FAIL(err, ENOMEM, "a text");
}

static cdmpp_status open_all(cd_dynamic *d, cdmpp_err *err) {
    const cd_dynamic_options *o = d->o;
    const cd_measure_options m = {
        .jobs = o->jobs, .pin = true, .build_limit_s = LONGEST_BUILD_S, .stop = o->stop};
    CD_TRY(cd_measure_open(&m, &d->measure, err));
    if (!(d->net = CD_NEWN(&d->arena, cd_dynamic_net, o->sizes->n)))
        return CD_FAIL(err, ENOMEM, "points");
    for (size_t k = 0; k < o->sizes->n; k++) {
        d->n++; /* closed after an error too */
        CD_TRY(cd_dynamic_net_open(d, o->sizes->size[k], &d->net[k], err));
        if (o->stop && *o->stop) return CD_FAIL(err, EINTERRUPTED, "while programs were made");
    }
    CD_TRY(cd_dynamic_values(d, err));
    CD_TRY(make_scratch(d, err));
    for (size_t k = 1; k < d->n && !d->only_points; k++) CD_TRY(try_padding(d, k, err));
    return CDMPP_OK;
}

cdmpp_status cd_dynamic_open(const cd_dynamic_options *o, cd_dynamic **out, cdmpp_err *err) {
    cd_dynamic *d = cd_mem_zalloc(1, sizeof *d);
    *out = NULL;
    if (!d) return CD_FAIL(err, ENOMEM, "a network");
    d->o = o;
    const cdmpp_status st = open_all(d, err);
    if (st) cd_dynamic_close(d);
    else *out = d;
    return st;
}

void cd_dynamic_close(cd_dynamic *d) {
    if (!d) return;
    for (size_t k = 0; k < d->n; k++) cd_dynamic_net_close(&d->net[k]);
    cd_measure_close(d->measure);
    cd_arena_free(&d->arena);
    cd_mem_free(d);
}
