/* select -- which tasks to measure on a new device, from the inputs of their programs. Programs
 * within a budget: medoids, below.
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
 * are nearest to the mean of all. Labels are not looked at.
 * Programs are chosen in the same way where each is a task of its own. */
#ifndef CD_SELECT_H
#define CD_SELECT_H
#include <stddef.h>
#include <stdint.h>

#include "dataset/file/file.h"

#define CD_SELECT_KINDS "kmeans|random|center"
typedef enum { CD_SELECT_KMEANS, CD_SELECT_RANDOM, CD_SELECT_CENTER } cd_select_kind;

typedef struct cd_select_input {
    size_t n, dim;
    const float *x;       /* (n, dim) finite; NULL for RANDOM */
    const uint32_t *task; /* (n) below n_task */
    size_t n_task;
    const uint64_t *task_key; /* (n_task) of the names: cd_stable_id_name */
} cd_select_input;

/* chosen (k), the caller's: tasks in the order of choice; *n_chosen = min(k, tasks with
 * programs). `pool` may be NULL. Errors: ENOMEM, ENUMERIC (a value that is not finite). */
cdmpp_status cd_select_tasks(const cd_select_input *in, cd_select_kind kind, size_t k,
                             uint64_t seed, cd_threads *pool, uint32_t *chosen, size_t *n_chosen,
                             cdmpp_err *err);

/* medoids -- programs that stand for all, as many as a budget pays for.
 *
 *   each turn  the point that most lowers, for its price, the sum over all points of the distance
 *              to the nearest one chosen, among
 *              those that what is left of the budget pays for
 *
 *   (1) a point that is no other than one chosen is not chosen, so there may be fewer than the
 *       budget pays for;
 *   (2) no draw. Of equals the first is taken, and sums are in the order of the points: give them
 *       in an order that is their own. The same for any number of threads.
 * The greedy algorithm for the k-median problem, with gain for price as for other coverings with a
 * budget. Memory: n^2 + n dim numbers. */

/* x (n, dim), dim at least 1; price (n) above 0. chosen (k), the caller's: points in the order of
 * choice. Errors: ENOMEM, ENUMERIC (a value that is not finite). */
cdmpp_status cd_select_medoids(const float *x, size_t n, size_t dim, const double *price,
                               double budget, size_t k, cd_threads *pool, uint32_t *chosen,
                               size_t *n_chosen, cdmpp_err *err);

/* task_embedding -- one vector per program from its feature rows, for choosing among inputs.
 *
 *   program p, column j  ->  mean over its rows, largest of its rows   (2 x 164)
 *                        ->  minus the mean over programs, over the deviation
 *                        ->  columns that do not vary among the programs are left out
 *
 * No label is looked at. The rows are on logarithmic scales already (features/rows/rows.h). */

/* x (n, dim), row-major, for programs program[0 .. n-1] of d, each with at least one row. dim
 * is at least 1. Errors: ENOMEM. */
cdmpp_status cd_task_embedding_rows(const cd_dataset *d, const size_t *program, size_t n,
                                    CD_GIVE float **x, size_t *dim, cdmpp_err *err);
#endif
