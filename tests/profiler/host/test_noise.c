/* What is too noisy to be written down, of made repeats and made load: no clock is read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "profiler/host/host.h"

static cdmpp_err err;

/* Repeats of a quiet machine, of one that is disturbed now and then, and of one that is disturbed
 * half of the time. */
TEST(repeats_that_lie_apart) {
    double quiet[8] = {1.02, 1, 1.01, 1.03, 1, 1.01, 1.02, 1.04};
    double once[8] = {1, 1, 1.01, 9, 1, 1.001, 1.02, 1};
    double half[8] = {1, 2, 1, 2.1, 1, 1.9, 2, 1.8};
    cd_noise n = {.others = 0};
    cd_noise_repeats(&n, "quiet", quiet, 8);
    assert_true(n.spread < 0.03 && !strcmp(n.worst, "quiet"));
    cd_noise_repeats(&n, "once", once, 8);
    assert_string_equal(n.worst, "quiet");
    assert_false(cd_noise_is_much(&n));
    cd_noise_repeats(&n, "half", half, 8);
    assert_close(n.spread, 0.9, 1e-9, 0);
    assert_string_equal(n.worst, "half");
    assert_true(cd_noise_is_much(&n));
    cd_noise_repeats(&n, "later", quiet, 8); /* the worst one stays */
    assert_string_equal(n.worst, "half");
}

/* The unit does not matter, nor the order; one repeat says nothing. */
TEST(laws) {
    for (unsigned k = 0; k < 50; k++) {
        double a[9], b[9];
        cd_noise x = {0}, y = {0}, z = {0};
        for (size_t i = 0; i < 9; i++) a[i] = 1 + (double)(cd_rng_at(k, i) % 1000) / 500;
        for (size_t i = 0; i < 9; i++) b[8 - i] = 1e-6 * a[i];
        cd_noise_repeats(&x, "a", a, 9);
        cd_noise_repeats(&y, "b", b, 9);
        cd_noise_repeats(&z, "c", a, 1);
        assert_true(x.spread >= 0);
        assert_close(x.spread, y.spread, 1e-12, 1e-9);
        assert_true(z.spread == 0);
    }
    cd_noise_repeats(NULL, "nobody asks", (double[2]){1, 2}, 2);
}

TEST(what_may_be_written) {
    static const struct {
        double spread, others;
        bool much;
    } t[] = {{0, 0, false},
             {CD_NOISE_SPREAD, CD_NOISE_OTHERS, false},
             {CD_NOISE_SPREAD + 0.01, 0, true},
             {0, CD_NOISE_OTHERS + 0.01, true},
             {0, (double)NAN, false},
             {2, (double)NAN, true}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const cd_noise n = {.spread = t[k].spread, .others = t[k].others, .worst = "probe_l3"};
        err = (cdmpp_err){0};
        assert_int_equal(cd_noise_is_much(&n), t[k].much);
        assert_status(cd_noise_check(&n, false, "links", "--keep-noisy", &err),
                      t[k].much ? CDMPP_ERANGE : CDMPP_OK);
        if (t[k].much)
            assert_true(strstr(err.msg, "probe_l3") && strstr(err.msg, "links") &&
                        strstr(err.msg, "--keep-noisy"));
        assert_ok(cd_noise_check(&n, true, "links", "--keep-noisy", &err));
    }
}

/* The worse of two measurements that make one file. */
TEST(joined) {
    cd_noise a = {.spread = 0.1, .worst = "a", .others = (double)NAN};
    cd_noise b = {.spread = 0.2, .worst = "b", .others = 0.05};
    cd_noise c = {.spread = 0, .others = 0.01};
    cd_noise_join(&a, &b);
    cd_noise_join(&a, &c);
    assert_close(a.spread, 0.2, 1e-12, 0);
    assert_close(a.others, 0.05, 1e-12, 0);
    assert_string_equal(a.worst, "b");
}

/* The hook of tests stands in for the clock. */
TEST(made_figures) {
    cd_noise n;
    assert_int_equal(setenv("CDMPP_TEST_NOISE", "0.5,0.25", 1), 0);
    cd_noise_begin(&n);
    cd_noise_end(&n);
    assert_close(n.spread, 0.5, 1e-12, 0);
    assert_close(n.others, 0.25, 1e-12, 0);
    assert_int_equal(unsetenv("CDMPP_TEST_NOISE"), 0);
    cd_noise_begin(&n);
    cd_noise_end(&n);
    assert_true(n.spread == 0 && (isnan(n.others) || (n.others >= 0 && n.others <= 1)));
}

/* The same program, run many times: on a quiet machine, beside a few interruptions, and beside a
 * program that has every second time slice. */
TEST(the_same_program) {
    enum { N = 200 };
    static const struct {
        size_t each;
        double longer;
        bool busy;
    } t[] = {{0, 0, false}, {40, 10, false}, {2, 3, true}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        double run[N];
        cd_noise_program p;
        for (size_t i = 0; i < N; i++)
            run[i] = 2e-3 * (1 + 0.01 * cd_rng_unit(k, i)) *
                     (t[k].each && i % t[k].each == 0 ? t[k].longer : 1);
        cd_noise_program_of(run, N, &p);
        assert_close(p.low_s, 2e-3, 0.02, 0);
        assert_int_equal(p.noise > 0.1, t[k].busy);
        assert_int_equal(p.high_s > 1.5 * p.low_s, t[k].busy);
        if (t[k].busy) assert_close(p.noise, log(2), 0.1, 0); /* it gets half of the processor */
    }
    cd_noise_program one;
    cd_noise_program_of((double[1]){1}, 1, &one);
    assert_true(one.noise == 0 && one.low_s == 0);
}

/* A sentence with both times and what to do, or none. */
TEST(a_busy_machine_is_told) {
    cd_noise_program p;
    assert_int_equal(setenv("CDMPP_TEST_NOISE", "0.8,0", 1), 0);
    cd_noise_program_run(1, 1, &p);
    assert_int_equal(unsetenv("CDMPP_TEST_NOISE"), 0);
    assert_close(p.noise, log(1.8), 1e-12, 0);
    assert_status(cd_noise_program_check(&p, 0.1, false, &err), CDMPP_ERANGE);
    assert_non_null(strstr(
        err.msg, "this machine is too busy: the same program took between 1 and 1.8 ms. Wait "));
    assert_non_null(strstr(err.msg, "or --force"));
    assert_ok(cd_noise_program_check(&p, 0.1, true, &err));
    assert_ok(cd_noise_program_check(&p, 0.6, false, &err));
}

/* Both clocks of a process go on while it computes; of one that is not there nothing is known. */
TEST(processor_time) {
    const double before = cd_process_time_own();
    for (int i = 0; i < 50; i++) (void)cd_noise_probe_loop();
    assert_true(cd_process_time_own() > before);
    assert_true(cd_process_time_of(getpid()) >= 0 &&
                cd_process_time_of(getpid()) <= cd_process_time_own() + 0.1);
    assert_true(cd_process_time_of(0x7ffffff0) == 0);
}

TESTS(NULL, NULL, repeats_that_lie_apart, laws, what_may_be_written, joined, made_figures,
      the_same_program, a_busy_machine_is_told, processor_time)
