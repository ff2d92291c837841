/* ops_attn: packed attention against a slow reference and its slopes; programs do not
 * see each other; dropout drops the same weights forward and backward. */
#include "learner/tensor/tensor.h"

#include <string.h>

#include "check.h"
#include "finite.h"

enum { HEADS = 3, HW = 7, W = HEADS * HW, ROWS = 10 };
static const uint32_t ptr[] = {0, 4, 5, 10};

typedef struct {
    float dout[ROWS * W];
    double keep[HEADS][ROWS][ROWS]; /* what dropout makes of a weight */
} setting;

static void reference(const setting *s, const double *qkv, double *out) {
    memset(out, 0, ROWS * W * sizeof *out);
    for (size_t p = 0; p < 3; p++)
        for (size_t h = 0; h < HEADS; h++)
            for (size_t i = ptr[p]; i < ptr[p + 1]; i++) {
                double e[ROWS], sum = 0;
                for (size_t j = ptr[p]; j < ptr[p + 1]; j++) {
                    double d = 0;
                    for (size_t c = 0; c < HW; c++)
                        d += qkv[i * 3 * W + h * HW + c] * qkv[j * 3 * W + W + h * HW + c];
                    sum += e[j] = exp(d / sqrt(HW));
                }
                for (size_t j = ptr[p]; j < ptr[p + 1]; j++)
                    for (size_t c = 0; c < HW; c++)
                        out[i * W + h * HW + c] +=
                            s->keep[h][i][j] * e[j] / sum * qkv[j * 3 * W + 2 * W + h * HW + c];
            }
}

static double scalar(void *ctx, const double *qkv) {
    const setting *s = ctx;
    double out[ROWS * W];
    reference(s, qkv, out);
    return finite_dot(out, s->dout, ROWS * W);
}

/* What is kept, found out with values that mark their row: weights are 1/n when all
 * keys are equal. */
static void find_mask(const cd_dropout *d, float *scratch, setting *s) {
    static float qkv[ROWS * 3 * W], out[ROWS * W];
    for (size_t p = 0; p < 3; p++)
        for (size_t j = ptr[p]; j < ptr[p + 1]; j++) {
            const double n = ptr[p + 1] - ptr[p];
            memset(qkv, 0, sizeof qkv);
            for (size_t c = 0; c < W; c++) qkv[j * 3 * W + 2 * W + c] = 1;
            cd_ops_attention(qkv, ptr, 0, 3, W, HEADS, d, scratch, out);
            for (size_t i = ptr[p]; i < ptr[p + 1]; i++)
                for (size_t h = 0; h < HEADS; h++)
                    s->keep[h][i][j] = (double)out[i * W + h * HW] * n;
        }
}

static void check_attention(double dropout) {
    static float qkv[ROWS * 3 * W], out[ROWS * W], dqkv[ROWS * 3 * W], scratch[4096];
    static double q[ROWS * 3 * W], want[ROWS * W];
    static setting s;
    const cd_dropout d = cd_ops_drop(dropout, 31, 2);
    assert_true(cd_ops_attention_scratch(W, HEADS, ROWS) <= 4096);
    find_mask(&d, scratch, &s);
    finite_values(s.dout, NULL, ROWS * W, 2);
    finite_values(qkv, NULL, ROWS * 3 * W, 1);
    for (size_t i = 0; i < ROWS * 3 * W; i++) q[i] = (double)(qkv[i] *= 2);
    cd_ops_attention(qkv, ptr, 0, 3, W, HEADS, &d, scratch, out);
    cd_ops_attention_back(s.dout, qkv, ptr, 0, 3, W, HEADS, &d, scratch, dqkv);
    reference(&s, q, want);
    for (size_t i = 0; i < ROWS * W; i++) assert_close((double)out[i], want[i], 1e-5, 1e-6);
    for (size_t i = 0; i < ROWS * 3 * W; i++)
        assert_close((double)dqkv[i], finite_slope(scalar, &s, q, i), 1e-4, 1e-5);
}

TEST(plain) { check_attention(0); }

TEST(dropped) { check_attention(0.3); }

/* The middle program alone gives the same bits as among others. */
TEST(alone) {
    static float qkv[ROWS * 3 * W], out[ROWS * W], one[ROWS * W], scratch[4096];
    const cd_dropout none = {.scale = 1};
    finite_values(qkv, NULL, ROWS * 3 * W, 4);
    cd_ops_attention(qkv, ptr, 0, 3, W, HEADS, &none, scratch, out);
    memset(one, 0, sizeof one);
    cd_ops_attention(qkv, ptr, 1, 2, W, HEADS, &none, scratch, one);
    assert_memory_equal(one + 4 * W, out + 4 * W, W * sizeof *out);
    assert_true(one[0] == 0 && one[5 * W] == 0);
}

/* Keys far apart: weights of 0 and 1, nothing overflows. */
TEST(extreme) {
    static float qkv[ROWS * 3 * W], out[ROWS * W], dqkv[ROWS * 3 * W], scratch[4096];
    const cd_dropout none = {.scale = 1};
    finite_values(qkv, NULL, ROWS * 3 * W, 4);
    for (size_t i = 0; i < ROWS * 3 * W; i++) qkv[i] *= 1e4f;
    cd_ops_attention(qkv, ptr, 0, 3, W, HEADS, &none, scratch, out);
    cd_ops_attention_back(out, qkv, ptr, 0, 3, W, HEADS, &none, scratch, dqkv);
    for (size_t i = 0; i < ROWS * W; i++) assert_true(isfinite(out[i]));
    for (size_t i = 0; i < ROWS * 3 * W; i++) assert_true(isfinite(dqkv[i]));
}

TESTS(NULL, NULL, plain, dropped, alone, extreme)
