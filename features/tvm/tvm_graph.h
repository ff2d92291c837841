/* TVM's save_json node graphs -> definitions. Both dialects are read, that of TVM v0.9 and that of the TenSet fork
 * (docs/internals/ansor.md, Tasks). The graph's own reader is tvm_node.h. */
#ifndef CD_TVMGRAPH_H
#define CD_TVMGRAPH_H
#include "features/te/te.h"

/* Build a DAG from the save_json text of Array<Tensor>. *out is owned by the
 * caller (cd_te_dag_free). Errors: EPARSE, ESCHEMA, EUNSUPPORTED, ENOMEM, with
 * the node as key ("nodes[12].attrs.a"). `scratch` holds the text's tree: reset it
 * when done; the DAG keeps nothing of it or of the text. */
cdmpp_status cd_tvm_graph_dag(cd_arena *scratch, const char *text, size_t len, cd_te_dag **out, cdmpp_err *err);
#endif
