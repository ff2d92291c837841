/* autodiff_internal -- what the rules of gradients are written with: one call for each operator, as
 * in the zoo.
 *
 *   static void exp_(cd_autodiff_builder *b) { cd_autodiff_accumulate(b, 0, mul(b, dy,
 *   cd_autodiff_output(b, 0))); }
 *   ... {"Exp", exp_}, ...                  a row of cd_autodiff_rules_elementwise
 *
 * A rule is called with b->n set to the forward operator. It reads the gradients of the results
 * (cd_autodiff_output_grad) and adds to those of the operands (cd_autodiff_accumulate), for which
 * cd_autodiff_needs_grad holds. Where it cannot, it sets b->why to a reason of static text. All
 * tensors are numbers of b->g. The first error stays in b->st; later calls return CD_GRAPH_NONE.
 * Operators are added as of opset 18, whatever the network's is. Private to the room. */
#ifndef CD_AUTODIFF_INTERNAL_H
#define CD_AUTODIFF_INTERNAL_H
#include "profiler/network/gradient/gradient.h"

/* A normalisation that was decomposed: y = (x - mean)*inv*scale + shift. */
typedef struct cd_autodiff_norm {
    uint32_t first, last;  /* its nodes */
    uint32_t x, mean, inv; /* (x's shape), twice (reduced, dimensions kept) */
    uint32_t scale, shift; /* as given; CD_GRAPH_NONE: absent */
    uint32_t scale_full;   /* scale in a shape that broadcasts to x */
    uint32_t axes;         /* bit d: dimension d is normalised over */
    uint32_t param;        /* bit d: the scale does not have dimension d */
} cd_autodiff_norm;

typedef struct cd_autodiff_builder {
    const cd_graph *from;
    cd_graph *g;
    const cd_gradient_options *o;
    cdmpp_err *err;
    cdmpp_status st;
    uint32_t count;               /* of names given */
    const char *at;               /* what new operators are named after */
    uint32_t *map;                /* (from->n_tensor) tensor of g */
    bool *frozen;                 /* (from->n_tensor) weights that are not learned */
    uint32_t n_tensor, n_forward; /* of the forward part, once it stands */
    uint32_t *grad;               /* (n_tensor) CD_GRAPH_NONE: none so far */
    bool *need;                   /* (n_tensor) depends on a weight that is learned */
    cd_autodiff_norm *norm;       /* (n_norm of cap_norm) by last */
    uint32_t n_norm, cap_norm;
    const cd_graph_node *n; /* whose gradient is being made: a copy */
    const char *why;        /* set by a rule: there is none */
    cd_gradient *result;
    uint32_t cap_missing;
} cd_autodiff_builder;

static inline bool cd_autodiff_has_axis(uint32_t mask, uint32_t d) { return mask >> d & 1U; }

/* ---- operators (autodiff_build.c): each appends to b->g and returns its result; names are made
 * from b->at ---- */
static inline cd_graph_attr cd_autodiff_attr_int(const char *name, int64_t v) {
    return (cd_graph_attr){.name = name, .kind = CD_GRAPH_ATTR_INT, .i = v};
}
static inline cd_graph_attr cd_autodiff_attr_ints(const char *name, uint32_t n, const int64_t *v) {
    return (cd_graph_attr){.name = name, .kind = CD_GRAPH_ATTR_INTS, .n = n, .ints = v};
}
/* Keep the first error. Returns CD_GRAPH_NONE. */
uint32_t cd_autodiff_fail(cd_autodiff_builder *b, cdmpp_status st);
/* Shape of a tensor, a scalar after an error. Valid until the next operator: copy it. */
const cd_graph_shape *cd_autodiff_shape(const cd_autodiff_builder *b, uint32_t t);
/* Any operator, with n_out results, or one; of one or two operands without attributes. */
void cd_autodiff_op_outputs(cd_autodiff_builder *b, const char *op, uint32_t n_in,
                            const uint32_t *in, uint32_t n_attr, const cd_graph_attr *attr,
                            uint32_t n_out, uint32_t *out);
uint32_t cd_autodiff_op(cd_autodiff_builder *b, const char *op, uint32_t n_in, const uint32_t *in,
                        uint32_t n_attr, const cd_graph_attr *attr);
uint32_t cd_autodiff_unary(cd_autodiff_builder *b, const char *op, uint32_t x);
uint32_t cd_autodiff_binary(cd_autodiff_builder *b, const char *op, uint32_t x, uint32_t y);
/* a scalar of the type of `like` */
uint32_t cd_autodiff_const_scalar(cd_autodiff_builder *b, uint32_t like, double v);
/* x op v */
uint32_t cd_autodiff_binary_scalar(cd_autodiff_builder *b, const char *op, uint32_t x, double v);
/* v op x */
uint32_t cd_autodiff_scalar_binary(cd_autodiff_builder *b, const char *op, double v, uint32_t x);
uint32_t cd_autodiff_const_ints(cd_autodiff_builder *b, uint32_t n, const int64_t *v);
uint32_t cd_autodiff_where(cd_autodiff_builder *b, uint32_t c, uint32_t x, uint32_t y);
uint32_t cd_autodiff_cast(cd_autodiff_builder *b, uint32_t x, cd_dtype t);
/* x where it has that shape */
uint32_t cd_autodiff_reshape(cd_autodiff_builder *b, uint32_t x, const cd_graph_shape *s);
uint32_t cd_autodiff_transpose(cd_autodiff_builder *b, uint32_t x, uint32_t rank,
                               const int64_t *perm);
uint32_t cd_autodiff_expand(cd_autodiff_builder *b, uint32_t x, const cd_graph_shape *s);
uint32_t cd_autodiff_zeros(cd_autodiff_builder *b, const cd_graph_shape *s, uint32_t like);
/* axes: bits */
uint32_t cd_autodiff_reduce(cd_autodiff_builder *b, const char *op, uint32_t x, uint32_t axes,
                            bool keep);
/* The part of shape s that begins at `start`. */
uint32_t cd_autodiff_slice(cd_autodiff_builder *b, uint32_t x, const int64_t *start,
                           const cd_graph_shape *s);
/* Zeros before and after, in each dimension. */
uint32_t cd_autodiff_pad(cd_autodiff_builder *b, uint32_t x, const int64_t *before,
                         const int64_t *after);
/* The reverse of a slice: dy at every step-th element from `start` of a tensor of shape s, zeros
 * elsewhere. Fewer than 8 dimensions where a step is not 1. */
uint32_t cd_autodiff_gemm(cd_autodiff_builder *b, uint32_t x, uint32_t y, bool tx, bool ty);

/* ---- the operator at work ---- */
static inline uint32_t cd_autodiff_input(const cd_autodiff_builder *b, uint32_t k) {
    return k < b->n->n_in ? b->n->in[k] : CD_GRAPH_NONE;
}
static inline uint32_t cd_autodiff_output(const cd_autodiff_builder *b, uint32_t k) {
    return k < b->n->n_out ? b->n->out[k] : CD_GRAPH_NONE;
}
/* Gradient of result k; CD_GRAPH_NONE: nothing depends on it. */
uint32_t cd_autodiff_output_grad(const cd_autodiff_builder *b, uint32_t k);
/* Does operand k need a gradient? */
bool cd_autodiff_needs_grad(const cd_autodiff_builder *b, uint32_t k);
/* Add dx to the gradient of operand k: summed over what broadcasting repeated, cast to its type. */
void cd_autodiff_accumulate(cd_autodiff_builder *b, uint32_t k, uint32_t dx);
void cd_autodiff_accumulate_tensor(cd_autodiff_builder *b, uint32_t tensor, uint32_t dx);
/* Attribute of b->n; NULL: absent. */
const int64_t *cd_autodiff_get_ints(const cd_autodiff_builder *b, const char *name, uint32_t *n);
/* Known integers of operand k; NULL: not known. */
const int64_t *cd_autodiff_known_ints(const cd_autodiff_builder *b, uint32_t k, uint32_t *n);

/* ---- rules ---- */
typedef struct cd_autodiff_rule {
    const char *op;
    void (*fn)(cd_autodiff_builder *b); /* NULL: its gradient is zero */
} cd_autodiff_rule;
extern const cd_autodiff_rule cd_autodiff_rules_elementwise[], cd_autodiff_rules_conv[],
    cd_autodiff_rules_matmul[], cd_autodiff_rules_norm[], cd_autodiff_rules_pool[],
    cd_autodiff_rules_move[], cd_autodiff_rules_gather[]; /* end with op NULL */

/* ---- operators that training needs in another form (autodiff.c, autodiff_rnn.c) ---- */
/* Append n in operators that have gradients; in, out: tensors of b->g. False: nothing appended, n
 * stays one operator. */
bool cd_autodiff_decompose_rnn(cd_autodiff_builder *b, const cd_graph_node *n, const uint32_t *in,
                               uint32_t *out);

/* ---- the loss, and the update (autodiff_step.c) ---- */
/* seed: (2 * results) tensors that the gradients of the results are made from; see
 * autodiff_step.c. */
void cd_autodiff_add_loss(cd_autodiff_builder *b, uint32_t *loss, uint32_t *seed);
void cd_autodiff_add_update(cd_autodiff_builder *b);
#endif
