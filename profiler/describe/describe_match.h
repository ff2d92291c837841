/* describe_match -- which described device stands for this machine's processor.
 *
 *   /proc/cpuinfo, hwloc ──> microarchitecture ("zen5"), device vector ──> the device with that name or alias,
 *                                                                          else the one with the nearest vector
 *
 * One core stands for the machine, as measure records of one core do. */
#ifndef CD_DESCRIBE_MATCH_H
#define CD_DESCRIBE_MATCH_H
#include "features/device/device.h"

typedef struct cd_describe_match {
    size_t index;          /* of the device in `name` */
    bool exact;            /* its name or alias is this machine's; false: only the nearest, what it predicts is out of range */
    char cpu[96];          /* "AMD EPYC 9654", as the processor says */
    char microarch[24];    /* "zen5"; "" when it is not known */
} cd_describe_match;

/* The microarchitecture of an x86 processor by its CPUID family and model: "zen3", "granite-rapids"; NULL: not listed.
 * Source: AMD's and Intel's published family and model numbers. */
const char *cd_describe_microarch(const char *vendor, int family, int model);

/* Chooses among name[0 .. n) those CPUs that `devices` describes. `root` stands before /proc ("": this machine; tests
 * give a folder). A device of wider vectors than this processor has is taken only where no other is described.
 * Errors: EMODEL (no described CPU among them), EBACKEND (no topology), ENOMEM. */
cdmpp_status cd_describe_match_host(const char *root, const cd_device_table *devices, const char *const *name, size_t n,
                                    cd_describe_match *out, cdmpp_err *err);
#endif
