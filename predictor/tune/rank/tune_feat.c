/* Rows of AutoTVM's features: growth and the choice among the three kinds. */
#include "predictor/tune/rank/rank_internal.h"

#include <string.h>

/* ---- rows ---- */

void cd_tune_row_put(cd_tune_row *r, double v) {
    if (CD_GROW(r->v, r->n, r->cap)) {
        r->oom = true;
        return;
    }
    r->v[r->n++] = (float)v;
}

void cd_tune_row_free(cd_tune_row *r) {
    cd_mem_free(r->v);
    *r = (cd_tune_row){0};
}

/* ---- from candidates to programs ---- */

void cd_tune_feat_free(cd_tune_feat *f) {
    cd_program_free(f->program);
    cd_tune_touches_free(&f->touches);
    cd_mem_free(f->knob);
    *f = (cd_tune_feat){0};
}

static cd_record record_of(const cd_tune_task *t, const cd_tune_cand *c) {
    const char *const key = t->task->workload_key;
    return (cd_record){.workload_key = {key, strlen(key)},
                       .target = {t->target, strlen(t->target)},
                       .has_hardware = true,
                       .hardware = t->hardware,
                       .n_step = c->n_step,
                       .step = c->step,
                       .version = {"v0.6", 4}};
}

static cdmpp_status store_rows(cd_tune_feat *f, const cd_tune_task *t, const cd_record *r,
                               cd_tune_row *out, cdmpp_err *err) {
    cd_rows rows;
    CD_TRY(cd_program_build(f->program, t->task, r, &rows, err));
    for (size_t k = 0; k < (size_t)rows.n_row * CD_N_COL; k++)
        cd_tune_row_put(out, (double)rows.row[k]);
    return CDMPP_OK;
}

static cdmpp_status loop_row(cd_tune_feat *f, cd_tune_feat_kind k, const cd_tune_task *t,
                             const cd_tune_cand *c, cd_tune_row *out, cdmpp_err *err) {
    const cd_record r = record_of(t, c);
    cd_nest nest;
    if (k == CD_TUNE_STORE) return store_rows(f, t, &r, out, err);
    CD_TRY(cd_program_lower_loops(f->program, t->task, &r, err));
    CD_TRY(cd_program_nest(f->program, &nest, err));
    CD_TRY(cd_tune_touches_walk(&f->touches, &nest, err));
    cd_tune_feat_unrolls(c, out);
    if (k == CD_TUNE_CURVE) return cd_tune_feat_curve(&f->touches, out, err);
    cd_tune_feat_itervar(&f->touches, out);
    return CDMPP_OK;
}

cdmpp_status cd_tune_feat_read(cd_tune_feat *f, cd_tune_feat_kind k, const cd_tune_task *t,
                               const cd_tune_cand *c, cd_tune_row *out, cdmpp_err *err) {
    const size_t before = out->n;
    if (!f->program && k != CD_TUNE_KNOB) CD_TRY(cd_program_new(&f->program, err));
    cdmpp_status st =
        k == CD_TUNE_KNOB ? cd_tune_feat_knob(f, c, out, err) : loop_row(f, k, t, c, out, err);
    if (out->oom) st = CD_FAIL(err, ENOMEM, "features");
    if (!st) return st;
    out->n = before;
    if (st == CDMPP_ENOMEM || st == CDMPP_ENOTASK) return st;
    if (err) err->code = CDMPP_EREJECTED;
    return CDMPP_EREJECTED;
}
