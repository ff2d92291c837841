/* codegen_pack -- weights in the order in which the loops read them.
 *
 *   W[rc, ff],  rc = rc0*4 + rc1,  ff = ff0*16 + ff1,  loops ff0 rc0 rc1 ff1
 *   ──> stored as [ff0][rc0][rc1][ff1]
 *
 * What TVM does to layout-free parameters when a task's layout rewrite option is
 * 2, with which all its CPU tasks are measured: the parameter arrives packed. Every
 * index must be a sum of loop variables, or of quotients and remainders of one,
 * that counts through its dimension without gaps; otherwise it stays row-major. */
#ifndef CD_CODEGEN_PACK_H
#define CD_CODEGEN_PACK_H
#include "profiler/codegen/common/codegen_affine.h"
#include "profiler/codegen/common/codegen_plan.h"

/* Digits of parameter `tensor`, outermost first; *n 0: row-major. Errors: ENOMEM. */
cdmpp_status cd_codegen_pack_plan(cd_arena *a, cd_codegen_env *env, const cd_nest *nest, uint32_t tensor, const cd_codegen_digit **digit, uint32_t *n,
                          cdmpp_err *err);

/* Row-major elements of a parameter of the given shape -> its place in the code's
 * buffer b; places that no element goes to (a split that does not divide) are left. */
void cd_codegen_pack(const cd_codegen_buffer *b, uint32_t rank, const int64_t *shape, const void *from, void *to);
#endif
