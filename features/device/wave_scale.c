/* Closed forms that scale the time of a kernel from one GPU to another. */
#include "features/device/wave_scale.h"

#include <math.h>

const char *cd_wave_scale_form_name(cd_wave_scale_form f) {
    static const char *const name[CD_N_WAVE_SCALE] = {"waves", "roofline", "bandwidth"};
    return name[f];
}

/* Blocks that run at the same time; 0: not known. */
static double wave_of(const cd_device *d, double block_threads) {
    if (!(d->core_threads > 0) || !(block_threads > 0)) return 0;
    return d->cores * fmax(1, floor(d->core_threads / block_threads));
}

static bool is_small(const cd_wave_scale_kernel *k, const cd_device *from, const cd_device *to) {
    return k->blocks > 0 && k->blocks < wave_of(from, k->block_threads) &&
           k->blocks < wave_of(to, k->block_threads);
}

static double weight_of(double balance) { return balance > 1 ? 0.5 / balance : 1 - 0.5 * balance; }

static cdmpp_status check_device(const cd_device *d, cdmpp_err *err) {
    if (d->kind != CD_DEVICE_GPU)
        return CD_FAIL(err, EMODEL, "times are scaled between GPUs, %s is a %s", d->name,
                       cd_device_kind_name(d->kind));
    if (d->bandwidth_gb_s > 0) return CDMPP_OK;
    return cd_err_key(err,
                      CD_FAIL(err, EMODEL, "device %s: the description lacks this number", d->name),
                      "bandwidth_gb_s");
}

static cdmpp_status check_time(const cd_wave_scale_kernel *k, cdmpp_err *err) {
    if (!(k->time_s > 0) || isinf(k->time_s))
        return CD_FAIL(err, ERANGE, "expected a time above 0, found %g s", k->time_s);
    if (!(k->launch_s >= 0 && k->launch_s <= k->time_s))
        return CD_FAIL(err, ERANGE, "expected a launch of 0..%g s, found %g s", k->time_s,
                       k->launch_s);
    return CDMPP_OK;
}

cdmpp_status cd_wave_scale(const cd_wave_scale_kernel *k, const cd_device *from,
                           const cd_device *to, cd_wave_scale_answer *out, cdmpp_err *err) {
    CD_TRY(check_device(from, err));
    CD_TRY(check_device(to, err));
    CD_TRY(check_time(k, err));
    const bool units = k->balance >= 0 && from->clock_mhz > 0 && to->clock_mhz > 0 &&
                       from->cores > 0 && to->cores > 0;
    const double clock = from->clock_mhz / to->clock_mhz;
    out->gamma = units ? weight_of(k->balance) : 1;
    double factor = pow(from->bandwidth_gb_s / to->bandwidth_gb_s, out->gamma);
    if (!units) {
        out->form = CD_WAVE_SCALE_BANDWIDTH;
    } else if (is_small(k, from, to)) {
        out->form = CD_WAVE_SCALE_WAVES;
        factor = pow(clock * ceil(k->blocks / to->cores) / ceil(k->blocks / from->cores),
                     1 - out->gamma);
    } else {
        out->form = CD_WAVE_SCALE_ROOFLINE;
        factor *= pow(clock * from->cores / to->cores, 1 - out->gamma);
    }
    out->time_s = k->launch_s + (k->time_s - k->launch_s) * factor;
    return CDMPP_OK;
}
