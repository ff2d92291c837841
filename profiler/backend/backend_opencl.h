/* backend_opencl -- programs on OpenCL devices, PoCL's processors among them.
 *
 * Device names: opencl_device.h. A program's object is the device's own binary.
 * Errors of a program: EBACKEND with the compiler's log; EREJECTED when a work
 * group or its local memory is more than the device has. */
#ifndef CD_BACKEND_OPENCL_H
#define CD_BACKEND_OPENCL_H
#include "profiler/backend/backend_kind.h"
#include "profiler/backend/opencl_device.h"

extern const cd_backend_kind cd_backend_opencl;

/* The device of an open OpenCL back end; it lives as long as the back end. */
const cd_opencl *cd_backend_opencl_device(const cd_backend *b);
/* As load, on buffers of the device that belong to the caller and outlive it. */
cdmpp_status cd_backend_opencl_load_on(cd_backend *b, const cd_build *p, const cd_cl *buffer, CD_GIVE cd_loaded **out, cdmpp_err *err);
/* Puts one execution into the queue and does not wait. *first, *last: events of the first and last kernel, which the caller releases
 * (NULL: not wanted); *last stays unchanged where there is only one kernel. */
cdmpp_status cd_backend_opencl_enqueue(cd_loaded *l, cd_cl *first, cd_cl *last, cdmpp_err *err);
#endif
