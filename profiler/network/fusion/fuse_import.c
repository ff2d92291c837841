/* Operators of a graph -> nodes: the walk, and weights that take up the scale and shift behind them. */
#include "profiler/network/fusion/fuse_import.h"

#include <string.h>

/* ---- operands and results ---- */

bool cd_fim_has(const cd_fim *m, uint32_t k) { return k < m->n->n_in && m->n->in[k] != CD_GRAPH_NONE; }
const cd_gtensor *cd_fim_tensor(const cd_fim *m, uint32_t k) { return &m->g->tensor[m->n->in[k]]; }
bool cd_fim_wanted(const cd_fim *m, uint32_t k) { return k < m->n->n_out && m->uses[m->n->out[k]] > 0; }
const cd_shape *cd_fim_result(const cd_fim *m) { return &m->g->tensor[m->n->out[0]].shape; }
int64_t cd_fim_axis(const cd_shape *s, int64_t axis) { return axis < 0 ? axis + s->rank : axis; }

static uint32_t known(cd_fim *m, uint32_t tensor) {
    const cd_gtensor *t = &m->g->tensor[tensor];
    if (t->shape.rank || !(t->value || t->fvalue)) return cd_fuse_leaf(m->f, tensor, !t->is_input && !t->is_trained);
    return cd_fuse_const(m->f, t->dtype, t->value ? (double)t->value[0] : t->fvalue[0]);
}

static uint32_t node_of(cd_fim *m, uint32_t tensor) {
    if (m->id[tensor] == CD_GRAPH_NONE) m->id[tensor] = known(m, tensor);
    return m->id[tensor];
}

uint32_t cd_fim_in(cd_fim *m, uint32_t k) { return cd_fim_has(m, k) ? node_of(m, m->n->in[k]) : 0; }

bool cd_fim_share(cd_fim *m, uint32_t node) {
    if (node >= m->cap_shared) {
        const uint32_t cap = node + 1024;
        bool *p = cd_realloc(m->shared, m->cap_shared, cap);
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

bool cd_fim_shared(const cd_fim *m, uint32_t node) { return node < m->cap_shared && m->shared[node]; }

void cd_fim_out(cd_fim *m, uint32_t k, uint32_t node) {
    if (k >= m->n->n_out || m->f->st) return;
    const uint32_t t = m->n->out[k];
    const bool again = node < m->f->n && m->f->node[node].origin != m->f->origin; /* another operator's result, renamed */
    m->id[t] = node;
    if (m->uses[t] > 1 || again) cd_fim_share(m, node);
}

const int64_t *cd_fim_ints(const cd_fim *m, uint32_t k, const char *attr, uint32_t *n) {
    const cd_gattr *a = attr ? cd_gnode_attr(m->n, attr) : NULL;
    *n = 0;
    if (a && a->kind == CD_GATTR_INTS) {
        *n = a->n;
        return a->ints;
    }
    if (!cd_fim_has(m, k) || !cd_fim_tensor(m, k)->value) return NULL;
    *n = (uint32_t)cd_shape_elements(&cd_fim_tensor(m, k)->shape);
    return cd_fim_tensor(m, k)->value;
}

bool cd_fim_number(const cd_fim *m, uint32_t k, double *v) {
    if (!cd_fim_has(m, k)) return false;
    const cd_gtensor *t = cd_fim_tensor(m, k);
    if (cd_shape_elements(&t->shape) != 1 || !(t->value || t->fvalue)) return false;
    *v = t->value ? (double)t->value[0] : t->fvalue[0];
    return true;
}

/* ---- weights take up what follows them ---- */

uint32_t cd_fim_channels(cd_fim *m, uint32_t c, uint32_t rank) {
    cd_shape s = {rank > 2 ? rank - 1 : 1, {cd_shape_elements(cd_fim_shape(m, c))}};
    for (uint32_t d = 1; d < s.rank; d++) s.dim[d] = 1;
    return cd_fuse_reshape(m->f, c, &s);
}

/* Is c a weight with one element, or one for each of the channels of x? */
static bool per_channel(const cd_fim *m, uint32_t x, uint32_t c) {
    const cd_shape *s = cd_fim_shape(m, c), *t = cd_fim_shape(m, x);
    const int64_t n = cd_shape_elements(s);
    if (!m->f->node[c].is_const || t->rank < 2) return false;
    if (n == 1) return s->rank <= t->rank;
    return n == t->dim[1] && s->rank + 1 >= t->rank && s->rank <= t->rank && s->dim[s->rank - (t->rank - 1)] == n;
}

static uint32_t scaled_weight(cd_fim *m, const cd_fnode *x, uint32_t c) {
    const uint32_t w = x->in[1];
    const cd_shape ws = *cd_fim_shape(m, w);
    cd_shape s = {ws.rank, {0}};
    for (uint32_t d = 0; d < s.rank; d++) s.dim[d] = 1;
    s.dim[x->op == CD_F_CONVT] = cd_shape_elements(cd_fim_shape(m, c));
    return cd_fuse_binary(m->f, CD_F_MUL, w, cd_fuse_reshape(m->f, c, &s));
}

uint32_t cd_fim_scale(cd_fim *m, uint32_t x, uint32_t c) {
    const cd_fnode n = m->f->node[x];
    const bool one = cd_shape_elements(cd_fim_shape(m, c)) == 1 && n.shape.rank > 1 && n.shape.dim[1] != 1; /* TVM folds no scalars */
    if (one || !per_channel(m, x, c) || cd_fim_shared(m, x)) return cd_fuse_binary(m->f, CD_F_MUL, x, c);
    if (n.op == CD_F_ADD && per_channel(m, x, n.in[1])) {
        const uint32_t y = cd_fim_scale(m, n.in[0], c);
        return cd_fuse_binary(m->f, CD_F_ADD, y, cd_fuse_binary(m->f, CD_F_MUL, n.in[1], c));
    }
    const bool product = n.op == CD_F_CONV || n.op == CD_F_DENSE || (n.op == CD_F_CONVT && n.a.groups == 1);
    if (!product || !m->f->node[n.in[1]].is_const) return cd_fuse_binary(m->f, CD_F_MUL, x, c);
    const uint32_t in[2] = {n.in[0], scaled_weight(m, &n, c)};
    const uint32_t y = cd_fuse_node(m->f, n.op, n.dtype, &n.shape, in, 2, &n.a);
    if (y) m->f->node[y].origin = n.origin;
    return y;
}

uint32_t cd_fim_shift(cd_fim *m, uint32_t x, uint32_t c) {
    const cd_fnode n = m->f->node[x];
    if (!per_channel(m, x, c) || cd_fim_shared(m, x) || n.op != CD_F_ADD || !per_channel(m, x, n.in[1]))
        return cd_fuse_binary(m->f, CD_F_ADD, x, c);
    return cd_fuse_binary(m->f, CD_F_ADD, n.in[0], cd_fuse_binary(m->f, CD_F_ADD, n.in[1], c));
}

/* ---- the walk ---- */

static const cd_fim_rule *rule_of(const char *op) {
    const cd_fim_rule *const table[] = {cd_fim_rules_elem, cd_fim_rules_nn, cd_fim_rules_move, cd_fim_rules_rnn};
    for (size_t t = 0; t < sizeof table / sizeof *table; t++)
        for (const cd_fim_rule *r = table[t]; r->op; r++)
            if (!strcmp(r->op, op)) return r;
    return NULL;
}

static void list_bad(cd_fim *m, uint32_t node) {
    cd_fgraph *f = m->f;
    if (f->n_bad == f->cap_bad) {
        const uint32_t cap = f->cap_bad ? f->cap_bad * 2 : 16;
        cd_funsupported *p = CD_NEWN(&f->arena, cd_funsupported, cap);
        if (!p) {
            cd_fuse_fail(f, CDMPP_ENOMEM, "out of memory for a list");
            return;
        }
        if (f->n_bad) memcpy(p, f->bad, f->n_bad * sizeof *p);
        f->bad = p;
        f->cap_bad = cap;
    }
    f->bad[f->n_bad++] = (cd_funsupported){node, m->why};
}

/* Nobody knows what it does, but what it reads and makes. */
static void external(cd_fim *m, uint32_t node) {
    uint32_t in[64], n = 0;
    list_bad(m, node);
    for (uint32_t k = 0; k < m->n->n_in && n < 64; k++)
        if (cd_fim_has(m, k)) in[n++] = cd_fim_in(m, k);
    for (uint32_t k = 0; k < m->n->n_out; k++) {
        const cd_gtensor *t = &m->g->tensor[m->n->out[k]];
        const uint32_t id = cd_fuse_node(m->f, CD_F_EXTERN, t->dtype, &t->shape, in, n, NULL);
        if (id) m->f->node[id].tensor = m->n->out[k];
        cd_fim_out(m, k, id);
    }
}

static void one(cd_fim *m, uint32_t node) {
    m->n = &m->g->node[node];
    m->f->origin = node;
    m->why = NULL;
    if (m->n->folded) return;
    const cd_fim_rule *r = m->n->domain && *m->n->domain ? NULL : rule_of(m->n->op);
    if (r) r->fn(m);
    else if ((m->n->domain && *m->n->domain) || !cd_fim_plain(m)) m->why = !strcmp(m->n->domain, "cdmpp.gradient") ? "this operator has no gradient" : "no compute definition for this operator";
    for (uint32_t k = 0; !m->why && k < m->n->n_out; k++)
        if (cd_fim_wanted(m, k) && m->id[m->n->out[k]] == CD_GRAPH_NONE) m->why = "a result that has no compute definition is used";
    if (m->why) external(m, node);
}

static void count_uses(cd_fim *m) {
    for (uint32_t i = 0; i < m->g->n_node; i++)
        for (uint32_t k = 0; k < m->g->node[i].n_in; k++)
            if (m->g->node[i].in[k] != CD_GRAPH_NONE) m->uses[m->g->node[i].in[k]]++;
    for (uint32_t k = 0; k < m->g->n_output; k++) m->uses[m->g->output[k]]++;
}

static void walk(cd_fim *m) {
    cd_fgraph *f = m->f;
    for (uint32_t t = 0; t < m->g->n_tensor; t++) m->id[t] = CD_GRAPH_NONE;
    count_uses(m);
    for (uint32_t i = 0; i < m->g->n_node && !f->st; i++) one(m, i);
    f->origin = CD_GRAPH_NONE;
    for (uint32_t k = 0; k < m->g->n_output && !f->st; k++) f->out[f->n_out++] = node_of(m, m->g->output[k]);
}

cdmpp_status cd_fuse_import(cd_fgraph *f, cdmpp_err *err) {
    cd_fim m = {.f = f, .g = f->g};
    f->err = err;
    m.id = CD_NEWN(&f->arena, uint32_t, m.g->n_tensor + 1);
    m.uses = CD_NEWN(&f->arena, uint32_t, m.g->n_tensor + 1);
    f->out = CD_NEWN(&f->arena, uint32_t, m.g->n_output + 1);
    if (!m.id || !m.uses || !f->out) return CD_FAIL(err, ENOMEM, "out of memory for a graph");
    walk(&m);
    cd_free(m.shared);
    return f->st;
}
