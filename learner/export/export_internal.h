/* export_internal -- inside of an export to ONNX: values of one program that members share.
 *
 *   rows (n_row, 164), device (1), flop (1)
 *     -> totals, derived columns of a row     export_input.c, in double as
 *                                             learner/inputs/tree_input.c does
 *     -> matrices of the trees, program vector
 *   members -> ln seconds (1, 1), double      export_tree.c, export_net.c
 *   kinds, weights -> log_s                   export_onnx.c */
#ifndef CD_EXPORT_INTERNAL_H
#define CD_EXPORT_INTERNAL_H
#include "learner/export/export.h"
#include "profiler/network/onnx/onnx.h"

/* Names of values; NULL until somebody asks. */
typedef struct cd_export {
    cd_onnx_writer f;
    const cd_model *m;
    const char *rows, *device, *flop;   /* inputs */
    const char *wide;                   /* rows as double */
    const char *index;                  /* double (n_row): 0, 1, ... */
    const char *outer, *grid, *threads; /* double (n_row, 1) */
    /* double (n_row, 1): operations, bytes, unique bytes, lines, unique lines; log2(x + 1) */
    const char *total[5];
    const char *derived;   /* (n_row, 15) */
    const char *program;   /* (1, 512): PROGRAM form without the device */
    const char *matrix[3]; /* of trees, by cd_tree_input_form */
} cd_export;

/* One node each; the name of its value. */
const char *cd_export_cast(cd_export *x, const char *v, cd_onnx_type to);
const char *cd_export_concat(cd_export *x, const char *const *v, size_t n, int64_t axis);
const char *cd_export_reshape(cd_export *x, const char *v, const int64_t *dim, size_t n);
/* keeps the axis */
const char *cd_export_sum(cd_export *x, const char *v, int64_t axis);
/* ReduceMax, ReduceMean, ReduceLogSumExp: likewise */
const char *cd_export_over(cd_export *x, const char *op, const char *v, int64_t axis);
const char *cd_export_columns(cd_export *x, const char *v, const int64_t *c, size_t n);
const char *cd_export_log2p1(cd_export *x, const char *v);
/* Inputs and what all need. */
void cd_export_begin(cd_export *x);
const char *cd_export_derived(cd_export *x);
const char *cd_export_program(cd_export *x);
const char *cd_export_matrix(cd_export *x, cd_tree_input_form form);
const char *cd_export_log_trips(cd_export *x); /* double (n_row, 1) */

/* A member's ln seconds, double (1, 1). Errors: EUNSUPPORTED, ENOMEM. */
cdmpp_status cd_export_trees(cd_export *x, const cd_member *e, const char **log_s, cdmpp_err *err);
cdmpp_status cd_export_net(cd_export *x, const cd_member *e, size_t number, const char **log_s,
                           cdmpp_err *err);

/* Appends the whole graph to out. Errors: EMODEL, EUNSUPPORTED, ENOMEM. */
cdmpp_status cd_export_onnx(const cd_model *m, cd_buf *out, cdmpp_err *err);
#endif
