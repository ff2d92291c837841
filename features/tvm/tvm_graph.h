/* tvmgraph -- TVM's save_json node graphs and the pickles that carry them.
 *
 * Two readers stacked: a restricted unpickler (knows only the opcodes and the
 * classes of TVM's task files, executes nothing, bounds depth and memory) and
 * a node-graph reader (spec 2; dialects of TVM v0.9 and of the TenSet fork)
 * that builds a te DAG. */
#ifndef CD_TVMGRAPH_H
#define CD_TVMGRAPH_H
#include "features/te/te.h"

/* Build a DAG from the save_json text of Array<Tensor>. *out is owned by the
 * caller (cd_te_dag_free). Errors: EPARSE, ESCHEMA, EUNSUPPORTED, ENOMEM, with
 * the node as key ("nodes[12].attrs.a"). `scratch` holds the text's tree: reset it
 * when done; the DAG keeps nothing of it or of the text. */
cdmpp_status cd_tvm_graph_dag(cd_arena *scratch, const char *text, size_t len, cd_te_dag **out, cdmpp_err *err);
#endif
