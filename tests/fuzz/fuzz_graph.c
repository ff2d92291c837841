/* Any bytes as a node graph: no crash, no leak, an error says what is wrong,
 * and what is accepted can be printed. */
#include <stdint.h>
#include <stdlib.h>

#include "base/core/core.h"
#include "features/tvm/tvm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cd_arena a = {0};
    cd_buf out = {0};
    cdmpp_err err = {0};
    cd_te_dag *dag;
    const cdmpp_status st = cd_tvm_graph_dag(&a, (const char *)data, size, &dag, &err);
    if (st && (!err.msg[0] || err.code != st || dag)) abort();
    if (!st) {
        cd_te_dag_print(&out, dag);
        if (!cd_te_dag_equal(dag, dag) || out.n == 0) abort();
    }
    cd_te_dag_free(dag);
    cd_buf_free(&out);
    cd_arena_free(&a);
    return 0;
}
