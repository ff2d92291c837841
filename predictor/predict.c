#include "predictor/predict.h"

#include <math.h>
#include <string.h>

#include "dataset/convert.h"
#include "predictor/gather.h"

struct cd_scorer {
    const cd_model *m;
    const cd_tasks *tasks;
    size_t max_rows, slots;
    bool traits;
    cd_which *which;
    cd_arena arena;           /* one record */
    cd_program *program;
    cd_model_scratch *scratch;
    cd_gather *gather;        /* programs since the last call of the model */
    cd_pred *pred;            /* (cap) */
    cd_scored **open;         /* (cap) whose programs these are */
    size_t n, cap;
    float *row;               /* (cap_row, CD_N_COL) of one candidate, converted */
    size_t cap_row;
};

void cd_scorer_free(cd_scorer *s) {
    if (!s) return;
    cd_arena_free(&s->arena);
    cd_program_free(s->program);
    cd_model_scratch_free(s->scratch);
    cd_gather_free(s->gather);
    cd_which_free(s->which);
    cd_free(s->pred);
    cd_free(s->open);
    cd_free(s->row);
    cd_free(s);
}

cdmpp_status cd_scorer_new(const cd_model *m, const cd_tasks *tasks, const cd_scorer_options *o, cd_scorer **out, cdmpp_err *err) {
    cd_scorer *s = cd_calloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "scorer");
    s->m = m;
    s->tasks = tasks;
    s->max_rows = o->max_rows;
    s->traits = o->traits;
    s->slots = cd_model_slots(m);
    cdmpp_status st = cd_which_new(m, &o->which, &s->which, err);
    if (!st) st = cd_program_new(&s->program, err);
    if (!st) st = cd_model_scratch_new(&s->scratch, err);
    if (!st) st = cd_gather_new(cd_model_needs_leaves(m), &s->gather, err);
    if (st) cd_scorer_free(s);
    else *out = s;
    return st;
}

const cd_device_pick *cd_scorer_fixed(const cd_scorer *s) { return cd_which_fixed(s->which); }

/* ---- one candidate: everything fallible first, then it is entered ---- */
static cdmpp_status room(cd_scorer *s, cdmpp_err *err) {
    if (s->n < s->cap) return CDMPP_OK;
    const size_t cap = s->cap ? 2 * s->cap : 64;
    cd_pred *pred = cd_calloc(cap, sizeof *pred);
    cd_scored **open = cd_calloc(cap, sizeof *open);
    if (!pred || !open) {
        cd_free(pred);
        cd_free(open);
        return CD_FAIL(err, ENOMEM, "%zu candidates", cap);
    }
    if (s->n) memcpy(open, s->open, s->n * sizeof *open);
    cd_free(s->pred);
    cd_free(s->open);
    s->pred = pred;
    s->open = open;
    s->cap = cap;
    return CDMPP_OK;
}

/* Rows behind those gathered so far. */
static cdmpp_status enter(cd_scorer *s, const cd_rows *rows, double flop, cd_scored *o, cdmpp_err *err) {
    if (!rows->n_row) return CD_FAIL(err, EINVALID, "the program stores nothing");
    if (s->max_rows && rows->n_row > s->max_rows)
        return CD_FAIL(err, ERANGE, "expected at most %zu rows, found %u", s->max_rows, rows->n_row);
    CD_TRY(room(s, err));
    CD_TRY(cd_gather_add(s->gather, rows, o->which.device, flop, err));
    if (s->traits) cd_adapt_traits(rows->row, rows->n_row, o->trait);
    o->truncated = s->slots && rows->n_leaf > s->slots;
    s->open[s->n++] = o;
    return CDMPP_OK;
}

static double measured(cd_arena *a, const cd_record *r) {
    cd_item it = {0};
    double *cost = cd_arena_alloc(a, r->n_cost + 1, sizeof *cost);
    if (!cost) return (double)NAN;
    memcpy(cost, r->cost_s, r->n_cost * sizeof *cost);
    cd_label(cost, r->n_cost, r->error_no, &it);
    return it.error ? (double)NAN : it.latency_s;
}

static cdmpp_status enter_line(cd_scorer *s, const cd_line *l, cd_scored *o, cdmpp_err *err) {
    cd_record r;
    cd_rows rows;
    cd_arena_reset(&s->arena);
    CD_TRY(cd_record_read(&s->arena, l->text, l->len, &r, err));
    o->measured_s = measured(&s->arena, &r);
    o->task = s->tasks ? cd_tasks_find(s->tasks, r.workload_key) : NULL;
    if (!o->task)
        return cd_err_key(err, CD_FAIL(err, ENOTASK, "no task file defines %.*s", r.workload_key.n > 150 ? 150 : (int)r.workload_key.n,
                                       r.workload_key.p), "i[0][0]");
    o->key = o->task->workload_key;
    CD_TRY(cd_which_pick(s->which, r.target, l->source, &o->which, err));
    CD_TRY(cd_program_build(s->program, o->task, &r, &rows, err));
    return enter(s, &rows, cd_task_flop(o->task), o, err);
}

static cdmpp_status enter_steps(cd_scorer *s, const cd_aim *aim, const char *text, size_t len, cd_scored *o, cdmpp_err *err) {
    cd_rows rows;
    cd_record r = {.target = aim->target, .has_hardware = aim->has_hardware, .hardware = aim->hardware};
    o->task = aim->task;
    o->key = aim->workload_key;
    if (!o->task) return CD_FAIL(err, ENOTASK, "%.120s: the task has no definition", aim->workload_key);
    cd_arena_reset(&s->arena);
    CD_TRY(cd_record_read_steps(&s->arena, text, len, &r, err));
    CD_TRY(cd_which_pick(s->which, aim->target, "", &o->which, err));
    CD_TRY(cd_program_build(s->program, aim->task, &r, &rows, err));
    return enter(s, &rows, aim->flop, o, err);
}

/* Rows as aligned floats: where they are if they already lie so, else in s->row. */
static cdmpp_status convert(cd_scorer *s, const void *row, size_t n_row, bool wide, const float **out, cdmpp_err *err) {
    const char *from = row;
    *out = row;
    if (!n_row || (!wide && (uintptr_t)row % _Alignof(float) == 0)) return CDMPP_OK;
    if (n_row > s->cap_row) {
        float *x = cd_calloc(2 * n_row, CD_N_COL * sizeof *x);
        if (!x) return CD_FAIL(err, ENOMEM, "%zu feature rows", n_row);
        cd_free(s->row);
        s->row = x;
        s->cap_row = 2 * n_row;
    }
    *out = s->row;
    if (!wide) {
        memcpy(s->row, from, n_row * CD_N_COL * sizeof *s->row);
        return CDMPP_OK;
    }
    for (size_t k = 0; k < n_row * CD_N_COL; k++) {
        double v;
        memcpy(&v, from + k * sizeof v, sizeof v);
        if (fabs(v) > 3.4e38) return CD_FAIL(err, ENUMERIC, "feature column %zu is beyond float", k % CD_N_COL);
        s->row[k] = (float)v;
    }
    return CDMPP_OK;
}

static cdmpp_status enter_rows(cd_scorer *s, const cd_aim *aim, const void *row, size_t n_row, bool wide, cd_scored *o,
                               cdmpp_err *err) {
    o->key = aim ? aim->workload_key : "";
    if (aim) o->task = aim->task;
    if (s->max_rows && n_row > s->max_rows) return CD_FAIL(err, ERANGE, "expected at most %zu rows, found %zu", s->max_rows, n_row);
    if (n_row > INT32_MAX) return CD_FAIL(err, ERANGE, "%zu rows in a candidate", n_row);
    CD_TRY(cd_which_pick(s->which, aim ? aim->target : (cd_str){"", 0}, "", &o->which, err));
    cd_rows rows = {.n_row = (uint32_t)n_row};
    CD_TRY(convert(s, row, n_row, wide, &rows.row, err));
    return enter(s, &rows, aim ? aim->flop : -1, o, err);
}

/* ---- batches ---- */
void cd_scorer_start(cd_scorer *s) {
    s->n = 0;
    cd_gather_clear(s->gather);
}

cdmpp_status cd_scorer_finish(cd_scorer *s, cdmpp_err *err) {
    const cd_view v = cd_gather_view(s->gather);
    CD_TRY(cd_model_predict(s->m, s->scratch, &v, NULL, s->n, s->pred, err));
    for (size_t k = 0; k < s->n; k++) s->open[k]->pred = s->pred[k];
    cd_scorer_start(s);
    return CDMPP_OK;
}

/* What became of a candidate that was entered, or was not. */
static cdmpp_status entered(cd_scorer *s, cdmpp_status st, cd_scored *o, cdmpp_err *err) {
    o->st = st;
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "%s", o->err.msg);
    return cd_gather_rows(s->gather) >= CD_SCORER_ROWS ? cd_scorer_finish(s, err) : CDMPP_OK;
}

static const cd_scored nothing = {.measured_s = (double)NAN};

cdmpp_status cd_scorer_line(cd_scorer *s, const cd_line *line, cd_scored *out, cdmpp_err *err) {
    *out = nothing;
    const cdmpp_status st = enter_line(s, line, out, &out->err);
    if (st) cd_err_add_place(&out->err, line->source, line->number);
    return entered(s, st, out, err);
}

cdmpp_status cd_scorer_steps(cd_scorer *s, const cd_aim *aim, const char *text, size_t len, cd_scored *out, cdmpp_err *err) {
    *out = nothing;
    return entered(s, enter_steps(s, aim, text, len, out, &out->err), out, err);
}

cdmpp_status cd_scorer_rows(cd_scorer *s, const cd_aim *aim, const void *row, size_t n_row, bool wide, cd_scored *out,
                            cdmpp_err *err) {
    *out = nothing;
    return entered(s, enter_rows(s, aim, row, n_row, wide, out, &out->err), out, err);
}

cdmpp_status cd_scorer_run(cd_scorer *s, const cd_line *line, size_t n, cd_scored *out, cdmpp_err *err) {
    cd_scorer_start(s);
    for (size_t i = 0; i < n; i++) CD_TRY(cd_scorer_line(s, &line[i], &out[i], err));
    return cd_scorer_finish(s, err);
}
