/* Numbers of a description that no chip has are most often in another unit. Nobody refuses them, as
 * a new chip may have them; they are told. */
#include <stdio.h>
#include <string.h>

#include "features/device/device.h"

static const struct {
    const char *key;
    double cpu[2], gpu[2];
} usual[] = {
#define X(key, cpu_low, cpu_high, gpu_low, gpu_high)                                               \
    {#key, {cpu_low, cpu_high}, {gpu_low, gpu_high}},
#include "features/device/device_usual.def"
};

bool cd_device_usual(cd_device_kind kind, const char *key, double out[2]) {
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        if (strcmp(usual[i].key, key) != 0) continue;
        const double *c = usual[i].cpu, *g = usual[i].gpu;
        out[0] = kind == CD_DEVICE_CPU || (kind == CD_DEVICE_NPU && c[0] < g[0]) ? c[0] : g[0];
        out[1] = kind == CD_DEVICE_CPU || (kind == CD_DEVICE_NPU && c[1] > g[1]) ? c[1] : g[1];
        return true;
    }
    return false; /* of the descriptor: a rate of a program of ours, whose unit nobody mistakes */
}

/* Of a number that is 1000 times too large or too small in its unit, the factor that makes it
 * usual. */
static const char *factor(double x, const double range[2]) {
    static const struct {
        double by;
        const char *text;
    } f[] = {{1e3, "1000 times as much"},
             {1.0 / 1024, "a 1024th"},
             {1e-3, "a 1000th"},
             {1e6, "a million times as much"},
             {1e-6, "a millionth"}};
    for (size_t i = 0; i < sizeof f / sizeof *f; i++)
        if (x * f[i].by >= range[0] && x * f[i].by <= range[1]) return f[i].text;
    return NULL;
}

bool cd_device_unusual(cd_device_kind kind, const char *key, const char *unit, double x, char *buf,
                       size_t n) {
    double r[2];
    if (!cd_device_usual(kind, key, r) || x == 0 || (x >= r[0] && x <= r[1])) return false;
    const char *by = factor(x, r), *u = strcmp(unit, "count") ? unit : "";
    snprintf(buf, n, "%s: %.6g%s%s is unusual of a %s, %g to %g%s%s is usual%s%s%s", key, x,
             *u ? " " : "", u, cd_device_kind_name(kind), r[0], r[1], *u ? " " : "", u,
             by ? ": is it in another unit? " : "", by ? by : "", by ? " would be usual" : "");
    return true;
}

/* Operations for each byte of memory: 0.2 of old boards, 105 of an NVIDIA L40. */
#define LEAST_BALANCE 0.05
#define MOST_BALANCE  1000
bool cd_device_unbalanced(const cd_device *d, char *buf, size_t n) {
    if (!(d->fp32_gflops > 0) || !(d->bandwidth_gb_s > 0)) return false;
    const double flop = d->fp32_gflops / d->bandwidth_gb_s;
    if (flop >= LEAST_BALANCE && flop <= MOST_BALANCE) return false;
    snprintf(buf, n,
             "fp32_gflops, bandwidth_gb_s: %.4g GFLOP/s and %.4g GB/s are %.3g operations for a "
             "byte, %g to %g are usual: one of both is in another unit",
             d->fp32_gflops, d->bandwidth_gb_s, flop, LEAST_BALANCE, (double)MOST_BALANCE);
    return true;
}
