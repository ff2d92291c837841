/* serving_runs, serving_stack: what a table of runs may say, and what it may not; versions. */
#include "predictor/serving/serving.h"
#include "check.h"
#include "fault.h"
#include "tmp.h"

static tmp_dir dir;
static cd_serving_runs r;
static cdmpp_err err;

static cdmpp_status reads(const char *text) {
    const cd_serving_config usual = cd_serving_config_defaults();
    const char *file = tmp_put(&dir, "r.csv", text, strlen(text));
    memset(&err, 0, sizeof err);
    return cd_serving_runs_read(file, &usual, NULL, NULL, &r, &err);
}

static void refuses(const char *text, cdmpp_status st, const char *key) {
    assert_int_equal(reads(text), st);
    assert_string_equal(err.key, key);
    cd_serving_runs_free(&r);
}

TEST(whole_numbers) {
    static const char *const of[] = {"tp",
                                     "pp",
                                     "dp",
                                     "ep",
                                     "engines",
                                     "workers",
                                     "max_sequences",
                                     "decode_tp",
                                     "decode_pp",
                                     "decode_dp",
                                     "decode_ep",
                                     "decode_workers",
                                     "decode_max_sequences",
                                     "isl",
                                     "osl",
                                     "concurrency",
                                     "requests",
                                     "max_tokens",
                                     "node_gpus"};
    char text[64];
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        snprintf(text, sizeof text, "%s\n1.5\n", of[i]);
        refuses(text, CDMPP_ERANGE, of[i]);
        const bool alone = strncmp(of[i], "decode_", 7) != 0 || !strcmp(of[i], "decode_workers");
        snprintf(text, sizeof text, alone ? "%s\n2.0\n" : "%s,decode_workers\n2.0,1\n", of[i]);
        assert_ok(reads(text));
        cd_serving_runs_free(&r);
    }
    assert_ok(reads("rate,spread,memory_share,node_gbs,ttft_s,tpot_s\n1.5,0.5,0.5,1.5,1.5,1.5\n"));
    assert_close(r.v[0].rate, 1.5, 0, 0);
    cd_serving_runs_free(&r);
}

TEST(columns_that_say_the_same) {
    refuses("engines,workers\n2,2\n", CDMPP_ESCHEMA, "workers");
    refuses("kv_dtype,kv-dtype\nfp8,fp8\n", CDMPP_ESCHEMA, "kv-dtype");
    assert_ok(reads("engines\n3\n"));
    assert_close(r.v[0].worker.count, 3, 0, 0);
    cd_serving_runs_free(&r);
}

TEST(loads) {
    assert_ok(reads("rate,concurrency\n2,\n,3\n,\n"));
    assert_close(r.v[0].rate, 2, 0, 0);
    assert_close(r.v[0].concurrency, 0, 0, 0);
    assert_close(r.v[1].rate, 0, 0, 0);
    assert_close(r.v[1].concurrency, 3, 0, 0);
    assert_close(r.v[2].concurrency, 1, 0, 0);
    cd_serving_runs_free(&r);
    refuses("rate,concurrency\n2,3\n", CDMPP_ERANGE, "rate");
    refuses("decode_tp\n2\n", CDMPP_ERANGE, "decode_tp"); /* of no engine */
    refuses("decode_tp,decode_workers\n2,0\n", CDMPP_ERANGE, "decode_tp");
    assert_ok(reads("decode_tp,decode_workers\n2,1\n,\n"));
    cd_serving_runs_free(&r);
    refuses("kv_dtype\nint4_wo\n", CDMPP_ESCHEMA, "kv_dtype");
}

static void keep(void *ctx, const cdmpp_err *why) {
    (void)ctx;
    err = *why;
}

typedef struct {
    size_t n;
    cdmpp_err v[20];
} told;

static void keep_all(void *ctx, const cdmpp_err *why) {
    told *t = ctx;
    assert_true(t->n < 20);
    t->v[t->n++] = *why;
}

/* Eight bad rows are told in the order of the file, whatever is wrong with them, and then how many
 * more there are. */
TEST(first_bad_rows) {
    static const char *const bad[] = {"0,16\n", "1\n", "1,x\n", "1,16,4\n"};
    const cd_serving_config usual = cd_serving_config_defaults();
    for (size_t n = 1; n < 24; n++) {
        cd_buf b = {0};
        told t = {0};
        size_t line[24];
        cd_buf_puts(&b, "tp,isl\n");
        for (size_t i = 0, at = 2; i < n; i++, at++) {
            if (i % 3 == 0) cd_buf_puts(&b, "1,16\n"), at++;
            cd_buf_puts(&b, bad[i % 4]);
            line[i] = at;
        }
        assert_ok(cd_serving_runs_read(tmp_put(&dir, "many.csv", b.p, b.n), &usual, keep_all, &t,
                                       &r, &err));
        assert_int_equal(r.n_bad, n);
        assert_int_equal(t.n, n > 8 ? 9 : n);
        for (size_t i = 0; i < n && i < 8; i++) assert_int_equal(t.v[i].line, line[i]);
        if (n == 9) assert_string_equal(t.v[8].msg, "1 further row is left out");
        if (n == 23) assert_string_equal(t.v[8].msg, "15 further rows are left out");
        cd_serving_runs_free(&r);
        cd_buf_free(&b);
    }
    refuses("tp,isll,isl,oslo,foo\n1,1,1,1,1\n", CDMPP_ESCHEMA, "isll");
    assert_string_equal(err.msg, "unknown column; so are oslo, foo");
    refuses("isl\nx\n", CDMPP_EPARSE, "isl");
    assert_string_equal(err.msg, "expected a number, found 'x'");
}

/* With somebody who is told a bad row costs only itself. */
TEST(bad_rows) {
    static const char text[] = "tp,isl\n1,16\nx,16\n2,32\n0,1\n", none[] = "tp\nx\n",
                      empty[] = "tp\n";
    const cd_serving_config usual = cd_serving_config_defaults();
    const char *file = tmp_put(&dir, "b.csv", text, sizeof text - 1);
    assert_ok(cd_serving_runs_read(file, &usual, keep, NULL, &r, NULL));
    assert_true(r.n == 2 && r.n_bad == 2 && r.line[0] == 2 && r.line[1] == 4);
    assert_close(r.v[1].worker.tp, 2, 0, 0);
    assert_close(r.v[1].isl, 32, 0, 0);
    assert_int_equal(err.line, 5);
    assert_string_equal(err.key, "tp");
    cd_serving_runs_free(&r);
    assert_int_equal(cd_serving_runs_read(tmp_put(&dir, "n.csv", none, sizeof none - 1), &usual,
                                          keep, NULL, &r, &err),
                     CDMPP_ENODATA);
    cd_serving_runs_free(&r);
    assert_true(cd_serving_runs_read(tmp_put(&dir, "n.csv", empty, sizeof empty - 1), &usual, keep,
                                     NULL, &r, &err) != CDMPP_OK);
    cd_serving_runs_free(&r);
}

TEST(versions) {
    static const char text[] =
        "- {stack: a, tokens: 1}\n- {stack: a, since: \"0.14\", tokens: 2}\n";
    static const char *const bad[] = {"a-nightly", "a-", "a-v", "a-version1", "a-vv1"};
    cd_diag diag = {0};
    cd_serving_stacks s;
    const cd_serving_stack *k;
    assert_ok(cd_serving_stacks_read("s.yaml", text, sizeof text - 1, &diag, &s, &err));
    assert_ok(cd_serving_stack_find(&s, "a-v0.20.0", &k, &err));
    assert_int_equal(k->tokens, 2);
    assert_ok(cd_serving_stack_find(&s, "a-v0.2", &k, &err));
    assert_int_equal(k->tokens, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memset(&err, 0, sizeof err);
        assert_int_equal(cd_serving_stack_find(&s, bad[i], &k, &err), CDMPP_ESCHEMA);
        assert_string_equal(err.key, "stack");
    }
    cd_serving_stacks_free(&s);
    assert_ok(reads("stack\nvllm-v0.20.0\nvllm\nvllm-0.9\nvllm-vx\n"));
    assert_string_equal(r.v[0].stack, "vllm-0.20.0");
    assert_string_equal(r.v[1].stack, "vllm");
    assert_string_equal(r.v[2].stack, "vllm-0.9");
    assert_string_equal(r.v[3].stack, "vllm-vx");
    cd_serving_runs_free(&r);
}

TEST(any_allocation_may_fail) {
    static const char text[] = "gpu,stack,tp,isl\nh100,vllm-v1,1,16\nh200,vllm,2,32\n";
    const cd_serving_config usual = cd_serving_config_defaults();
    const char *file = tmp_put(&dir, "f.csv", text, sizeof text - 1);
    FAULT_SWEEP(f, 0) {
        f.st = cd_serving_runs_read(file, &usual, NULL, NULL, &r, &f.err);
        cd_serving_runs_free(&r);
    }
}

static int set_up(void **state) {
    (void)state;
    dir = tmp_make();
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}
TESTS(set_up, tear_down, whole_numbers, columns_that_say_the_same, loads, bad_rows, first_bad_rows,
      versions, any_allocation_may_fail)
