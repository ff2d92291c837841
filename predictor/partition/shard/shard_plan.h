/* shard_plan -- the plan of a network on several devices, by predictions: the device of each
 * operator, and for operators that are split the axis and the shares.
 *
 *   network (definitions, tensors) ─┐   for each operator: options (device | dimension, shares)
 *   time of a part on a device ─────┼─> boxes ──> their seconds, and what neighbours must exchange
 *   machine (launch, links) ────────┘         ──> shard_select.h ──> plan
 *
 *   (1) an option's boxes (te_shard.h) say what each device reads and makes. What a device reads
 *       and has not made itself is copied from those that made it: over a link if they have another
 *       memory; if they share a memory the device waits for sync_s. A box that is not contiguous in
 *       memory is packed by a copy, at the speed of the device's link to itself "X -> X" (else that
 *       of the first device, else 5 GB/s);
 *   (2) the caller gives the times of each operator, device and part; NaN is an error, infinity
 *       means that there is none: whether the device could run it nobody knows then, and `why` says
 *       what was missing;
 *   (3) a share is a number of granules, each 1/granules of the axis, rounded to whole elements. On
 *       two devices all shares are tried, except those that take 1.5 times the least time even if
 *       each part takes exactly its proportion of the whole's time. On more devices the best ones
 *       (shard_ratio.h, with times interpolated between a few granules), equal and fixed ones are
 *       tried. In both cases also the shares with which all devices would end the whole network at
 *       the same time, to the element;
 *   (4) an operator is split only if that saves at least `margin` of its best device's time and at
 *       least `least_s`. Only key operators are split: those with the largest attainable savings,
 *       together `cover` of the sum of all savings;
 *   (5) by prediction the plan is never worse than the baselines: each device alone, placement
 *       without splits, and equal, fixed and greedy shares of the key operators. Where a baseline
 *       is better than (4) permits, its splits are considered too. If a plan with splits saves less
 *       than margin of the best device's time, the result is all on that device;
 *   (6) ceiling: the best device's time for all operators over the time if all devices worked
 *       together (EOP, VEE'22), or over the sum of the fastest options where parts are predicted
 *       below their shares of the whole. No predicted gain of a plan or baseline is above it; a
 *       measured one can be (a part may fit into a cache that the whole does not fit into).
 * A plan is a value: it is written and read as JSON (docs/reference/plan.md), replayed, and
 * executed by predictor/partition/run. Same input, same plan. Seconds, bytes. In the code a split
 * axis is a "way", a shard is a "part", and joining partial sums on one device is a "join". */
#ifndef CD_SHARD_PLAN_H
#define CD_SHARD_PLAN_H
#include "features/te_shard/te_shard.h"
#include "learner/model/model.h"
#include "profiler/machine/machine.h"
#include "predictor/replay/replay.h"

#define CD_SHARD_NET_OUTSIDE UINT32_MAX

typedef struct cd_shard_net_tensor {
    const char *name;
    uint32_t rank;
    const int64_t *shape; /* (rank) */
    uint32_t element_bytes;
    uint32_t from; /* operator; CD_SHARD_NET_OUTSIDE: an input, a weight */
    /* a weight: each device has its piece before the network runs; a result: the first device has
     * all of it at the end */
    bool constant, result;
} cd_shard_net_tensor;

typedef struct cd_shard_net_op {
    const char *name, *type, *key; /* "Conv+Relu", workload key */
    const cd_te_dag *dag;          /* NULL: no definition is known, so it is never split */
    const char *why;               /* why it has none; NULL: nobody says */
    uint32_t n_arg;
    /* (n_arg) tensors, in the definition's order, the result last. A view has the definition's
     * shape, not the tensor's */
    const uint32_t *arg;
    uint32_t pin; /* device or UINT32_MAX */
    const char *pin_why;
    uint32_t allowed; /* bit d: device d may; 0: all */
} cd_shard_net_op;

typedef struct cd_shard_net {
    const char *name;
    int64_t batch;
    uint32_t n_tensor, n_op;
    const cd_shard_net_tensor *tensor;
    const cd_shard_net_op *op; /* in an order to run in: each behind those that it reads */
} cd_shard_net;

/* The time of a part (NULL: the whole; a join is a part too) of operator `op` on a device of the
 * machine, with all the runs that the device makes of it, without other devices beside it and
 * without launch. memory_share (0..1): its part of the memory bandwidth, for contention. Equal
 * questions have equal answers. */
typedef struct cd_shard_plan_estimate {
    double seconds, memory_share;
} cd_shard_plan_estimate;
typedef cdmpp_status cd_shard_plan_time(void *ctx, uint32_t op, uint32_t device,
                                        const cd_te_shard *part, cd_shard_plan_estimate *out,
                                        cdmpp_err *err);

/* Why there is no time, for people; NULL: unknown. Valid while the plan is made. */
typedef const char *cd_shard_plan_why(void *ctx, uint32_t op, uint32_t device,
                                      const cd_te_shard *part);

/* The questions that will be asked next, so that they can be answered together (shard_cost.h scores
 * them on all threads). Parts are valid until it returns. */
typedef struct cd_shard_plan_query {
    uint32_t op, device;
    const cd_te_shard *part; /* NULL: the whole */
} cd_shard_plan_query;
typedef cdmpp_status cd_shard_plan_prepare(void *ctx, const cd_shard_plan_query *w, size_t n,
                                           cdmpp_err *err);

typedef struct cd_shard_plan_options {
    const cd_shard_net *net;
    const cd_machine *machine;
    cd_shard_plan_time *time;
    cd_shard_plan_prepare *prepare; /* NULL: not needed */
    cd_shard_plan_why *why;         /* NULL: nobody knows */
    void *ctx;
    uint32_t granules;      /* 0: 8 */
    double margin, least_s; /* NaN: 0.05, 20e-6 */
    double cover;           /* NaN: 1 */
    double fixed_share;     /* device 0's, of the fixed baseline; NaN: 0.5 */
    const char *dims;       /* "H,N": only these; NULL: all */
    /* 0 .. 1: a part's time is a geometric mean of `time`'s answer and its proportion of the
     * whole's time; this is the weight of the latter. Not applied along the result's innermost
     * axis, where real times jump. For models, which predict a part less well than this proportion
     * does (docs/reference/partition.md) */
    double steady;
    bool split; /* false: operators are placed, never split */
} cd_shard_plan_options;

/* ---- the plan ---- */
typedef struct cd_shard_plan_part {
    uint32_t device;
    int64_t lo, hi; /* lo <= i < hi of the split axis; not split: 0, 0 */
    double seconds; /* predicted, launch and contention included */
} cd_shard_plan_part;

typedef struct cd_shard_plan_op {
    const char *name, *type, *key;
    const char *dim; /* cd_te_shard_axis.name; "": not split */
    bool reduce;
    uint32_t way_op, axis; /* the split axis: cd_te_shard_axis.op, .axis */
    uint32_t n_part;
    const cd_shard_plan_part *part; /* (n_part) in ascending lo */
    uint32_t join;                  /* device of the join; UINT32_MAX: none */
    double join_s;                  /* bringing the sums together included */
    /* of the operator with its join; of the exchange before it. The plan's predicted_s adds copies
     * of results to the first device, and wake-ups */
    double seconds, exchange_s;
    const double *alone_s; /* (n_device) infinity: no time, or it may not run there */
    double ceiling;
    const char *why; /* the reason in one sentence, for printing */
} cd_shard_plan_op;

typedef struct cd_shard_plan_copy {
    uint32_t tensor, from, to; /* devices; from == to: within one memory */
    int64_t bytes;             /* 0: nothing is copied, `to` waits for `from` and reads in place */
    double seconds;
    uint32_t before; /* operator; n_op: a result is copied to the first device */
} cd_shard_plan_copy;

typedef struct cd_shard_plan_baseline {
    const char *name;   /* "cpu0", "ocl0", "place", "equal", "fixed 0.50", "greedy" */
    double predicted_s; /* infinity: cannot be */
    double measured_s;  /* NaN: not measured */
} cd_shard_plan_baseline;

/* Who answered for a device when the plan was made, and how far off its times may be. */
typedef struct cd_shard_plan_source {
    const char *as;    /* device of the cost model that it is; NULL: nobody said */
    const char *model; /* file of that model; NULL: none was needed */
    bool by_default;   /* nobody named that model: it is the default one */
    /* nobody named the device: it is the machine where the plan was made, whose processor says
     * this; NULL: somebody did */
    const char *host;
    /* device of the model that stands for it; NULL: the model knows it */
    const char *stands;
    /* that one is of another kind: times were multiplied by the ratio of both rooflines */
    bool scaled;
    /* nobody named it: that one is the nearest to the machine where the plan was made */
    bool guessed;
    /* standard deviation of ln(true / predicted) that all times have in common because of that; 0:
     * none, or not known */
    double stands_spread;
    /* the same of each time for itself, as the plan is made; a file does not have it: its interval
     * has it */
    double stands_own;
    /* the same because nobody measured there what networks cost; 0: somebody did, NaN: nobody did
     * on any device */
    double costs_spread;
    /* 0..1, share of the network's time there that is of programs unlike those of the training;
     * NaN: the model does not say what it was trained on */
    double unlike;
    /* 0..1, what others left of its processor when the plan was made to be measured; 0: nobody
     * looked */
    double left;
    double unlike_of[CD_N_UNLIKE]; /* the share with each reason (cd_trained_on_reason) */
} cd_shard_plan_source;

typedef struct cd_shard_plan {
    cd_arena arena;
    const char *network;
    int64_t batch;
    uint32_t n_device, n_op, n_copy, n_base;
    const char **device; /* (n_device) */
    /* (n_device) in the arena, or borrowed from who made the plan; NULL: not known */
    const cd_shard_plan_source *source;
    cd_shard_plan_op *op;
    cd_shard_plan_copy *copy;
    cd_shard_plan_baseline *base;
    double predicted_s, bound_s, measured_s; /* measured NaN: not run */
    double low_s, high_s;    /* interval of predicted_s at CD_REPLAY_LEVEL; NaN: there is none */
    const char *no_interval; /* why; NULL: there is one */
    /* 0..1, what others used of the processors while it was measured; NaN: not measured, or nobody
     * knows */
    double others;
    /* over the better device alone; rho: slower over faster device, whole network */
    double predicted_gain, measured_gain, ceiling, rho;
    bool exact, split; /* split: any operator is. false: "do not split" */
    /* "split 12 of 21 operators", "do not split: ocl0 would have to be ...", "all on cpu0" */
    const char *verdict;
} cd_shard_plan;

/* Makes the plan. base: NULL, or receives the baselines as plans of their own ((n_base) in the
 * order of out->base, NULL where one is not possible; free with cd_shard_plan_free_all). Errors:
 * those of the callback (with the operator), ERANGE (NaN; margin, cover), EINVALID (a cycle, an
 * operator that no device may run or that has no time on any, named), ENOMEM. */
cdmpp_status cd_shard_plan_make(const cd_shard_plan_options *a, CD_GIVE cd_shard_plan **out,
                                cd_shard_plan ***base, cdmpp_err *err);
void cd_shard_plan_free(CD_TAKE cd_shard_plan *p); /* NULL is fine */
void cd_shard_plan_free_all(CD_TAKE cd_shard_plan **p, size_t n);

/* JSON, docs/reference/plan.md. Errors of read: EIO, EPARSE, ESCHEMA, ERANGE (shares outside the
 * extent, overlapping), with path and operator. */
void cd_shard_plan_write(const cd_shard_plan *p, cd_buf *out);
cdmpp_status cd_shard_plan_read(const char *path, CD_GIVE cd_shard_plan **out, cdmpp_err *err);
cdmpp_status cd_shard_plan_read_text(const char *path, const char *text, size_t n,
                                     CD_GIVE cd_shard_plan **out, cdmpp_err *err);
/* Checks that a plan that was read belongs to this network. Errors: ESCHEMA (other operators; a
 * split over an axis that the operator does not have, or not over all of it; a copy of a tensor
 * that does not exist), ENOMEM. */
cdmpp_status cd_shard_plan_fits(const cd_shard_plan *p, const cd_shard_net *net, cdmpp_err *err);
/* Whether both run every operator the same way: same devices, axes, shares, joins. */
bool cd_shard_plan_same(const cd_shard_plan *a, const cd_shard_plan *b);
/* Names that `dims` may have for this network, each once, in the order of the operators; in `a`.
 * Errors: ENOMEM. */
cdmpp_status cd_shard_net_dims(const cd_shard_net *net, cd_arena *a, const char *const **out,
                               uint32_t *n, cdmpp_err *err);
/* The plan as a net for a replay: an operator for each part, join and copy, a queue for each device
 * and link; all in `a`. Errors: EINVALID (a plan of another network or machine), ENOMEM. */
cdmpp_status cd_shard_plan_replay(const cd_shard_plan *p, const cd_shard_net *net,
                                  const cd_machine *m, cd_arena *a, cd_replay_net *out,
                                  cdmpp_err *err);
#endif
