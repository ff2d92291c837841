/* te_part -- a part of an operator: the same definition for a piece of its result, or of its sum.
 *
 *   conv2d + relu, 3x3, pad 1    y (1,56,56,64) <- x (1,56,56,32), k (3,3,32,64), b (64)
 *     H 0..20    y[:, 0:20]      <- x[:, 0:21], k, b                   the neighbours' row comes with it (halo)
 *     H 20..56   y[:, 20:56]     <- x[:, 19:56], k, b
 *     O 0..24    y[.., 0:24]     <- x, k[.., 0:24], b[0:24]
 *     I 0..8     a partial sum (1,56,56,64) <- x[.., 0:8], k[:, :, 0:8]
 *     join       y <- partial sums, b: what the definition does behind its sum
 *
 *   (1) a part is a definition like any other: its operators stand in the whole's order, with its names, and have only the
 *       elements that are read; intermediate stages (padding) have the smallest box that holds what is read of them. But a
 *       dimension of which the part reads all that the whole reads stays whole, a row that nobody reads with it: then weights
 *       need no cutting;
 *   (2) every argument of a part is a box of one of the whole's, row-major in its own shape; an argument that the part does not
 *       read is not among its arguments;
 *   (3) parts of all of an axis compute the whole's elements by the same operations in the same order: equal bit by bit as far as
 *       the compiler keeps that; sums of parts only about;
 *   (4) of an axis: an index whose range the axes' ranges do not tell asks for all of that dimension (gather). Ranges are told of
 *       sums of multiples, quotients and remainders, and by the conditions of an if_then_else;
 *   (5) a branch that a part never takes is left out if it reads something, else it stays, so that padding keeps its form and a
 *       schedule of the whole fits;
 *   (6) key: TVM's hash where the part's text is the whole's text and the arguments' shapes tell every sum's range: then a smaller network's
 *       equal operator has the same key. Else a hash of all there is (cd_te_dag_hash_all): equal keys are equal definitions.
 * Read-only inputs, any thread. */
#ifndef CD_TE_PART_H
#define CD_TE_PART_H
#include "base/core/core.h"
#include "features/te/te.h"

typedef struct cd_te_shard_axis {
    const char *name;           /* N O H W I of convolutions, M N K of products, B of batches and heads, C, else the axis: "i2", "k" */
    bool reduce;                /* over the sum: op's raxis; else over the result: the last operator's axis */
    uint32_t op, axis;
    int64_t extent;
} cd_te_shard_axis;

/* An axis is legal if a half of it leaves at most 3/4 of what is summed: not a softmax along its own axis. An axis that a window slides
 * over is no sum to cut. Legal ways, in the order of the result's axes, sums last; axes of extent 1 are none. None at all: a definition of several
 * results. A sum can be cut where one operator sums by +, all behind it are element by element of it. *out in `a`. Errors: ENOMEM. */
cdmpp_status cd_te_shard_axes(const cd_te_dag *dag, cd_arena *a, cd_te_shard_axis **out, uint32_t *n, cdmpp_err *err);

#define CD_TE_SHARD_PARTIAL 0x80000000u /* of[k] = CD_TE_SHARD_PARTIAL + i: the i-th part's partial sum */

typedef struct cd_te_shard {
    cd_arena arena;
    cd_te_dag *dag;
    uint32_t n_arg;             /* as dag->n_arg; the last is what it makes */
    uint32_t *of;               /* (n_arg) argument of the whole, or CD_TE_SHARD_PARTIAL */
    cd_box *box;                /* (n_arg) which piece of it */
    char key[33];               /* (6) */
    const char *workload_key;   /* TVM's: ["hash", shapes] */
} cd_te_shard;

/* Part lo .. hi of a way. Of a sum: a partial sum, of[last] = CD_TE_SHARD_PARTIAL. Errors: ERANGE (not 0 <= lo < hi <= extent),
 * EUNSUPPORTED (an expression that cannot be moved, named), ENOMEM. */
cdmpp_status cd_te_shard_make(const cd_te_dag *whole, const cd_te_shard_axis *way, int64_t lo, int64_t hi, CD_GIVE cd_te_shard **out, cdmpp_err *err);
/* The rest of the definition behind the sum of n partial sums (n >= 2), added in their order. Errors: EINVALID (not a way of a sum), ENOMEM. */
cdmpp_status cd_te_shard_join(const cd_te_dag *whole, const cd_te_shard_axis *way, uint32_t n, CD_GIVE cd_te_shard **out, cdmpp_err *err);
void cd_te_shard_free(CD_TAKE cd_te_shard *p); /* NULL is fine */
#endif
