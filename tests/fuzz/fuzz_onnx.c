/* Any bytes as an ONNX model: no crash, no leak, an error says what is wrong; what is accepted
 * keeps the invariants of graph.h and can be printed. */
#include <stdint.h>
#include <stdlib.h>

#include "graph_check.h"
#include "profiler/network/graph/graph.h"
#include "profiler/network/onnx/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const dims[] = {"batch=2"};
    const cd_onnx_options o = {.batch = (int64_t)(size % 3), .dim = dims, .n_dim = size % 5 == 0};
    const cd_onnx_miss *miss;
    uint32_t n;
    cd_graph *g;
    cd_buf out = {0};
    cdmpp_err err = {0};
    const cdmpp_status st = cd_onnx_parse(data, size, "fuzz", NULL, &o, &g, &miss, &n, &err);
    if (st && (!err.msg[0] || err.code != st || g)) abort();
    if (st) return 0;
    graph_check(g);
    cd_graph_print_json(&out, g);
    for (uint32_t i = 0; i < n; i++)
        if (!miss[i].reason[0]) abort();
    cd_buf_free(&out);
    cd_graph_free(g);
    return 0;
}
