/* codegen_pack -- weights in the order in which the loops read them.
 *
 *   W[rc, ff],  rc = rc0*4 + rc1,  ff = ff0*16 + ff1,  loops ff0 rc0 rc1 ff1
 *   ──> stored as [ff0][rc0][rc1][ff1]
 *
 * TVM measures its CPU tasks with layout rewrite option 2: layout-free parameters arrive packed
 * in this order, and so they do here. Every index must be a sum of loop variables, or of quotients
 * and remainders of one, that counts through its dimension without gaps; otherwise the parameter
 * stays row-major. */
#ifndef CD_CODEGEN_PACK_H
#define CD_CODEGEN_PACK_H
#include "profiler/codegen/code/codegen_affine.h"
#include "profiler/codegen/code/codegen_plan.h"

/* Digits of parameter `tensor`, outermost first; *n 0: row-major. Errors: ENOMEM. */
cdmpp_status cd_codegen_pack_plan(cd_arena *a, cd_codegen_env *env, const cd_nest *nest, uint32_t tensor, const cd_codegen_digit **digit, uint32_t *n,
                          cdmpp_err *err);

/* Copies the row-major elements of a parameter to their places in the code's buffer b (`to`: b->bytes). Places without an
 * element (a split that does not divide) are left unchanged. */
void cd_codegen_pack(const cd_codegen_buffer *b, uint32_t rank, const int64_t *shape, const void *from, void *to);
#endif
