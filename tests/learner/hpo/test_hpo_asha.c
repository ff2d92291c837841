/* Laws of successive halving, whoever asks and whenever results come in. */
#include "learner/hpo/hpo.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"

enum { MAX_TRIAL = 200, MAX_RUNG = 5 };

typedef struct {
    size_t trial;
    unsigned rung;
} piece;

typedef struct {
    size_t n;
    unsigned eta, n_rung;
    size_t lag; /* results come in so many asks later */
    double (*error)(uint64_t, size_t, unsigned);
    uint64_t seed;
    /* what came of it */
    double told[MAX_TRIAL][MAX_RUNG]; /* NaN: never asked */
    size_t n_rung_of[MAX_RUNG], best;
    bool found;
    double best_error;
} play;

/* As autotune does it: decision k knows the results before k - lag + 1. */
static void run(play *p) {
    cdmpp_err err = {0};
    cd_hpo_asha *a;
    static piece queue[MAX_TRIAL * MAX_RUNG];
    size_t asked = 0, told = 0;
    for (size_t t = 0; t < MAX_TRIAL; t++)
        for (unsigned r = 0; r < MAX_RUNG; r++) p->told[t][r] = NAN;
    memset(p->n_rung_of, 0, sizeof p->n_rung_of);
    assert_ok(cd_hpo_asha_new(p->n, p->eta, p->n_rung, &a, &err));
    for (;;) {
        piece *q = &queue[asked];
        const bool got = cd_hpo_asha_ask(a, &q->trial, &q->rung);
        if (!got && cd_hpo_asha_open(a) == 0) break;
        if (got) {
            assert_true(q->trial < p->n && q->rung < p->n_rung);
            assert_true(isnan(p->told[q->trial][q->rung])); /* nothing twice */
            if (q->rung) assert_true(isfinite(p->told[q->trial][q->rung - 1]));
            p->told[q->trial][q->rung] = INFINITY;
            p->n_rung_of[q->rung]++;
            asked++;
        }
        while (told < asked && (asked - told >= p->lag || !got)) {
            const piece *f = &queue[told++];
            const double e = p->error(p->seed, f->trial, f->rung);
            p->told[f->trial][f->rung] = isfinite(e) ? e : (double)INFINITY;
            cd_hpo_asha_tell(a, f->trial, f->rung, e);
            if (!got) break;
        }
    }
    p->found = cd_hpo_asha_best(a, &p->best, &p->best_error);
    cd_hpo_asha_free(a);
}

static double noisy(uint64_t seed, size_t t, unsigned r) {
    return cd_rng_unit(seed, t) + 0.3 * cd_rng_unit(seed + 99, 8 * t + r) / (r + 1);
}
static double steady(uint64_t seed, size_t t, unsigned r) { return cd_rng_unit(seed, t) - 0.1 * r; }
static double tied(uint64_t seed, size_t t, unsigned r) {
    return (double)(cd_rng_at(seed, t) % 4) - 0.1 * r;
}
static double often_bad(uint64_t seed, size_t t, unsigned r) {
    const uint64_t k = cd_rng_at(seed + 7, 8 * t + r) % 10;
    return k < 3 ? (double)NAN : k < 5 ? (double)INFINITY : noisy(seed, t, r);
}
static double all_bad(uint64_t seed, size_t t, unsigned r) {
    return seed && t && r ? (double)NAN : (double)INFINITY;
}

/* Rank of a finite result on its rung: how many are better. */
static size_t rank(const play *p, size_t t, unsigned r) {
    size_t better = 0;
    for (size_t o = 0; o < p->n; o++)
        if (p->told[o][r] < p->told[t][r] || (p->told[o][r] <= p->told[t][r] && o < t)) better++;
    return better;
}

static void check_laws(const play *p) {
    bool any[MAX_RUNG] = {false};
    assert_int_equal(p->n_rung_of[0], p->n);
    for (unsigned r = 0; r < p->n_rung; r++) {
        for (size_t t = 0; t < p->n; t++) {
            const double e = p->told[t][r];
            if (!isfinite(e)) {
                if (r + 1 < p->n_rung) assert_true(isnan(p->told[t][r + 1])); /* failed: never up */
                continue;
            }
            any[r] = true;
            if (r + 1 == p->n_rung) {
                assert_true(p->found && p->best_error <= e);
            } else if (rank(p, t, r) < p->n_rung_of[r] / p->eta || rank(p, t, r) == 0) {
                if (isnan(p->told[t][r + 1]))
                    fail_msg("trial %zu is number %zu of %zu on rung %u and stays", t,
                             rank(p, t, r), p->n_rung_of[r], r);
            }
        }
        if (!any[r]) break;
    }
    if (p->found) assert_true(!(p->told[p->best][p->n_rung - 1] > p->best_error));
    /* nobody is found only where somebody failed everywhere above */
    for (size_t t = 0; t < p->n && !p->found; t++)
        for (unsigned r = 0; r < p->n_rung; r++)
            if (isfinite(p->told[t][r])) assert_true(!isnan(p->told[t][r + 1]));
}

TEST(laws) {
    static double (*const error[])(uint64_t, size_t, unsigned) = {noisy, steady, tied, often_bad};
    static play p;
    for (uint64_t k = 0; k < 600; k++) {
        p = (play){.n = 1 + cd_rng_at(1, k) % (k % 10 ? 40u : MAX_TRIAL),
                   .eta = 2 + (unsigned)(cd_rng_at(2, k) % 3),
                   .n_rung = 1 + (unsigned)(cd_rng_at(3, k) % MAX_RUNG),
                   .lag = 1 + cd_rng_at(4, k) % 9,
                   .error = error[k % 4],
                   .seed = k};
        run(&p);
        check_laws(&p);
    }
}

/* Errors that keep their order on all rungs: the best of all trials wins. */
TEST(never_loses_the_best) {
    static play p;
    for (uint64_t seed = 0; seed < 200; seed++) {
        size_t best = 0;
        p = (play){.n = 1 + seed % 81,
                   .eta = 3,
                   .n_rung = 4,
                   .lag = 1 + seed % 7,
                   .error = steady,
                   .seed = seed};
        run(&p);
        for (size_t t = 1; t < p.n; t++)
            if (steady(seed, t, 0) < steady(seed, best, 0)) best = t;
        assert_true(p.found);
        assert_int_equal(p.best, best);
        assert_true(p.best_error == steady(seed, best, 3));
    }
}

static double in_order(uint64_t seed, size_t t, unsigned r) { return (double)(seed + t) - r; }
static double backwards(uint64_t seed, size_t t, unsigned r) {
    return (double)seed - (double)t - r;
}

/* Best first: nobody who goes up is overtaken, so exactly n/eta of a rung go up.
 * Worst first is the other end: every new one is the best so far. */
TEST(promotes_one_in_eta) {
    static play p;
    p = (play){.n = 81, .eta = 3, .n_rung = 5, .lag = 1, .error = in_order};
    run(&p);
    for (size_t r = 0, n = 81; r < 5; r++, n /= 3) assert_int_equal(p.n_rung_of[r], n);
    p = (play){.n = 81, .eta = 3, .n_rung = 5, .lag = 1, .error = backwards};
    run(&p);
    assert_int_equal(p.best, 80);
    assert_in_range(p.n_rung_of[1], 27, 81);
    p = (play){.n = 162, .eta = 3, .n_rung = 2, .lag = 4, .error = noisy, .seed = 3};
    run(&p); /* random order: about n/eta + sqrt(n) (Li et al. 2020, section 3) */
    assert_in_range(p.n_rung_of[1], 54, 54 + 13);
}

TEST(failures) {
    static play p;
    p = (play){.n = 20, .eta = 3, .n_rung = 3, .lag = 3, .error = all_bad};
    run(&p);
    assert_false(p.found);
    assert_int_equal(p.n_rung_of[1], 0);
    p = (play){.n = 1, .eta = 4, .n_rung = 5, .lag = 2, .error = steady};
    run(&p); /* one trial is one in eta of nothing, and still gets the full budget */
    assert_true(p.found);
    assert_int_equal(p.n_rung_of[4], 1);
}

TESTS(NULL, NULL, laws, never_loses_the_best, promotes_one_in_eta, failures)
