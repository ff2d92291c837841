/* Odd headers of models of operators of language models, without weights: read to where the weights
 * would be. */
#include "learner/llm_op/llm_op.h"
#include "odd.h"

static cdmpp_status model(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_llm_op_model *m = NULL;
    cd_buf b = {0}, header = {0}, none = {0};
    (void)ctx;
    cd_buf_put(&header, text, n);
    cdmpp_status st = cd_container_put_as(CD_CONTAINER_MODEL, 2, &b, &header, &none, err);
    if (!st) st = cd_llm_op_model_from_bytes(b.p, b.n, &m, err);
    if (!st) cd_llm_op_model_free(m);
    cd_buf_free(&b);
    cd_buf_free(&header);
    return st;
}

TEST(files) { odd_all_of_seeds("tests/fuzz/seeds/llm_opmodel", 3000, model, NULL); }

TESTS(NULL, NULL, files)
