/* opfeature -- a library operator on a device as dimensionless numbers.
 *
 *   record, device -> base time (roofline)     -> trees give log(latency / base time)
 *                  -> CD_N_OPFEATURE ratios      from the ratios
 *
 * The base time carries what is known about machines, so that the trees only learn
 * how far from it libraries are, and stay sensible on devices and shapes that they
 * never saw:
 *
 *   matrix products, convolutions
 *     hypot(operations / (peak * g), bytes / bandwidth)
 *     g = 1 - (1 - p) * t / (t + 0.1 ms),  t = operations / peak
 *     p = min(1, power limit / (0.75 * peak * energy of an operation))
 *     energy = 23 pJ * (process / 12 nm)^1.4
 *   elementwise, softmax, layernorm
 *     bytes / bandwidth + 4 * passes * elements / peak + 20 us
 *
 * p: boards of 70 W cannot feed their units: a T4 reaches 36 % of its peak, for short
 * calls more, until the limit acts. 23 pJ is what a T4 takes at its limit. The power 1.4
 * fits 6.6 pJ of an L4 (72 W, 10.9 TFLOP/s in large fp32 products: github.com/zzc0721/
 * torch-performance-test-data, issue 120) and what TSMC states (12 to 7 nm about 0.45, 7
 * to 5 nm 0.7). 0.75: of its peak is what kernels reach without a limit. passes: how often the cores read or write
 * a row, mostly from a cache. Constants: chosen on the training tables, README.md.
 *
 * (1) the latency of a matrix product is never below operations / peak;
 * (2) every ratio is finite, but NaN ("missing") when the device's description lacks it.
 * No state, any thread. */
#ifndef CD_OPFEATURE_H
#define CD_OPFEATURE_H
#include "dataset/oprecord.h"
#include "features/device.h"

/* One model each. */
typedef enum {
    CD_OPFAMILY_GEMM, /* bmm and linear */
    CD_OPFAMILY_ELEMENTWISE,
    CD_OPFAMILY_SOFTMAX,
    CD_OPFAMILY_LAYERNORM,
    CD_OPFAMILY_CONV,
    CD_N_OPFAMILY
} cd_opfamily;

enum {
#define X(name, families, group, meaning) CD_OPFEATURE_##name,
#include "learner/opfeature_cols.def"
    CD_N_OPFEATURE
};
#define CD_OPFEATURE_VERSION 1 /* raise it when a value changes under the same name */

typedef struct cd_opbase {
    double flops, bytes;          /* bytes: each tensor once */
    double compute_s, memory_s;   /* at peak */
    double base_s;                /* what the trees correct; > 0 */
    double floor_s;               /* no prediction is below; 0: no such bound */
} cd_opbase;

cd_opfamily cd_opfamily_of(cd_opkind k);
const char *cd_opfamily_name(cd_opfamily f);
const char *cd_opfeature_name(size_t i);

/* Columns that the trees of a family see, as numbers into all of them; returns how many.
 * `seen`: the family was trained on the device. */
size_t cd_opfeature_columns(cd_opfamily f, bool seen, uint8_t column[CD_N_OPFEATURE]);
/* Fill these columns, one after another. Errors: EMODEL: the device is no GPU, or lacks a
 * number that is needed (the error's key). */
cdmpp_status cd_opfeature(const cd_oprecord *r, const cd_device *d, bool seen, float x[CD_N_OPFEATURE], cd_opbase *base,
                          cdmpp_err *err);
#endif
