/* offload_boundary -- the conversions of a value that goes from one device to another: change of
 * layout, quantise and dequantise.
 *
 *   npu (int8, nchw) ─> dsp (int8, nhwc)
 *   as BYOC inserts them   dequantise int8 -> float32 │ layout nchw -> host's │
 *                          layout host's -> nhwc │ quantise float32 -> int8
 *   what is left           layout nchw -> nhwc, of int8: a quarter of the bytes
 *
 *   (1) on cut edges only: within a device nothing is converted;
 *   (2) BYOC converts to the host's format behind a device and from it before a device. Conversions
 *       that undo each other are removed. Conversions of type and of layout are independent, so at
 *       most one of each kind is left;
 *   (3) a value is copied in the narrower of both types. The host does the conversions that are
 *       left, the layout on the narrower type;
 *   (4) seconds of a step on a value of B bytes (as float32): start_s + B (width before + width
 *       after) / (2 * 4) / rate.
 * int8 is symmetric, one scale a tensor: scale = largest |x| / 127, q = nearest(x / scale): off by
 *   scale / 2 at most, largest / 254.
 * No state, any thread. */
#ifndef CD_OFFLOAD_BOUNDARY_H
#define CD_OFFLOAD_BOUNDARY_H

#include "predictor/partition/offload/offload_rules.h"
#include "predictor/partition/placement/placement.h"

typedef enum cd_offload_edge_dtype {
    CD_OFFLOAD_EDGE_INT8,
    CD_OFFLOAD_EDGE_FLOAT16,
    CD_OFFLOAD_EDGE_BFLOAT16,
    CD_OFFLOAD_EDGE_FLOAT32
} cd_offload_edge_dtype;
#define CD_OFFLOAD_EDGE_DTYPES "int8|float16|bfloat16|float32"
typedef enum cd_offload_edge_layout {
    CD_OFFLOAD_EDGE_NCHW,
    CD_OFFLOAD_EDGE_NHWC
} cd_offload_edge_layout;
#define CD_OFFLOAD_EDGE_LAYOUTS "nchw|nhwc"

typedef struct cd_offload_edge_format {
    cd_offload_edge_dtype dtype;
    cd_offload_edge_layout layout;
    /* bytes of a value (as float32) that the host converts in a second */
    double rate;
} cd_offload_edge_format;

typedef struct cd_offload_edge_step {
    bool layout;  /* else dtype */
    int from, to; /* cd_offload_edge_layout or cd_offload_edge_dtype */
    int width;    /* bytes of an element: of a layout step, while it is done */
} cd_offload_edge_step;

enum { CD_OFFLOAD_EDGE_STEPS = 4 };
typedef struct cd_offload_edge {
    uint32_t n_all, n; /* steps as BYOC inserts them; steps that are left */
    cd_offload_edge_step all[CD_OFFLOAD_EDGE_STEPS], step[CD_OFFLOAD_EDGE_STEPS];
    double packed;     /* bytes that are copied for one byte of the value (as float32) */
    double s_per_byte; /* of the steps that are left */
} cd_offload_edge;

/* All conversions of an edge, and those that are left. */
void cd_offload_edge_make(const cd_offload_edge_format *from, const cd_offload_edge_format *to,
                          const cd_offload_edge_format *host, cd_offload_edge *out);
/* The link with its conversions; start_s: of one step. */
cd_place_link cd_offload_edge_link(const cd_place_link *plain, const cd_offload_edge *e,
                                   double start_s);
/* "quantise float32 -> int8, layout nhwc -> nchw"; "" where nothing is left. */
void cd_offload_edge_print(const cd_offload_edge *e, cd_buf *out);
#endif
