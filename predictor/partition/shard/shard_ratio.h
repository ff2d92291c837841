/* shard_ratio -- the share of one operator that each of several devices should compute.
 *
 *   units 0 .. D   |####### device 0 #######|== device 1 ==|- 2 -|      time = max over devices + (parts - 1) join_s
 *
 *   (1) a share is a number of whole granules (tile, vector, warp); the rest of D / granule goes to one of the parts;
 *   (2) the time of a device contains everything that its share costs: work, bytes in, bytes out; a device with share 0 costs nothing;
 *   (3) the result has the least time of all shares, exactly, for any time curves (they may fall too): with two devices each share is tried,
 *       with n devices by dynamic programming over G granules, O(n^2 G^2) (4 devices, 256 granules: 1.3 ms);
 *   (4) the result is never slower than the best device alone. If splitting saves less than `margin` of its time, nothing is split;
 *   (5) ceiling of the gain: 1 + 1/rho for two devices, sum of best/alone_i for more; rho is the slower time alone over the faster. It
 *       holds if no device computes a part in less than its proportion of the whole time (T(n) >= T(D) n/D: affine, hinge, stairs,
 *       concave); otherwise `super` is set and the gain may be above it;
 *   (6) equal and fixed shares serve as baselines.
 * Seconds, units. No state, any thread. Source: EOP (VEE'22) for shares and ceiling. */
#ifndef CD_SHARD_RATIO_H
#define CD_SHARD_RATIO_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"
#include "profiler/machine/machine.h"
#include "profiler/curves/curves.h"

enum { CD_SHARD_RATIO_DEVICES = 16, CD_SHARD_RATIO_GRANULES = 4096 };

/* Seconds of `units` > 0 on a device. */
typedef double cd_shard_ratio_time(const void *ctx, double units);

typedef struct cd_shard_ratio_device {
    const char *name;           /* for messages */
    cd_shard_ratio_time *time;
    const void *ctx;
} cd_shard_ratio_device;

typedef struct cd_shard_ratio_affine {
    double fixed_s, unit_s;
} cd_shard_ratio_affine;
/* cd_shard_ratio_time of a cd_shard_ratio_affine: fixed_s + unit_s x units. */
double cd_shard_ratio_affine_time(const void *affine, double units);

/* A fitted operator with its transfers. A link of NULL: the device has that memory, nothing is transferred. */
typedef struct cd_shard_ratio_curve {
    const cd_perf_curve *pattern;
    const cd_link *in, *out;
    double in_bytes, in_unit_bytes, out_bytes, out_unit_bytes; /* for any share (weights); for each unit */
} cd_shard_ratio_curve;
/* cd_shard_ratio_time of a cd_shard_ratio_curve: pattern(units) + in(in_bytes + in_unit_bytes x units) + out(the same of out). */
double cd_shard_ratio_curve_time(const void *curve, double units);

typedef struct cd_shard_ratio_options {
    const cd_shard_ratio_device *device; /* (n) */
    uint32_t n;                 /* 1 .. CD_SHARD_RATIO_DEVICES */
    int64_t units, granule;     /* D; 0: 1. At most CD_SHARD_RATIO_GRANULES granules */
    double join_s;              /* each part beyond the first */
    double margin;              /* 0 .. 1: relative saving below which nothing is split */
} cd_shard_ratio_options;

typedef struct cd_shard_ratio_plan {
    int64_t units[CD_SHARD_RATIO_DEVICES];
    double seconds, part_s[CD_SHARD_RATIO_DEVICES]; /* of the plan; of its parts */
    uint32_t parts, best;       /* parts 1: not split; best: device that is fastest alone */
    double alone_s[CD_SHARD_RATIO_DEVICES];
    double gain, ceiling, rho;  /* best alone / plan; see (5); infinity and 1 for one device */
    bool super;
} cd_shard_ratio_plan;

/* The shares of the least time (3), (4). Errors: EINVALID (n, units, granule, margin, join_s; more granules than allowed), ENUMERIC (a time that is not
 * a number above 0: names the device and the units), ENOMEM. */
cdmpp_status cd_shard_ratio_best(const cd_shard_ratio_options *a, cd_shard_ratio_plan *out, cdmpp_err *err);
/* The times of given shares (n) that sum to D. Errors: EINVALID (below 0, another sum), as above. */
cdmpp_status cd_shard_ratio_given(const cd_shard_ratio_options *a, const int64_t *units, cd_shard_ratio_plan *out, cdmpp_err *err);
/* Equal shares of all devices, in granules, the first ones get what is over. */
cdmpp_status cd_shard_ratio_equal(const cd_shard_ratio_options *a, cd_shard_ratio_plan *out, cdmpp_err *err);
/* Share 0 .. 1 for device 0, the rest for device 1; rounded to granules. Errors: EINVALID (n not 2; share outside 0 .. 1 or NaN). */
cdmpp_status cd_shard_ratio_fixed(const cd_shard_ratio_options *a, double share, cd_shard_ratio_plan *out, cdmpp_err *err);

/* The ceiling (5), from the times alone_s (n). */
double cd_shard_ratio_ceiling(const double *alone_s, uint32_t n);
#endif
