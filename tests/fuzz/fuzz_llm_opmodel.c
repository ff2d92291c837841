/* Any bytes as a file of a model of operators of language models: as they are, and with lengths and
 * a checksum that are right. */
#include "learner/llm_op/llm_op.h"
#include "mended.h"

static void load(const void *p, size_t n) {
    cd_llm_op_model *m = NULL;
    cdmpp_err err = {0};
    if (!cd_llm_op_model_from_bytes(p, n, &m, &err)) cd_llm_op_model_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    mended(data, size, load);
    return 0;
}
