/* Planted laws are found again; what a law says rises; curves are read; figures on real curves
 * where there are some. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "made_curve.h"
#include "profiler/curves/curves.h"
#include "tmp.h"

static cdmpp_err err;
enum { SEEDS = 150 };

/* At least 95 % right and 95 % of breaks within a sample at 5 % noise; docs/reference/patterns.md
 * has 1,000 of each. */
static void planted(bool spoiled) {
    static made_curve m;
    for (int f = 0; f < CD_N_PERF_CURVE; f++) {
        int right = 0, near = 0;
        const bool breaks = f >= CD_PERF_CURVE_HINGE && f <= CD_PERF_CURVE_STAIRS;
        for (uint64_t s = 0; s < SEEDS; s++) {
            cd_perf_curve p;
            made_curve_draw((cd_perf_curve_form)f, (1U << 20) + s * 7 + (uint64_t)f, 100, 0.05, &m);
            if (spoiled) made_curve_spoil(&m, s);
            assert_ok(cd_perf_curve_fit(m.x, m.t, m.n, NULL, &p, &err));
            right += (int)p.form == f;
            near += breaks && made_curve_off(&m, &p) <= 1;
            cd_perf_curve_free(&p);
        }
        if (right < 0.93 * SEEDS)
            print_error("%s: %d of %d\n", cd_perf_curve_form_name((cd_perf_curve_form)f), right,
                        SEEDS);
        /* 150 draws of a share of 0.97: 0.93 is three standard errors below */
        assert_true(right >= 0.93 * SEEDS);
        if (breaks) assert_true(near >= 0.93 * SEEDS);
    }
}

static void test_planted(void **state) { (void)state, planted(false); }
static void test_spoiled(void **state) { (void)state, planted(true); }

TEST(test_exact) {
    static made_curve m;
    for (int f = CD_PERF_CURVE_CONSTANT; f <= CD_PERF_CURVE_STAIRS; f++)
        for (uint64_t s = 0; s < 20; s++) { /* without noise: the numbers themselves */
            cd_perf_curve p;
            made_curve_draw((cd_perf_curve_form)f, s, 100, 0.05, &m);
            assert_ok(cd_perf_curve_fit(m.x, m.truth, m.n, NULL, &p, &err));
            for (size_t i = 0; i < m.n; i++)
                assert_close(cd_perf_curve_eval(&p, m.x[i]), m.truth[i], 0.02, 0);
            if ((int)p.form == f && f == CD_PERF_CURVE_STAIRS)
                assert_true(made_curve_off(&m, &p) <= 1);
            cd_perf_curve_free(&p);
        }
}

/* Standard errors mean something: 5 % noise, hinge; the error of the break in its own units has a
 * spread near 1. */
TEST(test_standard_errors) {
    static made_curve m;
    double sum = 0, slope = 0;
    int n = 0, inside = 0;
    for (uint64_t s = 0; s < 200; s++) {
        cd_perf_curve p;
        made_curve_draw(CD_PERF_CURVE_HINGE, 5000 + s, 100, 0.05, &m);
        assert_ok(cd_perf_curve_fit(m.x, m.t, m.n, NULL, &p, &err));
        if (p.form == CD_PERF_CURVE_HINGE) {
            assert_true(cd_perf_curve_turns(&p) && p.turn.at == p.param[2] && !p.turn.rough);
            assert_true(p.turn.low <= p.turn.at && p.turn.at <= p.turn.high);
            inside += p.turn.low <= m.law.param[2] && m.law.param[2] <= p.turn.high;
            sum += pow((p.param[2] - m.law.param[2]) / p.se[2], 2);
            slope += pow((p.param[1] - m.law.param[1]) / p.se[1], 2);
            n++;
        }
        cd_perf_curve_free(&p);
    }
    assert_true(n > 180);
    assert_true(inside > 0.88 * n);
    assert_true(sqrt(sum / n) > 0.7 && sqrt(sum / n) < 1.4);
    assert_true(sqrt(slope / n) > 0.7 && sqrt(slope / n) < 1.4);
}

/* Four points: the law that fits them best says little of where it turns. They are exact here, and
 * so is the fit. */
static void test_turn_of_few_points(void **state) {
    (void)state;
    const double x[] = {2, 4, 8, 16};
    double t[4];
    cd_perf_curve p;
    for (int i = 0; i < 4; i++) t[i] = 1 + 0.5 * fmax(x[i] - 7.723, 0);
    assert_ok(cd_perf_curve_fit(x, t, 4, NULL, &p, &err));
    assert_true(cd_perf_curve_turns(&p) && p.turn.rough);
    assert_true(p.turn.low <= 4 && p.turn.high >= 8);
    cd_perf_curve_free(&p);
}

/* Nine in ten new measurements lie inside, of laws; that of a table is not that sure near its
 * jumps. */
TEST(test_interval) {
    static made_curve m;
    for (int f = CD_PERF_CURVE_CONSTANT; f <= CD_PERF_CURVE_STAIRS; f++) {
        int inside = 0, asked = 0;
        for (uint64_t s = 0; s < 100; s++) {
            cd_perf_curve p;
            made_curve_draw((cd_perf_curve_form)f, 900 + s, 100, 0.05, &m);
            assert_ok(cd_perf_curve_fit(m.x, m.t, m.n, NULL, &p, &err));
            made_dice d = {s, 1 << 20};
            for (int k = 0; k < 10; k++, asked++) {
                const size_t i = (size_t)(100 * made_unit(&d));
                const double t = m.truth[i] * exp(0.05 * made_normal(&d));
                double low, high;
                cd_perf_curve_interval(&p, m.x[i], 0.9, &low, &high);
                inside += t >= low && t <= high;
            }
            cd_perf_curve_free(&p);
        }
        assert_true(inside > 0.85 * asked && inside < 0.95 * asked);
    }
}

static void laws(const cd_perf_curve *p) {
    double last = 0, low, high, wide, wider;
    for (double x = 0; x < 3 * p->x_max; x += p->x_max / 777) {
        const double t = cd_perf_curve_eval(p, x);
        assert_true(isfinite(t) && t >= 0);
        assert_true(t >= last * (1 - 1e-12));
        cd_perf_curve_interval(p, x, 0.5, &low, &high);
        wide = high - low;
        assert_true(low <= t && t <= high);
        cd_perf_curve_interval(p, x, 0.95, &low, &high);
        wider = high - low;
        assert_true(wider >= wide);
        last = t;
    }
}

TEST(test_laws) {
    static made_curve m;
    for (int f = 0; f < CD_N_PERF_CURVE; f++)
        for (uint64_t s = 0; s < 30; s++)
            for (size_t n = 3; n <= 100; n = n * 3 + 1) {
                cd_perf_curve p, q;
                made_curve_draw((cd_perf_curve_form)f, s + 77, n < 12 ? 100 : n,
                                s % 3 ? 0.05 : 0.005, &m);
                for (size_t i = 0; n < 12 && i < n; i++)
                    m.x[i] = m.x[i * 99 / (n - 1)], m.t[i] = m.t[i * 99 / (n - 1)];
                assert_ok(cd_perf_curve_fit(m.x, m.t, n, NULL, &p, &err));
                laws(&p);
                /* other units, the same law */
                for (size_t i = 0; i < n; i++) m.x[i] *= 1024, m.t[i] *= 64;
                assert_ok(cd_perf_curve_fit(m.x, m.t, n, NULL, &q, &err));
                assert_int_equal(p.form, q.form);
                assert_close(cd_perf_curve_eval(&q, 1024 * 0.5 * p.x_max),
                             64 * cd_perf_curve_eval(&p, 0.5 * p.x_max), 1e-6, 0);
                cd_perf_curve_free(&p);
                cd_perf_curve_free(&q);
            }
}

TEST(test_stairs_and_flat) {
    double x[30], t[30];
    cd_perf_curve p;
    for (int i = 0; i < 30; i++) x[i] = i + 1, t[i] = 0.5 * ceil(x[i] / 8);
    assert_ok(cd_perf_curve_fit(x, t, 30, NULL, &p, &err));
    assert_int_equal(p.form, CD_PERF_CURVE_STAIRS);
    cd_perf_curve_free(&p);
    for (int i = 0; i < 30; i++) t[i] = 2;
    assert_ok(cd_perf_curve_fit(x, t, 30, NULL, &p, &err));
    assert_int_equal(p.form, CD_PERF_CURVE_CONSTANT);
    assert_int_equal(cd_perf_curve_classify(&p), CD_PERF_CURVE_FLAT);
    assert_false(cd_perf_curve_turns(&p));
    cd_perf_curve_free(&p);
}

/* BERT on 64 cores, spec 1.4 (d): c ceil(12 / t) against 12 / t. */
TEST(test_threads) {
    double x[12], t[12];
    cd_perf_curve p;
    for (int i = 0; i < 12; i++) x[i] = i + 1, t[i] = 3e-3 + 2e-3 * ceil((i + 1) / 4.0);
    assert_ok(cd_perf_curve_fit(x, t, 12, NULL, &p, &err));
    assert_int_equal(p.form, CD_PERF_CURVE_STAIRS);
    cd_perf_curve_free(&p);
}

TEST(test_bad_points) {
    cd_perf_curve p;
    const double x[] = {1, 2, 3, 4};
    const double t[] = {1, 2, 3, 4};
    const double falls[] = {1, 3, 2, 4};
    const double zero[] = {1, 0, 3, 4};
    const double nan[] = {1, 2, (double)NAN, 4};
    const double none[] = {0, 0, 0, 0};
    assert_status(cd_perf_curve_fit(x, t, 2, NULL, &p, &err), CDMPP_EINVALID);
    assert_status(cd_perf_curve_fit(falls, t, 4, NULL, &p, &err), CDMPP_EINVALID);
    assert_status(cd_perf_curve_fit(x, zero, 4, NULL, &p, &err), CDMPP_EINVALID);
    assert_status(cd_perf_curve_fit(x, nan, 4, NULL, &p, &err), CDMPP_EINVALID);
    assert_status(cd_perf_curve_fit(nan, t, 4, NULL, &p, &err), CDMPP_EINVALID);
    assert_status(cd_perf_curve_fit(none, t, 4, NULL, &p, &err), CDMPP_EINVALID);
    cd_perf_curve_free(&p); /* zeroed */
    memset(&err, 0, sizeof err);
}

/* ---- reading ---- */
static const char head[] = "set\thost\toperator\tdevice_id\tvaried\tshape\tpoints_n:ms\n";

TEST(test_read) {
    tmp_dir dir = tmp_make();
    char text[2048];
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s", head,
             "bert\tme\tdense\t-1\tv\ts\t8:4 1:0.5 2:1 2:0.75\n", "x\ty\tz\t0\t\t\t1:0\n",
             "x\ty\tz\t0\t\t\t1:1 nonsense\n", "short\tline\n", "x\ty\tz\t0\t\t\t\n",
             "\nx\ty\tz\t3\t\t\t5:2.5e-3\n");
    const char *path = tmp_put(&dir, "c.tsv", text, strlen(text));
    cd_curves *r;
    cd_curve c;
    bool more;
    assert_ok(cd_curves_open(path, &r, &err));
    assert_ok(cd_curves_next(r, &c, &more, &err));
    assert_true(more);
    assert_string_equal(c.set, "bert");
    assert_string_equal(c.host, "me");
    assert_string_equal(c.op, "dense");
    assert_int_equal(c.device_id, -1);
    assert_int_equal(c.n, 3);
    assert_true(c.x[0] == 1 && c.x[1] == 2 && c.x[2] == 8);
    assert_close(c.t[1], 0.75e-3, 1e-12, 0);
    static const cdmpp_status want[] = {CDMPP_ERANGE, CDMPP_EPARSE, CDMPP_EPARSE, CDMPP_EPARSE};
    for (int i = 0; i < 4; i++) {
        memset(&err, 0, sizeof err);
        assert_status(cd_curves_next(r, &c, &more, &err), want[i]);
        assert_true(more);
        assert_int_equal(err.line, 3 + i);
    }
    memset(&err, 0, sizeof err);
    assert_ok(cd_curves_next(r, &c, &more, &err));
    assert_true(more && c.n == 1 && c.device_id == 3);
    assert_close(c.t[0], 2.5e-6, 1e-12, 0);
    assert_ok(cd_curves_next(r, &c, &more, &err));
    assert_false(more);
    cd_curves_close(r);
    tmp_remove(&dir);
}

TEST(test_bad_tables) {
    tmp_dir dir = tmp_make();
    cd_curves *r;
    assert_status(cd_curves_open(tmp_put(&dir, "empty", "", 0), &r, &err), CDMPP_ESCHEMA);
    assert_status(cd_curves_open(tmp_put(&dir, "head", "host\toperator\n", 14), &r, &err),
                  CDMPP_ESCHEMA);
    assert_status(cd_curves_open("/nonexistent/c.tsv", &r, &err), CDMPP_EIO);
    memset(&err, 0, sizeof err);
    cd_curves_close(NULL);
    tmp_remove(&dir);
}

/* Where the reference sets are: conv and dense follow a line on each GPU, as EOP's rule counts. */
TEST(test_real) {
    const char *data = getenv("CDMPP_DATA");
    char path[512], host[8][64];
    size_t linear[8] = {0}, all[8] = {0}, n_host = 0;
    cd_curves *r;
    cd_curve c;
    bool more = true;
    snprintf(path, sizeof path, "%s/op-curves/op_curves.tsv.xz", data ? data : "/nonexistent");
    if (cd_curves_open(path, &r, NULL)) skip();
    while (!cd_curves_next(r, &c, &more, &err) && more) {
        size_t h = 0;
        cd_perf_curve p;
        if (strcmp(c.op, "nn.conv2d") != 0 && strcmp(c.op, "nn.dense") != 0) continue;
        while (h < n_host && strcmp(host[h], c.host) != 0) h++;
        if (h == n_host) snprintf(host[n_host++], sizeof *host, "%s", c.host);
        assert_ok(cd_perf_curve_fit(c.x, c.t, c.n, NULL, &p, &err));
        linear[h] += cd_perf_curve_classify(&p) == CD_PERF_CURVE_LINEAR;
        all[h]++;
        cd_perf_curve_free(&p);
    }
    cd_curves_close(r);
    assert_int_equal(n_host, 7);
    for (size_t h = 0; h < n_host; h++) assert_true((double)linear[h] >= 0.85 * (double)all[h]);
}

TEST(test_memory) {
    static made_curve m;
    made_curve_draw(CD_PERF_CURVE_TABLE, 3, 100, 0.05, &m);
    FAULT_SWEEP(f, 1) {
        cd_perf_curve p;
        f.st = cd_perf_curve_fit(m.x, m.t, m.n, NULL, &p, &f.err);
        cd_perf_curve_free(&p);
    }
}

TESTS(NULL, NULL, test_planted, test_spoiled, test_exact, test_standard_errors,
      test_turn_of_few_points, test_interval, test_laws, test_stairs_and_flat, test_threads,
      test_bad_points, test_read, test_bad_tables, test_real, test_memory)
