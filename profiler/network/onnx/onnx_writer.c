/* An ONNX file is built as the messages of the format's own definition, which protoc-c turns into C
 * structs (Makefile, GEN); protobuf-c packs them. All messages lie in one arena, so one call frees
 * the file, finished or not. */
#include <stdio.h>
#include <string.h>

#include "profiler/network/onnx/onnx_internal.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw tensors are little-endian");

/* ---- memory ---- */
/* n * size bytes with the content of `from`, zeros for NULL. NULL: out of memory, which the file
 * remembers. */
static void *take(cd_onnx_writer *f, const void *from, size_t n, size_t size) {
    void *p = cd_arena_zalloc(&f->arena, n, size);
    if (p && from) memcpy(p, from, n * size);
    f->oom = f->oom || !p;
    return p;
}

#define NEW(f, T, init) ((T *)take(f, &(T)init, 1, sizeof(T)))

static void add(cd_onnx_writer *f, cd_onnx_writer_list *l, void *message) {
    if (!message) return;
    if (CD_GROW_IN(&f->arena, l->item, l->n, l->cap)) f->oom = true;
    else l->item[l->n++] = message;
}

/* protobuf-c's structs hold texts without const; packing only reads them. */
static char *text(const char *s) { return (char *)(uintptr_t)s; }

/* ---- values ---- */
static const char *fresh(cd_onnx_writer *f) {
    char name[32];
    const int n = snprintf(name, sizeof name, "v%zu", f->n++);
    const char *s = cd_str_dup(&f->arena, (cd_str){name, (size_t)n});
    f->oom = f->oom || !s;
    return s ? s : "";
}

static CdOnnx__TensorShapeProto *shape_of(cd_onnx_writer *f, const int64_t *dim, size_t n_dim) {
    CdOnnx__TensorShapeProto *shape =
        NEW(f, CdOnnx__TensorShapeProto, CD_ONNX__TENSOR_SHAPE_PROTO__INIT);
    if (!shape || !(shape->dim = take(f, NULL, n_dim, sizeof *shape->dim))) return NULL;
    for (; shape->n_dim < n_dim; shape->n_dim++) {
        const int64_t size = dim[shape->n_dim];
        CdOnnx__TensorShapeProto__Dimension *d = NEW(f, CdOnnx__TensorShapeProto__Dimension,
                                                     CD_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT);
        if (!(shape->dim[shape->n_dim] = d)) return NULL;
        d->value_case = size < 0 ? CD_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                                 : CD_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        if (size < 0) d->dim_param = text("n_row");
        else d->dim_value = size;
    }
    return shape;
}

static CdOnnx__ValueInfoProto *value_info(cd_onnx_writer *f, const char *name, cd_onnx_type type,
                                          const int64_t *dim, size_t n_dim) {
    CdOnnx__ValueInfoProto *info = NEW(f, CdOnnx__ValueInfoProto, CD_ONNX__VALUE_INFO_PROTO__INIT);
    CdOnnx__TypeProto *of = NEW(f, CdOnnx__TypeProto, CD_ONNX__TYPE_PROTO__INIT);
    CdOnnx__TypeProto__Tensor *tensor =
        NEW(f, CdOnnx__TypeProto__Tensor, CD_ONNX__TYPE_PROTO__TENSOR__INIT);
    if (!info || !of || !tensor || !(tensor->shape = shape_of(f, dim, n_dim))) return NULL;
    tensor->has_elem_type = 1;
    tensor->elem_type = type;
    of->value_case = CD_ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    of->tensor_type = tensor;
    info->name = text(name);
    info->type = of;
    return info;
}

const char *cd_onnx_writer_input(cd_onnx_writer *f, const char *name, cd_onnx_type type,
                                 const int64_t *dim, size_t n_dim) {
    add(f, &f->input, value_info(f, name, type, dim, n_dim));
    return name;
}

const char *cd_onnx_writer_constant(cd_onnx_writer *f, const char *name, cd_onnx_type type,
                                    const int64_t *dim, size_t n_dim, const void *value) {
    CdOnnx__TensorProto *t = NEW(f, CdOnnx__TensorProto, CD_ONNX__TENSOR_PROTO__INIT);
    if (!name) name = fresh(f);
    size_t n = type == CD_ONNX_U8 || type == CD_ONNX_I8     ? 1
               : type == CD_ONNX_F32 || type == CD_ONNX_I32 ? 4
                                                            : 8;
    for (size_t i = 0; i < n_dim; i++) n *= (size_t)dim[i];
    if (!t || !(t->dims = take(f, dim, n_dim, sizeof *t->dims)) ||
        !(t->raw_data.data = take(f, value, n, 1)))
        return name;
    t->n_dims = n_dim;
    t->has_data_type = t->has_raw_data = 1;
    t->data_type = type;
    t->name = text(name);
    t->raw_data.len = n;
    add(f, &f->constant, t);
    return name;
}

const char *cd_onnx_writer_float(cd_onnx_writer *f, float v) {
    return cd_onnx_writer_constant(f, NULL, CD_ONNX_F32, NULL, 0, &v);
}
const char *cd_onnx_writer_double(cd_onnx_writer *f, double v) {
    return cd_onnx_writer_constant(f, NULL, CD_ONNX_F64, NULL, 0, &v);
}
const char *cd_onnx_writer_ints(cd_onnx_writer *f, const int64_t *v, size_t n) {
    return cd_onnx_writer_constant(f, NULL, CD_ONNX_I64, &(int64_t){(int64_t)n}, 1, v);
}

/* ---- nodes ---- */
#define ATTR(kind) CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##kind

/* The caller adds the value, then gives it to the next node with add(). */
static CdOnnx__AttributeProto *new_attr(cd_onnx_writer *f, const char *name,
                                        CdOnnx__AttributeProto__AttributeType type) {
    CdOnnx__AttributeProto *a = NEW(f, CdOnnx__AttributeProto, CD_ONNX__ATTRIBUTE_PROTO__INIT);
    if (!a) return NULL;
    a->name = text(name);
    a->has_type = 1;
    a->type = type;
    add(f, &f->attr, a);
    return a;
}

static ProtobufCBinaryData bytes_of(const char *s) {
    return (ProtobufCBinaryData){strlen(s), (uint8_t *)(uintptr_t)s};
}

void cd_onnx_writer_attr_int(cd_onnx_writer *f, const char *name, int64_t v) {
    CdOnnx__AttributeProto *a = new_attr(f, name, ATTR(INT));
    if (a) a->has_i = 1, a->i = v;
}

void cd_onnx_writer_attr_float(cd_onnx_writer *f, const char *name, float v) {
    CdOnnx__AttributeProto *a = new_attr(f, name, ATTR(FLOAT));
    if (a) a->has_f = 1, a->f = v;
}

void cd_onnx_writer_attr_text(cd_onnx_writer *f, const char *name, const char *v) {
    CdOnnx__AttributeProto *a = new_attr(f, name, ATTR(STRING));
    if (a) a->has_s = 1, a->s = bytes_of(v);
}

void cd_onnx_writer_attr_ints(cd_onnx_writer *f, const char *name, const int64_t *v, size_t n) {
    CdOnnx__AttributeProto *a = new_attr(f, name, ATTR(INTS));
    if (a && (a->ints = take(f, v, n, sizeof *v))) a->n_ints = n;
}

void cd_onnx_writer_attr_floats(cd_onnx_writer *f, const char *name, const float *v, size_t n) {
    CdOnnx__AttributeProto *a = new_attr(f, name, ATTR(FLOATS));
    if (a && (a->floats = take(f, v, n, sizeof *v))) a->n_floats = n;
}

void cd_onnx_writer_attr_texts(cd_onnx_writer *f, const char *name, const char *const *v,
                               size_t n) {
    CdOnnx__AttributeProto *a = new_attr(f, name, ATTR(STRINGS));
    if (!a || !(a->strings = take(f, NULL, n, sizeof *a->strings))) return;
    for (; a->n_strings < n; a->n_strings++) a->strings[a->n_strings] = bytes_of(v[a->n_strings]);
}

/* Adds a node; the attributes so far become its own. */
static void put_node(cd_onnx_writer *f, const char *op, const char *const *in, size_t n,
                     const char *out) {
    CdOnnx__NodeProto *node = NEW(f, CdOnnx__NodeProto, CD_ONNX__NODE_PROTO__INIT);
    if (!node || !(node->input = take(f, in, n, sizeof *in)) ||
        !(node->output = take(f, &out, 1, sizeof out)))
        return;
    node->n_input = n;
    node->n_output = 1;
    node->op_type = text(op);
    node->domain = text(f->ml);
    node->n_attribute = f->attr.n;
    node->attribute = (CdOnnx__AttributeProto **)f->attr.item;
    f->attr = (cd_onnx_writer_list){0};
    add(f, &f->node, node);
}

const char *cd_onnx_writer_node(cd_onnx_writer *f, const char *op, const char *const *in,
                                size_t n) {
    const char *name = fresh(f);
    put_node(f, op, in, n, name);
    return name;
}

/* An output has a name that was chosen for users, and values have names of their own: Identity
 * joins them. */
void cd_onnx_writer_output(cd_onnx_writer *f, const char *name, const char *value,
                           cd_onnx_type type, const int64_t *dim, size_t n_dim) {
    put_node(f, "Identity", &value, 1, name);
    add(f, &f->output, value_info(f, name, type, dim, n_dim));
}

/* ---- the file ---- */
void cd_onnx_writer_meta(cd_onnx_writer *f, const char *key, const char *value) {
    CdOnnx__StringStringEntryProto *e =
        NEW(f, CdOnnx__StringStringEntryProto, CD_ONNX__STRING_STRING_ENTRY_PROTO__INIT);
    if (!e || !(e->value = take(f, value, strlen(value) + 1, 1))) return;
    e->key = text(key);
    add(f, &f->meta, e);
}

static cdmpp_status pack(const CdOnnx__ModelProto *m, cd_buf *out, cdmpp_err *err) {
    const size_t n = cd_onnx__model_proto__get_packed_size(m);
    uint8_t *p = cd_mem_alloc(n);
    if (!p) return CD_FAIL(err, ENOMEM, "ONNX file of %zu bytes", n);
    cd_buf_put(out, (const char *)p, cd_onnx__model_proto__pack(m, p));
    cd_mem_free(p);
    return out->oom ? CD_FAIL(err, ENOMEM, "ONNX file of %zu bytes", n) : CDMPP_OK;
}

/* The lists of messages become the repeated fields of the graph. */
cdmpp_status cd_onnx_writer_end(cd_onnx_writer *f, const char *name, cd_buf *out, cdmpp_err *err) {
    CdOnnx__OperatorSetIdProto plain = CD_ONNX__OPERATOR_SET_ID_PROTO__INIT;
    CdOnnx__OperatorSetIdProto ml = plain;
    CdOnnx__OperatorSetIdProto *opset[] = {&plain, &ml};
    CdOnnx__GraphProto graph = CD_ONNX__GRAPH_PROTO__INIT;
    CdOnnx__ModelProto m = CD_ONNX__MODEL_PROTO__INIT;
    if (f->oom) return CD_FAIL(err, ENOMEM, "ONNX file");
    plain.domain = text("");
    plain.version = CD_ONNX_OPSET;
    ml.domain = text("ai.onnx.ml");
    ml.version = CD_ONNX_ML_OPSET;
    plain.has_version = ml.has_version = m.has_ir_version = 1;
    graph.name = text(name);
    graph.n_node = f->node.n, graph.node = (CdOnnx__NodeProto **)f->node.item;
    graph.n_initializer = f->constant.n,
    graph.initializer = (CdOnnx__TensorProto **)f->constant.item;
    graph.n_input = f->input.n, graph.input = (CdOnnx__ValueInfoProto **)f->input.item;
    graph.n_output = f->output.n, graph.output = (CdOnnx__ValueInfoProto **)f->output.item;
    m.ir_version = CD_ONNX_IR;
    m.producer_name = text("cdmpp");
    m.producer_version = text(CDMPP_VERSION);
    m.graph = &graph;
    m.n_opset_import = 2, m.opset_import = opset;
    m.n_metadata_props = f->meta.n,
    m.metadata_props = (CdOnnx__StringStringEntryProto **)f->meta.item;
    return pack(&m, out, err);
}

void cd_onnx_writer_free(cd_onnx_writer *f) { cd_arena_free(&f->arena); }

/* A graph becomes an ONNX file, so that other runtimes can run what was built here. A graph knows
 * shapes of weights, no content: the file gets numbers between 1/4 and 3/4, with which no operator
 * fails. */

/* Attributes that ONNX has of an operator in the writer's opset. A graph has more: resolved values
 * that came as operands or are not in this opset. An operator that is not here has none. */
static const struct {
    const char *op, *attrs; /* with a blank in front of and behind each */
} known[] = {
    {"Conv", " dilations group kernel_shape pads strides "},
    {"ConvTranspose", " dilations group kernel_shape output_padding pads strides "},
    {"MaxPool", " ceil_mode kernel_shape pads strides "},
    {"AveragePool", " ceil_mode count_include_pad kernel_shape pads strides "},
    {"BatchNormalization", " epsilon "},
    {"Concat", " axis "},
    {"Softmax", " axis "},
    {"Flatten", " axis "},
    {"Transpose", " perm "},
    {"LeakyRelu", " alpha "},
    {"Elu", " alpha "},
    {"HardSigmoid", " alpha beta "},
    {"Gemm", " alpha beta transA transB "},
    {"Relu", ""},
    {"Clip", ""},
    {"Sigmoid", ""},
    {"Tanh", ""},
    {"HardSwish", ""},
    {"Exp", ""},
    {"Sqrt", ""},
    {"Erf", ""},
    {"Abs", ""},
    {"Neg", ""},
    {"Add", ""},
    {"Sub", ""},
    {"Mul", ""},
    {"Div", ""},
    {"MatMul", ""},
    {"GlobalAveragePool", ""},
    {"GlobalMaxPool", ""},
    {"Identity", ""},
    {"Slice", ""},
    {"Pad", " mode "},
};

static const char *attributes_of(const char *op) {
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (!strcmp(known[k].op, op)) return known[k].attrs;
    return NULL;
}

static bool is_listed(const char *list, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = strstr(list, name); at; at = strstr(at + 1, name))
        if (at[-1] == ' ' && at[n] == ' ') return true;
    return false;
}

/* ---- tensors ---- */

static cdmpp_status no_memory(cdmpp_err *err) { return CD_FAIL(err, ENOMEM, "ONNX file"); }

/* Numbers that repeat after 97 elements. */
static cdmpp_status put_weight(cd_onnx_writer *f, const cd_graph_tensor *t, cdmpp_err *err) {
    const int64_t n = cd_graph_shape_elements(&t->shape);
    float *v = CD_NEWN(&f->arena, float, (size_t)n + 1);
    if (!v) return no_memory(err);
    for (int64_t i = 0; i < n; i++) v[i] = 0.25f + 0.5f * (float)(i * 37 % 97) / 97;
    cd_onnx_writer_constant(f, t->name, CD_ONNX_F32, t->shape.dim, t->shape.rank, v);
    return CDMPP_OK;
}

static cdmpp_status put_known(cd_onnx_writer *f, const cd_graph_tensor *t, cdmpp_err *err) {
    const int64_t n = cd_graph_shape_elements(&t->shape);
    if (t->value && t->dtype == CD_I64) {
        cd_onnx_writer_constant(f, t->name, CD_ONNX_I64, t->shape.dim, t->shape.rank, t->value);
        return CDMPP_OK;
    }
    if (!t->fvalue || t->dtype != CD_F32)
        return CD_FAIL(err, EUNSUPPORTED,
                       "%.60s: a known tensor of another type than float32 and int64", t->name);
    float *v = CD_NEWN(&f->arena, float, (size_t)n + 1);
    if (!v) return no_memory(err);
    for (int64_t i = 0; i < n; i++) v[i] = (float)t->fvalue[i];
    cd_onnx_writer_constant(f, t->name, CD_ONNX_F32, t->shape.dim, t->shape.rank, v);
    return CDMPP_OK;
}

/* Results of operators have names of the writer's; all others keep theirs. */
static cdmpp_status put_tensor(cd_onnx_writer *f, const cd_graph_tensor *t, cdmpp_err *err) {
    if (t->is_input && t->dtype == CD_F32) {
        cd_onnx_writer_input(f, t->name, CD_ONNX_F32, t->shape.dim, t->shape.rank);
        return CDMPP_OK;
    }
    if (t->value || t->fvalue) return put_known(f, t, err);
    if (t->dtype != CD_F32)
        return CD_FAIL(err, EUNSUPPORTED, "%.60s: a tensor of another type than float32", t->name);
    return put_weight(f, t, err);
}

/* ---- operators ---- */

static void put_attribute(cd_onnx_writer *f, const cd_graph_attr *a) {
    if (a->kind == CD_GRAPH_ATTR_INT) cd_onnx_writer_attr_int(f, a->name, a->i);
    if (a->kind == CD_GRAPH_ATTR_FLOAT) cd_onnx_writer_attr_float(f, a->name, (float)a->f);
    if (a->kind == CD_GRAPH_ATTR_STR) cd_onnx_writer_attr_text(f, a->name, a->s);
    if (a->kind == CD_GRAPH_ATTR_INTS) cd_onnx_writer_attr_ints(f, a->name, a->ints, a->n);
}

/* An attribute may stand twice, as given and resolved: the last one is the resolved one. */
static cdmpp_status put_operator(cd_onnx_writer *f, const cd_graph_node *n, const char **name,
                                 cdmpp_err *err) {
    const char *list = attributes_of(n->op), **in = CD_NEWN(&f->arena, const char *, n->n_in + 1);
    if (!in) return no_memory(err);
    if (!list || n->n_out != 1 || n->opaque)
        return CD_FAIL(err, EUNSUPPORTED, "%.60s: not known to the writer of ONNX files", n->op);
    for (uint32_t k = 0; k < n->n_in; k++) in[k] = n->in[k] == CD_GRAPH_NONE ? "" : name[n->in[k]];
    for (uint32_t k = 0; k < n->n_attr; k++) {
        bool again = false;
        for (uint32_t j = k + 1; j < n->n_attr; j++)
            again |= !strcmp(n->attr[j].name, n->attr[k].name);
        if (!again && is_listed(list, n->attr[k].name)) put_attribute(f, &n->attr[k]);
    }
    name[n->out[0]] = cd_onnx_writer_node(f, n->op, in, n->n_in);
    return CDMPP_OK;
}

static cdmpp_status put_graph(cd_onnx_writer *f, const cd_graph *g, cdmpp_err *err) {
    const char **name = CD_NEWN(&f->arena, const char *, g->n_tensor + 1);
    if (!name) return no_memory(err);
    for (uint32_t t = 0; t < g->n_tensor; t++) {
        name[t] = g->tensor[t].name;
        if (g->tensor[t].node == CD_GRAPH_NONE) CD_TRY(put_tensor(f, &g->tensor[t], err));
    }
    for (uint32_t i = 0; i < g->n_node; i++) CD_TRY(put_operator(f, &g->node[i], name, err));
    for (uint32_t k = 0; k < g->n_output; k++) {
        const cd_graph_tensor *t = &g->tensor[g->output[k]];
        cd_onnx_writer_output(f, t->name, name[g->output[k]], CD_ONNX_F32, t->shape.dim,
                              t->shape.rank);
    }
    return CDMPP_OK;
}

cdmpp_status cd_onnx_write(const cd_graph *g, cd_buf *out, cdmpp_err *err) {
    cd_onnx_writer f = {0};
    cdmpp_status st = put_graph(&f, g, err);
    if (!st) st = cd_onnx_writer_end(&f, g->name, out, err);
    cd_onnx_writer_free(&f);
    return st;
}
