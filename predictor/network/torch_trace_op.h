/* traceop -- one row of a torch.fx trace as the library operators that it runs.
 *
 *   matmul (8, 16, 512, 64) x (8, 16, 64, 512)   ->   FORWARD bmm 128 x 512 x 512 x 64
 *                                                     BACKWARD bmm (of the left side), bmm (of the right side)
 *
 *   row                                               forward            backward                        update
 *   addmm, linear, Linear                             linear             two linear, a pass (bias)       add of the weights
 *   matmul, bmm                                       bmm (or linear)    two bmm
 *   add sub mul div pow relu gelu tanh ...            elementwise        elementwise
 *   softmax, LayerNorm                                softmax, ln        mul and softmax, mul            add of two rows
 *   where max masked_fill contiguous to cumsum ...    pass               pass, max: five
 *   dropout                                           free; training: pass   mul and two passes
 *   Embedding                                         pass               two passes                      add of the table
 *   view permute size getitem getattr ...             free
 *
 * A pass reads and writes memory and does nothing else: as many elements of mulu as move the same bytes, rounded up.
 * What a number of the host is computed from or into (no type, one element) is free. Anything else is unknown, with a reason.
 *
 *   (1) at least one task comes back, the first one FORWARD; those of a phase stand together, in the order of the phases;
 *   (2) shares of the tasks of a phase add up to 1 unless the phase is free: how a time of the whole phase is dealt out.
 * Sources: which kernels PyTorch launches (derivatives.yaml and ATen of 2.1). No state, any thread. */
#ifndef CD_TORCH_TRACE_OP_H
#define CD_TORCH_TRACE_OP_H
#include "base/text/text.h"
#include "predictor/network/network_graph.h"

enum { CD_TORCH_TRACE_INPUTS = 32, CD_TORCH_TRACE_DIMS = 8, CD_TORCH_TRACE_TASKS = 12 };

typedef struct cd_torch_trace_shape {
    uint32_t n;
    int64_t d[CD_TORCH_TRACE_DIMS];
    uint32_t bytes;             /* of an element; 0: no tensor */
    bool strided;               /* not one run of memory */
} cd_torch_trace_shape;

typedef struct cd_torch_trace_op {
    const char *kind;           /* call_module, call_function, call_method, get_attr, placeholder, output */
    const char *verb;           /* "addmm", "Linear", "view": function, class of the module, or method */
    const char *name;
    uint32_t n_in;              /* tensors and numbers that come from other rows; only the first CD_TORCH_TRACE_INPUTS are here */
    cd_torch_trace_shape in[CD_TORCH_TRACE_INPUTS], out;
    cd_library_op_dtype dtype;           /* of the result */
    bool real;                  /* the result's elements are real numbers */
    bool training;              /* dropout drops */
    bool gradient;              /* something learned is behind the result */
    uint32_t in_gradient;       /* bit i: behind input i */
    int64_t vocabulary;         /* rows of a table of words; 0: unknown */
} cd_torch_trace_op;

typedef struct cd_torch_trace_task {
    cd_node_phase phase;
    cd_node_kind kind;            /* LIBRARY, FREE, UNKNOWN */
    const char *op;             /* "linear", "where": static or the row's verb */
    const char *why;            /* UNKNOWN */
    cd_library_op_record question;       /* LIBRARY */
    double share;
    double flop;                /* NaN: not counted */
} cd_torch_trace_task;

/* Number of tasks, at most CD_TORCH_TRACE_TASKS. */
uint32_t cd_torch_trace_tasks(const cd_torch_trace_op *r, cd_torch_trace_task out[CD_TORCH_TRACE_TASKS]);
/* Elements; 1 for a shape without dimensions. */
double cd_torch_trace_count(const cd_torch_trace_shape *s);
/* Does a module of this class hold weights that are learned? */
bool cd_torch_trace_is_learned(const char *verb);
#endif
