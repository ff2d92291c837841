/* Operators on quantised numbers that ONNX Runtime writes: numbers are dequantised, the operator of
 * that name works on reals, and its result is quantised; products of whole numbers are
 * MatMulInteger. */
#include <string.h>

#include "profiler/network/onnx/onnx_expand_internal.h"

#define MS "com.microsoft"

static uint32_t some(const cd_expand *x, uint32_t k) {
    return cd_onnx_expand_has(x, k) ? x->in[k] : CD_GRAPH_NONE;
}

static uint32_t dequantized(cd_expand *x, uint32_t k) {
    const uint32_t in[] = {cd_onnx_expand_in(x, k), cd_onnx_expand_in(x, k + 1), some(x, k + 2)};
    return cd_onnx_expand_add(x, "DequantizeLinear", in, 3, NULL, 0);
}

/* With the scale that is operand k, and its zero point. */
static void give_quantized(cd_expand *x, uint32_t y, uint32_t k) {
    const uint32_t in[] = {y, cd_onnx_expand_in(x, k), some(x, k + 1)};
    cd_onnx_expand_out(x, 0, cd_onnx_expand_add(x, "QuantizeLinear", in, 3, NULL, 0));
}

/* The float operator's attributes are those of the node by the same name. */
static uint32_t same_op(cd_expand *x, const char *op, const uint32_t *in, uint32_t n_in) {
    cd_graph_attr *all;
    uint32_t n, m = 0;
    if (!x->st) x->st = cd_onnx_attrs(x->r, x->s, x->n, &all, &n, x->err);
    if (x->st) return CD_GRAPH_NONE;
    for (uint32_t i = 0; i < n; i++)
        if (cd_graph_attr_is_known(op, all[i].name)) all[m++] = all[i];
    return cd_onnx_expand_add(x, op, in, n_in, all, m);
}

/* ---- one operand: x, scale, zero point, scale and zero point of the result ---- */
static void unary(cd_expand *x) {
    const char *op = cd_onnx_text(x->n->op_type) + strlen("QLinear");
    if (cd_onnx_expand_int(x, "channels_last", 0)) x->why = "channels that come last";
    const uint32_t in = dequantized(x, 0);
    give_quantized(x, same_op(x, op, &in, 1), 3);
}

static void binary(cd_expand *x) {
    const char *op = cd_onnx_text(x->n->op_type) + strlen("QLinear");
    give_quantized(x, cd_onnx_expand_binary(x, op, dequantized(x, 0), dequantized(x, 3)), 6);
}

/* Scale and zero point of the result, then three for each operand. */
static void concat(cd_expand *x) {
    uint32_t y = dequantized(x, 2);
    const int64_t axis = cd_onnx_expand_int(x, "axis", 0);
    for (uint32_t k = 5; k + 1 < x->n_in && !x->st; k += 3)
        y = cd_onnx_expand_concat(x, y, dequantized(x, k), axis);
    give_quantized(x, y, 0);
}

static void same_domain(cd_expand *x) {
    uint32_t in[3] = {cd_onnx_expand_in(x, 0), cd_onnx_expand_in(x, 1), some(x, 2)};
    cd_onnx_expand_out(x, 0, same_op(x, cd_onnx_text(x->n->op_type), in, 3));
}

/* ---- products ---- */

/* Whole numbers are multiplied, then the sum is scaled and a bias added. */
uint32_t cd_onnx_expand_integer_product(cd_expand *x, const cd_onnx_expand_product *p) {
    const uint32_t in[] = {p->a, p->b, p->a_zero, p->b_zero};
    const uint32_t y =
        cd_onnx_expand_cast(x, cd_onnx_expand_add(x, "MatMulInteger", in, 4, NULL, 0), CD_F32);
    const uint32_t scaled =
        cd_onnx_expand_binary(x, "Mul", y, cd_onnx_expand_binary(x, "Mul", p->a_scale, p->b_scale));
    return p->bias == CD_GRAPH_NONE ? scaled : cd_onnx_expand_binary(x, "Add", scaled, p->bias);
}

/* A, B, their scales, their zero points, bias */
static void integer_to_float(cd_expand *x) {
    const cd_onnx_expand_product p = {cd_onnx_expand_in(x, 0),
                                      cd_onnx_expand_in(x, 1),
                                      cd_onnx_expand_in(x, 2),
                                      cd_onnx_expand_in(x, 3),
                                      some(x, 4),
                                      some(x, 5),
                                      some(x, 6)};
    cd_onnx_expand_out(x, 0, cd_onnx_expand_integer_product(x, &p));
}

/* A in float32, B, its scale and zero point, bias: A is quantised as the network runs. */
static void dynamic_product(cd_expand *x) {
    uint32_t q[3];
    const uint32_t a = cd_onnx_expand_in(x, 0);
    cd_onnx_expand_several(x, "DynamicQuantizeLinear", &a, 1, NULL, 0, q, 3);
    const cd_onnx_expand_product p = {
        q[0], cd_onnx_expand_in(x, 1), q[1], cd_onnx_expand_in(x, 2), q[2], some(x, 3), some(x, 4)};
    cd_onnx_expand_out(x, 0, cd_onnx_expand_integer_product(x, &p));
}

/* A, scale, zero point, B, scale, zero point, C in units of alpha and both scales (it is added to
 * whole numbers), scale and zero point of the result: without these it is float32. */
static void gemm(cd_expand *x) {
    const uint32_t a = dequantized(x, 0), b = dequantized(x, 3), in[] = {a, b};
    uint32_t y = same_op(x, "Gemm", in, 2);
    if (cd_onnx_expand_has(x, 6)) {
        const uint32_t units = cd_onnx_expand_times(
            x, cd_onnx_expand_binary(x, "Mul", cd_onnx_expand_in(x, 1), cd_onnx_expand_in(x, 4)),
            cd_onnx_expand_float(x, "alpha", 1));
        y = cd_onnx_expand_binary(
            x, "Add", y,
            cd_onnx_expand_binary(x, "Mul", cd_onnx_expand_cast(x, x->in[6], CD_F32), units));
    }
    if (cd_onnx_expand_has(x, 7)) give_quantized(x, y, 7);
    else cd_onnx_expand_out(x, 0, y);
}

#define POOL "auto_pad ceil_mode count_include_pad kernel_shape pads strides channels_last"
const cd_expansion cd_onnx_expansions_quantized[] = {
    {MS, "QuantizeLinear", same_domain, "axis saturate"},
    {MS, "DequantizeLinear", same_domain, "axis"},
    {MS, "QLinearAdd", binary, ""},
    {MS, "QLinearMul", binary, ""},
    {MS, "QLinearSigmoid", unary, ""},
    {MS, "QLinearLeakyRelu", unary, "alpha"},
    {MS, "QLinearSoftmax", unary, "axis opset"},
    {MS, "QLinearAveragePool", unary, POOL},
    {MS, "QLinearGlobalAveragePool", unary, "channels_last"},
    {MS, "QLinearReduceMean", unary, "axes keepdims"},
    {MS, "QLinearConcat", concat, "axis"},
    {MS, "QGemm", gemm, "alpha transA transB"},
    {MS, "MatMulIntegerToFloat", integer_to_float, ""},
    {MS, "DynamicQuantizeMatMul", dynamic_product, ""},
    {NULL, NULL, NULL, NULL},
};
