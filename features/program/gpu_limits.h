/* Would TVM's GPU verification accept the program? (docs/internals/ansor.md, GPU checks) */
#ifndef CD_GPUCHECK_H
#define CD_GPUCHECK_H
#include "features/rows/rows.h"
#include "features/task/task.h"

/* Per kernel (outermost thread scope): threads per block, shared and local
 * memory, vector width against the task's limits. Errors: EREJECTED. */
cdmpp_status cd_gpu_limits_check(const cd_ast *t, const cd_tensors *tensors, const cd_hardware *hw, cdmpp_err *err);
#endif
