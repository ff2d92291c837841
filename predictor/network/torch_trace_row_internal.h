/* tracerow -- the rows of a torch.fx trace (CSV), read.
 *
 *   op,target,_input_nodes,...,input_shapes,output_shape,dtype,Name   ->   cd_torch_trace_op, edges, seconds
 *
 * Columns by name, in any order; others are ignored:
 *   op target _input_nodes input_shapes output_shape dtype Name    must be there
 *   meta              the class of a module is the last "<class '...'>" in it; without it the target's name decides
 *   input_contiguous contiguous                                     missing: all in one run of memory
 *   fw_latency (or latency) bw_latency acc_latency, in ms           missing or empty: unknown
 * Lists are Python's: "(8, 512)", "[[8, 512], [1]]", "{a: None, b: None}" or "['a', 'b']".
 * A file where a backward pass took time is one of training. One thread. */
#ifndef CD_TORCH_TRACE_ROW_INTERNAL_H
#define CD_TORCH_TRACE_ROW_INTERNAL_H
#include "predictor/network/torch_trace_op.h"

typedef struct cd_torch_trace_row {
    cd_torch_trace_op row;
    const char *target;
    uint32_t first, n_from;     /* from[first .. first + n_from): rows that it reads, before it */
    double seconds[3];          /* of the phases; NaN: unknown */
} cd_torch_trace_row;

typedef struct cd_torch_trace {
    cd_arena arena;
    uint32_t n, n_from, cap, cap_from;
    cd_torch_trace_row *row;             /* (n) in the order of the file */
    uint32_t *from;             /* (n_from) */
    bool training;
} cd_torch_trace;

/* Errors, with path and line: EIO, EPARSE (quotes, a list), ESCHEMA (a column is missing), EINVALID (a row reads one that is not
 * before it; two of one name), ERANGE (sizes, times), ENOMEM. Free *out after an error too. */
cdmpp_status cd_torch_trace_read(const char *path, cd_torch_trace *out, cdmpp_err *err);
void cd_torch_trace_free(cd_torch_trace *f);
#endif
