/* gradient -- one iteration of training a network as a graph: forward, loss, gradients, update.
 *
 * Commands that predict or measure training make this graph from a network and then treat it like
 * any other.
 *
 *   x ── Conv ── Relu ── y ── loss      forward    the network
 *   dw <─ Conv <─ Where <─ dy <───┘     backward   an operator's gradient is operators again
 *   w' = w - rate*(m*v + dw)            update     element by element, of each weight
 *
 * In the forward part batch norms take the batch's own statistics; in the backward part operators
 * are ONNX's where there are some.
 *
 *   (1) nodes stand in this order; phase[i] is node i's;
 *   (2) weights that are learned are is_trained: what is computed from them is computed in every
 *       iteration;
 *   (3) results: the network's own, the loss, each gradient, each new weight and state, in this
 *       order;
 *   (4) the gradient of a tensor with several readers is the sum of theirs, added in the order of
 *       the walk;
 *   (5) in place of a gradient that cannot be derived there is an opaque operator of the domain
 *       CD_GRADIENT_DOMAIN, called as the forward operator with "Grad" appended, and listed in
 *       missing[] with the reason; the rest of the iteration stands.
 * A gradient is a row in one of the tables cd_autodiff_rules_* (autodiff_internal.h). Rules by
 * operator, and what is missing: docs/reference/training.md. Built by one thread, then
 * read-only. */
#ifndef CD_GRADIENT_H
#define CD_GRADIENT_H
#include "profiler/network/graph/graph.h"

#define CD_GRADIENT_DOMAIN "cdmpp.gradient"

/* AUTO: cross entropy of results with 2 or 3 dimensions, the mean squared difference from a target
 * of others. Cross entropy adds an input of int64 labels for each result ("labels" ...): the
 * classes are dimension 1 of 2 or 4, the last one of
 * 3. SQUARES adds an input "target" of the result's shape. SUM: the gradient of a result is ones,
 *    and what depends on them alone is folded. */
typedef enum cd_gradient_loss {
    CD_GRADIENT_AUTO,
    CD_GRADIENT_SUM,
    CD_GRADIENT_CROSS_ENTROPY,
    CD_GRADIENT_SQUARES
} cd_gradient_loss;
typedef enum cd_gradient_optimizer { CD_GRADIENT_SGD, CD_GRADIENT_ADAM } cd_gradient_optimizer;
typedef enum cd_gradient_phase {
    CD_GRADIENT_FORWARD,
    CD_GRADIENT_BACKWARD,
    CD_GRADIENT_UPDATE
} cd_gradient_phase;

typedef struct cd_gradient_options {
    cd_gradient_loss loss;
    cd_gradient_optimizer optimizer;
    double rate;     /* 0: 0.01 */
    double momentum; /* of SGD; 0: 0.9, below 0: none and no state */
    bool no_update;  /* stop after the gradients */
    /* (n_frozen) names of weights that are not learned; those with "mask" in their name never
     * are */
    const char *const *frozen;
    uint32_t n_frozen;
} cd_gradient_options;

typedef struct cd_gradient_weight {
    /* tensors; grad CD_GRAPH_NONE: no result depends on it, so it is not updated */
    uint32_t weight, grad;
    uint32_t now; /* the updated weight; CD_GRAPH_NONE: none */
} cd_gradient_weight;

typedef struct cd_gradient_miss {
    /* the forward operator, its node's name, the name of the opaque node in place of the
     * gradient */
    const char *op, *node, *name, *reason;
} cd_gradient_miss;

typedef struct cd_gradient {
    cd_graph *graph; /* the rest lives in its arena */
    uint8_t *phase;  /* (graph->n_node) cd_gradient_phase */
    uint32_t loss;   /* tensor */
    uint32_t n_weight, n_missing;
    cd_gradient_weight *weight; /* (n_weight) */
    cd_gradient_miss *missing;  /* (n_missing) */
} cd_gradient;

/* The iteration for a forward graph, which may be freed afterwards. `o` NULL: defaults. Free *out.
 * Errors: EINVALID (no result is of a real type; a name in frozen that no weight has), ESCHEMA,
 * ERANGE, ENOMEM. */
cdmpp_status cd_autodiff(const cd_graph *forward, const cd_gradient_options *o, cd_gradient *out,
                         cdmpp_err *err);
void cd_gradient_free(CD_TAKE cd_gradient *g); /* zeroed is fine */
#endif
