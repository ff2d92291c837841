/* Inception v1 (Szegedy 2014, with batch normalisation as torchvision's GoogLeNet) and v3 (Szegedy
 * 2015). */
#include "profiler/network/zoo/zoo_internal.h"

static const cd_zoo_window one = {1, 1, 0}, three = {3, 1, 1}, half = {3, 2, 0};

static uint32_t cbr(cd_zoo_builder *z, uint32_t x, int64_t out, cd_zoo_window w) {
    return cd_zoo_conv_bn_relu(z, x, out, w, 1);
}
static uint32_t rect(cd_zoo_builder *z, uint32_t x, int64_t out, int64_t kh, int64_t kw) {
    return cd_zoo_relu(z, cd_zoo_batch_norm(z, cd_zoo_conv_rect(z, x, out, kh, kw)));
}

/* ---- v1 ---- */

/* 1x1; 1x1 -> 3x3; 1x1 -> 3x3 (the paper's 5x5); pool -> 1x1 */
static uint32_t block_v1(cd_zoo_builder *z, uint32_t x, const int64_t c[6]) {
    const uint32_t a = cbr(z, x, c[0], one);
    const uint32_t b = cbr(z, cbr(z, x, c[1], one), c[2], three);
    const uint32_t d = cbr(z, cbr(z, x, c[3], one), c[4], three);
    const uint32_t e = cbr(z, cd_zoo_max_pool(z, x, three, true), c[5], one);
    return cd_zoo_concat(z, 4, (const uint32_t[]){a, b, d, e}, 1);
}

void cd_zoo_inception_v1(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    static const int64_t c[][6] = {{64, 96, 128, 16, 32, 32},     {128, 128, 192, 32, 96, 64},
                                   {192, 96, 208, 16, 48, 64},    {160, 112, 224, 24, 64, 64},
                                   {128, 128, 256, 24, 64, 64},   {112, 144, 288, 32, 64, 64},
                                   {256, 160, 320, 32, 128, 128}, {256, 160, 320, 32, 128, 128},
                                   {384, 192, 384, 48, 128, 128}};
    uint32_t x =
        cd_zoo_max_pool(z, cbr(z, cd_zoo_image(z), 64, (cd_zoo_window){7, 2, 3}), half, true);
    x = cd_zoo_max_pool(z, cbr(z, cbr(z, x, 64, one), 192, three), half, true);
    for (int k = 0; k < 9; k++) {
        x = block_v1(z, x, c[k]);
        if (k == 1) x = cd_zoo_max_pool(z, x, half, true);
        if (k == 6) x = cd_zoo_max_pool(z, x, (cd_zoo_window){2, 2, 0}, true);
    }
    cd_zoo_classify(z, x, 1000);
}

/* ---- v3, block names as in the paper's code ---- */

static uint32_t block_a(cd_zoo_builder *z, uint32_t x, int64_t pool) {
    const uint32_t a = cbr(z, x, 64, one);
    const uint32_t b = cbr(z, cbr(z, x, 48, one), 64, (cd_zoo_window){5, 1, 2});
    const uint32_t c = cbr(z, cbr(z, cbr(z, x, 64, one), 96, three), 96, three);
    const uint32_t d = cbr(z, cd_zoo_avg_pool(z, x, three), pool, one);
    return cd_zoo_concat(z, 4, (const uint32_t[]){a, b, c, d}, 1);
}

static uint32_t block_b(cd_zoo_builder *z, uint32_t x) {
    const uint32_t a = cbr(z, x, 384, half);
    const uint32_t b = cbr(z, cbr(z, cbr(z, x, 64, one), 96, three), 96, half);
    return cd_zoo_concat(z, 3, (const uint32_t[]){a, b, cd_zoo_max_pool(z, x, half, false)}, 1);
}

static uint32_t block_c(cd_zoo_builder *z, uint32_t x, int64_t c) {
    const uint32_t a = cbr(z, x, 192, one);
    const uint32_t b = rect(z, rect(z, cbr(z, x, c, one), c, 1, 7), 192, 7, 1);
    uint32_t d = rect(z, rect(z, cbr(z, x, c, one), c, 7, 1), c, 1, 7);
    d = rect(z, rect(z, d, c, 7, 1), 192, 1, 7);
    const uint32_t e = cbr(z, cd_zoo_avg_pool(z, x, three), 192, one);
    return cd_zoo_concat(z, 4, (const uint32_t[]){a, b, d, e}, 1);
}

static uint32_t block_d(cd_zoo_builder *z, uint32_t x) {
    const uint32_t a = cbr(z, cbr(z, x, 192, one), 320, half);
    const uint32_t b =
        cbr(z, rect(z, rect(z, cbr(z, x, 192, one), 192, 1, 7), 192, 7, 1), 192, half);
    return cd_zoo_concat(z, 3, (const uint32_t[]){a, b, cd_zoo_max_pool(z, x, half, false)}, 1);
}

static uint32_t fork_3(cd_zoo_builder *z, uint32_t x) {
    return cd_zoo_concat(z, 2, (const uint32_t[]){rect(z, x, 384, 1, 3), rect(z, x, 384, 3, 1)}, 1);
}

static uint32_t block_e(cd_zoo_builder *z, uint32_t x) {
    const uint32_t a = cbr(z, x, 320, one);
    const uint32_t b = fork_3(z, cbr(z, x, 384, one));
    const uint32_t c = fork_3(z, cbr(z, cbr(z, x, 448, one), 384, three));
    const uint32_t d = cbr(z, cd_zoo_avg_pool(z, x, three), 192, one);
    return cd_zoo_concat(z, 4, (const uint32_t[]){a, b, c, d}, 1);
}

void cd_zoo_inception_v3(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    static const int64_t pool[] = {32, 64, 64}, middle[] = {128, 160, 160, 192};
    uint32_t x =
        cbr(z, cbr(z, cbr(z, cd_zoo_image(z), 32, half), 32, (cd_zoo_window){3, 1, 0}), 64, three);
    x = cbr(z, cbr(z, cd_zoo_max_pool(z, x, half, false), 80, one), 192, (cd_zoo_window){3, 1, 0});
    x = cd_zoo_max_pool(z, x, half, false);
    for (int k = 0; k < 3; k++) x = block_a(z, x, pool[k]);
    x = block_b(z, x);
    for (int k = 0; k < 4; k++) x = block_c(z, x, middle[k]);
    x = block_d(z, x);
    x = block_e(z, block_e(z, x));
    cd_zoo_classify(z, x, 1000);
}
