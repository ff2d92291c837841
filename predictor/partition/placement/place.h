/* place -- which operator of a network runs on which device, and what that costs.
 *
 *      conv ──v0──> relu ──v1──> dense        seconds   cpu   npu
 *        └────v0──> add  ──v2──────^          conv      900    80      where:  npu npu | cpu cpu
 *                                             dense     120   inf              region 0  region 1
 *
 *   (1) a value is one result of one operator, with all that read it; to a device where a reader
 *       runs and its operator does not, it is copied once: cost of a copy = link's latency_s +
 *       convert_s + bytes (packed / bytes_per_s + convert_s_per_byte);
 *   (2) sum: all seconds and all copies, one after the other. makespan: the replay's (replay.h)
 *       with the longest chain first, links one copy at a time; all values of one operator that
 *       have readers go to a device together. On a chain of operators both are the same;
 *   (3) seconds of infinity: not supported there. NaN: not known, an error. No link: no copy. A pin
 *       is never broken;
 *   (4) exact: no placement is better. sum: by minimum cut on two devices, by elimination on more
 *       where the graph is narrow (chains, trees, series-parallel ones are). makespan: by branch
 *       and bound, of all placements as replayed, not of all orders; else bound_s <= the best <=
 *       what is given;
 *   (5) a plan is never worse than any single device or the greedy placement by its own goal;
 *   (6) regions: operators of one device, connected, convex (no path leaves and comes back), and no
 *       two neighbours of one device can be one region without breaking that: regions are a graph
 *       without cycles.
 *   (7) a value of 0 bytes is an order: it costs the link's latency, as in a replay.
 * A value that must be at a certain device (inputs and results of the network) is an operator of 0
 * s that is pinned there. The launch of a region is part of the latency of the links to its device:
 * each copy into the device pays it. Same input, same plan: effort is counted, not timed. Any
 * thread. Seconds, bytes. Sources: BYOC (arXiv 2105.03215) for regions, TVM v0.9
 * MergeCompilerRegions; minimum cut for two processors: Stone 1977; elimination: Bertele and
 * Brioschi 1972; list scheduling: HEFT, Topcuoglu et al. 2002. */
#ifndef CD_PLACE_H
#define CD_PLACE_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"
#include "predictor/replay/replay.h"

#define CD_PLACE_FREE UINT32_MAX
enum { CD_PLACE_MAX_DEVICE = 8 };

typedef struct cd_place_op {
    const char *name;
    uint32_t pin;        /* device; CD_PLACE_FREE: anywhere */
    const char *pin_why; /* the source of the pin for messages: "plan.rules:7"; NULL */
} cd_place_op;

typedef struct cd_place_value {
    uint32_t from; /* operator */
    int64_t bytes;
    uint32_t first, n_to; /* to[first .. first + n_to) read it */
} cd_place_value;

typedef struct cd_place_device {
    const char *name;
    uint32_t workers; /* operators at a time; 0: 1 */
} cd_place_device;

typedef struct cd_place_link {
    uint32_t from, to; /* devices */
    double latency_s, bytes_per_s;
    /* bytes on the link for one of the value: 0.25 for float as int8; 0: 1 */
    double packed;
    /* layout or quantise nodes at the boundary, both sides together */
    double convert_s, convert_s_per_byte;
} cd_place_link;

typedef struct cd_place_problem {
    uint32_t n_op, n_value, n_to, n_device, n_link;
    const cd_place_op *op;         /* (n_op) */
    const cd_place_value *value;   /* (n_value) */
    const uint32_t *to;            /* (n_to) operators */
    const cd_place_device *device; /* (n_device) */
    const cd_place_link *link;     /* (n_link) */
    const double *seconds;         /* (n_op, n_device) */
} cd_place_problem;

typedef enum cd_place_goal { CD_PLACE_SUM, CD_PLACE_MAKESPAN } cd_place_goal;
#define CD_PLACE_GOALS "sum|makespan"

typedef struct cd_place_cost {
    double sum_s, makespan_s; /* infinity: this placement cannot be */
    double copies_s;          /* part of sum_s */
    int64_t bytes;            /* copied */
    uint32_t n_copy;
} cd_place_cost;

typedef struct cd_place_plan {
    cd_arena arena;
    uint32_t *where; /* (n_op) device */
    cd_place_cost cost;
    double bound_s; /* lower bound of all placements, by the goal */
    bool exact;
    /* "minimum cut", "elimination", "branch and bound", "one device", "greedy", "list and
     * search" */
    const char *method;
    uint64_t n_look; /* placements or states that were costed */
} cd_place_plan;

/* What a placement costs. where (n_op). A missing link or support: infinity. Errors: EINVALID (a
 * device that is none; a cycle: an operator of it; a value from or to nowhere; two links of one
 * pair; a pin that is not supported, with pin_why), ERANGE (NaN or negative seconds, with operator
 * and device; negative bytes; a link's numbers; more than CD_PLACE_MAX_DEVICE devices; none),
 * ESCHEMA (an operator that no device supports). */
cdmpp_status cd_place_evaluate(const cd_place_problem *p, const uint32_t *where, cd_place_cost *out,
                               cdmpp_err *err);

/* The best placement by `goal` that is found; see (4). effort: states or replayed operators that
 * may be looked at; 0: enough for 5,000 operators on 4 devices in seconds. Errors: as
 * cd_place_evaluate; EINVALID (no placement is possible: names two operators and the devices
 * without a link); ENOMEM. Free `out` after an error too. */
cdmpp_status cd_place_solve(const cd_place_problem *p, cd_place_goal goal, uint64_t effort,
                            cd_place_plan *out, cdmpp_err *err);
void cd_place_plan_free(cd_place_plan *r); /* zeroed is fine */

/* A weight that several operators read: it is once in each memory in which any of them is. */
typedef struct cd_place_shared {
    double bytes;
    const uint32_t *op; /* (n_op) ascending */
    uint32_t n_op;
} cd_place_shared;

/* What memories have. A placement holds in each the weights of operators on its devices, and once
 * every value that any of them makes or reads. */
typedef struct cd_place_limits {
    uint32_t n_memory;
    const uint32_t *memory;        /* (n_device) which one a device has */
    const double *bytes;           /* (n_memory) 0: no limit */
    const double *weights;         /* (n_op) bytes that no other operator reads */
    const cd_place_shared *shared; /* (n_shared) the others; NULL: none */
    uint32_t n_shared;
} cd_place_limits;
/* The best that is found of the placements that fit: where the best of all does not, by prices on
 * bytes, then of up to 24 operators every one (exact, within 2 million looks). Errors: those of
 * solve; EINVALID (a memory that is none; none fits: names a device), ERANGE (a limit, weights).
 * Free `out` after an error too. */
cdmpp_status cd_place_solve_within(const cd_place_problem *p, cd_place_goal goal, uint64_t effort,
                                   const cd_place_limits *l, cd_place_plan *out, cdmpp_err *err);

/* All on device d (pins stay), and each operator where it is fastest whatever a copy costs; where
 * (n_op) is filled. What such a plan costs is for cd_place_evaluate: infinity where it cannot
 * be. */
void cd_place_alone(const cd_place_problem *p, uint32_t d, uint32_t *where);
void cd_place_greedy(const cd_place_problem *p, uint32_t *where);

/* ---- regions ---- */
typedef struct cd_place_region {
    uint32_t device, first, n_op; /* member[first .. first + n_op), in an order to run in */
    double seconds, copies_s;     /* of its operators; of values that come in or go out */
    /* the device where all of it would cost least otherwise; CD_PLACE_FREE: nowhere */
    uint32_t other;
    double other_seconds, other_copies_s;
} cd_place_region;

typedef struct cd_place_regions {
    cd_arena arena;
    uint32_t n_region;
    cd_place_region *region; /* (n_region) each behind those that it reads from */
    uint32_t *member;        /* (n_op) */
    uint32_t *of;            /* (n_op) its region */
} cd_place_regions;

/* O(E (V + E)) at worst. Errors: as cd_place_evaluate, ENOMEM. Free after an error too. */
cdmpp_status cd_place_merge_regions(const cd_place_problem *p, const uint32_t *where,
                                    cd_place_regions *out, cdmpp_err *err);
void cd_place_regions_free(cd_place_regions *r);

/* ---- input for other programs ---- */
/* The 0/1 problem as CPLEX .lp text: x_<op>_<device>, z_<value>_<from>_<to>, for the makespan
 * starts s_<op>, orders o_.., M. Its optimum is that of (2) for the sum. For the makespan it is
 * over all orders: never above that of (4). Numbers are seconds * 1e6. Errors: as
 * cd_place_evaluate, ERANGE (the makespan of more than 64 operators), ENOMEM. */
cdmpp_status cd_place_lp(const cd_place_problem *p, cd_place_goal goal, cd_buf *out,
                         cdmpp_err *err);
#endif
