/* Odd files of what networks cost over their operators. */
#include "odd.h"
#include "predictor/estimate/estimate.h"

static cdmpp_status costs(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_diag diag = {0};
    cd_network_cost *l = NULL;
    (void)ctx;
    const cdmpp_status st = cd_network_cost_read("t.yaml", text, n, &diag, &l, err);
    cd_network_cost_free(l);
    cd_diag_free(&diag);
    return st;
}

TEST(files) {
    odd_all("- devices: [one, uno]\n  lift: 1.2\n  lift_from: 0.5\n  call_s: 1.7e-7\n  spread: "
            "0.05\n  networks: 9\n"
            "- devices: two\n  refill_bytes_per_s: 2e10\n  refill_from: 0.75\n  refill_to: 32\n  "
            "adds: 0.08\n  source: \"a text\"\n",
            costs, NULL);
}

TESTS(NULL, NULL, files)
