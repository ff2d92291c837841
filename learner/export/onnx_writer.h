/* onnxfile -- writing an ONNX model: nodes one after another, constants, inputs, outputs.
 *
 *   x = cd_onnx_writer_input(f, ...)
 *   y = CD_ONNX_WRITER_NODE(f, "Add", x, cd_onnx_writer_float(f, 1))   a node; its output is the name that it returns
 *   cd_onnx_writer_output(f, "y", y, ...)
 *   cd_onnx_writer_end(f, buf)
 *
 *   ModelProto, of protobuf messages (https://onnx.ai, onnx.proto): a field is its number and kind as a varint,
 *   then a varint, 4 bytes, or a length and bytes
 *     1 ir_version 2 producer_name 3 producer_version 8 opset_import {1 domain 2 version} 14 metadata {1 key 2 value}
 *     7 graph: 1 node {1 input 2 output 4 op_type 5 attribute 7 domain}  2 name  5 initializer  11 input  12 output
 *
 * (1) Values are texts that live with the file. (2) Out of memory is sticky and told by cd_onnx_writer_end: what
 *     is made after it is "" and harmless. (3) Attributes go to the next node.
 * One thread. */
#ifndef CD_ONNX_WRITER_H
#define CD_ONNX_WRITER_H
#include "base/core/core.h"
#include "base/text/text.h"

enum { CD_ONNX_OPSET = 17, CD_ONNX_ML_OPSET = 1, CD_ONNX_IR = 8 };
typedef enum { CD_ONNX_F32 = 1, CD_ONNX_I64 = 7, CD_ONNX_F64 = 11 } cd_onnx_type;

typedef struct cd_onnx_writer {
    cd_buf node, constant, input, output, meta, attr;
    cd_arena arena;
    size_t n;        /* values so far */
    const char *ml;  /* "ai.onnx.ml" while its nodes are made, else NULL */
    bool oom;
} cd_onnx_writer;

/* Dimensions: below 0 is "n_row", as many as there are. */
const char *cd_onnx_writer_input(cd_onnx_writer *f, const char *name, cd_onnx_type type, const int64_t *dim, size_t n_dim);
void cd_onnx_writer_output(cd_onnx_writer *f, const char *name, const char *value, cd_onnx_type type, const int64_t *dim, size_t n_dim);
/* A tensor of the file, row-major; n_dim 0: one number; name NULL: a number. */
const char *cd_onnx_writer_constant(cd_onnx_writer *f, const char *name, cd_onnx_type type, const int64_t *dim, size_t n_dim, const void *value);
const char *cd_onnx_writer_float(cd_onnx_writer *f, float v);
const char *cd_onnx_writer_double(cd_onnx_writer *f, double v);
const char *cd_onnx_writer_ints(cd_onnx_writer *f, const int64_t *v, size_t n); /* (n) */

void cd_onnx_writer_attr_int(cd_onnx_writer *f, const char *name, int64_t v);
void cd_onnx_writer_attr_float(cd_onnx_writer *f, const char *name, float v);
void cd_onnx_writer_attr_text(cd_onnx_writer *f, const char *name, const char *v);
void cd_onnx_writer_attr_ints(cd_onnx_writer *f, const char *name, const int64_t *v, size_t n);
void cd_onnx_writer_attr_floats(cd_onnx_writer *f, const char *name, const float *v, size_t n);
void cd_onnx_writer_attr_texts(cd_onnx_writer *f, const char *name, const char *const *v, size_t n);
const char *cd_onnx_writer_node(cd_onnx_writer *f, const char *op, const char *const *in, size_t n);
#define CD_ONNX_WRITER_NODE(f, op, ...) \
    cd_onnx_writer_node(f, op, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

void cd_onnx_writer_meta(cd_onnx_writer *f, const char *key, const char *value);
/* The file behind out. Errors: ENOMEM. */
cdmpp_status cd_onnx_writer_end(cd_onnx_writer *f, const char *name, cd_buf *out, cdmpp_err *err);
void cd_onnx_writer_free(cd_onnx_writer *f);
#endif
