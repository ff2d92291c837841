/* What a graph starts from: its inputs with their dimensions, its weights and constants. A
 * dimension's value comes from the first of these that is given: an option for its place, an option
 * for its name, the batch size, the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/network/onnx/onnx_internal.h"

/* Value of "key=value" among the options; false: not given. */
static cdmpp_status option(cd_onnx_reader *r, const char *key, bool *found, int64_t *v,
                           cdmpp_err *err) {
    const size_t n = strlen(key);
    *found = false;
    for (uint32_t i = 0; i < r->o->n_dim; i++) {
        const char *s = r->o->dim[i];
        char *end;
        if (strncmp(s, key, n) || s[n] != '=' || !n) continue;
        *v = strtoll(s + n + 1, &end, 10);
        if (end == s + n + 1 || *end || *v < 0)
            return CD_FAIL(err, EUSAGE, "dimension \"%s\": expected NAME=NUMBER", s);
        r->used[i] = *found = true;
    }
    return CDMPP_OK;
}

/* Dimension k of an input: an option of its place or name, the number in the file, the batch, which
 * is dimension `batch` (CD_GRAPH_NONE: none is). */
static cdmpp_status dimension(cd_onnx_reader *r, const char *input, uint32_t k,
                              const CdOnnx__TensorShapeProto__Dimension *d, uint32_t batch,
                              int64_t *v, cdmpp_err *err) {
    char place[256];
    const bool named = d->value_case == CD_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    const char *name = named ? cd_onnx_text(d->dim_param) : "";
    bool found, here;
    snprintf(place, sizeof place, "%s[%u]", input, k);
    CD_TRY(option(r, name, &found, v, err));
    CD_TRY(option(r, place, &here, v, err));
    const bool size = (found && r->batch_name && !strcmp(name, r->batch_name)) ||
                      (here && k == batch && r->batch_input && !strcmp(input, r->batch_input));
    if (size && r->o->batch > 0 && *v != r->o->batch)
        return CD_FAIL(err, EUSAGE, "dimension \"%s\" is the batch size: expected %lld, found %lld",
                       here ? place : name, (long long)r->o->batch, (long long)*v);
    if (found || here) return CDMPP_OK;
    const bool number = d->value_case == CD_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    if (named && r->batch_name && !strcmp(name, r->batch_name)) *v = r->o->batch;
    else if (k == batch && (!number || d->dim_value == r->old_batch)) *v = r->o->batch;
    else if (number && d->dim_value < 0)
        return CD_FAIL(err, ERANGE,
                       "dimension %u of input \"%s\" is %lld (%s--dim '%s=N' gives it a value)", k,
                       input, (long long)d->dim_value, k ? "" : "a batch size or ", place);
    else if (number) *v = d->dim_value;
    else
        return CD_FAIL(
            err, ESCHEMA,
            "dimension %u%s%s%s of input \"%s\" has no value (%s--dim '%s=N' gives it one)", k,
            *name ? ", \"" : "", name, *name ? "\"," : "", input, k ? "" : "a batch size or ",
            *name ? name : place);
    return CDMPP_OK;
}

static const CdOnnx__TypeProto__Tensor *tensor_type(const CdOnnx__ValueInfoProto *v) {
    return v->type && v->type->value_case == CD_ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
               ? v->type->tensor_type
               : NULL;
}

/* An input of a type that the graph does not have (a sequence, strings) is defined but unknown:
 * only what reads it is missing. */
static cdmpp_status input(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__ValueInfoProto *v,
                          bool data, uint32_t batch, cdmpp_err *err) {
    const char *name = cd_onnx_text(v->name);
    const CdOnnx__TypeProto__Tensor *t = tensor_type(v);
    cd_graph_shape shape = {0};
    cd_dtype type;
    uint32_t tensor;
    /* a sequence, a map: what reads it is missing */
    if (!t) return cd_onnx_define(r, s, name, CD_ONNX_UNKNOWN, err);
    if (!cd_graph_dtype(t->elem_type, &type)) {
        CD_TRY(cd_onnx_no_type(r, name, t->elem_type, err));
        return cd_onnx_define(r, s, name, CD_ONNX_UNKNOWN, err);
    }
    if (!t->shape) return CD_FAIL(err, ESCHEMA, "input \"%s\" has no shape", name);
    if (t->shape->n_dim > CD_GRAPH_MAX_RANK)
        return CD_FAIL(err, ERANGE, "input \"%s\": expected at most %d dimensions", name,
                       CD_GRAPH_MAX_RANK);
    shape.rank = (uint32_t)t->shape->n_dim;
    for (uint32_t k = 0; k < shape.rank; k++)
        CD_TRY(dimension(r, name, k, t->shape->dim[k],
                         data && r->o->batch > 0 ? batch : CD_GRAPH_NONE, &shape.dim[k], err));
    CD_TRY(data ? cd_graph_input(r->g, name, type, &shape, &tensor, err)
                : cd_graph_weight(r->g, name, type, &shape, &tensor, err));
    return cd_onnx_define(r, s, name, tensor, err);
}

static cdmpp_status initializers(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__GraphProto *g,
                                 cdmpp_err *err) {
    uint32_t tensor;
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name = cd_onnx_text(g->initializer[i]->name);
        if (s->depth == 0 && cd_onnx_map_find(&s->name, name)) continue; /* an input by option */
        CD_TRY(cd_onnx_tensor(r, g->initializer[i], name, true, &tensor, err));
        CD_TRY(cd_onnx_define(r, s, name, tensor, err));
    }
    for (size_t i = 0; i < g->n_sparse_initializer; i++) {
        const CdOnnx__SparseTensorProto *t = g->sparse_initializer[i];
        cd_graph_shape shape = {.rank = t->n_dims > CD_GRAPH_MAX_RANK ? CD_GRAPH_MAX_RANK + 1
                                                                      : (uint32_t)t->n_dims};
        cd_dtype type = CD_F32;
        for (uint32_t d = 0; d < shape.rank && d < CD_GRAPH_MAX_RANK; d++)
            shape.dim[d] = t->dims[d];
        const char *name = t->values ? cd_onnx_text(t->values->name) : "";
        tensor = CD_ONNX_UNKNOWN;
        if (t->values && !cd_graph_dtype(t->values->data_type, &type))
            CD_TRY(cd_onnx_no_type(r, name, t->values->data_type, err));
        else CD_TRY(cd_graph_weight(r->g, name, type, &shape, &tensor, err));
        CD_TRY(cd_onnx_define(r, s, name, tensor, err));
    }
    return CDMPP_OK;
}

/* The batch size that the file is written for, or its name. */
static void find_batch(cd_onnx_reader *r, const CdOnnx__GraphProto *g, const bool *data,
                       const uint32_t *axis) {
    for (size_t i = 0; i < g->n_input; i++) {
        const CdOnnx__TypeProto__Tensor *t = data[i] ? tensor_type(g->input[i]) : NULL;
        if (!t || !t->shape || t->shape->n_dim <= axis[i]) continue;
        const CdOnnx__TensorShapeProto__Dimension *d = t->shape->dim[axis[i]];
        r->g->batch_axis = axis[i];
        if (r->o->batch <= 0) return;
        r->batch_input = cd_onnx_text(g->input[i]->name);
        if (d->value_case == CD_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            r->old_batch = d->dim_value;
        if (d->value_case == CD_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
            *cd_onnx_text(d->dim_param))
            r->batch_name = d->dim_param;
        return;
    }
}

/* Inputs that are data become inputs of the graph, others weights. An input with an initializer is
 * left to initializers(), which also knows its content. */
static cdmpp_status main_inputs(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__GraphProto *g,
                                cdmpp_err *err) {
    const uint32_t *order;
    cd_onnx_map names = {0};
    const size_t n = g->n_initializer + g->n_sparse_initializer;
    bool old, *data = CD_NEWN(r->a, bool, g->n_input + 1);
    uint32_t *axis = CD_NEWN(r->a, uint32_t, g->n_input + 1);
    if (!data || !axis) return CD_FAIL(err, ENOMEM, "%zu inputs", g->n_input);
    CD_TRY(cd_onnx_order(r->a, g->node, g->n_node, &order, err));
    CD_TRY(cd_onnx_roles(r, g, order, data, err));
    CD_TRY(cd_onnx_batch_axes(r, g, order, axis, err));
    find_batch(r, g, data, axis);
    for (size_t i = 0; i < n; i++) {
        const CdOnnx__TensorProto *t = i < g->n_initializer
                                           ? g->initializer[i]
                                           : g->sparse_initializer[i - g->n_initializer]->values;
        if (!t) continue;
        CD_TRY(cd_onnx_map_put(&names, r->a, cd_onnx_text(t->name), 0, &old, err));
        if (old) return CD_FAIL(err, ESCHEMA, "\"%s\" is defined twice", cd_onnx_text(t->name));
    }
    for (size_t i = 0; i < g->n_input; i++)
        if (data[i] || !cd_onnx_map_find(&names, cd_onnx_text(g->input[i]->name)))
            CD_TRY(input(r, s, g->input[i], data[i], axis[i], err));
    return CDMPP_OK;
}

cdmpp_status cd_onnx_inputs(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__GraphProto *g,
                            cdmpp_err *err) {
    if (s->depth == 0) CD_TRY(main_inputs(r, s, g, err));
    CD_TRY(initializers(r, s, g, err));
    return CDMPP_OK;
}
