/* Appends an operator: finds its rule, checks operands, infers shapes, folds known content, counts
 * operations, and only then publishes node and tensors. A failure leaves the graph as it was but
 * for memory of the arena. */
#include <stdio.h>
#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

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
        CD_TRY(cd_graph_publish(g, &c->out[o], &out[o], err));
        io[c->n_in + o] = out[o];
    }
    n->in = io;
    n->out = io + c->n_in;
    n->n_in = c->n_in;
    n->n_out = c->n_out;
    n->attr = c->attr;
    n->n_attr = c->n_attr;
    return cd_graph_publish_node(g, n, err);
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
