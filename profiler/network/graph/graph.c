/* The graph itself: tensors, inputs, weights, constants, results, attributes, and appending
 * operators. Arrays grow in the graph's arena, so a pointer to a tensor or node
 * is good only until the next one is appended. */
#include "profiler/network/graph/graph.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

int64_t cd_graph_shape_elements(const cd_graph_shape *s) {
    int64_t n = 1;
    for (uint32_t d = 0; d < s->rank; d++) n *= s->dim[d];
    return n;
}

cdmpp_status cd_graph_shape_check(const cd_graph_shape *s, cdmpp_err *err) {
    int64_t n = 1;
    if (s->rank > CD_GRAPH_MAX_RANK)
        return CD_FAIL(err, ERANGE, "expected at most %d dimensions, found %u", CD_GRAPH_MAX_RANK,
                       s->rank);
    for (uint32_t d = 0; d < s->rank; d++) {
        if (s->dim[d] < 0)
            return CD_FAIL(err, ERANGE, "dimension %u is %lld", d, (long long)s->dim[d]);
        /* Empty tensors too: what is multiplied with the other dimensions must not overflow. */
        const int64_t by = s->dim[d] ? s->dim[d] : 1;
        if (by > CD_GRAPH_MAX_ELEMENTS / n) return CD_FAIL(err, ERANGE, "more than 2^48 elements");
        n *= by;
    }
    return CDMPP_OK;
}

cdmpp_status cd_graph_new(const char *name, cd_graph **out, cdmpp_err *err) {
    cd_graph *g = cd_mem_zalloc(1, sizeof *g);
    *out = NULL;
    if (!g) return CD_FAIL(err, ENOMEM, "a graph");
    g->opset = 13;
    g->name = cd_graph_keep(g, name);
    if (!g->name) {
        cd_graph_free(g);
        return CD_FAIL(err, ENOMEM, "a graph");
    }
    *out = g;
    return CDMPP_OK;
}

void cd_graph_free(cd_graph *g) {
    if (!g) return;
    cd_arena_free(&g->arena);
    cd_mem_free(g);
}

const char *cd_graph_keep(cd_graph *g, const char *s) {
    return cd_str_dup(&g->arena, (cd_str){s ? s : "", s ? strlen(s) : 0});
}

static cdmpp_status add_note(cd_graph *g, const char *text, cdmpp_err *err) {
    for (uint32_t k = 0; k < g->n_note; k++)
        if (!strcmp(g->note[k], text)) return CDMPP_OK;
    if (g->n_note == CD_GRAPH_MAX_NOTE) return g->n_more_note++, CDMPP_OK;
    if (!g->note) g->note = CD_NEWN(&g->arena, const char *, CD_GRAPH_MAX_NOTE);
    const char *s = g->note ? cd_graph_keep(g, text) : NULL;
    if (!s) return CD_FAIL(err, ENOMEM, "a note");
    g->note[g->n_note++] = s;
    return CDMPP_OK;
}

cdmpp_status cd_graph_note(cd_graph *g, cdmpp_err *err, const char *fmt, ...) {
    char text[1000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return add_note(g, text, err);
}

cdmpp_status cd_graph_take_notes(cd_graph *g, const cd_graph *from, cdmpp_err *err) {
    for (uint32_t k = 0; k < from->n_note; k++) CD_TRY(add_note(g, from->note[k], err));
    g->n_more_note += from->n_more_note;
    return CDMPP_OK;
}

int64_t cd_graph_shape_bytes(const cd_graph_shape *s, cd_dtype t) {
    const int64_t n = cd_graph_shape_elements(s), bits = cd_expr_dtype_bits(t);
    return bits < 8 && t != CD_BOOL ? (n * bits + 7) / 8 : n * (int64_t)cd_expr_dtype_bytes(t);
}

/* Append as it is; in graph.c. Errors: ENOMEM. */
static cdmpp_status graph_publish(cd_graph *g, const cd_graph_tensor *t, uint32_t *tensor,
                                  cdmpp_err *err) {
    if (CD_GROW_IN(&g->arena, g->tensor, g->n_tensor, g->cap_tensor))
        return CD_FAIL(err, ENOMEM, "a graph of %u", g->n_tensor);
    g->tensor[g->n_tensor] = *t;
    *tensor = g->n_tensor++;
    return CDMPP_OK;
}

static cdmpp_status graph_publish_node(cd_graph *g, const cd_graph_node *n, cdmpp_err *err) {
    if (CD_GROW_IN(&g->arena, g->node, g->n_node, g->cap_node))
        return CD_FAIL(err, ENOMEM, "a graph of %u", g->n_node);
    g->node[g->n_node++] = *n;
    return CDMPP_OK;
}

/* A tensor that no node makes. */
static cdmpp_status source(cd_graph *g, const char *name, cd_dtype t, const cd_graph_shape *s,
                           cd_graph_tensor *out, cdmpp_err *err) {
    CD_TRY(cd_err_key(err, cd_graph_shape_check(s, err), name ? name : ""));
    *out = (cd_graph_tensor){
        .name = cd_graph_keep(g, name), .dtype = t, .shape = *s, .node = CD_GRAPH_NONE};
    return out->name ? CDMPP_OK : CD_FAIL(err, ENOMEM, "a tensor");
}

static cdmpp_status list(cd_graph *g, uint32_t **array, uint32_t *n, uint32_t tensor,
                         cdmpp_err *err) {
    if (!(*n & (*n - 1))) { /* 0 and powers of two: full */
        uint32_t *p = CD_NEWN(&g->arena, uint32_t, *n ? *n * 2 : 1);
        if (!p) return CD_FAIL(err, ENOMEM, "a graph");
        if (*n) memcpy(p, *array, *n * sizeof *p);
        *array = p;
    }
    (*array)[(*n)++] = tensor;
    return CDMPP_OK;
}

cdmpp_status cd_graph_input(cd_graph *g, const char *name, cd_dtype t, const cd_graph_shape *s,
                            uint32_t *tensor, cdmpp_err *err) {
    cd_graph_tensor x;
    CD_TRY(source(g, name, t, s, &x, err));
    x.is_input = true;
    CD_TRY(graph_publish(g, &x, tensor, err));
    return list(g, &g->input, &g->n_input, *tensor, err);
}

cdmpp_status cd_graph_weight(cd_graph *g, const char *name, cd_dtype t, const cd_graph_shape *s,
                             uint32_t *tensor, cdmpp_err *err) {
    cd_graph_tensor x;
    CD_TRY(source(g, name, t, s, &x, err));
    x.is_weight = true;
    return graph_publish(g, &x, tensor, err);
}

/* As a conversion in C where that is defined; else the nearest there is, and 0 for what is no
 * number. */
static int64_t whole_of(double v) {
    if (isnan(v)) return 0;
    return v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

cdmpp_status cd_graph_constant(cd_graph *g, const char *name, cd_dtype t, const cd_graph_shape *s,
                               const int64_t *value, const double *fvalue, uint32_t *tensor,
                               cdmpp_err *err) {
    cd_graph_tensor x;
    CD_TRY(source(g, name, t, s, &x, err));
    const int64_t n = cd_graph_shape_elements(s);
    if (n > (g->contents ? CD_GRAPH_MAX_VALUES : CD_GRAPH_MAX_VALUE) ||
        n > CD_GRAPH_MAX_VALUES - g->n_value) {
        x.is_weight = true; /* too much to keep: a shape like any other weight */
        return graph_publish(g, &x, tensor, err);
    }
    /* The type says which of the two the tensor has, whichever was given. One more: empty content
     * is content. */
    const bool real = cd_expr_dtype_is_float(x.dtype);
    double *reals = real ? CD_NEWN(&g->arena, double, (size_t)n + 1) : NULL;
    int64_t *wholes = real ? NULL : CD_NEWN(&g->arena, int64_t, (size_t)n + 1);
    if (!reals && !wholes) return CD_FAIL(err, ENOMEM, "a constant of %lld", (long long)n);
    for (int64_t k = 0; k < n; k++) {
        if (real) reals[k] = value ? (double)value[k] : fvalue[k];
        else wholes[k] = value ? value[k] : whole_of(fvalue[k]);
    }
    x.fvalue = reals;
    x.value = wholes;
    g->n_value += n;
    return graph_publish(g, &x, tensor, err);
}

cdmpp_status cd_graph_rename(cd_graph *g, uint32_t tensor, const char *name, cdmpp_err *err) {
    const char *s = cd_graph_keep(g, name);
    if (!s) return CD_FAIL(err, ENOMEM, "a name");
    g->tensor[tensor].name = s;
    return CDMPP_OK;
}

cdmpp_status cd_graph_result(cd_graph *g, uint32_t tensor, cdmpp_err *err) {
    if (tensor >= g->n_tensor) return CD_FAIL(err, ESCHEMA, "no tensor %u", tensor);
    g->tensor[tensor].is_output = true;
    return list(g, &g->output, &g->n_output, tensor, err);
}

const cd_graph_attr *cd_graph_node_attr(const cd_graph_node *n, const char *name) {
    for (uint32_t i = 0; i < n->n_attr; i++)
        if (!strcmp(n->attr[i].name, name)) return &n->attr[i];
    return NULL;
}

int64_t cd_graph_node_int(const cd_graph_node *n, const char *name, int64_t absent) {
    const cd_graph_attr *a = cd_graph_node_attr(n, name);
    return a && a->kind == CD_GRAPH_ATTR_INT ? a->i : absent;
}

double cd_graph_node_float(const cd_graph_node *n, const char *name, double absent) {
    const cd_graph_attr *a = cd_graph_node_attr(n, name);
    return a && a->kind == CD_GRAPH_ATTR_FLOAT ? a->f
           : a && a->kind == CD_GRAPH_ATTR_INT ? (double)a->i
                                               : absent;
}

double cd_graph_flop(const cd_graph *g) {
    double sum = 0;
    for (uint32_t i = 0; i < g->n_node; i++) sum += g->node[i].flop;
    return sum;
}

/* Appends an operator: finds its rule, checks operands, infers shapes, folds known content, counts
 * operations, and only then publishes node and tensors. A failure leaves the graph as it was but
 * for memory of the arena. */

enum { SPARE = 12 }; /* attributes that infer may add */

/* The caller's attribute may be gone after the call: texts and lists are copied. Integers and reals
 * have the same size, so one copy serves both. */
static cdmpp_status copy_attr(cd_graph *g, const cd_graph_attr *a, cd_graph_attr *out,
                              cdmpp_err *err) {
    *out = *a;
    out->name = cd_graph_keep(g, a->name);
    bool oom = !out->name;
    if (a->kind == CD_GRAPH_ATTR_STR) oom |= !(out->s = cd_graph_keep(g, a->s));
    if (a->kind == CD_GRAPH_ATTR_INTS || a->kind == CD_GRAPH_ATTR_FLOATS) {
        const size_t bytes = a->n * sizeof(int64_t);
        void *p = cd_arena_alloc(&g->arena, (size_t)a->n + 1, sizeof(int64_t));
        oom |= !p;
        if (p && a->n)
            memcpy(p,
                   a->kind == CD_GRAPH_ATTR_INTS ? (const void *)a->ints : (const void *)a->floats,
                   bytes);
        out->ints = a->kind == CD_GRAPH_ATTR_INTS ? p : NULL;
        out->floats = a->kind == CD_GRAPH_ATTR_FLOATS ? p : NULL;
    }
    return oom ? CD_FAIL(err, ENOMEM, "an attribute") : CDMPP_OK;
}

static cdmpp_status copy_attrs(cd_graph_call *c, const cd_graph_attr *attr, uint32_t n,
                               cdmpp_err *err) {
    c->cap_attr = n + SPARE;
    c->attr = CD_NEWN(&c->g->arena, cd_graph_attr, (size_t)n + SPARE);
    if (!c->attr) return CD_FAIL(err, ENOMEM, "attributes");
    for (; c->n_attr < n; c->n_attr++)
        CD_TRY(copy_attr(c->g, &attr[c->n_attr], &c->attr[c->n_attr], err));
    return CDMPP_OK;
}

static cdmpp_status check_in(const cd_graph *g, const uint32_t *in, uint32_t n_in, cdmpp_err *err) {
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i] != CD_GRAPH_NONE && in[i] >= g->n_tensor)
            return CD_FAIL(err, ESCHEMA, "operand %u: no tensor %u", i, in[i]);
    return CDMPP_OK;
}

/* Does the number of operands and results fit the rule? */
static cdmpp_status check(const cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_rule *r = c->rule;
    CD_TRY(check_in(c->g, c->in, c->n_in, err));
    if (c->n_in < (uint32_t)r->min_in || (r->max_in >= 0 && c->n_in > (uint32_t)r->max_in))
        return CD_FAIL(err, ESCHEMA, "%s: expected %d to %d operands, found %u", r->op, r->min_in,
                       r->max_in, c->n_in);
    for (uint32_t i = 0; i < (uint32_t)r->min_in; i++)
        if (c->in[i] == CD_GRAPH_NONE)
            return CD_FAIL(err, ESCHEMA, "%s: operand %u is missing", r->op, i);
    if (c->n_out == 0 || (r->max_out >= 0 && c->n_out > (uint32_t)r->max_out))
        return CD_FAIL(err, ESCHEMA, "%s: expected 1 to %d results, found %u", r->op, r->max_out,
                       c->n_out);
    return CDMPP_OK;
}

/* *known: the content of all operands is known. *still: no operand changes from run to run
 * (constants and weights). An operator without operands is neither: its infer decides. */
static void operands(const cd_graph_call *c, bool *known, bool *still) {
    *known = *still = c->n_in > 0;
    for (uint32_t i = 0; i < c->n_in; i++) {
        const cd_graph_tensor *t = cd_graph_call_input(c, i);
        if (!t) continue;
        *known &= cd_graph_call_is_known(t);
        *still &= cd_graph_tensor_is_static(t);
    }
}

static cdmpp_status look_up(cd_graph_call *c, cdmpp_err *err) {
    bool known = false;
    c->rule = cd_graph_rule_find(c->op, c->g->opset, &known);
    if (c->rule) return CDMPP_OK;
    return known ? CD_FAIL(err, EUNSUPPORTED, "operator %s is not part of opset %d", c->op,
                           c->g->opset)
                 : CD_FAIL(err, EUNSUPPORTED, "unknown operator %s", c->op);
}

/* What folding reads: all operands once, however small the result is. */
static int64_t steps(const cd_graph_call *c) {
    int64_t n = 0;
    for (uint32_t i = 0; i < c->n_in; i++)
        if (cd_graph_call_input(c, i))
            n += cd_graph_shape_elements(&cd_graph_call_input(c, i)->shape);
    return n;
}

/* Shapes, then content where all is known. An output whose content is unknown is a weight where all
 * operands are weights or constants; `folded` means that every output is one or the other, so that
 * nothing runs. */
static cdmpp_status infer(cd_graph_call *c, bool *folded, cdmpp_err *err) {
    bool known, still, all = true;
    CD_TRY(c->rule->infer(c, err));
    operands(c, &known, &still);
    if (known && c->rule->fold && cd_graph_call_may_read(c, steps(c)))
        CD_TRY(c->rule->fold(c, err));
    for (uint32_t o = 0; o < c->n_out; o++) {
        if (cd_graph_call_is_known(&c->out[o])) continue;
        c->out[o].is_weight |= still && !(c->rule->flags & CD_GRAPH_RULE_RANDOM);
        all &= c->out[o].is_weight;
    }
    *folded = all;
    return CDMPP_OK;
}

static cdmpp_status name_out(cd_graph_call *c, const char *name, cdmpp_err *err) {
    char number[16];
    const size_t len = strlen(name);
    c->out[0].name = name;
    for (uint32_t o = 1; o < c->n_out; o++) {
        const int n = snprintf(number, sizeof number, ":%u", o);
        char *s = cd_arena_alloc(&c->g->arena, len + (size_t)n + 1, 1);
        if (!s) return CD_FAIL(err, ENOMEM, "a name");
        memcpy(s, name, len);
        memcpy(s + len, number, (size_t)n + 1);
        c->out[o].name = s;
    }
    return CDMPP_OK;
}

/* The outputs become tensors numbered behind all others, which keeps the topological order; names
 * first, since that is the last thing that can fail before the graph changes. */
static cdmpp_status publish(cd_graph_call *c, cd_graph_node *n, uint32_t *out, cdmpp_err *err) {
    cd_graph *g = c->g;
    uint32_t *io = CD_NEWN(&g->arena, uint32_t, (size_t)c->n_in + c->n_out + 1);
    if (!io) return CD_FAIL(err, ENOMEM, "a node");
    CD_TRY(name_out(c, n->name, err));
    if (c->n_in) memcpy(io, c->in, c->n_in * sizeof *io);
    for (uint32_t o = 0; o < c->n_out; o++) {
        c->out[o].node = g->n_node;
        CD_TRY(graph_publish(g, &c->out[o], &out[o], err));
        io[c->n_in + o] = out[o];
    }
    n->in = io;
    n->out = io + c->n_in;
    n->n_in = c->n_in;
    n->n_out = c->n_out;
    n->attr = c->attr;
    n->n_attr = c->n_attr;
    return graph_publish_node(g, n, err);
}

static cdmpp_status add(cd_graph_call *c, const cd_graph_attr *attr, uint32_t n_attr,
                        cd_graph_node *n, uint32_t *out, cdmpp_err *err) {
    CD_TRY(look_up(c, err));
    CD_TRY(check(c, err));
    CD_TRY(copy_attrs(c, attr, n_attr, err));
    c->out = CD_NEWN(&c->g->arena, cd_graph_tensor, (size_t)c->n_out);
    if (!c->out) return CD_FAIL(err, ENOMEM, "%u results", c->n_out);
    CD_TRY(infer(c, &n->folded, err));
    n->view = c->rule->flags & CD_GRAPH_RULE_VIEW;
    n->op = c->rule->op;
    if (!n->folded && !n->view && c->rule->flop) n->flop = c->rule->flop(c);
    return publish(c, n, out, err);
}

/* On an error the tensors published so far are taken back; the node was not published yet. */
cdmpp_status cd_graph_add(cd_graph *g, const char *name, const char *op, const uint32_t *in,
                          uint32_t n_in, const cd_graph_attr *attr, uint32_t n_attr, uint32_t *out,
                          uint32_t n_out, cdmpp_err *err) {
    cd_graph_call c = {.g = g, .op = op, .in = in, .n_in = n_in, .n_out = n_out};
    cd_graph_node n = {.name = cd_graph_keep(g, name), .domain = ""};
    const uint32_t n_tensor = g->n_tensor;
    if (!n.name) return CD_FAIL(err, ENOMEM, "a node");
    const cdmpp_status st = add(&c, attr, n_attr, &n, out, err);
    if (st) g->n_tensor = n_tensor;
    return st && name && *name ? cd_err_key(err, st, name) : st;
}

cdmpp_status cd_graph_opaque(cd_graph *g, const char *name, const char *domain, const char *op,
                             const uint32_t *in, uint32_t n_in, const cd_graph_shape *shape,
                             const cd_dtype *t, uint32_t *out, uint32_t n_out, cdmpp_err *err) {
    cd_graph_call c = {.g = g, .op = op, .in = in, .n_in = n_in, .n_out = n_out};
    cd_graph_node n = {.name = cd_graph_keep(g, name),
                       .domain = cd_graph_keep(g, domain),
                       .op = cd_graph_keep(g, op),
                       .opaque = true};
    const uint32_t n_tensor = g->n_tensor;
    CD_TRY(check_in(g, in, n_in, err));
    c.out = CD_NEWN(&g->arena, cd_graph_tensor, (size_t)n_out + 1);
    if (!n.name || !n.domain || !n.op || !c.out) return CD_FAIL(err, ENOMEM, "a node");
    for (uint32_t o = 0; o < n_out; o++) {
        c.out[o].dtype = t[o];
        c.out[o].shape = shape[o];
        CD_TRY(cd_err_key(err, cd_graph_shape_check(&shape[o], err), n.name));
    }
    const cdmpp_status st = publish(&c, &n, out, err);
    if (st) g->n_tensor = n_tensor;
    return st;
}

/* A graph as text for people and as JSON. Operands that are absent are null in JSON; counts are
 * printed without decimals so that equal graphs give equal bytes. */

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
