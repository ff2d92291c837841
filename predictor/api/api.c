/* The public calls of cdmpp.h about models and tasks: thin, no logic of their own. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "learner/llm_op/llm_op.h"
#include "learner/operators/operators.h"
#include "predictor/api/api_internal.h"

int cdmpp_abi_version(void) { return CDMPP_ABI; }

cdmpp_status cd_api_copy_struct(void *to, size_t to_size, const void *from, size_t least,
                                const char *name, cdmpp_err *err) {
    size_t size;
    memcpy(&size, from, sizeof size);
    if (size < least || size > 4096)
        return CD_FAIL(err, EUSAGE, "%s.size: expected %zu, found %zu", name, to_size, size);
    memset(to, 0, to_size);
    memcpy(to, from, size < to_size ? size : to_size);
    for (size_t k = to_size; k < size; k++)
        if (((const char *)from)[k])
            return CD_FAIL(err, EUSAGE,
                           "%s sets a field that this version of the library does not know", name);
    return CDMPP_OK;
}

/* ---- tasks ---- */
cdmpp_status cdmpp_tasks_new(cdmpp_tasks **out, cdmpp_err *err) {
    cdmpp_tasks *t = cd_mem_alloc(sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "tasks handle");
    const cdmpp_status st = cd_task_registry_new(&t->impl, err);
    if (st) cd_mem_free(t);
    else *out = t;
    return st;
}

cdmpp_status cdmpp_tasks_load(cdmpp_tasks *t, const char *path, cdmpp_err *err) {
    return cd_task_registry_load(t->impl, path, err);
}

cdmpp_status cdmpp_tasks_add(cdmpp_tasks *t, const char *name, const void *bytes, size_t len,
                             cdmpp_err *err) {
    return cd_task_registry_load_text(t->impl, name, bytes, len, err);
}

size_t cdmpp_tasks_count(const cdmpp_tasks *t) { return cd_task_registry_count(t->impl); }
const char *cdmpp_tasks_key(const cdmpp_tasks *t, size_t i) {
    return cd_task_registry_at(t->impl, i)->workload_key;
}

const cdmpp_err *cdmpp_tasks_warning(const cdmpp_tasks *t, size_t i) {
    return cd_task_registry_unused(t->impl, i);
}

void cdmpp_tasks_free(cdmpp_tasks *t) {
    if (!t) return;
    cd_task_registry_free(t->impl);
    cd_mem_free(t);
}

/* ---- one task ---- */
static cd_hardware hardware_of(const int64_t *v) {
    return (cd_hardware){v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
}

/* One allocation holds key and target, and the aim points into it. flop: the caller's, else counted
 * from the definition, else -1 (unknown). */
static cdmpp_status fill_task(cdmpp_task *t, const cdmpp_tasks *tasks, const cdmpp_task_info *i,
                              cdmpp_err *err) {
    const size_t n_key = strlen(i->workload_key);
    cd_aim *a = &t->aim;
    if (tasks && !(a->task = cd_task_registry_find(tasks->impl, (cd_str){i->workload_key, n_key})))
        return CD_FAIL(err, ENOTASK, "no task file defines %.150s", i->workload_key);
    const char *target = i->target ? i->target : a->task ? a->task->target : "";
    const size_t n_target = strlen(target);
    if (!(t->text = cd_mem_alloc(n_key + n_target + 2))) return CD_FAIL(err, ENOMEM, "task handle");
    memcpy(t->text, i->workload_key, n_key + 1);
    memcpy(t->text + n_key + 1, target, n_target + 1);
    a->workload_key = t->text;
    a->target = (cd_str){t->text + n_key + 1, n_target};
    a->has_hardware = i->hardware != NULL;
    if (i->hardware) a->hardware = hardware_of(i->hardware);
    a->flop = i->flop > 0 ? i->flop : a->task ? cd_task_flop(a->task) : -1;
    return CDMPP_OK;
}

cdmpp_status cdmpp_task_new(const cdmpp_tasks *tasks, const cdmpp_task_info *info, cdmpp_task **out,
                            cdmpp_err *err) {
    cdmpp_task_info i;
    CD_TRY(cd_api_copy_struct(&i, sizeof i, info, sizeof i, "cdmpp_task_info", err));
    if (!i.workload_key) return CD_FAIL(err, EUSAGE, "cdmpp_task_info.workload_key is missing");
    cdmpp_task *t = cd_mem_zalloc(1, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "task handle");
    const cdmpp_status st = fill_task(t, tasks, &i, err);
    if (st) cdmpp_task_free(t);
    else *out = t;
    return st;
}

double cdmpp_task_flop(const cdmpp_task *t) { return t->aim.flop; }

void cdmpp_task_free(cdmpp_task *t) {
    if (!t) return;
    cd_mem_free(t->text);
    cd_mem_free(t);
}

/* ---- model ---- */
static cdmpp_status keep_model(cd_model *impl, cdmpp_model **out, cdmpp_err *err) {
    cdmpp_model *m = cd_mem_alloc(sizeof *m);
    if (!m) {
        cd_model_free(impl);
        return CD_FAIL(err, ENOMEM, "model handle");
    }
    m->impl = impl;
    *out = m;
    return CDMPP_OK;
}

cdmpp_status cdmpp_model_load(const char *path, cdmpp_model **out, cdmpp_err *err) {
    cd_model *impl = NULL;
    cd_arena a = {0};
    if (!path) path = cd_default_model_path(&a);
    const cdmpp_status st = path ? cd_model_load(path, &impl, err) : cd_default_model_missing(err);
    cd_arena_free(&a);
    CD_TRY(st);
    return keep_model(impl, out, err);
}

cdmpp_status cdmpp_model_read(const void *bytes, size_t len, cdmpp_model **out, cdmpp_err *err) {
    cd_model *impl = NULL;
    CD_TRY(cd_model_from_bytes(bytes, len, &impl, err));
    return keep_model(impl, out, err);
}

const char *cdmpp_model_info(const cdmpp_model *m) { return cd_model_header(m->impl); }
size_t cdmpp_model_n_device(const cdmpp_model *m) { return cd_model_n_device(m->impl); }

const char *cdmpp_model_device(const cdmpp_model *m, size_t i) {
    return i < cd_model_n_device(m->impl) ? cd_model_device(m->impl, i) : NULL;
}

static const char *const profile[] = {"full", "tuner", "two-stage"};

size_t cdmpp_model_n_profile(const cdmpp_model *m) {
    return cd_model_tuner(m->impl) ? sizeof profile / sizeof *profile : 1;
}

const char *cdmpp_model_profile(const cdmpp_model *m, size_t i) {
    return i < cdmpp_model_n_profile(m) ? profile[i] : NULL;
}

/* The model behind a profile; NULL: there is no such profile. */
static const cd_model *api_profile(const cdmpp_model *m, const char *name) {
    size_t i = 0;
    while (name && i < cdmpp_model_n_profile(m) && strcmp(name, profile[i]) != 0) i++;
    if (i == cdmpp_model_n_profile(m)) return NULL;
    return i ? cd_model_tuner(m->impl) : m->impl;
}

size_t cdmpp_model_n_col(const cdmpp_model *m) {
    (void)m; /* a model for other columns does not load */
    return CD_N_COL;
}

int cdmpp_model_takes_rows(const cdmpp_model *m) {
    return !cd_model_needs_leaves(m->impl) && !cd_model_needs_steps(m->impl) &&
           !cd_model_needs_facts(m->impl);
}

void cdmpp_model_free(cdmpp_model *m) {
    if (!m) return;
    cd_model_free(m->impl);
    cd_mem_free(m);
}

cdmpp_status cd_api_give_text(cd_buf *b, const char *what, char *to, size_t cap, size_t *len,
                              cdmpp_err *err) {
    cdmpp_status st = b->oom ? CD_FAIL(err, ENOMEM, "%s", what) : CDMPP_OK;
    if (!st) *len = b->n;
    if (!st && to && cap <= b->n)
        st = CD_FAIL(err, ERANGE, "expected room for %zu bytes, found %zu", b->n + 1, cap);
    if (!st && to) memcpy(to, b->p, b->n + 1);
    cd_buf_free(b);
    return st;
}

/* SHA-256 of the model's header as 64 hex digits: tells which model an observer belongs to.
 *
 * Takes measured times of candidates: each is predicted without corrections and the pair is kept,
 * so that corrections are fitted to the model itself and not to themselves. */
static void observe_digest(const cdmpp_model *m, char out[65]) {
    const char *header = cd_model_header(m->impl);
    cd_sha256 h;
    cd_sha256_init(&h);
    cd_sha256_add(&h, header, strlen(header));
    cd_sha256_hex(&h, out);
}

/* ---- the handle ---- */
static cdmpp_status new_observer(const cdmpp_model *m, cdmpp_observer **out, cdmpp_err *err) {
    cdmpp_observer *o = cd_mem_zalloc(1, sizeof *o);
    if (!o) return CD_FAIL(err, ENOMEM, "observer handle");
    observe_digest(m, o->model);
    *out = o;
    return CDMPP_OK;
}

cdmpp_status cdmpp_observer_new(const cdmpp_model *m, cdmpp_observer **out, cdmpp_err *err) {
    cdmpp_observer *o = NULL;
    CD_TRY(new_observer(m, &o, err));
    const cdmpp_status st = cd_online_adapt_new(&o->impl, err);
    if (st) cdmpp_observer_free(o);
    else *out = o;
    return st;
}

cdmpp_status cdmpp_observer_read(const cdmpp_model *m, const char *text, size_t len,
                                 cdmpp_observer **out, cdmpp_err *err) {
    cdmpp_observer *o = NULL;
    CD_TRY(new_observer(m, &o, err));
    const cdmpp_status st = cd_online_adapt_read(text, len, o->model, &o->impl, err);
    if (st) cdmpp_observer_free(o);
    else *out = o;
    return st;
}

cdmpp_status cdmpp_observer_write(const cdmpp_observer *o, char *text, size_t cap, size_t *len,
                                  cdmpp_err *err) {
    cd_buf b = {0};
    cd_online_adapt_write(o->impl, o->model, &b);
    return cd_api_give_text(&b, "observer as text", text, cap, len, err);
}

size_t cdmpp_observer_count(const cdmpp_observer *o) { return cd_online_adapt_count(o->impl); }

void cdmpp_observer_free(cdmpp_observer *o) {
    if (!o) return;
    cd_online_adapt_free(o->impl);
    cd_mem_free(o);
}

/* ---- observing ---- */
/* What a worker found out about a candidate; entered afterwards, in the order of the batch. */
typedef struct {
    cdmpp_status st;
    cd_device_pick which;
    const char *key;
    cd_online_adapt_item item;
} observed_program;

typedef struct {
    const double *seconds;
    observed_program *found; /* (n) */
} collection;

/* Runs on the workers' threads; each writes only its own entries of found[]. A time that is not
 * positive and finite refuses its candidate alone. */
static cdmpp_status collect(void *arg, cd_api_worker *w, size_t first, size_t n, cdmpp_err *err) {
    const collection *c = arg;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const cd_scored *o = &w->scored[i];
        const double y = c->seconds[first + i];
        observed_program *f = &c->found[first + i];
        f->st = o->st ? o->st : y > 0 && isfinite(y) ? CDMPP_OK : CDMPP_ERANGE;
        if (f->st) continue;
        f->which = o->which;
        f->key = o->key;
        f->item = cd_online_adapt_item_of(&o->pred, o->which.unknown, o->trait, y);
    }
    return CDMPP_OK;
}

static cdmpp_status enter(cd_online_adapt *a, const observed_program *f, size_t n, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++)
        if (!f[i].st)
            CD_TRY(cd_online_adapt_add(a, f[i].which.name, f[i].which.unknown, f[i].key, &f[i].item,
                                       err));
    return cd_online_adapt_fit(a, err);
}

cdmpp_status cdmpp_observe(cdmpp_context *c, const cdmpp_batch *batch, const double *seconds,
                           cdmpp_status *status, cdmpp_err *err) {
    cdmpp_batch b;
    CD_TRY(cd_api_copy_struct(&b, sizeof b, batch, sizeof b, "cdmpp_batch", err));
    if (!c->observer) return CD_FAIL(err, EUSAGE, "cdmpp_options.observer: the context has none");
    if (!seconds && b.n) return CD_FAIL(err, EUSAGE, "seconds are missing");
    collection k = {seconds, cd_mem_zalloc(b.n + 1, sizeof(observed_program))};
    if (!k.found) return CD_FAIL(err, ENOMEM, "%zu measured programs", b.n);
    cdmpp_status st = cd_score_batch(c, &b, collect, &k, err);
    if (!st) st = enter(c->observer->impl, k.found, b.n, err);
    for (size_t i = 0; !st && status && i < b.n; i++) status[i] = k.found[i].st;
    cd_mem_free(k.found);
    return st;
}

/* Makes contexts: the model of the profile, one scorer a thread, the cache, and the descriptions of
 * devices for the nearest one. */

static cdmpp_status load_devices(const char *file, cd_device_table **out, cdmpp_err *err) {
    cd_arena a = {0};
    cd_diag diag = {0};
    const cdmpp_status st = cd_device_table_open(&a, file, NULL, &diag, NULL, out, err);
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st;
}

/* Descriptions are optional unless a file is named: a model of one device needs none to find the
 * nearest, and a device without one has no known peak. */
static cdmpp_status find_devices(cdmpp_context *c, const cdmpp_options *o, cdmpp_err *err) {
    const cdmpp_status st =
        load_devices(o->devices_file, &c->devices, o->devices_file ? err : NULL);
    return o->devices_file || st == CDMPP_ENOMEM ? st : CDMPP_OK;
}

static cdmpp_status check(const cdmpp_model *m, const cdmpp_options *o, cdmpp_err *err) {
    char own[65];
    if (o->observer) observe_digest(m, own);
    if (o->observer && strcmp(own, o->observer->model) != 0)
        return CD_FAIL(err, EMODEL, "observer: of model %.16s, this one is %.16s",
                       o->observer->model, own);
    if (o->nthreads < 0 || o->nthreads > CD_MAX_THREADS)
        return CD_FAIL(err, EUSAGE, "cdmpp_options.nthreads: expected 0 to %d, found %d",
                       CD_MAX_THREADS, o->nthreads);
    if (!o->profile || api_profile(m, o->profile)) return CDMPP_OK;
    return CD_FAIL(err, EMODEL, "profile: expected %s, found '%.60s'",
                   cdmpp_model_n_profile(m) > 1 ? "full, tuner or two-stage"
                                                : "full (trained without model.tuner)",
                   o->profile);
}

static cdmpp_status add_workers(cdmpp_context *c, const cdmpp_tasks *tasks, const cdmpp_options *o,
                                cdmpp_err *err) {
    const int n = o->nthreads > 1 ? o->nthreads : 1;
    const cd_scorer_options so = {.which = {o->device, o->nearest_device != 0, c->devices},
                                  .max_rows = o->max_rows ? o->max_rows : CD_MAX_ROWS,
                                  .traits = o->observer != NULL,
                                  .peaks = c->devices};
    c->worker = cd_mem_zalloc((size_t)n, sizeof *c->worker);
    if (!c->worker) return CD_FAIL(err, ENOMEM, "%d threads", n);
    for (; c->n_worker < n; c->n_worker++) {
        cd_api_worker *w = &c->worker[c->n_worker];
        CD_TRY(cd_scorer_new(c->impl, tasks ? tasks->impl : NULL, &so, &w->scorer, err));
        if (!(w->scored = cd_mem_zalloc(CD_CHUNK, sizeof *w->scored)) ||
            !(w->key = cd_mem_zalloc(CD_CHUNK, sizeof *w->key))) {
            c->n_worker++; /* so that its scorer is freed */
            return CD_FAIL(err, ENOMEM, "chunk of %d candidates", CD_CHUNK);
        }
    }
    return n > 1 ? cd_threads_new(n, &c->pool, err) : CDMPP_OK;
}

/* Two-stage is two contexts: this one with the tuner, `second` with the whole model. `owner` is
 * this process: a forked child has none of its threads. */
cdmpp_status cdmpp_context_new(const cdmpp_model *m, const cdmpp_tasks *tasks,
                               const cdmpp_options *options, cdmpp_context **out, cdmpp_err *err) {
    cdmpp_options o = {0};
    if (options)
        CD_TRY(cd_api_copy_struct(&o, sizeof o, options, offsetof(cdmpp_options, cache),
                                  "cdmpp_options", err));
    CD_TRY(check(m, &o, err));
    cdmpp_context *c = cd_mem_zalloc(1, sizeof *c);
    if (!c) return CD_FAIL(err, ENOMEM, "context");
    c->m = m;
    c->impl = api_profile(m, o.profile);
    c->observer = o.observer;
    c->owner = getpid();
    cdmpp_status st = find_devices(c, &o, err);
    if (!st) st = add_workers(c, tasks, &o, err);
    if (!st && o.cache) st = cd_answer_cache_new(o.cache, &c->cache, err);
    if (!st && o.profile && !strcmp(o.profile, "two-stage")) {
        o.profile = "full";
        st = cdmpp_context_new(m, tasks, &o, &c->second, err);
    }
    if (st) cdmpp_context_free(c);
    else *out = c;
    return st;
}

const char *cdmpp_context_device(const cdmpp_context *c) {
    const cd_device_pick *p = cd_scorer_fixed(c->worker[0].scorer);
    return p ? cd_model_device(c->m->impl, p->device) : NULL;
}

void cdmpp_context_cache(const cdmpp_context *c, uint64_t *asked, uint64_t *found) {
    uint64_t a = 0, f = 0;
    *asked = *found = 0;
    for (; c; c = c->second) { /* two-stage: of both */
        if (c->cache) cd_answer_cache_counts(c->cache, &a, &f);
        *asked += a;
        *found += f;
        a = f = 0;
    }
}

void cdmpp_context_free(cdmpp_context *c) {
    if (!c) return;
    for (int w = 0; w < c->n_worker; w++) {
        cd_scorer_free(c->worker[w].scorer);
        cd_mem_free(c->worker[w].scored);
        cd_mem_free(c->worker[w].key);
    }
    cd_mem_free(c->worker);
    /* a child has no such threads to wait for */
    if (c->owner == getpid()) cd_threads_free(c->pool);
    cd_answer_cache_free(c->cache);
    cd_device_table_free(c->devices);
    cdmpp_context_free(c->second);
    cd_mem_free(c->first_s);
    cd_mem_free(c->best);
    cd_mem_free(c->at);
    cd_mem_free(c);
}

/* cdmpp_operators: a model of operators of language models, with what was measured, behind the
 * calls of cdmpp.h. */

struct cdmpp_operators {
    cd_llm_op_oracle of;
    double level;
};

_Static_assert(sizeof(cdmpp_operator_value) == sizeof(cd_op_named) &&
                   offsetof(cdmpp_operator_value, text) == offsetof(cd_op_named, text) &&
                   offsetof(cdmpp_operator_value, number) == offsetof(cd_op_named, number),
               "values go as they are");
_Static_assert((int)CDMPP_OPERATOR_PREDICTED == (int)CD_LLM_OP_PREDICTED &&
                   CDMPP_OPERATOR_NEW_SIZE == CD_LLM_OP_NEW_SIZE &&
                   CDMPP_OPERATOR_ALIKE > CD_LLM_OP_NEW_VENDOR,
               "how and news go as they are");

cdmpp_status cdmpp_operators_open(const char *model, const cdmpp_operators_options *options,
                                  cdmpp_operators **out, cdmpp_err *err) {
    cdmpp_operators_options a = {0};
    if (options)
        CD_TRY(cd_api_copy_struct(&a, sizeof a, options, sizeof a, "cdmpp_operators_options", err));
    if (a.level != 0 && !(a.level >= 0.01 && a.level <= 0.999))
        return CD_FAIL(err, EUSAGE, "level: expected 0.01 to 0.999, found %g", a.level);
    cdmpp_operators *o = cd_mem_zalloc(1, sizeof *o);
    if (!o) return CD_FAIL(err, ENOMEM, "operators handle");
    cd_arena arena = {0};
    if (!model) model = cd_default_model_llm(&arena);
    const cd_llm_op_oracle_options how = {.model = model,
                                          .devices_file = a.devices_file,
                                          .device = a.device,
                                          .measured = a.measured,
                                          .n_measured = a.n_measured};
    o->level = a.level > 0 ? a.level : 0.9;
    cdmpp_status st = CDMPP_OK;
    if (model) st = cd_llm_op_oracle_open(&o->of, &how, err);
    else
        st = CD_FAIL(
            err, EUSAGE,
            "no model of operators of language models is installed: name a file of cdmpp-train");
    cd_arena_free(&arena);
    if (st) cdmpp_operators_free(o);
    else *out = o;
    return st;
}

void cdmpp_operators_free(cdmpp_operators *o) {
    if (!o) return;
    cd_llm_op_oracle_free(&o->of);
    cd_mem_free(o);
}

size_t cdmpp_operators_rows(const cdmpp_operators *o) { return o->of.t.n; }
size_t cdmpp_operators_skipped(const cdmpp_operators *o) { return cd_llm_op_oracle_bad(&o->of); }

/* Bits above those that the first version had are others here. */
static uint32_t news_of(const cd_llm_op_answer *a) {
    const uint32_t first = a->news & (2u * CD_LLM_OP_NEW_VENDOR - 1);
    return first | (a->alike ? CDMPP_OPERATOR_ALIKE : 0) |
           (a->news & CD_LLM_OP_NEW_KIND ? CDMPP_OPERATOR_NEW_OPERATOR : 0);
}

static void put(const cdmpp_operator_result *r, size_t i, const cd_llm_op_answer *a,
                cdmpp_status st, const cdmpp_err *why) {
    if (r->seconds) r->seconds[i] = st ? (double)INFINITY : a->latency_s;
    if (r->low) r->low[i] = st ? (double)NAN : a->low_s;
    if (r->high) r->high[i] = st ? (double)NAN : a->high_s;
    if (r->estimate) r->estimate[i] = st ? (double)NAN : a->base_s;
    if (r->bound) r->bound[i] = st ? (double)NAN : a->roof_s;
    if (r->how) r->how[i] = st ? CDMPP_OPERATOR_PREDICTED : (cdmpp_operator_how)a->how;
    if (r->news) r->news[i] = st ? 0 : news_of(a);
    if (r->status) r->status[i] = st;
    if (r->error) r->error[i] = *why;
}

cdmpp_status cdmpp_operators_ask(const cdmpp_operators *o, const cdmpp_operator *v, size_t n,
                                 const cdmpp_operator_result *out, cdmpp_err *err) {
    cdmpp_operator_result r;
    CD_TRY(cd_api_copy_struct(&r, sizeof r, out, sizeof r, "cdmpp_operator_result", err));
    for (size_t done = 0, m; done < n; done += m) {
        cd_llm_op_told told[CD_LLM_OP_TOLD] = {0};
        cdmpp_err why[CD_LLM_OP_TOLD] = {0};
        m = n - done < CD_LLM_OP_TOLD ? n - done : CD_LLM_OP_TOLD;
        for (size_t i = 0; i < m; i++) {
            const cdmpp_operator *k = &v[done + i];
            if (cd_llm_op_oracle_read(&o->of, (const cd_op_named *)k->value, k->n, &told[i],
                                      &why[i]) != CDMPP_ENOMEM)
                continue;
            if (err) *err = why[i];
            return CDMPP_ENOMEM;
        }
        CD_TRY(cd_llm_op_ask_told(o->of.asker, told, why, m, o->level, err));
        for (size_t i = 0; i < m; i++) put(&r, done + i, &told[i].a, why[i].code, &why[i]);
    }
    return CDMPP_OK;
}
