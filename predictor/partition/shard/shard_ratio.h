/* split_ratio -- how much of one operator each of several devices should do.
 *
 *   units 0 .. D   |####### device 0 #######|== device 1 ==|- 2 -|      time = max over devices + (parts - 1) join_s
 *
 *   (1) shares are whole granules (tile, vector, warp), but for the rest of D / granule, which goes to one of the parts;
 *   (2) a device's seconds hold all that its share costs: work, bytes in, bytes out; a device with share 0 costs nothing;
 *   (3) the answer is the least time over all shares, exact for any curves, falling ones too: of two devices by looking at each share,
 *       of n by dynamic programming over G granules, O(n^2 G^2) (4 devices, 256 granules: 1.3 ms). For affine times the closed form (times made
 *       equal) gives the same up to a granule;
 *   (4) never above the best device alone: "do not split" is an answer, and what is given when splitting saves less than
 *       `margin` of it;
 *   (5) ceiling: 1 + 1/rho for two devices, sum of best/alone_i for more, rho the slower over the faster alone. It holds where no
 *       device does a part in less than its share of the whole time (T(n) >= T(D) n/D: affine, hinge, stairs, concave); where one
 *       does, `super` is set and the gain may be above it;
 *   (6) equal shares and fixed ones are there as baselines.
 * Seconds, units. No state, any thread. Source: ../shared/spec/eop-opbench.md 1.2, 1.6. */
#ifndef CD_SPLIT_RATIO_H
#define CD_SPLIT_RATIO_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"
#include "profiler/machine/machine.h"
#include "profiler/curves/curves.h"

enum { CD_SPLIT_DEVICES = 16, CD_SPLIT_GRANULES = 4096 };

/* Seconds of `units` > 0 on a device. */
typedef double cd_split_time(const void *ctx, double units);

typedef struct cd_split_device {
    const char *name;           /* for messages */
    cd_split_time *time;
    const void *ctx;
} cd_split_device;

typedef struct cd_split_affine {
    double fixed_s, unit_s;
} cd_split_affine;
double cd_split_affine_time(const void *affine, double units);

/* A fitted operator with its transfers: at(units) + in(fixed + units x per unit bytes) + out(...). A link NULL: that memory is its own. */
typedef struct cd_split_curve {
    const cd_pattern *pattern;
    const cd_link *in, *out;
    double in_bytes, in_unit_bytes, out_bytes, out_unit_bytes; /* whatever the share (weights); of each unit */
} cd_split_curve;
double cd_split_curve_time(const void *curve, double units);

typedef struct cd_split_ask {
    const cd_split_device *device; /* (n) */
    uint32_t n;                 /* 1 .. CD_SPLIT_DEVICES */
    int64_t units, granule;     /* D; 0: 1. At most CD_SPLIT_GRANULES granules */
    double join_s;              /* each part beyond the first */
    double margin;              /* 0 .. 1: relative saving below which nothing is split */
} cd_split_ask;

typedef struct cd_split_plan {
    int64_t units[CD_SPLIT_DEVICES];
    double seconds, part_s[CD_SPLIT_DEVICES]; /* of the plan; of its parts */
    uint32_t parts, best;       /* parts 1: not split; best: device that is fastest alone */
    double alone_s[CD_SPLIT_DEVICES];
    double gain, ceiling, rho;  /* best alone / plan; see (5); infinity and 1 for one device */
    bool super;
} cd_split_plan;

/* Errors: EINVALID (n, units, granule, margin, join_s; more granules than allowed), ENUMERIC (a time that is not a number above 0: names
 * the device and the units), ENOMEM. */
cdmpp_status cd_split_best(const cd_split_ask *a, cd_split_plan *out, cdmpp_err *err);
/* Given shares (n) that sum to D. Errors: EINVALID (below 0, another sum), as above. */
cdmpp_status cd_split_given(const cd_split_ask *a, const int64_t *units, cd_split_plan *out, cdmpp_err *err);
/* Equal shares of all devices, in granules, the first ones get what is over. */
cdmpp_status cd_split_equal(const cd_split_ask *a, cd_split_plan *out, cdmpp_err *err);
/* Share 0 .. 1 for device 0, the rest for device 1; rounded to granules. Errors: EINVALID (n not 2; share outside 0 .. 1 or NaN). */
cdmpp_status cd_split_fixed(const cd_split_ask *a, double share, cd_split_plan *out, cdmpp_err *err);

/* Affine times, shares as real numbers: units (n) of D and the time without joining; devices whose fixed time is above it get 0.
 * Errors: EINVALID (unit_s <= 0, fixed_s < 0, D <= 0). */
cdmpp_status cd_shard_ratio_closed(const cd_split_affine *t, uint32_t n, double units, double *share, double *seconds, cdmpp_err *err);
/* The same with join_s for each part beyond the first, best over which devices take part. */
cdmpp_status cd_shard_ratio_closed_join(const cd_split_affine *t, uint32_t n, double units, double join_s, double *share, double *seconds, cdmpp_err *err);
double cd_shard_ratio_ceiling(const double *alone_s, uint32_t n);
#endif
