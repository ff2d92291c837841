/* Time of an operator against its size: one network at several sizes becomes a table of curves.
 *
 *   size 1: group 0 1 2 ...  │  size 4: group 0 1 2 ...      (the same groups, other shapes)
 *           └──────── one line for each group: shapes with -1 where they follow the size, points n:ms
 *
 *   (1) the table is TSV with the columns that store_table.c imports as "curves": set (the network), host,
 *       operator, device_id (-1: a processor), varied ((number of dimensions of each operand), (first operand and dimension that
 *       vary)), shape (of the operands), points;
 *   (2) n is what stands in place of -1: all dimensions that vary are equal at every size, though not always equal to the size
 *       (a matrix has batch times length rows);
 *   (3) groups that are the same tasks at all sizes are one line; one whose dimensions vary in different ways, do not vary, or that has a
 *       time at fewer than two sizes is left out and counted.
 * One thread. */
#ifndef CD_OP_CURVE_H
#define CD_OP_CURVE_H
#include "profiler/runtime/single/program_select.h"

typedef struct cd_op_curve_size {
    const cd_workload *workload;
    const cd_program_select *pick;
} cd_op_curve_size;

typedef struct cd_op_curve_tally {
    size_t written, fixed, apart, short_of_points; /* groups: lines; no dimension varies; they vary apart; too few times */
} cd_op_curve_tally;

/* The table of n sizes. Errors: EINVALID (networks of different groups), ENOMEM. */
cdmpp_status cd_op_curve_write(cd_buf *b, const char *host, const cd_op_curve_size *size, size_t n, cd_op_curve_tally *tally, cdmpp_err *err);
#endif
