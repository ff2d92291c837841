/* A network of kernels on one OpenCL device: what executor.h is for this processor.
 *
 *   tensors ──> slots (a device buffer each)       step 0, 1, ...: kernels in one queue, in order
 *
 *   (1) programs are compiled at open, each once; equal programs of several steps share their object;
 *   (2) inner tensors and scratch take turns in slots: the smallest that is free and large enough, else the largest
 *       grows; inputs, weights and results have slots of their own;
 *   (3) inputs and weights begin as cd_tensor_fill says, until written;
 *   (4) a pass is handed out at once and waited for at its end: total_s is the host's clock, steps' times the device's.
 * One thread. */
#ifndef CD_EXECUTOR_OPENCL_H
#define CD_EXECUTOR_OPENCL_H
#include "profiler/runtime/single/executor.h"

typedef struct cd_executor_opencl cd_executor_opencl;
/* device: opencl_device.h. Errors: EBACKEND (no device; a program that does not compile, with its step), EREJECTED (too
 * much for the device), EINVALID (as cd_executor_open), ENOMEM. */
cdmpp_status cd_executor_opencl_open(CD_KEEP const cd_executor_net *n, const char *device, CD_GIVE cd_executor_opencl **out, cdmpp_err *err);
void cd_executor_opencl_close(CD_TAKE cd_executor_opencl *r); /* NULL is fine */
/* ran (n_step) or NULL: from the start of the first kernel, worker 0. Errors: EBACKEND. */
cdmpp_status cd_executor_opencl_pass(cd_executor_opencl *r, cd_executor_ran *ran, double *total_s, cdmpp_err *err);
/* As in executor.h. */
cdmpp_status cd_executor_opencl_write(cd_executor_opencl *r, uint32_t tensor, const void *from, cdmpp_err *err);
cdmpp_status cd_executor_opencl_read(cd_executor_opencl *r, uint32_t tensor, void *to, cdmpp_err *err);
int64_t cd_executor_opencl_bytes(const cd_executor_opencl *r); /* of all slots */
#endif
