/* made_ops.h -- tables of operators by a law, for training tests. */
#ifndef MADE_OPS_H
#define MADE_OPS_H
#include <math.h>
#include <stdio.h>

#include "base/core/core.h"
#include "features/device/device.h"

/* Seconds by which rows are made up: 80 % of the bandwidth, 70 % of the peak, launches of 10 us. */
static inline double made_op_s(const cd_device *d, int is_bmm, double b, double m, double n,
                               double k) {
    const double bytes = is_bmm ? 4 * b * (m * n + n * k + m * k) : 12 * m * n;
    const double flops = is_bmm ? 2 * b * m * n * k : 0;
    return 1e-5 + fmax(bytes / (d->bandwidth_gb_s * 0.8e9), flops / (d->fp32_gflops * 0.7e9));
}

/* n rows of `bmm` and n of `add` on a device; lengths up to 2^top. */
static inline void made_op_rows(cd_buf *out, const cd_device *d, size_t n, int top, uint64_t seed) {
    for (size_t i = 0; i < 2 * n; i++) {
        double v[4];
        for (uint64_t k = 0; k < 4; k++)
            v[k] = floor(exp2(1 + (top - 1) * cd_rng_unit(seed, 4 * i + k)));
        if (i % 2)
            cd_buf_putf(out, "bmm,%.9g,%s,%g,%g,%g,%g,\n",
                        1e3 * made_op_s(d, 1, v[0], v[1], v[2], v[3]), d->name, v[0], v[1], v[3],
                        v[2]);
        else
            cd_buf_putf(out, "add,%.9g,%s,%g,,,,%g\n",
                        1e3 * made_op_s(d, 0, 1, v[0] * v[1], v[2], 1), d->name, v[0] * v[1], v[2]);
    }
}

#define MADE_OP_HEADER "OPName,Latency,Device,B,M,N,K,H\n"
#endif
