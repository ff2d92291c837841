/* Compares the best program of a task with the untuned one: both must be right, and the faster one
 * is kept. */
#include "predictor/tune/session/tune_result.h"

#include <string.h>

#include "predictor/tune/session/session.h"

enum { REPEATS = 5, FEW = 3 };
#define LONG_S 0.05 /* programs that take longer are measured FEW times */

const char *cd_tune_verdict_name(cd_tune_verdict v) {
    static const char *const name[] = {"better", "worse", "wrong",  "fails",
                                       "alone",  "none",  "untuned"};
    return name[v];
}

void cd_tune_result_free(cd_tune_result *r) {
    cd_record_program_free(&r->untuned.job);
    cd_record_program_free(&r->tuned.job);
    cd_arena_free(&r->arena);
    memset(r, 0, sizeof *r);
}

/* ---- one side ---- */
static void lost(cd_tune_side *s, const cdmpp_err *why) {
    s->seconds = CD_TUNE_FAILED_S;
    s->why = *why;
}

static cdmpp_status make_side(cd_tune_measure *m, const cd_tune_task *t, cd_tune_side *s,
                              cdmpp_err *err) {
    CD_TRY(cd_tune_measure_job(m, t, &s->cand, true, &s->job, err));
    s->item = cd_tune_measure_item(m, &s->job, true);
    s->there = true;
    return CDMPP_OK;
}

/* ---- what is measured ---- */
typedef struct {
    cd_tune_side *side[2]; /* (n) those that are measured */
    int n, failed;         /* failed: the side that did not run at its turn; -1: none */
    double x[2][REPEATS];
} sides;

static void checked(void *ctx, size_t k) {
    cd_tune_side *s = ((const sides *)ctx)->side[k];
    const cd_measure_result *out = &s->item.out;
    s->checked = (out->flags & CD_MEASURE_CHECKED) != 0 || out->error_no == 5;
    s->max_error = out->max_error;
    s->seconds = out->error_no ? CD_TUNE_FAILED_S : out->time.median_s;
    if (out->error_no) s->why = out->err;
}

/* Both are compared with the reference, and this once. */
static cdmpp_status check(cd_tune_measure *m, sides *s, cdmpp_err *err) {
    cd_tune_turn turn[2];
    for (int i = 0; i < s->n; i++) turn[i] = (cd_tune_turn){&s->side[i]->job, &s->side[i]->item};
    CD_TRY(cd_tune_measure_turns(m, turn, (size_t)s->n, checked, s, err));
    for (int i = 0; i < s->n; i++) s->side[i]->item.reference = NULL;
    return CDMPP_OK;
}

static void took(void *ctx, size_t k) {
    sides *s = ctx;
    const int i = (int)k % s->n;
    const cd_measure_result *out = &s->side[i]->item.out;
    s->x[i][k / (size_t)s->n] = out->time.median_s;
    if (s->failed >= 0 || !out->error_no) return;
    s->failed = i;
    lost(s->side[i], &out->err);
}

/* Untuned, tuned, untuned ...: a disturbance of some seconds hits both sides. The median of a few
 * repeats decides. */
static cdmpp_status by_turns(cd_tune_measure *m, sides *s, cdmpp_err *err) {
    cd_tune_turn turn[2 * REPEATS];
    const int times =
        s->side[0]->seconds > LONG_S || s->side[s->n - 1]->seconds > LONG_S ? FEW : REPEATS;
    for (int k = 0; k < s->n * times; k++)
        turn[k] = (cd_tune_turn){&s->side[k % s->n]->job, &s->side[k % s->n]->item};
    s->failed = -1;
    CD_TRY(cd_tune_measure_turns(m, turn, (size_t)(s->n * times), took, s, err));
    for (int i = 0; i < s->n && s->failed < 0; i++) {
        cd_sort_doubles(s->x[i], (size_t)times);
        s->side[i]->seconds = s->x[i][times / 2];
    }
    return CDMPP_OK;
}

/* ---- both ---- */
static bool runs(const cd_tune_side *s) { return s->there && s->seconds < CD_TUNE_FAILED_S; }

static cd_tune_verdict verdict_of(const cd_tune_result *r, bool tuned) {
    if (!tuned) return runs(&r->untuned) ? CD_TUNE_UNTUNED : CD_TUNE_NONE;
    if (!runs(&r->tuned))
        return !runs(&r->untuned)                ? CD_TUNE_NONE
               : r->tuned.item.out.error_no == 5 ? CD_TUNE_WRONG
                                                 : CD_TUNE_FAILS;
    if (!runs(&r->untuned)) return CD_TUNE_ALONE;
    return r->tuned.seconds > r->untuned.seconds ? CD_TUNE_WORSE : CD_TUNE_BETTER;
}

static cdmpp_status make_default(const cd_tune_task *t, cd_tune_result *r, cdmpp_err *err) {
    cd_program *p = NULL;
    CD_TRY(cd_program_new(&p, err));
    cdmpp_err why = {0};
    const cdmpp_status st = cd_tune_baseline(&r->arena, p, t, &r->untuned.cand, &why);
    cd_program_free(p);
    if (st) lost(&r->untuned, &why);
    r->untuned.there = !st;
    if (st == CDMPP_ENOMEM && err) *err = why;
    return st == CDMPP_ENOMEM ? st : CDMPP_OK;
}

static sides those(cd_tune_result *r, bool (*which)(const cd_tune_side *s)) {
    sides s = {.failed = -1};
    if (which(&r->untuned)) s.side[s.n++] = &r->untuned;
    if (which(&r->tuned)) s.side[s.n++] = &r->tuned;
    return s;
}

static bool is_there(const cd_tune_side *s) { return s->there; }

/* Both programs are compiled before either is run, because compilers disturb measurements. */
cdmpp_status cd_tune_result_make(cd_tune_measure *m, const cd_tune_task *t,
                                 const cd_tune_cand *best, cd_tune_result *r, cdmpp_err *err) {
    memset(r, 0, sizeof *r);
    r->tuned.seconds = r->untuned.seconds = CD_TUNE_FAILED_S;
    CD_TRY(make_default(t, r, err));
    if (r->untuned.there) CD_TRY(make_side(m, t, &r->untuned, err));
    if (best) {
        CD_TRY(cd_tune_cand_copy(&r->arena, best, &r->tuned.cand, err));
        CD_TRY(make_side(m, t, &r->tuned, err));
    }
    sides s = those(r, is_there);
    for (int i = 0; i < s.n; i++) CD_TRY(cd_tune_measure_build(m, &s.side[i]->item, err));
    CD_TRY(check(m, &s, err));
    s = those(r, runs);
    if (s.n) CD_TRY(by_turns(m, &s, err));
    r->verdict = verdict_of(r, best != NULL);
    return CDMPP_OK;
}

cd_tune_side *cd_tune_result_kept(cd_tune_result *r) {
    switch (r->verdict) {
    case CD_TUNE_BETTER:
    case CD_TUNE_ALONE: return &r->tuned;
    case CD_TUNE_NONE: return NULL;
    default: return &r->untuned;
    }
}

cdmpp_status cd_tune_result_record(cd_tune_side *s, cd_record *out, cdmpp_err *err) {
    return cd_record_program_record(&s->job, &s->item.out, out, err);
}
