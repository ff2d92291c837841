/* Nodes of a file, one after the other, become nodes of the graph. The order of the cases matters:
 * the file's functions come before ONNX's operators of the same name; Constant, If, Loop and Scan
 * are read here; all others go to cd_graph_add, and where it does not support one, to missing(). */
#include <stdio.h>
#include <string.h>

#include "profiler/network/onnx/onnx_expand_internal.h"

typedef struct operands {
    uint32_t *in, *out;  /* (n_input) (n_output) of the node */
    const char *unknown; /* an operand whose shape nobody knows; NULL: none */
} operands;

static cdmpp_status resolve(cd_onnx_reader *r, const cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                            operands *p, cdmpp_err *err) {
    *p = (operands){CD_NEWN(r->a, uint32_t, n->n_input + 1),
                    CD_NEWN(r->a, uint32_t, n->n_output + 1), NULL};
    if (!p->in || !p->out) return CD_FAIL(err, ENOMEM, "a node");
    for (size_t i = 0; i < n->n_input; i++) {
        const char *name = cd_onnx_text(n->input[i]);
        const uint32_t *t = *name ? cd_onnx_look_up(s, name) : NULL;
        if (*name && !t)
            return CD_FAIL(err, ESCHEMA, "operand \"%s\" is not defined anywhere", name);
        p->in[i] = t ? *t : CD_GRAPH_NONE;
        if (p->in[i] != CD_ONNX_UNKNOWN) continue;
        p->unknown = name;
        p->in[i] = CD_GRAPH_NONE;
    }
    return CDMPP_OK;
}

/* Results by the names that the file has for them. A constant of texts is no tensor. */
static cdmpp_status define(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                           const uint32_t *out, cdmpp_err *err) {
    for (size_t i = 0; i < n->n_output; i++) {
        const char *name = cd_onnx_text(n->output[i]);
        if (!*name) continue;
        CD_TRY(cd_onnx_define(r, s, name, out ? out[i] : CD_ONNX_UNKNOWN, err));
        if (out && out[i] != CD_ONNX_UNKNOWN) CD_TRY(cd_graph_rename(r->g, out[i], name, err));
    }
    return CDMPP_OK;
}

static const char *node_name(const CdOnnx__NodeProto *n) {
    const char *name = cd_onnx_text(n->name);
    return *name || !n->n_output ? name : cd_onnx_text(n->output[0]);
}

/* An operand of an unsupported node. */
static cdmpp_status keep(cd_onnx_reader *r, uint32_t tensor, cdmpp_err *err) {
    if (CD_GROW_IN(r->a, r->kept, r->n_kept, r->cap_kept))
        return CD_FAIL(err, ENOMEM, "unsupported nodes");
    r->kept[r->n_kept++] = tensor;
    return CDMPP_OK;
}

/* An unsupported node: opaque where the file states its results' shapes, else no node, and its
 * results are defined as unknown. */
static cdmpp_status missing(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                            operands *p, const char *reason, cdmpp_err *err) {
    cd_graph_shape *shape = CD_NEWN(r->a, cd_graph_shape, n->n_output + 1);
    cd_dtype *type = CD_NEWN(r->a, cd_dtype, n->n_output + 1);
    bool known = false;
    if (!shape || !type) return CD_FAIL(err, ENOMEM, "a node");
    if (cd_onnx_own_domain(n->domain) && !p->unknown)
        CD_TRY(cd_onnx_sizes(r, s, n, p->in, shape, type, &reason, &known, err));
    const uint32_t *from = p->unknown ? cd_onnx_map_find(&s->cause, p->unknown) : NULL,
                   cause = from ? *from : r->n_miss;
    CD_TRY(cd_onnx_add_miss(r, n, reason, err));
    size_t stated = 0;
    while (!known && stated < n->n_output &&
           cd_onnx_file_shape(r, s, cd_onnx_text(n->output[stated]), &shape[stated], &type[stated]))
        stated++;
    known = known || (stated && stated == n->n_output);
    if (!known) {
        bool old;
        for (size_t i = 0; i < n->n_input; i++)
            if (p->in[i] != CD_GRAPH_NONE) CD_TRY(keep(r, p->in[i], err));
        for (size_t i = 0; i < n->n_output; i++)
            CD_TRY(cd_onnx_map_put(&s->cause, r->a, cd_onnx_text(n->output[i]), cause, &old, err));
        return define(r, s, n, NULL, err);
    }
    CD_TRY(cd_graph_opaque(r->g, node_name(n), cd_onnx_text(n->domain), cd_onnx_text(n->op_type),
                           p->in, (uint32_t)n->n_input, shape, type, p->out, (uint32_t)n->n_output,
                           err));
    return define(r, s, n, p->out, err);
}

/* Constant: a tensor in the attribute of whichever name it has. */
static cdmpp_status constant(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                             cdmpp_err *err) {
    cd_graph_attr *a;
    uint32_t k, t;
    operands p;
    const CdOnnx__AttributeProto *v = cd_onnx_attr(s, n, "value");
    const char *name = n->n_output ? cd_onnx_text(n->output[0]) : "";
    CD_TRY(resolve(r, s, n, &p, err));
    if (n->n_output != 1)
        return CD_FAIL(err, ESCHEMA, "Constant: expected one result, found %zu", n->n_output);
    if (v && v->t) {
        CD_TRY(cd_onnx_tensor(r, v->t, name, false, &t, err));
        return define(r, s, n, &t, err);
    }
    CD_TRY(cd_onnx_attrs(r, s, n, &a, &k, err));
    for (uint32_t i = 0; i < k; i++) {
        const bool real = a[i].kind == CD_GRAPH_ATTR_FLOAT || a[i].kind == CD_GRAPH_ATTR_FLOATS;
        const bool list = a[i].kind == CD_GRAPH_ATTR_INTS || a[i].kind == CD_GRAPH_ATTR_FLOATS;
        const cd_graph_shape shape = {list, {a[i].n}};
        if (a[i].kind == CD_GRAPH_ATTR_STR || strncmp(a[i].name, "value", 5)) continue;
        CD_TRY(cd_graph_constant(r->g, name, real ? CD_F32 : CD_I64, &shape,
                                 real   ? NULL
                                 : list ? a[i].ints
                                        : &a[i].i,
                                 !real  ? NULL
                                 : list ? a[i].floats
                                        : &a[i].f,
                                 &t, err));
        return define(r, s, n, &t, err);
    }
    return missing(r, s, n, &p, "a constant of texts, or sparse", err);
}

/* With another batch size than the file's: a Reshape whose target begins with the old one. */
static cdmpp_status new_batch(cd_onnx_reader *r, const CdOnnx__NodeProto *n, operands *p,
                              cdmpp_err *err) {
    if (!r->old_batch || r->old_batch == r->o->batch ||
        strcmp(cd_onnx_text(n->op_type), "Reshape") || n->n_input != 2)
        return CDMPP_OK;
    if (p->in[0] == CD_GRAPH_NONE || p->in[1] == CD_GRAPH_NONE) return CDMPP_OK;
    const cd_graph_tensor *x = &r->g->tensor[p->in[0]], *to = &r->g->tensor[p->in[1]];
    if (cd_graph_tensor_is_static(x) || !x->shape.rank || x->shape.dim[0] != r->o->batch)
        return CDMPP_OK;
    if (!to->value || to->shape.rank != 1 || to->shape.dim[0] < 1 || to->value[0] != r->old_batch)
        return CDMPP_OK;
    int64_t *v = CD_NEWN(r->a, int64_t, (size_t)to->shape.dim[0]);
    if (!v) return CD_FAIL(err, ENOMEM, "a shape");
    memcpy(v, to->value, (size_t)to->shape.dim[0] * sizeof *v);
    v[0] = r->o->batch;
    const cd_graph_shape shape = to->shape;
    return cd_graph_constant(r->g, to->name, CD_I64, &shape, v, NULL, &p->in[1], err);
}

/* An operand whose content is in a file that is not there? */
static const char *lost(const cd_onnx_reader *r, const CdOnnx__NodeProto *n) {
    for (size_t i = 0; i < n->n_input; i++)
        if (cd_onnx_map_find(&r->lost, cd_onnx_text(n->input[i]))) return cd_onnx_text(n->input[i]);
    return NULL;
}

/* An ordinary operator. Only EUNSUPPORTED makes a miss; other errors mean an invalid file. A shape
 * that depends on a weight whose external file is absent is an error of the file, not of the
 * operator. */
static cdmpp_status plain(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                          operands *p, cdmpp_err *err) {
    cd_graph_attr *attr;
    uint32_t n_attr;
    cdmpp_err why = {0};
    CD_TRY(cd_onnx_attrs(r, s, n, &attr, &n_attr, err));
    CD_TRY(new_batch(r, n, p, err));
    cdmpp_status st =
        cd_graph_attrs_take_known(r->g, cd_onnx_text(n->op_type), attr, &n_attr, &why);
    if (!st)
        st = cd_graph_add(r->g, node_name(n), cd_onnx_text(n->op_type), p->in, (uint32_t)n->n_input,
                          attr, n_attr, p->out, (uint32_t)n->n_output, &why);
    if (!st) return define(r, s, n, p->out, err);
    if (st == CDMPP_EUNSUPPORTED && lost(r, n))
        return CD_FAIL(err, EIO,
                       "the content of \"%s\" gives a shape, but its file \"%s\" cannot be read",
                       lost(r, n), r->lost_why);
    if (st == CDMPP_EUNSUPPORTED) return missing(r, s, n, p, why.msg, err);
    cd_err_from(err, &why);
    if (err && r->old_batch && r->old_batch != r->o->batch && st == CDMPP_ESCHEMA)
        return CD_FAIL(err, ESCHEMA,
                       "%.120s (the file may hold its batch size of %lld in constants)", why.msg,
                       (long long)r->old_batch);
    return st;
}

/* An operator that is a combination of others: its results have the names that the file has for
 * them. */
static cdmpp_status expanded(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                             operands *p, cdmpp_err *err) {
    const char *why;
    CD_TRY(cd_onnx_expand(r, s, n, p->in, p->out, &why, err));
    return why ? missing(r, s, n, p, why, err) : define(r, s, n, p->out, err);
}

/* A node that reads an unknown name. */
static cdmpp_status behind(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                           operands *p, cdmpp_err *err) {
    char why[400], type[64];
    const uint32_t *cause = cd_onnx_map_find(&s->cause, p->unknown),
                   *of = cd_onnx_map_find(&r->no_type, p->unknown);
    if (of) {
        snprintf(why, sizeof why, "it reads \"%.100s\", which holds %s", p->unknown,
                 cd_graph_dtype_name((int32_t)*of, type, sizeof type));
        return missing(r, s, n, p, why, err);
    }
    int n_why =
        snprintf(why, sizeof why, "it reads \"%.100s\", whose shape nobody knows", p->unknown);
    if (cause)
        snprintf(why + n_why, sizeof why - (size_t)n_why, ": it is behind %.60s (%.60s): %.120s",
                 r->miss[*cause].node, r->miss[*cause].op, r->miss[*cause].reason);
    return missing(r, s, n, p, why, err);
}

/* See the opening comment for the order of the cases. Nodes are counted with those of functions, so
 * that functions that call each other cannot make the graph grow without limit. */
static cdmpp_status node(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                         cdmpp_err *err) {
    operands p;
    const char *op = cd_onnx_text(n->op_type), *why = NULL;
    const bool own = cd_onnx_own_domain(n->domain);
    const CdOnnx__FunctionProto *f = cd_onnx_function(r, n);
    if (r->n_node++ == CD_ONNX_MAX_NODE)
        return CD_FAIL(err, ERANGE, "more than %u nodes", CD_ONNX_MAX_NODE);
    if (s->depth && r->n_expanded++ == CD_ONNX_MAX_EXPANDED)
        return CD_FAIL(err, ERANGE,
                       "functions, branches and bodies would become more than %u nodes",
                       CD_ONNX_MAX_EXPANDED);
    if (f) return cd_onnx_inline(r, s, n, f, err);
    if (own && !strcmp(op, "Constant")) return constant(r, s, n, err);
    CD_TRY(resolve(r, s, n, &p, err));
    if (own && (!strcmp(op, "If") || !strcmp(op, "Loop"))) {
        CD_TRY((*op == 'I' ? cd_onnx_if : cd_onnx_loop)(r, s, n, &why, err));
        return why ? missing(r, s, n, &p, why, err) : CDMPP_OK;
    }
    if (own && !strcmp(op, "Scan"))
        return missing(r, s, n, &p, "how often its body runs is not known before it runs", err);
    const bool combined = cd_onnx_expansion_of(n) != NULL;
    if (!own && !combined)
        return missing(r, s, n, &p, "an operator of another domain than ONNX's", err);
    if (p.unknown) return behind(r, s, n, &p, err);
    if (combined) return expanded(r, s, n, &p, err);
    return plain(r, s, n, &p, err);
}

cdmpp_status cd_onnx_nodes(cd_onnx_reader *r, cd_onnx_scope *s, CdOnnx__NodeProto *const *list,
                           size_t n, cdmpp_err *err) {
    const uint32_t *order;
    CD_TRY(cd_onnx_order(r->a, list, n, &order, err));
    for (size_t i = 0; i < n; i++) {
        const cdmpp_status st = node(r, s, list[order[i]], err);
        if (st) return err && err->key[0] ? st : cd_err_key(err, st, node_name(list[order[i]]));
    }
    return CDMPP_OK;
}
