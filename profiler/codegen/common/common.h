/* The door of profiler/codegen/common: other rooms include this header and no other of the room.
 *
 * Code generation that C, OpenCL and CUDA share. */
#ifndef CD_PROFILER_CODEGEN_COMMON_DOOR_H
#define CD_PROFILER_CODEGEN_COMMON_DOOR_H
#include "profiler/codegen/common/codegen.h"
#include "profiler/codegen/common/codegen_affine.h"
#include "profiler/codegen/common/codegen_expr.h"
#include "profiler/codegen/common/codegen_pack.h"
#include "profiler/codegen/common/codegen_plan.h"
#include "profiler/codegen/common/codegen_unroll.h"
#endif
