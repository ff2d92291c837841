/* Any bytes as a file of an operator model: as they are, and with lengths and a checksum that are
 * right. */
#include "learner/operators/operators.h"
#include "mended.h"

static void load(const void *p, size_t n) {
    cd_library_op_model *m = NULL;
    cdmpp_err err = {0};
    if (!cd_library_op_model_from_bytes(p, n, &m, &err)) cd_library_op_model_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    mended(data, size, load);
    return 0;
}
