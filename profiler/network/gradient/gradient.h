/* graph_grad -- one iteration of training a network: forward, loss, gradients, update.
 *
 *   x ── Conv ── Relu ── y ── loss           forward    the network; batch norms take the batch's own statistics
 *   dw <─ Conv <─ Where <─ dy <───┘          backward   an operator's gradient is operators again, ONNX's where there are some
 *   w' = w - rate*(m*v + dw)                 update     element by element, of each weight
 *
 *   (1) nodes stand in this order; phase[i] is node i's;
 *   (2) weights that are learned are is_trained: nothing made from them is made once before the network runs;
 *   (3) results: the network's own, the loss, each gradient, each new weight and state, in this order;
 *   (4) a tensor with several readers has the sum of their gradients, added up as they come;
 *   (5) an operator without a gradient is there as an operator of the domain CD_GRADIENT_DOMAIN, called as the operator with
 *       "Grad" behind, and listed in missing[] with the reason; what follows from it stands.
 * Rules by operator and what there is not: docs/reference/training.md. Built by one thread, then read-only. */
#ifndef CD_GRADIENT_H
#define CD_GRADIENT_H
#include "profiler/network/graph/graph.h"

#define CD_GRADIENT_DOMAIN "cdmpp.gradient"

/* AUTO: cross entropy of results with 2 or 3 dimensions, of others the mean square of what they miss a target by. Cross
 * entropy has an input of int64 labels for each result, "labels" and so on: classes are dimension 1 of 2 or 4, the last of
 * 3; squares an input "target" of the result's shape. A sum's gradient is ones, and what follows from them alone is folded. */
typedef enum cd_gradient_loss { CD_GRADIENT_AUTO, CD_GRADIENT_SUM, CD_GRADIENT_CROSS_ENTROPY, CD_GRADIENT_SQUARES } cd_gradient_loss;
typedef enum cd_gradient_optimizer { CD_GRADIENT_SGD, CD_GRADIENT_ADAM } cd_gradient_optimizer;
typedef enum cd_gradient_phase { CD_GRADIENT_FORWARD, CD_GRADIENT_BACKWARD, CD_GRADIENT_UPDATE } cd_gradient_phase;

typedef struct cd_gradient_options {
    cd_gradient_loss loss;
    cd_gradient_optimizer optimizer;
    double rate;                /* 0: 0.01 */
    double momentum;            /* of SGD; 0: 0.9, below 0: none and no state */
    bool frozen_norms;          /* batch norms keep their running statistics, as in fine tuning */
    bool no_update;             /* stop behind the gradients */
    const char *const *frozen;  /* (n_frozen) names of weights that are not learned; those with "mask" in their name never are */
    uint32_t n_frozen;
} cd_gradient_options;

typedef struct cd_gradient_weight {
    uint32_t weight, grad;      /* tensors; grad CD_GRAPH_NONE: no result depends on it, so it is not updated */
    uint32_t now;               /* the updated weight; CD_GRAPH_NONE: none */
} cd_gradient_weight;

typedef struct cd_gradient_miss {
    const char *op, *node, *name, *reason; /* the forward operator, its name, that of what stands in the gradient's place */
} cd_gradient_miss;

typedef struct cd_gradient {
    cd_graph *graph;            /* the rest lives in its arena */
    uint8_t *phase;             /* (graph->n_node) cd_gradient_phase */
    uint32_t loss;              /* tensor */
    uint32_t n_weight, n_missing;
    cd_gradient_weight *weight;     /* (n_weight) */
    cd_gradient_miss *missing;      /* (n_missing) */
} cd_gradient;

/* `o` NULL: defaults. The forward graph may be freed afterwards. Errors: EINVALID (no result is of a real type; a
 * name in frozen that no weight has), ESCHEMA, ERANGE, ENOMEM. */
cdmpp_status cd_autodiff(const cd_graph *forward, const cd_gradient_options *o, cd_gradient *out, cdmpp_err *err);
void cd_gradient_free(CD_TAKE cd_gradient *g); /* zeroed is fine */

/* Has this operator a gradient (or is its gradient known to be zero)? */
bool cd_gradient_is_known(const char *op);
#endif
