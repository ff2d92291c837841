/* Networks of one operator, to measure it over a range of sizes. */
#include "profiler/network/zoo/zoo_internal.h"

static uint32_t square(cd_zoo_builder *z, const char *name) {
    return cd_zoo_input(z, name, CD_F32, 3, (const int64_t[]){z->batch, z->size, z->size});
}

static uint32_t by_weight(cd_zoo_builder *z, uint32_t x) {
    return cd_zoo_binary(z, "MatMul", x, cd_zoo_weight(z, 2, (const int64_t[]){z->size, z->size}));
}

/* products: how many, one after the other; with two of them a vector is added. */
void cd_zoo_matmul(cd_zoo_builder *z, int64_t products) {
    uint32_t x = by_weight(z, square(z, "input"));
    if (products == 2) x = cd_zoo_binary(z, "Add", by_weight(z, x), cd_zoo_weight(z, 1, &z->size));
    cd_zoo_result(z, x);
}

/* 3x3 from 64 channels to 64; groups: 1, or 64 for depthwise. */
void cd_zoo_conv2d(cd_zoo_builder *z, int64_t groups) {
    const uint32_t x =
        cd_zoo_input(z, "input", CD_F32, 4, (const int64_t[]){z->batch, 64, z->size, z->size});
    cd_zoo_result(z, cd_zoo_conv(z, x, 64, (cd_zoo_window){3, 1, 1}, groups));
}

void cd_zoo_add(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    cd_zoo_result(z, cd_zoo_binary(z, "Add", square(z, "a"), square(z, "b")));
}

void cd_zoo_rows(cd_zoo_builder *z, int64_t norm) {
    const uint32_t x = square(z, "input");
    cd_zoo_result(z, norm ? cd_zoo_layer_norm(z, x) : cd_zoo_softmax(z, x));
}
