/* The door of learner/loss: other rooms include this header and no other of the room.
 *
 * What training makes small: losses of networks (net_loss), of trees (objective, tree_loss), and
 * the distance between the latents of two domains. For learner/fit, learner/train and
 * learner/model. */
#ifndef CD_LEARNER_LOSS_DOOR_H
#define CD_LEARNER_LOSS_DOOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "learner/inputs/inputs.h"

/* domain_distance -- how far apart the latents of two domains are, and its gradient.
 *
 *   X (n, d)  a batch of the source          Y (m, d)  a batch of the target
 *
 *   cmd   |E X - E Y| + sum over k = 2..5 of |E (X - E X)^k - E (Y - E Y)^k|, norms over
 *         the d columns, powers by element (Zellinger 2017 with bound 1, as CDMPP has it)
 *   mmd   mean K(x, x') + mean K(y, y') - 2 mean K(x, y), K the sum of
 *         exp(-g |.|^2) for g = 1, 0.1, 0.001
 *
 * (1) Both are 0 for equal samples and symmetric. (2) Gradients are weight times the
 * derivative and are added to gx, gy. (3) cmd costs O((n+m) d), mmd two matrix
 * products of (n+m)^2 d; the same bits for any pool, no heap after cd_domain_distance_new.
 * One cd_domain_distance, one thread; the pool is used inside. */

typedef struct cd_domain_distance cd_domain_distance;

/* Room for n + m <= max_rows rows of d columns. Errors: ENOMEM. */
cdmpp_status cd_domain_distance_new(size_t max_rows, size_t d, int n_worker,
                                    CD_GIVE cd_domain_distance **out, cdmpp_err *err);
void cd_domain_distance_free(CD_TAKE cd_domain_distance *s); /* NULL is fine */

/* n, m >= 1. The distance, before the weight; gx, gy NULL: the distance alone. */
double cd_domain_distance_cmd(cd_domain_distance *s, cd_threads *pool, const float *x, size_t n,
                              const float *y, size_t m, double weight, float *gx, float *gy);
double cd_domain_distance_mmd(cd_domain_distance *s, cd_threads *pool, const float *x, size_t n,
                              const float *y, size_t m, double weight, float *gx, float *gy);

/* net_loss -- what a network is trained to make small: a weighted sum of terms.
 *
 *   "1000mse+1mape+0.5cmd"  ->  one weight per term of the table below
 *
 *   e = prediction - z            z: the label transformed (learner/inputs/transform.h)
 *   r = ln(predicted/measured)    in seconds, through the inverse transform
 *   w: weight of the sample, 1 where none are given; W: their sum over the batch
 *
 *   outputs of a sample:  [ prediction of z | ln variance (nll) | quantiles (pinball) ]
 *
 * (1) Terms on samples are sum(w * value) / W. Divisions by |z| stop at
 *     CD_NET_LOSS_Z_FLOOR: z is standardised and crosses 0.
 * (2) mape_s is |e^r - 1| up to r = 2 (7.4 times too slow) and goes on as a straight
 *     line, so that one wild prediction does not outweigh the batch.
 * (3) nll holds the log variance within -10..10 by a wall 0.5*(excess)^2, so that a
 *     gradient leads back.
 * (4) pinball trains the prediction as the median too: a loss of pinball alone is whole.
 * (5) Rank terms compare samples of one group (a task on a device) and take no
 *     weights: rank is the mean over pairs with z_i < z_j of ln(1 + e^(p_i - p_j));
 *     lambdarank weighs each pair by the change of NDCG if both swapped places (gain
 *     2^(fastest/latency) - 1, discount 1/log2(1 + place); these count as constants)
 *     and is the mean over groups of their sum; listnet is the mean over groups of the
 *     cross entropy between softmax(-z) and softmax(-p). Groups whose z are all equal
 *     do not count.
 * (6) cmd and mmd compare the latents of two domains: the weights are kept here,
 *     learner/loss/loss.h does the work.
 * (7) Everything is added up in one thread in the order of the samples.
 * cd_net_loss is a plain value; one scratch per thread. */

/* X(name, what is averaged) */
#define CD_NET_LOSS_MAP(X)                                                                         \
    X(mse, "e^2")                                                                                  \
    X(mape, "|e/z|")                                                                               \
    X(mspe, "(e/z)^2")                                                                             \
    X(mae, "|e|")                                                                                  \
    X(huber, "e^2/2 up to |e| = 1, then |e| - 1/2")                                                \
    X(mape_s, "|predicted/measured - 1| in seconds")                                               \
    X(mse_log, "r^2")                                                                              \
    X(huber_log, "r^2/2 up to |r| = 0.5, then straight")                                           \
    X(nll, "Gaussian: (v + e^2 exp(-v))/2, v an output")                                           \
    X(pinball, "sum over quantiles, each an output of z")                                          \
    X(rank, "pairs of a task: logistic")                                                           \
    X(lambdarank, "pairs of a task: logistic, by NDCG")                                            \
    X(listnet, "tasks: cross entropy of softmax")                                                  \
    X(cmd, "central moments of latents, target domain")                                            \
    X(mmd, "mean discrepancy of latents, target domain")

typedef enum {
#define CD_NET_LOSS_X(name, what) CD_NET_LOSS_##name,
    CD_NET_LOSS_MAP(CD_NET_LOSS_X)
#undef CD_NET_LOSS_X
        CD_NET_LOSS_TERMS
} cd_net_loss_term;

#define CD_NET_LOSS_Z_FLOOR   0.1
#define CD_NET_LOSS_QUANTILES 15

typedef struct cd_net_loss {
    double weight[CD_NET_LOSS_TERMS];       /* 0: not in the sum */
    size_t n_quantile;                      /* 0 without pinball */
    double quantile[CD_NET_LOSS_QUANTILES]; /* 0..1, both open */
} cd_net_loss;

/* `quantile` (n_quantile) for pinball, otherwise ignored. Errors: ESCHEMA (a term
 * without a weight, unknown, twice, none at all; quantiles missing), ERANGE. */
cdmpp_status cd_net_loss_parse(const char *text, const double *quantile, size_t n_quantile,
                               cd_net_loss *out, cdmpp_err *err);
/* Outputs a sample needs: 1 + (nll) + quantiles; where the quantiles begin. */
size_t cd_net_loss_width(const cd_net_loss *p);
size_t cd_net_loss_quantile_at(const cd_net_loss *p);
/* Has it terms that compare samples of a group; terms that compare domains? */
bool cd_net_loss_ranks(const cd_net_loss *p);
/* Has it terms that look at the label itself, not at the order inside groups alone? */
bool cd_net_loss_knows_level(const cd_net_loss *p);
bool cd_net_loss_domains(const cd_net_loss *p);

/* What the sums are divided by: of the whole batch, also where only a share of it
 * is evaluated (data-parallel training), so that shares add up. */
typedef struct cd_net_loss_norm {
    double weight; /* W */
    double pairs, groups;
} cd_net_loss_norm;

typedef struct cd_net_loss_batch {
    size_t n;
    const double *z, *log_s; /* (n) labels: transformed; ln of seconds */
    const float *weight;     /* (n), NULL: all 1 */
    const uint32_t *group;   /* (n), needed by rank terms */
    const cd_transform *transform;
} cd_net_loss_batch;

typedef struct cd_net_loss_scratch cd_net_loss_scratch;
/* Room for batches of up to max_n samples. Errors: ENOMEM. */
cdmpp_status cd_net_loss_scratch_new(const cd_net_loss *p, size_t max_n,
                                     CD_GIVE cd_net_loss_scratch **out, cdmpp_err *err);
void cd_net_loss_scratch_free(CD_TAKE cd_net_loss_scratch *s); /* NULL is fine */

/* What the sums of the whole batch b are divided by. */
cd_net_loss_norm cd_net_loss_count(const cd_net_loss *p, const cd_net_loss_batch *b,
                                   cd_net_loss_scratch *s);
/* The loss under the outputs (n, width) and, unless NULL, its gradient (n, width),
 * overwritten. term (CD_NET_LOSS_TERMS), unless NULL: each term before its weight.
 * A loss that is not finite is returned as it is. */
double cd_net_loss_eval(const cd_net_loss *p, const cd_net_loss_batch *b,
                        const cd_net_loss_norm *norm, const float *out, float *grad, double *term,
                        cd_net_loss_scratch *s);

/* Sorts the samples of a batch by group. order: (n) sample numbers, in the order of the batch
 * within a group; tmp: (n) working memory. */
void cd_net_loss_by_group(const uint32_t *group, size_t n, size_t *order, size_t *tmp);
/* How many samples the group has whose first sample is order[at]. */
size_t cd_net_loss_group_size(const uint32_t *group, const size_t *order, size_t at, size_t n);

/* tree_loss -- how wrong a prediction is, as a function of r = log(predicted/measured).
 *
 *   SQUARED   r^2/2
 *   HUBER     r^2/2 up to d = 0.5, then linear
 *   ABSOLUTE  |r|, r^2 within d = 0.05
 *   MAPE      |e^r - 1|, smooth within d = 0.05
 *
 * For the trees each is a limit on the residual: the gradient is clip(r, d), the
 * Hessian 1 (MAPE: the gradient times e^r, at most 4, so that one program
 * predicted 100 times too slow does not move a leaf alone). While residuals are
 * still large, d is their root mean square (`spread`, half of it for the last
 * two): otherwise the first hundred trees would only creep to the mean.
 *
 * Gradients are rounded to multiples of 2^-20: their sums in double precision are
 * then exact in any order, which makes trees equal for any number of threads. */

#define CD_TREE_LOSSES "squared|huber|absolute|mape"
typedef enum {
    CD_TREE_LOSS_SQUARED,
    CD_TREE_LOSS_HUBER,
    CD_TREE_LOSS_ABSOLUTE,
    CD_TREE_LOSS_MAPE
} cd_tree_loss;

/* The loss of one program. */
double cd_tree_loss_value(cd_tree_loss l, double r);
/* What a tree is fitted to, within -31..31; spread: RMS of r over the train part. */
double cd_tree_loss_gradient(cd_tree_loss l, double r, double spread);
/* Round to a multiple of 2^-20. */
float cd_tree_loss_round(double g);

/* objective -- what the trees of a member are fitted to, over the programs of one part.
 *
 *   matrix row k  score f_k of the trees, offset o_k = bias + slope * ln trips
 *   program i     rows start[i] .. start[i+1]  ->  program score p_i
 *
 *   kind         p                   loss of a program, mean over programs
 *   log_latency  ln sum exp(f + o)   of r = p - ln latency (learner/loss/loss.h)
 *   pack_sum     sum f               y (p - y)^2 / 2;  y = fastest latency of its task / its own
 *   rank         ln sum exp(f + o)   of its task, by cd_rank_loss:
 *     pairwise   mean over pairs with i faster than j of ln(1 + e^(p_i - p_j))
 *     lambdarank the same mean, but a pair weighs as much as NDCG changes when both swap places (a
 *     constant of its gradient)
 *     listnet    cross entropy between softmax(-CD_OBJECTIVE_SHARP ln latency) and softmax(-p):
 *                whose turn to be first it is
 *
 * pack_sum is TenSet's and TVM's: squared error of the normalised throughput, weighted by the
 * throughput itself, its gradient for every row of the program. Losses of rank are the terms of
 * net_loss above with each task weighing by its programs; gain and discount are those of its
 * lambdarank, listnet is sharper.
 *
 * (1) pack_sum and rank know nothing but the order and the ratios inside a task, so a
 *     program's seconds come from its level O = ln sum over feature rows of exp(bias +
 *     slope * ln trips) and a map fitted by least squares to the train part:
 *       rank      ln s = shift + scale * p              (p begins at the level)
 *       pack_sum  ln s = O + shift - scale * asinh(p / (2 CD_OBJECTIVE_KNEE)), about -ln p
 *     scale > 0: rank's order is that of p; pack_sum's where levels are equal.
 * (2) Pairs: all of a task of up to 17 programs; of more, those whose places by latency are 1..16
 *     apart and about 8 distances of each octave above, each counting for the distances that it
 *     stands for: O(n log n). Equal latencies make no pair. So for lambdarank, too.
 * (3) Sums of pairs and of exponentials are exact, so gradients do not depend on the order of
 *     programs (but for equal latencies in a task of more than 17). lambdarank: of equal scores the
 *     slower program has the place in front, so a constant wins nothing; equal in both, they share
 *     the mean of their discounts.
 * One part per thread. */

#define CD_OBJECTIVES "log_latency|pack_sum|rank"
typedef enum {
    CD_OBJECTIVE_LOG_LATENCY,
    CD_OBJECTIVE_PACK_SUM,
    CD_OBJECTIVE_RANK,
    CD_N_OBJECTIVE
} cd_objective_kind;
#define CD_OBJECTIVE_KNEE 0.02
/* listnet: with 1 a program half as fast has half the chance to be first, so slow ones, of which
 * there are many, decide. */
#define CD_OBJECTIVE_SHARP 4.0
#define CD_RANK_LOSSES     "pairwise|lambdarank|listnet"
typedef enum { CD_RANK_LOSS_PAIRWISE, CD_RANK_LOSS_LAMBDARANK, CD_RANK_LOSS_LISTNET } cd_rank_loss;

typedef struct cd_objective_spec {
    cd_objective_kind kind;
    cd_tree_loss loss; /* of log_latency */
    double eta;        /* pack_sum: a step of all rows of a program must not overshoot */
    cd_rank_loss rank; /* of rank */
} cd_objective_spec;

typedef struct cd_objective_part {
    size_t n;              /* programs */
    const size_t *start;   /* (n+1) borrowed, as are the next three */
    const double *offset;  /* (start[n]) */
    const double *log_s;   /* (n) ln of the measured latency */
    const uint32_t *group; /* (n) task on a device; NULL: log_latency only */
    const double *weight;  /* (n) of a program's loss, log_latency; NULL: all 1 */
    /* of the module */
    cd_arena arena;                   /* of what follows */
    double *margin;                   /* (start[n]) f + o */
    double *r;                        /* (n) p - log_s; pack_sum: p - y */
    double *g, *h;                    /* (n) of a program; not of log_latency */
    double *y;                        /* (n) pack_sum, lambdarank: throughput in (0,1] */
    size_t *order;                    /* (n) by group, then by latency; not of log_latency */
    double *discount;                 /* (n) lambdarank: of the place by score */
    struct cd_objective_place *place; /* (n) working memory */
} cd_objective_part;

/* As in a configuration. */
const char *cd_objective_name(cd_objective_kind k);
/* `seen` NULL or the train part: of a task in both, the fastest of both counts. Free p after
 * an error too. Errors: ENOMEM, ERANGE (pack_sum and rank: no task has two different latencies). */
cdmpp_status cd_objective_begin(cd_objective_part *p, const cd_objective_spec *s,
                                const cd_objective_part *seen, cdmpp_err *err);
void cd_objective_end(cd_objective_part *p); /* frees what begin made */
/* The mean loss under the scores (start[n]); the gradient (start[n]) where it was asked last,
 * times n, rounded (learner/loss/loss.h). */
double cd_objective_loss(cd_objective_part *p, const cd_objective_spec *s, const float *score);
void cd_objective_gradient(cd_objective_part *p, const cd_objective_spec *s, float *grad,
                           float *hess);
/* What rounds are compared by, less is better, where the loss was asked last: this loss. Of
 * lambdarank 1 - NDCG, mean over tasks, each by its programs, because the loss of one round has
 * other weights than that of the next. */
double cd_objective_figure(const cd_objective_part *p, const cd_objective_spec *s, double loss);

/* Score of a program from its n rows: margins (f + o) for log_latency and rank, f for pack_sum. */
double cd_objective_score(cd_objective_kind k, const double *v, size_t n);
/* ln seconds of a program of score p and level O. */
double cd_objective_answer(cd_objective_kind k, double p, double level, double scale, double shift);
/* scale and shift from the scores where the loss was asked last; level (n). */
void cd_objective_map(const cd_objective_part *p, cd_objective_kind k, const double *level,
                      double *scale, double *shift);
/* ln(sum of exp(score)) over n >= 1 scores. */
double cd_loss_log_sum_exp(const double *score, size_t n);
#endif
