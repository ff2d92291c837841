/* offload_match_internal -- names and attributes of operators, for the list of them. Private to
 * offload_match*.c. */
#ifndef CD_OFFLOAD_MATCH_INTERNAL_H
#define CD_OFFLOAD_MATCH_INTERNAL_H
#include "predictor/partition/offload/offload_match.h"

enum { CD_OFFLOAD_ATTRS = 48 };

typedef struct cd_offload_attrs {
    cd_arena *arena;
    uint32_t n;
    bool oom;
    cd_offload_attr v[CD_OFFLOAD_ATTRS];
} cd_offload_attrs;

void cd_offload_put_node(cd_offload_attrs *a, const cd_graph *g, const cd_graph_node *n);
/* The name that rules use for the node's type, "conv2d"; cut to `room`. */
void cd_offload_op_type(const cd_graph *g, const cd_graph_node *n, char *to, size_t room);
/* Does the node multiply and add (convolutions, products, recurrent ones, Einsum)? */
bool cd_offload_is_mac(const cd_graph_node *n);
#endif
