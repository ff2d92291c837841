/* Gradient of rows that were picked: each row of the table gets the sum of what was read from it.
 *
 *   y[a,p,d] = x[a, k[p], d]        dx[a,v,d] = sum over p with k[p] = v of dy[a,p,d]
 *
 * Libraries and XLA run a loop over p that adds where k points, which is no tensor expression: no
 * element of the result knows what is added to it. Here each element asks, in operators that every
 * compiler of tensor programs fuses:
 *   few rows (V <= P)  dx[v] = sum over p of (k[p] = v ? dy[p] : 0), one reduction: V P D steps
 *   many               last[v] = largest p with k[p] = v, else -1                         V P
 *     comparisons of integers
 *                      all[p] = sum over q of (k[q] = k[p] ? dy[q] : 0)                   P P D
 *     steps
 *                      dx[v] = last[v] < 0 ? 0 : all[last[v]]                             V D
 *     elements, written once
 * so that of a table of words the V D elements are written once, as the loop over p does that fills
 * them with zeros first, and nothing of V P D is ever computed. Rows that are known and in order
 * are zeros around dy. */
#include <stdio.h>

#include "profiler/network/gradient/autodiff_internal.h"

/* Rows by known indices that do not repeat and lie in order are a slice. */
static bool in_a_row(const int64_t *v, uint32_t n, int64_t dim, int64_t *first) {
    *first = n ? (v[0] < 0 ? v[0] + dim : v[0]) : 0;
    for (uint32_t i = 0; i < n; i++)
        if ((v[i] < 0 ? v[i] + dim : v[i]) != *first + (int64_t)i) return false;
    return n > 0;
}

/* x as A tables of V rows of D elements, P rows of each read. */
typedef struct picked {
    int64_t a, v, p, d;
} picked;

static picked shape_of(const cd_autodiff_builder *b, int64_t axis) {
    const cd_graph_shape *x = cd_autodiff_shape(b, cd_autodiff_input(b, 0));
    picked s = {1, x->dim[axis],
                cd_graph_shape_elements(cd_autodiff_shape(b, cd_autodiff_input(b, 1))), 1};
    for (uint32_t d = 0; d < x->rank; d++)
        *((int64_t)d < axis ? &s.a : &s.d) *= (int64_t)d == axis ? 1 : x->dim[d];
    return s;
}

/* n integers of 32 bits along dimension d of 4: `from`, those below 0 counted from `dim`; NULL: 0
 * .. n - 1. */
static uint32_t numbers(cd_autodiff_builder *b, uint32_t d, int64_t n, const int64_t *from,
                        int64_t dim) {
    char name[48];
    cd_graph_shape line = {4, {1, 1, 1, 1}};
    uint32_t t = CD_GRAPH_NONE;
    int64_t *v = CD_NEWN(&b->g->arena, int64_t, (size_t)n + 1);
    if (!v) return cd_autodiff_fail(b, CD_FAIL(b->err, ENOMEM, "out of memory for rows"));
    for (int64_t k = 0; k < n; k++) v[k] = !from ? k : from[k] < 0 ? from[k] + dim : from[k];
    line.dim[d] = n;
    snprintf(name, sizeof name, "rows_%u", b->count++);
    if (!b->st) b->st = cd_graph_constant(b->g, name, CD_I32, &line, v, NULL, &t, b->err);
    return t;
}

/* The indices along dimension d of 4, none negative. Those that are the network's inputs are taken
 * as they come: words, positions; frameworks refuse negative ones there. */
static uint32_t indices(cd_autodiff_builder *b, uint32_t d, const picked *s) {
    cd_graph_shape line = {4, {1, 1, 1, 1}};
    uint32_t n, k = cd_autodiff_input(b, 1);
    const int64_t *v = cd_autodiff_known_ints(b, 1, &n);
    line.dim[d] = s->p;
    if (b->st) return CD_GRAPH_NONE;
    if (v) return numbers(b, d, n, v, s->v);
    const bool given = b->g->tensor[k].is_input;
    k = cd_autodiff_cast(b, k, CD_I32);
    if (!given)
        k = cd_autodiff_where(b, cd_autodiff_binary_scalar(b, "Less", k, 0),
                              cd_autodiff_binary_scalar(b, "Add", k, (double)s->v), k);
    return cd_autodiff_reshape(b, k, &line);
}

/* sum over q of dy[a,q,d] where k[q] is `wanted` [1,n,1,1]: [a,n,d]. */
static uint32_t collected(cd_autodiff_builder *b, uint32_t wanted, const picked *s) {
    const cd_graph_shape rows = {4, {s->a, 1, s->p, s->d}};
    const uint32_t dy = cd_autodiff_reshape(b, cd_autodiff_output_grad(b, 0), &rows);
    const uint32_t mine = cd_autodiff_binary(b, "Equal", indices(b, 2, s), wanted);
    return cd_autodiff_reduce(b, "ReduceSum",
                              cd_autodiff_where(b, mine, dy, cd_autodiff_const_scalar(b, dy, 0)),
                              1U << 2, false);
}

/* Of each row the last place that read it, else -1: [v]. */
static uint32_t last_reader(cd_autodiff_builder *b, const picked *s) {
    const uint32_t place = numbers(b, 2, s->p, NULL, 0),
                   mine = cd_autodiff_binary(b, "Equal", indices(b, 2, s),
                                             numbers(b, 1, s->v, NULL, 0));
    const cd_graph_shape line = {1, {s->v}};
    return cd_autodiff_reshape(
        b,
        cd_autodiff_reduce(
            b, "ReduceMax",
            cd_autodiff_where(b, mine, place, cd_autodiff_const_scalar(b, place, -1)), 1U << 2,
            false),
        &line);
}

/* Many rows: sum dy for each place first, then let each row read the sum at its last reader. */
static uint32_t by_reader(cd_autodiff_builder *b, const picked *s) {
    const cd_graph_shape column = {3, {1, s->v, 1}};
    const cd_graph_attr axis = cd_autodiff_attr_int("axis", 1);
    const uint32_t all = collected(b, indices(b, 1, s), s), last = last_reader(b, s);
    const uint32_t read =
        cd_autodiff_reshape(b, cd_autodiff_binary_scalar(b, "GreaterOrEqual", last, 0), &column);
    const uint32_t rows = cd_autodiff_op(
        b, "Gather", 2, (const uint32_t[]){all, cd_autodiff_binary_scalar(b, "Max", last, 0)}, 1,
        &axis);
    return cd_autodiff_where(b, read, rows, cd_autodiff_const_scalar(b, rows, 0));
}

/* Few rows (not more than places) or many: see the opening comment. */
static void added(cd_autodiff_builder *b, int64_t axis) {
    const cd_graph_shape x = *cd_autodiff_shape(b, cd_autodiff_input(b, 0));
    const picked s = shape_of(b, axis);
    if (s.v > INT32_MAX || s.p > INT32_MAX) {
        b->why = "a table of more than 2^31 rows";
        return;
    }
    const uint32_t dx =
        s.v <= s.p ? collected(b, numbers(b, 1, s.v, NULL, 0), &s) : by_reader(b, &s);
    cd_autodiff_accumulate(b, 0, cd_autodiff_reshape(b, dx, &x));
}

/* Known indices in a row are a slice: its gradient is zeros around dy. All others go to added(). */
static void gather(cd_autodiff_builder *b) {
    const cd_graph_shape x = *cd_autodiff_shape(b, cd_autodiff_input(b, 0));
    const int64_t axis = cd_graph_node_int(b->n, "axis", 0);
    int64_t start[CD_GRAPH_MAX_RANK] = {0}, after[CD_GRAPH_MAX_RANK] = {0};
    cd_graph_shape part = x;
    uint32_t n;
    const int64_t *v = cd_autodiff_known_ints(b, 1, &n);
    if (!v || !in_a_row(v, n, x.dim[axis], &start[axis])) {
        added(b, axis);
        return;
    }
    part.dim[axis] = n;
    after[axis] = x.dim[axis] - start[axis] - n;
    cd_autodiff_accumulate(
        b, 0,
        cd_autodiff_pad(b, cd_autodiff_reshape(b, cd_autodiff_output_grad(b, 0), &part), start,
                        after));
}

const cd_autodiff_rule cd_autodiff_rules_gather[] = {{"Gather", gather}, {NULL, NULL}};
