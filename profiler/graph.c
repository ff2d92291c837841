#include "profiler/graph.h"

int64_t cd_shape_elements(const cd_shape *s) {
    int64_t n = 1;
    for (uint32_t d = 0; d < s->rank; d++) n *= s->dim[d];
    return n;
}
