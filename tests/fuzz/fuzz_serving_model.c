/* Any bytes as the config.json of a language model: read, or refused with an error; sizes of what
 * is read are whole and positive. */
#include <stdlib.h>

#include "predictor/serving/serving.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    cd_serving_model m;
    cd_serving_ops o;
    cdmpp_err err = {0};
    if (cd_serving_model_read("fuzz", (const char *)data, n, &m, &err)) return 0;
    cd_serving_layout l = {.tp = 1, .pp = 1, .dp = 1, .moe_ep = 1};
    if (!(m.layers >= 1) || !(cd_serving_model_parameters(&m) > 0) ||
        cd_serving_layout_check(&m, &l, &err))
        abort();
    cd_serving_ops_rest(&m, &l, 4, 1, 4, true, &o);
    cd_serving_ops_prompt(&m, &l, 1, 4, &o);
    cd_serving_ops_decode(&m, &l, 1, 4, &o);
    return 0;
}
