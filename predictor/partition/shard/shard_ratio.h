/* shard_ratio -- the share of one operator that each of several devices should compute.
 *
 *   granules 0 .. D   |####### device 0 #######|== device 1 ==|- 2 -|      time = max over devices
 *
 *   (1) a share is a number of whole granules; a device with share 0 costs nothing;
 *   (2) the time of a device contains everything that its share costs: work, bytes in, bytes out;
 *   (3) the result has the least time of all shares, exactly, for any time curves (they may fall
 *       too): with two devices each share is tried, with n devices by dynamic programming over D
 *       granules, O(n^2 D^2) (4 devices, 256 granules: 1.3 ms);
 *   (4) where splitting is not faster than the best device alone, nothing is split.
 * No state, any thread. Source: EOP (VEE'22). */
#ifndef CD_SHARD_RATIO_H
#define CD_SHARD_RATIO_H
#include "base/core/core.h"

enum { CD_SHARD_RATIO_DEVICES = 16 };

/* Seconds of `granules` > 0 on a device; above 0 and finite. */
typedef double cd_shard_ratio_time(const void *ctx, double granules);

typedef struct cd_shard_ratio_device {
    cd_shard_ratio_time *time;
    const void *ctx;
} cd_shard_ratio_device;

/* share (n): the granules of each device. Errors: EINVALID (n is not 1 .. CD_SHARD_RATIO_DEVICES),
 * ENOMEM. */
cdmpp_status cd_shard_ratio_best(const cd_shard_ratio_device *device, uint32_t n, uint32_t granules,
                                 uint32_t *share, cdmpp_err *err);
#endif
