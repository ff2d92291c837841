/* novelty -- how far answers are off for what a training did not have: a type, an operator, a
 * library, a kernel.
 *
 *   one value after another is held out of a training -> r = ln(measured / predicted) of its rows
 *     between   root of the mean over values of (their mean r)^2: what the rows of a value have in
 *               common
 *     rest      quantiles of |r - the mean of its value|, each value counts the same
 *   half the interval = hypot(rest, between * Student's quantile of as many degrees of freedom as
 *   values)
 *
 * A value is one draw, however many rows it has: of few values the interval is wide.
 *
 * (1) of fewer than CD_NOVELTY_LEAST values nobody knows it: half is NaN;
 * (2) a wider level never gives a narrower half.
 * No state, any thread. */
#ifndef CD_NOVELTY_H
#define CD_NOVELTY_H
#include <stdint.h>

#include "base/core/core.h"

enum { CD_NOVELTY_LEAST = 2, CD_NOVELTY_LEVELS = 5 };
/* Levels of `rest`, ascending. */
extern const double cd_novelty_level[CD_NOVELTY_LEVELS];

typedef struct cd_novelty {
    uint64_t n_value, n_row;        /* that were held out; n_value 0: no experiment was made */
    double between;                 /* >= 0 */
    double rest[CD_NOVELTY_LEVELS]; /* >= 0, never falling */
} cd_novelty;

typedef struct cd_novelty_residual {
    uint64_t value; /* which value was held out: any number, one for each */
    double r;
} cd_novelty_residual;

/* r (n) is sorted by value on return. n 0 is fine. Errors: ENOMEM. */
cdmpp_status cd_novelty_fit(cd_novelty_residual *r, size_t n, cd_novelty *out, cdmpp_err *err);
/* Half the width of the interval of one more value as a logarithm, >= 0; NaN: nobody knows it.
 * level: 0..1, both open. */
double cd_novelty_half(const cd_novelty *v, double level);
/* Half the interval of an answer with several halves of what is new about it (n; NaN: of one nobody
 * knows it), never below that of like rows: these differ each for itself, so squares add up. */
double cd_novelty_join(double of_like, const double *half, size_t n);
#endif
