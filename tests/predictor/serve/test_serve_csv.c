/* The stream as a table: rows and schedules, programs over several lines, and what is refused. */
#include "check.h"
#include "made_serve.h"

#define HEAD "id,latency_s,score,low_s,high_s,rel_std,flags,error,message,reason\n"

/* The names of the features in the order of the table, then `words`. */
static void put_head(cd_buf *b, const char *words) {
    cd_buf_puts(b, words);
    for (int c = 0; c < CD_N_COL; c++) cd_buf_putf(b, ",%s", cd_cols()[c].name);
    cd_buf_puts(b, "\n");
}

static void put_program(cd_buf *b, size_t i, const char *words) {
    for (int64_t r = all.row_ptr[i]; r < all.row_ptr[i + 1]; r++) {
        cd_buf_puts(b, words);
        for (int64_t c = 0; c < CD_N_COL; c++)
            cd_buf_putf(b, ",%.9g", (double)all.rows[r * CD_N_COL + c]);
        cd_buf_puts(b, "\n");
    }
}

static void put_wanted_csv(cd_buf *b, size_t i, const char *id) {
    const cd_scored o = wanted(i);
    cd_response_csv(b, &(cd_response){.id = {id, strlen(id)}, .o = &o});
}

static void rows(void **state) {
    (void)state;
    score_form(MADE_TREES, CDMPP_ROWS_F32, false);
    for (size_t batch = 1; batch < 500; batch = 4 * batch + 1) {
        cd_buf in = {0}, want = {0};
        put_head(&in, "id,device");
        cd_buf_puts(&want, HEAD);
        for (size_t i = 0; i < all.n; i++) {
            char id[24], words[64];
            snprintf(id, sizeof id, "%zu", i);
            snprintf(words, sizeof words, "%zu,zen5-avx512", i);
            put_program(&in, i, words);
            put_wanted_csv(&want, i, id);
            if (i % 20 == 7) cd_buf_puts(&in, i % 3 ? "\n" : "\r\n");
        }
        run r = {.format = CD_SERVE_CSV, .batch = batch, .threads = 2, .cache = 50};
        expect(&r, in.p, want.p);
        assert_int_equal(r.st, CDMPP_OK);
        assert_true(r.stats.scored == all.n && !r.stats.bad);
        cd_buf_free(&in);
        cd_buf_free(&want);
    }
}

static void put_quoted(cd_buf *b, const char *p, size_t n) {
    cd_buf_puts(b, "\"");
    for (size_t i = 0; i < n; i++) cd_buf_put(b, p[i] == '"' ? "\"\"" : p + i, p[i] == '"' ? 2 : 1);
    cd_buf_puts(b, "\"");
}

static void schedules(void **state) {
    (void)state;
    cd_buf in = {0}, want = {0};
    score(MADE_TREES);
    cd_buf_puts(&in, "task,target,\"steps\",id\n");
    cd_buf_puts(&want, HEAD);
    for (size_t i = 0; i < 30; i++) {
        put_quoted(&in, key, strlen(key));
        cd_buf_puts(&in, "," MADE_TARGET ",");
        put_quoted(&in, all.steps[i].p, all.steps[i].n);
        cd_buf_putf(&in, ",\"a,\"\"%zu\"\n", i);
        cd_buf id = {0};
        cd_buf_putf(&id, "a,\"%zu", i);
        put_wanted_csv(&want, i, id.p);
        cd_buf_free(&id);
    }
    run r = {.format = CD_SERVE_CSV, .batch = 30};
    expect(&r, in.p, want.p);
    cd_buf_free(&in);
    cd_buf_free(&want);
}

/* A bad line costs its program; of programs without an id, itself. */
static void bad_lines(void **state) {
    (void)state;
    cd_buf in = {0}, want = {0};
    score(MADE_TREES);
    put_head(&in, "id,device");
    cd_buf_puts(&want, HEAD);
    put_program(&in, 0, "a,zen5-avx512");
    put_wanted_csv(&want, 0, "a");
    put_program(&in, 1, "b,zen5-avx512");
    cd_buf_puts(&in, "b,zen5-avx512,1,2\n");
    put_program(&in, 1, "b,zen5-avx512");
    cd_buf_puts(&want, "b,,,,,,,ESCHEMA,\"expected 166 fields, found 4\",\n");
    put_program(&in, 2, "c,zen5-avx512");
    put_program(&in, 2, "c,e5-2673");
    cd_buf_puts(&want, "c,,,,,,,ESCHEMA,device differs within a program,\n");
    put_program(&in, 3, "d,t4");
    cd_buf_puts(&want,
                "d,,,,,,,EMODEL,\"device: expected one of e5-2673, zen5-avx512, found 't4'\",\n");
    put_program(&in, 4, "e,zen5-avx512");
    put_wanted_csv(&want, 4, "e");
    cd_buf_puts(&in, "\n\"x\n"); /* alone */
    run r = {.format = CD_SERVE_CSV, .batch = 2};
    char *got = answers(&r, in.p, in.n, NULL);
    cd_buf_putf(&want, "%d,,,,,,,EPARSE,a quoted field has no end in its line,\n",
                1 +
                    (int)(all.row_ptr[1] + 2 * (all.row_ptr[2] - all.row_ptr[1]) + 1 +
                          2 * (all.row_ptr[3] - all.row_ptr[2]) +
                          (all.row_ptr[5] - all.row_ptr[3])) +
                    2);
    assert_string_equal(got, want.p);
    assert_true(r.stats.scored == 2 && r.stats.bad == 4);
    cd_mem_free(got);
    cd_buf_free(&in);
    cd_buf_free(&want);
}

static void strange_numbers(void **state) {
    (void)state;
    static const char *const v[] = {"nan", "inf", "", " ", "1e999", "1e39", "0x1", "1;2"};
    for (size_t k = 0; k < sizeof v / sizeof *v; k++) {
        cd_buf in = {0};
        put_head(&in, "id");
        cd_buf_puts(&in, "1");
        for (int c = 0; c < CD_N_COL; c++) cd_buf_putf(&in, ",%s", c == 100 ? v[k] : "1");
        run r = {.format = CD_SERVE_CSV, .device = "zen5-avx512"};
        char *got = answers(&r, in.p, in.n, NULL);
        assert_non_null(
            strstr(got, k == 4 || k == 5 ? "\n1,,,,,,,ENUMERIC," : "\n1,,,,,,,EPARSE,"));
        cd_mem_free(got);
        cd_buf_free(&in);
    }
}

static void bad_heads(void **state) {
    (void)state;
    static const struct {
        const char *head, *want;
        cdmpp_status st;
    } bad[] = {{"id,nosuch\n", "column 2: expected id,", CDMPP_ESCHEMA},
               {"id,id\n", "'id' comes twice", CDMPP_ESCHEMA},
               {"id,task\n", "either the 164 features or steps", CDMPP_ESCHEMA},
               {"steps\n", "need the column task", CDMPP_ESCHEMA},
               {"id,is_gpu\n", "expected", CDMPP_ESCHEMA},
               {"\"id\n", "no end in its line", CDMPP_EPARSE},
               {"\n", "column 1", CDMPP_ESCHEMA}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        run r = {.format = CD_SERVE_CSV};
        expect(&r, bad[k].head, "");
        assert_int_equal(r.st, bad[k].st);
        if (!strstr(r.err.msg, bad[k].want)) fail_msg("%s: %s", bad[k].head, r.err.msg);
        assert_int_equal(r.err.line, 1);
    }
    run empty = {.format = CD_SERVE_CSV}, none = {.format = CD_SERVE_CSV};
    expect(&empty, "", "");
    assert_int_equal(empty.st, CDMPP_OK);
    expect(&none, "id,task,steps\n", HEAD);
}

/* 20,000 rows of a program are refused and not kept; the programs around it are scored. */
static void too_many_rows(void **state) {
    (void)state;
    cd_buf in = {0}, want = {0};
    score(MADE_TREES);
    put_head(&in, "id");
    cd_buf_puts(&want, HEAD);
    put_program(&in, 0, "a");
    put_wanted_csv(&want, 0, "a");
    for (int i = 0; i < 20000; i++) {
        cd_buf_puts(&in, "b");
        for (int c = 0; c < CD_N_COL; c++) cd_buf_put(&in, ",1", 2);
        cd_buf_puts(&in, "\n");
    }
    cd_buf_puts(&want, "b,,,,,,,ERANGE,\"expected at most 16384 rows, found more\",\n");
    put_program(&in, 1, "c");
    put_wanted_csv(&want, 1, "c");
    run r = {.format = CD_SERVE_CSV, .device = "zen5-avx512"};
    expect(&r, in.p, want.p);
    cd_buf_free(&in);
    cd_buf_free(&want);
}

TESTS(setup, teardown, rows, schedules, bad_lines, strange_numbers, bad_heads, too_many_rows)
