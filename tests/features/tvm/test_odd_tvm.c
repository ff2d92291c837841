/* Odd node graphs of TVM, and pickles. */
#include "features/tvm/tvm.h"
#include "odd.h"

static cdmpp_status dag(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_arena a = {0};
    cd_te_dag *d = NULL;
    (void)ctx;
    const cdmpp_status st = cd_tvm_graph_dag(&a, text, n, &d, err);
    if (!st) cd_te_dag_free(d);
    cd_arena_free(&a);
    return st;
}

static cdmpp_status pickle(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_arena a = {0};
    const cd_unpickle_value *top;
    (void)ctx;
    const cdmpp_status st = cd_unpickle(&a, text, n, &top, err);
    cd_arena_free(&a);
    return st;
}

TEST(graphs) { odd_all_of_seeds("tests/fuzz/seeds/graph", 20000, dag, NULL); }
TEST(pickles) { odd_all_of_seeds("tests/fuzz/seeds/pickle", 400, pickle, NULL); }

TESTS(NULL, NULL, graphs, pickles)
