/* filter: every program has one reason, draws do not depend on order. */
#include "dataset/split/split.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

/* 3 tasks x 2 devices x 50 lines; program i: task i%3, device i/3%2, i % 7 leaves. */
enum { T = 3, D = 2, N = 300 };
typedef struct {
    cd_dataset d;
    double y[N], std[N], flop[N];
    uint32_t rep[N], task[N], dev[N], src[N];
    uint8_t error[N], keep[N], asked[N];
    uint64_t line[N];
    int64_t row[N + 1], leaf[N + 1];
    cd_filter_count c;
} fix;
static char *tasks[] = {"t0", "t1", "t2"}, *devs[] = {"a", "b"}, *srcs[] = {"x/f.json"};

/* `flip`: the same programs in reverse order. */
static fix *build(int flip) {
    static fix two[2];
    fix *f = &two[flip];
    memset(f, 0, sizeof *f);
    for (int i = 0; i < N; i++) {
        const int k = flip ? N - 1 - i : i;
        f->task[i] = (uint32_t)(k % T);
        f->dev[i] = (uint32_t)(k / T % D);
        f->line[i] = (uint64_t)(k + 1);
        f->y[i] = (k + 1) * 1e-3;
        f->flop[i] = k % T == 2 ? -1 : 1e6 * (k % T + 1);
        f->rep[i] = 3;
        f->row[i + 1] = i + 1;
        f->leaf[i + 1] = f->leaf[i] + k % 7;
    }
    f->d = (cd_dataset){.n = N,
                        .row_ptr = f->row,
                        .leaf_ptr = f->leaf,
                        .latency_s = f->y,
                        .latency_mean_s = f->y,
                        .flop = f->flop,
                        .latency_std_s = f->std,
                        .repeats = f->rep,
                        .error = f->error,
                        .task = f->task,
                        .device = f->dev,
                        .source_file = f->src,
                        .source_line = f->line,
                        .n_task = T,
                        .n_device = D,
                        .n_source = 1,
                        .task_name = tasks,
                        .device_name = devs,
                        .source_name = srcs};
    return f;
}

static fix *filter(fix *f, cd_filter_spec s) {
    cdmpp_err err = {0};
    size_t sum = 0, kept = 0;
    assert_ok(cd_filter(&f->d, &s, f->keep, &f->c, &err));
    for (int k = 0; k < CD_FILTER_N_DROP; k++) sum += f->c.drop[k];
    for (int i = 0; i < N; i++) kept += f->keep[i];
    assert_int_equal(f->c.in, N);
    assert_int_equal(f->c.kept, kept);
    assert_int_equal(f->c.kept + sum, N); /* counted once */
    return f;
}

TEST(nothing_asked) {
    assert_int_equal(filter(build(0), (cd_filter_spec){0})->c.kept, N);
    assert_int_equal(filter(build(0), (cd_filter_spec){.high_percentile = 100})->c.kept, N);
}

TEST(asked) {
    fix *f = build(0);
    for (int i = 0; i < N; i++) f->asked[i] = f->dev[i] == 1;
    f->error[0] = 1; /* device a: not asked for, so no error */
    filter(f, (cd_filter_spec){.asked = f->asked});
    assert_int_equal(f->c.drop[CD_FILTER_DROP_ASKED], N / 2);
    assert_int_equal(f->c.drop[CD_FILTER_DROP_ERROR], 0);
}

TEST(leaves) {
    const uint32_t five[] = {5}, some[] = {0, 5, 6};
    fix *f = filter(build(0), (cd_filter_spec){.leaves = five, .n_leaves = 1});
    for (int i = 0; i < N; i++) assert_int_equal(f->keep[i], i % 7 == 5);
    f = filter(build(0), (cd_filter_spec){.leaves = some, .n_leaves = 3});
    for (int i = 0; i < N; i++)
        assert_int_equal(f->keep[i], i % 7 == 5 || i % 7 == 6 || i % 7 == 0);
}

TEST(flop) {
    /* task 0: 1e6, 1: 2e6, 2: unknown */
    fix *f = filter(build(0), (cd_filter_spec){.min_flop = 2e6});
    for (int i = 0; i < N; i++) assert_int_equal(f->keep[i], i % 3 == 1);
    f = filter(build(0), (cd_filter_spec){.max_flop = 1e6});
    for (int i = 0; i < N; i++) assert_int_equal(f->keep[i], i % 3 == 0);
    assert_int_equal(f->c.drop[CD_FILTER_DROP_FLOP], 200);
}

/* Latencies are 1 .. 300 ms: percentile q is 1 + 2.99 q. */
TEST(percentiles) {
    fix *f = filter(build(0), (cd_filter_spec){.low_percentile = 10, .high_percentile = 90});
    for (int i = 0; i < N; i++)
        assert_int_equal(f->keep[i], i + 1 >= 1 + 29.9 && i + 1 <= 1 + 269.1);
    assert_int_equal(f->c.drop[CD_FILTER_DROP_RANGE], 60);
    f = filter(build(0), (cd_filter_spec){.low_percentile = 99.9});
    assert_int_equal(f->c.kept, 1);
    f = build(0);
    for (int i = 0; i < N; i++) f->asked[i] = i < 101; /* the range is of what was asked for ... */
    f->std[50] = f->y[50];                             /* ... noisy or not */
    filter(f, (cd_filter_spec){.asked = f->asked, .max_std_ratio = 0.1, .high_percentile = 50});
    assert_int_equal(f->c.drop[CD_FILTER_DROP_NOISY], 1);
    assert_int_equal(f->c.drop[CD_FILTER_DROP_RANGE], 50);
    assert_int_equal(f->c.kept, 50);
}

static size_t of_group(const fix *f, uint32_t task, uint32_t dev) {
    size_t n = 0;
    for (int i = 0; i < N; i++) n += f->keep[i] && f->task[i] == task && f->dev[i] == dev;
    return n;
}

TEST(surplus) {
    fix *f = build(0), *g = build(1);
    uint8_t ten[N], other[N];
    /* task 2: 5 a device */
    for (int i = 0; i < N; i++) f->error[i] = g->error[N - 1 - i] = i % 3 == 2 && i >= 30;
    filter(f, (cd_filter_spec){.max_per_task = 10, .seed = 3});
    filter(g, (cd_filter_spec){.max_per_task = 10, .seed = 3});
    /* order is nothing */
    for (int i = 0; i < N; i++) assert_int_equal(f->keep[i], g->keep[N - 1 - i]);
    for (uint32_t t = 0; t < T; t++)
        for (uint32_t d = 0; d < D; d++) assert_int_equal(of_group(f, t, d), t == 2 ? 5 : 10);
    assert_int_equal(f->c.drop[CD_FILTER_DROP_SURPLUS], 4 * 40);
    memcpy(ten, f->keep, N);
    filter(f, (cd_filter_spec){.max_per_task = 4, .seed = 3});
    for (int i = 0; i < N; i++) assert_true(ten[i] || !f->keep[i]); /* a subset */
    filter(f, (cd_filter_spec){.max_per_task = 10, .seed = 4});
    memcpy(other, f->keep, N);
    assert_memory_not_equal(ten, other, N);
    filter(f, (cd_filter_spec){.max_per_task = 10, .min_per_task = 6, .seed = 3});
    assert_int_equal(of_group(f, 2, 0), 0); /* rare first, then surplus */
    assert_int_equal(of_group(f, 0, 0), 10);
    filter(f, (cd_filter_spec){.max_per_task = 50});
    assert_int_equal(f->c.drop[CD_FILTER_DROP_SURPLUS], 0);
}

/* The same seed for both: what the filter keeps is spread over the parts by their fractions. */
TEST(surplus_and_split) {
    size_t part[CD_SPLIT_N_PART] = {0};
    for (uint64_t seed = 1; seed <= 10; seed++) {
        fix *f = filter(build(0), (cd_filter_spec){.max_per_task = 10, .seed = seed});
        const cd_split_spec spec = {
            .kind = CD_SPLIT_RECORD, .seed = seed, .valid = 0.1, .test = 0.2};
        cdmpp_err err = {0};
        cd_split *s = NULL;
        assert_ok(cd_split_make(&f->d, f->keep, &spec, &s, &err));
        for (int p = 0; p < CD_SPLIT_N_PART; p++) part[p] += s->n_program[p];
        cd_split_free(s);
    }
    assert_in_range(part[CD_SPLIT_PART_TRAIN], 370, 470); /* 0.7 of 600, 4 deviations either side */
    assert_in_range(part[CD_SPLIT_PART_VALID], 30, 90);
    assert_in_range(part[CD_SPLIT_PART_TEST], 80, 160);
}

TESTS(NULL, NULL, nothing_asked, asked, leaves, flop, percentiles, surplus, surplus_and_split)
