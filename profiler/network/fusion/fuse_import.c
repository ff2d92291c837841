/* Operators of a graph become nodes: the walk over the graph, the operands and results of rules,
 * and the folding of per-channel scales and shifts into weights, which TVM does with batch norms
 * (FoldScaleAxis). */
#include "profiler/network/fusion/fuse_import_internal.h"

#include <stdio.h>
#include <string.h>

/* ---- operands and results ---- */

bool cd_fuse_import_has(const cd_fuse_importer *m, uint32_t k) {
    return k < m->n->n_in && m->n->in[k] != CD_GRAPH_NONE;
}
const cd_graph_tensor *cd_fuse_import_tensor(const cd_fuse_importer *m, uint32_t k) {
    return &m->g->tensor[m->n->in[k]];
}
bool cd_fuse_import_is_used(const cd_fuse_importer *m, uint32_t k) {
    return k < m->n->n_out && m->uses[m->n->out[k]] > 0;
}
const cd_graph_shape *cd_fuse_import_result_shape(const cd_fuse_importer *m) {
    return &m->g->tensor[m->n->out[0]].shape;
}
int64_t cd_fuse_import_axis(const cd_graph_shape *s, int64_t axis) {
    return axis < 0 ? axis + s->rank : axis;
}

static uint32_t known(cd_fuse_importer *m, uint32_t tensor) {
    const cd_graph_tensor *t = &m->g->tensor[tensor];
    if (t->shape.rank || !(t->value || t->fvalue))
        return cd_fuse_leaf(m->f, tensor, !t->is_input && !t->is_trained);
    return cd_fuse_const(m->f, t->dtype, t->value ? (double)t->value[0] : t->fvalue[0]);
}

static uint32_t node_of(cd_fuse_importer *m, uint32_t tensor) {
    tensor = m->same[tensor];
    if (m->id[tensor] == CD_GRAPH_NONE) m->id[tensor] = known(m, tensor);
    return m->id[tensor];
}

uint32_t cd_fuse_import_input(cd_fuse_importer *m, uint32_t k) {
    return cd_fuse_import_has(m, k) ? node_of(m, m->n->in[k]) : 0;
}

/* The array is as long as the largest node that was marked, in steps of 1024. */
bool cd_fuse_import_mark_shared(cd_fuse_importer *m, uint32_t node) {
    if (node >= m->cap_shared) {
        const uint32_t cap = node + 1024;
        bool *p = cd_mem_realloc(m->shared, m->cap_shared, cap);
        if (!p) {
            cd_fuse_fail(m->f, CDMPP_ENOMEM, "out of memory for operators");
            return false;
        }
        memset(p + m->cap_shared, 0, cap - m->cap_shared);
        m->shared = p;
        m->cap_shared = cap;
    }
    m->shared[node] = true;
    return true;
}

bool cd_fuse_import_is_shared(const cd_fuse_importer *m, uint32_t node) {
    return node < m->cap_shared && m->shared[node];
}

/* A result that several operators read is shared, and so is a node that a later operator passes on
 * as its own result (Identity). */
void cd_fuse_import_output(cd_fuse_importer *m, uint32_t k, uint32_t node) {
    if (k >= m->n->n_out || m->f->st) return;
    const uint32_t t = m->n->out[k];
    /* another operator's result, renamed */
    const bool again = node < m->f->n && m->f->node[node].origin != m->f->origin;
    m->id[t] = node;
    if (m->uses[t] > 1 || again) cd_fuse_import_mark_shared(m, node);
}

const int64_t *cd_fuse_import_ints(const cd_fuse_importer *m, uint32_t k, const char *attr,
                                   uint32_t *n) {
    const cd_graph_attr *a = attr ? cd_graph_node_attr(m->n, attr) : NULL;
    *n = 0;
    if (a && a->kind == CD_GRAPH_ATTR_INTS) {
        *n = a->n;
        return a->ints;
    }
    if (!cd_fuse_import_has(m, k) || !cd_fuse_import_tensor(m, k)->value) return NULL;
    *n = (uint32_t)cd_graph_shape_elements(&cd_fuse_import_tensor(m, k)->shape);
    return cd_fuse_import_tensor(m, k)->value;
}

bool cd_fuse_import_number(const cd_fuse_importer *m, uint32_t k, double *v) {
    if (!cd_fuse_import_has(m, k)) return false;
    const cd_graph_tensor *t = cd_fuse_import_tensor(m, k);
    if (cd_graph_shape_elements(&t->shape) != 1 || !(t->value || t->fvalue)) return false;
    *v = t->value ? (double)t->value[0] : t->fvalue[0];
    return true;
}

/* ---- weights take up what follows them ---- */

uint32_t cd_fuse_import_channels(cd_fuse_importer *m, uint32_t c, uint32_t rank) {
    cd_graph_shape s = {rank > 2 ? rank - 1 : 1,
                        {cd_graph_shape_elements(cd_fuse_import_shape(m, c))}};
    for (uint32_t d = 1; d < s.rank; d++) s.dim[d] = 1;
    return cd_fuse_reshape(m->f, c, &s);
}

/* Is c a weight with one element, or one for each of the channels of x? */
static bool per_channel(const cd_fuse_importer *m, uint32_t x, uint32_t c) {
    const cd_graph_shape *s = cd_fuse_import_shape(m, c), *t = cd_fuse_import_shape(m, x);
    const int64_t n = cd_graph_shape_elements(s);
    if (!m->f->node[c].is_const || t->rank < 2) return false;
    if (n == 1) return s->rank <= t->rank;
    return n == t->dim[1] && s->rank + 1 >= t->rank && s->rank <= t->rank &&
           s->dim[s->rank - (t->rank - 1)] == n;
}

/* w * c along the dimension of the filters. */
static uint32_t scaled_weight(cd_fuse_importer *m, const cd_fuse_node *x, uint32_t c) {
    const uint32_t w = x->in[1];
    const cd_graph_shape ws = *cd_fuse_import_shape(m, w);
    cd_graph_shape s = {ws.rank, {0}};
    for (uint32_t d = 0; d < s.rank; d++) s.dim[d] = 1;
    s.dim[x->op == CD_FUSE_OP_CONVT] = cd_graph_shape_elements(cd_fuse_import_shape(m, c));
    return cd_fuse_binary(m->f, CD_FUSE_OP_MUL, w, cd_fuse_reshape(m->f, c, &s));
}

/* (x + b) * c becomes x*c + b*c, and a product's weight takes up the c, but not one in words of 8
 * bits. Scalars are not folded, as in TVM; neither is what others read too. */
uint32_t cd_fuse_import_scale(cd_fuse_importer *m, uint32_t x, uint32_t c) {
    const cd_fuse_node n = m->f->node[x];
    /* TVM folds no scalars */
    const bool one = cd_graph_shape_elements(cd_fuse_import_shape(m, c)) == 1 && n.shape.rank > 1 &&
                     n.shape.dim[1] != 1;
    if (one || !per_channel(m, x, c) || cd_fuse_import_is_shared(m, x))
        return cd_fuse_binary(m->f, CD_FUSE_OP_MUL, x, c);
    if (n.op == CD_FUSE_OP_ADD && per_channel(m, x, n.in[1])) {
        const uint32_t y = cd_fuse_import_scale(m, n.in[0], c);
        return cd_fuse_binary(m->f, CD_FUSE_OP_ADD, y,
                              cd_fuse_binary(m->f, CD_FUSE_OP_MUL, n.in[1], c));
    }
    const bool product = n.op == CD_FUSE_OP_CONV || n.op == CD_FUSE_OP_DENSE ||
                         (n.op == CD_FUSE_OP_CONVT && n.a.groups == 1);
    if (!product || n.a.dot4 || !m->f->node[n.in[1]].is_const)
        return cd_fuse_binary(m->f, CD_FUSE_OP_MUL, x, c);
    const uint32_t in[2] = {n.in[0], scaled_weight(m, &n, c)};
    const uint32_t y = cd_fuse_add_node(m->f, n.op, n.dtype, &n.shape, in, 2, &n.a);
    if (y) m->f->node[y].origin = n.origin;
    return y;
}

uint32_t cd_fuse_import_shift(cd_fuse_importer *m, uint32_t x, uint32_t c) {
    const cd_fuse_node n = m->f->node[x];
    if (!per_channel(m, x, c) || cd_fuse_import_is_shared(m, x) || n.op != CD_FUSE_OP_ADD ||
        !per_channel(m, x, n.in[1]))
        return cd_fuse_binary(m->f, CD_FUSE_OP_ADD, x, c);
    return cd_fuse_binary(m->f, CD_FUSE_OP_ADD, n.in[0],
                          cd_fuse_binary(m->f, CD_FUSE_OP_ADD, n.in[1], c));
}

/* ---- the walk ---- */

static const cd_fuse_import_rule *rule_of(const char *op) {
    const cd_fuse_import_rule *const table[] = {
        cd_fuse_import_rules_elementwise, cd_fuse_import_rules_nn,
        cd_fuse_import_rules_move,        cd_fuse_import_rules_rnn,
        cd_fuse_import_rules_quantize,    cd_fuse_import_rules_integer};
    for (size_t t = 0; t < sizeof table / sizeof *table; t++)
        for (const cd_fuse_import_rule *r = table[t]; r->op; r++)
            if (!strcmp(r->op, op)) return r;
    return NULL;
}

/* The operator's reason is in m->why. */
static void list_bad(cd_fuse_importer *m, uint32_t node) {
    cd_fuse_graph *f = m->f;
    if (CD_GROW_IN(&f->arena, f->bad, f->n_bad, f->cap_bad)) {
        cd_fuse_fail(f, CDMPP_ENOMEM, "out of memory for a list");
        return;
    }
    f->bad[f->n_bad++] = (cd_fuse_unsupported){node, m->why};
}

/* An unsupported operator: an EXTERN node for each result, with the operands that are there. */
static void external(cd_fuse_importer *m, uint32_t node) {
    uint32_t *in = CD_NEWN(&m->f->arena, uint32_t, m->n->n_in + 1), n = 0;
    list_bad(m, node);
    if (!in) {
        cd_fuse_fail(m->f, CDMPP_ENOMEM, "out of memory for operators");
        return;
    }
    for (uint32_t k = 0; k < m->n->n_in; k++)
        if (cd_fuse_import_has(m, k)) in[n++] = cd_fuse_import_input(m, k);
    for (uint32_t k = 0; k < m->n->n_out; k++) {
        const cd_graph_tensor *t = &m->g->tensor[m->n->out[k]];
        const uint32_t id =
            cd_fuse_add_node(m->f, CD_FUSE_OP_EXTERN, t->dtype, &t->shape, in, n, NULL);
        if (id) m->f->node[id].tensor = m->n->out[k];
        cd_fuse_import_output(m, k, id);
    }
}

/* Why an operator without a rule has no program. */
static const char *why_not(const cd_graph_node *n) {
    if (!strcmp(n->domain, "cdmpp.gradient")) return "this operator has no gradient";
    return "no compute definition for this operator";
}

/* The type of one of its operands or results that no program computes with; 0: there is none.
 * *which: the tensor. */
static cd_dtype odd_type(const cd_fuse_importer *m, uint32_t *which) {
    for (uint32_t k = 0; k < m->n->n_in + m->n->n_out; k++) {
        const uint32_t t = k < m->n->n_in ? m->n->in[k] : m->n->out[k - m->n->n_in];
        *which = t;
        if (t != CD_GRAPH_NONE && m->odd[t]) return m->odd[t];
    }
    return 0;
}

/* Weights that are made of others are of an odd type where those are: what reads them would have to
 * know it, as a product of a float32 and a float8 weight does. */
static void hand_on_type(cd_fuse_importer *m) {
    uint32_t which;
    const cd_dtype t = odd_type(m, &which);
    for (uint32_t k = 0; k < m->n->n_out && t; k++) {
        const cd_graph_tensor *y = &m->g->tensor[m->n->out[k]];
        if (!y->value && !y->fvalue) m->odd[m->n->out[k]] = t;
    }
}

static void refuse_type(cd_fuse_importer *m, cd_dtype t, uint32_t which) {
    char type[32], text[256];
    const int n =
        snprintf(text, sizeof text, "\"%.100s\" is %s: no program computes with this type",
                 m->g->tensor[which].name, cd_expr_dtype_format(t, type, sizeof type));
    m->why = cd_str_dup(&m->f->arena, (cd_str){text, (size_t)n});
    if (!m->why) cd_fuse_fail(m->f, CDMPP_ENOMEM, "out of memory for a list");
}

/* Folded nodes need nothing: their tensors are leaves. But of a quantised weight the numbers of 8
 * bits are wanted. A rule that gives no node for a result that is read has failed. */
static void one(cd_fuse_importer *m, uint32_t node) {
    uint32_t which;
    m->n = &m->g->node[node];
    m->f->origin = node;
    m->why = NULL;
    if (m->n->folded) hand_on_type(m);
    const cd_dtype odd = odd_type(m, &which);
    if (m->n->folded && (odd || strcmp(m->n->op, "DequantizeLinear") != 0)) return;
    const cd_fuse_import_rule *r = m->n->opaque ? NULL : rule_of(m->n->op);
    if (odd && !m->n->opaque) refuse_type(m, odd, which);
    else if (r) r->fn(m);
    else if (m->n->opaque || !cd_fuse_import_elementwise(m)) m->why = why_not(m->n);
    for (uint32_t k = 0; !m->why && k < m->n->n_out; k++)
        if (cd_fuse_import_is_used(m, k) && m->id[m->n->out[k]] == CD_GRAPH_NONE)
            m->why = "a result that has no compute definition is used";
    if (m->why) external(m, node);
}

static void count_uses(cd_fuse_importer *m) {
    for (uint32_t i = 0; i < m->g->n_node; i++)
        for (uint32_t k = 0; k < m->g->node[i].n_in; k++)
            if (m->g->node[i].in[k] != CD_GRAPH_NONE) m->uses[m->g->node[i].in[k]]++;
    for (uint32_t k = 0; k < m->g->n_output; k++) m->uses[m->g->output[k]]++;
}

static void walk(cd_fuse_importer *m) {
    cd_fuse_graph *f = m->f;
    for (uint32_t t = 0; t < m->g->n_tensor; t++) {
        m->id[t] = CD_GRAPH_NONE;
        m->odd[t] = cd_graph_type_is_computed(m->g->tensor[t].dtype) ? 0 : m->g->tensor[t].dtype;
    }
    count_uses(m);
    for (uint32_t i = 0; i < m->g->n_node && !f->st; i++) one(m, i);
    f->origin = CD_GRAPH_NONE;
    for (uint32_t k = 0; k < m->g->n_output && !f->st; k++)
        f->out[f->n_out++] = node_of(m, m->g->output[k]);
}

cdmpp_status cd_fuse_import(cd_fuse_graph *f, cdmpp_err *err) {
    cd_fuse_importer m = {.f = f, .g = f->g};
    f->err = err;
    m.id = CD_NEWN(&f->arena, uint32_t, m.g->n_tensor + 1);
    m.uses = CD_NEWN(&f->arena, uint32_t, m.g->n_tensor + 1);
    m.odd = CD_NEWN(&f->arena, cd_dtype, m.g->n_tensor + 1);
    f->out = CD_NEWN(&f->arena, uint32_t, m.g->n_output + 1);
    if (!m.id || !m.uses || !m.odd || !f->out)
        return CD_FAIL(err, ENOMEM, "out of memory for a graph");
    CD_TRY(cd_fuse_same_weights(m.g, &f->arena, &m.same, err));
    walk(&m);
    cd_mem_free(m.shared);
    return f->st;
}
