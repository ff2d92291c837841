/* Attributes of a node in the form that the graph has for them. Inside a function an attribute may
 * be a reference to one of the call, which may be a reference itself. */
#include <string.h>

#include "profiler/network/onnx/onnx_internal.h"

static const CdOnnx__AttributeProto *named(const CdOnnx__AttributeProto *const *a, size_t n,
                                           const char *name) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(cd_onnx_text(a[i]->name), name)) return a[i];
    return NULL;
}

/* What an attribute means: of a reference, the attribute of the function's call, else the
 * function's own default, followed outwards from call to call. */
static const CdOnnx__AttributeProto *deref(const cd_onnx_scope *s,
                                           const CdOnnx__AttributeProto *a) {
    while (a && a->ref_attr_name && *a->ref_attr_name) {
        const char *name = a->ref_attr_name;
        a = s && s->call ? named((const CdOnnx__AttributeProto *const *)s->call->attribute,
                                 s->call->n_attribute, name)
                         : NULL;
        if (!a && s)
            return named((const CdOnnx__AttributeProto *const *)s->absent, s->n_absent, name);
        s = s ? s->caller : NULL;
    }
    return a;
}

const CdOnnx__AttributeProto *cd_onnx_attr(const cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                                           const char *name) {
    for (size_t i = 0; i < n->n_attribute; i++)
        if (!strcmp(cd_onnx_text(n->attribute[i]->name), name)) return deref(s, n->attribute[i]);
    return NULL;
}

static const char *text_of(cd_arena *a, const ProtobufCBinaryData *b) {
    return cd_str_dup(a, (cd_str){(const char *)b->data, b->len});
}

/* Texts with commas between them: activations of a recurrent layer. */
static const char *texts_of(cd_arena *a, const CdOnnx__AttributeProto *p) {
    size_t n = 1, at = 0;
    for (size_t i = 0; i < p->n_strings; i++) n += p->strings[i].len + 1;
    char *s = CD_NEWN(a, char, n);
    for (size_t i = 0; s && i < p->n_strings; i++) {
        if (i) s[at++] = ',';
        if (p->strings[i].len) memcpy(s + at, p->strings[i].data, p->strings[i].len);
        at += p->strings[i].len;
    }
    return s;
}

/* Older files leave the type out: the field that is set decides. */
static int type_of(const CdOnnx__AttributeProto *p) {
    if (p->has_type && p->type) return (int)p->type;
    return p->has_f       ? CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT
           : p->has_i     ? CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT
           : p->has_s     ? CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING
           : p->n_floats  ? CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS
           : p->n_ints    ? CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS
           : p->n_strings ? CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS
                          : CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED;
}

static cdmpp_status reals(cd_arena *a, const CdOnnx__AttributeProto *p, cd_graph_attr *out,
                          cdmpp_err *err) {
    double *f = CD_NEWN(a, double, p->n_floats + 1);
    if (!f) return CD_FAIL(err, ENOMEM, "an attribute");
    for (size_t i = 0; i < p->n_floats; i++) f[i] = (double)p->floats[i];
    out->kind = CD_GRAPH_ATTR_FLOATS;
    out->floats = f;
    out->n = (uint32_t)p->n_floats;
    return CDMPP_OK;
}

/* false in *keep: of a kind that a graph's node does not have. */
static cdmpp_status convert(cd_arena *a, const CdOnnx__AttributeProto *p, cd_graph_attr *out,
                            bool *keep, cdmpp_err *err) {
    *keep = true;
    switch (type_of(p)) {
    case CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        out->kind = CD_GRAPH_ATTR_FLOAT;
        out->f = (double)p->f;
        break;
    case CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        out->kind = CD_GRAPH_ATTR_INT;
        out->i = p->i;
        break;
    case CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
    case CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS:
        out->kind = CD_GRAPH_ATTR_STR;
        out->s = type_of(p) == CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING ? text_of(a, &p->s)
                                                                                : texts_of(a, p);
        if (!out->s) return CD_FAIL(err, ENOMEM, "an attribute");
        break;
    case CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS: return reals(a, p, out, err);
    case CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        out->kind = CD_GRAPH_ATTR_INTS;
        out->ints = p->ints;
        out->n = (uint32_t)p->n_ints;
        break;
    default: *keep = false;
    }
    return CDMPP_OK;
}

/* The one element of ConstantOfShape's value, and its type. */
static cdmpp_status fill(cd_onnx_reader *r, const CdOnnx__TensorProto *t, cd_graph_attr *out,
                         uint32_t *n, cdmpp_err *err) {
    const int64_t *v;
    const double *f;
    CD_TRY(cd_onnx_content(r, t, 1, &v, &f, err));
    out[*n] = (cd_graph_attr){.name = "dtype", .kind = CD_GRAPH_ATTR_INT, .i = t->data_type};
    ++*n;
    if (!v && !f) return CDMPP_OK;
    out[*n] = (cd_graph_attr){.name = "value",
                              .kind = f ? CD_GRAPH_ATTR_FLOAT : CD_GRAPH_ATTR_INT,
                              .i = v ? *v : 0,
                              .f = f ? *f : 0};
    ++*n;
    return CDMPP_OK;
}

/* Two entries for each attribute are enough: ConstantOfShape's value becomes two. */
cdmpp_status cd_onnx_attrs(cd_onnx_reader *r, const cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                           cd_graph_attr **out, uint32_t *n_out, cdmpp_err *err) {
    cd_graph_attr *p = CD_NEWN(r->a, cd_graph_attr, 2 * n->n_attribute + 1);
    bool keep;
    *out = p;
    *n_out = 0;
    if (!p) return CD_FAIL(err, ENOMEM, "attributes");
    for (size_t i = 0; i < n->n_attribute; i++) {
        const char *name = cd_onnx_text(n->attribute[i]->name);
        const CdOnnx__AttributeProto *a = deref(s, n->attribute[i]);
        if (!a) continue;
        if (a->t && !strcmp(name, "value") &&
            !strcmp(cd_onnx_text(n->op_type), "ConstantOfShape")) {
            CD_TRY(fill(r, a->t, p, n_out, err));
            continue;
        }
        p[*n_out] = (cd_graph_attr){.name = name};
        CD_TRY(cd_err_key(err, convert(r->a, a, &p[*n_out], &keep, err), name));
        *n_out += keep;
    }
    return CDMPP_OK;
}
