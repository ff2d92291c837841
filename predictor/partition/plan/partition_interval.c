/* How far off the predicted time of a plan may be, as cdmpp-replay says it of a network: operators
 * get random times with their spreads, those of one task on one device of a model together.
 *
 *   operator 0 ──> operator 1 ──> ...
 *     its parts side by side, then its join
 *
 * A plan's time is the sum over this chain, so the net that is drawn is this chain. What is known
 * (exchanges, wake-ups) is one operator without a spread.
 *
 * Of a part the spread is that of the whole operator on its device. What all times of a device have
 * in common comes on top, by its part of the time. */
#include <math.h>
#include <string.h>

#include "predictor/partition/plan/partition_internal.h"
#include "predictor/replay/replay.h"

typedef struct chain {
    cd_partition *p;
    const cd_shard_plan *plan;
    cd_replay_op *op;
    uint32_t *after;
    uint32_t n_op, n_after, last, n_last; /* what ends the operator before */
    double on_s[CD_MACHINE_DEVICES], ops_s, least_s;
    double low_s, high_s; /* if every operator took that end of its interval */
    double unsure_s;      /* of parts of which nothing tells how far off they are */
} chain;

/* The first operator of the same task, on the first device of the same model. */
static uint32_t like_of(const chain *c, uint32_t op, uint32_t device) {
    const cd_shard_cost_model *by = c->p->by;
    uint32_t k = 0, d = 0;
    while (k < op && strcmp(c->plan->op[k].key, c->plan->op[op].key) != 0) k++;
    while (d < device && !(by[d].model == by[device].model && by[d].device && by[device].device &&
                           !strcmp(by[d].device, by[device].device)))
        d++;
    return (c->plan->op[op].key[0] ? k : op) * CD_MACHINE_DEVICES + d;
}

/* Behind all that ends the operator before. */
static void add(chain *c, const cd_replay_op *o) {
    c->op[c->n_op] = *o;
    c->op[c->n_op].first = c->n_after;
    c->op[c->n_op++].n_after = c->n_last;
    for (uint32_t i = 0; i < c->n_last; i++) c->after[c->n_after++] = c->last + i;
}

static void ends(chain *c, uint32_t first) {
    c->last = first;
    c->n_last = c->n_op - first;
}

/* A part needs at best its share of what the whole needs. */
static double least_of(const cd_shard_plan_op *o, const cd_shard_plan_part *v, double whole_s) {
    const double extent = (double)o->part[o->n_part - 1].hi;
    return fmin(v->seconds,
                o->dim[0] && extent > 0 ? whole_s * (double)(v->hi - v->lo) / extent : whole_s);
}

/* What all times of a device have in common. */
static double shared(const chain *c, uint32_t device) {
    const cd_shard_plan_source *s = &c->p->source[device];
    return hypot(s->stands_spread, isnan(s->costs_spread) ? 0 : s->costs_spread);
}

/* A part, or what joins them, with the ends of its interval. */
static cdmpp_status add_time(chain *c, uint32_t k, uint32_t device, double seconds,
                             cd_shard_cost_doubts *x, cdmpp_err *err) {
    CD_TRY(cd_shard_cost_doubt(c->p->cost, k, device, x, err));
    const double own = c->p->source[device].stands_own, all = hypot(shared(c, device), own);
    add(c, &(cd_replay_op){.name = c->plan->op[k].name,
                           .like = like_of(c, k, device),
                           .seconds = seconds,
                           .spread = hypot(x->spread, own)});
    c->on_s[device] += seconds;
    if (isnan(x->low)) c->unsure_s += seconds;
    x->low = isnan(x->low) ? seconds : x->low * seconds;
    x->high = isnan(x->high) ? seconds : x->high * seconds;
    if (all > 0) cd_replay_widen(seconds, all, CD_REPLAY_LEVEL, &x->low, &x->high);
    return CDMPP_OK;
}

static cdmpp_status add_op(chain *c, uint32_t k, cdmpp_err *err) {
    const cd_shard_plan_op *o = &c->plan->op[k];
    const uint32_t first = c->n_op;
    cd_shard_cost_doubts x;
    double longest = 0, needed = 0, low = 0, high = 0;
    for (uint32_t i = 0; i < o->n_part; i++) {
        const cd_shard_plan_part *v = &o->part[i];
        CD_TRY(add_time(c, k, v->device, v->seconds, &x, err));
        longest = fmax(longest, v->seconds);
        needed = fmax(needed, least_of(o, v, x.least_s));
        low = fmax(low, x.low);
        high = fmax(high, x.high);
    }
    ends(c, first);
    c->ops_s += longest;
    c->least_s += needed;
    c->low_s += low;
    c->high_s += high;
    if (o->join == UINT32_MAX) return CDMPP_OK;
    CD_TRY(add_time(c, k, o->join, o->join_s, &x, err));
    c->ops_s += o->join_s;
    c->low_s += x.low;
    c->high_s += x.high;
    ends(c, c->n_op - 1);
    return CDMPP_OK;
}

/* What programs there that are unlike in one way are off by together. */
static double unlike_together(const chain *c, uint32_t device) {
    const cd_model *m = c->p->by[device].model;
    return m ? cd_trained_on_shift(cd_model_trained_on(m), c->p->source[device].unlike_of) : 0;
}

/* Each device by its part of the time, as cd_network_estimate_widen. */
static double common(const chain *c) {
    double spread = 0;
    for (uint32_t d = 0; d < c->plan->n_device; d++)
        if (c->ops_s > 0)
            spread += hypot(shared(c, d), unlike_together(c, d)) * fmin(1, c->on_s[d] / c->ops_s);
    return spread;
}

static cdmpp_status fill(chain *c, cd_arena *a, cdmpp_err *err) {
    size_t ops = 1, afters = 0;
    for (uint32_t k = 0; k < c->plan->n_op; k++) {
        ops += c->plan->op[k].n_part + 1u;
        afters += (size_t)CD_MACHINE_DEVICES * (c->plan->op[k].n_part + 1u);
    }
    c->op = CD_NEWN(a, cd_replay_op, ops);
    c->after = CD_NEWN(a, uint32_t, afters + 1);
    if (!c->op || !c->after)
        return CD_FAIL(err, ENOMEM, "an interval of %u operators", c->plan->n_op);
    add(c, &(cd_replay_op){.name = "exchange", .like = UINT32_MAX});
    ends(c, 0);
    for (uint32_t k = 0; k < c->plan->n_op; k++) CD_TRY(add_op(c, k, err));
    c->op[0].seconds = fmax(0, c->plan->predicted_s - c->ops_s);
    return CDMPP_OK;
}

/* As cdmpp-replay does: no interval goes beyond what the ends of the operators' own make, and that
 * of one operator is its own. */
static void within_operators(const chain *c, cd_replay_interval *i) {
    const double known = c->op[0].seconds, low = fmin(c->low_s + known, c->plan->predicted_s),
                 high = fmax(c->high_s + known, c->plan->predicted_s);
    const bool alone = c->plan->n_op == 1;
    if (isnan(i->low_s)) return;
    i->low_s = alone ? low : fmax(i->low_s, low);
    i->high_s = alone ? high : fmin(i->high_s, high);
}

/* As of cdmpp-replay: a smaller part of the time changes no interval. */
static const double unsure_share = 0.01;

cdmpp_status cd_partition_interval(cd_partition *p, cd_shard_plan *plan, cdmpp_err *err) {
    cd_arena a = {0};
    chain c = {.p = p, .plan = plan};
    cd_replay_interval i;
    const cd_replay_device all = {
        .name = "all", .workers = CD_MACHINE_DEVICES, .policy = CD_REPLAY_ORDER};
    cdmpp_status st = fill(&c, &a, err);
    const cd_replay_net n = {.n_op = c.n_op,
                             .n_after = c.n_after,
                             .n_device = 1,
                             .op = c.op,
                             .after = c.after,
                             .device = &all};
    if (!st)
        st = cd_replay_interval_of(&n, plan->predicted_s, CD_REPLAY_LEVEL, CD_REPLAY_SHARED,
                                   (uint64_t)p->o->seed, &i, err);
    if (!st) {
        cd_replay_interval_finish(plan->predicted_s, common(&c), fmin(c.least_s, plan->predicted_s),
                                  CD_REPLAY_LEVEL, &i);
        within_operators(&c, &i);
    }
    cd_arena_free(&a);
    if (st) return st;
    const bool unsure = c.unsure_s > unsure_share * c.ops_s;
    plan->low_s = unsure ? (double)NAN : i.low_s;
    plan->high_s = unsure ? (double)NAN : i.high_s;
    plan->no_interval = unsure ? "nothing tells how far off the estimates of some operators are"
                        : isnan(i.low_s) ? "the models do not say how far off their times may be"
                                         : NULL;
    return CDMPP_OK;
}
