/* Numbers of buffers: each depends on its place alone, has its type, and weights keep the size of
 * what they multiply. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "profiler/backend/backend.h"

enum { N = 4096, BUFFER = 3 };

__extension__ typedef _Float16 half;

static double real_at(cd_dtype t, const void *p, size_t i) {
    const char *at = (const char *)p + i * cd_expr_dtype_bytes(t);
    half h;
    float f;
    double d;
    uint16_t b;
    switch (cd_expr_dtype_bits(t)) {
    case 64: memcpy(&d, at, sizeof d); return d;
    case 32: memcpy(&f, at, sizeof f); return (double)f;
    default: break;
    }
    if (cd_expr_dtype_kind(t) != CD_T_BFLOAT) return memcpy(&h, at, sizeof h), (double)h;
    memcpy(&b, at, sizeof b);
    const uint32_t wide = (uint32_t)b << 16;
    memcpy(&f, &wide, sizeof f);
    return (double)f;
}

/* The same number in all lengths, but for what a shorter one cannot hold, rounded down; between
 * 0.25 and 1, a half of them above the middle. */
TEST(reals) {
    static const cd_dtype type[] = {CD_DTYPE(CD_T_FLOAT, 64), CD_F32, CD_DTYPE(CD_T_FLOAT, 16),
                                    CD_DTYPE(CD_T_BFLOAT, 16)};
    static const double step[] = {0, 0, 0x1p-11, 0x1p-8};
    static double want[N], got[N];
    assert_true(cd_tensor_fill(type[0], BUFFER, 0, N, want));
    for (size_t t = 0; t < 4; t++) {
        unsigned above = 0;
        assert_true(cd_tensor_fill(type[t], BUFFER, 0, N, got));
        for (size_t i = 0; i < N; i++) {
            const double x = real_at(type[t], got, i);
            assert_true(x >= 0.25 && x < 1 && x <= want[i] && want[i] - x <= step[t]);
            above += x > 0.625;
        }
        assert_in_range(above, N * 45 / 100, N * 55 / 100);
    }
    assert_false(cd_tensor_fill(CD_DTYPE(CD_T_FLOAT, 8), BUFFER, 0, 1, got));
    assert_false(cd_tensor_fill(CD_DTYPE(CD_T_HANDLE, 64), BUFFER, 0, 1, got));
}

/* 0 and 1, in the lowest byte of each. */
TEST(integers) {
    static const cd_dtype type[] = {
        CD_BOOL, CD_DTYPE(CD_T_INT, 8), CD_DTYPE(CD_T_UINT, 8), CD_DTYPE(CD_T_INT, 16), CD_I32,
        CD_I64};
    static unsigned char got[8 * N];
    for (size_t t = 0; t < sizeof type / sizeof *type; t++) {
        const size_t bytes = cd_expr_dtype_bytes(type[t]);
        unsigned ones = 0;
        memset(got, 0x7b, sizeof got);
        assert_true(cd_tensor_fill(type[t], BUFFER, 0, N, got));
        for (size_t i = 0; i < N; i++) {
            int64_t x = 0;
            memcpy(&x, got + i * bytes, bytes);
            assert_true(x == 0 || x == 1);
            ones += x == 1;
        }
        assert_in_range(ones, N * 45 / 100, N * 55 / 100);
    }
}

/* Parts are cut out of the whole; another buffer has other numbers; nothing is written behind the
 * end. */
TEST(parts) {
    static const cd_dtype type[] = {CD_F32, CD_DTYPE(CD_T_FLOAT, 16), CD_DTYPE(CD_T_INT, 8),
                                    CD_I64};
    static unsigned char whole[8 * N], part[8 * N + 8], other[8 * N];
    for (size_t t = 0; t < sizeof type / sizeof *type; t++) {
        const size_t bytes = cd_expr_dtype_bytes(type[t]);
        assert_true(cd_tensor_fill(type[t], BUFFER, 0, N, whole) &&
                    cd_tensor_fill(type[t], BUFFER + 1, 0, N, other));
        assert_memory_not_equal(whole, other, N * bytes);
        for (size_t first = 0; first < N; first += 511) {
            const size_t n = N - first < 700 ? N - first : 700;
            memset(part, 0x7b, sizeof part);
            assert_true(cd_tensor_fill(type[t], BUFFER, first, n, part));
            assert_memory_equal(part, whole + first * bytes, n * bytes);
            for (size_t i = 0; i < 8; i++) assert_int_equal(part[n * bytes + i], 0x7b);
        }
    }
}

/* Deviation times the root of the fan-in is one, whichever dimension is the widest. One dimension,
 * and what is no float32, is filled as any other. */
TEST(weights) {
    static const struct {
        uint32_t rank;
        int64_t shape[4];
        double fan_in;
    } tab[] = {{2, {64, 32}, 32},      {2, {32, 64}, 32},    {4, {32, 4, 3, 3}, 36},
               {4, {3, 3, 4, 32}, 36}, {3, {1, 1, 1024}, 1}, {2, {48, 48}, 48}};
    static float got[N + 1], plain[N];
    for (size_t t = 0; t < sizeof tab / sizeof *tab; t++) {
        size_t n = 1;
        double sum = 0, squares = 0;
        for (uint32_t d = 0; d < tab[t].rank; d++) n *= (size_t)tab[t].shape[d];
        assert_true(n <= N);
        got[n] = 77;
        assert_true(cd_tensor_fill_weight(CD_F32, BUFFER, tab[t].rank, tab[t].shape, got) &&
                    cd_tensor_fill(CD_F32, BUFFER, 0, n, plain));
        for (size_t i = 0; i < n; i++) {
            sum += (double)got[i], squares += (double)got[i] * (double)got[i];
            assert_true((got[i] > 0) == (plain[i] > 0.625f)); /* in the same order */
        }
        assert_close(sqrt(squares / (double)n * tab[t].fan_in), 1, 0.05, 0);
        assert_true(fabs(sum / (double)n) < 0.1 / sqrt(tab[t].fan_in));
        assert_true(got[n] == 77);
    }
    got[100] = 77;
    assert_true(cd_tensor_fill_weight(CD_F32, BUFFER, 1, (const int64_t[]){100}, got));
    assert_true(got[100] == 77);
    assert_true(cd_tensor_fill(CD_F32, BUFFER, 0, 100, plain) &&
                !memcmp(got, plain, 100 * sizeof *got));
    assert_true(cd_tensor_fill_weight(CD_I32, BUFFER, 2, (const int64_t[]){10, 10}, got) &&
                cd_tensor_fill(CD_I32, BUFFER, 0, 100, plain) &&
                !memcmp(got, plain, 100 * sizeof *got));
    /* a scalar */
    assert_true(cd_tensor_fill_weight(CD_F32, BUFFER, 0, NULL, got) &&
                cd_tensor_fill(CD_F32, BUFFER, 0, 1, plain) && !memcmp(got, plain, sizeof *got));
    assert_false(
        cd_tensor_fill_weight(CD_DTYPE(CD_T_HANDLE, 64), BUFFER, 1, (const int64_t[]){1}, got));
}

TESTS(NULL, NULL, reals, integers, parts, weights)
