/* Reads an ONNX file: opens it, strips large contents, lets protobuf-c unpack the rest, and walks
 * the model into a graph. The messages live in a scratch arena that is freed when the graph stands;
 * what the graph keeps is copied. */
#include "profiler/network/onnx/onnx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/network/onnx/onnx_expand_internal.h"
#include "profiler/network/onnx/onnx_internal.h"

/* A hash table from names to numbers: open addressing in an arena, at most half full, doubled when
 * it would be more. Names are not copied. */

struct cd_onnx_slot {
    const char *name; /* NULL: free */
    uint32_t value;
};

static uint32_t hash(const char *s) { /* FNV-1a */
    uint32_t h = 2166136261U;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 16777619U;
    return h ^ h >> 15;
}

static struct cd_onnx_slot *slot(const cd_onnx_map *m, const char *name) {
    uint32_t k = hash(name);
    for (;; k++) {
        struct cd_onnx_slot *s = &m->slot[k & (m->cap - 1)];
        if (!s->name || !strcmp(s->name, name)) return s;
    }
}

uint32_t *cd_onnx_map_find(const cd_onnx_map *m, const char *name) {
    struct cd_onnx_slot *s = m->cap ? slot(m, name) : NULL;
    return s && s->name ? &s->value : NULL;
}

static cdmpp_status grow(cd_onnx_map *m, cd_arena *a, cdmpp_err *err) {
    cd_onnx_map more = {.n = m->n, .cap = m->cap ? m->cap * 2 : 64};
    more.slot = more.cap > m->cap ? cd_arena_zalloc(a, more.cap, sizeof *more.slot) : NULL;
    if (!more.slot) return CD_FAIL(err, ENOMEM, "%u names", m->n);
    for (uint32_t i = 0; i < m->cap; i++)
        if (m->slot[i].name) *slot(&more, m->slot[i].name) = m->slot[i];
    *m = more;
    return CDMPP_OK;
}

cdmpp_status cd_onnx_map_put(cd_onnx_map *m, cd_arena *a, const char *name, uint32_t value,
                             bool *old, cdmpp_err *err) {
    if (m->n * 2 >= m->cap) CD_TRY(grow(m, a, err));
    struct cd_onnx_slot *s = slot(m, name);
    *old = s->name != NULL;
    if (!s->name) m->n++;
    *s = (struct cd_onnx_slot){name, value};
    return CDMPP_OK;
}

/* The allocator that protobuf-c gets: memory of an arena, with a limit that grows with the size of
 * the input. free does nothing, the arena is freed at the end. */

static void *take(void *ctx, size_t n) {
    cd_onnx_quota *q = ctx;
    if (n > q->most - q->used) {
        q->over = true;
        return NULL;
    }
    q->used += n;
    void *p = cd_arena_alloc(q->a, n ? n : 1, 1);
    q->oom |= !p;
    return p;
}

static void drop(void *ctx, void *p) { /* dies with the arena */
    (void)ctx;
    (void)p;
}

/* For unpacking n bytes: 16 MiB and 40 bytes for each of them, 2 GiB at most. `q` outlives the
 * allocator. */
static ProtobufCAllocator onnx_quota_begin(cd_onnx_quota *q, cd_arena *a, size_t n) {
    const size_t want = CD_ONNX_QUOTA_BASE + CD_ONNX_QUOTA_PER_BYTE * n, most = CD_ONNX_QUOTA_MOST;
    *q = (cd_onnx_quota){.a = a, .n = n, .most = want < most ? want : most};
    return (ProtobufCAllocator){take, drop, q};
}

/* Why it failed: ERANGE, ENOMEM, or else EPARSE with this text. */
static cdmpp_status onnx_quota_why(const cd_onnx_quota *q, const char *text, cdmpp_err *err) {
    if (q->over)
        return CD_FAIL(err, ERANGE,
                       "%zu bytes would become more than %zu MiB: no ONNX model of sense", q->n,
                       q->most >> 20);
    return q->oom ? CD_FAIL(err, ENOMEM, "a model of %zu bytes", q->n)
                  : CD_FAIL(err, EPARSE, "%s", text);
}

/* Default values of a function's attributes: FunctionProto.attribute_proto. Newer definitions of
 * the format have this field and older ones do not; where the definition that we are built with
 * lacks it, it is read from the unknown fields. */

enum { FIELD = 11 };

/* The field of the definition, found with protobuf-c's descriptor; NULL: the definition does not
 * have it. */
static const CdOnnx__AttributeProto *const *known(const CdOnnx__FunctionProto *f, size_t *n) {
    const ProtobufCFieldDescriptor *d =
        protobuf_c_message_descriptor_get_field(f->base.descriptor, FIELD);
    const CdOnnx__AttributeProto *const *list;
    if (!d || d->label != PROTOBUF_C_LABEL_REPEATED ||
        d->descriptor != &cd_onnx__attribute_proto__descriptor)
        return NULL;
    memcpy(n, (const char *)f + d->quantifier_offset, sizeof *n);
    memcpy(&list, (const char *)f + d->offset, sizeof list);
    return list;
}

/* Bytes with their length in front. */
static cdmpp_status unpack_defaults(cd_onnx_reader *r, const ProtobufCMessageUnknownField *u,
                                    const CdOnnx__AttributeProto **out, cdmpp_err *err) {
    cd_onnx_quota q;
    ProtobufCAllocator alloc = onnx_quota_begin(&q, r->a, u->len);
    size_t k = 0;
    while (k < u->len && k < 10 && u->data[k] & 128) k++;
    *out = u->wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED && k < u->len
               ? cd_onnx__attribute_proto__unpack(&alloc, u->len - k - 1, u->data + k + 1)
               : NULL;
    return *out ? CDMPP_OK : onnx_quota_why(&q, "a function's attribute cannot be read", err);
}

/* onnx.c: fill s->absent, the function's default attributes. */
static cdmpp_status onnx_function_defaults(cd_onnx_reader *r, cd_onnx_scope *s,
                                           const CdOnnx__FunctionProto *f, cdmpp_err *err) {
    size_t n = 0;
    const CdOnnx__AttributeProto *const *list = known(f, &n);
    s->absent = CD_NEWN(r->a, const CdOnnx__AttributeProto *, n + f->base.n_unknown_fields + 1);
    if (!s->absent) return CD_FAIL(err, ENOMEM, "attributes of a function");
    for (size_t i = 0; i < n; i++) s->absent[s->n_absent++] = list[i];
    for (unsigned i = 0; i < f->base.n_unknown_fields; i++)
        if (f->base.unknown_fields[i].tag == FIELD) {
            CD_TRY(unpack_defaults(r, &f->base.unknown_fields[i], &s->absent[s->n_absent], err));
            s->n_absent++;
        }
    return CDMPP_OK;
}

/* Names of a scope, the list of unsupported nodes, and shapes that the file states for results. */

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

/* List a node as unsupported, with the reason; texts are copied. Errors: ENOMEM. */
static cdmpp_status onnx_add_miss(cd_onnx_reader *r, const CdOnnx__NodeProto *n, const char *reason,
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

/* Shape and type that the file states for a name; false: none, or not all of it, or the batch size
 * was replaced.
 *
 * Stated shapes hold for the batch size of the file: with another one they are of no use. */
static bool onnx_file_shape(const cd_onnx_reader *r, const cd_onnx_scope *s, const char *name,
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

/* Version of a domain "" in a list; 0: none.
 *
 * Calls of the file's functions are read as if the function's nodes stood in the place of the call,
 * in a scope of their own. */
static int64_t onnx_opset(CdOnnx__OperatorSetIdProto *const *set, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (cd_onnx_own_domain(set[i]->domain)) return set[i]->version;
    return 0;
}

/* Fills r->function. Errors: ENOMEM. */
static cdmpp_status onnx_index_functions(cd_onnx_reader *r, cdmpp_err *err) {
    bool old;
    for (size_t i = r->model->n_functions; i > 0; i--)
        CD_TRY(cd_onnx_map_put(&r->function, r->a, cd_onnx_text(r->model->functions[i - 1]->name),
                               (uint32_t)(i - 1), &old, err));
    return CDMPP_OK;
}

/* The function of the file that the node calls; NULL: none. */
static const CdOnnx__FunctionProto *onnx_function(const cd_onnx_reader *r,
                                                  const CdOnnx__NodeProto *n) {
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

/* Append the nodes of function f in the place of its call n. Errors: ERANGE (nesting), those of
 * cd_onnx_nodes.
 *
 * A function may ask for another opset than the model: the graph has that one while its nodes are
 * read. */
static cdmpp_status onnx_inline(cd_onnx_reader *r, cd_onnx_scope *s, const CdOnnx__NodeProto *n,
                                const CdOnnx__FunctionProto *f, cdmpp_err *err) {
    cd_onnx_scope in = {.call = n, .caller = s, .depth = s->depth + 1};
    const int64_t opset = onnx_opset(f->opset_import, f->n_opset_import);
    const int outer = r->g->opset;
    const uint32_t first = r->g->n_tensor;
    if (in.depth > CD_ONNX_MAX_NESTED)
        return CD_FAIL(err, ERANGE, "functions nested deeper than %d", CD_ONNX_MAX_NESTED);
    CD_TRY(formal(r, s, &in, n, f, err));
    CD_TRY(onnx_function_defaults(r, &in, f, err));
    if (opset > 0 && opset < 100) r->g->opset = (int)opset;
    const cdmpp_status st = cd_onnx_nodes(r, &in, f->node, f->n_node, err);
    r->g->opset = outer;
    return st ? st
              : cd_onnx_give_back(r, s, &in, n, first, (const char *const *)f->output, f->n_output,
                                  err);
}

/* Nodes of a file, one after the other, become nodes of the graph. The order of the cases matters:
 * the file's functions come before ONNX's operators of the same name; Constant, If, Loop and Scan
 * are read here; all others go to cd_graph_add, and where it does not support one, to missing(). */

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
    CD_TRY(onnx_add_miss(r, n, reason, err));
    size_t stated = 0;
    while (!known && stated < n->n_output &&
           onnx_file_shape(r, s, cd_onnx_text(n->output[stated]), &shape[stated], &type[stated]))
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
    const CdOnnx__FunctionProto *f = onnx_function(r, n);
    if (r->n_node++ == CD_ONNX_MAX_NODE)
        return CD_FAIL(err, ERANGE, "more than %u nodes", CD_ONNX_MAX_NODE);
    if (s->depth && r->n_expanded++ == CD_ONNX_MAX_EXPANDED)
        return CD_FAIL(err, ERANGE,
                       "functions, branches and bodies would become more than %u nodes",
                       CD_ONNX_MAX_EXPANDED);
    if (f) return onnx_inline(r, s, n, f, err);
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

enum { OPSET_LOW = 7, OPSET_KNOWN = 28 };

static cdmpp_status unpack(cd_arena *a, const cd_buf *b, const CdOnnx__ModelProto **out,
                           cdmpp_err *err) {
    cd_onnx_quota q;
    ProtobufCAllocator alloc = onnx_quota_begin(&q, a, b->n);
    *out = cd_onnx__model_proto__unpack(&alloc, b->n, (const uint8_t *)(b->p ? b->p : ""));
    return *out ? CDMPP_OK : onnx_quota_why(&q, "no ONNX model, or a damaged one", err);
}

static cdmpp_status check_model(const CdOnnx__ModelProto *m, cd_graph *g, cdmpp_err *err) {
    if (!m->graph) return CD_FAIL(err, ESCHEMA, "the model has no graph");
    const int64_t opset = onnx_opset(m->opset_import, m->n_opset_import);
    if (opset < OPSET_LOW || opset > INT32_MAX)
        return CD_FAIL(err, EUNSUPPORTED, "opset %lld: expected %d or more", (long long)opset,
                       OPSET_LOW);
    g->opset = (int)opset;
    if (opset <= OPSET_KNOWN) return CDMPP_OK;
    return cd_graph_note(g, err,
                         "opset %lld: the newest that is known here is %d, and operators are taken "
                         "for what they are there",
                         (long long)opset, OPSET_KNOWN);
}

/* The outputs of the file, where they are known. Then the operands of unsupported nodes: without
 * that, nothing would read them, and they would not be part of the network's time. */
static cdmpp_status results(cd_onnx_reader *r, const cd_onnx_scope *s, cdmpp_err *err) {
    const CdOnnx__GraphProto *g = r->model->graph;
    for (size_t i = 0; i < g->n_output; i++) {
        const uint32_t *t = cd_onnx_look_up(s, cd_onnx_text(g->output[i]->name));
        if (!t)
            return CD_FAIL(err, ESCHEMA, "result \"%s\" is not defined anywhere",
                           cd_onnx_text(g->output[i]->name));
        /* else behind an unsupported node */
        if (*t < r->g->n_tensor) CD_TRY(cd_graph_result(r->g, *t, err));
    }
    /* else what only an unsupported node reads would not be made */
    for (uint32_t k = 0; k < r->n_kept; k++) {
        const cd_graph_tensor *t = &r->g->tensor[r->kept[k]];
        if (!t->is_output && !t->is_input && !t->is_weight && !t->value && !t->fvalue)
            CD_TRY(cd_graph_result(r->g, r->kept[k], err));
    }
    return CDMPP_OK;
}

static cdmpp_status read_graph(cd_onnx_reader *r, cdmpp_err *err) {
    const CdOnnx__GraphProto *g = r->model->graph;
    cd_onnx_scope s = {0};
    r->used = CD_NEWN(r->a, bool, (size_t)r->o->n_dim + 1);
    if (!r->used) return CD_FAIL(err, ENOMEM, "options");
    CD_TRY(onnx_index_functions(r, err));
    CD_TRY(cd_onnx_index_shapes(r, &s, g, err));
    CD_TRY(cd_onnx_inputs(r, &s, g, err));
    CD_TRY(cd_onnx_nodes(r, &s, g->node, g->n_node, err));
    for (uint32_t i = 0; i < r->o->n_dim; i++)
        if (!r->used[i])
            return CD_FAIL(err, EUSAGE,
                           "\"%s\" is for no dimension of an input, no If, no Loop and no result "
                           "whose size depends on the data",
                           r->o->dim[i]);
    return results(r, &s, err);
}

static cdmpp_status parse(cd_onnx_reader *r, const void *data, size_t n, cdmpp_err *err) {
    cd_buf slim = {0};
    cdmpp_status st = cd_onnx_strip(data, n, r->o->contents, &slim, err);
    if (!st) st = unpack(r->a, &slim, &r->model, err);
    cd_buf_free(&slim);
    if (!st) st = check_model(r->model, r->g, err);
    return st ? st : read_graph(r, err);
}

/* On success the misses are in the graph's arena, so that they live as long as it does. */
cdmpp_status cd_onnx_parse(const void *data, size_t n, const char *name, const char *folder,
                           const cd_onnx_options *o, cd_graph **out, const cd_onnx_miss **miss,
                           uint32_t *n_miss, cdmpp_err *err) {
    static const cd_onnx_options none = {0};
    cd_arena scratch = {0};
    cd_onnx_reader r = {.o = o ? o : &none, .folder = folder, .a = &scratch};
    *out = NULL;
    if (r.o->batch < 0 || r.o->batch > (int64_t)1 << 32)
        return CD_FAIL(err, EUSAGE, "a batch of %lld", (long long)r.o->batch);
    CD_TRY(cd_graph_new(name, &r.g, err));
    r.g->contents = r.o->contents;
    const cdmpp_status st = parse(&r, data, n, err);
    cd_arena_free(&scratch);
    if (st) {
        cd_graph_free(r.g);
        return st;
    }
    *out = r.g;
    *miss = r.miss;
    *n_miss = r.n_miss;
    return CDMPP_OK;
}

/* Name of a network: the file's, without folder and ending; its folder in front of the NUL. */
static void split_path(char *path, const char **folder, const char **name) {
    char *slash = strrchr(path, '/'), *dot;
    *folder = slash ? path : ".";
    *name = slash ? slash + 1 : path;
    if (slash) *slash = 0;
    if (slash == path) *folder = "/";
    dot = strrchr(slash ? slash + 1 : path, '.');
    if (dot) *dot = 0;
}

static cdmpp_status read_fd(int fd, char *path, const cd_onnx_options *o, cd_graph **out,
                            const cd_onnx_miss **miss, uint32_t *n_miss, cdmpp_err *err) {
    struct stat st;
    const char *folder, *name;
    if (fstat(fd, &st)) return CD_FAIL(err, EIO, "%s", strerror(errno));
    if (!S_ISREG(st.st_mode)) return CD_FAIL(err, EIO, "expected a file");
    if (st.st_size == 0) return CD_FAIL(err, EPARSE, "the file is empty");
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) return CD_FAIL(err, EIO, "%s", strerror(errno));
    split_path(path, &folder, &name);
    const cdmpp_status s =
        cd_onnx_parse(p, (size_t)st.st_size, name, folder, o, out, miss, n_miss, err);
    munmap(p, (size_t)st.st_size);
    return s;
}

/* The path is copied: split_path cuts it into folder and name. */
cdmpp_status cd_onnx_read(const char *path, const cd_onnx_options *o, cd_graph **out,
                          const cd_onnx_miss **miss, uint32_t *n_miss, cdmpp_err *err) {
    *out = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        cd_err_raise(err, CDMPP_EIO, __FILE__, __LINE__, "%s", strerror(errno));
        return cd_err_at(err, CDMPP_EIO, path, 0);
    }
    char *copy = cd_mem_text(path);
    cdmpp_status st = CDMPP_OK;
    if (!copy) st = CD_FAIL(err, ENOMEM, "a path");
    else st = read_fd(fd, copy, o, out, miss, n_miss, err);
    cd_mem_free(copy);
    close(fd);
    return cd_err_at(err, st, path, 0);
}
