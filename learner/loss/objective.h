/* objective -- what the trees of a member are fitted to, over the programs of one part.
 *
 *   matrix row k  score f_k of the trees, offset o_k = bias + slope * ln trips
 *   program i     rows start[i] .. start[i+1]  ->  program score p_i
 *
 *   kind         p                   loss of a program, mean over programs
 *   log_latency  ln sum exp(f + o)   of r = p - ln latency (learner/loss/tree_loss.h)
 *   pack_sum     sum f               y (p - y)^2 / 2;  y = fastest latency of its task / its own
 *   rank         ln sum exp(f + o)   mean over pairs of its task with i faster than j: ln(1 + e^(p_i - p_j))
 *
 * pack_sum is TenSet's and TVM's: squared error of the normalised throughput, weighted by
 * the throughput itself, its gradient for every row of the program. rank is the term of
 * learner/loss/net_loss.h with each task weighing by its programs.
 *
 * (1) pack_sum and rank know nothing but the order and the ratios inside a task, so a
 *     program's seconds come from its level O = ln sum over feature rows of exp(bias +
 *     slope * ln trips) and a map fitted by least squares to the train part:
 *       rank      ln s = shift + scale * p              (p begins at the level)
 *       pack_sum  ln s = O + shift - scale * asinh(p / (2 CD_OBJECTIVE_KNEE)), about -ln p
 *     scale > 0: rank's order is that of p; pack_sum's where levels are equal.
 * (2) Pairs: all of a task of up to 17 programs; of more, those whose places by latency
 *     are 1..16 apart and about 8 distances of each octave above, each counting for the
 *     distances that it stands for: O(n log n). Equal latencies make no pair.
 * (3) Sums of pairs are exact, so gradients do not depend on the order of programs (but for
 *     equal latencies in a task of more than 17).
 * One part per thread. */
#ifndef CD_OBJECTIVE_H
#define CD_OBJECTIVE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/core.h"
#include "learner/loss/tree_loss.h"

#define CD_OBJECTIVES "log_latency|pack_sum|rank"
typedef enum { CD_OBJECTIVE_LOG_LATENCY, CD_OBJECTIVE_PACK_SUM, CD_OBJECTIVE_RANK, CD_N_OBJECTIVE } cd_objective_kind;
#define CD_OBJECTIVE_KNEE 0.02

typedef struct cd_objective_spec {
    cd_objective_kind kind;
    cd_tree_loss loss; /* of log_latency */
    double eta;   /* pack_sum: a step of all rows of a program must not overshoot */
} cd_objective_spec;

typedef struct cd_objective_part {
    size_t n;              /* programs */
    const size_t *start;   /* (n+1) borrowed, as are the next three */
    const double *offset;  /* (start[n]) */
    const double *log_s;   /* (n) ln of the measured latency */
    const uint32_t *group; /* (n) task on a device; NULL: log_latency only */
    /* of the module */
    cd_arena arena;        /* of what follows */
    double *margin;        /* (start[n]) f + o */
    double *r;             /* (n) p - log_s; pack_sum: p - y */
    double *g, *h;         /* (n) of a program; not of log_latency */
    double *y;             /* (n) pack_sum: throughput in (0,1] */
    size_t *order;         /* (n) by group, then by latency; not of log_latency */
} cd_objective_part;

/* As in a configuration. */
const char *cd_objective_name(cd_objective_kind k);
/* `seen` NULL or the train part: of a task in both, the fastest of both counts. Free p after
 * an error too. Errors: ENOMEM, ERANGE (pack_sum and rank: no task has two different latencies). */
cdmpp_status cd_objective_begin(cd_objective_part *p, const cd_objective_spec *s, const cd_objective_part *seen, cdmpp_err *err);
void cd_objective_end(cd_objective_part *p); /* frees what begin made */
/* The mean loss under the scores (start[n]); the gradient (start[n]) where it was asked last,
 * times n, rounded (learner/loss/tree_loss.h). */
double cd_objective_loss(cd_objective_part *p, const cd_objective_spec *s, const float *score);
void cd_objective_gradient(cd_objective_part *p, const cd_objective_spec *s, float *grad, float *hess);

/* Score of a program from its n rows: margins (f + o) for log_latency and rank, f for pack_sum. */
double cd_objective_score(cd_objective_kind k, const double *v, size_t n);
/* ln seconds of a program of score p and level O. */
double cd_objective_answer(cd_objective_kind k, double p, double level, double scale, double shift);
/* scale and shift from the scores where the loss was asked last; level (n). */
void cd_objective_map(const cd_objective_part *p, cd_objective_kind k, const double *level, double *scale, double *shift);
/* ln(sum of exp(score)) over n >= 1 scores. */
double cd_loss_log_sum_exp(const double *score, size_t n);
#endif
