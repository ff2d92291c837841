#include "predictor/predict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dataset/convert.h"
#include "predictor/gather.h"

struct cd_scorer {
    const cd_model *m;
    const cd_tasks *tasks;
    int fixed_device;         /* -1: each record's own */
    cd_arena arena;           /* one record */
    cd_program *program;
    cd_model_scratch *scratch;
    cd_gather *gather;        /* programs of the lines so far */
    cd_pred *pred;            /* (cap) */
    size_t *line;             /* (cap) which line the program came from */
    size_t n, cap;
};

void cd_scorer_free(cd_scorer *s) {
    if (!s) return;
    cd_arena_free(&s->arena);
    cd_program_free(s->program);
    cd_model_scratch_free(s->scratch);
    cd_gather_free(s->gather);
    cd_free(s->pred);
    cd_free(s->line);
    cd_free(s);
}

/* "v100, k80": the devices of a model, for messages. */
static char *device_list(const cd_model *m, char *buf, size_t n) {
    size_t at = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < cd_model_n_device(m) && at < n; i++) {
        const int k = snprintf(buf + at, n - at, "%s%s", i ? ", " : "", cd_model_device(m, i));
        if (k > 0) at += (size_t)k;
    }
    return buf;
}

cdmpp_status cd_scorer_new(const cd_model *m, const cd_tasks *tasks, const char *device, cd_scorer **out, cdmpp_err *err) {
    char known[120];
    const int fixed = device ? cd_model_find_device(m, device, strlen(device)) : -1;
    if (device && fixed < 0)
        return CD_FAIL(err, EMODEL, "device: expected one of %s, found '%.60s'", device_list(m, known, sizeof known), device);
    cd_scorer *s = cd_calloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "scorer");
    s->m = m;
    s->tasks = tasks;
    s->fixed_device = fixed;
    cdmpp_status st = cd_program_new(&s->program, err);
    if (!st) st = cd_model_scratch_new(&s->scratch, err);
    if (!st) st = cd_gather_new(cd_model_needs_leaves(m), &s->gather, err);
    if (st) cd_scorer_free(s);
    else *out = s;
    return st;
}

static cdmpp_status room_for_lines(cd_scorer *s, size_t n, cdmpp_err *err) {
    if (n <= s->cap) return CDMPP_OK;
    cd_free(s->pred);
    cd_free(s->line);
    s->pred = cd_calloc(n, sizeof *s->pred);
    s->line = cd_calloc(n, sizeof *s->line);
    s->cap = s->pred && s->line ? n : 0;
    return s->cap ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu lines", n);
}

/* ---- one record ---- */
/* A model of GPU programs says nothing about a CPU program, whatever it is called. */
static cdmpp_status check_kind(const cd_scorer *s, cd_str target, uint32_t device, cdmpp_err *err) {
    const bool gpu = cd_target_is_gpu(target);
    if (gpu == (cd_model_device_is_gpu(s->m, device) != 0)) return CDMPP_OK;
    const cdmpp_status st = CD_FAIL(err, EMODEL, "the record is for a %s, the model's device %.60s is a %s", gpu ? "GPU" : "CPU",
                                    cd_model_device(s->m, device), gpu ? "CPU" : "GPU");
    return cd_err_key(err, st, "i[0][1]");
}

static cdmpp_status find_device(const cd_scorer *s, cd_str target, const char *source, uint32_t *out, cdmpp_err *err) {
    char known[120];
    int k = s->fixed_device;
    if (k < 0) {
        const cd_str name = cd_device_name(target, source);
        k = cd_model_find_device(s->m, name.p, name.n);
        /* A folder's name proves nothing, -model= does. */
        if (k < 0 && cd_model_n_device(s->m) == 1 && cd_str_is(cd_device_name(target, ""), "unknown")) k = 0;
        if (k < 0) {
            const cdmpp_status st = CD_FAIL(err, EMODEL, "device: expected one of %s, found '%.*s'; --device NAME says which to take",
                                            device_list(s->m, known, sizeof known), (int)(name.n < 60 ? name.n : 60), name.p);
            return cd_err_key(err, st, "i[0][1]");
        }
    }
    *out = (uint32_t)k;
    return check_kind(s, target, *out, err);
}

static double measured(cd_arena *a, const cd_record *r) {
    cd_item it = {0};
    double *cost = cd_arena_alloc(a, r->n_cost + 1, sizeof *cost);
    if (!cost) return (double)NAN;
    memcpy(cost, r->cost_s, r->n_cost * sizeof *cost);
    cd_label(cost, r->n_cost, r->error_no, &it);
    return it.error ? (double)NAN : it.latency_s;
}

/* Line -> rows behind those gathered so far. */
static cdmpp_status gather(cd_scorer *s, const cd_line *l, cd_scored *o, cdmpp_err *err) {
    cd_record r;
    cd_rows rows;
    cd_arena_reset(&s->arena);
    CD_TRY(cd_record_read(&s->arena, l->text, l->len, &r, err));
    o->measured_s = measured(&s->arena, &r);
    o->task = cd_tasks_find(s->tasks, r.workload_key);
    if (!o->task)
        return cd_err_key(err, CD_FAIL(err, ENOTASK, "no task file defines %.*s", r.workload_key.n > 150 ? 150 : (int)r.workload_key.n,
                                       r.workload_key.p), "i[0][0]");
    CD_TRY(find_device(s, r.target, l->source, &o->device, err));
    CD_TRY(cd_program_build(s->program, o->task, &r, &rows, err));
    if (!rows.n_row) return CD_FAIL(err, EINVALID, "the program stores nothing");
    return cd_gather_add(s->gather, &rows, o->device, cd_task_flop(o->task), err);
}

cdmpp_status cd_scorer_run(cd_scorer *s, const cd_line *line, size_t n, cd_scored *out, cdmpp_err *err) {
    CD_TRY(room_for_lines(s, n, err));
    s->n = 0;
    cd_gather_clear(s->gather);
    for (size_t i = 0; i < n; i++) {
        cd_scored *o = &out[i];
        *o = (cd_scored){.measured_s = (double)NAN};
        o->st = gather(s, &line[i], o, &o->err);
        if (o->st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "%s", o->err.msg);
        if (o->st) cd_err_add_place(&o->err, line[i].source, line[i].number);
        else s->line[s->n++] = i;
    }
    const cd_view v = cd_gather_view(s->gather);
    CD_TRY(cd_model_predict(s->m, s->scratch, &v, NULL, s->n, s->pred, err));
    for (size_t k = 0; k < s->n; k++) out[s->line[k]].pred = s->pred[k];
    return CDMPP_OK;
}
