/* gpu -- the generator of OpenCL C and CUDA C: one kernel for each outermost thread-bound nest.
 * cd_codegen (codegen.h) calls it.
 *
 * Kernels are cut, tensors placed, virtual threads injected and barriers set as TVM v0.9 does it
 * (SplitHostDevice, StorageFlatten, InjectVirtualThread, ThreadSync), so that a record's program
 * computes here what TVM measured. */
#ifndef CD_CODEGEN_GPU_H
#define CD_CODEGEN_GPU_H
#include "profiler/codegen/code/code.h"

/* Overwrites *out, which is empty after an error. dialect: OPENCL or CUDA. `name`: an identifier
 * that begins the kernels' names. Errors: as cd_codegen. */
cdmpp_status cd_codegen_gpu(const cd_nest *nest, cd_dialect dialect, const char *name,
                            cd_codegen_code *out, cdmpp_err *err);
#endif
