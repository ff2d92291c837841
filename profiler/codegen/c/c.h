/* c -- the generator of C: one function `void NAME(void *const *arg)` a program. cd_codegen
 * (codegen.h) calls it. */
#ifndef CD_CODEGEN_C_H
#define CD_CODEGEN_C_H
#include "profiler/codegen/code/code.h"

/* Overwrites *out, which is empty after an error. `name`: an identifier, the function's name.
 * Errors: EUNSUPPORTED (a construct, type or intrinsic that C cannot have, named), ENOMEM. */
cdmpp_status cd_codegen_c(const cd_nest *nest, const char *name, cd_codegen_code *out,
                          cdmpp_err *err);
#endif
