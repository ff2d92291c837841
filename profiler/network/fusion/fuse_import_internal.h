/* fuse_import_internal -- one operator of a graph while it becomes fusion nodes.
 *
 *   static void softplus(cd_fuse_importer *m) { cd_fuse_import_output(m, 0, softplus_of(m,
 *   cd_fuse_import_input(m, 0))); }
 *   ... {"Softplus", softplus}, ...         a row of cd_fuse_import_rules_elementwise
 *
 * A rule reads operands with cd_fuse_import_input, adds nodes (fusion.h) and gives results with
 * cd_fuse_import_output. Where it cannot, it sets m->why to a reason (static text, or in f's
 * arena): the operator becomes an EXTERN node and is listed as unsupported. A result that nobody
 * reads needs no node. To add an operator: a row in one of the tables; one that is a single
 * expression of its operands needs only a line of CD_FUSE_OPS_EXPR (fusion.h) and of `plain`
 * (fuse_import.c). Private to the room. */
#ifndef CD_FUSE_IMPORT_INTERNAL_H
#define CD_FUSE_IMPORT_INTERNAL_H
#include "profiler/network/fusion/fusion.h"

typedef struct cd_fuse_importer {
    cd_fuse_graph *f;
    const cd_graph *g;
    const cd_graph_node *n; /* at work */
    uint32_t *id;           /* (tensors of g) node; CD_GRAPH_NONE: not made yet */
    uint32_t *uses;         /* (tensors of g) readers, the network's result counts */
    bool *shared;           /* (nodes so far, grown) several readers */
    uint32_t cap_shared;
    /* (tensors of g) an equal one with a smaller number, made of weights by the same operator; else
     * itself */
    uint32_t *same;
    /* (tensors of g) type that no program computes with: its own, or that of weights it is made of;
     * 0: none */
    cd_dtype *odd;
    const char *why; /* set: cannot be done */
} cd_fuse_importer;

typedef void (*cd_fuse_import_fn)(cd_fuse_importer *m);
typedef struct cd_fuse_import_rule {
    const char *op;
    cd_fuse_import_fn fn;
} cd_fuse_import_rule;

/* Is operand k there? Its tensor (it must be there); its node, 0 when absent; the node of result
 * k. */
bool cd_fuse_import_has(const cd_fuse_importer *m, uint32_t k);
const cd_graph_tensor *cd_fuse_import_tensor(const cd_fuse_importer *m, uint32_t k);
uint32_t cd_fuse_import_input(cd_fuse_importer *m, uint32_t k);
void cd_fuse_import_output(cd_fuse_importer *m, uint32_t k, uint32_t node);
/* Is result k read by anybody? */
bool cd_fuse_import_is_used(const cd_fuse_importer *m, uint32_t k);
/* Known integers of operand k, or of an attribute: n of them; NULL: neither. */
const int64_t *cd_fuse_import_ints(const cd_fuse_importer *m, uint32_t k, const char *attr,
                                   uint32_t *n);
/* Known single number of operand k; false when unknown. */
bool cd_fuse_import_number(const cd_fuse_importer *m, uint32_t k, double *v);
static inline const cd_graph_shape *cd_fuse_import_shape(const cd_fuse_importer *m, uint32_t node) {
    return &m->f->node[node].shape;
}
/* The only result's shape, as the graph inferred it. */
const cd_graph_shape *cd_fuse_import_result_shape(const cd_fuse_importer *m);
/* A dimension, counted from the end when negative. */
int64_t cd_fuse_import_axis(const cd_graph_shape *s, int64_t axis);

/* x * c and x + c, c a weight for each channel: folded into the weights of a
 * convolution or matrix product that nobody else reads. */
uint32_t cd_fuse_import_scale(cd_fuse_importer *m, uint32_t x, uint32_t c);
uint32_t cd_fuse_import_shift(cd_fuse_importer *m, uint32_t x, uint32_t c);
/* Reshapes [C] so that it broadcasts against the channels of a tensor of that rank: [C,1,...]. */
uint32_t cd_fuse_import_channels(cd_fuse_importer *m, uint32_t c, uint32_t rank);

/* A node that is read more than once is shared: nothing may be folded into it. False: out of
 * memory. */
bool cd_fuse_import_is_shared(const cd_fuse_importer *m, uint32_t node);

/* The window of m->n, a convolution, over nodes x and w, without its bias; the product of nodes a
 * and b as MatMul defines it. 0 with m->why. */
uint32_t cd_fuse_import_conv(cd_fuse_importer *m, cd_fuse_op op, uint32_t x, uint32_t w);
uint32_t cd_fuse_import_matmul(cd_fuse_importer *m, uint32_t a, uint32_t b);

extern const cd_fuse_import_rule cd_fuse_import_rules_elementwise[], cd_fuse_import_rules_nn[],
    cd_fuse_import_rules_move[], cd_fuse_import_rules_rnn[], cd_fuse_import_rules_quantize[],
    cd_fuse_import_rules_integer[]; /* end with op NULL */
#endif
