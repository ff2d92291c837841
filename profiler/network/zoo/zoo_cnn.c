/* Plain and densely connected CNNs: AlexNet (torchvision's, Krizhevsky 2014), VGG (Simonyan 2014),
 * SqueezeNet (Iandola 2016), DenseNet (Huang 2016). */
#include "profiler/network/zoo/zoo.h"
#include "profiler/network/zoo/zoo_internal.h"

/* Dual path networks (Chen 2017): of each block's result a part is added to what was there, as in
 * residual networks, and a part is put behind it, as in densely connected ones. */

typedef struct {
    uint32_t sum, dense; /* dense: CD_GRAPH_NONE before the first block */
} paths;

/* Channels of a stage: inside of its blocks, of the sum, and what each block puts behind. */
typedef struct {
    int64_t inner, sum, grow, stride;
} stage;

static uint32_t join(cd_zoo_builder *z, paths p) {
    return p.dense == CD_GRAPH_NONE ? p.sum
                                    : cd_zoo_concat(z, 2, (const uint32_t[]){p.sum, p.dense}, 1);
}

static uint32_t bn_relu_conv_dpn(cd_zoo_builder *z, uint32_t x, int64_t out, cd_zoo_window w,
                                 int64_t groups) {
    return cd_zoo_conv(z, cd_zoo_relu(z, cd_zoo_batch_norm(z, x)), out, w, groups);
}

static uint32_t channels(cd_zoo_builder *z, uint32_t x, int64_t from, int64_t to) {
    const uint32_t in[4] = {x, cd_zoo_const_ints(z, 1, &from), cd_zoo_const_ints(z, 1, &to),
                            cd_zoo_const_ints(z, 1, (const int64_t[]){1})};
    return cd_zoo_op(z, "Slice", 4, in, 0, NULL);
}

static paths cut(cd_zoo_builder *z, uint32_t x, int64_t sum) {
    return (paths){channels(z, x, 0, sum), channels(z, x, sum, cd_zoo_dim(z, x, 1))};
}

static paths block(cd_zoo_builder *z, paths p, stage s, bool first) {
    const int64_t stride = first ? s.stride : 1;
    const uint32_t in = join(z, p);
    if (first)
        p = cut(z, bn_relu_conv_dpn(z, in, s.sum + 2 * s.grow, (cd_zoo_window){1, stride, 0}, 1),
                s.sum);
    uint32_t x = bn_relu_conv_dpn(z, in, s.inner, (cd_zoo_window){1, 1, 0}, 1);
    x = bn_relu_conv_dpn(z, x, s.inner, (cd_zoo_window){3, stride, 1}, 32);
    const paths q =
        cut(z, bn_relu_conv_dpn(z, x, s.sum + s.grow, (cd_zoo_window){1, 1, 0}, 1), s.sum);
    return (paths){cd_zoo_binary(z, "Add", p.sum, q.sum),
                   cd_zoo_concat(z, 2, (const uint32_t[]){p.dense, q.dense}, 1)};
}

void cd_zoo_dpn68(cd_zoo_builder *z, int64_t unused) {
    static const stage s[] = {
        {128, 64, 16, 1}, {256, 128, 32, 2}, {512, 256, 32, 2}, {1024, 512, 64, 2}};
    static const int n[] = {3, 4, 12, 3};
    (void)unused;
    const uint32_t x = cd_zoo_conv_bn_relu(z, cd_zoo_image(z), 10, (cd_zoo_window){3, 2, 1}, 1);
    paths p = {cd_zoo_max_pool(z, x, (cd_zoo_window){3, 2, 1}, false), CD_GRAPH_NONE};
    for (int k = 0; k < 4; k++)
        for (int b = 0; b < n[k]; b++) p = block(z, p, s[k], !b);
    cd_zoo_classify(z, cd_zoo_relu(z, cd_zoo_batch_norm(z, join(z, p))), 1000);
}

/* The list of built-in networks, for people and for programs. */

void cd_zoo_print_text(cd_buf *out) {
    cd_buf_putf(out, "%-20s %-12s %s\n", "network", "family", "size as published");
    for (size_t k = 0; k < cd_zoo_count(); k++) {
        const cd_zoo_entry *e = cd_zoo_at(k);
        cd_buf_putf(out, "%-20s %-12s %lld %s\n", e->name, e->family, (long long)e->size, e->what);
    }
}

void cd_zoo_print_json(cd_buf *out) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_json_write_key(&w, "networks");
    cd_json_write_open(&w, '[');
    for (size_t k = 0; k < cd_zoo_count(); k++) {
        const cd_zoo_entry *e = cd_zoo_at(k);
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "name", e->name);
        cd_json_write_member_str(&w, "family", e->family);
        cd_json_write_member_int(&w, "size", e->size);
        cd_json_write_member_str(&w, "unit", e->what);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}

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
