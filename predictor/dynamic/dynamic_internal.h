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

/* Close it after an error too. */
cdmpp_status cd_dynamic_net_open(cd_dynamic *d, int64_t size, cd_dynamic_net *n, cdmpp_err *err);
void cd_dynamic_net_close(cd_dynamic_net *n);
/* Values of the points as functions of the size; *why: that one is none. Errors: EUNSUPPORTED
 * (points of different inputs or results), ENOMEM. */
cdmpp_status cd_dynamic_values(cd_dynamic *d, cdmpp_err *err);
/* No elements where the shape is not known. */
void cd_dynamic_shape(const cd_dynamic_value *v, int64_t size, cd_graph_shape *out);
int64_t cd_dynamic_shape_bytes(const cd_graph_shape *s, cd_dtype t);
/* The box `box` at the origin of arrays of shape `from` and `to`. */
void cd_dynamic_copy_box(const cd_graph_shape *box, size_t element, const cd_graph_shape *from,
                         const void *src, const cd_graph_shape *to, void *dst);
/* A call of a given net, at most as large as it. */
cdmpp_status cd_dynamic_run(cd_dynamic *d, cd_dynamic_net *n, int64_t size,
                            const void *const *input, void *const *result, cd_dynamic_times *t,
                            cdmpp_err *err);

/* Contents of all inputs at a size, and room for results. */
typedef struct cd_dynamic_data {
    cd_arena arena;
    void **input, **result, **expect;
} cd_dynamic_data;
cdmpp_status cd_dynamic_data_make(const cd_dynamic *d, int64_t size, cd_dynamic_data *x,
                                  cdmpp_err *err);
/* Largest difference of result and expect over the largest value; of whole numbers 0 or 1. */
double cd_dynamic_data_difference(const cd_dynamic *d, int64_t size, const cd_dynamic_data *x);
#endif
