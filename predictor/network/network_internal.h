/* What the files of predictor/network share among themselves. */
#ifndef CD_PREDICTOR_NETWORK_INTERNAL_H
#define CD_PREDICTOR_NETWORK_INTERNAL_H
#include "base/text/text.h"
#include "predictor/network/network.h"

/* netgraphint -- what makers and readers of network graphs share. Private. */

typedef struct cd_network_edge {
    uint32_t from, to;
} cd_network_edge;

struct cd_network_builder {
    cd_network_graph *g; /* NULL: used up */
    cd_dict text;        /* every text of its nodes */
    /* (n_owner) by text: node of this name + 1, 0 none; the next "#k" to try */
    uint32_t *owner, *suffix;
    size_t n_owner;
    cd_network_node *node; /* (n_node) */
    size_t n_node, cap_node;
    cd_network_edge *edge; /* (n_edge) as added */
    size_t n_edge, cap_edge;
};

/* The node of this name. */
bool cd_network_builder_find(const cd_network_builder *m, cd_str name, uint32_t *id);

/* (n_node + 1): into[first[k] .. first[k+1]) come before node k, each once, in the order they were
 * added. */
typedef struct cd_network_in_edges {
    uint32_t *first, *into;
} cd_network_in_edges;

/* ---- readers ----
 * The text is walked, not parsed as a whole: a node's tree is gone before the next node is read. */
typedef struct cd_network_file {
    const char *path, *text;
    size_t len;
    long line; /* of `at`; lines are counted on */
    const char *at;
    cd_arena scratch;          /* one value */
    cd_dict names;             /* of the networks so far */
    cd_network_graph_bad *bad; /* NULL: the first wrong network ends it */
    void *ctx;
    cd_network_graph **g; /* (n) */
    size_t n, cap, n_bad;
    cdmpp_err first; /* wrong network */
} cd_network_file;

/* The line of a place in the text is added to the error. */
cdmpp_status cd_network_file_error_at(cd_network_file *f, cdmpp_status st, const char *p,
                                      cdmpp_err *err);
/* The tree of one value; it lives until the next call. Errors: EPARSE, ENOMEM, with the line. */
cdmpp_status cd_network_file_parse(cd_network_file *f, cd_str value, CD_KEEP const cd_json **out,
                                   cdmpp_err *err);
/* A text, NUL-terminated, that lives until the next cd_network_file_parse. Errors: ESCHEMA,
 * ENOMEM. */
cdmpp_status cd_network_file_text(cd_network_file *f, const cd_json *v, CD_KEEP const char **out,
                                  cdmpp_err *err);
/* EPARSE where a key of the object, which is part of the file, comes twice. */
cdmpp_status cd_network_file_once(cd_network_file *f, cd_str object, cdmpp_err *err);
/* cd_json_member and cd_json_item with the line where the member or item begins. */
cdmpp_status cd_network_file_member(cd_network_file *f, cd_str *rest, CD_KEEP cd_str *key,
                                    CD_KEEP cd_str *value, bool *more, cdmpp_err *err);
cdmpp_status cd_network_file_next(cd_network_file *f, cd_str *rest, CD_KEEP cd_str *value,
                                  bool *more, cdmpp_err *err);
/* Each item of an array's text in turn; the error gets its index and line. */
typedef cdmpp_status cd_network_file_item(void *ctx, cd_str text, size_t k, cdmpp_err *err);
cdmpp_status cd_network_file_each(cd_network_file *f, cd_str array, cd_network_file_item *item,
                                  void *ctx, cdmpp_err *err);
/* A time, 0 or more; NaN where null. Errors: ESCHEMA, ERANGE. */
cdmpp_status cd_network_file_seconds(const cd_json *v, double *out, cdmpp_err *err);
/* A function's name without what TVM puts in front of all. */
CD_KEEP const char *cd_network_file_short_func(const char *func);
/* g, or NULL and the reason `st`: kept, reported to `bad`, or an error. name: of the network, for
 * people. */
cdmpp_status cd_network_file_add_graph(cd_network_file *f, CD_TAKE cd_network_graph *g,
                                       const char *name, cdmpp_status st, cdmpp_err *err);

/* A text for "%.*s" in a message. */
#define CD_NETWORK_FILE_SHORT(s) cd_str_shown(s, 40), (s).p

/* A node of the own form. Its texts live until the next cd_network_file_parse. Errors: ESCHEMA,
 * ERANGE, EUNSUPPORTED, with the member as key. */
typedef struct cd_network_file_node {
    cd_network_node n; /* first */
    cd_library_op_record question;
    const cd_json *after; /* NULL: none */
    const char *strange;  /* operator of its question that nobody knows; NULL */
} cd_network_file_node;
/* From a tree, and back as one object of JSON; unknown values are not written. */
cdmpp_status cd_network_file_read_node(cd_network_file *f, const cd_json *v,
                                       cd_network_file_node *out, cdmpp_err *err);
void cd_network_file_write_node(cd_buf *b, const cd_network_graph *g, const cd_network_node *n);

cdmpp_status cd_network_graph_read_tvm(cd_network_file *f, cdmpp_err *err);

/* network_graph_trace -- a torch.fx trace (CSV, torch_trace_row_internal.h) as a graph of library
 * operators.
 *
 *   NAME.csv    rows of one layer
 *   NAME.json   {"num_layer": 24, "e2e_latency": 409.9, "batch": 8, "device": "l4"}
 *        └──> rows before, 24 times the layer, rows behind
 *               ──> each row's tasks (torch_trace_op.h) as nodes
 *
 *   (1) NAME.json beside the file may be missing, and each of its members; e2e_latency in ms is the
 *       measured time of the whole;
 *   (2) with num_layer above 1 the rows of one layer stand for so many: from the first row with
 *       "layer.0.", "layers.0." or "h.0." in its target to the last one, and on to the row that
 *       ends the layer: the last before the next module of the shape that the layer began with. A
 *       copy reads what the one before it ends with. A file that names a second layer stays as it
 *       is;
 *   (3) in a file of training the backward nodes follow in reverse order, with the sums of the
 *       gradients of weights (update);
 *   (4) a measured time of several tasks of a phase is dealt out by operations. */

/* One graph, in an array as cd_network_graph_read gives it. Errors, with path and line: those of
 * cd_torch_trace_read and cd_network_builder; ESCHEMA, ERANGE (NAME.json). */
cdmpp_status cd_network_graph_trace_read(const char *path, CD_GIVE cd_network_graph ***out,
                                         size_t *n, cdmpp_err *err);

/* traceop -- one row of a torch.fx trace as the library operators that it runs.
 *
 *   matmul (8, 16, 512, 64) x (8, 16, 64, 512)  ->  FORWARD bmm 128 x 512 x 512 x 64
 *                                                   BACKWARD bmm (of the left side),
 *                                                            bmm (of the right side)
 *
 *   row                            forward          backward                   update
 *   addmm, linear, Linear          linear           two linear, a pass (bias)  add of the weights
 *   matmul, bmm                    bmm (or linear)  two bmm
 *   add sub mul div pow relu gelu  elementwise      elementwise
 *     tanh ...
 *   softmax, LayerNorm             softmax, ln      mul and softmax, mul       add of two rows
 *   where max masked_fill          pass             pass, max: five
 *     contiguous to cumsum ...
 *   dropout                        free;            mul and two passes
 *                                  training: pass
 *   Embedding                      pass             two passes                 add of the table
 *   view permute size getitem      free
 *     getattr ...
 *
 * A pass reads and writes memory and does nothing else: as many elements of mulu as move the same
 * bytes, rounded up. What a number of the host is computed from or into (no type, one element) is
 * free. Anything else is unknown, with a reason.
 *
 *   (1) at least one task comes back, the first one FORWARD; those of a phase stand together, in
 *       the order of the phases;
 *   (2) shares of the tasks of a phase add up to 1 unless the phase is free: how a time of the
 *       whole phase is dealt out.
 * Sources: which kernels PyTorch launches (derivatives.yaml and ATen of 2.1). No state, any
 * thread. */

enum { CD_TORCH_TRACE_INPUTS = 32, CD_TORCH_TRACE_DIMS = 8, CD_TORCH_TRACE_TASKS = 12 };

typedef struct cd_torch_trace_shape {
    uint32_t n;
    int64_t d[CD_TORCH_TRACE_DIMS];
    uint32_t bytes; /* of an element; 0: no tensor */
    bool strided;   /* not one run of memory */
} cd_torch_trace_shape;

typedef struct cd_torch_trace_op {
    /* call_module, call_function, call_method, get_attr, placeholder, output */
    const char *kind;
    /* "addmm", "Linear", "view": function, class of the module, or method */
    const char *verb;
    const char *name;
    /* tensors and numbers that come from other rows; only the first CD_TORCH_TRACE_INPUTS are
     * here */
    uint32_t n_in;
    cd_torch_trace_shape in[CD_TORCH_TRACE_INPUTS], out;
    cd_library_op_dtype dtype; /* of the result */
    bool real;                 /* the result's elements are real numbers */
    bool training;             /* dropout drops */
    bool gradient;             /* something learned is behind the result */
    uint32_t in_gradient;      /* bit i: behind input i */
    int64_t vocabulary;        /* rows of a table of words; 0: unknown */
} cd_torch_trace_op;

typedef struct cd_torch_trace_task {
    cd_node_phase phase;
    cd_node_kind kind;             /* LIBRARY, FREE, UNKNOWN */
    const char *op;                /* "linear", "where": static or the row's verb */
    const char *why;               /* UNKNOWN */
    cd_library_op_record question; /* LIBRARY */
    double share;
    double flop; /* NaN: not counted */
} cd_torch_trace_task;

/* Number of tasks, at most CD_TORCH_TRACE_TASKS. */
uint32_t cd_torch_trace_tasks(const cd_torch_trace_op *r,
                              cd_torch_trace_task out[CD_TORCH_TRACE_TASKS]);
/* Elements; 1 for a shape without dimensions. */
double cd_torch_trace_count(const cd_torch_trace_shape *s);
/* Does a module of this class hold weights that are learned? */
bool cd_torch_trace_is_learned(const char *verb);

/* tracerow -- the rows of a torch.fx trace (CSV), read.
 *
 *   op,target,_input_nodes,...,input_shapes,output_shape,dtype,Name
 *       -> cd_torch_trace_op, edges, seconds
 *
 * Columns by name, in any order; others are ignored:
 *   op target _input_nodes input_shapes output_shape dtype Name   must be there
 *   meta              the class of a module is the last "<class '...'>" in it; without it the
 *                     target's name decides
 *   input_contiguous contiguous                                   missing: all in one run of memory
 *   fw_latency (or latency) bw_latency acc_latency, in ms         missing or empty: unknown
 * Lists are Python's: "(8, 512)", "[[8, 512], [1]]", "{a: None, b: None}" or "['a', 'b']".
 * A file where a backward pass took time is one of training. One thread. */

typedef struct cd_torch_trace_row {
    cd_torch_trace_op row;
    const char *target;
    uint32_t first, n_from; /* from[first .. first + n_from): rows that it reads, before it */
    double seconds[3];      /* of the phases; NaN: unknown */
} cd_torch_trace_row;

typedef struct cd_torch_trace {
    cd_arena arena;
    uint32_t n, n_from, cap, cap_from;
    cd_torch_trace_row *row; /* (n) in the order of the file */
    uint32_t *from;          /* (n_from) */
    bool training;
} cd_torch_trace;

/* Errors, with path and line: EIO, EPARSE (quotes, a list), ESCHEMA (a column is missing), EINVALID
 * (a row reads one that is not before it; two of one name), ERANGE (sizes, times), ENOMEM. Free
 * *out after an error too. */
void cd_torch_trace_free(cd_torch_trace *f);
#endif
