/* shard_plan -- a network's plan: which device runs what, which operators are split over which dimension and how much, by predictions.
 *
 *   network (definitions, tensors) ─┐            for each operator: options (device | dimension, shares)
 *   time of a part on a device ─────┼─> boxes ─> their seconds, and what neighbours must exchange ──> partition_split.h ──> plan
 *   machine (launch, links) ────────┘
 *
 *   (1) an option's boxes are te_part.h's: what each device reads and makes. What a consumer's device reads and has not made itself
 *       it gets from those that made it: between memories over a link, within one memory for sync_s, and where a box is no run in
 *       memory by a copy at the link "X -> X" of the host (else bytes at the host's copy rate; no link: 5 GB/s);
 *   (2) times come from the caller: of each operator, device and part; NaN is an error, infinity "cannot";
 *   (3) shares are granules: 1/granules of the dimension, rounded to whole elements; of two devices all of them are tried but those that
 *       need 1.5 times the least even if no part takes more than its share of the whole's time; of more devices the best
 *       (split_ratio.h, through times at the granules), equal and fixed ones; and always the shares by which all need equally long for
 *       the whole network, to the element;
 *   (4) an operator is split only if that saves `margin` of its best device's time and `least_s`; key operators (those whose
 *       attainable saving is the largest, together `cover` of all there is) are looked at, the others are not split;
 *   (5) the plan is never worse, by prediction, than any device alone, placement, equal, fixed and greedy shares of the key operators
 *       (where those are better than (4) allows, what they split is looked at too); but a plan that splits and saves less than margin
 *       of the best device's time is that device's plan;
 *   (6) ceiling: sum of the best device's times over sum of what the devices could do together (split_ratio.h (5)).
 * A plan is a value: written as JSON (docs/reference/plan.md), read, drawn by a replay, run by plan_run.h. Same input, same plan. Seconds, bytes. */
#ifndef CD_SHARD_PLAN_H
#define CD_SHARD_PLAN_H
#include "features/te_shard/te_shard.h"
#include "profiler/machine/machine.h"
#include "predictor/replay/replay.h"

#define CD_SHARD_NET_OUTSIDE UINT32_MAX

typedef struct cd_shard_net_tensor {
    const char *name;
    uint32_t rank;
    const int64_t *shape;       /* (rank) */
    uint32_t element_bytes;
    uint32_t from;              /* operator; CD_SHARD_NET_OUTSIDE: an input, a weight */
    bool constant, result;      /* a weight: each device has its piece before the network runs; a result: the first device has all of it at the end */
} cd_shard_net_tensor;

typedef struct cd_shard_net_op {
    const char *name, *type, *key; /* "Conv+Relu", workload key */
    const cd_te_dag *dag;       /* NULL: nobody defines it: it is never split */
    uint32_t n_arg;
    const uint32_t *arg;        /* (n_arg) tensors, in the definition's order, the result last. A view has the definition's shape, not the tensor's */
    uint32_t pin;               /* device or UINT32_MAX */
    const char *pin_why;
    uint32_t allowed;           /* bit d: device d may; 0: all */
} cd_shard_net_op;

typedef struct cd_shard_net {
    const char *name;
    int64_t batch;
    uint32_t n_tensor, n_op;
    const cd_shard_net_tensor *tensor;
    const cd_shard_net_op *op;       /* each behind those that it reads from */
} cd_shard_net;

/* Seconds of a part (NULL: the whole; join: as a part) of operator `op` on a machine's device, as often as the device runs it, alone in its
 * network, without launch; memory_share 0..1 for the contention. Equal questions have equal answers. */
typedef struct cd_shard_plan_estimate {
    double seconds, memory_share;
} cd_shard_plan_estimate;
typedef cdmpp_status cd_shard_plan_time(void *ctx, uint32_t op, uint32_t device, const cd_te_shard *part, cd_shard_plan_estimate *out, cdmpp_err *err);

/* Many questions that will be asked next, for who can answer them together faster (shard_cost.h, on all threads). Parts live until it returns. */
typedef struct cd_shard_plan_query {
    uint32_t op, device;
    const cd_te_shard *part;     /* NULL: the whole */
} cd_shard_plan_query;
typedef cdmpp_status cd_shard_plan_prepare(void *ctx, const cd_shard_plan_query *w, size_t n, cdmpp_err *err);

typedef struct cd_shard_plan_options {
    const cd_shard_net *net;
    const cd_machine *machine;
    cd_shard_plan_time *time;
    cd_shard_plan_prepare *prepare;  /* NULL: not needed */
    void *ctx;
    uint32_t granules;          /* 0: 8 */
    double margin, least_s;     /* NaN: 0.05, 20e-6 */
    double cover;               /* NaN: 1 */
    double fixed_share;         /* device 0's, of the fixed baseline; NaN: 0.5 */
    const char *dims;           /* "H,N": only these; NULL: all */
    double steady;              /* 0 .. 1: weight, in the logarithm, of a part's share of the whole's time beside what `time` says of the part, but along the result's
                                 * innermost axis, whose jumps are real: for models, which are less sure of a part than of that law (docs/reference/partition.md) */
    bool split;                 /* false: placement alone */
} cd_shard_plan_options;

/* ---- the plan ---- */
typedef struct cd_shard_plan_part {
    uint32_t device;
    int64_t lo, hi;             /* of the way's extent; not split: 0, 0 */
    double seconds;             /* predicted, launch and contention included */
} cd_shard_plan_part;

typedef struct cd_shard_plan_op {
    const char *name, *type, *key;
    const char *dim;            /* cd_te_shard_axis.name; "": not split */
    bool reduce;
    uint32_t way_op, axis;      /* of the way */
    uint32_t n_part;
    const cd_shard_plan_part *part;   /* (n_part) in ascending lo */
    uint32_t join;              /* device of the join; UINT32_MAX: none */
    double join_s;              /* bringing the sums together included */
    double seconds, exchange_s; /* of the option, join included; before it. What all of both lack of predicted_s are results that go home */
    const double *alone_s;      /* (n_device) infinity: cannot */
    double ceiling;
    const char *why;            /* one sentence for people */
} cd_shard_plan_op;

typedef struct cd_shard_plan_copy {
    uint32_t tensor, from, to;  /* devices; from == to: within one memory */
    int64_t bytes;              /* 0: nothing is copied, `to` waits for `from` and reads in place */
    double seconds;
    uint32_t before;            /* operator; n_op: a result goes home */
} cd_shard_plan_copy;

typedef struct cd_shard_plan_baseline {
    const char *name;           /* "cpu0", "ocl0", "place", "equal", "fixed 0.50", "greedy" */
    double predicted_s;         /* infinity: cannot be */
    double measured_s;          /* NaN: not measured */
} cd_shard_plan_baseline;

typedef struct cd_shard_plan {
    cd_arena arena;
    const char *network;
    int64_t batch;
    uint32_t n_device, n_op, n_copy, n_base;
    const char **device;        /* (n_device) */
    cd_shard_plan_op *op;
    cd_shard_plan_copy *copy;
    cd_shard_plan_baseline *base;
    double predicted_s, bound_s, measured_s; /* measured NaN: not run */
    double predicted_gain, measured_gain, ceiling, rho; /* over the better device alone; rho: slower over faster device, whole network */
    bool exact, split;          /* split: any operator is. false: "do not split" */
    const char *verdict;        /* "split 12 of 21 operators", "do not split: ocl0 would have to be ...", "all on cpu0" */
} cd_shard_plan;

/* The plan, and the baselines as plans of their own (base (n_base), same order as out->base, NULL where it cannot be; NULL: not wanted). Errors: those of the callback
 * (with the operator), ERANGE (NaN; margin, cover), EINVALID (a cycle, an operator that no device may run, named), ENOMEM. */
cdmpp_status cd_shard_plan_make(const cd_shard_plan_options *a, CD_GIVE cd_shard_plan **out, cd_shard_plan ***base, cdmpp_err *err);
void cd_shard_plan_free(CD_TAKE cd_shard_plan *p); /* NULL is fine */
void cd_shard_plan_free_all(CD_TAKE cd_shard_plan **p, size_t n);

/* JSON, docs/reference/plan.md. Errors of read: EIO, EPARSE, ESCHEMA, ERANGE (shares outside the extent, overlapping), with path and operator. */
void cd_shard_plan_write(const cd_shard_plan *p, cd_buf *out);
cdmpp_status cd_shard_plan_read(const char *path, CD_GIVE cd_shard_plan **out, cdmpp_err *err);
cdmpp_status cd_shard_plan_read_text(const char *path, const char *text, size_t n, CD_GIVE cd_shard_plan **out, cdmpp_err *err);
/* Is a plan that was read one of this network? Errors: ESCHEMA (other operators; a split over an axis that the operator does not have, or not of all of it; a
 * tensor that is none), ENOMEM. */
cdmpp_status cd_shard_plan_fits(const cd_shard_plan *p, const cd_shard_net *net, cdmpp_err *err);
/* Names that `dims` may have for this network, each once, in the order of the operators; in `a`. Errors: ENOMEM. */
cdmpp_status cd_shard_net_dims(const cd_shard_net *net, cd_arena *a, const char *const **out, uint32_t *n, cdmpp_err *err);
/* A replay's net: an operator for each part, joins, copies on links; all in `a`. Errors: ENOMEM. */
cdmpp_status cd_shard_plan_replay(const cd_shard_plan *p, const cd_shard_net *net, const cd_machine *m, cd_arena *a, cd_replay_net *out, cdmpp_err *err);
#endif
