/* What a plan is made from: models, a machine, a network, rules, then the schedules of its tasks. A
 * plan that is read from a file has its times, so no cost model is needed then unless something
 * else is planned beside it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "features/sketch/sketch.h"
#include "predictor/partition/plan/partition_internal.h"
#include "profiler/network/source/source.h"

enum { VECTOR_BYTES = 64 };

/* ---- the network ---- */

/* Layout and tasks follow the target of the first device, which all devices of one plan share. */
cdmpp_status cd_partition_network(const cd_partition *p, cd_graph *graph, cd_network_loaded *out,
                                  cdmpp_err *err) {
    const cd_partition_options *o = p->o;
    const cd_onnx_options onnx = {.dim = o->dim.v,
                                  .n_dim = (uint32_t)o->dim.n,
                                  .input = o->input.v,
                                  .n_input = (uint32_t)o->input.n};
    const char *target = p->machine.device[0].target;
    const bool gpu = cd_target_is_gpu((cd_str){target, strlen(target)});
    const cd_hardware h = cd_target_hardware(gpu, gpu ? 0 : 1, VECTOR_BYTES);
    cd_network_load_options a = {.network = o->network,
                                 .graph = graph,
                                 .batch = o->batch,
                                 .size = o->input_size,
                                 .onnx = &onnx,
                                 .target = target,
                                 .hardware = &h};
    if (o->layout) (void)cd_workload_layout_parse(o->layout, &a.layout);
    CD_TRY(cd_network_load(&a, out, err));
    if (!graph) cd_network_source_say(out->source, o->log);
    return CDMPP_OK;
}

/* ---- schedules ---- */
/* Keys of all tasks, sorted, each once. */
static cdmpp_status keys(cd_partition *p, const char ***out, size_t *n, cdmpp_err *err) {
    size_t k = 0;
    const char **v = CD_NEWN(&p->arena, const char *, (size_t)p->net.n_op + 1);
    if (!v) return CD_FAIL(err, ENOMEM, "%u tasks", p->net.n_op);
    for (uint32_t i = 0; i < p->net.n_op; i++)
        if (p->net.op[i].dag && p->net.op[i].key) v[k++] = p->net.op[i].key;
    qsort(v, k, sizeof *v, cd_sort_by_text);
    *n = 0;
    for (size_t i = 0; i < k; i++)
        if (!i || strcmp(v[i], v[*n - 1]) != 0) v[(*n)++] = v[i];
    *out = v;
    return CDMPP_OK;
}

static void on_bad(void *ctx, const cdmpp_err *why) { cd_log_err(ctx, CD_LOG_WARNING, why); }

/* Files of schedules come before logs, and these before stores: the first that knows a task
 * decides. */
cdmpp_status cd_partition_schedules(cd_partition *p, const char *const *key, size_t n,
                                    cdmpp_err *err) {
    const cd_partition_options *o = p->o;
    const cd_texts *const files[] = {&o->schedules, &o->records};
    const char *as = p->machine.device[0].as;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        cd_schedule_db_logs io = {
            .device = as, .key = key, .n_key = n, .warn = on_bad, .ctx = o->log};
        if (!files[k]->n || !n) continue;
        CD_TRY(cd_schedule_db_read_logs(p->schedules, files[k]->v, files[k]->n, &io, err));
        p->bad_lines += io.bad;
        if (io.bad)
            cd_log_put(o->log, CD_LOG_WARNING, "%zu of %zu lines of logs cannot be used", io.bad,
                       io.lines);
    }
    for (size_t k = 0; k < o->store.n; k++)
        CD_TRY(cd_schedule_db_store_read(p->schedules, o->store.v[k], as, key, n, err));
    return CDMPP_OK;
}

static cdmpp_status read_schedules(cd_partition *p, cdmpp_err *err) {
    const cd_partition_options *o = p->o;
    const char **key;
    size_t n;
    CD_TRY(cd_schedule_db_new(&p->schedules, err));
    CD_TRY(keys(p, &key, &n, err));
    CD_TRY(cd_partition_schedules(p, key, n, err));
    const size_t found = cd_schedule_db_count(p->schedules);
    if ((o->schedules.n || o->records.n || o->store.n) && found < n)
        cd_log_put(o->log, CD_LOG_WARNING,
                   "%s: %zu of %zu tasks have no schedule there; they take the best predicted of "
                   "drawn ones",
                   p->net.name, n - found, n);
    return CDMPP_OK;
}

cdmpp_status cd_partition_cost(cd_partition *p, const cd_shard_net *net, const cd_network_loaded *l,
                               cd_shard_cost **out, cdmpp_err *err) {
    const cd_partition_options *o = p->o;
    const cd_shard_cost_options a = {.model = p->by,
                                     .schedules = p->schedules,
                                     .machine = &p->machine,
                                     .net = net,
                                     .devices = p->models.devices,
                                     .costs = p->models.costs,
                                     .trials = (uint32_t)o->trials,
                                     .seed = (uint64_t)o->seed,
                                     .plain = l->plain,
                                     .n_plain = l->n_plain,
                                     .allow_missing = o->allow_missing,
                                     .pool = p->pool};
    return cd_shard_cost_new(&a, out, err);
}

cdmpp_status cd_partition_costs(cd_partition *p, cdmpp_err *err) {
    CD_TRY(read_schedules(p, err));
    CD_TRY(cd_threads_new(p->o->jobs, &p->pool, err));
    return cd_partition_cost(p, &p->net, &p->loaded, &p->cost, err);
}

static void on_lines(void *ctx, const char *text) { cd_log_lines(ctx, CD_LOG_ERROR, text); }

/* A plan's own file, or an ONNX file with one in its metadata. */
static cdmpp_status read_plan(cd_partition *p, cdmpp_err *err) {
    char *text = NULL;
    size_t n;
    if (!cd_onnx_is_model(p->o->plan)) return cd_shard_plan_read(p->o->plan, &p->plan, err);
    cdmpp_status st = cd_onnx_metadata(p->o->plan, CD_PARTITION_PLAN_KEY, &text, &n, err);
    if (!st && !text)
        st = CD_FAIL(err, ESCHEMA, "%s: there is no plan in its metadata: --annotate writes one",
                     p->o->plan);
    if (!st) st = cd_shard_plan_read_text(p->o->plan, text, n, &p->plan, err);
    cd_mem_free(text);
    return st;
}

bool cd_partition_needs_times(const cd_partition_options *o) {
    if (o->list_patterns) return false;
    bool slow = false; /* a device that only fails is left out without asking for times */
    for (size_t k = 0; k < o->inject.n; k++) slow |= !strncmp(o->inject.v[k], "slow:", 5);
    return !o->plan || o->goal >= 0 || o->lp || o->stages >= 0 || o->rules || o->emit || slow;
}

/* Operators that stay on the first device, outside of the times. */
static void say_missing(const cd_partition *p) {
    uint32_t n = 0;
    const char *first = NULL, *type = NULL;
    for (uint32_t k = 0; k < p->net.n_op; k++)
        if (!p->net.op[k].dag && !n++) first = p->net.op[k].name, type = p->net.op[k].type;
    if (n)
        cd_log_put(p->o->log, CD_LOG_WARNING,
                   "%s: %u of %u operators have no definition. They stay on %s, and no time counts "
                   "them; how long they take, nobody knows: %s (%s)%s",
                   p->net.name, n, p->net.n_op, p->machine.device[0].name, first, type,
                   n > 1 ? " ..." : "");
}

cdmpp_status cd_partition_open(const cd_partition_options *o, cd_partition *p, cdmpp_err *err) {
    const cd_model_set_options m = {.model = &o->cost_model,
                                    .devices = o->descriptions,
                                    .file_option = "--device-file",
                                    .name_option = "--as",
                                    .use_default = cd_partition_needs_times(o),
                                    .lines = on_lines,
                                    .ctx = o->log};
    p->o = o;
    CD_TRY(cd_partition_measure_open(p, err));
    if (o->plan) CD_TRY(read_plan(p, err)); /* its devices decide the layout of the network */
    CD_TRY(cd_model_set_open(&m, &p->models, err));
    if (p->models.devices) cd_device_table_say(p->models.devices, o->log);
    if (cd_partition_needs_times(o)) CD_TRY(cd_model_set_need_programs(&p->models, err));
    CD_TRY(cd_partition_machine(p, err));
    cd_partition_look(p);
    if (!p->by[0].model && cd_partition_needs_times(o)) return cd_default_model_missing(err);
    CD_TRY(cd_partition_network(p, NULL, &p->loaded, err));
    CD_TRY(cd_plan_run_shard_net(&p->loaded, &p->arena, &p->net, err));
    if (o->allow_missing) say_missing(p);
    if (!o->plan) cd_partition_say_layout(p);
    if (!p->net.n_op && !o->list_patterns)
        return cd_err_at(err, cd_network_load_nothing(0, err), o->network, 0);
    return o->rules || o->emit
               ? cd_partition_rules_open(&p->rules, o->rules, &p->loaded, &p->machine, &p->net, err)
               : CDMPP_OK;
}

/* In the reverse order of making: costs borrow schedules, which borrow models and the network. */
void cd_partition_free(cd_partition *p) {
    if (p->run.done) cd_plan_run_result_free(&p->run.now);
    cd_partition_merged_free(&p->merged);
    cd_partition_staging_free(&p->plain);
    cd_place_plan_free(&p->placed);
    cd_shard_plan_free_all(p->base, p->n_base);
    cd_shard_plan_free(p->plan);
    cd_shard_cost_free(p->cost);
    cd_schedule_db_free(p->schedules);
    cd_partition_rules_close(&p->rules);
    cd_network_load_free(&p->loaded);
    cd_measure_close(p->measure);
    cd_threads_free(p->pool);
    cd_machine_free(&p->machine);
    cd_machine_free(&p->all);
    cd_model_set_free(&p->models);
    cd_arena_free(&p->arena);
}
