/* serving_runs: what a table of runs may say, and what it may not. */
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
    return cd_serving_runs_read(file, &usual, &r, &err);
}

static void refuses(const char *text, cdmpp_status st, const char *key) {
    assert_int_equal(reads(text), st);
    assert_string_equal(err.key, key);
    cd_serving_runs_free(&r);
}

TEST(whole_numbers) {
    static const char *const of[] = {"tp", "pp", "dp", "ep", "workers", "max_sequences", "decode_tp", "decode_pp", "decode_dp", "decode_ep", "decode_workers", "decode_max_sequences",
                                     "isl", "osl", "concurrency", "requests", "max_tokens", "node_gpus"};
    char text[64];
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        snprintf(text, sizeof text, "%s\n1.5\n", of[i]);
        refuses(text, CDMPP_ERANGE, of[i]);
        snprintf(text, sizeof text, "%s\n2.0\n", of[i]);
        assert_ok(reads(text));
        cd_serving_runs_free(&r);
    }
    assert_ok(reads("rate,spread,memory_share,node_gbs,ttft_s,tpot_s\n1.5,0.5,0.5,1.5,1.5,1.5\n"));
    assert_close(r.v[0].rate, 1.5, 0, 0);
    cd_serving_runs_free(&r);
}

TEST(any_allocation_may_fail) {
    static const char text[] = "gpu,tp,isl\nh100,1,16\nh200,2,32\n";
    const cd_serving_config usual = cd_serving_config_defaults();
    const char *file = tmp_put(&dir, "f.csv", text, sizeof text - 1);
    FAULT_SWEEP(f, 0) {
        f.st = cd_serving_runs_read(file, &usual, &r, &f.err);
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
TESTS(set_up, tear_down, whole_numbers, any_allocation_may_fail)
