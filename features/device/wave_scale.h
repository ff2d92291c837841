/* wave_scale -- the time of a kernel on another GPU, from its time on this one and the descriptions
 * of both.
 *
 *   t = launch + rest                launch: what does not depend on the units of the GPU; it stays
 *                                    as it is
 *   rest * (bandwidth_from / bandwidth_to)^g * (units_from / units_to)^(1 - g)
 *
 *   form       units_from / units_to                                                     when
 *   WAVES      clock_from / clock_to * ceil(blocks / cores_to) / ceil(blocks / cores_from),
 *              bandwidth does not count
 *                                                                                        the grid
 *     fills one wave on neither GPU
 *   ROOFLINE   clock_from * cores_from / (clock_to * cores_to)                           else
 *   BANDWIDTH  does not count, g = 1                                                     the
 *     balance, a clock or cores are not known
 *
 *   g = 1 - 0.5 balance up to a balance of 1, then 0.5 / balance
 *   wave = cores * (core_threads / threads of a block)
 *
 * The forms are those of Habitat (Yu et al., USENIX ATC 2021, Apache-2.0:
 * github.com/geoffxy/habitat, wave_scaling). Two things differ. Habitat knows registers and shared
 * memory of a kernel, and so its wave; here only threads bound it. Habitat measures clock and
 * bandwidth, here they are those of the data sheet. No state, any thread. */
#ifndef CD_WAVE_SCALE_H
#define CD_WAVE_SCALE_H
#include "features/device/device.h"

typedef enum {
    CD_WAVE_SCALE_WAVES,
    CD_WAVE_SCALE_ROOFLINE,
    CD_WAVE_SCALE_BANDWIDTH,
    CD_N_WAVE_SCALE
} cd_wave_scale_form;
/* "waves", "roofline", "bandwidth" */
const char *cd_wave_scale_form_name(cd_wave_scale_form f);

typedef struct cd_wave_scale_kernel {
    double time_s;   /* > 0 */
    double launch_s; /* 0..time_s */
    /* time of its operations over time of its bytes, both at the peaks of the destination, >= 0;
     * NaN: not known */
    double balance;
    double blocks, block_threads; /* of the grid, of a block; 0: not known */
} cd_wave_scale_kernel;

typedef struct cd_wave_scale_answer {
    double time_s; /* > 0 */
    double gamma;  /* weight of the bandwidth, 0..1 */
    cd_wave_scale_form form;
} cd_wave_scale_answer;

/* Errors: EMODEL: a device is no GPU, or its bandwidth is not known (the error's key); ERANGE: a
 * time is not above 0, or launch_s is not in 0..time_s. */
cdmpp_status cd_wave_scale(const cd_wave_scale_kernel *k, const cd_device *from,
                           const cd_device *to, cd_wave_scale_answer *out, cdmpp_err *err);
#endif
