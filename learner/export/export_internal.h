/* export_internal -- inside of an export to ONNX: values of one program that members share.
 *
 *   rows (n_row, 164), device (1), flop (1)
 *     -> totals, derived columns of a row     export_onnx.c, in double as
 *                                             learner/inputs/tree_input.c does
 *     -> matrices of the trees, program vector
 *   members -> ln seconds (1, 1), double      export_onnx.c, export_onnx.c
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

/* Appends the whole graph to out. Errors: EMODEL, EUNSUPPORTED, ENOMEM. */
cdmpp_status cd_export_onnx(const cd_model *m, cd_buf *out, cdmpp_err *err);
#endif
