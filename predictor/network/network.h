/* The door of predictor/network: other rooms include this header and no other of the room.
 *
 * A network as a graph of nodes with times: files, traces, ONNX and built-in networks. */
#ifndef CD_PREDICTOR_NETWORK_DOOR_H
#define CD_PREDICTOR_NETWORK_DOOR_H
#include <stdint.h>

#include "base/core/core.h"
#include "features/operators/operators.h"
#include "features/task/task.h"
#include "profiler/network/onnx/onnx.h"
#include "profiler/network/workload/workload.h"

/* netgraph -- a network as a replay needs it: what runs, what each comes after, and who knows its
 * time.
 *
 *   file ── cd_network_graph_read ─────┐                        ┌─> node_cost: a time for each node
 *   ONNX, zoo ── cd_network_load ──────┴─> nodes, edges, kinds ─┤
 *                                                               └─> replay.h: queues
 *
 *   kind     whose time                                        example
 *   TASK     a tensor program: `key`, scored with a schedule   fused_nn_conv2d_add_relu
 *   LIBRARY  an operator of a library: `question`, by a cd_library_op_model   linear 4096x1024x1024
 *   GIVEN    only the file knows it: `given_s`                 fused_layout_transform
 *   FREE     nobody's: an input, a weight, a view              reshape
 *   UNKNOWN  nobody's, and that is a gap: `why`                an operator without a definition
 *
 *   (1) node i comes after after[first .. first + n_after), each of them smaller than i: a list is
 *       an order to run in;
 *   (2) a TASK, LIBRARY or UNKNOWN may have given_s too (measured); it is used where that is asked
 *       for, or nobody can score the node (node_cost.h);
 *   (3) `repeat` runs of a node stand one behind the other; 0 is none;
 *   (4) names are unique in a graph; where a file's are not, "#2" and so on is put behind.
 * Strings and arrays live in the graph's arenas. Built by one thread, then read-only. Seconds,
 * bytes. */

typedef enum cd_node_kind {
    CD_NODE_TASK,
    CD_NODE_LIBRARY,
    CD_NODE_GIVEN,
    CD_NODE_FREE,
    CD_NODE_UNKNOWN
} cd_node_kind;
#define CD_NODE_KINDS "task|library|given|free|unknown"

typedef enum cd_node_phase { CD_PHASE_FORWARD, CD_PHASE_BACKWARD, CD_PHASE_UPDATE } cd_node_phase;

typedef struct cd_network_node {
    const char *name;
    /* for people: "Conv+Relu", "fused_nn_dense_add", "linear"; "" unknown */
    const char *op;
    cd_node_kind kind;
    cd_node_phase phase;
    const char *key; /* TASK: workload key; else NULL */
    /* key of what the file's run executed in its place (rewritten layouts); NULL: the same */
    const char *ran_as;
    const cd_library_op_record *question; /* LIBRARY; else NULL */
    double given_s;                       /* NaN: the file has none */
    const char *why;                      /* UNKNOWN: the reason; else NULL */
    const char *device;                   /* where the file wants it; NULL: it does not say */
    double flop;                          /* NaN: unknown */
    int64_t read_bytes, write_bytes;      /* of its data and its result; -1: unknown */
    /* of read_bytes: weights that no node before it has read; -1: unknown */
    int64_t weight_bytes;
    int64_t repeat;
    uint32_t first, n_after; /* after[first .. first + n_after) */
} cd_network_node;

typedef struct cd_network_graph {
    cd_arena arena, text; /* arrays; names, keys and reasons, equal ones once */
    const char *name;
    const char *device; /* the file's: what its times are of; NULL: it does not say */
    /* a trace of one layer without the file that says how many there are: taken for one */
    bool layers_unknown;
    int64_t batch; /* 0: unknown */
    /* of the whole network, if the file has it: mean of its runs; NaN */
    double measured_s;
    double measured_median_s; /* NaN */
    uint32_t n_node, n_after;
    cd_network_node *node; /* (n_node) */
    uint32_t *after;       /* (n_after) */
} cd_network_graph;

void cd_network_graph_free(CD_TAKE cd_network_graph *g); /* NULL is fine */

/* ---- making one: nodes in any order, then finish sorts and checks ---- */
typedef struct cd_network_builder cd_network_builder;
cdmpp_status cd_network_builder_new(const char *name, CD_GIVE cd_network_builder **out,
                                    cdmpp_err *err);
void cd_network_builder_free(CD_TAKE cd_network_builder *m); /* NULL is fine */
/* Everything of *n is copied but first and n_after. *id: for edges. A node made by
 * cd_network_node_init has nothing known. Errors: ERANGE (a negative or infinite time, a negative
 * size, repeat), EINVALID (a TASK without key, a LIBRARY without question, a GIVEN without time, an
 * UNKNOWN without reason), ENOMEM. */
cdmpp_status cd_network_builder_node(cd_network_builder *m, const cd_network_node *n, uint32_t *id,
                                     cdmpp_err *err);
/* `to` comes after `from`; the same edge twice is one. Errors: EINVALID (no such node: a dangling
 * edge), ENOMEM. */
cdmpp_status cd_network_builder_edge(cd_network_builder *m, uint32_t from, uint32_t to,
                                     cdmpp_err *err);
/* to set batch, device, measured times; valid until finish */
CD_KEEP cd_network_graph *cd_network_builder_graph(cd_network_builder *m);
/* Order: by dependency, else as they were added. O(V + E). Errors: EINVALID (a cycle: names its
 * nodes, at most eight), ENOMEM. The maker is used up either way: free it. */
cdmpp_status cd_network_builder_finish(cd_network_builder *m, CD_GIVE cd_network_graph **out,
                                       cdmpp_err *err);
cd_network_node cd_network_node_init(const char *name, const char *op, cd_node_kind kind);

/* ---- files ----
 * Which form, by content:
 *   own       {"schema": "cdmpp.netgraph", "version": 1, "networks": [{name, batch, device, nodes:
 *             [{name, op, kind, key,
 *             after: [names], ...}]}]}, docs/reference/netgraph.md
 *   measured  {network: {"e2e_mean_s", "nodes": [{id, name, op, inputs, func, workload_key, time_s,
 *             executed_key}]}}
 *   tvm       a graph executor's {"nodes", "arg_nodes", "heads", "attrs": {"shape", "dltype"},
 *             "node_row_ptr"}: tvm_op
 *             nodes' "hash" and func_name; tasks only where `tasks` says which key a function has
 *   trace     torch.fx as CSV (NeuSight's labels): op, target, latency ..., beside it NAME.json
 *             with the whole's time
 * Plain or packed (gz, xz, zst). *n graphs, each the caller's; *out is the caller's too (free);
 * cd_network_graph_free_all does both. A network that is wrong is an error and nothing is given;
 * with `bad` it is reported there, its name in front of the error's key, and the others are given;
 * a file of which none is right, or whose brackets do not close, is an error all the same. Errors,
 * with path, line and key: EIO, EPARSE, ESCHEMA (no known form; a member of another type), EINVALID
 * (cycle, dangling edge, two of one name), ERANGE, EUNSUPPORTED, ENOMEM. */
typedef void cd_network_graph_bad(void *ctx, const char *network, const cdmpp_err *why);
cdmpp_status cd_network_graph_read(const char *path, CD_GIVE cd_network_graph ***out, size_t *n,
                                   cdmpp_err *err);
cdmpp_status cd_network_graph_read_good(const char *path, cd_network_graph_bad *bad, void *ctx,
                                        CD_GIVE cd_network_graph ***out, size_t *n, cdmpp_err *err);
/* The same from memory, JSON only; `path` is for messages, and a tvm graph is named after it. bad
 * NULL: as cd_network_graph_read. */
cdmpp_status cd_network_graph_read_text(const char *path, const char *text, size_t len,
                                        cd_network_graph_bad *bad, void *ctx,
                                        CD_GIVE cd_network_graph ***out, size_t *n, cdmpp_err *err);
void cd_network_graph_free_all(CD_TAKE cd_network_graph **g, size_t n); /* NULL is fine */
/* A network of a task file: tasks with weights, no edges known: a chain. Errors: ENOMEM. */
cdmpp_status cd_network_graph_of_network(const cd_task_registry *t, const cd_network *w,
                                         CD_GIVE cd_network_graph **out, cdmpp_err *err);
/* The own form; reading it gives equal graphs. Errors: ENOMEM. */
cdmpp_status cd_network_graph_write(cd_buf *out, CD_KEEP cd_network_graph *const *g, size_t n,
                                    cdmpp_err *err);
/* As Graphviz draws them (DOT): names, operators, edges. Errors: ENOMEM. */
cdmpp_status cd_network_graph_write_dot(cd_buf *out, CD_KEEP cd_network_graph *const *g, size_t n,
                                        cdmpp_err *err);

/* network_load -- an ONNX file or a network of the zoo becomes a graph to replay, for one kind of
 * device.
 *
 *   ONNX, zoo ── profiler: graph ── fuse, compute ── workload ──> netgraph + tasks
 *
 * A group of the workload is a node: TASK with its key, UNKNOWN where nothing defines it; views and
 * folded weights are not in it. Training: the graph of one iteration (graph_grad.h), a node's phase
 * is that of its first operator. The layout follows the target (nhwc for llvm, nchw for GPUs),
 * batch and size as asked. One thread. */

typedef struct cd_network_load_options {
    const char *network; /* ONNX file if there is such a file, else a name of the zoo */
    /* not NULL: this one, `network` is its name; taken, after an error too */
    CD_TAKE cd_graph *graph;
    int64_t batch, size;         /* 0: as the file says, as published */
    const cd_onnx_options *onnx; /* NULL: none; its batch is the one above */
    /* of the device: "llvm -mcpu=... -num-cores=1", "cuda -model=v100" */
    const char *target;
    const cd_hardware *hardware; /* NULL: default of the target */
    cd_workload_layout layout;
    bool training; /* forward, backward and update of an iteration */
} cd_network_load_options;

typedef struct cd_network_loaded {
    cd_graph *source;        /* the operators */
    cd_graph *forward;       /* training: those of the network alone; else NULL */
    cd_workload *work;       /* groups, tasks, buffers; its registry has the definitions */
    cd_network_graph *graph; /* node i is group i */
    uint32_t n_plain;
    /* (n_plain) sorted keys of tasks that may not have their free parameter packed: some group gets
     * it from another */
    const char **plain;
} cd_network_loaded;

/* Errors: those of cd_onnx_read, cd_zoo_build, cd_workload_build. */
cdmpp_status cd_network_load(const cd_network_load_options *a, cd_network_loaded *out,
                             cdmpp_err *err);
void cd_network_load_free(cd_network_loaded *l); /* zeroed is fine */
/* What a command was given without an option. */
typedef enum cd_network_operand {
    CD_NETWORK_OPERAND_NETWORK,  /* an ONNX file, a name, what is not there or is of another
                                    framework: its reader says what is wrong */
    CD_NETWORK_OPERAND_GRAPH,    /* of cd_network_graph_read_good */
    CD_NETWORK_OPERAND_LANGUAGE, /* config.json of Hugging Face: it has "model_type" or
                                    "architectures" */
    CD_NETWORK_OPERAND_TASKS,    /* task definitions */
    CD_NETWORK_OPERAND_MODEL     /* a cost model */
} cd_network_operand;
cd_network_operand cd_network_operand_of(const char *path);
/* An ONNX file by its name, which is there: a command that takes one network needs no option for
 * it. */
bool cd_network_operand_is_onnx(const char *path);
/* EUSAGE: a word that a command takes for nothing. Of an ONNX file it names the option that takes
 * it. */
cdmpp_status cd_network_load_unexpected(const char *word, cdmpp_err *err);
/* ESCHEMA for a network of which no operator takes time. nodes: how many it has. */
cdmpp_status cd_network_load_nothing(uint32_t nodes, cdmpp_err *err);
#endif
