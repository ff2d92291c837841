/* codegen_unroll -- which loops are written out.
 *
 * TVM's UnrollLoop pass, read from v0.9: a serial loop of known length goes, from
 * the inside out, as long as (its length) * (stores below, copies counted) is at
 * most auto_unroll_max_step and no loop that stays is below it. What LLVM does
 * after it is imitated: short loops over few vector statements go too.
 *
 *   (1) copy[k] is set for FOR nodes only; vectorised loops are no loops here;
 *   (2) a loop of unknown length is never written out. */
#ifndef CD_CODEGEN_UNROLL_H
#define CD_CODEGEN_UNROLL_H
#include "profiler/codegen/common/codegen.h"

/* copy (ast->n), all false before: what TVM writes out. */
void cd_codegen_unroll_tvm(const cd_ast *ast, bool *copy);
/* What LLVM writes out of the rest. vec: loops that become vectors, of at most `lanes` elements each. */
void cd_codegen_unroll_llvm(const cd_ast *ast, const bool *vec, uint32_t lanes, bool *copy);
#endif
