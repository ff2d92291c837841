/* dynamic_internal -- what the files of predictor/dynamic share. Private to the room. */
#ifndef CD_DYNAMIC_INTERNAL_H
#define CD_DYNAMIC_INTERNAL_H
#include "predictor/dynamic/dynamic.h"

/* The network at one size, ready to run. */
typedef struct cd_dynamic_net {
    int64_t size;
    cd_arena arena;
    cd_hardware hardware;
    cd_graph *graph;
    cd_network_values_options o;
    cd_network_live *live;
} cd_dynamic_net;

/* An input or result over the size: dimension i is base[i] + per[i] x size; or it is no such line,
 * and only the points' shapes are known. */
typedef struct cd_dynamic_value {
    const char *name;
    cd_dtype dtype;
    uint32_t rank, k;
    bool result;
    const cd_dynamic *points; /* NULL: a line */
    int64_t base[CD_GRAPH_MAX_RANK], per[CD_GRAPH_MAX_RANK];
} cd_dynamic_value;

struct cd_dynamic {
    const cd_dynamic_options *o;
    cd_arena arena;
    cd_measure *measure;
    size_t n;
    cd_dynamic_net *net; /* (n) the points, ascending */
    uint32_t n_input, n_result;
    cd_dynamic_value *input, *result;
    const char *only_points; /* NULL: sizes between them are served */
    void *scratch;           /* as large as the largest input or result of a point */
};

/* The box `box` at the origin of arrays of shape `from` and `to`. */
void cd_dynamic_copy_box(const cd_graph_shape *box, size_t element, const cd_graph_shape *from,
                         const void *src, const cd_graph_shape *to, void *dst);

/* Contents of all inputs at a size, and room for results. */
typedef struct cd_dynamic_data {
    cd_arena arena;
    void **input, **result, **expect;
} cd_dynamic_data;
#endif
