/* Names of a scope, the list of unsupported nodes, and shapes that the file states for results. */
#include "profiler/network/onnx/onnx_internal.h"

const uint32_t *cd_onnx_look_up(const cd_onnx_scope *s, const char *name) {
    for (; s; s = s->up) {
        const uint32_t *t = cd_onnx_map_find(&s->name, name);
        if (t) return t;
    }
    return NULL;
}

cdmpp_status cd_onnx_define(cd_onnx_reader *r, cd_onnx_scope *s, const char *name, uint32_t tensor,
                            cdmpp_err *err) {
    bool old;
    if (cd_onnx_look_up(s, name)) return CD_FAIL(err, ESCHEMA, "\"%s\" is defined twice", name);
    return cd_onnx_map_put(&s->name, r->a, name, tensor, &old, err);
}

cdmpp_status cd_onnx_add_miss(cd_onnx_reader *r, const CdOnnx__NodeProto *n, const char *reason,
                              cdmpp_err *err) {
    if (CD_GROW_IN(&r->g->arena, r->miss, r->n_miss, r->cap_miss))
        return CD_FAIL(err, ENOMEM, "unsupported nodes");
    const char *name = cd_onnx_text(n->name);
    if (!*name && n->n_output) name = cd_onnx_text(n->output[0]);
    const cd_onnx_miss m = {cd_graph_keep(r->g, name), cd_graph_keep(r->g, n->op_type),
                            cd_graph_keep(r->g, n->domain), cd_graph_keep(r->g, reason)};
    if (!m.node || !m.op || !m.domain || !m.reason)
        return CD_FAIL(err, ENOMEM, "unsupported nodes");
    r->miss[r->n_miss++] = m;
    return CDMPP_OK;
}

cdmpp_status cd_onnx_index_shapes(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__GraphProto *g,
                                  cdmpp_err *err) {
    const size_t n = g->n_value_info + g->n_output;
    bool old;
    s->info = CD_NEWN(r->a, CdOnnx__ValueInfoProto *, n + 1);
    if (!s->info) return CD_FAIL(err, ENOMEM, "%zu shapes", n);
    for (size_t i = 0; i < n; i++) {
        s->info[i] = i < g->n_value_info ? g->value_info[i] : g->output[i - g->n_value_info];
        CD_TRY(cd_onnx_map_put(&s->shape, r->a, cd_onnx_text(s->info[i]->name), (uint32_t)i, &old,
                               err));
    }
    return CDMPP_OK;
}

/* Stated shapes hold for the batch size of the file: with another one they are of no use. */
bool cd_onnx_file_shape(const cd_onnx_reader *r, const cd_onnx_scope *s, const char *name,
                        cd_graph_shape *shape, cd_dtype *t) {
    const uint32_t *i = cd_onnx_map_find(&s->shape, name);
    const CdOnnx__TypeProto *type = i ? s->info[*i]->type : NULL;
    if (!type || type->value_case != CD_ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        !type->tensor_type->shape || r->old_batch)
        return false;
    const CdOnnx__TensorShapeProto *d = type->tensor_type->shape;
    if (d->n_dim > CD_GRAPH_MAX_RANK || !cd_graph_dtype(type->tensor_type->elem_type, t))
        return false;
    *shape = (cd_graph_shape){.rank = (uint32_t)d->n_dim};
    for (size_t k = 0; k < d->n_dim; k++) {
        if (d->dim[k]->value_case != CD_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            return false;
        shape->dim[k] = d->dim[k]->dim_value;
    }
    return !cd_graph_shape_check(shape, NULL);
}
