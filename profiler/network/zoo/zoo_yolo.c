/* Detectors: YOLOv2 (Redmon 2017), YOLOv3 and its tiny form (Redmon 2018), YOLOv5 of release 6
 * (Ultralytics). Boxes are left as the last convolutions give them: what picks them differs from
 * one program to the next. */
#include "profiler/network/zoo/zoo_internal.h"

/* 80 classes, 4 edges, 1 score for each box of a cell. */
enum { BOX = 85 };

static cd_zoo_window same(int64_t k, int64_t stride) { return (cd_zoo_window){k, stride, k / 2}; }

static void detect(cd_zoo_builder *z, uint32_t x, int64_t boxes) {
    cd_zoo_result(z, cd_zoo_conv_bias(z, x, boxes * BOX, same(1, 1), 1));
}

static uint32_t leaky(cd_zoo_builder *z, uint32_t x, int64_t out, int64_t k, int64_t stride) {
    const cd_graph_attr alpha = cd_zoo_attr_float("alpha", 0.1);
    x = cd_zoo_batch_norm(z, cd_zoo_conv(z, x, out, same(k, stride), 1));
    return cd_zoo_op(z, "LeakyRelu", 1, &x, 1, &alpha);
}

static uint32_t upsample(cd_zoo_builder *z, uint32_t x) {
    const int64_t size[4] = {z->batch, cd_zoo_dim(z, x, 1), cd_zoo_dim(z, x, 2) * 2,
                             cd_zoo_dim(z, x, 3) * 2};
    const uint32_t in[4] = {x, CD_GRAPH_NONE, CD_GRAPH_NONE, cd_zoo_const_ints(z, 4, size)};
    const cd_graph_attr attr[] = {
        cd_zoo_attr_string("mode", "nearest"),
        cd_zoo_attr_string("coordinate_transformation_mode", "asymmetric"),
        cd_zoo_attr_string("nearest_mode", "floor")};
    return cd_zoo_op(z, "Resize", 4, in, 3, attr);
}

static uint32_t join(cd_zoo_builder *z, uint32_t a, uint32_t b) {
    return cd_zoo_concat(z, 2, (const uint32_t[]){a, b}, 1);
}

/* n times: half the channels by 1x1, all of them by 3x3. */
static uint32_t narrow_wide(cd_zoo_builder *z, uint32_t x, int64_t out, int n) {
    for (int k = 0; k < n; k++) x = leaky(z, leaky(z, x, out / 2, 1, 1), out, 3, 1);
    return x;
}

/* ---- YOLOv2: Darknet-19, and what it saw before the last halving ---- */

void cd_zoo_yolov2(cd_zoo_builder *z, int64_t unused) {
    /* after the first 3x3 of 32, 64, ..., 1024 channels */
    static const int pairs[] = {0, 0, 1, 1, 2, 2};
    const cd_graph_attr two = cd_zoo_attr_int("blocksize", 2);
    uint32_t x = cd_zoo_image(z), route = x;
    (void)unused;
    for (int k = 0; k < 6; k++) {
        if (k) x = cd_zoo_max_pool(z, x, (cd_zoo_window){2, 2, 0}, false);
        x = narrow_wide(z, leaky(z, x, 32LL << k, 3, 1), 32LL << k, pairs[k]);
        if (k == 4) route = x;
    }
    x = leaky(z, leaky(z, x, 1024, 3, 1), 1024, 3, 1);
    route = leaky(z, route, 64, 1, 1);
    route = cd_zoo_op(z, "SpaceToDepth", 1, &route, 1, &two);
    detect(z, leaky(z, join(z, route, x), 1024, 3, 1), 5);
}

/* ---- YOLOv3: Darknet-53, boxes of three sizes ---- */

static uint32_t darknet_stage(cd_zoo_builder *z, uint32_t x, int64_t out, int n) {
    x = leaky(z, x, out, 3, 2);
    for (int k = 0; k < n; k++) x = cd_zoo_binary(z, "Add", x, narrow_wide(z, x, out, 1));
    return x;
}

/* Five convolutions, which the next scale reads, and the boxes. */
static uint32_t head(cd_zoo_builder *z, uint32_t x, int64_t wide) {
    x = leaky(z, narrow_wide(z, x, wide, 2), wide / 2, 1, 1);
    detect(z, leaky(z, x, wide, 3, 1), 3);
    return x;
}

void cd_zoo_yolov3(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    uint32_t x =
        darknet_stage(z, darknet_stage(z, leaky(z, cd_zoo_image(z), 32, 3, 1), 64, 1), 128, 2);
    const uint32_t fine = darknet_stage(z, x, 256, 8), middle = darknet_stage(z, fine, 512, 8);
    x = head(z, darknet_stage(z, middle, 1024, 4), 1024);
    x = head(z, join(z, upsample(z, leaky(z, x, 256, 1, 1)), middle), 512);
    head(z, join(z, upsample(z, leaky(z, x, 128, 1, 1)), fine), 256);
}

/* Pool 2x2 of stride 1, one row and column of padding behind: the size stays. */
static uint32_t pool_in_place(cd_zoo_builder *z, uint32_t x) {
    const cd_graph_attr attr[] = {cd_zoo_attr_ints("kernel_shape", 2, (const int64_t[]){2, 2}),
                                  cd_zoo_attr_ints("strides", 2, (const int64_t[]){1, 1}),
                                  cd_zoo_attr_ints("pads", 4, (const int64_t[]){0, 0, 1, 1})};
    return cd_zoo_op(z, "MaxPool", 1, &x, 3, attr);
}

void cd_zoo_yolov3_tiny(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    uint32_t x = cd_zoo_image(z), route = x;
    for (int64_t c = 16; c <= 512; c *= 2) {
        x = leaky(z, x, c, 3, 1);
        if (c == 256) route = x;
        x = c < 512 ? cd_zoo_max_pool(z, x, (cd_zoo_window){2, 2, 0}, false) : pool_in_place(z, x);
    }
    x = leaky(z, leaky(z, x, 1024, 3, 1), 256, 1, 1);
    detect(z, leaky(z, x, 512, 3, 1), 3);
    x = join(z, upsample(z, leaky(z, x, 128, 1, 1)), route);
    detect(z, leaky(z, x, 256, 3, 1), 3);
}

/* ---- YOLOv5 ---- */

static uint32_t silu(cd_zoo_builder *z, uint32_t x, int64_t out, cd_zoo_window w) {
    x = cd_zoo_batch_norm(z, cd_zoo_conv(z, x, out, w, 1));
    return cd_zoo_binary(z, "Mul", x, cd_zoo_unary(z, "Sigmoid", x));
}

/* Half of the channels go through n bottlenecks, half go past them. */
static uint32_t cross_stage(cd_zoo_builder *z, uint32_t in, int64_t out, int n, bool add) {
    const int64_t half = out / 2;
    uint32_t x = silu(z, in, half, same(1, 1));
    for (int k = 0; k < n; k++) {
        const uint32_t y = silu(z, silu(z, x, half, same(1, 1)), half, same(3, 1));
        x = add ? cd_zoo_binary(z, "Add", x, y) : y;
    }
    return silu(z, join(z, x, silu(z, in, half, same(1, 1))), out, same(1, 1));
}

/* Pools of 5, 9 and 13 pixels: three of 5, one after the other. */
static uint32_t pyramid_pool(cd_zoo_builder *z, uint32_t x) {
    const int64_t wide = cd_zoo_dim(z, x, 1);
    uint32_t p[4] = {silu(z, x, wide / 2, same(1, 1))};
    for (int k = 1; k < 4; k++) p[k] = cd_zoo_max_pool(z, p[k - 1], same(5, 1), false);
    return silu(z, cd_zoo_concat(z, 4, p, 1), wide, same(1, 1));
}

/* c: channels of the first convolution, 16 (n) or 32 (s). */
void cd_zoo_yolov5(cd_zoo_builder *z, int64_t c) {
    uint32_t x = silu(z, cd_zoo_image(z), c, (cd_zoo_window){6, 2, 2});
    x = cross_stage(z, silu(z, x, 2 * c, same(3, 2)), 2 * c, 1, true);
    const uint32_t p3 = cross_stage(z, silu(z, x, 4 * c, same(3, 2)), 4 * c, 2, true);
    const uint32_t p4 = cross_stage(z, silu(z, p3, 8 * c, same(3, 2)), 8 * c, 3, true);
    x = pyramid_pool(z, cross_stage(z, silu(z, p4, 16 * c, same(3, 2)), 16 * c, 1, true));
    const uint32_t n5 = silu(z, x, 8 * c, same(1, 1));
    const uint32_t n4 =
        silu(z, cross_stage(z, join(z, upsample(z, n5), p4), 8 * c, 1, false), 4 * c, same(1, 1));
    x = cross_stage(z, join(z, upsample(z, n4), p3), 4 * c, 1, false);
    detect(z, x, 3);
    x = cross_stage(z, join(z, silu(z, x, 4 * c, same(3, 2)), n4), 8 * c, 1, false);
    detect(z, x, 3);
    detect(z, cross_stage(z, join(z, silu(z, x, 8 * c, same(3, 2)), n5), 16 * c, 1, false), 3);
}
