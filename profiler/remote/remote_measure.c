/* Programs of a search on boards. The pool's answers become results; one that is missing ends the
 * run, so that a search never goes on with times that nobody measured. */
#include <stdio.h>
#include <string.h>

#include "profiler/remote/remote_internal.h"

enum { BROKE = 4 }; /* TVM's number of an error while running */

struct cd_remote_measure {
    cd_remote_measure_options o;
    cd_arena arena;        /* of the hosts' command lines */
    cd_remote_host *host;  /* (o.n_host) */
    cd_remote_about about; /* of the first */
};

typedef struct {
    cd_remote_measure *m;
    const cd_remote_measure_jobs *j;
    cd_arena arena; /* lines */
    cd_buf setup;
} run;

cdmpp_status cd_remote_measure_open(const cd_remote_measure_options *o, cd_remote_measure **out,
                                    cdmpp_err *err) {
    cd_remote_measure *m = cd_mem_zalloc(1, sizeof *m);
    if (!m) return CD_FAIL(err, ENOMEM, "hosts");
    m->o = *o;
    m->o.policy.core = o->core;
    const cd_remote_way way = {o->host,       o->n_host,  o->port, o->transport,
                               &m->o.measure, o->threads, o->core};
    cdmpp_status st = o->n_host ? CDMPP_OK : CD_FAIL(err, EUSAGE, "no host is named");
    if (!st) st = cd_remote_way_hosts(&m->arena, &way, &m->host, err);
    if (!st) st = cd_remote_ask(&m->host[0], &m->o.policy, o->measure.stop, &m->about, err);
    if (st) cd_remote_measure_close(m);
    else *out = m;
    return st;
}

void cd_remote_measure_close(cd_remote_measure *m) {
    if (!m) return;
    cd_arena_free(&m->arena);
    cd_mem_free(m);
}

const cd_remote_about *cd_remote_measure_about(const cd_remote_measure *m) { return &m->about; }
const char *cd_remote_measure_name(const cd_remote_measure *m) { return m->host[0].name; }

/* ---- answers ---- */

/* Costs are what a record of the worker has; they stand in place of its samples, which do not
 * travel. */
static void take_costs(const cd_remote_times *t, cd_measure_result *r) {
    cd_timing *x = &r->time;
    x->n = x->n_kept = t->n_cost < CD_TIMING_MAX ? t->n_cost : CD_TIMING_MAX;
    for (unsigned i = 0; i < x->n; i++) x->sample_s[i] = t->cost_s[i], x->kept[i] = true;
    if (!t->has_stats) r->run_s = t->total_s;
}

static cdmpp_status no_answer(const run *r, const cd_remote_answer *a, size_t i, cdmpp_err *err) {
    const char *host = a->host[0] ? a->host : r->m->host[0].name;
    if (a->status != CDMPP_EBACKEND) {
        cd_err_raise(err, a->status, __FILE__, __LINE__, "%.60s refuses a program: %.300s", host,
                     a->err ? a->err->msg : "");
        return a->status;
    }
    return CD_FAIL(err, EBACKEND,
                   "the connection to %.60s is lost, after %zu of %zu programs: %.300s", host, i,
                   r->j->n, a->err ? a->err->msg : "");
}

static cdmpp_status on_answer(void *ctx, size_t i, const cd_remote_answer *a, cdmpp_err *err) {
    const run *r = ctx;
    cd_measure_result out;
    if (a->status && !a->broke) return no_answer(r, a, i, err);
    if (a->status) {
        out = (cd_measure_result){0};
        cd_measure_result_fail(&out, BROKE, a->err);
    } else {
        if (strcmp(a->device, r->m->about.device) != 0)
            return CD_FAIL(
                err, EUSAGE,
                "%.60s is \"%.60s\" and %.60s is \"%.60s\": boards of one search are of one kind",
                a->host, a->device, r->m->host[0].name, r->m->about.device);
        cd_remote_result(a->times, &out);
        if (!out.error_no) take_costs(a->times, &out);
    }
    return r->j->each(r->j->ctx, i, &out, err);
}

static void on_event(void *ctx, const char *host, const char *what) {
    cd_record_listener_note(((const run *)ctx)->m->o.listener, "%s: %s", host, what);
}

/* ---- a run ---- */
static cdmpp_status go(run *r, cdmpp_err *err) {
    const cd_remote_measure_options *o = &r->m->o;
    const cd_remote_measure_jobs *j = r->j;
    const cd_remote_watch w = {on_answer, on_event, r, o->measure.stop};
    cd_str *line = CD_NEWN(&r->arena, cd_str, j->n + 1);
    if (!line) return CD_FAIL(err, ENOMEM, "%zu jobs", j->n);
    for (size_t i = 0; i < j->n; i++)
        CD_TRY(cd_remote_line(&r->arena, &j->job[i]->record, &line[i], err));
    CD_TRY(cd_remote_setup_put(&r->setup, j->tasks, j->check, err));
    return cd_remote_run(r->m->host, j->one ? 1 : o->n_host, &r->m->o.policy, line, j->n,
                         r->setup.p, &w, err);
}

cdmpp_status cd_remote_measure_run(cd_remote_measure *m, const cd_remote_measure_jobs *j,
                                   cdmpp_err *err) {
    run r = {.m = m, .j = j};
    const cdmpp_status st = go(&r, err);
    cd_buf_free(&r.setup);
    cd_arena_free(&r.arena);
    return st;
}
