/* fuse_import -- one operator of a graph while it becomes nodes.
 *
 * A rule reads operands with cd_fim_in, adds nodes and gives results with
 * cd_fim_out; or it says why it cannot, and the operator is listed.
 * Private to fuse_import*.c. */
#ifndef CD_FUSE_IMPORT_H
#define CD_FUSE_IMPORT_H
#include "profiler/network/fusion/fusion.h"

typedef struct cd_fim {
    cd_fgraph *f;
    const cd_graph *g;
    const cd_gnode *n;          /* at work */
    uint32_t *id;               /* (tensors of g) node; CD_GRAPH_NONE: not made yet */
    uint32_t *uses;             /* (tensors of g) readers, the network's result counts */
    bool *shared;               /* (nodes so far, grown) several readers */
    uint32_t cap_shared;
    const char *why;            /* set: cannot be done */
} cd_fim;

typedef void (*cd_fim_fn)(cd_fim *m);
typedef struct cd_fim_rule {
    const char *op;
    cd_fim_fn fn;
} cd_fim_rule;

/* Is operand k there? Its tensor (must be there); its node. */
bool cd_fim_has(const cd_fim *m, uint32_t k);
const cd_gtensor *cd_fim_tensor(const cd_fim *m, uint32_t k);
uint32_t cd_fim_in(cd_fim *m, uint32_t k);
void cd_fim_out(cd_fim *m, uint32_t k, uint32_t node);
/* Is result k read by anybody? */
bool cd_fim_wanted(const cd_fim *m, uint32_t k);
/* Known integers of operand k, or of an attribute: n of them; NULL: neither. */
const int64_t *cd_fim_ints(const cd_fim *m, uint32_t k, const char *attr, uint32_t *n);
/* Known single number of operand k; false when unknown. */
bool cd_fim_number(const cd_fim *m, uint32_t k, double *v);
static inline const cd_shape *cd_fim_shape(const cd_fim *m, uint32_t node) { return &m->f->node[node].shape; }
/* The only result's shape, as the graph inferred it. */
const cd_shape *cd_fim_result(const cd_fim *m);
/* A dimension, counted from the end when negative. */
int64_t cd_fim_axis(const cd_shape *s, int64_t axis);

/* x * c and x + c, c a weight for each channel: folded into the weights of a
 * convolution or matrix product that nobody else reads. */
uint32_t cd_fim_scale(cd_fim *m, uint32_t x, uint32_t c);
uint32_t cd_fim_shift(cd_fim *m, uint32_t x, uint32_t c);
/* [C] as it stands against the channels of a tensor of that rank: [C,1,...]. */
uint32_t cd_fim_channels(cd_fim *m, uint32_t c, uint32_t rank);

/* Operators that are one expression, from the left; false: it is none. */
bool cd_fim_plain(cd_fim *m);
/* A node is read more than once. False: out of memory. */
bool cd_fim_share(cd_fim *m, uint32_t node);
bool cd_fim_shared(const cd_fim *m, uint32_t node);

extern const cd_fim_rule cd_fim_rules_elem[], cd_fim_rules_nn[], cd_fim_rules_move[], cd_fim_rules_rnn[]; /* end with op NULL */
#endif
