/* codegen_unroll -- which loops of a C program are unrolled in its text.
 *
 * First TVM's UnrollLoop pass (v0.9): from the inside out, a serial loop of known length is unrolled
 * if (its length) * (stores below, copies counted) is at most auto_unroll_max_step and no loop below it
 * stays. Then what LLVM does after it is imitated: short loops over few vector statements are unrolled too.
 *
 *   (1) copy[k] is set for FOR nodes only; vectorised loops do not count as loops;
 *   (2) a loop of unknown length is never unrolled. */
#ifndef CD_CODEGEN_UNROLL_H
#define CD_CODEGEN_UNROLL_H
#include "profiler/codegen/code/codegen_code.h"

/* copy (ast->n), all false before: sets the loops that TVM unrolls. */
void cd_codegen_unroll_tvm(const cd_ast *ast, bool *copy);
/* Sets those of the rest that LLVM unrolls. vec: loops that become vectors, of at most `lanes` elements each. */
void cd_codegen_unroll_llvm(const cd_ast *ast, const bool *vec, uint32_t lanes, bool *copy);
#endif
