/* graph_call_internal -- one operator while it is being added to a graph, and the table of
 * operators.
 *
 *   in[], attr[] ── rule.infer ──> out[].shape, out[].dtype, resolved attributes
 *                └─ rule.fold  ──> out[].value or .fvalue, where every operand is known
 *                └─ rule.flop  ──> the node's operation count
 *
 *   (1) cd_graph_add checks the operands against the rule's numbers before it calls infer:
 *       operands below min_in are there, those above may be absent;
 *   (2) infer sets the type and shape of every output with cd_graph_call_set_output, and writes
 *       resolved attributes with cd_graph_call_set_*: later stages read only resolved ones;
 *   (3) fold may leave the content unknown, where it cannot or need not compute it;
 *   (4) out[] becomes tensors of the graph only when all of it went well;
 *   (5) flop is called after infer, and not for folded nodes and views.
 * To add an operator: a row in graph_rule.c, its functions in the file of their kind (graph_conv.c,
 * graph_index.c, ...), and their names in the lists at the end of this header. Private to the room.
 * One thread. */
#ifndef CD_GRAPH_CALL_INTERNAL_H
#define CD_GRAPH_CALL_INTERNAL_H
#include "profiler/network/graph/graph.h"

struct cd_graph_rule;

typedef struct cd_graph_call {
    cd_graph *g;
    const struct cd_graph_rule *rule;
    const char *op;
    const uint32_t *in;
    cd_graph_attr *attr;  /* (n_attr of cap_attr) given, then resolved ones */
    cd_graph_tensor *out; /* (n_out) */
    uint32_t n_in, n_attr, cap_attr, n_out;
} cd_graph_call;

/* RANDOM: not a weight even when made from weights alone */
enum { CD_GRAPH_RULE_VIEW = 1, CD_GRAPH_RULE_RANDOM = 2 };

typedef struct cd_graph_rule {
    const char *op;
    int16_t first, last;             /* opsets; last 0: still there */
    int16_t min_in, max_in, max_out; /* -1: any number */
    cdmpp_status (*infer)(cd_graph_call *c, cdmpp_err *err);
    /* NULL: never. May leave the content unknown */
    cdmpp_status (*fold)(cd_graph_call *c, cdmpp_err *err);
    double (*flop)(const cd_graph_call *c); /* NULL: moves data only */
    unsigned flags;
} cd_graph_rule;

/* The row for an operator in an opset; NULL when there is none. *known: in another opset. */
const cd_graph_rule *cd_graph_rule_find(const char *op, int opset, bool *known);
/* Row i of the table; NULL behind the last. */
const cd_graph_rule *cd_graph_rule_at(size_t i);

/* Operand i; NULL when absent. */
const cd_graph_tensor *cd_graph_call_input(const cd_graph_call *c, uint32_t i);
static inline bool cd_graph_call_is_known(const cd_graph_tensor *t) {
    return t && (t->value || t->fvalue);
}
/* Is its rank within lo .. hi? Errors: ESCHEMA. */
cdmpp_status cd_graph_call_rank(const cd_graph_call *c, uint32_t i, uint32_t lo, uint32_t hi,
                                cdmpp_err *err);
/* Content of operand i as integers, for operators whose shape it gives. Errors: EUNSUPPORTED
 * (unknown), ESCHEMA (absent, reals). */
cdmpp_status cd_graph_call_ints(const cd_graph_call *c, uint32_t i, const int64_t **v, uint32_t *n,
                                cdmpp_err *err);

/* Attributes; errors: ESCHEMA (of another kind). */
const cd_graph_attr *cd_graph_call_attr(const cd_graph_call *c, const char *name);
cdmpp_status cd_graph_call_int(const cd_graph_call *c, const char *name, int64_t absent, int64_t *v,
                               cdmpp_err *err);
cdmpp_status cd_graph_call_str(const cd_graph_call *c, const char *name, const char *absent,
                               const char **v, cdmpp_err *err);
/* NULL: absent */
cdmpp_status cd_graph_call_attr_ints(const cd_graph_call *c, const char *name, const int64_t **v,
                                     uint32_t *n, cdmpp_err *err);
/* Set a resolved attribute; replaces one of that name. */
cdmpp_status cd_graph_call_set_int(cd_graph_call *c, const char *name, int64_t v, cdmpp_err *err);
cdmpp_status cd_graph_call_set_ints(cd_graph_call *c, const char *name, const int64_t *v,
                                    uint32_t n, cdmpp_err *err);
cdmpp_status cd_graph_call_set_floats(cd_graph_call *c, const char *name, const double *v,
                                      uint32_t n, cdmpp_err *err);
/* An attribute and its default, resolved. */
cdmpp_status cd_graph_call_default_int(cd_graph_call *c, const char *name, int64_t absent,
                                       int64_t *v, cdmpp_err *err);
cdmpp_status cd_graph_call_default_float(cd_graph_call *c, const char *name, double absent,
                                         cdmpp_err *err);

/* -rank <= axis < rank, counted from the front. Errors: ESCHEMA. */
cdmpp_status cd_graph_call_normalize_axis(int64_t axis, uint32_t rank, uint32_t *out,
                                          cdmpp_err *err);
/* Attribute `axis`, resolved. */
cdmpp_status cd_graph_call_axis(cd_graph_call *c, int64_t absent, uint32_t rank, uint32_t *out,
                                cdmpp_err *err);
/* Parameters that are an operand (at `i`) or an attribute of that name; *v NULL: neither. */
cdmpp_status cd_graph_call_param(const cd_graph_call *c, uint32_t i, const char *name,
                                 const int64_t **v, uint32_t *n, cdmpp_err *err);
/* The same for axes: sorted, without repeats, resolved; n 0: neither was there. */
cdmpp_status cd_graph_call_axes(cd_graph_call *c, uint32_t i, uint32_t rank,
                                uint32_t axes[CD_GRAPH_MAX_RANK], uint32_t *n, cdmpp_err *err);

/* Type and shape of an output; nothing happens for one that the node does not have. Errors: ERANGE
 * (the shape's limits). */
cdmpp_status cd_graph_call_set_output(cd_graph_call *c, uint32_t o, cd_dtype t,
                                      const cd_graph_shape *s, cdmpp_err *err);
/* One more dimension of `d`. Errors: ERANGE. */
cdmpp_status cd_graph_shape_push(cd_graph_shape *s, int64_t d, cdmpp_err *err);
/* numpy's rule, into *a. Errors: ESCHEMA. */
cdmpp_status cd_graph_shape_broadcast(cd_graph_shape *a, const cd_graph_shape *b, cdmpp_err *err);
const char *cd_graph_shape_text(const cd_graph_shape *s, char *buf, size_t n); /* "[1,3,224]" */

/* Room for the content of output o, of its kind; both NULL: too big, stays unknown. */
cdmpp_status cd_graph_call_content(cd_graph_call *c, uint32_t o, int64_t **v, double **f,
                                   cdmpp_err *err);
/* May n more elements be read to compute contents? They are counted. Beyond CD_GRAPH_MAX_STEPS
 * nothing is folded any more. */
bool cd_graph_call_may_read(cd_graph_call *c, int64_t n);
/* Copy elements: out[k] = operand 0[from(k)], -1: 0. */
/* position in the output -> element of the operand */
typedef int64_t cd_graph_gather_fn(const void *ctx, const int64_t *at);
cdmpp_status cd_graph_call_gather(cd_graph_call *c, uint32_t i, cd_graph_gather_fn *from,
                                  const void *ctx, cdmpp_err *err);
/* Next position in row-major order; false behind the last. */
bool cd_graph_shape_next(const cd_graph_shape *s, int64_t *at);
/* Element number of `at`, the last s->rank of `rank` indices, dimensions of 1 broadcast. */
int64_t cd_graph_shape_offset(const cd_graph_shape *s, uint32_t rank, const int64_t *at);
/* Integers wrap, float32 rounds. */
int64_t cd_graph_type_wrap(cd_dtype t, int64_t v);
double cd_graph_type_round(cd_dtype t, double v);

/* Operations: one for each element of the first output, or of the first operand. */
double cd_graph_flop_out(const cd_graph_call *c);
double cd_graph_flop_in(const cd_graph_call *c);

/* The functions that rows of the table name: cd_graph_infer_X, cd_graph_fold_X, cd_graph_flop_X, in
 * the order of their files. */
#define CD_GRAPH_RULE_INFER(X)                                                                     \
    X(conv)                                                                                        \
    X(conv_transpose)                                                                              \
    X(conv_integer)                                                                                \
    X(deform_conv)                                                                                 \
    X(qconv)                                                                                       \
    X(pool)                                                                                        \
    X(pool_grad)                                                                                   \
    X(lp_pool)                                                                                     \
    X(max_unpool)                                                                                  \
    X(global_pool)                                                                                 \
    X(roi)                                                                                         \
    X(matmul)                                                                                      \
    X(qmatmul)                                                                                     \
    X(gemm)                                                                                        \
    X(einsum)                                                                                      \
    X(rnn)                                                                                         \
    X(gru)                                                                                         \
    X(lstm)                                                                                        \
    X(same)                                                                                        \
    X(attr_alpha)                                                                                  \
    X(binary)                                                                                      \
    X(bitwise)                                                                                     \
    X(compare)                                                                                     \
    X(bool_unary)                                                                                  \
    X(where)                                                                                       \
    X(prelu)                                                                                       \
    X(cast)                                                                                        \
    X(castlike)                                                                                    \
    X(clip)                                                                                        \
    X(dropout)                                                                                     \
    X(quantize)                                                                                    \
    X(dequantize)                                                                                  \
    X(dynamic_quantize)                                                                            \
    X(batchnorm)                                                                                   \
    X(instancenorm)                                                                                \
    X(groupnorm)                                                                                   \
    X(layernorm)                                                                                   \
    X(softmax)                                                                                     \
    X(axis_same)                                                                                   \
    X(lrn)                                                                                         \
    X(mvn)                                                                                         \
    X(nll)                                                                                         \
    X(reduce)                                                                                      \
    X(arg)                                                                                         \
    X(topk)                                                                                        \
    X(cumsum)                                                                                      \
    X(det)                                                                                         \
    X(identity)                                                                                    \
    X(reshape)                                                                                     \
    X(flatten)                                                                                     \
    X(squeeze)                                                                                     \
    X(unsqueeze)                                                                                   \
    X(transpose)                                                                                   \
    X(expand)                                                                                      \
    X(shape)                                                                                       \
    X(size)                                                                                        \
    X(constant_of_shape)                                                                           \
    X(range)                                                                                       \
    X(eyelike)                                                                                     \
    X(random_like)                                                                                 \
    X(random)                                                                                      \
    X(nonzero)                                                                                     \
    X(dynamic)                                                                                     \
    X(concat)                                                                                      \
    X(slice)                                                                                       \
    X(gather)                                                                                      \
    X(gather_elements)                                                                             \
    X(gather_nd)                                                                                   \
    X(split)                                                                                       \
    X(pad)                                                                                         \
    X(tile)                                                                                        \
    X(scatter)                                                                                     \
    X(onehot)                                                                                      \
    X(trilu)                                                                                       \
    X(reverse)                                                                                     \
    X(depth_to_space)                                                                              \
    X(space_to_depth)                                                                              \
    X(upsample)                                                                                    \
    X(resize)                                                                                      \
    X(grid_sample)                                                                                 \
    X(center_crop)
#define CD_GRAPH_RULE_FOLD(X)                                                                      \
    X(binary)                                                                                      \
    X(compare)                                                                                     \
    X(unary)                                                                                       \
    X(where)                                                                                       \
    X(cast)                                                                                        \
    X(clip)                                                                                        \
    X(share)                                                                                       \
    X(transpose)                                                                                   \
    X(expand)                                                                                      \
    X(constant_of_shape)                                                                           \
    X(range)                                                                                       \
    X(concat)                                                                                      \
    X(slice)                                                                                       \
    X(gather)                                                                                      \
    X(split)                                                                                       \
    X(tile)                                                                                        \
    X(reduce)
#define CD_GRAPH_RULE_FLOP(X)                                                                      \
    X(conv)                                                                                        \
    X(conv_transpose)                                                                              \
    X(conv_integer)                                                                                \
    X(deform_conv)                                                                                 \
    X(qconv)                                                                                       \
    X(pool)                                                                                        \
    X(pool_grad)                                                                                   \
    X(matmul)                                                                                      \
    X(gemm)                                                                                        \
    X(einsum)                                                                                      \
    X(rnn)                                                                                         \
    X(gru)                                                                                         \
    X(lstm)                                                                                        \
    X(variadic)                                                                                    \
    X(two)                                                                                         \
    X(batchnorm)                                                                                   \
    X(norm)                                                                                        \
    X(softmax)                                                                                     \
    X(lrn)                                                                                         \
    X(topk)                                                                                        \
    X(resize)                                                                                      \
    X(grid_sample)
#define CD_X(name) cdmpp_status cd_graph_infer_##name(cd_graph_call *c, cdmpp_err *err);
CD_GRAPH_RULE_INFER(CD_X)
#undef CD_X
#define CD_X(name) cdmpp_status cd_graph_fold_##name(cd_graph_call *c, cdmpp_err *err);
CD_GRAPH_RULE_FOLD(CD_X)
#undef CD_X
#define CD_X(name) double cd_graph_flop_##name(const cd_graph_call *c);
CD_GRAPH_RULE_FLOP(CD_X)
#undef CD_X
#endif
