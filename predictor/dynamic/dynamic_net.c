/* A network at one size, and its inputs and results as functions of the size. */
#include "predictor/dynamic/dynamic_internal.h"

#include <stdio.h>
#include <string.h>

enum { VECTOR_BYTES = 64 };

void cd_dynamic_net_close(cd_dynamic_net *n) {
    cd_network_live_close(n->live);
    cd_graph_free(n->graph);
    cd_arena_free(&n->arena);
    *n = (cd_dynamic_net){0};
}

cdmpp_status cd_dynamic_net_open(cd_dynamic *d, int64_t size, cd_dynamic_net *n, cdmpp_err *err) {
    const cd_dynamic_options *o = d->o;
    const char *target = o->target ? o->target : "llvm";
    const int threads =
        cd_target_option(target, "-num-cores").n ? cd_backend_cpu_threads(target) : 1;
    cd_network_source s = o->network;
    const cd_onnx_miss *miss;
    uint32_t n_miss;
    n->size = size;
    s.contents = true;
    CD_TRY(cd_network_sizes_at(o->sizes, &n->arena, size, &s, err));
    CD_TRY(cd_network_source_read(&s, &n->graph, &miss, &n_miss, err));
    if (n_miss)
        return CD_FAIL(err, EUNSUPPORTED, "%s %.60s: %s", miss[0].op, miss[0].node, miss[0].reason);
    n->hardware = cd_target_hardware(false, threads, VECTOR_BYTES);
    n->o = (cd_network_values_options){.graph = n->graph,
                                       .target = target,
                                       .hardware = n->hardware,
                                       .threads = threads,
                                       .log = o->log,
                                       .n_log = o->n_log,
                                       .trials = o->trials ? o->trials : CD_DYNAMIC_TRIALS,
                                       .seed = o->seed,
                                       .measure = d->measure,
                                       .stop = o->stop};
    if (o->layout) (void)cd_workload_layout_parse(o->layout, &n->o.layout);
    return cd_network_live_open(&n->o, &n->live, err);
}

/* ---- values over the size ---- */

int64_t cd_dynamic_shape_bytes(const cd_graph_shape *s, cd_dtype t) {
    return cd_graph_shape_elements(s) * (int64_t)cd_expr_dtype_bytes(t);
}

static const cd_graph_tensor *value_of(const cd_dynamic_net *n, bool result, uint32_t k) {
    return result ? &n->graph->tensor[n->graph->output[k]]
                  : cd_network_live_input_tensor(n->live, k);
}

void cd_dynamic_shape(const cd_dynamic_value *v, int64_t size, cd_graph_shape *out) {
    *out = (cd_graph_shape){.rank = v->rank};
    for (uint32_t i = 0; !v->points && i < v->rank; i++)
        out->dim[i] = v->base[i] + v->per[i] * size;
    for (size_t p = 0; v->points && p < v->points->n; p++)
        if (v->points->net[p].size == size)
            *out = value_of(&v->points->net[p], v->result, v->k)->shape;
}

static bool is_at(const cd_dynamic_value *v, int64_t size, const cd_graph_shape *s) {
    cd_graph_shape want;
    cd_dynamic_shape(v, size, &want);
    return want.rank == s->rank && !memcmp(want.dim, s->dim, s->rank * sizeof *s->dim);
}

/* By the first and the last point; the others must agree. */
static cdmpp_status take_value(cd_dynamic *d, bool result, uint32_t k, cd_dynamic_value *v,
                               cdmpp_err *err) {
    const cd_dynamic_net *a = &d->net[0], *b = &d->net[d->n - 1];
    const cd_graph_tensor *x = value_of(a, result, k), *y = value_of(b, result, k);
    bool linear = true;
    *v = (cd_dynamic_value){
        .name = x->name, .dtype = x->dtype, .rank = x->shape.rank, .k = k, .result = result};
    if (x->dtype != y->dtype || x->shape.rank != y->shape.rank)
        return CD_FAIL(err, EUNSUPPORTED, "%.80s is another kind of tensor at another size",
                       x->name);
    for (uint32_t i = 0; i < v->rank; i++) {
        v->per[i] = (y->shape.dim[i] - x->shape.dim[i]) / (b->size - a->size);
        v->base[i] = x->shape.dim[i] - v->per[i] * a->size;
    }
    for (size_t p = 0; p < d->n; p++)
        linear &= is_at(v, d->net[p].size, &value_of(&d->net[p], result, k)->shape);
    if (linear) return CDMPP_OK;
    v->points = d;
    if (d->only_points) return CDMPP_OK;
    char text[160];
    (void)snprintf(text, sizeof text,
                   "a dimension of %.80s is no multiple of the size plus a number", x->name);
    d->only_points = cd_arena_text(&d->arena, text);
    return d->only_points ? CDMPP_OK : CD_FAIL(err, ENOMEM, "a value");
}

/* A result whose buffer is not as large as its tensor would be read past its end. */
static cdmpp_status check_net(const cd_dynamic *d, const cd_dynamic_net *n, cdmpp_err *err) {
    if (cd_network_live_inputs(n->live) != d->n_input || n->graph->n_output != d->n_result)
        return CD_FAIL(err, EUNSUPPORTED, "the network has other inputs or results at size %lld",
                       (long long)n->size);
    for (uint32_t k = 0; k < d->n_result; k++) {
        const cd_workload_buffer *b = cd_network_live_result(n->live, k);
        const cd_graph_tensor *t = value_of(n, true, k);
        if (b->dtype != t->dtype ||
            cd_graph_shape_elements(&b->shape) != cd_graph_shape_elements(&t->shape))
            return CD_FAIL(err, EUNSUPPORTED, "result %.80s is not computed as it is", t->name);
    }
    return CDMPP_OK;
}

cdmpp_status cd_dynamic_values(cd_dynamic *d, cdmpp_err *err) {
    d->n_input = cd_network_live_inputs(d->net[0].live);
    d->n_result = d->net[0].graph->n_output;
    if (!d->n_input || !d->n_result)
        return CD_FAIL(err, EUNSUPPORTED, "the network has no %s",
                       d->n_input ? "results" : "inputs that are data");
    for (size_t p = 0; p < d->n; p++) CD_TRY(check_net(d, &d->net[p], err));
    d->input = CD_NEWN(&d->arena, cd_dynamic_value, d->n_input);
    d->result = CD_NEWN(&d->arena, cd_dynamic_value, d->n_result);
    if (!d->input || !d->result) return CD_FAIL(err, ENOMEM, "values");
    for (uint32_t k = 0; k < d->n_input; k++) CD_TRY(take_value(d, false, k, &d->input[k], err));
    for (uint32_t k = 0; k < d->n_result; k++) CD_TRY(take_value(d, true, k, &d->result[k], err));
    return CDMPP_OK;
}
