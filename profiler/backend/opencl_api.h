/* opencl_api -- OpenCL's entry points, found at run time: no header or library is needed to build.
 *
 * The types and numbers are OpenCL 1.2's own (they are its binary interface);
 * tests/profiler/backend/test_opencl_api.c compares them with the real headers where
 * those are installed. Read-only once open; any thread may call through it. */
#ifndef CD_OPENCL_API_H
#define CD_OPENCL_API_H

#include "base/core/core.h"

/* a platform, device, context, queue, buffer, program, kernel or event */
typedef struct cd_cl_object *cd_cl;

enum {
    CD_CL_NOT_FOUND = -1,
    CD_CL_BUILD_FAILURE = -11,
    CD_CL_PARTITION_FAILED = -18,
    CD_CL_MEM_READ_WRITE = 1,
    CD_CL_MEM_USE_HOST_PTR = 8,
    CD_CL_MAP_READ = 1,
    CD_CL_MAP_WRITE = 2,
    CD_CL_QUEUE_PROFILING = 2,
    CD_CL_DEVICE_CPU = 2,
    CD_CL_DEVICE_GPU = 4,
    CD_CL_NATIVE_KERNEL = 2,
    CD_CL_BUFFER_REGION = 0x1220,
    CD_CL_COMPLETE = 0,
    CD_CL_PLATFORM_VERSION = 0x901,
    CD_CL_PLATFORM_NAME = 0x902,
    CD_CL_DEVICE_TYPE = 0x1000,
    CD_CL_DEVICE_UNITS = 0x1002,
    CD_CL_DEVICE_GROUP_MAX = 0x1004,
    CD_CL_DEVICE_GROUP_SIZES = 0x1005,
    CD_CL_DEVICE_CLOCK = 0x100C,
    CD_CL_DEVICE_ALLOC_MAX = 0x1010,
    CD_CL_DEVICE_ALIGN_BITS = 0x1019,
    CD_CL_DEVICE_EXECUTION = 0x1029,
    CD_CL_DEVICE_CACHE_BYTES = 0x101E,
    CD_CL_DEVICE_BYTES = 0x101F,
    CD_CL_DEVICE_LOCAL_BYTES = 0x1023,
    CD_CL_DEVICE_NAME = 0x102B,
    CD_CL_DEVICE_VENDOR = 0x102C,
    CD_CL_DRIVER_VERSION = 0x102D,
    CD_CL_DEVICE_EXTENSIONS = 0x1030,
    CD_CL_PARTITION_EQUALLY = 0x1086,
    CD_CL_PROGRAM_BINARY_SIZES = 0x1165,
    CD_CL_PROGRAM_BINARIES = 0x1166,
    CD_CL_PROGRAM_LOG = 0x1183,
    CD_CL_KERNEL_GROUP_MAX = 0x11B0,
    CD_CL_KERNEL_GROUP_COMPILED = 0x11B1,
    CD_CL_PROFILING_QUEUED = 0x1280,
    CD_CL_PROFILING_START = 0x1282,
    CD_CL_PROFILING_END = 0x1283
};
#define CD_CL_DEVICE_ANY 0xFFFFFFFFU

/* X(result, name, parameters) */
#define CD_OPENCL_MAP(X)                                                                           \
    X(int32_t, clGetPlatformIDs, (uint32_t cap, cd_cl * out, uint32_t * n))                        \
    X(int32_t, clGetPlatformInfo, (cd_cl p, uint32_t what, size_t n, void *out, size_t *need))     \
    X(int32_t, clGetDeviceIDs, (cd_cl p, uint64_t type, uint32_t cap, cd_cl * out, uint32_t * n))  \
    X(int32_t, clGetDeviceInfo, (cd_cl d, uint32_t what, size_t n, void *out, size_t *need))       \
    X(int32_t, clCreateSubDevices,                                                                 \
      (cd_cl d, const intptr_t *how, uint32_t cap, cd_cl *out, uint32_t *n))                       \
    X(int32_t, clReleaseDevice, (cd_cl d))                                                         \
    X(cd_cl, clCreateContext,                                                                      \
      (const intptr_t *p, uint32_t n, const cd_cl *d,                                              \
       void (*note)(const char *, const void *, size_t, void *), void *ctx, int32_t *st))          \
    X(int32_t, clReleaseContext, (cd_cl c))                                                        \
    X(cd_cl, clCreateCommandQueue, (cd_cl c, cd_cl d, uint64_t properties, int32_t * st))          \
    X(int32_t, clReleaseCommandQueue, (cd_cl q))                                                   \
    X(int32_t, clFinish, (cd_cl q))                                                                \
    X(int32_t, clFlush, (cd_cl q))                                                                 \
    X(cd_cl, clCreateBuffer, (cd_cl c, uint64_t flags, size_t n, void *host, int32_t *st))         \
    X(cd_cl, clCreateSubBuffer,                                                                    \
      (cd_cl b, uint64_t flags, uint32_t how, const void *region, int32_t *st))                    \
    X(int32_t, clReleaseMemObject, (cd_cl b))                                                      \
    X(int32_t, clEnqueueWriteBuffer,                                                               \
      (cd_cl q, cd_cl b, uint32_t wait, size_t at, size_t n, const void *from, uint32_t n_wait,    \
       const cd_cl *w, cd_cl *event))                                                              \
    X(int32_t, clEnqueueReadBuffer,                                                                \
      (cd_cl q, cd_cl b, uint32_t wait, size_t at, size_t n, void *to, uint32_t n_wait,            \
       const cd_cl *w, cd_cl *event))                                                              \
    X(int32_t, clEnqueueWriteBufferRect,                                                           \
      (cd_cl q, cd_cl b, uint32_t wait, const size_t *at, const size_t *host_at, const size_t *n,  \
       size_t row, size_t slice, size_t host_row, size_t host_slice, const void *from,             \
       uint32_t n_wait, const cd_cl *w, cd_cl *event))                                             \
    X(int32_t, clEnqueueReadBufferRect,                                                            \
      (cd_cl q, cd_cl b, uint32_t wait, const size_t *at, const size_t *host_at, const size_t *n,  \
       size_t row, size_t slice, size_t host_row, size_t host_slice, void *to, uint32_t n_wait,    \
       const cd_cl *w, cd_cl *event))                                                              \
    X(int32_t, clEnqueueCopyBuffer,                                                                \
      (cd_cl q, cd_cl from, cd_cl to, size_t from_at, size_t to_at, size_t n, uint32_t n_wait,     \
       const cd_cl *w, cd_cl *event))                                                              \
    X(int32_t, clEnqueueCopyBufferRect,                                                            \
      (cd_cl q, cd_cl from, cd_cl to, const size_t *from_at, const size_t *to_at, const size_t *n, \
       size_t from_row, size_t from_slice, size_t to_row, size_t to_slice, uint32_t n_wait,        \
       const cd_cl *w, cd_cl *event))                                                              \
    X(int32_t, clEnqueueNativeKernel,                                                              \
      (cd_cl q, void (*run)(void *), void *arg, size_t n, uint32_t n_buffer, const cd_cl *b,       \
       const void **place, uint32_t n_wait, const cd_cl *w, cd_cl *event))                         \
    X(int32_t, clSetEventCallback,                                                                 \
      (cd_cl e, int32_t when, void (*note)(cd_cl, int32_t, void *), void *ctx))                    \
    X(void *, clEnqueueMapBuffer,                                                                  \
      (cd_cl q, cd_cl b, uint32_t wait, uint64_t flags, size_t at, size_t n, uint32_t n_wait,      \
       const cd_cl *w, cd_cl *event, int32_t *st))                                                 \
    X(int32_t, clEnqueueUnmapMemObject,                                                            \
      (cd_cl q, cd_cl b, void *p, uint32_t n_wait, const cd_cl *w, cd_cl *event))                  \
    X(int32_t, clEnqueueFillBuffer,                                                                \
      (cd_cl q, cd_cl b, const void *pattern, size_t size, size_t at, size_t n, uint32_t n_wait,   \
       const cd_cl *w, cd_cl *event))                                                              \
    X(cd_cl, clCreateProgramWithSource,                                                            \
      (cd_cl c, uint32_t n, const char **text, const size_t *len, int32_t *st))                    \
    X(cd_cl, clCreateProgramWithBinary,                                                            \
      (cd_cl c, uint32_t n, const cd_cl *d, const size_t *len, const unsigned char **binary,       \
       int32_t *each, int32_t *st))                                                                \
    X(int32_t, clBuildProgram,                                                                     \
      (cd_cl p, uint32_t n, const cd_cl *d, const char *options, void (*note)(cd_cl, void *),      \
       void *ctx))                                                                                 \
    X(int32_t, clGetProgramInfo, (cd_cl p, uint32_t what, size_t n, void *out, size_t *need))      \
    X(int32_t, clGetProgramBuildInfo,                                                              \
      (cd_cl p, cd_cl d, uint32_t what, size_t n, void *out, size_t *need))                        \
    X(int32_t, clReleaseProgram, (cd_cl p))                                                        \
    X(cd_cl, clCreateKernel, (cd_cl p, const char *name, int32_t *st))                             \
    X(int32_t, clReleaseKernel, (cd_cl k))                                                         \
    X(int32_t, clSetKernelArg, (cd_cl k, uint32_t i, size_t n, const void *value))                 \
    X(int32_t, clGetKernelWorkGroupInfo,                                                           \
      (cd_cl k, cd_cl d, uint32_t what, size_t n, void *out, size_t *need))                        \
    X(int32_t, clEnqueueNDRangeKernel,                                                             \
      (cd_cl q, cd_cl k, uint32_t dims, const size_t *offset, const size_t *global,                \
       const size_t *local, uint32_t n_wait, const cd_cl *w, cd_cl *event))                        \
    X(int32_t, clGetEventProfilingInfo,                                                            \
      (cd_cl e, uint32_t what, size_t n, void *out, size_t *need))                                 \
    X(int32_t, clReleaseEvent, (cd_cl e))

typedef struct cd_opencl_api {
    void *handle;
#define CD_X(result, name, parameters) result(*name) parameters;
    CD_OPENCL_MAP(CD_X)
#undef CD_X
} cd_opencl_api;

/* "CL_OUT_OF_RESOURCES" ...; "unknown error" for others. */
const char *cd_opencl_api_error(int32_t code);
#endif
