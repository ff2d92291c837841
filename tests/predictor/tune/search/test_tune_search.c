/* Laws of every search, on a made-up space. */
#include <stdlib.h>

#include "check.h"
#include "fault.h"
#include "predictor/tune/core/core.h"
#include "predictor/tune/search/search.h"
#include "predictor/tune/search/search_internal.h"
#include "tune_toy.h"

static const cd_tune_search_kind *const kinds[] = {&cd_tune_search_grid,   &cd_tune_search_random,
                                                   &cd_tune_search_ga,     &cd_tune_search_best,
                                                   &cd_tune_search_evolve, &cd_tune_search_anneal};
enum { KINDS = sizeof kinds / sizeof *kinds, ASKS = 40, BATCH = 10 };

typedef struct {
    toy_space *space;
    toy_ranker ranker;
    cd_tune_search *search;
    double best;     /* seconds of the best told */
    uint64_t digest; /* of all keys in order */
    size_t n;
} rig;

static void open_rig(rig *r, const cd_tune_search_kind *kind, uint32_t knobs, uint32_t sides,
                     bool listed, uint64_t seed) {
    cdmpp_err err = {0};
    *r = (rig){.space = toy_new(knobs, sides, listed),
               .best = INFINITY,
               .ranker = {.ranker = {&toy_rank_kind}, .error = 0.5}};
    const cd_tune_search_setup s = {.space = &r->space->space,
                                    .ranker = &r->ranker.ranker,
                                    .seed = seed,
                                    .epsilon = -1,
                                    .population = 64,
                                    .generations = 4};
    assert_ok(kind->open(&s, &r->search, &err));
}

static void close_rig(rig *r) {
    r->search->kind->free(r->search);
    cd_tune_space_free(&r->space->space);
}

typedef double toy_clock(const cd_tune_cand *c);
static double right(const cd_tune_cand *c) { return toy_seconds(c); }
static double fails(const cd_tune_cand *c) {
    (void)c;
    return CD_TUNE_FAILED_S;
}
static double half_fails(const cd_tune_cand *c) {
    return c->choice[0].pick % 2 ? CD_TUNE_FAILED_S : toy_seconds(c);
}

/* One batch asked for and told; how many. */
static size_t step(rig *r, size_t n, toy_clock *clock) {
    cdmpp_err err = {0};
    const cd_tune_cand *c = NULL;
    size_t got = 0;
    double *seconds = calloc(n + 1, sizeof *seconds);
    assert_ok(r->search->kind->ask(r->search, n, &c, &got, &err));
    assert_true(got <= n);
    for (size_t i = 0; i < got; i++) {
        assert_int_equal(c[i].key, cd_record_steps_key(c[i].step, c[i].n_step));
        seconds[i] = clock(&c[i]);
        r->best = fmin(r->best, seconds[i]);
        r->digest = cd_rng_mix(r->digest ^ c[i].key);
    }
    assert_ok(r->search->kind->tell(r->search, c, seconds, got, &err));
    free(seconds);
    r->n += got;
    return got;
}

/* Asks until nothing comes, at most `most`; no key twice. */
static size_t run(rig *r, size_t most, toy_clock *clock) {
    cdmpp_err err = {0};
    cd_tune_key_set seen = {0};
    size_t n = 0;
    for (size_t got = 1; n < most && got;) {
        const cd_tune_cand *c;
        double s[BATCH];
        assert_ok(r->search->kind->ask(r->search, BATCH, &c, &got, &err));
        for (size_t i = 0; i < got; i++) {
            assert_false(cd_tune_key_set_find(&seen, c[i].key, NULL));
            assert_ok(cd_tune_key_set_put(&seen, c[i].key, 0, &err));
            s[i] = clock(&c[i]);
            r->best = fmin(r->best, s[i]);
        }
        if (got < BATCH) assert_true(r->space->listed); /* only where there are no more */
        assert_ok(r->search->kind->tell(r->search, c, s, got, &err));
        n += got;
    }
    cd_tune_key_set_free(&seen);
    return n;
}

static void test_never_twice_and_to_the_end(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        rig r;
        open_rig(&r, kinds[k], 3, 6, true, 1);
        /* the last ask gives fewer, then none */
        assert_int_equal(run(&r, 1000, right), 6 * 6 * 6 - 6);
        close_rig(&r);
        open_rig(&r, kinds[k], 8, 12, false, 1);
        assert_int_equal(run(&r, 400, right), 400);
        close_rig(&r);
    }
}

/* Too large to list, yet soon used up: walks and draws end as well. */
static void test_unlisted_space_ends(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        rig r;
        size_t n = 0;
        open_rig(&r, kinds[k], 2, 5, false, 1);
        for (int i = 0; i < 6; i++) n += step(&r, BATCH, right);
        assert_int_equal(n, 5 * 5 - 1);
        close_rig(&r);
    }
}

static void test_seed_and_told_decide(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        uint64_t digest[3];
        for (uint64_t j = 0; j < 3; j++) {
            rig r;
            open_rig(&r, kinds[k], 8, 12, false, j / 2 + 1);
            for (int i = 0; i < ASKS; i++) assert_int_equal(step(&r, BATCH, right), BATCH);
            digest[j] = r.digest;
            close_rig(&r);
        }
        assert_int_equal(digest[0], digest[1]);
        if (kinds[k] != &cd_tune_search_grid) assert_int_not_equal(digest[0], digest[2]);
    }
}

static void test_failures_do_not_end_it(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        rig r;
        open_rig(&r, kinds[k], 8, 12, false, 3);
        assert_int_equal(run(&r, 300, fails), 300);
        close_rig(&r);
        open_rig(&r, kinds[k], 8, 12, false, 3);
        assert_int_equal(run(&r, 300, half_fails), 300);
        assert_true(r.best < CD_TUNE_FAILED_S);
        close_rig(&r);
        open_rig(&r, kinds[k], 8, 12, false, 3);
        r.ranker.none = true; /* and the ranker takes nothing for a program */
        assert_int_equal(run(&r, 300, fails), 300);
        close_rig(&r);
    }
}

static void test_empty_space(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        rig r;
        open_rig(&r, kinds[k], 4, 4, false, 1);
        r.space->empty = true;
        assert_int_equal(step(&r, BATCH, right), 0);
        assert_int_equal(step(&r, BATCH, right), 0);
        close_rig(&r);
    }
}

static void test_what_was_told_is_not_asked(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        rig r;
        cdmpp_err err = {0};
        const cd_tune_cand *all;
        size_t n;
        double s[256];
        open_rig(&r, kinds[k], 3, 6, true, 1);
        assert_ok(toy_kind.list(&r.space->space, &all, &n, &err));
        for (size_t i = 0; i < n; i++) s[i] = right(&all[i]);
        assert_ok(kinds[k]->tell(r.search, all, s, n - 7, &err));
        assert_int_equal(run(&r, 1000, right), 7);
        close_rig(&r);
    }
}

static void test_ranker_learns_and_its_errors_arrive(void **state) {
    (void)state;
    for (int k = 3; k < KINDS; k++) {
        rig r;
        cdmpp_err err = {0};
        const cd_tune_cand *c;
        size_t got;
        open_rig(&r, kinds[k], 8, 12, false, 1);
        step(&r, 0, right);
        step(&r, BATCH, right);
        assert_int_equal(r.ranker.learned, BATCH);
        r.ranker.fail = CDMPP_EBACKEND;
        assert_int_equal(kinds[k]->ask(r.search, BATCH, &c, &got, &err), CDMPP_EBACKEND);
        r.ranker.fail = CDMPP_OK;
        assert_int_equal(step(&r, BATCH, right), BATCH);
        close_rig(&r);
    }
}

/* Each program is ranked once in a round. */
static void test_ranks_no_more_than_it_makes(void **state) {
    (void)state;
    rig r;
    open_rig(&r, &cd_tune_search_evolve, 8, 12, false, 1);
    step(&r, BATCH, right);
    assert_true(r.ranker.ranked <= 5 * 64);
    assert_true(r.ranker.ranked >= 2 * 64);
    close_rig(&r);
}

static double best_of(const cd_tune_search_kind *kind, size_t trials, uint64_t seed) {
    rig r;
    cdmpp_err err = {0};
    const cd_tune_search_setup all = {.seed = seed, .epsilon = -1};
    open_rig(&r, kind, 8, 12, false, seed);
    r.search->kind->free(r.search);
    cd_tune_search_setup s = all;
    s.space = &r.space->space;
    s.ranker = &r.ranker.ranker;
    assert_ok(kind->open(&s, &r.search, &err)); /* with its own population */
    while (r.n < trials) step(&r, BATCH, right);
    const double best = r.best;
    close_rig(&r);
    return best;
}

static void test_guided_beat_random(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 4; seed++) {
        const double random = best_of(&cd_tune_search_random, 400, seed),
                     ga = best_of(&cd_tune_search_ga, 400, seed);
        const double best = best_of(&cd_tune_search_best, 40, seed),
                     evolve = best_of(&cd_tune_search_evolve, 40, seed);
        const double anneal = best_of(&cd_tune_search_anneal, 40, seed);
        assert_true(ga < 0.7 * random);
        assert_true(best < 0.5 * random);
        assert_true(evolve < 0.4 * random);
        assert_true(anneal < 0.4 * random);
        assert_true(evolve <= best);
    }
}

static void test_grid_finds_the_optimum(void **state) {
    (void)state;
    rig r;
    double least = INFINITY;
    open_rig(&r, &cd_tune_search_grid, 3, 6, true, 1);
    assert_int_equal(run(&r, 1000, right), 210);
    for (size_t i = 0; i < r.space->n_all; i++) least = fmin(least, toy_seconds(&r.space->all[i]));
    assert_true(r.best == least);
    close_rig(&r);
}

/* Where the list is the pool, the first ask holds the ranker's first choice. */
static void test_lists_are_ranked_whole(void **state) {
    (void)state;
    for (int k = 3; k < KINDS; k++) {
        rig r;
        double least = INFINITY;
        open_rig(&r, kinds[k], 4, 6, true, 5);
        r.ranker.error = 0;
        step(&r, BATCH, right);
        for (size_t i = 0; i < r.space->n_all; i++)
            least = fmin(least, toy_seconds(&r.space->all[i]));
        assert_true(r.best == least);
        close_rig(&r);
    }
}

/* Every allocation fails once: an error, nothing lost, and the search goes on where it can. */
static void test_out_of_memory(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) FAULT_SWEEP(f, 1) {
            fault_off();
            rig r = {.space = toy_new(3, 6, k % 2), .ranker = {.ranker = {&toy_rank_kind}}};
            const cd_tune_search_setup s = {.space = &r.space->space,
                                            .ranker = &r.ranker.ranker,
                                            .epsilon = -1,
                                            .population = 16,
                                            .generations = 2};
            const cd_tune_cand *c = NULL;
            double seconds[BATCH];
            size_t got = 1;
            f.step = 1 + f.k / 16;
            fault_on(&f);
            f.st = kinds[k]->open(&s, &r.search, &f.err);
            for (int i = 0; !f.st && i < 8; i++) {
                f.st = kinds[k]->ask(r.search, BATCH, &c, &got, &f.err);
                for (size_t j = 0; !f.st && j < got; j++) seconds[j] = right(&c[j]);
                if (!f.st) f.st = kinds[k]->tell(r.search, c, seconds, got, &f.err);
            }
            fault_off();
            cdmpp_err err = {0};
            if (f.st && r.search) assert_ok(kinds[k]->ask(r.search, BATCH, &c, &got, &err));
            if (r.search) r.search->kind->free(r.search);
            cd_tune_space_free(&r.space->space);
        }
}

/* The share of random candidates holds over all asks, once the ranker knows something; never more
 * than were asked for. */
TEST(test_share_of_random_ones) {
    static const double share[] = {0, 0.25, 1};
    for (size_t k = 0; k < 3; k++)
        for (int kind = 0; kind < 2; kind++) {
            cdmpp_err err = {0};
            rig r = {.space = toy_new(6, 6, false),
                     .best = INFINITY,
                     .ranker = {.ranker = {&toy_rank_kind}, .error = 0.5}};
            const cd_tune_search_setup s = {.space = &r.space->space,
                                            .ranker = &r.ranker.ranker,
                                            .seed = 5,
                                            .epsilon = share[k],
                                            .population = 64,
                                            .generations = 4};
            assert_ok(
                (kind ? &cd_tune_search_evolve : &cd_tune_search_best)->open(&s, &r.search, &err));
            const cd_tune_guide *g = (const cd_tune_guide *)r.search;
            for (int i = 0; i < 10; i++) {
                (void)step(&r, i % 2 ? 3 : 7, right);
                const double due = share[k] * (double)g->n_asked;
                assert_true((double)g->n_random <= due && (double)g->n_random > due - 1);
            }
            assert_true(g->n_asked >= 40);
            close_rig(&r);
        }
}

TESTS(NULL, NULL, test_share_of_random_ones, test_never_twice_and_to_the_end,
      test_unlisted_space_ends, test_seed_and_told_decide, test_failures_do_not_end_it,
      test_empty_space, test_what_was_told_is_not_asked, test_ranker_learns_and_its_errors_arrive,
      test_ranks_no_more_than_it_makes, test_guided_beat_random, test_grid_finds_the_optimum,
      test_lists_are_ranked_whole, test_out_of_memory)
