/* Tensors of a file. Their content is read where shapes may need it: integers up to the graph's
 * limit, reals of a weight only if there are few (scales, bounds). All others are shapes alone. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/network/onnx/onnx_internal.h"

enum { FEW = 64 }; /* real numbers of a weight that are kept: scales, bounds, a step */

/* Dimensions of a tensor of the file. Errors: ERANGE. */
static cdmpp_status dims_of(const CdOnnx__TensorProto *t, cd_graph_shape *s, cdmpp_err *err) {
    if (t->n_dims > CD_GRAPH_MAX_RANK)
        return CD_FAIL(err, ERANGE, "\"%s\": expected at most %d dimensions, found %zu",
                       cd_onnx_text(t->name), CD_GRAPH_MAX_RANK, t->n_dims);
    *s = (cd_graph_shape){.rank = (uint32_t)t->n_dims};
    for (uint32_t d = 0; d < s->rank; d++) s->dim[d] = t->dims[d];
    return cd_err_key(err, cd_graph_shape_check(s, err), cd_onnx_text(t->name));
}

static double half(uint16_t h) {
    const int e = h >> 10 & 31, m = h & 1023;
    const double v = e == 31 ? (m ? (double)NAN : (double)INFINITY)
                     : e     ? ldexp(1024 + m, e - 25)
                             : ldexp(m, -24);
    return h >> 15 ? -v : v;
}

static double bfloat(uint16_t h) {
    const uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* Little-endian bytes of one element. */
static uint64_t bits_of(const unsigned char *p, unsigned bytes) {
    uint64_t v = 0;
    for (unsigned k = bytes; k > 0; k--) v = v << 8 | p[k - 1];
    return v;
}

static double real_of(cd_dtype t, uint64_t bits) {
    float f;
    double d;
    const uint32_t low = (uint32_t)bits;
    if (t == CD_DTYPE(CD_T_FLOAT, 16)) return half((uint16_t)bits);
    if (t == CD_DTYPE(CD_T_BFLOAT, 16)) return bfloat((uint16_t)bits);
    memcpy(&f, &low, sizeof f);
    memcpy(&d, &bits, sizeof d);
    return t == CD_F32 ? (double)f : d;
}

static int64_t int_of(cd_dtype t, uint64_t bits) {
    const unsigned n = cd_expr_dtype_bits(t);
    if (n == 1) return bits != 0;
    if (n < 64 && cd_expr_dtype_kind(t) == CD_T_INT && bits >> (n - 1)) bits |= ~(uint64_t)0 << n;
    return (int64_t)bits;
}

static void unpack(cd_dtype t, const unsigned char *p, int64_t n, int64_t *v, double *f) {
    const unsigned bytes = cd_expr_dtype_bytes(t);
    for (int64_t k = 0; k < n; k++) {
        const uint64_t bits = bits_of(p + (size_t)k * bytes, bytes);
        if (f) f[k] = real_of(t, bits);
        else v[k] = int_of(t, bits);
    }
}

/* One of the typed fields; false: it holds another number of elements. */
static bool typed(const CdOnnx__TensorProto *t, cd_dtype type, int64_t n, int64_t *v, double *f) {
    const size_t m = (size_t)n;
    if (t->n_float_data == m && f)
        for (size_t k = 0; k < m; k++) f[k] = (double)t->float_data[k];
    else if (t->n_double_data == m && f)
        for (size_t k = 0; k < m; k++) f[k] = t->double_data[k];
    else if (t->n_int64_data == m && v)
        for (size_t k = 0; k < m; k++) v[k] = t->int64_data[k];
    else if (t->n_uint64_data == m && v)
        for (size_t k = 0; k < m; k++) v[k] = (int64_t)t->uint64_data[k];
    else if (t->n_int32_data == m && v)
        for (size_t k = 0; k < m; k++)
            v[k] = int_of(type, (uint64_t)t->int32_data[k] &
                                    (~(uint64_t)0 >> (64 - cd_expr_dtype_bits(type))));
    /* half precision */
    else if (t->n_int32_data == m && f)
        for (size_t k = 0; k < m; k++) f[k] = real_of(type, (uint16_t)t->int32_data[k]);
    else return false;
    return true;
}

static size_t typed_length(const CdOnnx__TensorProto *t) {
    const size_t n[] = {t->n_float_data, t->n_double_data, t->n_int64_data, t->n_uint64_data,
                        t->n_int32_data};
    size_t most = 0;
    for (size_t k = 0; k < sizeof n / sizeof *n; k++) most = n[k] > most ? n[k] : most;
    return most;
}

static const char *external(const CdOnnx__TensorProto *t, const char *key) {
    for (size_t i = 0; i < t->n_external_data; i++)
        if (!strcmp(cd_onnx_text(t->external_data[i]->key), key))
            return cd_onnx_text(t->external_data[i]->value);
    return "";
}

/* Has the file n bytes from `at` on? */
static bool is_long_enough(int fd, long long at, size_t n) {
    struct stat s;
    return fd >= 0 && at >= 0 && !fstat(fd, &s) && S_ISREG(s.st_mode) && at <= s.st_size &&
           n <= (size_t)(s.st_size - at);
}

/* `n` bytes of the file beside the model; only its own folder is read, and memory is taken for what
 * is there, not for what is declared. NULL: not there, r->lost_why says so. */
static unsigned char *read_external(cd_onnx_reader *r, const CdOnnx__TensorProto *t, size_t n) {
    char path[4096];
    const char *file = external(t, "location");
    if (!r->folder || !*file || *file == '/' || strstr(file, "..")) return NULL;
    if (snprintf(path, sizeof path, "%s/%s", r->folder, file) >= (int)sizeof path) return NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const long long at = strtoll(external(t, "offset"), NULL, 10);
    unsigned char *p = is_long_enough(fd, at, n) ? cd_arena_alloc(r->a, n + 1, 1) : NULL;
    const ssize_t got = p ? pread(fd, p, n, (off_t)at) : -1;
    if (fd >= 0) close(fd);
    return p && got == (ssize_t)n ? p : NULL;
}

static cdmpp_status lose(cd_onnx_reader *r, const CdOnnx__TensorProto *t, cdmpp_err *err) {
    bool old;
    r->lost_why = external(t, "location");
    return cd_onnx_map_put(&r->lost, r->a, cd_onnx_text(t->name), 0, &old, err);
}

/* Bytes come from raw_data, from a typed field, or from a file beside the model; no content at all
 * is not an error, since onnx_strip may have dropped it. */
cdmpp_status cd_onnx_content(cd_onnx_reader *r, const CdOnnx__TensorProto *t, int64_t n,
                             const int64_t **v, const double **f, cdmpp_err *err) {
    cd_dtype type;
    *v = NULL;
    *f = NULL;
    if (!cd_graph_dtype(t->data_type, &type) || !cd_graph_type_is_computed(type)) return CDMPP_OK;
    const bool real = cd_expr_dtype_is_float(type),
               out = t->has_data_location &&
                     t->data_location == CD_ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    const size_t want = (size_t)n * cd_expr_dtype_bytes(type);
    const unsigned char *raw = t->has_raw_data ? t->raw_data.data : NULL;
    if (!out && !raw && !typed_length(t) && n > 0) return CDMPP_OK;
    if (out && !(raw = read_external(r, t, want))) return lose(r, t, err);
    if (raw && !out && t->raw_data.len != want)
        return CD_FAIL(err, ESCHEMA, "\"%s\": expected %zu bytes, found %zu", cd_onnx_text(t->name),
                       want, t->raw_data.len);
    if (!raw && n > 0 && typed_length(t) != (size_t)n)
        return CD_FAIL(err, ESCHEMA, "\"%s\": expected %lld elements", cd_onnx_text(t->name),
                       (long long)n);
    int64_t *p = cd_arena_zalloc(r->a, (size_t)n + 1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "content of \"%s\"", cd_onnx_text(t->name));
    if (raw) unpack(type, raw, n, real ? NULL : p, real ? (double *)p : NULL);
    else if (n > 0 && !typed(t, type, n, real ? NULL : p, real ? (double *)p : NULL))
        return CD_FAIL(err, ESCHEMA, "\"%s\": expected %lld elements", cd_onnx_text(t->name),
                       (long long)n);
    if (real) *f = (const double *)p;
    else *v = p;
    return CDMPP_OK;
}

/* The tensor of this name has a type that the graph does not have: the reason of what reads it says
 * so. Errors: ENOMEM. */
static cdmpp_status onnx_no_type(cd_onnx_reader *r, const char *name, int64_t type,
                                 cdmpp_err *err) {
    bool old;
    return cd_onnx_map_put(&r->no_type, r->a, name, (uint32_t)type, &old, err);
}

cdmpp_status cd_onnx_tensor(cd_onnx_reader *r, const CdOnnx__TensorProto *t, const char *name,
                            bool weight, uint32_t *tensor, cdmpp_err *err) {
    cd_graph_shape s;
    cd_dtype type;
    const int64_t *v = NULL;
    const double *f = NULL;
    CD_TRY(dims_of(t, &s, err));
    *tensor = CD_ONNX_UNKNOWN; /* texts, complex numbers: what reads it is missing */
    if (!cd_graph_dtype(t->data_type, &type)) return onnx_no_type(r, name, t->data_type, err);
    const int64_t n = cd_graph_shape_elements(&s);
    if (r->o->contents || n <= (weight && cd_expr_dtype_is_float(type) ? FEW : CD_GRAPH_MAX_VALUE))
        CD_TRY(cd_onnx_content(r, t, n, &v, &f, err));
    if (!v && !f) return cd_graph_weight(r->g, name, type, &s, tensor, err);
    CD_TRY(cd_graph_constant(r->g, name, type, &s, v, f, tensor, err));
    if (weight && f) r->g->tensor[*tensor].is_weight = true;
    return CDMPP_OK;
}

/* Attributes of a node in the form that the graph has for them. Inside a function an attribute may
 * be a reference to one of the call, which may be a reference itself. */

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

/* Which dimension of an input is the batch: the first, unless the input reaches a recurrent layer
 * that reads [time, batch, ...]. Then its time steps are no items, and a batch size is for the
 * other dimension. The way there is followed through operators that keep dimensions or move them in
 * a known way. */

/* A tensor that is made of one input: which of the input's dimensions each of its own is; -1:
 * none. */
typedef struct trace {
    uint32_t input, rank;
    int at[CD_GRAPH_MAX_RANK];
} trace;

typedef struct tracer {
    cd_onnx_reader *r;
    cd_onnx_map of; /* name -> number in list */
    trace *list;    /* (n of cap) */
    uint32_t n, cap;
} tracer;

/* Operators whose first result has its operand's dimensions. */
static const char *const keeping[] = {"Identity",
                                      "Cast",
                                      "Dropout",
                                      "Relu",
                                      "Tanh",
                                      "Sigmoid",
                                      "LeakyRelu",
                                      "Elu",
                                      "Gelu",
                                      "Clip",
                                      "Add",
                                      "Sub",
                                      "Mul",
                                      "Div",
                                      "Concat",
                                      "LayerNormalization",
                                      "Softmax",
                                      "QuantizeLinear",
                                      "DequantizeLinear"};

static const trace *found(const tracer *t, const CdOnnx__NodeProto *n, size_t k) {
    const uint32_t *i =
        k < n->n_input && *cd_onnx_text(n->input[k]) ? cd_onnx_map_find(&t->of, n->input[k]) : NULL;
    return i ? &t->list[*i] : NULL;
}

static cdmpp_status put(tracer *t, const char *name, const trace *x, cdmpp_err *err) {
    const trace copy = *x; /* the list may move */
    bool old;
    if (CD_GROW_IN(t->r->a, t->list, t->n, t->cap)) return CD_FAIL(err, ENOMEM, "inputs");
    t->list[t->n] = copy;
    return cd_onnx_map_put(&t->of, t->r->a, name, t->n++, &old, err);
}

static const CdOnnx__AttributeProto *attr(const CdOnnx__NodeProto *n, const char *name) {
    return cd_onnx_attr(NULL, n, name);
}

/* The operand that x is, as the result of this node; false: its dimensions are lost. */
static bool moved(const CdOnnx__NodeProto *n, trace *x, size_t operand) {
    const char *op = cd_onnx_text(n->op_type);
    const trace from = *x;
    if (!strcmp(op, "Transpose")) {
        const CdOnnx__AttributeProto *p = attr(n, "perm");
        if (p && p->n_ints != x->rank) return false;
        for (uint32_t d = 0; d < x->rank; d++) {
            const int64_t at = p ? p->ints[d] : (int64_t)(x->rank - 1 - d);
            if (at < 0 || at >= x->rank) return false;
            x->at[d] = from.at[at];
        }
        return true;
    }
    /* rows of a table */
    if (!strcmp(op, "Gather") && operand == 1 && x->rank < CD_GRAPH_MAX_RANK &&
        (!attr(n, "axis") || !attr(n, "axis")->i)) {
        x->at[x->rank++] = -1;
        return true;
    }
    if (!strcmp(op, "MatMul") && operand == 0 && x->rank) {
        x->at[x->rank - 1] = -1;
        return true;
    }
    for (size_t i = 0; i < sizeof keeping / sizeof *keeping; i++)
        if (!strcmp(keeping[i], op)) return true;
    return false;
}

/* Data and states have the batch second, lengths of sequences are one for each item. */
static void recurrent(const tracer *t, const CdOnnx__NodeProto *n, uint32_t *axis) {
    static const struct {
        size_t operand;
        uint32_t dim;
    } batch[] = {{0, 1}, {4, 0}, {5, 1}, {6, 1}};
    if (attr(n, "layout") && attr(n, "layout")->i) return;
    for (size_t i = 0; i < sizeof batch / sizeof *batch; i++) {
        const trace *x = found(t, n, batch[i].operand);
        if (x && batch[i].dim < x->rank && x->at[batch[i].dim] >= 0)
            axis[x->input] = (uint32_t)x->at[batch[i].dim];
    }
}

static cdmpp_status node(tracer *t, const CdOnnx__NodeProto *n, uint32_t *axis, cdmpp_err *err) {
    const char *op = cd_onnx_text(n->op_type);
    if (!strcmp(op, "LSTM") || !strcmp(op, "GRU") || !strcmp(op, "RNN"))
        return recurrent(t, n, axis), CDMPP_OK;
    for (size_t k = 0; k < n->n_input && k < 2 && n->n_output; k++) {
        const trace *x = found(t, n, k);
        trace y = x ? *x : (trace){0};
        if (x && moved(n, &y, k)) return put(t, cd_onnx_text(n->output[0]), &y, err);
    }
    return CDMPP_OK;
}

static cdmpp_status onnx_batch_axes(cd_onnx_reader *r, const CdOnnx__GraphProto *g,
                                    const uint32_t *order, uint32_t *axis, cdmpp_err *err) {
    tracer t = {.r = r};
    for (uint32_t i = 0; i < g->n_input; i++) {
        const CdOnnx__TypeProto *type = g->input[i]->type;
        const CdOnnx__TensorShapeProto *s =
            type && type->value_case == CD_ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
                ? type->tensor_type->shape
                : NULL;
        trace x = {.input = i, .rank = s && s->n_dim <= CD_GRAPH_MAX_RANK ? (uint32_t)s->n_dim : 0};
        axis[i] = 0;
        for (uint32_t d = 0; d < x.rank; d++) x.at[d] = (int)d;
        if (x.rank) CD_TRY(put(&t, cd_onnx_text(g->input[i]->name), &x, err));
    }
    for (size_t i = 0; i < g->n_node; i++) CD_TRY(node(&t, g->node[order[i]], axis, err));
    return CDMPP_OK;
}

/* What a graph starts from: its inputs with their dimensions, its weights and constants. A
 * dimension's value comes from the first of these that is given: an option for its place, an option
 * for its name, the batch size, the file. */

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
        CD_TRY(onnx_no_type(r, name, t->elem_type, err));
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
            CD_TRY(onnx_no_type(r, name, t->values->data_type, err));
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
    CD_TRY(onnx_batch_axes(r, g, order, axis, err));
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
