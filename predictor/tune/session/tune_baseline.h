/* tune_baseline -- the schedule that a task has without any search: what "untuned" means.
 *
 *   CPU   for each stage that is not inlined        outer axes fused and parallel, reductions, innermost axis by 16 vectorized
 *   GPU                                             all axes fused, blocks of 256 threads
 *
 * As a compiler's fallback does: cheap element-wise stages are inlined, loops are parallel and vectorized, nothing is
 * tiled. Where that makes no program there is less of it: without vectors, then the naive program, no steps at all.
 * Steps that TVM replays, so an untuned program has a record like any other. No state, any thread. */
#ifndef CD_TUNE_BASELINE_H
#define CD_TUNE_BASELINE_H
#include "features/program/program.h"
#include "predictor/tune/core/core.h"

/* p: to see whether it can be lowered. `out` lives in the arena. Errors: EUNSUPPORTED (none of them makes a program:
 * a GPU's task without axes), ENOTASK (no DAG), ENOMEM. */
cdmpp_status cd_tune_baseline(cd_arena *a, cd_program *p, const cd_tune_task *t, cd_tune_cand *out, cdmpp_err *err);
#endif
