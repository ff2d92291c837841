/* result_check -- are the results of a program those of the reference?
 *
 *   reference (C, on this machine): parameters of cd_tensor_fill -> run -> results kept
 *   program (any device): the same parameters, results overwritten before -> run -> compared
 *
 *   error of a float = |a - b| / (|b| + a tenth of the buffer's largest |b|); integers are equal or not.
 * What is written before it is read may hold anything: it begins as 0xFF in all bytes. One thread. */
#ifndef CD_RESULT_CHECK_H
#define CD_RESULT_CHECK_H
#include "profiler/measure/measure.h"

typedef struct cd_result_check cd_result_check;

/* Run the reference. Errors: those of the cpu back end; ENOMEM. */
cdmpp_status cd_result_check_reference(const cd_codegen_code *reference, const char *object, const char *target, CD_GIVE cd_result_check **out, cdmpp_err *err);
void cd_result_check_free(CD_TAKE cd_result_check *c); /* NULL is fine */
/* (n_buffer of code) what to load the program with; NULL in it: cd_tensor_fill. Packed parameters hold what row-major
 * ones would; `arg` (n_arg) has their shapes. Borrowed until the next call. Errors: EUSAGE (a packed parameter
 * without a shape), ENOMEM. */
cdmpp_status cd_result_check_content(cd_result_check *c, const cd_codegen_code *code, const cd_measure_arg *arg, CD_KEEP const void *const **out, cdmpp_err *err);
/* Run it once and compare. Errors: EINVALID (another result: buffer, element, both values), those of run and read. */
cdmpp_status cd_result_check_compare(cd_result_check *c, const cd_backend_kind *kind, cd_loaded *program, const cd_codegen_code *code, double *max_error, cdmpp_err *err);
#endif
