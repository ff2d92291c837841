/* Builds an iteration of training: copies the forward network, with normalisations and recurrent
 * layers decomposed into operators that have gradients; adds the loss; walks back through the copy,
 * operator by operator; adds the update of each weight. */

#include <stdio.h>
#include <string.h>

#include "profiler/network/gradient/autodiff_internal.h"

static const cd_autodiff_rule *rule_of(const char *op) {
    const cd_autodiff_rule *const table[] = {cd_autodiff_rules_elementwise, cd_autodiff_rules_conv,
                                             cd_autodiff_rules_matmul,      cd_autodiff_rules_norm,
                                             cd_autodiff_rules_pool,        cd_autodiff_rules_move,
                                             cd_autodiff_rules_gather};
    for (size_t t = 0; t < sizeof table / sizeof *table; t++)
        for (const cd_autodiff_rule *r = table[t]; r->op; r++)
            if (!strcmp(r->op, op)) return r;
    return NULL;
}

static uint32_t no_memory(cd_autodiff_builder *b) {
    return cd_autodiff_fail(b, CD_FAIL(b->err, ENOMEM, "out of memory for an iteration"));
}

/* ---- which weights are learned ---- */

/* Statistics that a batch norm keeps are not. */
static void mark_statistics(cd_autodiff_builder *b) {
    for (uint32_t i = 0; i < b->from->n_node; i++) {
        const cd_graph_node *n = &b->from->node[i];
        for (uint32_t k = 3; k < n->n_in && k < 5 && !strcmp(n->op, "BatchNormalization"); k++)
            b->frozen[n->in[k]] = true;
    }
}

/* Not learned: integers, masks, the statistics of batch norms, and the weights that the options
 * name. A name that fits no weight is an error. */
static void mark_frozen(cd_autodiff_builder *b) {
    const cd_graph *g = b->from;
    mark_statistics(b);
    for (uint32_t t = 0; t < g->n_tensor; t++) {
        const cd_graph_tensor *x = &g->tensor[t];
        if (!x->is_weight || !cd_expr_dtype_is_float(x->dtype) ||
            (x->name && strstr(x->name, "mask")))
            b->frozen[t] = true;
    }
    for (uint32_t i = 0; i < b->o->n_frozen && !b->st; i++) {
        bool any = false;
        for (uint32_t t = 0; t < g->n_tensor; t++) {
            if (!g->tensor[t].is_weight || g->tensor[t].node != CD_GRAPH_NONE ||
                strcmp(g->tensor[t].name, b->o->frozen[i]))
                continue;
            any = b->frozen[t] = true;
        }
        if (!any)
            cd_autodiff_fail(
                b, CD_FAIL(b->err, EINVALID, "no weight is called \"%s\"", b->o->frozen[i]));
    }
}

/* ---- the forward part ---- */

/* A weight with known content that is learned loses the content: it changes. */
static void copy_source(cd_autodiff_builder *b, uint32_t t) {
    const cd_graph_tensor *x = &b->from->tensor[t];
    uint32_t *to = &b->map[t];
    if (b->st) return;
    if (x->is_input) {
        b->st = cd_graph_input(b->g, x->name, x->dtype, &x->shape, to, b->err);
    } else if (x->is_weight && (!b->frozen[t] || !(x->value || x->fvalue))) {
        b->st = cd_graph_weight(b->g, x->name, x->dtype, &x->shape, to, b->err);
        if (!b->st) b->g->tensor[*to].is_trained = !b->frozen[t];
    } else {
        b->st =
            cd_graph_constant(b->g, x->name, x->dtype, &x->shape, x->value, x->fvalue, to, b->err);
        if (!b->st) b->g->tensor[*to].is_weight = x->is_weight;
    }
}

/* An operator that the graph does not know is copied with the shapes that it had. */
static cdmpp_status opaque(cd_autodiff_builder *b, const cd_graph_node *n, const uint32_t *in,
                           uint32_t *out) {
    cd_graph_shape *s = CD_NEWN(&b->g->arena, cd_graph_shape, n->n_out + 1U);
    cd_dtype *t = CD_NEWN(&b->g->arena, cd_dtype, n->n_out + 1U);
    if (!s || !t) return CD_FAIL(b->err, ENOMEM, "out of memory for an iteration");
    for (uint32_t k = 0; k < n->n_out; k++) {
        s[k] = b->from->tensor[n->out[k]].shape;
        t[k] = b->from->tensor[n->out[k]].dtype;
    }
    return cd_graph_opaque(b->g, n->name, n->domain, n->op, in, n->n_in, s, t, out, n->n_out,
                           b->err);
}

/* Files without their weights fill them with a number that is not zero: such a tensor is a
 * weight. */
static bool is_filled(cd_autodiff_builder *b, const cd_graph_node *n) {
    const cd_graph_tensor *x = &b->from->tensor[n->out[0]];
    uint32_t *to = &b->map[n->out[0]];
    if (strcmp(n->op, "ConstantOfShape") || !x->is_weight || b->frozen[n->out[0]] ||
        cd_graph_node_float(n, "value", 0) == 0)
        return false;
    if (!b->st) b->st = cd_graph_weight(b->g, x->name, x->dtype, &x->shape, to, b->err);
    if (!b->st) b->g->tensor[*to].is_trained = true;
    return true;
}

/* Results keep the names that they have in the forward network. */
static void copy_node(cd_autodiff_builder *b, const cd_graph_node *n) {
    if (is_filled(b, n)) return;
    uint32_t *in = CD_NEWN(&b->g->arena, uint32_t, n->n_in + 1U),
             *out = CD_NEWN(&b->g->arena, uint32_t, n->n_out + 1U);
    if (!in || !out) {
        no_memory(b);
        return;
    }
    for (uint32_t k = 0; k < n->n_in; k++)
        in[k] = n->in[k] == CD_GRAPH_NONE ? n->in[k] : b->map[n->in[k]];
    b->at = n->name;
    if (n->opaque) b->st = opaque(b, n, in, out);
    else if (!cd_autodiff_decompose_norm(b, n, in, out) &&
             !cd_autodiff_decompose_rnn(b, n, in, out))
        b->st = cd_graph_add(b->g, n->name, n->op, in, n->n_in, n->attr, n->n_attr, out, n->n_out,
                             b->err);
    for (uint32_t k = 0; k < n->n_out && !b->st; k++) {
        b->map[n->out[k]] = out[k];
        if (out[k] != CD_GRAPH_NONE)
            b->st = cd_graph_rename(b->g, out[k], b->from->tensor[n->out[k]].name, b->err);
    }
}

static void forward(cd_autodiff_builder *b) {
    const cd_graph *g = b->from;
    for (uint32_t t = 0; t < g->n_tensor; t++) b->map[t] = CD_GRAPH_NONE;
    for (uint32_t t = 0; t < g->n_tensor; t++)
        if (g->tensor[t].node == CD_GRAPH_NONE) copy_source(b, t);
    for (uint32_t i = 0; i < g->n_node && !b->st; i++) copy_node(b, &g->node[i]);
    for (uint32_t k = 0; k < g->n_output && !b->st; k++)
        b->st = cd_graph_result(b->g, b->map[g->output[k]], b->err);
}

/* ---- back ---- */

/* What depends on a weight that is learned, through real numbers. */
static void mark_need(cd_autodiff_builder *b) {
    const cd_graph *g = b->g;
    for (uint32_t t = 0; t < b->n_tensor; t++) {
        b->grad[t] = CD_GRAPH_NONE;
        b->need[t] = g->tensor[t].is_trained;
    }
    for (uint32_t i = 0; i < b->n_forward; i++) {
        const cd_graph_node *n = &g->node[i];
        const cd_autodiff_rule *r = n->opaque ? NULL : rule_of(n->op);
        bool any = false;
        for (uint32_t k = 0; k < n->n_in; k++)
            any = any || (n->in[k] != CD_GRAPH_NONE && b->need[n->in[k]]);
        for (uint32_t k = 0; k < n->n_out; k++)
            b->need[n->out[k]] = any && !(r && !r->fn) &&
                                 cd_expr_dtype_is_float(g->tensor[n->out[k]].dtype) &&
                                 !cd_graph_tensor_is_static(&g->tensor[n->out[k]]);
    }
}

/* Gradients of the results: ones, 2 (y - target)/n, or (p - label)/rows. */
static void seed_of(cd_autodiff_builder *b, uint32_t y, const uint32_t *seed) {
    const cd_graph_shape s = *cd_autodiff_shape(b, y);
    if (y == CD_GRAPH_NONE || b->st || !b->need[y]) return;
    if (seed[0] == CD_GRAPH_NONE) {
        cd_autodiff_accumulate_tensor(b, y,
                                      cd_autodiff_expand(b, cd_autodiff_const_scalar(b, y, 1), &s));
        return;
    }
    if (seed[1] == CD_GRAPH_NONE) {
        cd_autodiff_accumulate_tensor(
            b, y,
            cd_autodiff_binary_scalar(
                b, "Mul", seed[0],
                2 / (double)(cd_graph_shape_elements(&s) ? cd_graph_shape_elements(&s) : 1)));
        return;
    }
    const int64_t classes = s.dim[s.rank == 3 ? 2 : 1];
    const double rows = classes ? (double)(cd_graph_shape_elements(&s) / classes) : 1;
    const uint32_t d = cd_autodiff_binary(b, "Sub", cd_autodiff_unary(b, "Exp", seed[1]), seed[0]);
    cd_autodiff_accumulate_tensor(b, y,
                                  cd_autodiff_binary_scalar(b, "Div", d, rows > 0 ? rows : 1));
}

/* The reason is static text, the names are copied into the graph. */
static void list_missing(cd_autodiff_builder *b, const cd_graph_node *n, const char *name,
                         const char *why) {
    cd_gradient *r = b->result;
    if (CD_GROW_IN(&b->g->arena, r->missing, r->n_missing, b->cap_missing)) {
        no_memory(b);
        return;
    }
    name = cd_graph_keep(b->g, name);
    if (!name) no_memory(b);
    else r->missing[r->n_missing++] = (cd_gradient_miss){n->op, n->name, name, why};
}

/* An operator that nobody knows, in place of the gradient: it has the operands, the gradients of
 * the results, and gives those of the operands. */
static void unknown(cd_autodiff_builder *b, const cd_graph_node *n, const char *why) {
    const uint32_t most = n->n_in + n->n_out;
    uint32_t n_in = 0, n_out = 0, *in = CD_NEWN(&b->g->arena, uint32_t, most + 1),
             *out = CD_NEWN(&b->g->arena, uint32_t, n->n_in + 1U);
    cd_graph_shape *s = CD_NEWN(&b->g->arena, cd_graph_shape, n->n_in + 1U);
    cd_dtype *t = CD_NEWN(&b->g->arena, cd_dtype, n->n_in + 1U);
    char op[80], name[160];
    if (!in || !out || !s || !t) {
        no_memory(b);
        return;
    }
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (n->in[k] != CD_GRAPH_NONE) in[n_in++] = n->in[k];
        if (!cd_autodiff_needs_grad(b, k)) continue;
        s[n_out] = b->g->tensor[n->in[k]].shape;
        t[n_out++] = b->g->tensor[n->in[k]].dtype;
    }
    for (uint32_t k = 0; k < n->n_out; k++)
        if (cd_autodiff_output_grad(b, k) != CD_GRAPH_NONE)
            in[n_in++] = cd_autodiff_output_grad(b, k);
    snprintf(op, sizeof op, "%.60sGrad", n->op);
    snprintf(name, sizeof name, "%.120s/%sGrad", n->name, n->op);
    list_missing(b, n, name, why);
    if (!b->st)
        b->st =
            cd_graph_opaque(b->g, name, CD_GRADIENT_DOMAIN, op, in, n_in, s, t, out, n_out, b->err);
    for (uint32_t k = 0, o = 0; k < n->n_in && !b->st; k++)
        if (cd_autodiff_needs_grad(b, k)) cd_autodiff_accumulate(b, k, out[o++]);
}

/* The node is copied, because appending operators moves the array. */
static void one(cd_autodiff_builder *b, uint32_t i) {
    const cd_graph_node n = b->g->node[i]; /* a copy: the array grows */
    bool any = false, wanted = false;
    b->n = &n;
    b->why = NULL;
    b->at = n.name;
    for (uint32_t k = 0; k < n.n_out; k++) any = any || b->grad[n.out[k]] != CD_GRAPH_NONE;
    for (uint32_t k = 0; k < n.n_in; k++) wanted = wanted || cd_autodiff_needs_grad(b, k);
    if (!any || !wanted || n.folded) return;
    const cd_autodiff_rule *r = n.opaque ? NULL : rule_of(n.op);
    if (r && r->fn) r->fn(b);
    if (!r || b->why) unknown(b, &n, b->why ? b->why : "this operator has no gradient");
    b->n = NULL;
}

/* Nodes in reverse order; a decomposed normalisation is one step, over all its nodes. */
static void backward(cd_autodiff_builder *b) {
    uint32_t norm = b->n_norm;
    for (uint32_t i = b->n_forward; i-- > 0 && !b->st;) {
        while (norm && b->norm[norm - 1].last > i) norm--;
        if (norm && b->norm[norm - 1].last == i) {
            b->at = b->g->node[i].name;
            cd_autodiff_norm_backward(b, &b->norm[norm - 1]);
            i = b->norm[norm - 1].first;
        } else one(b, i);
    }
}

/* ---- all of it ---- */

static void list_weights(cd_autodiff_builder *b) {
    cd_gradient *r = b->result;
    r->weight = CD_NEWN(&b->g->arena, cd_gradient_weight, b->n_tensor + 1);
    if (!r->weight) {
        no_memory(b);
        return;
    }
    for (uint32_t t = 0; t < b->n_tensor && !b->st; t++) {
        if (!b->g->tensor[t].is_trained) continue;
        r->weight[r->n_weight++] = (cd_gradient_weight){t, b->grad[t], CD_GRAPH_NONE};
        if (b->grad[t] != CD_GRAPH_NONE) b->st = cd_graph_result(b->g, b->grad[t], b->err);
    }
}

static void set_phases(cd_autodiff_builder *b, uint32_t back, uint32_t update) {
    const uint32_t n = b->g->n_node;
    b->result->phase = CD_NEWN(&b->g->arena, uint8_t, n + 1);
    if (!b->result->phase) no_memory(b);
    for (uint32_t i = 0; i < n && !b->st; i++)
        b->result->phase[i] = i < back     ? CD_GRADIENT_FORWARD
                              : i < update ? CD_GRADIENT_BACKWARD
                                           : CD_GRADIENT_UPDATE;
}

/* The order of the phases: forward, loss, backward, update. Arrays by tensor have the size of the
 * forward part: gradients of gradients are not asked for. */
static void iteration(cd_autodiff_builder *b) {
    uint32_t *seed = CD_NEWN(&b->g->arena, uint32_t, 2 * b->from->n_output + 1);
    b->map = CD_NEWN(&b->g->arena, uint32_t, b->from->n_tensor + 1);
    b->frozen = CD_NEWN(&b->g->arena, bool, b->from->n_tensor + 1);
    if (!seed || !b->map || !b->frozen) no_memory(b);
    if (!b->st) mark_frozen(b);
    if (!b->st) forward(b);
    b->n_tensor = b->g->n_tensor;
    b->n_forward = b->g->n_node;
    b->grad = CD_NEWN(&b->g->arena, uint32_t, b->n_tensor + 1);
    b->need = CD_NEWN(&b->g->arena, bool, b->n_tensor + 1);
    if (!b->grad || !b->need) no_memory(b);
    if (!b->st) mark_need(b);
    if (!b->st) cd_autodiff_add_loss(b, &b->result->loss, seed);
    if (!b->st) b->st = cd_graph_result(b->g, b->result->loss, b->err);
    const uint32_t back = b->g->n_node;
    for (uint32_t k = 0; k < b->from->n_output && !b->st; k++)
        seed_of(b, b->map[b->from->output[k]], seed + 2 * k);
    backward(b);
    if (!b->st) list_weights(b);
    const uint32_t update = b->g->n_node;
    if (!b->st && !b->o->no_update) cd_autodiff_add_update(b);
    if (!b->st) set_phases(b, back, update);
}

cdmpp_status cd_autodiff(const cd_graph *from, const cd_gradient_options *o, cd_gradient *out,
                         cdmpp_err *err) {
    static const cd_gradient_options none = {0};
    *out = (cd_gradient){.loss = CD_GRAPH_NONE};
    CD_TRY(cd_graph_new(from->name, &out->graph, err));
    out->graph->opset = from->opset;
    out->graph->training = true;
    cd_autodiff_builder b = {
        .from = from, .g = out->graph, .o = o ? o : &none, .err = err, .result = out, .at = ""};
    iteration(&b);
    if (b.st) cd_gradient_free(out);
    return b.st;
}

void cd_gradient_free(cd_gradient *g) {
    if (!g) return;
    cd_graph_free(g->graph);
    *g = (cd_gradient){0};
}
