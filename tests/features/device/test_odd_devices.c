/* Odd files of devices. */
#include "features/device/device.h"
#include "odd.h"

static cdmpp_status devices(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_diag diag = {0};
    cd_device_table *t = NULL;
    (void)ctx;
    const cdmpp_status st = cd_device_table_read("d.yaml", text, n, &diag, &t, err);
    cd_device_table_free(t);
    cd_diag_free(&diag);
    return st;
}

TEST(files) {
    odd_all("- name: Tesla V100\n  aliases: [v100, \"tesla v100\"]\n  kind: gpu\n  arch: sm_70\n  "
            "clock_mhz: 1380\n  cores: 80\n  lanes: 64\n  l3_kb: 0\n  warp: 32\n  tdp_w: null\n"
            "- name: EPYC\n  aliases: rome\n  kind: cpu\n  arch: znver2\n  clock_mhz: 2350\n  "
            "cores: 32\n  cores_used: 16\n  lanes: 8\n  simd_bits: 256\n  l2_kb: 512\n",
            devices, NULL);
}

TESTS(NULL, NULL, files)
