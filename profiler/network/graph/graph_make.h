/* graph_make -- what graph.c lends to the files that append to a graph. Private
 * to graph*.c. */
#ifndef CD_GRAPH_MAKE_H
#define CD_GRAPH_MAKE_H
#include "profiler/network/graph/graph.h"

/* Copy of a text in the graph's arena, "" for NULL; NULL when out of memory. */
const char *cd_graph_keep(cd_graph *g, const char *s);
/* Append as it is. Errors: ENOMEM. */
cdmpp_status cd_graph_publish(cd_graph *g, const cd_graph_tensor *t, uint32_t *tensor, cdmpp_err *err);
cdmpp_status cd_graph_publish_node(cd_graph *g, const cd_graph_node *n, cdmpp_err *err);
#endif
