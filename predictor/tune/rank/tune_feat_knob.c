/* The numbers in the steps of a candidate, each in a column of its own: the sketches of a task have
 * other steps, and the same step in two of them is the same knob. */

#include "predictor/tune/rank/rank_internal.h"

static bool same(const cd_tune_knob *a, const cd_tune_knob *b) {
    return a->kind == b->kind && a->stage == b->stage && a->times == b->times &&
           a->place == b->place;
}

/* Candidates come with the same knobs in the same order: the next one is tried first. */
static cdmpp_status column_of(cd_tune_feat *f, const cd_tune_knob *k, size_t *at, cdmpp_err *err) {
    for (size_t c = 0; c < f->n_knob; c++) {
        const size_t i = *at + c < f->n_knob ? *at + c : *at + c - f->n_knob;
        if (!same(&f->knob[i], k)) continue;
        *at = i;
        return CDMPP_OK;
    }
    if (CD_GROW(f->knob, f->n_knob, f->cap_knob)) return CD_FAIL(err, ENOMEM, "knobs");
    f->knob[f->n_knob] = *k;
    *at = f->n_knob++;
    return CDMPP_OK;
}

static double unroll_of(cd_str s) {
    size_t k = s.n;
    double v = 0, times = 1;
    for (; k && s.p[k - 1] >= '0' && s.p[k - 1] <= '9'; k--, times *= 10)
        v += times * (s.p[k - 1] - '0');
    return v;
}

void cd_tune_feat_unrolls(const cd_tune_cand *c, cd_tune_row *out) {
    int n = 0;
    for (uint32_t k = 0; k < c->n_step && n < CD_TUNE_FEAT_UNROLLS; k++) {
        if (c->step[k].kind != CD_RECORD_STEP_PR) continue;
        cd_tune_row_put(out, unroll_of(c->step[k].s));
        n++;
    }
    for (; n < CD_TUNE_FEAT_UNROLLS; n++) cd_tune_row_put(out, 0);
}

enum { MOST = 32 }; /* numbers of a step; the rest of a longer list is left out */

/* What of a step a tuner may choose. */
static uint32_t numbers_of(const cd_record_step *s, double *v) {
    uint32_t n = 0;
    switch (s->kind) {
    case CD_RECORD_STEP_SP:
        for (; n < s->n_list && n < MOST; n++) v[n] = s->list[n];
        break;
    case CD_RECORD_STEP_FU: v[n++] = s->n_list; break;
    case CD_RECORD_STEP_AN: v[n++] = s->i[1]; break;
    case CD_RECORD_STEP_PR: v[n++] = unroll_of(s->s); break;
    case CD_RECORD_STEP_CA:
        v[n++] = s->i[0];
        v[n++] = s->i[1];
        break;
    case CD_RECORD_STEP_CI:
    case CD_RECORD_STEP_CR: v[n++] = 1; break;
    case CD_RECORD_STEP_FSP:
    case CD_RECORD_STEP_FFSP: v[n++] = s->i[0]; break;
    case CD_RECORD_STEP_RF:
        v[n++] = s->i[0];
        v[n++] = s->i[1];
        break;
    default: break;
    }
    return n;
}

/* How many steps of this kind the stage had before. */
static int32_t times_before(const cd_tune_cand *c, uint32_t k) {
    int32_t n = 0;
    for (uint32_t j = 0; j < k; j++)
        n += c->step[j].kind == c->step[k].kind && c->step[j].stage == c->step[k].stage;
    return n;
}

static cdmpp_status put_at(cd_tune_row *out, size_t begin, size_t column, double v,
                           cdmpp_err *err) {
    while (out->n <= begin + column && !out->oom) cd_tune_row_put(out, 0);
    if (out->oom) return CD_FAIL(err, ENOMEM, "knobs");
    out->v[begin + column] = (float)v;
    return CDMPP_OK;
}

cdmpp_status cd_tune_feat_knob(cd_tune_feat *f, const cd_tune_cand *c, cd_tune_row *out,
                               cdmpp_err *err) {
    const size_t begin = out->n;
    size_t column = 0;
    for (uint32_t k = 0; k < c->n_step; k++) {
        const cd_record_step *s = &c->step[k];
        double v[MOST];
        const uint32_t n = numbers_of(s, v);
        cd_tune_knob id = {(int32_t)s->kind, s->stage, n ? times_before(c, k) : 0, 0};
        for (uint32_t j = 0; j < n; j++) {
            id.place = (int32_t)j;
            CD_TRY(column_of(f, &id, &column, err));
            CD_TRY(put_at(out, begin, column, v[j], err));
            column = column + 1 < f->n_knob ? column + 1 : 0;
        }
    }
    /* the naive program has no knobs */
    return begin < out->n ? CDMPP_OK : put_at(out, begin, 0, 0, err);
}
