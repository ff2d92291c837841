/* Rankers by XGBoost over programs whose speed is made up. */
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "prog.h"
#include "predictor/tune/rank/rank.h"
#include "spearman.h"

static const char *const task[] = {
    "\"ops\": [{\"name\": \"A\", \"shape\": [64, 256], \"dtype\": \"float32\"},"
    "{\"name\": \"B\", \"shape\": [256, 64], \"dtype\": \"float32\"},"
    "{\"name\": \"M\", \"axis\": [[\"i\", 0, 64], [\"j\", 0, 64]], \"reduce_axis\": [[\"k\", 0, "
    "256]], \"reduce\": \"sum\","
    "\"body\": \"A[i, k]*B[k, j]\"}]",
    "\"ops\": [{\"name\": \"A\", \"shape\": [64, 64], \"dtype\": \"float32\"},"
    "{\"name\": \"C\", \"axis\": [[\"i\", 0, 64], [\"j\", 0, 64]], \"body\": \"exp(A[i, j])\"}]",
};

enum { N = 200, TRAIN = 120 };
static const cd_tune_ranker_kind *const kinds[] = {&cd_tune_rank_ansor, &cd_tune_rank_knob,
                                                   &cd_tune_rank_itervar, &cd_tune_rank_curve};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct {
    cd_task_registry *tasks;
    cd_arena a;
    cd_tune_task matmul, exp;
    cd_tune_cand cand[N];
    double seconds[N];
} fixture;

/* Tiles of i, j and k, and how the loops stand; the fastest is a tile of 8 x 16 x 4, i in
 * parallel. */
static void make(fixture *f, size_t n) {
    cdmpp_err err = {0};
    char steps[400];
    cd_record r;
    const int i = 1 << cd_rng_at(n, 0) % 6, j = 1 << cd_rng_at(n, 1) % 6,
              k = 1 << cd_rng_at(n, 2) % 7, p = (int)(cd_rng_at(n, 3) % 2);
    snprintf(
        steps, sizeof steps,
        "[[\"SP\", 2, 0, 64, [%d], 1], [\"SP\", 2, 2, 64, [%d], 1], [\"SP\", 2, 4, 256, [%d], 1], "
        "[\"RE\", 2, [0, 2, 4, 5, 1, 3]], [\"AN\", 2, 0, %d]]",
        i, j, k, p ? 3 : 0);
    assert_ok(prog_record(&f->a, "0", PROG_CPU, steps, &r, &err));
    f->cand[n] = (cd_tune_cand){
        .key = cd_record_steps_key(r.step, r.n_step), .n_step = r.n_step, .step = r.step};
    f->seconds[n] = 1e-3 * exp(0.4 * fabs(log2(i) - 3) + 0.5 * fabs(log2(j) - 4) +
                               0.2 * fabs(log2(k) - 2) + 0.3 * !p);
}

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    f = (fixture){0};
    assert_ok(prog_tasks(task, sizeof task / sizeof *task, &f.tasks, &err));
    f.matmul = (cd_tune_task){.task = cd_task_registry_at(f.tasks, 0),
                              .target = "llvm",
                              .hardware = {1, 64, 64, 0, 0, 0, 0, 0},
                              .flop = -1};
    f.exp = f.matmul;
    f.exp.task = cd_task_registry_at(f.tasks, 1);
    for (size_t n = 0; n < N; n++) make(&f, n);
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_task_registry_free(f->tasks);
    cd_arena_free(&f->a);
    return 0;
}

static cd_tune_ranker *opened(const cd_tune_ranker_kind *k, uint64_t seed, bool frozen) {
    cdmpp_err err = {0};
    const cd_tune_ranker_setup s = {.seed = seed, .frozen = frozen};
    cd_tune_ranker *r;
    assert_ok(k->open(&s, &r, &err));
    return r;
}

/* In batches of ten. */
static void tell(const fixture *f, cd_tune_ranker *r, const double *seconds, size_t n) {
    cdmpp_err err = {0};
    for (size_t i = 0; i < n; i += 10)
        assert_ok(r->kind->learn(r, &f->matmul, f->cand + i, seconds + i, 10, &err));
}

/* Curves do not tell how a loop is run: the speed depends little on it. */
static double held_out(const fixture *f, cd_tune_ranker *r) {
    cdmpp_err err = {0};
    double score[N];
    assert_ok(r->kind->rank(r, &f->matmul, f->cand + TRAIN, N - TRAIN, score, &err));
    for (size_t i = 0; i < N - TRAIN; i++) score[i] = -score[i];
    const double rho = spearman(score, f->seconds + TRAIN, N - TRAIN);
    if (rho < 0.8) print_message("%s: %.3f\n", r->kind->name, rho);
    return rho;
}

static void test_planted_ranking_is_found(void **state) {
    fixture *f = *state;
    for (int k = 0; k < KINDS; k++) {
        cd_tune_ranker *r = opened(kinds[k], 1, false);
        tell(f, r, f->seconds, TRAIN);
        assert_true(r->kind->ready(r, &f->matmul));
        assert_true(held_out(f, r) > 0.8);
        kinds[k]->free(r);
    }
}

static void test_nothing_told_is_random(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    for (int k = 0; k < KINDS; k++) {
        double a[N], b[N], c[N];
        cd_tune_ranker *r = opened(kinds[k], 1, false), *other = opened(kinds[k], 2, false),
                       *ice = opened(kinds[k], 1, true);
        assert_false(r->kind->ready(r, &f->matmul));
        assert_ok(r->kind->rank(r, &f->matmul, f->cand, N, a, &err));
        assert_ok(r->kind->rank(r, &f->matmul, f->cand, N, b, &err));
        assert_memory_equal(a, b, sizeof a);
        assert_ok(r->kind->rank(other, &f->matmul, f->cand, N, b, &err));
        assert_true(memcmp(a, b, sizeof a) != 0);
        assert_true(fabs(spearman(a, f->seconds, N)) < 0.2);
        tell(f, ice, f->seconds, TRAIN); /* frozen: as before */
        assert_false(r->kind->ready(ice, &f->matmul));
        assert_ok(r->kind->rank(ice, &f->matmul, f->cand, N, c, &err));
        assert_memory_equal(a, c, sizeof a);
        kinds[k]->free(r);
        kinds[k]->free(other);
        kinds[k]->free(ice);
    }
}

static void test_same_told_same_scores(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    for (int k = 0; k < KINDS; k++) {
        double a[N], b[N];
        cd_tune_ranker *r = opened(kinds[k], 1, false), *s = opened(kinds[k], 1, false);
        tell(f, r, f->seconds, 50);
        assert_ok(r->kind->rank(r, &f->matmul, f->cand, N, b, &err)); /* a training between */
        assert_ok(r->kind->learn(r, &f->matmul, f->cand + 50, f->seconds + 50, 10, &err));
        tell(f, s, f->seconds, 60);
        assert_ok(r->kind->rank(r, &f->matmul, f->cand, N, a, &err));
        /* one by one */
        for (size_t i = 0; i < N; i++)
            assert_ok(s->kind->rank(s, &f->matmul, &f->cand[i], 1, &b[i], &err));
        assert_memory_equal(a, b, sizeof a);
        kinds[k]->free(r);
        kinds[k]->free(s);
    }
}

/* Failed ones are the slowest, what is no program has no score, and all failing is no reason to
 * stop. */
static void test_failures(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    const cd_record_step bad = {.kind = CD_RECORD_STEP_SP, .stage = 2, .i = {9, 64, 1}};
    const cd_tune_cand none = {.key = 77, .n_step = 1, .step = &bad};
    for (int k = 0; k < KINDS; k++) {
        double seconds[N], score;
        const double failed = CD_TUNE_FAILED_S;
        cd_tune_ranker *r = opened(kinds[k], 1, false);
        for (size_t i = 0; i < N; i++) seconds[i] = f->seconds[i] < 3e-3 ? f->seconds[i] : failed;
        assert_ok(r->kind->learn(r, &f->matmul, &none, &failed, 1, &err));
        tell(f, r, seconds, TRAIN);
        assert_true(held_out(f, r) > 0.5);
        assert_ok(r->kind->rank(r, &f->matmul, &none, 1, &score, &err));
        if (kinds[k] != &cd_tune_rank_knob) assert_true(isinf(score) && score < 0);
        kinds[k]->free(r);
        r = opened(kinds[k], 1, false);
        for (size_t i = 0; i < N; i++) seconds[i] = failed;
        tell(f, r, seconds, TRAIN);
        assert_ok(r->kind->rank(r, &f->matmul, f->cand, 1, &score, &err));
        assert_true(isfinite(score));
        kinds[k]->free(r);
    }
}

/* autotvm's know each task by itself; Ansor's knows all of them together. */
static void test_tasks(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    double score;
    const cd_tune_cand naive = {.key = 1};
    for (int k = 0; k < KINDS; k++) {
        cd_tune_ranker *r = opened(kinds[k], 1, false);
        tell(f, r, f->seconds, TRAIN);
        assert_int_equal(r->kind->ready(r, &f->exp), k == 0);
        assert_ok(r->kind->rank(r, &f->exp, &naive, 1, &score, &err));
        assert_true(isfinite(score));
        assert_true(held_out(f, r) > 0.8);
        kinds[k]->free(r);
    }
}

TESTS(up, down, test_planted_ranking_is_found, test_nothing_told_is_random,
      test_same_told_same_scores, test_failures, test_tasks)
