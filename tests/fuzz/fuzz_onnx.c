/* Any bytes as an ONNX model: no crash, no leak, an error says what is wrong; what is accepted keeps
 * the invariants of graph.h and can be printed. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "profiler/graph_print.h"
#include "profiler/onnx.h"

static void check(const cd_graph *g) {
    for (uint32_t i = 0; i < g->n_tensor; i++) {
        if (cd_shape_check(&g->tensor[i].shape, NULL)) abort();
        if (g->tensor[i].node != CD_GRAPH_NONE && g->tensor[i].node >= g->n_node) abort();
        if ((g->tensor[i].value || g->tensor[i].fvalue) && cd_shape_elements(&g->tensor[i].shape) > CD_GRAPH_MAX_VALUE) abort();
    }
    for (uint32_t i = 0; i < g->n_node; i++) {
        const cd_gnode *n = &g->node[i];
        if (!(n->flop >= 0) || isinf(n->flop)) abort();
        for (uint32_t o = 0; o < n->n_out; o++) {
            if (g->tensor[n->out[o]].node != i) abort();
            for (uint32_t k = 0; k < n->n_in; k++)
                if (n->in[k] != CD_GRAPH_NONE && n->in[k] >= n->out[o]) abort();
        }
    }
}

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
    check(g);
    cd_graph_print_json(&out, g);
    for (uint32_t i = 0; i < n; i++)
        if (!miss[i].reason[0]) abort();
    cd_buf_free(&out);
    cd_graph_free(g);
    return 0;
}
