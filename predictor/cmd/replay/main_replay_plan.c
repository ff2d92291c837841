/* The plan of cdmpp-replay: options and files become cases. */
#include <stdlib.h>
#include <string.h>

#include "predictor/cmd/replay/main_replay.h"

enum { MAX_BATCH = 1 << 20, MAX_CASES = 100000 };

cdmpp_status cd_main_replay_split_list(cd_arena *a, const char *list, const char ***out, size_t *n, cdmpp_err *err) {
    size_t cap = 1;
    for (const char *s = list; *s; s++) cap += *s == ',';
    *n = 0;
    if (!(*out = CD_NEWN(a, const char *, cap))) return CD_FAIL(err, ENOMEM, "a list of %zu", cap);
    for (const char *s = list; *s;) {
        size_t len = strcspn(s, ",");
        const char *next = s + len + (s[len] == ',');
        while (len && *s == ' ') s++, len--;
        while (len && s[len - 1] == ' ') len--;
        if (len && !((*out)[(*n)++] = cd_str_dup(a, (cd_str){s, len}))) return CD_FAIL(err, ENOMEM, "a list of %zu", cap);
        s = next;
    }
    return CDMPP_OK;
}

static size_t networks(const cd_main_replay *o) {
    size_t n = o->network.n;
    for (size_t k = 0; k < o->model.n; k++) n += !cd_model_set_is_model(o->model.v[k]);
    return n;
}

/* No file is written over one that is read, nor twice. */
static cdmpp_status files_apart(const cd_main_replay *o, cdmpp_err *err) {
    const struct {
        const char *option, *path;
        const cd_texts *same;   /* may be replaced: all of it is read before and written again. Of a book only what the networks run is read */
    } out[] = {{"--trace", o->trace, NULL}, {"--html", o->html, NULL}, {"--save-schedules", o->save_schedules, NULL}, {"--save-graph", o->save_graph, &o->graph}};
    const struct {
        const char *option;
        const cd_texts *v;
    } in[] = {{"--graph", &o->graph}, {"--model", &o->model}, {"--cost-model", &o->cost_model}, {"--network", &o->network}, {"--tasks", &o->tasks},
              {"--records", &o->records}, {"--schedules", &o->schedules}, {"--store", &o->store}};
    const char *const single[][2] = {{"--prices", o->prices}, {"--devices", o->devices}};
    for (size_t k = 0; k < 4; k++) {
        if (!out[k].path || !strncmp(out[k].path, "/dev/", 5)) continue;
        for (size_t j = 0; j < k; j++)
            if (out[j].path && !strcmp(out[j].path, out[k].path)) return CD_FAIL(err, EUSAGE, "%s and %s name one file, %.200s", out[j].option, out[k].option, out[k].path);
        for (size_t i = 0; i < 2; i++)
            if (single[i][1] && !strcmp(single[i][1], out[k].path)) return CD_FAIL(err, EUSAGE, "%s would overwrite %s %.200s", out[k].option, single[i][0], out[k].path);
        for (size_t i = 0; i < 8; i++)
            for (size_t j = 0; j < in[i].v->n && in[i].v != out[k].same; j++)
                if (!strcmp(in[i].v->v[j], out[k].path)) return CD_FAIL(err, EUSAGE, "%s would overwrite %s %.200s", out[k].option, in[i].option, out[k].path);
    }
    return CDMPP_OK;
}

cdmpp_status cd_main_replay_plan_check(const cd_main_replay *o, cdmpp_err *err) {
    cd_workload_layout layout;
    if (!o->graph.n && !networks(o)) return CD_FAIL(err, EUSAGE, "there is no network: --graph FILE, or --network NAME|FILE");
    if (o->layout && !cd_workload_layout_parse(o->layout, &layout)) return CD_FAIL(err, EUSAGE, "--layout: expected one of " CD_WORKLOAD_LAYOUTS ", found '%.40s'", o->layout);
    if (!networks(o) && (o->batch || o->input_size || o->dim.n || o->input.n || o->layout || o->training))
        return CD_FAIL(err, EUSAGE, "--batch, --input-size, --dim, --input, --layout and --training are for networks, not for --graph");
    if (o->run && !networks(o)) return CD_FAIL(err, EUSAGE, "--run is for networks: a graph of a file has nothing to run");
    return files_apart(o, err);
}

/* "1,4,8"; nothing: as the file says. */
static cdmpp_status batches(cd_main_replay_plan *p, cdmpp_err *err) {
    const char **text = NULL;
    size_t n = 0;
    if (p->o->batch) CD_TRY(cd_main_replay_split_list(&p->arena, p->o->batch, &text, &n, err));
    if (p->o->batch && !n) return CD_FAIL(err, EUSAGE, "--batch: expected numbers, found '%.60s'", p->o->batch);
    if (!(p->batch = CD_NEWN(&p->arena, int64_t, n + 1))) return CD_FAIL(err, ENOMEM, "batches");
    for (size_t k = 0; k < n; k++) {
        char *end;
        const long v = strtol(text[k], &end, 10);
        if (*end || v < 1 || v > MAX_BATCH) return CD_FAIL(err, EUSAGE, "--batch: expected numbers in 1..%d, found '%.60s'", MAX_BATCH, text[k]);
        size_t at = 0;
        while (at < p->n_batch && p->batch[at] != v) at++;
        if (at < p->n_batch) cd_log_put(p->o->log, CD_LOG_WARNING, "--batch: %ld is there already", v);
        else p->batch[p->n_batch++] = v;
    }
    if (!n) p->n_batch = 1;
    return CDMPP_OK;
}

static cdmpp_status tasks(cd_main_replay_plan *p, cdmpp_err *err) {
    if (!p->o->tasks.n) return CDMPP_OK;
    CD_TRY(cd_task_registry_new(&p->tasks, err));
    for (size_t k = 0; k < p->o->tasks.n; k++) CD_TRY(cd_task_registry_load(p->tasks, p->o->tasks.v[k], err));
    return CDMPP_OK;
}

static void on_lines(void *ctx, const char *text) { cd_log_lines(ctx, CD_LOG_ERROR, text); }

static cdmpp_status models(cd_main_replay_plan *p, cdmpp_err *err) {
    const cd_model_set_options a = {.model = &p->o->cost_model, .mixed = &p->o->model, .devices = p->o->devices, .lines = on_lines, .ctx = p->o->log};
    return cd_model_set_open(&a, &p->models, err);
}

cdmpp_status cd_main_replay_plan_make(cd_main_replay_plan *p, cdmpp_err *err) {
    CD_TRY(cd_main_replay_run_open(p, err));
    CD_TRY(batches(p, err));
    CD_TRY(tasks(p, err));
    CD_TRY(models(p, err));
    CD_TRY(cd_main_replay_sources(p, err));
    if (p->n_item > MAX_CASES) return CD_FAIL(err, ERANGE, "%zu estimates", p->n_item);
    return p->o->prices ? cd_main_replay_prices(p, err) : CDMPP_OK;
}

void cd_main_replay_plan_free(cd_main_replay_plan *p) {
    for (size_t k = 0; k < p->n_item; k++) cd_main_replay_case_free(&p->item[k]);
    cd_mem_free(p->item);
    cd_measure_close(p->measure);
    for (size_t k = 0; k < p->n_source; k++) {
        if (p->source[k]->live) cd_network_load_free(p->source[k]->live);
        cd_network_graph_free(p->source[k]->owned);
    }
    cd_mem_free(p->source);
    for (size_t k = 0; k < p->n_device; k++) cd_schedule_db_free(p->device[k].book);
    for (cd_main_replay_device *d = p->more; d; d = d->next) cd_schedule_db_free(d->book);
    cd_task_registry_free(p->tasks);
    cd_threads_free(p->pool);
    cd_model_set_free(&p->models);
    cd_arena_free(&p->arena);
}
