/* Odd lists of edges. */
#include "odd.h"
#include "profiler/network/zoo/zoo_internal.h"

static cdmpp_status edges(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_zoo_edges e = {0};
    (void)ctx;
    const cdmpp_status st = cd_zoo_edges_parse(text, n, &e, err);
    cd_zoo_edges_free(&e);
    return st;
}

TEST(files) {
    odd_all("# vertices by name\na b\nb\tc\n10,20\n20,10\na a\n", edges, NULL);
    odd_all_of_seeds("tests/fuzz/seeds/edges", 1000, edges, NULL);
}

TESTS(NULL, NULL, files)
