/* partition_split -- one way to run for each operator of a network, out of a list of ways: device, dimension, ratio.
 *
 *   conv1                conv2                       exchange conv1 -> conv2      cpu   npu  H 0.4
 *     cpu       9.0 ms     cpu       7.0 ms            cpu                          0   0.3    0.2
 *     npu       6.0 ms     npu       5.0 ms            npu                        0.3     0    0.1
 *     H  0.4    3.8 ms     H  0.4    3.1 ms            H 0.4                      0.2   0.1      0   <- split alike: nothing moves
 *
 *   (1) operators run one after the other, each on all devices of its option at once (EOP, VEE'22): the cost of a plan is the
 *       sum of seconds of the options and of exchanges between neighbours' options;
 *   (2) an option's seconds are of the slowest of its devices, joins of its parts included. Infinity: cannot be. NaN: an error;
 *   (3) an exchange is of an edge: a value with two readers that want it in the same other form is paid twice;
 *   (4) exact where the graph is narrow (chains, trees, series-parallel, blocks of a CNN); else bound_s <= best <= given;
 *   (5) a plan is never worse than any of the baselines (where it is not exact: with the ratio 0.5).
 * Same input, same plan. Any thread. Seconds. */
#ifndef CD_PARTITION_SPLIT_H
#define CD_PARTITION_SPLIT_H
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

typedef struct cd_split_option {
    const char *name;           /* "H 0.40" */
    int dim;                    /* the caller's number of the dimension; -1: not split */
    double seconds;
    const double *share;        /* (n_device) 0..1, together 1 */
} cd_split_option;

typedef struct cd_split_op {
    const char *name;
    uint32_t n_option;          /* >= 1 */
    const cd_split_option *option; /* (n_option) */
} cd_split_op;

typedef struct cd_split_edge {
    uint32_t from, to;          /* operators */
    const double *seconds;      /* (from's n_option, to's n_option) >= 0, infinity: cannot be */
} cd_split_edge;

typedef struct cd_split {
    uint32_t n_op, n_edge, n_device;
    const cd_split_op *op;      /* (n_op) */
    const cd_split_edge *edge;  /* (n_edge) two edges of one pair are added */
    const char *const *device;  /* (n_device) names */
} cd_split;

typedef struct cd_split_plan {
    cd_arena arena;
    uint32_t *choice;           /* (n_op) option */
    double total_s, exchange_s; /* exchange_s is part of total_s */
    double bound_s;
    bool exact;
} cd_split_plan;

/* Errors: EINVALID (a cycle, an edge to nowhere, no plan possible: an operator's name), ERANGE (NaN, negative, a ratio outside [0,1] or shares that are
 * not 1 together: operator, option, device), ENOMEM. most: states of a table; 0: 1 << 20. Free `out` after an error too. */
cdmpp_status cd_split_check(const cd_split *p, cdmpp_err *err);
cdmpp_status cd_split_solve(const cd_split *p, size_t most, cd_split_plan *out, cdmpp_err *err);
void cd_split_plan_free(cd_split_plan *r);
/* total; exchange_s may be NULL. */
double cd_split_cost(const cd_split *p, const uint32_t *choice, double *exchange_s);

typedef enum cd_split_base {
    CD_SPLIT_ALONE,     /* the options that are all of device `d` */
    CD_SPLIT_PLACE,     /* of each operator the fastest option that is not split, whatever an exchange costs */
    CD_SPLIT_EQUAL,     /* split options whose shares are nearest to equal ones, of those the fastest; not split where there are none */
    CD_SPLIT_FIXED,     /* the same with device 0's share nearest to `ratio` */
    CD_SPLIT_GREEDY     /* the fastest option of each, whatever an exchange costs */
} cd_split_base;
#define CD_SPLIT_BASES "alone|place|equal|fixed|greedy"
/* choice (n_op). Errors: ERANGE (ratio), EINVALID (d; an operator that has no option of that kind: its name). */
cdmpp_status cd_split_baseline(const cd_split *p, cd_split_base kind, uint32_t d, double ratio, uint32_t *choice, cdmpp_err *err);

/* ---- one operator ---- */
/* What no split of one operator over devices with these times (n) can beat: the gain over the fastest of them, min / (1 / sum 1/t); for
 * two devices 1 + 1/rho. 1 where fewer than two are finite. */
double cd_split_ceiling(const double *seconds, uint32_t n);
/* Of `extent` the part 0..extent for the first of two devices with a + b n seconds each: the closed form, rounded to the granule, against
 * not splitting. Seconds by *best_s. extent, granule >= 1; a, b >= 0. */
typedef struct cd_split_line {
    double a, b;                /* seconds, seconds per unit */
} cd_split_line;
int64_t cd_split_affine(cd_split_line first, cd_split_line second, int64_t extent, int64_t granule, double *best_s);
/* The same for any times: every multiple of the granule, and extent, is asked for. */
typedef double cd_split_time(int64_t n, void *ctx); /* of the whole operator, when the first device has n */
int64_t cd_split_search(cd_split_time *time, void *ctx, int64_t extent, int64_t granule, double *best_s);
#endif
