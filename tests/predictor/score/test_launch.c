/* launch: grid and block of the largest kernel, operations and bytes of the task. */
#include "predictor/score/score.h"
#include "check.h"

#include <math.h>
#include <string.h>

#include "made_model.h"

static cd_task_registry *tasks;

static int setup(void **state) {
    (void)state;
    cdmpp_err err = {0};
    assert_ok(cd_task_registry_new(&tasks, &err));
    assert_ok(cd_task_registry_load(tasks, MADE_TASKS, &err));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    cd_task_registry_free(tasks);
    return 0;
}

static void bind(float *row, float blocks_x, float blocks_y, float threads) {
    memset(row, 0, CD_N_COL * sizeof *row);
    row[CD_COL_IS_GPU] = 1;
    row[CD_COL_BLOCK_X] = log2f(1 + blocks_x);
    row[CD_COL_BLOCK_Y] = log2f(1 + blocks_y);
    row[CD_COL_BLOCK_Z] = row[CD_COL_THREAD_Y] = row[CD_COL_THREAD_Z] = 1; /* of 1 */
    row[CD_COL_THREAD_X] = log2f(1 + threads);
}

/* A product of 512 and an operation on each result; what it reads and writes are matrices of 512 x
 * 512 floats. */
TEST(the_largest_kernel_counts) {
    static float row[3 * CD_N_COL];
    const cd_rows rows = {.n_row = 3, .row = row};
    cd_launch l;
    bind(row, 7, 1, 32);
    bind(row + CD_N_COL, 40, 3, 256);
    bind(row + 2 * CD_N_COL, 100, 1, 64);
    cd_launch_of(cd_task_registry_at(tasks, 0), &rows, &l);
    assert_true(l.blocks == 120 && l.block_threads == 256);
    assert_close(l.flop, 2.0 * 512 * 512 * 512 + 512 * 512, 1e-9, 0);
    assert_close(l.bytes, 3.0 * 4 * 512 * 512, 1e-9, 0);
}

TEST(a_cpu_program_has_no_grid) {
    static float row[CD_N_COL];
    const cd_rows rows = {.n_row = 1, .row = row};
    cd_launch l;
    bind(row, 7, 1, 32);
    row[CD_COL_IS_GPU] = 0;
    cd_launch_of(cd_task_registry_at(tasks, 0), &rows, &l);
    assert_true(l.blocks == 0 && l.block_threads == 0 && l.flop > 0);
}

TESTS(setup, teardown, the_largest_kernel_counts, a_cpu_program_has_no_grid)
