/* Odd configurations of language models. */
#include "odd.h"
#include "predictor/serving_config/serving_config.h"

static cdmpp_status config(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_serving_model m;
    (void)ctx;
    const cdmpp_status st = cd_serving_model_read("config.json", text, n, &m, err);
    return st;
}

TEST(files) { odd_all_of_seeds("tests/fuzz/seeds/serving_model", 2000, config, NULL); }

TESTS(NULL, NULL, files)
