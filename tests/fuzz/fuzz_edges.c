/* A file of edges (zoo_edges.c): any bytes. What is read is a graph: neighbours are vertices,
 * ascending, each vertex is among its own, weights are numbers, and who is read reads. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "profiler/network/zoo/zoo_internal.h"

static int has(const cd_zoo_edges *e, uint32_t v, uint32_t from) {
    for (uint32_t k = e->first[v]; k < e->first[v + 1]; k++)
        if (e->from[k] == from) return 1;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    cd_zoo_edges e;
    cdmpp_err err = {0};
    const cdmpp_status st = cd_zoo_edges_parse((const char *)data, n, &e, &err);
    for (uint32_t v = 0; !st && v < e.n_vertex && n < 4096; v++) {
        if (!has(&e, v, v)) abort();
        for (uint32_t k = e.first[v]; k < e.first[v + 1]; k++) {
            if (e.from[k] >= e.n_vertex || !isfinite(e.weight[k]) || !has(&e, e.from[k], v))
                abort();
            if (k > e.first[v] && e.from[k - 1] >= e.from[k]) abort();
        }
    }
    cd_zoo_edges_free(&e);
    return 0;
}
