/* network_graph_trace -- a torch.fx trace (CSV, torch_trace_row_internal.h) as a graph of library operators.
 *
 *   NAME.csv   rows of one layer        NAME.json   {"num_layer": 24, "e2e_latency": 409.9, "batch": 8, "device": "l4"}
 *        └──> rows before, 24 times the layer, rows behind ──> each row's tasks (torch_trace_op.h) as nodes
 *
 *   (1) NAME.json beside the file may be missing, and each of its members; e2e_latency in ms is the measured time of the whole;
 *   (2) with num_layer above 1 the rows of one layer stand for so many: from the first row with "layer.0.", "layers.0." or "h.0."
 *       in its target to the last one, and on to the row that ends the layer: the last before the next module of the shape that
 *       the layer began with. A copy reads what the one before it ends with. A file that names a second layer stays as it is;
 *   (3) in a file of training the backward nodes follow in reverse order, with the sums of the gradients of weights (update);
 *   (4) a measured time of several tasks of a phase is dealt out by operations. */
#ifndef CD_NETWORK_GRAPH_TRACE_H
#define CD_NETWORK_GRAPH_TRACE_H
#include "predictor/network/network_graph.h"

/* One graph, in an array as cd_network_graph_read gives it. Errors, with path and line: those of cd_torch_trace_read and cd_network_builder; ESCHEMA,
 * ERANGE (NAME.json). */
cdmpp_status cd_network_graph_trace_read(const char *path, CD_GIVE cd_network_graph ***out, size_t *n, cdmpp_err *err);
#endif
