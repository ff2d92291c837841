/* Columns that are cut apart have the bins, and so the trees, of a matrix that is cut whole. */
#include "learner/trees/trees.h"
#include "check.h"

#include <math.h>
#include <string.h>

#include "fault.h"

enum { N = 9000, W = 10, MOST = 256 };
static float x[N * W];

/* Continuous, few, none, one value; many zeros; as many values as bins, one less, one more; missing
 * ones; negative. */
static void fill(void) {
    for (size_t i = 0; i < N; i++) {
        const double u = cd_rng_unit(1, i), v = cd_rng_unit(2, i);
        float *r = x + i * W;
        r[0] = (float)(1e6 * u * u);
        r[1] = (float)floor(3 * u);
        r[2] = NAN;
        r[3] = -5;
        r[4] = v < 0.97 ? 0 : (float)(u - 0.5);
        r[5] = (float)(i % MOST);
        r[6] = (float)(i % (MOST - 1));
        r[7] = (float)(i % (MOST + 1));
        r[8] = v < 0.3 ? NAN : (float)log(u + 1e-9);
        r[9] = (float)-floor(1000 * u);
    }
}

/* Trees that try all cuts. */
static void grow(const cd_xgb_data *d, size_t n, cd_buf *file) {
    static float score[N], grad[N], hess[N];
    const cd_xgb_param p[] = {{"max_depth", "7"},      {"eta", "0.3"},
                              {"nthread", "1"},        {"min_child_weight", "0"},
                              {"tree_method", "hist"}, {"max_bin", "256"}};
    cdmpp_err err = {0};
    cd_xgb *g = NULL;
    assert_ok(cd_xgb_new(d, NULL, p, 6, &g, &err));
    for (int r = 0; r < 6; r++) {
        assert_ok(cd_xgb_scores(g, d, score, &err));
        for (size_t i = 0; i < n; i++) {
            grad[i] = score[i] - (float)cd_rng_unit(9, i);
            hess[i] = 1;
        }
        assert_ok(cd_xgb_boost(g, d, grad, hess, &err));
    }
    assert_ok(cd_xgb_save(g, file, &err));
    cd_xgb_free(g);
}

static void copy_columns(size_t n, size_t beg, size_t end, float *to) {
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * (end - beg), x + i * W + beg, (end - beg) * sizeof *to);
}

static void the_same(size_t n, int64_t max_bin, size_t pieces) {
    static float part[N * W], cuts[W * (MOST + 1)], low[2][N * W];
    cdmpp_err err = {0};
    cd_xgb_data *whole = NULL, *bins = NULL, *d = NULL;
    cd_buf a = {0}, b = {0};
    assert_ok(cd_xgb_data_binned(x, n, W, 1, max_bin, NULL, &whole, &err));
    for (size_t k = 0; k < pieces; k++) {
        const size_t beg = W * k / pieces, end = W * (k + 1) / pieces;
        copy_columns(n, beg, end, part);
        assert_ok(
            cd_xgb_cuts(part, n, end - beg, 1, max_bin, cuts + beg * (size_t)(max_bin + 1), &err));
    }
    assert_ok(cd_xgb_data_of_cuts(cuts, W, 1, max_bin, &bins, &err));
    assert_int_equal(cd_xgb_data_rows(bins), max_bin + 1);
    assert_ok(cd_xgb_data_binned(x, n, W, 1, max_bin, bins, &d, &err));
    assert_ok(cd_xgb_data_lower(whole, W, low[0], &err));
    assert_ok(cd_xgb_data_lower(d, W, low[1], &err));
    for (size_t i = 0; i < n * W; i++)
        if (low[0][i] != low[1][i] && !(isnan(low[0][i]) && isnan(low[1][i])))
            fail_msg("value %zu, column %zu: %g, %g", i / W, i % W, (double)low[0][i],
                     (double)low[1][i]);
    grow(whole, n, &a);
    grow(d, n, &b);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.p, b.p, a.n);
    cd_buf_free(&a);
    cd_buf_free(&b);
    cd_xgb_data_free(whole);
    cd_xgb_data_free(bins);
    cd_xgb_data_free(d);
}

TEST(bins_are_those_of_the_whole) {
    static const int64_t max_bin[] = {2, 3, 16, 255, MOST};
    static const size_t n[] = {1, 2, 40, 300, N};
    fill();
    for (size_t i = 0; i < sizeof n / sizeof *n; i++)
        for (size_t k = 0; k < sizeof max_bin / sizeof *max_bin; k++)
            the_same(n[i], max_bin[k], 1 + (i + k) % 4);
}

/* Another matrix is no matrix of so many columns. */
TEST(refused) {
    static float low[40 * W];
    cdmpp_err err = {0};
    cd_xgb_data *d = NULL;
    fill();
    assert_ok(cd_xgb_data_binned(x, 40, W, 1, 16, NULL, &d, &err));
    assert_status(cd_xgb_data_lower(d, 2, low, &err), CDMPP_EMODEL);
    cd_xgb_data_free(d);
}

TEST(out_of_memory) {
    static float cuts[W * 17];
    fill();
    FAULT_SWEEP(f, 6) {
        cd_xgb_data *d = NULL;
        f.st = cd_xgb_cuts(x, 50, W, 1, 16, cuts, &f.err);
        if (!f.st) f.st = cd_xgb_data_of_cuts(cuts, W, 1, 16, &d, &f.err);
        cd_xgb_data_free(d);
    }
}

TESTS(NULL, NULL, bins_are_those_of_the_whole, refused, out_of_memory)
