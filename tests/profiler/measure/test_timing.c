/* Laws of the timing policy, on programs and clocks that are made up. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "base/core/core.h"
#include "profiler/measure/measure.h"

/* A program whose run takes `base`, with noise; the clock moves only while it runs or flushes. */
typedef struct {
    double base, noise, spike; /* seconds; relative; every 7th repeat takes that much longer */
    double flush_s, now, tick;
    double first; /* the first run's factor: cold caches */
    unsigned runs, calls, flushes, disturbed_every;
    uint64_t seed;
} fake;

static double fake_now(void *ctx) {
    const fake *f = ctx;
    return f->tick > 0 ? floor(f->now / f->tick) * f->tick : f->now;
}

static cdmpp_status fake_run(void *ctx, unsigned times, double *seconds, cdmpp_err *err) {
    (void)err;
    fake *f = ctx;
    double t = 0;
    for (unsigned i = 0; i < times; i++)
        t += f->base * (f->runs++ == 0 && f->first > 0 ? f->first : 1);
    t *= 1 + f->noise * (2 * cd_rng_unit(f->seed, f->calls) - 1);
    if (f->spike > 0 && f->calls % 7 == 6) t *= f->spike;
    f->calls++;
    f->now += t;
    *seconds = t;
    return CDMPP_OK;
}

static cdmpp_status fake_flush(void *ctx, cdmpp_err *err) {
    (void)err;
    fake *f = ctx;
    f->now += f->flush_s;
    f->flushes++;
    return CDMPP_OK;
}

static bool fake_disturbed(void *ctx) {
    const fake *f = ctx;
    return f->disturbed_every && f->calls % f->disturbed_every == 0;
}

static cd_timing measure(fake *f, cd_timing_policy p) {
    const cd_timing_subject s = {f, fake_now, fake_run, fake_flush, fake_disturbed};
    cdmpp_err err = {0};
    cd_timing t;
    p = cd_timing_defaults(p, 0);
    assert_ok(cd_timing_run(&p, &s, &t, &err));
    return t;
}

TEST(test_constant) {
    for (double base = 1e-8; base < 0.01; base *= 10) {
        fake f = {.base = base};
        const cd_timing t = measure(&f, (cd_timing_policy){0});
        assert_close(t.median_s, base, 1e-6, 0);
        assert_close(t.mean_s, base, 1e-6, 0);
        assert_close(t.min_s, base, 1e-6, 0);
        assert_true(t.cv < 1e-6 && t.ci < 1e-6);
        assert_int_equal(t.n, 5); /* no more than asked for */
        assert_true(t.number * base >= 0.00099 &&
                    (t.number == 1 || (t.number - 1) * base < 0.0011));
    }
}

/* Doubling all durations and the budget doubles the figures. */
TEST(test_scale) {
    fake f = {.base = 3e-4, .noise = 0.05, .seed = 1}, g = {.base = 6e-4, .noise = 0.05, .seed = 1};
    const cd_timing a =
        measure(&f, (cd_timing_policy){.budget_s = 0.1, .warmup_s = 0.005, .min_repeat_s = 0.001});
    const cd_timing b =
        measure(&g, (cd_timing_policy){.budget_s = 0.2, .warmup_s = 0.010, .min_repeat_s = 0.002});
    assert_int_equal(a.n, b.n);
    assert_int_equal(a.number, b.number);
    assert_close(2 * a.median_s, b.median_s, 1e-9, 0);
    assert_close(2 * a.std_s, b.std_s, 1e-6, 0);
    assert_close(a.cv, b.cv, 1e-6, 0);
}

/* More noise needs more repeats, and the interval holds what it promises. */
TEST(test_noise) {
    unsigned last = 0, inside = 0, trials = 0;
    for (double noise = 0.005; noise < 0.2; noise *= 4) {
        unsigned n = 0;
        for (uint64_t seed = 0; seed < 50; seed++) {
            fake f = {.base = 1e-3, .noise = noise, .seed = seed};
            const cd_timing t = measure(&f, (cd_timing_policy){.budget_s = 1});
            n += t.n;
            assert_true(t.ci <= 0.01 || t.n == 100);
            inside += fabs(t.mean_s / 1e-3 - 1) <= fmax(t.ci, 0.005);
            trials++;
        }
        assert_true(n >= last);
        last = n;
    }
    assert_true(inside > trials * 85 / 100);
}

TEST(test_outliers) {
    fake f = {.base = 1e-3, .noise = 0.01, .spike = 8};
    const cd_timing t = measure(&f, (cd_timing_policy){.budget_s = 1, .min_repeat = 21});
    assert_close(t.median_s, 1e-3, 0.01, 0);
    assert_close(t.mean_s, 1e-3, 0.01, 0);
    assert_true(t.n - t.n_kept >= 2);
    for (unsigned i = 0; i < t.n; i++)
        if (t.sample_s[i] > 5e-3) assert_false(t.kept[i]);
}

TEST(test_budget) {
    fake f = {.base = 1e-3, .noise = 0.5, .seed = 3};
    const cd_timing t = measure(&f, (cd_timing_policy){.budget_s = 0.05});
    assert_true(f.now <= 0.0525);
    assert_true(t.n > 5 && t.ci > 0.01);
    fake g = {.base = 0.04, .noise = 0.5, .seed = 3}; /* two repeats even so */
    assert_int_equal(measure(&g, (cd_timing_policy){.budget_s = 0.05}).n, 2);
    fake h = {.base = 3}; /* longer than the budget: once warm, once more */
    const cd_timing u = measure(&h, (cd_timing_policy){.budget_s = 0.05});
    assert_int_equal(u.n, 1);
    assert_int_equal(h.runs, 2);
    assert_close(u.ci, 1, 0, 0);
    assert_close(u.median_s, 3, 1e-9, 0);
}

/* Times that are exact: a repeat that ends with the budget is made, and one that is as long as the
 * budget is not too long. */
TEST(test_budget_ends) {
    static const struct {
        double base, budget;
        unsigned n;
    } t[] = {{0.25, 1.25, 3}, {0.25, 1.2, 2}, {0.25, 0.5, 2},
             {0.25, 0.25, 2}, {0.25, 0.2, 1}, {0.25, 0, 1}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        fake f = {.base = t[k].base};
        assert_int_equal(
            measure(&f, (cd_timing_policy){.budget_s = t[k].budget, .warmup_s = 0.375}).n, t[k].n);
    }
}

/* Nothing depends on what the clock says at the beginning. All times are exact. */
TEST(test_any_beginning) {
    static const cd_timing_policy how[] = {{0},
                                           {.budget_s = 0.25},
                                           {.budget_s = 0.25, .warmup_s = 0.125},
                                           {.cold = true},
                                           {.cold = true, .budget_s = 0.5, .min_repeat = 9},
                                           {.cool = true, .max_repeat = 3}};
    static const double begin[] = {0, 1, -3, 4096, -65536};
    for (size_t k = 0; k < sizeof how / sizeof *how; k++)
        for (int power = -12; power <= 0; power += 3) {
            cd_timing first = {0};
            unsigned runs = 0;
            for (size_t b = 0; b < sizeof begin / sizeof *begin; b++) {
                fake f = {.base = ldexp(1, power),
                          .now = begin[b],
                          .flush_s = 0.03125,
                          .disturbed_every = 4};
                const cd_timing t = measure(&f, how[k]);
                if (!b) first = t, runs = f.runs;
                assert_true(t.n == first.n && t.number == first.number &&
                            t.disturbed == first.disturbed && t.n_kept == first.n_kept &&
                            f.runs == runs);
                assert_true(memcmp(t.sample_s, first.sample_s, sizeof t.sample_s) == 0);
            }
        }
}

/* The first run, with cold caches and page faults, is in no figure. */
TEST(test_warm_up) {
    fake f = {.base = 1e-5, .first = 500};
    const cd_timing t = measure(&f, (cd_timing_policy){0});
    assert_close(t.mean_s, 1e-5, 1e-6, 0);
    assert_int_equal(t.number, 100);
}

TEST(test_cold) {
    fake f = {.base = 1e-5, .flush_s = 0.002};
    const cd_timing t = measure(&f, (cd_timing_policy){.cold = true});
    assert_int_equal(t.number, 1);
    assert_int_equal(f.flushes, t.n);
    assert_close(t.mean_s, 1e-5, 1e-6, 0);    /* the flush is in no sample, */
    fake g = {.base = 1e-5, .flush_s = 0.04}; /* but in the budget */
    assert_int_equal(measure(&g, (cd_timing_policy){.cold = true, .budget_s = 0.1}).n, 2);
}

TEST(test_disturbed) {
    fake f = {.base = 1e-3, .noise = 0.001, .disturbed_every = 2};
    const cd_timing t = measure(&f, (cd_timing_policy){.budget_s = 1});
    assert_true(t.disturbed > 0 && t.n_kept <= t.n - t.disturbed);
    assert_true(t.n - t.disturbed >= 5);
    fake g = {.base = 1e-3, .disturbed_every = 1}; /* nothing else to be had: they count */
    const cd_timing u = measure(&g, (cd_timing_policy){.budget_s = 0.05});
    assert_int_equal(u.disturbed, u.n);
    assert_true(u.n_kept > 2);
}

static cdmpp_status run_nan(void *ctx, unsigned times, double *seconds, cdmpp_err *err) {
    (void)ctx, (void)times, (void)err;
    *seconds = NAN;
    return CDMPP_OK;
}

TEST(test_not_a_number) {
    fake f = {.base = 1};
    const cd_timing_subject s = {.ctx = &f, .now = fake_now, .run = run_nan};
    const cd_timing_policy p = cd_timing_defaults((cd_timing_policy){0}, 0);
    cdmpp_err err = {0};
    cd_timing t;
    assert_status(cd_timing_run(&p, &s, &t, &err), CDMPP_ENUMERIC);
}

/* The order of samples does not matter to the figures. */
TEST(test_figures) {
    cd_timing a = {.n = 6, .sample_s = {1, 1.01, 0.99, 5, 1.02, 0.98}};
    cd_timing b = {.n = 6, .sample_s = {5, 0.98, 0.99, 1, 1.01, 1.02}};
    cd_timing_figures(&a, NULL);
    cd_timing_figures(&b, NULL);
    assert_int_equal(a.n_kept, 5);
    assert_close(a.median_s, 1, 1e-12, 0);
    assert_close(a.mean_s, b.mean_s, 1e-12, 0);
    assert_close(a.std_s, 0.0158113883, 1e-6, 0);
    assert_close(a.ci, b.ci, 1e-12, 0);
    assert_close(a.ci, 2.776 * 0.0158113883 / sqrt(5), 1e-6, 0);
    const bool out[6] = {false, false, false, true, true, true};
    cd_timing_figures(&a, out);
    assert_int_equal(a.n_kept, 3);
    assert_close(a.mean_s, 1, 1e-12, 0);
}

static double ticking(void *ctx) {
    double *t = ctx;
    *t += 1e-7;
    return floor(*t / 1e-3) * 1e-3;
}

static double backwards(void *ctx) {
    int *k = ctx;
    return ++*k == 500 ? 1e-9 : *k * 1e-6;
}

TEST(test_clock) {
    double t = 0;
    int k = 0;
    assert_close(cd_timing_clock_check(ticking, &t).tick_s, 1e-3, 1e-6, 0);
    assert_false(cd_timing_clock_check(backwards, &k).monotonic);
    /* of this machine */
    const cd_timing_clock_quality q = cd_timing_clock_check(cd_timing_clock_now, NULL);
    assert_true(q.monotonic && q.tick_s < 1e-3 && q.cost_s < 1e-3 && q.cost_s > 0);
    assert_close(cd_timing_defaults((cd_timing_policy){0}, 1e-3).min_repeat_s, 1, 1e-12, 0);
}

/* Many courses with clocks that begin anywhere, every figure of them: as they were. After a change
 * of the policy on purpose, take over the digest. */
TEST(test_courses) {
    static const double base[] = {1e-7, 3e-4, 0.02}, noise[] = {0, 0.03, 0.3};
    cd_buf b = {0};
    char md5[33];
    for (unsigned k = 0; k < 3 * 3 * 2 * 2 * 3 * 2; k++) {
        fake f = {.base = base[k % 3],
                  .noise = noise[k / 3 % 3],
                  .spike = k / 9 % 2 ? 9 : 0,
                  .disturbed_every = k / 18 % 2 ? 3 : 0,
                  .first = 3,
                  .now = 100 + k,
                  .flush_s = 2e-4,
                  .seed = k};
        cd_timing_policy p = {.budget_s = k / 36 % 3 == 0   ? 0.01
                                          : k / 36 % 3 == 1 ? 0.1
                                                            : 1,
                              .cold = k / 108 % 2,
                              .max_repeat = 40,
                              .min_repeat = 3 + k % 5};
        const cd_timing t = measure(&f, p);
        cd_buf_putf(&b, "%u %u %u %u %u %u %.6g %.6g %.6g %.4f %.4f\n", t.n, t.n_kept, t.number,
                    t.disturbed, f.runs, f.flushes, t.min_s, t.median_s, t.mean_s, t.cv, t.ci);
    }
    cd_md5_hex(b.p, b.n, md5);
    assert_string_equal(md5, "8d226b7af1d8d7a85402f24a51f1008f");
    cd_buf_free(&b);
}

TESTS(NULL, NULL, test_constant, test_scale, test_noise, test_outliers, test_budget,
      test_budget_ends, test_any_beginning, test_warm_up, test_cold, test_disturbed,
      test_not_a_number, test_figures, test_clock, test_courses)
