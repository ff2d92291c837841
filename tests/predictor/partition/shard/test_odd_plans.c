/* Odd plans. */
#include "odd.h"
#include "predictor/partition/shard/shard_plan.h"

static cdmpp_status plan(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_shard_plan *p = NULL;
    (void)ctx;
    const cdmpp_status st = cd_shard_plan_read_text("p.json", text, n, &p, err);
    if (!st) cd_shard_plan_free(p);
    return st;
}

TEST(files) { odd_all_of_seeds("tests/fuzz/seeds/plan", 2000, plan, NULL); }

TESTS(NULL, NULL, files)
