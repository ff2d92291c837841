/* Normalisations, activations, products and embeddings that are several standard operators. */
#include <string.h>

#include "profiler/network/onnx/onnx_expand_internal.h"

#define MS "com.microsoft"

static cd_graph_attr int_attr(const char *name, int64_t v) {
    return (cd_graph_attr){.name = name, .kind = CD_GRAPH_ATTR_INT, .i = v};
}
static cd_graph_attr real_attr(const char *name, double v) {
    return (cd_graph_attr){.name = name, .kind = CD_GRAPH_ATTR_FLOAT, .f = v};
}

/* ---- norms ---- */

/* x / sqrt(mean(x^2) + epsilon) * gamma over the dimensions from `axis` on, as ONNX's function has
 * it: sums of short reals are in float32. */
uint32_t cd_onnx_expand_rms_norm(cd_expand *x, uint32_t a, uint32_t gamma, int64_t axis,
                                 double epsilon) {
    int64_t axes[CD_GRAPH_MAX_RANK];
    const int64_t rank = cd_onnx_expand_shape(x, a).rank;
    const cd_dtype type = cd_onnx_expand_type(x, a);
    uint32_t n = 0;
    if (x->st || x->why) return CD_GRAPH_NONE;
    if (cd_expr_dtype_bits(type) < 32) a = cd_onnx_expand_cast(x, a, CD_F32);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) cd_onnx_expand_wrong(x, "no such axis");
    for (int64_t d = axis; !x->st && !x->why && d < rank; d++) axes[n++] = d;
    const uint32_t in[] = {cd_onnx_expand_binary(x, "Mul", a, a), cd_onnx_expand_ints(x, axes, n)};
    const uint32_t mean = cd_onnx_expand_add(x, "ReduceMean", in, 2, NULL, 0);
    const uint32_t root = cd_onnx_expand_unary(
        x, "Sqrt",
        cd_onnx_expand_binary(x, "Add", mean,
                              cd_onnx_expand_real(x, cd_onnx_expand_type(x, a), epsilon)));
    return cd_onnx_expand_binary(
        x, "Mul", cd_onnx_expand_cast(x, cd_onnx_expand_binary(x, "Div", a, root), type), gamma);
}

static void rms_norm(cd_expand *x) {
    cd_onnx_expand_out(x, 0,
                       cd_onnx_expand_rms_norm(x, cd_onnx_expand_in(x, 0), cd_onnx_expand_in(x, 1),
                                               cd_onnx_expand_int(x, "axis", -1),
                                               cd_onnx_expand_float(x, "epsilon", 1e-5)));
}

/* LayerNormalization's further results are those of the fused operator, too: the mean and the
 * inverse of the deviation. */
static void layer_norm(cd_expand *x, uint32_t a, uint32_t gamma, uint32_t beta, double epsilon) {
    const uint32_t in[] = {a, gamma, beta};
    uint32_t out[3];
    const cd_graph_attr p[] = {int_attr("axis", -1), real_attr("epsilon", epsilon)};
    const uint32_t n_out = cd_onnx_expand_wants(x, 2) ? 3 : cd_onnx_expand_wants(x, 1) ? 2 : 1;
    cd_onnx_expand_several(x, "LayerNormalization", in, 3, p, 2, out, n_out);
    for (uint32_t k = 0; k < n_out; k++) cd_onnx_expand_out(x, k, out[k]);
}

/* The sum of what is skipped, what comes through, and a bias. */
static uint32_t skipped(cd_expand *x, uint32_t bias) {
    const uint32_t sum =
        cd_onnx_expand_binary(x, "Add", cd_onnx_expand_in(x, 0), cd_onnx_expand_in(x, 1));
    const uint32_t all = cd_onnx_expand_has(x, bias)
                             ? cd_onnx_expand_binary(x, "Add", sum, cd_onnx_expand_in(x, bias))
                             : sum;
    cd_onnx_expand_out(x, 3, all);
    return all;
}

static void skip_layer_norm(cd_expand *x) {
    const uint32_t sum = skipped(x, 4);
    layer_norm(x, sum, cd_onnx_expand_in(x, 2), cd_onnx_expand_has(x, 3) ? x->in[3] : CD_GRAPH_NONE,
               cd_onnx_expand_float(x, "epsilon", 1e-12));
}

static void skip_rms_norm(cd_expand *x) {
    const uint32_t sum = skipped(x, 3);
    cd_onnx_expand_out(x, 0,
                       cd_onnx_expand_rms_norm(x, sum, cd_onnx_expand_in(x, 2), -1,
                                               cd_onnx_expand_float(x, "epsilon", 1e-12)));
}

/* Rows of the tables of words, positions and segments, added and normalised. */
static void embed_layer_norm(cd_expand *x) {
    const uint32_t ids = cd_onnx_expand_in(x, 0), places = cd_onnx_expand_in(x, 3);
    const cd_graph_shape s = cd_onnx_expand_shape(x, ids);
    if (!cd_onnx_expand_rank(x, ids, 2, 2) || !cd_onnx_expand_rank(x, places, 2, 2)) return;
    const uint32_t at = cd_onnx_expand_has(x, 8)
                            ? cd_onnx_expand_gather(x, places, x->in[8], 0)
                            : cd_onnx_expand_slice(x, places, 0, 0, s.dim[1], 1);
    uint32_t sum = cd_onnx_expand_binary(
        x, "Add", cd_onnx_expand_gather(x, cd_onnx_expand_in(x, 2), ids, 0), at);
    if (cd_onnx_expand_has(x, 1) && cd_onnx_expand_has(x, 4))
        sum = cd_onnx_expand_binary(x, "Add", sum, cd_onnx_expand_gather(x, x->in[4], x->in[1], 0));
    layer_norm(x, sum, cd_onnx_expand_in(x, 5), cd_onnx_expand_in(x, 6),
               cd_onnx_expand_float(x, "epsilon", 1e-12));
    if (x->n_out > 1) x->out[1] = CD_GRAPH_NONE;
    if (x->n_out > 2) x->out[2] = sum;
    if (!cd_onnx_expand_wants(x, 1)) return;
    if (cd_onnx_expand_has(x, 7)) { /* how many of each row the mask lets through */
        const int64_t last = 1;
        const uint32_t in[] = {x->in[7], cd_onnx_expand_ints(x, &last, 1)};
        const cd_graph_attr keep = int_attr("keepdims", 0);
        cd_onnx_expand_out(
            x, 1,
            cd_onnx_expand_cast(x, cd_onnx_expand_add(x, "ReduceSum", in, 2, &keep, 1), CD_I32));
    } else {
        const cd_graph_shape rows = {1, {s.dim[0]}};
        int64_t *zero = CD_NEWN(x->r->a, int64_t,
                                (size_t)s.dim[0] < CD_GRAPH_MAX_VALUE ? (size_t)s.dim[0] + 1 : 1);
        uint32_t t = CD_GRAPH_NONE;
        if (s.dim[0] >= CD_GRAPH_MAX_VALUE) cd_onnx_expand_wrong(x, "more rows than are kept");
        else if (!zero && !x->st) x->st = CD_FAIL(x->err, ENOMEM, "a mask");
        else if (!x->st)
            x->st = cd_graph_constant(x->r->g, "mask", CD_I32, &rows, zero, NULL, &t, x->err);
        cd_onnx_expand_out(x, 1, t);
    }
}

/* ---- activations ---- */

static uint32_t gelu_of(cd_expand *x, uint32_t a, bool fast) {
    const cd_graph_attr how = {
        .name = "approximate", .kind = CD_GRAPH_ATTR_STR, .s = fast ? "tanh" : "none"};
    return cd_onnx_expand_add(x, "Gelu", &a, 1, &how, 1);
}

static uint32_t biased(cd_expand *x, uint32_t a, uint32_t k) {
    return cd_onnx_expand_has(x, k) ? cd_onnx_expand_binary(x, "Add", a, x->in[k]) : a;
}

static void gelu(cd_expand *x) {
    cd_onnx_expand_out(x, 0, gelu_of(x, biased(x, cd_onnx_expand_in(x, 0), 1), false));
}
static void fast_gelu(cd_expand *x) {
    cd_onnx_expand_out(x, 0, gelu_of(x, biased(x, cd_onnx_expand_in(x, 0), 1), true));
}

static uint32_t swish_of(cd_expand *x, uint32_t a, double alpha) {
    return cd_onnx_expand_binary(
        x, "Mul", a, cd_onnx_expand_unary(x, "Sigmoid", cd_onnx_expand_times(x, a, alpha)));
}

static void swish(cd_expand *x) {
    cd_onnx_expand_out(x, 0,
                       swish_of(x, cd_onnx_expand_in(x, 0), cd_onnx_expand_float(x, "alpha", 1)));
}
static void quick_gelu(cd_expand *x) {
    cd_onnx_expand_out(
        x, 0,
        swish_of(x, cd_onnx_expand_in(x, 0), cd_onnx_expand_float(x, "alpha", (double)1.702f)));
}
static void swiglu(cd_expand *x) {
    cd_onnx_expand_out(x, 0,
                       cd_onnx_expand_binary(x, "Mul",
                                             swish_of(x, cd_onnx_expand_in(x, 0),
                                                      cd_onnx_expand_float(x, "alpha", 1)),
                                             cd_onnx_expand_in(x, 1)));
}

static void thresholded(cd_expand *x) {
    const uint32_t a = cd_onnx_expand_in(x, 0);
    const uint32_t in[] = {
        cd_onnx_expand_binary(
            x, "Greater", a,
            cd_onnx_expand_real(x, cd_onnx_expand_type(x, a), cd_onnx_expand_float(x, "alpha", 1))),
        a, cd_onnx_expand_real(x, cd_onnx_expand_type(x, a), 0)};
    cd_onnx_expand_out(x, 0, cd_onnx_expand_add(x, "Where", in, 3, NULL, 0));
}

/* Data, bias, what is skipped. */
static void bias_add(cd_expand *x) {
    cd_onnx_expand_out(x, 0, biased(x, biased(x, cd_onnx_expand_in(x, 0), 1), 2));
}

/* Half of the channels is the gate of the other half. */
static void bias_split_gelu(cd_expand *x) {
    const uint32_t a = biased(x, cd_onnx_expand_in(x, 0), 1);
    const cd_graph_shape s = cd_onnx_expand_shape(x, a);
    const int64_t n = s.rank ? s.dim[s.rank - 1] : 0;
    cd_onnx_expand_out(
        x, 0,
        cd_onnx_expand_binary(x, "Mul", cd_onnx_expand_slice(x, a, -1, 0, n / 2, 1),
                              gelu_of(x, cd_onnx_expand_slice(x, a, -1, n / 2, n, 1), false)));
}

/* ---- products with what comes behind ---- */

static uint32_t flipped(cd_expand *x, uint32_t a) {
    int64_t perm[CD_GRAPH_MAX_RANK];
    const uint32_t rank = cd_onnx_expand_shape(x, a).rank;
    if (rank < 2) return a;
    for (uint32_t d = 0; d < rank; d++)
        perm[d] = d + 2 < rank ? d : d + 2 == rank ? rank - 1 : rank - 2;
    return cd_onnx_expand_transpose(x, a, rank, perm);
}

static void fused_matmul(cd_expand *x) {
    uint32_t a = cd_onnx_expand_in(x, 0), b = cd_onnx_expand_in(x, 1);
    if (cd_onnx_expand_int(x, "transBatchA", 0) || cd_onnx_expand_int(x, "transBatchB", 0))
        x->why = "batches that are turned";
    if (cd_onnx_expand_int(x, "transA", 0)) a = flipped(x, a);
    if (cd_onnx_expand_int(x, "transB", 0)) b = flipped(x, b);
    cd_onnx_expand_out(x, 0,
                       cd_onnx_expand_times(x, cd_onnx_expand_binary(x, "MatMul", a, b),
                                            cd_onnx_expand_float(x, "alpha", 1)));
}

static void fused_gemm(cd_expand *x) {
    const uint32_t in[] = {cd_onnx_expand_in(x, 0), cd_onnx_expand_in(x, 1),
                           cd_onnx_expand_has(x, 2) ? x->in[2] : CD_GRAPH_NONE};
    const cd_graph_attr p[] = {int_attr("transA", cd_onnx_expand_int(x, "transA", 0)),
                               int_attr("transB", cd_onnx_expand_int(x, "transB", 0)),
                               real_attr("alpha", cd_onnx_expand_float(x, "alpha", 1)),
                               real_attr("beta", cd_onnx_expand_float(x, "beta", 1))};
    const double of[] = {cd_onnx_expand_float(x, "activation_alpha", 0.01),
                         cd_onnx_expand_float(x, "activation_beta", 0.5)};
    cd_onnx_expand_out(x, 0,
                       cd_onnx_expand_activation(x, cd_onnx_expand_add(x, "Gemm", in, 3, p, 4),
                                                 cd_onnx_expand_text(x, "activation"), of, 2));
}

static void fused_conv(cd_expand *x) {
    static const char *const own[] = {"auto_pad",     "dilations", "group",
                                      "kernel_shape", "pads",      "strides"};
    cd_graph_attr *all, some[6];
    uint32_t n, m = 0;
    size_t n_p;
    double p[2] = {0};
    const float *of = cd_onnx_expand_floats(x, "activation_params", &n_p);
    if (!x->st) x->st = cd_onnx_attrs(x->r, x->s, x->n, &all, &n, x->err);
    for (uint32_t i = 0; !x->st && i < n; i++)
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            if (!strcmp(all[i].name, own[k]) && m < 6) some[m++] = all[i];
    for (size_t i = 0; i < n_p && i < 2; i++) p[i] = (double)of[i];
    const uint32_t in[] = {cd_onnx_expand_in(x, 0), cd_onnx_expand_in(x, 1),
                           cd_onnx_expand_has(x, 2) ? x->in[2] : CD_GRAPH_NONE};
    const uint32_t y = biased(x, cd_onnx_expand_add(x, "Conv", in, 3, some, m), 3);
    cd_onnx_expand_out(x, 0,
                       cd_onnx_expand_activation(x, y, cd_onnx_expand_text(x, "activation"), p,
                                                 n_p > 2 ? 2 : (uint32_t)n_p));
}

#define CONV "auto_pad dilations group kernel_shape pads strides activation activation_params"
const cd_expansion cd_onnx_expansions_norm[] = {
    {"", "RMSNormalization", rms_norm, "axis epsilon stash_type"},
    {"", "SimplifiedLayerNormalization", rms_norm, "axis epsilon stash_type"},
    {MS, "SimplifiedLayerNormalization", rms_norm, "axis epsilon stash_type"},
    {MS, "SkipLayerNormalization", skip_layer_norm, "epsilon"},
    {MS, "SkipSimplifiedLayerNormalization", skip_rms_norm, "epsilon"},
    {MS, "EmbedLayerNormalization", embed_layer_norm, "epsilon mask_index_type"},
    {"", "Swish", swish, "alpha"},
    {"", "SwiGLU", swiglu, "alpha"},
    {"", "ThresholdedRelu", thresholded, "alpha"},
    {MS, "Gelu", gelu, ""},
    {MS, "BiasGelu", gelu, ""},
    {MS, "FastGelu", fast_gelu, ""},
    {MS, "QuickGelu", quick_gelu, "alpha"},
    {MS, "BiasAdd", bias_add, ""},
    {MS, "BiasSplitGelu", bias_split_gelu, ""},
    {MS, "FusedMatMul", fused_matmul, "alpha transA transB transBatchA transBatchB"},
    {MS, "TransposeMatMul", fused_matmul, "alpha transA transB"},
    {MS, "FusedGemm", fused_gemm,
     "alpha beta transA transB activation activation_alpha activation_beta activation_gamma"},
    {MS, "FusedConv", fused_conv, CONV},
    {NULL, NULL, NULL, NULL},
};
