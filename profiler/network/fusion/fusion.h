/* fusion -- a network in the operators of TVM's tasks, and these operators in groups that run as
 * one program.
 *
 *   cd_graph ── import ──> nodes ── layout ──> nodes ── groups
 *   Conv(x, w, b)          conv(x, w') + b'                {conv, add, relu}
 *   BatchNormalization ──/ (folded into w', b')
 *   Relu                   relu
 *
 * The workload room takes the groups and asks the compute room for the definition of each. Nodes
 * are the tensor operators that TVM's Relay has after its passes, and no others: Gemm is dense and
 * add, an LSTM one cell a time step. A node makes one tensor, so node and tensor have one number.
 *   (1) node 0 is a sentinel that nothing reads; operands have smaller numbers;
 *   (2) is_const: computed from weights alone, once, before the network runs; equal ones (operator,
 *       operands, attributes) are one node, so that a weight that several operators read in one
 *       form is in memory once;
 *   (3) a scalar of known value is a CONST node and part of each group that reads it;
 *   (4) after cd_fuse_groups: group[i] is the last node of i's group, which names it;
 *       a node that is no operator of the network (LEAF, CONST, is_const) and a node that
 *       nothing reads have CD_GRAPH_NONE.
 * Failure is sticky: f->st is set, later calls add nothing and return 0. One thread. */
#ifndef CD_FUSION_H
#define CD_FUSION_H
#include "profiler/network/fusion/fuse_quantize.h"
#include "profiler/network/fusion/fusion_rules.h"
#include "profiler/network/graph/graph.h"

/* TVM's pattern kinds, in its order: what may be fused with what. */
typedef enum cd_fuse_pattern {
    CD_FUSE_PATTERN_ELEM,
    CD_FUSE_PATTERN_BROADCAST,
    CD_FUSE_PATTERN_INJECTIVE,
    CD_FUSE_PATTERN_REDUCE,
    CD_FUSE_PATTERN_OUT,
    CD_FUSE_PATTERN_TUPLE,
    CD_FUSE_PATTERN_OPAQUE
} cd_fuse_pattern;

/* X(id, name, pattern): operators that have a function of their own in te_compute*.c ... */
#define CD_FUSE_OPS_SPECIAL(X)                                                                     \
    X(LEAF, "leaf", OPAQUE)                                                                        \
    X(CONST, "const", ELEM)                                                                        \
    X(EXTERN, "extern", OPAQUE)                                                                    \
    X(CONV, "conv", OUT)                                                                           \
    X(CONVT, "conv_transpose", OUT)                                                                \
    X(DENSE, "dense", OUT)                                                                         \
    X(BMM, "batch_matmul", OUT)                                                                    \
    X(POOL, "pool", OUT)                                                                           \
    X(POOLGRAD, "pool_grad", OUT)                                                                  \
    X(ADAPTIVE, "adaptive_pool", OUT)                                                              \
    X(LRN, "lrn", OPAQUE)                                                                          \
    X(SOFTMAX, "softmax", OPAQUE)                                                                  \
    X(LOGSOFTMAX, "log_softmax", OPAQUE)                                                           \
    X(REDUCE, "reduce", REDUCE)                                                                    \
    X(ARG, "arg_reduce", REDUCE)                                                                   \
    X(TUPLE, "tuple", TUPLE)                                                                       \
    X(CONCAT, "concatenate", INJECTIVE)                                                            \
    X(RESHAPE, "reshape", INJECTIVE)                                                               \
    X(TRANSPOSE, "transpose", INJECTIVE)                                                           \
    X(SLICE, "strided_slice", INJECTIVE)                                                           \
    X(PAD, "pad", INJECTIVE)                                                                       \
    X(EXPAND, "broadcast_to", BROADCAST)                                                           \
    X(TAKE, "take", INJECTIVE)                                                                     \
    X(GATHER, "gather", INJECTIVE)                                                                 \
    X(RESIZE, "resize", INJECTIVE)                                                                 \
    X(TILE, "tile", INJECTIVE)                                                                     \
    X(PACK4, "pack4", OPAQUE)
/* ... and operators that are one expression of their operands $0, $1, $2 (broadcast), parameters
 * $p, $q, $s and the result's type $t: X(id, name, pattern, operands, TVM's name of the stage,
 * prefix of its axes, expression). Unary ones come before ADD, comparisons and logic are EQ .. OR:
 * fuse_node.c tests these ranges. */
#define CD_FUSE_OPS_EXPR(X)                                                                        \
    X(RELU, "relu", ELEM, 1, "T_relu", "ax", "max($0, 0)")                                         \
    X(CLIP, "clip", ELEM, 1, "compute", "i", "max(min($0, $q), $p)")                               \
    X(SIGMOID, "sigmoid", ELEM, 1, "T_sigmoid", "ax", "sigmoid($0)")                               \
    X(TANH, "tanh", ELEM, 1, "T_tanh", "ax", "tanh($0)")                                           \
    X(EXP, "exp", ELEM, 1, "T_exp", "ax", "exp($0)")                                               \
    X(LOG, "log", ELEM, 1, "T_log", "ax", "log($0)")                                               \
    X(SQRT, "sqrt", ELEM, 1, "T_sqrt", "ax", "sqrt($0)")                                           \
    X(ERF, "erf", ELEM, 1, "T_erf", "ax", "erf($0)")                                               \
    X(NEG, "negative", ELEM, 1, "T_negative", "ax", "$0*-1")                                       \
    X(ABS, "abs", ELEM, 1, "T_abs", "ax", "fabs($0)")                                              \
    X(IABS, "abs", ELEM, 1, "T_abs", "ax", "select($0 >= 0, $0, 0:$t - $0)")                       \
    X(FLOOR, "floor", ELEM, 1, "T_floor", "ax", "floor($0)")                                       \
    X(CEIL, "ceil", ELEM, 1, "T_ceil", "ax", "ceil($0)")                                           \
    X(ROUND, "round", ELEM, 1, "T_round", "ax", "nearbyint($0)")                                   \
    X(SIGN, "sign", ELEM, 1, "T_sign", "ax", "select($0 < 0, -1:$t, select($0 > 0, 1:$t, 0:$t))")  \
    X(SIN, "sin", ELEM, 1, "T_sin", "ax", "sin($0)")                                               \
    X(COS, "cos", ELEM, 1, "T_cos", "ax", "cos($0)")                                               \
    X(TAN, "tan", ELEM, 1, "T_tan", "ax", "tan($0)")                                               \
    X(ASIN, "asin", ELEM, 1, "T_asin", "ax", "asin($0)")                                           \
    X(ACOS, "acos", ELEM, 1, "T_acos", "ax", "acos($0)")                                           \
    X(ATAN, "atan", ELEM, 1, "T_atan", "ax", "atan($0)")                                           \
    X(SINH, "sinh", ELEM, 1, "T_sinh", "ax", "sinh($0)")                                           \
    X(COSH, "cosh", ELEM, 1, "T_cosh", "ax", "cosh($0)")                                           \
    X(NOT, "logical_not", ELEM, 1, "T_logical_not", "ax", "!$0")                                   \
    X(ISNAN, "isnan", ELEM, 1, "T_isnan", "ax", "isnan:bool($0)")                                  \
    X(CAST, "cast", ELEM, 1, "T_cast", "ax", "$t($0)")                                             \
    X(LEAKY, "leaky_relu", ELEM, 1, "T_leaky_relu", "ax", "select($0 > 0, $0, $0*$p)")             \
    X(ELU, "elu", ELEM, 1, "T_elu", "ax", "select($0 > 0, $0*$q, (exp($0) - 1)*$p)")               \
    X(QSCALE, "quantisation_scale", ELEM, 1, "T_qscale", "ax", "select($0 > 0, $0*$p, 1.0)")       \
    X(ADD, "add", BROADCAST, 2, "T_add", "ax", "$0 + $1")                                          \
    X(SUB, "subtract", BROADCAST, 2, "T_subtract", "ax", "$0 - $1")                                \
    X(MUL, "multiply", BROADCAST, 2, "T_multiply", "ax", "$0*$1")                                  \
    X(DIV, "divide", BROADCAST, 2, "T_divide", "ax", "$0/$1")                                      \
    X(IDIV, "divide", BROADCAST, 2, "T_divide", "ax", "truncdiv($0, $1)")                          \
    X(MOD, "floor_mod", BROADCAST, 2, "T_floor_mod", "ax", "$0 % $1")                              \
    X(IMOD, "mod", BROADCAST, 2, "T_mod", "ax", "truncmod($0, $1)")                                \
    X(FMOD, "mod", BROADCAST, 2, "T_mod", "ax", "fmod($0, $1)")                                    \
    X(POW, "power", BROADCAST, 2, "T_power", "ax", "pow($0, $1)")                                  \
    X(MAX, "maximum", BROADCAST, 2, "T_maximum", "ax", "max($0, $1)")                              \
    X(MIN, "minimum", BROADCAST, 2, "T_minimum", "ax", "min($0, $1)")                              \
    X(PRELU, "prelu", BROADCAST, 2, "T_prelu", "ax", "select($0 > 0, $0, $0*$1)")                  \
    X(QUANTIZE, "quantize", BROADCAST, 2, "T_quantize", "ax",                                      \
      "$t(max(min(nearbyint($0/$1) + $s, $q), $p))")                                               \
    X(REQUANTIZE, "quantize", BROADCAST, 2, "T_quantize", "ax",                                    \
      "$t(max(min(nearbyint($0*$1) + $s, $q), $p))")                                               \
    X(DEQUANTIZE, "dequantize", BROADCAST, 2, "T_dequantize", "ax", "(float32($0) - $s)*$1")       \
    X(EQ, "equal", BROADCAST, 2, "T_equal", "ax", "$0 == $1")                                      \
    X(LT, "less", BROADCAST, 2, "T_less", "ax", "$0 < $1")                                         \
    X(LE, "less_equal", BROADCAST, 2, "T_less_equal", "ax", "$0 <= $1")                            \
    X(GT, "greater", BROADCAST, 2, "T_greater", "ax", "$0 > $1")                                   \
    X(GE, "greater_equal", BROADCAST, 2, "T_greater_equal", "ax", "$0 >= $1")                      \
    X(AND, "logical_and", BROADCAST, 2, "T_logical_and", "ax", "$0 && $1")                         \
    X(OR, "logical_or", BROADCAST, 2, "T_logical_or", "ax", "$0 || $1")                            \
    X(WHERE, "where", BROADCAST, 3, "T_where", "ax", "select($0, $1, $2)")

typedef enum cd_fuse_op {
#define CD_X(id, ...) CD_FUSE_OP_##id,
    CD_FUSE_OPS_SPECIAL(CD_X) CD_FUSE_OPS_EXPR(CD_X)
#undef CD_X
        CD_FUSE_OP_COUNT
} cd_fuse_op;

typedef enum cd_fuse_reduction {
    CD_FUSE_REDUCE_SUM,
    CD_FUSE_REDUCE_MEAN,
    CD_FUSE_REDUCE_MAX,
    CD_FUSE_REDUCE_MIN,
    CD_FUSE_REDUCE_PROD
} cd_fuse_reduction;

/* What an operator needs beside its operands' shapes; unused members are zero. */
typedef struct cd_fuse_attr {
    uint32_t n; /* spatial dimensions, or entries of v */
    int64_t kernel[3], stride[3], dilation[3], before[CD_GRAPH_MAX_RANK], after[CD_GRAPH_MAX_RANK];
    int64_t v[CD_GRAPH_MAX_RANK]; /* permutation, reduced axes, starts of a slice */
    int64_t step[CD_GRAPH_MAX_RANK];
    int64_t groups, axis;
    bool last; /* channels are the last dimension */
    bool keepdims, ceil, include_pad, is_max;
    int mode; /* cd_fuse_reduction; of PAD, RESIZE */
    /* parameters of an expression; of LRN alpha, beta; p: of a dot4 convolution the word in its
     * padding */
    double p, q;
    double s; /* bias of LRN; zero point of QUANTIZE, DEQUANTIZE */
    /* RESIZE: what the file says, where that is not the result's extent over the operand's; else
     * 0 */
    double scale[CD_GRAPH_MAX_RANK];
    /* CONV, DENSE: operands are words of four numbers of 8 bits (PACK4), results 32 bits:
     * quantize.h */
    bool dot4;
} cd_fuse_attr;

typedef struct cd_fuse_node {
    cd_fuse_op op;
    cd_dtype dtype;
    uint32_t n_in;
    const uint32_t *in; /* (n_in) */
    cd_graph_shape shape;
    cd_fuse_attr a;
    bool is_const;
    double value;    /* of CONST */
    uint32_t origin; /* node of the graph; CD_GRAPH_NONE for its inputs and weights */
    uint32_t tensor; /* LEAF, EXTERN: tensor of the graph */
} cd_fuse_node;

typedef struct cd_fuse_unsupported {
    uint32_t node; /* of the graph */
    const char *why;
} cd_fuse_unsupported;

typedef struct cd_fuse_graph {
    cd_arena arena;
    const cd_graph *g;
    uint32_t n, cap;
    cd_fuse_node *node; /* (n) */
    uint32_t n_out;
    uint32_t *out;   /* (n_out) the network's results, in its order */
    uint32_t *group; /* (n) after cd_fuse_groups */
    uint32_t n_bad, cap_bad;
    cd_fuse_unsupported *bad; /* (n_bad) operators without a definition */
    uint32_t n_layer, cap_layer, n_observed;
    /* (n_layer) after cd_fuse_quantize; of its results the last n_observed are observed tensors */
    cd_quantize_layer *layer;
    /* after cd_fuse_groups: rules that were asked for and are not known */
    cd_fusion_rules open;
    uint32_t origin; /* for nodes that are added */
    /* hash table of nodes that are made of weights: an equal one is not made again */
    uint32_t *made, n_made, cap_made;
    cdmpp_status st;
    cdmpp_err *err;
} cd_fuse_graph;

/* TVM's name of an operator, and its pattern. */
const char *cd_fuse_op_name(cd_fuse_op op);
cd_fuse_pattern cd_fuse_op_pattern(cd_fuse_op op);
/* The same bytes under another shape or type: nothing runs. */
static inline bool cd_fuse_is_view(const cd_fuse_node *n) {
    return n->op == CD_FUSE_OP_RESHAPE ||
           (n->op == CD_FUSE_OP_PACK4 && !n->is_const && n->a.axis + 1 == n->shape.rank);
}
static inline bool cd_fuse_op_is_expr(cd_fuse_op op) { return op >= CD_FUSE_OP_RELU; }

/* ---- nodes (fuse_node.c): each appends a node and returns its number. Shapes are inferred;
 * operands that do not fit set ESCHEMA ---- */
/* A graph of nodes for g, which it borrows; free it. Errors: ENOMEM. */
cdmpp_status cd_fuse_new(const cd_graph *g, CD_GIVE cd_fuse_graph **out, cdmpp_err *err);
void cd_fuse_free(CD_TAKE cd_fuse_graph *f); /* NULL is fine */
/* A node of given shape; in and a (NULL: all zero) are copied. */
uint32_t cd_fuse_add_node(cd_fuse_graph *f, cd_fuse_op op, cd_dtype t, const cd_graph_shape *s,
                          const uint32_t *in, uint32_t n_in, const cd_fuse_attr *a);
/* A tensor of the graph that no operator makes: input, or weight (is_const). */
uint32_t cd_fuse_leaf(cd_fuse_graph *f, uint32_t tensor, bool is_const);
/* A scalar of known value. */
uint32_t cd_fuse_const(cd_fuse_graph *f, cd_dtype t, double v);
/* Expressions of one, two (broadcast) and three operands; p, q: parameters. A cast to the type that
 * x has is x. */
uint32_t cd_fuse_unary(cd_fuse_graph *f, cd_fuse_op op, uint32_t x, double p, double q);
uint32_t cd_fuse_binary(cd_fuse_graph *f, cd_fuse_op op, uint32_t x, uint32_t y);
uint32_t cd_fuse_where(cd_fuse_graph *f, uint32_t c, uint32_t x, uint32_t y);
uint32_t cd_fuse_cast(cd_fuse_graph *f, uint32_t x, cd_dtype t);
/* A view: same elements in the same order. The node itself where the shape is the same already. */
uint32_t cd_fuse_reshape(cd_fuse_graph *f, uint32_t x, const cd_graph_shape *s);
/* A view when only dimensions of 1 move. */
uint32_t cd_fuse_transpose(cd_fuse_graph *f, uint32_t x, const int64_t *perm);
/* Over n axes, in any order; x itself where n is 0. */
uint32_t cd_fuse_reduce(cd_fuse_graph *f, cd_fuse_reduction how, uint32_t x, const int64_t *axis,
                        uint32_t n, bool keepdims);
/* start, step: one for each dimension (step NULL: all 1); s: the result's shape. x itself where
 * that is all of it. */
uint32_t cd_fuse_slice(cd_fuse_graph *f, uint32_t x, const int64_t *start, const int64_t *step,
                       const cd_graph_shape *s);
/* Broadcast to s. */
uint32_t cd_fuse_expand(cd_fuse_graph *f, uint32_t x, const cd_graph_shape *s);
/* A program reads at most so many tensors; a concatenation of more parts is one of
 * concatenations. */
enum { CD_FUSE_MAX_READS = 256 };
/* n > 0 operands joined along the axis, in pieces where there are more than CD_FUSE_MAX_READS; the
 * operand itself where n is 1. */
uint32_t cd_fuse_concat(cd_fuse_graph *f, const uint32_t *in, uint32_t n, int64_t axis);
uint32_t cd_fuse_dense(cd_fuse_graph *f, uint32_t x, uint32_t w); /* [M,K], [N,K] -> [M,N] */
uint32_t cd_fuse_bmm(cd_fuse_graph *f, uint32_t x, uint32_t y);   /* [B,M,K], [B,N,K] -> [B,M,N] */
/* The product of operands that are read transposed in place: CD_FUSE_TRANSPOSED_X: x is [K,M],
 * CD_FUSE_TRANSPOSED_Y: y is [K,N]. 2 or 3 dimensions. */
enum { CD_FUSE_TRANSPOSED_X = 1, CD_FUSE_TRANSPOSED_Y = 2 };
uint32_t cd_fuse_product(cd_fuse_graph *f, uint32_t x, uint32_t y, int how);
/* op: SOFTMAX or LOGSOFTMAX. */
uint32_t cd_fuse_softmax(cd_fuse_graph *f, cd_fuse_op op, uint32_t x, int64_t axis);
/* Set f->st and the error text, if none is set yet. Returns 0. */
uint32_t cd_fuse_fail(cd_fuse_graph *f, cdmpp_status st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- passes ---- */
/* Operators of f->g -> nodes, with batch norms folded into weights. Operators without a
 * definition become EXTERN nodes and are listed in f->bad. Errors: ENOMEM, ESCHEMA. */
cdmpp_status cd_fuse_import(cd_fuse_graph *f, cdmpp_err *err);
/* The same network with layers in 8 bits: fuse_quantize.h. q NULL: as the file says. Errors:
 * EINVALID (not as many ranges as tensors), ENOMEM. */
cdmpp_status cd_fuse_quantize(const cd_fuse_graph *from, const cd_quantize *q,
                              CD_GIVE cd_fuse_graph **out, cdmpp_err *err);
/* The same network with channels last around convolutions (if `last`), and with rows
 * of matrix products kept two-dimensional through element-wise operators. Errors: ENOMEM. */
cdmpp_status cd_fuse_layout(const cd_fuse_graph *from, bool last, CD_GIVE cd_fuse_graph **out,
                            cdmpp_err *err);
/* Fill group[]. At most max_depth nodes a group (TVM: 256). rules NULL: TVM's alone; else operators
 * are joined only where these say so too, and what they do not know stays apart and is listed in
 * f->open. Errors: ENOMEM. */
cdmpp_status cd_fuse_groups(cd_fuse_graph *f, uint32_t max_depth, const cd_fusion_rules *rules,
                            cdmpp_err *err);
/* The name that rules have for an operator of a graph: its own, or DepthwiseConv. */
const char *cd_fusion_rules_name(const cd_graph *g, const cd_graph_node *n);
#endif
