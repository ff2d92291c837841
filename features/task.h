/* task -- registry of tasks: (workload key, target kind) -> compute DAG.
 *
 * Loaded once from TenSet's pickles (all_tasks.pkl, *.task.pkl) or from our own
 * text form (docs/tasks.md), read-only afterwards: share it between threads. */
#ifndef CD_TASK_H
#define CD_TASK_H
#include "base/json.h"
#include "features/te.h"

/* TVM's HardwareParams, in the order of the record format. */
typedef struct cd_hardware {
    int64_t num_cores, vector_unit_bytes, cache_line_bytes, max_shared_memory_per_block,
        max_local_memory_per_block, max_threads_per_block, max_vthread_extent, warp_size;
} cd_hardware;

typedef struct cd_task {
    const char *workload_key;
    const char *target;         /* target string, "llvm -keys=cpu ..."; "" if unknown */
    const char *target_kind;    /* "llvm", "cuda", ...; "" if unknown */
    cd_hardware hardware;
    bool has_hardware;
    const char *desc;           /* "" if absent */
    const cd_te_dag *dag;
} cd_task;

/* A network: which tasks it uses and how often. */
typedef struct cd_network {
    const char *name;           /* from the file name of a *.task.pkl, "(resnet_18,[(1,3,224,224)])" */
    uint32_t n;
    const uint32_t *task;       /* (n) index into the registry */
    const int64_t *weight;      /* (n) occurrences */
} cd_network;

typedef struct cd_tasks cd_tasks;

cdmpp_status cd_tasks_new(CD_GIVE cd_tasks **out, cdmpp_err *err);
void cd_tasks_free(cd_tasks *t); /* NULL is fine */

/* Add every task of a file: all_tasks.pkl, *.task.pkl (also registers the
 * network), networks.json ({"network": [{"workload_key", "weight"}]}), or our
 * text form; also a folder: every such file in it. Decided by content, not by
 * name. A task that is known already is not added twice. Errors carry the path. */
cdmpp_status cd_tasks_load(cd_tasks *t, const char *path, cdmpp_err *err);

size_t cd_tasks_count(const cd_tasks *t);
const cd_task *cd_tasks_at(const cd_tasks *t, size_t i);
/* NULL when unknown. Found by workload key alone: equal keys mean equal DAGs. */
const cd_task *cd_tasks_find(const cd_tasks *t, cd_str workload_key);
size_t cd_tasks_index(const cd_tasks *t, const cd_task *task);
size_t cd_tasks_network_count(const cd_tasks *t);
const cd_network *cd_tasks_network(const cd_tasks *t, size_t i);
#endif
