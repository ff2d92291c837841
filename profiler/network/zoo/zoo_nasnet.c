/* NASNet-A large (Zoph 2018): cells that a search found. Each reads the two results before it.
 * Where TensorFlow pads an even edge on one side, this pads both: shapes and operations are the
 * same. */
#include "profiler/network/zoo/zoo_internal.h"

enum { FILTERS = 168, STEM = 96 };

/* ---- what cells are made of ---- */

static cd_zoo_window same(int64_t k, int64_t stride) { return (cd_zoo_window){k, stride, k / 2}; }

/* Twice: relu, a kernel for each channel, 1x1, batch norm. The first has the stride. */
static uint32_t separable(cd_zoo_builder *z, uint32_t x, int64_t out, int64_t k, int64_t stride) {
    for (int i = 0; i < 2; i++) {
        const int64_t in = cd_zoo_dim(z, x, 1);
        x = cd_zoo_conv(z, cd_zoo_relu(z, x), in, same(k, i ? 1 : stride), in);
        x = cd_zoo_batch_norm(z, cd_zoo_conv(z, x, out, same(1, 1), 1));
    }
    return x;
}

/* The mean of what is there: padding does not count. */
static uint32_t average(cd_zoo_builder *z, uint32_t x, int64_t k, int64_t stride) {
    const cd_graph_attr attr[] = {
        cd_zoo_attr_ints("kernel_shape", 2, (const int64_t[]){k, k}),
        cd_zoo_attr_ints("strides", 2, (const int64_t[]){stride, stride}),
        cd_zoo_attr_ints("pads", 4, (const int64_t[]){k / 2, k / 2, k / 2, k / 2}),
        cd_zoo_attr_int("count_include_pad", 0)};
    return cd_zoo_op(z, "AveragePool", 1, &x, 4, attr);
}

static uint32_t add(cd_zoo_builder *z, uint32_t a, uint32_t b) {
    return cd_zoo_binary(z, "Add", a, b);
}

static uint32_t fit(cd_zoo_builder *z, uint32_t x, int64_t out) {
    return cd_zoo_batch_norm(z, cd_zoo_conv(z, cd_zoo_relu(z, x), out, same(1, 1), 1));
}

/* One row and column further, zeros behind. */
static uint32_t shift(cd_zoo_builder *z, uint32_t x) {
    const int64_t end[] = {cd_zoo_dim(z, x, 2), cd_zoo_dim(z, x, 3)};
    const uint32_t in[4] = {x, cd_zoo_const_ints(z, 2, (const int64_t[]){1, 1}),
                            cd_zoo_const_ints(z, 2, end),
                            cd_zoo_const_ints(z, 2, (const int64_t[]){2, 3})};
    x = cd_zoo_op(z, "Slice", 4, in, 0, NULL);
    return cd_zoo_binary(z, "Pad", x,
                         cd_zoo_const_ints(z, 8, (const int64_t[]){0, 0, 0, 0, 0, 0, 1, 1}));
}

/* To half the edge: every second pixel makes half of the channels, those beside them the other
 * half. */
static uint32_t fit_half(cd_zoo_builder *z, uint32_t x, int64_t out) {
    x = cd_zoo_relu(z, x);
    const uint32_t a = cd_zoo_conv(z, average(z, x, 1, 2), out / 2, same(1, 1), 1);
    const uint32_t b = cd_zoo_conv(z, average(z, shift(z, x), 1, 2), out / 2, same(1, 1), 1);
    return cd_zoo_batch_norm(z, cd_zoo_concat(z, 2, (const uint32_t[]){a, b}, 1));
}

/* ---- the two cells ---- */

static uint32_t normal(cd_zoo_builder *z, uint32_t left, uint32_t right) {
    const int64_t c = cd_zoo_dim(z, right, 1);
    const uint32_t y[6] = {left,
                           add(z, separable(z, right, c, 5, 1), separable(z, left, c, 3, 1)),
                           add(z, separable(z, left, c, 5, 1), separable(z, left, c, 3, 1)),
                           add(z, average(z, right, 3, 1), left),
                           add(z, average(z, left, 3, 1), average(z, left, 3, 1)),
                           add(z, separable(z, right, c, 3, 1), right)};
    return cd_zoo_concat(z, 6, y, 1);
}

static uint32_t reduction(cd_zoo_builder *z, uint32_t left, uint32_t right) {
    const int64_t c = cd_zoo_dim(z, right, 1);
    const uint32_t first = add(z, separable(z, right, c, 5, 2), separable(z, left, c, 7, 2));
    const uint32_t most = cd_zoo_max_pool(z, right, same(3, 2), false),
                   second = add(z, most, separable(z, left, c, 7, 2));
    const uint32_t y[4] = {second, add(z, average(z, right, 3, 2), separable(z, left, c, 5, 2)),
                           add(z, average(z, first, 3, 1), second),
                           add(z, separable(z, first, c, 3, 1), most)};
    return cd_zoo_concat(z, 4, y, 1);
}

/* ---- the network ---- */

typedef struct {
    uint32_t before, last;
} two;

static two after(two t, uint32_t x) { return (two){t.last, x}; }

/* Six cells of c channels. The first one reads a result of twice the edge. */
static two stage(cd_zoo_builder *z, two t, int64_t c) {
    t = after(t, normal(z, fit_half(z, t.before, c), fit(z, t.last, c)));
    for (int k = 0; k < 5; k++) t = after(t, normal(z, fit(z, t.before, c), fit(z, t.last, c)));
    return t;
}

/* The stage behind reads the cell before the last one, not the last one. */
static two halve(cd_zoo_builder *z, two t, int64_t c) {
    return (two){t.before, reduction(z, fit(z, t.before, c), fit(z, t.last, c))};
}

void cd_zoo_nasnet_large(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    const uint32_t x =
        cd_zoo_batch_norm(z, cd_zoo_conv(z, cd_zoo_image(z), STEM, (cd_zoo_window){3, 2, 0}, 1));
    two t = {x, reduction(z, x, fit(z, x, FILTERS / 4))};
    t = after(t, reduction(z, fit_half(z, t.before, FILTERS / 2), fit(z, t.last, FILTERS / 2)));
    t = stage(z, t, FILTERS);
    t = stage(z, halve(z, t, 2 * FILTERS), 2 * FILTERS);
    t = stage(z, halve(z, t, 4 * FILTERS), 4 * FILTERS);
    cd_zoo_classify(z, cd_zoo_relu(z, t.last), 1000);
}
