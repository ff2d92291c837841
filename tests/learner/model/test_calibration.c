/* The answer and how sure it is, where the errors are known by construction. */
#include "learner/model/calibration.h"
#include "check.h"
#include "fault.h"

#include <string.h>

#include "learner/model/model_internal.h"
#include "made_calib.h"

/* ---- what it is for ---- */
TEST(interval_holds) {
    size_t inside = 0;
    for (size_t i = 0; i < N_NEW; i++) {
        inside += first.low[i] <= fresh.y[i] && fresh.y[i] <= first.high[i];
        assert_true(first.low[i] <= first.median[i] && first.median[i] <= first.high[i]);
        assert_true(first.low[i] <= first.point[i] && first.point[i] <= first.high[i]);
    }
    assert_in_range(inside, N_NEW * 88 / 100, N_NEW * 92 / 100);
}

TEST(sigma_is_the_deviation) {
    double off = 0, mean = 0, wide = 0, bias = 0;
    for (size_t i = 0; i < N_NEW; i++) mean += log(fresh.sigma[i]) / N_NEW;
    for (size_t i = 0; i < N_NEW; i++) {
        const double d = log(first.sigma[i] / fresh.sigma[i]);
        off += d * d / N_NEW;
        bias += d / N_NEW;
        wide += pow(log(fresh.sigma[i]) - mean, 2) / N_NEW;
    }
    assert_true(off < 0.35 * wide); /* two thirds of the variance of ln sigma explained */
    assert_true(fabs(bias) < 0.1);
}

TEST(knows_the_least_certain) {
    static double order[N_NEW];
    double tenth = 0, rest = 0;
    memcpy(order, first.sigma, sizeof order);
    const double limit = cd_sort_to_quantile(order, N_NEW, 0.9);
    for (size_t i = 0; i < N_NEW; i++)
        *(first.sigma[i] > limit ? &tenth : &rest) += fabs(expm1(first.point[i] - fresh.y[i]));
    assert_true(tenth / (N_NEW / 10.0) > 2 * rest / (N_NEW * 0.9));
    assert_true(cd_calibration_info_of(fitted).decile_ratio > 2);
}

TEST(point_has_the_least_mape) {
    double point = 0, median = 0;
    size_t above = 0;
    for (size_t i = 0; i < N_NEW; i++) {
        point += fabs(expm1(first.point[i] - fresh.y[i])) / N_NEW;
        median += fabs(expm1(first.median[i] - fresh.y[i])) / N_NEW;
        above += first.median[i] > fresh.y[i];
    }
    assert_true(point < 0.95 * median);
    assert_in_range(above, N_NEW * 43 / 100, N_NEW * 57 / 100);
    const cd_calibration_info info = cd_calibration_info_of(fitted);
    assert_true(info.tilt > 0.7 && info.tilt < 1.3); /* normal: 1 */
    assert_true(info.mape_point <= info.mape_median);
}

TEST(better_kind_weighs_more) {
    const cd_calibration_info info = cd_calibration_info_of(fitted);
    assert_true(info.weight[0] >= 0.8 && info.weight[0] <= 1); /* 0.9 */
    assert_close(info.weight[0] + info.weight[1], 1, 1e-15, 0);
    made four = make(500, 6, 7); /* too many kinds for a grid: 0.83 0.09 0.03 .. */
    const cd_calibration_input in = in_of(&four);
    cd_calibration *c = fit_opt(&in, cd_calibration_options_default());
    assert_true(cd_calibration_info_of(c).weight[0] >= 0.6);
    cd_calibration_free(c);
    made_free(&four);
}

/* ---- the same bits ---- */
TEST(any_number_of_threads) {
    const cd_calibration_input in = in_of(&old);
    cd_calibration_options opt = cd_calibration_options_default();
    cdmpp_err err = {0};
    assert_ok(cd_threads_new(3, &opt.pool, &err));
    same_answers(NULL, &in, opt);
    cd_threads_free(opt.pool);
}

TEST(any_order_of_programs) {
    made d = make(N, KINDS, 1);
    for (size_t i = 0; i < N; i++) {
        const size_t j = (i * 1237 + 11) % N; /* 1237 has no factor of 2000 */
        memcpy(d.x + i * W, old.x + j * W, W * sizeof *d.x);
        d.y[i] = old.y[j];
        d.fold[i] = old.fold[j];
        d.group[i] = old.group[j];
        for (size_t k = 0; k < KINDS; k++) d.kind[k * N + i] = old.kind[k * N + j];
    }
    const cd_calibration_input in = in_of(&d);
    same_answers(NULL, &in, cd_calibration_options_default());
    made_free(&d);
}

TEST(any_cut_of_apply) {
    made one = make(1, KINDS, 3);
    for (size_t i = 0; i < 300; i += 37) {
        memcpy(one.x, fresh.x + i * W, W * sizeof *one.x);
        for (size_t k = 0; k < KINDS; k++) one.kind[k] = fresh.kind[k * N_NEW + i];
        apply(fitted, &one, &second);
        assert_memory_equal(&second.point[0], &first.point[i], sizeof(double));
        assert_memory_equal(&second.high[0], &first.high[i], sizeof(double));
    }
    made_free(&one);
}

/* ---- parts ---- */
/* z of a task all the same: as many independent errors as tasks; all different: as programs. */
TEST(quantiles_count_tasks) {
    enum { T = 50, K = 20 };
    static double z[T * K], work[T * K];
    static uint32_t group[T * K];
    cdmpp_err err = {0};
    double q[4], e;
    cd_calibration_set set = {.n = T * K, .n_group = T, .group = group, .work = work};
    for (size_t i = 0; i < T * K; i++) {
        group[i] = (uint32_t)(i / K);
        z[i] = (double)(i / K) - 24.5;
    }
    assert_ok(cd_calibration_quantiles(&set, z, 0.9, q, &e, &err));
    assert_close(e, T, 1e-9, 0);
    assert_close(q[0], -23.5, 0, 0); /* 0.95 * 51/50 of 50 tasks: the 49th */
    assert_close(q[2], 23.5, 0, 0);
    for (size_t i = 0; i < T * K; i++) z[i] = normal(9, i);
    assert_ok(cd_calibration_quantiles(&set, z, 0.9, q, &e, &err));
    assert_true(e > 0.6 * T * K);
    assert_close(q[2], 1.645, 0.15, 0);
    assert_ok(cd_calibration_quantiles(&set, z, 0.99, q, &e, &err));
    assert_true(q[2] > 2.2);
    /* one task with half of the programs and the largest errors counts as one in 26 */
    for (size_t i = 0; i < T * K / 2; i++) {
        group[i] = 25;
        z[i] = 9;
    }
    for (size_t i = T * K / 2; i < T * K; i++) group[i] = (uint32_t)(i / K - 25);
    set.n_group = 26;
    for (size_t i = T * K / 2; i < T * K; i++) z[i] *= 0.1;
    assert_ok(cd_calibration_quantiles(&set, z, 0.8, q, &e, &err));
    assert_true(q[2] < 1);
}

/* The next of few errors is as often inside as the level says, and a tenth of it more at most: what
 * was seen bounds it, too. */
TEST(few_errors_hold_the_next) {
    enum { DRAWS = 4000 };
    static const size_t many[] = {2, 3, 5, 10, 18};
    double z[18], work[18], q[4], e;
    uint32_t group[18];
    cdmpp_err err = {0};
    for (size_t k = 0; k < sizeof many / sizeof *many; k++) {
        const size_t n = many[k];
        const cd_calibration_set set = {
            .n = n, .n_group = (uint32_t)n, .group = group, .work = work};
        size_t in = 0;
        for (uint64_t draw = 0; draw < DRAWS; draw++) {
            for (size_t i = 0; i < n; i++) {
                group[i] = (uint32_t)i;
                z[i] = normal(n, draw * 32 + i);
            }
            const double next = normal(n, draw * 32 + 31);
            assert_ok(cd_calibration_quantiles(&set, z, 0.9, q, &e, &err));
            in += q[0] <= next && next <= q[2];
        }
        assert_in_range(in, DRAWS * 885 / 1000, DRAWS * 97 / 100);
    }
    assert_true(cd_calibration_few(18.9, 0.9) && !cd_calibration_few(19.1, 0.9));
}

/* Kinds that agree or not whatever the error is: sigma is one, also where they agree. Where their
 * spread is the error's size it is not. */
TEST(few_programs_and_spread) {
    enum { DRAWS = 40, FEW = 13 };
    size_t one = 0;
    for (uint64_t draw = 0; draw < DRAWS + 1; draw++) {
        made d = make(draw < DRAWS ? FEW : 200, 2, 100 + draw);
        for (size_t i = 0; i < d.n; i++) {
            const double spread = 0.1 * exp(0.7 * normal(draw, i)),
                         error = draw < DRAWS ? 0.3 : spread;
            d.group[i] = (uint32_t)i;
            const double m = d.y[i] + error * normal(draw + 1000, i),
                         away = i % 2 ? spread : -spread;
            d.kind[i] = m + away;
            d.kind[d.n + i] = m - away;
        }
        cd_calibration_input in = in_of(&d);
        in.n_fold = 1;
        in.fold = NULL;
        cd_calibration *c = fit_opt(&in, cd_calibration_options_default());
        double least = INFINITY, most = 0;
        apply(c, &d, &second);
        for (size_t i = 0; i < d.n; i++) {
            least = fmin(least, second.sigma[i]);
            most = fmax(most, second.sigma[i]);
        }
        if (draw < DRAWS) one += most < 1.001 * least;
        else assert_true(most > 4 * least);
        cd_calibration_free(c);
        made_free(&d);
    }
    assert_true(one >= DRAWS * 9 / 10);
}

TEST(outside_of_a_range) {
    const float x[] = {0, 5, 1, 10, 5, 3};
    const float far[] = {12, 5, 2}, odd[] = {5, 6, 2}, in[] = {5, 5, 2};
    float range[6];
    size_t n;
    cd_calibration_range_add(range, x, 1, 3, true);
    cd_calibration_range_add(range, x + 3, 1, 3, false);
    assert_close(cd_calibration_outside_of(range, far, 3, &n), 0.2, 1e-12, 0);
    /* never moved in training */
    assert_close(cd_calibration_outside_of(range, odd, 3, &n), 1, 0, 0);
    assert_close(cd_calibration_outside_of(range, in, 3, &n), 0, 0, 0);
    assert_int_equal(n, 0);
}

TEST(flags_the_foreign) {
    size_t known = 0;
    made far = make(100, KINDS, 77);
    for (size_t i = 0; i < N_NEW; i++) known += first.flags[i] & CD_CALIBRATION_OUT_OF_RANGE;
    assert_true(known < N_NEW / 20);
    for (size_t i = 0; i < 100; i++) far.x[i * W + W - 1] = 1;
    apply(fitted, &far, &second);
    for (size_t i = 0; i < 100; i++) assert_int_equal(second.flags[i], CD_CALIBRATION_OUT_OF_RANGE);
    made_free(&far);
}

/* Few programs, whose sigma is not from trees: F estimators instead of one change it by
 * sqrt(1 - 0.083 (F-1)/F), and nothing else but the flags. */
TEST(averages_err_less) {
    made d = make(200, 1, 5);
    cd_calibration_input in = in_of(&d);
    cd_calibration *b = fit_opt(&in, cd_calibration_options_default());
    in.n_fold = 1;
    in.fold = NULL;
    cd_calibration *a = fit_opt(&in, cd_calibration_options_default());
    assert_close(cd_calibration_info_of(a).shrink, 1, 0, 0);
    assert_close(cd_calibration_info_of(b).shrink, sqrt(1 - 0.083 * 0.8), 1e-12, 0);
    apply(a, &d, &first);
    apply(b, &d, &second);
    for (size_t i = 0; i < d.n; i++)
        assert_close(second.sigma[i], first.sigma[i] * cd_calibration_info_of(b).shrink, 1e-9, 0);
    cd_calibration_free(a);
    cd_calibration_free(b);
    made_free(&d);
    apply(fitted, &fresh, &first);
}

/* MAPE of programs of the fit: as members of their fold, or as new ones. */
static double mape_of(bool by_fold) {
    void *scratch = cd_mem_alloc(cd_calibration_scratch_bytes(fitted));
    double sum = 0;
    for (size_t i = 0; i < old.n; i++) {
        double kind[KINDS], point, median, sigma, low, high;
        uint32_t flags;
        cdmpp_err err = {0};
        const cd_calibration_output out = {&point, &median, &sigma, &low, &high, &flags, NULL};
        for (size_t k = 0; k < KINDS; k++) kind[k] = old.kind[k * old.n + i];
        assert_ok(cd_calibration_apply(fitted, kind, old.x + i * W, 1,
                                       by_fold ? (int)old.fold[i] : -1, scratch, &out, &err));
        sum += fabs(expm1(point - old.y[i]));
    }
    cd_mem_free(scratch);
    return sum / (double)old.n;
}

/* The boosters of sigma know where a program of the fit was wrong, and the point of least MAPE
 * follows sigma. So a program of the fit is answered as a new one only by the booster that its fold
 * is not in. */
TEST(fold_of_the_fit) {
    const double told = cd_calibration_info_of(fitted).mape_point;
    assert_close(mape_of(true), told, 0.01, 0);
    assert_true(mape_of(false) < 0.98 * told);
}

/* ---- odd inputs ---- */
TEST(few_programs) {
    for (size_t n = 2; n <= 60; n += 29) {
        made d = make(n, 3, 9);
        cd_calibration_input in = in_of(&d);
        cd_calibration_options opt = cd_calibration_options_default();
        opt.point = CD_CALIBRATION_MEDIAN;
        in.n_fold = 1;
        in.fold = NULL;
        cd_calibration *c = fit_opt(&in, opt);
        assert_int_equal(cd_calibration_info_of(c).n_sigma, 0);
        apply(c, &d, &second);
        for (size_t i = 0; i < n; i++) {
            assert_true(isfinite(second.low[i]) && second.low[i] <= second.high[i] &&
                        second.sigma[i] > 0);
            assert_memory_equal(&second.point[i], &second.median[i], sizeof(double));
            /* fewer than 19 errors: up to the farthest */
            assert_true(n > 19 ||
                        (d.y[i] >= second.low[i] - 1e-9 && d.y[i] <= second.high[i] + 1e-9));
        }
        cd_calibration_free(c);
        made_free(&d);
    }
}

TEST(perfect_kinds) {
    made d = make(400, 1, 9);
    memcpy(d.kind, d.y, d.n * sizeof *d.y);
    const cd_calibration_input in = in_of(&d);
    cd_calibration *c = fit_opt(&in, cd_calibration_options_default());
    apply(c, &d, &second);
    for (size_t i = 0; i < d.n; i++) {
        assert_close(second.point[i], d.y[i], 0, 1e-4);
        assert_true(second.sigma[i] > 0 && second.sigma[i] < 1e-3);
    }
    cd_calibration_free(c);
    made_free(&d);
}

/* One estimator a kind: folds are cut inside, by task. */
TEST(without_folds) {
    made d = make(600, KINDS, 21);
    cd_calibration_input in = in_of(&d);
    float range[2 * W];
    for (size_t c = 0; c < W; c++) {
        range[c] = -1;
        range[W + c] = 2;
    }
    in.n_fold = 1;
    in.fold = NULL;
    in.range = range;
    cd_calibration *c = fit_opt(&in, cd_calibration_options_default());
    const cd_calibration_info info = cd_calibration_info_of(c);
    assert_int_equal(info.n_sigma, 5);
    assert_true(info.decile_ratio_log > 2);
    assert_close(info.flagged, 0, 0, 0);
    cd_calibration_free(c);
    made_free(&d);
}

TEST(bad_input) {
    cdmpp_err err = {0};
    cd_calibration *c;
    cd_calibration_options opt = cd_calibration_options_default();
    made d = make(50, KINDS, 9);
    cd_calibration_input in = in_of(&d);
    in.n_kind = 9;
    assert_status(cd_calibration_fit(&in, &opt, &c, &err), CDMPP_ESCHEMA);
    in = in_of(&d);
    in.n = 1;
    assert_status(cd_calibration_fit(&in, &opt, &c, &err), CDMPP_ESCHEMA);
    in = in_of(&d);
    d.fold[7] = FOLDS;
    assert_status(cd_calibration_fit(&in, &opt, &c, &err), CDMPP_ESCHEMA);
    d.fold[7] = 0;
    d.x[3] = (float)NAN;
    assert_status(cd_calibration_fit(&in, &opt, &c, &err), CDMPP_ENUMERIC);
    d.x[3] = 0;
    d.kind[3] = (double)INFINITY;
    assert_status(cd_calibration_fit(&in, &opt, &c, &err), CDMPP_ENUMERIC);
    assert_non_null(strstr(err.msg, "program 3"));
    void *scratch = cd_mem_alloc(cd_calibration_scratch_bytes(fitted));
    const cd_calibration_output none = {0};
    assert_status(cd_calibration_apply(fitted, d.kind, d.x, d.n, -1, scratch, &none, &err),
                  CDMPP_ENUMERIC);
    cd_mem_free(scratch);
    opt.level = 1;
    assert_status(cd_calibration_fit(&in, &opt, &c, &err), CDMPP_ERANGE);
    made_free(&d);
}

TEST(out_of_memory) {
    made few = make(60, 3, 9), many = make(600, 1, 9);
    const made *of[] = {&few, &many};
    for (int w = 0; w < 2; w++) {
        const cd_calibration_input in = in_of(of[w]);
        const cd_calibration_options opt = cd_calibration_options_default();
        FAULT_SWEEP(f, 1) {
            cd_calibration *c = NULL;
            f.st = cd_calibration_fit(&in, &opt, &c, &f.err);
            cd_calibration_free(c);
        }
    }
    made_free(&few);
    made_free(&many);
}

TESTS(setup, teardown, interval_holds, sigma_is_the_deviation, knows_the_least_certain,
      point_has_the_least_mape, better_kind_weighs_more, any_number_of_threads,
      any_order_of_programs, any_cut_of_apply, quantiles_count_tasks, few_errors_hold_the_next,
      few_programs_and_spread, outside_of_a_range, flags_the_foreign, averages_err_less,
      fold_of_the_fit, few_programs, perfect_kinds, without_folds, bad_input, out_of_memory)
