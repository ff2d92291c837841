/* fuse_quantize -- convolutions and products in 8 bits.
 *
 *   x ── REQUANTIZE ──> q (uint8) ── PACK4 ──> words ─┐
 *   w ── QUANTIZE ───> int8 ──────── PACK4 ──> words ─┤
 *     ┌───────────────────────────────────────────────┘
 *     └─> CONV of words, int32 ── + int32 ── cast * scale ──> float ── relu ...
 *         └─────────── one program, as of the float network ────────────┘
 *
 * What is quantised, and how:
 *   (1) data: uint8, a scale and a zero point for each tensor: value = (q - zero) * scale, and 0 is
 *       a q. Weights: int8 in -127 .. 127, a scale for each channel of the result, no zero point.
 *       Sums of products and the bias are int32; sums are exact, in any order;
 *   (2) four channels are one word (PACK4). Of data whose channels are last it is a view; channels
 *       that are no multiple of 4 are filled up, data with their zero point, weights with 0. A word
 *       is an element of 32 bits to schedules, packing and vectors, and the product of two is dot4
 *       (features/expr): one instruction for each vector where the processor has VNNI;
 *   (3) what padding of a window puts around data is the zero point. So sum of (q - zero) w = sum
 *       of q w - zero * sum of w, and the second part is part of the bias, made once;
 *   (4) rounded weights times the mean of the data are a shift of the result that every input has:
 *       where means are known, the bias takes it back (bias correction: Nagel et al., Data-Free
 *       Quantization, ICCV 2019);
 *   (5) a tensor that a layer reads in 8 bits is stored so; its other readers undo it, each in its
 *       own program. A chain of such layers stays in 8 bits;
 *   (6) layers that cannot (groups, transposed convolutions, products of two tensors of data, one
 *       dimension) stay in float and say why.
 * A file with QuantizeLinear and DequantizeLinear says itself what is quantised, by the same nodes;
 * int8 data become uint8, 128 higher. Reached through fusion.h. One thread. */
#ifndef CD_FUSE_QUANTIZE_H
#define CD_FUSE_QUANTIZE_H
#include <stdint.h>

typedef enum cd_quantize_mode {
    /* as the file says: layers whose operands it quantises are in 8 bits */
    CD_QUANTIZE_FILE,
    CD_QUANTIZE_FLOAT, /* quantising of data is left out: the network in float */
    /* the same, and what a layer could read in 8 bits is a result too, behind those of the
     * network */
    CD_QUANTIZE_OBSERVE,
    CD_QUANTIZE_RANGES /* in 8 bits by ranges of these */
} cd_quantize_mode;

typedef struct cd_quantize {
    cd_quantize_mode mode;
    uint32_t n;              /* RANGES: as many as there are observed tensors, in their order */
    const float *low, *high; /* (n) */
    /* (n) tensors of the graph: the mean of each channel of it, or of each place in its last
     *     dimension; NULL: not known */
    const uint32_t *mean;
} cd_quantize;

/* A convolution or product of the network. */
typedef struct cd_quantize_layer {
    uint32_t node; /* of the graph; CD_GRAPH_NONE */
    double flop;
    const char *why; /* it stays in float; NULL: it is in 8 bits */
} cd_quantize_layer;

/* Scale and zero point of the range low .. high, which is widened to contain 0. A range without
 * extent has scale 1. */
void cd_fuse_quantize_scale(float low, float high, float *scale, int *zero);
#endif
