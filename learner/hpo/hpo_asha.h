/* hpo_asha -- which trial gets how much budget: asynchronous successive halving.
 *
 *   rung   budget    finished, best first             goes up
 *    0     small     t7 t3 t0 t9 t1 t4 t2 t8 t6       t7 t3 t0   (eta = 3)
 *    1     x eta     t3 t7 t0                         t3
 *    2     x eta^2   t3
 *
 * Li et al. 2020 (ASHA): whoever asks for work gets the best trial of the highest
 * rung that is among the best n/eta of its n finished ones and has not gone up yet;
 * if there is none, a new trial on rung 0. Nobody waits for a rung to be complete.
 *
 *   (1) the answer depends on the calls so far and on nothing else: the same tells
 *       between the same asks give the same answers. Who calls (autotune) fixes that
 *       order, so that the outcome is the same for any number of workers;
 *   (2) equal errors: the lower number is better. An infinite error (a failed trial)
 *       is the worst and never goes up;
 *   (3) the best of a rung is always among those that go up or have gone up;
 *   (4) when everything is finished and the top rung still has no finite result
 *       (fewer than eta trials below, or all that went up failed there), the best
 *       remaining one goes up all the same: some trial gets the full budget unless
 *       all fail.
 * No thread of its own; one caller at a time. */
#ifndef CD_HPO_ASHA_H
#define CD_HPO_ASHA_H
#include <stdbool.h>
#include <stddef.h>

#include "base/core/core.h"

#define CD_HPO_ASHA_RUNGS 16

typedef struct cd_hpo_asha cd_hpo_asha;

/* eta >= 2; 1 <= n_rung <= CD_HPO_ASHA_RUNGS. Errors: ENOMEM. */
cdmpp_status cd_hpo_asha_new(size_t n_trial, unsigned eta, unsigned n_rung, CD_GIVE cd_hpo_asha **out, cdmpp_err *err);
void cd_hpo_asha_free(CD_TAKE cd_hpo_asha *a); /* NULL is fine */

/* The next piece of work; false: there is none until more is told. */
bool cd_hpo_asha_ask(cd_hpo_asha *a, size_t *trial, unsigned *rung);
/* The error of a piece of work that was asked for; INFINITY or NaN: it failed. */
void cd_hpo_asha_tell(cd_hpo_asha *a, size_t trial, unsigned rung, double error);
/* Asked for, not told yet. When 0 and cd_hpo_asha_ask is false, everything is over. */
size_t cd_hpo_asha_open(const cd_hpo_asha *a);
/* The best of the top rung; false: it has no finite result. */
bool cd_hpo_asha_best(const cd_hpo_asha *a, size_t *trial, double *error);
#endif
