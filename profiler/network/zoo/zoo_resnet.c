/* Residual networks: He et al. 2015 (v1.5: the stride in the 3x3), Xie et al. 2016, Zagoruyko 2016,
 * Tran et al. 2017. */
#include "profiler/network/zoo/zoo_internal.h"

/* A bottleneck's inner width and groups; expansion is 4. */
typedef struct {
    int64_t width, groups;
} wide;

static uint32_t shortcut(cd_zoo_builder *z, uint32_t x, int64_t out, int64_t stride) {
    if (stride == 1 && cd_zoo_dim(z, x, 1) == out) return x;
    return cd_zoo_batch_norm(z, cd_zoo_conv(z, x, out, (cd_zoo_window){1, stride, 0}, 1));
}

static uint32_t basic(cd_zoo_builder *z, uint32_t x, int64_t out, int64_t stride) {
    const uint32_t a = cd_zoo_conv_bn_relu(z, x, out, (cd_zoo_window){3, stride, 1}, 1);
    const uint32_t b = cd_zoo_batch_norm(z, cd_zoo_conv(z, a, out, (cd_zoo_window){3, 1, 1}, 1));
    return cd_zoo_relu(z, cd_zoo_binary(z, "Add", b, shortcut(z, x, out, stride)));
}

static uint32_t bottleneck(cd_zoo_builder *z, uint32_t x, int64_t out, int64_t stride, wide w) {
    const uint32_t a = cd_zoo_conv_bn_relu(z, x, w.width, (cd_zoo_window){1, 1, 0}, 1);
    const uint32_t b = cd_zoo_conv_bn_relu(z, a, w.width, (cd_zoo_window){3, stride, 1}, w.groups);
    const uint32_t c = cd_zoo_batch_norm(z, cd_zoo_conv(z, b, out, (cd_zoo_window){1, 1, 0}, 1));
    return cd_zoo_relu(z, cd_zoo_binary(z, "Add", c, shortcut(z, x, out, stride)));
}

static uint32_t stem(cd_zoo_builder *z) {
    const uint32_t x = cd_zoo_conv_bn_relu(z, cd_zoo_image(z), 64, (cd_zoo_window){7, 2, 3}, 1);
    return cd_zoo_max_pool(z, x, (cd_zoo_window){3, 2, 1}, false);
}

/* Four stages of n[] blocks; base width 64, doubled by each stage. */
static void stages(cd_zoo_builder *z, const int *n, bool deep, int64_t per_64, int64_t groups) {
    uint32_t x = stem(z);
    for (int s = 0; s < 4; s++) {
        const int64_t base = 64LL << s;
        for (int k = 0; k < n[s]; k++) {
            const int64_t stride = s && !k ? 2 : 1;
            x = deep ? bottleneck(z, x, base * 4, stride, (wide){base * per_64 / 64, groups})
                     : basic(z, x, base, stride);
        }
    }
    cd_zoo_classify(z, x, 1000);
}

void cd_zoo_resnet(cd_zoo_builder *z, int64_t depth) {
    static const int n18[] = {2, 2, 2, 2};
    static const int n34[] = {3, 4, 6, 3};
    static const int n101[] = {3, 4, 23, 3};
    static const int n152[] = {3, 8, 36, 3};
    stages(z,
           depth == 18    ? n18
           : depth == 101 ? n101
           : depth == 152 ? n152
                          : n34,
           depth >= 50, 64, 1);
}

void cd_zoo_resnext50(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    stages(z, (const int[]){3, 4, 6, 3}, true, 128, 32); /* 32 groups of 4 */
}

void cd_zoo_wide_resnet50(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    stages(z, (const int[]){3, 4, 6, 3}, true, 128, 1);
}

/* ---- three dimensions: frames, height, width ---- */

static uint32_t conv3(cd_zoo_builder *z, uint32_t x, int64_t out, const int64_t k[3],
                      const int64_t stride[3]) {
    const uint32_t w =
        cd_zoo_weight(z, 5, (const int64_t[]){out, cd_zoo_dim(z, x, 1), k[0], k[1], k[2]});
    const int64_t p[3] = {k[0] / 2, k[1] / 2, k[2] / 2};
    const cd_graph_attr attr[] = {
        cd_zoo_attr_ints("kernel_shape", 3, k), cd_zoo_attr_ints("strides", 3, stride),
        cd_zoo_attr_ints("pads", 6, (const int64_t[]){p[0], p[1], p[2], p[0], p[1], p[2]})};
    return cd_zoo_batch_norm(z, cd_zoo_op(z, "Conv", 2, (const uint32_t[]){x, w}, 3, attr));
}

static uint32_t basic3(cd_zoo_builder *z, uint32_t x, int64_t out, int64_t stride) {
    const int64_t k[3] = {3, 3, 3}, one[3] = {1, 1, 1}, s[3] = {stride, stride, stride};
    const uint32_t a = cd_zoo_relu(z, conv3(z, x, out, k, s));
    const uint32_t b = conv3(z, a, out, k, one);
    const uint32_t by = stride == 1 && cd_zoo_dim(z, x, 1) == out ? x : conv3(z, x, out, one, s);
    return cd_zoo_relu(z, cd_zoo_binary(z, "Add", b, by));
}

void cd_zoo_resnet3d(cd_zoo_builder *z, int64_t depth) {
    static const int n18[] = {2, 2, 2, 2}, n34[] = {3, 4, 6, 3};
    const int *n = depth == 18 ? n18 : n34;
    uint32_t x =
        cd_zoo_input(z, "input", CD_F32, 5, (const int64_t[]){z->batch, 3, 16, z->size, z->size});
    x = cd_zoo_relu(z, conv3(z, x, 64, (const int64_t[]){3, 7, 7}, (const int64_t[]){1, 2, 2}));
    for (int s = 0; s < 4; s++)
        for (int k = 0; k < n[s]; k++) x = basic3(z, x, 64LL << s, s && !k ? 2 : 1);
    cd_zoo_classify(z, x, 400);
}
