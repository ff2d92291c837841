/* network_load -- an ONNX file or a network of the zoo becomes a graph to replay, for one kind of device.
 *
 *   ONNX, zoo ── profiler: graph ── fuse, compute ── workload ──> netgraph + tasks
 *
 * A group of the workload is a node: TASK with its key, UNKNOWN where nothing defines it; views and folded weights are not
 * in it. Training: the graph of one iteration (graph_grad.h), a node's phase is that of its first operator. The layout follows the target (nhwc for llvm, nchw for GPUs), batch and size as asked. One thread. */
#ifndef CD_NETWORK_LOAD_H
#define CD_NETWORK_LOAD_H
#include "predictor/network/network_graph.h"
#include "profiler/network/onnx/onnx.h"
#include "profiler/network/workload/workload.h"

typedef struct cd_network_load_options {
    const char *network;        /* ONNX file if there is such a file, else a name of the zoo */
    CD_TAKE cd_graph *graph;    /* not NULL: this one, `network` is its name; taken, after an error too */
    int64_t batch, size;        /* 0: as the file says, as published */
    const cd_onnx_options *onnx;/* NULL: none; its batch is the one above */
    const char *target;         /* of the device: "llvm -mcpu=... -num-cores=1", "cuda -model=v100" */
    const cd_hardware *hardware;/* NULL: default of the target */
    cd_workload_layout layout;
    bool training;              /* forward, backward and update of an iteration */
} cd_network_load_options;

typedef struct cd_network_loaded {
    cd_graph *source;           /* the operators */
    cd_graph *forward;          /* training: those of the network alone; else NULL */
    cd_workload *work;          /* groups, tasks, buffers; its registry has the definitions */
    cd_network_graph *graph;         /* node i is group i */
    uint32_t n_plain;
    const char **plain;         /* (n_plain) sorted keys of tasks that may not have their free parameter packed: some group gets it from another */
} cd_network_loaded;

/* Errors: those of cd_onnx_read, cd_zoo_build, cd_workload_build. */
cdmpp_status cd_network_load(const cd_network_load_options *a, cd_network_loaded *out, cdmpp_err *err);
void cd_network_load_free(cd_network_loaded *l); /* zeroed is fine */
#endif
