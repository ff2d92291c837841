/* Odd rules of devices that run some operators. */
#include "odd.h"
#include "predictor/partition/offload/offload_rules.h"

static cdmpp_status rules(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_offload_rules *r = NULL;
    (void)ctx;
    const cdmpp_status st = cd_offload_parse("r.rules", text, n, &r, err);
    cd_offload_free(r);
    return st;
}

TEST(files) {
    odd_all(
        "# a little npu\nhost cpu\nsupport npu conv2d add|relu where dtype=float32 "
        "groups=1\npattern npu block: conv2d -> bias_add? -> relu|tanh\n"
        "pattern npu two: dense -> add\nrefuse npu conv2d where kernel>=7\nplace stem.bias npu\n",
        rules, NULL);
}

TESTS(NULL, NULL, files)
