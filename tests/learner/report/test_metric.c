/* The constants are numpy's and scipy's (spearmanr) for the same numbers. */
#include "learner/report/report.h"
#include "check.h"

#include <string.h>

TEST(against_scipy) {
    cdmpp_err err = {0};
    cd_metric m;
    const double y[] = {3, 1, 2, 4, 5, 6, 7, 2, 2, 5, 3, 3, 9};
    const double p[] = {2.5, 6.5, 2.5, 3, 9, 5.5, 7.2, 2.1, 1.5, 1.5, 1, 2, 9.2};
    const uint32_t g[] = {4, 4, 4, 4, 4, 4, 4, 1, 1, 1, 2, 2, 0};
    const double w[] = {2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 1, 1, 1};
    assert_ok(cd_metric_compute(y, p, g, w, 13, &m, &err));
    assert_int_equal(m.n_group, 4);
    assert_close(m.mape, 0.7000610500610501, 1e-12, 0);
    assert_close(m.median_ape, 0.25, 1e-12, 0);
    assert_close(m.rmse_s, 2.246193361085509, 1e-12, 0);
    assert_close(m.rmse_log, 0.7301118068136302, 1e-12, 0);
    assert_close(m.mae_log, 0.48726304775093698, 1e-12, 0);
    assert_close(m.within_5, 2.0 / 13, 1e-12, 0);
    assert_close(m.within_10, 4.0 / 13, 1e-12, 0);
    assert_close(m.within_20, 5.0 / 13, 1e-12, 0);
    assert_close(m.spearman, -0.006746885072199116, 1e-12, 0);
    assert_int_equal(m.n_spearman, 2); /* group 2 measured equal, group 0 alone */
    assert_close(m.pairwise, 0.6521739130434783, 1e-12, 0);
    assert_int_equal(m.n_pair, 23);
    assert_close(m.top1, 0.4583333333333333, 1e-12, 0);
    assert_close(m.top5, 1, 1e-12, 0);
    assert_int_equal(m.n_top5, 1);
}

enum { N = 500 };
static double y[N], p[N], w[N];
static uint32_t g[N];

TEST(many) {
    cdmpp_err err = {0};
    cd_metric m, r;
    for (int i = 0; i < N; i++) {
        y[i] = 1 + i * 37 % 101;
        p[i] = 1 + i * 53 % 89;
        g[i] = (uint32_t)i % 7;
        w[i] = 1 + i % 7;
    }
    assert_ok(cd_metric_compute(y, p, g, w, N, &m, &err));
    assert_close(m.mape, 1.7926205675115994, 1e-12, 0);
    assert_close(m.median_ape, 0.5947825119590611, 1e-12, 0);
    assert_close(m.rmse_log, 1.3110452289032697, 1e-12, 0);
    assert_close(m.mae_log, 0.96516786330387949, 1e-12, 0);
    assert_close(m.spearman, -0.01756960549992716, 1e-10, 0);
    assert_close(m.pairwise, 0.49454793275783737, 1e-12, 0);
    assert_int_equal(m.n_pair, 17608);
    assert_close(m.top1, 0.03141831238779174, 1e-12, 0);
    assert_close(m.top5, 0.08433734939759036, 1e-12, 0);
    for (int i = 0; i < N / 2; i++) { /* the order of the items is nothing */
        const double a = y[i], b = p[i], c = w[i];
        const uint32_t d = g[i];
        y[i] = y[N - 1 - i], p[i] = p[N - 1 - i], w[i] = w[N - 1 - i], g[i] = g[N - 1 - i];
        y[N - 1 - i] = a, p[N - 1 - i] = b, w[N - 1 - i] = c, g[N - 1 - i] = d;
    }
    assert_ok(cd_metric_compute(y, p, g, w, N, &r, &err));
    assert_close(r.mape, m.mape, 1e-12, 0);
    assert_true(r.pairwise == m.pairwise && r.top1 == m.top1 && r.top5 == m.top5);
}

TEST(laws) {
    cdmpp_err err = {0};
    cd_metric m;
    for (int i = 0; i < N; i++) y[i] = p[i] = 1e-6 * (1 + i * 37 % 499), g[i] = (uint32_t)i % 3;
    assert_ok(cd_metric_compute(y, p, g, NULL, N, &m, &err));
    assert_true(m.mape == 0 && m.within_5 == 1 && m.pairwise == 1 && m.top1 == 1 && m.top5 == 1);
    assert_close(m.spearman, 1, 1e-12, 0);
    for (int i = 0; i < N; i++) p[i] = 1; /* a constant ranks nothing */
    assert_ok(cd_metric_compute(y, p, g, NULL, N, &m, &err));
    assert_close(m.spearman, 0, 0, 1e-15);
    assert_close(m.pairwise, 0.5, 1e-15, 0);
    assert_in_range((long)(1e4 * m.top1), 1, 500);
    assert_ok(cd_metric_compute(y, p, g, NULL, 0, &m, &err));
    assert_true(isnan(m.mape) && isnan(m.top1));
    p[3] = NAN;
    assert_status(cd_metric_compute(y, p, g, NULL, N, &m, &err), CDMPP_ENUMERIC);
    p[3] = 0;
    assert_status(cd_metric_compute(y, p, g, NULL, N, &m, &err), CDMPP_ENUMERIC);
    p[3] = 1;
    y[3] = 0; /* an error in percent of nothing */
    assert_status(cd_metric_compute(y, p, g, NULL, N, &m, &err), CDMPP_ENUMERIC);
}

TEST(printing) {
    cdmpp_err err = {0};
    cd_metric m;
    cd_buf b = {0};
    const double one[] = {1}, two[] = {1.1};
    const uint32_t group[] = {0};
    assert_ok(cd_metric_compute(one, two, group, NULL, 1, &m, &err));
    cd_metric_json(&b, &m);
    assert_non_null(strstr(b.p, "{\"n\":1,\"groups\":1,\"mape\":0.1,"));
    assert_non_null(strstr(b.p, "\"spearman\":null"));
    cd_buf_clear(&b);
    cd_metric_text(&b, "test", "task", &m);
    assert_non_null(strstr(b.p, "test (split=task, n=1, 1 tasks x devices): MAPE 10.0 %"));
    assert_non_null(strstr(b.p, "top-1 -"));
    cd_buf_clear(&b);
    assert_ok(cd_metric_compute(NULL, NULL, NULL, NULL, 0, &m, &err));
    cd_metric_text(&b, "test", "task", &m);
    assert_string_equal(b.p, "test (split=task): no row was scored\n");
    cd_buf_free(&b);
}

/* Answers of least MAPE rank by their medians, and are judged by themselves. */
TEST(ranked_by_medians) {
    cdmpp_err err = {0};
    cd_metric m, plain;
    const double s[] = {1, 2, 3};
    const double answer[] = {0.9, 1.2, 0.8};
    const double median[] = {1, 2, 3};
    const double bad[] = {1, 0, 3};
    const uint32_t one[] = {0, 0, 0};
    assert_ok(cd_metric_compute(s, answer, one, NULL, 3, &plain, &err));
    assert_ok(cd_metric_compute_ranked(s, answer, median, one, NULL, 3, &m, &err));
    assert_true(plain.spearman < 0 && m.spearman == 1 && m.pairwise == 1 && m.top1 == 1);
    assert_true(m.mape == plain.mape && m.mae_log == plain.mae_log && m.rmse_s == plain.rmse_s &&
                m.within_20 == plain.within_20);
    assert_status(cd_metric_compute_ranked(s, answer, bad, one, NULL, 3, &m, &err), CDMPP_ENUMERIC);
}

TESTS(NULL, NULL, against_scipy, many, ranked_by_medians, laws, printing)
