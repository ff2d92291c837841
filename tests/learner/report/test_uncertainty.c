/* Coverage, the least certain tenth and the rest, against numbers by hand. */
#include "learner/report/report.h"
#include "check.h"

#include <math.h>
#include <string.h>

enum { N = 21 };

/* Program i: measured 1 s; 3, 13 and 20 are the unsure ones, of which the tenth (2 of 21)
 * are the first by position. */
typedef struct {
    double y[N], p[N], low[N], high[N], std[N];
    uint8_t out[N];
    cd_train_artifacts_score s;
} made;

static void make(made *m) {
    for (int i = 0; i < N; i++) {
        const int odd = i % 10 == 3;
        m->y[i] = 1;
        m->p[i] = odd ? 0.25 : 1.5;
        m->std[i] = i % 10 == 3 ? 2 : 0.1;
        m->low[i] = m->p[i] / 2, m->high[i] = m->p[i] * 2;
        m->out[i] = i == 7;
    }
    m->std[20] = 2; /* a tie behind 3 and 13 */
    m->s = (cd_train_artifacts_score){m->p, m->low, m->high, m->std, m->out, NULL};
}

static void figures_by_hand(void **s) {
    (void)s;
    made m;
    cd_uncertainty u;
    cdmpp_err err = {0};
    make(&m);
    assert_ok(cd_uncertainty_compute(m.y, &m.s, N, &u, &err));
    assert_int_equal(u.n, N);
    assert_close(u.least_certain, 0.75, 1e-12, 0);
    assert_close(u.rest, 0.5, 1e-12, 0);
    assert_close(u.least_certain_log, log(4), 1e-12, 0); /* far too low: MAPE hardly sees it */
    assert_close(u.rest_log, log(1.5), 1e-12, 0);
    assert_close(u.coverage, 19.0 / N, 1e-12, 0);
    assert_close(u.width, 4, 1e-12, 0);
    assert_close(u.out_of_range, 1.0 / N, 1e-12, 0);
    for (int i = 0; i < N; i++) m.p[i] *= 2, m.y[i] *= 2; /* seconds or half seconds */
    cd_uncertainty v;
    assert_ok(cd_uncertainty_compute(m.y, &m.s, N, &v, &err));
    assert_close(v.least_certain_log, u.least_certain_log, 1e-12, 0);
    assert_close(v.rest, u.rest, 1e-12, 0);
}

static void told(void **s) {
    (void)s;
    made m;
    cd_uncertainty u;
    cdmpp_err err = {0};
    cd_buf b = {0};
    make(&m);
    assert_ok(cd_uncertainty_compute(m.y, &m.s, N, &u, &err));
    cd_uncertainty_json(&b, &u);
    assert_non_null(
        strstr(b.p, "\"least_certain_mape\":0.75,\"rest_mape\":0.5,\"least_certain_log\":1.386"));
    assert_non_null(strstr(b.p, ",\"rest_log\":0.405"));
    cd_buf_free(&b);
    cd_uncertainty_text(&b, "test", 0.9, &u);
    assert_non_null(strstr(b.p, "MAPE 75.0 % in the least certain tenth, 50.0 % in the rest (mean "
                                "|ln(predicted/measured)| 1.386, 0.405)"));
    cd_buf_free(&b);
}

/* One program has no rest; without intervals nothing is told. */
static void missing(void **s) {
    (void)s;
    made m;
    cd_uncertainty u;
    cdmpp_err err = {0};
    cd_buf b = {0};
    make(&m);
    assert_ok(cd_uncertainty_compute(m.y, &m.s, 1, &u, &err));
    assert_close(u.least_certain_log, log(1.5), 1e-12, 0);
    assert_true(isnan(u.rest) && isnan(u.rest_log));
    m.s.low_s = NULL;
    assert_ok(cd_uncertainty_compute(m.y, &m.s, N, &u, &err));
    assert_true(isnan(u.least_certain) && isnan(u.least_certain_log) && isnan(u.rest_log));
    cd_uncertainty_json(&b, &u);
    assert_non_null(strstr(b.p, "\"least_certain_log\":null,\"rest_log\":null"));
    cd_buf_free(&b);
    cd_uncertainty_text(&b, "test", 0.9, &u);
    assert_int_equal(b.n, 0);
}

TESTS(NULL, NULL, figures_by_hand, told, missing)
