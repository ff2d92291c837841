/* kmeans -- k centres of n points.
 *
 *   x (n, dim) --greedy k-means++--> k points --Lloyd until nothing moves--> centre (k, dim)
 *                                                                            label (n), size (k)
 *
 *   (1) the best (least sum of squares) of CD_KMEANS_STARTS starts; draws are numbers of
 *       `seed` (base/rng);
 *   (2) the same bits for any number of threads: chunks depend on n, sums are in order;
 *   (3) no cluster is empty, unless there are fewer than k different points: a centre that
 *       lost its points takes the point farthest from its own centre;
 *   (4) the result depends on the order of the points (draws, sums): select.h sorts them.
 * As scikit-learn's KMeans does it (greedy k-means++ with 2 + ln k candidates), but not
 * its numbers. */
#ifndef CD_KMEANS_H
#define CD_KMEANS_H
#include <stddef.h>
#include <stdint.h>

#include "base/core/core.h"

#define CD_KMEANS_STARTS 3
#define CD_KMEANS_ROUNDS 100 /* of Lloyd at most; then the last centres stand */

typedef struct cd_kmeans {
    size_t k, dim;
    float *centre;   /* (k, dim) */
    uint32_t *label; /* (n) nearest centre, the first of equals */
    size_t *size;    /* (k) points of a centre */
    double inertia;  /* sum of squared distances to the nearest centre */
} cd_kmeans;

/* 1 <= k <= n, dim >= 1, x finite. `pool` may be NULL. Errors: ENOMEM. */
cdmpp_status cd_kmeans_find(const float *x, size_t n, size_t dim, size_t k, uint64_t seed,
                            cd_threads *pool, cd_kmeans *out, cdmpp_err *err);
void cd_kmeans_free(cd_kmeans *m);

#endif
