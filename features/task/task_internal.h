/* Putting tasks and networks into the registry. Private to the readers of task files. */
#ifndef CD_TASKREG_H
#define CD_TASKREG_H
#include "features/task/task.h"

typedef struct cd_task_entry {
    cd_task pub;
    uint32_t index;
    bool owns_dag;              /* else it is that of an entry with the same key */
    struct cd_task_entry *next; /* same key, another target kind */
} cd_task_entry;

struct cd_task_registry {
    cd_arena arena;             /* entries, names, networks */
    cd_arena scratch;           /* one file or one DAG while it is read */
    uint32_t n, cap, n_slot;    /* n_slot: power of two, > n / 2 */
    cd_task_entry **entry;      /* (n) */
    uint32_t *slot;             /* (n_slot) index + 1, open addressing on the key */
    uint32_t n_net, cap_net;
    cd_network *net;            /* (n_net) */
};

/* FNV-1a, folded: the tables of this room are keyed by short texts. */
static inline uint32_t cd_task_hash(cd_str s) {
    uint32_t h = 2166136261U;
    for (size_t i = 0; i < s.n; i++) h = (h ^ (unsigned char)s.p[i]) * 16777619U;
    return h ^ h >> 15;
}

/* The entry of a key and target kind, made when absent (why = ENOTASK until it
 * gets a DAG; it shares that of an entry with the same key). An entry whose kind
 * is unknown yet takes this one; kind NULL: any, the first one of the key. */
cdmpp_status cd_task_registry_entry(cd_task_registry *t, cd_str key, const char *kind, CD_KEEP cd_task_entry **out, cdmpp_err *err);
/* Index of the first entry with e's key: what cd_task_registry_find gives. */
uint32_t cd_task_registry_first(const cd_task_registry *t, const cd_task_entry *e);
/* Give an entry its DAG, or the reason why it has none. */
void cd_task_set_dag(cd_task_registry *t, cd_task_entry *e, CD_TAKE cd_te_dag *dag);
cdmpp_status cd_task_set_why(cd_task_registry *t, cd_task_entry *e, const cdmpp_err *why, cdmpp_err *err);
/* Register a network unless its name is known. Copies. */
cdmpp_status cd_task_registry_add_network(cd_task_registry *t, cd_str name, const uint32_t *task, const int64_t *weight, uint32_t n,
                                  cdmpp_err *err);

/* The readers; `scratch` of the registry is theirs. */
cdmpp_status cd_task_pickle_load(cd_task_registry *t, const char *name, const char *text, size_t len, cdmpp_err *err);
cdmpp_status cd_task_file_load(cd_task_registry *t, const cd_json *top, cdmpp_err *err);
/* The save_json texts of a Target and of HardwareParams. */
cdmpp_status cd_task_target_parse(cd_arena *a, cd_str text, const char **target, const char **kind, cdmpp_err *err);
cdmpp_status cd_task_hardware_parse(cd_arena *a, cd_str text, cd_hardware *out, cdmpp_err *err);
/* X(field) in the order of the record format. */
#define CD_HARDWARE_MAP(X) \
    X(num_cores) X(vector_unit_bytes) X(cache_line_bytes) X(max_shared_memory_per_block) \
    X(max_local_memory_per_block) X(max_threads_per_block) X(max_vthread_extent) X(warp_size)
#endif
