/* Shares against a search through all of them; closed form against both; EOP's published tables. */
#include <string.h>

#include "base/core/rng.h"
#include "check.h"
#include "predictor/partition/shard/shard_ratio.h"

static cdmpp_err err;

typedef struct {
    double t[64];               /* any curve: seconds of 1 .. 63 units */
} any_curve;

static double any_time(const void *c, double units) { return ((const any_curve *)c)->t[(int)units]; }

static double unit(uint64_t seed, uint64_t *at) { return cd_rng_unit(seed, (*at)++); }

/* ---- affine times: all parts end at once ----
 *   a_i + b_i n_i = t,  sum n_i = D   ->   t = (D + sum a_i/b_i) / sum 1/b_i  over those that take part: all with a_i < t */

/* Of the devices in the set; those whose fixed time is not below t leave it, one by one, the largest first. Returns t. */
static double level(const cd_shard_ratio_affine *t, uint32_t n, double units, uint32_t *set) {
    for (;;) {
        double above = units, below = 0;
        uint32_t last = n;
        for (uint32_t i = 0; i < n; i++) {
            if (!(*set >> i & 1)) continue;
            above += t[i].fixed_s / t[i].unit_s;
            below += 1 / t[i].unit_s;
            if (last == n || t[i].fixed_s > t[last].fixed_s) last = i;
        }
        if (t[last].fixed_s < above / below) return above / below;
        *set &= ~(1U << last);
    }
}

static void shares(const cd_shard_ratio_affine *t, uint32_t n, uint32_t set, double at, double *share) {
    for (uint32_t i = 0; i < n; i++) share[i] = set >> i & 1 ? (at - t[i].fixed_s) / t[i].unit_s : 0;
}

/* Which devices: all sets of up to 16, each levelled. */
static void closed_join(const cd_shard_ratio_affine *t, uint32_t n, double units, double join_s, double *share, double *seconds) {
    double best = HUGE_VAL, level_at = 0;
    uint32_t chosen = 1;
    for (uint32_t tried = 1; tried < 1U << n; tried++) {
        uint32_t set = tried;
        const double at = level(t, n, units, &set);
        const double s = at + join_s * (__builtin_popcount(set) - 1);
        if (s < best) best = s, level_at = at, chosen = set;
    }
    shares(t, n, chosen, level_at, share);
    *seconds = best;
}

/* ---- the slow truth ---- */
static bool whole(const cd_shard_ratio_options *a, int64_t units, bool rest) {
    const int64_t g = a->granule ? a->granule : 1;
    return (units - (rest ? a->units % g : 0)) >= 0 && (units - (rest ? a->units % g : 0)) % g == 0;
}

static void brute(const cd_shard_ratio_options *a, uint32_t i, int64_t left, bool rest, double most, uint32_t parts, double *best) {
    if (i == a->n) {
        if (!left && !rest) *best = fmin(*best, most + a->join_s * (parts - 1));
        return;
    }
    for (int64_t u = 0; u <= left; u++)
        for (int r = 0; r <= rest; r++) {
            if (!whole(a, u, r)) continue;
            const double t = u ? a->device[i].time(a->device[i].ctx, (double)u) : 0;
            brute(a, i + 1, left - u, rest && !r, fmax(most, t), parts + (u > 0), best);
        }
}

static void test_any_curves(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 600; seed++) {
        uint64_t at = 0;
        any_curve c[4];
        cd_shard_ratio_device d[4];
        const uint32_t n = 2 + (uint32_t)(2.99 * unit(seed, &at));
        cd_shard_ratio_options a = {d, n, 2 + (int64_t)((n == 2 ? 60 : n == 3 ? 28 : 14) * unit(seed, &at)), 1 + (int64_t)(4 * unit(seed, &at)), 0, 0};
        a.join_s = unit(seed, &at) < 0.5 ? 0 : 0.5 * unit(seed, &at);
        for (uint32_t i = 0; i < n; i++) {
            for (int u = 1; u < 64; u++) c[i].t[u] = (0.05 + unit(seed, &at)) * (seed % 2 ? u * 0.1 : 1); /* rising or not */
            d[i] = (cd_shard_ratio_device){"d", any_time, &c[i]};
        }
        cd_shard_ratio_plan p, e;
        double best = HUGE_VAL;
        int64_t sum = 0;
        assert_ok(cd_shard_ratio_best(&a, &p, &err));
        brute(&a, 0, a.units, true, 0, 0, &best);
        assert_close(p.seconds, best, 1e-12, 0);
        for (uint32_t i = 0; i < n; i++) sum += p.units[i];
        assert_int_equal(sum, a.units);
        assert_true(p.seconds <= p.alone_s[p.best] && p.gain >= 1);
        if (!p.super) assert_true(p.gain <= p.ceiling * (1 + 1e-9));
        assert_ok(cd_shard_ratio_equal(&a, &e, &err));
        if (e.units[0] % a.granule == 0 || n == 2) assert_true(p.seconds <= e.seconds * (1 + 1e-12));
    }
}

static void test_closed_form(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        uint64_t at = 0;
        cd_shard_ratio_affine t[6];
        cd_shard_ratio_device d[6];
        double share[6], seconds, sum = 0;
        const uint32_t n = 2 + (uint32_t)(4.99 * unit(seed, &at));
        cd_shard_ratio_options a = {d, n, 20 + (int64_t)(300 * unit(seed, &at)), 1, 0, 0};
        a.join_s = seed % 3 ? 0.3 * unit(seed, &at) : 0;
        double steepest = 0;
        for (uint32_t i = 0; i < n; i++) {
            t[i] = (cd_shard_ratio_affine){3 * unit(seed, &at) * unit(seed, &at), 0.005 * pow(40, unit(seed, &at))};
            d[i] = (cd_shard_ratio_device){"d", cd_shard_ratio_affine_time, &t[i]};
            steepest = fmax(steepest, t[i].unit_s);
        }
        cd_shard_ratio_plan p;
        assert_ok(cd_shard_ratio_best(&a, &p, &err));
        closed_join(t, n, (double)a.units, a.join_s, share, &seconds);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(share[i] >= 0);
            sum += share[i];
        }
        assert_close(sum, (double)a.units, 1e-9, 0);
        assert_true(p.seconds >= seconds * (1 - 1e-12));
        assert_true(p.seconds <= seconds + (n == 2 ? steepest : steepest * n));
        assert_true(p.gain <= p.ceiling * (1 + 1e-9) && !p.super);
    }
}

/* n* = (a_g + b_g D - a_c) / (b_c + b_g) of the spec, 1.6. */
static void test_formula(void **state) {
    (void)state;
    const cd_shard_ratio_affine t[2] = {{1, 0.02}, {0.5, 0.05}};
    double share[2], seconds;
    closed_join(t, 2, 100, 0, share, &seconds);
    assert_close(share[0], (0.5 + 0.05 * 100 - 1) / 0.07, 1e-12, 0);
    assert_close(seconds, 1 + 0.02 * share[0], 1e-12, 0);
    const cd_shard_ratio_affine far[2] = {{1, 0.02}, {50, 0.001}}; /* never worth its start */
    closed_join(far, 2, 100, 0, share, &seconds);
    assert_true(share[1] == 0);
    assert_close(seconds, 3, 1e-12, 0);
}

static void test_do_not_split(void **state) {
    (void)state;
    for (double rho = 30; rho < 400; rho *= 1.5) { /* a start of 4 % of the whole: 1/rho cannot pay for it */
        const cd_shard_ratio_affine t[2] = {{0.04, 0.96 / 100}, {0.04, rho * 0.96 / 100}};
        const cd_shard_ratio_device d[2] = {{"fast", cd_shard_ratio_affine_time, &t[0]}, {"slow", cd_shard_ratio_affine_time, &t[1]}};
        cd_shard_ratio_plan p;
        assert_ok(cd_shard_ratio_best(&(cd_shard_ratio_options){d, 2, 100, 1, 0.04, 0}, &p, &err));
        assert_int_equal(p.parts, 1);
        assert_int_equal(p.units[0], 100);
        assert_true(p.gain == 1);
        assert_ok(cd_shard_ratio_best(&(cd_shard_ratio_options){d, 2, 100, 1, 0, 0.05}, &p, &err)); /* pays, but less than asked for */
        assert_int_equal(p.parts, 1);
    }
    const cd_shard_ratio_affine even[2] = {{1e-6, 1e-3}, {1e-6, 1e-3}};
    const cd_shard_ratio_device d[2] = {{"a", cd_shard_ratio_affine_time, &even[0]}, {"b", cd_shard_ratio_affine_time, &even[1]}};
    cd_shard_ratio_plan p;
    assert_ok(cd_shard_ratio_best(&(cd_shard_ratio_options){d, 2, 100, 0, 0, 0.05}, &p, &err));
    assert_int_equal(p.units[0], 50);
    assert_close(p.gain, 2, 1e-3, 0);
    assert_close(p.rho, 1, 1e-12, 0);
    assert_close(p.ceiling, 2, 1e-12, 0);
}

/* Stairs: half a wave costs a whole one, so the share goes to an edge; transfers by a link. */
static void test_curves_and_links(void **state) {
    (void)state;
    double x[60], t[60];
    cd_perf_curve gpu, cpu;
    for (int i = 0; i < 60; i++) {
        x[i] = i + 1;
        t[i] = 1e-3 * ceil(x[i] / 16);
    }
    assert_ok(cd_perf_curve_fit(x, t, 60, NULL, &gpu, &err));
    assert_int_equal(gpu.form, CD_PERF_CURVE_STAIRS);
    for (int i = 0; i < 60; i++) t[i] = 1e-4 * x[i];
    assert_ok(cd_perf_curve_fit(x, t, 60, NULL, &cpu, &err));
    const cd_link_piece piece = {0, 1e-5, 1e-9};
    const cd_link link = {"cpu", "gpu", "write", 1, 1, &piece, 0};
    const cd_shard_ratio_curve on_gpu = {&gpu, &link, &link, 1000, 100, 0, 50}, on_cpu = {.pattern = &cpu};
    const cd_shard_ratio_device d[2] = {{"gpu", cd_shard_ratio_curve_time, &on_gpu}, {"cpu", cd_shard_ratio_curve_time, &on_cpu}};
    assert_close(cd_shard_ratio_curve_time(&on_gpu, 16), 1e-3 + (1e-5 + 2600e-9) + (1e-5 + 800e-9), 1e-6, 0);
    cd_shard_ratio_options a = {d, 2, 56, 1, 0, 0};
    cd_shard_ratio_plan p;
    double best = HUGE_VAL;
    assert_ok(cd_shard_ratio_best(&a, &p, &err));
    brute(&a, 0, a.units, true, 0, 0, &best);
    assert_close(p.seconds, best, 1e-12, 0);
    assert_int_equal(p.units[0] % 16, 0);
    assert_int_equal(p.parts, 2);
    cd_perf_curve_free(&gpu);
    cd_perf_curve_free(&cpu);
}

/* Spec 1.9: milliseconds of the model on CPU and GPU and the gains found from EOP's per-type sums. Only the sums are in the spec, so the model is one
 * operator here: its share gives 1 + 1/rho, a lower bound of the gain with a ratio for each type; the quoted one may lie above it, never
 * below. tests/bench/bench_split.c does it type by type where EOP's files are. */
static void test_eop_totals(void **state) {
    (void)state;
    static const struct {
        double cpu, gpu, place, equal, ideal;
    } row[] = {{17.7, 4.74, 1.00, 0.55, 1.29}, {259, 1653, 1.01, 0.31, 1.16}, {1.52, 1.16, 1.17, 1.37, 1.85}, {1.27, 1.27, 1.28, 1.63, 2.10}, {1.64, 1.62, 1.50, 1.48, 2.28},
               {1.77, 2.81, 1.56, 1.02, 2.29}, {1.70, 4.45, 1.40, 0.69, 2.09}, {1.38, 0.81, 1.06, 1.13, 1.64}, {1.41, 1.36, 1.21, 1.64, 2.02}, {1.41, 1.84, 1.26, 1.33, 1.95}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const cd_shard_ratio_affine t[2] = {{0, row[i].cpu / 1000}, {0, row[i].gpu / 1000}};
        const cd_shard_ratio_device d[2] = {{"cpu", cd_shard_ratio_affine_time, &t[0]}, {"gpu", cd_shard_ratio_affine_time, &t[1]}};
        const cd_shard_ratio_options a = {d, 2, 1000, 1, 0, 0};
        cd_shard_ratio_plan p, e;
        assert_ok(cd_shard_ratio_best(&a, &p, &err));
        assert_ok(cd_shard_ratio_equal(&a, &e, &err));
        assert_true(p.gain >= 1 && p.gain <= p.ceiling * (1 + 1e-12));
        assert_close(p.gain, 1 + fmin(row[i].cpu, row[i].gpu) / fmax(row[i].cpu, row[i].gpu), 2e-3, 0);
        assert_true(p.gain <= row[i].ideal + 0.01 && p.gain >= row[i].ideal / 1.6);
        assert_true(row[i].ideal >= 1.16 && row[i].ideal <= 2.29);
        assert_true(e.gain <= p.gain && e.gain >= row[i].equal - 0.03); /* all types cut in half: about the sums cut in half */
    }
}

/* Splitting type by type never gains less than splitting the sum: why the spec's ideal gains lie above 1 + 1/rho of the sums. */
static void test_types_beat_the_sum(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint64_t at = 0;
        double cpu = 0, gpu = 0, split = 0;
        for (int k = 0; k < 8; k++) {
            const cd_shard_ratio_affine t[2] = {{0, unit(seed, &at) / 100}, {0, unit(seed, &at) / 100}};
            double share[2], seconds;
            closed_join(t, 2, 100, 0, share, &seconds);
            cpu += 100 * t[0].unit_s, gpu += 100 * t[1].unit_s, split += seconds;
        }
        const double gain = fmin(cpu, gpu) / split, one = 1 + fmin(cpu, gpu) / fmax(cpu, gpu);
        assert_true(gain >= one * (1 - 1e-12));
    }
}

static double bad_time(const void *c, double units) { return units > 5 ? *(const double *)c : 1; }

static void test_bad_input(void **state) {
    (void)state;
    const cd_shard_ratio_affine t = {1, 1};
    const cd_shard_ratio_device d[2] = {{"a", cd_shard_ratio_affine_time, &t}, {"b", cd_shard_ratio_affine_time, &t}};
    cd_shard_ratio_plan p;
    const cd_shard_ratio_options good = {d, 2, 100, 1, 0, 0};
    cd_shard_ratio_options a = good;
#define REFUSED(field, value) (a = good, a.field = (value), assert_status(cd_shard_ratio_best(&a, &p, &err), CDMPP_EINVALID))
    REFUSED(n, 0);
    REFUSED(n, 17);
    REFUSED(units, 0);
    REFUSED(granule, -1);
    REFUSED(units, 100000);
    REFUSED(join_s, -1);
    REFUSED(join_s, (double)NAN);
    REFUSED(margin, 1.5);
    assert_status(cd_shard_ratio_fixed(&good, 1.1, &p, &err), CDMPP_EINVALID);
    assert_status(cd_shard_ratio_fixed(&good, (double)NAN, &p, &err), CDMPP_EINVALID);
    assert_status(cd_shard_ratio_given(&good, (int64_t[]){50, 49}, &p, &err), CDMPP_EINVALID);
    assert_status(cd_shard_ratio_given(&good, (int64_t[]){101, -1}, &p, &err), CDMPP_EINVALID);
    assert_ok(cd_shard_ratio_fixed(&good, 0.37, &p, &err));
    assert_int_equal(p.units[0], 37);
    for (int k = 0; k < 3; k++) {
        const double v = k == 0 ? (double)NAN : k == 1 ? -1 : HUGE_VAL;
        const cd_shard_ratio_device e[2] = {{"cpu0", cd_shard_ratio_affine_time, &t}, {"ocl0", bad_time, &v}};
        a = good;
        a.device = e;
        memset(&err, 0, sizeof err);
        assert_status(cd_shard_ratio_best(&a, &p, &err), CDMPP_ENUMERIC);
        assert_non_null(strstr(err.msg, "ocl0"));
    }
    memset(&err, 0, sizeof err);
    assert_ok(cd_shard_ratio_best(&(cd_shard_ratio_options){d, 1, 7, 3, 0, 0}, &p, &err));
    assert_int_equal(p.units[0], 7);
    assert_true(p.ceiling == 1 && p.gain == 1);
}

TESTS(NULL, NULL, test_any_curves, test_closed_form, test_formula, test_do_not_split, test_curves_and_links, test_eop_totals,
      test_types_beat_the_sum, test_bad_input)
