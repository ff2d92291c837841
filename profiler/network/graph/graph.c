/* The graph itself: tensors, inputs, weights, constants, results, and reading attributes. Appending
 * operators is in graph_add.c. Arrays grow in the graph's arena, so a pointer to a tensor or node
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

cdmpp_status cd_graph_publish(cd_graph *g, const cd_graph_tensor *t, uint32_t *tensor,
                              cdmpp_err *err) {
    if (CD_GROW_IN(&g->arena, g->tensor, g->n_tensor, g->cap_tensor))
        return CD_FAIL(err, ENOMEM, "a graph of %u", g->n_tensor);
    g->tensor[g->n_tensor] = *t;
    *tensor = g->n_tensor++;
    return CDMPP_OK;
}

cdmpp_status cd_graph_publish_node(cd_graph *g, const cd_graph_node *n, cdmpp_err *err) {
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
    CD_TRY(cd_graph_publish(g, &x, tensor, err));
    return list(g, &g->input, &g->n_input, *tensor, err);
}

cdmpp_status cd_graph_weight(cd_graph *g, const char *name, cd_dtype t, const cd_graph_shape *s,
                             uint32_t *tensor, cdmpp_err *err) {
    cd_graph_tensor x;
    CD_TRY(source(g, name, t, s, &x, err));
    x.is_weight = true;
    return cd_graph_publish(g, &x, tensor, err);
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
        return cd_graph_publish(g, &x, tensor, err);
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
    return cd_graph_publish(g, &x, tensor, err);
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
