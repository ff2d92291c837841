/* codegen_c -- nest -> C: `void NAME(void *const *arg)`. Called by cd_codegen, see codegen.h. */
#ifndef CD_CODEGEN_C_H
#define CD_CODEGEN_C_H
#include "profiler/codegen/common/common.h"

cdmpp_status cd_codegen_c(const cd_nest *nest, const char *name, cd_codegen_code *out, cdmpp_err *err);
#endif
