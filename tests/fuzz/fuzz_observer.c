/* Any bytes as a saved observer; what is accepted is fitted, applied, and written to text that is
 * accepted again. */
#include <stdlib.h>

#include "learner/model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const float trait[CD_N_TRAIT] = {1, 2, 3};
    cd_online_adapt *a = NULL, *again = NULL;
    cd_buf b = {0};
    cdmpp_err err = {0};
    if (cd_online_adapt_read((const char *)data, size, "m", &a, &err)) return 0;
    cd_model_prediction p = {
        .latency_s = 1e-3, .median_s = 1e-3, .low_s = 1e-4, .high_s = 1e-2, .rel_std = 0.3};
    cd_online_adapt_apply(a, "d", "k", trait, &p);
    cd_online_adapt_write(a, "m", &b);
    if (cd_online_adapt_read(b.p, b.n, "m", &again, &err)) abort();
    if (cd_online_adapt_count(a) != cd_online_adapt_count(again)) abort();
    cd_online_adapt_free(a);
    cd_online_adapt_free(again);
    cd_buf_free(&b);
    return 0;
}
