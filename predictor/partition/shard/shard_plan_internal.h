/* shard_plan_internal -- what the files of shard_plan share. Private.
 *
 *   operators of one definition ──> kind: times alone, ways, options ──> operator: which of them it may take, which it has ──> choice
 *
 *   (1) a kind is asked for once: operators of equal key (and equal devices that may run them) share it;
 *   (2) an option says which device has which part, what each part reads and makes as boxes of the definition's arguments, and what
 *       they take together, launch, contention and join included;
 *   (3) an exchange has three phases, one behind the other: packing where it was made, links, unpacking and waiting where it is read;
 *       within a phase devices work at the same time. So a replay (each device and link in order) never takes longer. */
#ifndef CD_SHARD_PLAN_INTERNAL_H
#define CD_SHARD_PLAN_INTERNAL_H
#include "predictor/partition/shard/shard_select.h"
#include "predictor/partition/shard/shard_plan.h"

#define CD_SHARD_PLANNER_NONE UINT32_MAX
enum { CD_SHARD_PLANNER_OPTIONS = 24 }; /* of an operator that the solver looks at; a table of an edge is the square of it */

typedef struct cd_shard_planner_use {   /* what a part or a join reads and, last, makes */
    uint32_t device, n_arg;
    const uint32_t *of;         /* NULL: all of everything */
    const cd_box *box;
} cd_shard_planner_use;

typedef struct cd_shard_planner_option {
    const char *name;           /* "cpu0", "H 28|28" */
    uint32_t way;               /* CD_SHARD_PLANNER_NONE: whole */
    uint32_t n_part, n_use, join; /* n_use: parts and the join */
    const cd_shard_plan_part *part;
    const cd_shard_planner_use *use;
    const double *share;        /* (n_device) */
    double seconds, join_s;
} cd_shard_planner_option;

typedef struct cd_shard_planner_kind {
    uint32_t op, allowed;       /* first operator of it; devices that may */
    bool free;                  /* not pinned and defined */
    bool key, look;             /* some operator of it is; all options, not those of the baselines alone */
    uint32_t n_way, n_option, cap;
    const cd_te_shard_axis *way;
    const double *alone;        /* (n_device) launch included; infinity: cannot */
    double best, together;      /* least of alone; what they could do together */
    uint32_t fastest;
    cd_shard_planner_option *option;    /* whole ones first */
} cd_shard_planner_kind;

typedef struct cd_shard_planner_node {  /* an operator */
    uint32_t kind, n_all, n_some;
    const uint32_t *all, *some; /* options of the kind: that can be; that the solver looks at */
    const double *io;           /* (the kind's n_option) seconds of its inputs from outside and its results' way home */
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
    double ratio[CD_MACHINE_DEVICES]; /* shares of the whole network that would end together */
    const cd_link *link[CD_MACHINE_DEVICES][CD_MACHINE_DEVICES];
    uint32_t store[CD_MACHINE_DEVICES]; /* first device of each one's memory */
    double limit[CD_MACHINE_DEVICES];   /* by store: bytes; 0: none */
    bool limited;               /* any of them */
    cd_contention contention;
    cd_shard_planner_shape *shape;      /* (n_tensor) those of more dimensions than a box has lie flat */
    cd_shard_planner_kind *kind;
    cd_shard_planner_node *node;        /* (n_op) */
    cd_shard_select_edge *edge;    /* (n_edge) by options in `some` */
} cd_shard_planner;

/* ---- shard_plan_check.c ---- */
cdmpp_status cd_shard_planner_begin(cd_shard_planner *s, const cd_shard_plan_options *a, cdmpp_err *err);

/* ---- shard_plan_kind.c: kinds, their times alone ---- */
cdmpp_status cd_shard_planner_kinds(cd_shard_planner *s, cdmpp_err *err);
/* One answer, checked. what: for messages, "H 0..20". */
cdmpp_status cd_shard_planner_query(const cd_shard_planner *s, uint32_t op, uint32_t device, const cd_te_shard *part, const char *what, cd_shard_plan_estimate *out, cdmpp_err *err);
/* Answers of n devices that run at the same time become seconds. */
void cd_shard_planner_concurrent(const cd_shard_planner *s, uint32_t n, const uint32_t *device, const cd_shard_plan_estimate *a, double *seconds);
bool cd_shard_planner_allows(const cd_shard_planner_kind *k, uint32_t device);

/* ---- shard_plan_option.c ---- */
cdmpp_status cd_shard_planner_make_options(cd_shard_planner *s, cd_shard_planner_kind *k, cdmpp_err *err);
/* Adds one; name, parts, uses and shares live in s->arena. */
cdmpp_status cd_shard_planner_add_option(cd_shard_planner *s, cd_shard_planner_kind *k, const cd_shard_planner_option *o, cdmpp_err *err);
/* Units (n_device) of `granules`, for more than two devices: best, equal, the network's ratio, the fixed one. */
typedef double cd_shard_planner_curve(void *ctx, uint32_t device, uint32_t granules);
cdmpp_status cd_shard_planner_shares(const cd_shard_planner *s, const cd_shard_planner_kind *k, uint32_t granules, cd_shard_planner_curve *curve, void *ctx, uint32_t (*units)[CD_MACHINE_DEVICES],
                             uint32_t *n, cdmpp_err *err);

/* ---- shard_plan_exchange.c ---- */
typedef struct cd_shard_planner_side {
    uint32_t device;
    bool run;
    cd_box box;                 /* of the tensor */
    int64_t pack;               /* elements to pack beside: a view's box that is none of the tensor */
} cd_shard_planner_side;
typedef struct cd_shard_planner_move {
    cd_shard_plan_copy copy;
    uint32_t phase;
} cd_shard_planner_move;
typedef struct cd_shard_planner_moves { /* collects copies, of one exchange in the order of its phases; the heap's */
    cd_shard_planner_move *move;
    uint32_t n, cap, before;
    bool oom;
} cd_shard_planner_moves;
/* Seconds of what operator `to` with option j needs of operator `from` with option i; infinity: no link. */
double cd_shard_planner_exchange(const cd_shard_planner *s, uint32_t from, const cd_shard_planner_option *i, uint32_t to, const cd_shard_planner_option *j, cd_shard_planner_moves *out);
double cd_shard_planner_inputs(const cd_shard_planner *s, uint32_t to, const cd_shard_planner_option *j, cd_shard_planner_moves *out);
double cd_shard_planner_results(const cd_shard_planner *s, uint32_t from, const cd_shard_planner_option *i, cd_shard_planner_moves *out);
/* Does what the parts make lie in boxes of the tensor? */
bool cd_shard_planner_fits(const cd_shard_planner *s, uint32_t op, const cd_shard_planner_option *o);
/* The tables of all edges, by `some` of the operators. */
cdmpp_status cd_shard_planner_edges(cd_shard_planner *s, cdmpp_err *err);

/* ---- shard_plan_choose.c ---- */
cdmpp_status cd_shard_planner_nodes(cd_shard_planner *s, cdmpp_err *err);
/* choice (n_op): options of the kinds. exchange (n_op) may be NULL: what each waits for, home included in *total. */
double cd_shard_planner_cost(const cd_shard_planner *s, const uint32_t *choice, double *exchange);
typedef struct cd_shard_planner_solution {
    uint32_t *choice, *wanted;  /* (n_op); wanted: what the solver would have liked, before the margin */
    double total_s, bound_s, alone_s, rho;
    uint32_t alone;             /* best device for all; CD_SHARD_PLANNER_NONE: none can */
    uint32_t tight;             /* a device whose memory the best plan does not fit into; CD_SHARD_PLANNER_NONE: it fits */
    bool exact, refused;        /* refused: a split gained less than the margin */
    uint32_t n_base;
    const char **name;
    uint32_t **base;            /* (n_base)(n_op) choices; NULL: cannot be */
    double *base_s;
} cd_shard_planner_solution;
cdmpp_status cd_shard_planner_choose(cd_shard_planner *s, cd_shard_planner_solution *f, cdmpp_err *err);

/* ---- shard_plan_memory.c: what fits ---- */
void cd_shard_planner_memory_limits(cd_shard_planner *s);
/* Bytes in each memory (by store; NULL: not wanted), and the fullest of those that are over their limit (CD_SHARD_PLANNER_NONE: it fits). Errors: ENOMEM. */
cdmpp_status cd_shard_planner_memory_used(const cd_shard_planner *s, const uint32_t *choice, double *held, uint32_t *full, cdmpp_err *err);
/* The solver's plan where bytes cost: bytes (operators' options in `some`, n_device), price (n_device) seconds of a byte. */
typedef cdmpp_status cd_shard_planner_solve(void *ctx, const double *bytes, const double *price, uint32_t *choice, cdmpp_err *err);
/* The best plan that fits; exact: of all of these options. total_s: of one that does not. Errors: EINVALID (none fits), the solver's, ENOMEM. */
cdmpp_status cd_shard_planner_solve_within(const cd_shard_planner *s, cd_shard_planner_solve *solve, void *ctx, double total_s, uint32_t *choice, bool *exact, cdmpp_err *err);

/* ---- shard_plan_result.c, shard_plan_explain.c ---- */
/* base: name of a baseline; NULL: the plan itself. */
cdmpp_status cd_shard_planner_result(const cd_shard_planner *s, const cd_shard_planner_solution *f, const uint32_t *choice, const char *base, CD_GIVE cd_shard_plan **out, cdmpp_err *err);
/* bytes: what is copied before it. NULL: no memory. */
const char *cd_shard_planner_explain(const cd_shard_planner *s, const cd_shard_planner_solution *f, uint32_t op, const cd_shard_plan_op *o, int64_t bytes, cd_arena *a);
const char *cd_shard_planner_verdict(const cd_shard_planner *s, const cd_shard_planner_solution *f, const cd_shard_plan *p, cd_arena *a);
const char *cd_shard_planner_format(cd_arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
#endif
