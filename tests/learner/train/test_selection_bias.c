/* The fastest program of each task: found by a slow reading, and what names the tasks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "learner/train/selection_bias.h"

enum { N = 400, GROUPS = 30 };

static void test_ratio_is_of_the_fastest(void **state) {
    cdmpp_err err = {0};
    double y[N], p[N];
    uint32_t group[N];
    cd_selection_bias got;
    (void)state;
    for (int i = 0; i < N; i++) {
        y[i] = 1e-6 * (double)(1 + cd_rng_at(1, (uint64_t)i) % 100000);
        p[i] = y[i] * exp(2 * cd_rng_unit(2, (uint64_t)i) - 1);
        group[i] = (uint32_t)(cd_rng_at(3, (uint64_t)i) % GROUPS);
    }
    group[0] = GROUPS; /* a task of one program says nothing */
    double r[GROUPS], mean = 0, square = 0;
    for (uint32_t g = 0; g < GROUPS; g++) {
        int best = -1;
        for (int i = 0; i < N; i++)
            if (group[i] == g && (best < 0 || y[i] < y[best])) best = i;
        assert_true(best >= 0);
        r[g] = log(y[best] / p[best]);
        mean += r[g] / GROUPS;
    }
    for (int g = 0; g < GROUPS; g++) square += (r[g] - mean) * (r[g] - mean) / (GROUPS - 1);
    assert_ok(cd_selection_bias_of(y, p, group, N, &got, &err));
    assert_int_equal(got.n, GROUPS);
    assert_close(got.ratio, exp(mean), 1e-12, 0);
    assert_close(got.spread, sqrt(square), 1e-9, 0);
}

/* Answers c times too high: the ratio is 1 / c, and tells nothing of the rest. */
static void test_scale_comes_out(void **state) {
    cdmpp_err err = {0};
    double y[20], p[20];
    uint32_t group[20];
    cd_selection_bias got;
    (void)state;
    for (int i = 0; i < 20; i++) {
        y[i] = 1 + i;
        p[i] = 3 * y[i];
        group[i] = (uint32_t)(i % 4);
    }
    assert_ok(cd_selection_bias_of(y, p, group, 20, &got, &err));
    assert_close(got.ratio, 1.0 / 3, 1e-12, 0);
    assert_close(got.spread, 0, 0, 1e-7);
    assert_ok(cd_selection_bias_of(y, p, group, 0, &got, &err));
    assert_int_equal(got.n, 0);
    assert_close(got.ratio, 1, 0, 0);
}

/* Errors of a known width around the truth, and tasks whose level is off, too: the width is found,
 * and nothing is left over once the others are known, where the ratio over the prediction alone is
 * far from 1. */
static void test_among_the_others(void **state) {
    enum { TASKS = 400, EACH = 20 };
    static double y[TASKS * EACH], p[TASKS * EACH];
    static uint32_t group[TASKS * EACH];
    cdmpp_err err = {0};
    cd_selection_bias got;
    (void)state;
    for (uint64_t i = 0; i < TASKS * EACH; i++) {
        const double u = 1 - cd_rng_unit(5, 2 * i), v = cd_rng_unit(5, 2 * i + 1);
        group[i] = (uint32_t)(i / EACH);
        p[i] = 1e-5 * exp(0.3 * cd_rng_unit(6, i));
        y[i] = p[i] * exp(0.4 * sqrt(-2 * log(u)) * cos(2 * M_PI * v) +
                          0.2 * (double)(group[i] % 2) - 0.1);
    }
    assert_ok(cd_selection_bias_of(y, p, group, TASKS * EACH, &got, &err));
    assert_int_equal(got.n, TASKS);
    assert_close(got.within, 0.4, 0.05, 0);
    assert_true(got.ratio < 0.6);
    assert_close(got.among, 1, 0.03, 0);
    assert_true(got.among_spread < got.spread);
}

/* Two devices with answers off by different factors, a third with too few tasks. */
static void test_devices_apart(void **state) {
    enum { TASKS = 10, EACH = 5, LAST = 4 * EACH };
    double y[2 * TASKS * EACH + LAST], p[2 * TASKS * EACH + LAST];
    uint32_t group[2 * TASKS * EACH + LAST], device[2 * TASKS * EACH + LAST];
    const char *name[3] = {"a", "b \"c\"", "few"};
    cd_buf out = {0};
    cdmpp_err err = {0};
    (void)state;
    for (uint32_t i = 0; i < 2 * TASKS * EACH + LAST; i++) {
        group[i] = i / EACH;
        device[i] = group[i] / TASKS;
        y[i] = 1 + i % EACH;
        p[i] = y[i] * (device[i] ? 4 : 0.5);
    }
    assert_ok(cd_selection_bias_by_device(y, p, group, device, 2 * TASKS * EACH + LAST, name, 3,
                                          &out, &err));
    assert_non_null(strstr(out.p, "\"a\":{\"n\":10,\"ratio\":2,"));
    assert_non_null(strstr(out.p, "\"b \\\"c\\\"\":{\"n\":10,\"ratio\":0.25,"));
    assert_null(strstr(out.p, "few"));
    cd_buf_free(&out);
}

/* A name for each task on each device, once, in the order of the numbers. */
TEST(test_names_of_tasks) {
    static char *task[] = {"mm", "conv"};
    static const char *device[] = {"t4", "v100"};
    uint32_t program[] = {0, 1, 2, 3, 4, 5};
    uint32_t of_task[] = {0, 0, 1, 0, 1, 1};
    uint32_t of_device[] = {0, 0, 0, 1, 0, 0};
    uint32_t group[] = {0, 0, 1, 2, 1, 1};
    cd_dataset d = {.task_name = task, .task = of_task};
    /* the last one is of another part */
    cd_split split = {.n_program = {[CD_SPLIT_PART_TRAIN] = 5}};
    cd_training_set t = {.d = &d,
                         .split = &split,
                         .group = group,
                         .device = of_device,
                         .device_name = device,
                         .program = {[CD_SPLIT_PART_TRAIN] = program}};
    uint64_t id[] = {cd_stable_id_name("mm\nt4"), cd_stable_id_name("conv\nt4"),
                     cd_stable_id_name("mm\nv100")};
    cd_buf out = {0}, want = {0};
    cdmpp_err err = {0};
    assert_ok(cd_selection_bias_tasks(&t, &out, &err));
    qsort(id, 3, sizeof *id, cd_sort_by_u64);
    for (int k = 0; k < 3; k++)
        cd_buf_putf(&want, "%s\"%016llx\"", k ? "," : "[", (unsigned long long)id[k]);
    cd_buf_puts(&want, "]");
    assert_string_equal(out.p, want.p);
    cd_buf_free(&out);
    cd_buf_free(&want);
}

static void test_json(void **state) {
    const cd_selection_bias a = {3, 0.5, 0.25, 0.75, 2, 0.125}, b = {.ratio = 1, .among = 1};
    cd_buf out = {0}, tasks = {0}, of = {0}, none = {0};
    (void)state;
    cd_buf_puts(&tasks, "[\"00000000000000ff\"]");
    cd_buf_puts(&of, "\"chip\":{}");
    cd_selection_bias_json(&out, &a, &b, &of, &none, &tasks);
    assert_string_equal(
        out.p, "\"best\":{\"train\":{\"n\":3,\"ratio\":0.5,\"spread\":0.25,\"within\":0.75,"
               "\"among\":2,\"among_spread\":0.125},"
               "\"validation\":{\"n\":0,\"ratio\":1,\"spread\":0,\"within\":0,\"among\":1,\"among_"
               "spread\":0},"
               "\"train_of\":{\"chip\":{}},\"validation_of\":{},\"tasks\":[\"00000000000000ff\"]}");
    cd_buf_free(&of);
    cd_buf_free(&out);
    cd_buf_free(&tasks);
}

TESTS(NULL, NULL, test_ratio_is_of_the_fastest, test_scale_comes_out, test_among_the_others,
      test_devices_apart, test_names_of_tasks, test_json)
