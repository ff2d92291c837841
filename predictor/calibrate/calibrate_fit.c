/* The log of records as programs with their times, and which part each is in, and
 * what is learned from them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/split/split.h"
#include "predictor/calibrate/calibrate_internal.h"

/* The signature of a scored record in `kept`; n 0: the model does not say what it was trained on.
 * Errors: ENOMEM.
 *
 * What programs that were measured have, and the device of the model had not seen: threads of this
 * machine, its instructions. It counts as seen afterwards. */
static cdmpp_status calibrate_signature(const cd_model *m, const cd_scored *s, const cd_record *r,
                                        cd_arena *kept, cd_signature *out, cdmpp_err *err) {
    *out = (cd_signature){0};
    if (!cd_model_trained_on(m) || !s->task || !s->task->dag) return CDMPP_OK;
    return cd_signature_of(kept, s->task->dag, r->target,
                           r->has_hardware         ? &r->hardware
                           : s->task->has_hardware ? &s->task->hardware
                                                   : NULL,
                           out, err);
}

typedef struct marks {
    const char **v; /* (n) each once */
    size_t n, cap;
} marks;

static bool has(const marks *m, const char *mark) {
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->v[i], mark)) return true;
    return false;
}

/* Of the programs that are not in the part. */
static cdmpp_status collect(const cd_calibrate_points *p, uint32_t without, cd_arena *in,
                            marks *out, cdmpp_err *err) {
    const cd_trained_on *t = cd_model_trained_on(p->m);
    for (size_t i = 0; t && i < p->n; i++) {
        const cd_calibrate_point *x = &p->v[i];
        if (x->part == without) continue;
        for (size_t k = 0; k < x->is.n; k++) {
            if (!cd_trained_on_lacks(t, p->stands, x->is.mark[k]) || has(out, x->is.mark[k]))
                continue;
            if (CD_GROW_IN(in, out->v, out->n, out->cap)) return CD_FAIL(err, ENOMEM, "marks");
            out->v[out->n++] = x->is.mark[k];
        }
    }
    return CDMPP_OK;
}

static cdmpp_status mark_part(cd_calibrate_points *p, uint32_t part, cd_arena *in, cdmpp_err *err) {
    marks more = {0};
    cd_trained_on *t;
    CD_TRY(collect(p, part, in, &more, err));
    CD_TRY(cd_trained_on_more(in, cd_model_trained_on(p->m), p->machine, p->stands, more.v, more.n,
                              &t, err));
    for (size_t i = 0; i < p->n; i++) {
        cd_calibrate_point *x = &p->v[i];
        cd_unlike u = {0};
        if (x->part != part) continue;
        cd_trained_on_check(t, p->machine, false, &x->is, &u);
        x->reason = u.reason;
    }
    return CDMPP_OK;
}

/* `reason` of the programs of a part: what the model, and programs of the other parts, lack.
 * Errors: ENOMEM. */
static cdmpp_status calibrate_mark_part(cd_calibrate_points *p, uint32_t part, cdmpp_err *err) {
    cd_arena in = {0};
    const cdmpp_status st = cd_model_trained_on(p->m) ? mark_part(p, part, &in, err) : CDMPP_OK;
    cd_arena_free(&in);
    return st;
}

/* What all programs have and the device that stands for the machine lacks, as the text of a
 * signature. Errors: ENOMEM. */
static cdmpp_status calibrate_marks_of(const cd_calibrate_points *p, cd_buf *out, cdmpp_err *err) {
    cd_arena in = {0};
    marks all = {0};
    const cdmpp_status st = collect(p, CD_CALIBRATE_PARTS, &in, &all, err);
    for (size_t i = 0; !st && i < all.n; i++)
        cd_buf_putf(out, "%s%s", i ? CD_SIGNATURE_BETWEEN : "", all.v[i]);
    cd_arena_free(&in);
    if (!st && out->oom) return CD_FAIL(err, ENOMEM, "marks");
    return st;
}

/* What a log teaches, and how good that is on programs of which it has seen nothing: five parts of
 * whole tasks, each of them left out of everything once.
 *
 *   part o: its programs by trees and marks of the four others; how far these are believed and
 *           how wide the intervals are by the others' programs, each by trees without its own part
 *           ──> figures of the programs of o
 *   all:    the same by all five ──> what is written, with trees of all programs
 *
 * What the programs of o do to their own figures is what they teach the trees of other parts, by
 * which the width was found (cross-conformal prediction). */

enum { PARTS = CD_CALIBRATE_PARTS, NONE = PARTS, SEED = 1, SHARES = 10 };
/* of the factor of intervals: what few programs can say */
static const double narrowest = 0.25, widest = 10;

typedef cd_calibrate_point point;
typedef struct choice {
    uint32_t out; /* the part that has no say; NONE: all have */
    double share, picks, widen, most;
} choice;

/* Seconds: of two times that lie far apart the least, else the mean. */
static double calibrate_time_of(const point *p) {
    if (isnan(p->again_log)) return exp(p->measured_log);
    const bool quiet = fabs(p->again_log - p->measured_log) <= log(CD_CALIBRATE_APART);
    return exp(quiet ? (p->measured_log + p->again_log) / 2 : fmin(p->measured_log, p->again_log));
}

static double off(const point *p) { return log(calibrate_time_of(p) / p->pred.median_s); }

/* ---- trees without a part ---- */
/* By the programs that are not in the part. */
static cdmpp_status learn_cross(const cd_calibrate_points *f, uint32_t without, cd_here_trees *out,
                                cdmpp_err *err) {
    float *x = cd_mem_zalloc(f->n + 1, f->width * sizeof *x);
    double *y = cd_mem_zalloc(f->n + 1, sizeof *y);
    size_t n = 0;
    cdmpp_status st = x && y ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", f->n);
    for (size_t i = 0; !st && i < f->n; i++) {
        const point *p = &f->v[i];
        if (p->part == without) continue;
        memcpy(x + n * f->width, p->x, f->width * sizeof *x);
        y[n++] = off(p);
    }
    if (!st) st = cd_here_fit(x, y, n, f->width, SEED, out, err);
    cd_mem_free(x);
    cd_mem_free(y);
    return st;
}

/* The programs of a part by trees without it. */
static cdmpp_status cross(cd_calibrate_points *f, uint32_t part, cdmpp_err *err) {
    cd_here_trees t = {0};
    CD_TRY(calibrate_mark_part(f, part, err));
    CD_TRY(learn_cross(f, part, &t, err));
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

/* ---- what is chosen ---- */
static bool has_a_say(const point *p, uint32_t out) { return p->part != out; }
static double by_of(const point *p, const choice *c) { return p->common + c->share * p->own; }

/* The answer of the model that would be written, without marks. */
static cd_model_prediction moved(const point *p, const choice *c, double widen, double most,
                                 double noise) {
    cd_model_prediction out = p->pred;
    cd_here_move(by_of(p, c), widen, most, noise, &out);
    return out;
}

/* Of few programs trees learn accidents: the share of their answer that leaves the least |ln| is
 *   believed. */
static void choose_share(const cd_calibrate_points *f, choice *c) {
    double best = (double)INFINITY;
    choice at = *c;
    for (int k = 0; k <= SHARES; k++) {
        double sum = 0;
        at.share = (double)k / SHARES;
        for (size_t i = 0; i < f->n; i++)
            if (has_a_say(&f->v[i], c->out)) sum += fabs(by_of(&f->v[i], &at) - off(&f->v[i]));
        if (!(sum < best)) continue;
        best = sum;
        c->share = at.share;
    }
}

static double corrected_log(const point *p, const choice *c) {
    return log(p->pred.median_s) + by_of(p, c);
}

/* Is it what a replay would choose of the programs of its task: the one that is predicted fastest
 * by trees without its part? Of equal ones the first. */
static bool chosen(const cd_calibrate_points *f, const choice *c, size_t i) {
    const double own = corrected_log(&f->v[i], c);
    for (size_t k = 0; k < f->n; k++) {
        if (!has_a_say(&f->v[k], c->out) || strcmp(f->v[k].key, f->v[i].key) != 0) continue;
        const double other = corrected_log(&f->v[k], c);
        if (other < own || (other == own && k < i)) return false;
    }
    return true;
}

/* Networks are made of chosen programs, and their times are added up. Trees that learn from some
 * hundred programs move fast ones too little, and who chooses is flattered: both together are
 * measured here. */
static double picks_of(const cd_calibrate_points *f, const choice *c) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (has_a_say(&f->v[i], c->out) && chosen(f, c, i))
            f->work[n++] = calibrate_time_of(&f->v[i]) / exp(corrected_log(&f->v[i], c));
    return cd_here_picks(f->work, n);
}

/* ---- the width ---- */
/* The interval that a program has for being unlike alone; a point where it is like the others. NaN:
 * it has none. */
static cd_model_prediction floor_of(const cd_calibrate_points *f, const point *p, const choice *c) {
    cd_model_prediction out = moved(p, c, 1, (double)INFINITY, 0);
    out.low_s = out.high_s = out.latency_s;
    cd_model_mark_unlike(f->m, p->compared, p->reason, &out);
    return out;
}

/* How far off a program's answer is, and by how much its interval is too narrow; no interval, no
 * answer. */
static double how_far(const cd_calibrate_points *f, const point *p, const choice *c) {
    (void)f;
    return fabs(by_of(p, c) - off(p));
}
static double how_beyond(const cd_calibrate_points *f, const point *p, const choice *c) {
    const double y = calibrate_time_of(p);
    const cd_model_prediction least = floor_of(f, p, c), m = moved(p, c, 1, (double)INFINITY, 0);
    return least.low_s <= y && y <= least.high_s ? 0 : cd_here_beyond(&m, c->most, y);
}

/* Split conformal: the k-th smallest of n and one more, which is counted as above. */
double cd_calibrate_bound(double *v, size_t n) {
    const size_t k = (size_t)ceil((double)(n + 1) * CD_CALIBRATE_LEVEL);
    cd_sort_doubles(v, n);
    return n ? v[(k < n ? k : n) - 1] : 1;
}

/* Of programs of tasks that the trees had not seen. */
static double ranked(const cd_calibrate_points *f, const choice *c,
                     double (*what)(const cd_calibrate_points *f, const point *p,
                                    const choice *c)) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (has_a_say(&f->v[i], c->out) && !isnan(floor_of(f, &f->v[i], c).low_s))
            f->work[n++] = what(f, &f->v[i], c);
    return cd_calibrate_bound(f->work, n);
}

/* Times of a noisy machine make no interval narrower: what they say of the others may be chance. So
 * far from the median as `most` lie nine in ten programs, whatever the model knows of them; what it
 * knows makes an interval narrower than that, or it is wide by itself: then a factor would only
 * make it wider. */
static choice choose(const cd_calibrate_points *f, uint32_t out) {
    choice c = {.out = out, .share = 0};
    choose_share(f, &c);
    c.picks = picks_of(f, &c);
    c.most = ranked(f, &c, how_far);
    c.widen = fmin(fmax(ranked(f, &c, how_beyond),
                        f->out->measured_noise > CD_CALIBRATE_NOISE ? 1 : narrowest),
                   widest);
    return c;
}

/* ---- figures ---- */
typedef struct tally {
    cd_calibrate_figures sum;
    double *ape; /* (n) */
} tally;

static void count(tally *t, const cd_model_prediction *p, double y) {
    t->ape[t->sum.n++] = fabs(p->latency_s / y - 1);
    t->sum.mape += fabs(p->latency_s / y - 1);
    t->sum.mean_log += fabs(log(p->median_s / y));
    if (!isnan(p->low_s)) t->sum.ranged++;
    t->sum.inside += p->low_s <= y && y <= p->high_s;
}

static cd_calibrate_figures total(tally *t) {
    cd_calibrate_figures f = t->sum;
    f.mape /= (double)f.n;
    f.mean_log /= (double)f.n;
    f.inside = f.ranged ? f.inside / (double)f.ranged : (double)NAN;
    cd_sort_doubles(t->ape, f.n);
    f.median = cd_sort_median(t->ape, f.n);
    return f;
}

/* Each program by a correction of the other parts. */
static void figures(const cd_calibrate_points *f, cd_calibrate_figures *before,
                    cd_calibrate_figures *after) {
    tally was = {.ape = f->work};
    for (size_t i = 0; i < f->n; i++) {
        cd_model_prediction p = f->v[i].pred;
        cd_model_mark_unlike(f->m, f->v[i].compared, f->v[i].before, &p);
        count(&was, &p, calibrate_time_of(&f->v[i]));
    }
    *before = total(&was);
    tally is = {.ape = f->work};
    choice c[PARTS];
    for (uint32_t o = 0; o < PARTS; o++) c[o] = choose(f, o);
    for (size_t i = 0; i < f->n; i++) {
        const point *x = &f->v[i];
        cd_model_prediction p =
            moved(x, &c[x->part], c[x->part].widen, c[x->part].most, f->out->measured_noise);
        cd_model_mark_unlike(f->m, x->compared, x->reason, &p);
        count(&is, &p, calibrate_time_of(x));
    }
    *after = total(&is);
}

static void noise(const cd_calibrate_points *f) {
    cd_calibrate_result *r = f->out;
    r->programs = f->n;
    for (size_t i = 0; i < f->n; i++) {
        bool first = true;
        for (size_t k = 0; k < i && first; k++) first = strcmp(f->v[k].key, f->v[i].key) != 0;
        r->tasks += first;
        if (!isnan(f->v[i].again_log))
            f->work[r->pairs++] = fabs(f->v[i].again_log - f->v[i].measured_log);
    }
    cd_sort_doubles(f->work, r->pairs);
    r->noise = r->pairs < CD_CALIBRATE_PAIRS ? (double)NAN : cd_sort_median(f->work, r->pairs);
    r->measured_noise = fmax(r->measured_noise, isnan(r->noise) ? 0 : r->noise);
}

/* Without a part there must be enough to learn from. */
static bool enough(const cd_calibrate_points *f) {
    size_t size[PARTS] = {0}, most = 0;
    for (size_t i = 0; i < f->n; i++) size[f->v[i].part]++;
    for (int a = 0; a < PARTS; a++) most = size[a] > most ? size[a] : most;
    return f->n >= CD_CALIBRATE_LEAST + most;
}

/* Parts that are dealt to figures, widths and trees in p->out. Errors: ENODATA (too few programs,
 * or nearly all of them in one part), ENOMEM. */
static cdmpp_status calibrate_cross(cd_calibrate_points *f, cdmpp_err *err) {
    cd_calibrate_result *r = f->out;
    if (!(f->work = cd_mem_zalloc(f->n + 1, sizeof *f->work)))
        return CD_FAIL(err, ENOMEM, "%zu programs", f->n);
    noise(f);
    if (!enough(f)) return CDMPP_ENODATA;
    for (uint32_t part = 0; part < PARTS; part++) CD_TRY(cross(f, part, err));
    figures(f, &r->before, &r->after);
    const choice c = choose(f, NONE);
    r->share = c.share, r->picks = c.picks, r->widen = c.widen, r->most = c.most;
    CD_TRY(calibrate_marks_of(f, &r->marks, err));
    CD_TRY(learn_cross(f, NONE, &r->trees, err));
    r->trees.share = r->share;
    return CDMPP_OK;
}

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
    CD_TRY(calibrate_signature(f->o->model, s, &r, &f->kept, &is, err));
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
    const cdmpp_status st = calibrate_cross(all, err);
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
