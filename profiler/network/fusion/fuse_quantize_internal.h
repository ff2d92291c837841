/* fuse_quantize_internal -- the walk that puts layers into 8 bits, and what its files share.
 * Private to the room. */
#ifndef CD_FUSE_QUANTIZE_INTERNAL_H
#define CD_FUSE_QUANTIZE_INTERNAL_H
#include "profiler/network/fusion/fusion.h"

#define CD_QUANTIZE_U8 CD_DTYPE(CD_T_UINT, 8)
#define CD_QUANTIZE_I8 CD_DTYPE(CD_T_INT, 8)

typedef struct cd_quantize_walk {
    const cd_fuse_graph *from;
    cd_fuse_graph *f;
    const cd_quantize *q;
    uint32_t *to;               /* (from->n) new node; 0: not made */
    uint32_t *code;             /* (from->n) new node of its value as uint8; 0: not made */
    uint32_t *readers, *reader; /* (from->n) how many, and the last; a result counts twice */
    /* (from->n) its number among the tensors with a range; CD_GRAPH_NONE */
    uint32_t *observed;
    uint32_t n_observed;
    bool *live;   /* (from->n) a result needs it */
    bool *undone; /* (from->n) all readers are DEQUANTIZE */
} cd_quantize_walk;

/* A value as uint8, in the new graph: (q - zero) * scale. */
typedef struct cd_quantize_code {
    uint32_t node;
    float scale;
    int zero;
} cd_quantize_code;

/* Dimension 1 of x in words of four numbers of 8 bits; `fill` makes it a multiple of 4. */
uint32_t cd_fuse_quantize_words(cd_fuse_graph *f, uint32_t x, int fill);
#endif
