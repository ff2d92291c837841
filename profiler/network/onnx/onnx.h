/* onnx -- an ONNX file becomes a graph.
 *
 *   file ── onnx_strip: large tensor contents left out ── protobuf-c ──> messages
 *   messages ┬─ onnx_input: inputs, weights, constants ──> tensors of the graph
 *            │    (onnx_role: which input is data?)
 *            └─ onnx_order, onnx_node: node by node, in an order that works
 *                 ── cd_graph_add ──> nodes of the graph
 *
 * The reader knows names, types, functions and branches, but no operator except Constant,
 * ConstantOfShape, If, Loop and Scan: what a Conv or a Slice means is a row of the table in
 * profiler/network/graph/graph_rule.c. A new operator needs no change here, unless its first
 * operand is data that weights stand behind (the lists in onnx_role.c), or an attribute of it holds
 * a tensor (onnx_tensor.c). docs/internals/add-an-operator.md shows all the places.
 *
 *   (1) opsets from 7 on; of one that is newer than what is known here operators are taken for what
 *       they were, with a note, and only those that are not known are missing; nodes in any order,
 *       as long as there is no cycle;
 *   (2) nothing of a file is executed: content is kept only as far as shapes
 *       need it, large contents are not even read;
 *   (3) an operator that the graph's table does not know, or whose result's shape depends on data,
 *       is a cd_onnx_miss with the reason. Where the file states the shapes of its results it is in
 *       the graph as an opaque node. Elsewhere it is no node: what reads its results is missing
 *       too, each node with its own line, and what it reads becomes a result of the graph, so that
 *       it is computed;
 *   (4) If becomes the branch that its condition selects, Loop its body as often as it runs, one
 *       after the other, where that is known from constants or options; functions of the file are
 *       inlined;
 *   (5) an invalid file is an error: operands that do not fit, a name defined
 *       twice or nowhere, a cycle, a dimension without a value.
 *
 * Which inputs are data? Files without weights list these as inputs, too:
 *   a. those of cd_onnx_options.input, and no others, if there are any;
 *   b. an input with an initializer is a weight;
 *   c. if any other initializer exists, the other inputs are data;
 *   d. else an input is data when one of its dimensions has no number, when it
 *      holds integers, or when alone or together with constants it reaches the
 *      first operand of an operator that has its weights behind it (Conv, Gemm,
 *      MatMul, BatchNormalization, LSTM ...), or of pooling, Softmax and the
 *      like, or a result. So are queries, keys and values of attention, as one operator or as
 *      products around
 *      a Softmax, and second operands of products that have a batch in front. An input that only
 *      meets others (a bias in Add, a token in
 *      Concat) or is the table of a Gather is a weight;
 *   e. where that leaves none, all are data.
 * d and e are guesses: a note (cd_graph_note) names what was taken for what. None where the names
 * confirm d: those of all weights, and of no data, end in a word like "weight" or "running_mean".
 *
 * A batch size replaces dimension 0 of data inputs (those where it equals the first one's), or
 * dimension 1 where a recurrent layer reads time first (cd_graph.batch_axis), is the value of the
 * dimension's name if it has one, and replaces the old size at the front of a Reshape's target. A
 * file may hold its batch size in other constants, too: then operands do not fit, and the error
 * says so. One thread. */
#ifndef CD_ONNX_H
#define CD_ONNX_H
#include "profiler/network/graph/graph.h"
#include "profiler/network/onnx/onnx_writer.h"

typedef struct cd_onnx_options {
    int64_t batch; /* 0: as in the file */
    /* (n_dim) "seq=128": a symbolic dimension; "ids[1]=128": one of an input; "if_3=then",
     * "loop_1=10": the branch of an If, the runs of a Loop, "nms=100": the size of a result that
     * depends on the data, by the name of the node or of its first result */
    const char *const *dim;
    uint32_t n_dim;
    const char *const *input; /* (n_input) names of the data inputs */
    uint32_t n_input;
    /* all contents of weights are kept, CD_GRAPH_MAX_VALUES numbers at most: to compute with
     * them */
    bool contents;
} cd_onnx_options;

typedef struct cd_onnx_miss {
    /* node: its name, or its first result's where it has none */
    const char *node, *op, *domain, *reason;
} cd_onnx_miss;

/* `o` NULL: defaults. The misses live in the graph. Errors, with the path: EIO, EPARSE
 * (no or half a model), ESCHEMA (invalid), ERANGE (a limit of graph_limits.h),
 * EUNSUPPORTED (an opset before 7), EUSAGE (an option that fits nothing), ENOMEM. */
cdmpp_status cd_onnx_read(const char *path, const cd_onnx_options *o, CD_GIVE cd_graph **out,
                          CD_KEEP const cd_onnx_miss **miss, uint32_t *n_miss, cdmpp_err *err);

/* A text that is kept in the file beside the model: the value of `key` in its metadata_props, the
 * last one if there are several. *text is the caller's to free, and NULL where there is none.
 * Errors, with the path: EIO, EPARSE (no model), ENOMEM. */
cdmpp_status cd_onnx_metadata(const char *path, const char *key, CD_GIVE char **text, size_t *n,
                              cdmpp_err *err);
/* Writes the file of `path` to `to`, which may be the same, with this text in place of what `key`
 * had. All other bytes of the model stay as they are, in their order. Errors: the same. */
cdmpp_status cd_onnx_metadata_write(const char *path, const char *to, const char *key,
                                    const char *text, size_t n, cdmpp_err *err);
/* Whether the file begins as an ONNX model does, and not as JSON. */
bool cd_onnx_is_model(const char *path);
/* The same of bytes; `folder` is where external data would be, NULL: nowhere. */
cdmpp_status cd_onnx_parse(const void *data, size_t n, const char *name, const char *folder,
                           const cd_onnx_options *o, CD_GIVE cd_graph **out,
                           CD_KEEP const cd_onnx_miss **miss, uint32_t *n_miss, cdmpp_err *err);

/* Append an ONNX file of the graph, in which weights hold made-up numbers. Of operators with
 * attributes only the common ones of image networks are known (onnx_writer.c). Errors: EUNSUPPORTED
 * (which operator; several results, a known tensor that is not float32 or int64), ENOMEM. */
cdmpp_status cd_onnx_write(const cd_graph *g, cd_buf *out, cdmpp_err *err);
#endif
