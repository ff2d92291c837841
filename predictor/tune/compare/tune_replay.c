/* Plays tuners against logs: the search asks for candidates, the log has their seconds. Every run
 * has its own space, ranker and search. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "dataset/extract/extract.h"
#include "predictor/tune/compare/compare.h"
#include "predictor/tune/space/space.h"

/* Seed number `seed` of the task. */
static uint64_t tune_replay_seed(const cd_tune_replay_log *l, uint64_t seed) {
    cd_hash h = cd_hash_start();
    cd_hash_add(&h, l->key, strlen(l->key));
    cd_hash_add(&h, l->device, strlen(l->device));
    return cd_rng_at(h.a, seed);
}

/* One run in the making. */
typedef struct {
    const cd_tune_replay_log *log;
    const cd_tune_replay_spec *spec;
    cd_tune_space *space;
    cd_tune_ranker *ranker;
    cd_tune_search *search;
    uint8_t *seen; /* (log->n) */
    double *told;  /* (batch) */
    uint32_t *row;
    double *search_s, used_s;
    size_t n, end;
} player;

static void stop(player *p) {
    if (p->search) p->search->kind->free(p->search);
    if (p->ranker) p->ranker->kind->free(p->ranker);
    cd_tune_space_free(p->space);
    cd_mem_free(p->seen);
    cd_mem_free(p->told);
}

/* Opening a search is part of its time: a model that is loaded or a list that is made costs a user
 * as well. */
static cdmpp_status start(player *p, const cd_tune_tuner *t, uint64_t seed, cdmpp_err *err) {
    const cd_tune_replay_log *l = p->log;
    p->seen = cd_mem_zalloc(l->n + 1, 1);
    p->told = cd_mem_zalloc(p->spec->batch, sizeof *p->told);
    if (!p->seen || !p->told) return CD_FAIL(err, ENOMEM, "%zu candidates", l->n);
    const double begin = cd_clock_thread();
    CD_TRY(cd_tune_space_log(&l->of, l->cand, l->n, seed, &p->space, err));
    cd_tune_ranker_setup r = p->spec->ranker;
    r.seed = seed;
    r.threads = 1;
    if (!r.device) r.device = l->device;
    if (t->ranker) CD_TRY(t->ranker->open(&r, &p->ranker, err));
    const cd_tune_search_setup s = {.space = p->space,
                                    .ranker = p->ranker,
                                    .seed = seed,
                                    .population = p->spec->population,
                                    .generations = p->spec->generations,
                                    .epsilon = p->spec->epsilon};
    CD_TRY(t->search->open(&s, &p->search, err));
    p->used_s = cd_clock_thread() - begin;
    return CDMPP_OK;
}

static cdmpp_status measure(player *p, const cd_tune_cand *c, size_t n, cdmpp_err *err) {
    for (size_t k = 0; k < n; k++) {
        const uint32_t row = c[k].row;
        if (row >= p->log->n || p->log->cand[row].key != c[k].key)
            return CD_FAIL(err, EINVALID, "trial %zu is not of the log", p->n);
        if (p->seen[row]++) return CD_FAIL(err, EINVALID, "trial %zu was measured before", p->n);
        p->told[k] = p->log->seconds[row];
        p->search_s[p->n] = p->used_s;
        p->row[p->n++] = row;
    }
    return CDMPP_OK;
}

/* Only ask and tell are timed. The last tell is left out: nothing is asked after it. */
static cdmpp_status play(player *p, cdmpp_err *err) {
    while (p->n < p->end) {
        const size_t want = p->end - p->n < p->spec->batch ? p->end - p->n : p->spec->batch;
        const cd_tune_cand *c;
        size_t got = 0;
        double begin = cd_clock_thread();
        CD_TRY(p->search->kind->ask(p->search, want, &c, &got, err));
        p->used_s += cd_clock_thread() - begin;
        if (!got) break;
        if (got > want) return CD_FAIL(err, EINVALID, "asked for %zu, got %zu", want, got);
        CD_TRY(measure(p, c, got, err));
        begin = cd_clock_thread();
        if (p->n < p->end) CD_TRY(p->search->kind->tell(p->search, c, p->told, got, err));
        p->used_s += cd_clock_thread() - begin;
    }
    return CDMPP_OK;
}

/* ---- all of them ---- */
typedef struct {
    const cd_tune_replay_logs *l;
    const cd_tune_replay_spec *s;
    cd_tune_replay *r;
} stage;

/* One run of a task, tuner and seed. Runs are independent, so the pool may take them in any order;
 * an error names the task and the tuner. */
static cdmpp_status one(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    (void)w;
    const stage *g = ctx;
    for (size_t i = beg; i < end; i++) {
        const size_t tuner = i / g->s->n_seed % g->s->n_tuner;
        const cd_tune_replay_log *l = &g->l->log[i / g->s->n_seed / g->s->n_tuner];
        cd_tune_replay_run *run = &g->r->run[i];
        player p = {.log = l, .spec = g->s, .end = l->n < g->s->trials ? l->n : g->s->trials};
        p.row = cd_mem_zalloc(p.end + 1, sizeof *p.row);
        p.search_s = cd_mem_zalloc(p.end + 1, sizeof *p.search_s);
        run->row = p.row;
        run->search_s = p.search_s;
        cdmpp_status st =
            p.row && p.search_s ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu trials", p.end);
        if (!st)
            st = start(&p, g->s->tuner[tuner], tune_replay_seed(l, g->s->seed + i % g->s->n_seed),
                       err);
        if (!st) st = play(&p, err);
        stop(&p);
        run->n = p.n;
        if (st) return cd_err_key(err, cd_err_at(err, st, l->key, 0), g->s->tuner[tuner]->name);
    }
    return CDMPP_OK;
}

cdmpp_status cd_tune_replay_play(const cd_tune_replay_logs *l, const cd_tune_replay_spec *s,
                                 cd_tune_replay **out, cdmpp_err *err) {
    cd_tune_replay *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "replay");
    const size_t n = l->n * s->n_tuner * s->n_seed;
    *r = (cd_tune_replay){.n_log = l->n, .n_tuner = s->n_tuner, .n_seed = s->n_seed};
    r->run = cd_mem_zalloc(n + 1, sizeof *r->run);
    stage g = {l, s, r};
    cdmpp_status st = CDMPP_OK;
    if (r->run) st = cd_threads_run(s->pool, n, 1, one, &g, err);
    else st = CD_FAIL(err, ENOMEM, "%zu runs", n);
    if (st) cd_tune_replay_free(r);
    else *out = r;
    return st;
}

void cd_tune_replay_free(cd_tune_replay *r) {
    if (!r) return;
    for (size_t i = 0; r->run && i < r->n_log * r->n_tuner * r->n_seed; i++) {
        cd_mem_free((void *)(uintptr_t)r->run[i].row);
        cd_mem_free((void *)(uintptr_t)r->run[i].search_s);
    }
    cd_mem_free(r->run);
    cd_mem_free(r);
}

/* Reads measure logs into sets of candidates, one for each task and device. Records of the same
 * steps are merged: their median counts. */

/* One record, as long as the reading lasts. */
typedef struct {
    const char *key, *device, *target;
    bool has_hardware;
    cd_hardware hardware;
    cd_tune_cand cand;
    double seconds, cost_s;
} row;

typedef struct {
    row *v;
    size_t n, cap;
    cd_arena text; /* keys, targets */
    cd_arena scratch;
    cd_arena *keep; /* of the steps */
} rows;

/* The text that the last record had too, else a copy. */
static const char *kept(rows *r, const char *last, cd_str s) {
    return last && strlen(last) == s.n && !memcmp(last, s.p, s.n) ? last : cd_str_dup(&r->text, s);
}

/* One that was not measured yet says nothing. */
static cdmpp_status add(rows *r, const cd_record *from, const char *path, bool *measured,
                        cdmpp_err *err) {
    if (CD_GROW(r->v, r->n, r->cap)) return CD_FAIL(err, ENOMEM, "records");
    const row *last = r->n ? &r->v[r->n - 1] : NULL;
    row x = {.has_hardware = from->has_hardware,
             .hardware = from->hardware,
             .cost_s = fmax(from->total_s, 0)};
    x.key = kept(r, last ? last->key : NULL, from->workload_key);
    x.target = kept(r, last ? last->target : NULL, from->target);
    x.device = kept(r, last ? last->device : NULL, cd_device_name_of(from->target, path));
    double *cost = cd_arena_alloc(&r->scratch, from->n_cost + 1, sizeof *cost);
    if (!x.key || !x.target || !x.device || !cost) return CD_FAIL(err, ENOMEM, "record");
    if (from->n_cost) memcpy(cost, from->cost_s, from->n_cost * sizeof *cost);
    const cd_label label = cd_label_of(cost, from->n_cost, from->error_no);
    *measured = label.error != CD_LABEL_NOT_MEASURED;
    if (!*measured) return CDMPP_OK;
    x.seconds = label.error || !(label.latency_s > 0 && label.latency_s < 1e9) ? CD_TUNE_FAILED_S
                                                                               : label.latency_s;
    const cd_tune_cand c = {.key = cd_record_steps_key(from->step, from->n_step),
                            .n_step = from->n_step,
                            .step = from->step};
    CD_TRY(cd_tune_cand_copy(r->keep, &c, &x.cand, err));
    r->v[r->n++] = x;
    return CDMPP_OK;
}

static void count_bad(cd_tune_replay_logs *l, cdmpp_status st, const cdmpp_err *why) {
    if (!l->bad++) l->first = *why;
    l->reason[st]++;
}

/* A line that is no record is counted and skipped, with a too long one among them; an error of the
 * file or of the heap ends the reading. */
static cdmpp_status read_file(rows *r, cd_tune_replay_logs *l, const char *path, cdmpp_err *err) {
    cd_file_lines *in = NULL;
    char *line;
    size_t len;
    CD_TRY(cd_file_lines_open(path, CD_RECORD_LINE_MAX, &in, err));
    cdmpp_status st = CDMPP_OK;
    while (!st) {
        cdmpp_err why = {0};
        cd_record rec;
        bool measured = true;
        cdmpp_status got = cd_file_lines_next(in, &line, &len, &why);
        if (got && got != CDMPP_ERANGE) {
            st = got;
            if (err) *err = why;
            break;
        }
        if (!got && !line) break;
        if (!got && cd_record_is_comment(line, len)) continue;
        l->lines++;
        cd_arena_reset(&r->scratch);
        if (!got) got = cd_record_read(&r->scratch, line, len, &rec, &why);
        if (!got) st = add(r, &rec, path, &measured, err);
        l->unmeasured += !measured;
        if (!got) continue;
        if (got == CDMPP_ENOMEM) st = CD_FAIL(err, ENOMEM, "record");
        else count_bad(l, got, (cd_err_at(&why, got, path, cd_file_lines_number(in)), &why));
    }
    cd_file_lines_close(in);
    return st;
}

/* ---- tasks ---- */
static int by_task(const void *a, const void *b) {
    const row *x = a, *y = b;
    int c = strcmp(x->key, y->key);
    if (!c) c = strcmp(x->device, y->device);
    if (c) return c;
    if (x->cand.key != y->cand.key) return x->cand.key < y->cand.key ? -1 : 1;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* One candidate of its records v (n), fastest first and the failed ones last. */
static void merge(const row *v, size_t n, double *seconds, double *cost_s, double *work) {
    size_t good = 0;
    while (good < n && v[good].seconds < CD_TUNE_FAILED_S) good++;
    *seconds = !good      ? CD_TUNE_FAILED_S
               : good % 2 ? v[good / 2].seconds
                          : (v[good / 2 - 1].seconds + v[good / 2].seconds) / 2;
    for (size_t i = 0; i < n; i++) work[i] = v[i].cost_s;
    cd_sort_doubles(work, n);
    *cost_s = work[n / 2];
}

/* What is known of a candidate, found again by its key after they were put in order. */
typedef struct {
    uint64_t key;
    double seconds, cost_s;
} known;

static int by_key(const void *a, const void *b) {
    const known *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

/* v is sorted by candidate: equal steps stand together and are merged. cd_tune_log_number changes
 * the order of candidates, so their seconds are found again by key. */
static cdmpp_status fill_log(cd_arena *a, const row *v, size_t n, cd_tune_replay_log *l, known *k,
                             double *work, cdmpp_err *err) {
    cd_tune_cand *cand = cd_arena_alloc(a, n, sizeof *cand);
    double *seconds = cd_arena_alloc(a, n, sizeof *seconds),
           *cost = cd_arena_alloc(a, n, sizeof *cost);
    if (!cand || !seconds || !cost) return CD_FAIL(err, ENOMEM, "%zu candidates", n);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && v[end].cand.key == v[i].cand.key;) end++;
        cand[l->n] = v[i].cand;
        k[l->n].key = v[i].cand.key;
        merge(v + i, end - i, &k[l->n].seconds, &k[l->n].cost_s, work);
        l->n++;
    }
    CD_TRY(cd_tune_log_number(a, cand, l->n, err));
    l->n_record = n;
    l->best_s = CD_TUNE_FAILED_S;
    for (size_t i = 0; i < l->n; i++) {
        const known *x = bsearch(&(known){.key = cand[i].key}, k, l->n, sizeof *k, by_key);
        seconds[i] = x->seconds;
        cost[i] = x->cost_s;
        l->best_s = fmin(l->best_s, seconds[i]);
        l->n_failed += seconds[i] >= CD_TUNE_FAILED_S;
    }
    l->cand = cand;
    l->seconds = seconds;
    l->cost_s = cost;
    return CDMPP_OK;
}

static cdmpp_status name_log(cd_arena *a, const cd_task_registry *tasks, const row *v,
                             cd_tune_replay_log *l, cdmpp_err *err) {
    const cd_str key = {v->key, strlen(v->key)};
    const cd_str device = {v->device, strlen(v->device)};
    const cd_str target = {v->target, strlen(v->target)};
    *l = (cd_tune_replay_log){.key = cd_str_dup(a, key), .device = cd_str_dup(a, device)};
    const cd_task *t = tasks ? cd_task_registry_find(tasks, key) : NULL;
    l->of = (cd_tune_task){.task = t && t->dag ? t : NULL,
                           .target = cd_str_dup(a, target),
                           .hardware = v->hardware,
                           .gpu = cd_target_is_gpu(target),
                           .flop = -1};
    if (l->of.task) l->of.flop = cd_task_flop(t);
    if (!v->has_hardware)
        l->of.hardware = t && t->has_hardware ? t->hardware : cd_target_hardware(l->of.gpu, 1, 32);
    return l->key && l->device && l->of.target ? CDMPP_OK : CD_FAIL(err, ENOMEM, "task");
}

static bool same_task(const row *x, const row *y) {
    return !strcmp(x->key, y->key) && !strcmp(x->device, y->device);
}

static cdmpp_status make_logs(const cd_task_registry *tasks, const rows *r,
                              cd_tune_replay_logs *out, known *k, double *work, cdmpp_err *err) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) n += !i || !same_task(&r->v[i], &r->v[i - 1]);
    out->log = cd_arena_zalloc(&out->arena, n + 1, sizeof *out->log);
    if (!out->log) return CD_FAIL(err, ENOMEM, "%zu tasks", n);
    for (size_t i = 0, end; i < r->n; i = end) {
        cd_tune_replay_log *l = &out->log[out->n++];
        for (end = i + 1; end < r->n && same_task(&r->v[end], &r->v[i]);) end++;
        CD_TRY(name_log(&out->arena, tasks, &r->v[i], l, err));
        CD_TRY(fill_log(&out->arena, &r->v[i], end - i, l, k, work, err));
    }
    return CDMPP_OK;
}

/* Records are sorted by task and device before they become logs, so the order of files and lines
 * does not matter. */
cdmpp_status cd_tune_replay_logs_read(const cd_task_registry *tasks, const char *const *input,
                                      size_t n_input, cd_tune_replay_logs *out, cdmpp_err *err) {
    *out = (cd_tune_replay_logs){0};
    rows r = {.keep = &out->arena};
    cd_inputs in = {0};
    cdmpp_status st = cd_inputs_list(&(cd_extract){.input = input, .n_input = n_input}, &in, err);
    for (size_t i = 0; !st && i < in.n; i++) st = read_file(&r, out, in.path[i], err);
    if (!st && r.n) qsort(r.v, r.n, sizeof *r.v, by_task);
    known *k = cd_mem_zalloc(r.n + 1, sizeof *k);
    double *work = cd_mem_zalloc(r.n + 1, sizeof *work);
    if (!st && (!k || !work)) st = CD_FAIL(err, ENOMEM, "%zu records", r.n);
    if (!st) st = make_logs(tasks, &r, out, k, work, err);
    cd_mem_free(k);
    cd_mem_free(work);
    cd_mem_free(r.v);
    cd_arena_free(&r.text);
    cd_arena_free(&r.scratch);
    cd_inputs_free(&in);
    return st;
}

void cd_tune_replay_logs_free(cd_tune_replay_logs *l) {
    cd_arena_free(&l->arena);
    *l = (cd_tune_replay_logs){0};
}

/* Leave out the logs that keep() refuses; the number that stayed. */
static size_t tune_replay_logs_keep(cd_tune_replay_logs *l,
                                    bool (*keep)(const cd_tune_replay_log *, const void *),
                                    const void *arg) {
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (keep(&l->log[i], arg)) l->log[n++] = l->log[i];
    return l->n = n;
}

/* Which tasks a replay uses, and the replay itself. */

enum { TRIALS = 300, BATCH = 10, SEEDS = 5, MIN_PROGRAMS = 32 };

bool cd_tune_replay_ranks(const cd_tune_compare_plan *p) {
    for (size_t k = 0; k < p->n_tuner; k++)
        if (p->tuner[k]->ranker) return true;
    return false;
}

/* ---- which tasks ---- */
static bool keep(const cd_tune_replay_log *l, const void *arg) {
    cd_tune_replay_set *s = (cd_tune_replay_set *)(uintptr_t)arg;
    const bool undefined = cd_tune_replay_ranks(s->o->plan) && !l->of.task, small = l->n < s->min,
               seen = s->held && cd_heldout_seen(s->held, l->key);
    s->n_seen += seen;
    s->n_small += !seen && small;
    s->n_undefined += !seen && !small && undefined;
    return !seen && !small && !undefined;
}

static void report_logs(const cd_tune_replay_set *s) {
    const cd_tune_replay_logs *l = &s->logs;
    if (l->bad) {
        char first[640];
        cd_log_put(s->o->log, CD_LOG_WARNING, "%zu of %zu lines are no records; the first: %s",
                   l->bad, l->lines, cdmpp_err_format(&l->first, first, sizeof first));
    }
    if (l->unmeasured)
        cd_log_put(s->o->log, CD_LOG_WARNING, "%zu records have no result and are left out",
                   l->unmeasured);
    if (s->n_undefined)
        cd_log_put(s->o->log, CD_LOG_WARNING, "%zu tasks that --tasks does not define are left out",
                   s->n_undefined);
    if (s->model && !s->held)
        cd_log_put(s->o->log, CD_LOG_WARNING,
                   "--held-out=false: the model may have been trained on these tasks");
}

static cdmpp_status none_left(const cd_tune_replay_set *s, cdmpp_err *err) {
    return CD_FAIL(err, ENODATA,
                   "no task is left of %zu: %zu were seen by the model in training, %zu have too "
                   "few programs, %zu no definition",
                   s->n_all, s->n_seen, s->n_small, s->n_undefined);
}

/* The model comes first: whether its split can be made again is known before hours of logs are
 * read. */
static cdmpp_status read_all(cd_tune_replay_set *s, cdmpp_err *err) {
    const cd_tune_replay_options *o = s->o;
    if (o->model) CD_TRY(cd_model_load(o->model, &s->model, err));
    if (o->model && o->held_out) {
        const cdmpp_status st =
            cd_heldout_new(cd_model_header(s->model), o->data.v, o->data.n, &s->held, err);
        if (st)
            cd_log_put(o->log, CD_LOG_INFO,
                       "to leave out what the model was trained on, its data set is needed "
                       "(--data); --held-out=false goes on without");
        CD_TRY(st);
    }
    CD_TRY(cd_task_registry_new(&s->tasks, err));
    CD_TRY(cd_task_registry_load_all(s->tasks, o->tasks.v, o->tasks.n, o->log, err));
    CD_TRY(cd_tune_replay_logs_read(s->tasks, o->input.v, o->input.n, &s->logs, err));
    s->n_all = s->logs.n;
    tune_replay_logs_keep(&s->logs, keep, s);
    report_logs(s);
    return s->logs.n ? CDMPP_OK : none_left(s, err);
}

/* ---- the replay ---- */
static cd_tune_replay_spec spec_of(const cd_tune_replay_set *s) {
    const cd_tune_replay_options *o = s->o;
    return (cd_tune_replay_spec){.tuner = o->plan->tuner,
                                 .n_tuner = o->plan->n_tuner,
                                 .n_seed = o->seeds ? (size_t)o->seeds : SEEDS,
                                 .seed = (uint64_t)o->seed,
                                 .batch = o->per_round ? (size_t)o->per_round : BATCH,
                                 .trials = o->trials ? (size_t)o->trials : TRIALS,
                                 .ranker = {.model = s->model,
                                            .device = o->device,
                                            .nearest = o->nearest,
                                            .frozen = o->frozen},
                                 .population = (uint32_t)o->population,
                                 .generations = (uint32_t)o->generations,
                                 .epsilon = o->epsilon,
                                 .pool = s->pool};
}

cdmpp_status cd_tune_replay_set_run(const cd_tune_replay_options *o, cd_tune_replay_set *out,
                                    cdmpp_err *err) {
    *out = (cd_tune_replay_set){.o = o, .min = o->min ? (size_t)o->min : MIN_PROGRAMS};
    CD_TRY(read_all(out, err));
    CD_TRY(cd_threads_new(o->jobs, &out->pool, err));
    out->spec = spec_of(out);
    return cd_tune_replay_play(&out->logs, &out->spec, &out->replay, err);
}

void cd_tune_replay_set_free(cd_tune_replay_set *s) {
    cd_tune_replay_free(s->replay);
    cd_tune_replay_logs_free(&s->logs);
    cd_threads_free(s->pool);
    cd_task_registry_free(s->tasks);
    cd_heldout_free(s->held);
    cd_model_free(s->model);
}
