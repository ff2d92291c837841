/* Laws of the sequence, and what it is for: integrals. */
#include "learner/hpo/hpo_internal.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"

static cd_hpo_sobol s;

static int setup(void **state) {
    (void)state;
    cd_hpo_sobol_init(&s);
    return 0;
}

TEST(known_start) {
    /* axis 0 is van der Corput; the recurrence of axis 1 (x + 1) gives Pascal's triangle */
    static const double x[] = {0, 0.5, 0.25, 0.75, 0.125, 0.625, 0.375, 0.875};
    static const double y[] = {0, 0.5, 0.75, 0.25, 0.625, 0.125, 0.375, 0.875};
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(cd_hpo_sobol_digits(&s, i, 0) * 0x1p-32 == x[i]);
        assert_true(cd_hpo_sobol_digits(&s, i, 1) * 0x1p-32 == y[i]);
    }
}

static void strata(unsigned d, uint32_t first, unsigned k, uint64_t seed) {
    static unsigned char seen[1 << 12];
    memset(seen, 0, sizeof seen);
    for (uint32_t i = first; i < first + (1u << k); i++) {
        const uint32_t a = cd_hpo_sobol_digits(&s, i, d) >> (32 - k);
        const double u = cd_hpo_sobol_unit(&s, seed, i, d);
        assert_true(u >= 0 && u < 1);
        const uint32_t b = (uint32_t)(u * (1u << k));
        if (seen[a] & 1 || seen[b] & 2)
            fail_msg("axis %u, 2^%u points from %u: point %u shares an interval", d, k, first, i);
        seen[a] |= 1;
        seen[b] |= 2;
    }
}

/* A search that goes on draws what it would have drawn: the numbers of a seed never change. */
TEST(points_of_a_seed) {
    static const struct {
        uint64_t seed;
        uint32_t i;
        unsigned d;
        double u;
    } t[] = {{7, 0, 0, 0.49083403474651277},
             {7, 5, 0, 0.95163666643202305},
             {7, 5, 1, 0.57554464042186737},
             {8, 1000, 39, 0.67061634175479412}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        assert_close(cd_hpo_sobol_unit(&s, t[k].seed, t[k].i, t[k].d), t[k].u, 1e-9, 0);
}

TEST(every_axis_is_a_permutation) {
    for (unsigned d = 0; d < CD_HPO_SOBOL_DIMS; d++)
        for (unsigned k = 1; k <= 10; k++) {
            strata(d, 0, k, 7 + k);
            strata(d, 5u << k, k, 3);
        }
    strata(39, 0, 12, 1);
}

TEST(first_two_axes_fill_boxes) {
    enum { K = 9 };
    for (unsigned a = 0; a <= K; a++) {
        unsigned char plain[1 << K] = {0}, mixed[1 << K] = {0};
        for (uint32_t i = 0; i < 1u << K; i++) {
            const uint32_t x = a ? cd_hpo_sobol_digits(&s, i, 0) >> (32 - a) : 0,
                           y = a < K ? cd_hpo_sobol_digits(&s, i, 1) >> (32 - (K - a)) : 0;
            const uint32_t u = (uint32_t)(cd_hpo_sobol_unit(&s, 5, i, 0) * (1u << a)),
                           v = (uint32_t)(cd_hpo_sobol_unit(&s, 5, i, 1) * (1u << (K - a)));
            plain[x << (K - a) | y]++;
            mixed[u << (K - a) | v]++;
        }
        for (unsigned b = 0; b < 1u << K; b++) assert_true(plain[b] == 1 && mixed[b] == 1);
    }
}

/* Largest number of the first 2^m points in one box of 2^-a x 2^-b, a + b = m - t, is at most
 * 2^t: t = 6 for any two axes (the figure in sobol.c). */
TEST(all_pairs_are_even) {
    enum { M = 10, T = 6 };
    static uint32_t x[CD_HPO_SOBOL_DIMS][1 << M];
    unsigned worst = 0;
    for (unsigned d = 0; d < CD_HPO_SOBOL_DIMS; d++)
        for (uint32_t i = 0; i < 1u << M; i++) x[d][i] = cd_hpo_sobol_digits(&s, i, d);
    for (unsigned d = 1; d < CD_HPO_SOBOL_DIMS; d++)
        for (unsigned e = 0; e < d; e++)
            for (unsigned a = 1; a < M - T; a++) {
                unsigned n[1 << (M - T)] = {0};
                for (uint32_t i = 0; i < 1u << M; i++) {
                    const uint32_t box =
                        x[d][i] >> (32 - a) << (M - T - a) | x[e][i] >> (32 - (M - T - a));
                    if (++n[box] > worst) worst = n[box];
                }
            }
    assert_int_equal(worst, 1 << T);
}

static double corner(const double *u, int n) { /* integral 1 over the cube */
    double p = 1;
    for (int d = 0; d < n; d++) p *= (fabs(4 * u[d] - 2) + d) / (1 + d);
    return p;
}

TEST(integrates_better_than_random) {
    enum { DIM = 12, N = 1024, SEEDS = 16 };
    double even = 0, random = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        double a = 0, b = 0, u[DIM], r[DIM];
        for (uint32_t i = 0; i < N; i++) {
            for (unsigned d = 0; d < DIM; d++) {
                u[d] = cd_hpo_sobol_unit(&s, seed, i, d);
                r[d] = cd_rng_unit(cd_rng_at(seed, d), i);
            }
            a += corner(u, DIM) / N;
            b += corner(r, DIM) / N;
        }
        even += (a - 1) * (a - 1);
        random += (b - 1) * (b - 1);
    }
    if (sqrt(even) * 10 > sqrt(random))
        fail_msg("error %g, random %g", sqrt(even / SEEDS), sqrt(random / SEEDS));
}

TEST(seeds_differ_and_are_uniform) {
    double mean = 0;
    for (uint64_t seed = 0; seed < 4096; seed++) mean += cd_hpo_sobol_unit(&s, seed, 0, 3) / 4096;
    assert_close(mean, 0.5, 0, 0.02);
    assert_true(cd_hpo_sobol_unit(&s, 1, 5, 0) != cd_hpo_sobol_unit(&s, 2, 5, 0));
    assert_true(cd_hpo_sobol_unit(&s, 1, 5, 0) == cd_hpo_sobol_unit(&s, 1, 5, 0));
}

TESTS(setup, NULL, known_start, points_of_a_seed, every_axis_is_a_permutation,
      first_two_axes_fill_boxes, all_pairs_are_even, integrates_better_than_random,
      seeds_differ_and_are_uniform)
