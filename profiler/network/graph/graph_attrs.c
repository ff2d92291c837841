/* Which attributes ONNX defines for an operator, from opset 7 on. Whoever reads a file asks here
 * first: an attribute that is in no list cannot be taken into account, and is reported. Those that
 * stand in a list and that no rule reads are of one of these kinds:
 *   values only  of operators without a compute definition (Shrink's lambd, GridSample's
 *                align_corners, RandomNormal's mean, TopK's sorted): neither shapes nor types nor
 *                the operation count depend on them, and the operator is named as one without a
 *                definition
 *   one type     saturate, round_mode: of reals of 8 bits, with which nothing is computed;
 *                stash_type: the type of sums, float32 unless told otherwise
 *   training     momentum, seed, ratio
 * tests/reference/onnx_attrs.py compares the list with onnx.defs. */
#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

#define WINDOW "auto_pad dilations kernel_shape pads strides"
#define CELL   "activation_alpha activation_beta activations clip direction hidden_size layout"

/* A line for operators with the same attributes: "operators: attributes". */
static const char *const lists[][2] = {
    {"ArgMax ArgMin", "axis keepdims select_last_index"},
    {"AveragePool AveragePoolGrad", WINDOW " ceil_mode count_include_pad"},
    {"MaxPool MaxPoolGrad", WINDOW " ceil_mode storage_order"},
    {"LpPool", WINDOW " ceil_mode p"},
    {"MaxUnpool", "kernel_shape pads strides"},
    {"GlobalLpPool", "p"},
    {"MaxRoiPool", "pooled_shape spatial_scale"},
    {"RoiAlign",
     "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale"},
    {"Conv ConvInteger QLinearConv", WINDOW " group"},
    {"ConvTranspose", WINDOW " group output_padding output_shape"},
    {"DeformConv", "dilations group kernel_shape offset_group pads strides"},
    {"Gemm", "alpha beta transA transB"},
    {"Einsum", "equation"},
    {"RNN", CELL},
    {"GRU", CELL " linear_before_reset"},
    {"LSTM", CELL " input_forget"},
    {"BatchNormalization", "epsilon momentum spatial training_mode"},
    {"InstanceNormalization", "epsilon"},
    {"GroupNormalization", "epsilon num_groups stash_type"},
    {"LayerNormalization RMSNormalization SimplifiedLayerNormalization", "axis epsilon stash_type"},
    {"LpNormalization", "axis p"},
    {"LRN", "alpha beta bias size"},
    {"Attention", "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode "
                  "right_window_size scale softcap softmax_precision"},
    {"RotaryEmbedding", "interleaved num_heads rotary_embedding_dim"},
    {"NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", "ignore_index reduction"},
    {"Celu Elu LeakyRelu SwiGLU Swish ThresholdedRelu", "alpha"},
    {"HardSigmoid", "alpha beta"},
    {"Selu", "alpha gamma"},
    {"Shrink", "bias lambd"},
    {"Gelu", "approximate"},
    {"Clip", "max min"},
    {"Mod", "fmod"},
    {"BitShift", "direction"},
    {"IsInf", "detect_negative detect_positive"},
    {"Cast", "round_mode saturate to"},
    {"CastLike", "round_mode saturate"},
    {"BitCast", "to"},
    {"Dropout", "ratio seed"},
    {"QuantizeLinear", "axis block_size output_dtype precision saturate"},
    {"DequantizeLinear", "axis block_size output_dtype"},
    {"ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
     "ReduceSum ReduceSumSquare",
     "axes keepdims noop_with_empty_axes"},
    {"CumSum CumProd", "exclusive reverse"},
    {"TopK", "axis k largest sorted"},
    {"Unique", "axis sorted"},
    {"Compress Concat Flatten Gather GatherElements Hardmax LogSoftmax OneHot Scatter Softmax",
     "axis"},
    {"CenterCropPad MeanVarianceNormalization Squeeze Unsqueeze", "axes"},
    {"GatherND", "batch_dims"},
    {"ScatterElements", "axis reduction"},
    {"ScatterND", "reduction"},
    {"TensorScatter", "axis mode"},
    {"Reshape", "allowzero"},
    {"Shape", "end start"},
    {"Transpose", "perm"},
    {"Slice", "axes ends starts"},
    {"Split", "axis num_outputs split"},
    {"Pad", "mode pads value"},
    {"Trilu", "upper"},
    {"ReverseSequence", "batch_axis time_axis"},
    {"Resize", "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
               "extrapolation_value keep_aspect_ratio_policy mode nearest_mode"},
    {"Upsample", "mode scales"},
    {"GridSample", "align_corners mode padding_mode"},
    {"DepthToSpace", "blocksize mode"},
    {"SpaceToDepth", "blocksize"},
    {"NonMaxSuppression", "center_point_box"},
    {"ConstantOfShape", "dtype value"},
    {"EyeLike", "dtype k"},
    {"Bernoulli", "dtype seed"},
    {"Range", "stash_type"},
    {"RandomNormal", "dtype mean scale seed shape"},
    {"RandomNormalLike", "dtype mean scale seed"},
    {"RandomUniform", "dtype high low seed shape"},
    {"RandomUniformLike", "dtype high low seed"},
};

/* Texts that an attribute may be: of these operators, or of all ("*"). */
static const char *const texts[][3] = {
    {"*", "auto_pad", "NOTSET SAME_UPPER SAME_LOWER VALID"},
    {"*", "direction", "forward reverse bidirectional LEFT RIGHT"},
    {"*", "reduction", "none mean sum add mul max min"},
    {"Gelu", "approximate", "none tanh"},
    {"DepthToSpace", "mode", "DCR CRD"},
    {"Pad", "mode", "constant reflect edge wrap"},
    {"Resize", "mode", "nearest linear cubic"},
    {"Upsample", "mode", "nearest linear bilinear"},
    {"GridSample", "mode", "linear nearest cubic bilinear bicubic"},
    {"Resize", "coordinate_transformation_mode",
     "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric "
     "tf_half_pixel_for_nn tf_crop_and_resize"},
    {"Resize", "nearest_mode", "round_prefer_floor round_prefer_ceil floor ceil"},
    {"Resize", "keep_aspect_ratio_policy", "stretch not_larger not_smaller"},
};

static bool has_word(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *s = list; n && (s = strstr(s, word)); s += n)
        if ((s == list || s[-1] == ' ') && (!s[n] || s[n] == ' ')) return true;
    return false;
}

bool cd_graph_attr_is_known(const char *op, const char *name) {
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (has_word(lists[i][0], op)) return has_word(lists[i][1], name);
    return false;
}

static cdmpp_status check_text(const char *op, const cd_graph_attr *a, cdmpp_err *err) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts && a->kind == CD_GRAPH_ATTR_STR; i++)
        if ((*texts[i][0] == '*' || !strcmp(texts[i][0], op)) && !strcmp(texts[i][1], a->name) &&
            *a->s && !has_word(texts[i][2], a->s))
            return CD_FAIL(err, EUNSUPPORTED, "attribute %s: expected one of %s, found \"%.60s\"",
                           a->name, texts[i][2], a->s);
    return CDMPP_OK;
}

/* In place: what is left over keeps its order. */
cdmpp_status cd_graph_attrs_take_known(cd_graph *g, const char *op, cd_graph_attr *attr,
                                       uint32_t *n, cdmpp_err *err) {
    uint32_t left = 0;
    bool ignored;
    if (!cd_graph_rule_find(op, g->opset, &ignored)) return CDMPP_OK;
    for (uint32_t i = 0; i < *n; i++) {
        if (cd_graph_attr_is_known(op, attr[i].name)) attr[left++] = attr[i];
        else
            CD_TRY(cd_graph_note(g, err,
                                 "%.40s has an attribute \"%.60s\", which is none of ONNX's: it is "
                                 "not taken into account",
                                 op, attr[i].name));
    }
    *n = left;
    for (uint32_t i = 0; i < left; i++) CD_TRY(check_text(op, &attr[i], err));
    return CDMPP_OK;
}
