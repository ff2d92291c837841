/* Odd ONNX files: the messages of a small file with one field of one message changed, packed and
 * read again. Whatever the field, the file is a graph that keeps its rules, or is refused with a
 * status and a reason, and nothing is lost. The fields come from the format's own descriptors. */
#include <onnx/onnx.pb-c.h>

#include "base/io/io.h"
#include "fault.h"
#include "tests/fuzz/graph_check.h"
#include "read_onnx.h"

/* changes of a file; of the items of a list so many are changed; texts of the file that others
 * become */
enum { MOST = 4000, ITEMS = 4, TEXTS = 64 };

typedef struct odd {
    ProtobufCMessage *root;
    const char *name;
    char *text[TEXTS];
    size_t n_text, seen, every, taken, refused;
    bool of_attribute; /* the field is of an attribute */
} odd;

static cdmpp_status read_packed(const void *p, size_t n, cdmpp_err *err) {
    const cd_onnx_options o = {0};
    const cd_onnx_miss *miss;
    uint32_t n_miss;
    cd_graph *g = NULL;
    const cdmpp_status st = cd_onnx_parse(p, n, "odd", NULL, &o, &g, &miss, &n_miss, err);
    if (st) return st;
    graph_check(g);
    for (uint32_t i = 0; i < n_miss; i++)
        if (!miss[i].reason[0]) abort();
    cd_graph_free(g);
    return CDMPP_OK;
}

static void try_it(odd *o) {
    cdmpp_err err = {0};
    if (o->seen++ % o->every) return;
    const size_t n = protobuf_c_message_get_packed_size(o->root);
    uint8_t *p = malloc(n + 1);
    const long live = fault_live();
    if (!p) abort();
    protobuf_c_message_pack(o->root, p);
    const cdmpp_status st = read_packed(p, n, &err);
    st ? o->refused++ : o->taken++;
    if ((st && (err.code != st || !err.msg[0])) || st == CDMPP_ENOMEM || fault_live() != live)
        fail_msg("%s: change %zu: status %d, error %d \"%s\", %ld blocks more", o->name,
                 o->seen - 1, (int)st, (int)err.code, err.msg, fault_live() - live);
    free(p);
}

#define TRY(place, value) (*(place) = (value), try_it(o))

static void message(odd *o, ProtobufCMessage *m);

/* Attributes that another one becomes: those of attention, rotation, normalisation and control. */
static char attribute[][24] = {"left_window_size",
                               "right_window_size",
                               "scale",
                               "softcap",
                               "is_causal",
                               "unidirectional",
                               "num_heads",
                               "q_num_heads",
                               "kv_num_heads",
                               "interleaved",
                               "rotary_embedding_dim",
                               "do_rotary",
                               "rotary_interleaved",
                               "local_window_size",
                               "smooth_softmax",
                               "mask_filter_value",
                               "qkv_hidden_sizes",
                               "is_packed_batching",
                               "qk_matmul_output_mode",
                               "axis",
                               "epsilon",
                               "activation",
                               "activation_params",
                               "group",
                               "transB",
                               "value",
                               "value_ints",
                               "to"};

/* One value of a field. */
static void value(odd *o, ProtobufCType type, void *at) {
    static const int64_t whole[] = {INT64_MIN, -2147483648LL, -1,       0, 1, 2, 3, 7, 16, 64,
                                    65536,     2147483648LL,  INT64_MAX};
    static const float real[] = {-1, 0, 0.5F, 1, 1e30F, INFINITY, NAN};
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: {
        const int64_t was = *(int64_t *)at;
        for (size_t k = 0; k < sizeof whole / sizeof *whole; k++) TRY((int64_t *)at, whole[k]);
        *(int64_t *)at = was;
        break;
    }
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_ENUM: {
        const int32_t was = *(int32_t *)at;
        for (int32_t k = -1; k < 24; k++) TRY((int32_t *)at, k);
        *(int32_t *)at = was;
        break;
    }
    case PROTOBUF_C_TYPE_FLOAT: {
        const float was = *(float *)at;
        for (size_t k = 0; k < sizeof real / sizeof *real; k++) TRY((float *)at, real[k]);
        *(float *)at = was;
        break;
    }
    case PROTOBUF_C_TYPE_STRING: {
        char *was = *(char **)at, none[] = "", other[] = "x";
        TRY((char **)at, none);
        TRY((char **)at, other);
        for (size_t k = 0; k < o->n_text; k++) TRY((char **)at, o->text[k]);
        for (size_t k = 0; o->of_attribute && k < sizeof attribute / sizeof *attribute; k++)
            TRY((char **)at, attribute[k]);
        *(char **)at = was;
        break;
    }
    case PROTOBUF_C_TYPE_BYTES: {
        ProtobufCBinaryData *b = at;
        const size_t was = b->len;
        for (size_t k = 0; k < 3; k++) TRY(&b->len, was * k / 3);
        b->len = was;
        break;
    }
    case PROTOBUF_C_TYPE_MESSAGE: message(o, *(ProtobufCMessage **)at); break;
    default: break;
    }
}

static size_t size_of(ProtobufCType type) {
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_DOUBLE: return 8;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_FLOAT: return 4;
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    default: return sizeof(void *);
    }
}

/* Fewer items, none, the first one twice; then the items themselves. */
static void list(odd *o, const ProtobufCFieldDescriptor *f, size_t *n, char *items) {
    const size_t was = *n, size = size_of(f->type);
    char kept[sizeof(ProtobufCBinaryData)];
    if (!was) return;
    TRY(n, was - 1);
    TRY(n, 0);
    *n = was;
    if (was > 1) {
        memcpy(kept, items + (was - 1) * size, size);
        memcpy(items + (was - 1) * size, items, size);
        try_it(o);
        memcpy(items + (was - 1) * size, kept, size);
    }
    for (size_t i = 0; i < was && (i < ITEMS || f->type == PROTOBUF_C_TYPE_MESSAGE); i++)
        value(o, f->type, items + i * size);
}

static void message(odd *o, ProtobufCMessage *m) {
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        char *at = (char *)m + f->offset;
        void *q = (char *)m + f->quantifier_offset;
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            list(o, f, q, *(char **)at);
            continue;
        }
        const bool pointer =
                       f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE,
                   one = f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
        if (one       ? *(uint32_t *)q != f->id
            : pointer ? !*(void **)at || *(void **)at == f->default_value
                      : !*(protobuf_c_boolean *)q)
            continue;
        o->of_attribute = m->descriptor == &cd_onnx__attribute_proto__descriptor;
        value(o, f->type, at);
        if (one) {
            TRY((uint32_t *)q, 0);
            *(uint32_t *)q = f->id;
        } else if (pointer) {
            void *was = *(void **)at;
            TRY((void **)at, NULL);
            *(void **)at = was;
        } else {
            TRY((protobuf_c_boolean *)q, 0);
            *(protobuf_c_boolean *)q = 1;
        }
    }
}

/* Names of tensors and operators of the file. */
static void take_texts(odd *o, const CdOnnx__GraphProto *g) {
    for (size_t i = 0; i < g->n_node && o->n_text + 3 < TEXTS; i++) {
        const CdOnnx__NodeProto *n = g->node[i];
        o->text[o->n_text++] = n->op_type;
        if (n->n_input) o->text[o->n_text++] = n->input[n->n_input - 1];
        if (n->n_output) o->text[o->n_text++] = n->output[0];
    }
    while (o->n_text > 12) { /* enough of them, from all over the file */
        for (size_t k = 0; k < o->n_text / 2; k++) o->text[k] = o->text[2 * k + o->n_text % 2];
        o->n_text /= 2;
    }
}

static void odd_file(const char *name) {
    char path[256], *text;
    size_t n;
    cdmpp_err err = {0};
    snprintf(path, sizeof path, "tests/profiler/data/%s.onnx", name);
    assert_ok(cd_file_read(path, 0, &text, &n, &err));
    CdOnnx__ModelProto *m = cd_onnx__model_proto__unpack(NULL, n, (const uint8_t *)text);
    assert_non_null(m);
    odd o = {.root = &m->base, .name = name, .every = SIZE_MAX};
    take_texts(&o, m->graph);
    message(&o, &m->base); /* counts */
    o.every = 1 + o.seen / MOST, o.seen = o.taken = o.refused = 0;
    message(&o, &m->base);
    assert_true(o.taken + o.refused > 0);
    if (read_packed(text, n, &err)) memset(&err, 0, sizeof err); /* it needs an option */
    else FAULT_SWEEP(f, 0) {
            f.step = 3;
            f.st = read_packed(text, n, &f.err);
        }
    cd_onnx__model_proto__free_unpacked(m, NULL);
    cd_mem_free(text);
}

#define ODD(test, ...)                                                                             \
    TEST(test) {                                                                                   \
        static const char *const names[] = {__VA_ARGS__};                                          \
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) odd_file(names[k]);              \
    }
ODD(attention, "attention_bare", "attention_flat", "combined", "fused")
ODD(functions_and_control, "function", "if_known", "if_data", "loop_known", "loop_data", "sizes",
    "dynamic")
ODD(contents, "constants", "attributes", "clipped", "fill", "float_input", "types", "named_batch",
    "stripped", "known_behind", "older_forms")
ODD(layers, "cells", "recurrent", "time_first", "resized", "defaults", "quantised", "whole")

/* A constant of texts or complex numbers is no tensor: what reads it is missing, with that
 * reason. */
TEST(constants_of_other_types) {
    char *text;
    size_t n, seen = 0;
    cdmpp_err err = {0};
    assert_ok(cd_file_read("tests/profiler/data/constants.onnx", 0, &text, &n, &err));
    CdOnnx__ModelProto *m = cd_onnx__model_proto__unpack(NULL, n, (const uint8_t *)text);
    for (size_t i = 0; i < m->graph->n_node; i++) {
        CdOnnx__NodeProto *v = m->graph->node[i];
        if (strcmp(v->op_type, "Constant") != 0 || !v->n_attribute || !v->attribute[0]->t) continue;
        const cd_onnx_options o = {0};
        const cd_onnx_miss *miss;
        uint32_t n_miss;
        cd_graph *g;
        const int32_t was = v->attribute[0]->t->data_type;
        v->attribute[0]->t->data_type = i % 2 ? CD_ONNX__TENSOR_PROTO__DATA_TYPE__STRING
                                              : CD_ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX64;
        uint8_t *p = malloc(protobuf_c_message_get_packed_size(&m->base));
        assert_ok(cd_onnx_parse(p, protobuf_c_message_pack(&m->base, p), "odd", NULL, &o, &g, &miss,
                                &n_miss, &err));
        assert_true(n_miss > 0);
        assert_non_null(
            strstr(miss[0].reason, i % 2 ? "which holds texts" : "which holds complex"));
        cd_graph_free(g);
        free(p);
        v->attribute[0]->t->data_type = was;
        seen++;
    }
    assert_true(seen > 0);
    cd_onnx__model_proto__free_unpacked(m, NULL);
    cd_mem_free(text);
}

TESTS(NULL, NULL, constants_of_other_types, attention, functions_and_control, contents, layers)
