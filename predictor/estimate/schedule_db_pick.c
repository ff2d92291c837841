/* A schedule for tasks without a measured record: the best candidate by the model's prediction.
 *
 *   start, its mutations; else
 *   draws (two fifths) ──sketch─> best PARENTS ─mutate (ROUND)─> best PARENTS ─mutate ... ─> best
 *     LAST ─whole model─> one
 *
 * (1) Draw and mutation i depend on seed, task and i; who is best on the model alone: not on
 *     threads, nor on other tasks.
 * (2) A candidate counts once; one that lowers to no program, or has more rows than MAX_ROWS, is
 *     none.
 * (3) Score: -ln(median) less `caution` of the expected error, as tuners rank (tune_rank_model.c):
 *     among the best of many are those whose error flatters them.
 * (4) Few parents and short rounds climb faster than they get stuck. Beside 512 candidates in two
 *     rounds from the best 32, all of them scored by the whole model
 *     (tests/predictor/estimate/test_schedule_db.c keeps that), 160 so take a fifth of the time on
 *     CPUs, 0.29 of it on GPUs. Predicted seconds over those of the 512, mean (worst), 50 tasks of
 *     8 networks on GPUs, 54 of 6 on CPUs, most of which the numbers here were chosen on: V100
 *     1.019 (1.88), Zen 5 1.043 (1.54), Granite Rapids 1.018 (1.37); with (3)'s caution, which is
 *     what is compared here, 1.103 (1.66), 1.028 (1.28), 1.024 (1.39). The V100's model errs by a
 *     third: its expected errors are large, and 100 trees say less about them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "features/sketch/sketch.h"
#include "predictor/estimate/estimate_internal.h"

enum {
    PARENTS = 4,
    ROUND = 8,
    LAST = 16,
    NEAR = 8,
    CHUNK = 128,
    TRIES = 16,
    DRY = 4,
    TURNS = 16,
    MAX_ROWS = 16384
};
static const double caution = 0.5;

typedef struct {
    uint64_t key;
    double score;
    uint32_t n_choice, n_step;
    cd_sketch_choice *choice;
    cd_record_step *step;
} cand;

/* What one thread needs; what one task has drawn lives in `mem`. */
typedef struct {
    cd_scorer *sketch, *whole;
    cd_arena mem;
    cd_scored *scored; /* (CHUNK) */
    cand *cand;        /* (trials) best first, once scored */
    size_t n;
} worker;

typedef struct {
    const cd_model *m;
    const cd_schedule_db_pick *o;
    const cd_task **task; /* (n) NULL: nothing to be done */
    cd_buf *line;         /* (n) the records; empty: none lowers */
    worker *worker;
    cd_schedule_db_search plan;
    char origin[128];
} picking;

/* ---- candidates ---- */
static void *copied(cd_arena *a, const void *p, size_t n, size_t size, bool *ok) {
    void *q = cd_arena_alloc(a, n ? n : 1, size);
    if (!q) *ok = false;
    else if (n) memcpy(q, p, n * size);
    return q;
}

/* A candidate that is new, with copies of what the sampler lent. Steps decide whether it is new:
 * two ways of choosing may give one program. */
static cdmpp_status keep(worker *w, const cd_sketch_sample *d, cdmpp_err *err) {
    const uint64_t key = cd_record_steps_key(d->step, d->n_step);
    bool ok = true;
    for (size_t i = 0; i < w->n; i++)
        if (w->cand[i].key == key) return CDMPP_OK;
    cand c = {.key = key, .score = -HUGE_VAL, .n_choice = d->n_choice, .n_step = d->n_step};
    c.choice = copied(&w->mem, d->choice, d->n_choice, sizeof *c.choice, &ok);
    c.step = copied(&w->mem, d->step, d->n_step, sizeof *c.step, &ok);
    for (uint32_t k = 0; ok && k < d->n_step; k++) {
        c.step[k].list =
            copied(&w->mem, c.step[k].list, c.step[k].n_list, sizeof *c.step[k].list, &ok);
        c.step[k].s.p = copied(&w->mem, c.step[k].s.p, c.step[k].s.n, 1, &ok);
    }
    if (!ok) return CD_FAIL(err, ENOMEM, "candidate");
    w->cand[w->n++] = c;
    return CDMPP_OK;
}

/* Random programs, or ones like the `best` best that are programs, until there are n. */
static cdmpp_status widen(worker *w, cd_sketch_sampler *s, size_t n, size_t best, uint64_t from,
                          cdmpp_err *err) {
    const size_t most = TRIES * (n - w->n);
    size_t parents = 0;
    while (parents < best && parents < w->n && w->cand[parents].score > -HUGE_VAL) parents++;
    for (uint64_t i = 0; i < most && w->n < n; i++) {
        cd_sketch_sample d;
        const cand *p = parents ? &w->cand[i % parents] : NULL;
        const cdmpp_status st =
            p ? cd_sketch_sampler_mutate(s, p->choice, p->n_choice, from + i, &d, err)
              : cd_sketch_sampler_draw(s, from + i, &d, err);
        if (st == CDMPP_EREJECTED) continue;
        CD_TRY(st);
        CD_TRY(keep(w, &d, err));
    }
    return CDMPP_OK;
}

static int better(const void *a, const void *b) {
    const cand *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

/* What says something about the program, not about us. */
static bool is_program_fault(cdmpp_status st) {
    return st == CDMPP_EREJECTED || st == CDMPP_EINVALID || st == CDMPP_EUNSUPPORTED ||
           st == CDMPP_ENUMERIC || st == CDMPP_ERANGE;
}

/* The score is cautious: a prediction with a large error is worth less. A candidate that is no
 * program goes to the end. */
static cdmpp_status score_chunk(worker *w, cd_scorer *s, const cd_aim *aim, cand *c, size_t n,
                                cdmpp_err *err) {
    cd_scorer_start(s);
    for (size_t i = 0; i < n; i++) {
        const cd_candidate ask = {
            .form = CD_CANDIDATE_SCHEDULE, .aim = aim, .step = c[i].step, .n_step = c[i].n_step};
        CD_TRY(cd_scorer_add(s, &ask, &w->scored[i], err));
    }
    CD_TRY(cd_scorer_finish(s, err));
    for (size_t i = 0; i < n; i++) {
        const cd_scored *o = &w->scored[i];
        if (o->st && !is_program_fault(o->st)) {
            if (err) *err = o->err;
            return o->st;
        }
        c[i].score =
            o->st ? -HUGE_VAL : -log(o->pred.order_s) - caution * cd_model_expected_error(&o->pred);
    }
    return CDMPP_OK;
}

static cdmpp_status score(worker *w, cd_scorer *s, const cd_aim *aim, size_t from, size_t to,
                          cdmpp_err *err) {
    for (size_t i = from; i < to; i += CHUNK)
        CD_TRY(score_chunk(w, s, aim, w->cand + i, to - i < CHUNK ? to - i : CHUNK, err));
    return CDMPP_OK;
}

/* Rounds of drawing and mutating: the few estimators of the sketch model rank, the whole model has
 * the last word on the best. A round that finds nothing new is "dry"; several of them end the
 * search of a small space. */
static cdmpp_status search(const picking *p, worker *w, cd_sketch_sampler *s, const cd_aim *aim,
                           uint64_t from, cdmpp_err *err) {
    const cd_schedule_db_search *o = &p->plan;
    cd_scorer *first = o->last ? w->sketch : w->whole;
    size_t want = o->drawn;
    for (uint32_t r = 0, dry = 0; dry < DRY; r++) {
        const size_t had = r ? w->n : 0, to = want < o->trials ? want : o->trials;
        CD_TRY(widen(w, s, to, o->parents, from + ((uint64_t)r << 32), err));
        dry = w->n < to ? dry + 1 : 0;
        CD_TRY(score(w, first, aim, had, w->n, err));
        qsort(w->cand, w->n, sizeof *w->cand, better);
        if (to == o->trials) break;
        want = w->n + o->round;
    }
    const size_t last = w->n < o->last ? w->n : o->last;
    CD_TRY(score(w, w->whole, aim, 0, last, err));
    qsort(w->cand, last, sizeof *w->cand, better);
    return CDMPP_OK;
}

/* ---- one task ---- */
static cd_str text(const char *s) { return (cd_str){s ? s : "", s ? strlen(s) : 0}; }

/* A task file of an ONNX network need not say a target; then the device's kind does. */
static cd_str target_of(const picking *p, const cd_task *t) {
    if (p->o->target) return text(p->o->target);
    if (*t->target) return text(t->target);
    const int d = p->o->device ? cd_model_find_device(p->m, p->o->device, strlen(p->o->device)) : 0;
    return text(d >= 0 && cd_model_device_is_gpu(p->m, (size_t)d) ? "cuda" : "llvm");
}

/* A task that was made for another kind of device says nothing of this one's hardware. */
static cd_hardware hardware_of(const picking *p, const cd_task *t, bool gpu) {
    const bool of_kind = !*t->target || cd_target_is_gpu(text(t->target)) == gpu;
    if (p->o->hardware) return *p->o->hardware;
    return t->has_hardware && of_kind ? t->hardware : cd_target_hardware(gpu, 1, 32);
}

/* Weights are packed before the network runs; what another operator makes would have to be packed
 * in every pass. */
static int64_t layout_of(const picking *p, const cd_aim *aim) {
    const bool plain = p->o->n_plain && bsearch(&aim->workload_key, p->o->plain, p->o->n_plain,
                                                sizeof *p->o->plain, cd_sort_by_text);
    return plain ? 0 : cd_target_layout(cd_target_is_gpu(aim->target));
}

static cdmpp_status write_best(const picking *p, const cd_aim *aim, const cand *c, cd_buf *line,
                               cdmpp_err *err) {
    static const double never = 1e10;
    const cd_record r = {.workload_key = text(aim->workload_key),
                         .target = aim->target,
                         .target_host = text(""),
                         .has_hardware = true,
                         .has_host = true,
                         .has_layout = true,
                         .has_inputs = true,
                         .hardware = aim->hardware,
                         .layout_rewrite = layout_of(p, aim),
                         .n_step = c->n_step,
                         .step = c->step,
                         .n_cost = 1,
                         .cost_s = &never,
                         .error_no = CD_ERROR_NO_MAX,
                         .version = text("v0.6"),
                         .origin = text(p->origin)};
    return cd_record_write(line, &r, err);
}

/* With a first candidate none is drawn: all come from it by mutation. */
static cdmpp_status begin(const picking *p, worker *w, cd_sketch_sampler *s, cdmpp_err *err) {
    cd_sketch_sample d;
    bool exact;
    if (!p->o->start) return CDMPP_OK;
    const cdmpp_status st = cd_sketch_sampler_match(s, p->o->start, &d, &exact, err);
    if (st) return st == CDMPP_EREJECTED ? CDMPP_OK : st;
    CD_TRY(keep(w, &d, err));
    w->cand[0].score = 0; /* it is a program: the parent of the first round, which scores it */
    return CDMPP_OK;
}

/* A space may have few programs that the device takes (large blocks of a GPU): where none was
 * found, others are drawn. */
static cdmpp_status search_on(const picking *p, worker *w, cd_sketch_sampler *s, const cd_aim *aim,
                              cdmpp_err *err) {
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        if (turn) cd_arena_reset(&w->mem), w->n = 0;
        CD_TRY(search(p, w, s, aim, turn << 48, err));
        if (p->o->start || !w->n || w->cand[0].score > -HUGE_VAL) break;
    }
    return CDMPP_OK;
}

/* Errors of the task itself, such as a space without programs, leave it without a schedule; other
 * errors end the search. */
static cdmpp_status pick_one(const picking *p, worker *w, const cd_task *t, cd_buf *line,
                             cdmpp_err *err) {
    cd_sketch_space *sketches = NULL;
    cd_sketch_sampler *sampler = NULL;
    const cd_str target = target_of(p, t);
    const bool gpu = cd_target_is_gpu(target);
    const cd_aim aim = {.workload_key = t->workload_key,
                        .task = t,
                        .target = target,
                        .has_hardware = true,
                        .flop = cd_task_flop(t),
                        .hardware = hardware_of(p, t, gpu),
                        .device = text(NULL)};
    cdmpp_err why = {0};
    cd_arena_reset(&w->mem);
    w->n = 0;
    cdmpp_status st = cd_sketch_space_new(t, &aim.hardware, gpu, &sketches, &why);
    if (!st) st = cd_sketch_sampler_new(sketches, cd_rng_mix(p->o->seed), &sampler, &why);
    if (!st) st = begin(p, w, sampler, &why);
    if (!st) st = search_on(p, w, sampler, &aim, &why);
    if (!st && w->n && w->cand[0].score > -HUGE_VAL)
        st = write_best(p, &aim, &w->cand[0], line, &why);
    cd_sketch_sampler_free(sampler);
    cd_sketch_space_free(sketches);
    if (!st || is_program_fault(st)) return CDMPP_OK;
    if (err) *err = why;
    return cd_err_key(err, st, t->workload_key);
}

static cdmpp_status pick_some(void *ctx, size_t beg, size_t end, int k, cdmpp_err *err) {
    const picking *p = ctx;
    for (size_t i = beg; i < end; i++)
        if (p->task[i]) CD_TRY(pick_one(p, &p->worker[k], p->task[i], &p->line[i], err));
    return CDMPP_OK;
}

/* ---- all of them ---- */
/* Numbers that were measured on the machine are not those that schedules were chosen with before it
 * was calibrated, and nothing has compared both choices there: networks shall not become slower by
 * a model that only answers better. So it is the stand-in's choice, where the model says so. */
static cd_scorer_options chooser(const picking *p) {
    const cd_here *h = cd_model_here(p->m);
    const char *device = p->o->device;
    const bool machine = h && h->stands_chooses && device &&
                         cd_model_find_device(p->m, device, strlen(device)) == (int)h->device;
    return (cd_scorer_options){
        .which = {.device = machine ? cd_model_device(p->m, h->stands) : device},
        .max_rows = MAX_ROWS,
        .uncorrected = true,
        .numbers = machine ? NULL : p->o->numbers};
}

static cdmpp_status open_worker(const picking *p, worker *w, cdmpp_err *err) {
    /* By the model alone: some hundred programs of a machine teach how long programs take there,
     * and little of the order within a task. A correction knows how far the model flatters what it
     * takes for the best (predictor/calibrate), so it is asked about that, and not about another
     * best. */
    const cd_scorer_options o = chooser(p);
    cd_scorer_options few = o;
    few.sketch = true;
    w->scored = cd_mem_zalloc(CHUNK, sizeof *w->scored);
    w->cand = cd_mem_zalloc(p->plan.trials, sizeof *w->cand);
    if (!w->scored || !w->cand) return CD_FAIL(err, ENOMEM, "%u candidates", p->plan.trials);
    CD_TRY(cd_scorer_new(p->m, NULL, &few, &w->sketch, err));
    return cd_scorer_new(p->m, NULL, &o, &w->whole, err);
}

static void close_worker(worker *w) {
    cd_scorer_free(w->sketch);
    cd_scorer_free(w->whole);
    cd_arena_free(&w->mem);
    cd_mem_free(w->scored);
    cd_mem_free(w->cand);
}

static cdmpp_status find_tasks(const cd_schedule_db *b, const cd_task_registry *t,
                               const char *const *key, size_t n, const cd_task **task,
                               cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        if (cd_schedule_db_find(b, key[i])) continue;
        const cd_task *x = t ? cd_task_registry_find(t, text(key[i])) : NULL;
        if (!x || !x->dag) return CD_FAIL(err, ENOTASK, "no definition of task %s", key[i]);
        task[i] = x;
    }
    return CDMPP_OK;
}

/* In the order of the keys, whichever thread was first. */
static cdmpp_status enter(cd_schedule_db *b, const picking *p, size_t n, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        const cd_buf *l = &p->line[i];
        if (l->n)
            CD_TRY(cd_schedule_db_put(b, text(p->task[i]->workload_key), (cd_str){l->p, l->n - 1},
                                      text(p->origin), true, (double)NAN, 0, err));
    }
    return CDMPP_OK;
}

/* Tasks are searched in parallel, each by one thread with a seed of its own, and entered in the
 * order of the keys: the result does not depend on the number of threads. */
cdmpp_status cd_schedule_db_predict_by(cd_schedule_db *b, const cd_model *m,
                                       const cd_task_registry *t, const char *const *key, size_t n,
                                       const cd_schedule_db_pick *o,
                                       const cd_schedule_db_search *plan, cd_threads *pool,
                                       cdmpp_err *err) {
    const int threads = cd_threads_count(pool);
    picking p = {.m = m, .o = o, .plan = *plan};
    snprintf(p.origin, sizeof p.origin, "best of %u predicted by %.12s, seed %llu", plan->trials,
             cd_model_digest(m), (unsigned long long)o->seed);
    p.task = cd_mem_zalloc(n + 1, sizeof(const cd_task *));
    p.line = cd_mem_zalloc(n + 1, sizeof *p.line);
    p.worker = cd_mem_zalloc((size_t)threads, sizeof *p.worker);
    cdmpp_status st =
        p.task && p.line && p.worker ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu tasks", n);
    if (!st) st = find_tasks(b, t, key, n, p.task, err);
    for (int k = 0; !st && k < threads; k++) st = open_worker(&p, &p.worker[k], err);
    if (!st) st = cd_threads_run(pool, n, 1, pick_some, &p, err);
    if (!st) st = enter(b, &p, n, err);
    for (int k = 0; p.worker && k < threads; k++) close_worker(&p.worker[k]);
    for (size_t i = 0; p.line && i < n; i++) cd_buf_free(&p.line[i]);
    cd_mem_free(p.worker);
    cd_mem_free(p.line);
    cd_mem_free(p.task);
    return st;
}

/* The plan for these options: two fifths drawn, the rest mutated from the best. */
static cd_schedule_db_search schedule_db_plan(const cd_schedule_db_pick *o) {
    const uint32_t n = o->trials ? o->trials : CD_SCHEDULE_DB_TRIALS;
    /* mutations of one are much alike */
    return (cd_schedule_db_search){.trials = n,
                                   .drawn = n - n / 5 * 3,
                                   .round = ROUND,
                                   .parents = PARENTS,
                                   .last = o->start ? NEAR : LAST};
}

cdmpp_status cd_schedule_db_predict(cd_schedule_db *b, const cd_model *m, const cd_task_registry *t,
                                    const char *const *key, size_t n, const cd_schedule_db_pick *o,
                                    cd_threads *pool, cdmpp_err *err) {
    const cd_schedule_db_search plan = schedule_db_plan(o);
    return cd_schedule_db_predict_by(b, m, t, key, n, o, &plan, pool, err);
}
