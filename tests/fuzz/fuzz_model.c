/* Any bytes as a model file: as they are, and with lengths and a checksum that are right. What is
 * taken is asked. */
#include "features/rows/rows.h"
#include "learner/model/model.h"
#include "mended.h"

static void ask(const cd_model *m) {
    static float row[3 * CD_N_COL];
    static const int64_t ptr[] = {0, 1, 3};
    const uint32_t device[] = {0, (uint32_t)(cd_model_n_device(m) - 1)};
    const cd_program_view v = {.n = 2, .row = row, .row_ptr = ptr, .device = device};
    cd_model_scratch *s;
    cd_model_prediction p[2];
    if (cd_model_needs_leaves(m) || cd_model_needs_steps(m) || cd_model_needs_facts(m) ||
        cd_model_scratch_new(&s, NULL))
        return;
    for (int k = 0; k < 3 * CD_N_COL; k++) row[k] = (float)(k % 13);
    (void)cd_model_predict(m, s, &v, NULL, 2, p, NULL);
    cd_model_scratch_free(s);
}

static void load(const void *p, size_t n) {
    cd_model *m = NULL;
    cdmpp_err err = {0};
    if (cd_model_from_bytes(p, n, &m, &err)) return;
    ask(m);
    cd_model_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    mended(data, size, load);
    return 0;
}
