/* split_closed -- affine times: all parts end at once.
 *
 *   a_i + b_i n_i = t,  sum n_i = D   ->   t = (D + sum a_i/b_i) / sum 1/b_i  over those that take part: all with a_i < t */
#include <math.h>

#include "predictor/partition/shard/shard_ratio.h"

static cdmpp_status check(const cd_shard_ratio_affine *t, uint32_t n, double units, cdmpp_err *err) {
    if (n < 1 || n > CD_SHARD_RATIO_DEVICES) return CD_FAIL(err, EINVALID, "expected 1 .. %d devices, found %u", CD_SHARD_RATIO_DEVICES, n);
    if (!(units > 0) || !isfinite(units)) return CD_FAIL(err, EINVALID, "expected units above 0, found %g", units);
    for (uint32_t i = 0; i < n; i++)
        if (!(t[i].unit_s > 0 && isfinite(t[i].unit_s) && t[i].fixed_s >= 0 && isfinite(t[i].fixed_s)))
            return CD_FAIL(err, EINVALID, "device %u: expected a fixed time of at least 0 and one a unit above 0, found %g, %g", i, t[i].fixed_s, t[i].unit_s);
    return CDMPP_OK;
}

/* Of the devices in the set; those whose fixed time is not below t leave it, one by one, the largest first. Returns t. */
static double level(const cd_shard_ratio_affine *t, uint32_t n, double units, uint32_t *set) {
    for (;;) {
        double above = units, below = 0;
        uint32_t last = n;
        for (uint32_t i = 0; i < n; i++) {
            if (!(*set >> i & 1)) continue;
            above += t[i].fixed_s / t[i].unit_s;
            below += 1 / t[i].unit_s;
            if (last == n || t[i].fixed_s > t[last].fixed_s) last = i;
        }
        if (t[last].fixed_s < above / below) return above / below;
        *set &= ~(1U << last);
    }
}

static void shares(const cd_shard_ratio_affine *t, uint32_t n, uint32_t set, double at, double *share) {
    for (uint32_t i = 0; i < n; i++) share[i] = set >> i & 1 ? (at - t[i].fixed_s) / t[i].unit_s : 0;
}

cdmpp_status cd_shard_ratio_closed(const cd_shard_ratio_affine *t, uint32_t n, double units, double *share, double *seconds, cdmpp_err *err) {
    return cd_shard_ratio_closed_join(t, n, units, 0, share, seconds, err);
}

/* Which devices: all sets of up to 16, each levelled. */
cdmpp_status cd_shard_ratio_closed_join(const cd_shard_ratio_affine *t, uint32_t n, double units, double join_s, double *share, double *seconds, cdmpp_err *err) {
    CD_TRY(check(t, n, units, err));
    if (!(join_s >= 0) || !isfinite(join_s)) return CD_FAIL(err, EINVALID, "join_s: expected seconds, found %g", join_s);
    double best = HUGE_VAL, level_at = 0;
    uint32_t chosen = 1;
    for (uint32_t tried = 1; tried < 1U << n; tried++) {
        uint32_t set = tried;
        const double at = level(t, n, units, &set);
        const double s = at + join_s * (__builtin_popcount(set) - 1);
        if (s < best) best = s, level_at = at, chosen = set;
    }
    shares(t, n, chosen, level_at, share);
    *seconds = best;
    return CDMPP_OK;
}
