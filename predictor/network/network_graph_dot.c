/* Networks as text of Graphviz's language DOT, to draw them (dot -Tsvg). It is written and never
 * read. */
#include <string.h>

#include "base/text/text.h"
#include "predictor/network/network.h"

static void put_text(cd_buf *b, const char *s) { cd_escape_dot(b, cd_str_of(s)); }

static void put_node(cd_buf *b, size_t graph, uint32_t k, const cd_network_node *n) {
    cd_buf_putf(b, "  n%zu_%u [label=\"", graph, k);
    put_text(b, n->name);
    if (n->op && *n->op && strcmp(n->op, n->name) != 0) {
        cd_buf_puts(b, "\\n");
        put_text(b, n->op);
    }
    if (n->repeat > 1) cd_buf_putf(b, "\\n%lld times", (long long)n->repeat);
    cd_buf_puts(b, "\"");
    if (n->kind == CD_NODE_UNKNOWN) cd_buf_puts(b, ", style=dashed");
    if (n->kind == CD_NODE_FREE) cd_buf_puts(b, ", shape=plaintext");
    cd_buf_puts(b, "];\n");
}

cdmpp_status cd_network_graph_write_dot(cd_buf *out, cd_network_graph *const *g, size_t n,
                                        cdmpp_err *err) {
    cd_buf_puts(out, "digraph cdmpp {\n node [shape=box];\n");
    for (size_t i = 0; i < n; i++) {
        cd_buf_putf(out, " subgraph cluster_%zu {\n  label=\"", i);
        put_text(out, g[i]->name);
        cd_buf_puts(out, "\";\n");
        for (uint32_t k = 0; k < g[i]->n_node; k++) put_node(out, i, k, &g[i]->node[k]);
        for (uint32_t k = 0; k < g[i]->n_node; k++)
            for (uint32_t j = 0; j < g[i]->node[k].n_after; j++)
                cd_buf_putf(out, "  n%zu_%u -> n%zu_%u;\n", i, g[i]->after[g[i]->node[k].first + j],
                            i, k);
        cd_buf_puts(out, " }\n");
    }
    cd_buf_puts(out, "}\n");
    return out->oom ? CD_FAIL(err, ENOMEM, "a drawing of %zu networks", n) : CDMPP_OK;
}
