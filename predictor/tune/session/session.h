/* The door of predictor/tune/session: other rooms include this header and no other of the room.
 *
 * Tuning on this machine or on boards. It takes tasks, a tuner and a budget; it asks the tuner for
 * candidates, compiles and measures them, gives the next round to the task that promises most,
 * writes each record to a log, and compares the best program of each task with the untuned one. The
 * table of tuners is here too. */
#ifndef CD_PREDICTOR_TUNE_SESSION_DOOR_H
#define CD_PREDICTOR_TUNE_SESSION_DOOR_H
#include "features/program/program.h"
#include "predictor/tune/core/core.h"
#include "predictor/tune/session/tune_result.h"
#include "predictor/tune/session/tune_resume.h"
#include "predictor/tune/session/tune_session.h"
#include "predictor/tune/session/tune_tasks.h"
#include "predictor/tune/session/tune_template.h"
#include "predictor/tune/session/tune_tuner.h"
#include "profiler/codegen/code/code.h"

/* tune_baseline -- the schedule that a task has without any search: what "untuned" means.
 *
 *   CPU  for each stage that is not inlined  outer axes fused and parallel, reductions, innermost
 *                                            axis by 16 vectorized
 *   GPU                                      all axes fused, blocks of 256 threads
 *
 * As a compiler's fallback does: cheap element-wise stages are inlined, loops are parallel and
 * vectorized, nothing is tiled. Where that makes no program there is less of it: without vectors,
 * then the naive program, no steps at all. Steps that TVM replays, so an untuned program has a
 * record like any other. No state, any thread. */

/* p: to see whether it can be lowered. `out` lives in the arena. Errors: EUNSUPPORTED (none of them
 * makes a program: a GPU's task without axes), ENOTASK (no DAG), ENOMEM. */
cdmpp_status cd_tune_baseline(cd_arena *a, cd_program *p, const cd_tune_task *t, cd_tune_cand *out,
                              cdmpp_err *err);

/* tune_emit -- a program as source that anybody can compile: the kernel and a host program that
 * runs and times it.
 *
 *   c       NAME.c                cc -O2 -march=native -fopenmp NAME.c -o NAME -lm
 *   opencl  NAME.cl, NAME_host.c  cc -O2 NAME_host.c -o NAME -lOpenCL        (run it where NAME.cl
 *     is)
 *   cuda    NAME.cu               nvcc -O2 NAME.cu -o NAME
 *
 * The host fills the parameters as cdmpp-profile does (0.25 to 1, integers 0 and 1), runs the
 * program once and then N times ("./NAME N", default 20), and prints the seconds of one run and the
 * sum of what it wrote. Parameters stand in the task's order; one whose comment says "packed" is
 * expected in the order of its schedule. No state, any thread. */

typedef struct cd_tune_emit {
    const cd_codegen_code *code;
    const char *name;  /* of the files, and of what the program prints */
    const char *about; /* lines of a comment; NULL: none */
    int threads;       /* of C */
} cd_tune_emit;

/* Names of the files, "" where there is none: kernel or all, host. */
void cd_tune_emit_names(const cd_tune_emit *e, char kernel[128], char host[128]);
/* What stands in them. Errors: ENOMEM. */
cdmpp_status cd_tune_emit_put(const cd_tune_emit *e, cd_buf *kernel, cd_buf *host, cdmpp_err *err);
/* How to compile them. */
void cd_tune_emit_command(const cd_tune_emit *e, cd_buf *out);
#endif
