/* Numbers in another unit are told, those of chips are not. */
#include "features/device/device.h"
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/cli.h"

static void told(const char *text, const char *want) {
    cd_diag diag = {0};
    cd_device_table *l = NULL;
    cdmpp_err err = {0};
    assert_ok(cd_device_table_read("d.yaml", text, strlen(text), &diag, &l, &err));
    assert_string_equal(cd_device_table_unusual(l), want);
    assert_int_equal(diag.n, 0);
    cd_device_table_free(l);
    cd_diag_free(&diag);
}

TEST(other_units) {
    told("- {name: a, kind: cpu, clock_mhz: 2.7}\n",
         "d.yaml:1: device a: clock_mhz: 2.7 MHz is unusual of a cpu, 100 to 10000 MHz is usual: "
         "is it in another unit? 1000 times as much would be usual\n");
    told("- {name: a, kind: cpu, l2_kb: 1048576}\n",
         "d.yaml:1: device a: l2_kb: 1.04858e+06 KB is unusual of a cpu, 16 to 131072 KB is usual: "
         "is it in another unit? a 1024th would be usual\n");
    told("- {name: a, kind: cpu, bandwidth_gb_s: 25600}\n",
         "d.yaml:1: device a: bandwidth_gb_s: 25600 GB/s is unusual of a cpu, 0.5 to 3000 GB/s is "
         "usual: is it in another unit? a 1024th would be usual\n");
    told("- name: a\n  kind: gpu\n  bandwidth_gb_s: 320000\n  warp: 1000\n",
         "d.yaml:3: device a: bandwidth_gb_s: 320000 GB/s is unusual of a gpu, 1 to 20000 GB/s is "
         "usual: is it in another unit? a 1024th would be usual\n"
         "d.yaml:4: device a: warp: 1000 is unusual of a gpu, 1 to 128 is usual: is it in another "
         "unit? a 1000th would be usual\n");
    told("- {name: a, kind: cpu, simd_bits: 1}\n",
         "d.yaml:1: device a: simd_bits: 1 bit is unusual of a cpu, 32 to 16384 bit is usual: is "
         "it in another unit? 1000 times as much would be usual\n");
    told("- {name: a, kind: cpu, warp: 32}\n",
         "d.yaml:1: device a: warp: 32 is unusual of a cpu, 1 to 1 is usual\n");
    /* each is usual: TB/s; TFLOP/s */
    told("- {name: a, kind: gpu, fp32_gflops: 67000, bandwidth_gb_s: 3.35}\n",
         "d.yaml:1: device a: fp32_gflops, bandwidth_gb_s: 6.7e+04 GFLOP/s and 3.35 GB/s are 2e+04 "
         "operations for a byte, 0.05 to 1000 are usual: one of both is in another unit\n");
    told("- {name: a, kind: gpu, fp32_gflops: 67, bandwidth_gb_s: 3350}\n",
         "d.yaml:1: device a: fp32_gflops, bandwidth_gb_s: 67 GFLOP/s and 3350 GB/s are 0.02 "
         "operations for a byte, 0.05 to 1000 are usual: one of both is in another unit\n");
}

/* What a device may have none of is usual as 0; what is not known, too. An NPU has what either
 * has. */
TEST(nothing_to_tell) {
    told("- {name: a, kind: gpu, l3_kb: 0, shared_kb: 0, link_gb_s: 0, tdp_w: null}\n", "");
    told("- {name: a, kind: npu, warp: 32, l2_kb: 500000, mem_gb: 4000}\n", "");
    told("- {name: a, kind: cpu, clock_mhz: 100, mem_gb: 20000, l2_kb: 131072}\n", "");
}

/* Ends of all ranges: low is below high, both are usual, and can be written. The devices that we
 * carry are usual. */
TEST(ranges) {
    static const char *const key[] = {
#define X(key, low, high, unit, meaning) #key,
#include "features/device/device_keys.def"
    };
    static const double least[][2] = {
#define X(key, low, high, unit, meaning) {low, high},
#include "features/device/device_keys.def"
    };
    char text[320];
    for (size_t i = 0; i < sizeof key / sizeof *key; i++)
        for (int kind = CD_DEVICE_CPU; kind <= CD_DEVICE_NPU; kind++) {
            double r[2];
            assert_true(cd_device_usual((cd_device_kind)kind, key[i], r));
            if (!(r[0] <= r[1] && r[0] > 0 && r[0] >= least[i][0] && r[1] <= least[i][1]))
                fail_msg("%s: %g..%g", key[i], r[0], r[1]);
            assert_false(
                cd_device_unusual((cd_device_kind)kind, key[i], "", r[0], text, sizeof text) ||
                cd_device_unusual((cd_device_kind)kind, key[i], "", r[1], text, sizeof text));
            assert_true(cd_device_unusual((cd_device_kind)kind, key[i], "", r[0] / 1.01, text,
                                          sizeof text) &&
                        cd_device_unusual((cd_device_kind)kind, key[i], "", r[1] * 1.01, text,
                                          sizeof text));
        }
    assert_false(cd_device_usual(CD_DEVICE_CPU, "probe_add", (double[2]){0}));
    cd_diag diag = {0};
    cd_device_table *l = NULL;
    cdmpp_err err = {0};
    assert_ok(cd_device_table_load("configs/devices.yaml", &diag, &l, &err));
    assert_string_equal(cd_device_table_unusual(l), "");
    cd_device_table_free(l);
    cd_diag_free(&diag);
}

TEST(said_as_warnings) {
    char *said = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&said, &n);
    cd_log log;
    cd_diag diag = {0};
    cd_device_table *l = NULL;
    cdmpp_err err = {0};
    const char *text = "- {name: a, kind: cpu, warp: 32}\n- {name: b, kind: cpu, warp: 64}\n";
    assert_non_null(f);
    cd_log_init(&log, "x", f);
    assert_ok(cd_device_table_read("d.yaml", text, strlen(text), &diag, &l, &err));
    cd_device_table_say(l, &log);
    fclose(f);
    assert_string_equal(
        said, "x: warning: d.yaml:1: device a: warp: 32 is unusual of a cpu, 1 to 1 is usual\n"
              "x: warning: d.yaml:2: device b: warp: 64 is unusual of a cpu, 1 to 1 is usual\n");
    cd_log_done(&log);
    free(said);
    cd_device_table_free(l);
    cd_diag_free(&diag);
}

TESTS(NULL, NULL, other_units, nothing_to_tell, ranges, said_as_warnings)
