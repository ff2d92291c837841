/* The written 0/1 problem of two operators on two devices, line by line, as one would write it by
 * hand. */
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "predictor/partition/placement/placement.h"

static cdmpp_err err;

/* Operator 0 hands 1000 bytes to operator 1; a link leads from device 0 to 1 alone: 0.125 s and
 * 4000 bytes a second. */
static const cd_place_op op[] = {{"a", CD_PLACE_FREE, NULL}, {"b", CD_PLACE_FREE, NULL}};
static const cd_place_value value[] = {{.from = 0, .bytes = 1000, .first = 0, .n_to = 1}};
static const uint32_t to[] = {1};
static const cd_place_device device[] = {{"x", 1}, {"y", 1}};
static const cd_place_link link[] = {{.from = 0, .to = 1, .latency_s = 0.125, .bytes_per_s = 4000}};
static const double seconds[] = {0.5, 0.25, 3, 5};
static const cd_place_problem problem = {2, 1, 1, 2, 1, op, value, to, device, link, seconds};

static void test_sum(void **state) {
    cd_buf b = {0};
    (void)state;
    assert_ok(cd_place_lp(&problem, CD_PLACE_SUM, &b, &err));
    const char *text = strstr(b.p, "Minimize\n");
    assert_string_equal(text, "Minimize\n obj: 0 one + 500000 x_0_0 + 250000 x_0_1\n   + 3000000 "
                              "x_1_0 + 5000000 x_1_1\n   + 375000 z_0_0_1\n  \nSubject To\n"
                              " c0: + x_0_0 + x_0_1 = 1\n c1: + x_1_0 + x_1_1 = 1\n c2: x_0_0 + "
                              "x_1_1 - z_0_0_1 <= 1\n c3: x_0_1 + x_1_0 <= 1\n"
                              "Bounds\n one = 1\nBinary\n x_0_0\n x_0_1\n x_1_0\n x_1_1\nEnd\n");
    cd_buf_free(&b);
}

/* An operator that cannot be on the second device has no variable there. */
static void test_devices_that_cannot(void **state) {
    static const double some[] = {0.5, 0.25, 3, INFINITY};
    cd_place_problem p = problem;
    cd_buf b = {0};
    (void)state;
    p.seconds = some;
    assert_ok(cd_place_lp(&p, CD_PLACE_SUM, &b, &err));
    assert_non_null(strstr(b.p, "\n c1: + x_1_0 = 1\n"));
    assert_null(strstr(b.p, "x_1_1"));
    cd_buf_free(&b);
}

/* The rows of the makespan that have no far number. */
static void test_makespan(void **state) {
    static const char *const row[] = {
        " obj: M\n",
        ": + x_0_0 + x_0_1 = 1\n",
        ": M - s_0 - 500000 x_0_0 - 250000 x_0_1 >= 0\n",
        ": M - s_1 - 3000000 x_1_0 - 5000000 x_1_1 >= 0\n",
        ": s_1 - s_0 - 500000 x_0_0 - 250000 x_0_1 >= 0\n",
        ": x_0_0 + x_1_1 - z_0_0_1 <= 1\n",
        ": x_0_1 + x_1_0 <= 1\n",
        ": c_0_0_1 - s_0 - 500000 x_0_0 - 250000 x_0_1 >= 0\n",
        ": s_1 - c_0_0_1 - ",
        "\nBinary\n x_0_0\n x_0_1\n x_1_0\n x_1_1\n o_0_1\n z_0_0_1\nEnd\n"};
    cd_buf b = {0};
    (void)state;
    assert_ok(cd_place_lp(&problem, CD_PLACE_MAKESPAN, &b, &err));
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        if (!strstr(b.p, row[k])) fail_msg("no\n%sin\n%s", row[k], b.p);
    assert_null(strstr(b.p, "c_0_1_0")); /* no link leads back */
    /* far: the slowest place of each and the copy; a reader on 1 waits for it where both are
     * there */
    const char *wait = strstr(b.p, ": s_1 - c_0_0_1 - ");
    double far[2], rest;
    assert_int_equal(
        sscanf(wait, ": s_1 - c_0_0_1 - %lf x_0_0 - %lf x_1_1 >= - %lf", &far[0], &far[1], &rest),
        3);
    assert_true(far[0] == far[1] && far[0] >= 500000 + 375000 + 5000000);
    assert_close(rest, 2 * far[0] - 375000, 1e-12, 0);
    char name[16];
    for (int k = 0; k < 20; k++) { /* rows have names of their own */
        snprintf(name, sizeof name, " c%d:", k);
        const char *at = strstr(b.p, name);
        if (at && strstr(at + 1, name)) fail_msg("two rows%s", name);
        if (!at) assert_true(k > 9);
    }
    cd_place_problem many = problem;
    many.n_op = 65;
    assert_status(cd_place_lp(&many, CD_PLACE_MAKESPAN, &b, &err), CDMPP_ERANGE);
    cd_buf_free(&b);
}

/* Two values may be copied on one link, two operators be on one device: what is 1 in a row makes it
 * the plain order "later begins when the first has ended". */
TEST(test_orders_of_copies_and_operators) {
    static const cd_place_op three[] = {
        {"a", CD_PLACE_FREE, NULL}, {"b", CD_PLACE_FREE, NULL}, {"c", CD_PLACE_FREE, NULL}};
    static const cd_place_value both[] = {{.from = 0, .bytes = 1000, .first = 0, .n_to = 1},
                                          {.from = 1, .bytes = 2000, .first = 1, .n_to = 1}};
    static const uint32_t reader[] = {2, 2};
    static const double s[] = {0.5, 0.25, 3, 5, 1, 2};
    /* the two that are always 1 in it and the choice; microseconds */
    static const struct {
        const char *form;
        double binaries, after;
    } t[] = {
        {": c_1_0_1 - c_0_0_1 - %lf q_0_1_0_1 - %lf z_0_0_1 - %lf z_1_0_1 >= - %lf", 3, 375000},
        {": c_0_0_1 - c_1_0_1 + %lf q_0_1_0_1 - %lf z_0_0_1 - %lf z_1_0_1 >= - %lf", 2, 625000},
        {": s_1 - s_0 - %lf o_0_1 - %lf x_0_0 - %lf x_1_0 >= - %lf", 3, 500000},
        {": s_0 - s_1 + %lf o_0_1 - %lf x_0_0 - %lf x_1_0 >= - %lf", 2, 3000000},
        {": s_1 - s_0 - %lf o_0_1 - %lf x_0_1 - %lf x_1_1 >= - %lf", 3, 250000}};
    const cd_place_problem p = {3, 2, 2, 2, 1, three, both, reader, device, link, s};
    cd_buf b = {0};
    assert_ok(cd_place_lp(&p, CD_PLACE_MAKESPAN, &b, &err));
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        double far[3], rest;
        int n = 0;
        for (const char *at = strchr(b.p, ':'); at && n != 4; at = strchr(at + 1, ':'))
            n = sscanf(at, t[k].form, &far[0], &far[1], &far[2], &rest);
        if (n != 4) fail_msg("no row like%s in\n%s", t[k].form, b.p);
        assert_true(far[0] == far[1] && far[1] == far[2]);
        assert_close(rest, t[k].binaries * far[0] - t[k].after, 1e-12, 0);
    }
    assert_non_null(strstr(b.p, " q_0_1_0_1\n"));
    cd_buf_free(&b);
}

TESTS(NULL, NULL, test_orders_of_copies_and_operators, test_sum, test_devices_that_cannot,
      test_makespan)
