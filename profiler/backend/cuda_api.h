/* cuda_api -- the CUDA driver and its run-time compiler, found at run time: no header or library is
 * needed to build.
 *
 * Types and numbers are those of the driver's binary interface. Functions with a second
 * version (cuMemAlloc_v2, 64-bit sizes) are that version; NVRTC is of any major
 * version. Read-only once open; any thread may call through it. */
#ifndef CD_CUDA_API_H
#define CD_CUDA_API_H

#include "base/core/core.h"

/* a context, module, function, event or stream; an NVRTC program */
typedef struct cd_cuda_object *cd_cu;
typedef uint64_t cd_cu_memory;

enum {
    CD_CU_ERROR_MEMORY = 2,
    CD_CU_ERROR_LAUNCH_RESOURCES = 701,
    CD_CU_THREADS_PER_BLOCK = 1,
    CD_CU_SHARED_PER_BLOCK = 8,
    CD_CU_CLOCK_KHZ = 13,
    CD_CU_UNITS = 16,
    CD_CU_L2_BYTES = 38,
    CD_CU_MAJOR = 75,
    CD_CU_MINOR = 76
};

/* X(name here, exported name, parameters) of libcuda.so.1; every one returns an int, 0 for
 * success */
#define CD_CUDA_MAP(X)                                                                             \
    X(init, "cuInit", (unsigned flags))                                                            \
    X(device_count, "cuDeviceGetCount", (int *n))                                                  \
    X(device_get, "cuDeviceGet", (int *device, int number))                                        \
    X(device_name, "cuDeviceGetName", (char *name, int n, int device))                             \
    X(device_bytes, "cuDeviceTotalMem_v2", (size_t * bytes, int device))                           \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int what, int device))                \
    X(driver_version, "cuDriverGetVersion", (int *version))                                        \
    X(context_retain, "cuDevicePrimaryCtxRetain", (cd_cu * context, int device))                   \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                               \
    X(context_use, "cuCtxSetCurrent", (cd_cu context))                                             \
    X(synchronize, "cuCtxSynchronize", (void))                                                     \
    X(alloc, "cuMemAlloc_v2", (cd_cu_memory * p, size_t n))                                        \
    X(free, "cuMemFree_v2", (cd_cu_memory p))                                                      \
    X(copy_in, "cuMemcpyHtoD_v2", (cd_cu_memory to, const void *from, size_t n))                   \
    X(copy_out, "cuMemcpyDtoH_v2", (void *to, cd_cu_memory from, size_t n))                        \
    X(fill32, "cuMemsetD32_v2", (cd_cu_memory to, unsigned value, size_t n))                       \
    X(module_load, "cuModuleLoadDataEx",                                                           \
      (cd_cu * m, const void *image, unsigned n, int *option, void **value))                       \
    X(module_unload, "cuModuleUnload", (cd_cu m))                                                  \
    X(module_function, "cuModuleGetFunction", (cd_cu * f, cd_cu m, const char *name))              \
    X(launch, "cuLaunchKernel",                                                                    \
      (cd_cu f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,      \
       unsigned shared, cd_cu stream, void **arg, void **extra))                                   \
    X(event_new, "cuEventCreate", (cd_cu * e, unsigned flags))                                     \
    X(event_free, "cuEventDestroy_v2", (cd_cu e))                                                  \
    X(event_record, "cuEventRecord", (cd_cu e, cd_cu stream))                                      \
    X(event_wait, "cuEventSynchronize", (cd_cu e))                                                 \
    X(event_ms, "cuEventElapsedTime", (float *ms, cd_cu from, cd_cu to))                           \
    X(error_name, "cuGetErrorName", (int code, const char **name))

/* The same of libnvrtc */
#define CD_NVRTC_MAP(X)                                                                            \
    X(compiler_version, "nvrtcVersion", (int *major, int *minor))                                  \
    X(program_new, "nvrtcCreateProgram",                                                           \
      (cd_cu * p, const char *text, const char *name, int n, const char *const *header,            \
       const char *const *include))                                                                \
    X(program_free, "nvrtcDestroyProgram", (cd_cu * p))                                            \
    X(program_compile, "nvrtcCompileProgram", (cd_cu p, int n, const char *const *option))         \
    X(log_size, "nvrtcGetProgramLogSize", (cd_cu p, size_t * n))                                   \
    X(log_text, "nvrtcGetProgramLog", (cd_cu p, char *text))                                       \
    X(ptx_size, "nvrtcGetPTXSize", (cd_cu p, size_t * n))                                          \
    X(ptx_text, "nvrtcGetPTX", (cd_cu p, char *text))

typedef struct cd_cuda_api {
    void *driver, *compiler;
#define CD_X(name, symbol, parameters) int(*name) parameters;
    CD_CUDA_MAP(CD_X)
    CD_NVRTC_MAP(CD_X)
#undef CD_X
    int (*cubin_size)(cd_cu p, size_t *n); /* of NVRTC 11.1 and later, with cubin_text; else NULL */
    int (*cubin_text)(cd_cu p, char *binary);
} cd_cuda_api;

/* Loads the driver; the compiler is loaded by the second call, when it is needed. Errors: EBACKEND
 * (no library, or one that lacks a function). */
cdmpp_status cd_cuda_api_open(cd_cuda_api *out, cdmpp_err *err);
/* nothing happens the second time */
cdmpp_status cd_cuda_api_open_compiler(cd_cuda_api *a, cdmpp_err *err);
void cd_cuda_api_close(cd_cuda_api *a); /* zeroed is fine */
/* "CUDA_ERROR_OUT_OF_MEMORY" ...; "unknown error" for others. */
const char *cd_cuda_api_error(const cd_cuda_api *a, int code);
#endif
