/* The loop of tuning. The scheduler names a task, its search asks for candidates, the meter
 * measures them, and the seconds go back to search, ranker and scheduler. */
#include "predictor/tune/session/tune_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predictor/tune/session/tune_task_scheduler.h"
#include "predictor/tune/space/space.h"

/* Ansor's task scheduler: the next round goes to the task with the steepest expected fall of weight
 * x latency. In addition it ends the tuning when a round costs more time than it is expected to
 * save. */

enum { WINDOW = 3, FAILED_ROUNDS = 4, LEAVE_GROUP_AFTER = 5, FIRST_PART = 8 };
#define ALPHA 0.2
#define BETA  2.0

typedef struct {
    double weight, flop, work_s;
    int group;    /* equal numbers are similar; -1: alone */
    double *best; /* (n_trial, cap) the best after each trial */
    size_t n_trial, cap;
    double *after; /* (n_round, cap_round) the best after each round */
    size_t n_round, cap_round;
    double took_s;  /* all rounds of this run */
    size_t took_n;  /* trials in that time */
    uint64_t since; /* trials without a better one */
    bool left;
} scheduled_task;

struct cd_tune_task_scheduler {
    cd_tune_task_scheduler_options o;
    scheduled_task *unit; /* (n) */
    uint32_t n;
    uint64_t trials;
};

const char *cd_tune_task_scheduler_says(cd_tune_task_scheduler_end e) {
    static const char *const text[] = {"goes on", "the trials are used up", "the time is used up",
                                       "more would cost more than it brings",
                                       "no task has more to try"};
    return text[e];
}

static void group(cd_tune_task_scheduler *s, const cd_tune_task_scheduler_task *task) {
    for (uint32_t i = 0; i < s->n; i++) {
        s->unit[i].group = task[i].group && task[i].flop > 0 ? (int)i : -1;
        for (uint32_t k = 0; k < i && s->unit[i].group == (int)i; k++)
            if (s->unit[k].group == (int)k && !strcmp(task[k].group, task[i].group))
                s->unit[i].group = (int)k;
    }
}

cdmpp_status cd_tune_task_scheduler_new(const cd_tune_task_scheduler_task *task, uint32_t n,
                                        const cd_tune_task_scheduler_options *o,
                                        cd_tune_task_scheduler **out, cdmpp_err *err) {
    cd_tune_task_scheduler *s = cd_mem_zalloc(1, sizeof *s);
    scheduled_task *u = cd_mem_zalloc(n + 1u, sizeof *u);
    if (!s || !u) {
        cd_mem_free(s);
        cd_mem_free(u);
        return CD_FAIL(err, ENOMEM, "%u tasks", n);
    }
    *s = (cd_tune_task_scheduler){.o = *o, .unit = u, .n = n};
    for (uint32_t i = 0; i < n; i++)
        u[i].weight = task[i].weight, u[i].flop = task[i].flop, u[i].work_s = task[i].work_s;
    group(s, task);
    *out = s;
    return CDMPP_OK;
}

void cd_tune_task_scheduler_free(cd_tune_task_scheduler *s) {
    if (!s) return;
    for (uint32_t i = 0; i < s->n; i++) {
        cd_mem_free(s->unit[i].best);
        cd_mem_free(s->unit[i].after);
    }
    cd_mem_free(s->unit);
    cd_mem_free(s);
}

/* ---- what is known of a task ---- */
static double best_of(const scheduled_task *u) {
    return u->n_trial ? u->best[u->n_trial - 1] : CD_TUNE_FAILED_S;
}
double cd_tune_task_scheduler_best(const cd_tune_task_scheduler *s, uint32_t task) {
    return best_of(&s->unit[task]);
}
uint64_t cd_tune_task_scheduler_trials(const cd_tune_task_scheduler *s, uint32_t task) {
    return s->unit[task].n_trial;
}
void cd_tune_task_scheduler_leave(cd_tune_task_scheduler *s, uint32_t task) {
    s->unit[task].left = true;
}

static cdmpp_status append(double **v, size_t *n, size_t *cap, double x, cdmpp_err *err) {
    if (CD_GROW(*v, *n, *cap)) return CD_FAIL(err, ENOMEM, "trials");
    (*v)[(*n)++] = x;
    return CDMPP_OK;
}

static double speed(const scheduled_task *u) { return u->flop / best_of(u); }

/* The fastest of its group, itself included; *others: rounds of the others, at most; false: it is
 * alone. */
static bool group_best(const cd_tune_task_scheduler *s, const scheduled_task *u, double *flops,
                       size_t *others) {
    bool any = false;
    *flops = speed(u);
    *others = 0;
    for (uint32_t k = 0; u->group >= 0 && k < s->n; k++) {
        const scheduled_task *v = &s->unit[k];
        if (v == u || v->group != u->group) continue;
        any = true;
        if (speed(v) > *flops) *flops = speed(v);
        if (v->n_round > *others) *others = v->n_round;
    }
    return any;
}

cdmpp_status cd_tune_task_scheduler_add(cd_tune_task_scheduler *s, uint32_t task,
                                        const double *seconds, size_t n, double took_s,
                                        cdmpp_err *err) {
    scheduled_task *u = &s->unit[task];
    double flops;
    size_t others;
    for (size_t i = 0; i < n; i++) {
        const double best = best_of(u);
        const bool better = seconds[i] < best;
        CD_TRY(append(&u->best, &u->n_trial, &u->cap, better ? seconds[i] : best, err));
        u->since = better ? 0 : u->since + 1;
        s->trials++;
        /* of an earlier run there may be many rounds */
        if (u->n_trial % s->o.per_round && i + 1 < n) continue;
        CD_TRY(append(&u->after, &u->n_round, &u->cap_round, best_of(u), err));
    }
    if (took_s > 0) u->took_s += took_s, u->took_n += n;
    if (best_of(u) >= CD_TUNE_FAILED_S && u->n_round >= FAILED_ROUNDS) u->left = true;
    if (group_best(s, u, &flops, &others) && speed(u) < flops / BETA &&
        u->n_round > LEAVE_GROUP_AFTER + others)
        u->group = -1;
    return CDMPP_OK;
}

double cd_tune_task_scheduler_gain(const cd_tune_task_scheduler *s, uint32_t task) {
    const scheduled_task *u = &s->unit[task];
    const size_t n = u->n_trial, half = (n + 1) / 2;
    const double b = s->o.per_round;
    if (n < 2 * (size_t)s->o.per_round || u->best[half - 1] >= CD_TUNE_FAILED_S) return INFINITY;
    const double slope = log(u->best[half - 1] / u->best[n - 1]) / log((double)n / (double)half);
    return u->best[n - 1] * -expm1(-slope * log1p(b / (double)n));
}

/* TVM's numbers: what a round may bring is best / rounds at most, or what similar tasks show to be
 * possible. */
double cd_tune_task_scheduler_gradient(const cd_tune_task_scheduler *s, uint32_t task) {
    const scheduled_task *u = &s->unit[task];
    const size_t r = u->n_round;
    const double best = best_of(u);
    double flops;
    size_t others;
    if (!r) return -INFINITY;
    const double backward = r > WINDOW && u->after[r - 1 - WINDOW] < CD_TUNE_FAILED_S
                                ? (best - u->after[r - 1 - WINDOW]) / WINDOW
                                : 0;
    double next = best - best / (double)r;
    if (group_best(s, u, &flops, &others) && BETA * u->flop / flops < next)
        next = BETA * u->flop / flops;
    return u->weight * (ALPHA * backward + (1 - ALPHA) * (next - best));
}

/* ---- choosing ---- */
static bool open_task(const cd_tune_task_scheduler *s, const scheduled_task *u) {
    if (u->left || (s->o.trials_per_task && u->n_trial >= s->o.trials_per_task)) return false;
    return !s->o.early_stop || u->since < s->o.early_stop;
}

/* Would a round of it pay for itself? */
static bool pays(const cd_tune_task_scheduler *s, uint32_t i) {
    const scheduled_task *u = &s->unit[i];
    const double gain = cd_tune_task_scheduler_gain(s, i);
    if (isinf(gain) || !u->took_n) return true;
    return s->o.runs * u->weight * gain > u->took_s / (double)u->took_n * s->o.per_round;
}

/* Share of the network's time that the later half of the trials took away; infinity: unknown. */
static double late_gain(const cd_tune_task_scheduler *s) {
    double now = 0, then = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const scheduled_task *u = &s->unit[i];
        if (!open_task(s, u) && best_of(u) >= CD_TUNE_FAILED_S) continue;
        if (open_task(s, u) && isinf(cd_tune_task_scheduler_gain(s, i))) return INFINITY;
        const double before = u->best[(u->n_trial + 1) / 2 - 1];
        now += u->weight * best_of(u);
        then += u->weight * (before < CD_TUNE_FAILED_S ? before : best_of(u));
    }
    return then > 0 ? (then - now) / then : 0;
}

static bool enough(const cd_tune_task_scheduler *s) {
    if (s->o.min_gain > 0 && late_gain(s) < s->o.min_gain) return true;
    if (s->o.runs <= 0) return false;
    for (uint32_t i = 0; i < s->n; i++)
        if (open_task(s, &s->unit[i]) && pays(s, i)) return false;
    return true;
}

/* Of the tasks without a trial the one with most work; s->n: there is none. */
static uint32_t unseen(const cd_tune_task_scheduler *s) {
    uint32_t best = s->n;
    for (uint32_t i = 0; i < s->n; i++) {
        const scheduled_task *u = &s->unit[i], *most = best < s->n ? &s->unit[best] : NULL;
        if (!u->n_round && open_task(s, u) &&
            (!most || u->weight * u->work_s > most->weight * most->work_s))
            best = i;
    }
    return best;
}

/* Its first round. A round of full length for each would spend few trials on tasks that take no
 * time. */
static uint64_t first_round(const cd_tune_task_scheduler *s) {
    const uint64_t part = s->n > 1 ? s->o.trials / FIRST_PART / s->n : UINT64_MAX;
    if (!s->o.trials || part >= s->o.per_round) return s->o.per_round;
    return part ? part : 1;
}

static uint32_t choose(const cd_tune_task_scheduler *s) {
    uint32_t best = unseen(s);
    double least = 0;
    if (best < s->n) return best;
    for (uint32_t i = 0; i < s->n; i++) {
        const scheduled_task *u = &s->unit[i];
        if (!open_task(s, u) || (s->o.runs > 0 && u->n_round && !pays(s, i))) continue;
        const double g = cd_tune_task_scheduler_gradient(s, i);
        if (best < s->n && (g > least || (!(g < least) && u->n_trial >= s->unit[best].n_trial)))
            continue;
        best = i;
        least = g;
    }
    return best;
}

/* Limits first, cheapest first; then the gain of what is left; then the choice by the gradient. A
 * round is cut to what the limits leave. */
cd_tune_task_scheduler_end cd_tune_task_scheduler_next(cd_tune_task_scheduler *s, double spent_s,
                                                       uint32_t *task, uint32_t *n) {
    uint64_t most = s->o.per_round;
    if (s->o.trials && s->trials >= s->o.trials) return CD_TUNE_NO_TRIALS;
    if (s->o.seconds > 0 && spent_s >= s->o.seconds) return CD_TUNE_NO_TIME;
    bool any = false;
    for (uint32_t i = 0; i < s->n && !any; i++) any = open_task(s, &s->unit[i]);
    if (!any) return s->o.trials_per_task ? CD_TUNE_NO_TRIALS : CD_TUNE_NO_TASK;
    if (enough(s)) return CD_TUNE_NO_GAIN;
    const uint32_t i = choose(s);
    if (i == s->n) return CD_TUNE_NO_GAIN;
    if (!s->unit[i].n_round) most = first_round(s);
    if (s->o.trials && s->o.trials - s->trials < most) most = s->o.trials - s->trials;
    if (s->o.trials_per_task && s->o.trials_per_task - s->unit[i].n_trial < most)
        most = s->o.trials_per_task - s->unit[i].n_trial;
    *task = i;
    *n = (uint32_t)most;
    return CD_TUNE_GOES_ON;
}

enum { GROUP = 64, TELL = 512 };

typedef struct {
    cd_tune_unit of;
    cd_tune_space *space;
    cd_tune_search *search;
    cd_tune_task_state state;
    cd_arena arena;        /* candidates that are kept */
    cd_tune_key_set known; /* key -> seconds of what is measured */
    cd_tune_point *point;
    size_t cap_point;
    cd_tune_cand *told; /* (n_told) of earlier runs, until go() */
    double *told_s;
    size_t n_told, cap_told;
    cd_tune_cand *first; /* (n_first) to be tried first; first_at of them are */
    size_t n_first, first_at, cap_first;
    unsigned empty; /* asks in a row that brought nothing */
} unit;

struct cd_tune_run {
    cd_tune_run_options o;
    unit *unit; /* (n) */
    uint32_t n;
    cd_tune_ranker *ranker, *fallback; /* of the tuner, of the other one */
    cd_tune_task_scheduler *sched;
    cd_tune_times times;
    double begin_s;
    cd_tune_cand *batch;  /* (per_round) */
    double *seconds;      /* (per_round) */
    cd_tune_trial *trial; /* (per_round) */
};

const cd_tune_task_state *cd_tune_run_state(const cd_tune_run *r, uint32_t task) {
    return &r->unit[task].state;
}
const cd_tune_times *cd_tune_run_times(const cd_tune_run *r) { return &r->times; }
const cd_tune_task_scheduler *cd_tune_run_sched(const cd_tune_run *r) { return r->sched; }

/* Searches go before their spaces and the ranker, which they use. */
void cd_tune_run_free(cd_tune_run *r) {
    if (!r) return;
    for (uint32_t i = 0; r->unit && i < r->n; i++) {
        unit *u = &r->unit[i];
        if (u->search) u->search->kind->free(u->search);
        cd_tune_space_free(u->space);
        cd_tune_key_set_free(&u->known);
        cd_arena_free(&u->arena);
        cd_mem_free(u->point);
        cd_mem_free(u->told);
        cd_mem_free(u->told_s);
        cd_mem_free(u->first);
    }
    if (r->ranker) r->ranker->kind->free(r->ranker);
    if (r->fallback) r->fallback->kind->free(r->fallback);
    cd_tune_task_scheduler_free(r->sched);
    cd_mem_free(r->unit);
    cd_mem_free(r->batch);
    cd_mem_free(r->seconds);
    cd_mem_free(r->trial);
    cd_mem_free(r);
}

/* ---- making ---- */
/* TVM's: tags of the operators and the size of the work in steps of the golden ratio. */
static void similarity(const cd_tune_unit *u, char *out, size_t cap) {
    const cd_te_dag *dag = u->of.task->dag;
    size_t n = 0;
    for (uint32_t k = 0; dag && k < dag->n_op && n < cap; k++)
        if (dag->op[k].tag && dag->op[k].tag[0])
            n += (size_t)snprintf(out + n, cap - n, "%.40s_", dag->op[k].tag);
    if (n < cap)
        snprintf(out + n, cap - n, "%d",
                 (int)(log(u->of.flop > 0 ? u->of.flop + 1 : 1) / log(1.618)));
}

/* What it would take at 50 GFLOP/s and 10 GB/s: it only compares the tasks of a network before one
 * of them is measured. */
static double work_of(const cd_tune_unit *u) {
    static const double flop_s = 5e10, bytes_s = 1e10;
    const cd_te_dag *dag = u->of.task->dag;
    const double flop = u->of.flop > 0 ? u->of.flop : 0;
    return flop / flop_s + (dag ? dag->least.bytes : 0) / bytes_s;
}

static cdmpp_status make_sched(cd_tune_run *r, cdmpp_err *err) {
    cd_arena a = {0};
    cd_tune_task_scheduler_task *t = CD_NEWN(&a, cd_tune_task_scheduler_task, r->n + 1);
    cdmpp_status st = t ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%u tasks", r->n);
    for (uint32_t i = 0; !st && i < r->n; i++) {
        char *tag = cd_arena_zalloc(&a, GROUP * 8, 1);
        if (!tag) st = CD_FAIL(err, ENOMEM, "%u tasks", r->n);
        else similarity(&r->unit[i].of, tag, GROUP * 8);
        t[i] = (cd_tune_task_scheduler_task){r->unit[i].of.weight, r->unit[i].of.of.flop, tag,
                                             work_of(&r->unit[i].of)};
    }
    if (!st) st = cd_tune_task_scheduler_new(t, r->n, &r->o.sched, &r->sched, err);
    cd_arena_free(&a);
    return st;
}

/* The space of a tuner, and its search. */
static cdmpp_status open_unit(cd_tune_run *r, unit *u, const cd_tune_tuner *t,
                              cd_tune_ranker *ranker, cdmpp_err *err) {
    const cd_tune_run_options *o = &r->o;
    cd_template_machine m;
    CD_TRY(o->space ? o->space(o->ctx, &u->of.of, o->seed, &u->space, &u->state.naive, err)
           : t->templates
               ? cd_tune_template_space(&u->of.of, &o->templates, o->seed, &u->space, &m, err)
               : cd_tune_space_sketch(&u->of.of, o->seed, &u->space, &u->state.naive, err));
    const cd_tune_search_setup s = {.space = u->space,
                                    .ranker = ranker,
                                    .seed = o->seed,
                                    .population = o->population,
                                    .generations = o->generations,
                                    .epsilon = o->epsilon};
    return t->search->open(&s, &u->search, err);
}

/* A task's own space and search. Its own errors are its state's. */
static cdmpp_status make_unit(cd_tune_run *r, uint32_t i, cdmpp_err *err) {
    unit *u = &r->unit[i];
    cdmpp_err *why = &u->state.why, other = {0};
    u->state.best_s = CD_TUNE_FAILED_S;
    cdmpp_status st = open_unit(r, u, r->o.tuner, r->ranker, why);
    u->state.fell_back = st == CDMPP_EUNSUPPORTED && r->o.tuner->templates && r->o.fallback;
    if (u->state.fell_back) {
        st = open_unit(r, u, r->o.fallback, r->fallback, &other);
        if (st) *why = other;
    }
    u->state.status = st;
    if (st) cd_tune_task_scheduler_leave(r->sched, i);
    if (st == CDMPP_ENOMEM && err) *err = *why;
    return st == CDMPP_ENOMEM ? st : CDMPP_OK;
}

static cdmpp_status make(cd_tune_run *r, const cd_tune_unit *of, cdmpp_err *err) {
    const uint32_t batch = r->o.sched.per_round;
    r->unit = cd_mem_zalloc(r->n + 1u, sizeof *r->unit);
    r->batch = cd_mem_zalloc(batch, sizeof *r->batch);
    r->seconds = cd_mem_zalloc(batch, sizeof *r->seconds);
    r->trial = cd_mem_zalloc(batch, sizeof *r->trial);
    if (!r->unit || !r->batch || !r->seconds || !r->trial)
        return CD_FAIL(err, ENOMEM, "%u tasks", r->n);
    if (r->o.tuner->ranker) CD_TRY(r->o.tuner->ranker->open(&r->o.ranker, &r->ranker, err));
    if (r->o.fallback && r->o.fallback->ranker)
        CD_TRY(r->o.fallback->ranker->open(&r->o.ranker, &r->fallback, err));
    for (uint32_t i = 0; i < r->n; i++) r->unit[i].of = of[i];
    CD_TRY(make_sched(r, err));
    for (uint32_t i = 0; i < r->n; i++) CD_TRY(make_unit(r, i, err));
    return CDMPP_OK;
}

cdmpp_status cd_tune_run_new(const cd_tune_unit *of, uint32_t n, const cd_tune_run_options *o,
                             cd_tune_run **out, cdmpp_err *err) {
    cd_tune_run *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "tuning");
    r->o = *o;
    r->n = n;
    const cdmpp_status st = make(r, of, err);
    if (st) cd_tune_run_free(r);
    else *out = r;
    return st;
}

/* The candidate that a record is, with its choices where the space knows them. */
static cdmpp_status cand_of(unit *u, const cd_record *rec, cd_tune_cand *out, bool *exact,
                            cdmpp_err *err) {
    cdmpp_err why = {0};
    *exact = false;
    const cdmpp_status st = u->space->kind->follow(u->space, rec, out, exact, &why);
    if (st && st != CDMPP_EREJECTED && st != CDMPP_ENODATA) {
        if (err) *err = why;
        return st;
    }
    if (st) *exact = false;
    return CDMPP_OK;
}

/* One more point of the curve: its own seconds and the best so far. */
static cdmpp_status add_point(unit *u, uint64_t key, const cd_tune_trial *t, bool before,
                              cdmpp_err *err) {
    cd_tune_task_state *s = &u->state;
    if (CD_GROW(u->point, s->n_point, u->cap_point)) return CD_FAIL(err, ENOMEM, "trials");
    s->point = u->point;
    if (t->seconds >= CD_TUNE_FAILED_S) s->failed++, s->last_error = t->error_no;
    s->before += before;
    u->point[s->n_point++] =
        (cd_tune_point){key, t->seconds, s->best_s, t->build_s + t->run_s, before};
    return CDMPP_OK;
}

/* One measured candidate enters the books. `kept`: it lives as long as the unit. */
static cdmpp_status enter(unit *u, const cd_tune_cand *c, const cd_tune_trial *t, bool before,
                          bool kept, cdmpp_err *err) {
    CD_TRY(cd_tune_key_set_put(&u->known, c->key, t->seconds, err));
    if (t->seconds < u->state.best_s) {
        if (kept) u->state.best = *c;
        else CD_TRY(cd_tune_cand_copy(&u->arena, c, &u->state.best, err));
        u->state.best_s = t->seconds;
    }
    return add_point(u, c->key, t, before, err);
}

cdmpp_status cd_tune_run_known(cd_tune_run *r, uint32_t task, const cd_record *rec, double seconds,
                               cdmpp_err *err) {
    unit *u = &r->unit[task];
    const uint64_t key = cd_record_steps_key(rec->step, rec->n_step);
    const cd_tune_trial t = {
        .seconds = seconds, .error_no = (int)rec->error_no, .build_s = rec->total_s};
    cd_tune_cand c = {0};
    bool exact;
    if (u->state.status || cd_tune_key_set_find(&u->known, key, NULL)) return CDMPP_OK;
    CD_TRY(cand_of(u, rec, &c, &exact, err));
    if (!exact || c.key != key)
        c = (cd_tune_cand){.key = key, .n_step = rec->n_step, .step = rec->step};
    size_t cap = u->cap_told; /* both lists have one capacity */
    if (CD_GROW(u->told, u->n_told, cap) || CD_GROW(u->told_s, u->n_told, u->cap_told))
        return CD_FAIL(err, ENOMEM, "candidates");
    CD_TRY(cd_tune_cand_copy(&u->arena, &c, &u->told[u->n_told], err));
    u->told_s[u->n_told++] = seconds;
    return enter(u, &u->told[u->n_told - 1], &t, true, true, err);
}

/* A record that no program of this task follows is no error: *taken stays false. */
cdmpp_status cd_tune_run_first(cd_tune_run *r, uint32_t task, const cd_record *rec, bool *taken,
                               cdmpp_err *err) {
    unit *u = &r->unit[task];
    cdmpp_err why = {0};
    cd_tune_cand c;
    bool exact = false;
    if (taken) *taken = false;
    if (u->state.status) return CDMPP_OK;
    const cdmpp_status st = u->space->kind->follow(u->space, rec, &c, &exact, &why);
    if (st == CDMPP_ENOMEM) {
        if (err) *err = why;
        return st;
    }
    if (st) return CDMPP_OK;
    if (CD_GROW(u->first, u->n_first, u->cap_first)) return CD_FAIL(err, ENOMEM, "candidates");
    CD_TRY(cd_tune_cand_copy(&u->arena, &c, &u->first[u->n_first], err));
    u->n_first++;
    if (taken) *taken = true;
    return CDMPP_OK;
}

static cdmpp_status tell(unit *u, const cd_tune_cand *c, const double *s, size_t n,
                         cdmpp_err *err) {
    return n ? u->search->kind->tell(u->search, c, s, n, err) : CDMPP_OK;
}

static cdmpp_status tell_known(cd_tune_run *r, cdmpp_err *err) {
    for (uint32_t i = 0; i < r->n; i++) {
        unit *u = &r->unit[i];
        for (size_t k = 0; k < u->n_told; k += TELL)
            CD_TRY(tell(u, u->told + k, u->told_s + k, u->n_told - k < TELL ? u->n_told - k : TELL,
                        err));
        CD_TRY(cd_tune_task_scheduler_add(r->sched, i, u->told_s, u->n_told, 0, err));
        u->n_told = 0;
    }
    return CDMPP_OK;
}

/* ---- a round ---- */
static bool in_batch(const cd_tune_run *r, size_t n, uint64_t key) {
    for (size_t k = 0; k < n; k++)
        if (r->batch[k].key == key) return true;
    return false;
}

/* Asked for, but for what is known already: that is told again, since it was asked for. */
static cdmpp_status ask(cd_tune_run *r, unit *u, size_t want, size_t *n, cdmpp_err *err) {
    const cd_tune_cand *c;
    size_t got = 0;
    CD_TRY(u->search->kind->ask(u->search, want - *n, &c, &got, err));
    u->empty = got ? u->empty : u->empty + 1;
    for (size_t k = 0; k < got; k++) {
        double s;
        if (cd_tune_key_set_find(&u->known, c[k].key, &s)) CD_TRY(tell(u, &c[k], &s, 1, err));
        else if (!in_batch(r, *n, c[k].key)) r->batch[(*n)++] = c[k];
    }
    return CDMPP_OK;
}

static cdmpp_status fill(cd_tune_run *r, unit *u, size_t want, size_t *n, cdmpp_err *err) {
    *n = 0;
    while (u->first_at < u->n_first && *n < want) {
        const cd_tune_cand *c = &u->first[u->first_at++];
        if (cd_tune_key_set_find(&u->known, c->key, NULL) || in_batch(r, *n, c->key)) continue;
        r->batch[(*n)++] = *c;
        u->state.warm++;
    }
    if (*n < want) CD_TRY(ask(r, u, want, n, err));
    if (*n) u->empty = 0;
    return CDMPP_OK;
}

static cdmpp_status report(cd_tune_run *r, uint32_t i, const unit *u, cd_tune_round *rd,
                           cdmpp_err *err) {
    rd->task = i;
    rd->number = r->times.rounds;
    rd->task_trials = u->state.n_point;
    rd->best_s = u->state.best_s;
    for (uint32_t k = 0; k < r->n; k++) {
        const cd_tune_task_state *s = &r->unit[k].state;
        rd->trials += s->n_point;
        if (s->best_s < CD_TUNE_FAILED_S) rd->total_s += r->unit[k].of.weight * s->best_s;
        else rd->without++;
    }
    return r->o.round ? r->o.round(r->o.ctx, rd, err) : CDMPP_OK;
}

/* What was measured enters the books, whether the meter ended well or not. */
static cdmpp_status enter_round(cd_tune_run *r, uint32_t i, unit *u, size_t done, double took_s,
                                cd_tune_round *rd, cdmpp_err *err) {
    for (size_t k = 0; k < done; k++) {
        const cd_tune_trial *t = &r->trial[k];
        CD_TRY(enter(u, &r->batch[k], t, false, false, err));
        r->seconds[k] = t->seconds;
        rd->build_s += t->build_s;
        rd->run_s += t->run_s;
        rd->failed += t->seconds >= CD_TUNE_FAILED_S;
    }
    rd->n = done;
    r->times.build_s += rd->build_s;
    r->times.run_s += rd->run_s;
    r->times.trials += done;
    return cd_tune_task_scheduler_add(r->sched, i, r->seconds, done, took_s, err);
}

static double now(const cd_tune_run *r) { return r->o.meter.now(r->o.meter.ctx); }

/* One round: ask, measure, tell, each timed. After an error of the meter the trials that it
 * finished are still counted (kept), so that a resumed run has the same state. A second empty batch
 * means that the space has no more. */
static cdmpp_status round_of(cd_tune_run *r, uint32_t i, uint32_t want, cdmpp_err *err) {
    unit *u = &r->unit[i];
    cd_tune_round rd = {.task_best_s_before = u->state.best_s};
    size_t n, done = 0;
    const double begin = now(r);
    CD_TRY(fill(r, u, want, &n, err));
    const double asked = now(r);
    r->times.search_s += rd.search_s = asked - begin;
    if (!n) {
        if (++u->empty > 1) cd_tune_task_scheduler_leave(r->sched, i);
        return CDMPP_OK;
    }
    const cdmpp_status st =
        r->o.meter.measure(r->o.meter.ctx, &u->of.of, r->batch, n, r->trial, &done, err);
    const double measured = now(r);
    r->times.measure_s += rd.measure_s = measured - asked;
    r->times.rounds++;
    cdmpp_status kept = enter_round(r, i, u, done, measured - begin, &rd, st ? NULL : err);
    if (st) return st;
    if (!kept) kept = tell(u, r->batch, r->seconds, done, err);
    const double told = now(r) - measured;
    r->times.search_s += told;
    rd.search_s += told;
    return kept ? kept : report(r, i, u, &rd, err);
}

static cdmpp_status loop(cd_tune_run *r, cd_tune_task_scheduler_end *end, cdmpp_err *err) {
    uint32_t task, n;
    CD_TRY(tell_known(r, err));
    while (!(*end = cd_tune_task_scheduler_next(r->sched, now(r) - r->begin_s, &task, &n))) {
        if (r->o.stop && *r->o.stop)
            return CD_FAIL(err, EINTERRUPTED, "after %zu trials", r->times.trials);
        CD_TRY(round_of(r, task, n, err));
    }
    return CDMPP_OK;
}

cdmpp_status cd_tune_run_go(cd_tune_run *r, cd_tune_task_scheduler_end *end, cdmpp_err *err) {
    *end = CD_TUNE_GOES_ON;
    r->begin_s = now(r);
    const cdmpp_status st = loop(r, end, err);
    r->times.wall_s += now(r) - r->begin_s;
    return st;
}
