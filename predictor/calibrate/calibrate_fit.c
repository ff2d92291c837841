/* The log of records against the model: trees from four fifths of the tasks, the width of their intervals by tasks that the trees of a part had not
 * seen, and figures of the last fifth. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/split/split.h"
#include "predictor/calibrate/calibrate_internal.h"

enum { LINES = 64, FOLDS = CD_CALIBRATE_HELD - 1, SEED = 1, SHARES = 10 };
static const double narrowest = 0.25, widest = 10; /* of the factor of intervals: what few programs can say */

typedef struct point {
    cd_record_id id;
    const char *key;            /* of the task */
    cd_model_prediction pred;   /* of the model alone */
    const float *x;             /* (width) what the trees of a correction see of it */
    double measured_log, again_log; /* NaN: measured once */
    double common, own;         /* ln: what trees without its part say of it: bias, and beyond */
    uint32_t part;              /* 0: held out; 1 to FOLDS */
} point;

typedef struct fit {
    const cd_calibrate_fit_options *o;
    cd_calibrate_result *out;
    cd_arena text, record, kept; /* lines of a batch; one record; x of all programs */
    cd_scorer *scorer;
    cd_predict_line line[LINES];
    size_t n_line;
    cd_scored *scored;          /* (LINES) */
    float *seen;                /* (LINES, width) of these */
    size_t width;
    uint64_t *task;             /* (n_task) numbers of the names of all tasks, rising */
    size_t n_task;
    point *v;                   /* (n) */
    size_t n, cap;
    double *work;               /* (n) */
} fit;

/* ---- which part a task is in ---- */
static cdmpp_status sort_tasks(fit *f, size_t n, const char *(*name)(const fit *f, size_t i), cdmpp_err *err) {
    cd_mem_free(f->task);
    if (!(f->task = cd_mem_zalloc(n + 1, sizeof *f->task))) return CD_FAIL(err, ENOMEM, "%zu tasks", n);
    for (size_t i = 0; i < n; i++) f->task[i] = cd_stable_id_name(name(f, i));
    if (n) qsort(f->task, n, sizeof *f->task, cd_sort_by_u64);
    f->n_task = 0;
    for (size_t i = 0; i < n; i++)
        if (!i || f->task[i] != f->task[i - 1]) f->task[f->n_task++] = f->task[i];
    return CDMPP_OK;
}

static const char *defined(const fit *f, size_t i) { return cd_task_registry_at(f->o->tasks, i)->workload_key; }
static const char *logged(const fit *f, size_t i) { return f->v[i].key; }

/* A log that grows: of all tasks that there are, also those without a program yet, so that what is held out stays held out. A log that is given: of its own
 * tasks; the files may define many more. Whole tasks, where there are enough of them; else programs. */
static uint32_t part_of(const fit *f, const char *key, cd_record_id id) {
    const uint64_t number = cd_stable_id_name(key);
    size_t rank = 0;
    if (f->n_task < 2 * CD_CALIBRATE_HELD) return (uint32_t)(id.a % CD_CALIBRATE_HELD);
    while (rank < f->n_task && f->task[rank] < number) rank++;
    return (uint32_t)(rank % CD_CALIBRATE_HELD);
}

/* ---- the log ---- */
/* What runs beside a program makes it slower, never faster. So of times that lie further apart than a quiet machine's, the least counts. */
static const double apart = 1.5;

/* Of the repeats of a record, whose mean is mean_s. */
static double quiet_s(const cd_record *r, double mean_s) {
    double least = mean_s, most = mean_s;
    for (size_t i = 0; i < r->n_cost; i++) {
        least = r->cost_s[i] > 0 ? fmin(least, r->cost_s[i]) : least;
        most = fmax(most, r->cost_s[i]);
    }
    return most > apart * least ? least : mean_s;
}

/* A second time of a program tells the noise, and both together its time. */
static cdmpp_status enter(fit *f, const cd_predict_line *l, const cd_scored *s, const float *seen, cdmpp_err *err) {
    cd_record r;
    cd_record_id id;
    cd_arena_reset(&f->record);
    CD_TRY(cd_record_read(&f->record, l->text, l->len, &r, err));
    CD_TRY(cd_record_id_of(&r, &id, err));
    CD_TRY(cd_calibrate_note_marks(f->o->model, s, &r, &f->record, &f->out->marks, err));
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].id.a == id.a && f->v[i].id.b == id.b) {
            if (isnan(f->v[i].again_log)) f->v[i].again_log = log(quiet_s(&r, s->measured_s));
            return CDMPP_OK;
        }
    float *x = CD_NEWN(&f->kept, float, f->width);
    if (!x || CD_GROW(f->v, f->n, f->cap)) return CD_FAIL(err, ENOMEM, "%zu programs", f->n);
    point *p = &f->v[f->n++];
    *p = (point){.id = id, .key = s->key, .pred = s->pred, .x = x, .measured_log = log(quiet_s(&r, s->measured_s)), .again_log = (double)NAN, .part = part_of(f, s->key, id)};
    memcpy(x, seen, f->width * sizeof *x);
    return CDMPP_OK;
}

static void see(void *ctx, const cd_scored *o, const cd_program_view *v, size_t p) {
    const fit *f = ctx;
    cd_here_see(f->o->model, v, p, &o->pred, f->seen + (size_t)(o - f->scored) * f->width);
}

static cdmpp_status score(fit *f, cdmpp_err *err) {
    CD_TRY(cd_scorer_run(f->scorer, f->line, f->n_line, f->scored, err));
    for (size_t i = 0; i < f->n_line; i++) {
        const cd_scored *s = &f->scored[i];
        const bool usable = !s->st && s->measured_s > 0;
        f->out->failed += !usable;
        if (usable) CD_TRY(enter(f, &f->line[i], s, f->seen + i * f->width, err));
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

/* ---- the correction ---- */
static double time_of(const point *p) {
    if (isnan(p->again_log)) return exp(p->measured_log);
    const bool quiet = fabs(p->again_log - p->measured_log) <= log(apart);
    return exp(quiet ? (p->measured_log + p->again_log) / 2 : fmin(p->measured_log, p->again_log));
}

static double off(const point *p) { return log(time_of(p) / p->pred.median_s); }

/* By all programs, or by those that are neither held out nor in part `skip` (0: none but the held out). */
enum { EVERY = CD_CALIBRATE_HELD };
static cdmpp_status learn(const fit *f, uint32_t skip, cd_here_trees *out, cdmpp_err *err) {
    float *x = cd_mem_zalloc(f->n + 1, f->width * sizeof *x);
    double *y = cd_mem_zalloc(f->n + 1, sizeof *y);
    size_t n = 0;
    cdmpp_status st = x && y ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", f->n);
    for (size_t i = 0; !st && i < f->n; i++) {
        const point *p = &f->v[i];
        if (skip != EVERY && (!p->part || p->part == skip)) continue;
        memcpy(x + n * f->width, p->x, f->width * sizeof *x);
        y[n++] = off(p);
    }
    if (!st) st = cd_here_fit(x, y, n, f->width, SEED, out, err);
    cd_mem_free(x);
    cd_mem_free(y);
    return st;
}

static cdmpp_status corrected(const fit *f, const point *p, const cd_here_trees *t, cd_model_prediction *out, cdmpp_err *err) {
    double by;
    *out = p->pred;
    CD_TRY(cd_here_off(t, p->x, f->width, &by, err));
    cd_here_move(by, f->out->widen, f->out->most, out);
    return CDMPP_OK;
}

/* Programs of a part by trees without it. */
static cdmpp_status cross(fit *f, uint32_t part, cdmpp_err *err) {
    cd_here_trees t = {0};
    CD_TRY(learn(f, part, &t, err));
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; !st && i < f->n; i++) {
        point *p = &f->v[i];
        if (p->part != part) continue;
        st = cd_here_off(&t, p->x, f->width, &p->own, err);
        p->common = t.bias;
        p->own -= t.bias;
    }
    cd_xgb_free(t.gbt);
    return st;
}

/* Of few programs trees learn accidents: the share of their answer that leaves the least |ln| is believed. */
static void choose_share(const fit *f, size_t all) {
    cd_calibrate_result *r = f->out;
    r->crossed = (double)INFINITY;
    for (int k = 0; k <= SHARES; k++) {
        const double share = (double)k / SHARES;
        double sum = 0;
        for (size_t i = 0; i < f->n; i++)
            if (f->v[i].part) sum += fabs(f->v[i].common + share * f->v[i].own - off(&f->v[i])) / (double)all;
        if (!(sum < r->crossed)) continue;
        r->crossed = sum;
        r->share = share;
    }
}

static double corrected_log(const fit *f, const point *p) { return log(p->pred.median_s) + p->common + f->out->share * p->own; }

/* Is it what a replay would choose of the programs of its task: the one that is predicted fastest by trees without its part? Of equal ones the first. */
static bool chosen(const fit *f, size_t i) {
    const double own = corrected_log(f, &f->v[i]);
    for (size_t k = 0; k < f->n; k++) {
        if (strcmp(f->v[k].key, f->v[i].key) != 0) continue;
        const double other = corrected_log(f, &f->v[k]);
        if (other < own || (other == own && k < i)) return false;
    }
    return true;
}

/* Networks are made of chosen programs, and their times are added up. Trees that learn from some hundred programs move fast ones too little, and who chooses is flattered: both
 * together are measured here. */
static double picks_of(const fit *f) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].part && chosen(f, i)) f->work[n++] = time_of(&f->v[i]) / exp(corrected_log(f, &f->v[i]));
    return cd_here_picks(f->work, n);
}

/* How far off a program's answer by trees without its part is, and by how much its interval is too narrow. */
static double how_far(const cd_calibrate_result *r, const cd_model_prediction *p, double measured_s) {
    (void)r;
    return fabs(log(measured_s / p->median_s));
}
static double how_beyond(const cd_calibrate_result *r, const cd_model_prediction *p, double measured_s) { return cd_here_beyond(p, r->most, measured_s); }

/* The k-th smallest of the programs that are not held out. */
static double ranked(const fit *f, size_t all, size_t k, double (*what)(const cd_calibrate_result *r, const cd_model_prediction *p, double measured_s)) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        cd_model_prediction p = f->v[i].pred;
        if (!f->v[i].part) continue;
        cd_here_move(f->v[i].common + f->out->share * f->v[i].own, 1, (double)INFINITY, &p);
        f->work[n++] = what(f->out, &p, time_of(&f->v[i]));
    }
    cd_sort_doubles(f->work, all);
    return f->work[(k < all ? k : all) - 1];
}

/* What is held out decides nothing here. So far from the median as `most` lie nine in ten programs, whatever the model knows of them; what it knows makes an interval narrower than that, or it is wide
 * by itself: then a factor would only make it wider. Split conformal: the width is the factor that holds CD_CALIBRATE_LEVEL of programs of tasks that the trees had not
 * seen, one more counted as outside. */
static cdmpp_status choose(fit *f, cdmpp_err *err) {
    cd_calibrate_result *r = f->out;
    const size_t all = r->programs - r->held, k = (size_t)ceil((double)(all + 1) * CD_CALIBRATE_LEVEL);
    for (uint32_t part = 1; part <= FOLDS; part++) CD_TRY(cross(f, part, err));
    choose_share(f, all);
    r->picks = picks_of(f);
    r->alone = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].part) r->alone += fabs(off(&f->v[i])) / (double)all;
    r->most = ranked(f, all, k, how_far);
    r->widen = fmin(fmax(ranked(f, all, k, how_beyond), narrowest), widest);
    return CDMPP_OK;
}

/* ---- figures ---- */
static double middle(double *v, size_t n) {
    if (!n) return (double)NAN;
    cd_sort_doubles(v, n);
    return cd_sort_median(v, n);
}

/* Of the held out programs; t NULL: by the model alone. */
static cdmpp_status figures(fit *f, const cd_here_trees *t, cd_calibrate_figures *to, cdmpp_err *err) {
    cd_calibrate_figures out = {0};
    double sum = 0, logs = 0, inside = 0;
    for (size_t i = 0; i < f->n; i++) {
        cd_model_prediction p = f->v[i].pred;
        if (f->v[i].part) continue;
        if (t) CD_TRY(corrected(f, &f->v[i], t, &p, err));
        const double y = time_of(&f->v[i]);
        f->work[out.n++] = fabs(p.latency_s / y - 1);
        sum += fabs(p.latency_s / y - 1);
        logs += fabs(log(p.median_s / y));
        inside += p.low_s <= y && y <= p.high_s;
    }
    out.mape = sum / (double)out.n;
    out.mean_log = logs / (double)out.n;
    out.inside = inside / (double)out.n;
    out.median = middle(f->work, out.n);
    *to = out;
    return CDMPP_OK;
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
    if (!(f->work = cd_mem_zalloc(f->n + 1, sizeof *f->work))) return CD_FAIL(err, ENOMEM, "%zu programs", f->n);
    count(f);
    if (r->programs - r->held < CD_CALIBRATE_LEAST || r->held < CD_CALIBRATE_PAIRS)
        return CD_FAIL(err, ENODATA, "%zu programs are measured, %zu of them held out: a correction needs %d and %d held out; %s",
                       r->programs, r->held, CD_CALIBRATE_LEAST, CD_CALIBRATE_PAIRS, f->o->given ? "more records of more tasks are needed" : "the same command with more time goes on from the log");
    cd_here_trees t = {0};
    CD_TRY(figures(f, NULL, &r->before, err));
    CD_TRY(choose(f, err));
    CD_TRY(learn(f, 0, &t, err));
    t.share = r->share;
    cdmpp_status st = figures(f, &t, &r->after, err);
    cd_xgb_free(t.gbt);
    if (!st) st = learn(f, EVERY, &r->trees, err);
    r->trees.share = r->share;
    return st;
}

cdmpp_status cd_calibrate_fit(const cd_calibrate_fit_options *o, cd_calibrate_result *out, cdmpp_err *err) {
    *out = (cd_calibrate_result){.noise = (double)NAN, .widen = 1, .most = (double)INFINITY};
    fit *f = cd_mem_zalloc(1, sizeof *f);
    if (!f) return CD_FAIL(err, ENOMEM, "fit");
    f->o = o;
    f->out = out;
    f->width = cd_here_width(o->model);
    f->scored = cd_mem_zalloc(LINES, sizeof *f->scored);
    f->seen = cd_mem_zalloc(LINES, f->width * sizeof *f->seen);
    const cd_scorer_options so = {.which = {.device = o->device}, .traits = true, .tap = {see, f}, .numbers = o->numbers};
    cdmpp_status st = f->scored && f->seen ? CDMPP_OK : CD_FAIL(err, ENOMEM, "fit");
    if (!st) st = sort_tasks(f, cd_task_registry_count(o->tasks), defined, err);
    if (!st) st = cd_scorer_new(o->model, o->tasks, &so, &f->scorer, err);
    if (!st) st = read_log(f, err);
    if (!st && o->given) st = sort_tasks(f, f->n, logged, err);
    for (size_t i = 0; !st && o->given && i < f->n; i++) f->v[i].part = part_of(f, f->v[i].key, f->v[i].id);
    if (!st) st = correct(f, err);
    cd_scorer_free(f->scorer);
    cd_arena_free(&f->text);
    cd_arena_free(&f->record);
    cd_arena_free(&f->kept);
    cd_mem_free(f->scored);
    cd_mem_free(f->seen);
    cd_mem_free(f->task);
    cd_mem_free(f->v);
    cd_mem_free(f->work);
    cd_mem_free(f);
    return st;
}

void cd_calibrate_result_free(cd_calibrate_result *r) {
    cd_buf_free(&r->marks);
    cd_xgb_free(r->trees.gbt);
    r->trees.gbt = NULL;
}
