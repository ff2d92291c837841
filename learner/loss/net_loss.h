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
 *     learner/loss/domain_distance.h does the work.
 * (7) Everything is added up in one thread in the order of the samples.
 * cd_net_loss is a plain value; one scratch per thread. */
#ifndef CD_NET_LOSS_H
#define CD_NET_LOSS_H
#include "learner/inputs/inputs.h"

/* X(name, what is averaged) */
#define CD_NET_LOSS_MAP(X)                                    \
    X(mse, "e^2")                                            \
    X(mape, "|e/z|")                                         \
    X(mspe, "(e/z)^2")                                       \
    X(mae, "|e|")                                            \
    X(huber, "e^2/2 up to |e| = 1, then |e| - 1/2")          \
    X(mape_s, "|predicted/measured - 1| in seconds")         \
    X(mse_log, "r^2")                                        \
    X(huber_log, "r^2/2 up to |r| = 0.5, then straight")     \
    X(nll, "Gaussian: (v + e^2 exp(-v))/2, v an output")     \
    X(pinball, "sum over quantiles, each an output of z")    \
    X(rank, "pairs of a task: logistic")                     \
    X(lambdarank, "pairs of a task: logistic, by NDCG")      \
    X(listnet, "tasks: cross entropy of softmax")            \
    X(cmd, "central moments of latents, target domain")      \
    X(mmd, "mean discrepancy of latents, target domain")

typedef enum {
#define CD_NET_LOSS_X(name, what) CD_NET_LOSS_##name,
    CD_NET_LOSS_MAP(CD_NET_LOSS_X)
#undef CD_NET_LOSS_X
    CD_NET_LOSS_TERMS
} cd_net_loss_term;

#define CD_NET_LOSS_Z_FLOOR 0.1
#define CD_NET_LOSS_QUANTILES 15

typedef struct cd_net_loss {
    double weight[CD_NET_LOSS_TERMS];       /* 0: not in the sum */
    size_t n_quantile;                     /* 0 without pinball */
    double quantile[CD_NET_LOSS_QUANTILES]; /* 0..1, both open */
} cd_net_loss;

/* `quantile` (n_quantile) for pinball, otherwise ignored. Errors: ESCHEMA (a term
 * without a weight, unknown, twice, none at all; quantiles missing), ERANGE. */
cdmpp_status cd_net_loss_parse(const char *text, const double *quantile, size_t n_quantile, cd_net_loss *out, cdmpp_err *err);
/* Outputs a sample needs: 1 + (nll) + quantiles; where the quantiles begin. */
size_t cd_net_loss_width(const cd_net_loss *p);
size_t cd_net_loss_quantile_at(const cd_net_loss *p);
/* Has it terms that compare samples of a group; terms that compare domains? */
bool cd_net_loss_ranks(const cd_net_loss *p);
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
cdmpp_status cd_net_loss_scratch_new(const cd_net_loss *p, size_t max_n, CD_GIVE cd_net_loss_scratch **out, cdmpp_err *err);
void cd_net_loss_scratch_free(CD_TAKE cd_net_loss_scratch *s); /* NULL is fine */

/* What the sums of the whole batch b are divided by. */
cd_net_loss_norm cd_net_loss_count(const cd_net_loss *p, const cd_net_loss_batch *b, cd_net_loss_scratch *s);
/* The loss under the outputs (n, width) and, unless NULL, its gradient (n, width),
 * overwritten. term (CD_NET_LOSS_TERMS), unless NULL: each term before its weight.
 * A loss that is not finite is returned as it is. */
double cd_net_loss_eval(const cd_net_loss *p, const cd_net_loss_batch *b, const cd_net_loss_norm *norm, const float *out,
                       float *grad, double *term, cd_net_loss_scratch *s);

/* Sorts the samples of a batch by group. order: (n) sample numbers, in the order of the batch within a group;
 * tmp: (n) working memory. */
void cd_net_loss_by_group(const uint32_t *group, size_t n, size_t *order, size_t *tmp);
/* How many samples the group has whose first sample is order[at]. */
size_t cd_net_loss_group_size(const uint32_t *group, const size_t *order, size_t at, size_t n);
#endif
