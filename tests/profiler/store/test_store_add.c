/* When two measurements are the same one, what is refused, and the digests and statistics behind
 * it. */
#include "check.h"
#include "profiler/store/store_internal.h"
#include "tmp.h"

#define STR(s) ((cd_str){(s), sizeof(s) - 1})

static cdmpp_err err;
static tmp_dir dir;
static cd_store *store;

static int set_up(void **state) {
    (void)state;
    dir = tmp_make();
    return cd_store_open(tmp_path(&dir, "s.db"), true, &store, &err) != CDMPP_OK;
}

static int tear_down(void **state) {
    (void)state;
    cd_store_close(store);
    tmp_remove(&dir);
    return 0;
}

static const double cost[] = {0.5, 0.75}, other_cost[] = {0.5, 1};
#define TEXT(s)                                                                                    \
    { (s), sizeof(s) - 1 }
static const cd_store_env here = {.host = TEXT("h"),
                                  .cpu = TEXT("c"),
                                  .os = TEXT("o"),
                                  .compiler = TEXT("k"),
                                  .governor = TEXT("g"),
                                  .tool = TEXT("t"),
                                  .extra = TEXT("{}")};

static cd_store_row made(void) {
    return (cd_store_row){.device = STR("d"),
                          .target = STR("cuda"),
                          .target_tail = STR("[]"),
                          .workload_key = STR("w"),
                          .operator_name = STR("add"),
                          .shape = STR("[[1]]"),
                          .dtype = STR("f"),
                          .layout = STR("n"),
                          .flop = 4,
                          .has_steps = true,
                          .steps = STR("[1]"),
                          .latency = {0.25, 0.5, 0.75, 0.125, 0.0625, 2, 0},
                          .n_cost = 2,
                          .cost_s = cost,
                          .total_s = 1.5,
                          .timestamp = 7,
                          .version = STR("v"),
                          .env = &here,
                          .line = 3};
}

static bool is_fresh(const cd_store_row *r) {
    bool fresh;
    assert_ok(cd_store_add(store, r, &fresh, &err));
    return fresh;
}

/* Each of these makes it another measurement; where it stood in a file, and what can be told from
 * the workload, does not. */
TEST(same_and_other) {
    cd_store_row r = made();
    assert_true(is_fresh(&r));
    assert_false(is_fresh(&r));
    r.line = 4;
    assert_false(is_fresh(&r));
    r.latency.cv = 1;
    assert_false(is_fresh(&r));
    for (int k = 0; k < 26; k++) {
        cd_store_env e = here;
        r = made();
        r.env = &e;
        cd_str *const text[] = {
            &r.device, &r.target, &r.target_tail, &r.workload_key, &r.version, &r.steps, &e.host,
            &e.cpu,    &e.os,     &e.compiler,    &e.governor,     &e.tool,    &e.extra};
        double *const real[] = {&r.latency.min_s, &r.latency.median_s, &r.latency.mean_s,
                                &r.latency.std_s, &r.total_s};
        if (k < 13) *text[k] = STR("x");
        else if (k < 18) *real[k - 13] *= 2;
        else if (k == 18) r.latency.n = 3;
        else if (k == 19) r.latency.flags = CD_STORE_COLD;
        else if (k == 20) r.error_no = 1;
        else if (k == 21) r.timestamp = 8;
        else if (k == 22) r.cost_s = other_cost;
        else if (k == 23) r.n_cost = 1;
        else if (k == 24) r.env = NULL;
        else r.has_steps = false;
        if (!is_fresh(&r) || is_fresh(&r)) fail_msg("change %d", k);
    }
}

TEST(names_in_utf8) {
    static const struct {
        const char *text;
        bool good;
    } t[] = {{"", true},
             {"a\x7f", true},
             {"\x80", false},
             {"\xc1\xbf", false},
             {"\xc2\x80", true},
             {"\xc2", false},
             {"\xdf\xbf", true},
             {"\xc2\xc0", false},
             {"\xe0\x9f\xbf", false},
             {"\xe0\xa0\x80", true},
             {"\xe0\xa0", false},
             {"\xed\x9f\xbf", true},
             {"\xed\xa0\x80", false},
             {"\xee\x80\x80", true},
             {"\xe1\x80z", false},
             {"\xf0\x8f\xbf\xbf", false},
             {"\xf0\x90\x80\x80", true},
             {"\xf4\x8f\xbf\xbf", true},
             {"\xf4\x90\x80\x80", false},
             {"\xf5\x80\x80\x80", false},
             {"\xf1\x80\x80", false},
             {"\xf1\x80\x80\x80z", true},
             {"z\xf1\x80\x80\xbf", true},
             {"\xff", false}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        for (int k = 0; k < 8; k++) {
            cd_store_row r = made();
            cd_str *const text[] = {&r.device, &r.target, &r.operator_name, &r.workload_key,
                                    &r.shape,  &r.dtype,  &r.layout,        &r.version};
            *text[k] = (cd_str){t[i].text, strlen(t[i].text)};
            const cdmpp_status st = cd_store_add(store, &r, NULL, &err);
            if (t[i].good) assert_ok(st);
            else assert_error(st, "expected names in UTF-8 [ESCHEMA]");
        }
}

TEST(times) {
    static const struct {
        double time;
        bool good;
    } t[] = {{1e-300, true}, {0, false},   {-1, false},      {9.9e9, true},
             {1e10, false},  {NAN, false}, {INFINITY, false}};
    cd_store_row r = made();
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        for (int k = 0; k < 3; k++) {
            r = made();
            *(k == 0   ? &r.latency.min_s
              : k == 1 ? &r.latency.median_s
                       : &r.latency.mean_s) = t[i].time;
            assert_status(cd_store_add(store, &r, NULL, &err), t[i].good ? CDMPP_OK : CDMPP_ERANGE);
            r.error_no = 1; /* then it does not count */
            assert_ok(cd_store_add(store, &r, NULL, &err));
        }
    r = made();
    r.total_s = INFINITY;
    assert_error(cd_store_add(store, &r, NULL, &err), "total time is inf [ERANGE]");
    r.total_s = -1;
    assert_ok(cd_store_add(store, &r, NULL, &err));
}

TEST(statistics) {
    static const struct {
        double x[4];
        size_t n;
        cd_store_latency want;
    } t[] = {
        {{0}, 0, {0, 0, 0, 0, 0, 0, 0}},
        {{3}, 1, {3, 3, 3, 0, 0, 1, 0}},
        /* two are too few to be called noisy */
        {{5, 1}, 2, {1, 3, 3, 2.8284271247461903, 0.9428090415820634, 2, 0}},
        {{5, 1, 3}, 3, {1, 3, 3, 2, 2 / 3.0, 3, CD_STORE_NOISY}},
        /* 3 % is not above it */
        {{100, 97, 103}, 3, {97, 100, 100, 3, 0.03, 3, 0}},
        {{100, 96.9, 103.1}, 3, {96.9, 100, 100, 3.1, 0.031, 3, CD_STORE_NOISY}},
        {{4, 1, 3, 2}, 4, {1, 2.5, 2.5, 1.2909944487358056, 0.5163977794943222, 4, CD_STORE_NOISY}},
        {{-1, 1}, 2, {-1, 0, 0, 1.4142135623730951, 0, 2, 0}}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        double x[4];
        cd_store_latency l;
        memcpy(x, t[i].x, sizeof x);
        cd_store_latency_of(x, t[i].n, &l);
        const double got[] = {l.min_s, l.median_s, l.mean_s, l.std_s, l.cv};
        const double want[] = {t[i].want.min_s, t[i].want.median_s, t[i].want.mean_s,
                               t[i].want.std_s, t[i].want.cv};
        for (int k = 0; k < 5; k++) assert_close(got[k], want[k], 1e-14, 0);
        assert_int_equal(l.n, t[i].want.n);
        assert_int_equal(l.flags, t[i].want.flags);
    }
}

/* Stores that exist hold these: a digest that changed would add all measurements again. */
TEST(digests_stay) {
    static const struct {
        const char *text;
        uint64_t h[2];
    } t[] = {{"", {0xc722066a3db16492u, 0xe332d731d8101491u}},
             {"a", {0xb89d55458888a2eeu, 0xd109ffa84cc9dc74u}},
             {"12345678", {0x24716163b8e4a40eu, 0x0a957f0cab7b4cdfu}},
             {"123456789", {0x9fc250c6fcb25ffeu, 0x94864e01b196d76bu}},
             {"12345678abcdefg", {0x82433cf93a8540aeu, 0xc555ea9d212904d3u}}};
    cd_store_digest d;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        cd_store_digest_init(&d);
        cd_store_digest_text(&d, (cd_str){t[i].text, strlen(t[i].text)});
        assert_true(d.h[0] == t[i].h[0] && d.h[1] == t[i].h[1]);
    }
    cd_store_digest_init(&d);
    cd_store_digest_word(&d, 0x123456789abcdefu);
    cd_store_digest_real(&d, -1.5);
    assert_true(d.h[0] == 0x6f6cc52281c18ac5u && d.h[1] == 0x189ab57632bb05aeu);
}

TESTS(set_up, tear_down, same_and_other, names_in_utf8, times, statistics, digests_stay)
