/* Trees grown on what was measured: what they learn, and that they are the same each time. */
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "predictor/tune/rank/rank_internal.h"
#include "spearman.h"

enum { N = 300, TRAIN = 200, ROWS = 3, WIDTH = 12 };

typedef struct {
    float x[N * ROWS * WIDTH];
    double y[N];
    size_t start[N + 1];
} planted;

/* A program's throughput: what its rows give, each by two of its columns. rows: of each program, or
 * fewer. */
static planted *make(uint64_t seed, size_t rows) {
    planted *p = calloc(1, sizeof *p);
    double top = 0;
    if (!p) abort();
    for (size_t i = 0; i < N; i++) {
        const size_t n = rows > 1 ? 1 + cd_rng_at(seed, i) % rows : 1;
        p->start[i + 1] = p->start[i] + n;
        for (size_t r = p->start[i]; r < p->start[i + 1]; r++) {
            float *v = p->x + r * WIDTH;
            for (size_t c = 0; c < WIDTH; c++)
                v[c] = (float)(cd_rng_at(seed + 1, r * WIDTH + c) % 16);
            p->y[i] += fabs((double)v[2] - 5) < 3 ? 4 : 1;
            p->y[i] += (double)v[7] * 0.3;
        }
        top = fmax(top, p->y[i]);
    }
    for (size_t i = 0; i < N; i++) p->y[i] /= top;
    return p;
}

typedef cdmpp_status fit(const cd_tune_fit *f, cd_xgb **out, cdmpp_err *err);

static double held_out(const planted *p, fit *how, uint64_t seed) {
    cdmpp_err err = {0};
    const cd_tune_fit f = {
        .x = p->x, .width = WIDTH, .n = TRAIN, .start = p->start, .y = p->y, .seed = seed};
    double score[N] = {0};
    cd_xgb *g;
    assert_ok(how(&f, &g, &err));
    for (size_t i = TRAIN; i < N; i++) {
        float out[ROWS];
        const size_t n = p->start[i + 1] - p->start[i];
        assert_ok(cd_xgb_predict(g, p->x + p->start[i] * WIDTH, n, WIDTH, out, &err));
        for (size_t r = 0; r < n; r++) score[i] += (double)out[r];
    }
    cd_xgb_free(g);
    return spearman(score + TRAIN, p->y + TRAIN, N - TRAIN);
}

static void test_planted_ranking_is_found(void **state) {
    (void)state;
    planted *many = make(1, ROWS), *one = make(2, 1);
    assert_true(held_out(many, cd_tune_fit_pack_sum, 1) > 0.9);
    assert_true(held_out(one, cd_tune_fit_pack_sum, 1) > 0.9);
    assert_true(held_out(one, cd_tune_fit_pairs, 1) > 0.9);
    free(many);
    free(one);
}

static void bytes_of(const planted *p, fit *how, uint64_t seed, cd_buf *b) {
    cdmpp_err err = {0};
    const cd_tune_fit f = {
        .x = p->x, .width = WIDTH, .n = TRAIN, .start = p->start, .y = p->y, .seed = seed};
    cd_xgb *g;
    assert_ok(how(&f, &g, &err));
    assert_ok(cd_xgb_save(g, b, &err));
    cd_xgb_free(g);
}

static void test_same_trees_for_a_seed(void **state) {
    (void)state;
    planted *p = make(3, 1);
    fit *const how[] = {cd_tune_fit_pack_sum, cd_tune_fit_pairs};
    for (int k = 0; k < 2; k++) {
        cd_buf b[3] = {{0}};
        for (uint64_t j = 0; j < 3; j++) bytes_of(p, how[k], j / 2, &b[j]);
        assert_int_equal(b[0].n, b[1].n);
        assert_memory_equal(b[0].p, b[1].p, b[0].n);
        if (how[k] == cd_tune_fit_pairs)
            assert_true(b[0].n != b[2].n || memcmp(b[0].p, b[2].p, b[0].n) != 0);
        for (int j = 0; j < 3; j++) cd_buf_free(&b[j]);
    }
    free(p);
}

/* Pairs: trees are added as long as more of the fastest are found. A fit that never finds more ends
 * after its patience, 20 rounds; that model has some 25 kB, this one 43. */
static void test_pairs_go_on(void **state) {
    (void)state;
    planted *p = make(5, 1);
    cd_buf b = {0};
    bytes_of(p, cd_tune_fit_pairs, 0, &b);
    assert_true(b.n > 33000);
    cd_buf_free(&b);
    free(p);
}

/* The untrained half of each row, as XGBoost has it: a program of two rows begins at 1. One label,
 * one tree: */
static void test_first_tree_of_pack_sum(void **state) {
    (void)state;
    cdmpp_err err = {0};
    const float x[] = {0, 1, 0, 1};
    const size_t start[] = {0, 2, 4};
    const double y[] = {1, 1};
    const cd_tune_fit f = {.x = x, .width = 1, .n = 2, .start = start, .y = y};
    float out[2];
    cd_xgb *g;
    assert_ok(cd_tune_fit_pack_sum(&f, &g, &err));
    assert_ok(cd_xgb_predict(g, x, 2, 1, out, &err));
    assert_close((double)out[0], 0.5, 0, 0); /* no error, so nothing is learned */
    assert_close((double)out[1], 0.5, 0, 0);
    cd_xgb_free(g);
}

/* All labels 0 weigh nothing; equal labels make no pair. Neither may harm. */
static void test_nothing_to_learn(void **state) {
    (void)state;
    cdmpp_err err = {0};
    const float x[] = {1, 2, 3};
    const size_t start[] = {0, 1, 2, 3};
    const double zero[] = {0, 0, 0}, one[] = {1, 1, 1};
    const double *const y[] = {zero, one};
    fit *const how[] = {cd_tune_fit_pack_sum, cd_tune_fit_pairs};
    for (int k = 0; k < 4; k++) {
        const cd_tune_fit f = {.x = x, .width = 1, .n = 3, .start = start, .y = y[k % 2]};
        float out[3];
        cd_xgb *g;
        assert_ok(how[k / 2](&f, &g, &err));
        assert_ok(cd_xgb_predict(g, x, 3, 1, out, &err));
        for (int i = 0; i < 3; i++) assert_true(isfinite(out[i]));
        cd_xgb_free(g);
    }
}

/* By hand: the order by score is 0 2 1 3, the places by label 0 1 2 3 -> 0, 1, 2, 3.
 * m = 1: none of 0; m = 2: {0} in 0 1; m = 3: {0, 2} in 0 1 2; m = 4: three of them. */
static void test_recall(void **state) {
    (void)state;
    const float score[] = {4, 2, 3, 1};
    const size_t rank[] = {0, 1, 2, 3}, worst[] = {3, 2, 1, 0};
    cd_tune_place place[4];
    assert_close(cd_tune_fit_recall(score, rank, 4, 4, place),
                 (0 + 1.0 / 2 + 2.0 / 3 + 3.0 / 4) / 4, 1e-15, 0);
    assert_close(cd_tune_fit_recall(score, rank, 4, 8, place),
                 (0 + 1.0 / 2 + 2.0 / 3 + 3.0 / 4) / 8, 1e-15, 0);
    assert_close(cd_tune_fit_recall(score, worst, 4, 3, place), (0 + 0.0 / 2 + 1.0 / 3) / 3, 1e-15,
                 0);
}

TESTS(NULL, NULL, test_planted_ranking_is_found, test_same_trees_for_a_seed, test_pairs_go_on,
      test_first_tree_of_pack_sum, test_nothing_to_learn, test_recall)
