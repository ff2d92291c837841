/* graph_print -- a graph as text or JSON, a node a line. */
#ifndef CD_GRAPH_PRINT_H
#define CD_GRAPH_PRINT_H
#include "base/core/core.h"
#include "profiler/network/graph/graph.h"

/* Shapes of results, operations; folded nodes and views with their mark. */
void cd_graph_print(cd_buf *out, const cd_graph *g);
/* Members without braces: "name", "opset", "flop", "inputs", "outputs", "nodes": [{name, op, domain, in, out, attributes, flop, folded, view}];
 * tensors are {name, dtype, shape}. */
void cd_graph_print_json(cd_buf *out, const cd_graph *g);
#endif
