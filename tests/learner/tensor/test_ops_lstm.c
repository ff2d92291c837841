/* ops_lstm: one step against its formula in double precision, backward against
 * differences of that; with and without a state before. */
#include "learner/tensor/tensor.h"

#include <string.h>

#include "check.h"
#include "finite.h"

enum { N = 5, W = 21, Z = N * 4 * W, S = N * W };

typedef struct {
    double z[Z], b[4 * W], c0[S], k_h[S], k_c[S]; /* weights of h and c in the sum */
    double c[S], h[S];
    bool before;
} slow;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double sum(slow *s) {
    double all = 0;
    for (size_t r = 0; r < N; r++)
        for (size_t i = 0; i < W; i++) {
            double g[4];
            for (size_t k = 0; k < 4; k++) g[k] = s->z[r * 4 * W + k * W + i] + s->b[k * W + i];
            const size_t at = r * W + i;
            s->c[at] = sigmoid(g[0]) * tanh(g[2]) + (s->before ? sigmoid(g[1]) * s->c0[at] : 0);
            s->h[at] = sigmoid(g[3]) * tanh(s->c[at]);
            all += s->k_h[at] * s->h[at] + s->k_c[at] * s->c[at];
        }
    return all;
}

static double of_z(void *ctx, const double *x) { return x ? sum(ctx) : 0; }

TEST(step) {
    static slow s;
    static float z[Z], b[4 * W], c0[S], k_h[S], dc[S], c[S], h[S];
    for (int before = 0; before < 2; before++) {
        s.before = before == 1;
        finite_values(z, s.z, Z, 1);
        for (size_t i = 0; i < Z; i++) s.z[i] = (double)(z[i] *= 3);
        finite_values(b, s.b, 4 * W, 2);
        finite_values(c0, s.c0, S, 3);
        finite_values(k_h, s.k_h, S, 4);
        finite_values(dc, s.k_c, S, 5);
        (void)sum(&s);
        cd_ops_lstm(z, N, W, b, before ? c0 : NULL, c, h);
        for (size_t i = 0; i < S; i++) {
            assert_close((double)c[i], s.c[i], 1e-6, 1e-6);
            assert_close((double)h[i], s.h[i], 1e-6, 1e-6);
        }
        cd_ops_lstm_back(z, N, W, before ? c0 : NULL, c, k_h, dc);
        for (size_t i = 0; i < Z; i++)
            assert_close((double)z[i], finite_slope(of_z, &s, s.z, i), 1e-5, 1e-6);
        for (size_t i = 0; before && i < S; i++)
            assert_close((double)dc[i], finite_slope(of_z, &s, s.c0, i), 1e-5, 1e-6);
    }
}

/* Far out nothing overflows, and close to 0 tanh keeps its digits. */
TEST(edges) {
    const float far[] = {-1e30f, -200, -90, 90, 200, 1e30f};
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        float z[4] = {far[i], far[i], far[i], far[i]}, b[4] = {0}, c, h, dc = 1;
        const float c0 = 0.5f, dh = 1;
        cd_ops_lstm(z, 1, 1, b, &c0, &c, &h);
        assert_close((double)c, far[i] > 0 ? 1.5 : 0, 1e-6, 1e-30);
        assert_close((double)h, far[i] > 0 ? tanh(1.5) : 0, 1e-6, 1e-30);
        cd_ops_lstm_back(z, 1, 1, &c0, &c, &dh, &dc);
        for (size_t k = 0; k < 4; k++) assert_close((double)z[k], 0, 0, 1e-30);
    }
    for (double x = 1e-12; x < 20; x *= 1.3) {
        float z[4] = {200, 200, (float)x, 200}, b[4] = {0}, c, h; /* all gates open */
        cd_ops_lstm(z, 1, 1, b, NULL, &c, &h);
        assert_close((double)c, tanh((double)(float)x), 3e-7, 0);
        assert_close((double)h, tanh(tanh((double)(float)x)), 5e-7, 0);
    }
}

TESTS(NULL, NULL, step, edges)
