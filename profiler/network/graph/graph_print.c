/* A graph as text for people and as JSON. Operands that are absent are null in JSON; counts are
 * printed without decimals so that equal graphs give equal bytes. */

#include <stdio.h>

#include "profiler/network/graph/graph_call_internal.h"

static void shape(cd_buf *b, const cd_graph_shape *s) {
    cd_buf_puts(b, "[");
    for (uint32_t d = 0; d < s->rank; d++)
        cd_buf_putf(b, "%s%lld", d ? "," : "", (long long)s->dim[d]);
    cd_buf_puts(b, "]");
}

static void type(cd_buf *b, const cd_graph_tensor *t) {
    char text[32];
    cd_buf_puts(b, cd_expr_dtype_format(t->dtype, text, sizeof text));
}

/* One line a node. The width of the first column fits the longest operator name of ONNX that is
 * common. */
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

static void tensors(cd_json_writer *w, const char *key, const cd_graph *g, const uint32_t *t,
                    uint32_t n) {
    char type_text[32];
    cd_json_write_key(w, key), cd_json_write_open(w, '[');
    for (uint32_t i = 0; i < n; i++) {
        const cd_graph_tensor *x = &g->tensor[t[i]];
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "name", x->name);
        cd_json_write_member_str(w, "dtype",
                                 cd_expr_dtype_format(x->dtype, type_text, sizeof type_text));
        cd_json_write_key(w, "shape"), cd_json_write_open(w, '[');
        for (uint32_t d = 0; d < x->shape.rank; d++) cd_json_write_int(w, x->shape.dim[d]);
        cd_json_write_close(w, ']');
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
}

/* Without decimals, however large. */
static void count(cd_json_writer *w, const char *key, double v) {
    char text[400];
    const int n = snprintf(text, sizeof text, "%.0f", v);
    cd_json_write_key(w, key), cd_json_write_raw(w, text, (size_t)n);
}

/* Integers and reals print as numbers, lists as arrays. */
static void attribute(cd_json_writer *w, const cd_graph_attr *a) {
    cd_json_write_key(w, a->name);
    if (a->kind == CD_GRAPH_ATTR_INT) cd_json_write_int(w, a->i);
    else if (a->kind == CD_GRAPH_ATTR_FLOAT) cd_json_write_real(w, a->f);
    else if (a->kind == CD_GRAPH_ATTR_STR) cd_json_write_str(w, a->s);
    else if (a->kind == CD_GRAPH_ATTR_FLOATS) cd_json_write_reals(w, a->floats, a->n);
    else {
        cd_json_write_open(w, '[');
        for (uint32_t i = 0; i < a->n; i++) cd_json_write_int(w, a->ints[i]);
        cd_json_write_close(w, ']');
    }
}

/* Members in a fixed order: readers and tests compare the text. Operands by name; null: left
 * out. */
static void node(cd_json_writer *w, const cd_graph *g, const cd_graph_node *n) {
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "name", n->name);
    cd_json_write_member_str(w, "op", n->op);
    cd_json_write_member_str(w, "domain", n->domain);
    cd_json_write_key(w, "in"), cd_json_write_open(w, '[');
    for (uint32_t i = 0; i < n->n_in; i++)
        cd_json_write_str(w, n->in[i] == CD_GRAPH_NONE ? NULL : g->tensor[n->in[i]].name);
    cd_json_write_close(w, ']');
    tensors(w, "out", g, n->out, n->n_out);
    cd_json_write_key(w, "attributes"), cd_json_write_open(w, '{');
    for (uint32_t i = 0; i < n->n_attr; i++) attribute(w, &n->attr[i]);
    cd_json_write_close(w, '}');
    count(w, "flop", n->flop);
    cd_json_write_member_bool(w, "folded", n->folded);
    cd_json_write_member_bool(w, "view", n->view);
    cd_json_write_close(w, '}');
}

void cd_graph_print_json(cd_buf *b, const cd_graph *g) {
    cd_json_writer w = {.out = b};
    cd_json_write_member_str(&w, "name", g->name);
    cd_json_write_member_int(&w, "opset", g->opset);
    count(&w, "flop", cd_graph_flop(g));
    tensors(&w, "inputs", g, g->input, g->n_input);
    tensors(&w, "outputs", g, g->output, g->n_output);
    cd_json_write_key(&w, "nodes"), cd_json_write_open(&w, '[');
    for (uint32_t i = 0; i < g->n_node; i++) node(&w, g, &g->node[i]);
    cd_json_write_close(&w, ']');
}
