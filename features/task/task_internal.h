/* Putting tasks and networks into the registry. Private to the readers of task files. */
#ifndef CD_TASKREG_H
#define CD_TASKREG_H
#include "features/task/task.h"

/* What reading and writing of records share. Private to record.c and record_write.c. */

#define CD_RECORD_MAX_COST_S  1e10 /* what TVM stores for a failed measurement */
#define CD_RECORD_MAX_TOTAL_S 1e18 /* no reader uses the total: it only has to be finite */
#define CD_RECORD_MAX_TIME    ((int64_t)1 << 53)

/* The kinds of a step's arguments, one letter each: CD_RECORD_STEP_MAP. `k` is a known kind. */
const char *cd_record_step_args(cd_record_step_kind k);

typedef struct cd_task_entry {
    cd_task pub;
    uint32_t index;
    bool owns_dag; /* else it is that of an entry with the same key */
    /* the other form of its key, flat or nested, once that came; NULL before */
    const char *other;
    struct cd_task_entry *next; /* same key, another target kind */
    /* MD5 of the text of a printed definition that was tried; NULL: none */
    const char *printed;
    const cdmpp_err *refused; /* why the printed definition is not used, with its place; NULL */
    unsigned rests;           /* the assumptions (dagtext.h) that the definition rests on */
    bool from_print;          /* the definition is a printed one: without tags and attributes */
    const char *print_path;   /* where a definition from a print stands; else NULL, 0 */
    long print_line;
    struct cd_task_twin *twins; /* of the first entry of a key: all of them; else NULL */
} cd_task_entry;

/* A later definition of a key that differs from all before. */
typedef struct cd_task_twin {
    cd_task pub;
    cd_te_dag *dag; /* ours to free */
    struct cd_task_twin *next;
} cd_task_twin;

struct cd_task_registry {
    cd_arena arena;          /* entries, names, networks */
    cd_arena scratch;        /* one file or one DAG while it is read */
    uint32_t n, cap, n_slot; /* n_slot: power of two, > n / 2 */
    cd_task_entry **entry;   /* (n) */
    uint32_t *slot;          /* (n_slot) index + 1, open addressing on the key */
    uint32_t n_net, cap_net;
    cd_network *net;               /* (n_net) */
    const char *name, *text, *end; /* of the file that is being read */
    unsigned assume;               /* what printed definitions may assume (dagtext.h) */
    size_t n_unused, cap_unused;
    /* (n_unused) definitions and networks that are not used, because an earlier one differs */
    cdmpp_err *unused;
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
cdmpp_status cd_task_registry_entry(cd_task_registry *t, cd_str key, const char *kind,
                                    CD_KEEP cd_task_entry **out, cdmpp_err *err);
/* Index of the first entry with e's key: what cd_task_registry_find gives. */
uint32_t cd_task_registry_first(const cd_task_registry *t, const cd_task_entry *e);
/* Give an entry its DAG, or the reason why it has none. */
void cd_task_set_dag(cd_task_registry *t, cd_task_entry *e, CD_TAKE cd_te_dag *dag);
/* A key came again. A definition that is neither the entry's nor a twin's is kept as a twin and
 * told in `unused`. line 0: none. printed: it comes from a print, which lacks tags and attributes.
 * One that does not takes the place of one that does; that is the twin then. Errors: ENOMEM. */
cdmpp_status cd_task_again(cd_task_registry *t, cd_task_entry *e, CD_TAKE cd_te_dag *dag,
                           bool printed, long line, cdmpp_err *err);
cdmpp_status cd_task_set_why(cd_task_registry *t, cd_task_entry *e, const cdmpp_err *why,
                             cdmpp_err *err);
/* Register a network unless its name is known; one with other tasks or weights is then kept in
 * `unused`. Copies. */
cdmpp_status cd_task_registry_add_network(cd_task_registry *t, cd_str name, const uint32_t *task,
                                          const int64_t *weight, uint32_t n, cdmpp_err *err);

/* The readers; `scratch` of the registry is theirs. */
cdmpp_status cd_task_file_load(cd_task_registry *t, const cd_json *top, cdmpp_err *err);
/* The entry's printed definition is gone. */
void cd_task_drop_printed(cd_task_registry *t, cd_task_entry *e);
/* The save_json texts of a Target and of HardwareParams. */
cdmpp_status cd_task_target_parse(cd_arena *a, cd_str text, const char **target, const char **kind,
                                  cdmpp_err *err);
cdmpp_status cd_task_hardware_parse(cd_arena *a, cd_str text, cd_hardware *out, cdmpp_err *err);
/* X(field) in the order of the record format. */
#define CD_HARDWARE_MAP(X)                                                                         \
    X(num_cores)                                                                                   \
    X(vector_unit_bytes)                                                                           \
    X(cache_line_bytes)                                                                            \
    X(max_shared_memory_per_block)                                                                 \
    X(max_local_memory_per_block)                                                                  \
    X(max_threads_per_block)                                                                       \
    X(max_vthread_extent)                                                                          \
    X(warp_size)

/* Our own text form of tasks, both directions (docs/reference/tasks.md).
 *
 *   1. JSON object, "schema": "cdmpp.tasks", "version": 1
 *   2. "tasks": [{"workload_key", "target", "hardware", "desc", "args", "ops": [...]}]
 *   3. an op without "body" is a placeholder: "name", "shape", "dtype"
 *   4. else "name", "axis", "reduce_axis", "reduce", "body" and rarer members
 *   5. expressions in the notation of te_text.h; an op may read those before it
 *   6. "networks": {name: [{"workload_key", "weight"}]}
 *
 * Private to task_file.c and task_file_write.c. */

#define CD_TASK_FILE_SCHEMA  "cdmpp.tasks"
#define CD_TASK_FILE_VERSION 1

typedef struct cd_task_file_tensor {
    cd_str name; /* "C", "argmax.v1" */
    uint32_t number;
    cd_dtype type;
} cd_task_file_tensor;

/* One task while it is read; tensors are numbered in file order at first. */
typedef struct cd_task_file {
    cd_arena *a; /* scratch */
    cd_te_dag *dag;
    cdmpp_err *err;
    uint32_t n_slot;           /* power of two */
    cd_task_file_tensor *slot; /* open addressing on the name; name.p NULL: free */
    const cd_te_op *op;        /* being read */
    const cd_str *axis_ref, *raxis_ref;
    uint32_t n_lhs; /* visible only in a combiner */
    const cd_str *lhs, *rhs;
    cd_te_reducer *red;
} cd_task_file;

#endif
