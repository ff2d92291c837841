/* sample: what each word takes, and what a wrong one is told. */
#include "dataset/split/split.h"

#include "check.h"
#include "fault.h"
#include "made_split.h"

enum { V100, AVX2, AVX512 };
static made_split f;
static uint8_t asked[MADE_N];

/* The tasks that a text takes on a device, as a set of bits. */
static uint64_t taken(const char *text, uint32_t dev, uint64_t seed) {
    cdmpp_err err = {0};
    uint64_t all = 0, some = 0;
    memset(asked, 0xee, sizeof asked);
    assert_ok(cd_sample_mark(&f.d, text, seed, asked, &err));
    for (int i = 0; i < MADE_N; i++) {
        assert_in_range(asked[i], 0, 1);
        if (f.dev[i] != dev) continue;
        if (asked[i]) all |= 1ull << f.task[i];
        else some |= 1ull << f.task[i];
    }
    assert_int_equal(all & some, 0); /* whole tasks */
    return all;
}

static uint64_t bits(int n, const int *t) {
    uint64_t b = 0;
    for (int i = 0; i < n; i++) b |= 1ull << t[i];
    return b;
}
#define BITS(...) bits((int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)), (int[]){__VA_ARGS__})
#define ALL       ((1ull << MADE_TASKS) - 1)

/* Task with number r: 0 is task 0, of unknown operations; then t*7 % 30 == r. */
static int numbered(int r) {
    for (int t = 0; t < MADE_TASKS; t++)
        if (t * 7 % 30 == r) return t;
    return -1;
}

static int count(uint64_t b) {
    int n = 0;
    for (; b; b &= b - 1) n++;
    return n;
}

TEST(modes) {
    made_split_build(&f, 0);
    assert_true(taken("cross", V100, 1) == ALL);
    assert_true(taken("sample3", V100, 1) == BITS(0, numbered(1), numbered(2)));
    assert_true(taken("sample2308", AVX2, 1) == ALL);
    assert_true(taken("list-0-5-29", AVX512, 1) == BITS(0, numbered(5), numbered(29)));
    assert_true(taken("network-resnet_50_bs1", V100, 1) == BITS(1, 2, 3));
    assert_true(taken("network-resnet_50_bs4-bert_base", V100, 1) == BITS(3, 4, 10, 11));
    assert_true(taken("network-resnet_50_", V100, 1) == BITS(1, 2, 3, 4));
    assert_true(taken("network-resnet_50-mobilenet-v2_bs1-bert_base_", V100, 1) ==
                BITS(1, 2, 3, 4, 10, 11, 20));
    assert_true(taken("sample2+network-bert_base+list-2", AVX2, 1) ==
                BITS(0, numbered(1), numbered(2), 10, 11));
}

TEST(random_tasks) {
    made_split_build(&f, 0);
    const uint64_t a = taken("random7", V100, 1), b = taken("random7", V100, 2);
    assert_int_equal(count(a), 7);
    assert_true(a != b);
    assert_true(a == taken("random7", AVX2, 1));         /* the device is nothing, */
    assert_true((a & ~taken("random12", V100, 1)) == 0); /* more is a superset */
    made_split_build(&f, 1);
    assert_true(a == taken("random7", V100, 1)); /* order is nothing */
    assert_true(taken("random30", V100, 3) == ALL);
}

/* The same seed for both: the tasks that a device has are not those that the split tests. */
TEST(random_tasks_and_split) {
    size_t train = 0, all = 0;
    made_split_build(&f, 0);
    memset(f.keep, 1, sizeof f.keep); /* every device has every task: all can be tested */
    for (uint64_t seed = 1; seed <= 10; seed++) {
        const cd_split_spec spec = {.kind = CD_SPLIT_TASK, .seed = seed, .valid = 0.1, .test = 0.2};
        cdmpp_err err = {0};
        cd_split *s = NULL;
        taken("v100:random6,cross", V100, seed);
        assert_ok(cd_split_make(&f.d, asked, &spec, &s, &err));
        for (int i = 0; i < MADE_N; i++) {
            if (f.dev[i] != V100 || !asked[i]) continue;
            all++;
            train += s->part[i] == CD_SPLIT_PART_TRAIN;
        }
        cd_split_free(s);
    }
    assert_int_equal(all, 10 * 6 * MADE_PER);
    assert_true(train > all / 2 && train < all * 9 / 10);
}

TEST(devices) {
    made_split_build(&f, 0);
    const char *t = "v100:sample1,zen5-avx2:list-1+list-2";
    assert_true(taken(t, V100, 1) == BITS(0));
    assert_true(taken(t, AVX2, 1) == BITS(numbered(1), numbered(2)));
    assert_true(taken(t, AVX512, 1) == 0);
    t = "sample1,zen5-avx2:cross"; /* without a device: all others, also when it comes first */
    assert_true(taken(t, V100, 1) == BITS(0));
    assert_true(taken(t, AVX2, 1) == ALL);
    assert_true(taken(t, AVX512, 1) == BITS(0));
    /* the GPU lacks tasks 0 and 1: its own numbers, first of what it has */
    for (int i = 0; i < MADE_N; i++)
        if (f.dev[i] == V100 && f.task[i] < 2) f.task[i] = 2;
    assert_true(taken("sample2", V100, 1) == BITS(numbered(1), numbered(2)));
    assert_true(taken("sample2", AVX2, 1) == BITS(0, numbered(1)));
    assert_true(taken("list-0", V100, 1) == BITS(numbered(1)));
    for (int i = 0; i < MADE_N; i++) /* one CPU lacks task 0: number 0 is still task 0 of CPUs */
        if (f.dev[i] == AVX2 && f.task[i] == 0) f.task[i] = 2;
    assert_true(taken("list-0-1", AVX2, 1) == BITS(numbered(1)));
    assert_true(taken("sample2", AVX2, 1) == BITS(numbered(1), numbered(2)));
}

static void refuse(const char *text, cdmpp_status want, const char *words) {
    cdmpp_err err = {0};
    made_split_build(&f, 0);
    assert_status(cd_sample_mark(&f.d, text, 1, asked, &err), want);
    if (!strstr(err.msg, words)) print_error("%s: %s\n", text, err.msg);
    assert_non_null(strstr(err.msg, words));
}

TEST(malformed) {
    const cdmpp_status p = CDMPP_EPARSE, s = CDMPP_ESCHEMA;
    refuse("", p, "character 1: expected cross, sampleK");
    refuse("samlpe200", p,
           "character 1: expected cross, sampleK, randomK, list-ID-ID... or network-NAME-NAME... "
           "(did you mean 'sample'?), found 'samlpe200'");
    refuse("12", p, "character 1: expected cross");
    refuse("sample", p, "character 7: expected a number from 1 to 999999999, found the end of it");
    refuse("sample0", p, "character 7: expected a number from 1");
    refuse("sample-3", p, "character 7: expected a number from 1");
    refuse("sample9999999999", p, "character 7: expected a number from 1");
    refuse("sample5x", p, "character 8: expected '+', ',' or the end, found 'x'");
    refuse("crossed", p, "character 6");
    refuse("cross+", p, "character 7: expected cross");
    refuse("cross,", p, "character 7: expected one part without a device, found the end");
    refuse("v100:", p, "character 6: expected cross");
    refuse("list", p, "character 5: expected '-' and the number");
    refuse("list-", p, "character 6: expected the number of a task");
    refuse("list-1-", p, "character 8");
    refuse("list-1x", p, "character 7: expected '-'");
    refuse("list-30", s, "character 6: no device has a task 30");
    refuse("network", p, "character 8: expected '-' and a network");
    refuse("network-", p, "character 9: expected a network");
    refuse("network-bert_base-", p, "character 19: expected a network");
    refuse("network-resnet50", s,
           "character 9: expected a network of the data set, found 'resnet50', did you mean "
           "'resnet_50'?");
    refuse("network-bert_base-mobilenet-v3", s,
           "character 19: expected a network of the data set, found 'mobilenet-v3', did you mean "
           "'mobilenet-v2'?");
    refuse("network-resnet_50_bs2", s, "found 'resnet_50_bs2'");
    refuse("a100:cross", s,
           "character 1: expected a device of the data set, found 'a100', did you mean 'v100'?");
    refuse("zen5-avx511:cross", s, "did you mean 'zen5-avx512'?");
    refuse("v100:cross,v100:sample3", p, "character 12: expected one part of a device");
    refuse("cross,sample3", p, "character 7: expected one part without a device");
    refuse("v100:zen5-avx2:cross", p, "character 6");
    refuse("sample200.by_net:test-bert_base", p,
           "character 10: the split is a key of its own: split.mode: 'by_net:test-bert_base'");
}

static cd_split_spec parsed(const char *text, cd_arena *a) {
    cdmpp_err err = {0};
    cd_split_spec s = {.kind = CD_SPLIT_TASK};
    assert_ok(cd_sample_split(&f.d, text, a, &s, &err));
    return s;
}

static void same(const cd_texts *t, const char *words) {
    cd_buf b = {0};
    for (size_t i = 0; i < t->n; i++) cd_buf_putf(&b, "%s%s", i ? " " : "", t->v[i]);
    assert_string_equal(b.p ? b.p : "", words);
    cd_buf_free(&b);
}

TEST(splits) {
    static const struct {
        const char *text, *train, *test;
        cd_split_kind kind;
    } c[] = {
        {"by_device:train-zen5-avx2-zen5-avx512,test-v100", "zen5-avx2 zen5-avx512", "v100",
         CD_SPLIT_DEVICE},
        {"by_device:test-v100", "", "v100", CD_SPLIT_DEVICE},
        {"by_device:train-zen5-avx2", "zen5-avx2", "", CD_SPLIT_DEVICE},
        {"by_net:train-all,test-resnet_50_bs1", "", "resnet_50_bs1", CD_SPLIT_NETWORK},
        {"by_net:test-mobilenet-v2-bert_base_,train-all", "", "mobilenet-v2 bert_base_",
         CD_SPLIT_NETWORK},
        {"by_net:test-all,train-resnet_50", "resnet_50", "", CD_SPLIT_NETWORK},
    };
    cd_arena a = {0};
    made_split_build(&f, 0);
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        const cd_split_spec s = parsed(c[i].text, &a);
        assert_int_equal(s.kind, c[i].kind);
        same(&s.train_name, c[i].train);
        same(&s.test_name, c[i].test);
    }
    cd_arena_free(&a);
}

TEST(bad_splits) {
    static const struct {
        const char *text, *words;
        cdmpp_status want;
    } c[] = {
        {"by_task:test-x", "character 1: expected by_device: or by_net:, found 'by_task:test-x'",
         CDMPP_EPARSE},
        {"", "character 1: expected by_device: or by_net:", CDMPP_EPARSE},
        {"by_device:", "character 11: expected train-NAME... or test-NAME..., found the end",
         CDMPP_EPARSE},
        {"by_device:valid-v100", "character 11: expected train-NAME", CDMPP_EPARSE},
        {"by_device:test", "character 15: expected '-' and a device", CDMPP_EPARSE},
        {"by_device:test-", "character 16: expected a device", CDMPP_EPARSE},
        {"by_device:test-v100,test-v100", "character 21: expected 'test' once", CDMPP_EPARSE},
        {"by_device:test-v100,", "character 21: expected train-NAME", CDMPP_EPARSE},
        {"by_device:test-all", "leaves all on both", CDMPP_EPARSE},
        {"by_net:train-all,test-all", "leaves all on both", CDMPP_EPARSE},
        {"by_device:test-v10",
         "character 16: expected a device of the data set, found 'v10', did you mean 'v100'?",
         CDMPP_ESCHEMA},
        {"by_net:train-all,test-bert_bass",
         "character 23: expected a network of the data set, found 'bert_bass', did you mean "
         "'bert_base'?",
         CDMPP_ESCHEMA},
    };
    cd_arena a = {0};
    made_split_build(&f, 0);
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        cdmpp_err err = {0};
        cd_split_spec s = {.kind = CD_SPLIT_TASK};
        assert_status(cd_sample_split(&f.d, c[i].text, &a, &s, &err), c[i].want);
        if (!strstr(err.msg, c[i].words)) print_error("%s: %s\n", c[i].text, err.msg);
        assert_non_null(strstr(err.msg, c[i].words));
        assert_int_equal(s.kind, CD_SPLIT_TASK);
    }
    cd_arena_free(&a);
}

static void out_of_memory(void **st) {
    (void)st;
    made_split_build(&f, 0);
    FAULT_SWEEP(w, 1) {
        cd_arena a = {0};
        cd_split_spec s;
        w.st = cd_sample_mark(&f.d, "random5+network-bert_base", 1, asked, &w.err);
        if (!w.st) w.st = cd_sample_split(&f.d, "by_net:test-bert_base", &a, &s, &w.err);
        cd_arena_free(&a);
    }
}

TESTS(NULL, NULL, modes, random_tasks, random_tasks_and_split, devices, malformed, splits,
      out_of_memory, bad_splits)
