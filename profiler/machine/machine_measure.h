/* machine_measure -- finds and measures the devices of this machine, to fill a description
 * (machine_description.h).
 *
 *   "cpu0,ocl0" ─find─> kinds, parts, cores ─time─> launch_s, sync_s ─links─> transfers, copies
 *     ─contention─> peak, beside, turn
 *
 *   cpuN   processor N of the machine
 *   oclN   OpenCL device N, counted over all platforms: a GPU whole, with a memory of its own; of a
 *          processor a part with one unit, as native
 *          kernels where the device can, on a core that no other device has, as far as it reports
 *          one (PoCL pins its threads with POCL_AFFINITY=1)
 *   cudaN  CUDA device N: for plans; its own memory
 *
 *   (1) launch_s: of a program that does nothing, in a chain on the device: the time of one more of
 *       them; through the executor of profiler/runtime/multi, as plans are run;
 *   (2) sync_s: two devices in turns, what that takes more than their launches, shared out by the
 *       gaps before each one's programs. Against the first device; the first one's is the mean over
 *       the others. One device alone: 0;
 *   (3) links: between a memory of its own and the host's by link_measure.h, for every device of
 *       the host's memory alike; between two memories of their own one transfer behind the other,
 *       since the executor goes through the host; X -> X of devices on the host's memory: memcpy;
 *   (4) contention forks: call it first, before OpenCL or OpenMP has threads.
 * One thread. Times are those of this moment: measure on a quiet machine. */
#ifndef CD_MACHINE_MEASURE_H
#define CD_MACHINE_MEASURE_H
#include "profiler/machine/machine_description.h"

typedef struct cd_machine_measure_options {
    const char *list; /* NULL: cpu0 and all OpenCL and CUDA devices that are here */
    bool own_memory;  /* OpenCL devices that are processors too */
    /* the cost model's device that the processors are; NULL: not said */
    const char *as;
    unsigned repeats; /* 0: 9 */
    size_t max_bytes; /* of a transfer; 0: 64 MiB */
    /* cd_machine_measure_all: also how much slower programs make each other */
    bool contention;
    /* cd_machine_measure_all: of a machine that is too noisy (cd_noise_is_much) too, and marked;
     * else that is an error */
    bool keep_noisy;
    /* cd_machine_measure_all: take that from this table of cdmpp-profile corun --out; NULL: none */
    const char *corun;
} cd_machine_measure_options;

/* PoCL's threads stay on cores, as far as the environment does not say otherwise. Before OpenCL is
 * used. */
void cd_machine_measure_pin(void);
/* Devices with kind, part, core and memory; nothing is measured. m: empty. Errors: ESCHEMA (a name
 * that is none of the three, or twice), EBACKEND (no such device here), ENOMEM. Free after an error
 * too. */
cdmpp_status cd_machine_measure_find(cd_machine *m, const cd_machine_measure_options *a,
                                     cdmpp_err *err);
/* Fills launch_s and sync_s. Errors: EBACKEND (with the device), ENOMEM. */
cdmpp_status cd_machine_measure_time(cd_machine *m, cdmpp_err *err);
/* Adds links. Errors: EBACKEND, ENOMEM. */
cdmpp_status cd_machine_measure_links(cd_machine *m, const cd_machine_measure_options *a,
                                      cdmpp_err *err);
/* Three programs (memory, cache, arithmetic) in pairs, on cores of their own and on one; 108
 * windows of window_s (0: 0.05 s). Errors: EUSAGE (fewer than two processors), EBACKEND, EIO,
 * ENOMEM. */
cdmpp_status cd_machine_measure_contention(double window_s, cd_contention *out, cdmpp_err *err);
/* All of the above into an empty machine, in the order that works. Forks with `contention`. Errors:
 * those of the steps, ERANGE (too noisy). Free `m` after an error too. */
cdmpp_status cd_machine_measure_all(cd_machine *m, const cd_machine_measure_options *a,
                                    cdmpp_err *err);
#endif
