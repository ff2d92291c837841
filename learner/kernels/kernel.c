/* Kernels timed by our executor. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/kernels/kernels.h"

/* Sizes of a kernel: what its buffers and its first windowed operator say. They do not depend on
 * the layout of the data, so that a kernel is the same inside a network and alone. */

enum {
    FLOP,
    READ,
    WEIGHTS,
    WRITTEN,
    OUT_BATCH,
    OUT_CHANNELS,
    OUT_PLACES,
    IN_CHANNELS,
    IN_PLACES,
    WINDOW,
    STRIDE,
    GROUPS,
    BUFFERS
};
/* Operators of the group as rules of fusion name them, views left out, runs of equal ones once. */
static void put_type(cd_buf *b, const cd_workload *w, const cd_workload_group *g) {
    const char *last = "";
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_graph_node *n = &w->graph->node[g->node[k]];
        const char *name = cd_fusion_rules_name(w->graph, n);
        if (n->view || !strcmp(name, last)) continue;
        cd_buf_putf(b, "%s%s", b->n ? "+" : "", name);
        last = name;
    }
    if (!b->n) cd_buf_puts(b, "LayoutTransform");
}

static double product_of(const cd_graph_attr *a) {
    double v = 1;
    for (uint32_t k = 0; a && a->kind == CD_GRAPH_ATTR_INTS && k < a->n; k++)
        v *= (double)a->ints[k];
    return v;
}

/* Batch, channels and places of the graph's tensor: [N, C, H, W]; of matrices columns are
 * channels. */
static void put_shape(const cd_graph_shape *s, double *batch, double *channels, double *places) {
    *batch = s->rank > 2 ? (double)s->dim[0] : 1;
    *channels = s->rank > 2 ? (double)s->dim[1] : s->rank ? (double)s->dim[s->rank - 1] : 1;
    *places =
        (double)cd_graph_shape_elements(s) / (*batch * *channels > 0 ? *batch * *channels : 1);
}

/* Of a change of layout there is no operator: its buffer says how much it is. */
static void put_operators(const cd_workload *w, const cd_workload_group *g, double *x) {
    const cd_graph *graph = w->graph;
    double batch;
    x[WINDOW] = x[STRIDE] = x[GROUPS] = 1;
    if (!g->n_node) {
        x[OUT_BATCH] = x[OUT_CHANNELS] = x[IN_CHANNELS] = 1;
        x[OUT_PLACES] = x[IN_PLACES] = (double)cd_graph_shape_elements(&w->buffer[g->write].shape);
        return;
    }
    const cd_graph_node *first = &graph->node[g->node[0]],
                        *last = &graph->node[g->node[g->n_node - 1]];
    put_shape(&graph->tensor[last->out[0]].shape, &x[OUT_BATCH], &x[OUT_CHANNELS], &x[OUT_PLACES]);
    if (first->n_in && first->in[0] != CD_GRAPH_NONE)
        put_shape(&graph->tensor[first->in[0]].shape, &batch, &x[IN_CHANNELS], &x[IN_PLACES]);
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_graph_node *n = &graph->node[g->node[k]];
        if (!cd_graph_node_attr(n, "kernel_shape")) continue;
        x[WINDOW] = product_of(cd_graph_node_attr(n, "kernel_shape"));
        x[STRIDE] = product_of(cd_graph_node_attr(n, "strides"));
        x[GROUPS] = (double)cd_graph_node_int(n, "group", 1);
        return;
    }
}

cdmpp_status cd_kernel_of(const cd_workload *w, uint32_t group, cd_arena *a, cd_kernel *out,
                          cdmpp_err *err) {
    const cd_workload_group *g = &w->group[group];
    cd_buf b = {0};
    *out = (cd_kernel){0};
    put_type(&b, w, g);
    if (!b.oom) out->type = cd_str_dup(a, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    if (!out->type) return CD_FAIL(err, ENOMEM, "kernels");
    out->x[FLOP] = w->task[g->task].flop;
    for (uint32_t k = 0; k < g->n_read; k++) {
        const cd_workload_buffer *x = &w->buffer[g->read[k]];
        out->x[x->is_const ? WEIGHTS : READ] +=
            (double)(cd_graph_shape_elements(&x->shape) * (int64_t)cd_expr_dtype_bytes(x->dtype));
    }
    const cd_workload_buffer *x = &w->buffer[g->write];
    out->x[WRITTEN] =
        (double)(cd_graph_shape_elements(&x->shape) * (int64_t)cd_expr_dtype_bytes(x->dtype));
    out->x[BUFFERS] = g->n_read + 1;
    put_operators(w, g, out->x);
    return CDMPP_OK;
}

/* What is drawn: the operators of one group of a known network, cut out of it, on tensors of other
 * sizes. A size is a number that stands in the shapes of what the group reads; wherever the same
 * number stands, it is replaced by the same other one. Where the new sizes do not fit the operators
 * (two sizes that depend on each other), the graph's own shape inference refuses them. */

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

/* The type that the draw `root` is of. */
static const char *kernel_prior_type(const cd_kernel_prior *p, uint64_t seed, uint64_t root) {
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

/* The loop: draw, measure, train, look where the error is large, draw there. What it needs to go on
 * after a kill is in the samples: the largest draw so far, and how many draws around the networks'
 * own sizes there were. */

enum {
    FIRST = 100,
    PER_ROUND = 20,
    AROUND = 4,
    TRIES = 200,
    HELD = 20,
    SEARCH = 10000,
    EACH = 2,
    EACH_TRIES = 6
};

typedef struct sampler {
    const cd_kernel_prior *p;
    const cd_kernel_clock *c;
    cd_kernel_sampler_options o;
    cd_kernel_samples *s;
    cd_kernel_sampled *out;
    uint64_t next; /* draw */
    size_t roots;  /* draws around the networks' own sizes that left samples */
    size_t idle;   /* draws in a row that left none */
    double begin;
    cdmpp_err *err;
} sampler;

static bool is_known(const cd_kernel_samples *s, const cd_kernel *k) {
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->v[i].kernel.type, k->type) && !memcmp(s->v[i].kernel.x, k->x, sizeof k->x))
            return true;
    return false;
}

/* Is the run over, and why? */
static bool is_over(sampler *x) {
    if (x->o.limit && x->s->n >= x->o.limit) return x->out->end = CD_KERNEL_END_LIMIT, true;
    if (x->o.seconds > 0 && x->c->now(x->c->ctx) - x->begin >= x->o.seconds)
        return x->out->end = CD_KERNEL_END_SECONDS, true;
    if (x->idle >= TRIES) return x->out->end = CD_KERNEL_END_NOTHING_NEW, true;
    return false;
}

/* ---- one draw ---- */

/* Each group of the network that is new is a sample. *added: how many. */
static cdmpp_status add_all(sampler *x, const cd_workload *w, const cd_kernel_time *t,
                            cd_kernel_sample v, size_t *added) {
    cd_arena a = {0};
    cdmpp_status st = CDMPP_OK;
    for (uint32_t g = 0; !st && g < w->n_group; g++) {
        if (w->group[g].task == CD_GRAPH_NONE || w->group[g].weights || !isfinite(t[g].seconds))
            continue;
        st = cd_kernel_of(w, g, &a, &v.kernel, x->err);
        if (st || is_known(x->s, &v.kernel)) continue;
        v.seconds = t[g].seconds;
        v.kernel.analytic_s = t[g].analytic_s;
        st = cd_kernel_samples_add(x->s, &v, x->err);
        *added += !st;
    }
    cd_arena_free(&a);
    return st;
}

/* A draw whose every kernel is known is not measured. */
static cdmpp_status any_new(sampler *x, const cd_workload *w, bool *out) {
    cd_arena a = {0};
    cdmpp_status st = CDMPP_OK;
    *out = false;
    for (uint32_t g = 0; !st && g < w->n_group; g++) {
        cd_kernel k;
        if (w->group[g].task == CD_GRAPH_NONE || !w->group[g].n_node) continue;
        st = cd_kernel_of(w, g, &a, &k, x->err);
        *out |= !st && !is_known(x->s, &k);
    }
    cd_arena_free(&a);
    return st;
}

static cdmpp_status measure(sampler *x, const cd_workload *w, const cd_kernel_sample *v,
                            size_t *added) {
    cd_kernel_time *t = cd_mem_alloc((w->n_group + 1) * sizeof *t);
    cdmpp_err own = {0};
    if (!t) return CD_FAIL(x->err, ENOMEM, "kernels");
    cdmpp_status st = x->c->time(x->c->ctx, w, v->draw, t, &own);
    if (!st) st = add_all(x, w, t, *v, added);
    else if (st == CDMPP_EINTERRUPTED || st == CDMPP_EIO || st == CDMPP_ENOMEM) {
        if (x->err) *x->err = own;
    } else {
        x->out->failed++;
        x->out->why = own;
        st = CDMPP_OK;
    }
    cd_mem_free(t);
    return st;
}

/* Near a sample; with `type` around the networks' own sizes, of that type; both NULL: of any. */
static cdmpp_status draw(sampler *x, const cd_kernel_sample *around, const char *type,
                         uint32_t round) {
    for (int k = 0; type && k < SEARCH && strcmp(kernel_prior_type(x->p, x->o.seed, x->next), type);
         k++)
        x->next++;
    cd_kernel_sample v = {.draw = x->next++, .round = round};
    cd_workload *w;
    cd_graph *g;
    size_t added = 0;
    bool new = false;
    v.root = around ? around->root : v.draw;
    v.held = !around && !type && cd_rng_at(0x68656c64, v.draw) % 5 == 0;
    if (x->o.stop && *x->o.stop) return CD_FAIL(x->err, EINTERRUPTED, "while kernels were sampled");
    CD_TRY(cd_kernel_prior_draw(x->p, x->o.seed, v.root, v.draw, &g, &w, x->err));
    cdmpp_status st = w ? any_new(x, w, &new) : CDMPP_OK;
    if (!st && new) st = measure(x, w, &v, &added);
    cd_workload_free(w);
    cd_graph_free(g);
    x->idle = added ? 0 : x->idle + 1;
    x->roots += added && !around;
    return st;
}

/* ---- every type ---- */

static size_t samples_of(const sampler *x, const char *type) {
    size_t n = 0;
    for (size_t i = 0; i < x->s->n; i++)
        n += !x->s->v[i].held && !strcmp(x->s->v[i].kernel.type, type);
    return n;
}

static bool is_first(const cd_kernel_prior *p, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (!strcmp(cd_kernel_prior_at(p, k)->type, cd_kernel_prior_at(p, i)->type)) return false;
    return true;
}

/* A type that few kernels of the networks have would be missed by chance. What cannot be had in
 * some tries is left. */
static cdmpp_status draw_types(sampler *x) {
    for (size_t i = 0; i < cd_kernel_prior_count(x->p); i++) {
        const char *type = cd_kernel_prior_at(x->p, i)->type;
        if (!is_first(x->p, i)) continue;
        for (size_t k = 0; k < EACH_TRIES * CD_KERNEL_LEAST &&
                           samples_of(x, type) < EACH * CD_KERNEL_LEAST && !is_over(x);
             k++)
            CD_TRY(draw(x, NULL, type, 0));
    }
    x->idle = 0;
    return CDMPP_OK;
}

/* ---- where the error is large ---- */

typedef struct place {
    size_t sample;
    /* times the seconds that kernels of its type take in the networks: what it does to their
     * sums */
    double error;
} place;

static int by_error(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->error != y->error) return x->error < y->error ? 1 : -1;
    return x->sample < y->sample ? -1 : 1;
}

static bool is_listed(const cd_kernel_samples *s, const place *v, size_t n, const char *type) {
    for (size_t k = 0; k < n; k++)
        if (isinf(v[k].error) && !strcmp(s->v[v[k].sample].kernel.type, type)) return true;
    return false;
}

/* Seconds of all kernels of the type that the networks have, by the mean of its samples. */
static double seconds_of_type(const sampler *x, const char *type) {
    double sum = 0;
    size_t n = 0, there = 0;
    for (size_t i = 0; i < x->s->n; i++) {
        const cd_kernel_sample *v = &x->s->v[i];
        if (v->held || v->root != v->draw || strcmp(v->kernel.type, type)) continue;
        sum += v->seconds;
        n++;
    }
    for (size_t i = 0; i < cd_kernel_prior_count(x->p); i++)
        there += !strcmp(cd_kernel_prior_at(x->p, i)->type, type);
    return n ? sum / (double)n * (double)there : 0;
}

/* Errors of the samples of one fold, by a model that does not know them. Of a type that it has no
 * answer for, the first sample stands for all. */
static cdmpp_status look(sampler *x, int fold, place *v, size_t *n) {
    cd_kernel_model *m;
    CD_TRY(cd_kernel_model_train(x->s, fold, &m, x->err));
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; !st && i < x->s->n; i++) {
        const cd_kernel_sample *s = &x->s->v[i];
        double t;
        if (s->held || cd_kernel_fold(s->root) != fold ||
            !strcmp(s->kernel.type, "LayoutTransform"))
            continue;
        st = cd_kernel_model_predict(m, &s->kernel, &t, x->err);
        const double e = isnan(t) ? HUGE_VAL : fabs(t / s->seconds - 1);
        if (!st && e > x->o.target && !(isnan(t) && is_listed(x->s, v, *n, s->kernel.type)))
            v[(*n)++] = (place){i, isinf(e) ? e : e * seconds_of_type(x, s->kernel.type)};
    }
    cd_kernel_model_free(m);
    return st;
}

/* A round: those that do the most to the networks' sums first. Samples may move while others are
 * added, so the one to draw around is copied. */
static cdmpp_status round_of(sampler *x, uint32_t round) {
    place *v = cd_mem_alloc((x->s->n + 1) * sizeof *v);
    cdmpp_status st = v ? CDMPP_OK : CD_FAIL(x->err, ENOMEM, "kernels");
    size_t n = 0;
    for (int fold = 0; !st && fold < CD_KERNEL_FOLDS && !x->o.plain; fold++)
        st = look(x, fold, v, &n);
    if (n) qsort(v, n, sizeof *v, by_error);
    if (n > x->o.per_round) n = x->o.per_round;
    for (size_t i = 0; !st && i < n; i++)
        for (size_t k = 0; !st && k < x->o.around && !is_over(x); k++) {
            const cd_kernel_sample s = x->s->v[v[i].sample];
            const bool few = isinf(v[i].error);
            st = draw(x, few ? NULL : &s, few ? s.kernel.type : NULL, round);
            /* all that is near to it is known */
            if (!st && x->idle && !is_over(x)) st = draw(x, NULL, NULL, round);
        }
    /* too few are wrong */
    for (size_t k = n * x->o.around; !st && k < x->o.per_round * x->o.around && !is_over(x); k++)
        st = draw(x, NULL, NULL, round);
    cd_mem_free(v);
    return st;
}

static cdmpp_status train_and_score(sampler *x) {
    cd_kernel_model *m;
    CD_TRY(cd_kernel_model_train(x->s, -1, &m, x->err));
    const cdmpp_status st = cd_kernel_model_score(m, x->s, x->o.target, &x->out->score, x->err);
    cd_kernel_model_free(m);
    if (!st && x->o.told) x->o.told(x->o.ctx, x->out->rounds, x->s->n, &x->out->score);
    return st;
}

/* ---- all of it ---- */

static void go_on(sampler *x) {
    uint64_t last = UINT64_MAX;
    for (size_t i = 0; i < x->s->n; i++) {
        const cd_kernel_sample *v = &x->s->v[i];
        if (v->draw + 1 > x->next) x->next = v->draw + 1;
        if (v->round > x->out->rounds) x->out->rounds = v->round;
        if (v->draw == v->root && v->draw != last) x->roots++;
        last = v->draw;
    }
}

/* A share of a few held out samples says nothing. */
static bool is_good(const sampler *x) {
    return x->out->score.n >= HELD &&
           (double)x->out->score.within >= x->o.within * (double)x->out->score.n;
}

cdmpp_status cd_kernel_sample_run(const cd_kernel_prior *p, const cd_kernel_clock *c,
                                  const cd_kernel_sampler_options *o, cd_kernel_samples *s,
                                  cd_kernel_sampled *out, cdmpp_err *err) {
    sampler x = {.p = p, .c = c, .o = *o, .s = s, .out = out, .begin = c->now(c->ctx), .err = err};
    *out = (cd_kernel_sampled){0};
    if (!(x.o.target > 0)) x.o.target = 0.1;
    if (!(x.o.within > 0)) x.o.within = 0.95;
    if (!x.o.first) x.o.first = FIRST;
    if (!x.o.per_round) x.o.per_round = PER_ROUND;
    if (!x.o.around) x.o.around = AROUND;
    go_on(&x);
    while (x.roots < x.o.first && !is_over(&x)) CD_TRY(draw(&x, NULL, NULL, 0));
    CD_TRY(draw_types(&x));
    for (;;) {
        CD_TRY(train_and_score(&x));
        if (is_good(&x)) return CDMPP_OK; /* end: TARGET */
        if (is_over(&x)) return CDMPP_OK;
        CD_TRY(round_of(&x, ++out->rounds));
    }
}

static cd_program_select_options options_of(const cd_kernel_executor *x) {
    return (cd_program_select_options){.trials = x->trials ? x->trials : 8,
                                       .pool = x->pool,
                                       .device = x->device,
                                       .seed = x->seed,
                                       .target = x->target,
                                       .hardware = x->hardware,
                                       .threads = x->threads,
                                       .measure = x->measure,
                                       .stop = x->stop};
}

cdmpp_status cd_kernel_executor_estimate(const cd_kernel_executor *x, const cd_workload *w,
                                         double *analytic, cdmpp_err *err) {
    const cd_program_select_options so = options_of(x);
    return cd_program_select_estimate(w, &so, analytic, err);
}

/* A task without a program leaves its group without a time. */
static cdmpp_status run(const cd_kernel_executor *x, const cd_workload *w, bool cool,
                        cd_kernel_time *out, double *pass_s, cdmpp_err *err) {
    const cd_program_select_options so = options_of(x);
    const cd_op_profile_options po = {.threads = x->threads,
                                      .budget_s = x->budget_s > 0 ? x->budget_s : 0.1,
                                      .cpu_time = x->threads == 1,
                                      .cool = cool};
    cd_program_select *s = NULL;
    cd_op_profile *p = NULL;
    cdmpp_status st = cd_program_select_run(w, &so, &s, err);
    if (!st) st = cd_op_profile_run(w, s, &po, &p, err);
    for (uint32_t g = 0; !st && g < w->n_group; g++) {
        const double analytic_s =
            w->group[g].task == CD_GRAPH_NONE ? 0 : s->task[w->group[g].task].analytic_s;
        out[g] = (cd_kernel_time){p->group[g].ran ? p->group[g].place_s : (double)NAN,
                                  isfinite(analytic_s) ? analytic_s : 0};
    }
    if (!st) *pass_s = p->pass.median_s;
    cd_op_profile_free(p);
    cd_program_select_free(s);
    return st;
}

cdmpp_status cd_kernel_executor_time(const cd_kernel_executor *x, const cd_workload *w,
                                     cd_kernel_time *out, double *pass_s, cdmpp_err *err) {
    return run(x, w, false, out, pass_s, err);
}

/* In a network other kernels have run since this one did: its weights are not in the core's own
 * caches. */
static cdmpp_status time_of(void *ctx, const cd_workload *w, uint64_t draw, cd_kernel_time *out,
                            cdmpp_err *err) {
    double pass_s;
    (void)draw;
    return run(ctx, w, true, out, &pass_s, err);
}

cd_kernel_clock cd_kernel_executor_clock(cd_kernel_executor *x) {
    return (cd_kernel_clock){.ctx = x, .time = time_of, .now = cd_timing_clock_now};
}
