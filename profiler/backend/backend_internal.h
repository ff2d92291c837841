/* What the files of profiler/backend share among themselves. */
#ifndef CD_PROFILER_BACKEND_INTERNAL_H
#define CD_PROFILER_BACKEND_INTERNAL_H
#include "profiler/backend/backend.h"

/* backend_cuda -- programs on NVIDIA's GPUs, through the driver and NVRTC, which are found at run
 * time.
 *
 * Device names: "" (the first), "0", "1" ... in the driver's order. A program's object is PTX
 * for the device's own architecture, which the driver turns into machine code when it is loaded.
 * Errors of a program: EBACKEND with the compiler's log; EREJECTED when a block or its shared
 * memory is more than the device has. An error while running spoils the process's
 * context: run programs of unknown quality in a child process. */

extern const cd_backend_kind cd_backend_cuda;

/* The number of a device name, "" is 0. Errors: ERANGE (no number). */
cdmpp_status cd_backend_cuda_parse_name(const char *device, int *number, cdmpp_err *err);
/* The newest architecture that this version of NVRTC knows, at most the device's: 9.0 and NVRTC
 * 11.2 -> 86. */
int cd_backend_cuda_architecture(int major, int minor, int nvrtc_major, int nvrtc_minor);

/* object_signature -- a digest at the end of a file, which tells whether the file is whole.
 *
 *   | bytes ... | "cdmpp-obj " SHA-256 of the bytes, 64 hex digits "\n" |
 *
 * The loader of ELF files ignores bytes after the last section. Any thread. */

#define CD_OBJSEAL_BYTES 75

/* Does the file end in the digest of what is before it? */
bool cd_object_signature_good(const char *path);
#endif
