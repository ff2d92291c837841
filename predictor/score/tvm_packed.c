/* Reads the packed features that TVM's get_per_store_features_from_states gives. All sizes are
 * checked against the length before a row is read, because the bytes come from another process. */
#include "predictor/score/tvm_packed.h"

#include <string.h>

#include "features/rows/rows.h"

static uint32_t word(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static float real(const unsigned char *p) {
    const uint32_t w = word(p);
    float f;
    memcpy(&f, &w, sizeof f);
    return f;
}

/* A candidate of `size` numbers, the first of which counts the rows. */
static cdmpp_status check_rows(const unsigned char *p, size_t size, size_t i, cdmpp_err *err) {
    const float count = real(p);
    if (!(count >= 0 && count <= 1e7F) || count != (float)(size_t)count)
        return CD_FAIL(err, EPARSE, "candidate %zu: expected a number of rows, found %g", i,
                       (double)count);
    const size_t k = (size_t)count;
    if (size == 1 + k * CD_N_COL) return CDMPP_OK;
    if (k && (size - 1) % k == 0)
        return CD_FAIL(err, EMODEL, "candidate %zu: expected rows of %d numbers, found %zu", i,
                       CD_N_COL, (size - 1) / k);
    return CD_FAIL(err, EPARSE, "candidate %zu: expected %zu numbers for its %zu rows, found %zu",
                   i, 1 + k * CD_N_COL, k, size);
}

static cdmpp_status check_head(const unsigned char *p, size_t len, size_t n, cdmpp_err *err) {
    if (len < 12)
        return CD_FAIL(err, EPARSE, "packed features: expected at least 12 bytes, found %zu", len);
    if (word(p) > INT32_MAX)
        return CD_FAIL(err, EPARSE, "packed features: a negative number of candidates");
    if (word(p) != n)
        return CD_FAIL(err, EPARSE, "packed features: expected %zu candidates, found %u", n,
                       word(p));
    if ((len - 12) / 4 < n)
        return CD_FAIL(err, EPARSE,
                       "packed features: %zu bytes end inside the sizes of %zu candidates", len, n);
    return CDMPP_OK;
}

cdmpp_status cd_tvm_packed_open(const void *bytes, size_t len, size_t n, size_t *at,
                                cdmpp_err *err) {
    const unsigned char *p = bytes;
    CD_TRY(check_head(p, len, n, err));
    size_t end = 4 * (n + 3);
    for (size_t i = 0; i < n + 2; i++) {
        const uint32_t size = word(p + 4 * (1 + i));
        if (size > INT32_MAX)
            return CD_FAIL(err, EPARSE, "packed features: size %zu is negative", i);
        if ((len - end) / 4 < size)
            return CD_FAIL(err, EPARSE, "packed features: %zu bytes end inside list %zu of %zu",
                           len, i, n + 2);
        if (i < n && size) CD_TRY(check_rows(p + end, size, i, err));
        if (i <= n) at[i] = end;
        end += 4 * (size_t)size;
    }
    return end == len
               ? CDMPP_OK
               : CD_FAIL(err, EPARSE, "packed features: expected %zu bytes, found %zu", end, len);
}

const void *cd_tvm_packed_rows(const void *bytes, const size_t *at, size_t i, size_t *n_row) {
    *n_row = at[i + 1] > at[i] ? (at[i + 1] - at[i] - 4) / (4 * CD_N_COL) : 0;
    return (const char *)bytes + at[i] + 4;
}
