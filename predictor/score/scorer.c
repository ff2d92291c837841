/* From a candidate (record, steps or rows) to its latency: the device is matched, the program is
 * lowered, its features go into a batch, the model predicts the batch, and each candidate gets its
 * answer or its error. */
#include "predictor/score/scorer.h"

#include <math.h>
#include <string.h>

#include "features/task/task.h"
#include "predictor/score/batch_builder_internal.h"
#include "predictor/score/kinds_internal.h"
#include "predictor/score/program_facts.h"
#include "predictor/score/rows_json.h"

struct cd_scorer {
    const cd_model *m;
    const cd_task_registry *tasks;
    size_t max_rows, slots;
    bool traits, launch, sketch, steps; /* traits: the caller corrects */
    bool here;                          /* answers get the model's own correction */
    cd_scorer_tap tap;
    cd_device_match *which;
    cd_kinds *kinds;        /* what is unlike of tasks */
    cd_program_facts facts; /* of one candidate */
    cd_arena arena;         /* one record */
    cd_program *program;
    cd_model_scratch *scratch;
    cd_batch_builder *gather;  /* programs since the last call of the model */
    cd_model_prediction *pred; /* (cap) */
    cd_scored **open;          /* (cap) whose programs these are */
    size_t n, cap;
    /* (devices of the model) descriptions, NULL: not described; NULL: none */
    const cd_device **peaks;
    float *row; /* (cap_row, CD_N_COL) of one candidate, converted */
    size_t cap_row;
};

void cd_scorer_free(cd_scorer *s) {
    if (!s) return;
    cd_arena_free(&s->arena);
    cd_program_facts_free(&s->facts);
    cd_program_free(s->program);
    cd_model_scratch_free(s->scratch);
    cd_batch_builder_free(s->gather);
    cd_device_match_free(s->which);
    cd_kinds_free(s->kinds);
    cd_mem_free(s->pred);
    cd_mem_free(s->open);
    cd_mem_free(s->row);
    cd_mem_free(s->peaks);
    cd_mem_free(s);
}

static cdmpp_status find_peaks(cd_scorer *s, const cd_device_table *t, cdmpp_err *err) {
    if (!t) return CDMPP_OK;
    if (!(s->peaks = cd_mem_zalloc(cd_model_n_device(s->m) + 1, sizeof *s->peaks)))
        return CD_FAIL(err, ENOMEM, "devices");
    for (size_t i = 0; i < cd_model_n_device(s->m); i++)
        if (cd_device_table_find(t, cd_model_device(s->m, i), &s->peaks[i], NULL))
            s->peaks[i] = NULL;
    return CDMPP_OK;
}

/* A scorer belongs to one thread: program, scratch memory and batch are its own, the model is
 * shared. */
cdmpp_status cd_scorer_new(const cd_model *m, const cd_task_registry *tasks,
                           const cd_scorer_options *o, cd_scorer **out, cdmpp_err *err) {
    cd_scorer *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "scorer");
    s->m = m;
    s->tasks = tasks;
    s->max_rows = o->max_rows;
    s->traits = o->traits;
    s->launch = o->launch;
    s->here = !o->uncorrected && cd_model_here(m);
    s->tap = o->tap;
    s->sketch = o->sketch;
    s->slots = cd_model_slots(m);
    s->steps = cd_model_needs_steps(m);
    cdmpp_status st = cd_device_match_new(m, &o->which, &s->which, err);
    if (!st) st = find_peaks(s, o->peaks, err);
    if (!st) st = cd_kinds_new(m, o->uncorrected, &s->kinds, err);
    if (!st) st = cd_program_new(&s->program, err);
    if (!st) st = cd_program_facts_new(&s->facts, m, err);
    s->facts.numbers = o->numbers;
    if (!st) st = cd_model_scratch_new(&s->scratch, err);
    if (!st)
        st = cd_batch_builder_new(cd_model_needs_leaves(m), cd_model_orders_rows(m), &s->gather,
                                  err);
    if (st) cd_scorer_free(s);
    else *out = s;
    return st;
}

const cd_device_pick *cd_scorer_fixed(const cd_scorer *s) {
    return cd_device_match_fixed(s->which);
}

/* ---- one candidate: everything fallible first, then it is entered ---- */
static cdmpp_status room(cd_scorer *s, cdmpp_err *err) {
    if (s->n < s->cap) return CDMPP_OK;
    const size_t cap = s->cap ? 2 * s->cap : 64;
    cd_model_prediction *pred = cd_mem_zalloc(cap, sizeof *pred);
    cd_scored **open = cd_mem_zalloc(cap, sizeof *open);
    if (!pred || !open) {
        cd_mem_free(pred);
        cd_mem_free(open);
        return CD_FAIL(err, ENOMEM, "%zu candidates", cap);
    }
    if (s->n) memcpy(open, s->open, s->n * sizeof *open);
    cd_mem_free(s->pred);
    cd_mem_free(s->open);
    s->pred = pred;
    s->open = open;
    s->cap = cap;
    return CDMPP_OK;
}

/* Rows behind those gathered so far; r NULL: their schedule is not known. */
static cdmpp_status enter(cd_scorer *s, const cd_rows *rows, const cd_record *r, double flop,
                          cd_scored *o, cdmpp_err *err) {
    int32_t *code = NULL;
    uint32_t n_code = 0;
    if (!rows->n_row) return CD_FAIL(err, EINVALID, "the program stores nothing");
    if (s->max_rows && rows->n_row > s->max_rows)
        return CD_FAIL(err, ERANGE, "expected at most %zu rows, found %u", s->max_rows,
                       rows->n_row);
    if (s->steps && !r)
        return CD_FAIL(err, EMODEL,
                       "the model reads the steps of schedules, rows do not hold them");
    if (s->steps) CD_TRY(cd_step_codes(&s->arena, r, &code, &n_code, err));
    CD_TRY(cd_program_facts_fill(&s->facts, s->program, !r, &o->which, err));
    CD_TRY(room(s, err));
    CD_TRY(cd_batch_builder_add(s->gather, rows, o->which.device, flop, err));
    if (s->facts.scratch)
        CD_TRY(cd_batch_builder_add_facts(s->gather, (int)cd_model_facts_set(s->facts.m),
                                          s->facts.fact, s->facts.analytic, err));
    if (s->steps) CD_TRY(cd_batch_builder_add_steps(s->gather, code, n_code, err));
    const cd_rows seen = {.row = cd_batch_builder_last(s->gather), .n_row = rows->n_row};
    if (s->traits) cd_online_adapt_traits(seen.row, seen.n_row, o->trait);
    if (s->launch && o->task) cd_launch_of(o->task, &seen, &o->launch);
    o->truncated = s->slots && rows->n_leaf > s->slots;
    s->open[s->n++] = o;
    return CDMPP_OK;
}

static double measured(cd_arena *a, const cd_record *r) {
    double *cost = cd_arena_alloc(a, r->n_cost + 1, sizeof *cost);
    if (!cost) return (double)NAN;
    if (r->n_cost) memcpy(cost, r->cost_s, r->n_cost * sizeof *cost);
    const cd_label it = cd_label_of(cost, r->n_cost, r->error_no);
    return it.error ? (double)NAN : it.latency_s;
}

/* As features/program takes it: the record's own come first; NULL: not known. */
static const cd_hardware *hardware_of(const cd_task *t, bool has, const cd_hardware *own) {
    return has ? own : t->has_hardware ? &t->hardware : NULL;
}

/* A record that was read into s->arena. */
static cdmpp_status enter_record(cd_scorer *s, const cd_record *r, const char *source,
                                 const cd_aim *aim, cd_scored *o, cdmpp_err *err) {
    cd_rows rows;
    o->measured_s = measured(&s->arena, r);
    o->task = s->tasks ? cd_task_registry_find(s->tasks, r->workload_key) : NULL;
    if (!o->task)
        return cd_err_key(err,
                          CD_FAIL(err, ENOTASK, "no task file defines %.*s",
                                  r->workload_key.n > 150 ? 150 : (int)r->workload_key.n,
                                  r->workload_key.p),
                          "i[0][0]");
    o->key = o->task->workload_key;
    if (aim && aim->device.n)
        CD_TRY(cd_device_match_named(s->which, aim->device, r->target, &o->which, err));
    else CD_TRY(cd_device_match_pick(s->which, r->target, source, &o->which, err));
    CD_TRY(cd_kinds_check(s->kinds, o->task, r->target,
                          hardware_of(o->task, r->has_hardware, &r->hardware), &o->which,
                          &o->unlike, err));
    CD_TRY(cd_program_build(s->program, o->task, r, &rows, err));
    return enter(s, &rows, r, cd_task_flop(o->task), o, err);
}

static cdmpp_status enter_line(cd_scorer *s, const char *text, size_t len, const char *source,
                               const cd_aim *aim, cd_scored *o, cdmpp_err *err) {
    cd_record r;
    cd_arena_reset(&s->arena);
    CD_TRY(cd_record_read(&s->arena, text, len, &r, err));
    return enter_record(s, &r, source, aim, o, err);
}

static cdmpp_status enter_parts(cd_scorer *s, const cd_candidate *ask, cd_scored *o,
                                cdmpp_err *err) {
    cd_record r;
    cd_arena_reset(&s->arena);
    CD_TRY(cd_record_read_parts(&s->arena, ask->text, ask->costs, ask->version, &r, err));
    return enter_record(s, &r, "", ask->aim, o, err);
}

static cdmpp_status enter_steps(cd_scorer *s, const cd_candidate *ask, cd_scored *o,
                                cdmpp_err *err) {
    const cd_aim *aim = ask->aim;
    cd_rows rows;
    cd_record r = {.target = aim->target,
                   .has_hardware = aim->has_hardware,
                   .hardware = aim->hardware,
                   .layout_rewrite = cd_target_layout(cd_target_is_gpu(aim->target))};
    o->task = aim->task;
    o->key = aim->workload_key;
    if (!o->task)
        return CD_FAIL(err, ENOTASK, "%.120s: the task has no definition", aim->workload_key);
    cd_arena_reset(&s->arena);
    if (ask->form == CD_CANDIDATE_STEPS)
        CD_TRY(cd_record_read_steps(&s->arena, ask->text.p, ask->text.n, &r, err));
    else r.step = ask->step, r.n_step = ask->n_step;
    CD_TRY(cd_device_match_named(s->which, aim->device, aim->target, &o->which, err));
    CD_TRY(cd_kinds_check(s->kinds, o->task, aim->target,
                          hardware_of(o->task, aim->has_hardware, &aim->hardware), &o->which,
                          &o->unlike, err));
    CD_TRY(cd_program_build(s->program, aim->task, &r, &rows, err));
    return enter(s, &rows, &r, aim->flop, o, err);
}

static cdmpp_status room_row(cd_scorer *s, size_t n_row, cdmpp_err *err) {
    if (n_row <= s->cap_row) return CDMPP_OK;
    float *x =
        cd_mem_realloc(s->row, s->cap_row * CD_N_COL * sizeof *x, 2 * n_row * CD_N_COL * sizeof *x);
    if (!x) return CD_FAIL(err, ENOMEM, "%zu feature rows", n_row);
    s->row = x;
    s->cap_row = 2 * n_row;
    return CDMPP_OK;
}

/* A row of doubles behind the k rows in s->row. */
static cdmpp_status narrow(cd_scorer *s, const double *v, size_t k, cdmpp_err *err) {
    float *x = s->row + k * CD_N_COL;
    for (size_t c = 0; c < CD_N_COL; c++) {
        if (fabs(v[c]) > 3.4e38)
            return CD_FAIL(err, ENUMERIC, "feature column %zu is beyond float", c);
        x[c] = (float)v[c];
    }
    return CDMPP_OK;
}

/* Rows as aligned floats: where they are if they already lie so, else in s->row. */
static cdmpp_status convert(cd_scorer *s, const void *row, size_t n_row, bool wide,
                            const float **out, cdmpp_err *err) {
    const char *from = row;
    double v[CD_N_COL];
    *out = row;
    if (!n_row || (!wide && (uintptr_t)row % _Alignof(float) == 0)) return CDMPP_OK;
    CD_TRY(room_row(s, n_row, err));
    *out = s->row;
    if (!wide) memcpy(s->row, from, n_row * CD_N_COL * sizeof *s->row);
    for (size_t k = 0; wide && k < n_row; k++, from += sizeof v) {
        memcpy(v, from, sizeof v);
        CD_TRY(narrow(s, v, k, err));
    }
    return CDMPP_OK;
}

/* [[164 numbers], ...] into s->row. */
static cdmpp_status read_rows(cd_scorer *s, cd_str text, size_t *n_row, cdmpp_err *err) {
    double v[CD_N_COL];
    cd_rows_json t = {.at = text.p, .end = text.p + text.n};
    bool more = false;
    for (*n_row = 0;; (*n_row)++) {
        CD_TRY(cd_rows_json_next(&t, v, CD_N_COL, &more, err));
        if (!more) return CDMPP_OK;
        if (s->max_rows && *n_row == s->max_rows)
            return CD_FAIL(err, ERANGE, "expected at most %zu rows, found more", s->max_rows);
        CD_TRY(room_row(s, *n_row + 1, err));
        CD_TRY(narrow(s, v, *n_row, err));
    }
}

/* Rows come as text or as numbers, and without a schedule: task, target and flop are those that the
 * caller says. */
static cdmpp_status enter_rows(cd_scorer *s, const cd_candidate *ask, cd_scored *o,
                               cdmpp_err *err) {
    const cd_aim *aim = ask->aim;
    const cd_str none = {"", 0};
    size_t n_row = ask->n_row;
    cd_rows rows = {0};
    o->key = aim ? aim->workload_key : "";
    if (aim) o->task = aim->task;
    if (s->max_rows && n_row > s->max_rows)
        return CD_FAIL(err, ERANGE, "expected at most %zu rows, found %zu", s->max_rows, n_row);
    if (n_row > INT32_MAX) return CD_FAIL(err, ERANGE, "%zu rows in a candidate", n_row);
    CD_TRY(cd_device_match_named(s->which, aim ? aim->device : none, aim ? aim->target : none,
                                 &o->which, err));
    CD_TRY(cd_kinds_check(s->kinds, o->task, aim ? aim->target : none,
                          aim && aim->has_hardware ? &aim->hardware : NULL, &o->which, &o->unlike,
                          err));
    if (ask->form == CD_CANDIDATE_ROWS_TEXT) {
        CD_TRY(cd_err_key(err, read_rows(s, ask->text, &n_row, err), "rows"));
        rows.row = s->row;
    } else {
        CD_TRY(convert(s, ask->row, n_row, ask->form == CD_CANDIDATE_ROWS_F64, &rows.row, err));
    }
    rows.n_row = (uint32_t)n_row;
    return enter(s, &rows, NULL, aim ? aim->flop : -1, o, err);
}

/* ---- the least that a device can ---- */
static bool raise_to(cd_model_prediction *p, double least_s) {
    const bool below = p->latency_s < least_s;
    /* an end that nothing tells may be anywhere below: fmin leaves it out */
    const bool beyond = p->reason & CD_UNLIKE_RANGE && !(p->low_s >= p->latency_s);
    const double times = !below   ? 1
                         : beyond ? fmin(least_s / p->low_s, 2 * least_s / p->latency_s)
                                  : least_s / p->latency_s;
    p->latency_s = fmax(p->latency_s * times, least_s);
    p->median_s = below ? p->latency_s : fmax(p->median_s, least_s);
    if (!isnan(p->high_s)) p->high_s = fmax(p->high_s * times, p->latency_s);
    if (!isnan(p->low_s)) p->low_s = fmax(p->low_s * times, least_s);
    if (!below) return false;
    p->like_std = fmin(p->like_std, 0);
    p->flags |= CD_MODEL_OUT_OF_RANGE;
    p->reason |= CD_UNLIKE_PEAK;
    return true;
}

/* The answer lies the farther below its median the less sure the model is: no order. */
void cd_score_bound(cd_scored *o) {
    o->model_s = o->pred.median_s;
    if (o->least_s > 0 && raise_to(&o->pred, o->least_s))
        cd_trained_on_add(&o->unlike, CD_UNLIKE_BIT_PEAK, "", 0);
}

/* ---- batches ---- */
void cd_scorer_start(cd_scorer *s) {
    s->n = 0;
    cd_batch_builder_clear(s->gather);
}

cdmpp_status cd_scorer_finish(cd_scorer *s, cdmpp_err *err) {
    const cd_program_view v = cd_batch_builder_view(s->gather);
    CD_TRY((s->sketch ? cd_model_sketch : cd_model_predict)(s->m, s->scratch, &v, NULL, s->n,
                                                            s->pred, err));
    for (size_t k = 0; k < s->n; k++) {
        cd_scored *o = s->open[k];
        o->pred = s->pred[k];
        if (s->tap.see) s->tap.see(s->tap.ctx, o, &v, k);
        const cd_model_asked asked = {.compared = o->task && o->task->dag,
                                      .reason = o->unlike.reason,
                                      .uncorrected = !s->here,
                                      .doubt = o->which.unknown ? &o->which.doubt : NULL};
        CD_TRY(cd_model_settle(s->m, &v, k, &asked, &o->pred, err));
        if (o->pred.reason & CD_UNLIKE_RANGE)
            cd_trained_on_add(&o->unlike, CD_UNLIKE_BIT_RANGE, "", 0);
        if (s->peaks && o->task && o->task->dag)
            o->least_s = cd_device_least_s(
                o->which.unknown ? o->which.own : s->peaks[o->which.device], &o->task->dag->least);
        if (!s->traits) cd_score_bound(o);
    }
    cd_scorer_start(s);
    return CDMPP_OK;
}

/* What became of a candidate that was entered, or was not. */
static cdmpp_status entered(cd_scorer *s, cdmpp_status st, cd_scored *o, cdmpp_err *err) {
    o->st = st;
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "%s", o->err.msg);
    return cd_batch_builder_rows(s->gather) >= CD_SCORER_ROWS ? cd_scorer_finish(s, err) : CDMPP_OK;
}

static const cd_scored nothing = {.measured_s = (double)NAN};

cdmpp_status cd_scorer_line(cd_scorer *s, const cd_predict_line *line, cd_scored *out,
                            cdmpp_err *err) {
    *out = nothing;
    const cdmpp_status st =
        enter_line(s, line->text, line->len, line->source, NULL, out, &out->err);
    if (st) cd_err_add_place(&out->err, line->source, line->number);
    return entered(s, st, out, err);
}

static cdmpp_status enter_ask(cd_scorer *s, const cd_candidate *ask, cd_scored *o, cdmpp_err *err) {
    switch (ask->form) {
    case CD_CANDIDATE_REFUSED: break;
    case CD_CANDIDATE_LINE: return enter_line(s, ask->text.p, ask->text.n, "", ask->aim, o, err);
    case CD_CANDIDATE_PARTS: return enter_parts(s, ask, o, err);
    case CD_CANDIDATE_STEPS:
    case CD_CANDIDATE_SCHEDULE: return enter_steps(s, ask, o, err);
    case CD_CANDIDATE_ROWS_F32:
    case CD_CANDIDATE_ROWS_F64:
    case CD_CANDIDATE_ROWS_TEXT: return enter_rows(s, ask, o, err);
    }
    *err = *ask->why;
    return ask->why->code;
}

cdmpp_status cd_scorer_add(cd_scorer *s, const cd_candidate *ask, cd_scored *out, cdmpp_err *err) {
    *out = nothing;
    return entered(s, enter_ask(s, ask, out, &out->err), out, err);
}

cdmpp_status cd_scorer_run(cd_scorer *s, const cd_predict_line *line, size_t n, cd_scored *out,
                           cdmpp_err *err) {
    cd_scorer_start(s);
    for (size_t i = 0; i < n; i++) CD_TRY(cd_scorer_line(s, &line[i], &out[i], err));
    return cd_scorer_finish(s, err);
}
