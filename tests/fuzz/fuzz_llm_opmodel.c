/* Any bytes as a file of a model of operators of language models, twice: as they are, and as the header of
 * a file whose lengths and checksum are right. XGBoost's reader is never reached: there
 * are no weights in the second. */
#include "base/io/io.h"
#include "learner/llm_op/llm_op.h"

static void load(const void *p, size_t n) {
    cd_llm_op_model *m = NULL;
    cdmpp_err err = {0};
    if (!cd_llm_op_model_from_bytes(p, n, &m, &err)) cd_llm_op_model_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cd_buf b = {0}, header = {0};
    const cd_buf none = {0};
    load(data, size);
    cd_buf_put(&header, (const char *)data, size);
    if (!cd_container_put(CD_CONTAINER_MODEL, &b, &header, &none, NULL)) load(b.p, b.n);
    cd_buf_free(&header);
    cd_buf_free(&b);
    return 0;
}
