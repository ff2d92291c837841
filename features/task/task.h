/* The door of features/task: tasks, and the measured programs that name them.
 *
 * Registry of tasks: (workload key, target kind) -> definition. Further headers of the room: record.h (one line of a log), target.h
 * (target strings and default hardware), network_alias.h (names of networks).
 *
 *   all_tasks.pkl ---\
 *   *.task.pkl -------> [key | target | hardware | DAG or why not] + networks
 *   own text form ---/
 *
 * Loaded once from TenSet's pickles or from our own text form (docs/reference/tasks.md),
 * read-only afterwards: share it between threads. Equal keys mean equal DAGs:
 * tasks that differ only in the target kind share one. A task whose DAG cannot be read stays in
 * it with the reason, so that it harms nobody but its own records. */
#ifndef CD_TASK_H
#define CD_TASK_H
#include "base/text/text.h"
#include "features/task/target.h"
#include "features/te/te.h"

typedef struct cd_task {
    const char *workload_key;
    const char *target;         /* target string, "llvm -keys=cpu ..."; "" if unknown */
    const char *target_kind;    /* "llvm", "cuda", ...; "" if unknown */
    cd_hardware hardware;
    bool has_hardware;
    const char *desc;           /* "" if absent */
    const cd_te_dag *dag;       /* NULL: unusable, see why */
    const cdmpp_err *why;       /* reason when dag is NULL, else NULL */
} cd_task;
/* Operations of the task; -1 when they cannot be counted. */
double cd_task_flop(const cd_task *t);

/* A network: which tasks it uses and how often. */
typedef struct cd_network {
    const char *name;           /* from the file name of a *.task.pkl, "(resnet_18,[(1,3,224,224)])" */
    uint32_t n;
    const uint32_t *task;       /* (n) index of what cd_task_registry_find gives for the key */
    const int64_t *weight;      /* (n) occurrences */
} cd_network;

typedef struct cd_task_registry cd_task_registry;

/* An empty registry. Errors: ENOMEM. */
cdmpp_status cd_task_registry_new(CD_GIVE cd_task_registry **out, cdmpp_err *err);
void cd_task_registry_free(cd_task_registry *t); /* NULL is fine */

/* Add every task of a file: all_tasks.pkl, *.task.pkl (also registers the
 * network that the file is named after), networks.json ({"network":
 * [{"workload_key", "weight"}]} or {"network": [key, ...]}), or our text form;
 * plain or packed (gz, xz, zst). Which it is, is decided by content. Also a
 * folder: every such file below it, found by name: *.pkl but *.relay.pkl,
 * *.tasks.json, and networks*.json where no pickle names networks. A task or network that is known already is not added
 * twice. Tasks that only a network names are entered without a DAG.
 * Errors are about whole files and carry the path: EIO, EPARSE, ESCHEMA,
 * EUNSUPPORTED (a pickle that calls anything but TVM's task classes), ENOMEM. */
cdmpp_status cd_task_registry_load(cd_task_registry *t, const char *path, cdmpp_err *err);
/* The same from memory; `name` stands for the path. */
cdmpp_status cd_task_registry_load_text(cd_task_registry *t, const char *name, const char *text, size_t len, cdmpp_err *err);

/* One task, unless its key is known: then *out is what is there. The definition is copied, target "" is unknown. Errors: ESCHEMA (no
 * key; another definition has it), ENOMEM. */
cdmpp_status cd_task_registry_add(cd_task_registry *t, cd_str workload_key, const cd_te_dag *dag, CD_KEEP const cd_task **out, cdmpp_err *err);

/* Equal, or one of them is the flat form of the other: TVM has written ["hash", 1, 64, 56] and ["hash", [1, 64], [56]] for the same task. */
bool cd_task_same_key(cd_str a, cd_str b);

/* Tasks in order of registration: how many, without a DAG, number i (NULL: none). */
size_t cd_task_registry_count(const cd_task_registry *t);
size_t cd_task_registry_bad_count(const cd_task_registry *t); /* tasks without a DAG */
const cd_task *cd_task_registry_at(const cd_task_registry *t, size_t i);
/* NULL when unknown. Found by workload key alone, in the flat or the nested form; of several target kinds, the first. */
const cd_task *cd_task_registry_find(const cd_task_registry *t, cd_str workload_key);
/* Position of a task of this registry. */
size_t cd_task_registry_index(const cd_task_registry *t, const cd_task *task);
/* Networks in order of registration. */
size_t cd_task_registry_network_count(const cd_task_registry *t);
const cd_network *cd_task_registry_network(const cd_task_registry *t, size_t i);

/* All tasks that have a DAG and all networks, in our own text form. Reading it
 * gives equal tasks. Errors: ENOMEM. */
struct cd_buf;
cdmpp_status cd_task_registry_write(struct cd_buf *out, const cd_task_registry *t, cdmpp_err *err);

/* The other headers of the room that are open to other rooms. */
#include "features/task/device_name.h"
#include "features/task/label.h"
#include "features/task/network_alias.h"
#include "features/task/record.h"
#include "features/task/signature.h"
#include "features/task/target.h"
#endif
