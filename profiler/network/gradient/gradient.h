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
 *   (5) an operator without a gradient is there as an operator of the domain CD_GRAD_DOMAIN, called as the operator with
 *       "Grad" behind, and listed in missing[] with the reason; what follows from it stands.
 * Rules by operator and what there is not: docs/training.md. Built by one thread, then read-only. */
#ifndef CD_GRAPH_GRAD_H
#define CD_GRAPH_GRAD_H
#include "profiler/network/graph/graph.h"

#define CD_GRAD_DOMAIN "cdmpp.gradient"

/* AUTO: cross entropy of results with 2 or 3 dimensions, of others the mean square of what they miss a target by. Cross
 * entropy has an input of int64 labels for each result, "labels" and so on: classes are dimension 1 of 2 or 4, the last of
 * 3; squares an input "target" of the result's shape. A sum's gradient is ones, and what follows from them alone is folded. */
typedef enum cd_grad_loss { CD_GRAD_AUTO, CD_GRAD_SUM, CD_GRAD_CROSS_ENTROPY, CD_GRAD_SQUARES } cd_grad_loss;
typedef enum cd_grad_optimizer { CD_GRAD_SGD, CD_GRAD_ADAM } cd_grad_optimizer;
typedef enum cd_grad_phase { CD_GRAD_FORWARD, CD_GRAD_BACKWARD, CD_GRAD_UPDATE } cd_grad_phase;

typedef struct cd_grad_options {
    cd_grad_loss loss;
    cd_grad_optimizer optimizer;
    double rate;                /* 0: 0.01 */
    double momentum;            /* of SGD; 0: 0.9, below 0: none and no state */
    bool frozen_norms;          /* batch norms keep their running statistics, as in fine tuning */
    bool no_update;             /* stop behind the gradients */
    const char *const *frozen;  /* (n_frozen) names of weights that are not learned; those with "mask" in their name never are */
    uint32_t n_frozen;
} cd_grad_options;

typedef struct cd_grad_weight {
    uint32_t weight, grad;      /* tensors; grad CD_GRAPH_NONE: no result depends on it, so it is not updated */
    uint32_t now;               /* the updated weight; CD_GRAPH_NONE: none */
} cd_grad_weight;

typedef struct cd_grad_miss {
    const char *op, *node, *name, *reason; /* the forward operator, its name, that of what stands in the gradient's place */
} cd_grad_miss;

typedef struct cd_grad {
    cd_graph *graph;            /* the rest lives in its arena */
    uint8_t *phase;             /* (graph->n_node) cd_grad_phase */
    uint32_t loss;              /* tensor */
    uint32_t n_weight, n_missing;
    cd_grad_weight *weight;     /* (n_weight) */
    cd_grad_miss *missing;      /* (n_missing) */
} cd_grad;

/* `o` NULL: defaults. The forward graph may be freed afterwards. Errors: EINVALID (no result is of a real type; a
 * name in frozen that no weight has), ESCHEMA, ERANGE, ENOMEM. */
cdmpp_status cd_autodiff(const cd_graph *forward, const cd_grad_options *o, cd_grad *out, cdmpp_err *err);
void cd_grad_free(CD_TAKE cd_grad *g); /* zeroed is fine */

/* Has this operator a gradient (or is its gradient known to be zero)? */
bool cd_grad_known(const char *op);
#endif
