/* Correlations against their definitions, done with whole matrices; knees that were planted. */
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "profiler/curves/curves.h"

static cdmpp_err err;
enum { MOST = 60 };

static double unit(uint64_t seed, size_t i) { return cd_rng_unit(seed, i); }

static size_t draw(uint64_t seed, double *a, double *b) {
    const size_t n = 3 + (size_t)(unit(seed, 999) * 50);
    for (size_t i = 0; i < n; i++) {
        /* with and without equal values */
        a[i] = seed % 2 ? floor(5 * unit(seed, i)) : unit(seed, i);
        b[i] = (seed % 3 ? a[i] * a[i] : 0) + unit(seed + 12345, i);
    }
    return n;
}

/* Doubly centred matrices, covariances of their entries. */
static double slow_distance(const double *a, const double *b, size_t n) {
    static double m[2][MOST][MOST];
    double c[3] = {0};
    for (int k = 0; k < 2; k++) {
        const double *v = k ? b : a;
        double row[MOST] = {0}, all = 0;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                m[k][i][j] = fabs(v[i] - v[j]), row[i] += m[k][i][j] / (double)n,
                all += m[k][i][j] / (double)(n * n);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) m[k][i][j] += all - row[i] - row[j];
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            c[0] += m[0][i][j] * m[1][i][j], c[1] += m[0][i][j] * m[0][i][j],
                c[2] += m[1][i][j] * m[1][i][j];
    return c[1] > 1e-20 && c[2] > 1e-20 ? sqrt(fmax(c[0], 0) / sqrt(c[1] * c[2])) : 0;
}

static double slow_pearson(const double *a, const double *b, size_t n) { /* by pairs: no means */
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            ab += (a[i] - a[j]) * (b[i] - b[j]), aa += (a[i] - a[j]) * (a[i] - a[j]),
                bb += (b[i] - b[j]) * (b[i] - b[j]);
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

static void slow_ranks(const double *v, size_t n, double *r) {
    for (size_t i = 0; i < n; i++) {
        r[i] = 0.5;
        for (size_t j = 0; j < n; j++) r[i] += v[j] < v[i] ? 1 : v[j] == v[i] ? 0.5 : 0;
    }
}

TEST(test_definitions) {
    for (uint64_t seed = 0; seed < 200; seed++) {
        double a[MOST], b[MOST], ra[MOST], rb[MOST], out;
        cd_correlation_axis axis;
        const size_t n = draw(seed, a, b);
        assert_close(cd_correlation_pearson(a, b, n), slow_pearson(a, b, n), 1e-9, 1e-9);
        slow_ranks(a, n, ra);
        slow_ranks(b, n, rb);
        if (n > 2) {
            assert_ok(cd_correlation_axes(a, b, n, 1, 0, &axis, &err));
            assert_close(axis.spearman, slow_pearson(ra, rb, n), 1e-9, 1e-9);
        }
        assert_ok(cd_correlation_distance(a, b, n, &out, &err));
        assert_close(out, slow_distance(a, b, n), 1e-8, 1e-8);
    }
}

/* Residuals of ranks after a regression on the other axes' ranks, by steepest means: Gram and
 * Schmidt. */
static double slow_partial(double v[][MOST], size_t k, size_t n, size_t axis) {
    double q[8][MOST], r[2][MOST];
    size_t m = 0;
    for (size_t i = 0; i < n; i++) q[0][i] = 1 / sqrt((double)n);
    m = 1;
    for (size_t j = 0; j < k; j++) {
        if (j == axis) continue;
        memcpy(q[m], v[j], n * sizeof(double));
        double norm = 0;
        for (int twice = 0; twice < 2; twice++)
            for (size_t c = 0; c < m; c++) {
                double dot = 0;
                for (size_t i = 0; i < n; i++) dot += q[m][i] * q[c][i];
                for (size_t i = 0; i < n; i++) q[m][i] -= dot * q[c][i];
            }
        for (size_t i = 0; i < n; i++) norm += q[m][i] * q[m][i];
        for (size_t i = 0; i < n; i++) q[m][i] /= sqrt(norm);
        m++;
    }
    for (int s = 0; s < 2; s++) {
        memcpy(r[s], s ? v[k] : v[axis], n * sizeof(double));
        for (int twice = 0; twice < 2; twice++)
            for (size_t c = 0; c < m; c++) {
                double dot = 0;
                for (size_t i = 0; i < n; i++) dot += r[s][i] * q[c][i];
                for (size_t i = 0; i < n; i++) r[s][i] -= dot * q[c][i];
            }
    }
    return slow_pearson(r[0], r[1], n);
}

TEST(test_partial) {
    for (uint64_t seed = 0; seed < 100; seed++) {
        const size_t n = 30, k = 1 + seed % 4;
        double setting[30 * 4], t[30], v[5][MOST], rank[5][MOST];
        cd_correlation_axis out[4];
        for (size_t i = 0; i < n; i++) {
            t[i] = unit(seed, 7000 + i);
            for (size_t j = 0; j < k; j++) {
                setting[i * k + j] = v[j][i] = unit(seed, j * 100 + i) + (j ? 0.7 * v[0][i] : 0);
                t[i] += v[j][i] * (double)(j + 1);
            }
        }
        memcpy(v[k], t, sizeof t);
        for (size_t j = 0; j <= k; j++) slow_ranks(v[j], n, rank[j]);
        assert_ok(cd_correlation_axes(setting, t, n, k, 0, out, &err));
        for (size_t j = 0; j < k; j++)
            assert_close(out[j].partial, slow_partial(rank, k, n, j), 1e-8, 1e-8);
    }
}

/* Time hangs on the first axis by a hinge at 40, on the second through the first alone, on the
 * third not at all. */
TEST(test_knee) {
    double setting[300 * 4], t[300];
    cd_correlation_axis out[4];
    for (size_t i = 0; i < 300; i++) {
        const double x = 1 + (double)(i % 100);
        setting[i * 4] = x;
        setting[i * 4 + 1] = x + 30 * unit(1, i);
        setting[i * 4 + 2] = floor(10 * unit(2, i));
        setting[i * 4 + 3] = 5;
        t[i] = (1 + 0.2 * fmax(x - 40, 0)) * exp(0.03 * (unit(3, i) - 0.5));
    }
    assert_ok(cd_correlation_axes(setting, t, 300, 4, 0, out, &err));
    assert_true(out[0].strong && out[1].strong && !out[2].strong && !out[3].strong);
    assert_close(out[0].turn.at, 40, 0, 1);
    assert_true(out[0].turn.low <= 40 && out[0].turn.high >= 40 &&
                out[0].turn.high - out[0].turn.low < 6);
    assert_int_equal(out[0].form, CD_PERF_CURVE_HINGE);
    assert_true(out[0].partial > 0.5 && fabs(out[1].partial) < 0.3);
    assert_true(out[3].pearson == 0 && out[3].distance == 0 && out[3].partial == 0);
    assert_true(isnan(out[2].turning) && isnan(out[2].turn.low));
}

/* More threads: c ceil(12 / t) with 2 % noise turns at 12 (spec 1.4 (d), 2.6). */
TEST(test_threads) {
    for (uint64_t seed = 0; seed < 20; seed++) {
        double threads[64], t[64];
        cd_correlation_axis out;
        for (size_t i = 0; i < 64; i++) {
            threads[i] = (double)(i + 1);
            t[i] = 0.01 * ceil(12 / threads[i]) * exp(0.02 * (unit(seed, i) - 0.5));
        }
        assert_ok(cd_correlation_axes(threads, t, 64, 1, 0, &out, &err));
        assert_true(out.strong && out.falls);
        assert_close(out.turning, 12, 0, 0);
    }
}

/* Three settings are the fewest that can turn; of two nothing is said. */
TEST(test_few_settings) {
    const double threads[6] = {1, 1, 2, 2, 4, 4}, t[6] = {8, 8.1, 2, 2.01, 2, 2.02};
    cd_correlation_axis out;
    assert_ok(cd_correlation_axes(threads, t, 6, 1, 0, &out, &err));
    assert_true(out.strong && out.falls);
    assert_close(out.turning, 2, 0, 0);
    assert_ok(cd_correlation_axes(threads, t, 4, 1, 0, &out, &err));
    assert_true(out.strong && out.falls && isnan(out.turning));
}

static void test_not_monotone(void **state) { /* what ranks cannot see */
    (void)state;
    double x[41], t[41];
    cd_correlation_axis out;
    for (int i = 0; i < 41; i++) x[i] = i - 20, t[i] = 1 + x[i] * x[i];
    assert_ok(cd_correlation_axes(x, t, 41, 1, 0, &out, &err));
    assert_true(fabs(out.spearman) < 0.01 && out.distance > 0.4 && out.strong);
}

TEST(test_bad_samples) {
    double x[] = {1, 2, (double)NAN}, t[] = {1, 2, 3};
    cd_correlation_axis out;
    assert_status(cd_correlation_axes(x, t, 3, 1, 0, &out, &err), CDMPP_EINVALID);
    assert_status(cd_correlation_axes(t, x, 3, 1, 0, &out, &err), CDMPP_EINVALID);
    assert_status(cd_correlation_axes(t, t, 2, 1, 0, &out, &err), CDMPP_EINVALID);
    assert_status(cd_correlation_axes(t, t, 3, 0, 0, &out, &err), CDMPP_EINVALID);
}

TESTS(NULL, NULL, test_definitions, test_partial, test_knee, test_threads, test_few_settings,
      test_not_monotone, test_bad_samples)
