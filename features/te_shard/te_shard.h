/* The door of features/te_shard: shards of an operator's definition, for partitioning a network
 * over devices.
 *
 *   conv2d + relu, 3x3, pad 1    y (1,56,56,64) <- x (1,56,56,32), k (3,3,32,64), b (64)
 *     H 0..20    y[:, 0:20]      <- x[:, 0:21], k, b                   with the neighbour's row
 *     (halo)
 *     H 20..56   y[:, 20:56]     <- x[:, 19:56], k, b
 *     O 0..24    y[.., 0:24]     <- x, k[.., 0:24], b[0:24]
 *     I 0..8     a partial sum (1,56,56,64) <- x[.., 0:8], k[:, :, 0:8]
 *     join       y <- partial sums, b: what the definition does after its sum
 *
 *   (1) A shard is a definition like any other. Its operators have the whole's order and names, and
 *       only the elements that are read. Intermediate stages (padding) have the smallest box that
 *       holds what is read. A dimension of which the shard reads all that the whole reads stays
 *       whole, even if that leaves out a row: then weights need no cutting.
 *   (2) Every argument of a shard is a box of an argument of the whole, row-major in its own shape.
 *       Arguments that the shard does not read are left out.
 *   (3) All shards of an axis together compute the whole's elements by the same operations in the
 *       same order: equal bit by bit as far as the compiler keeps the order. Joined sums are equal
 *       only up to rounding.
 *   (4) The range of an index is derived from the axes' ranges through sums of multiples, quotients
 *       and remainders, and through conditions of an if_then_else. An index without such a range
 *       (gather) needs its whole dimension.
 *   (5) A branch that a shard never takes is left out if it reads something. Else it stays, so that
 *       padding keeps its form and a schedule of the whole fits the shard.
 *   (6) The key is TVM's hash if the shard's text is the whole's and the arguments' shapes
 *       determine every sum's range: then an equal operator of a smaller network has the same key.
 *       Else it is a hash of everything (cd_te_dag_hash_all), and equal keys mean equal
 *       definitions.
 * Read-only inputs, any thread. */
#ifndef CD_TE_SHARD_H
#define CD_TE_SHARD_H
#include "features/te/te.h"

typedef struct cd_te_shard_axis {
    /* N O H W I of convolutions, M N K of products, B of batches and heads, C, else the axis: "i2",
     * "k" */
    const char *name;
    /* over the sum: op's raxis; else over the result: the last operator's axis */
    bool reduce;
    uint32_t op, axis;
    int64_t extent;
} cd_te_shard_axis;

/* All legal split axes, those of the result in order, then sums; none if the definition has several
 * results.
 *   result  extent > 1, and half of it needs at most 3/4 of the additions: a softmax cannot be
 *           split along its own axis;
 *   sum     one operator sums by +, everything behind it is element by element, and no window
 *           slides along the axis.
 * *out lives in `a`. Errors: ENOMEM. */
cdmpp_status cd_te_shard_axes(const cd_te_dag *dag, cd_arena *a, cd_te_shard_axis **out,
                              uint32_t *n, cdmpp_err *err);

/* of[k] = CD_TE_SHARD_PARTIAL + i: the partial sum of shard i */
#define CD_TE_SHARD_PARTIAL 0x80000000u

typedef struct cd_te_shard {
    cd_arena arena;
    cd_te_dag *dag;
    uint32_t n_arg;           /* as dag->n_arg; the last is its result */
    uint32_t *of;             /* (n_arg) argument of the whole, or CD_TE_SHARD_PARTIAL */
    cd_box *box;              /* (n_arg) which piece of it */
    char key[33];             /* (6) */
    const char *workload_key; /* TVM's: ["hash", shapes] */
} cd_te_shard;

/* The shard lo .. hi-1 of a split axis. Of a sum it is a partial sum, of[last] =
 * CD_TE_SHARD_PARTIAL. Errors: ERANGE (not 0 <= lo < hi <= extent), EUNSUPPORTED (an expression
 * that cannot be moved, named), ENOMEM. */
cdmpp_status cd_te_shard_make(const cd_te_dag *whole, const cd_te_shard_axis *way, int64_t lo,
                              int64_t hi, CD_GIVE cd_te_shard **out, cdmpp_err *err);
/* Adds n >= 2 partial sums in order and computes what the definition does after its sum. Errors:
 * EINVALID (no sum), ENOMEM. */
cdmpp_status cd_te_shard_join(const cd_te_dag *whole, const cd_te_shard_axis *way, uint32_t n,
                              CD_GIVE cd_te_shard **out, cdmpp_err *err);
void cd_te_shard_free(CD_TAKE cd_te_shard *p); /* NULL is fine */
#endif
