/* Faster R-CNN (Ren 2015) on VGG-16, of 20 classes: the regions that a small network proposes are
 * classified by a larger one. What depends on the data has its largest size: that many boxes stay.
 * NonMaxSuppression and RoiAlign have no program; they stay on the host. */
#include <stdio.h>

#include "profiler/network/zoo/zoo_internal.h"

enum { ANCHORS = 9, REGIONS = 300, FOUND = 100, CLASSES = 21, POOLED = 7, STRIDE = 16 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static uint32_t conv_relu(cd_zoo_builder *z, uint32_t x, int64_t out) {
    return cd_zoo_relu(z, cd_zoo_conv_bias(z, x, out, (cd_zoo_window){3, 1, 1}, 1));
}

/* The convolutions of VGG-16 without its last pooling: a sixteenth of the edge, 512 channels. */
static uint32_t backbone(cd_zoo_builder *z) {
    static const struct { int n, out; } block[] = {{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}};
    uint32_t x = cd_zoo_image(z);
    for (int b = 0; b < 5; b++) {
        if (b) x = cd_zoo_max_pool(z, x, (cd_zoo_window){2, 2, 0}, false);
        for (int k = 0; k < block[b].n; k++) x = conv_relu(z, x, block[b].out);
    }
    return x;
}

/* Elements [from, to) of dimension `axis`. */
static uint32_t part(cd_zoo_builder *z, uint32_t x, int64_t axis, int64_t from, int64_t to) {
    return cd_zoo_op(z, "Slice", 4,
                     (const uint32_t[]){x, cd_zoo_const_ints(z, 1, &from),
                                        cd_zoo_const_ints(z, 1, &to),
                                        cd_zoo_const_ints(z, 1, &axis)},
                     0, NULL);
}

/* (batch, n, 4) of offsets from `at` (centre and extent, of the same shape or broadcast) ->
 * corners. */
static uint32_t corners(cd_zoo_builder *z, uint32_t offset, uint32_t at) {
    const uint32_t extent = part(z, at, 2, 2, 4);
    const uint32_t centre = cd_zoo_binary(
        z, "Add", cd_zoo_binary(z, "Mul", part(z, offset, 2, 0, 2), extent), part(z, at, 2, 0, 2));
    const uint32_t half = cd_zoo_binary(
        z, "Mul", cd_zoo_binary(z, "Mul", cd_zoo_unary(z, "Exp", part(z, offset, 2, 2, 4)), extent),
        cd_zoo_const_scalar(z, 0.5));
    const uint32_t box = cd_zoo_concat(z, 2,
                                       (const uint32_t[]){cd_zoo_binary(z, "Sub", centre, half),
                                                          cd_zoo_binary(z, "Add", centre, half)},
                                       2);
    return cd_zoo_op(
        z, "Clip", 3,
        (const uint32_t[]){box, cd_zoo_const_scalar(z, 0), cd_zoo_const_scalar(z, (double)z->size)},
        0, NULL);
}

/* Corners (batch, n, 4) -> centre and extent. */
static uint32_t centres(cd_zoo_builder *z, uint32_t box) {
    const uint32_t low = part(z, box, 2, 0, 2), high = part(z, box, 2, 2, 4);
    const uint32_t middle =
        cd_zoo_binary(z, "Mul", cd_zoo_binary(z, "Add", low, high), cd_zoo_const_scalar(z, 0.5));
    return cd_zoo_concat(z, 2, (const uint32_t[]){middle, cd_zoo_binary(z, "Sub", high, low)}, 2);
}

/* boxes (batch, n, 4), scores (batch, 1, n): the numbers (batch, class, box) of `most` that stay of
 * each image. */
static uint32_t suppress(cd_zoo_builder *z, uint32_t box, uint32_t score, int64_t most,
                         double overlap) {
    char name[64];
    uint32_t y = CD_GRAPH_NONE;
    const cd_graph_shape s = {.rank = 2, .dim = {z->batch * most, 3}};
    const cd_dtype t = CD_I64;
    const uint32_t in[] = {box, score, cd_zoo_const_ints(z, 1, &most),
                           cd_zoo_const_scalar(z, overlap)};
    snprintf(name, sizeof name, "NonMaxSuppression_%u", (unsigned)z->count++);
    if (!z->st)
        z->st = cd_graph_opaque(z->g, name, "", "NonMaxSuppression", in, 4, &s, &t, &y, 1, z->err);
    return y;
}

/* Rows of boxes (batch, n, 4) by what suppress() gave; *image: the number of each one's image. */
static uint32_t chosen(cd_zoo_builder *z, uint32_t box, uint32_t number, uint32_t *image) {
    const int64_t n = cd_zoo_dim(z, box, 1), rows = cd_zoo_dim(z, number, 0);
    *image = cd_zoo_reshape(z, part(z, number, 1, 0, 1), 1, &rows);
    const uint32_t row =
        cd_zoo_binary(z, "Add", cd_zoo_binary(z, "Mul", *image, cd_zoo_const_ints(z, 1, &n)),
                      cd_zoo_reshape(z, part(z, number, 1, 2, 3), 1, &rows));
    return cd_zoo_binary(z, "Gather", cd_zoo_reshape(z, box, 2, (const int64_t[]){z->batch * n, 4}),
                         row);
}

/* The regions of each image, as corners (batch * REGIONS, 4). */
static uint32_t propose(cd_zoo_builder *z, uint32_t feature, int64_t regions, uint32_t *image) {
    const int64_t n = ANCHORS * cd_zoo_dim(z, feature, 2) * cd_zoo_dim(z, feature, 3);
    const uint32_t x = conv_relu(z, feature, 512);
    const cd_zoo_window one = {1, 1, 0};
    uint32_t score = cd_zoo_transpose(z, cd_zoo_conv_bias(z, x, 2 * ANCHORS, one, 1), 4,
                                      (const int64_t[]){0, 2, 3, 1});
    score =
        part(z, cd_zoo_softmax(z, cd_zoo_reshape(z, score, 3, (const int64_t[]){z->batch, n, 2})),
             2, 1, 2);
    score = cd_zoo_reshape(z, score, 3, (const int64_t[]){z->batch, 1, n});
    uint32_t offset = cd_zoo_transpose(z, cd_zoo_conv_bias(z, x, 4 * ANCHORS, one, 1), 4,
                                       (const int64_t[]){0, 2, 3, 1});
    offset = cd_zoo_reshape(z, offset, 3, (const int64_t[]){z->batch, n, 4});
    const uint32_t anchors = cd_zoo_input(z, "anchors", CD_F32, 3, (const int64_t[]){1, n, 4});
    const uint32_t box = corners(z, offset, anchors);
    return chosen(z, box, suppress(z, box, score, regions, 0.7), image);
}

void cd_zoo_faster_rcnn(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    const uint32_t feature = backbone(z);
    const int64_t edge = cd_zoo_dim(z, feature, 2), regions = least(REGIONS, ANCHORS * edge * edge),
                  all = regions * (CLASSES - 1), found = least(FOUND, all);
    uint32_t image;
    const uint32_t roi = propose(z, feature, regions, &image);
    const cd_graph_attr window[] = {
        cd_zoo_attr_int("output_height", POOLED), cd_zoo_attr_int("output_width", POOLED),
        cd_zoo_attr_int("sampling_ratio", 2), cd_zoo_attr_float("spatial_scale", 1.0 / STRIDE)};
    uint32_t x = cd_zoo_flatten(
        z, cd_zoo_op(z, "RoiAlign", 3, (const uint32_t[]){feature, roi, image}, 4, window));
    for (int k = 0; k < 2; k++) x = cd_zoo_relu(z, cd_zoo_fully_connected(z, x, 4096));
    uint32_t score = cd_zoo_reshape(z, cd_zoo_softmax(z, cd_zoo_fully_connected(z, x, CLASSES)), 3,
                                    (const int64_t[]){z->batch, regions, CLASSES});
    /* without the background */
    score =
        cd_zoo_reshape(z, part(z, score, 2, 1, CLASSES), 3, (const int64_t[]){z->batch, 1, all});
    uint32_t offset = cd_zoo_reshape(z, cd_zoo_fully_connected(z, x, 4 * CLASSES), 3,
                                     (const int64_t[]){z->batch * regions, CLASSES, 4});
    const uint32_t from =
        centres(z, cd_zoo_reshape(z, roi, 3, (const int64_t[]){z->batch * regions, 1, 4}));
    const uint32_t box = cd_zoo_reshape(z, corners(z, part(z, offset, 1, 1, CLASSES), from), 3,
                                        (const int64_t[]){z->batch, all, 4});
    /* Boxes of other classes lie elsewhere, so that they do not suppress each other. */
    const uint32_t apart = cd_zoo_binary(
        z, "Add", box, cd_zoo_input(z, "places", CD_F32, 3, (const int64_t[]){1, all, 1}));
    uint32_t unused_image;
    const uint32_t last = chosen(z, box, suppress(z, apart, score, found, 0.5), &unused_image);
    cd_zoo_result(z, cd_zoo_reshape(z, last, 3, (const int64_t[]){z->batch, found, 4}));
    cd_zoo_result(z, score);
}
