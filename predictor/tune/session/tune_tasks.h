/* tune_tasks -- what is tuned: the tasks of a network (of the zoo, or an ONNX file), or those of
 * task files.
 *
 *   network ──> graph ─> workload ─> task, weight ┐
 *   task files ────────────────────> task, weight ┴─> chosen by key or number ─> those that this
 *     machine can run
 *
 * Programs are tuned for the machine that measures: the hardware of a task's file is that of
 * another one and is not used. */
#ifndef CD_TUNE_TASKS_H
#define CD_TUNE_TASKS_H
#include "base/cli/cli.h"
#include "predictor/tune/session/tune_run.h"
#include "profiler/network/workload/workload.h"

/* The first group or `file` is given, not both. 0, NULL and empty lists stand for the defaults. */
typedef struct cd_tune_tasks_options {
    const char *network; /* name in the zoo, or path of an ONNX file */
    int source;          /* CD_NETWORK_SOURCE_ZOO ... */
    int batch, input_size;
    /* of ONNX files (profiler/network/onnx/onnx.h); one of dim may be a range: the tasks of all its
     * sizes (source.h: network_sizes) */
    cd_texts dim, input;
    const char *layout;     /* CD_WORKLOAD_LAYOUTS */
    cd_texts file;          /* task definitions */
    const char *of_network; /* of the files: only the tasks of this network, with its weights */
    /* of both */
    cd_texts only;      /* workload keys, beginnings of keys, or "#I" */
    const char *target; /* NULL: that of the task, else llvm */
    int threads;
    int cpus; /* processors of a board that measures; 0: this machine measures */
} cd_tune_tasks_options;

typedef struct cd_tune_tasks {
    /* of task files, of a network at several sizes; NULL: the workload's */
    cd_task_registry *owned;
    const cd_task_registry *tasks;
    struct cd_graph *graph;
    cd_workload *workload; /* NULL: of task files or several sizes */
    cd_arena arena;
    cd_tune_unit *unit; /* (n) */
    uint32_t n;
    /* operators and tasks that cannot be tuned; the log has the reasons */
    size_t n_left_out;
} cd_tune_tasks;

/* Texts of `o` are borrowed as long as *out lives. Free *out after an error too. Errors: EUSAGE
 * (nothing fits `only`, unknown network), ENOTASK (none is left), ENOMEM, those of reading networks
 * and task files. */
cdmpp_status cd_tune_tasks_read(const cd_tune_tasks_options *o, cd_log *log, cd_tune_tasks *out,
                                cdmpp_err *err);
void cd_tune_tasks_free(cd_tune_tasks *t); /* zeroed is fine */
#endif
