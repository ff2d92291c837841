/* Gradients of convolutions: of the data the transposed one, of the weight a convolution whose
 * kernel is dy.
 *
 *   y[n,m,i] = sum_c,r x[n,c,i*s + r*d] w[m,c,r]     dw[m,c,r] = sum_n,i x[n,c,i*s + r*d] dy[n,m,i]
 *
 * dw is a convolution of x with dy as its weight, where the batch is summed and stride and dilation
 * change places: of g groups x is [C/g, g*N, ..] and dy [M, N, ..]. */
#include <string.h>

#include "profiler/network/gradient/autodiff_internal.h"

enum { MOST = CD_GRAPH_MAX_RANK - 2 };

typedef struct window {
    uint32_t n;
    int64_t group;
    const int64_t *stride, *dilation, *pad;
} window;

static window window_of(const cd_autodiff_builder *b) {
    window w = {.group = cd_graph_node_int(b->n, "group", 1)};
    uint32_t k;
    w.stride = cd_autodiff_get_ints(b, "strides", &w.n);
    w.dilation = cd_autodiff_get_ints(b, "dilations", &k);
    w.pad = cd_autodiff_get_ints(b, "pads", &k);
    return w;
}

/* [N, g*C, ..] -> [C, g*N, ..]: the batch of each group where its channels were. */
static uint32_t batch_inside(cd_autodiff_builder *b, uint32_t x, int64_t group) {
    const cd_graph_shape s = *cd_autodiff_shape(b, x);
    int64_t perm[CD_GRAPH_MAX_RANK];
    if (group == 1) {
        for (uint32_t d = 0; d < s.rank; d++) perm[d] = d < 2 ? 1 - d : d;
        return cd_autodiff_transpose(b, x, s.rank, perm);
    }
    cd_graph_shape apart = {s.rank + 1, {s.dim[0], group, s.dim[1] / group}};
    cd_graph_shape together = {s.rank, {s.dim[1] / group, group * s.dim[0]}};
    for (uint32_t d = 2; d < s.rank; d++) apart.dim[d + 1] = together.dim[d] = s.dim[d];
    for (uint32_t d = 0; d < apart.rank; d++) perm[d] = d == 0 ? 2 : d == 2 ? 0 : d;
    return cd_autodiff_reshape(
        b, cd_autodiff_transpose(b, cd_autodiff_reshape(b, x, &apart), apart.rank, perm),
        &together);
}

/* A kernel of one element: y reads every stride-th x. */
static bool is_point(const window *w, const cd_graph_shape *k) {
    for (uint32_t d = 0; d < w->n; d++)
        if (w->pad[d] || w->pad[d + w->n] || k->dim[d + 2] != 1) return false;
    return true;
}

static bool dense(const window *w) {
    for (uint32_t d = 0; d < w->n; d++)
        if (w->stride[d] != 1) return false;
    return true;
}

/* Every stride-th element, as many as `small` has. */
static uint32_t picked(cd_autodiff_builder *b, uint32_t x, uint32_t small, const window *w) {
    int64_t from[MOST] = {0}, to[MOST], axis[MOST];
    if (dense(w)) return x;
    for (uint32_t d = 0; d < w->n; d++) {
        axis[d] = d + 2;
        to[d] = (cd_autodiff_shape(b, small)->dim[d + 2] - 1) * w->stride[d] + 1;
    }
    const uint32_t in[5] = {
        x, cd_autodiff_const_ints(b, w->n, from), cd_autodiff_const_ints(b, w->n, to),
        cd_autodiff_const_ints(b, w->n, axis), cd_autodiff_const_ints(b, w->n, w->stride)};
    return cd_autodiff_op(b, "Slice", 5, in, 0, NULL);
}

/* [N, C, ..] as [N * .., C]. */
static uint32_t rows(cd_autodiff_builder *b, uint32_t x) {
    const cd_graph_shape s = *cd_autodiff_shape(b, x);
    int64_t perm[CD_GRAPH_MAX_RANK], n = s.dim[0];
    for (uint32_t d = 0; d < s.rank; d++) perm[d] = d == 0 ? 0 : d + 1 == s.rank ? 1 : d + 1;
    for (uint32_t d = 2; d < s.rank; d++) n *= s.dim[d];
    const cd_graph_shape two = {2, {n, s.dim[1]}};
    return cd_autodiff_reshape(b, cd_autodiff_transpose(b, x, s.rank, perm), &two);
}

/* The operand without the elements at its end that no window reaches; less padding where that is
 * enough. */
static uint32_t reached(cd_autodiff_builder *b, uint32_t x, uint32_t small, const cd_graph_shape *k,
                        const window *w, int64_t *pad) {
    cd_graph_shape s = *cd_autodiff_shape(b, x);
    const int64_t none[CD_GRAPH_MAX_RANK] = {0};
    memcpy(pad, w->pad, 2 * w->n * sizeof *pad);
    for (uint32_t d = 0; d < w->n; d++) {
        const int64_t end = (cd_autodiff_shape(b, small)->dim[d + 2] - 1) * w->stride[d] +
                            (k->dim[d + 2] - 1) * w->dilation[d] + 1;
        const int64_t over = pad[d] + s.dim[d + 2] + pad[d + w->n] - end;
        const int64_t less = over > pad[d + w->n] ? pad[d + w->n] : over;
        pad[d + w->n] -= less;
        s.dim[d + 2] -= over - less;
    }
    return cd_autodiff_slice(b, x, none, &s);
}

/* Gradient of the weight [M, C/g, ..] that made `small` [N, M, ..] from `big` [N, C, ..]. */
static uint32_t weight(cd_autodiff_builder *b, uint32_t big, uint32_t small,
                       const cd_graph_shape *k, const window *w) {
    int64_t perm[CD_GRAPH_MAX_RANK], pad[2 * MOST];
    if (b->st) return CD_GRAPH_NONE;
    if (w->group == 1 && is_point(w, k))
        return cd_autodiff_reshape(
            b, cd_autodiff_gemm(b, rows(b, small), rows(b, picked(b, big, small, w)), true, false),
            k);
    const uint32_t in[2] = {batch_inside(b, reached(b, big, small, k, w, pad), w->group),
                            batch_inside(b, small, 1)};
    const cd_graph_attr attr[] = {cd_autodiff_attr_ints("strides", w->n, w->dilation),
                                  cd_autodiff_attr_ints("dilations", w->n, w->stride),
                                  cd_autodiff_attr_ints("pads", 2 * w->n, pad),
                                  cd_autodiff_attr_int("group", w->group)};
    for (uint32_t d = 0; d < k->rank; d++) perm[d] = d < 2 ? 1 - d : d;
    return cd_autodiff_transpose(b, cd_autodiff_op(b, "Conv", 2, in, 4, attr), k->rank, perm);
}

/* Over all dimensions but the channels. */
static void bias(cd_autodiff_builder *b, uint32_t k) {
    if (!cd_autodiff_needs_grad(b, k)) return;
    const uint32_t rank = cd_autodiff_shape(b, cd_autodiff_output_grad(b, 0))->rank;
    cd_autodiff_accumulate(b, k,
                           cd_autodiff_reduce(b, "ReduceSum", cd_autodiff_output_grad(b, 0),
                                              ((1U << rank) - 1) & ~2U, false));
}

/* By how much the transposed convolution of dy is shorter than x. */
static void output_padding(const cd_autodiff_builder *b, const window *w, const cd_graph_shape *x,
                           const cd_graph_shape *k, int64_t *more) {
    const cd_graph_shape *y = cd_autodiff_shape(b, cd_autodiff_output(b, 0));
    for (uint32_t d = 0; d < w->n; d++) {
        const int64_t reach = (k->dim[d + 2] - 1) * w->dilation[d] + 1;
        more[d] = x->dim[d + 2] -
                  ((y->dim[d + 2] - 1) * w->stride[d] + reach - w->pad[d] - w->pad[d + w->n]);
    }
}

/* The weight with its kernel turned by 180 degrees and its channels exchanged within each group:
 * [M, C/g, ..] -> [C, M/g, ..]. */
static uint32_t turned(cd_autodiff_builder *b, uint32_t w, int64_t group) {
    const cd_graph_shape k = *cd_autodiff_shape(b, w);
    int64_t perm[CD_GRAPH_MAX_RANK], from[MOST], to[MOST], axis[MOST], step[MOST];
    cd_graph_shape apart = {k.rank + 1, {group, k.dim[0] / group, k.dim[1]}};
    cd_graph_shape whole = {k.rank, {group * k.dim[1], k.dim[0] / group}};
    uint32_t n = 0;
    for (uint32_t d = 2; d < k.rank; d++) {
        apart.dim[d + 1] = whole.dim[d] = k.dim[d];
        if (k.dim[d] == 1) continue;
        axis[n] = d;
        from[n] = step[n] = -1;
        to[n++] = -k.dim[d] - 1;
    }
    if (n)
        w = cd_autodiff_op(b, "Slice", 5,
                           (const uint32_t[]){w, cd_autodiff_const_ints(b, n, from),
                                              cd_autodiff_const_ints(b, n, to),
                                              cd_autodiff_const_ints(b, n, axis),
                                              cd_autodiff_const_ints(b, n, step)},
                           0, NULL);
    if (group == 1) {
        for (uint32_t d = 0; d < k.rank; d++) perm[d] = d < 2 ? 1 - d : d;
        return cd_autodiff_transpose(b, w, k.rank, perm);
    }
    for (uint32_t d = 0; d < apart.rank; d++) perm[d] = d == 1 ? 2 : d == 2 ? 1 : d;
    return cd_autodiff_reshape(
        b, cd_autodiff_transpose(b, cd_autodiff_reshape(b, w, &apart), apart.rank, perm), &whole);
}

/* A kernel of one element: multiply first, then put the elements where the strides took them
 * from. */
static uint32_t point_back(cd_autodiff_builder *b, uint32_t dy, const window *w,
                           const cd_graph_shape *x) {
    const cd_graph_attr group = cd_autodiff_attr_int("group", w->group);
    int64_t start[CD_GRAPH_MAX_RANK] = {0}, step[CD_GRAPH_MAX_RANK] = {1, 1};
    for (uint32_t d = 0; d < w->n; d++) step[d + 2] = w->stride[d];
    const uint32_t d = cd_autodiff_op(
        b, "Conv", 2, (const uint32_t[]){dy, turned(b, cd_autodiff_input(b, 1), w->group)}, 1,
        &group);
    return cd_autodiff_unslice(b, d, start, step, x);
}

/* Without strides the gradient of the data is a convolution with the turned weight. False where the
 * padding is wider than the kernel. */
static bool turned_conv(cd_autodiff_builder *b, uint32_t dy, const window *w,
                        const cd_graph_shape *k) {
    int64_t pad[2 * MOST];
    if (!dense(w) || k->rank == CD_GRAPH_MAX_RANK) return false;
    for (uint32_t d = 0; d < 2 * w->n; d++) {
        pad[d] = (k->dim[d % w->n + 2] - 1) * w->dilation[d % w->n] - w->pad[d];
        if (pad[d] < 0) return false;
    }
    const cd_graph_attr attr[] = {cd_autodiff_attr_ints("dilations", w->n, w->dilation),
                                  cd_autodiff_attr_ints("pads", 2 * w->n, pad),
                                  cd_autodiff_attr_int("group", w->group)};
    cd_autodiff_accumulate(
        b, 0,
        cd_autodiff_op(b, "Conv", 2,
                       (const uint32_t[]){dy, turned(b, cd_autodiff_input(b, 1), w->group)}, 3,
                       attr));
    return true;
}

/* The bias, the weight, then the data in the cheapest of three forms: a kernel of one element with
 * strides, a convolution with the turned weight where no stride is above 1, else a transposed
 * convolution. */
static void conv(cd_autodiff_builder *b) {
    const window w = window_of(b);
    const uint32_t dy = cd_autodiff_output_grad(b, 0);
    const cd_graph_shape x = *cd_autodiff_shape(b, cd_autodiff_input(b, 0)),
                         k = *cd_autodiff_shape(b, cd_autodiff_input(b, 1));
    int64_t more[MOST];
    bias(b, 2);
    if (cd_autodiff_needs_grad(b, 1))
        cd_autodiff_accumulate(b, 1, weight(b, cd_autodiff_input(b, 0), dy, &k, &w));
    if (!cd_autodiff_needs_grad(b, 0)) return;
    if (is_point(&w, &k) && !dense(&w) && x.rank < CD_GRAPH_MAX_RANK) {
        cd_autodiff_accumulate(b, 0, point_back(b, dy, &w, &x));
        return;
    }
    if (turned_conv(b, dy, &w, &k)) return;
    output_padding(b, &w, &x, &k, more);
    const cd_graph_attr attr[] = {cd_autodiff_attr_ints("strides", w.n, w.stride),
                                  cd_autodiff_attr_ints("dilations", w.n, w.dilation),
                                  cd_autodiff_attr_ints("pads", 2 * w.n, w.pad),
                                  cd_autodiff_attr_ints("output_padding", w.n, more),
                                  cd_autodiff_attr_int("group", w.group)};
    cd_autodiff_accumulate(b, 0,
                           cd_autodiff_op(b, "ConvTranspose", 2,
                                          (const uint32_t[]){dy, cd_autodiff_input(b, 1)}, 5,
                                          attr));
}

/* The data's gradient is a plain convolution of dy; the weight's is that of a convolution with the
 * roles of x and dy exchanged. */
static void conv_transpose(cd_autodiff_builder *b) {
    const window w = window_of(b);
    const uint32_t dy = cd_autodiff_output_grad(b, 0), x = cd_autodiff_input(b, 0);
    const cd_graph_shape s = *cd_autodiff_shape(b, x),
                         k = *cd_autodiff_shape(b, cd_autodiff_input(b, 1));
    int64_t none[CD_GRAPH_MAX_RANK] = {0};
    bias(b, 2);
    if (cd_autodiff_needs_grad(b, 1)) cd_autodiff_accumulate(b, 1, weight(b, dy, x, &k, &w));
    if (!cd_autodiff_needs_grad(b, 0)) return;
    const cd_graph_attr attr[] = {cd_autodiff_attr_ints("strides", w.n, w.stride),
                                  cd_autodiff_attr_ints("dilations", w.n, w.dilation),
                                  cd_autodiff_attr_ints("pads", 2 * w.n, w.pad),
                                  cd_autodiff_attr_int("group", w.group)};
    const uint32_t dx =
        cd_autodiff_op(b, "Conv", 2, (const uint32_t[]){dy, cd_autodiff_input(b, 1)}, 4, attr);
    /* output padding beyond a stride gives more */
    cd_autodiff_accumulate(b, 0, cd_autodiff_slice(b, dx, none, &s));
}

const cd_autodiff_rule cd_autodiff_rules_conv[] = {
    {"Conv", conv}, {"ConvTranspose", conv_transpose}, {NULL, NULL}};
