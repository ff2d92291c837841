/* TVM's packed features: whole, cut at every byte, with numbers that lie. */
#include "predictor/score/tvm_packed.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "features/rows/rows.h"

enum { N = 4 };
static const size_t rows[N] = {2, 0, 1, 3}; /* the second was not lowered */

static void put(cd_buf *b, int32_t v) { cd_buf_put(b, (const char *)&v, sizeof v); }
static void put_real(cd_buf *b, float v) { cd_buf_put(b, (const char *)&v, sizeof v); }

static void make(cd_buf *b) {
    put(b, N);
    for (int i = 0; i < N; i++) put(b, rows[i] ? (int32_t)(1 + rows[i] * CD_N_COL) : 0);
    put(b, N);
    put(b, N);
    for (int i = 0; i < N; i++) {
        if (rows[i]) put_real(b, (float)rows[i]);
        for (size_t k = 0; k < rows[i] * CD_N_COL; k++) put_real(b, (float)(1000 * i) + (float)k);
    }
    for (int i = 0; i < 2 * N; i++) put(b, 0);
}

/* At an odd address, exactly as long as it says. */
static cdmpp_status open_at(const char *p, size_t len, size_t n, size_t at[N + 1], cdmpp_err *err) {
    char *raw = malloc(len + 1);
    assert_non_null(raw);
    memcpy(raw + 1, p, len);
    const cdmpp_status st = cd_tvm_packed_open(raw + 1, len, n, at, err);
    free(raw);
    return st;
}

static void reads_what_was_packed(void **state) {
    (void)state;
    cd_buf b = {0};
    cdmpp_err err = {0};
    size_t at[N + 1], n_row;
    make(&b);
    assert_ok(cd_tvm_packed_open(b.p, b.n, N, at, &err));
    for (size_t i = 0; i < N; i++) {
        const void *p = cd_tvm_packed_rows(b.p, at, i, &n_row);
        float v;
        assert_int_equal(n_row, rows[i]);
        if (!n_row) continue;
        memcpy(&v, (const char *)p + 4 * (n_row * CD_N_COL - 1), sizeof v);
        assert_true(v == (float)(1000 * i) + (float)(n_row * CD_N_COL - 1));
    }
    assert_true(at[1] == at[2]);
    assert_status(open_at(b.p, b.n, N + 1, at, &err), CDMPP_EPARSE);
    assert_non_null(strstr(err.msg, "expected 5 candidates, found 4"));
    cd_buf_free(&b);
}

static void cut_at_every_byte(void **state) {
    (void)state;
    cd_buf b = {0};
    cdmpp_err err = {0};
    size_t at[N + 1];
    make(&b);
    for (size_t len = 0; len < b.n; len++)
        assert_status(open_at(b.p, len, N, at, &err), CDMPP_EPARSE);
    assert_ok(open_at(b.p, b.n, N, at, &err));
    cd_buf_puts(&b, "x");
    assert_status(open_at(b.p, b.n, N, at, &err), CDMPP_EPARSE);
    cd_buf_free(&b);
}

/* Every number of the head replaced in turn: an error or the same reading, never a read outside. */
static void numbers_that_lie(void **state) {
    (void)state;
    static const int32_t lie[] = {-1, 0, 1, 2, 164, 165, 166, INT32_MAX, INT32_MIN, 1 << 30};
    cd_buf b = {0};
    cdmpp_err err = {0};
    size_t at[N + 1], n_row, refused = 0;
    make(&b);
    for (size_t k = 0; k < N + 4; k++) /* n, sizes, the first count */
        for (size_t l = 0; l < sizeof lie / sizeof *lie; l++) {
            int32_t was;
            memcpy(&was, b.p + 4 * k, 4);
            memcpy(b.p + 4 * k, &lie[l], 4);
            if (cd_tvm_packed_open(b.p, b.n, N, at, &err)) refused++;
            else
                for (size_t i = 0; i < N; i++) {
                    const char *p = cd_tvm_packed_rows(b.p, at, i, &n_row);
                    assert_true(p >= b.p && p + 4 * n_row * CD_N_COL <= b.p + b.n + 4);
                }
            memcpy(b.p + 4 * k, &was, 4);
        }
    assert_true(refused > 60);
    cd_buf_free(&b);
}

/* Rows of MetaSchedule's 172 numbers, or of another max_n_bufs. */
static void rows_of_another_length(void **state) {
    (void)state;
    cd_buf b = {0};
    cdmpp_err err = {0};
    size_t at[2];
    put(&b, 1);
    put(&b, 1 + 2 * 172);
    put(&b, 0);
    put(&b, 0);
    put_real(&b, 2);
    for (int k = 0; k < 2 * 172; k++) put_real(&b, 1);
    assert_status(cd_tvm_packed_open(b.p, b.n, 1, at, &err), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "expected rows of 164 numbers, found 172"));
    cd_buf_free(&b);
}

TESTS(NULL, NULL, reads_what_was_packed, cut_at_every_byte, numbers_that_lie,
      rows_of_another_length)
