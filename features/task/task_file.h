/* Our own text form of tasks, both directions (docs/reference/tasks.md).
 *
 *   1. JSON object, "schema": "cdmpp.tasks", "version": 1
 *   2. "tasks": [{"workload_key", "target", "hardware", "desc", "args", "ops": [...]}]
 *   3. an op without "body" is a placeholder: "name", "shape", "dtype"
 *   4. else "name", "axis", "reduce_axis", "reduce", "body" and rarer members
 *   5. expressions in the notation of te_text.h; an op may read those before it
 *   6. "networks": {name: [{"workload_key", "weight"}]}
 *
 * Private to task_file.c, task_file_op.c and task_file_write.c. */
#ifndef CD_TASKFILE_H
#define CD_TASKFILE_H
#include "features/task/task_internal.h"

#define CD_TASK_FILE_SCHEMA "cdmpp.tasks"
#define CD_TASK_FILE_VERSION 1

typedef struct cd_task_file_tensor {
    cd_str name;            /* "C", "argmax.v1" */
    uint32_t number;
    cd_dtype type;
} cd_task_file_tensor;

/* One task while it is read; tensors are numbered in file order at first. */
typedef struct cd_task_file {
    cd_arena *a;            /* scratch */
    cd_te_dag *dag;
    cdmpp_err *err;
    uint32_t n_slot;        /* power of two */
    cd_task_file_tensor *slot;     /* open addressing on the name; name.p NULL: free */
    const cd_te_op *op;     /* being read */
    const cd_str *axis_ref, *raxis_ref;
    uint32_t n_lhs;         /* visible only in a combiner */
    const cd_str *lhs, *rhs;
    cd_te_reducer *red;
} cd_task_file;

/* Append one op of the file to the dag. */
cdmpp_status cd_task_file_op(cd_task_file *f, const cd_json *op);
/* Tensor by name; false when unknown. */
bool cd_task_file_find_tensor(const void *f, cd_str name, uint32_t *number, cd_dtype *type);

/* The identity of sum (CD_ADD), max or min for a type, as cd_expr. */
const cd_expr *cd_task_file_identity(cd_expr_pool *p, cd_expr_op op, cd_dtype t);
#endif
