/* Operators of a graph become nodes: the walk over the graph, the operands and results of rules,
 * and the folding of per-channel scales and shifts into weights, which TVM does with batch norms
 * (FoldScaleAxis). */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/network/fusion/fuse_import_internal.h"

/* Weights that a file makes several times of one tensor: exporters write a Transpose for each use
 * of a table. */

typedef struct table {
    const cd_graph *g;
    uint32_t *same;      /* (tensors) */
    uint32_t *slot, cap; /* 1 + number of a folded node; 0: free */
} same_table;

static uint64_t mix(uint64_t h, uint64_t v) { return (h ^ v) * 0x100000001b3U; }

static uint32_t operand(const same_table *t, const cd_graph_node *n, uint32_t k) {
    return n->in[k] == CD_GRAPH_NONE ? CD_GRAPH_NONE : t->same[n->in[k]];
}

static uint64_t key_of(const same_table *t, const cd_graph_node *n) {
    uint64_t h = 0xcbf29ce484222325U;
    for (const char *s = n->op; *s; s++) h = mix(h, (unsigned char)*s);
    for (uint32_t k = 0; k < n->n_in; k++) h = mix(h, operand(t, n, k));
    return h ^ h >> 31;
}

static bool is_same_attr(const cd_graph_attr *a, const cd_graph_attr *b) {
    if (a->kind != b->kind || strcmp(a->name, b->name) != 0) return false;
    switch (a->kind) {
    case CD_GRAPH_ATTR_INT: return a->i == b->i;
    case CD_GRAPH_ATTR_FLOAT: return !memcmp(&a->f, &b->f, sizeof a->f);
    case CD_GRAPH_ATTR_STR: return !strcmp(a->s, b->s);
    case CD_GRAPH_ATTR_INTS:
        return a->n == b->n && (!a->n || !memcmp(a->ints, b->ints, a->n * sizeof *a->ints));
    default:
        return a->n == b->n && (!a->n || !memcmp(a->floats, b->floats, a->n * sizeof *a->floats));
    }
}

static bool is_same(const same_table *t, const cd_graph_node *a, const cd_graph_node *b) {
    if (strcmp(a->op, b->op) != 0 || a->n_in != b->n_in || a->n_out != b->n_out ||
        a->n_attr != b->n_attr)
        return false;
    for (uint32_t k = 0; k < a->n_in; k++)
        if (operand(t, a, k) != operand(t, b, k)) return false;
    for (uint32_t k = 0; k < a->n_attr; k++)
        if (!is_same_attr(&a->attr[k], &b->attr[k])) return false;
    for (uint32_t k = 0; k < a->n_out; k++)
        if (t->g->tensor[a->out[k]].dtype != t->g->tensor[b->out[k]].dtype) return false;
    return true;
}

/* A node is told by what it reads: names of its own do not count. */
static void take(same_table *t, uint32_t node) {
    const cd_graph_node *n = &t->g->node[node];
    uint64_t k = key_of(t, n);
    uint32_t *s = &t->slot[k & (t->cap - 1)];
    while (*s && !is_same(t, n, &t->g->node[*s - 1])) s = &t->slot[++k & (t->cap - 1)];
    if (!*s) *s = node + 1;
    else
        for (uint32_t o = 0; o < n->n_out; o++) t->same[n->out[o]] = t->g->node[*s - 1].out[o];
}

/* fuse_import.c: for each tensor of g the first of those that are made of weights in the same way
 * (operator, operands, attributes), in a: such a weight is there once, however many nodes of the
 * file make it. Others are themselves. Errors: ENOMEM. */
static cdmpp_status fuse_same_weights(const cd_graph *g, cd_arena *a, uint32_t **same,
                                      cdmpp_err *err) {
    same_table t = {.g = g, .same = CD_NEWN(a, uint32_t, g->n_tensor + 1), .cap = 64};
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_node; i++) n += g->node[i].folded;
    while (t.cap < 2 * n) t.cap *= 2;
    t.slot = CD_NEWN(a, uint32_t, t.cap);
    if (!t.same || !t.slot) return CD_FAIL(err, ENOMEM, "out of memory for a graph");
    for (uint32_t i = 0; i < g->n_tensor; i++) t.same[i] = i;
    for (uint32_t i = 0; i < g->n_node; i++)
        if (g->node[i].folded && g->node[i].n_in && !g->node[i].opaque) take(&t, i);
    *same = t.same;
    return CDMPP_OK;
}

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

/* A node that is read more than once is shared: nothing may be folded into it. False: out of
 * memory.
 *
 * The array is as long as the largest node that was marked, in steps of 1024. */
static bool fuse_import_mark_shared(cd_fuse_importer *m, uint32_t node) {
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
    if (m->uses[t] > 1 || again) fuse_import_mark_shared(m, node);
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

static bool fuse_import_elementwise(cd_fuse_importer *m);

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
    else if (m->n->opaque || !fuse_import_elementwise(m)) m->why = why_not(m->n);
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
    CD_TRY(fuse_same_weights(m.g, &f->arena, &m.same, err));
    walk(&m);
    cd_mem_free(m.shared);
    return f->st;
}

/* Operators that are computed element by element: those that are one expression are in the table
 * `plain`, the others are put together from several nodes, as TVM's ONNX frontend does it. */

static const struct {
    const char *op;
    cd_fuse_op id;
} plain[] = {
    {"Relu", CD_FUSE_OP_RELU},   {"Sigmoid", CD_FUSE_OP_SIGMOID},   {"Tanh", CD_FUSE_OP_TANH},
    {"Exp", CD_FUSE_OP_EXP},     {"Log", CD_FUSE_OP_LOG},           {"Sqrt", CD_FUSE_OP_SQRT},
    {"Erf", CD_FUSE_OP_ERF},     {"Neg", CD_FUSE_OP_NEG},           {"Floor", CD_FUSE_OP_FLOOR},
    {"Ceil", CD_FUSE_OP_CEIL},   {"Round", CD_FUSE_OP_ROUND},       {"Sign", CD_FUSE_OP_SIGN},
    {"Sin", CD_FUSE_OP_SIN},     {"Cos", CD_FUSE_OP_COS},           {"Tan", CD_FUSE_OP_TAN},
    {"Asin", CD_FUSE_OP_ASIN},   {"Acos", CD_FUSE_OP_ACOS},         {"Atan", CD_FUSE_OP_ATAN},
    {"Sinh", CD_FUSE_OP_SINH},   {"Cosh", CD_FUSE_OP_COSH},         {"Not", CD_FUSE_OP_NOT},
    {"IsNaN", CD_FUSE_OP_ISNAN}, {"Sub", CD_FUSE_OP_SUB},           {"Max", CD_FUSE_OP_MAX},
    {"Min", CD_FUSE_OP_MIN},     {"Sum", CD_FUSE_OP_ADD},           {"PRelu", CD_FUSE_OP_PRELU},
    {"Equal", CD_FUSE_OP_EQ},    {"Less", CD_FUSE_OP_LT},           {"LessOrEqual", CD_FUSE_OP_LE},
    {"Greater", CD_FUSE_OP_GT},  {"GreaterOrEqual", CD_FUSE_OP_GE}, {"And", CD_FUSE_OP_AND},
    {"Or", CD_FUSE_OP_OR},
};

/* Imports m->n if it is in the table of single expressions, folding further operands from the left;
 * false: it is not.
 *
 * Operators from ADD on have two operands; ONNX allows more for some. */
static bool fuse_import_elementwise(cd_fuse_importer *m) {
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (strcmp(plain[i].op, m->n->op)) continue;
        uint32_t x = cd_fuse_import_input(m, 0);
        if (plain[i].id < CD_FUSE_OP_ADD) x = cd_fuse_unary(m->f, plain[i].id, x, 0, 0);
        for (uint32_t k = 1; plain[i].id >= CD_FUSE_OP_ADD && k < m->n->n_in; k++)
            x = cd_fuse_binary(m->f, plain[i].id, x, cd_fuse_import_input(m, k));
        cd_fuse_import_output(m, 0, x);
        return true;
    }
    return false;
}

static uint32_t scalar(cd_fuse_importer *m, uint32_t like, double v) {
    return cd_fuse_const(m->f, m->f->node[like].dtype, v);
}
static uint32_t binary_s(cd_fuse_importer *m, cd_fuse_op op, uint32_t x, double v) {
    return cd_fuse_binary(m->f, op, x, scalar(m, x, v));
}

static void add(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0), y = cd_fuse_import_input(m, 1);
    cd_fuse_import_output(m, 0,
                          m->f->node[x].is_const ? cd_fuse_import_shift(m, y, x)
                                                 : cd_fuse_import_shift(m, x, y));
}

static void mul(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0), y = cd_fuse_import_input(m, 1);
    cd_fuse_import_output(m, 0,
                          m->f->node[x].is_const && !m->f->node[y].is_const
                              ? cd_fuse_import_scale(m, y, x)
                              : cd_fuse_import_scale(m, x, y));
}

static void divide(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    cd_fuse_import_output(
        m, 0,
        cd_fuse_binary(
            m->f, cd_expr_dtype_is_float(m->f->node[x].dtype) ? CD_FUSE_OP_DIV : CD_FUSE_OP_IDIV, x,
            cd_fuse_import_input(m, 1)));
}

static void modulo(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    const bool c = cd_graph_node_int(m->n, "fmod", 0) != 0;
    const cd_fuse_op op = cd_expr_dtype_is_float(m->f->node[x].dtype) ? CD_FUSE_OP_FMOD
                          : c                                         ? CD_FUSE_OP_IMOD
                                                                      : CD_FUSE_OP_MOD;
    cd_fuse_import_output(m, 0, cd_fuse_binary(m->f, op, x, cd_fuse_import_input(m, 1)));
}

/* x^2 and x^0.5 as the operators that mean the same. */
static void power(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    double e;
    if (cd_fuse_import_number(m, 1, &e) &&
        cd_fuse_import_tensor(m, 1)->shape.rank <= cd_fuse_import_shape(m, x)->rank && e == 2)
        cd_fuse_import_output(m, 0, cd_fuse_binary(m->f, CD_FUSE_OP_MUL, x, x));
    else if (cd_fuse_import_number(m, 1, &e) && e == 0.5)
        cd_fuse_import_output(m, 0, cd_fuse_unary(m->f, CD_FUSE_OP_SQRT, x, 0, 0));
    else if (!cd_expr_dtype_is_float(m->f->node[x].dtype))
        m->why = "powers of integers have no compute definition";
    else
        cd_fuse_import_output(
            m, 0,
            cd_fuse_binary(m->f, CD_FUSE_OP_POW, x,
                           cd_fuse_cast(m->f, cd_fuse_import_input(m, 1), m->f->node[x].dtype)));
}

static void absolute(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    cd_fuse_import_output(
        m, 0,
        cd_fuse_unary(
            m->f, cd_expr_dtype_is_float(m->f->node[x].dtype) ? CD_FUSE_OP_ABS : CD_FUSE_OP_IABS, x,
            0, 0));
}

static void reciprocal(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    cd_fuse_import_output(m, 0, cd_fuse_binary(m->f, CD_FUSE_OP_DIV, scalar(m, x, 1), x));
}

static void mean(cd_fuse_importer *m) {
    uint32_t x = cd_fuse_import_input(m, 0);
    for (uint32_t k = 1; k < m->n->n_in; k++)
        x = cd_fuse_binary(m->f, CD_FUSE_OP_ADD, x, cd_fuse_import_input(m, k));
    cd_fuse_import_output(m, 0, binary_s(m, CD_FUSE_OP_DIV, x, m->n->n_in));
}

/* The largest number of a type of reals: the bound of Clip that is left out. */
static double most_of(cd_dtype t) {
    if (cd_expr_dtype_kind(t) == CD_T_BFLOAT) return 3.3895313892515355e38;
    return cd_expr_dtype_bits(t) == 16   ? 65504.0
           : cd_expr_dtype_bits(t) == 64 ? DBL_MAX
                                         : (double)FLT_MAX;
}

/* Of integers a bound that is left out bounds nothing: without any, short ones are clipped to all
 * that their type has, which a program can write. */
static void clip_integers(cd_fuse_importer *m) {
    static const char *const name[] = {"min", "max"};
    uint32_t y = cd_fuse_import_input(m, 0);
    const cd_dtype t = m->f->node[y].dtype;
    const bool none = !cd_fuse_import_has(m, 1) && !cd_fuse_import_has(m, 2) &&
                      !cd_graph_node_attr(m->n, "min") && !cd_graph_node_attr(m->n, "max");
    const double half = ldexp(1, (int)cd_expr_dtype_bits(t) - 1);
    if (none && cd_expr_dtype_bits(t) < 32) {
        const bool is_unsigned = cd_expr_dtype_kind(t) == CD_T_UINT;
        cd_fuse_import_output(m, 0,
                              cd_fuse_unary(m->f, CD_FUSE_OP_CLIP, y, is_unsigned ? 0 : -half,
                                            is_unsigned ? 2 * half - 1 : half - 1));
        return;
    }
    for (uint32_t k = 0; k < 2; k++) {
        const cd_fuse_op op = k ? CD_FUSE_OP_MIN : CD_FUSE_OP_MAX;
        double v = cd_graph_node_float(m->n, name[k], 0);
        if (cd_fuse_import_number(m, k + 1, &v) || cd_graph_node_attr(m->n, name[k]))
            y = binary_s(m, op, y, v);
        else if (cd_fuse_import_has(m, k + 1))
            y = cd_fuse_binary(m->f, op, y, cd_fuse_import_input(m, k + 1));
    }
    cd_fuse_import_output(m, 0, y);
}

/* max(x, 0) is Relu; known bounds are one node; bounds that are computed are two. Where the lower
 * bound is above the upper one, the upper one wins. */
static void clip(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    const double most = most_of(m->f->node[x].dtype);
    double lo = cd_graph_node_float(m->n, "min", -most),
           hi = cd_graph_node_float(m->n, "max", most);
    if (!cd_expr_dtype_is_float(m->f->node[x].dtype)) {
        clip_integers(m);
        return;
    }
    const bool known_lo = !cd_fuse_import_has(m, 1) || cd_fuse_import_number(m, 1, &lo),
               known_hi = !cd_fuse_import_has(m, 2) || cd_fuse_import_number(m, 2, &hi);
    if (known_lo && known_hi && lo > hi) lo = hi;
    if (known_lo && known_hi && lo == 0 && hi >= most) {
        cd_fuse_import_output(m, 0, cd_fuse_unary(m->f, CD_FUSE_OP_RELU, x, 0, 0));
    } else if (known_lo && known_hi) {
        cd_fuse_import_output(m, 0, cd_fuse_unary(m->f, CD_FUSE_OP_CLIP, x, lo, hi));
    } else {
        uint32_t y = x;
        if (cd_fuse_import_has(m, 1))
            y = cd_fuse_binary(m->f, CD_FUSE_OP_MAX, y, cd_fuse_import_input(m, 1));
        if (cd_fuse_import_has(m, 2))
            y = cd_fuse_binary(m->f, CD_FUSE_OP_MIN, y, cd_fuse_import_input(m, 2));
        cd_fuse_import_output(m, 0, y);
    }
}

/* clip(alpha*x + beta, 0, 1); of 1/6 and 1/2 as the networks' authors write it: clip(x + 3, 0,
 * 6)/6. */
static uint32_t hard_sigmoid(cd_fuse_importer *m, uint32_t x, double alpha, double beta) {
    if (fabs(alpha - 1.0 / 6) < 1e-6 && beta == 0.5)
        return binary_s(
            m, CD_FUSE_OP_DIV,
            cd_fuse_unary(m->f, CD_FUSE_OP_CLIP, cd_fuse_import_shift(m, x, scalar(m, x, 3)), 0, 6),
            6);
    return cd_fuse_unary(m->f, CD_FUSE_OP_CLIP,
                         binary_s(m, CD_FUSE_OP_ADD, binary_s(m, CD_FUSE_OP_MUL, x, alpha), beta),
                         0, 1);
}

static void hardsigmoid(cd_fuse_importer *m) {
    cd_fuse_import_output(m, 0,
                          hard_sigmoid(m, cd_fuse_import_input(m, 0),
                                       cd_graph_node_float(m->n, "alpha", 0.2),
                                       cd_graph_node_float(m->n, "beta", 0.5)));
}

static void hardswish(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    if (!fuse_import_mark_shared(m, x)) return;
    cd_fuse_import_output(
        m, 0, cd_fuse_binary(m->f, CD_FUSE_OP_MUL, x, hard_sigmoid(m, x, 1.0 / 6, 0.5)));
}

static void leaky(cd_fuse_importer *m) {
    cd_fuse_import_output(m, 0,
                          cd_fuse_unary(m->f, CD_FUSE_OP_LEAKY, cd_fuse_import_input(m, 0),
                                        cd_graph_node_float(m->n, "alpha", 0.01), 0));
}
static void elu(cd_fuse_importer *m) {
    cd_fuse_import_output(m, 0,
                          cd_fuse_unary(m->f, CD_FUSE_OP_ELU, cd_fuse_import_input(m, 0),
                                        cd_graph_node_float(m->n, "alpha", 1), 1));
}

static void selu(cd_fuse_importer *m) {
    const double gamma = cd_graph_node_float(m->n, "gamma", 1.0507009873554805);
    cd_fuse_import_output(
        m, 0,
        cd_fuse_unary(m->f, CD_FUSE_OP_ELU, cd_fuse_import_input(m, 0),
                      gamma * cd_graph_node_float(m->n, "alpha", 1.6732632423543772), gamma));
}

/* log(1 + exp(x)) */
static uint32_t softplus_of(cd_fuse_importer *m, uint32_t x) {
    return cd_fuse_unary(
        m->f, CD_FUSE_OP_LOG,
        binary_s(m, CD_FUSE_OP_ADD, cd_fuse_unary(m->f, CD_FUSE_OP_EXP, x, 0, 0), 1), 0, 0);
}

static void softplus(cd_fuse_importer *m) {
    cd_fuse_import_output(m, 0, softplus_of(m, cd_fuse_import_input(m, 0)));
}

static void mish(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    cd_fuse_import_output(
        m, 0,
        cd_fuse_binary(m->f, CD_FUSE_OP_MUL, x,
                       cd_fuse_unary(m->f, CD_FUSE_OP_TANH, softplus_of(m, x), 0, 0)));
}

static void softsign(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    cd_fuse_import_output(
        m, 0,
        cd_fuse_binary(
            m->f, CD_FUSE_OP_DIV, x,
            binary_s(m, CD_FUSE_OP_ADD, cd_fuse_unary(m->f, CD_FUSE_OP_ABS, x, 0, 0), 1)));
}

/* x * 0.5 * (1 + erf(x / sqrt(2))), or with tanh(sqrt(2/pi) * (x + 0.044715 x^3)) */
static void gelu(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    const cd_graph_attr *how = cd_graph_node_attr(m->n, "approximate");
    uint32_t y;
    if (how && how->kind == CD_GRAPH_ATTR_STR && !strcmp(how->s, "tanh")) {
        const uint32_t cube =
            cd_fuse_binary(m->f, CD_FUSE_OP_MUL, cd_fuse_binary(m->f, CD_FUSE_OP_MUL, x, x), x);
        const uint32_t sum =
            cd_fuse_binary(m->f, CD_FUSE_OP_ADD, x, binary_s(m, CD_FUSE_OP_MUL, cube, 0.044715));
        y = cd_fuse_unary(m->f, CD_FUSE_OP_TANH,
                          binary_s(m, CD_FUSE_OP_MUL, sum, 0.7978845608028654), 0, 0);
    } else {
        y = cd_fuse_unary(m->f, CD_FUSE_OP_ERF, binary_s(m, CD_FUSE_OP_DIV, x, 1.4142135623730951),
                          0, 0);
    }
    cd_fuse_import_output(
        m, 0,
        binary_s(m, CD_FUSE_OP_MUL,
                 cd_fuse_binary(m->f, CD_FUSE_OP_MUL, x, binary_s(m, CD_FUSE_OP_ADD, y, 1)), 0.5));
}

static void cast(cd_fuse_importer *m) {
    cd_fuse_import_output(
        m, 0, cd_fuse_cast(m->f, cd_fuse_import_input(m, 0), m->g->tensor[m->n->out[0]].dtype));
}
static void where(cd_fuse_importer *m) {
    const uint32_t c = cd_fuse_import_input(m, 0), x = cd_fuse_import_input(m, 1),
                   y = cd_fuse_import_input(m, 2);
    cd_fuse_import_output(m, 0, cd_fuse_where(m->f, c, x, y));
}

const cd_fuse_import_rule cd_fuse_import_rules_elementwise[] = {
    {"Add", add},
    {"Mul", mul},
    {"Div", divide},
    {"Mod", modulo},
    {"Pow", power},
    {"Abs", absolute},
    {"Reciprocal", reciprocal},
    {"Mean", mean},
    {"Clip", clip},
    {"HardSigmoid", hardsigmoid},
    {"HardSwish", hardswish},
    {"LeakyRelu", leaky},
    {"Elu", elu},
    {"Selu", selu},
    {"Softplus", softplus},
    {"Mish", mish},
    {"Softsign", softsign},
    {"Gelu", gelu},
    {"Cast", cast},
    {"CastLike", cast},
    {"Where", where},
    {NULL, NULL},
};
