/* shard_ratio -- how much of one operator each of several devices should do.
 *
 *   units 0 .. D   |####### device 0 #######|== device 1 ==|- 2 -|      time = max over devices + (parts - 1) join_s
 *
 *   (1) shares are whole granules (tile, vector, warp), but for the rest of D / granule, which goes to one of the parts;
 *   (2) a device's seconds hold all that its share costs: work, bytes in, bytes out; a device with share 0 costs nothing;
 *   (3) the answer is the least time over all shares, exact for any curves, falling ones too: of two devices by looking at each share,
 *       of n by dynamic programming over G granules, O(n^2 G^2) (4 devices, 256 granules: 1.3 ms);
 *   (4) never above the best device alone: "do not split" is an answer, and what is given when splitting saves less than
 *       `margin` of it;
 *   (5) ceiling: 1 + 1/rho for two devices, sum of best/alone_i for more, rho the slower over the faster alone. It holds where no
 *       device does a part in less than its share of the whole time (T(n) >= T(D) n/D: affine, hinge, stairs, concave); where one
 *       does, `super` is set and the gain may be above it;
 *   (6) equal shares and fixed ones are there as baselines.
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
double cd_shard_ratio_affine_time(const void *affine, double units);

/* A fitted operator with its transfers: at(units) + in(fixed + units x per unit bytes) + out(...). A link NULL: that memory is its own. */
typedef struct cd_shard_ratio_curve {
    const cd_perf_curve *pattern;
    const cd_link *in, *out;
    double in_bytes, in_unit_bytes, out_bytes, out_unit_bytes; /* whatever the share (weights); of each unit */
} cd_shard_ratio_curve;
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

/* Errors: EINVALID (n, units, granule, margin, join_s; more granules than allowed), ENUMERIC (a time that is not a number above 0: names
 * the device and the units), ENOMEM. */
cdmpp_status cd_shard_ratio_best(const cd_shard_ratio_options *a, cd_shard_ratio_plan *out, cdmpp_err *err);
/* Given shares (n) that sum to D. Errors: EINVALID (below 0, another sum), as above. */
cdmpp_status cd_shard_ratio_given(const cd_shard_ratio_options *a, const int64_t *units, cd_shard_ratio_plan *out, cdmpp_err *err);
/* Equal shares of all devices, in granules, the first ones get what is over. */
cdmpp_status cd_shard_ratio_equal(const cd_shard_ratio_options *a, cd_shard_ratio_plan *out, cdmpp_err *err);
/* Share 0 .. 1 for device 0, the rest for device 1; rounded to granules. Errors: EINVALID (n not 2; share outside 0 .. 1 or NaN). */
cdmpp_status cd_shard_ratio_fixed(const cd_shard_ratio_options *a, double share, cd_shard_ratio_plan *out, cdmpp_err *err);

/* (5), of seconds alone (n). */
double cd_shard_ratio_ceiling(const double *alone_s, uint32_t n);
#endif
