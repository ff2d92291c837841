/* A node graph on its way to a definition. Private to tvm_graph.c and tvm_scan.c.
 *
 *   scan    ops reachable from the root and the tensors each one reads
 *   order   stage order, hence tensor numbers
 *   fill    each op's axes and expressions, operands first
 *
 * Ops are numbered by discovery until `dag_index` places them. Recursion is
 * inside one operator's expressions only and bounded by CD_TE_MAX_DEPTH. */
#ifndef CD_TVMBUILD_H
#define CD_TVMBUILD_H
#include "features/tvm/tvm.h"

typedef struct cd_tvm_op {
    uint32_t node, n_out;
    uint32_t first_seen; /* its outputs in `seen` */
    uint32_t first_in;   /* its reads in `in` */
    uint32_t dag_index, first_tensor;
} cd_tvm_op;

typedef struct cd_tvm {
    cd_tvm_graph g;
    cd_arena *a; /* scratch, dies with the build */
    cd_te_dag *dag;
    cdmpp_err *err;
    uint32_t *op_of_node; /* (g.n) discovery number + 1 */
    uint32_t n_op, cap_op;
    cd_tvm_op *op;
    uint32_t n_in, cap_in;
    uint32_t *in; /* discovery numbers of the ops read, one per tensor */
    uint32_t n_seen, cap_seen;
    uint32_t *seen; /* per tensor: last scan that met it */
    uint32_t n_arg;
    uint32_t *arg_op, *arg_value; /* (n_arg) the root's tensors */
    uint32_t *stamp;              /* (g.n) scan state of expression nodes */
    uint64_t budget;
    const cd_expr **memo; /* (g.n) expression of a node */
} cd_tvm;

/* Fill op, in, arg_*. */
cdmpp_status cd_tvm_scan(cd_tvm *t);
/* The op (discovery number) and output of a Tensor node. */
cdmpp_status cd_tvm_tensor(cd_tvm *t, uint32_t node, uint32_t *op, uint32_t *value);
/* Attributes of node kinds that are plain operand references; NULL-terminated
 * list, or NULL for other kinds. */
const char *const *cd_tvm_operands(cd_tvm_node_kind k);
/* The error EUNSUPPORTED for a node of a kind that no expression has. */
cdmpp_status cd_tvm_unsupported(cd_tvm *t, uint32_t node);

#endif
