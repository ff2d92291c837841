/* tune_feat -- rows of numbers that say what a candidate is, for trees that are grown during a search.
 *
 *   kind      rows        what
 *   store     n of 164    Ansor's: one for each written buffer (features/program/program.h)
 *   itervar   1, any      AutoTVM's: for every loop 18 numbers, then 6 for each access in it
 *   curve     1, any      AutoTVM's: 160 for each buffer that the innermost loops touch
 *   knob      1, any      the numbers in the steps: tile lengths, annotations, places, unroll steps
 *
 * (1) Rows are of one task comparable column by column where candidates have the same loops; those
 *     that are shorter end as if in zeros.
 * (2) itervar and curve begin with the unroll steps, which leave no trace in the loops: autotvm appends
 *     the options of its templates likewise.
 * (3) Column c of knob is the c-th number (kind of step, stage, which of that kind there, place) that was ever met.
 * One thread. */
#ifndef CD_TUNE_FEAT_H
#define CD_TUNE_FEAT_H
#include "features/rows/rows.h"
#include "predictor/tune/core/core.h"
#include "predictor/tune/rank/tune_feat_access.h"

enum { CD_TUNE_FEAT_UNROLLS = 4, CD_TUNE_CURVE_POINTS = 20 };

typedef struct cd_tune_row {
    float *v;
    size_t n, cap;
    bool oom;
} cd_tune_row;
/* Append a number; out of memory is kept in the row. */
void cd_tune_row_put(cd_tune_row *r, double v);
void cd_tune_row_free(cd_tune_row *r); /* zeroed is fine */

typedef struct cd_tune_knob { /* a number in the steps */
    int32_t kind, stage, times, place;
} cd_tune_knob;

typedef struct cd_tune_feat { /* zero: nothing yet */
    cd_program *program;        /* made when needed */
    cd_tune_touches touches;
    cd_tune_knob *knob;         /* (n_knob) column by column */
    size_t n_knob, cap_knob;
} cd_tune_feat;
void cd_tune_feat_free(cd_tune_feat *f); /* zeroed is fine */

typedef enum { CD_TUNE_STORE, CD_TUNE_KNOB, CD_TUNE_ITERVAR, CD_TUNE_CURVE } cd_tune_feat_kind;

/* The rows of a candidate, appended to *out; of `store` in whole rows of CD_N_COL. Errors: EREJECTED (it is no
 * program: what its steps, the target or float refuse), ENOTASK, ENOMEM. */
cdmpp_status cd_tune_feat_read(cd_tune_feat *f, cd_tune_feat_kind k, const cd_tune_task *t, const cd_tune_cand *c,
                               cd_tune_row *out, cdmpp_err *err);

/* ---- of the kinds ---- */
cdmpp_status cd_tune_feat_knob(cd_tune_feat *f, const cd_tune_cand *c, cd_tune_row *out, cdmpp_err *err);
void cd_tune_feat_itervar(const cd_tune_touches *t, cd_tune_row *out);
cdmpp_status cd_tune_feat_curve(cd_tune_touches *t, cd_tune_row *out, cdmpp_err *err);
/* CD_TUNE_FEAT_UNROLLS numbers. */
void cd_tune_feat_unrolls(const cd_tune_cand *c, cd_tune_row *out);
#endif
