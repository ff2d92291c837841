/* The pre-trained rankers: what they say is what the model says, corrected by what was measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "made_model.h"
#include "predictor/score/scorer.h"
#include "predictor/tune/rank/rank.h"

#define TARGET "llvm -model=zen5-avx512"
enum { N = MADE_N };

static tmp_dir dir;
static cd_task_registry *tasks;
static cd_model *model;
static cd_arena mem;
static cd_tune_cand cand[N];
static cd_tune_task task;

static int set_up(void **state) {
    static const char *const set[] = {"train.rounds=20", "model.folds=2", "model.tuner=true",
                                      "fit.epochs=1", "net.device=false"};
    static const char *const target[] = {TARGET};
    cdmpp_err err = {0};
    char h5[256], path[256];
    (void)state;
    dir = tmp_make();
    cdmpp_status st = cd_task_registry_new(&tasks, &err);
    if (!st) st = cd_task_registry_load(tasks, MADE_TASKS, &err);
    task = (cd_tune_task){.task = cd_task_registry_at(tasks, 0),
                          .target = TARGET,
                          .flop = -1,
                          .hardware = {8, 64, 64, 0, 0, 0, 0, 0}};
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "tune.cdmpp"));
    if (!st) st = made_extract(&dir, task.task->workload_key, target, 1, h5, &err);
    if (!st) st = made_learn(h5, set, 5, path, &err);
    if (!st) st = cd_model_load(path, &model, &err);
    for (int i = 0; !st && i < N; i++) {
        cd_buf b = {0};
        cd_record r = {0};
        made_steps(&b, i);
        st = cd_record_read_steps(&mem, b.p, b.n, &r, &err);
        cd_buf_free(&b);
        cand[i] = (cd_tune_cand){
            .key = cd_record_steps_key(r.step, r.n_step), .n_step = r.n_step, .step = r.step};
    }
    task.flop = cd_task_flop(task.task);
    if (st) print_error("%s: %s\n", err.key, err.msg);
    return st != CDMPP_OK;
}

static int tear_down(void **state) {
    (void)state;
    cd_arena_free(&mem);
    cd_model_free(model);
    cd_task_registry_free(tasks);
    tmp_remove(&dir);
    return 0;
}

static cd_tune_ranker *open_with(const cd_tune_ranker_kind *kind, int threads, bool frozen) {
    cdmpp_err err = {0};
    cd_tune_ranker *r = NULL;
    const cd_tune_ranker_setup s = {.model = model, .threads = threads, .frozen = frozen};
    assert_ok(kind->open(&s, &r, &err));
    return r;
}

/* The made model has a law of unlike operators alone: a program beyond the range of training has no
 * interval, and is feared as much as those that are like the training. */
static double expected_error(const cd_model_prediction *p) {
    assert_true(p->reason || p->rel_std > 0);
    assert_true(p->like_std > 0);
    return isnan(p->rel_std) ? p->like_std : p->rel_std;
}

/* What the scorer says of the same steps: a number for each, whether or not it has an interval. */
static void expected(const cd_model *m, double *score) {
    cdmpp_err err = {0};
    cd_scorer *s;
    cd_scored *o = calloc(N, sizeof *o);
    const cd_scorer_options opt = {0};
    const cd_aim aim = {.workload_key = task.task->workload_key,
                        .task = task.task,
                        .target = {TARGET, strlen(TARGET)},
                        .has_hardware = true,
                        .hardware = task.hardware,
                        .flop = task.flop,
                        .device = {"", 0}};
    assert_ok(cd_scorer_new(m, NULL, &opt, &s, &err));
    cd_scorer_start(s);
    for (int i = 0; i < N; i++) {
        cd_buf b = {0};
        made_steps(&b, i);
        assert_ok(cd_scorer_add(
            s, &(cd_candidate){.form = CD_CANDIDATE_STEPS, .aim = &aim, .text = {b.p, b.n}}, &o[i],
            &err));
        cd_buf_free(&b);
    }
    assert_ok(cd_scorer_finish(s, &err));
    for (int i = 0; i < N; i++)
        assert_true(isfinite(o[i].pred.order_s) &&
                    !isnan(o[i].pred.low_s) == !isnan(o[i].pred.rel_std));
    for (int i = 0; i < N; i++)
        score[i] = -log(o[i].pred.median_s) - 0.5 * expected_error(&o[i].pred);
    cd_scorer_free(s);
    free(o);
}

static void test_says_what_the_model_says(void **state) {
    double want[N], got[N], again[N], two[N];
    cdmpp_err err = {0};
    (void)state;
    expected(cd_model_tuner(model), want);
    cd_tune_ranker *r = open_with(&cd_tune_rank_model, 1, false),
                   *r2 = open_with(&cd_tune_rank_model, 2, false);
    assert_ok(r->kind->rank(r, &task, cand, N, got, &err));
    for (int i = 0; i < N; i++) assert_close(got[i], want[i], 1e-5, 0);
    assert_ok(r->kind->rank(r, &task, cand, N, again, &err)); /* from memory */
    assert_memory_equal(again, got, sizeof got);
    assert_ok(r2->kind->rank(r2, &task, cand, N, two, &err));
    assert_memory_equal(two, got, sizeof got);
    r->kind->free(r);
    r2->kind->free(r2);
}

static double mean_of(const double *x) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += x[i] / N;
    return sum;
}

static void test_learns_what_was_measured(void **state) {
    double before[N], after[N], seconds[N];
    cdmpp_err err = {0};
    (void)state;
    for (int frozen = 0; frozen < 2; frozen++) {
        cd_tune_ranker *r = open_with(&cd_tune_rank_model, 1, frozen);
        assert_ok(r->kind->rank(r, &task, cand, N, before, &err));
        /* slower; some fail */
        for (int i = 0; i < N; i++) seconds[i] = i % 5 ? 2 * exp(-before[i]) : CD_TUNE_FAILED_S;
        assert_ok(r->kind->learn(r, &task, cand, seconds, 60, &err));
        assert_ok(r->kind->rank(r, &task, cand, N, after, &err));
        if (frozen) assert_memory_equal(after, before, sizeof after);
        /* twice as slow as feared: believed in part, and more is feared of a model that errs */
        else
            assert_true(mean_of(after) < mean_of(before) - 0.2 &&
                        mean_of(after) > mean_of(before) - 2 * log(2));
        assert_true(r->kind->ready(r, &task));
        r->kind->free(r);
    }
}

static void test_no_program_and_no_device(void **state) {
    double score[2];
    cdmpp_err err = {0};
    (void)state;
    const cd_record_step wrong = {.kind = CD_RECORD_STEP_SP,
                                  .stage = 2,
                                  .i = {77, 512, 1},
                                  .n_list = 1,
                                  .list = (const int32_t[]){2}};
    const cd_tune_cand two[2] = {{.key = 1, .n_step = 1, .step = &wrong}, cand[0]};
    cd_tune_ranker *r = open_with(&cd_tune_rank_model, 1, false);
    assert_ok(r->kind->rank(r, &task, two, 2, score, &err));
    assert_true(isinf(score[0]) && score[0] < 0 && isfinite(score[1]));
    cd_tune_task other = task;
    other.target = "cuda -keys=cuda,gpu -model=v100";
    assert_status(r->kind->rank(r, &other, cand, 2, score, &err), CDMPP_EMODEL);
    const double fast[2] = {1e-9, 1e-9};
    assert_ok(r->kind->learn(r, &task, two, fast, 2, &err)); /* one of them teaches nothing */
    r->kind->free(r);
    assert_status(cd_tune_rank_model.open(&(cd_tune_ranker_setup){0}, &r, &err), CDMPP_EUSAGE);
}

/* Fewer than the second stage looks at: its answers; the small model's order of more is in
 * test_twostage. */
static void test_whole_model_has_the_last_word(void **state) {
    double want[N], got[N];
    cdmpp_err err = {0};
    (void)state;
    expected(model, want);
    cd_tune_ranker *r = open_with(&cd_tune_rank_twostage, 1, false);
    assert_ok(r->kind->rank(r, &task, cand, N, got, &err));
    for (int i = 0; i < N; i++) assert_close(got[i], want[i], 1e-5, 0);
    double *many = calloc(3 * N, sizeof *many), top = -INFINITY;
    cd_tune_cand *more = calloc(3 * N, sizeof *more);
    for (int i = 0; i < 3 * N; i++) more[i] = cand[i % N];
    assert_ok(r->kind->rank(r, &task, more, 3 * N, many, &err));
    for (int i = 0; i < N; i++) top = fmax(top, want[i]);
    for (int i = 0; i < 3 * N; i++) assert_true(many[i] <= top + 1e-5 * fabs(top));
    free(many);
    free(more);
    r->kind->free(r);
}

static int less_first(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* More than the second stage looks at: the whole model's answers for the best of the small one, the
 * others moved by the median difference of those, none above the best answer. The worst is first,
 * so that it is one of the others. */
static void test_others_are_moved_as_a_whole(void **state) {
    enum { MANY = 3 * N, LOOKED_AT = 256 };
    static double small[MANY], whole[MANY], want[MANY], got[MANY], least[MANY],
        difference[LOOKED_AT];
    static cd_tune_cand more[MANY];
    double one[N], two[N], top = -INFINITY;
    size_t worst = 0, n = 0;
    cdmpp_err err = {0};
    (void)state;
    expected(cd_model_tuner(model), one);
    expected(model, two);
    for (size_t i = 0; i < N; i++)
        if (one[i] < one[worst]) worst = i;
    for (size_t i = 0; i < MANY; i++) {
        const size_t k = (i + worst) % N;
        more[i] = cand[k], small[i] = least[i] = one[k], whole[i] = two[k];
    }
    qsort(least, MANY, sizeof *least, less_first);
    const double limit = least[MANY - LOOKED_AT];
    size_t equal = LOOKED_AT;
    for (size_t i = 0; i < MANY; i++) equal -= small[i] > limit;
    for (size_t i = 0; i < MANY; i++) {
        const bool looked_at = small[i] > limit || (small[i] == limit && equal && equal--);
        want[i] = looked_at ? whole[i] : (double)NAN;
        if (looked_at) difference[n++] = whole[i] - small[i], top = fmax(top, whole[i]);
    }
    assert_int_equal(n, LOOKED_AT);
    assert_true(isnan(want[0]));
    qsort(difference, n, sizeof *difference, less_first);
    for (size_t i = 0; i < MANY; i++)
        if (isnan(want[i])) want[i] = fmin(small[i] + difference[LOOKED_AT / 2 - 1], top);
    cd_tune_ranker *r = open_with(&cd_tune_rank_twostage, 2, false);
    assert_ok(r->kind->rank(r, &task, more, MANY, got, &err));
    for (size_t i = 0; i < MANY; i++) assert_close(got[i], want[i], 1e-4, 0);
    r->kind->free(r);
}

TESTS(set_up, tear_down, test_says_what_the_model_says, test_learns_what_was_measured,
      test_no_program_and_no_device, test_whole_model_has_the_last_word,
      test_others_are_moved_as_a_whole)
