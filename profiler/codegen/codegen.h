/* codegen -- a loop nest becomes source code: the one call for all dialects.
 *
 *   cd_nest ── cd_codegen ──> cd_codegen_code (code.h) ──> backend.h compiles and runs it
 *
 * profiler/codegen/c writes C, profiler/codegen/gpu writes OpenCL C and CUDA C,
 * profiler/codegen/code holds what both use. */
#ifndef CD_CODEGEN_H
#define CD_CODEGEN_H
#include "profiler/codegen/code/code.h"

/* The program of a nest. `name` begins every symbol of the text: an identifier. The caller frees
 * *out with cd_codegen_code_free; it is empty after an error. Errors: EINVALID (name), EUNSUPPORTED
 * (a construct, type or intrinsic that the dialect cannot have, named), EREJECTED (a GPU program
 * without thread axes), ENOMEM. */
cdmpp_status cd_codegen(const cd_nest *nest, cd_dialect dialect, const char *name,
                        cd_codegen_code *out, cdmpp_err *err);
#endif
