/* Memory of a case: results alive at once, which the simulation knows, and what stays between runs:
 * weights and inputs.
 *
 *   loaded network   its buffers say what is a weight and what an input
 *   graph of a file  free nodes that come after nothing (a weight, an input), once each, on the
 *                    device of their first
 *                    reader; and what an operator reads beyond the results that it comes after
 *
 * A free node in between is a view: as large as it says, else as what it is a view of. Where
 * weights are known apart (weight_bytes), the most that an operator at the beginning reads beyond
 * them is the input. */
#include <string.h>

#include "predictor/network_estimate/network_estimate_internal.h"

/* -1: unknown or too much to count. */
static int64_t plus(int64_t a, int64_t b) {
    return a < 0 || b < 0 || __builtin_add_overflow(a, b, &a) ? -1 : a;
}

/* ---- of a network that was loaded ---- */
static int64_t buffer_bytes(const cd_workload_buffer *b) {
    int64_t n = (int64_t)cd_expr_dtype_bytes(b->dtype);
    if (cd_expr_dtype_bits(b->dtype) < 8) return cd_graph_shape_bytes(&b->shape, b->dtype);
    for (uint32_t k = 0; k < b->shape.rank; k++)
        if (__builtin_mul_overflow(n, b->shape.dim[k], &n)) return -1;
    return n;
}

/* Bytes of buffers that groups read and no group writes, each buffer once. A constant counts as a
 * weight even where a group writes it: folded weights stay in memory too. */
static void of_work(const cd_workload *w, int64_t *weights, int64_t *inputs) {
    enum { NEW, MADE, COUNTED };
    unsigned char *is = cd_mem_zalloc(w->n_buffer + 1u, sizeof *is);
    *weights = *inputs = is ? 0 : -1;
    for (uint32_t g = 0; is && g < w->n_group; g++) is[w->group[g].write] = MADE;
    for (uint32_t g = 0; is && g < w->n_group; g++)
        for (uint32_t k = 0; k < w->group[g].n_read; k++) {
            const uint32_t b = w->group[g].read[k];
            int64_t *to = w->buffer[b].is_const ? weights : inputs;
            if (is[b] == COUNTED || (is[b] == MADE && !w->buffer[b].is_const)) continue;
            is[b] = COUNTED;
            *to = plus(*to, buffer_bytes(&w->buffer[b]));
        }
    cd_mem_free(is);
}

/* ---- of a graph ---- */
typedef struct {
    const cd_network_graph *g;
    const uint32_t *where; /* NULL: all on 0 */
    int64_t *size;         /* (n_node) of its result, as far as it is known */
    uint32_t *user;        /* (n_node) device of the first that reads it; UINT32_MAX: nobody */
} stays;

static bool runs(const cd_network_node *n) { return n->kind != CD_NODE_FREE && n->repeat > 0; }

/* Nodes come behind those they read, so one pass is enough for views of views. */
static void sizes(stays *s) {
    for (uint32_t k = 0; k < s->g->n_node; k++) {
        const cd_network_node *n = &s->g->node[k];
        s->size[k] = n->write_bytes > 0 ? n->write_bytes : 0;
        for (uint32_t j = 0; n->write_bytes < 0 && n->kind == CD_NODE_FREE && j < n->n_after; j++)
            s->size[k] = plus(s->size[k], s->size[s->g->after[n->first + j]]);
        if (s->size[k] < 0) s->size[k] = INT64_MAX;
    }
}

/* From the end, so that the first reader is the last one to be written down. */
static void users(stays *s) {
    memset(s->user, 0xff, s->g->n_node * sizeof *s->user);
    for (uint32_t k = s->g->n_node; k-- > 0;) {
        const cd_network_node *n = &s->g->node[k];
        const uint32_t here = runs(n) ? s->where ? s->where[k] : 0 : s->user[k];
        for (uint32_t j = 0; j < n->n_after; j++)
            if (here != UINT32_MAX) s->user[s->g->after[n->first + j]] = here;
    }
}

/* Bytes that operators read beyond the results of the nodes before them. sum (n_place): weights,
 * -1: some operator there does not say what it reads; input (n_place): the largest input. */
static void add_up(const stays *s, int64_t *sum, int64_t *input) {
    for (uint32_t k = 0; k < s->g->n_node; k++) {
        const cd_network_node *n = &s->g->node[k];
        if (n->kind == CD_NODE_FREE && !n->n_after && s->user[k] != UINT32_MAX)
            sum[s->user[k]] = plus(sum[s->user[k]], s->size[k]);
        if (!runs(n)) continue;
        const uint32_t here = s->where ? s->where[k] : 0;
        int64_t rest = n->read_bytes;
        for (uint32_t j = 0; rest > 0 && j < n->n_after; j++) {
            const int64_t got = s->size[s->g->after[n->first + j]];
            rest = rest > got ? rest - got : 0;
        }
        /* an input, or what was read before */
        if (rest > n->weight_bytes && n->weight_bytes >= 0) {
            if (!n->n_after && rest - n->weight_bytes > input[here])
                input[here] = rest - n->weight_bytes;
            rest = n->weight_bytes;
        }
        sum[here] = plus(sum[here], rest);
    }
}

/* weights (n_place), zero: with inputs. */
static bool of_graph(const cd_network_graph *g, const uint32_t *where, uint32_t n_place,
                     int64_t *weights) {
    cd_arena a = {0};
    int64_t *input = CD_NEWN(&a, int64_t, n_place);
    stays s = {g, where, CD_NEWN(&a, int64_t, (size_t)g->n_node + 1),
               CD_NEWN(&a, uint32_t, (size_t)g->n_node + 1)};
    const bool ok = s.size && s.user && input;
    if (ok) {
        sizes(&s);
        users(&s);
        add_up(&s, weights, input);
    }
    for (uint32_t k = 0; ok && k < n_place; k++) weights[k] = plus(weights[k], input[k]);
    cd_arena_free(&a);
    return ok;
}

void cd_network_estimate_weights(cd_network_estimate_source *s) {
    s->weight_bytes = s->input_bytes = 0;
    if (s->loaded) of_work(s->loaded->work, &s->weight_bytes, &s->input_bytes);
    else if (!s->graph || !of_graph(s->graph, NULL, 1, &s->weight_bytes)) s->weight_bytes = -1;
}

/* ---- of a case ---- */
cd_network_fits cd_network_estimate_use_fits(const cd_network_estimate_use *u) {
    if (u->memory > 0 && u->least > u->memory) return CD_NETWORK_FITS_NO;
    return u->memory > 0 && u->peak >= 0 && u->weights >= 0 ? CD_NETWORK_FITS_YES
                                                            : CD_NETWORK_FITS_UNKNOWN;
}

cd_network_fits cd_network_estimate_fits(const cd_network_estimate_case *c) {
    cd_network_fits all = CD_NETWORK_FITS_YES;
    for (uint32_t k = 0; k < c->n_place; k++) {
        const cd_network_fits one = cd_network_estimate_use_fits(&c->use[k]);
        if (one == CD_NETWORK_FITS_NO) return one;
        if (one == CD_NETWORK_FITS_UNKNOWN) all = one;
    }
    return all;
}

/* A device on which an operator runs that does not say how large its result is. */
static void unknown_results(cd_network_estimate_case *c) {
    const cd_network_graph *g = c->source->graph;
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, k);
        if (n->source != CD_COST_FREE && g->node[k].repeat && n->bytes < 0)
            c->use[c->where ? c->where[k] : 0].peak = -1;
    }
}

/* Peak of each place: the simulation's, weights, inputs. Sums saturate: "too much to count" must
 * not look small. `fullest` is the place that the report shows: one that has too little memory
 * comes before the one with the largest peak. */
cdmpp_status cd_network_estimate_memory(cd_network_estimate *e, cd_network_estimate_case *c,
                                        cdmpp_err *err) {
    int64_t *weights = NULL;
    c->use = CD_NEWN(&e->arena, cd_network_estimate_use, c->n_place);
    if (c->use) weights = cd_mem_zalloc(c->n_place, sizeof *weights);
    if (!weights) return CD_FAIL(err, ENOMEM, "memory of %u devices", c->n_place);
    if (c->n_place == 1) *weights = c->source->weight_bytes;
    else if (!of_graph(c->source->graph, c->where, c->n_place, weights))
        memset(weights, 0xff, c->n_place * sizeof *weights);
    for (uint32_t k = 0; k < c->n_place; k++) {
        cd_network_estimate_use *u = &c->use[k];
        *u = (cd_network_estimate_use){
            .least = c->replay.peak[k], .weights = weights[k], .memory = c->lane[k].memory};
        if (u->weights > 0) u->least = plus(u->least, u->weights);
        if (c->source->input_bytes > 0) u->least = plus(u->least, c->source->input_bytes);
        if (u->least < 0) u->least = INT64_MAX;
        u->peak = u->least;
    }
    cd_mem_free(weights);
    unknown_results(c);
    for (uint32_t k = c->fullest = 0; k < c->n_place; k++) {
        const bool no = cd_network_estimate_use_fits(&c->use[k]) == CD_NETWORK_FITS_NO,
                   than = cd_network_estimate_use_fits(&c->use[c->fullest]) == CD_NETWORK_FITS_NO;
        if (no != than ? no : c->use[k].least > c->use[c->fullest].least) c->fullest = k;
    }
    return CDMPP_OK;
}
