/* opencl_device -- one OpenCL device by its name, with a context and a queue.
 *
 *   ""           the first GPU, else the first device of any kind
 *   "1"          device 1, counted over all platforms in their order
 *   "pocl:0"     device 0 of the first platform whose name or version has "pocl" in it
 *   "0/2"        the first of 2 equal parts of device 0, by clCreateSubDevices
 *   "pocl:0/4.3" the last of 4
 *
 * A part is a device of its own: its compute units are not shared with the other
 * parts (but caches and memory are). Belongs to one thread. */
#ifndef CD_OPENCL_DEVICE_H
#define CD_OPENCL_DEVICE_H
#include "profiler/backend/opencl_api.h"

typedef struct cd_opencl {
    cd_opencl_api api;
    cd_cl device, part, context, queue; /* part: sub-device to release, or NULL */
    char name[128], version[128], driver[64];
    uint64_t kind;              /* CL_DEVICE_TYPE bits */
    uint64_t execution;         /* CD_CL_NATIVE_KERNEL: it runs functions of the host */
    uint32_t units, clock_mhz, align_bits; /* align_bits: of where a part of a buffer may begin */
    uint64_t bytes, alloc_max, cache_bytes, local_bytes;
    size_t group_max, group_size[3];
} cd_opencl;

/* A device name in parts; platform "" and number -1: not given; parts 0: the whole device. */
typedef struct cd_opencl_name {
    char platform[64];
    long number;
    unsigned parts, part;
} cd_opencl_name;
/* Parses a device name. Errors: ERANGE (not of the forms above). */
cdmpp_status cd_opencl_parse_name(const char *text, cd_opencl_name *out, cdmpp_err *err);

/* Opens the device with a context and a queue that has profiling on. Errors: ERANGE (name), EBACKEND (no library, no such device, cannot be partitioned). */
cdmpp_status cd_opencl_open(cd_opencl *out, const char *name, cdmpp_err *err);
void cd_opencl_close(cd_opencl *d); /* zeroed is fine */
#endif
