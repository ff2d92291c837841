/* zoo_int -- what the built-in networks are written with: one call an operator.
 *
 *   uint32_t x = cd_z_relu(z, cd_z_bn(z, cd_z_conv(z, in, 64, 7, 2, 3, 1)));
 *
 * The first error stays in the builder; every later call returns CD_GRAPH_NONE,
 * so that a network needs one check at its end. Private to zoo*.c. */
#ifndef CD_ZOO_INT_H
#define CD_ZOO_INT_H
#include "profiler/network/zoo/zoo.h"

typedef struct cd_z {
    cd_graph *g;
    cdmpp_err *err;
    cdmpp_status st;
    int64_t batch, size;
    uint32_t count;             /* of names given */
} cd_z;

typedef void (*cd_zoo_fn)(cd_z *z, int64_t variant);

/* The first of these exists for every network; a table in zoo.c names them. */
void cd_zoo_resnet(cd_z *z, int64_t depth);
void cd_zoo_resnext50(cd_z *z, int64_t unused);
void cd_zoo_wide_resnet50(cd_z *z, int64_t unused);
void cd_zoo_resnet3d18(cd_z *z, int64_t unused);
void cd_zoo_alexnet(cd_z *z, int64_t unused);
void cd_zoo_vgg(cd_z *z, int64_t depth);
void cd_zoo_squeezenet(cd_z *z, int64_t minor);
void cd_zoo_densenet(cd_z *z, int64_t depth);
void cd_zoo_mobilenet_v1(cd_z *z, int64_t unused);
void cd_zoo_mobilenet_v2(cd_z *z, int64_t unused);
void cd_zoo_mobilenet_v3(cd_z *z, int64_t large);
void cd_zoo_efficientnet_b0(cd_z *z, int64_t unused);
void cd_zoo_inception_v1(cd_z *z, int64_t unused);
void cd_zoo_inception_v3(cd_z *z, int64_t unused);
void cd_zoo_dcgan(cd_z *z, int64_t unused);
void cd_zoo_yolov3_tiny(cd_z *z, int64_t unused);
void cd_zoo_recurrent(cd_z *z, int64_t gates); /* 4: lstm, 3: gru, 1: rnn */
void cd_zoo_bert(cd_z *z, int64_t width);
void cd_zoo_gpt2(cd_z *z, int64_t unused);
void cd_zoo_vit(cd_z *z, int64_t unused);
void cd_zoo_gcn(cd_z *z, int64_t unused);

/* ---- tensors ---- */
uint32_t cd_z_input(cd_z *z, const char *name, cd_dtype t, uint32_t rank, const int64_t *dim);
uint32_t cd_z_image(cd_z *z); /* (batch, 3, size, size), fp32 */
uint32_t cd_z_weight(cd_z *z, uint32_t rank, const int64_t *dim);
uint32_t cd_z_vector(cd_z *z, int64_t n);
uint32_t cd_z_scalar(cd_z *z, double v);
uint32_t cd_z_ints(cd_z *z, uint32_t n, const int64_t *v);
int64_t cd_z_dim(const cd_z *z, uint32_t x, uint32_t d);
void cd_z_result(cd_z *z, uint32_t x);

/* ---- any operator ---- */
uint32_t cd_z_op(cd_z *z, const char *op, uint32_t n_in, const uint32_t *in, uint32_t n_attr, const cd_gattr *attr);
uint32_t cd_z_op1(cd_z *z, const char *op, uint32_t x);
uint32_t cd_z_op2(cd_z *z, const char *op, uint32_t a, uint32_t b);
cd_gattr cd_z_i(const char *name, int64_t v);
cd_gattr cd_z_f(const char *name, double v);
cd_gattr cd_z_is(const char *name, uint32_t n, const int64_t *v);
cd_gattr cd_z_s(const char *name, const char *v);

/* ---- of images: square kernels ---- */
typedef struct cd_z_window {
    int64_t k, stride, pad;
} cd_z_window;
uint32_t cd_z_conv(cd_z *z, uint32_t x, int64_t out, cd_z_window w, int64_t groups);   /* without bias */
uint32_t cd_z_conv_bias(cd_z *z, uint32_t x, int64_t out, cd_z_window w, int64_t groups);
/* Kernel kh x kw, padded to keep the size. */
uint32_t cd_z_conv_rect(cd_z *z, uint32_t x, int64_t out, int64_t kh, int64_t kw);
uint32_t cd_z_bn(cd_z *z, uint32_t x);
uint32_t cd_z_relu(cd_z *z, uint32_t x);
uint32_t cd_z_relu6(cd_z *z, uint32_t x);
/* conv, bn, relu */
uint32_t cd_z_cbr(cd_z *z, uint32_t x, int64_t out, cd_z_window w, int64_t groups);
uint32_t cd_z_max_pool(cd_z *z, uint32_t x, cd_z_window w, bool ceil);
uint32_t cd_z_avg_pool(cd_z *z, uint32_t x, cd_z_window w);
uint32_t cd_z_global_pool(cd_z *z, uint32_t x);
uint32_t cd_z_flatten(cd_z *z, uint32_t x);
uint32_t cd_z_concat(cd_z *z, uint32_t n, const uint32_t *x, int64_t axis);
/* y = x W' + b of (rows, columns). */
uint32_t cd_z_fc(cd_z *z, uint32_t x, int64_t out);
/* Global pool, flatten, fc: the end of most classifiers. */
void cd_z_classify(cd_z *z, uint32_t x, int64_t classes);

/* ---- of sequences: the last axis is the channel ---- */
uint32_t cd_z_linear(cd_z *z, uint32_t x, int64_t out);
uint32_t cd_z_layer_norm(cd_z *z, uint32_t x);
uint32_t cd_z_softmax(cd_z *z, uint32_t x);
uint32_t cd_z_gelu(cd_z *z, uint32_t x);
uint32_t cd_z_gelu_tanh(cd_z *z, uint32_t x);
uint32_t cd_z_reshape(cd_z *z, uint32_t x, uint32_t rank, const int64_t *dim);
uint32_t cd_z_transpose(cd_z *z, uint32_t x, uint32_t rank, const int64_t *perm);
/* Rows of a table (entries, width) by a tensor of indices. */
uint32_t cd_z_embed(cd_z *z, uint32_t index, int64_t entries, int64_t width);
#endif
