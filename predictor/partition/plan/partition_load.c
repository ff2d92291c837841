/* What a plan is made from: models, a machine, a network, rules, then the schedules of its tasks. A
 * plan that is read from a file has its times, so no cost model is needed then unless something
 * else is planned beside it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "base/io/io.h"
#include "features/sketch/sketch.h"
#include "predictor/partition/plan/partition_internal.h"
#include "profiler/network/merge/merge.h"
#include "profiler/network/source/source.h"

/* Operators side by side on units like the first device, block by block: a network has too many
 * operators for one search, and is cut where all paths meet. The time of a stage follows from times
 * alone and from what running beside others costs. */

/* ---- the graph ---- */
/* after[] has the operators before each one; `reads` bounds how many there are. */
static cdmpp_status graph(const cd_shard_net *n, cd_arena *a, cd_stage_graph *g, cdmpp_err *err) {
    size_t reads = 1;
    for (uint32_t k = 0; k < n->n_op; k++) reads += n->op[k].n_arg;
    cd_stage_op *op = CD_NEWN(a, cd_stage_op, (size_t)n->n_op + 1);
    uint32_t *after = CD_NEWN(a, uint32_t, reads), n_after = 0;
    if (!op || !after) return CD_FAIL(err, ENOMEM, "%u operators", n->n_op);
    for (uint32_t k = 0; k < n->n_op; k++) {
        op[k] = (cd_stage_op){.name = n->op[k].name, .first = n_after};
        for (uint32_t j = 0; j + 1 < n->op[k].n_arg; j++) {
            const uint32_t from = n->tensor[n->op[k].arg[j]].from;
            if (from != CD_SHARD_NET_OUTSIDE) after[n_after++] = from;
        }
        op[k].n_after = n_after - op[k].first;
    }
    *g = (cd_stage_graph){.n_op = n->n_op, .n_after = n_after, .op = op, .after = after};
    return CDMPP_OK;
}

/* Arrays of a network's operators, all zero, in `a`. Errors: ENOMEM. */
static cdmpp_status partition_staging_new(cd_partition_staging *s, const cd_network_loaded *l,
                                          const cd_shard_net *net, cd_arena *a, cdmpp_err *err) {
    *s = (cd_partition_staging){.loaded = l, .net = net};
    s->block = CD_NEWN(a, uint32_t, (size_t)net->n_op + 1);
    s->solo_s = CD_NEWN(a, double, (size_t)net->n_op + 1);
    s->bytes = CD_NEWN(a, double, (size_t)net->n_op + 1);
    s->is_merged = CD_NEWN(a, bool, (size_t)net->n_op + 1);
    return s->block && s->solo_s && s->bytes && s->is_merged
               ? CDMPP_OK
               : CD_FAIL(err, ENOMEM, "%u operators", net->n_op);
}

static void partition_staging_free(cd_partition_staging *s) {
    for (uint32_t k = 0; k < s->n_stage; k++) cd_stage_plan_free(&s->stage[k].plan);
    s->n_stage = 0;
}

/* Seconds and bytes of an operator. Needs s->cost. Errors: ESCHEMA (nobody knows), those of
 * cd_shard_cost_time.
 *
 * The units of a stage are alike: times are those of the first device. */
static cdmpp_status partition_staging_time(const cd_partition *p, cd_partition_staging *s,
                                           uint32_t op, cdmpp_err *err) {
    cd_shard_plan_estimate a = {0};
    CD_TRY(cd_shard_cost_time(s->cost, op, 0, NULL, &a, err));
    s->solo_s[op] = a.seconds + p->machine.device[0].launch_s;
    s->bytes[op] = a.memory_share * a.seconds * p->machine.contention.peak_bytes_per_s;
    if (isfinite(s->solo_s[op])) return CDMPP_OK;
    return CD_FAIL(err, ESCHEMA, "nobody knows the time of %.60s on %s", s->net->op[op].name,
                   p->machine.device[0].name);
}

/* ---- a block ---- */

/* What is compared with: one operator behind the other on one unit, which waits for nobody. */
static double one_behind_the_other(const double *solo, uint32_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += solo[i];
    return sum;
}

/* The operators of block b with the edges inside it: edges from other blocks are met already when
 * it starts. */
static cdmpp_status one_block(const cd_partition *p, cd_partition_staging *s,
                              const cd_stage_graph *all, uint32_t *local, uint32_t b, cd_arena *a,
                              cdmpp_err *err) {
    cd_partition_stage *to = &s->stage[b];
    uint32_t n = 0, n_after = 0, own[CD_STAGE_OPS];
    double solo[CD_STAGE_OPS], bytes[CD_STAGE_OPS], sync = 0;
    int64_t iterations[CD_STAGE_OPS];
    cd_stage_op op[CD_STAGE_OPS];
    for (uint32_t k = 0; k < s->net->n_op; k++) {
        if (s->block[k] != b) continue;
        if (n == CD_STAGE_OPS)
            return CD_FAIL(err, ERANGE, "block %u has more than %d operators", b, CD_STAGE_OPS);
        local[k] = n, own[n++] = k;
    }
    size_t reads = 1;
    for (uint32_t i = 0; i < n; i++) reads += all->op[own[i]].n_after;
    uint32_t *after = CD_NEWN(a, uint32_t, reads), *kept = CD_NEWN(a, uint32_t, (size_t)n + 1);
    double *alone = CD_NEWN(a, double, (size_t)n + 1);
    if (!after || !kept || !alone) return CD_FAIL(err, ENOMEM, "a block of %u operators", n);
    for (uint32_t i = 0; i < n; i++) {
        const cd_stage_op *o = &all->op[own[i]];
        op[i] = (cd_stage_op){.name = o->name, .first = n_after};
        for (uint32_t j = 0; j < o->n_after; j++)
            if (s->block[all->after[o->first + j]] == b)
                after[n_after++] = local[all->after[o->first + j]];
        op[i].n_after = n_after - op[i].first;
        solo[i] = alone[i] = s->solo_s[own[i]];
        bytes[i] = s->bytes[own[i]];
        iterations[i] = s->iterations ? s->iterations[own[i]] : 0;
        kept[i] = own[i];
    }
    for (uint32_t d = 0; d < p->machine.n; d++) sync = fmax(sync, p->machine.device[d].sync_s);
    const bool beside =
        p->o->stages != CD_PARTITION_STAGES_SEQUENTIAL && p->o->stages != CD_PARTITION_STAGES_MERGE;
    cd_stage_solo with = {.solo_s = solo,
                          .bytes = bytes,
                          .iterations = s->iterations ? iterations : NULL,
                          .split_s = p->machine.device[0].launch_s,
                          .units = p->machine.n,
                          .barrier_s = beside ? sync : 0,
                          .contention = p->machine.contention};
    const cd_stage_graph g = {.n_op = n, .n_after = n_after, .op = op, .after = after};
    const cd_stage_options ask = {.r = beside ? (uint32_t)p->o->stage_length : 1,
                                  .s = beside ? (uint32_t)p->o->stage_groups : 1,
                                  .time = cd_stage_solo_time,
                                  .ctx = &with};
    *to = (cd_partition_stage){.block = b, .op = kept, .solo_s = alone};
    s->n_stage = b + 1;
    CD_TRY(cd_stage_search(&g, &ask, &to->plan, err));
    for (uint32_t k = 0; k < to->plan.n_stage; k++)
        to->plan.stage[k].split = cd_stage_solo_split(&to->plan.stage[k], &with);
    to->plan.alone_s = one_behind_the_other(solo, n);
    return CDMPP_OK;
}

/* The stages of each block, in `a`. Needs block, solo_s and bytes. Errors: those of
 * cd_stage_search. */
static cdmpp_status partition_staging_search(const cd_partition *p, cd_partition_staging *s,
                                             uint32_t n_block, cd_arena *a, cdmpp_err *err) {
    cd_stage_graph g;
    uint32_t *local = CD_NEWN(a, uint32_t, (size_t)s->net->n_op + 1);
    s->stage = CD_NEWN(a, cd_partition_stage, (size_t)n_block + 1);
    if (!local || !s->stage) return CD_FAIL(err, ENOMEM, "%u blocks", n_block);
    CD_TRY(graph(s->net, a, &g, err));
    for (uint32_t b = 0; b < n_block; b++) {
        CD_TRY(one_block(p, s, &g, local, b, a, err));
        s->stages_s += s->stage[b].plan.total_s;
        s->alone_s += s->stage[b].plan.alone_s;
    }
    return CDMPP_OK;
}

/* ---- operators that can be split ---- */

/* The iterations of the program that the operator's schedule makes, 0 where it runs whole only. */
static cdmpp_status iterations_of(const cd_partition_staging *s, cd_record_maker *m, uint32_t op,
                                  int64_t *out, cdmpp_err *err) {
    const char *line = NULL;
    cd_record_program job = {.path = NULL};
    CD_TRY(cd_shard_cost_schedule(s->cost, op, 0, NULL, &line, err));
    if (!line) return CDMPP_OK;
    const cd_recline l = {.text = line, .len = strlen(line), .path = "schedule"};
    cdmpp_status st = cd_record_program_make(m, &l, &job, err);
    if (!st) st = cd_record_program_code(m, &job, err);
    if (!st && !job.why.code && cd_multi_splits(&job.code)) *out = job.code.part[0].iterations;
    cd_record_program_free(&job);
    return st;
}

/* Equal tasks have equal programs: each is asked once. */
static cdmpp_status find_iterations(cd_partition *p, cd_partition_staging *s, cdmpp_err *err) {
    const cd_workload *w = s->loaded->work;
    cd_record_maker m = {
        .tasks = w->tasks, .target = p->machine.device[0].target, .dialect = CD_DIALECT_C};
    if (!(s->iterations = CD_NEWN(&p->arena, int64_t, (size_t)s->net->n_op + 1)))
        return CD_FAIL(err, ENOMEM, "%u operators", s->net->n_op);
    CD_TRY(cd_program_new(&m.program, err));
    cdmpp_status st = CDMPP_OK;
    for (uint32_t k = 0; k < s->net->n_op && !st; k++) {
        uint32_t same = 0;
        while (same < k &&
               (w->group[k].task == CD_GRAPH_NONE || w->group[same].task != w->group[k].task))
            same++;
        if (cd_partition_stopped(p)) st = CD_FAIL(err, EINTERRUPTED, "while programs were made");
        else if (same < k) s->iterations[k] = s->iterations[same];
        else if (s->net->op[k].dag) st = iterations_of(s, &m, k, &s->iterations[k], err);
    }
    cd_program_free(m.program);
    return st;
}

static cdmpp_status partition_merges(cd_partition *p, cdmpp_err *err);

/* 24 operators a block: the search takes seconds beyond that. Blocks run one after the other, so
 * their times add up. */
cdmpp_status cd_partition_stages(cd_partition *p, cdmpp_err *err) {
    cd_partition_staging *s = &p->plain;
    cd_stage_graph g;
    uint32_t n_block = 0;
    CD_TRY(partition_staging_new(s, &p->loaded, &p->net, &p->arena, err));
    s->cost = p->cost;
    for (uint32_t k = 0; k < p->net.n_op; k++) CD_TRY(partition_staging_time(p, s, k, err));
    const double begun = cd_clock_wall();
    CD_TRY(graph(&p->net, &p->arena, &g, err));
    CD_TRY(cd_stage_blocks(&g, 24, s->block, &n_block, err));
    if (p->o->stages == CD_PARTITION_STAGES_SPLIT) CD_TRY(find_iterations(p, s, err));
    CD_TRY(partition_staging_search(p, s, n_block, &p->arena, err));
    if (p->o->stages == CD_PARTITION_STAGES_MERGE || p->o->stages == CD_PARTITION_STAGES_BOTH)
        CD_TRY(partition_merges(p, err));
    p->stage_search_s = cd_clock_wall() - begun;
    return CDMPP_OK;
}

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

/* Adds the schedules of these keys (n, sorted, each once) from the files of the options. Errors:
 * those of the readers.
 *
 * Files of schedules come before logs, and these before stores: the first that knows a task
 * decides. */
static cdmpp_status partition_schedules(cd_partition *p, const char *const *key, size_t n,
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
    CD_TRY(partition_schedules(p, key, n, err));
    const size_t found = cd_schedule_db_count(p->schedules);
    if ((o->schedules.n || o->records.n || o->store.n) && found < n)
        cd_log_put(o->log, CD_LOG_WARNING,
                   "%s: %zu of %zu tasks have no schedule there; they take the best predicted of "
                   "drawn ones",
                   p->net.name, n - found, n);
    return CDMPP_OK;
}

/* Scores the operators of a network. Errors: those of cd_shard_cost_new. */
static cdmpp_status partition_cost(cd_partition *p, const cd_shard_net *net,
                                   const cd_network_loaded *l, cd_shard_cost **out,
                                   cdmpp_err *err) {
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
    return partition_cost(p, &p->net, &p->loaded, &p->cost, err);
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
    partition_staging_free(&p->plain);
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

/* Which convolutions to merge: cost(network) = least over merges of the stages' cost of the network
 * that is written anew with them. Merged operators are tasks like others, and what cuts their
 * results into parts is an operator with a time. Sets are decided one after the other, each with
 * all ways to part it; sets of different blocks do not touch each other, so only within a block
 * something may be lost. */

typedef struct {
    const char *key;
    double solo_s, bytes;
} priced;

typedef struct {
    cd_partition *p;
    cd_arena own;
    priced *known; /* (n_known) tasks that have a time */
    uint32_t n_known, cap_known;
    const cd_graph *g;   /* the network as it is */
    cd_merge_set *found; /* (n_found) */
    uint32_t n_found;
    cd_merge_set *kept; /* (n_kept) merged so far */
    uint32_t n_kept;
    double best_s;
} merger;

void cd_partition_merged_free(cd_partition_merged *m) {
    partition_staging_free(&m->in);
    cd_shard_cost_free(m->in.cost);
    cd_network_load_free(&m->loaded);
    cd_arena_free(&m->arena);
    *m = (cd_partition_merged){0};
}

/* ---- times ---- */

static const priced *find(const merger *m, const char *key) {
    for (uint32_t k = 0; key && k < m->n_known; k++)
        if (!strcmp(m->known[k].key, key)) return &m->known[k];
    return NULL;
}

static cdmpp_status learn(merger *m, const char *key, double solo_s, double bytes, cdmpp_err *err) {
    if (!key || find(m, key)) return CDMPP_OK;
    if (m->n_known == m->cap_known) {
        const uint32_t cap = m->cap_known ? m->cap_known * 2 : 256;
        priced *v = CD_NEWN(&m->own, priced, cap);
        if (!v) return CD_FAIL(err, ENOMEM, "%u tasks", cap);
        if (m->n_known) memcpy(v, m->known, m->n_known * sizeof *v);
        m->known = v, m->cap_known = cap;
    }
    const char *kept = cd_str_dup(&m->own, (cd_str){key, strlen(key)});
    if (!kept) return CD_FAIL(err, ENOMEM, "a task");
    m->known[m->n_known++] = (priced){kept, solo_s, bytes};
    return CDMPP_OK;
}

static cdmpp_status learn_all(merger *m, const cd_partition_staging *s, cdmpp_err *err) {
    for (uint32_t k = 0; k < s->net->n_op; k++)
        CD_TRY(learn(m, s->net->op[k].key, s->solo_s[k], s->bytes[k], err));
    return CDMPP_OK;
}

/* Tasks without a time are scored together, with the schedules that the files of the options have
 * for them. */
static cdmpp_status score(merger *m, cd_partition_merged *c, cdmpp_err *err) {
    const cd_shard_net *net = &c->net;
    cd_shard_cost_want *want = CD_NEWN(&c->arena, cd_shard_cost_want, (size_t)net->n_op + 1);
    const char **key = CD_NEWN(&c->arena, const char *, (size_t)net->n_op + 1);
    size_t n = 0, n_key = 0;
    if (!want || !key) return CD_FAIL(err, ENOMEM, "%u operators", net->n_op);
    for (uint32_t k = 0; k < net->n_op; k++)
        if (!find(m, net->op[k].key)) {
            if (net->op[k].key) key[n_key++] = net->op[k].key;
            want[n++] = (cd_shard_cost_want){.op = k};
        }
    qsort(key, n_key, sizeof *key, cd_sort_by_text);
    size_t once = 0;
    for (size_t i = 0; i < n_key; i++)
        if (!i || strcmp(key[i], key[once - 1]) != 0) key[once++] = key[i];
    if (once) CD_TRY(partition_schedules(m->p, key, once, err));
    CD_TRY(partition_cost(m->p, net, &c->loaded, &c->in.cost, err));
    CD_TRY(cd_shard_cost_prepare(c->in.cost, want, n, err));
    for (size_t i = 0; i < n; i++) {
        const uint32_t k = want[i].op;
        CD_TRY(partition_staging_time(m->p, &c->in, k, err));
        CD_TRY(learn(m, net->op[k].key, c->in.solo_s[k], c->in.bytes[k], err));
    }
    for (uint32_t k = 0; k < net->n_op; k++) {
        const priced *x = find(m, net->op[k].key);
        if (x) c->in.solo_s[k] = x->solo_s, c->in.bytes[k] = x->bytes;
    }
    return CDMPP_OK;
}

/* ---- a network with merges ---- */

/* Each operator is in the block in which its nodes were; one of no node, a change of layout, comes
 * with what it reads. */
static void blocks(const merger *m, cd_partition_merged *c) {
    const cd_workload *w = c->loaded.work, *before = m->p->loaded.work;
    for (uint32_t k = 0; k < w->n_group; k++) {
        const cd_workload_group *g = &w->group[k];
        uint32_t b = 0;
        for (uint32_t i = 0; i < g->n_after; i++)
            if (c->in.block[g->after[i]] > b) b = c->in.block[g->after[i]];
        for (uint32_t i = 0; i < g->n_node; i++) {
            const uint32_t group = before->node[c->origin[g->node[i]]].group;
            if (group != CD_GRAPH_NONE && m->p->plain.block[group] > b)
                b = m->p->plain.block[group];
        }
        c->in.block[k] = b;
    }
}

static cdmpp_status open_merged(merger *m, const cd_merge_set *set, uint32_t n,
                                cd_partition_merged *c, cdmpp_err *err) {
    cd_graph *g;
    *c = (cd_partition_merged){0};
    CD_TRY(cd_merge_apply(m->g, set, n, &g, &c->origin, err));
    CD_TRY(cd_partition_network(m->p, g, &c->loaded, err));
    CD_TRY(cd_plan_run_shard_net(&c->loaded, &c->arena, &c->net, err));
    CD_TRY(partition_staging_new(&c->in, &c->loaded, &c->net, &c->arena, err));
    blocks(m, c);
    CD_TRY(score(m, c, err));
    return partition_staging_search(m->p, &c->in, m->p->plain.n_stage, &c->arena, err);
}

/* ---- the choice ---- */

/* The next way to part n members, as numbers of parts in order of appearance; false: that was the
 * last. */
static bool next_way(uint32_t *part, uint32_t n) {
    for (uint32_t i = n; i-- > 1;) {
        uint32_t most = 0;
        for (uint32_t j = 0; j < i; j++)
            if (part[j] > most) most = part[j];
        if (part[i] > most) continue;
        part[i]++;
        for (uint32_t j = i + 1; j < n; j++) part[j] = 0;
        return true;
    }
    return false;
}

/* Parts of two or more members. */
static uint32_t sets_of(const cd_merge_set *all, const uint32_t *part, cd_merge_set *out) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < all->n; k++) {
        cd_merge_set s = {0};
        for (uint32_t i = 0; i < all->n; i++)
            if (part[i] == k) s.node[s.n++] = all->node[i];
        if (s.n > 1) out[n++] = s;
    }
    return n;
}

/* Members of one block: a stage goes across no other. */
static bool in_one_block(const merger *m, const cd_merge_set *s) {
    const cd_workload *w = m->p->loaded.work;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t a = w->node[s->node[0]].group, b = w->node[s->node[i]].group;
        if (a == CD_GRAPH_NONE || b == CD_GRAPH_NONE ||
            m->p->plain.block[a] != m->p->plain.block[b])
            return false;
    }
    return true;
}

/* All ways to part a set, on top of what was kept before; the best stays. */
static cdmpp_status decide(merger *m, const cd_merge_set *set, cdmpp_err *err) {
    uint32_t part[CD_MERGE_MOST] = {0}, before = m->n_kept, n_best = 0;
    cd_merge_set best[CD_MERGE_MOST];
    if (!in_one_block(m, set)) return CDMPP_OK;
    do {
        cd_partition_merged c;
        if (cd_partition_stopped(m->p))
            return CD_FAIL(err, EINTERRUPTED, "while merges were planned");
        const uint32_t n = sets_of(set, part, &m->kept[before]);
        if (!n) continue;
        const cdmpp_status st = open_merged(m, m->kept, before + n, &c, err);
        if (!st && c.in.stages_s < m->best_s * (1 - 1e-9)) {
            m->best_s = c.in.stages_s;
            memcpy(best, &m->kept[before], n * sizeof *best);
            n_best = n;
        }
        cd_partition_merged_free(&c);
        if (st) return st;
        m->p->merged.n_tried++;
    } while (next_way(part, set->n));
    memcpy(&m->kept[before], best, n_best * sizeof *best);
    m->n_kept += n_best;
    return CDMPP_OK;
}

/* ---- what is told ---- */

/* Times of the operators that hold a node which stands for one of the set's. The first one is named
 * after all members. */
static cdmpp_status tell(merger *m, cd_partition_merged *c, const cd_merge_set *s,
                         cd_partition_merge *out, cdmpp_err *err) {
    const cd_workload *w = m->p->loaded.work, *now = c->loaded.work;
    cd_buf b = {0};
    *out = (cd_partition_merge){.work = cd_merge_work(m->g, s),
                                .block = m->p->plain.block[w->node[s->node[0]].group]};
    for (uint32_t i = 0; i < s->n; i++) {
        out->parts_s += m->p->plain.solo_s[w->node[s->node[i]].group];
        cd_buf_putf(&b, "%s%.60s", i ? "+" : "", m->g->node[s->node[i]].name);
    }
    uint32_t first = s->node[0];
    for (uint32_t i = 1; i < s->n; i++)
        if (s->node[i] < first) first = s->node[i];
    for (uint32_t k = 0; k < now->n_group; k++)
        for (uint32_t i = 0; i < now->group[k].n_node; i++)
            if (c->origin[now->group[k].node[i]] == first) {
                out->merged_s += c->in.solo_s[k];
                c->in.is_merged[k] =
                    c->in.is_merged[k] ||
                    !strcmp(m->g->node[first].op, now->graph->node[now->group[k].node[i]].op);
                break;
            }
    out->name = b.oom ? NULL : cd_str_dup(&c->arena, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    return out->name ? CDMPP_OK : CD_FAIL(err, ENOMEM, "a name");
}

static cdmpp_status save(const cd_partition_merged *c, const char *path, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_onnx_write(c->loaded.source, &b, err);
    if (!st) st = cd_file_write(path, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status keep(merger *m, cdmpp_err *err) {
    cd_partition_merged *c = &m->p->merged;
    const uint32_t tried = c->n_tried;
    CD_TRY(open_merged(m, m->kept, m->n_kept, c, err));
    cd_partition_merge *v = CD_NEWN(&c->arena, cd_partition_merge, (size_t)m->n_kept + 1);
    if (!v) return CD_FAIL(err, ENOMEM, "%u merges", m->n_kept);
    for (uint32_t k = 0; k < m->n_kept; k++) CD_TRY(tell(m, c, &m->kept[k], &v[k], err));
    c->set = v, c->n_set = m->n_kept, c->n_found = m->n_found, c->n_tried = tried;
    c->has = true;
    return CDMPP_OK;
}

/* Which convolutions to merge: p->merged. Needs p->plain. Errors: those of cd_merge_apply, of
 * loading a network and of scoring; EIO (options.save_merged). */
static cdmpp_status partition_merges(cd_partition *p, cdmpp_err *err) {
    merger m = {.p = p, .g = p->loaded.source, .best_s = p->plain.stages_s};
    cdmpp_status st = learn_all(&m, &p->plain, err);
    if (!st) st = cd_merge_find(m.g, &m.own, &m.found, &m.n_found, err);
    if (!st && !(m.kept = CD_NEWN(&m.own, cd_merge_set,
                                  (size_t)m.n_found * CD_MERGE_MOST + CD_MERGE_MOST)))
        st = CD_FAIL(err, ENOMEM, "%u sets", m.n_found);
    for (uint32_t k = 0; k < m.n_found && !st; k++) st = decide(&m, &m.found[k], err);
    p->merged.n_found = m.n_found;
    if (!st && m.n_kept) st = keep(&m, err);
    if (!st && p->o->save_merged) {
        if (!m.n_kept)
            cd_log_put(p->o->log, CD_LOG_WARNING,
                       "--save-merged: nothing is merged, so %s is not written", p->o->save_merged);
        else st = save(&p->merged, p->o->save_merged, err);
    }
    cd_arena_free(&m.own);
    return st;
}
