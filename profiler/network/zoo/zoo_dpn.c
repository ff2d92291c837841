/* Dual path networks (Chen 2017): of each block's result a part is added to what was there, as in
 * residual networks, and a part is put behind it, as in densely connected ones. */
#include "profiler/network/zoo/zoo_internal.h"

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

static uint32_t bn_relu_conv(cd_zoo_builder *z, uint32_t x, int64_t out, cd_zoo_window w,
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
        p = cut(z, bn_relu_conv(z, in, s.sum + 2 * s.grow, (cd_zoo_window){1, stride, 0}, 1),
                s.sum);
    uint32_t x = bn_relu_conv(z, in, s.inner, (cd_zoo_window){1, 1, 0}, 1);
    x = bn_relu_conv(z, x, s.inner, (cd_zoo_window){3, stride, 1}, 32);
    const paths q = cut(z, bn_relu_conv(z, x, s.sum + s.grow, (cd_zoo_window){1, 1, 0}, 1), s.sum);
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
