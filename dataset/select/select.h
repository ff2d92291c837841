/* select -- which tasks to measure on a new device, from the inputs of their programs.
 *
 *   x (n, dim) one vector a program     cluster  1   2   3 ...   from large to small
 *   task (n)                                |   |   |
 *   K tasks are wanted          ->  K clusters; each takes the task not yet taken whose
 *                                   programs are nearest on average
 *
 * The method of CDMPP's cross-device sampling (section 7 of our notes on it):
 * D(c, t) = mean over the programs of t of |centre c - x|.
 *
 *   (1) distinct tasks that have programs; at least as many as there are: all of them;
 *   (2) the result depends neither on the order of programs nor on the numbers of the
 *       tasks: points are sorted by what they are, ties and random draws are by name;
 *   (3) the same for any number of threads.
 * random: tasks by a number drawn from seed and name. center: the tasks whose programs
 * are nearest to the mean of all. Labels are not looked at. */
#ifndef CD_SELECT_H
#define CD_SELECT_H
#include <stddef.h>
#include <stdint.h>

#include "dataset/file/file.h"

#define CD_SELECT_KINDS "kmeans|random|center"
typedef enum { CD_SELECT_KMEANS, CD_SELECT_RANDOM, CD_SELECT_CENTER } cd_select_kind;

typedef struct cd_select_input {
    size_t n, dim;
    const float *x;           /* (n, dim) finite; NULL for RANDOM */
    const uint32_t *task;     /* (n) below n_task */
    size_t n_task;
    const uint64_t *task_key; /* (n_task) of the names: cd_stable_id_name */
} cd_select_input;

/* chosen (k), the caller's: tasks in the order of choice; *n_chosen = min(k, tasks with
 * programs). `pool` may be NULL. Errors: ENOMEM, ENUMERIC (a value that is not finite). */
cdmpp_status cd_select_tasks(const cd_select_input *in, cd_select_kind kind, size_t k, uint64_t seed, cd_threads *pool,
                             uint32_t *chosen, size_t *n_chosen, cdmpp_err *err);

/* task_embedding -- one vector per program from its feature rows, for choosing among inputs.
 *
 *   program p, column j  ->  mean over its rows, largest of its rows   (2 x 164)
 *                        ->  minus the mean over programs, over the deviation
 *                        ->  columns that do not vary among the programs are left out
 *
 * No label is looked at. The rows are on logarithmic scales already (features/rows/rows.h). */

/* x (n, dim), row-major, for programs program[0 .. n-1] of d, each with at least one row. dim
 * is at least 1. Errors: ENOMEM. */
cdmpp_status cd_task_embedding_rows(const cd_dataset *d, const size_t *program, size_t n, CD_GIVE float **x, size_t *dim, cdmpp_err *err);
#endif
