/* Makes contexts: the model of the profile, one scorer a thread, the cache, and the descriptions of
 * devices for the nearest one. */
#include <string.h>
#include <unistd.h>

#include "predictor/api/api_internal.h"

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
    if (o->observer) cd_observe_digest(m, own);
    if (o->observer && strcmp(own, o->observer->model) != 0)
        return CD_FAIL(err, EMODEL, "observer: of model %.16s, this one is %.16s",
                       o->observer->model, own);
    if (o->nthreads < 0 || o->nthreads > CD_MAX_THREADS)
        return CD_FAIL(err, EUSAGE, "cdmpp_options.nthreads: expected 0 to %d, found %d",
                       CD_MAX_THREADS, o->nthreads);
    if (!o->profile || cd_api_profile(m, o->profile)) return CDMPP_OK;
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
    c->impl = cd_api_profile(m, o.profile);
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
