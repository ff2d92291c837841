/* tracerow -- the rows of a torch.fx trace (CSV), read.
 *
 *   op,target,_input_nodes,...,input_shapes,output_shape,dtype,Name   ->   cd_trace_row, edges, seconds
 *
 * Columns by name, in any order; others are ignored:
 *   op target _input_nodes input_shapes output_shape dtype Name    must be there
 *   meta              the class of a module is the last "<class '...'>" in it; without it the target's name tells
 *   input_contiguous contiguous                                     missing: all in one run of memory
 *   fw_latency (or latency) bw_latency acc_latency, in ms           missing or empty: unknown
 * Lists are Python's: "(8, 512)", "[[8, 512], [1]]", "{a: None, b: None}" or "['a', 'b']".
 * A file where a backward pass took time is one of training. One thread. */
#ifndef CD_TRACEROW_H
#define CD_TRACEROW_H
#include "predictor/network/torch_trace_op.h"

typedef struct cd_traced {
    cd_trace_row row;
    const char *target;
    uint32_t first, n_from;     /* from[first .. first + n_from): rows that it reads, before it */
    double seconds[3];          /* of the phases; NaN: unknown */
} cd_traced;

typedef struct cd_tracefile {
    cd_arena arena;
    uint32_t n, n_from, cap, cap_from;
    cd_traced *row;             /* (n) in the order of the file */
    uint32_t *from;             /* (n_from) */
    bool training;
} cd_tracefile;

/* Errors, with path and line: EIO, EPARSE (quotes, a list), ESCHEMA (a column is missing), EINVALID (a row reads one that is not
 * before it; two of one name), ERANGE (sizes, times), ENOMEM. Free *out after an error too. */
cdmpp_status cd_tracefile_read(const char *path, cd_tracefile *out, cdmpp_err *err);
void cd_tracefile_free(cd_tracefile *f);
#endif
