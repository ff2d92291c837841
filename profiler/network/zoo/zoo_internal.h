/* zoo_internal -- what the built-in networks are written with: one call for each operator.
 *
 *   uint32_t x = cd_zoo_relu(z, cd_zoo_batch_norm(z, cd_zoo_conv(z, in, 64, (cd_zoo_window){7, 2,
 *   3}, 1)));
 *
 * The first error stays in the builder; every later call returns CD_GRAPH_NONE,
 * so that a network needs one check at its end. A new network is a function that
 * begins with its inputs and ends with cd_zoo_result, a row of the table in zoo.c, and a
 * line in tests/profiler/network/zoo/test_zoo.c. Private to the room. */
#ifndef CD_ZOO_INTERNAL_H
#define CD_ZOO_INTERNAL_H
#include "profiler/network/zoo/zoo.h"

typedef struct cd_zoo_builder {
    cd_graph *g;
    cdmpp_err *err;
    cdmpp_status st;
    int64_t batch, size;
    uint32_t count;    /* of names given */
    const char *edges; /* gcn: a file; NULL: a matrix of neighbours */
} cd_zoo_builder;

typedef void (*cd_zoo_fn)(cd_zoo_builder *z, int64_t variant);

/* The networks; the table in zoo.c gives each its variant. */
void cd_zoo_resnet(cd_zoo_builder *z, int64_t depth);
void cd_zoo_resnext50(cd_zoo_builder *z, int64_t unused);
void cd_zoo_wide_resnet50(cd_zoo_builder *z, int64_t unused);
void cd_zoo_resnet3d(cd_zoo_builder *z, int64_t depth);
void cd_zoo_alexnet(cd_zoo_builder *z, int64_t unused);
void cd_zoo_vgg(cd_zoo_builder *z, int64_t depth);
void cd_zoo_squeezenet(cd_zoo_builder *z, int64_t minor);
void cd_zoo_densenet(cd_zoo_builder *z, int64_t depth);
void cd_zoo_mobilenet_v1(cd_zoo_builder *z, int64_t unused);
void cd_zoo_mobilenet_v2(cd_zoo_builder *z, int64_t unused);
void cd_zoo_mobilenet_v3(cd_zoo_builder *z, int64_t large);
void cd_zoo_efficientnet_b0(cd_zoo_builder *z, int64_t unused);
void cd_zoo_inception_v1(cd_zoo_builder *z, int64_t unused);
void cd_zoo_inception_v3(cd_zoo_builder *z, int64_t unused);
void cd_zoo_nasnet_large(cd_zoo_builder *z, int64_t unused);
void cd_zoo_dpn68(cd_zoo_builder *z, int64_t unused);
void cd_zoo_yolov2(cd_zoo_builder *z, int64_t unused);
void cd_zoo_yolov3(cd_zoo_builder *z, int64_t unused);
void cd_zoo_yolov5(cd_zoo_builder *z, int64_t channels);
void cd_zoo_yolov3_tiny(cd_zoo_builder *z, int64_t unused);
void cd_zoo_faster_rcnn(cd_zoo_builder *z, int64_t unused);
void cd_zoo_t5_small(cd_zoo_builder *z, int64_t unused);

/* ---- graph convolution over a file of edges (zoo_edges.c) ---- */
enum { CD_ZOO_GCN_FEATURES = 1433, CD_ZOO_GCN_HIDDEN = 16, CD_ZOO_GCN_CLASSES = 7 }; /* of Cora */
typedef struct cd_zoo_edges {
    cd_arena arena;
    uint32_t n_vertex, n; /* n: edges both ways, and a loop at each vertex */
    /* (n_vertex + 1) vertex v reads from[first[v] .. first[v + 1]), ascending */
    uint32_t *first;
    uint32_t *from; /* (n) */
    double *weight; /* (n) normalised */
} cd_zoo_edges;
/* Free *e after an error too. Errors, with the line: EPARSE, ERANGE (too many), ENODATA (none),
 * ENOMEM. */
cdmpp_status cd_zoo_edges_parse(const char *text, size_t len, cd_zoo_edges *e, cdmpp_err *err);
void cd_zoo_edges_free(cd_zoo_edges *e);
void cd_zoo_gcn_edges(cd_zoo_builder *z, const char *path);

/* ---- tensors: of given shape, float32 unless a type is given; names are made up ---- */
uint32_t cd_zoo_input(cd_zoo_builder *z, const char *name, cd_dtype t, uint32_t rank,
                      const int64_t *dim);
uint32_t cd_zoo_image(cd_zoo_builder *z); /* (batch, 3, size, size), fp32 */
uint32_t cd_zoo_weight(cd_zoo_builder *z, uint32_t rank, const int64_t *dim);
/* one of both contents */
uint32_t cd_zoo_const(cd_zoo_builder *z, cd_dtype t, uint32_t rank, const int64_t *dim,
                      const int64_t *value, const double *fvalue);
uint32_t cd_zoo_const_scalar(cd_zoo_builder *z, double v);
uint32_t cd_zoo_const_ints(cd_zoo_builder *z, uint32_t n, const int64_t *v);
int64_t cd_zoo_dim(const cd_zoo_builder *z, uint32_t x, uint32_t d);
void cd_zoo_result(cd_zoo_builder *z, uint32_t x);

/* ---- any operator with one result ---- */
uint32_t cd_zoo_op(cd_zoo_builder *z, const char *op, uint32_t n_in, const uint32_t *in,
                   uint32_t n_attr, const cd_graph_attr *attr);
uint32_t cd_zoo_unary(cd_zoo_builder *z, const char *op, uint32_t x);
uint32_t cd_zoo_binary(cd_zoo_builder *z, const char *op, uint32_t a, uint32_t b);
cd_graph_attr cd_zoo_attr_int(const char *name, int64_t v);
cd_graph_attr cd_zoo_attr_float(const char *name, double v);
cd_graph_attr cd_zoo_attr_ints(const char *name, uint32_t n, const int64_t *v);
cd_graph_attr cd_zoo_attr_string(const char *name, const char *v);

/* ---- of images: square kernels ---- */
typedef struct cd_zoo_window {
    int64_t k, stride, pad;
} cd_zoo_window;
/* without bias */
uint32_t cd_zoo_conv(cd_zoo_builder *z, uint32_t x, int64_t out, cd_zoo_window w, int64_t groups);
uint32_t cd_zoo_conv_bias(cd_zoo_builder *z, uint32_t x, int64_t out, cd_zoo_window w,
                          int64_t groups);
/* Kernel kh x kw, padded to keep the size. */
uint32_t cd_zoo_conv_rect(cd_zoo_builder *z, uint32_t x, int64_t out, int64_t kh, int64_t kw);
uint32_t cd_zoo_batch_norm(cd_zoo_builder *z, uint32_t x);
uint32_t cd_zoo_relu(cd_zoo_builder *z, uint32_t x);
uint32_t cd_zoo_relu6(cd_zoo_builder *z, uint32_t x);
/* conv, bn, relu */
uint32_t cd_zoo_conv_bn_relu(cd_zoo_builder *z, uint32_t x, int64_t out, cd_zoo_window w,
                             int64_t groups);
uint32_t cd_zoo_max_pool(cd_zoo_builder *z, uint32_t x, cd_zoo_window w, bool ceil);
uint32_t cd_zoo_avg_pool(cd_zoo_builder *z, uint32_t x, cd_zoo_window w);
uint32_t cd_zoo_global_pool(cd_zoo_builder *z, uint32_t x);
uint32_t cd_zoo_flatten(cd_zoo_builder *z, uint32_t x);
uint32_t cd_zoo_concat(cd_zoo_builder *z, uint32_t n, const uint32_t *x, int64_t axis);
/* y = x W' + b of (rows, columns). */
uint32_t cd_zoo_fully_connected(cd_zoo_builder *z, uint32_t x, int64_t out);
/* Global pool, flatten, fc: the end of most classifiers. */
void cd_zoo_classify(cd_zoo_builder *z, uint32_t x, int64_t classes);

/* ---- of sequences: the last axis is the channel ---- */
uint32_t cd_zoo_linear(cd_zoo_builder *z, uint32_t x, int64_t out);
uint32_t cd_zoo_softmax(cd_zoo_builder *z, uint32_t x);
uint32_t cd_zoo_reshape(cd_zoo_builder *z, uint32_t x, uint32_t rank, const int64_t *dim);
uint32_t cd_zoo_transpose(cd_zoo_builder *z, uint32_t x, uint32_t rank, const int64_t *perm);
#endif
