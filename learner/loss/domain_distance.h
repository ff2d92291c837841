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
#ifndef CD_DOMAIN_DISTANCE_H
#define CD_DOMAIN_DISTANCE_H
#include "base/core/core.h"

typedef struct cd_domain_distance cd_domain_distance;

/* Room for n + m <= max_rows rows of d columns. Errors: ENOMEM. */
cdmpp_status cd_domain_distance_new(size_t max_rows, size_t d, int n_worker, CD_GIVE cd_domain_distance **out, cdmpp_err *err);
void cd_domain_distance_free(CD_TAKE cd_domain_distance *s); /* NULL is fine */

/* n, m >= 1. The distance, before the weight; gx, gy NULL: the distance alone. */
double cd_domain_distance_cmd(cd_domain_distance *s, cd_threads *pool, const float *x, size_t n, const float *y, size_t m, double weight,
                     float *gx, float *gy);
double cd_domain_distance_mmd(cd_domain_distance *s, cd_threads *pool, const float *x, size_t n, const float *y, size_t m, double weight,
                     float *gx, float *gy);
#endif
