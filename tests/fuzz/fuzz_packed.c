/* Any bytes as TVM's packed features: the first byte is how many candidates the caller expects.
 * What is accepted is read to its last number. */
#include <string.h>

#include "base/core/mem.h"
#include "features/rows/rows.h"
#include "predictor/score/tvm_packed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t at[256 + 1], n_row;
    cdmpp_err err = {0};
    if (!size) return 0;
    const size_t n = data[0];
    unsigned sum = 0;
    if (cd_tvm_packed_open(data + 1, size - 1, n, at, &err)) return 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned char *p = cd_tvm_packed_rows(data + 1, at, i, &n_row);
        for (size_t k = 0; k < 4 * n_row * CD_N_COL; k++) sum += p[k];
    }
    return sum == 0xFFFFFFFFU; /* so that the reads stay */
}
