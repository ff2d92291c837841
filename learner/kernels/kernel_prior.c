/* What is drawn: the operators of one group of a known network, cut out of it, on tensors of other
 * sizes. A size is a number that stands in the shapes of what the group reads; wherever the same
 * number stands, it is replaced by the same other one. Where the new sizes do not fit the operators
 * (two sizes that depend on each other), the graph's own shape inference refuses them. */
#include <math.h>
#include <string.h>

#include "learner/kernels/kernels.h"

enum { MAX_SIZES = 16 };

typedef struct seed_kernel {
    const cd_graph *graph;
    const uint32_t *node; /* (n_node) of the graph, borrowed from the workload */
    uint32_t n_node;
    cd_kernel kernel;
} seed_kernel;

struct cd_kernel_prior {
    const cd_workload_options *o;
    cd_arena arena;
    size_t n, cap, n_workload;
    seed_kernel *v;         /* (n) */
    cd_workload **workload; /* (n_workload) */
};

size_t cd_kernel_prior_count(const cd_kernel_prior *p) { return p->n; }
const cd_kernel *cd_kernel_prior_at(const cd_kernel_prior *p, size_t i) { return &p->v[i].kernel; }

void cd_kernel_prior_free(cd_kernel_prior *p) {
    if (!p) return;
    for (size_t k = 0; k < p->n_workload; k++) cd_workload_free(p->workload[k]);
    cd_arena_free(&p->arena);
    cd_mem_free(p);
}

/* ---- which kernels there are ---- */

static bool is_there(const cd_kernel_prior *p, const cd_kernel *k) {
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->v[i].kernel.type, k->type) && !memcmp(p->v[i].kernel.x, k->x, sizeof k->x))
            return true;
    return false;
}

/* Changes of layout have no operators: they come along with what stands beside them. */
static cdmpp_status add_groups(cd_kernel_prior *p, const cd_workload *w, cdmpp_err *err) {
    for (uint32_t g = 0; g < w->n_group; g++) {
        const cd_workload_group *x = &w->group[g];
        cd_kernel k;
        if (x->task == CD_GRAPH_NONE || x->weights || !x->n_node) continue;
        CD_TRY(cd_kernel_of(w, g, &p->arena, &k, err));
        if (is_there(p, &k)) continue;
        if (CD_GROW_IN(&p->arena, p->v, p->n, p->cap)) return CD_FAIL(err, ENOMEM, "kernels");
        p->v[p->n++] = (seed_kernel){w->graph, x->node, x->n_node, k};
    }
    return CDMPP_OK;
}

cdmpp_status cd_kernel_prior_new(const cd_graph *const *g, size_t n, const cd_workload_options *o,
                                 cd_kernel_prior **out, cdmpp_err *err) {
    cd_kernel_prior *p = cd_mem_zalloc(1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "kernels");
    p->o = o;
    p->workload = CD_NEWN(&p->arena, cd_workload *, n + 1);
    cdmpp_status st = p->workload ? CDMPP_OK : CD_FAIL(err, ENOMEM, "kernels");
    for (size_t k = 0; !st && k < n; k++) {
        st = cd_workload_build(g[k], o, &p->workload[k], err);
        p->n_workload += !st;
        if (!st) st = add_groups(p, p->workload[k], err);
    }
    if (st) cd_kernel_prior_free(p);
    else *out = p;
    return st;
}

/* ---- other sizes ---- */

typedef struct cutter {
    const seed_kernel *k;
    cd_graph *g;
    uint32_t *to; /* (tensors of the old graph) in the new one */
    uint32_t n_size;
    int64_t from[MAX_SIZES], into[MAX_SIZES];
    uint64_t root, child; /* of the numbers drawn; child 0: none */
    cdmpp_err *err;
} cutter;

/* Between v / spread and v spread; the factor's logarithm is uniform. */
static double moved(double v, double spread, uint64_t seed, int64_t key) {
    return v * exp((2 * cd_rng_unit(seed, (uint64_t)key) - 1) * log(spread));
}

/* The root's number, and of a child one near to it. */
static int64_t drawn(const cutter *c, int64_t v) {
    const int64_t step = v % 8 ? 1 : 8;
    double want = moved((double)v, CD_KERNEL_SPREAD, c->root, v);
    if (c->child) want = moved(want, CD_KERNEL_NEAR, c->child, v);
    const int64_t n = (int64_t)llround(want / (double)step) * step;
    return n < step ? step : n;
}

static int64_t size_of(cutter *c, int64_t v) {
    if (v < 2) return v;
    for (uint32_t k = 0; k < c->n_size; k++)
        if (c->from[k] == v) return c->into[k];
    const int64_t n = drawn(c, v);
    if (c->n_size < MAX_SIZES) c->from[c->n_size] = v, c->into[c->n_size++] = n;
    return n;
}

/* Windows of weights [out, in, h, w] stay. */
static cd_graph_shape shape_of(cutter *c, const cd_graph_tensor *t) {
    cd_graph_shape s = t->shape;
    const bool window = cd_graph_tensor_is_static(t) && s.rank > 2;
    for (uint32_t d = 0; d < s.rank; d++)
        if (!window || d < 2) s.dim[d] = size_of(c, s.dim[d]);
    return s;
}

static cdmpp_status put_tensor(cutter *c, uint32_t old) {
    const cd_graph_tensor *t = &c->k->graph->tensor[old];
    if (t->value || t->fvalue)
        return cd_graph_constant(c->g, t->name, t->dtype, &t->shape, t->value, t->fvalue,
                                 &c->to[old], c->err);
    const cd_graph_shape s = shape_of(c, t);
    return (cd_graph_tensor_is_static(t) ? cd_graph_weight : cd_graph_input)(
        c->g, t->name, t->dtype, &s, &c->to[old], c->err);
}

/* Of a depthwise convolution the number of groups is its number of channels. */
static cdmpp_status put_node(cutter *c, const cd_graph_node *n) {
    cd_arena a = {0};
    uint32_t *in = CD_NEWN(&a, uint32_t, n->n_in + 1), *out = CD_NEWN(&a, uint32_t, n->n_out + 1);
    cd_graph_attr *attr = CD_NEWN(&a, cd_graph_attr, n->n_attr + 1);
    cdmpp_status st = in && out && attr ? CDMPP_OK : CD_FAIL(c->err, ENOMEM, "kernels");
    for (uint32_t k = 0; !st && k < n->n_in; k++) {
        if (n->in[k] != CD_GRAPH_NONE && c->to[n->in[k]] == CD_GRAPH_NONE)
            st = put_tensor(c, n->in[k]);
        in[k] = n->in[k] == CD_GRAPH_NONE ? CD_GRAPH_NONE : c->to[n->in[k]];
    }
    for (uint32_t k = 0; !st && k < n->n_attr; k++) {
        attr[k] = n->attr[k];
        if (!strcmp(attr[k].name, "group") &&
            !strcmp(cd_fusion_rules_name(c->k->graph, n), "DepthwiseConv"))
            attr[k].i = size_of(c, attr[k].i);
    }
    if (!st)
        st =
            cd_graph_add(c->g, n->name, n->op, in, n->n_in, attr, n->n_attr, out, n->n_out, c->err);
    for (uint32_t k = 0; !st && k < n->n_out; k++) c->to[n->out[k]] = out[k];
    cd_arena_free(&a);
    return st;
}

static bool is_read_inside(const seed_kernel *k, uint32_t tensor) {
    for (uint32_t i = 0; i < k->n_node; i++)
        for (uint32_t j = 0; j < k->graph->node[k->node[i]].n_in; j++)
            if (k->graph->node[k->node[i]].in[j] == tensor) return true;
    return false;
}

static cdmpp_status cut(cutter *c) {
    const cd_graph *g = c->k->graph;
    c->g->opset = g->opset;
    c->g->training = g->training;
    for (uint32_t t = 0; t < g->n_tensor; t++) c->to[t] = CD_GRAPH_NONE;
    for (uint32_t i = 0; i < c->k->n_node; i++) CD_TRY(put_node(c, &g->node[c->k->node[i]]));
    for (uint32_t i = 0; i < c->k->n_node; i++) {
        const cd_graph_node *n = &g->node[c->k->node[i]];
        for (uint32_t k = 0; k < n->n_out; k++)
            if (!is_read_inside(c->k, n->out[k]))
                CD_TRY(cd_graph_result(c->g, c->to[n->out[k]], c->err));
    }
    return CDMPP_OK;
}

/* It stands for the kernel if one of its groups has all of the operators, and the others none. */
static cdmpp_status is_whole(const seed_kernel *s, const cd_workload *w, bool *out,
                             cdmpp_err *err) {
    cd_arena a = {0};
    cdmpp_status st = CDMPP_OK;
    uint32_t same = 0, other = w->n_unsupported;
    for (uint32_t g = 0; !st && g < w->n_group; g++) {
        cd_kernel k;
        if (w->group[g].task == CD_GRAPH_NONE || !w->group[g].n_node) continue;
        st = cd_kernel_of(w, g, &a, &k, err);
        if (!st) *(strcmp(k.type, s->kernel.type) ? &other : &same) += 1;
    }
    cd_arena_free(&a);
    *out = same == 1 && !other;
    return st;
}

/* Errors of shapes are a graph that does not fit: *w stays NULL. */
static cdmpp_status make(const cd_kernel_prior *p, cutter *c, cd_graph **g, cd_workload **w,
                         cdmpp_err *err) {
    cdmpp_err own = {0};
    bool whole = false;
    c->err = &own;
    CD_TRY(cd_graph_new(c->k->kernel.type, &c->g, err));
    c->to = cd_mem_alloc((c->k->graph->n_tensor + 1) * sizeof *c->to);
    cdmpp_status st = CDMPP_OK;
    if (!c->to) st = CD_FAIL(&own, ENOMEM, "kernels");
    else st = cut(c);
    cd_mem_free(c->to);
    if (!st) st = cd_workload_build(c->g, p->o, w, &own);
    if (!st) st = is_whole(c->k, *w, &whole, &own);
    if (!st && whole) {
        *g = c->g;
        return CDMPP_OK;
    }
    cd_workload_free(*w);
    *w = NULL;
    cd_graph_free(c->g);
    if (st != CDMPP_ENOMEM) return CDMPP_OK;
    if (err) *err = own;
    return st;
}

static const seed_kernel *drawn_kernel(const cd_kernel_prior *p, uint64_t seed, uint64_t root) {
    return &p->v[cd_rng_at(cd_rng_at(seed, root), 0) % p->n];
}

const char *cd_kernel_prior_type(const cd_kernel_prior *p, uint64_t seed, uint64_t root) {
    return p->n ? drawn_kernel(p, seed, root)->kernel.type : "";
}

cdmpp_status cd_kernel_prior_draw(const cd_kernel_prior *p, uint64_t seed, uint64_t root,
                                  uint64_t draw, cd_graph **g, cd_workload **w, cdmpp_err *err) {
    *w = NULL;
    *g = NULL;
    if (!p->n) return CDMPP_OK;
    cutter c = {.k = drawn_kernel(p, seed, root),
                .root = cd_rng_at(cd_rng_at(seed, root), 1),
                .child = draw == root ? 0 : cd_rng_at(seed, draw) | 1};
    return make(p, &c, g, w, err);
}
