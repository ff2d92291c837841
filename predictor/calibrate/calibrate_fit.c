/* The log of records as programs with their times, and which part each is in. What is learned from
 * them: calibrate_cross.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/split/split.h"
#include "predictor/calibrate/calibrate_internal.h"

enum { LINES = 64 };

typedef struct fit {
    const cd_calibrate_fit_options *o;
    cd_calibrate_result *out;
    /* lines of a batch; one record; x and signatures of all programs */
    cd_arena text, record, kept;
    cd_scorer *scorer;
    cd_predict_line line[LINES];
    size_t n_line;
    cd_scored *scored;          /* (LINES) */
    cd_model_prediction *alone; /* (LINES) of these, of the members alone */
    float *seen;                /* (LINES, width) of these */
    uint64_t *task;             /* (n_task) numbers of the names of all tasks, rising */
    size_t n_task;
    cd_calibrate_points all;
} fit;

/* ---- which part a task is in ---- */
static cdmpp_status sort_tasks(fit *f, size_t n, const char *(*name)(const fit *f, size_t i),
                               cdmpp_err *err) {
    cd_mem_free(f->task);
    if (!(f->task = cd_mem_zalloc(n + 1, sizeof *f->task)))
        return CD_FAIL(err, ENOMEM, "%zu tasks", n);
    for (size_t i = 0; i < n; i++) f->task[i] = cd_stable_id_name(name(f, i));
    if (n) qsort(f->task, n, sizeof *f->task, cd_sort_by_u64);
    f->n_task = 0;
    for (size_t i = 0; i < n; i++)
        if (!i || f->task[i] != f->task[i - 1]) f->task[f->n_task++] = f->task[i];
    return CDMPP_OK;
}

static const char *defined(const fit *f, size_t i) {
    return cd_task_registry_at(f->o->tasks, i)->workload_key;
}
static const char *logged(const fit *f, size_t i) { return f->all.v[i].key; }

/* A log that grows: of all tasks that there are, also those without a program yet, so that a task
 * stays in its part. A log that is given: of its own tasks; the files may define many more. Whole
 * tasks, where there are enough of them; else programs. */
static uint32_t part_of(const fit *f, const char *key, cd_record_id id) {
    const uint64_t number = cd_stable_id_name(key);
    size_t rank = 0;
    if (f->n_task < 2 * CD_CALIBRATE_PARTS) return (uint32_t)(id.a % CD_CALIBRATE_PARTS);
    while (rank < f->n_task && f->task[rank] < number) rank++;
    return (uint32_t)(rank % CD_CALIBRATE_PARTS);
}

/* ---- the log ---- */
/* What runs beside a program makes it slower, never faster. So of times that lie further apart than
 * a quiet machine's, the least counts. Of the repeats of a record, whose mean is mean_s. */
static double quiet_s(const cd_record *r, double mean_s) {
    double least = mean_s, most = mean_s;
    for (size_t i = 0; i < r->n_cost; i++) {
        least = r->cost_s[i] > 0 ? fmin(least, r->cost_s[i]) : least;
        most = fmax(most, r->cost_s[i]);
    }
    return most > CD_CALIBRATE_APART * least ? least : mean_s;
}

/* A second time of a program tells the noise, and both together its time. False: there is none of
 * this program yet. */
static bool enter_again(fit *f, cd_record_id id, double seconds) {
    for (size_t i = 0; i < f->all.n; i++) {
        cd_calibrate_point *p = &f->all.v[i];
        if (p->id.a != id.a || p->id.b != id.b) continue;
        if (isnan(p->again_log)) p->again_log = log(seconds);
        return true;
    }
    return false;
}

static cdmpp_status enter(fit *f, size_t line, cdmpp_err *err) {
    const cd_predict_line *l = &f->line[line];
    const cd_scored *s = &f->scored[line];
    cd_calibrate_points *all = &f->all;
    cd_record r;
    cd_record_id id;
    cd_signature is;
    cd_arena_reset(&f->record);
    CD_TRY(cd_record_read(&f->record, l->text, l->len, &r, err));
    CD_TRY(cd_record_id_of(&r, &id, err));
    if (enter_again(f, id, quiet_s(&r, s->measured_s))) return CDMPP_OK;
    CD_TRY(cd_calibrate_signature(f->o->model, s, &r, &f->kept, &is, err));
    float *x = CD_NEWN(&f->kept, float, all->width);
    if (!x || CD_GROW(all->v, all->n, all->cap))
        return CD_FAIL(err, ENOMEM, "%zu programs", all->n);
    all->v[all->n++] = (cd_calibrate_point){.id = id,
                                            .key = s->key,
                                            .pred = f->alone[line],
                                            .compared = s->task && s->task->dag,
                                            .before = s->unlike.reason & ~(uint32_t)CD_UNLIKE_RANGE,
                                            .is = is,
                                            .x = x,
                                            .measured_log = log(quiet_s(&r, s->measured_s)),
                                            .again_log = (double)NAN,
                                            .part = part_of(f, s->key, id)};
    memcpy(x, f->seen + line * all->width, all->width * sizeof *x);
    return CDMPP_OK;
}

static void see(void *ctx, const cd_scored *o, const cd_program_view *v, size_t p) {
    const fit *f = ctx;
    f->alone[o - f->scored] = o->pred;
    cd_here_see(f->o->model, v, p, &o->pred, f->seen + (size_t)(o - f->scored) * f->all.width);
}

static cdmpp_status score(fit *f, cdmpp_err *err) {
    CD_TRY(cd_scorer_run(f->scorer, f->line, f->n_line, f->scored, err));
    for (size_t i = 0; i < f->n_line; i++) {
        const cd_scored *s = &f->scored[i];
        const bool usable = !s->st && s->measured_s > 0;
        f->out->failed += !usable;
        if (usable) CD_TRY(enter(f, i, err));
        else if (s->st) CD_TRY(cd_record_listener_bad(f->o->listener, &s->err, err));
    }
    cd_arena_reset(&f->text);
    f->n_line = 0;
    return CDMPP_OK;
}

static cdmpp_status read_one(fit *f, const cd_recline *l, cdmpp_err *err) {
    const char *text = cd_str_dup(&f->text, (cd_str){l->text, l->len});
    if (!text) return CD_FAIL(err, ENOMEM, "lines");
    f->line[f->n_line++] = (cd_predict_line){text, l->len, l->path, l->number};
    return f->n_line == LINES ? score(f, err) : CDMPP_OK;
}

static cdmpp_status read_log(fit *f, cdmpp_err *err) {
    cd_record_reader *file;
    CD_TRY(cd_record_reader_open(f->o->log, f->o->n_log, &file, err));
    cdmpp_status st = CDMPP_OK;
    for (bool more = true; !st && more;) {
        cdmpp_err why = {0};
        cd_recline l = {0};
        st = cd_record_reader_next(file, &l, &why);
        more = st || l.text;
        f->out->failed += st != CDMPP_OK;
        if (st) st = cd_record_listener_bad(f->o->listener, &why, err);
        else if (more) st = read_one(f, &l, err);
    }
    if (!st && f->n_line) st = score(f, err);
    cd_record_reader_close(file);
    return st;
}

/* ---- all of it ---- */
static cdmpp_status learn(fit *f, cdmpp_err *err) {
    cd_calibrate_points *all = &f->all;
    if (f->o->given) CD_TRY(sort_tasks(f, all->n, logged, err));
    for (size_t i = 0; f->o->given && i < all->n; i++)
        all->v[i].part = part_of(f, all->v[i].key, all->v[i].id);
    const cdmpp_status st = cd_calibrate_cross(all, err);
    if (st == CDMPP_ENODATA)
        return CD_FAIL(err, ENODATA,
                       "%zu programs of %zu tasks are measured: a correction needs %d beside any "
                       "fifth of the tasks; %s",
                       f->out->programs, f->out->tasks, CD_CALIBRATE_LEAST,
                       f->o->given ? "more records of more tasks are needed"
                                   : "the same command with more time goes on from the log");
    return st;
}

static cdmpp_status begin(fit *f, cdmpp_err *err) {
    const cd_calibrate_fit_options *o = f->o;
    const int stands = cd_model_find_device(o->model, o->device, strlen(o->device)),
              known = o->name ? cd_model_find_device(o->model, o->name, strlen(o->name)) : -1;
    if (stands < 0) return CD_FAIL(err, EMODEL, "the model has no device '%.60s'", o->device);
    f->all = (cd_calibrate_points){.m = o->model,
                                   .width = cd_here_width(o->model),
                                   .stands = (uint32_t)stands,
                                   .machine = known < 0 ? (uint32_t)cd_model_n_device(o->model)
                                                        : (uint32_t)known,
                                   .out = f->out};
    f->scored = cd_mem_zalloc(LINES, sizeof *f->scored);
    f->alone = cd_mem_zalloc(LINES, sizeof *f->alone);
    f->seen = cd_mem_zalloc(LINES, f->all.width * sizeof *f->seen);
    if (!f->scored || !f->alone || !f->seen) return CD_FAIL(err, ENOMEM, "fit");
    const cd_scorer_options so = {
        .which = {.device = o->device}, .traits = true, .tap = {see, f}, .numbers = o->numbers};
    CD_TRY(sort_tasks(f, cd_task_registry_count(o->tasks), defined, err));
    return cd_scorer_new(o->model, o->tasks, &so, &f->scorer, err);
}

cdmpp_status cd_calibrate_fit(const cd_calibrate_fit_options *o, cd_calibrate_result *out,
                              cdmpp_err *err) {
    *out = (cd_calibrate_result){.noise = (double)NAN, .widen = 1, .most = (double)INFINITY};
    fit *f = cd_mem_zalloc(1, sizeof *f);
    if (!f) return CD_FAIL(err, ENOMEM, "fit");
    f->o = o;
    f->out = out;
    out->measured_noise = o->noise;
    cdmpp_status st = begin(f, err);
    if (!st) st = read_log(f, err);
    if (!st) st = learn(f, err);
    cd_scorer_free(f->scorer);
    cd_arena_free(&f->text);
    cd_arena_free(&f->record);
    cd_arena_free(&f->kept);
    cd_mem_free(f->scored);
    cd_mem_free(f->alone);
    cd_mem_free(f->seen);
    cd_mem_free(f->task);
    cd_mem_free(f->all.v);
    cd_mem_free(f->all.work);
    cd_mem_free(f);
    return st;
}

void cd_calibrate_result_free(cd_calibrate_result *r) {
    cd_buf_free(&r->marks);
    cd_xgb_free(r->trees.gbt);
    r->trees.gbt = NULL;
}
