/* What a model was trained on: which new kinds it tells, for which device, and the way into a
 * header and back. */
#include "learner/model/model.h"

#include <math.h>
#include <string.h>

#include "odd.h"

static const char *const text[] = {
    "dtype float32; intrinsic exp; operator sum 2+1 * ir,ri; threads 4; typed float32<float32 sum "
    "2+1 * ir,ri; vector 32",
    "dtype float16; dtype float32; operator max 2+1 . +i; typed float32<float32 max 2+1 . +i"};
static const uint32_t device[] = {0, 1};

static cd_trained_on *made(cd_arena *a) {
    cdmpp_err err = {0};
    cd_trained_on *t = NULL;
    assert_ok(cd_trained_on_make(a, text, device, 2, 2, &t, &err));
    assert_non_null(t);
    t->range = 0.03125;
    t->law[CD_UNLIKE_BIT_OPERATOR] = (cd_unlike_law){7, -1, 2, 0.5};
    t->law[CD_UNLIKE_BIT_RANGE] = (cd_unlike_law){3, -1.5, 0.25, 0.75};
    return t;
}

static bool stranger;
/* The marks that are NULL at the end. */
static cd_unlike asked(const cd_trained_on *t, uint32_t d, const char *const *mark) {
    const char *m[8];
    cd_signature s = {0, m};
    cd_unlike u = {0};
    while (mark[s.n]) m[s.n] = mark[s.n], s.n++;
    cd_trained_on_check(t, d, stranger, &s, &u);
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
    expect(ASK(t, 1, "dtype int8", "typed int8<int8 sum 2+1 * ir,ri"), CD_UNLIKE_DTYPE,
           "dtype int8");
    expect(ASK(t, 1, "dtype float16", "typed float16<float16 max 2+1 . +i"), CD_UNLIKE_DTYPE,
           "dtype float16<float16 max 2+1");
    expect(ASK(t, 0, "operator sum 4+3 * i++r,rrri", "typed float32<float32 sum 4+3 * i++r,rrri"),
           CD_UNLIKE_OPERATOR, "operator kind sum 4+3");
    expect(ASK(t, 0, "intrinsic erf", "intrinsic tanh"), CD_UNLIKE_INTRINSIC, "intrinsic erf");
    expect(ASK(t, 0, "threads 24", "vector 64"), CD_UNLIKE_THREADS | CD_UNLIKE_FEATURE,
           "threads 24, target feature vector 64");
    /* its targets never said */
    expect(ASK(t, 1, "threads 24", "vector 64", "feature +neon"), 0, "");
}

/* Who stands for a stranger knows nothing of its instructions, and its threads are compared like
 * anybody's. */
TEST(a_stranger_has_threads) {
    cd_arena a = {0};
    const cd_trained_on *t = made(&a);
    stranger = true;
    expect(ASK(t, 0, "threads 24", "vector 64", "feature +neon", "intrinsic erf"),
           CD_UNLIKE_THREADS | CD_UNLIKE_INTRINSIC, "intrinsic erf, threads 24");
    stranger = false;
    cd_arena_free(&a);
}

TEST(tells_what_is_new) {
    cd_arena a = {0};
    reasons(made(&a));
    cd_arena_free(&a);
}

/* Marks of a device that is already there, and of one more, which saw what another did. Of other
 * devices nothing changes. */
TEST(more_is_seen) {
    static const char *const more[] = {"threads 24", "vector 64", "a new one", "dtype float32"};
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_trained_on *old = made(&a), *t;
    assert_true(cd_trained_on_lacks(old, 0, "threads 24") &&
                !cd_trained_on_lacks(old, 0, "threads 4") &&
                cd_trained_on_lacks(old, 0, "dtype float16"));
    assert_true(!cd_trained_on_lacks(old, 1, "dtype float16") &&
                !cd_trained_on_lacks(old, 0, "operator new 1+1") &&
                !cd_trained_on_lacks(old, 0, "no class"));
    assert_ok(cd_trained_on_more(&a, old, 2, 0, more, 4, &t, &err));
    assert_int_equal(t->n_device, 3);
    reasons(t);
    for (size_t i = 1; i < t->n; i++) assert_true(strcmp(t->mark[i - 1], t->mark[i]) < 0);
    expect(ASK(t, 2, "dtype float32", "threads 4", "threads 24", "vector 32", "vector 64"), 0, "");
    expect(ASK(t, 2, "threads 8", "dtype float16"), CD_UNLIKE_THREADS | CD_UNLIKE_DTYPE,
           "dtype float16, threads 8");
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
    /* that is what is new, and not its types */
    expect(ASK(t, 2, "dtype float32", "threads 4", "vector 32"), CD_UNLIKE_DEVICE, "device");
    expect(ASK(t, 2, "dtype float32", "intrinsic erf"), CD_UNLIKE_DEVICE | CD_UNLIKE_INTRINSIC,
           "device, intrinsic erf");
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
#define MARKS(m, d) "\"marks\":[" m "],\"devices\":[[],[" d "]]}"
    static const char *const bad[] = {
        "{}",
        "{\"unlike\":[0,0]," MARKS("\"b\",\"a\"", ""),
        "{\"unlike\":[0,0]," MARKS("\"a\"", "1"),
        "{\"unlike\":[2,1]," MARKS("\"a\"", "0"),
        "{\"laws\":{\"threads\":{\"n\":2,\"low\":1,\"high\":2,\"shift\":1}}," MARKS("\"a\"", "0"),
        "{\"laws\":{\"threads\":{\"n\":0,\"low\":-1,\"high\":2,\"shift\":1}}," MARKS("\"a\"", "0"),
        "{\"laws\":{\"threads\":{\"n\":2,\"low\":-1,\"high\":2}}," MARKS("\"a\"", "0")};
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

/* Files of earlier versions know operators alone; a factor of ten was none that anybody found. */
TEST(an_old_header_has_one_law) {
    static const char *const old[] = {"{\"unlike\":[-1,2]," MARKS("\"a\"", "0"),
                                      "{\"unlike\":[-2.30258509,2.30258509]," MARKS("\"a\"", "0")};
    for (int k = 0; k < 2; k++) {
        cd_arena a = {0};
        cdmpp_err err = {0};
        const cd_json *v;
        cd_trained_on *t = NULL;
        assert_ok(cd_json_parse(&a, old[k], strlen(old[k]), &v, &err));
        assert_ok(cd_trained_on_read(v, 2, &a, &t, &err));
        for (uint32_t b = 0; b < CD_N_UNLIKE; b++)
            assert_int_equal(t->law[b].n > 0,
                             (!k && b == CD_UNLIKE_BIT_OPERATOR) || b == CD_UNLIKE_BIT_RANGE);
        assert_true(t->law[CD_UNLIKE_BIT_RANGE].low == 0 && t->law[CD_UNLIKE_BIT_RANGE].high == 0);
        assert_true(k || (t->law[CD_UNLIKE_BIT_OPERATOR].low == -1 &&
                          t->law[CD_UNLIKE_BIT_OPERATOR].high == 2));
        cd_arena_free(&a);
    }
}

static void widened(const cd_trained_on *t, uint32_t reason, double low, double high,
                    double out[3]) {
    out[0] = low, out[1] = high, out[2] = 0.05;
    cd_trained_on_widen(t, reason, 1, &out[0], &out[1], &out[2]);
}

TEST(intervals_widen_and_never_narrow) {
    cd_arena a = {0};
    const cd_trained_on *t = made(&a);
    double v[3];
    widened(t, CD_UNLIKE_OPERATOR, 0.9, 1.1, v);
    assert_close(v[0], exp(-1), 1e-12, 0);
    assert_close(v[1], exp(2), 1e-12, 0);
    assert_close(v[2], 3 / (2 * 1.645), 1e-12, 0);
    widened(t, CD_UNLIKE_OPERATOR | CD_UNLIKE_RANGE, 0.9, 1.1, v); /* the wider end of each */
    assert_close(v[0], exp(-1.5), 1e-12, 0);
    assert_close(v[1], exp(2), 1e-12, 0);
    widened(t, CD_UNLIKE_OPERATOR, 0.01, 100, v);
    assert_true(v[0] == 0.01 && v[1] == 100);
    widened(NULL, CD_UNLIKE_OPERATOR, 0.9, 1.1, v);
    assert_true(v[0] == 0.9 && v[1] == 1.1 && v[2] == 0.05);
    widened(t, CD_UNLIKE_DEVICE | CD_UNLIKE_PEAK, 0.9, 1.1, v); /* these have no law here */
    assert_true(v[0] == 0.9 && v[1] == 1.1 && v[2] == 0.05);
    cd_arena_free(&a);
}

TEST(no_law_is_no_interval) {
    cd_arena a = {0};
    const cd_trained_on *t = made(&a);
    for (uint32_t b = 0; b < CD_N_UNLIKE; b++) {
        double v[3];
        const bool law = t->law[b].n || b == CD_UNLIKE_BIT_DEVICE || b == CD_UNLIKE_BIT_PEAK;
        widened(t, 1u << b | CD_UNLIKE_OPERATOR, 0.9, 1.1, v);
        assert_true(isnan(v[0]) == !law && isnan(v[1]) == !law && isnan(v[2]) == !law);
    }
    cd_arena_free(&a);
}

/* Parts of the time that are unlike in different ways are off by different things: their squares
 * add up. */
TEST(shifts_go_by_their_part_of_the_time) {
    cd_arena a = {0};
    const cd_trained_on *t = made(&a);
    double part[CD_N_UNLIKE] = {0};
    assert_true(cd_trained_on_shift(t, part) == 0 && cd_trained_on_shift(NULL, part) == 0);
    part[CD_UNLIKE_BIT_OPERATOR] = 0.5;
    assert_close(cd_trained_on_shift(t, part), 0.25, 1e-12, 0);
    part[CD_UNLIKE_BIT_RANGE] = 1;
    assert_close(cd_trained_on_shift(t, part), sqrt(0.25 * 0.25 + 0.75 * 0.75), 1e-12, 0);
    cd_arena_free(&a);
}

static cdmpp_status header(void *ctx, const char *s, size_t n, cdmpp_err *err) {
    cd_arena a = {0};
    const cd_json *v;
    cd_trained_on *t = NULL;
    (void)ctx;
    cdmpp_status st = cd_json_parse(&a, s, n, &v, err);
    if (!st) st = cd_trained_on_read(v, 2, &a, &t, err);
    cd_arena_free(&a);
    return st;
}

TEST(odd_headers) {
    cd_arena a = {0};
    cd_buf b = {0};
    cd_trained_on_write(made(&a), &b);
    odd_of(b.p, b.n, true, header, NULL);
    odd_all("{\"unlike\": [-1, 2], \"marks\": [\"dtype float32\", \"operator max 2+1\"], "
            "\"devices\": [[0], [0, 1]]}",
            header, NULL);
    cd_buf_free(&b);
    cd_arena_free(&a);
}

TEST(too_many_marks) {
    cd_buf b = {0};
    cdmpp_err err = {0};
    cd_buf_puts(&b, "{\"marks\": [0");
    for (int i = 0; i < 65536; i++) cd_buf_puts(&b, ",0");
    cd_buf_puts(&b, "]}");
    assert_status(header(NULL, b.p, b.n, &err), CDMPP_ERANGE);
    assert_non_null(strstr(err.msg, "at most 65536, found 65537"));
    cd_buf_free(&b);
}

TEST(making_without_memory) {
    static const char *const more[] = {"dtype int8", "threads 8"};
    FAULT_SWEEP(f, 0) {
        cd_arena a = {0};
        cd_trained_on *t = NULL, *u = NULL;
        f.st = cd_trained_on_make(&a, text, device, 2, 2, &t, &f.err);
        if (!f.st) f.st = cd_trained_on_more(&a, t, 2, 1, more, 2, &u, &f.err);
        cd_arena_free(&a);
    }
    cd_arena a = {0};
    cd_trained_on *t;
    cdmpp_err err = {0};
    assert_ok(cd_trained_on_make(&a, text, device, 0, 2, &t, &err));
    assert_null(t); /* nothing is known of no programs */
    cd_arena_free(&a);
}

/* Reasons with a hundredth of the time or more. */
TEST(shares) {
    double part[CD_N_UNLIKE] = {0};
    char said[CD_UNLIKE_SHARES];
    cd_trained_on_shares(part, 1, said);
    assert_string_equal(said, "");
    part[CD_UNLIKE_BIT_DTYPE] = 0.5, part[CD_UNLIKE_BIT_OPERATOR] = 0.25,
    part[CD_UNLIKE_BIT_INTRINSIC] = 0.009;
    cd_trained_on_shares(part, 1, said);
    assert_non_null(strstr(said, "dtype 50 %"));
    assert_non_null(strstr(said, "operator kind 25 %"));
    assert_null(strstr(said, cd_trained_on_reason(CD_UNLIKE_BIT_INTRINSIC)));
    assert_string_equal(cd_trained_on_reason(CD_N_UNLIKE), "?");
}

TESTS(NULL, NULL, odd_headers, too_many_marks, making_without_memory, shares, tells_what_is_new,
      a_stranger_has_threads, an_old_header_has_one_law, no_law_is_no_interval,
      shifts_go_by_their_part_of_the_time, more_is_seen, tells_what_a_device_saw, survives_a_header,
      bad_headers_are_refused, an_unknown_kind_makes_all_unknown, intervals_widen_and_never_narrow)
