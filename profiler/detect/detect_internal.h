/* What the files of profiler/detect share: test networks by their operators. Private to the
 * room. */
#ifndef CD_DETECT_INTERNAL_H
#define CD_DETECT_INTERNAL_H
#include "profiler/detect/detect.h"

/* A part of a test network: operators in a row, or `branch`: the only one, and an Add of its result
 * and of what it read. */
typedef struct cd_detect_part {
    uint32_t n;
    uint32_t op[CD_DETECT_CHAIN]; /* positions in the table of operators */
    bool branch;
} cd_detect_part;

/* Position of an operator by name; CD_GRAPH_NONE: there is none. */
uint32_t cd_detect_operator_find(cd_str name);
const char *cd_detect_operator_name(uint32_t op);
/* The shape that all of the n operators can begin with; false: there is none. */
bool cd_detect_shape(const cd_detect_options *o, const uint32_t *op, uint32_t n,
                     cd_graph_shape *out);
/* A network of one or two parts (second NULL) on an input of that shape, the one that was made
 * before or a new one; *out: its number. Errors: ENOMEM and those of cd_graph_add. */
cdmpp_status cd_detect_network_get(cd_detect *d, const cd_detect_part *first,
                                   const cd_detect_part *second, const cd_graph_shape *in,
                                   uint32_t *out, cdmpp_err *err);
/* Shape of a network's result. */
const cd_graph_shape *cd_detect_network_result(const cd_detect *d, uint32_t network);
#endif
