/* ops_pool: rows to programs against slow references and their slopes. */
#include "learner/tensor/tensor.h"

#include <string.h>

#include "check.h"
#include "finite.h"

enum { ROWS = 10, W = 5, P = 3, SLOTS = 3, T10 = 17 }; /* T10: ten times the temperature */
static const uint32_t ptr[] = {0, 4, 5, 10};

typedef enum { POOL, MEAN, FLATTEN, LSE } kind;
static const size_t width[] = {3 * W, W, SLOTS *W, W};

typedef struct {
    kind k;
    float dy[P * 3 * W];
} setting;

static void column(kind k, const double *x, size_t n, size_t c, double *y) {
    double sum = 0, most = x[c], e = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = x[i * W + c];
        sum += v;
        most = fmax(most, v);
        e += exp(T10 / 10.0 * v);
        if (k == FLATTEN) y[(i < SLOTS ? i : SLOTS - 1) * W + c] += v;
    }
    if (k == POOL) {
        y[c] = sum / (double)n;
        y[W + c] = most;
        y[2 * W + c] = sum;
    }
    if (k == MEAN) y[c] = sum / (double)n;
    if (k == LSE) y[c] = log(e) / (T10 / 10.0);
}

static void reference(kind k, const double *x, double *y) {
    memset(y, 0, P * width[k] * sizeof *y);
    for (size_t p = 0; p < P; p++)
        for (size_t c = 0; c < W; c++)
            column(k, x + ptr[p] * W, ptr[p + 1] - ptr[p], c, y + p * width[k]);
}

static double scalar(void *ctx, const double *x) {
    const setting *s = ctx;
    double y[P * 3 * W];
    reference(s->k, x, y);
    return finite_dot(y, s->dy, P * width[s->k]);
}

static void check_kind(kind k) {
    static float x[ROWS * W], y[P * 3 * W], dx[ROWS * W];
    static double xd[ROWS * W], want[P * 3 * W];
    uint32_t arg[P * W];
    setting s = {.k = k};
    finite_values(x, xd, ROWS * W, 1);
    finite_values(s.dy, NULL, P * 3 * W, 2);
    memset(dx, 0, sizeof dx);
    for (size_t p = 0; p < P; p++) { /* one at a time, as over a pool */
        if (k == POOL)
            cd_ops_pool(x, ptr, p, p + 1, W, y, arg),
                cd_ops_pool_back(s.dy, ptr, p, p + 1, W, arg, dx);
        if (k == MEAN)
            cd_ops_mean(x, ptr, p, p + 1, W, y), cd_ops_mean_back(s.dy, ptr, p, p + 1, W, dx);
        if (k == FLATTEN)
            cd_ops_flatten(x, ptr, p, p + 1, W, SLOTS, y),
                cd_ops_flatten_back(s.dy, ptr, p, p + 1, W, SLOTS, dx);
        if (k == LSE)
            cd_ops_lse(x, ptr, p, p + 1, W, T10 / 10.0f, y),
                cd_ops_lse_back(s.dy, x, y, ptr, p, p + 1, W, T10 / 10.0f, dx);
    }
    reference(k, xd, want);
    for (size_t i = 0; i < P * width[k]; i++) assert_close((double)y[i], want[i], 1e-5, 1e-6);
    for (size_t i = 0; i < ROWS * W; i++)
        assert_close((double)dx[i], finite_slope(scalar, &s, xd, i), 1e-4, 1e-5);
}

TEST(kinds) {
    for (int k = POOL; k <= LSE; k++) check_kind((kind)k);
}

/* Seconds add up: scores of log(a) and log(b) give log(a + b). */
TEST(seconds_add_up) {
    const float x[] = {logf(0.25f), logf(3), logf(1e-20f)};
    const uint32_t p[] = {0, 3};
    float y;
    cd_ops_lse(x, p, 0, 1, 1, 1, &y);
    assert_close((double)y, log(3.25), 1e-6, 0);
}

TESTS(NULL, NULL, kinds, seconds_add_up)
