/* The reference numbers are scikit-learn 1.2.1's for the same labels
 * (PowerTransformer, QuantileTransformer with 500 quantiles, MinMaxScaler,
 * StandardScaler); the quantiles and "log" were given ln y, Yeo-Johnson microseconds. */
#include "learner/inputs/transform.h"
#include "check.h"
#include "fault.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "learner/inputs/normal.h"

enum { N = 3000, FEW = 400, KINDS = CD_TRANSFORM_STANDARD + 1 };
static double y[N];
static const char *const name[KINDS] = {
    "none",    "log",     "box_cox", "yeo_johnson", "quantile_normal", "quantile_uniform",
    "min_max", "standard"};

/* Log-normal around 120 us, spread 5.5 times, with a floor of 2 us. */
static int labels(void **s) {
    (void)s;
    for (int i = 0; i < N; i++) {
        const double u = (i * 7919 % 4001 + 0.5) / 4001,
                     w = ((double)(i * 104729LL % 3989) + 0.5) / 3989;
        y[i] = exp(-9 + 1.7 * sqrt(-2 * log(u)) * cos(2 * M_PI * w)) + 2e-6;
    }
    return 0;
}

static cd_transform fit(int kind, const double *v, size_t n) {
    cdmpp_err err = {0};
    cd_transform t;
    assert_ok(cd_transform_fit((cd_transform_kind)kind, v, n, &t, &err));
    return t;
}

/* ---- against scikit-learn ---- */
typedef struct {
    int kind;
    double rel, abs; /* ours squeezes ranks into 1e-7..1-1e-7, theirs cuts them off */
    double z[5];     /* of labels 0, 1, 17, 200, 399 */
} expected;

static void as_scikit_learn(void **s) {
    (void)s;
    static const expected want[] = {
        {CD_TRANSFORM_LOG,
         1e-12,
         1e-14,
         {4.3754218921338799, -0.030873446221492656, -0.45903954305439393, 0.42518217897282978,
          -0.82464076868868474}},
        {CD_TRANSFORM_BOX_COX,
         1e-6,
         1e-7,
         {3.6214411505164903, 0.018864342061110661, -0.42344357237444719, 0.46959875212458607,
          -0.8164136872128851}},
        {CD_TRANSFORM_YEO_JOHNSON,
         1e-6,
         1e-7,
         {3.5256725107832554, 0.019960218986192747, -0.42947645553412067, 0.47598246599028643,
          -0.82817316651259665}},
        {CD_TRANSFORM_QUANTILE_NORMAL,
         1e-6,
         1e-6,
         {5.1993375827034196, 0.0031411433542488311, -0.42384453309014519, 0.43072729929545744,
          -0.81331042711761348}},
        {CD_TRANSFORM_QUANTILE_UNIFORM,
         1e-12,
         0,
         {1, 0.50125313283208017, 0.33583959899749372, 0.66666666666666663, 0.20802005012531327}},
        {CD_TRANSFORM_MIN_MAX,
         1e-12,
         0,
         {1, 0.00073035865986784479, 0.00035505542057849256, 0.0015559502726623486,
          0.00018844614287049133}},
        {CD_TRANSFORM_STANDARD,
         1e-12,
         0,
         {19.737319369478318, -0.091319028638986666, -0.098766219981185788, -0.074936706113240534,
          -0.10207226970467476}},
    };
    static const int at[] = {0, 1, 17, 200, 399};
    for (size_t k = 0; k < sizeof want / sizeof want[0]; k++) {
        const cd_transform t = fit(want[k].kind, y, FEW);
        for (int i = 0; i < 5; i++)
            assert_close(cd_transform_forward(&t, y[at[i]]), want[k].z[i], want[k].rel,
                         want[k].abs);
    }
    assert_close(fit(CD_TRANSFORM_BOX_COX, y, FEW).lambda, -0.06123093, 0, 2e-7);
    assert_close(fit(CD_TRANSFORM_YEO_JOHNSON, y, FEW).lambda, -0.07607715, 0, 2e-7);
}

static void more_labels_than_knots(void **s) {
    (void)s;
    static const double at[] = {4e-6, 1e-5, 1e-4, 1e-3, 5e-3};
    static const double z[] = {-2.4674004777198988, -1.6204751130557453, -0.14034525300583309,
                               1.2387513683588067, 2.1829840103586213};
    const cd_transform t = fit(CD_TRANSFORM_QUANTILE_NORMAL, y, N);
    assert_int_equal(t.n_knot, CD_TRANSFORM_KNOTS);
    for (int i = 0; i < 5; i++) assert_close(cd_transform_forward(&t, at[i]), z[i], 5e-6, 0);
    assert_close(cd_transform_inverse(&t, -2.5), 3.8917979226718373e-06, 1e-5, 0);
    assert_close(cd_transform_inverse(&t, 0.3), 0.00020716903783703794, 1e-6, 0);
    assert_close(cd_transform_inverse(&t, 2.2), 0.0051606524570382709, 1e-5, 0);
    const cd_transform b = fit(CD_TRANSFORM_BOX_COX, y, N);
    assert_close(b.lambda, -0.04588371, 0, 2e-7);
    assert_close(cd_transform_inverse(&b, -2.5), 3.0368360845587613e-06, 1e-6, 0);
    assert_close(cd_transform_inverse(&b, 2.2), 0.0059277633994549812, 1e-6, 0);
    assert_close(cd_transform_forward(&b, 1e-6), -3.3369237362671114, 1e-6, 0);
}

static void normal_distribution(void **s) {
    (void)s;
    assert_close(cd_normal_quantile(0.5), 0, 0, 1e-16);
    assert_close(cd_normal_quantile(0.975), 1.959963984540054, 1e-14, 0); /* scipy.stats.norm.ppf */
    assert_close(cd_normal_quantile(1e-7), -5.1993375821928165, 1e-14, 0);
    assert_close(cd_normal_quantile(1e-300), -37.0471, 1e-5, 0);
    for (double p = 1e-12; p < 1; p += 0.01037)
        assert_close(cd_normal_cdf(cd_normal_quantile(p)), p, 1e-13, 0);
    assert_true(isinf(cd_normal_quantile(0)) && isinf(cd_normal_quantile(1)));
}

/* ---- laws ---- */
/* Relative error that rounding z alone may cause; the linear kinds carry y as an
 * offset from the mean, so they lose digits of a small y by nature. */
static double allowed(const cd_transform *t, double z) {
    double slope;
    cd_transform_log_s(t, z, &slope);
    return 1e-12 + 8 * 2.3e-16 * slope * (fabs(z) + fabs(t->mean / t->std));
}

static void there_and_back(const cd_transform *t) {
    double before = -INFINITY;
    for (double e = -9; e <= 9; e += 1.0 / 64) {
        const double v = pow(10, e), z = cd_transform_forward(t, v),
                     back = cd_transform_inverse(t, z);
        assert_true(isfinite(z));
        if (z < before) fail_msg("%s: forward falls at %g s", name[t->kind], v);
        before = z;
        if (fabs(back / v - 1) > allowed(t, z))
            fail_msg("%s: %.17g s came back as %.17g", name[t->kind], v, back);
    }
}

/* z far beyond the labels: finite, positive, never falling, and the slope is right. */
static void everywhere(const cd_transform *t) {
    double before = 0;
    for (int k = -4000; k <= 4000; k++) {
        const double z = k * fabs(k * 1.0) * 1e-4, v = cd_transform_inverse(t, z);
        if (!(v >= CD_TRANSFORM_MIN_S && v <= CD_TRANSFORM_MAX_S))
            fail_msg("%s: %g s at z = %g", name[t->kind], v, z);
        if (v < before) fail_msg("%s: inverse falls at z = %g", name[t->kind], z);
        before = v;
    }
    for (double z = -6.03; z < 6; z += 0.0913) {
        double slope, h = 1e-6;
        const double log_s = cd_transform_log_s(t, z, &slope);
        assert_true(slope > 0);
        if (log_s > -34 && log_s < 34)
            assert_close(cd_transform_inverse(t, z), exp(log_s), 1e-12, 0);
        if (fabs(z - t->low.z) < h || fabs(z - t->high.z) < h) continue;
        double left, right; /* a knot in between: the step has a kink */
        cd_transform_log_s(t, z - h, &left);
        cd_transform_log_s(t, z + h, &right);
        if (fabs(left - right) > 1e-3 * slope) continue;
        assert_close((cd_transform_log_s(t, z + h, NULL) - cd_transform_log_s(t, z - h, NULL)) /
                         (2 * h),
                     slope, 2e-4, 1e-9);
    }
    assert_close(cd_transform_inverse(t, -INFINITY), CD_TRANSFORM_MIN_S, 0, 0);
    assert_close(cd_transform_inverse(t, INFINITY), CD_TRANSFORM_MAX_S, 0, 0);
    assert_true(isnan(cd_transform_inverse(t, (double)NAN)));
}

/* Labels over all of the range: every kind, also with a lambda forced to either side. */
static void laws(void **s) {
    (void)s;
    static double wide[500];
    for (int i = 0; i < 500; i++) wide[i] = pow(10, -9 + 18 * cd_rng_unit(3, (uint64_t)i));
    for (int kind = 0; kind < KINDS; kind++) {
        const cd_transform w = fit(kind, wide, 500), t = fit(kind, y, N);
        there_and_back(&w);
        everywhere(&w);
        there_and_back(&t);
        everywhere(&t);
    }
}

static void skewed_labels_force_lambda(void **s) {
    (void)s;
    static double up[300], down[300];
    for (int i = 0; i < 300; i++) {
        const double u = 0.1 + 0.9 * cd_rng_unit(5, (uint64_t)i);
        up[i] = 1e-3 * sqrt(u); /* lambda near 2 */
        down[i] = 1e-3 / u;     /* lambda near -1 */
    }
    const cd_transform a = fit(CD_TRANSFORM_BOX_COX, up, 300),
                       b = fit(CD_TRANSFORM_BOX_COX, down, 300);
    assert_true(a.lambda > 1 && a.low.on && !a.high.on);
    assert_true(b.lambda < -0.5 && b.high.on && !b.low.on);
    there_and_back(&a);
    everywhere(&a);
    there_and_back(&b);
    everywhere(&b);
}

static void shift_of_unit(void **s) { /* Box-Cox then standard: the unit of y is nothing */
    (void)s;
    static double us[FEW];
    for (int i = 0; i < FEW; i++) us[i] = y[i] * 1e6;
    const cd_transform a = fit(CD_TRANSFORM_BOX_COX, y, FEW),
                       b = fit(CD_TRANSFORM_BOX_COX, us, FEW);
    for (int i = 0; i < FEW; i++)
        assert_close(cd_transform_forward(&a, y[i]), cd_transform_forward(&b, us[i]), 1e-7, 1e-7);
}

/* ---- odd inputs ---- */
static void equal_labels(void **s) {
    (void)s;
    const double same[] = {3e-4, 3e-4, 3e-4, 3e-4}, ties[] = {1e-5, 1e-5, 1e-5, 2e-4, 2e-4, 7e-3};
    for (int kind = 0; kind < KINDS; kind++) {
        const cd_transform one = fit(kind, same, 1), t = fit(kind, same, 4), u = fit(kind, ties, 6);
        there_and_back(&one);
        there_and_back(&t);
        everywhere(&t);
        there_and_back(&u);
        everywhere(&u);
    }
}

static void bad_labels(void **s) {
    (void)s;
    cdmpp_err err = {0};
    cd_transform t;
    const double bad[][2] = {
        {1e-3, 0}, {1e-3, -1}, {(double)NAN, 1}, {1, (double)INFINITY}, {1e-16, 1}};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        assert_status(cd_transform_fit(CD_TRANSFORM_LOG, bad[k], 2, &t, &err), CDMPP_ENUMERIC);
    assert_non_null(strstr(err.msg, "label 0"));
    assert_status(cd_transform_fit(CD_TRANSFORM_LOG, NULL, 0, &t, &err), CDMPP_ESCHEMA);
    FAULT_SWEEP(f, 1) {
        cd_transform q;
        f.st = cd_transform_fit(CD_TRANSFORM_QUANTILE_NORMAL, y, FEW, &q, &f.err);
    }
}

/* ---- JSON ---- */
static cdmpp_status read_text(const char *text, cd_transform *out, cdmpp_err *err) {
    cd_arena a = {0};
    const cd_json *v;
    cdmpp_status st = cd_json_parse(&a, text, strlen(text), &v, err);
    if (!st) st = cd_transform_read(v, out, err);
    cd_arena_free(&a);
    return st;
}

static void json_there_and_back(void **s) {
    (void)s;
    cdmpp_err err = {0};
    for (int kind = 0; kind < KINDS; kind++) {
        const cd_transform t = fit(kind, y, N);
        cd_transform r;
        cd_buf text = {0};
        cd_transform_write(&text, &t);
        assert_ok(read_text(text.p, &r, &err));
        cd_buf_free(&text);
        assert_int_equal(r.kind, t.kind);
        for (int i = 0; i < N; i++) {
            const double a = cd_transform_forward(&t, y[i]), b = cd_transform_forward(&r, y[i]);
            const double p = cd_transform_inverse(&t, 3 * a), q = cd_transform_inverse(&r, 3 * a);
            assert_memory_equal(&a, &b, sizeof a);
            assert_memory_equal(&p, &q, sizeof p);
        }
    }
}

static void json_errors(void **s) {
    (void)s;
    static const struct {
        const char *text, *key;
        cdmpp_status st;
    } bad[] = {
        {"{}", "kind", CDMPP_ESCHEMA},
        {"{\"kind\":\"logg\"}", "kind", CDMPP_ESCHEMA},
        {"{\"kind\":\"log\"}", "lambda", CDMPP_ESCHEMA},
        {"{\"kind\":\"log\",\"lambda\":3}", "lambda", CDMPP_ERANGE},
        {"{\"kind\":\"log\",\"lambda\":0,\"centre\":0,\"mean\":0,\"std\":0}", "std", CDMPP_ERANGE},
        {"{\"kind\":\"log\",\"lambda\":0,\"centre\":0,\"mean\":0,\"std\":1,\"log_range\":[2,1]}",
         "log_range", CDMPP_ERANGE},
        {"{\"kind\":\"log\",\"lambda\":0,\"centre\":0,\"mean\":0,\"std\":1,\"log_range\":[2]}",
         "log_range", CDMPP_ESCHEMA},
        {"{\"kind\":\"quantile_normal\",\"lambda\":0,\"centre\":0,\"mean\":0,\"std\":1,\"log_"
         "range\":[-9,-8],\"knots\":[-9,-9],"
         "\"levels\":[0,1]}",
         "knots", CDMPP_ERANGE},
        {"{\"kind\":\"quantile_normal\",\"lambda\":0,\"centre\":0,\"mean\":0,\"std\":1,\"log_"
         "range\":[-9,-8],\"knots\":[-9,-8],"
         "\"levels\":[0]}",
         "levels", CDMPP_ESCHEMA},
        {"{\"kind\":\"quantile_uniform\",\"lambda\":0,\"centre\":0,\"mean\":0,\"std\":1,\"log_"
         "range\":[-9,-8],\"knots\":[-9,-8],"
         "\"levels\":[0,1e-320]}",
         "", CDMPP_ERANGE},
    };
    cdmpp_err none = {0};
    cd_transform one; /* a knot is enough: all labels were equal */
    assert_int_equal(read_text("{\"kind\":\"quantile_uniform\",\"lambda\":0,\"centre\":0,\"mean\":"
                               "0,\"std\":1,\"log_range\":[-9,-8],\"knots\":[-9],\"levels\":[0.5]}",
                               &one, &none),
                     CDMPP_OK);
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        cdmpp_err err = {0};
        cd_transform t;
        assert_status(read_text(bad[k].text, &t, &err), bad[k].st);
        assert_string_equal(err.key, bad[k].key);
    }
}

TESTS(labels, NULL, as_scikit_learn, more_labels_than_knots, normal_distribution, laws,
      shift_of_unit, skewed_labels_force_lambda, equal_labels, bad_labels, json_there_and_back,
      json_errors)
