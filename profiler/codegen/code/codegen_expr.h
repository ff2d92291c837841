/* codegen_expr -- scalar expressions as text of C, OpenCL C or CUDA C.
 *
 *   floordiv(i, 4) + min(j, 3)  ──>  "((v1 / 4) + cd_min_i(v2, 3))"
 *
 *   (1) the caller writes variables and loads, by two functions;
 *   (2) a value is of C type cd_codegen_value_type(); in memory it may be another one
 *       (cd_codegen_storage_type): bfloat16 is computed in float, bool is a byte;
 *   (3) floor division and modulo are plain ones where the ranges say that the
 *       operand is never negative, shifts and masks for powers of two;
 *   (4) if_then_else and select become "? :": the side not taken is never read;
 *   (5) every helper that the text names is in cd_codegen_prelude(dialect).
 * Errors name the construct: EUNSUPPORTED. One thread. */
#ifndef CD_CODEGEN_EXPR_H
#define CD_CODEGEN_EXPR_H
#include "profiler/codegen/code/codegen_code.h"
#include "profiler/codegen/code/codegen_range.h"

typedef struct cd_codegen_expr {
    cd_dialect dialect;
    cd_buf *out;
    const cd_codegen_ranges *ranges;    /* NULL: nothing known */
    /* Write a VAR; write a LOAD's value as cd_codegen_value_type (cd_codegen_expr_load_wrap helps). */
    cdmpp_status (*var)(struct cd_codegen_expr *w, const cd_expr *var, cdmpp_err *err);
    cdmpp_status (*load)(struct cd_codegen_expr *w, const cd_expr *load, cdmpp_err *err);
    void *ctx;
} cd_codegen_expr;

/* Value type, and type in memory; NULL where the dialect has none. */
const char *cd_codegen_value_type(cd_dialect d, cd_dtype t);
const char *cd_codegen_storage_type(cd_dialect d, cd_dtype t);

/* Append e, or a literal, to w->out. Errors: EUNSUPPORTED (type, operator, intrinsic), those of the two functions. */
cdmpp_status cd_codegen_expr_write(cd_codegen_expr *w, const cd_expr *e, cdmpp_err *err);

/* Text around an element in memory of type t, to make it a value, and around a
 * value that is to be stored: "cd_bf16_to_f32(" and ")". Empty for most types. */
const char *cd_codegen_expr_load_wrap(cd_dtype t);
const char *cd_codegen_expr_store_wrap(cd_dtype t);

/* Name of the function of dialect d for TVM's intrinsic on values of type t,
 * NULL when it is none of one to three plain operands: "exp", f32 -> "expf". */
const char *cd_codegen_expr_function(cd_dialect d, const char *name, cd_dtype t);
#endif
