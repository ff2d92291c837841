/* Calls of the file's functions are read as if the function's nodes stood in the place of the call,
 * in a scope of their own. */
#include <string.h>

#include "profiler/network/onnx/onnx_internal.h"

int64_t cd_onnx_opset(CdOnnx__OperatorSetIdProto *const *set, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (cd_onnx_own_domain(set[i]->domain)) return set[i]->version;
    return 0;
}

cdmpp_status cd_onnx_index_functions(cd_onnx_reader *r, cdmpp_err *err) {
    bool old;
    for (size_t i = r->model->n_functions; i > 0; i--)
        CD_TRY(cd_onnx_map_put(&r->function, r->a, cd_onnx_text(r->model->functions[i - 1]->name),
                               (uint32_t)(i - 1), &old, err));
    return CDMPP_OK;
}

const CdOnnx__FunctionProto *cd_onnx_function(const cd_onnx_reader *r, const CdOnnx__NodeProto *n) {
    const uint32_t *first = cd_onnx_map_find(&r->function, cd_onnx_text(n->op_type));
    for (size_t i = first ? *first : r->model->n_functions; i < r->model->n_functions; i++) {
        const CdOnnx__FunctionProto *f = r->model->functions[i];
        if (!strcmp(cd_onnx_text(f->name), cd_onnx_text(n->op_type)) &&
            !strcmp(cd_onnx_text(f->domain), cd_onnx_text(n->domain)))
            return f;
    }
    return NULL;
}

cdmpp_status cd_onnx_give_back(cd_onnx_reader *r, cd_onnx_scope *s, const cd_onnx_scope *in,
                               const CdOnnx__NodeProto *n, uint32_t first,
                               const char *const *result, size_t n_result, cdmpp_err *err) {
    if (n->n_output > n_result)
        return CD_FAIL(err, ESCHEMA, "expected at most %zu results, found %zu", n_result,
                       n->n_output);
    for (size_t i = 0; i < n->n_output; i++) {
        const char *name = cd_onnx_text(n->output[i]);
        const uint32_t *t = cd_onnx_look_up(in, cd_onnx_text(result[i]));
        if (!t)
            return CD_FAIL(err, ESCHEMA, "result \"%s\" is not defined anywhere",
                           cd_onnx_text(result[i]));
        if (!*name) continue;
        CD_TRY(cd_onnx_define(r, s, name, *t, err));
        if (*t >= first && *t < r->g->n_tensor) CD_TRY(cd_graph_rename(r->g, *t, name, err));
    }
    return CDMPP_OK;
}

/* Defines the function's parameters in its scope: the tensors of the call, or none where the call
 * leaves one out. */
static cdmpp_status formal(cd_onnx_reader *r, const cd_onnx_scope *s, cd_onnx_scope *in,
                           const CdOnnx__NodeProto *n, const CdOnnx__FunctionProto *f,
                           cdmpp_err *err) {
    if (n->n_input > f->n_input)
        return CD_FAIL(err, ESCHEMA, "expected at most %zu operands, found %zu", f->n_input,
                       n->n_input);
    for (size_t i = 0; i < f->n_input; i++) {
        const char *name = i < n->n_input ? cd_onnx_text(n->input[i]) : "";
        const uint32_t *t = *name ? cd_onnx_look_up(s, name) : NULL;
        if (*name && !t)
            return CD_FAIL(err, ESCHEMA, "operand \"%s\" is not defined anywhere", name);
        CD_TRY(cd_onnx_define(r, in, cd_onnx_text(f->input[i]), t ? *t : CD_GRAPH_NONE, err));
    }
    return CDMPP_OK;
}

/* A function may ask for another opset than the model: the graph has that one while its nodes are
 * read. */
cdmpp_status cd_onnx_inline(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                            const CdOnnx__FunctionProto *f, cdmpp_err *err) {
    cd_onnx_scope in = {.call = n, .caller = s, .depth = s->depth + 1};
    const int64_t opset = cd_onnx_opset(f->opset_import, f->n_opset_import);
    const int outer = r->g->opset;
    const uint32_t first = r->g->n_tensor;
    if (in.depth > CD_ONNX_MAX_NESTED)
        return CD_FAIL(err, ERANGE, "functions nested deeper than %d", CD_ONNX_MAX_NESTED);
    CD_TRY(formal(r, s, &in, n, f, err));
    CD_TRY(cd_onnx_function_defaults(r, &in, f, err));
    if (opset > 0 && opset < 100) r->g->opset = (int)opset;
    const cdmpp_status st = cd_onnx_nodes(r, &in, f->node, f->n_node, err);
    r->g->opset = outer;
    return st ? st
              : cd_onnx_give_back(r, s, &in, n, first, (const char *const *)f->output, f->n_output,
                                  err);
}
