/* The cache: the same bits with and without, hits are counted, it stays bounded, and what differs
 * is told apart. */
#include "check.h"
#include "made_api_all.h"

#include "predictor/score/answer_cache.h"

static made_out out, other;

static cdmpp_context *with(int model, size_t cache, int threads) {
    const cdmpp_options o = {
        .size = sizeof o, .device = "zen5-avx512", .cache = cache, .nthreads = threads};
    return made_context(&api, model, &o);
}

static void score(cdmpp_context *c, const cdmpp_batch *b, made_out *o) {
    cdmpp_err err = {0};
    const cdmpp_result r = made_result(o);
    assert_ok(cdmpp_score(c, b, &r, &err));
}

static void assert_counts(const cdmpp_context *c, uint64_t asked, uint64_t found) {
    uint64_t a = 1, f = 1;
    cdmpp_context_cache(c, &a, &f);
    assert_int_equal(a, asked);
    assert_int_equal(f, found);
}

/* Cold, warm and without: for every model and form. Keys hold addresses, so a set is now and then
 * full where there are few: one of a thousand sets, in one run of ten. */
static void same_bits(void **state) {
    (void)state;
    for (int m = MADE_TREES; m <= MADE_TSF; m++)
        for (cdmpp_form f = CDMPP_RECORDS; f <= (m == MADE_TSF ? CDMPP_STEPS : CDMPP_PACKED); f++) {
            const cdmpp_batch b = made_batch_of(&api, &all, f, 0, all.n);
            cdmpp_context *plain = with(m, 0, 1), *c = with(m, 65536, 2);
            score(plain, &b, &out);
            for (uint64_t round = 0; round < 3; round++) {
                score(c, &b, &other);
                assert_memory_equal(out.seconds, other.seconds, sizeof out.seconds);
                assert_memory_equal(out.low, other.low, sizeof out.low);
                assert_memory_equal(out.high, other.high, sizeof out.high);
                assert_memory_equal(out.flags, other.flags, sizeof out.flags);
                assert_memory_equal(out.status, other.status, sizeof out.status);
                assert_counts(c, (round + 1) * all.n, round * all.n);
            }
            assert_counts(plain, 0, 0);
            cdmpp_context_free(plain);
            cdmpp_context_free(c);
        }
}

/* Trees: in any company. Others that come in between push nothing wrong out. */
static void small_and_bounded(void **state) {
    (void)state;
    cdmpp_context *plain = with(MADE_TREES, 0, 1);
    for (size_t size = 1; size <= 64; size *= 4) {
        cdmpp_context *c = with(MADE_TREES, size, 1);
        for (size_t i = 0; i < 600; i++) {
            const cdmpp_batch b =
                made_batch_of(&api, &all, CDMPP_ROWS_F32, i * i % (MADE_N - 3), 3);
            score(plain, &b, &out);
            score(c, &b, &other);
            assert_memory_equal(out.seconds, other.seconds, 3 * sizeof *out.seconds);
        }
        cdmpp_context_free(c);
    }
    cdmpp_context_free(plain);
}

/* Failures are not kept, and keep their reasons. */
static void failures_again(void **state) {
    (void)state;
    const cdmpp_text t[] = {all.record[0], {"{}", 2}, all.record[2]};
    const cdmpp_batch b = {.size = sizeof b, .form = CDMPP_RECORDS, .n = 3, .text = t};
    cdmpp_context *c = with(MADE_TREES, 100, 1);
    for (int round = 0; round < 2; round++) {
        score(c, &b, &out);
        assert_int_equal(out.status[0], CDMPP_OK);
        assert_int_equal(out.status[1], CDMPP_ESCHEMA);
        assert_non_null(strstr(out.error[1].msg, "expected the keys"));
    }
    assert_counts(c, 6, 2);
    cdmpp_context_free(c);
}

/* A hit carries on with measured results: the observer sees what it sees without. */
static void observed_alike(void **state) {
    (void)state;
    static double seconds[MADE_N];
    cdmpp_err err = {0};
    for (size_t i = 0; i < 40; i++) seconds[i] = 2 * made_latency((int)i);
    for (int cached = 0; cached < 2; cached++) {
        cdmpp_observer *seen = NULL;
        assert_ok(cdmpp_observer_new(api.model[MADE_TREES], &seen, &err));
        const cdmpp_options o = {.size = sizeof o,
                                 .device = "zen5-avx512",
                                 .observer = seen,
                                 .cache = cached ? 1000 : 0};
        cdmpp_context *c = made_context(&api, MADE_TREES, &o);
        const cdmpp_batch b = made_batch_of(&api, &all, CDMPP_STEPS, 0, 40);
        score(c, &b, &other);
        assert_ok(cdmpp_observe(c, &b, seconds, NULL, &err));
        score(c, &b, cached ? &other : &out);
        if (cached) assert_counts(c, 120, 80);
        cdmpp_context_free(c);
        cdmpp_observer_free(seen);
    }
    assert_memory_equal(out.seconds, other.seconds, 40 * sizeof *out.seconds);
    assert_memory_equal(out.high, other.high, 40 * sizeof *out.high);
    assert_true(out.flags[0] & CDMPP_FLAG_OBSERVED);
}

/* An older caller's struct ends before the field. */
static void older_options(void **state) {
    (void)state;
    const cdmpp_options o = {
        .size = offsetof(cdmpp_options, cache), .device = "zen5-avx512", .cache = 77};
    cdmpp_context *c = made_context(&api, MADE_TREES, &o);
    const cdmpp_batch b = made_batch_of(&api, &all, CDMPP_RECORDS, 0, 3);
    score(c, &b, &out);
    assert_counts(c, 0, 0);
    cdmpp_context_free(c);
}

static bool same_key(const cd_candidate *x, const cd_candidate *y) {
    const cd_hash a = cd_answer_cache_key(x), b = cd_answer_cache_key(y);
    return a.a == b.a && a.b == b.b;
}

/* Everything that an answer depends on is in the key. */
static void keys_differ(void **state) {
    (void)state;
    static const float row[2 * CD_N_COL] = {1, 2};
    static const double wide[CD_N_COL] = {1, 2};
    cd_aim aim = {.workload_key = "k", .target = {"llvm", 4}, .flop = 7};
    const cd_candidate base = {.form = CD_CANDIDATE_STEPS, .aim = &aim, .text = {"[]", 2}};
    cd_aim a[6] = {aim, aim, aim, aim, aim, aim};
    a[0].workload_key = "l";
    a[1].target.n = 3;
    a[2].flop = 8;
    a[3].has_hardware = true;
    a[4].device = (cd_str){"t4", 2};
    a[5].task = (const cd_task *)&aim;
    for (int k = 0; k < 6; k++) {
        cd_candidate x = base;
        x.aim = &a[k];
        assert_false(same_key(&base, &x));
    }
    cd_candidate x = base;
    x.text.n = 1;
    assert_false(same_key(&base, &x));
    const cd_candidate one = {.form = CD_CANDIDATE_ROWS_F32, .row = row, .n_row = 1},
                       two = {.form = CD_CANDIDATE_ROWS_F32, .row = row, .n_row = 2},
                       big = {.form = CD_CANDIDATE_ROWS_F64, .row = wide, .n_row = 1};
    assert_false(same_key(&one, &two));
    assert_false(same_key(&one, &big));
    assert_true(same_key(&one, &one));
}

/* Both halves of a key tell entries apart, whichever set they fall into. */
TEST(both_halves_count) {
    static const cd_hash key[] = {{1, 8}, {2, 8}, {1, 1032}, {2, 1032}};
    const cd_candidate ask = {.form = CD_CANDIDATE_ROWS_F32};
    cdmpp_err err = {0};
    cd_answer_cache *c = NULL;
    cd_scored got;
    uint64_t asked, found;
    assert_ok(cd_answer_cache_new(1, &c, &err));
    for (size_t k = 0; k < 4; k++) {
        const cd_scored o = {
            .pred.latency_s = (double)(k + 1), .measured_s = (double)k, .truncated = k == 1};
        assert_false(cd_answer_cache_find(c, &key[k], &ask, &got));
        cd_answer_cache_put(c, &key[k], &o);
        assert_true(cd_answer_cache_find(c, &key[k], &ask, &got) &&
                    got.pred.latency_s == (double)(k + 1) && got.measured_s == (double)k &&
                    got.truncated == (k == 1));
    }
    cd_answer_cache_counts(c, &asked, &found);
    assert_true(asked == 8 && found == 4);
    cd_answer_cache_free(c);
    assert_status(cd_answer_cache_new(SIZE_MAX, &c, &err), CDMPP_ENOMEM);
}

TESTS(setup, teardown, same_bits, small_and_bounded, failures_again, observed_alike, older_options,
      keys_differ, both_halves_count)
