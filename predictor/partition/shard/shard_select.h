/* shard_select -- chooses one option for each operator of a network out of a list: a device, or a
 * split axis with a ratio.
 *
 *   conv1             conv2             exchange conv1 -> conv2  cpu  npu  H 0.4
 *     cpu     9.0 ms    cpu     7.0 ms    cpu                      0  0.3    0.2
 *     npu     6.0 ms    npu     5.0 ms    npu                    0.3    0    0.1
 *     H  0.4  3.8 ms    H  0.4  3.1 ms    H 0.4                  0.2  0.1      0  <- split alike:
 *     nothing moves
 *
 *   (1) operators run one after the other, each on all devices of its option at once (EOP, VEE'22):
 *       the cost of a plan is the sum of seconds of the options and of exchanges between
 *       neighbours' options;
 *   (2) an option takes as long as the slowest of its devices, the join of its parts included.
 *       Infinity: not possible. NaN: an error;
 *   (3) an exchange belongs to an edge: if two readers need a value in the same other form, it is
 *       paid twice;
 *   (4) exact where the graph is narrow (chains, trees, series-parallel, blocks of a CNN); else
 *       bound_s <= the best plan <= this plan;
 *   (5) a plan is never worse than any of the baselines (if it is not exact: the fixed one with the
 *       ratio 0.5).
 * shard_ratio.h finds the ratio of one operator. Same input, same plan. Any thread. Seconds. */
#ifndef CD_SHARD_SELECT_H
#define CD_SHARD_SELECT_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"

typedef struct cd_shard_select_option {
    const char *name; /* "H 0.40" */
    int dim;          /* the caller's number of the dimension; -1: not split */
    double seconds;
    const double *share; /* (n_device) 0..1, together 1 */
} cd_shard_select_option;

typedef struct cd_shard_select_op {
    const char *name;
    uint32_t n_option;                    /* >= 1 */
    const cd_shard_select_option *option; /* (n_option) */
} cd_shard_select_op;

typedef struct cd_shard_select_edge {
    uint32_t from, to;     /* operators */
    const double *seconds; /* (from's n_option, to's n_option) >= 0, infinity: cannot be */
} cd_shard_select_edge;

typedef struct cd_shard_select_problem {
    uint32_t n_op, n_edge, n_device;
    const cd_shard_select_op *op;     /* (n_op) */
    const cd_shard_select_edge *edge; /* (n_edge) two edges of one pair are added */
    const char *const *device;        /* (n_device) names */
} cd_shard_select_problem;

typedef struct cd_shard_select_plan {
    cd_arena arena;
    uint32_t *choice;           /* (n_op) option */
    double total_s, exchange_s; /* exchange_s is part of total_s */
    double bound_s;
    bool exact;
} cd_shard_select_plan;

/* The plan of the least total time. Errors: EINVALID (a cycle, an edge to nowhere, no plan
 * possible: an operator's name), ERANGE (NaN, negative, a ratio outside [0,1] or shares that are
 * not 1 together: operator, option, device), ENOMEM. most: the largest number of states in a table
 * of the elimination; 0: 1 << 20. Free `out` after an error too. */
cdmpp_status cd_shard_select_solve(const cd_shard_select_problem *p, size_t most,
                                   cd_shard_select_plan *out, cdmpp_err *err);
void cd_shard_select_plan_free(cd_shard_select_plan *r);
/* The total time of a choice; *exchange_s (may be NULL): the part of it that exchanges take. */
double cd_shard_select_cost(const cd_shard_select_problem *p, const uint32_t *choice,
                            double *exchange_s);

typedef enum cd_shard_select_base {
    CD_SHARD_SELECT_ALONE, /* the options that are all of device `d` */
    /* of each operator the fastest option that is not split, whatever an exchange costs */
    CD_SHARD_SELECT_PLACE,
    /* split options whose shares are nearest to equal ones, of those the fastest; not split where
     * there are none */
    CD_SHARD_SELECT_EQUAL,
    CD_SHARD_SELECT_FIXED, /* the same with device 0's share nearest to `ratio` */
    CD_SHARD_SELECT_GREEDY /* the fastest option of each, whatever an exchange costs */
} cd_shard_select_base;
/* The choice (n_op) of a baseline. d: for ALONE; ratio: for FIXED. Errors: ERANGE (ratio), EINVALID
 * (d; an operator that has no option of that kind: its name). */
cdmpp_status cd_shard_select_baseline(const cd_shard_select_problem *p, cd_shard_select_base kind,
                                      uint32_t d, double ratio, uint32_t *choice, cdmpp_err *err);
#endif
