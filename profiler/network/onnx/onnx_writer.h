/* onnx_writer -- builds an ONNX model: nodes one after another, constants, inputs, outputs.
 *
 *   x = cd_onnx_writer_input(f, ...)
 *   y = CD_ONNX_WRITER_NODE(f, "Add", x, cd_onnx_writer_float(f, 1))  adds a node; returns the name
 *     of its output
 *   cd_onnx_writer_output(f, "y", y, ...)
 *   cd_onnx_writer_end(f, ..., buf)                                    packs a ModelProto
 *     (https://onnx.ai, onnx.proto)
 *
 * (1) A value is its name. Names, operators and texts of attributes must live as long as the
 *     writer; those that it returns do. Numbers and metadata are copied.
 * (2) Running out of memory is sticky: cd_onnx_writer_end reports it, and all calls until then are
 *     harmless.
 * (3) Attributes belong to the next node.
 * One thread. Starts as {0}. */
#ifndef CD_ONNX_WRITER_H
#define CD_ONNX_WRITER_H
#include "base/core/core.h"

enum { CD_ONNX_OPSET = 17, CD_ONNX_ML_OPSET = 1, CD_ONNX_IR = 8 };
typedef enum {
    CD_ONNX_F32 = 1,
    CD_ONNX_U8 = 2,
    CD_ONNX_I8 = 3,
    CD_ONNX_I32 = 6,
    CD_ONNX_I64 = 7,
    CD_ONNX_F64 = 11
} cd_onnx_type;

typedef struct cd_onnx_writer_list {
    void **item; /* messages of protobuf-c */
    size_t n, cap;
} cd_onnx_writer_list;

typedef struct cd_onnx_writer {
    cd_onnx_writer_list node, constant, input, output, meta;
    cd_onnx_writer_list attr; /* of the next node */
    cd_arena arena;
    size_t n;       /* values so far */
    const char *ml; /* "ai.onnx.ml" while its nodes are made, else NULL */
    bool oom;
} cd_onnx_writer;

/* Inputs and outputs of the model. dim: (n_dim); below 0 is the symbolic dimension "n_row". Returns
 * `name`. */
const char *cd_onnx_writer_input(cd_onnx_writer *f, const char *name, cd_onnx_type type,
                                 const int64_t *dim, size_t n_dim);
void cd_onnx_writer_output(cd_onnx_writer *f, const char *name, const char *value,
                           cd_onnx_type type, const int64_t *dim, size_t n_dim);
/* A tensor in the file, row-major; n_dim 0: a scalar. name NULL: the writer chooses one. Returns
 * the name. */
const char *cd_onnx_writer_constant(cd_onnx_writer *f, const char *name, cd_onnx_type type,
                                    const int64_t *dim, size_t n_dim, const void *value);
const char *cd_onnx_writer_float(cd_onnx_writer *f, float v);
const char *cd_onnx_writer_double(cd_onnx_writer *f, double v);
const char *cd_onnx_writer_ints(cd_onnx_writer *f, const int64_t *v, size_t n); /* (n) */

/* Attributes of the next node. */
void cd_onnx_writer_attr_int(cd_onnx_writer *f, const char *name, int64_t v);
void cd_onnx_writer_attr_float(cd_onnx_writer *f, const char *name, float v);
void cd_onnx_writer_attr_text(cd_onnx_writer *f, const char *name, const char *v);
void cd_onnx_writer_attr_ints(cd_onnx_writer *f, const char *name, const int64_t *v, size_t n);
void cd_onnx_writer_attr_floats(cd_onnx_writer *f, const char *name, const float *v, size_t n);
void cd_onnx_writer_attr_texts(cd_onnx_writer *f, const char *name, const char *const *v, size_t n);
/* Adds a node of one output and returns its name. in: (n) names. */
const char *cd_onnx_writer_node(cd_onnx_writer *f, const char *op, const char *const *in, size_t n);
#define CD_ONNX_WRITER_NODE(f, op, ...)                                                            \
    cd_onnx_writer_node(f, op, (const char *const[]){__VA_ARGS__},                                 \
                        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* One entry of the file's metadata. */
void cd_onnx_writer_meta(cd_onnx_writer *f, const char *key, const char *value);
/* Appends the file to out; `name` is the name of the graph. Errors: ENOMEM. */
cdmpp_status cd_onnx_writer_end(cd_onnx_writer *f, const char *name, cd_buf *out, cdmpp_err *err);
/* Frees all messages. */
void cd_onnx_writer_free(cd_onnx_writer *f);

#endif
