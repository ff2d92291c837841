/* What a model was trained on: which new kinds it tells, for which device, and the way into a header and back. */
#include "learner/model/model.h"

#include <math.h>
#include <string.h>

#include "check.h"

static const char *const text[] = {"dtype float32; intrinsic exp; operator sum 2+1 * ir,ri; threads 4; typed float32<float32 sum 2+1 * ir,ri; vector 32",
                                   "dtype float16; dtype float32; operator max 2+1 . +i; typed float32<float32 max 2+1 . +i"};
static const uint32_t device[] = {0, 1};

static cd_trained_on *made(cd_arena *a) {
    cdmpp_err err = {0};
    cd_trained_on *t = NULL;
    assert_ok(cd_trained_on_make(a, text, device, 2, 2, &t, &err));
    assert_non_null(t);
    t->low = -1;
    t->range = 0.03125;
    t->high = 2;
    return t;
}

/* The marks that are NULL at the end. */
static cd_unlike asked(const cd_trained_on *t, uint32_t d, const char *const *mark) {
    const char *m[8];
    cd_signature s = {0, m};
    cd_unlike u = {0};
    while (mark[s.n]) m[s.n] = mark[s.n], s.n++;
    cd_trained_on_check(t, d, &s, &u);
    return u;
}
#define ASK(t, d, ...) asked(t, d, (const char *const[]){__VA_ARGS__, NULL})

static void expect(cd_unlike u, uint32_t reason, const char *want) {
    assert_string_equal(u.text, want);
    assert_int_equal(u.reason, reason);
}

static void reasons(const cd_trained_on *t) {
    expect(ASK(t, 0, "dtype float32", "operator max 2+1 . +i", "threads 4", "vector 32"), 0, "");
    expect(ASK(t, 0, "dtype float16"), CD_UNLIKE_DTYPE, "dtype float16");
    expect(ASK(t, 1, "dtype float16"), 0, "");
    expect(ASK(t, 1, "dtype int8", "typed int8<int8 sum 2+1 * ir,ri"), CD_UNLIKE_DTYPE, "dtype int8");
    expect(ASK(t, 1, "dtype float16", "typed float16<float16 max 2+1 . +i"), CD_UNLIKE_DTYPE, "dtype float16<float16 max 2+1");
    expect(ASK(t, 0, "operator sum 4+3 * i++r,rrri", "typed float32<float32 sum 4+3 * i++r,rrri"), CD_UNLIKE_OPERATOR, "operator kind sum 4+3");
    expect(ASK(t, 0, "intrinsic erf", "intrinsic tanh"), CD_UNLIKE_INTRINSIC, "intrinsic erf");
    expect(ASK(t, 0, "threads 24", "vector 64"), CD_UNLIKE_THREADS | CD_UNLIKE_FEATURE, "threads 24, target feature vector 64");
    expect(ASK(t, 1, "threads 24", "vector 64", "feature +neon"), 0, ""); /* its targets never said */
}

TEST(tells_what_is_new) {
    cd_arena a = {0};
    reasons(made(&a));
    cd_arena_free(&a);
}

/* Marks of a device that is already there, and of one more, which saw what another did. Of other devices nothing changes. */
TEST(more_is_seen) {
    static const char *const more[] = {"threads 24", "vector 64", "a new one", "dtype float32"};
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_trained_on *old = made(&a), *t;
    assert_true(cd_trained_on_lacks(old, 0, "threads 24") && !cd_trained_on_lacks(old, 0, "threads 4") && cd_trained_on_lacks(old, 0, "dtype float16"));
    assert_true(!cd_trained_on_lacks(old, 1, "dtype float16") && !cd_trained_on_lacks(old, 0, "operator new 1+1") && !cd_trained_on_lacks(old, 0, "no class"));
    assert_ok(cd_trained_on_more(&a, old, 2, 0, more, 4, &t, &err));
    assert_int_equal(t->n_device, 3);
    reasons(t);
    for (size_t i = 1; i < t->n; i++) assert_true(strcmp(t->mark[i - 1], t->mark[i]) < 0);
    expect(ASK(t, 2, "dtype float32", "threads 4", "threads 24", "vector 32", "vector 64"), 0, "");
    expect(ASK(t, 2, "threads 8", "dtype float16"), CD_UNLIKE_THREADS | CD_UNLIKE_DTYPE, "dtype float16, threads 8");
    assert_ok(cd_trained_on_more(&a, old, 1, 0, more, 1, &t, &err));
    assert_int_equal(t->n_device, 2);
    expect(ASK(t, 1, "threads 24", "dtype float16"), 0, "");
    expect(ASK(t, 0, "threads 24"), CD_UNLIKE_THREADS, "threads 24");
    assert_ok(cd_trained_on_more(&a, old, 2, 1, NULL, 0, &t, &err));
    expect(ASK(t, 2, "dtype float16", "threads 24"), 0, "");
    cd_arena_free(&a);
}

/* A device whose programs had no times is in the model, but nothing was trained on it. */
TEST(tells_what_a_device_saw) {
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_trained_on *t = NULL;
    assert_ok(cd_trained_on_make(&a, text, device, 2, 3, &t, &err));
    assert_true(cd_trained_on_saw(t, 0) && cd_trained_on_saw(t, 1) && !cd_trained_on_saw(t, 2));
    cd_arena_free(&a);
}

TEST(survives_a_header) {
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_buf b = {0}, c = {0};
    const cd_json *v;
    cd_trained_on *t = NULL;
    cd_trained_on_write(made(&a), &b);
    assert_ok(cd_json_parse(&a, b.p, b.n, &v, &err));
    assert_ok(cd_trained_on_read(v, 2, &a, &t, &err));
    reasons(t);
    cd_trained_on_write(t, &c);
    assert_string_equal(b.p, c.p);
    assert_status(cd_trained_on_read(v, 3, &a, &t, &err), CDMPP_ESCHEMA);
    cd_buf_free(&b);
    cd_buf_free(&c);
    cd_arena_free(&a);
}

TEST(bad_headers_are_refused) {
    static const char *const bad[] = {"{}", "{\"unlike\":[0,0],\"marks\":[\"b\",\"a\"],\"devices\":[[],[]]}",
                                      "{\"unlike\":[0,0],\"marks\":[\"a\"],\"devices\":[[0],[1]]}",
                                      "{\"unlike\":[2,1],\"marks\":[\"a\"],\"devices\":[[0],[0]]}"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        cd_arena a = {0};
        cdmpp_err err = {0};
        const cd_json *v;
        cd_trained_on *t = NULL;
        assert_ok(cd_json_parse(&a, bad[k], strlen(bad[k]), &v, &err));
        assert_int_not_equal(cd_trained_on_read(v, 2, &a, &t, &err), CDMPP_OK);
        cd_arena_free(&a);
    }
}

/* A program of an unknown kind: then nothing is known of what there was. */
TEST(an_unknown_kind_makes_all_unknown) {
    static const char *const some[] = {"dtype float32", ""};
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_trained_on *t = NULL;
    assert_ok(cd_trained_on_make(&a, some, device, 2, 2, &t, &err));
    assert_null(t);
    cd_arena_free(&a);
}

TEST(intervals_widen_and_never_narrow) {
    cd_arena a = {0};
    const cd_trained_on *t = made(&a);
    double low = 0.9, high = 1.1, std = 0.05;
    cd_trained_on_widen(t, 1, &low, &high, &std);
    assert_close(low, exp(-1), 1e-12, 0);
    assert_close(high, exp(2), 1e-12, 0);
    assert_close(std, 3 / (2 * 1.645), 1e-12, 0);
    low = 0.01, high = 100, std = 3;
    cd_trained_on_widen(t, 1, &low, &high, &std);
    assert_true(low == 0.01 && high == 100 && std == 3);
    cd_trained_on_widen(NULL, 1, &low, &high, &std);
    assert_true(low == 0.01 && high == 100 && std == 3);
    cd_arena_free(&a);
}

TESTS(NULL, NULL, tells_what_is_new, more_is_seen, tells_what_a_device_saw, survives_a_header, bad_headers_are_refused, an_unknown_kind_makes_all_unknown,
      intervals_widen_and_never_narrow)
