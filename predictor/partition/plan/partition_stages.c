/* Operators side by side on units like the first device, block by block: a network has too many
 * operators for one search, and is cut where all paths meet. The time of a stage follows from times
 * alone and from what running beside others costs. */
#include <math.h>
#include <string.h>

#include "base/core/core.h"
#include "predictor/partition/plan/partition_internal.h"

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

cdmpp_status cd_partition_staging_new(cd_partition_staging *s, const cd_network_loaded *l,
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

void cd_partition_staging_free(cd_partition_staging *s) {
    for (uint32_t k = 0; k < s->n_stage; k++) cd_stage_plan_free(&s->stage[k].plan);
    s->n_stage = 0;
}

/* The units of a stage are alike: times are those of the first device. */
cdmpp_status cd_partition_staging_time(const cd_partition *p, cd_partition_staging *s, uint32_t op,
                                       cdmpp_err *err) {
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

cdmpp_status cd_partition_staging_search(const cd_partition *p, cd_partition_staging *s,
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

/* 24 operators a block: the search takes seconds beyond that. Blocks run one after the other, so
 * their times add up. */
cdmpp_status cd_partition_stages(cd_partition *p, cdmpp_err *err) {
    cd_partition_staging *s = &p->plain;
    cd_stage_graph g;
    uint32_t n_block = 0;
    CD_TRY(cd_partition_staging_new(s, &p->loaded, &p->net, &p->arena, err));
    s->cost = p->cost;
    for (uint32_t k = 0; k < p->net.n_op; k++) CD_TRY(cd_partition_staging_time(p, s, k, err));
    const double begun = cd_clock_wall();
    CD_TRY(graph(&p->net, &p->arena, &g, err));
    CD_TRY(cd_stage_blocks(&g, 24, s->block, &n_block, err));
    if (p->o->stages == CD_PARTITION_STAGES_SPLIT) CD_TRY(find_iterations(p, s, err));
    CD_TRY(cd_partition_staging_search(p, s, n_block, &p->arena, err));
    if (p->o->stages == CD_PARTITION_STAGES_MERGE || p->o->stages == CD_PARTITION_STAGES_BOTH)
        CD_TRY(cd_partition_merges(p, err));
    p->stage_search_s = cd_clock_wall() - begun;
    return CDMPP_OK;
}
