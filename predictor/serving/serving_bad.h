/* serving_bad -- rows of a table that cannot be used: the first ones in the order of the file are
 * told, and how many more there are.
 *
 *   row 9, row 2, row 5, ..  ->  add(), add(), ..  ->  tell(): FILE:2, FILE:5, FILE:9, "3 further
 *                                                     rows are left out"
 *
 * One thread. */
#ifndef CD_SERVING_BAD_H
#define CD_SERVING_BAD_H
#include "learner/operators/operators.h"

enum { CD_SERVING_BAD = 8 }; /* are told one by one */
typedef struct cd_serving_bad {
    size_t n;                        /* all */
    cdmpp_err first[CD_SERVING_BAD]; /* by line */
} cd_serving_bad;

/* An error of a row, with its line; a cd_op_bad_line, ctx is a cd_serving_bad. */
void cd_serving_bad_add(void *ctx, const cdmpp_err *why);
void cd_serving_bad_tell(const cd_serving_bad *b, const char *path, cd_op_bad_line *say, void *ctx);
#endif
