/* From options to a list of cases and back to nothing: check, open, run, free.
 *
 * Files are read in an order that lets later ones depend on earlier ones: tasks, models, graphs,
 * then devices (graphs may name theirs), then networks, which are loaded for a device's target. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/network_estimate/network_estimate_internal.h"

enum { MAX_CASES = 100000 };

cd_network_estimate_options cd_network_estimate_defaults(void) {
    return (cd_network_estimate_options){.policy = -1,
                                         .gap_s = NAN,
                                         .issue_s = NAN,
                                         .link_bytes_per_s = 12e9,
                                         .link_latency_s = 10e-6,
                                         .level = CD_REPLAY_LEVEL,
                                         .shared = CD_REPLAY_SHARED};
}

/* Blanks around a part are left out. */
cdmpp_status cd_network_estimate_split_list(cd_arena *a, const char *list, const char ***out,
                                            size_t *n, cdmpp_err *err) {
    size_t cap = 1;
    for (const char *s = list; *s; s++) cap += *s == ',';
    *n = 0;
    if (!(*out = CD_NEWN(a, const char *, cap))) return CD_FAIL(err, ENOMEM, "a list of %zu", cap);
    for (const char *s = list; *s;) {
        size_t len = strcspn(s, ",");
        const char *next = s + len + (s[len] == ',');
        while (len && *s == ' ') s++, len--;
        while (len && s[len - 1] == ' ') len--;
        if (!len) return CD_FAIL(err, EUSAGE, "'%.60s': a part of the list is empty", list);
        if (!((*out)[(*n)++] = cd_str_dup(a, (cd_str){s, len})))
            return CD_FAIL(err, ENOMEM, "a list of %zu", cap);
        s = next;
    }
    return CDMPP_OK;
}

/* How many networks the options name beside graphs. */
static size_t networks(const cd_network_estimate_options *o) {
    size_t n = o->network.n;
    for (size_t k = 0; k < o->mixed.n; k++) n += !cd_model_set_is_model(o->mixed.v[k]);
    return n;
}

static cdmpp_status parallel_plan(const cd_network_estimate_options *o, cd_parallel_plan *out,
                                  cdmpp_err *err) {
    if (!o->parallel) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_parallel_plan_parse(o->parallel, out, err), "--parallel"));
    out->link = (cd_parallel_link){o->link_latency_s, o->link_bytes_per_s};
    return CDMPP_OK;
}

cdmpp_status cd_network_estimate_check(const cd_network_estimate_options *o, cdmpp_err *err) {
    const bool any = networks(o) > 0;
    cd_workload_layout layout;
    cd_parallel_plan plan;
    CD_TRY(parallel_plan(o, &plan, err));
    if (!o->graph.n && !any && !o->tasks.n)
        return CD_FAIL(err, EUSAGE, "there is no network: --network NAME|FILE, or --graph FILE");
    if (o->layout && !cd_workload_layout_parse(o->layout, &layout))
        return CD_FAIL(err, EUSAGE,
                       "--layout: expected one of " CD_WORKLOAD_LAYOUTS ", found '%.40s'",
                       o->layout);
    if (!any && (o->batch || o->input_size || o->dim.n || o->input.n || o->layout || o->training))
        return CD_FAIL(err, EUSAGE,
                       "--batch, --input-size, --dim, --input, --layout and --training are for "
                       "networks, not for --graph");
    if (o->run && !any)
        return CD_FAIL(err, EUSAGE, "--run is for networks: a graph of a file has nothing to run");
    return CDMPP_OK;
}

static cdmpp_status tasks(cd_network_estimate *e, cdmpp_err *err) {
    if (!e->o->tasks.n) return CDMPP_OK;
    CD_TRY(cd_task_registry_new(&e->tasks, err));
    return cd_task_registry_load_all(e->tasks, e->o->tasks.v, e->o->tasks.n, e->o->log, err);
}

static void on_lines(void *ctx, const char *text) { cd_log_lines(ctx, CD_LOG_ERROR, text); }

static cdmpp_status models(cd_network_estimate *e, cdmpp_err *err) {
    const cd_model_set_options a = {.model = &e->o->cost_model,
                                    .mixed = &e->o->mixed,
                                    .devices = e->o->devices,
                                    .lines = on_lines,
                                    .language = true,
                                    .use_default = !e->o->replay_given && !e->o->from_records,
                                    .ctx = e->o->log};
    CD_TRY(cd_model_set_open(&a, &e->models, err));
    if (e->models.devices) cd_device_table_say(e->models.devices, e->o->log);
    return CDMPP_OK;
}

cdmpp_status cd_network_estimate_open(const cd_network_estimate_options *o, cd_network_estimate *e,
                                      cdmpp_err *err) {
    e->o = o;
    CD_TRY(parallel_plan(o, &e->parallel, err));
    CD_TRY(cd_network_estimate_measure_open(e, err)); /* forks: before any thread */
    CD_TRY(cd_network_estimate_sizes(e, err));
    CD_TRY(tasks(e, err));
    CD_TRY(models(e, err));
    CD_TRY(cd_network_estimate_sources(e, err));
    return e->n_item > MAX_CASES ? CD_FAIL(err, ERANGE, "%zu estimates", e->n_item) : CDMPP_OK;
}

/* Where all cases fail, the first one's reason is the caller's; else each that fails is a
 * message. */
static cdmpp_status verdict(cd_network_estimate *e, cdmpp_err *err) {
    const cd_network_estimate_case *first = NULL;
    for (size_t k = 0; k < e->n_item; k++) {
        if (!e->item[k].st) continue;
        e->n_failed++;
        if (!first) first = &e->item[k];
    }
    for (size_t k = 0; k < e->n_item && e->n_failed < e->n_item; k++)
        if (e->item[k].st) cd_log_err(e->o->log, CD_LOG_WARNING, &e->item[k].err);
    if (!first || e->n_failed < e->n_item) return CDMPP_OK;
    if (err) *err = first->err;
    return first->st;
}

cdmpp_status cd_network_estimate_run(cd_network_estimate *e, cdmpp_err *err) {
    for (size_t k = 0; k < e->n_item; k++) {
        if (e->o->stop && *e->o->stop)
            return CD_FAIL(err, EINTERRUPTED, "after %zu of %zu estimates", k, e->n_item);
        cd_network_estimate_case_run(e, &e->item[k]);
        if (e->o->step) e->o->step(e->o->step_ctx, k + 1, e->n_item);
    }
    CD_TRY(verdict(e, err));
    return cd_network_estimate_curves(e, err);
}

/* Cases before the sources and models that they borrow from. */
void cd_network_estimate_free(cd_network_estimate *e) {
    for (size_t k = 0; k < e->n_curve; k++) {
        cd_perf_curve_free(&e->curve[k].law);
        cd_perf_curve_free(&e->curve[k].low);
        cd_perf_curve_free(&e->curve[k].high);
    }
    for (size_t k = 0; k < e->n_item; k++) cd_network_estimate_case_free(&e->item[k]);
    cd_mem_free(e->item);
    cd_measure_close(e->measure);
    for (size_t k = 0; k < e->n_source; k++) {
        if (e->source[k]->loaded) cd_network_load_free(e->source[k]->loaded);
        cd_network_graph_free(e->source[k]->owned);
    }
    cd_mem_free(e->source);
    for (size_t k = 0; k < e->n_device; k++) cd_schedule_db_free(e->device[k].schedules);
    for (cd_network_estimate_device *d = e->more; d; d = d->next) cd_schedule_db_free(d->schedules);
    cd_task_registry_free(e->tasks);
    cd_threads_free(e->pool);
    cd_model_set_free(&e->models);
    cd_arena_free(&e->arena);
}
