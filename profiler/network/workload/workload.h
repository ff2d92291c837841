/* workload -- a network becomes tasks: what is measured, predicted and tuned.
 *
 *   cd_graph ── fuse, compute ──> task[]   distinct programs, with weights
 *                                 group[]  what runs, in order: a task each
 *                                 buffer[] what groups read and write
 *                                 node[]   where each operator of the graph went
 *
 *   conv1 ─ bn1 ─ relu ── pool ── conv2 ─ bn2 ─ relu
 *   └── group 0, task 0 ┘ └ 1,1 ┘ └── group 2, task 0 ┘     task 0: weight 2
 *
 *   (1) groups are in an order in which they can run; `after` lists the groups
 *       that make what a group reads, itself not among them;
 *   (2) a task's arguments are group.read[0..n_read) and then group.write;
 *   (3) each operator of the graph is part of a task, or costs nothing (a view; or it
 *       works on weights and constants alone), or is read by nobody, or is listed
 *       as unsupported with the reason: node[] says which;
 *   (4) a workload key is TVM's: MD5 of the definition and the arguments' shapes;
 *       where two definitions of a network would share one, the second one's hash
 *       covers its whole text. Keys do not depend on names of the network;
 *   (5) weights that are computed from the network's own weights (batch norms folded, layouts
 *       changed) are buffers without a group: they are computed before the network runs.
 * Built by one thread, then read-only. */
#ifndef CD_WORKLOAD_H
#define CD_WORKLOAD_H
#include "features/task/task.h"
#include "profiler/network/fusion/fusion.h"
#include "profiler/network/graph/graph.h"

#define CD_WORKLOAD_LAYOUTS "auto|nchw|nhwc"
/* AUTO: nhwc for llvm, nchw for GPUs */
typedef enum cd_workload_layout {
    CD_WORKLOAD_LAYOUT_AUTO,
    CD_WORKLOAD_LAYOUT_NCHW,
    CD_WORKLOAD_LAYOUT_NHWC
} cd_workload_layout;

typedef struct cd_workload_unsupported {
    const char *op, *node, *reason;
} cd_workload_unsupported;

typedef struct cd_workload_options {
    cd_workload_layout layout;
    const char *target;           /* NULL: "llvm" */
    const cd_hardware *hardware;  /* NULL: none in the tasks */
    uint32_t max_depth;           /* operators of a group; 0: 256, as TVM */
    const cd_fusion_rules *rules; /* of a back end: fusion.h; NULL: TVM's alone */
    /* (n_missing) nodes that the graph's reader did not support: listed too, with the reader's
     * reasons. Must live as long as the workload */
    const cd_workload_unsupported *missing;
    uint32_t n_missing;
    const cd_quantize *quantize; /* layers in 8 bits: fuse_quantize.h; NULL: as the file says */
    /* also tasks (weight 0) and groups for what is computed from weights: to check values */
    bool weights;
} cd_workload_options;

typedef struct cd_workload_task {
    uint32_t task;  /* in the registry */
    int64_t weight; /* groups that run it */
    double flop;    /* of one run */
    uint32_t n_op;
    /* (n_op) the graph's operators, of the first group: "Conv", "Relu"; "LayoutTransform" where it
     * is none's */
    const char *const *op;
} cd_workload_task;

typedef struct cd_workload_buffer {
    cd_dtype dtype;
    cd_graph_shape shape;
    /* that writes it; CD_GRAPH_NONE: an input, a weight, or an unsupported operator's */
    uint32_t group;
    /* of the graph: an input or weight of the file; CD_GRAPH_NONE: neither */
    uint32_t tensor;
    double value;  /* of a buffer that holds a known scalar; else NaN */
    bool is_const; /* a weight or made of weights */
} cd_workload_buffer;

typedef struct cd_workload_group {
    uint32_t task; /* of task[]; CD_GRAPH_NONE: an unsupported operator */
    uint32_t n_read, n_after, n_node;
    const uint32_t *read;  /* (n_read) buffers */
    uint32_t write;        /* buffer */
    const uint32_t *after; /* (n_after) groups */
    /* (n_node) of the graph, ascending; one that is taken apart is in several groups */
    const uint32_t *node;
    bool weights; /* runs before the network does */
} cd_workload_group;

typedef enum cd_workload_state {
    CD_WORKLOAD_NODE_TASK,
    CD_WORKLOAD_NODE_VIEW,
    CD_WORKLOAD_NODE_FOLDED,
    CD_WORKLOAD_NODE_UNUSED,
    CD_WORKLOAD_NODE_UNSUPPORTED
} cd_workload_state;
typedef struct cd_workload_node {
    cd_workload_state state;
    uint32_t group; /* TASK: the last group it is part of; else CD_GRAPH_NONE */
} cd_workload_node;

typedef struct cd_workload {
    cd_arena arena;
    const cd_graph *graph; /* borrowed */
    /* the registry: definitions, and the network with its weights */
    cd_task_registry *tasks;
    uint32_t n_task, n_group, n_buffer, n_node, n_unsupported;
    cd_workload_task *task;               /* (n_task) */
    cd_workload_group *group;             /* (n_group) */
    cd_workload_buffer *buffer;           /* (n_buffer) */
    cd_workload_node *node;               /* (n_node) of the graph */
    cd_workload_unsupported *unsupported; /* (n_unsupported) */
    /* (graph->n_output) buffers of the network's results, then (n_observed) those of tensors that
     * were to be observed */
    uint32_t *output;
    uint32_t n_observed, n_layer;
    /* (n_layer) convolutions and products, and which are in 8 bits; of networks in float without a
     * word of the file: none */
    const cd_quantize_layer *layer;
    /* rules that were asked for and that the options' do not know: these operators stay apart */
    cd_fusion_rules open;
} cd_workload;

/* Fuses the graph and makes its tasks. `o` NULL: defaults. The graph must outlive the workload.
 * Errors: ESCHEMA (a graph whose shapes do not fit its operators), ENOMEM. An operator without a
 * definition is no error: it is listed. */
cdmpp_status cd_workload_build(const cd_graph *g, const cd_workload_options *o,
                               CD_GIVE cd_workload **out, cdmpp_err *err);
void cd_workload_free(CD_TAKE cd_workload *w); /* NULL is fine */

/* Operations of all groups. */
double cd_workload_flop(const cd_workload *w);
/* {"network", "flop", "tasks": [{"workload_key", "weight", "flop", "operators"}], "unsupported":
 * [{"operator", "node", "reason"}]}. Errors: ENOMEM. */
cdmpp_status cd_workload_json(cd_buf *out, const cd_workload *w, cdmpp_err *err);
/* The same as a table. Errors: ENOMEM. */
cdmpp_status cd_workload_text(cd_buf *out, const cd_workload *w, cdmpp_err *err);
/* Layout by name; false: none of CD_WORKLOAD_LAYOUTS. */
bool cd_workload_layout_parse(const char *name, cd_workload_layout *out);
#endif
