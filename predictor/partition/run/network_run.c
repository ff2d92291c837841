/* A whole network on this machine: programs are chosen, run in its order and timed, and each
 * operator alone beside it. */
#include "predictor/partition/run/network_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "features/sketch/sketch.h"
#include "profiler/backend/backend.h"

enum { VECTOR_BYTES = 64 };

void cd_network_run_free(cd_network_run *r) {
    if (!r) return;
    cd_arena_free(&r->arena);
    cd_mem_free(r);
}

/* ---- programs ---- */

static const char *key_of(const cd_workload *w, uint32_t task) {
    return cd_task_registry_at(w->tasks, w->task[task].task)->workload_key;
}

static const cd_schedule_db_entry *in_book(const cd_network_run_options *a, const cd_workload *w,
                                           uint32_t task) {
    return a->schedules ? cd_schedule_db_find(a->schedules, key_of(w, task)) : NULL;
}

static int threads_of(const cd_network_run_options *a) {
    const char *target = a->target ? a->target : "";
    if (a->threads > 0) return a->threads;
    return strstr(target, "-num-cores=") ? cd_backend_cpu_threads(target) : 1;
}

int cd_network_run_processors(const cd_network_run_options *a) {
    return (a->workers > 1 ? (int)a->workers : 1) * threads_of(a);
}

/* Tasks in the database pass their record. The others have no line: cd_program_select_run samples
 * `trials` schedules and takes the fastest measured one. */
static cdmpp_status pick(const cd_network_loaded *l, const cd_network_run_options *a,
                         cd_program_select **out, cdmpp_err *err) {
    const cd_workload *w = l->work;
    const char **line = cd_mem_zalloc(w->n_task + 1, sizeof *line);
    if (!line) return CD_FAIL(err, ENOMEM, "%u tasks", w->n_task);
    cd_program_select_options o = {.line = line,
                                   .reference = a->check,
                                   .trials = a->trials,
                                   .seed = a->seed,
                                   .target = a->target && a->target[0] ? a->target : "llvm",
                                   .threads = threads_of(a),
                                   .measure = a->measure,
                                   .until_s = a->until_s,
                                   .stop = a->stop};
    const cd_backend_kind *kind = cd_backend_for_target((cd_str){o.target, strlen(o.target)});
    const bool gpu = kind && kind->dialect != CD_DIALECT_C;
    o.hardware =
        a->hardware ? *a->hardware : cd_target_hardware(gpu, gpu ? 0 : threads_of(a), VECTOR_BYTES);
    for (uint32_t k = 0; k < w->n_task; k++) {
        const cd_schedule_db_entry *s = in_book(a, w, k);
        if (s) line[o.n_line++] = s->line;
    }
    const cdmpp_status st = cd_program_select_run(w, &o, out, err);
    cd_mem_free(line);
    return st;
}

/* ---- results ---- */

static const char *text(cd_arena *a, const char *s) {
    return cd_str_dup(a, (cd_str){s, strlen(s)});
}

static cdmpp_status say_drawn(cd_network_run *r, const cd_program_select_task *t, uint64_t seed,
                              const char **out, cdmpp_err *err) {
    char s[96];
    snprintf(s, sizeof s, "drawn: best of %u measured here, seed %llu", t->tried,
             (unsigned long long)seed);
    *out = text(&r->arena, s);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "origin of a schedule");
}

/* A group that did not run keeps CD_NETWORK_RUN_NOTHING and the reason. Texts are copied: the
 * selection is freed before the result. */
static cdmpp_status fill_node(cd_network_run *r, uint32_t k, const cd_network_loaded *l,
                              const cd_network_run_options *a, const cd_program_select *p,
                              const cd_op_profile_group *g, cdmpp_err *err) {
    cd_network_run_node *n = &r->node[k];
    const uint32_t task = l->work->group[k].task;
    if (task == CD_GRAPH_NONE) return CDMPP_OK;
    const cd_program_select_task *t = &p->task[task];
    n->why = t->status ? text(&r->arena, t->err.msg) : NULL;
    if (t->status || !g->ran)
        return !t->status || n->why ? CDMPP_OK : CD_FAIL(err, ENOMEM, "reason");
    const cd_schedule_db_entry *s = in_book(a, l->work, task);
    n->from = t->from_log ? CD_NETWORK_RUN_DB : CD_NETWORK_RUN_SAMPLED;
    n->schedule = t->from_log && s ? text(&r->arena, s->origin ? s->origin : "") : NULL;
    if (!t->from_log) CD_TRY(say_drawn(r, t, a->seed, &n->schedule, err));
    if (!n->schedule) return CD_FAIL(err, ENOMEM, "origin of a schedule");
    n->place_s = g->place_s;
    n->alone_s = g->alone_s;
    n->warm_s = g->warm_s;
    n->cool_s = g->cool_s;
    n->start_s = g->start_s;
    n->end_s = g->end_s;
    n->worker = g->worker;
    return CDMPP_OK;
}

static cdmpp_status fill(cd_network_run *r, const cd_network_loaded *l,
                         const cd_network_run_options *a, const cd_program_select *p,
                         const cd_op_profile *o, cdmpp_err *err) {
    const double none = (double)NAN;
    r->n = l->graph->n_node;
    r->node = CD_NEWN(&r->arena, cd_network_run_node, r->n + 1);
    if (!r->node) return CD_FAIL(err, ENOMEM, "%u nodes", r->n);
    for (uint32_t k = 0; k < r->n; k++) {
        cd_network_run_node *n = &r->node[k];
        n->place_s = n->alone_s = n->warm_s = n->cool_s = n->start_s = n->end_s = none;
        n->why = l->graph->node[k].why; /* in the graph's memory, which must outlive this */
        if (k < l->work->n_group) CD_TRY(fill_node(r, k, l, a, p, &o->group[k], err));
        r->n_ran += n->from != CD_NETWORK_RUN_NOTHING;
        r->n_sampled += n->from == CD_NETWORK_RUN_SAMPLED;
        r->n_left += n->from == CD_NETWORK_RUN_NOTHING && l->graph->node[k].kind != CD_NODE_FREE;
    }
    r->workers = a->workers ? a->workers : 1;
    r->pass = o->pass;
    r->pass_s = o->pass.median_s;
    r->cold_s = o->cold_s;
    r->max_error = o->max_error;
    r->memory = o->memory;
    return CDMPP_OK;
}

/* Sampled schedules are added without their times: the estimate that is compared with this run must
 * not know the measured time. */
static cdmpp_status keep_drawn(const cd_network_loaded *l, const cd_network_run_options *a,
                               const cd_program_select *p, const cd_network_run *r,
                               cdmpp_err *err) {
    for (uint32_t k = 0; a->sampled && k < l->work->n_group; k++) {
        const uint32_t task = l->work->group[k].task;
        if (r->node[k].from != CD_NETWORK_RUN_SAMPLED ||
            cd_schedule_db_find(a->sampled, key_of(l->work, task)))
            continue;
        CD_TRY(cd_schedule_db_add(a->sampled, &p->task[task].job.record, r->node[k].schedule,
                                  (double)NAN, err));
    }
    return CDMPP_OK;
}

/* Of all passes: what is left of the time, where that is less. */
static cdmpp_status limit_of(const cd_network_run_options *a, double *out, cdmpp_err *err) {
    const double left = a->until_s > 0 ? a->until_s - cd_clock_wall() : (double)INFINITY;
    *out = a->until_s > 0 ? fmin(left, a->limit_s > 0 ? a->limit_s : left) : a->limit_s;
    return left > 0 ? CDMPP_OK : CD_FAIL(err, EBACKEND, "the time is over before the network runs");
}

static cdmpp_status run(const cd_network_loaded *l, const cd_network_run_options *a,
                        cd_program_select **p, cd_op_profile **o, cd_network_run *r,
                        cdmpp_err *err) {
    cd_op_profile_options no = {.threads = threads_of(a),
                                .budget_s = a->budget_s,
                                .workers = a->workers,
                                .by_chain = true,
                                .pin = a->pin,
                                .alone = a->alone,
                                .check = a->check,
                                .cpu_time = a->cpu_time,
                                .device = a->device};
    CD_TRY(pick(l, a, p, err));
    CD_TRY(limit_of(a, &no.limit_s, err));
    CD_TRY(cd_op_profile_run(l->work, *p, &no, o, err));
    CD_TRY(fill(r, l, a, *p, *o, err));
    return keep_drawn(l, a, *p, r, err);
}

cdmpp_status cd_network_run_measure(const cd_network_loaded *l, const cd_network_run_options *a,
                                    cd_network_run **out, cdmpp_err *err) {
    cd_program_select *p = NULL;
    cd_op_profile *o = NULL;
    cd_network_run *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "run");
    const cdmpp_status st = run(l, a, &p, &o, r, err);
    cd_op_profile_free(o);
    cd_program_select_free(p);
    if (st) cd_network_run_free(r);
    else *out = r;
    return st;
}
