/* For each task of a network the fastest program: candidates come from given records, from logs, or
 * from random schedules; they are built in batches and measured one after the other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "features/analytic/analytic.h"
#include "profiler/describe/describe.h"
#include "profiler/runtime/single/single_internal.h"

/* Analytic times of random schedules, to choose which are worth measuring
 * (features/analytic/analytic.h): nothing is learned, nothing is run. */

struct cd_program_pool {
    const cd_device *device;
    uint32_t vector_bytes;
    cd_program *program;
    cd_facts *facts;
};

/* A device that does not say enough is found here, before any schedule is drawn. */
static cdmpp_status check_device(const cd_device *d, cdmpp_err *err) {
    const float none[CD_N_FACTS] = {0};
    cd_analytic_time t;
    return cd_analytic_seconds(none, d, &t, err);
}

static void program_pool_free(CD_TAKE cd_program_pool *p);

/* vector_bytes: of the code. Errors: ENOMEM, ESCHEMA (a number that the device does not say, its
 * key named). */
static cdmpp_status program_pool_new(const cd_device *device, uint32_t vector_bytes,
                                     cd_program_pool **out, cdmpp_err *err) {
    CD_TRY(check_device(device, err));
    cd_program_pool *p = cd_mem_zalloc(1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "programs");
    p->device = device;
    p->vector_bytes = vector_bytes;
    cdmpp_status st = cd_program_new(&p->program, err);
    if (!st) st = cd_facts_new(&p->facts, err);
    if (st) program_pool_free(p);
    else *out = p;
    return st;
}

/* NULL is fine */
static void program_pool_free(cd_program_pool *p) {
    if (!p) return;
    cd_facts_free(p->facts);
    cd_program_free(p->program);
    cd_mem_free(p);
}

/* Vectors are those that code is generated for: the target of a record need not name them. */
static cdmpp_status seconds_of(cd_program_pool *p, const cd_task *task, const cd_record *r,
                               double *seconds, cdmpp_err *err) {
    float fact[CD_N_FACTS];
    cd_analytic_time t;
    cd_nest nest;
    CD_TRY(cd_program_lower(p->program, task, r, err));
    CD_TRY(cd_program_nest(p->program, &nest, err));
    nest.vector_bytes = p->vector_bytes;
    CD_TRY(cd_facts_cpu(p->facts, &nest, fact, err));
    CD_TRY(cd_analytic_seconds(fact, p->device, &t, err));
    *seconds = t.ecm_s;
    return CDMPP_OK;
}

/* Of the program of the record; infinite where it has none (programs of GPUs, extents that are no
 * constants), so that it stands last. Errors: ENOMEM. */
static cdmpp_status program_pool_seconds(cd_program_pool *p, const cd_task *task,
                                         const cd_record *r, double *seconds, cdmpp_err *err) {
    cdmpp_err why = {0};
    const cdmpp_status st = seconds_of(p, task, r, seconds, &why);
    if (st) *seconds = (double)INFINITY;
    if (st == CDMPP_ENOMEM && err) *err = why;
    return st == CDMPP_ENOMEM ? st : CDMPP_OK;
}

enum { BATCH = 32, FEW = 4, TRIALS = 4 }; /* built together; where the time is limited */

/* A line to try, and whose task it is for. */
typedef struct {
    uint32_t task;
    bool from_log;
    const char *text;
    size_t len;
    /* to choose by: of logs what they say, of drawn ones the analytic time where there is a pool */
    double cost_s;
    size_t number; /* in which order they were drawn */
    bool layout;   /* the record's parameters are packed */
} candidate;

typedef struct {
    const cd_workload *w;
    const cd_program_select_options *o;
    cd_program_select *out;
    cd_arena arena;
    candidate *best; /* (n_task) of logs; text NULL: none */
    candidate *c;    /* (n, cap) */
    size_t n, cap;
    cd_record_maker maker;
    cd_program_pool *pool; /* NULL: the first schedules that are drawn are tried */
} selector;

static void drop(cd_program_select_task *t) { cd_record_program_free(&t->job); }

void cd_program_select_free(cd_program_select *p) {
    if (!p) return;
    for (uint32_t k = 0; p->task && k < p->n; k++) drop(&p->task[k]);
    cd_mem_free(p->task);
    cd_mem_free(p);
}

static uint32_t task_of(const selector *p, cd_str key) {
    const cd_task *t = cd_task_registry_find(p->w->tasks, key);
    for (uint32_t k = 0; t && k < p->w->n_task; k++)
        if (cd_task_registry_at(p->w->tasks, p->w->task[k].task) == t) return k;
    return CD_GRAPH_NONE;
}

static cdmpp_status keep_text(selector *p, candidate *c, const char *text, size_t n,
                              cdmpp_err *err) {
    char *copy = cd_arena_alloc(&p->arena, n + 1, 1);
    if (!copy) return CD_FAIL(err, ENOMEM, "record");
    memcpy(copy, text, n);
    copy[n] = 0;
    c->text = copy;
    c->len = n;
    return CDMPP_OK;
}

/* ---- records of logs ---- */

/* A record of a log: kept when it is the fastest so far of its task, by the time in the log. */
static cdmpp_status consider(selector *p, cd_arena *a, const cd_recline *l, cdmpp_err *err) {
    cd_record r;
    if (cd_record_read(a, l->text, l->len, &r, NULL)) {
        p->out->bad_lines++;
        return CDMPP_OK;
    }
    const uint32_t t = task_of(p, r.workload_key);
    const double cost = cd_record_program_cost_s(&r);
    if (t == CD_GRAPH_NONE || (p->best[t].text && p->best[t].cost_s <= cost)) return CDMPP_OK;
    p->best[t] = (candidate){.task = t, .from_log = true, .cost_s = cost};
    return keep_text(p, &p->best[t], l->text, l->len, err);
}

/* Lines that cannot be read are counted, not fatal. */
static cdmpp_status read_logs(selector *p, cdmpp_err *err) {
    cd_record_reader *f = NULL;
    cd_arena a = {0};
    if (!p->o->n_log) return CDMPP_OK;
    CD_TRY(cd_record_reader_open(p->o->log, p->o->n_log, &f, err));
    cdmpp_status st = CDMPP_OK;
    for (cd_recline l = {0}; !st; cd_arena_reset(&a)) {
        cdmpp_err why = {0};
        st = cd_record_reader_next(f, &l, &why);
        if (st == CDMPP_ERANGE || st == CDMPP_EPARSE) p->out->bad_lines++;
        else if (st && err) *err = why;
        if (st == CDMPP_ERANGE || st == CDMPP_EPARSE) {
            st = CDMPP_OK;
            continue;
        }
        if (st || !l.text) break;
        st = consider(p, &a, &l, err);
    }
    cd_arena_free(&a);
    cd_record_reader_close(f);
    return st;
}

/* Records that are given stand before all others. */
static cdmpp_status take_lines(selector *p, cdmpp_err *err) {
    cd_arena a = {0};
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; i < p->o->n_line && !st; i++, cd_arena_reset(&a)) {
        cd_record r;
        const char *text = p->o->line[i];
        const bool good = !cd_record_read(&a, text, strlen(text), &r, NULL);
        const uint32_t t = good ? task_of(p, r.workload_key) : CD_GRAPH_NONE;
        if (!good) p->out->bad_lines++;
        if (t == CD_GRAPH_NONE || p->best[t].text) continue;
        p->best[t] = (candidate){.task = t, .from_log = true, .cost_s = -1};
        st = keep_text(p, &p->best[t], text, strlen(text), err);
    }
    cd_arena_free(&a);
    return st;
}

/* ---- what is tried ---- */

static cdmpp_status add(selector *p, candidate c, cdmpp_err *err) {
    if (CD_GROW_IN(&p->arena, p->c, p->n, p->cap)) return CD_FAIL(err, ENOMEM, "candidates");
    p->c[p->n++] = c;
    return CDMPP_OK;
}

/* A random schedule, unless its task has a record already. */
static cdmpp_status add_drawn(selector *p, const char *line, size_t len, cdmpp_err *err) {
    cd_record r;
    cd_arena a = {0};
    candidate c = {.task = CD_GRAPH_NONE, .number = p->n};
    cdmpp_status st = CDMPP_OK;
    if (!cd_record_read(&a, line, len, &r, NULL)) c.task = task_of(p, r.workload_key);
    const bool wanted = c.task != CD_GRAPH_NONE && !p->best[c.task].text;
    if (wanted && p->pool)
        st = program_pool_seconds(
            p->pool, cd_task_registry_at(p->w->tasks, p->w->task[c.task].task), &r, &c.cost_s, err);
    cd_arena_free(&a);
    if (!wanted || st) return st;
    CD_TRY(keep_text(p, &c, line, len, err));
    return add(p, c, err);
}

static int by_cost(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->task != y->task) return x->task < y->task ? -1 : 1;
    if (x->cost_s != y->cost_s) return x->cost_s < y->cost_s ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Of the candidates from `first` on, the `trials` cheapest of each task stay. */
static void keep_cheapest(selector *p, size_t first) {
    const uint32_t trials = p->o->trials ? p->o->trials : TRIALS;
    size_t kept = first;
    uint32_t of_task = 0;
    if (p->n > first) qsort(p->c + first, p->n - first, sizeof *p->c, by_cost);
    for (size_t k = first; k < p->n; k++) {
        of_task = k > first && p->c[k].task == p->c[k - 1].task ? of_task + 1 : 0;
        if (!of_task && isfinite(p->c[k].cost_s))
            p->out->task[p->c[k].task].analytic_s = p->c[k].cost_s;
        if (of_task < trials) p->c[kept++] = p->c[k];
    }
    p->n = kept;
}

static cdmpp_status draw_rest(selector *p, cdmpp_err *err) {
    const uint32_t trials = p->o->trials ? p->o->trials : TRIALS;
    const cd_random_schedules_options o = {.trials =
                                               p->pool && p->o->pool > trials ? p->o->pool : trials,
                                           .seed = p->o->seed,
                                           .target = p->o->target,
                                           .hardware = p->o->hardware};
    const size_t first = p->n;
    cd_random_schedules *d = NULL;
    cd_buf line = {0};
    cdmpp_status st = cd_random_schedules_new(p->w->tasks, &o, &d, err);
    while (!st) {
        cdmpp_err why = {0};
        if (p->o->stop && *p->o->stop)
            st = CD_FAIL(err, EINTERRUPTED, "while schedules were drawn");
        if (st) break;
        cd_buf_clear(&line);
        const cdmpp_status drawn = cd_random_schedules_next(d, &line, &why);
        if (drawn == CDMPP_ENOMEM || line.oom) st = CD_FAIL(err, ENOMEM, "schedules");
        else if (drawn) continue; /* a task without schedules stays without a program */
        else if (!line.n) break;
        else st = add_drawn(p, line.p, line.n, err);
    }
    if (!st && p->pool) keep_cheapest(p, first);
    cd_buf_free(&line);
    cd_random_schedules_free(d);
    return st;
}

/* ---- trying ---- */

static bool better(const cd_measure_result *a, const cd_program_select_task *t) {
    return t->status || a->time.median_s < t->item.out.time.median_s;
}

/* The job goes to its task, or away. */
static void settle(cd_program_select *out, const candidate *c, cd_record_program *j,
                   cd_measure_item *item) {
    cd_program_select_task *t = &out->task[c->task];
    t->tried++;
    if (item->out.error_no) {
        t->failed++;
        if (t->status) t->err = item->out.err, t->status = item->out.status;
        cd_record_program_free(j);
        return;
    }
    if (!better(&item->out, t)) {
        cd_record_program_free(j);
        return;
    }
    drop(t);
    t->job = *j;
    t->item = *item;
    t->item.code = t->item.build.code = &t->job.code;
    if (item->reference) t->item.reference = t->item.reference_build.code = &t->job.reference;
    t->from_log = c->from_log;
    t->unpacked = !t->job.record.layout_rewrite && c->layout;
    t->status = CDMPP_OK;
}

/* Does a program want a parameter packed that some group of its task computes? */
static bool packs_data(const selector *p, uint32_t task, const cd_codegen_code *c) {
    for (uint32_t g = 0; g < p->w->n_group; g++) {
        const cd_workload_group *x = &p->w->group[g];
        for (uint32_t k = 0; x->task == task && k < x->n_read && k < c->n_arg; k++)
            if (c->buffer[k].n_digit && !p->w->buffer[x->read[k]].is_const) return true;
    }
    return false;
}

/* The same steps on row-major parameters: another program, with another identity. */
static cdmpp_status unpack(selector *p, cd_record_program *j, cdmpp_err *err) {
    cd_codegen_code_free(&j->code);
    cd_codegen_code_free(&j->reference);
    j->code = j->reference = (cd_codegen_code){0};
    j->record.layout_rewrite = 0;
    CD_TRY(cd_record_id_of(&j->record, &j->id, err));
    return cd_record_program_code(&p->maker, j, err);
}

static cdmpp_status make(selector *p, candidate *c, cd_record_program *j, cd_measure_item *item,
                         cdmpp_err *err) {
    const cd_recline l = {.text = c->text, .len = c->len, .path = c->from_log ? "log" : "draw"};
    CD_TRY(cd_record_program_make(&p->maker, &l, j, err));
    c->layout = j->record.layout_rewrite != 0;
    CD_TRY(cd_record_program_code(&p->maker, j, err));
    if (!j->why.code && packs_data(p, c->task, &j->code)) CD_TRY(unpack(p, j, err));
    *item = (cd_measure_item){.code = &j->code, .target = j->target, .threads = p->o->threads};
    if (p->o->reference && !j->why.code) item->reference = &j->reference, item->arg = j->arg;
    if (j->why.code) cd_measure_result_fail(&item->out, 1, &j->why);
    return CDMPP_OK;
}

static cdmpp_status in_time(const selector *p, size_t done, cdmpp_err *err) {
    if (!(p->o->until_s > 0) || cd_clock_wall() < p->o->until_s) return CDMPP_OK;
    return CD_FAIL(err, EBACKEND, "the time is over after %zu of %zu programs", done, p->n);
}

/* A batch: made, built together, then run one by one. */
static cdmpp_status try_some(selector *p, candidate *c, size_t n, cd_record_program *job,
                             cd_measure_item *item, cdmpp_err *err) {
    size_t made = 0, done = 0;
    cdmpp_status st = CDMPP_OK;
    for (; made < n && !st; made++) st = make(p, &c[made], &job[made], &item[made], err);
    if (!st) st = cd_measure_build(p->o->measure, item, n, err);
    for (; done < n && !st; done++) {
        if (p->o->stop && *p->o->stop) st = CD_FAIL(err, EINTERRUPTED, "while programs were tried");
        if (!st) st = in_time(p, (size_t)(c - p->c) + done, err);
        if (!st && !item[done].out.error_no) st = cd_measure_run(p->o->measure, &item[done], err);
        if (st) break;
        settle(p->out, &c[done], &job[done], &item[done]);
    }
    for (; done < made; done++) cd_record_program_free(&job[done]);
    return st;
}

static cdmpp_status try_all(selector *p, cdmpp_err *err) {
    cd_record_program *job = cd_mem_zalloc(BATCH, sizeof *job);
    cd_measure_item *item = cd_mem_zalloc(BATCH, sizeof *item);
    cdmpp_status st = job && item ? CDMPP_OK : CD_FAIL(err, ENOMEM, "batch");
    const size_t most = p->o->until_s > 0 ? FEW : BATCH;
    for (size_t k = 0; k < p->n && !st; k += most) {
        st = in_time(p, k, err);
        if (!st) st = try_some(p, p->c + k, p->n - k < most ? p->n - k : most, job, item, err);
    }
    cd_mem_free(job);
    cd_mem_free(item);
    return st;
}

/* Tasks without any candidate keep the status "no schedule". */
static cdmpp_status prepare(selector *p, cdmpp_err *err) {
    const uint32_t n = p->w->n_task;
    p->out->n = n;
    p->out->task = cd_mem_zalloc(n + 1, sizeof *p->out->task);
    p->best = CD_NEWN(&p->arena, candidate, n + 1);
    if (!p->out->task || !p->best) return CD_FAIL(err, ENOMEM, "%u tasks", n);
    for (uint32_t k = 0; k < n; k++) {
        p->out->task[k].status = CD_FAIL(&p->out->task[k].err, EUNSUPPORTED, "no schedule");
        p->out->task[k].analytic_s = (double)NAN;
    }
    p->maker.isa = cd_measure_isa(p->o->measure); /* what is compiled for it is generated for it */
    CD_TRY(cd_program_new(&p->maker.program, err));
    if (!p->o->pool || !p->o->device) return CDMPP_OK;
    return program_pool_new(p->o->device, cd_isa_vector_bytes(p->maker.isa, p->o->target), &p->pool,
                            err);
}

static cdmpp_status run(selector *p, cdmpp_err *err) {
    CD_TRY(prepare(p, err));
    CD_TRY(take_lines(p, err));
    CD_TRY(read_logs(p, err));
    for (uint32_t k = 0; k < p->out->n; k++)
        if (p->best[k].text) CD_TRY(add(p, p->best[k], err));
    CD_TRY(draw_rest(p, err));
    return try_all(p, err);
}

static void close_all(selector *p) {
    program_pool_free(p->pool);
    cd_program_free(p->maker.program);
    cd_arena_free(&p->arena);
}

cdmpp_status cd_program_select_estimate(const cd_workload *w, const cd_program_select_options *o,
                                        double *analytic_s, cdmpp_err *err) {
    cd_program_select none = {0};
    selector p = {.w = w, .o = o, .out = &none};
    cdmpp_status st = prepare(&p, err);
    if (!st) st = draw_rest(&p, err);
    for (uint32_t k = 0; !st && k < w->n_task; k++) analytic_s[k] = none.task[k].analytic_s;
    close_all(&p);
    cd_mem_free(none.task);
    return st;
}

cdmpp_status cd_program_select_run(const cd_workload *w, const cd_program_select_options *o,
                                   cd_program_select **out, cdmpp_err *err) {
    selector p = {
        .w = w,
        .o = o,
        .maker = {
            .tasks = w->tasks, .target = o->target, .dialect = -1, .reference = o->reference}};
    if (o->namer) p.maker.device = cd_describe_namer_ask, p.maker.ctx = o->namer;
    p.out = cd_mem_zalloc(1, sizeof *p.out);
    if (!p.out) return CD_FAIL(err, ENOMEM, "programs");
    const cdmpp_status st = run(&p, err);
    close_all(&p);
    if (st) cd_program_select_free(p.out);
    else *out = p.out;
    return st;
}
