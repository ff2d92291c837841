/* The log of records against the model: a correction by four fifths of the tasks, the width of its intervals by tasks that a part of the correction had not
 * seen, and figures of the last fifth. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/split/split.h"
#include "predictor/calibrate/calibrate.h"

enum { LINES = 64, FOLDS = CD_CALIBRATE_HELD - 1 };
static const double narrowest = 0.25, widest = 10; /* of the factor of intervals: what few programs can say */

typedef struct point {
    cd_record_id id;
    const char *key;            /* of the task */
    cd_model_prediction pred;   /* of the model alone */
    float trait[CD_N_TRAIT];
    double measured_log, again_log; /* NaN: measured once */
    uint32_t part;              /* 0: held out; 1 to FOLDS */
} point;

typedef struct fit {
    const cd_calibrate_fit_options *o;
    cd_calibrate_result *out;
    cd_arena text, record;      /* lines of a batch; one record */
    cd_scorer *scorer;
    cd_predict_line line[LINES];
    size_t n_line;
    cd_scored *scored;          /* (LINES) */
    uint64_t *task;             /* (n_task) numbers of the names of all tasks, rising */
    size_t n_task;
    point *v;                   /* (n) */
    size_t n, cap;
    double *work;               /* (2 n) */
} fit;

/* ---- which part a task is in ---- */
/* All tasks that there are, also those without a program yet: what is held out stays held out when the log grows. */
static cdmpp_status list_tasks(fit *f, cdmpp_err *err) {
    const size_t n = cd_task_registry_count(f->o->tasks);
    if (!(f->task = cd_mem_zalloc(n + 1, sizeof *f->task))) return CD_FAIL(err, ENOMEM, "%zu tasks", n);
    for (size_t i = 0; i < n; i++) f->task[f->n_task++] = cd_stable_id_name(cd_task_registry_at(f->o->tasks, i)->workload_key);
    if (n) qsort(f->task, n, sizeof *f->task, cd_sort_by_u64);
    return CDMPP_OK;
}

/* Whole tasks, where there are enough of them; else programs. */
static uint32_t part_of(const fit *f, const char *key, cd_record_id id) {
    const uint64_t number = cd_stable_id_name(key);
    size_t rank = 0;
    if (f->n_task < 2 * CD_CALIBRATE_HELD) return (uint32_t)(id.a % CD_CALIBRATE_HELD);
    while (rank < f->n_task && f->task[rank] < number) rank++;
    return (uint32_t)(rank % CD_CALIBRATE_HELD);
}

/* ---- the log ---- */
/* A second time of a program tells the noise, and both together its time. */
static cdmpp_status enter(fit *f, const cd_predict_line *l, const cd_scored *s, cdmpp_err *err) {
    cd_record r;
    cd_record_id id;
    cd_arena_reset(&f->record);
    CD_TRY(cd_record_read(&f->record, l->text, l->len, &r, err));
    CD_TRY(cd_record_id_of(&r, &id, err));
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].id.a == id.a && f->v[i].id.b == id.b) {
            if (isnan(f->v[i].again_log)) f->v[i].again_log = log(s->measured_s);
            return CDMPP_OK;
        }
    if (CD_GROW(f->v, f->n, f->cap)) return CD_FAIL(err, ENOMEM, "%zu programs", f->n);
    point *p = &f->v[f->n++];
    *p = (point){.id = id, .key = s->key, .pred = s->pred, .measured_log = log(s->measured_s), .again_log = (double)NAN, .part = part_of(f, s->key, id)};
    memcpy(p->trait, s->trait, sizeof p->trait);
    return CDMPP_OK;
}

static cdmpp_status score(fit *f, cdmpp_err *err) {
    CD_TRY(cd_scorer_run(f->scorer, f->line, f->n_line, f->scored, err));
    for (size_t i = 0; i < f->n_line; i++) {
        const cd_scored *s = &f->scored[i];
        const bool usable = !s->st && s->measured_s > 0;
        f->out->failed += !usable;
        if (usable) CD_TRY(enter(f, &f->line[i], s, err));
        else if (s->st) CD_TRY(cd_record_listener_bad(f->o->listener, &s->err, err));
    }
    cd_arena_reset(&f->text);
    f->n_line = 0;
    return CDMPP_OK;
}

static cdmpp_status read_one(fit *f, const cd_recline *l, cdmpp_err *err) {
    const char *text = cd_str_dup(&f->text, (cd_str){l->text, l->len});
    if (!text) return CD_FAIL(err, ENOMEM, "lines");
    f->line[f->n_line++] = (cd_predict_line){text, l->len, f->o->log, l->number};
    return f->n_line == LINES ? score(f, err) : CDMPP_OK;
}

static cdmpp_status read_log(fit *f, cdmpp_err *err) {
    cd_record_reader *file;
    CD_TRY(cd_record_reader_open(&f->o->log, 1, &file, err));
    cdmpp_status st = CDMPP_OK;
    for (bool more = true; !st && more;) {
        cdmpp_err why = {0};
        cd_recline l = {0};
        st = cd_record_reader_next(file, &l, &why);
        more = st || l.text;
        if (st) st = cd_record_listener_bad(f->o->listener, &why, err);
        else if (more) st = read_one(f, &l, err);
    }
    if (!st && f->n_line) st = score(f, err);
    cd_record_reader_close(file);
    return st;
}

/* ---- the correction ---- */
static double time_of(const point *p) { return exp(isnan(p->again_log) ? p->measured_log : (p->measured_log + p->again_log) / 2); }

/* By all programs that are neither held out nor in part `skip` (0: none but the held out). `unknown`: the machine counts as one that the model does not know,
 * whose like programs are off alike whatever their task. */
static cdmpp_status adapt_to(const fit *f, uint32_t skip, bool unknown, cd_online_adapt **out, cdmpp_err *err) {
    CD_TRY(cd_online_adapt_new(out, err));
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; !st && i < f->n; i++) {
        const point *p = &f->v[i];
        const cd_online_adapt_item item = cd_online_adapt_item_of(&p->pred, unknown, p->trait, time_of(p));
        if (p->part && p->part != skip) st = cd_online_adapt_add(*out, CD_HERE_ADAPTED, unknown, p->key, &item, err);
    }
    if (!st) st = cd_online_adapt_fit(*out, err);
    if (st) {
        cd_online_adapt_free(*out);
        *out = NULL;
    }
    return st;
}

static cd_model_prediction corrected(const point *p, cd_online_adapt *a, double widen) {
    const cd_here h = {.widen = widen, .adapt = a};
    cd_model_prediction out = p->pred;
    (void)cd_here_apply(&h, 0, p->key, p->trait, &out);
    return out;
}

/* Programs of each part by a correction without that part: their mean |ln|, and how far beyond the ends of the intervals they are, beyond (number of programs
 * that are not held out). */
static cdmpp_status cross(const fit *f, bool unknown, double *mean_log, double *beyond, cdmpp_err *err) {
    size_t n = 0;
    double sum = 0;
    for (uint32_t part = 1; part <= FOLDS; part++) {
        cd_online_adapt *a;
        CD_TRY(adapt_to(f, part, unknown, &a, err));
        for (size_t i = 0; i < f->n; i++) {
            if (f->v[i].part != part) continue;
            const cd_model_prediction p = corrected(&f->v[i], a, 1);
            beyond[n++] = cd_here_beyond(&p, time_of(&f->v[i]));
            sum += fabs(log(p.latency_s / time_of(&f->v[i])));
        }
        cd_online_adapt_free(a);
    }
    *mean_log = sum / (double)n;
    return CDMPP_OK;
}

/* Whether the machine is one that the model knows is decided by these, not by the name of its processor, and not by what is held out. Split conformal: the
 * width is the factor that holds CD_CALIBRATE_LEVEL of programs of tasks that the correction had not seen, one more counted as outside. */
static cdmpp_status choose(fit *f, cdmpp_err *err) {
    cd_calibrate_result *r = f->out;
    const size_t n = r->programs - r->held, k = (size_t)ceil((double)(n + 1) * CD_CALIBRATE_LEVEL);
    double mean[2], *beyond[2] = {f->work, f->work + n};
    for (int unknown = 0; unknown < 2; unknown++) CD_TRY(cross(f, unknown != 0, &mean[unknown], beyond[unknown], err));
    r->unknown = mean[1] < mean[0];
    r->crossed = mean[r->unknown];
    r->alone = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].part) r->alone += fabs(log(f->v[i].pred.latency_s / time_of(&f->v[i]))) / (double)n;
    cd_sort_doubles(beyond[r->unknown], n);
    r->widen = fmin(fmax(beyond[r->unknown][(k < n ? k : n) - 1], narrowest), widest);
    return CDMPP_OK;
}

/* ---- figures ---- */
static double middle(double *v, size_t n) {
    if (!n) return (double)NAN;
    cd_sort_doubles(v, n);
    return cd_sort_median(v, n);
}

/* Of the held out programs; a NULL: by the model alone. */
static cd_calibrate_figures figures(fit *f, cd_online_adapt *a) {
    cd_calibrate_figures out = {0};
    double sum = 0, logs = 0, inside = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (f->v[i].part) continue;
        const cd_model_prediction p = a ? corrected(&f->v[i], a, f->out->widen) : f->v[i].pred;
        const double y = time_of(&f->v[i]);
        f->work[out.n++] = fabs(p.latency_s / y - 1);
        sum += fabs(p.latency_s / y - 1);
        logs += fabs(log(p.latency_s / y));
        inside += p.low_s <= y && y <= p.high_s;
    }
    out.mape = sum / (double)out.n;
    out.mean_log = logs / (double)out.n;
    out.inside = inside / (double)out.n;
    out.median = middle(f->work, out.n);
    return out;
}

static void count(fit *f) {
    cd_calibrate_result *r = f->out;
    r->programs = f->n;
    for (size_t i = 0; i < f->n; i++) {
        bool first = true;
        for (size_t k = 0; k < i && first; k++) first = strcmp(f->v[k].key, f->v[i].key) != 0;
        r->tasks += first;
        r->held += !f->v[i].part;
        if (!isnan(f->v[i].again_log)) f->work[r->pairs++] = fabs(f->v[i].again_log - f->v[i].measured_log);
    }
    r->noise = r->pairs < CD_CALIBRATE_PAIRS ? (double)NAN : middle(f->work, r->pairs);
}

static cdmpp_status correct(fit *f, cdmpp_err *err) {
    cd_calibrate_result *r = f->out;
    if (!(f->work = cd_mem_zalloc(2 * f->n + 1, sizeof *f->work))) return CD_FAIL(err, ENOMEM, "%zu programs", f->n);
    count(f);
    if (r->programs - r->held < CD_CALIBRATE_LEAST || r->held < CD_CALIBRATE_PAIRS)
        return CD_FAIL(err, ENODATA, "%zu programs are measured, %zu of them held out: a correction needs %d and %d held out; the same command with more time goes on from the log",
                       r->programs, r->held, CD_CALIBRATE_LEAST, CD_CALIBRATE_PAIRS);
    r->before = figures(f, NULL);
    CD_TRY(choose(f, err));
    CD_TRY(adapt_to(f, 0, r->unknown, &r->adapt, err));
    r->after = figures(f, r->adapt);
    return CDMPP_OK;
}

cdmpp_status cd_calibrate_fit(const cd_calibrate_fit_options *o, cd_calibrate_result *out, cdmpp_err *err) {
    const cd_scorer_options so = {.which = {.device = o->device}, .traits = true};
    *out = (cd_calibrate_result){.noise = (double)NAN, .widen = 1};
    fit *f = cd_mem_zalloc(1, sizeof *f);
    if (!f) return CD_FAIL(err, ENOMEM, "fit");
    f->o = o;
    f->out = out;
    f->scored = cd_mem_zalloc(LINES, sizeof *f->scored);
    cdmpp_status st = f->scored ? CDMPP_OK : CD_FAIL(err, ENOMEM, "fit");
    if (!st) st = list_tasks(f, err);
    if (!st) st = cd_scorer_new(o->model, o->tasks, &so, &f->scorer, err);
    if (!st) st = read_log(f, err);
    if (!st) st = correct(f, err);
    cd_scorer_free(f->scorer);
    cd_arena_free(&f->text);
    cd_arena_free(&f->record);
    cd_mem_free(f->scored);
    cd_mem_free(f->task);
    cd_mem_free(f->v);
    cd_mem_free(f->work);
    cd_mem_free(f);
    return st;
}

void cd_calibrate_result_free(cd_calibrate_result *r) {
    cd_online_adapt_free(r->adapt);
    r->adapt = NULL;
}
