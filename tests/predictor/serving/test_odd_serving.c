/* Odd files of serving libraries, requests and runs. */
#include "odd.h"
#include "predictor/serving/serving.h"
#include "tmp.h"

static cdmpp_status stacks(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_diag diag = {0};
    cd_serving_stacks s = {0};
    (void)ctx;
    const cdmpp_status st = cd_serving_stacks_read("s.yaml", text, n, &diag, &s, err);
    cd_serving_stacks_free(&s);
    cd_diag_free(&diag);
    return st;
}

static void on_bad(void *ctx, const cdmpp_err *e) {
    (void)ctx;
    if (!e->code || !e->msg[0]) abort();
}

static cdmpp_status requests(const char *path, cdmpp_err *err) {
    cd_serving_requests q = {0};
    const cdmpp_status st = cd_serving_requests_read(path, on_bad, NULL, &q, err);
    cd_serving_requests_free(&q);
    return st;
}

static cdmpp_status runs_of(const char *path, cd_op_bad_line *bad, cdmpp_err *err) {
    const cd_serving_config usual = cd_serving_config_defaults();
    cd_serving_runs r = {0};
    const cdmpp_status st = cd_serving_runs_read(path, &usual, bad, NULL, &r, err);
    cd_serving_runs_free(&r);
    return st;
}
static cdmpp_status runs(const char *path, cdmpp_err *err) { return runs_of(path, NULL, err); }
static cdmpp_status good_runs(const char *path, cdmpp_err *err) {
    return runs_of(path, on_bad, err);
}

#define RUNS                                                                                       \
    "id,tp,isl,osl,concurrency,rate,spread,memory_share,ttft_s,tpot_s,decode_workers,decode_"      \
    "tp\na,2,1000,100,8,,0.5,0.9,0.1,0.02,1,2\nb,1,10,10,1,,,,,,,\n"

TEST(files) {
    tmp_dir dir = tmp_make();
    const char *path = tmp_path(&dir, "t.csv");
    odd_all("- stack: trtllm\n  prompts: whole\n  cache: reserved\n  fp8_attention: true\n  "
            "sequences: 2048\n  memory_share: 0.9\n  share_of: left\n  reserve_gb: 10\n  ahead: 3\n"
            "  tokens: 8192\n  lift: 1.12\n  layer_s: 0.0006\n  spread_tpot: 0.04\n  fitted: "
            "\"qwen3 64\"\n",
            stacks, NULL);
    odd_all_of_file(path, "isl,osl,at_s\n10,2,0.5\n# a line\n30,4,1\n", requests);
    odd_all_of_file(path, RUNS, runs);
    odd_all_of_file(path, RUNS, good_runs);
    tmp_remove(&dir);
}

/* Without a path: the file that CDMPP_SERVING names, or that of the project. */
TEST(usual_stacks) {
    cd_diag diag = {0};
    cd_serving_stacks s = {0};
    cdmpp_err err = {0};
    tmp_dir dir = tmp_make();
    static const char text[] = "- {stack: mine, tokens: 64, sequences: 8, memory_share: 0.9, "
                               "reserve_gb: 1, spread_tpot: 0.1, spread_ttft: 0.2, between_s: 0}\n";
    const cd_serving_stack *k = NULL;
    assert_true(!setenv("CDMPP_SERVING", tmp_put(&dir, "s.yaml", text, sizeof text - 1), 1));
    assert_ok(cd_serving_stacks_load(NULL, &diag, &s, &err));
    assert_ok(cd_serving_stack_find(&s, "mine-1.0", &k, &err));
    assert_string_equal(k->name, "mine");
    assert_status(cd_serving_stack_find(&s, "vllm", &k, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.msg, "expected mine, each also with its version; found 'vllm'");
    cd_serving_stacks_free(&s);
    assert_true(!setenv("CDMPP_SERVING", "", 1));
    assert_ok(cd_serving_stacks_load(NULL, &diag, &s, &err));
    assert_ok(cd_serving_stack_find(&s, "vllm", &k, &err));
    cd_serving_stacks_free(&s);
    unsetenv("CDMPP_SERVING");
    assert_ok(cd_serving_stacks_load(NULL, &diag, &s, &err));
    cd_serving_stacks_free(&s);
    err = (cdmpp_err){0};
    assert_status(cd_serving_stacks_load(tmp_path(&dir, "none.yaml"), &diag, &s, &err), CDMPP_EIO);
    cd_diag_free(&diag);
    tmp_remove(&dir);
}

TESTS(NULL, NULL, files, usual_stacks)
