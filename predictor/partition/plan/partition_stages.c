/* Operators side by side on units like the first device, block by block: a network has too many operators for one search, and is cut where all paths meet. The time of a
 * stage follows from times alone and from what running beside others costs. */
#include <math.h>

#include "base/core/core.h"
#include "predictor/partition/plan/partition_internal.h"

typedef struct {
    cd_partition *p;
    cd_stage_op *op;            /* (n_op) */
    uint32_t *after, *block, *local; /* local: number within its block */
    double *solo, *bytes;
} search;

/* ---- the graph ---- */
/* after[] has the operators before each one; `reads` bounds how many there are. */
static cdmpp_status graph(search *s, uint32_t *n_after, cdmpp_err *err) {
    cd_partition *p = s->p;
    const cd_shard_net *n = &p->net;
    size_t reads = 1;
    for (uint32_t k = 0; k < n->n_op; k++) reads += n->op[k].n_arg;
    s->op = CD_NEWN(&p->arena, cd_stage_op, (size_t)n->n_op + 1);
    s->after = CD_NEWN(&p->arena, uint32_t, reads);
    s->block = CD_NEWN(&p->arena, uint32_t, (size_t)n->n_op + 1);
    s->local = CD_NEWN(&p->arena, uint32_t, (size_t)n->n_op + 1);
    s->solo = CD_NEWN(&p->arena, double, (size_t)n->n_op + 1);
    s->bytes = CD_NEWN(&p->arena, double, (size_t)n->n_op + 1);
    if (!s->op || !s->after || !s->block || !s->local || !s->solo || !s->bytes) return CD_FAIL(err, ENOMEM, "%u operators", n->n_op);
    *n_after = 0;
    for (uint32_t k = 0; k < n->n_op; k++) {
        s->op[k] = (cd_stage_op){.name = n->op[k].name, .first = *n_after};
        for (uint32_t j = 0; j + 1 < n->op[k].n_arg; j++) {
            const uint32_t from = n->tensor[n->op[k].arg[j]].from;
            if (from != CD_SHARD_NET_OUTSIDE) s->after[(*n_after)++] = from;
        }
        s->op[k].n_after = *n_after - s->op[k].first;
    }
    return CDMPP_OK;
}

/* Seconds and bytes of every operator on the first device; the units of a stage are alike. */
static cdmpp_status times(search *s, cdmpp_err *err) {
    cd_partition *p = s->p;
    for (uint32_t k = 0; k < p->net.n_op; k++) {
        cd_shard_plan_estimate a = {0};
        CD_TRY(p->how.time(p->how.ctx, k, 0, NULL, &a, err));
        s->solo[k] = a.seconds + p->machine.device[0].launch_s;
        s->bytes[k] = a.memory_share * a.seconds * p->machine.contention.peak_bytes_per_s;
        if (!isfinite(s->solo[k])) return CD_FAIL(err, ESCHEMA, "nobody knows the time of %.60s on %s", p->net.op[k].name, p->machine.device[0].name);
    }
    return CDMPP_OK;
}

/* ---- a block ---- */
/* The operators of block b with the edges inside it: edges from other blocks are met already when it starts. */
static cdmpp_status one_block(search *s, uint32_t b, cdmpp_err *err) {
    cd_partition *p = s->p;
    cd_partition_stage *to = &p->stage[b];
    uint32_t n = 0, n_after = 0, own[CD_STAGE_OPS];
    double solo[CD_STAGE_OPS], bytes[CD_STAGE_OPS], sync = 0;
    cd_stage_op op[CD_STAGE_OPS];
    for (uint32_t k = 0; k < p->net.n_op; k++)
        if (s->block[k] == b && n < CD_STAGE_OPS) s->local[k] = n, own[n++] = k;
    size_t reads = 1;
    for (uint32_t i = 0; i < n; i++) reads += s->op[own[i]].n_after;
    uint32_t *after = CD_NEWN(&p->arena, uint32_t, reads), *kept = CD_NEWN(&p->arena, uint32_t, (size_t)n + 1);
    double *alone = CD_NEWN(&p->arena, double, (size_t)n + 1);
    if (!after || !kept || !alone) return CD_FAIL(err, ENOMEM, "a block of %u operators", n);
    for (uint32_t i = 0; i < n; i++) {
        const cd_stage_op *o = &s->op[own[i]];
        op[i] = (cd_stage_op){.name = o->name, .first = n_after};
        for (uint32_t j = 0; j < o->n_after; j++)
            if (s->block[s->after[o->first + j]] == b) after[n_after++] = s->local[s->after[o->first + j]];
        op[i].n_after = n_after - op[i].first;
        solo[i] = alone[i] = s->solo[own[i]];
        bytes[i] = s->bytes[own[i]];
        kept[i] = own[i];
    }
    for (uint32_t d = 0; d < p->machine.n; d++) sync = fmax(sync, p->machine.device[d].sync_s);
    cd_stage_solo with = {.solo_s = solo, .bytes = bytes, .units = p->machine.n, .barrier_s = sync, .contention = p->machine.contention};
    const cd_stage_graph g = {.n_op = n, .n_after = n_after, .op = op, .after = after};
    const cd_stage_options a = {.r = (uint32_t)p->o->stage_length, .s = (uint32_t)p->o->stage_groups, .time = cd_stage_solo_time, .ctx = &with};
    *to = (cd_partition_stage){.block = b, .op = kept, .solo_s = alone};
    p->n_stage = b + 1;
    return cd_stage_search(&g, &a, &to->plan, err);
}

/* 24 operators a block: the search takes seconds beyond that. Blocks run one after the other, so their times add up. */
cdmpp_status cd_partition_stages(cd_partition *p, cdmpp_err *err) {
    search s = {.p = p};
    uint32_t n_after, n_block = 0;
    CD_TRY(graph(&s, &n_after, err));
    CD_TRY(times(&s, err));
    const cd_stage_graph g = {.n_op = p->net.n_op, .n_after = n_after, .op = s.op, .after = s.after};
    const double begun = cd_clock_wall();
    CD_TRY(cd_stage_blocks(&g, 24, s.block, &n_block, err));
    if (!(p->stage = CD_NEWN(&p->arena, cd_partition_stage, (size_t)n_block + 1))) return CD_FAIL(err, ENOMEM, "%u blocks", n_block);
    for (uint32_t b = 0; b < n_block; b++) {
        CD_TRY(one_block(&s, b, err));
        p->stages_s += p->stage[b].plan.total_s;
        p->alone_s += p->stage[b].plan.alone_s;
    }
    p->stage_search_s = cd_clock_wall() - begun;
    return CDMPP_OK;
}
