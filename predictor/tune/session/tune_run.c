/* The loop of tuning. The scheduler names a task, its search asks for candidates, the meter
 * measures them, and the seconds go back to search, ranker and scheduler. */
#include "predictor/tune/session/tune_run.h"

#include <math.h>
#include <stdio.h>

#include "predictor/tune/space/space.h"

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
