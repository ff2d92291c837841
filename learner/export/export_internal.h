/* export_internal -- inside of an export to ONNX: values of one program that members share.
 *
 *   rows (n_row, 164), device (1), flop (1)
 *     -> totals, derived columns of a row      export_input.c, in double as learner/inputs/tree_input.c does
 *     -> matrices of the trees, program vector
 *   members -> ln seconds (1, 1), double       export_tree.c, export_net.c
 *   kinds, weights -> log_s                    export_onnx.c */
#ifndef CD_EXPORT_INTERNAL_H
#define CD_EXPORT_INTERNAL_H
#include "learner/export/export.h"

/* onnx_writer -- builds an ONNX model: nodes one after another, constants, inputs, outputs.
 *
 *   x = cd_onnx_writer_input(f, ...)
 *   y = CD_ONNX_WRITER_NODE(f, "Add", x, cd_onnx_writer_float(f, 1))   adds a node; returns the name of its output
 *   cd_onnx_writer_output(f, "y", y, ...)
 *   cd_onnx_writer_end(f, ..., buf)                                     packs a ModelProto (https://onnx.ai, onnx.proto)
 *
 * (1) A value is its name. Names, operators and texts of attributes must live as long as the writer; those that it returns do.
 *     Numbers and metadata are copied.
 * (2) Running out of memory is sticky: cd_onnx_writer_end reports it, and all calls until then are harmless.
 * (3) Attributes belong to the next node.
 * One thread. Starts as {0}. */

enum { CD_ONNX_OPSET = 17, CD_ONNX_ML_OPSET = 1, CD_ONNX_IR = 8 };
typedef enum { CD_ONNX_F32 = 1, CD_ONNX_I64 = 7, CD_ONNX_F64 = 11 } cd_onnx_type;

typedef struct cd_onnx_writer_list {
    void **item; /* messages of protobuf-c */
    size_t n, cap;
} cd_onnx_writer_list;

typedef struct cd_onnx_writer {
    cd_onnx_writer_list node, constant, input, output, meta;
    cd_onnx_writer_list attr; /* of the next node */
    cd_arena arena;
    size_t n;        /* values so far */
    const char *ml;  /* "ai.onnx.ml" while its nodes are made, else NULL */
    bool oom;
} cd_onnx_writer;

/* Inputs and outputs of the model. dim: (n_dim); below 0 is the symbolic dimension "n_row". Returns `name`. */
const char *cd_onnx_writer_input(cd_onnx_writer *f, const char *name, cd_onnx_type type, const int64_t *dim, size_t n_dim);
void cd_onnx_writer_output(cd_onnx_writer *f, const char *name, const char *value, cd_onnx_type type, const int64_t *dim, size_t n_dim);
/* A tensor in the file, row-major; n_dim 0: a scalar. name NULL: the writer chooses one. Returns the name. */
const char *cd_onnx_writer_constant(cd_onnx_writer *f, const char *name, cd_onnx_type type, const int64_t *dim, size_t n_dim, const void *value);
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
#define CD_ONNX_WRITER_NODE(f, op, ...) \
    cd_onnx_writer_node(f, op, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* One entry of the file's metadata. */
void cd_onnx_writer_meta(cd_onnx_writer *f, const char *key, const char *value);
/* Appends the file to out; `name` is the name of the graph. Errors: ENOMEM. */
cdmpp_status cd_onnx_writer_end(cd_onnx_writer *f, const char *name, cd_buf *out, cdmpp_err *err);
/* Frees all messages. */
void cd_onnx_writer_free(cd_onnx_writer *f);

/* Names of values; NULL until somebody asks. */
typedef struct cd_export {
    cd_onnx_writer f;
    const cd_model *m;
    const char *rows, *device, *flop; /* inputs */
    const char *wide;                 /* rows as double */
    const char *index;                /* double (n_row): 0, 1, ... */
    const char *outer, *grid, *threads; /* double (n_row, 1) */
    const char *total[5];             /* double (n_row, 1): operations, bytes, unique bytes, lines, unique lines; log2(x + 1) */
    const char *derived;              /* (n_row, 15) */
    const char *program;              /* (1, 512): PROGRAM form without the device */
    const char *matrix[3];            /* of trees, by cd_tree_input_form */
} cd_export;

/* One node each; the name of its value. */
const char *cd_export_cast(cd_export *x, const char *v, cd_onnx_type to);
const char *cd_export_concat(cd_export *x, const char *const *v, size_t n, int64_t axis);
const char *cd_export_reshape(cd_export *x, const char *v, const int64_t *dim, size_t n);
const char *cd_export_sum(cd_export *x, const char *v, int64_t axis);            /* keeps the axis */
const char *cd_export_over(cd_export *x, const char *op, const char *v, int64_t axis); /* ReduceMax, ReduceMean, ReduceLogSumExp: likewise */
const char *cd_export_columns(cd_export *x, const char *v, const int64_t *c, size_t n);
const char *cd_export_log2p1(cd_export *x, const char *v);
/* Inputs and what all need. */
void cd_export_begin(cd_export *x);
const char *cd_export_derived(cd_export *x);
const char *cd_export_program(cd_export *x);
const char *cd_export_matrix(cd_export *x, cd_tree_input_form form);
const char *cd_export_log_trips(cd_export *x); /* double (n_row, 1) */

/* A member's ln seconds, double (1, 1). Errors: EUNSUPPORTED, ENOMEM. */
cdmpp_status cd_export_trees(cd_export *x, const cd_member *e, const char **log_s, cdmpp_err *err);
cdmpp_status cd_export_net(cd_export *x, const cd_member *e, size_t number, const char **log_s, cdmpp_err *err);

/* Appends the whole graph to out. Errors: EMODEL, EUNSUPPORTED, ENOMEM. */
cdmpp_status cd_export_onnx(const cd_model *m, cd_buf *out, cdmpp_err *err);
#endif
