/* Plain and densely connected CNNs: AlexNet (torchvision's, Krizhevsky 2014), VGG (Simonyan 2014),
 * SqueezeNet (Iandola 2016), DenseNet (Huang 2016). */
#include "profiler/network/zoo/zoo_internal.h"

static uint32_t conv_relu(cd_zoo_builder *z, uint32_t x, int64_t out, cd_zoo_window w) {
    return cd_zoo_relu(z, cd_zoo_conv_bias(z, x, out, w, 1));
}

static uint32_t fc_relu(cd_zoo_builder *z, uint32_t x, int64_t out) {
    return cd_zoo_relu(z, cd_zoo_fully_connected(z, x, out));
}

void cd_zoo_alexnet(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    const cd_zoo_window half = {3, 2, 0};
    uint32_t x = cd_zoo_max_pool(z, conv_relu(z, cd_zoo_image(z), 64, (cd_zoo_window){11, 4, 2}),
                                 half, false);
    x = cd_zoo_max_pool(z, conv_relu(z, x, 192, (cd_zoo_window){5, 1, 2}), half, false);
    x = conv_relu(z, x, 384, (cd_zoo_window){3, 1, 1});
    x = conv_relu(z, x, 256, (cd_zoo_window){3, 1, 1});
    x = cd_zoo_max_pool(z, conv_relu(z, x, 256, (cd_zoo_window){3, 1, 1}), half, false);
    x = fc_relu(z, fc_relu(z, cd_zoo_flatten(z, x), 4096), 4096);
    cd_zoo_result(z, cd_zoo_fully_connected(z, x, 1000));
}

void cd_zoo_vgg(cd_zoo_builder *z, int64_t depth) {
    static const int n11[] = {1, 1, 2, 2, 2};
    static const int n13[] = {2, 2, 2, 2, 2};
    static const int n16[] = {2, 2, 3, 3, 3};
    static const int n19[] = {2, 2, 4, 4, 4};
    const int *n = depth == 11 ? n11 : depth == 13 ? n13 : depth == 16 ? n16 : n19;
    uint32_t x = cd_zoo_image(z);
    for (int s = 0; s < 5; s++) {
        for (int k = 0; k < n[s]; k++)
            x = conv_relu(z, x, s < 4 ? 64LL << s : 512, (cd_zoo_window){3, 1, 1});
        x = cd_zoo_max_pool(z, x, (cd_zoo_window){2, 2, 0}, false);
    }
    x = fc_relu(z, fc_relu(z, cd_zoo_flatten(z, x), 4096), 4096);
    cd_zoo_result(z, cd_zoo_fully_connected(z, x, 1000));
}

/* ---- SqueezeNet ---- */

static uint32_t fire(cd_zoo_builder *z, uint32_t x, int64_t squeeze, int64_t expand) {
    const uint32_t s = conv_relu(z, x, squeeze, (cd_zoo_window){1, 1, 0});
    const uint32_t one = conv_relu(z, s, expand, (cd_zoo_window){1, 1, 0});
    const uint32_t three = conv_relu(z, s, expand, (cd_zoo_window){3, 1, 1});
    return cd_zoo_concat(z, 2, (const uint32_t[]){one, three}, 1);
}

/* Version 1.0 and 1.1 differ in the first convolution and in where the image is halved. */
void cd_zoo_squeezenet(cd_zoo_builder *z, int64_t minor) {
    const cd_zoo_window half = {3, 2, 0};
    /* Fires before which the image is halved: 2, 5, 9 in version 1.0; 2, 4, 6 in 1.1. */
    const int second = minor ? 4 : 5, third = minor ? 6 : 9;
    uint32_t x =
        conv_relu(z, cd_zoo_image(z), minor ? 64 : 96, minor ? half : (cd_zoo_window){7, 2, 0});
    for (int k = 2; k <= 9; k++) {
        if (k == 2 || k == second || k == third) x = cd_zoo_max_pool(z, x, half, true);
        const int64_t squeeze = 16 * (k / 2);
        x = fire(z, x, squeeze, squeeze * 4);
    }
    x = conv_relu(z, x, 1000, (cd_zoo_window){1, 1, 0});
    cd_zoo_result(z, cd_zoo_flatten(z, cd_zoo_global_pool(z, x)));
}

/* ---- DenseNet ---- */

static uint32_t bn_relu_conv(cd_zoo_builder *z, uint32_t x, int64_t out, cd_zoo_window w) {
    return cd_zoo_conv(z, cd_zoo_relu(z, cd_zoo_batch_norm(z, x)), out, w, 1);
}

/* Each layer's result is concatenated to all before it; between stages the channels are halved and
 * the image too. */
void cd_zoo_densenet(cd_zoo_builder *z, int64_t depth) {
    static const int n121[] = {6, 12, 24, 16};
    static const int n161[] = {6, 12, 36, 24};
    static const int n169[] = {6, 12, 32, 32};
    static const int n201[] = {6, 12, 48, 32};
    const int *n = depth == 121 ? n121 : depth == 161 ? n161 : depth == 169 ? n169 : n201;
    const int64_t growth = depth == 161 ? 48 : 32;
    uint32_t x = cd_zoo_conv_bn_relu(z, cd_zoo_image(z), 2 * growth, (cd_zoo_window){7, 2, 3}, 1);
    x = cd_zoo_max_pool(z, x, (cd_zoo_window){3, 2, 1}, false);
    for (int s = 0; s < 4; s++) {
        for (int k = 0; k < n[s]; k++) {
            const uint32_t a = bn_relu_conv(z, x, 4 * growth, (cd_zoo_window){1, 1, 0});
            const uint32_t b = bn_relu_conv(z, a, growth, (cd_zoo_window){3, 1, 1});
            x = cd_zoo_concat(z, 2, (const uint32_t[]){x, b}, 1);
        }
        if (s == 3) break;
        x = bn_relu_conv(z, x, cd_zoo_dim(z, x, 1) / 2, (cd_zoo_window){1, 1, 0});
        x = cd_zoo_avg_pool(z, x, (cd_zoo_window){2, 2, 0});
    }
    cd_zoo_classify(z, cd_zoo_relu(z, cd_zoo_batch_norm(z, x)), 1000);
}
