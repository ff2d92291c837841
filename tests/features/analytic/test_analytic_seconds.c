/* Seconds of facts on a device: laws of the three models, what the device must say, rules that
 * stand in. */
#include "check.h"
#include "features/analytic/analytic.h"

/* A core of round numbers: 1 GHz, 2 x 16 lanes, 10 GB/s. */
static cd_device made_device(void) {
    cd_device d = {.name = "made", .kind = CD_DEVICE_CPU};
#define X(key, low, high, unit, meaning) d.key = CD_DEVICE_UNKNOWN;
#include "features/device/device_keys.def"
    d.clock_mhz = 1000;
    d.cores = 8;
    d.cores_used = 1;
    d.lanes = 32;
    d.l1_kb = 32;
    d.l2_kb = 1024;
    d.l3_kb = 32768;
    d.bandwidth_gb_s = 10;
    return d;
}

/* A program of 64 MB that moves twice that through caches below 64 MB, and needs a million
 * cycles. */
static void made_facts(float x[CD_N_FACTS]) {
    memset(x, 0, CD_N_FACTS * sizeof *x);
    for (int c = 0; c < CD_N_FACT_CAPACITY; c++) {
        x[CD_FACT_FETCHED_0 + c] = c < 14 ? 2 << 20 : 1 << 20;
        x[CD_FACT_WRITTEN_0 + c] = 0;
    }
    x[CD_FACT_LINES] = 1 << 20;
    x[CD_FACT_WIDTH] = 64;
    x[CD_FACT_CORE_CYCLES] = 1e6F;
    x[CD_FACT_PORT_CYCLES] = 5e5F;
    x[CD_FACT_LOADS_UNIT] = 1e6F;
    x[CD_FACT_REGIONS] = 1;
    x[CD_FACT_REGION_1_CHUNKS] = 48;
    x[CD_FACT_REGION_1_SHARE] = 1;
}

TEST(parts) {
    cdmpp_err err = {0};
    cd_device d = made_device();
    cd_analytic_time t;
    float x[CD_N_FACTS];
    made_facts(x);
    assert_ok(cd_analytic_seconds(x, &d, &t, &err));
    assert_close(t.compute_s, 1e-3, 1e-6, 0);
    assert_close(t.l1_s, 64e6 / 128e9, 1e-6, 0);           /* two vectors of 64 bytes a clock */
    assert_close(t.l2_s, 128.0 * 1048576 / 32e9, 1e-6, 0); /* 32 bytes a clock by rule */
    assert_close(t.memory_s, 128.0 * 1048576 / 10e9, 1e-6, 0);
    assert_close(t.roofline_s, t.memory_s + t.overhead_s, 1e-9, 0);
    assert_close(t.ecm_s, t.l1_s + t.l2_s + t.l3_s + t.memory_s + t.overhead_s, 1e-9, 0);
    assert_close(t.sum_s, t.ecm_s + t.compute_s, 1e-9, 0);
    assert_true(t.roofline_s <= t.ecm_s && t.ecm_s <= t.sum_s);
    assert_int_equal(t.rules, CD_ANALYTIC_RULE_L1 | CD_ANALYTIC_RULE_L2 | CD_ANALYTIC_RULE_L3);
    assert_close(t.threads, 1, 0, 0);
}

/* What is measured replaces rules, slow vector units count, more cores and bandwidth help, a
 * program that fits stays in the cache. */
TEST(device) {
    cdmpp_err err = {0};
    cd_device d = made_device();
    cd_analytic_time a, b;
    float x[CD_N_FACTS];
    made_facts(x);
    assert_ok(cd_analytic_seconds(x, &d, &a, &err));
    d.probe[CD_DEVICE_PROBE_probe_l2] = 64;
    assert_ok(cd_analytic_seconds(x, &d, &b, &err));
    assert_close(b.l2_s, a.l2_s / 2, 1e-6, 0);
    assert_int_equal(b.rules, CD_ANALYTIC_RULE_L1 | CD_ANALYTIC_RULE_L3);
    d = made_device();
    d.lanes = 8; /* a quarter of what facts count with: the ports take four times as long */
    assert_ok(cd_analytic_seconds(x, &d, &b, &err));
    assert_close(b.compute_s, 2e-3, 1e-6, 0);
    d.lanes = CD_DEVICE_UNKNOWN;
    assert_ok(cd_analytic_seconds(x, &d, &b, &err));
    assert_close(b.compute_s, 1e-3, 1e-6, 0);
    assert_true(b.rules & CD_ANALYTIC_RULE_LANES);
    d = made_device();
    d.cores_used = 8;
    assert_ok(cd_analytic_seconds(x, &d, &b, &err));
    assert_close(b.threads, 8, 1e-6, 0);
    assert_close(b.compute_s, a.compute_s / 8, 1e-6, 0);
    assert_close(b.memory_s, a.memory_s, 1e-6, 0); /* one memory for all */
    assert_true(b.rules & CD_ANALYTIC_RULE_OVERHEAD && b.overhead_s > a.overhead_s);
    d = made_device();
    d.l3_kb = 131072;
    assert_ok(cd_analytic_seconds(x, &d, &b, &err));
    assert_close(b.memory_s, 0, 0, 0);
    d.l3_kb = 0; /* none: L2 is next to memory */
    assert_ok(cd_analytic_seconds(x, &d, &b, &err));
    assert_close(b.l3_s, 0, 0, 0);
    assert_close(b.memory_s, a.memory_s, 1e-6, 0);
}

/* The last round counts in full; what is in no loop that the facts tell apart divides evenly, what
 * is in no parallel loop not at all. */
TEST(threads) {
    static const struct {
        int cores;
        double threads;
    } one[] = {{1, 1},   {6, 6},   {7, 48.0 / 7}, {24, 24}, {25, 24},
               {36, 24}, {47, 24}, {48, 48},      {96, 48}};
    cdmpp_err err = {0};
    cd_device d = made_device();
    cd_analytic_time t;
    float x[CD_N_FACTS];
    made_facts(x);
    for (size_t k = 0; k < sizeof one / sizeof *one; k++) {
        d.cores = d.cores_used = one[k].cores;
        assert_ok(cd_analytic_seconds(x, &d, &t, &err));
        assert_close(t.threads, one[k].threads, 1e-6, 0);
    }
    x[CD_FACT_SERIAL_SHARE] = 0.25F;
    x[CD_FACT_REGION_1_SHARE] = 0.25F;
    x[CD_FACT_REGION_4_CHUNKS] = 10;
    x[CD_FACT_REGION_4_SHARE] = 0.25F;
    d.cores = d.cores_used = 24;
    assert_ok(cd_analytic_seconds(x, &d, &t, &err));
    assert_close(t.threads, 1 / (0.25 + 0.25 * 2 / 48 + 0.25 / 10 + 0.25 / 24), 1e-6, 0);
}

TEST(refused) {
    cdmpp_err err = {0};
    cd_analytic_time t;
    float x[CD_N_FACTS];
    made_facts(x);
    const struct {
        size_t at;
        const char *key;
    } need[] = {{offsetof(cd_device, clock_mhz), "clock_mhz"},
                {offsetof(cd_device, l1_kb), "l1_kb"},
                {offsetof(cd_device, l2_kb), "l2_kb"},
                {offsetof(cd_device, l3_kb), "l3_kb"},
                {offsetof(cd_device, bandwidth_gb_s), "bandwidth_gb_s"}};
    for (size_t k = 0; k < sizeof need / sizeof *need; k++) {
        cd_device d = made_device();
        const double unknown = CD_DEVICE_UNKNOWN;
        memcpy((char *)&d + need[k].at, &unknown, sizeof unknown);
        assert_status(cd_analytic_seconds(x, &d, &t, &err), CDMPP_ESCHEMA);
        assert_non_null(strstr(err.msg, need[k].key));
    }
    cd_device d = made_device();
    d.kind = CD_DEVICE_GPU;
    assert_status(cd_analytic_seconds(x, &d, &t, &err), CDMPP_EUNSUPPORTED);
    d.kind = CD_DEVICE_CPU;
    x[CD_FACT_LINES] = NAN;
    assert_status(cd_analytic_seconds(x, &d, &t, &err), CDMPP_ERANGE);
    assert_string_equal(err.msg, "fact lines is nan");
    x[CD_FACT_LINES] = -1;
    assert_status(cd_analytic_seconds(x, &d, &t, &err), CDMPP_ERANGE);
}

TESTS(NULL, NULL, parts, device, threads, refused)
