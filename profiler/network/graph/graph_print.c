/* A graph as text for people and as JSON. Operands that are absent are null in JSON; counts are printed without decimals so that
 * equal graphs give equal bytes. */

#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

static void quote(cd_buf *b, const char *s) { cd_buf_put_json_str(b, s, strlen(s)); }

static void shape(cd_buf *b, const cd_graph_shape *s) {
    cd_buf_puts(b, "[");
    for (uint32_t d = 0; d < s->rank; d++) cd_buf_putf(b, "%s%lld", d ? "," : "", (long long)s->dim[d]);
    cd_buf_puts(b, "]");
}

static void type(cd_buf *b, const cd_graph_tensor *t) {
    char text[32];
    cd_buf_puts(b, cd_expr_dtype_format(t->dtype, text, sizeof text));
}

/* One line a node. The width of the first column fits the longest operator name of ONNX that is common. */
void cd_graph_print(cd_buf *b, const cd_graph *g) {
    for (uint32_t i = 0; i < g->n_node; i++) {
        const cd_graph_node *n = &g->node[i];
        cd_buf_putf(b, "%-24s ", n->op);
        for (uint32_t o = 0; o < n->n_out; o++) {
            const cd_graph_tensor *t = &g->tensor[n->out[o]];
            if (o) cd_buf_puts(b, " ");
            type(b, t);
            shape(b, &t->shape);
        }
        if (n->folded || n->view) cd_buf_puts(b, n->folded ? " folded" : " view");
        else cd_buf_putf(b, " %.0f", n->flop);
        cd_buf_putf(b, " %s\n", n->name);
    }
    cd_buf_putf(b, "%s: %u nodes, %.0f operations\n", g->name, g->n_node, cd_graph_flop(g));
}

static void tensor(cd_buf *b, const cd_graph_tensor *t) {
    cd_buf_puts(b, "{\"name\":");
    quote(b, t->name);
    cd_buf_puts(b, ",\"dtype\":\"");
    type(b, t);
    cd_buf_puts(b, "\",\"shape\":");
    shape(b, &t->shape);
    cd_buf_puts(b, "}");
}

static void tensors(cd_buf *b, const cd_graph *g, const uint32_t *t, uint32_t n) {
    cd_buf_puts(b, "[");
    for (uint32_t i = 0; i < n; i++) {
        if (i) cd_buf_puts(b, ",");
        tensor(b, &g->tensor[t[i]]);
    }
    cd_buf_puts(b, "]");
}

/* Integers and reals print as numbers, lists as arrays. */
static void attribute(cd_buf *b, const cd_graph_attr *a) {
    quote(b, a->name);
    cd_buf_puts(b, ":");
    if (a->kind == CD_GRAPH_ATTR_INT) cd_buf_put_int(b, a->i);
    else if (a->kind == CD_GRAPH_ATTR_FLOAT) cd_buf_put_json_real(b, a->f);
    else if (a->kind == CD_GRAPH_ATTR_STR) quote(b, a->s);
    else {
        cd_buf_puts(b, "[");
        for (uint32_t i = 0; i < a->n; i++) {
            if (i) cd_buf_puts(b, ",");
            if (a->kind == CD_GRAPH_ATTR_INTS) cd_buf_put_int(b, a->ints[i]);
            else cd_buf_put_json_real(b, a->floats[i]);
        }
        cd_buf_puts(b, "]");
    }
}

/* Operands by name; null: left out. */
static void operands(cd_buf *b, const cd_graph *g, const cd_graph_node *n) {
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (i) cd_buf_puts(b, ",");
        if (n->in[i] == CD_GRAPH_NONE) cd_buf_puts(b, "null");
        else quote(b, g->tensor[n->in[i]].name);
    }
}

/* Members in a fixed order: readers and tests compare the text. */
static void node(cd_buf *b, const cd_graph *g, const cd_graph_node *n) {
    cd_buf_puts(b, "{\"name\":");
    quote(b, n->name);
    cd_buf_puts(b, ",\"op\":");
    quote(b, n->op);
    cd_buf_puts(b, ",\"domain\":");
    quote(b, n->domain);
    cd_buf_puts(b, ",\"in\":[");
    operands(b, g, n);
    cd_buf_puts(b, "],\"out\":");
    tensors(b, g, n->out, n->n_out);
    cd_buf_puts(b, ",\"attributes\":{");
    for (uint32_t i = 0; i < n->n_attr; i++) {
        if (i) cd_buf_puts(b, ",");
        attribute(b, &n->attr[i]);
    }
    cd_buf_putf(b, "},\"flop\":%.0f,\"folded\":%s,\"view\":%s}", n->flop, n->folded ? "true" : "false", n->view ? "true" : "false");
}

void cd_graph_print_json(cd_buf *b, const cd_graph *g) {
    cd_buf_puts(b, "\"name\":");
    quote(b, g->name);
    cd_buf_putf(b, ",\"opset\":%d,\"flop\":%.0f,\"inputs\":", g->opset, cd_graph_flop(g));
    tensors(b, g, g->input, g->n_input);
    cd_buf_puts(b, ",\"outputs\":");
    tensors(b, g, g->output, g->n_output);
    cd_buf_puts(b, ",\"nodes\":[");
    for (uint32_t i = 0; i < g->n_node; i++) {
        if (i) cd_buf_puts(b, ",");
        node(b, g, &g->node[i]);
    }
    cd_buf_puts(b, "]");
}
