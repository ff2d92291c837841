/* serving_requests: what a table of requests may say, and that the scheduler takes each with its
 * own lengths at its own time. */
#include "made_serving_session.h"

static cd_serving_requests q;
static size_t n_told;
static char told[512];

static void on_bad(void *ctx, const cdmpp_err *e) {
    (void)ctx;
    n_told++;
    (void)cdmpp_err_format(e, told, sizeof told);
}

static cdmpp_status reads(const char *text) {
    const char *file = tmp_put(&dir, "load.csv", text, strlen(text));
    err = (cdmpp_err){0};
    n_told = 0;
    return cd_serving_requests_read(file, on_bad, NULL, &q, &err);
}

TEST(reading) {
    assert_ok(reads("osl, isl ,name\n2,10,a\n# a line\n4,30,b\n"));
    assert_int_equal(q.n, 2);
    assert_false(q.arrive);
    assert_int_equal(q.v[0].isl, 10);
    assert_int_equal(q.v[1].osl, 4);
    assert_close(q.isl, 20, 0, 0);
    assert_close(q.osl, 3, 0, 0);
    assert_close(q.longest, 34, 0, 0);
    cd_serving_requests_free(&q);
    /* by time; those of one time as the file has them */
    assert_ok(reads("at_s,isl,osl\n2.5,1,1\n0.5,2,1\n2.5,3,1\n"));
    assert_true(q.arrive);
    assert_int_equal(q.v[0].isl, 2);
    assert_int_equal(q.v[1].isl, 1);
    assert_int_equal(q.v[2].isl, 3);
    cd_serving_requests_free(&q);
}

TEST(bad_rows) {
    static const char *const bad[] = {"0,1,1",  "1,0,1",   "1.5,1,1",      "1,x,1",
                                      "1,1,-1", "1,1,nan", "20000000,1,1", ",1,1"};
    char text[128];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, "isl,osl,at_s\n7,8,9\n%s\n", bad[i]);
        assert_ok(reads(text));
        assert_int_equal(q.n, 1);
        assert_int_equal(q.n_bad, 1);
        assert_int_equal(n_told, 1);
        assert_non_null(strstr(told, "load.csv:3"));
        cd_serving_requests_free(&q);
    }
    assert_ok(reads("isl,osl\n0,1\n1\n0,1\n0,1\n0,1\n0,1\n0,1\n7,8\n0,1\n0,1\n1\n"));
    assert_true(q.n_bad == 10 && n_told == 9);
    assert_non_null(strstr(told, "2 further rows are left out"));
    cd_serving_requests_free(&q);
    assert_status(reads("isl,osl\n0,1\n"), CDMPP_ENODATA);
    assert_int_equal(n_told, 1);
    cd_serving_requests_free(&q);
    assert_status(reads("isl\n3\n"), CDMPP_ESCHEMA);
    cd_serving_requests_free(&q);
    assert_status(reads("isl,osl\n"), CDMPP_ENODATA);
    cd_serving_requests_free(&q);
}

TEST(any_allocation_may_fail) {
    const char *file = tmp_put(&dir, "f.csv", "isl,osl\n3,4\n", 12);
    FAULT_SWEEP(f, 2) {
        f.st = cd_serving_requests_read(file, on_bad, NULL, &q, &f.err);
        cd_serving_requests_free(&q);
    }
}

/* ---- in the scheduler ---- */
static const cd_serving_limits limit = {
    .tokens = 1000, .sequences = 8, .cache_tokens = 10000, .prompts = CD_SERVING_WHOLE};

static cd_serving_result runs(made_serving *s, cd_serving_load load, cd_serving_limits l) {
    cd_serving_engine *e;
    cd_serving_result r;
    err = (cdmpp_err){0};
    assert_ok(cd_serving_engine_new(&s->m, &s->l, &s->k, s->c, NULL, &e, &err));
    assert_ok(cd_serving_simulate(e, &load, &l, 0, &r, &err));
    cd_serving_engine_free(e);
    return r;
}

static double alone(made_serving *s, double isl, double osl) {
    return runs(s, (cd_serving_load){.isl = isl, .osl = osl, .concurrency = 1, .requests = 1},
                limit)
        .total_s;
}

TEST(one_after_the_other) {
    made_serving s;
    made_serving_open(&s, path, 1);
    assert_ok(reads("isl,osl\n16,5\n40,2\n24,9\n"));
    cd_serving_load load = {.isl = 1, .osl = 1, .concurrency = 1, .requests = 4, .given = &q};
    const double a = alone(&s, 16, 5), b = alone(&s, 40, 2), c = alone(&s, 24, 9);
    assert_close(runs(&s, load, limit).total_s, a + b + c + a, 1e-9, 0); /* in turn */
    load.each = 2, load.requests = 2; /* the first and the third one */
    assert_close(runs(&s, load, limit).total_s, a + c, 1e-9, 0);
    cd_serving_requests_free(&q);
    made_serving_close(&s);
}

TEST(by_their_times) {
    made_serving s;
    made_serving_open(&s, path, 1);
    assert_ok(reads("at_s,isl,osl\n100,40,2\n3,16,5\n"));
    const cd_serving_result r =
        runs(&s, (cd_serving_load){.isl = 1, .osl = 1, .requests = 2, .given = &q}, limit);
    assert_close(r.total_s, 97 + alone(&s, 40, 2), 1e-9, 0); /* from the first one on */
    assert_close(r.tokens_s * r.total_s, 7, 1e-9, 0);
    assert_close(r.ttft_s, (alone(&s, 40, 1) + alone(&s, 16, 1)) / 2, 1e-6, 0);
    cd_serving_requests_free(&q);
    made_serving_close(&s);
}

/* A static batch: one step has all prompts, and the shortest answers leave first. */
TEST(a_batch) {
    made_serving s;
    made_serving_open(&s, path, 1);
    assert_ok(reads("isl,osl\n16,2\n48,4\n"));
    const cd_serving_load load = {.isl = 1, .osl = 1, .concurrency = 2, .requests = 2, .given = &q};
    const cd_serving_result r = runs(&s, load, limit);
    assert_int_equal(r.steps, 1 + 3);
    assert_close(r.tokens_s * r.total_s, 6, 1e-9, 0);
    assert_true(r.total_s < alone(&s, 16, 2) + alone(&s, 48, 4));
    assert_true(r.total_s > alone(&s, 48, 4));
    cd_serving_requests_free(&q);
    made_serving_close(&s);
}

/* The newest sequence goes out of the middle of the heap, and the last one takes its place: it may
 * belong above it. Steps as a scheduler without a heap counts them. */
TEST(out_of_the_middle) {
    static const struct {
        const char *text;
        double n, cache;
        size_t steps, put_back;
    } of[] = {{"2,31\n11,18\n4,2\n12,23\n5,11\n6,13\n10,11\n6,28\n", 8, 92, 42, 3},
              {"1,15\n3,4\n7,10\n4,14\n4,9\n5,23\n4,11\n3,14\n8,23\n12,15\n", 10, 90, 31, 3}};
    made_serving s;
    char text[256];
    made_serving_open(&s, path, 1);
    for (size_t i = 0; i < 2; i++) {
        cd_serving_limits l = limit;
        l.cache_tokens = of[i].cache;
        snprintf(text, sizeof text, "isl,osl\n%s", of[i].text);
        assert_ok(reads(text));
        const cd_serving_result r =
            runs(&s,
                 (cd_serving_load){
                     .isl = 1, .osl = 1, .concurrency = 8, .requests = of[i].n, .given = &q},
                 l);
        assert_int_equal(r.steps, of[i].steps);
        assert_close(r.put_back, (double)of[i].put_back, 0, 0);
        cd_serving_requests_free(&q);
    }
    made_serving_close(&s);
}

/* A cache that keeps the place of all tokens: each request keeps its own. */
TEST(reserved) {
    made_serving s;
    made_serving_open(&s, path, 1);
    assert_ok(reads("isl,osl\n16,4\n16,4\n16,80\n"));
    cd_serving_limits l = limit;
    l.reserved = true, l.cache_tokens = 60; /* two short ones, or the long one alone */
    const cd_serving_result r = runs(
        &s, (cd_serving_load){.isl = 1, .osl = 1, .concurrency = 3, .requests = 3, .given = &q}, l);
    assert_int_equal(r.steps, 4 + 80);
    l.cache_tokens = 136; /* all */
    assert_int_equal(
        runs(&s,
             (cd_serving_load){.isl = 1, .osl = 1, .concurrency = 3, .requests = 3, .given = &q}, l)
            .steps,
        80);
    cd_serving_requests_free(&q);
    made_serving_close(&s);
}

TESTS(up, down, reading, bad_rows, any_allocation_may_fail, one_after_the_other, by_their_times,
      a_batch, out_of_the_middle, reserved)
