/* Networks for phones: MobileNet v1 (Howard 2017), v2 (Sandler 2018), v3 (Howard 2019),
 * EfficientNet-B0 (Tan 2019). */
#include "profiler/network/zoo/zoo_internal.h"

static cd_zoo_window same(int64_t k, int64_t stride) { return (cd_zoo_window){k, stride, k / 2}; }

void cd_zoo_mobilenet_v1(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    static const struct {
        int64_t out, stride;
    } block[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                 {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
    uint32_t x = cd_zoo_conv_bn_relu(z, cd_zoo_image(z), 32, same(3, 2), 1);
    for (size_t k = 0; k < sizeof block / sizeof *block; k++) {
        const int64_t in = cd_zoo_dim(z, x, 1);
        x = cd_zoo_conv_bn_relu(z, x, in, same(3, block[k].stride), in);
        x = cd_zoo_conv_bn_relu(z, x, block[k].out, same(1, 1), 1);
    }
    cd_zoo_classify(z, x, 1000);
}

/* ---- inverted residuals ---- */

typedef uint32_t (*activation)(cd_zoo_builder *z, uint32_t x);

static uint32_t hard_swish(cd_zoo_builder *z, uint32_t x) {
    return cd_zoo_unary(z, "HardSwish", x);
}
static uint32_t swish(cd_zoo_builder *z, uint32_t x) {
    return cd_zoo_binary(z, "Mul", x, cd_zoo_unary(z, "Sigmoid", x));
}
static uint32_t sigmoid(cd_zoo_builder *z, uint32_t x) { return cd_zoo_unary(z, "Sigmoid", x); }
static uint32_t hard_sigmoid(cd_zoo_builder *z, uint32_t x) {
    const cd_graph_attr attr[] = {cd_zoo_attr_float("alpha", 1.0 / 6),
                                  cd_zoo_attr_float("beta", 0.5)};
    return cd_zoo_op(z, "HardSigmoid", 1, &x, 2, attr);
}

typedef struct {
    int64_t k, wide, out, stride, squeeze; /* wide: channels in the middle; squeeze: 0 for none */
    activation act, inner, gate;           /* inner, gate: of the squeeze */
} inverted;

static uint32_t squeeze_excite(cd_zoo_builder *z, uint32_t x, const inverted *b) {
    const uint32_t s =
        b->inner(z, cd_zoo_conv_bias(z, cd_zoo_global_pool(z, x), b->squeeze, same(1, 1), 1));
    return cd_zoo_binary(z, "Mul", x, b->gate(z, cd_zoo_conv_bias(z, s, b->wide, same(1, 1), 1)));
}

static uint32_t inverted_residual(cd_zoo_builder *z, uint32_t in, const inverted *b) {
    uint32_t x = in;
    if (b->wide != cd_zoo_dim(z, in, 1))
        x = b->act(z, cd_zoo_batch_norm(z, cd_zoo_conv(z, x, b->wide, same(1, 1), 1)));
    x = b->act(z, cd_zoo_batch_norm(z, cd_zoo_conv(z, x, b->wide, same(b->k, b->stride), b->wide)));
    if (b->squeeze) x = squeeze_excite(z, x, b);
    x = cd_zoo_batch_norm(z, cd_zoo_conv(z, x, b->out, same(1, 1), 1));
    return b->stride == 1 && cd_zoo_dim(z, in, 1) == b->out ? cd_zoo_binary(z, "Add", in, x) : x;
}

void cd_zoo_mobilenet_v2(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    static const struct {
        int64_t expand, out, n, stride;
    } row[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    uint32_t x =
        cd_zoo_relu6(z, cd_zoo_batch_norm(z, cd_zoo_conv(z, cd_zoo_image(z), 32, same(3, 2), 1)));
    for (size_t r = 0; r < sizeof row / sizeof *row; r++)
        for (int64_t k = 0; k < row[r].n; k++) {
            const inverted b = {3,          row[r].expand * cd_zoo_dim(z, x, 1),
                                row[r].out, k ? 1 : row[r].stride,
                                0,          cd_zoo_relu6,
                                NULL,       NULL};
            x = inverted_residual(z, x, &b);
        }
    x = cd_zoo_relu6(z, cd_zoo_batch_norm(z, cd_zoo_conv(z, x, 1280, same(1, 1), 1)));
    cd_zoo_classify(z, x, 1000);
}

typedef struct {
    int64_t k, wide, out, stride;
    bool squeeze, swish;
} v3_row;

static const v3_row v3_large[] = {
    {3, 16, 16, 1, 0, 0},   {3, 64, 24, 2, 0, 0},   {3, 72, 24, 1, 0, 0},   {5, 72, 40, 2, 1, 0},
    {5, 120, 40, 1, 1, 0},  {5, 120, 40, 1, 1, 0},  {3, 240, 80, 2, 0, 1},  {3, 200, 80, 1, 0, 1},
    {3, 184, 80, 1, 0, 1},  {3, 184, 80, 1, 0, 1},  {3, 480, 112, 1, 1, 1}, {3, 672, 112, 1, 1, 1},
    {5, 672, 160, 2, 1, 1}, {5, 960, 160, 1, 1, 1}, {5, 960, 160, 1, 1, 1}};
static const v3_row v3_small[] = {
    {3, 16, 16, 2, 1, 0},  {3, 72, 24, 2, 0, 0},  {3, 88, 24, 1, 0, 0},  {5, 96, 40, 2, 1, 1},
    {5, 240, 40, 1, 1, 1}, {5, 240, 40, 1, 1, 1}, {5, 120, 48, 1, 1, 1}, {5, 144, 48, 1, 1, 1},
    {5, 288, 96, 2, 1, 1}, {5, 576, 96, 1, 1, 1}, {5, 576, 96, 1, 1, 1}};

/* A quarter of the channels, in eights, never less than 90 % of it. */
static int64_t quarter(int64_t wide) {
    const int64_t n = (wide / 4 + 4) / 8 * 8;
    const int64_t m = n < 8 ? 8 : n;
    return m * 10 < wide / 4 * 9 ? m + 8 : m;
}

void cd_zoo_mobilenet_v3(cd_zoo_builder *z, int64_t large) {
    const v3_row *row = large ? v3_large : v3_small;
    const size_t n = large ? sizeof v3_large / sizeof *row : sizeof v3_small / sizeof *row;
    uint32_t x =
        hard_swish(z, cd_zoo_batch_norm(z, cd_zoo_conv(z, cd_zoo_image(z), 16, same(3, 2), 1)));
    for (size_t k = 0; k < n; k++) {
        const inverted b = {row[k].k,
                            row[k].wide,
                            row[k].out,
                            row[k].stride,
                            row[k].squeeze ? quarter(row[k].wide) : 0,
                            row[k].swish ? hard_swish : cd_zoo_relu,
                            cd_zoo_relu,
                            hard_sigmoid};
        x = inverted_residual(z, x, &b);
    }
    x = hard_swish(z, cd_zoo_batch_norm(z, cd_zoo_conv(z, x, large ? 960 : 576, same(1, 1), 1)));
    x = cd_zoo_fully_connected(z, cd_zoo_flatten(z, cd_zoo_global_pool(z, x)), large ? 1280 : 1024);
    cd_zoo_result(z, cd_zoo_fully_connected(z, hard_swish(z, x), 1000));
}

void cd_zoo_efficientnet_b0(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    static const struct {
        int64_t expand, k, out, n, stride;
    } row[] = {{1, 3, 16, 1, 1},  {6, 3, 24, 2, 2},  {6, 5, 40, 2, 2}, {6, 3, 80, 3, 2},
               {6, 5, 112, 3, 1}, {6, 5, 192, 4, 2}, {6, 3, 320, 1, 1}};
    uint32_t x = swish(z, cd_zoo_batch_norm(z, cd_zoo_conv(z, cd_zoo_image(z), 32, same(3, 2), 1)));
    for (size_t r = 0; r < sizeof row / sizeof *row; r++)
        for (int64_t k = 0; k < row[r].n; k++) {
            const int64_t in = cd_zoo_dim(z, x, 1);
            const inverted b = {row[r].k,   row[r].expand * in,
                                row[r].out, k ? 1 : row[r].stride,
                                in / 4,     swish,
                                swish,      sigmoid};
            x = inverted_residual(z, x, &b);
        }
    x = swish(z, cd_zoo_batch_norm(z, cd_zoo_conv(z, x, 1280, same(1, 1), 1)));
    cd_zoo_classify(z, x, 1000);
}
