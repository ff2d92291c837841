/* The stream of JSON: the answers of the library, in order, whatever stands between them; batches,
 * threads and the cache change nothing. */
#include "check.h"
#include "made_serve.h"

/* Batches as in the library give its bits; other batches, threads, the cache: of trees the same
 * bits. */
static void answers_are_the_librarys(void **state) {
    (void)state;
    static const run how[] = {{.batch = MADE_N},
                              {.batch = 1},
                              {.batch = 7, .cache = 64},
                              {.threads = 3, .batch = 1000, .cache = 1000}};
    for (int m = MADE_TREES; m <= MADE_TSF; m++) {
        score(m);
        for (int kind = 0; kind < (m == MADE_TSF ? ROWS : N_KIND); kind++)
            for (size_t k = 0; k < (m == MADE_TREES ? 4 : 1); k++) {
                cd_buf in = {0}, want = {0};
                run r = how[k];
                r.model = m;
                for (size_t i = 0; i < all.n; i++) put_request(&in, i, kind);
                for (size_t i = 0; i < all.n; i++) put_wanted(&want, i, m);
                expect(&r, in.p, want.p);
                assert_int_equal(r.st, CDMPP_OK);
                assert_true(r.stats.asked == all.n && r.stats.scored == all.n && !r.stats.bad);
                cd_buf_free(&in);
                cd_buf_free(&want);
            }
    }
}

/* All kinds in turn, with errors, empty lines and commands between them, twice: hits of the
 * cache. */
static void mixed(void **state) {
    (void)state;
    cd_buf in = {0}, want = {0};
    score(MADE_TREES);
    for (size_t i = 0; i < 200; i++) {
        put_request(&in, i % 100, (int)(i % N_KIND));
        put_wanted(&want, i % 100, MADE_TREES);
        if (i % 13 == 5) cd_buf_puts(&in, i % 2 ? "\n" : " \t\r\n");
        if (i % 17 == 3) {
            cd_buf_putf(&in, "{\"id\":\"%zu\",\"steps\":[]}\n", i);
            cd_buf_putf(&want,
                        "{\"id\":\"%zu\",\"error\":{\"code\":\"ESCHEMA\",\"message\":"
                        "\"\\\"steps\\\" needs task: steps alone name none\"}}\n",
                        i);
        }
    }
    for (size_t batch = 1; batch < 300; batch = 3 * batch + 2) {
        run r = {.batch = batch, .cache = 500, .threads = batch > 100 ? 2 : 1};
        expect(&r, in.p, want.p);
        assert_true(r.stats.bad == 12 && r.stats.reason[CDMPP_ESCHEMA] == 12 &&
                    r.stats.scored == 200);
        assert_true(r.stats.cache_asked == 200);
    }
    cd_buf_free(&in);
    cd_buf_free(&want);
}

/* ---- what is refused ---- */
static void bad_requests(void **state) {
    (void)state;
    static const char *const pair[][2] = {
        {"{\"id\":1}", "{\"id\":1,\"error\":{\"code\":\"ESCHEMA\",\"message\":\"expected one of i, "
                       "rows, steps, cmd, found 0 of them\"}}\n"},
        {"{\"id\":1,\"rows\":[],\"steps\":[],\"task\":\"\"}", "found 2 of them"},
        {"{\"id\":{},\"rows\":[]}",
         "{\"line\":1,\"error\":{\"code\":\"ESCHEMA\",\"key\":\"id\",\"message\":\"expected a "
         "number or a string, found object\"}}\n"},
        {"{\"id\":1,\"id\":2}", "\\\"id\\\" comes twice"},
        {"{\"id\":1,\"rows\":[]}", "\"EMODEL\",\"key\":\"device\",\"message\":\"expected one of "
                                   "e5-2673, zen5-avx512, found none\""},
        {"{\"id\":1,\"device\":\"e5-2673\",\"rows\":[]}",
         "{\"id\":1,\"error\":{\"code\":\"EINVALID\",\"message\":\"the program stores "
         "nothing\"}}\n"},
        {"{\"id\":1,\"device\":\"e5-2673\",\"rows\":[[1,2]]}",
         "\"EMODEL\",\"key\":\"rows[0]\",\"message\":\"expected rows of 164 numbers, found 2\""},
        {"{\"id\":1,\"device\":\"e5-2673\",\"rows\":[[NaN]]}",
         "\"EPARSE\",\"key\":\"rows[0]\",\"message\":\"expected a number in column 0\""},
        {"{\"id\":1,\"device\":\"e5-2673\",\"rows\":7}",
         "\"key\":\"rows\",\"message\":\"expected '['"},
        {"{\"id\":1,\"rows\":}", "\\\"rows\\\": expected a value"},
        {"{\"id\":1,\"device\":\"t4\",\"rows\":[[1]]}",
         "expected one of e5-2673, zen5-avx512, found 't4'"},
        {"{\"id\":1,\"device\":\"\",\"rows\":[]}",
         "\"key\":\"device\",\"message\":\"expected a name, found none\""},
        {"{\"id\":1,\"device\":7,\"rows\":[]}",
         "\"key\":\"device\",\"message\":\"expected a string, found integer\""},
        {"{\"id\":1,\"task\":\"nosuch\",\"rows\":[]}",
         "\"ENOTASK\",\"key\":\"task\",\"message\":\"no task file defines nosuch\""},
        {"{\"id\":1,\"task\":\"x\",\"i\":[]}", "\\\"task\\\" goes with rows or steps"},
        {"{\"id\":1,\"flop\":0,\"rows\":[]}",
         "\"key\":\"flop\",\"message\":\"expected a number above 0, found 0\""},
        {"{\"id\":1,\"i\":[[\"k\"]]}", "\"key\":\"i"},
        {"{\"cmd\":\"bye\"}", "expected hello or stats, found \\\"bye\\\""},
        {"{\"id\":2,\"cmd\":\"hello\",\"x\":1}", "{\"id\":2,\"error\""},
        {"[1]", "{\"line\":1,\"error\":{\"code\":\"EPARSE\""},
        {"{\"id\":3,\"rows\":[[1", "{\"id\":3,\"error\":{\"code\":\"EPARSE\",\"message\":\"column"},
        {"\xff", "{\"line\":1,\"error\""}};
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        run r = {.threads = 1};
        expect_part(&r, pair[i][0], pair[i][1]);
        assert_int_equal(r.st, CDMPP_OK);
        assert_true(r.stats.bad == 1 && r.stats.scored == 0);
    }
    cd_buf in = {0};
    cd_buf_puts(&in, "{\"id\":\"");
    for (int i = 0; i < 300; i++) cd_buf_puts(&in, "x");
    cd_buf_puts(&in, "\",\"rows\":[]}");
    expect_part(&(run){.threads = 1}, in.p,
                "{\"line\":1,\"error\":{\"code\":\"ERANGE\",\"key\":\"id\",\"message\":\"expected "
                "at most 256 bytes");
    cd_buf_free(&in);
}

/* NaN is no JSON; infinity, numbers beyond float and numbers that make a network overflow are
 * refused one by one. */
static void strange_numbers(void **state) {
    (void)state;
    static const char *const v[] = {"1e999", "-1e999", "1e39", "3e38", "-3e38", "1e-300"};
    for (int m = MADE_TREES; m <= MADE_MLP; m++) {
        cd_buf in = {0};
        for (size_t k = 0; k < sizeof v / sizeof *v; k++) {
            put_request(&in, k, ROWS);
            cd_buf_putf(&in, "{\"id\":\"%s\",\"device\":\"zen5-avx512\",\"rows\":[[", v[k]);
            for (int c = 0; c < CD_N_COL; c++) cd_buf_putf(&in, "%s%s", c ? "," : "", v[k]);
            cd_buf_puts(&in, "]]}\n");
        }
        run r = {.model = m};
        char *got = answers(&r, in.p, in.n, NULL);
        assert_int_equal(r.st, CDMPP_OK);
        assert_true(r.stats.asked == 12 && r.stats.bad >= 3 && r.stats.scored >= 6);
        for (size_t k = 0; k < 3; k++) { /* each in its place */
            char want[100];
            snprintf(want, sizeof want, "{\"id\":\"%s\",\"error\":{\"code\":\"ENUMERIC\"", v[k]);
            if (!strstr(got, want)) fail_msg("no %s in %s", want, got);
        }
        cd_mem_free(got);
        cd_buf_free(&in);
    }
}

static void rows_for_loop_nests(void **state) {
    (void)state;
    run r = {.model = MADE_TSF};
    expect_part(
        &r, "{\"id\":1,\"rows\":[]}",
        "\"key\":\"rows\",\"message\":\"the model's transformer reads the loop nests of programs");
    expect_part(&r, "{\"cmd\":\"hello\"}", "\"takes_rows\":false");
    run p = {.model = MADE_TSF, .format = CD_SERVE_PACKED};
    expect(&p, "", "");
    assert_int_equal(p.st, CDMPP_EMODEL);
}

static void nearest_and_alone(void **state) {
    (void)state;
    cd_buf in = {0};
    put_request(&in, 3, ROWS);
    char *at = strstr(in.p, "\"device\":\"zen5-avx512\"");
    memcpy(at, "\"device\":\"zen4-avx512\"", 22);
    run r = {.model = MADE_MLP, .nearest = true};
    expect_part(
        &r, in.p,
        "\"unknown_device\"],\"reason\":\"device zen4-avx512\",\"device\":\"zen5-avx512\"}");
    cd_buf_clear(&in);
    cd_buf_puts(&in, "{\"id\":1,\"task\":\"only a name\",\"rows\":");
    put_rows(&in, 3);
    cd_buf_puts(&in, "}");
    expect_part(&(run){.model = MADE_MLP, .no_tasks = true}, in.p, "{\"id\":1,\"latency_s\":");
    cd_buf_free(&in);
    expect_part(&(run){.no_tasks = true}, "{\"id\":1,\"task\":\"k\",\"steps\":[]}",
                "the task has no definition");
}

static void costs(void **state) {
    (void)state;
    cd_buf in = {0};
    put_request(&in, 3, RECORD);
    run r = {.costs = true, .cache = 10};
    expect_part(&r, in.p, ",\"measured_s\":1,\"rel_error\":-0.9");
    expect_part(&(run){.costs = false}, in.p, ",\"flags\":[]}");
    cd_buf_free(&in);
}

/* ---- lines ---- */
static void long_and_half_lines(void **state) {
    (void)state;
    cd_buf in = {0}, want = {0};
    score(MADE_TREES);
    for (size_t i = 0; i < 3; i++) {
        put_request(&in, i, RECORD);
        put_wanted(&want, i, MADE_TREES);
        for (int k = 0; k < 3000000; k++) cd_buf_put(&in, "x", 1);
        cd_buf_puts(&in, "\n");
        cd_buf_putf(&want,
                    "{\"line\":%zu,\"error\":{\"code\":\"ERANGE\",\"message\":\"the line is longer "
                    "than 2000 bytes\"}}\n",
                    2 * i + 2);
    }
    put_request(&in, 3, RECORD);
    in.n -= 1; /* the last line has no end, and is whole */
    put_wanted(&want, 3, MADE_TREES);
    run r = {.max_bytes = 2000};
    char *got = answers(&r, in.p, in.n, NULL);
    assert_string_equal(got, want.p);
    cd_mem_free(got);
    in.n -= 1; /* now it is not */
    got = answers(&r, in.p, in.n, NULL);
    assert_non_null(strstr(got, "{\"id\":3,\"error\":{\"code\":\"EPARSE\""));
    assert_true(r.stats.asked == 7 && r.stats.bad == 4);
    cd_mem_free(got);
    cd_buf_free(&in);
    cd_buf_free(&want);
}

/* 10^5 rows fit the line, but not the limit of rows; they are not kept. */
static void too_many_rows(void **state) {
    (void)state;
    cd_buf in = {0};
    cd_buf_puts(&in, "{\"id\":1,\"rows\":[");
    for (int i = 0; i < 100000; i++) {
        cd_buf_puts(&in, i ? ",[" : "[");
        for (int c = 0; c < CD_N_COL; c++) cd_buf_put(&in, c ? ",1" : "1", c ? 2 : 1);
        cd_buf_puts(&in, "]");
    }
    cd_buf_puts(&in, "]}\n{\"id\":2,\"rows\":[]}\n");
    run r = {.device = "zen5-avx512"};
    expect(&r, in.p,
           "{\"id\":1,\"error\":{\"code\":\"ERANGE\",\"key\":\"rows\",\"message\":\"expected at "
           "most 16384 rows, found more\"}}\n"
           "{\"id\":2,\"error\":{\"code\":\"EINVALID\",\"message\":\"the program stores "
           "nothing\"}}\n");
    cd_buf_free(&in);
}

static void hello_and_stats(void **state) {
    (void)state;
    run r = {.cache = 10, .batch = 5};
    static const char in[] = "{\"cmd\":\"hello\",\"id\":\"a\"}\n{\"id\":1}\n{\"cmd\":\"stats\"}";
    char *got = answers(&r, in, sizeof in - 1, NULL);
    assert_non_null(strstr(got, "{\"id\":\"a\",\"cdmpp\":\"" CDMPP_VERSION
                                "\",\"protocol\":1,\"model\":\"sha256:"));
    assert_non_null(
        strstr(got, "\"feature_len\":164,\"takes_rows\":true,\"units\":\"s\",\"profile\":\"full\","
                    "\"devices\":[\"e5-2673\",\"zen5-avx512\"],\"batch\":5,"));
    assert_non_null(strstr(got, "\n{\"requests\":1,\"scored\":0,\"bad\":1,\"batches\":1,\"cache\":{"
                                "\"asked\":0,\"found\":0}}\n"));
    cd_mem_free(got);
}

TESTS(setup, teardown, answers_are_the_librarys, mixed, bad_requests, strange_numbers,
      rows_for_loop_nests, nearest_and_alone, costs, long_and_half_lines, too_many_rows,
      hello_and_stats)
