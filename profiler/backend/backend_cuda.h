/* backend_cuda -- programs on NVIDIA's GPUs, through the driver and NVRTC where they are.
 *
 * Device names: "" (the first), "0", "1" ... in the driver's order. A program's object is PTX
 * for the device's own architecture, which the driver turns into machine code when it is loaded.
 * Errors of a program: EBACKEND with the compiler's log; EREJECTED when a block or its shared
 * memory is more than the device has. An error while running spoils the process's
 * context: whoever measures strangers' programs does so in a process of its own. */
#ifndef CD_BACKEND_CUDA_H
#define CD_BACKEND_CUDA_H
#include "profiler/backend/backend.h"
#include "profiler/backend/cuda_api.h"

extern const cd_backend_kind cd_backend_cuda;

typedef struct cd_backend_cuda_properties {
    char name[128];
    int number, major, minor, units, clock_khz, driver;
    int threads_per_block, shared_per_block, l2_bytes;
    size_t bytes;
} cd_backend_cuda_properties;
const cd_backend_cuda_properties *cd_backend_cuda_device(const cd_backend *b);

/* "" -> 0. Errors: ERANGE (no number). */
cdmpp_status cd_backend_cuda_parse_name(const char *device, int *number, cdmpp_err *err);
/* The architecture that a compiler of this version is asked for, at most the device's: 9.0 and NVRTC 11.2 -> 86. */
int cd_backend_cuda_architecture(int major, int minor, int nvrtc_major, int nvrtc_minor);
#endif
