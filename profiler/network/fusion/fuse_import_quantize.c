/* Operators of quantised files. QuantizeLinear and DequantizeLinear become one node each; operators
 * on quantised numbers are the same operators between them, as the standard defines them.
 * cd_fuse_quantize makes programs in 8 bits of both. */
#include <string.h>

#include "profiler/network/fusion/fuse_import_internal.h"

/* Operand k, a zero point, is one number that is known. Absent: 0. */
static bool zero_is_known(const cd_fuse_importer *m, uint32_t k, double *zero) {
    *zero = 0;
    if (!cd_fuse_import_has(m, k)) return true;
    const cd_graph_tensor *t = cd_fuse_import_tensor(m, k);
    const int64_t n = cd_graph_shape_elements(&t->shape);
    if (!t->value) return false;
    for (int64_t i = 1; i < n; i++)
        if (t->value[i] != t->value[0]) return false;
    if (n > 0) *zero = (double)t->value[0];
    return true;
}

/* Operand k, which stands along the axis where it has many elements. */
static uint32_t along(cd_fuse_importer *m, uint32_t k, const cd_graph_shape *x, int64_t axis) {
    const uint32_t s = cd_fuse_import_input(m, k);
    const int64_t n = cd_graph_shape_elements(cd_fuse_import_shape(m, s));
    cd_graph_shape full = {x->rank, {0}};
    axis = cd_fuse_import_axis(x, axis);
    if (n != 1 && (axis < 0 || axis >= x->rank || x->dim[axis] != n ||
                   cd_fuse_import_shape(m, s)->rank != 1)) {
        m->why = "scales and zero points of blocks have no compute definition";
        return 0;
    }
    for (uint32_t d = 0; d < full.rank; d++) full.dim[d] = d == axis ? n : 1;
    if (n == 1) full.rank = 0;
    return cd_fuse_reshape(m->f, s, &full);
}

/* Operand k, a scale: a number that is known, or a weight. */
static uint32_t scale_of(cd_fuse_importer *m, uint32_t k, const cd_graph_shape *x, int64_t axis) {
    double v;
    return cd_fuse_import_number(m, k, &v) ? cd_fuse_const(m->f, CD_F32, v) : along(m, k, x, axis);
}

static bool is_byte(cd_dtype t) { return cd_expr_dtype_bits(t) == 8; }

/* A zero point that is known only as the network runs, or that differs among channels, is added to
 * the rounded quotient. */
static uint32_t quantized_by_data(cd_fuse_importer *m, uint32_t x, uint32_t scale, uint32_t zero,
                                  cd_dtype t, const cd_fuse_attr *a) {
    cd_fuse_graph *f = m->f;
    const uint32_t q =
        cd_fuse_unary(f, CD_FUSE_OP_ROUND, cd_fuse_binary(f, CD_FUSE_OP_DIV, x, scale), 0, 0);
    return cd_fuse_cast(
        f,
        cd_fuse_unary(f, CD_FUSE_OP_CLIP,
                      cd_fuse_binary(f, CD_FUSE_OP_ADD, q, cd_fuse_cast(f, zero, CD_F32)), a->p,
                      a->q),
        t);
}

static uint32_t quantized(cd_fuse_importer *m, uint32_t x, uint32_t k, cd_dtype t, int64_t axis) {
    const bool is_unsigned = cd_expr_dtype_kind(t) == CD_T_UINT;
    const cd_graph_shape s = *cd_fuse_import_shape(m, x);
    cd_fuse_attr a = {.p = is_unsigned ? 0 : -128, .q = is_unsigned ? 255 : 127};
    if (!is_byte(t) || m->f->node[x].dtype != CD_F32 ||
        cd_fuse_import_tensor(m, k)->dtype != CD_F32)
        m->why = "only float32 to 8 bits has a compute definition";
    if (cd_graph_node_int(m->n, "precision", 0) > 1)
        m->why = "a quotient in another type than float32 has no compute definition";
    const uint32_t in[2] = {x, m->why ? 0 : scale_of(m, k, &s, axis)};
    if (m->why) return 0;
    if (zero_is_known(m, k + 1, &a.s))
        return cd_fuse_add_node(m->f, CD_FUSE_OP_QUANTIZE, t, &s, in, 2, &a);
    const uint32_t zero = along(m, k + 1, &s, axis);
    return m->why ? 0 : quantized_by_data(m, x, in[1], zero, t, &a);
}

/* Operand x, with its scale and zero point as operands k and k + 1. *scale: its node. A zero point
 * that is known only as the network runs, or that differs among channels, is taken off in whole
 * numbers. */
static uint32_t dequantized(cd_fuse_importer *m, uint32_t x, uint32_t k, int64_t axis,
                            uint32_t *scale) {
    const cd_graph_shape s = *cd_fuse_import_shape(m, x);
    const cd_dtype t = m->f->node[x].dtype;
    cd_fuse_attr a = {0};
    /* output_dtype */
    const bool other =
        !strcmp(m->n->op, "DequantizeLinear") && m->g->tensor[m->n->out[0]].dtype != CD_F32;
    if ((!is_byte(t) && t != CD_I32) || other || cd_fuse_import_tensor(m, k)->dtype != CD_F32)
        m->why = "only 8 bits or int32 to float32 has a compute definition";
    const uint32_t in[2] = {x, m->why ? 0 : scale_of(m, k, &s, axis)};
    *scale = in[1];
    if (m->why) return 0;
    if (zero_is_known(m, k + 1, &a.s))
        return cd_fuse_add_node(m->f, CD_FUSE_OP_DEQUANTIZE, CD_F32, &s, in, 2, &a);
    const uint32_t zero = along(m, k + 1, &s, axis);
    if (m->why) return 0;
    const uint32_t whole = cd_fuse_binary(m->f, CD_FUSE_OP_SUB, cd_fuse_cast(m->f, x, CD_I32),
                                          cd_fuse_cast(m->f, zero, CD_I32));
    return cd_fuse_binary(m->f, CD_FUSE_OP_MUL, cd_fuse_cast(m->f, whole, CD_F32), in[1]);
}

static void quantize_linear(cd_fuse_importer *m) {
    const uint32_t y = quantized(m, cd_fuse_import_input(m, 0), 1, m->g->tensor[m->n->out[0]].dtype,
                                 cd_graph_node_int(m->n, "axis", 1));
    if (!m->why) cd_fuse_import_output(m, 0, y);
}

static void dequantize_linear(cd_fuse_importer *m) {
    uint32_t scale;
    const uint32_t y =
        dequantized(m, cd_fuse_import_input(m, 0), 1, cd_graph_node_int(m->n, "axis", 1), &scale);
    if (!m->why) cd_fuse_import_output(m, 0, y);
}

static cd_dtype result_type(const cd_fuse_importer *m) { return m->g->tensor[m->n->out[0]].dtype; }

/* x, its scale and zero point, w, its scale and zero point, those of the result, bias: of int32 in
 * units of both scales. */
static void qlinear_conv(cd_fuse_importer *m) {
    uint32_t of_x, of_w = 0;
    const uint32_t x = dequantized(m, cd_fuse_import_input(m, 0), 1, 1, &of_x),
                   w = m->why ? 0 : dequantized(m, cd_fuse_import_input(m, 3), 4, 0, &of_w);
    if (m->why) return;
    uint32_t y = cd_fuse_import_conv(m, CD_FUSE_OP_CONV, x, w);
    if (m->why) return;
    if (cd_fuse_import_has(m, 8)) {
        const cd_graph_shape per = {1, {cd_graph_shape_elements(cd_fuse_import_shape(m, of_w))}};
        const uint32_t ws = cd_fuse_reshape(m->f, of_w, &per), b = cd_fuse_import_input(m, 8);
        const uint32_t in[2] = {b, cd_fuse_binary(m->f, CD_FUSE_OP_MUL, ws, of_x)};
        const cd_graph_shape s = *cd_fuse_import_shape(m, b);
        const uint32_t bias =
            cd_fuse_add_node(m->f, CD_FUSE_OP_DEQUANTIZE, CD_F32, &s, in, 2, NULL);
        y = cd_fuse_binary(m->f, CD_FUSE_OP_ADD, y,
                           cd_fuse_import_channels(m, bias, cd_fuse_import_shape(m, y)->rank));
    }
    y = quantized(m, y, 6, result_type(m), 1);
    if (!m->why) cd_fuse_import_output(m, 0, y);
}

static void qlinear_matmul(cd_fuse_importer *m) {
    uint32_t scale;
    const uint32_t a = dequantized(m, cd_fuse_import_input(m, 0), 1, -2, &scale),
                   b = m->why ? 0 : dequantized(m, cd_fuse_import_input(m, 3), 4, -1, &scale);
    if (m->why) return;
    const uint32_t y = quantized(m, cd_fuse_import_matmul(m, a, b), 6, result_type(m), 1);
    if (!m->why) cd_fuse_import_output(m, 0, y);
}

const cd_fuse_import_rule cd_fuse_import_rules_quantize[] = {
    {"QuantizeLinear", quantize_linear},
    {"DequantizeLinear", dequantize_linear},
    {"QLinearConv", qlinear_conv},
    {"QLinearMatMul", qlinear_matmul},
    {NULL, NULL},
};
