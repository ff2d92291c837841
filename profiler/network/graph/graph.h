/* graph -- a network as a DAG of operators with known shapes.
 *
 *   x[1,3,224,224] ──┐
 *   w[64,3,7,7] ─────┴─ Conv{strides=[2,2]} ──> y[1,64,112,112] ── Relu ──> z
 *
 * The first form of a network in this program. The ONNX reader (onnx.h), the zoo (zoo.h) and the
 * gradient (gradient.h) build it with the same cd_graph_add; fusion (fusion.h) reads it. Operators,
 * attributes and their meaning are ONNX's, of the graph's opset (13 unless the maker says
 * otherwise). What is known of an operator is one row of the table in graph_rule.c: its numbers of
 * operands and results, its shape inference, its folding, its operation count.
 *
 *   (1) tensors and nodes are numbers; a node only reads tensors with smaller
 *       numbers than those that it writes: nodes are in topological order;
 *   (2) every tensor's shape is known when its node has been added: dims >= 0;
 *   (3) a tensor with `value` has known content (shapes and indices that were
 *       folded): the node that made it is `folded` and costs nothing;
 *   (4) weights have no content here, only a shape: is_weight. A tensor that is computed from
 *       weights and constants alone (a transposed weight) is a weight too, and its node is
 *       folded: it is computed once, when the network is loaded;
 *   (5) an absent optional input is CD_GRAPH_NONE;
 *   (6) a node keeps its attributes as given, and beside them their resolved values under ONNX's
 *       names, whether they were left out, came as an operand, or came in an older opset's form:
 *       axes and axis are not negative; windows have strides, dilations, kernel_shape, group and
 *       pads (auto_pad applied); perm, starts, ends, steps, pads, repeats, split, keepdims,
 *       epsilon, alpha, beta are always there; min and max of Clip where they are known; Softmax
 *       has `axes`, the dimensions that it runs over together.
 * One thread builds a graph; then it is read-only. All memory is in the graph's arena. */
#ifndef CD_GRAPH_H
#define CD_GRAPH_H

#include "base/text/text.h"
#include "features/expr/expr.h"
#include "profiler/network/graph/graph_limits.h"

#define CD_GRAPH_NONE UINT32_MAX

/* Kinds of types that networks have and programs do not compute with: reals of 8 and of 4 bits, by
 * TVM's codes (features/expr/expr_print.c has their names). */
enum {
    CD_T_E4M3FN = 10,
    CD_T_E4M3FNUZ = 11,
    CD_T_E5M2 = 12,
    CD_T_E5M2FNUZ = 13,
    CD_T_E8M0FNU = 14,
    CD_T_E2M1FN = 17
};
/* Can programs compute with it? Not with these, nor with integers of 4 or 2 bits. */
static inline bool cd_graph_type_is_computed(cd_dtype t) {
    return cd_expr_dtype_kind(t) < CD_T_E4M3FN && (cd_expr_dtype_bits(t) >= 8 || t == CD_BOOL);
}
static inline bool cd_graph_type_is_float(cd_dtype t) {
    return cd_expr_dtype_is_float(t) || cd_expr_dtype_kind(t) >= CD_T_E4M3FN;
}

typedef struct cd_graph_shape {
    uint32_t rank;
    int64_t dim[CD_GRAPH_MAX_RANK];
} cd_graph_shape;

typedef struct cd_graph_tensor {
    const char *name;
    cd_dtype dtype;
    cd_graph_shape shape;
    bool is_weight, is_input, is_output;
    /* a weight that every run changes: what is made from it is not made once */
    bool is_trained;
    uint32_t node; /* that makes it; CD_GRAPH_NONE for inputs and weights */
    /* Known content in row-major order, integers and bool as they are, floats in f; both NULL:
     * unknown. */
    const int64_t *value; /* (elements) */
    const double *fvalue; /* (elements) */
} cd_graph_tensor;

typedef enum cd_graph_attr_kind {
    CD_GRAPH_ATTR_INT,
    CD_GRAPH_ATTR_FLOAT,
    CD_GRAPH_ATTR_STR,
    CD_GRAPH_ATTR_INTS,
    CD_GRAPH_ATTR_FLOATS
} cd_graph_attr_kind;

typedef struct cd_graph_attr {
    const char *name;
    cd_graph_attr_kind kind;
    uint32_t n; /* of ints, floats */
    int64_t i;
    double f;
    const char *s;
    const int64_t *ints;
    const double *floats;
} cd_graph_attr;

typedef struct cd_graph_node {
    const char *name, *op, *domain; /* "Conv", "" for ONNX's own domain */
    uint32_t n_in, n_out, n_attr;
    const uint32_t *in, *out; /* tensor numbers; in may hold CD_GRAPH_NONE */
    const cd_graph_attr *attr;
    /* multiply-add = 2; element-wise, pooling and exp = 1 each an element; 0 when folded or a
     * view */
    double flop;
    bool folded; /* its outputs are known or weights (4): nothing runs */
    /* moves no data: Reshape, Flatten, Squeeze, Identity, Dropout ... */
    bool view;
    /* of cd_graph_opaque: its operands may be missing and its attributes are unknown, whatever it
     * is called */
    bool opaque;
} cd_graph_node;

typedef struct cd_graph {
    cd_arena arena;
    const char *name;
    uint32_t n_tensor, cap_tensor, n_node, cap_node;
    cd_graph_tensor *tensor;    /* (n_tensor) */
    cd_graph_node *node;        /* (n_node) */
    uint32_t n_input, n_output; /* of the network, weights not among them */
    uint32_t *input, *output;
    int opset; /* 13 unless the maker changes it */
    /* constants of any length are kept, up to CD_GRAPH_MAX_VALUES together */
    bool contents;
    /* an iteration (graph_grad.h): products read transposed operands as they lie */
    bool training;
    /* folded elements so far, CD_GRAPH_MAX_VALUES at most: more stay unknown */
    int64_t n_value;
    /* elements read to fold them, CD_GRAPH_MAX_STEPS at most: what is behind stays unknown */
    int64_t n_step;
    /* of input 0: which dimension is the batch; 1 where a recurrent layer reads time first */
    uint32_t batch_axis;
    /* (n_note) what was guessed or left out when it was read: for people, a line each */
    const char **note;
    /* n_more_note: notes beyond CD_GRAPH_MAX_NOTE, which are only counted */
    uint32_t n_note, n_more_note;
} cd_graph;

/* An empty graph of opset 13; the name is copied. Errors: ENOMEM. */
cdmpp_status cd_graph_new(const char *name, CD_GIVE cd_graph **out, cdmpp_err *err);
void cd_graph_free(CD_TAKE cd_graph *g); /* NULL is fine */

/* A network input, and a weight. Errors: ERANGE (rank, a dimension below 0, more
 * than 2^48 elements), ENOMEM. */
cdmpp_status cd_graph_input(cd_graph *g, const char *name, cd_dtype t, const cd_graph_shape *s,
                            uint32_t *tensor, cdmpp_err *err);
cdmpp_status cd_graph_weight(cd_graph *g, const char *name, cd_dtype t, const cd_graph_shape *s,
                             uint32_t *tensor, cdmpp_err *err);
/* A tensor of known integers or reals (exactly one not NULL). */
cdmpp_status cd_graph_constant(cd_graph *g, const char *name, cd_dtype t, const cd_graph_shape *s,
                               const int64_t *value, const double *fvalue, uint32_t *tensor,
                               cdmpp_err *err);

/* Append an operator of ONNX's own domain: infers the shapes of its n_out outputs (written to out),
 * folds what is known, counts its operations. Everything is copied. The first output
 * is called as the node, further ones "node:1" ... (cd_graph_rename). Tensors as
 * attributes are left to the caller: a Constant is cd_graph_constant, and
 * ConstantOfShape has `value` as an integer or real beside `dtype`, ONNX's number
 * of a type. Errors:
 * EUNSUPPORTED (an operator, attribute or unknown shape-giving input that
 * nothing can be inferred from: the caller may keep going with cd_graph_opaque),
 * ESCHEMA (operands do not fit), ERANGE, ENOMEM; key = the node's name. */
cdmpp_status cd_graph_add(cd_graph *g, const char *name, const char *op, const uint32_t *in,
                          uint32_t n_in, const cd_graph_attr *attr, uint32_t n_attr, uint32_t *out,
                          uint32_t n_out, cdmpp_err *err);

/* Does ONNX define this attribute for this operator, in opset 7 or any later one? */
bool cd_graph_attr_is_known(const char *op, const char *name);
/* Takes attributes out of the list that ONNX does not define for an operator that g's rules know,
 * with a note for each. Errors: EUNSUPPORTED (a text that is none of those that the attribute may
 * be), ENOMEM. */
cdmpp_status cd_graph_attrs_take_known(cd_graph *g, const char *op, cd_graph_attr *attr,
                                       uint32_t *n, cdmpp_err *err);

/* An operator nobody knows, with outputs whose shapes the caller knows. */
cdmpp_status cd_graph_opaque(cd_graph *g, const char *name, const char *domain, const char *op,
                             const uint32_t *in, uint32_t n_in, const cd_graph_shape *shape,
                             const cd_dtype *t, uint32_t *out, uint32_t n_out, cdmpp_err *err);
/* Call a tensor otherwise. */
cdmpp_status cd_graph_rename(cd_graph *g, uint32_t tensor, const char *name, cdmpp_err *err);
/* Mark a result of the network. */
cdmpp_status cd_graph_result(cd_graph *g, uint32_t tensor, cdmpp_err *err);

/* Attribute by name; NULL when absent. */
const cd_graph_attr *cd_graph_node_attr(const cd_graph_node *n, const char *name);
int64_t cd_graph_node_int(const cd_graph_node *n, const char *name, int64_t absent);
double cd_graph_node_float(const cd_graph_node *n, const char *name, double absent);
int64_t cd_graph_shape_elements(const cd_graph_shape *s);
/* Rank and dimensions within their limits? Errors: ERANGE. */
cdmpp_status cd_graph_shape_check(const cd_graph_shape *s, cdmpp_err *err);
/* Weight, or content known: not computed when the network runs. */
static inline bool cd_graph_tensor_is_static(const cd_graph_tensor *t) {
    return (t->is_weight && !t->is_trained) || t->value || t->fvalue;
}
/* Type of ONNX's number (TensorProto.DataType); false: strings, complex numbers, unknown. */
bool cd_graph_dtype(int64_t onnx, cd_dtype *out);
/* What such a number is where it is none of these, for people: "texts (type 8)", "a type that is
 * not known (99)". */
const char *cd_graph_dtype_name(int64_t onnx, char *buf, size_t n);
/* Sum over nodes. */
double cd_graph_flop(const cd_graph *g);

/* One more note, with what printf makes of the text. The same text twice is one note. Errors:
 * ENOMEM. */
cdmpp_status cd_graph_note(cd_graph *g, cdmpp_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The notes of `from` are g's, too. Errors: ENOMEM. */
cdmpp_status cd_graph_take_notes(cd_graph *g, const cd_graph *from, cdmpp_err *err);
/* Bytes that a tensor takes, those of less than 8 bits packed. */
int64_t cd_graph_shape_bytes(const cd_graph_shape *s, cd_dtype t);
/* A copy of a text in the graph's arena, "" for NULL; NULL when out of memory. */
const char *cd_graph_keep(cd_graph *g, const char *s);

/* A node a line: type and shape of its results, operations (or "folded", "view"), name; then a line
 * of totals. */
void cd_graph_print(cd_buf *out, const cd_graph *g);
/* Members without braces: "name", "opset", "flop", "inputs", "outputs", "nodes": [{name, op,
 * domain, in, out, attributes, flop, folded, view}]; tensors are {name, dtype, shape}. */
void cd_graph_print_json(cd_buf *out, const cd_graph *g);
#endif
