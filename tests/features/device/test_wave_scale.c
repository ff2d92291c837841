/* wave_scale: each closed form against values computed by hand, on two devices with round
 * numbers. */
#include "features/device/wave_scale.h"
#include "check.h"

#include <math.h>
#include <string.h>

#define UNKNOWN CD_DEVICE_UNKNOWN

/* 1000 MHz, 10 cores, 100 GB/s; the other: 2000 MHz, 20 cores, 400 GB/s. */
static cd_device device(const char *name, double clock, double cores, double bandwidth) {
    cd_device d = {.name = name, .kind = CD_DEVICE_GPU};
    d.clock_mhz = clock;
    d.cores = cores;
    d.bandwidth_gb_s = bandwidth;
    d.core_threads = 2048;
    return d;
}

static void two(cd_device d[2]) {
    d[0] = device("slow", 1000, 10, 100);
    d[1] = device("fast", 2000, 20, 400);
}

static cd_wave_scale_answer scaled(const cd_device d[2], double balance, double blocks,
                                   double launch_s) {
    const cd_wave_scale_kernel k = {.time_s = 1e-3,
                                    .launch_s = launch_s,
                                    .balance = balance,
                                    .blocks = blocks,
                                    .block_threads = 256};
    cd_wave_scale_answer a = {0};
    cdmpp_err err = {0};
    assert_ok(cd_wave_scale(&k, &d[0], &d[1], &a, &err));
    return a;
}

/* Four times the cores: bandwidth 1/4, units 1/2 * 1/4 = 1/8. */
TEST(a_large_kernel_scales_by_bandwidth_and_units) {
    cd_device d[2];
    two(d);
    d[1].cores = 40;
    const cd_wave_scale_answer bytes = scaled(d, 0, 0, 0), ridge = scaled(d, 1, 0, 0),
                               ops = scaled(d, 4, 0, 0);
    assert_int_equal(bytes.form, CD_WAVE_SCALE_ROOFLINE);
    assert_close(bytes.gamma, 1, 1e-12, 0);
    assert_close(bytes.time_s, 0.25e-3, 1e-12, 0);
    assert_close(ridge.gamma, 0.5, 1e-12, 0);
    assert_close(ridge.time_s, 1e-3 / sqrt(4 * 8), 1e-12, 0); /* 0.17678 ms */
    assert_close(ops.gamma, 0.125, 1e-12, 0);
    assert_close(ops.time_s, 1e-3 * 0.1363134666, 1e-9, 0); /* 4^-0.125 * 8^-0.875 */
    assert_close(scaled(d, 0.5, 0, 0).gamma, 0.75, 1e-12, 0);
    assert_close(scaled(d, INFINITY, 0, 0).time_s, 0.125e-3, 1e-12, 0);
}

/* 15 blocks of 256: 8 to a core. 2 rounds on 10 cores, 1 on 20; clock 1/2: a factor of 1/4 to the
 * power of 1/2. */
TEST(a_grid_below_one_wave_scales_by_rounds_of_blocks) {
    cd_device d[2];
    two(d);
    const cd_wave_scale_answer a = scaled(d, 1, 15, 0);
    assert_int_equal(a.form, CD_WAVE_SCALE_WAVES);
    assert_close(a.time_s, 0.5e-3, 1e-12, 0);
    assert_close(scaled(d, 1, 10, 0).time_s, 1e-3 / sqrt(2), 1e-12, 0); /* 1 round on both */
    /* no operations: nothing that the clock changes */
    assert_close(scaled(d, 0, 10, 0).time_s, 1e-3, 1e-12, 0);
}

/* A wave of the slow one is 10 * 8 blocks. */
TEST(a_grid_of_a_whole_wave_is_large) {
    cd_device d[2];
    two(d);
    assert_int_equal(scaled(d, 1, 79, 0).form, CD_WAVE_SCALE_WAVES);
    assert_int_equal(scaled(d, 1, 80, 0).form, CD_WAVE_SCALE_ROOFLINE);
}

/* One that fills a wave on one GPU alone is large, too. */
TEST(a_wave_is_asked_for_on_both) {
    cd_device d[2];
    two(d);
    d[1].core_threads = 512; /* 20 * 2 blocks */
    assert_int_equal(scaled(d, 1, 39, 0).form, CD_WAVE_SCALE_WAVES);
    assert_int_equal(scaled(d, 1, 40, 0).form, CD_WAVE_SCALE_ROOFLINE);
}

TEST(the_launch_stays) {
    cd_device d[2];
    two(d);
    assert_close(scaled(d, 0, 0, 0.2e-3).time_s, 0.2e-3 + 0.8e-3 / 4, 1e-12, 0);
}

TEST(without_clock_cores_or_balance_only_bandwidth_is_left) {
    cd_device d[2];
    two(d);
    assert_int_equal(scaled(d, NAN, 15, 0).form, CD_WAVE_SCALE_BANDWIDTH);
    assert_close(scaled(d, NAN, 15, 0).time_s, 0.25e-3, 1e-12, 0);
    d[0].clock_mhz = UNKNOWN;
    assert_int_equal(scaled(d, 4, 15, 0).form, CD_WAVE_SCALE_BANDWIDTH);
    assert_close(scaled(d, 4, 15, 0).time_s, 0.25e-3, 1e-12, 0);
    d[0].clock_mhz = 1000;
    d[1].cores = UNKNOWN;
    assert_int_equal(scaled(d, 4, 15, 0).form, CD_WAVE_SCALE_BANDWIDTH);
}

/* How many threads a core holds is not known: nobody can say that the grid is small. */
TEST(without_threads_of_a_core_a_kernel_is_large) {
    cd_device d[2];
    two(d);
    d[0].core_threads = UNKNOWN;
    assert_int_equal(scaled(d, 1, 15, 0).form, CD_WAVE_SCALE_ROOFLINE);
}

TEST(there_and_back_is_the_same_time) {
    cd_device d[2];
    two(d);
    cd_wave_scale_answer a = scaled(d, 1, 1000, 0.1e-3), b;
    cdmpp_err err = {0};
    assert_ok(cd_wave_scale(&(cd_wave_scale_kernel){.time_s = a.time_s,
                                                    .launch_s = 0.1e-3,
                                                    .balance = 1,
                                                    .blocks = 1000,
                                                    .block_threads = 256},
                            &d[1], &d[0], &b, &err));
    assert_close(b.time_s, 1e-3, 1e-12, 0);
}

TEST(what_cannot_be_scaled_is_an_error) {
    cd_device d[2];
    two(d);
    cd_wave_scale_kernel k = {.time_s = 1e-3, .balance = 1};
    cd_wave_scale_answer a;
    cdmpp_err err = {0};
    k.launch_s = 2e-3;
    assert_int_equal(cd_wave_scale(&k, &d[0], &d[1], &a, &err), CDMPP_ERANGE);
    k.launch_s = 0;
    k.time_s = 0;
    assert_int_equal(cd_wave_scale(&k, &d[0], &d[1], &a, &err), CDMPP_ERANGE);
    k.time_s = 1e-3;
    d[1].bandwidth_gb_s = UNKNOWN;
    assert_int_equal(cd_wave_scale(&k, &d[0], &d[1], &a, &err), CDMPP_EMODEL);
    assert_string_equal(err.key, "bandwidth_gb_s");
    d[1].kind = CD_DEVICE_CPU;
    assert_int_equal(cd_wave_scale(&k, &d[0], &d[1], &a, &err), CDMPP_EMODEL);
}

TESTS(NULL, NULL, a_large_kernel_scales_by_bandwidth_and_units,
      a_grid_below_one_wave_scales_by_rounds_of_blocks, a_grid_of_a_whole_wave_is_large,
      a_wave_is_asked_for_on_both, the_launch_stays,
      without_clock_cores_or_balance_only_bandwidth_is_left,
      without_threads_of_a_core_a_kernel_is_large, there_and_back_is_the_same_time,
      what_cannot_be_scaled_is_an_error)
