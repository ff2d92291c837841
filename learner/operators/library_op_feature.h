/* library_op_feature -- a library operator on a device as dimensionless numbers.
 *
 *   record, device -> base time (roofline)     -> trees give log(latency / base time)
 *                  -> CD_LIBRARY_OP_N_FEATURE ratios      from the ratios
 *
 * The base time carries what is known about machines, so that the trees only learn
 * how far from it libraries are, and stay sensible on devices and shapes that they
 * never saw:
 *
 *   matrix products, convolutions
 *     hypot(operations / (peak * g), bytes / bandwidth)
 *     g = i - (i - p) * t / (t + 0.1 ms),  t = operations / peak
 *     p = min(i, power limit / (0.85 * peak * energy of an operation))
 *     energy = 15 pJ * (process / 12 nm)^0.91
 *     i = 512 / 563 on cores whose fp32 lanes take every issue slot, else 1
 *   elementwise, softmax, layernorm
 *     bytes / bandwidth + 4 * passes * elements / peak + 20 us
 *
 * p: boards of 70 W cannot feed their units; short calls run faster, until the limit acts.
 * The energy is the line, in logarithms, through what three boards at their limit take for
 * a product of 8192 and 10240 square, fp32: P4 18.3 pJ, T4 16.3, L4 6.6 (75 W at 4.10
 * TFLOP/s; 70 W at 4.30, of two T4 the best size; 72 W at 10.9): github.com/zzc0721/
 * torch-performance-test-data, issues 9 and 120, database.md. 0.85: of its peak is what
 * the largest rows of A100 and V100 reach in the training tables, which no limit holds back.
 *
 * i: from Volta on a scheduler starts one instruction a clock. With 16 lanes to a scheduler
 * (V100, T4, A100) a multiply-add takes two clocks, so loads go in between; with 32 (A10,
 * L4, H100) each of them takes the slot of a multiply-add. Of 8 steps of a loop with 8 x 8
 * results in a thread's registers 512 are multiply-adds, 32 loads from shared memory, 2 from
 * memory, 8 stores, 8 steps of addresses, 1 barrier. Pascal and before start two a clock.
 * Checked on an H200: 0.77 of its peak in the same list (51.3 TFLOP/s), where V100 and P100
 * reach 0.93 and 0.92.
 *
 * passes: how often the cores read or write a row, mostly from a cache. Constants not
 * explained here: chosen on the training tables, README.md.
 *
 * (1) the latency of a matrix product is never below operations / peak;
 * (2) every ratio is finite, but NaN ("missing") when the device's description lacks it.
 * No state, any thread. */
#ifndef CD_LIBRARY_OP_FEATURE_H
#define CD_LIBRARY_OP_FEATURE_H
#include "features/operators/operators.h"
#include "features/device/device.h"

/* One model each. */
typedef enum {
    CD_LIBRARY_OP_FAMILY_GEMM, /* bmm and linear */
    CD_LIBRARY_OP_FAMILY_ELEMENTWISE,
    CD_LIBRARY_OP_FAMILY_SOFTMAX,
    CD_LIBRARY_OP_FAMILY_LAYERNORM,
    CD_LIBRARY_OP_FAMILY_CONV,
    CD_LIBRARY_OP_N_FAMILY
} cd_library_op_family;

enum {
#define X(name, families, group, meaning) CD_LIBRARY_OP_FEATURE_##name,
#include "learner/operators/library_op_feature_cols.def"
    CD_LIBRARY_OP_N_FEATURE
};
#define CD_LIBRARY_OP_FEATURE_VERSION 2 /* raise it when a value changes under the same name */

typedef struct cd_library_op_base {
    double flops, bytes;        /* bytes: each tensor once */
    double compute_s, memory_s; /* at peak */
    double base_s;              /* what the trees correct; > 0 */
    double floor_s;             /* no prediction is below; 0: no such bound */
} cd_library_op_base;

/* The family of an operator; the names of families and features. */
cd_library_op_family cd_library_op_family_of(cd_library_op_kind k);
const char *cd_library_op_family_name(cd_library_op_family f);
const char *cd_library_op_feature_name(size_t i);

/* Columns that the trees of a family see, as numbers into all of them; returns how many.
 * `seen`: the operator's class was trained on the device. */
size_t cd_library_op_feature_columns(cd_library_op_family f, bool seen,
                                     uint8_t column[CD_LIBRARY_OP_N_FEATURE]);
/* Fill these columns, one after another. Errors: EMODEL: the device is no GPU, or lacks a
 * number that is needed (the error's key). */
cdmpp_status cd_library_op_feature(const cd_library_op_record *r, const cd_device *d, bool seen,
                                   float x[CD_LIBRARY_OP_N_FEATURE], cd_library_op_base *base,
                                   cdmpp_err *err);
/* Bytes of its tensors, each once. */
double cd_library_op_bytes(const cd_library_op_record *r);
/* Seconds that the device needs at best: operations of a product over the peak of its type; of a
 * convolution, for which fast algorithms do fewer, none. 0: nobody knows. */
double cd_library_op_least_s(const cd_library_op_record *r, const cd_device *d);
#endif
