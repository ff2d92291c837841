/* launch -- what a lowered program does in one run, for closed forms
 * (features/device/wave_scale.h). No state, any thread. */
#ifndef CD_LAUNCH_H
#define CD_LAUNCH_H
#include "features/program/program.h"
#include "features/task/task.h"

typedef struct cd_launch {
    /* operations of the task, NaN: cannot be counted; its arguments, each once */
    double flop, bytes;
    double blocks, block_threads; /* grid of the largest kernel, a block of it; 0: no GPU program */
} cd_launch;

/* rows: of a program of the task, n_row >= 1. */
void cd_launch_of(const cd_task *task, const cd_rows *rows, cd_launch *out);
#endif
