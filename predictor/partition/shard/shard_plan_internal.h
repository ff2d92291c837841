/* shard_plan_internal -- the planner: what the files of shard_plan share while a plan is made.
 * Private to shard_plan*.c.
 *
 *   operators of one definition ─> kind: times alone, split axes, options ─> operator: which of
 *     them it may take, which it has ─> choice
 *
 *   (1) operators with equal keys, which the same devices may run, are of one kind; times and
 *       options are computed once for a kind;
 *   (2) an option says which device has which part, what each part reads and makes as boxes of the
 *       definition's arguments, and what they take together, launch, contention and join included;
 *   (3) an exchange has three phases, one after the other: packing on the devices that made the
 *       value, copies on links, unpacking and waiting on the devices that read it. Within a phase
 *       devices work at the same time; a phase takes as long as the slowest of them. A replay,
 *       which lets each device and link go on as soon as it can, never takes longer. */
#ifndef CD_SHARD_PLAN_INTERNAL_H
#define CD_SHARD_PLAN_INTERNAL_H
#include "predictor/partition/shard/shard_select.h"
#include "predictor/partition/shard/shard_plan.h"

#define CD_SHARD_PLANNER_NONE UINT32_MAX
/* the most options of an operator that the solver chooses from; the table of an edge has the square
 * of it */
enum { CD_SHARD_PLANNER_OPTIONS = 24 };

typedef struct cd_shard_planner_use { /* what a part or a join reads and, last, makes */
    uint32_t device, n_arg;
    const uint32_t *of; /* NULL: all of everything */
    const cd_box *box;
} cd_shard_planner_use;

typedef struct cd_shard_planner_option {
    const char *name;             /* "cpu0", "H 28|28" */
    uint32_t way;                 /* split axis of the kind; CD_SHARD_PLANNER_NONE: not split */
    uint32_t n_part, n_use, join; /* n_use: parts and the join */
    const cd_shard_plan_part *part;
    const cd_shard_planner_use *use;
    const double *share; /* (n_device) */
    double seconds, join_s;
} cd_shard_planner_option;

typedef struct cd_shard_planner_kind {
    /* the first operator of this kind; devices that may run it, a bit each */
    uint32_t op, allowed;
    bool free; /* not pinned and defined */
    /* key: some operator of it is a key operator; look: all shares are options, not only those of
     * the baselines */
    bool key, look;
    uint32_t n_way, n_option, cap;
    const cd_te_shard_axis *way;
    const double *alone; /* (n_device) launch included; infinity: cannot */
    /* the least of alone; the time if all devices worked together, each at its rate alone */
    double best, together;
    /* what no option is below: together, or the fastest option where parts are predicted below
     * their shares */
    double least;
    uint32_t fastest;
    cd_shard_planner_option *option; /* whole ones first */
} cd_shard_planner_kind;

typedef struct cd_shard_planner_node { /* an operator */
    uint32_t kind, n_all, n_some;
    /* options of the kind: all possible ones; those that the solver chooses from */
    const uint32_t *all, *some;
    /* (the kind's n_option) seconds to copy the network's inputs to it and its results to the first
     * device */
    const double *io;
    bool key, worth;
} cd_shard_planner_node;

typedef struct cd_shard_planner_shape {
    uint32_t rank;
    const int64_t *n;
    int64_t elements;
} cd_shard_planner_shape;

typedef struct cd_shard_planner {
    const cd_shard_plan_options *ask;
    const cd_shard_net *net;
    const cd_machine *m;
    cd_arena arena;
    uint32_t n_device, granules, n_kind, n_edge;
    double margin, least_s, cover, fixed;
    /* shares of the whole network with which all devices would end at the same time */
    double ratio[CD_MACHINE_DEVICES];
    const cd_link *link[CD_MACHINE_DEVICES][CD_MACHINE_DEVICES];
    uint32_t store[CD_MACHINE_DEVICES]; /* first device of each one's memory */
    double limit[CD_MACHINE_DEVICES];   /* by store: bytes; 0: none */
    bool limited;                       /* any of them */
    cd_contention contention;
    /* (n_tensor) those with more dimensions than a box has are flattened to one */
    cd_shard_planner_shape *shape;
    cd_shard_planner_kind *kind;
    cd_shard_planner_node *node; /* (n_op) */
    cd_shard_select_edge *edge;  /* (n_edge) by options in `some` */
} cd_shard_planner;

/* ---- shard_plan_memory.c ---- */
/* Checks the request and fills in defaults; s->arena is to be freed after an error too. Errors:
 * those of cd_shard_plan_make's input. */
cdmpp_status cd_shard_planner_begin(cd_shard_planner *s, const cd_shard_plan_options *a,
                                    cdmpp_err *err);

/* ---- shard_plan_kind.c: kinds, their times alone ---- */
/* Fills kind, node[].kind and ratio. Errors: those of the callback, ERANGE, ENOMEM. */
cdmpp_status cd_shard_planner_kinds(cd_shard_planner *s, cdmpp_err *err);
/* seconds (n): the times of n devices that work at the same time, launch and contention
 * included. */
bool cd_shard_planner_allows(const cd_shard_planner_kind *k, uint32_t device);

/* ---- shard_plan_kind.c ---- */
/* All options of a kind: whole on each device that can, and splits where it is a key kind. Errors:
 * the callback's, ENOMEM. */
cdmpp_status cd_shard_planner_make_options(cd_shard_planner *s, cd_shard_planner_kind *k,
                                           cdmpp_err *err);
/* Shares for more than two devices: units (up to 4 rows), each row the granules of every device.
 * curve: the time of some granules on a device. */
typedef double cd_shard_planner_curve(void *ctx, uint32_t device, uint32_t granules);

/* ---- shard_plan_exchange.c ---- */
typedef struct cd_shard_planner_side {
    uint32_t device;
    bool run;
    cd_box box; /* of the tensor */
    /* elements to pack in addition: a box of the view that is not a box of the tensor */
    int64_t pack;
} cd_shard_planner_side;
typedef struct cd_shard_planner_move {
    cd_shard_plan_copy copy;
    uint32_t phase;
} cd_shard_planner_move;
/* collects copies, those of one exchange in the order of its phases. The caller frees move */
typedef struct cd_shard_planner_moves {
    cd_shard_planner_move *move;
    uint32_t n, cap, before;
    bool oom;
} cd_shard_planner_moves;
/* Seconds of the exchange before operator `to` with option j of what `from` with option i made;
 * infinity: a link is missing. out: receives the copies; may be NULL. inputs: the same for inputs
 * of the network; results: for results that are copied to the first device. */
double cd_shard_planner_exchange(const cd_shard_planner *s, uint32_t from,
                                 const cd_shard_planner_option *i, uint32_t to,
                                 const cd_shard_planner_option *j, cd_shard_planner_moves *out);
double cd_shard_planner_inputs(const cd_shard_planner *s, uint32_t to,
                               const cd_shard_planner_option *j, cd_shard_planner_moves *out);
double cd_shard_planner_results(const cd_shard_planner *s, uint32_t from,
                                const cd_shard_planner_option *i, cd_shard_planner_moves *out);
/* The tables of all edges, by `some` of the operators. */
cdmpp_status cd_shard_planner_edges(cd_shard_planner *s, cdmpp_err *err);

/* ---- shard_plan_choose.c ---- */
/* Options of all kinds, then all, some and io of each operator (shard_plan_exchange.c). Errors:
 * EINVALID (an operator that no device can run), the callback's, ENOMEM. */
cdmpp_status cd_shard_planner_nodes(cd_shard_planner *s, cdmpp_err *err);
/* The predicted time of a plan. choice (n_op): options of the kinds. exchange (n_op, may be NULL):
 * seconds of inputs and exchanges before each operator. */
double cd_shard_planner_cost(const cd_shard_planner *s, const uint32_t *choice, double *exchange);
typedef struct cd_shard_planner_solution {
    /* (n_op); wanted: the solver's plan, before the margin was applied */
    uint32_t *choice, *wanted;
    double total_s, bound_s, alone_s, rho;
    uint32_t alone; /* best device for all; CD_SHARD_PLANNER_NONE: none can */
    /* a device whose memory the best plan does not fit into; CD_SHARD_PLANNER_NONE: it fits */
    uint32_t tight;
    bool exact, refused; /* refused: a split gained less than the margin */
    uint32_t n_base;
    const char **name;
    uint32_t **base; /* (n_base)(n_op) choices; NULL: cannot be */
    double *base_s;
} cd_shard_planner_solution;
/* The baselines and the plan; everything in f lives in s->arena. Errors: EINVALID (no plan is
 * possible or fits), ENOMEM. */
cdmpp_status cd_shard_planner_choose(cd_shard_planner *s, cd_shard_planner_solution *f,
                                     cdmpp_err *err);

/* ---- shard_plan_memory.c: what fits ---- */
/* Bytes in each memory (by store; NULL: not wanted), and the fullest of those that are over their
 * limit (CD_SHARD_PLANNER_NONE: it fits). Errors: ENOMEM. */
cdmpp_status cd_shard_planner_memory_used(const cd_shard_planner *s, const uint32_t *choice,
                                          double *held, uint32_t *full, cdmpp_err *err);
/* The solver's plan where each byte held costs time: bytes (options in `some` of all operators,
 * n_device), price (n_device) seconds for a byte. */
typedef cdmpp_status cd_shard_planner_solve(void *ctx, const double *bytes, const double *price,
                                            uint32_t *choice, cdmpp_err *err);
/* The best plan that fits into the memories. *exact: all plans of these options were tried.
 * total_s: the time of the plan that does not fit, the scale of the prices. Errors: EINVALID (none
 * fits), the solver's, ENOMEM. */
cdmpp_status cd_shard_planner_solve_within(const cd_shard_planner *s, cd_shard_planner_solve *solve,
                                           void *ctx, double total_s, uint32_t *choice, bool *exact,
                                           cdmpp_err *err);

/* ---- shard_plan.c ---- */
/* One sentence in `a`: why the operator has its option (bytes: what is copied before it); what the
 * plan does; a formatted text. NULL: no memory. */
const char *cd_shard_planner_explain(const cd_shard_planner *s, const cd_shard_planner_solution *f,
                                     uint32_t op, const cd_shard_plan_op *o, int64_t bytes,
                                     cd_arena *a);
const char *cd_shard_planner_verdict(const cd_shard_planner *s, const cd_shard_planner_solution *f,
                                     const cd_shard_plan *p, cd_arena *a);
/* The first device other than `but` (CD_SHARD_PLANNER_NONE: of all) that may run the kind and has
 * no time for it, with the reason: "d1 (none of 64 drawn schedules lowers)". NULL: there is none.
 * In `a`. */
const char *cd_shard_planner_without_time(const cd_shard_planner *s, const cd_shard_planner_kind *k,
                                          uint32_t but, cd_arena *a);
const char *cd_shard_planner_format(cd_arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#endif
