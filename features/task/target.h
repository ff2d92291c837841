/* Target strings, "llvm -keys=cpu -mcpu=znver5 -num-cores=2", and the hardware parameters of a tuner.
 *
 * The first word is the kind; options follow. TVM's auto_scheduler keeps eight numbers beside it. No state, any thread. */
#ifndef CD_TARGET_H
#define CD_TARGET_H
#include "base/core/core.h"

/* TVM's HardwareParams, in the order of the record format. */
typedef struct cd_hardware {
    int64_t num_cores, vector_unit_bytes, cache_line_bytes, max_shared_memory_per_block,
        max_local_memory_per_block, max_threads_per_block, max_vthread_extent, warp_size;
} cd_hardware;

/* Is the kind one that TVM's auto_scheduler treats as a GPU, and whose programs it verifies? */
bool cd_target_is_gpu(cd_str target);
/* Value of an option: of "-mcpu" in "llvm -mcpu=znver3 -num-cores=2" znver3, of several the last; empty: it is not there.
 * target may be NULL. */
CD_KEEP cd_str cd_target_option(const char *target, const char *name);
/* Bytes of the longest vector register that code for this target may use: 64 with AVX-512, else 32. */
uint32_t cd_target_vector_bytes(cd_str target);
/* What TVM's tuner assumes for a target without numbers of its own: for CPUs the machine's cores and vectors, for GPUs the
 * limits of CUDA. */
cd_hardware cd_target_hardware(bool gpu, int64_t num_cores, int64_t vector_bytes);
/* Layout option (ansor.md, Records) of programs that a tuner makes for a whole network: on CPUs weights lie ready in the order
 * of the program's loops, 2; on GPUs they stay as they are, 0. */
static inline int64_t cd_target_layout(bool gpu) { return gpu ? 0 : 2; }
#endif
