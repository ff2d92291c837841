/* The door of predictor/partition/offload: places the groups of a network on devices that support
 * only some operators, as a file of rules says (offload_rules.h). For predictor/partition/plan. It
 * gives a plan: which groups leave the host, in which regions, what that costs, and why each region
 * is where it is.
 *
 *   offload_match.h (allowed devices) ─┐                                        ┌─> greedy
 *   seconds of groups ─────────────────┼─> placement.h, a problem with inputs, ─┼─> pruned
 *   links + offload_boundary.h ────────┘   results and boundary conversions     └─> the plan
 *
 *   greedy     TVM v0.9: every group that may leave leaves, at any cost
 *   pruned     the same; regions without a multiply-add come back
 *   the plan   by cost, never worse than those and the host alone
 *
 *   (1) operators of the problem: the network's inputs (0 s, on the host), the groups or matches of
 *       several groups as one, its results (0 s, on the host);
 *   (2) by cost: several covers by joint matches (offload_match.h) are tried; for each the best
 *       placement (placement.h) for the goal is found;
 *   (3) mac: regions on another device that contain no multiply-add go back to the host, and the
 *       rest is planned again;
 *   (4) a group without a definition stays on the host and counts 0 s; n_undefined is their number.
 *       A time of NaN for any other group is an error;
 *   (5) boundary: one entry for each value and each device that it is copied to. Conversions happen
 *       only there.
 * Same input, same plan. Seconds, bytes. */
#ifndef CD_OFFLOAD_H
#define CD_OFFLOAD_H
#include "predictor/partition/offload/offload_boundary.h"
#include "predictor/partition/offload/offload_match.h"

typedef struct cd_offload_plan_options {
    const cd_offload_net_match *rules;
    const double *seconds; /* (n_group, n_device) infinity: cannot */
    /* (n_link) between devices as rules->device has them, without conversions */
    const cd_place_link *link;
    uint32_t n_link;
    /* bytes of a value (as float32) that the host converts in a second; 0: 5e9 */
    double rate;
    double start_s;                /* seconds to start a conversion */
    cd_offload_edge_layout layout; /* the layout in which the network was loaded */
    cd_place_goal goal;
    bool mac; /* (3) */
} cd_offload_plan_options;

typedef struct cd_offload_region {
    uint32_t device, first, n; /* group[first .. first + n), in an order to run in */
    double seconds;
    bool mac;
    const char *why; /* the reason in one line, for printing */
} cd_offload_region;

typedef struct cd_offload_boundary {
    uint32_t group;            /* that makes it; CD_GRAPH_NONE: an input of the network */
    uint32_t buffer;           /* of the workload */
    uint32_t from, to;         /* devices */
    int64_t bytes, packed;     /* of the value; on the link */
    double seconds, convert_s; /* of the copy; the part of it that conversions take */
    const cd_offload_edge *edge;
} cd_offload_boundary;

typedef struct cd_offload_baseline {
    const char *name; /* "host", "greedy", "pruned" */
    cd_place_cost cost;
    const uint32_t *where; /* (n_group) */
} cd_offload_baseline;

typedef struct cd_offload_net_plan {
    cd_arena arena;
    const cd_offload_net_match *rules;
    /* the placement problem; a joint match that is used is one operator */
    cd_place_problem part;
    uint32_t *at;       /* (n_group) operator of the problem */
    uint32_t *at_where; /* (part.n_op) */
    uint32_t *where;    /* (n_group) */
    uint32_t *joint;    /* (n_group) the joint match it is run by; UINT32_MAX: none */
    cd_place_cost cost;
    double bound_s; /* no plan is better than this, by the goal; -infinity: not known */
    bool exact;
    /* of placement.h; "given"; or the name of the baseline that is the plan */
    const char *method;
    uint32_t n_region, n_boundary, n_undefined, n_pruned; /* pruned: groups that (3) sent home */
    cd_offload_region *region;     /* (n_region) each behind those that it reads from */
    uint32_t *group;               /* (n_group) in regions */
    uint32_t *of;                  /* (n_group) its region */
    cd_offload_boundary *boundary; /* (n_boundary) */
    cd_offload_edge *edge;         /* (n_device, n_device) */
    cd_offload_baseline base[3];
} cd_offload_net_plan;

/* Makes the plan; where (n_group) not NULL: the cost, regions and boundary of this placement. What
 * the options point to must outlive the plan. Errors: those of cd_place_solve; ERANGE (a NaN, with
 * group and device), EINVALID (a group of `where` on a device where it may not be: both are named),
 * ENOMEM. Free after an error too. */
cdmpp_status cd_offload_plan_make(const cd_offload_plan_options *a, const uint32_t *where,
                                  cd_offload_net_plan *out, cdmpp_err *err);
void cd_offload_net_plan_free(cd_offload_net_plan *o); /* zeroed is fine */
/* The plan as text: regions, boundary, costs of baselines and plan. */
void cd_offload_plan_text(const cd_offload_net_plan *o, cd_buf *out);
/* The plan as a JSON object: {"plan": {costs}, "method", ..., "regions": [...], "boundary": [...],
 * "baselines": {...}}. Infinity is null. */
void cd_offload_plan_json(const cd_offload_net_plan *o, cd_buf *out);
#endif
