/* learning_rate -- the learning rate of a step, a pure function of its number.
 *
 *   constant     lr
 *   cyclic       lr*low up to lr*high in `up` steps, down again in `down`, and so on
 *                (triangles; the published training: low 0.1, high 10, 2000, 2000)
 *   one_cycle    lr/25 up to lr over the first 0.3*total - 1 steps, down to lr/250000,
 *                both along half a cosine
 *   cosine       lr down to lr*low along half a cosine over total - warmup steps
 *   exponential  lr * gamma^(step/per)
 *
 * `warmup` steps at the start rise linearly to the schedule's own value, for each of
 * them but cyclic and one_cycle, which begin low anyway. Past `total` the rate stays
 * at what it ended with. Resuming needs nothing but the step. */
#ifndef CD_LEARNING_RATE_H
#define CD_LEARNING_RATE_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"

#define CD_LEARNING_RATES "constant|cyclic|one_cycle|cosine|exponential"
typedef enum {
    CD_LEARNING_RATE_CONSTANT,
    CD_LEARNING_RATE_CYCLIC,
    CD_LEARNING_RATE_ONE_CYCLE,
    CD_LEARNING_RATE_COSINE,
    CD_LEARNING_RATE_EXPONENTIAL
} cd_learning_rate_kind;

typedef struct cd_learning_rate {
    cd_learning_rate_kind kind;
    double lr;         /* > 0 */
    double low, high;  /* cyclic both, cosine low: factors of lr */
    double gamma;      /* exponential: 0..1 */
    uint64_t up, down; /* cyclic: steps */
    uint64_t per;      /* exponential: steps, for example of an epoch */
    uint64_t warmup;
    uint64_t total; /* one_cycle, cosine: steps of the whole training */
} cd_learning_rate;

/* lr of a kind with the defaults above: low 0.1 (cosine 0), high 10, up = down = 2000,
 * gamma 0.9, per 1, no warm-up. */
cd_learning_rate cd_learning_rate_of(cd_learning_rate_kind kind, double lr);
/* Errors: ERANGE with the field as key. */
cdmpp_status cd_learning_rate_check(const cd_learning_rate *r, cdmpp_err *err);
/* Of step 0, 1, ... Finite and >= 0. */
double cd_learning_rate_at(const cd_learning_rate *r, uint64_t step);
#endif
