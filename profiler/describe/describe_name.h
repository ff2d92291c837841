/* describe_name -- what measure records call the device of this machine that they were measured on.
 *
 *   target "llvm" ──────────> /proc/cpuinfo ─┐                                     ┌─> name of the description ("zen4")
 *   target "cuda", "opencl" ─> the driver ───┴─> name, alias, microarchitecture ───┴─> else a name made of it ("amd-epyc-zen3")
 *
 * A log without a name is of an unknown device, and data sets and models made of it too. A namer looks once for each kind of
 * target and says in one line what it found. One thread at a time. */
#ifndef CD_DESCRIBE_NAME_H
#define CD_DESCRIBE_NAME_H
#include "features/device/device.h"

struct cd_log;
typedef struct cd_describe_name {
    char name[96];              /* "zen4", "amd-epyc-zen3": one word */
    char says[128];             /* what processor or driver call themselves */
    bool described;             /* it is a name of `devices` */
} cd_describe_name;

/* The processor's name. A description with wider vectors than the processor's is not its own. `root` stands before /proc
 * ("": this machine); devices NULL: none. Errors: EBACKEND (no topology), ENOMEM. */
cdmpp_status cd_describe_name_cpu(const char *root, const cd_device_table *devices, cd_describe_name *out, cdmpp_err *err);
/* The GPU's, by its back end ("cuda", "opencl") and as that counts it ("": the first). Errors: EBACKEND (no such device), ERANGE. */
cdmpp_status cd_describe_name_gpu(const char *backend, const char *gpu, const cd_device_table *devices, cd_describe_name *out, cdmpp_err *err);

/* Zeroed but for log (NULL: silent) and gpu. */
typedef struct cd_describe_namer {
    struct cd_log *log;
    const char *gpu;            /* as above; NULL: the first */
    cd_describe_name of[3];     /* CPU, CUDA, OpenCL */
    bool asked[3];
} cd_describe_namer;
/* For cd_record_maker.device, with a namer as `ctx`: the name of what runs this target's programs here; NULL: it has none. */
CD_KEEP const char *cd_describe_namer_ask(void *ctx, cd_str target);
#endif
