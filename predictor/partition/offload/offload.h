/* offload_plan -- a network under rules: which groups leave the host, in which regions, what that costs, and why each region stands where it does.
 *
 *   offload_match.h (who may) ──┐                                         ┌─> greedy   TVM v0.9: all that may leaves, whatever it costs
 *   seconds of groups ───────┼─> partition.h, a problem with inputs, ──┼─> pruned   the same; regions without a multiply-add come back
 *   links + offload_boundary.h ─┘   results and boundary conversions      └─> the plan: by cost, never worse than those and the host alone
 *
 *   (1) operators of the problem: the network's inputs (0 s, on the host), the groups or matches of several groups as one, its results
 *       (0 s, on the host);
 *   (2) by cost: covers by joint matches (offload_rules.h) times the best placement (partition.h) for the goal;
 *   (3) mac: what moves more than it multiplies goes home: regions of no multiply-add on another device become the host's, and the rest is planned again;
 *   (4) a group that nothing defines is the host's and counts 0 s; n_undefined says how many. NaN of any other is an error;
 *   (5) boundary: one entry a value and device that it is copied to, and nowhere else.
 * Same input, same plan. Seconds, bytes. */
#ifndef CD_OFFLOAD_H
#define CD_OFFLOAD_H
#include "predictor/partition/offload/offload_boundary.h"
#include "predictor/partition/offload/offload_match.h"

typedef struct cd_offload_plan_options {
    const cd_offload_net_match *rules;
    const double *seconds;      /* (n_group, n_device) infinity: cannot */
    const cd_place_link *link;   /* (n_link) between devices as rules->device has them, without conversions */
    uint32_t n_link;
    const uint32_t *workers;    /* (n_device) NULL: 1 each */
    double rate;                /* bytes of a value that the host converts in a second; 0: 5e9 */
    double start_s;             /* of a conversion */
    cd_offload_edge_layout layout;      /* that the network was loaded in */
    cd_place_goal goal;
    uint64_t effort;            /* of partition.h */
    bool mac;                   /* (3) */
} cd_offload_plan_options;

typedef struct cd_offload_region {
    uint32_t device, first, n;  /* group[first .. first + n), in an order to run in */
    double seconds;
    bool mac;
    const char *why;            /* one line for people */
} cd_offload_region;

typedef struct cd_offload_boundary {
    uint32_t group;             /* that makes it; CD_GRAPH_NONE: an input of the network */
    uint32_t buffer;            /* of the workload */
    uint32_t from, to;          /* devices */
    int64_t bytes, packed;      /* of the value; on the link */
    double seconds, convert_s;  /* of the copy; of it conversions */
    const cd_offload_edge *edge;
} cd_offload_boundary;

typedef struct cd_offload_baseline {
    const char *name;           /* "host", "greedy", "pruned" */
    cd_place_cost cost;
    const uint32_t *where;      /* (n_group) */
} cd_offload_baseline;

typedef struct cd_offload_net_plan {
    cd_arena arena;
    const cd_offload_net_match *rules;
    cd_place_problem part;               /* the problem, joint matches that are used as one */
    uint32_t *at;               /* (n_group) operator of the problem */
    uint32_t *at_where;         /* (part.n_op) */
    uint32_t *where;            /* (n_group) */
    uint32_t *joint;            /* (n_group) the joint match it is run by; UINT32_MAX: none */
    cd_place_cost cost;
    double bound_s;             /* by the goal; -infinity: nobody knows */
    bool exact;
    const char *method;         /* of partition.h, or "greedy" */
    uint32_t n_region, n_boundary, n_undefined, n_pruned; /* pruned: groups that (3) sent home */
    cd_offload_region *region;     /* (n_region) each behind those that it reads from */
    uint32_t *group;            /* (n_group) in regions */
    uint32_t *of;               /* (n_group) its region */
    cd_offload_boundary *boundary; /* (n_boundary) */
    cd_offload_edge *edge;              /* (n_device, n_device) */
    cd_offload_baseline base[3];
} cd_offload_net_plan;

/* Errors: those of cd_place_solve; ERANGE (a NaN, with group and device), ENOMEM. Free after an error too. */
cdmpp_status cd_offload_plan_make(const cd_offload_plan_options *a, cd_offload_net_plan *out, cdmpp_err *err);
/* The same for a placement of groups that somebody else made: its cost, regions, boundary. where (n_group). Errors: EINVALID (a group where
 * it may not be: both named). */
cdmpp_status cd_offload_plan_of(const cd_offload_plan_options *a, const uint32_t *where, cd_offload_net_plan *out, cdmpp_err *err);
void cd_offload_net_plan_free(cd_offload_net_plan *o); /* zeroed is fine */
/* Regions, boundary, baselines. */
void cd_offload_plan_text(const cd_offload_net_plan *o, cd_buf *out);
/* {"goal_s" ..., "regions": [...], "boundary": [...], "baselines": {...}}: an object; docs/reference/offload.md. */
void cd_offload_plan_json(const cd_offload_net_plan *o, cd_buf *out);
#endif
