/* Replays of planted logs, whose answers are known. */
#include "predictor/tune/compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "made_log.h"
#include "predictor/tune/report/report.h"
#include "tmp.h"

static double by_number(int i) { return 1e-3 * (1 + i); }
static double none(int i) { return 0 * i; }
static double half_fail(int i) { return i % 2 ? 1e-3 * (1 + i) : 0; }

static void read_logs(const cd_buf *b, cd_tune_replay_logs *l) {
    cdmpp_err err = {0};
    tmp_dir d = tmp_make();
    const char *path = tmp_put(&d, "a.json", b->p, b->n);
    assert_ok(cd_tune_replay_logs_read(NULL, &path, 1, l, &err));
    tmp_remove(&d);
}

static cd_tune_replay *play(const cd_tune_replay_logs *l, const cd_tune_tuner *t, size_t n_seed,
                            size_t batch, size_t trials, cd_threads *pool) {
    cdmpp_err err = {0};
    cd_tune_replay *r = NULL;
    const cd_tune_replay_spec s = {.tuner = &t,
                                   .n_tuner = 1,
                                   .n_seed = n_seed,
                                   .seed = 1,
                                   .batch = batch,
                                   .trials = trials,
                                   .epsilon = -1,
                                   .pool = pool};
    assert_ok(cd_tune_replay_play(l, &s, &r, &err));
    return r;
}

/* ---- reading ---- */
static void test_equal_steps_are_merged(void **state) {
    (void)state;
    cd_buf b = {0};
    cd_tune_replay_logs l;
    planted_line(&b, "t", 2, 4, 16, 3e-3, 1);
    planted_line(&b, "t", 2, 4, 16, 1e-3, 5);
    planted_line(&b, "t", 2, 4, 16, 2e-3, 3);
    planted_line(&b, "t", 2, 4, 16, 0, 9);
    planted_line(&b, "t", 2, 8, 16, 0, 4);
    planted_line(&b, "u", 2, 8, 16, 5e-3, 4);
    cd_buf_puts(&b, "# a comment\nno record\n");
    read_logs(&b, &l);
    assert_int_equal(l.n, 2);
    assert_int_equal(l.bad, 1);
    assert_int_equal(l.lines, 7);
    assert_int_equal(l.log[0].n, 2);
    assert_int_equal(l.log[0].n_failed, 1);
    assert_int_equal(l.log[0].n_record, 5);
    assert_string_equal(l.log[0].device, "chip");
    assert_close(l.log[0].seconds[0], 2e-3, 0, 1e-12);
    assert_close(l.log[0].cost_s[0], 5, 0, 1e-12);
    assert_close(l.log[0].best_s, 2e-3, 0, 1e-12);
    assert_close(l.log[0].seconds[1], CD_TUNE_FAILED_S, 0, 1);
    assert_false(l.log[0].of.gpu);
    assert_int_equal(l.log[0].of.hardware.num_cores, 4);
    cd_tune_replay_logs_free(&l);
    cd_buf_free(&b);
}

/* ---- what a tuner must do ---- */
static void test_the_perfect_tuner_finds_the_best_at_once(void **state) {
    (void)state;
    cd_buf b = {0};
    cd_tune_replay_logs l;
    planted_task(&b, "t", 100, by_number);
    read_logs(&b, &l);
    planted_secret = l.log[0].seconds;
    cd_tune_replay *r = play(&l, &planted_perfect, 3, 10, 35, NULL);
    for (size_t s = 0; s < 3; s++) {
        const cd_tune_replay_run *run = cd_tune_replay_at(r, 0, 0, s);
        assert_int_equal(run->n, 35);
        assert_close(cd_tune_replay_ratio(&l.log[0], run, 1), 1, 0, 1e-12);
        assert_close(cd_tune_replay_measure_s(&l.log[0], run, 10), 20, 0, 1e-9);
    }
    assert_close(cd_tune_replay_ratio(&l.log[0], cd_tune_replay_at(r, 0, 0, 0), 0), 0, 0, 1e-12);
    cd_tune_replay_free(r);
    cd_tune_replay_logs_free(&l);
    cd_buf_free(&b);
}

/* Mean of the least of k of the seconds 1..n, drawn without repetition: (n + 1) / (k + 1). */
static void test_chance_has_its_closed_form(void **state) {
    (void)state;
    enum { N = 60, SEEDS = 2000 };
    cd_buf b = {0};
    cd_tune_replay_logs l;
    planted_task(&b, "t", N, by_number);
    read_logs(&b, &l);
    cd_tune_replay *r = play(&l, &planted_chance, SEEDS, 10, 40, NULL);
    static const size_t at[] = {1, 5, 10, 25, 40};
    for (size_t j = 0; j < sizeof at / sizeof *at; j++) {
        const double k = (double)at[j], mean = (N + 1) / (k + 1);
        /* of the least of k */
        const double var = k * (N + 1) * (N - k) / ((k + 1) * (k + 1) * (k + 2));
        double sum = 0;
        for (size_t s = 0; s < SEEDS; s++)
            sum += 1e3 * cd_tune_replay_best(&l.log[0], cd_tune_replay_at(r, 0, 0, s), at[j]);
        assert_close(sum / SEEDS, mean, 0, 4 * sqrt(var / SEEDS));
    }
    cd_tune_replay_free(r);
    cd_tune_replay_logs_free(&l);
    cd_buf_free(&b);
}

static void test_any_pool_gives_the_same(void **state) {
    (void)state;
    cd_buf b = {0}, text[2] = {{0}};
    cd_tune_replay_logs l;
    cdmpp_err err = {0};
    planted_task(&b, "t", 90, by_number);
    planted_task(&b, "u", 33, half_fail);
    read_logs(&b, &l);
    for (int k = 0; k < 2; k++) {
        cd_threads *pool = NULL;
        assert_ok(cd_threads_new(k ? 4 : 1, &pool, &err));
        cd_tune_replay *r = play(&l, &planted_chance, 7, 8, 50, pool);
        for (size_t i = 0; i < 14; i++)
            for (size_t t = 0; t < r->run[i].n; t++) cd_buf_putf(&text[k], "%u ", r->run[i].row[t]);
        assert_int_equal(cd_tune_replay_at(r, 1, 0, 0)->n, 33); /* all of it, the last batch of 1 */
        cd_tune_replay_free(r);
        cd_threads_free(pool);
    }
    assert_string_equal(text[0].p, text[1].p);
    for (int k = 0; k < 2; k++) cd_buf_free(&text[k]);
    cd_tune_replay_logs_free(&l);
    cd_buf_free(&b);
}

/* A tuner that repeats itself must not look good. */
static cdmpp_status ask_again(cd_tune_search *b, size_t n, const cd_tune_cand **out, size_t *got,
                              cdmpp_err *err) {
    ((planted_search *)b)->at = 0;
    return planted_ask(b, n, out, got, err);
}
static cdmpp_status open_again(const cd_tune_search_setup *u, cd_tune_search **out,
                               cdmpp_err *err) {
    static const cd_tune_search_kind kind = {"again", open_again, ask_again, planted_tell,
                                             planted_free};
    return planted_open_as(&kind, u, NULL, out, err);
}

static void test_repetition_is_refused(void **state) {
    (void)state;
    static const cd_tune_search_kind kind = {"again", open_again, ask_again, planted_tell,
                                             planted_free};
    const cd_tune_tuner again = {"again", "", &kind, NULL, false}, *t = &again;
    cd_buf b = {0};
    cd_tune_replay_logs l;
    cd_tune_replay *r = NULL;
    cdmpp_err err = {0};
    planted_task(&b, "t", 40, by_number);
    read_logs(&b, &l);
    const cd_tune_replay_spec s = {
        .tuner = &t, .n_tuner = 1, .n_seed = 1, .batch = 5, .trials = 20, .epsilon = -1};
    assert_int_equal(cd_tune_replay_play(&l, &s, &r, &err), CDMPP_EINVALID);
    assert_non_null(strstr(err.key, "again"));
    cd_tune_replay_logs_free(&l);
    cd_buf_free(&b);
}

/* ---- figures ---- */
static void test_rows_and_failed_tasks(void **state) {
    (void)state;
    cd_buf b = {0};
    cd_tune_replay_logs l;
    cdmpp_err err = {0};
    cd_tune_replay_row *row;
    planted_task(&b, "a", 50, by_number);
    planted_task(&b, "dead", 40, none);
    planted_line(&b, "single", 1, 1, 0, 4e-3, 1);
    read_logs(&b, &l);
    assert_int_equal(l.n, 3);
    assert_int_equal(l.log[1].n_failed, 40);
    const cd_tune_tuner *both[] = {&planted_chance, &planted_perfect};
    static double secret[50];
    for (int i = 0; i < 50; i++) secret[i] = l.log[0].seconds[i];
    planted_secret = secret;
    const cd_tune_replay_spec s = {.tuner = both,
                                   .n_tuner = 2,
                                   .n_seed = 4,
                                   .seed = 1,
                                   .batch = 10,
                                   .trials = 60,
                                   .epsilon = -1};
    cd_tune_replay *r = NULL;
    assert_ok(cd_tune_replay_play(&l, &s, &r, &err));
    const size_t at[] = {1, 60};
    assert_ok(cd_tune_replay_table(&l, r, at, 2, &row, &err));
    for (int k = 0; k < 4; k++) assert_int_equal(row[k].n_task, 2); /* without the dead one */
    assert_close(row[2].mean, 1, 0, 1e-12);                         /* perfect at 1 */
    assert_int_equal(row[2].wins, 2);
    assert_int_equal(row[0].wins, 1); /* chance: the single candidate */
    assert_true(row[0].mean < 1 && row[0].median < 1);
    assert_close(row[1].mean, 1, 0, 1e-12); /* everything was measured */
    assert_int_equal(row[1].wins, 2);
    cd_tune_replay_curve c;
    assert_ok(cd_tune_replay_by_trials(&l, r, 0, 60, &c, &err));
    assert_close(c.median[59], 1, 0, 1e-12);
    for (size_t k = 1; k < 60; k++)
        assert_true(c.median[k] >= c.median[k - 1] && c.low[k] <= c.median[k] &&
                    c.median[k] <= c.high[k]);
    cd_tune_replay_curve_free(&c);
    assert_ok(cd_tune_replay_by_seconds(&l, r, 1, 20, &c, &err));
    assert_close(c.median[19], 1, 0, 1e-12);
    assert_close(c.low[19], 1, 0, 1e-12);
    cd_tune_replay_curve_free(&c);
    cd_mem_free(row);
    cd_tune_replay_free(r);
    cd_tune_replay_logs_free(&l);
    cd_buf_free(&b);
}

static void test_only_failures_are_no_figure(void **state) {
    (void)state;
    cd_buf b = {0};
    cd_tune_replay_logs l;
    cdmpp_err err = {0};
    cd_tune_replay_row *row;
    const size_t at = 10;
    planted_task(&b, "dead", 40, none);
    read_logs(&b, &l);
    cd_tune_replay *r = play(&l, &planted_chance, 2, 10, 30, NULL);
    assert_int_equal(cd_tune_replay_at(r, 0, 0, 1)->n, 30);
    assert_int_equal(cd_tune_replay_table(&l, r, &at, 1, &row, &err), CDMPP_ENODATA);
    cd_tune_replay_free(r);
    cd_tune_replay_logs_free(&l);
    cd_buf_free(&b);
}

static size_t count(const cd_buf *b, const char *what) {
    size_t n = 0;
    for (const char *p = b->p; (p = strstr(p, what)); p++) n++;
    return n;
}

static void test_printed_forms(void **state) {
    (void)state;
    cd_buf b = {0}, out = {0};
    cd_tune_replay_logs l;
    cdmpp_err err = {0};
    planted_task(&b, "a", 40, by_number);
    planted_task(&b, "b", 12, half_fail);
    read_logs(&b, &l);
    const cd_tune_tuner *t[] = {&planted_chance};
    const cd_tune_replay_spec spec = {
        .tuner = t, .n_tuner = 1, .n_seed = 2, .seed = 5, .batch = 10, .trials = 20, .epsilon = -1};
    cd_tune_replay *r = NULL;
    assert_ok(cd_tune_replay_play(&l, &spec, &r, &err));
    const size_t at[] = {5, 20};
    const cd_tune_replay_shown s = {&l, r, &spec, at, 2};
    cd_tune_replay_csv(&out, &s);
    assert_int_equal(count(&out, "\n"), 1 + 2 * (20 + 12));
    assert_int_equal(count(&out, "chip,chance,6,"), 32);
    cd_buf_clear(&out);
    cd_tune_replay_op_costs(&out, &s, 0, 0);
    assert_int_equal(count(&out, "\n"), 21);
    assert_int_equal(count(&out, ",1.000000\n"), 20); /* a single tuner is the best of all */
    cd_buf_clear(&out);
    cd_tune_replay_partial(&out, &s);
    assert_int_equal(count(&out, "\n"), 2);
    assert_non_null(strstr(out.p, "modelname,tuner,0,5,20\nchip,chance,,"));
    cd_buf_clear(&out);
    assert_ok(cd_tune_replay_svg(&out, &s, &err));
    assert_int_equal(count(&out, "<svg"), count(&out, "</svg>"));
    assert_null(strstr(out.p, "nan"));
    assert_null(strstr(out.p, "inf"));
    cd_buf_free(&out);
    cd_tune_replay_free(r);
    cd_tune_replay_logs_free(&l);
    cd_buf_free(&b);
}

TESTS(NULL, NULL, test_equal_steps_are_merged, test_the_perfect_tuner_finds_the_best_at_once,
      test_chance_has_its_closed_form, test_any_pool_gives_the_same, test_repetition_is_refused,
      test_rows_and_failed_tasks, test_only_failures_are_no_figure, test_printed_forms)
