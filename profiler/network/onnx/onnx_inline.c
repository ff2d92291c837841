/* Nodes that hold other nodes: calls of the file's functions, and the branches of If. Both are read as if their nodes stood in the
 * place of the call, in a scope of their own. */
#include <string.h>

#include "profiler/network/onnx/onnx_internal.h"

int64_t cd_onnx_opset(CdOnnx__OperatorSetIdProto *const *set, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (cd_onnx_own_domain(set[i]->domain)) return set[i]->version;
    return 0;
}

const CdOnnx__FunctionProto *cd_onnx_function(const cd_onnx_reader *r, const CdOnnx__NodeProto *n) {
    for (size_t i = 0; i < r->model->n_functions; i++) {
        const CdOnnx__FunctionProto *f = r->model->functions[i];
        if (!strcmp(cd_onnx_text(f->name), cd_onnx_text(n->op_type)) && !strcmp(cd_onnx_text(f->domain), cd_onnx_text(n->domain))) return f;
    }
    return NULL;
}

/* Results of an inner scope under the names that the node has for them; tensors from `first` on are its own. */
static cdmpp_status give_back(cd_onnx_reader *r, cd_onnx_scope *s, const cd_onnx_scope *in, const CdOnnx__NodeProto *n, uint32_t first,
                              const char *const *result, size_t n_result, cdmpp_err *err) {
    if (n->n_output > n_result) return CD_FAIL(err, ESCHEMA, "expected at most %zu results, found %zu", n_result, n->n_output);
    for (size_t i = 0; i < n->n_output; i++) {
        const char *name = cd_onnx_text(n->output[i]);
        const uint32_t *t = cd_onnx_look_up(in, cd_onnx_text(result[i]));
        if (!t) return CD_FAIL(err, ESCHEMA, "result \"%s\" is not defined anywhere", cd_onnx_text(result[i]));
        if (!*name) continue;
        CD_TRY(cd_onnx_define(r, s, name, *t, err));
        if (*t >= first && *t < r->g->n_tensor) CD_TRY(cd_graph_rename(r->g, *t, name, err));
    }
    return CDMPP_OK;
}

/* Defines the function's parameters in its scope: the tensors of the call, or none where the call leaves one out. */
static cdmpp_status formal(cd_onnx_reader *r, const cd_onnx_scope *s, cd_onnx_scope *in, const CdOnnx__NodeProto *n, const CdOnnx__FunctionProto *f, cdmpp_err *err) {
    if (n->n_input > f->n_input) return CD_FAIL(err, ESCHEMA, "expected at most %zu operands, found %zu", f->n_input, n->n_input);
    for (size_t i = 0; i < f->n_input; i++) {
        const char *name = i < n->n_input ? cd_onnx_text(n->input[i]) : "";
        const uint32_t *t = *name ? cd_onnx_look_up(s, name) : NULL;
        if (*name && !t) return CD_FAIL(err, ESCHEMA, "operand \"%s\" is not defined anywhere", name);
        CD_TRY(cd_onnx_define(r, in, cd_onnx_text(f->input[i]), t ? *t : CD_GRAPH_NONE, err));
    }
    return CDMPP_OK;
}

/* A function may ask for another opset than the model: the graph has that one while its nodes are read. */
cdmpp_status cd_onnx_inline(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n, const CdOnnx__FunctionProto *f, cdmpp_err *err) {
    cd_onnx_scope in = {.call = n, .caller = s, .depth = s->depth + 1};
    const int64_t opset = cd_onnx_opset(f->opset_import, f->n_opset_import);
    const int outer = r->g->opset;
    const uint32_t first = r->g->n_tensor;
    if (in.depth > CD_ONNX_MAX_NESTED) return CD_FAIL(err, ERANGE, "functions nested deeper than %d", CD_ONNX_MAX_NESTED);
    CD_TRY(formal(r, s, &in, n, f, err));
    CD_TRY(cd_onnx_function_defaults(r, &in, f, err));
    if (opset > 0 && opset < 100) r->g->opset = (int)opset;
    const cdmpp_status st = cd_onnx_nodes(r, &in, f->node, f->n_node, err);
    r->g->opset = outer;
    return st ? st : give_back(r, s, &in, n, first, (const char *const *)f->output, f->n_output, err);
}

static cdmpp_status branch(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n, const CdOnnx__GraphProto *g, cdmpp_err *err) {
    cd_onnx_scope in = {.up = s, .call = s->call, .caller = s->caller, .absent = s->absent, .n_absent = s->n_absent, .depth = s->depth + 1};
    const uint32_t first = r->g->n_tensor;
    if (in.depth > CD_ONNX_MAX_NESTED) return CD_FAIL(err, ERANGE, "branches nested deeper than %d", CD_ONNX_MAX_NESTED);
    const char **result = CD_NEWN(r->a, const char *, g->n_output + 1);
    if (!result) return CD_FAIL(err, ENOMEM, "a branch");
    for (size_t i = 0; i < g->n_output; i++) result[i] = cd_onnx_text(g->output[i]->name);
    CD_TRY(cd_onnx_index_shapes(r, &in, g, err));
    CD_TRY(cd_onnx_inputs(r, &in, g, err));
    CD_TRY(cd_onnx_nodes(r, &in, g->node, g->n_node, err));
    return give_back(r, s, &in, n, first, result, g->n_output, err);
}

cdmpp_status cd_onnx_if(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n, const char **why, cdmpp_err *err) {
    const uint32_t *t = n->n_input == 1 ? cd_onnx_look_up(s, cd_onnx_text(n->input[0])) : NULL;
    if (!t) return CD_FAIL(err, ESCHEMA, "If: expected one operand");
    const cd_graph_tensor *c = *t < r->g->n_tensor ? &r->g->tensor[*t] : NULL;
    *why = NULL;
    if (!c || !c->value || cd_graph_shape_elements(&c->shape) != 1) {
        *why = "which branch runs depends on the data";
        return CDMPP_OK;
    }
    const CdOnnx__AttributeProto *a = cd_onnx_attr(s, n, c->value[0] ? "then_branch" : "else_branch");
    if (!a || !a->g) return CD_FAIL(err, ESCHEMA, "If: expected then_branch and else_branch");
    return branch(r, s, n, a->g, err);
}
