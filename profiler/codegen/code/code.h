/* The door of profiler/codegen/code: other rooms include this header and no other of the room.
 *
 * Generated programs (codegen_code.h), and what the generators of C and of GPU dialects share: where tensors are stored (plan), the
 * order of packed weights (pack), ranges and affine forms of index expressions (range, affine), expressions as text (expr), and
 * which loops are unrolled (unroll). */
#ifndef CD_PROFILER_CODEGEN_CODE_DOOR_H
#define CD_PROFILER_CODEGEN_CODE_DOOR_H
#include "profiler/codegen/code/codegen_affine.h"
#include "profiler/codegen/code/codegen_code.h"
#include "profiler/codegen/code/codegen_expr.h"
#include "profiler/codegen/code/codegen_pack.h"
#include "profiler/codegen/code/codegen_plan.h"
#include "profiler/codegen/code/codegen_unroll.h"
#endif
