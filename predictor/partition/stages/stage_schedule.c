/* The search for stages: dynamic programming over sets of operators that are still to run, as bit
 * masks. Endings of a set are enumerated once, pruned by length and number of groups. */
#include "predictor/partition/stages/stage_schedule.h"

#include <math.h>

static const uint64_t USUAL = (uint64_t)1 << 26;

typedef struct {
    uint64_t set; /* 0: free place */
    double cost;
    uint64_t ending; /* of a set; unused for stages */
} entry;

typedef struct {
    cd_arena *a;
    entry *at;
    size_t cap, n;
} table;

typedef struct {
    const cd_stage_graph *g;
    const cd_stage_options *ask;
    cd_arena own;
    table sets, stages;
    uint64_t before[CD_STAGE_OPS], behind[CD_STAGE_OPS]; /* direct neighbours */
    uint32_t order[CD_STAGE_OPS], n;
    uint64_t n_ending, n_asked, most;
    cdmpp_err *err;
} search;

void cd_stage_plan_free(cd_stage_plan *p) {
    cd_arena_free(&p->arena);
    *p = (cd_stage_plan){0};
}

/* ---- tables of sets ---- */

static entry *place_of(const table *t, uint64_t set) {
    uint64_t h = set * 0x9e3779b97f4a7c15u;
    for (size_t i = (size_t)(h ^ h >> 29) & (t->cap - 1);; i = (i + 1) & (t->cap - 1))
        if (t->at[i].set == set || !t->at[i].set) return &t->at[i];
}

static cdmpp_status keep(table *t, const entry *e, cdmpp_err *err) {
    if (2 * (t->n + 1) > t->cap) {
        const table old = *t;
        t->cap = old.cap ? old.cap * 2 : 256;
        t->at = CD_NEWN(t->a, entry, t->cap);
        if (!t->at) return CD_FAIL(err, ENOMEM, "%zu sets", t->cap);
        for (size_t i = 0; i < old.cap; i++)
            if (old.at[i].set) *place_of(t, old.at[i].set) = old.at[i];
    }
    *place_of(t, e->set) = *e;
    t->n++;
    return CDMPP_OK;
}

static const entry *find(const table *t, uint64_t set) {
    const entry *e = t->cap ? place_of(t, set) : NULL;
    return e && e->set ? e : NULL;
}

/* ---- the graph ---- */

static cdmpp_status check_edges(const cd_stage_graph *g, cdmpp_err *err) {
    for (uint32_t k = 0; k < g->n_op; k++) {
        const cd_stage_op *o = &g->op[k];
        if (o->first > g->n_after || o->n_after > g->n_after - o->first)
            return CD_FAIL(err, EINVALID, "operator %u (%s): edges %u to %u of %u", k, o->name,
                           o->first, o->first + o->n_after, g->n_after);
        for (uint32_t j = 0; j < o->n_after; j++)
            if (g->after[o->first + j] >= g->n_op)
                return CD_FAIL(err, EINVALID, "operator %u (%s) comes after %u of %u", k, o->name,
                               g->after[o->first + j], g->n_op);
    }
    return CDMPP_OK;
}

/* Sets are bit masks of 64 bits. Each round appends the operators whose predecessors are done; what
 * is left after n rounds is on a cycle or behind one. */
static cdmpp_status prepare(search *s, cdmpp_err *err) {
    const cd_stage_graph *g = s->g;
    if (g->n_op > CD_STAGE_OPS)
        return CD_FAIL(err, ERANGE,
                       "%u operators in one block, at most %d: cut it (cd_stage_blocks)", g->n_op,
                       CD_STAGE_OPS);
    CD_TRY(check_edges(g, err));
    for (uint32_t k = 0; k < g->n_op; k++)
        for (uint32_t j = 0; j < g->op[k].n_after; j++) {
            s->before[k] |= (uint64_t)1 << g->after[g->op[k].first + j];
            s->behind[g->after[g->op[k].first + j]] |= (uint64_t)1 << k;
        }
    uint64_t done = 0;
    for (uint32_t round = 0; round < g->n_op && s->n < g->n_op; round++)
        for (uint32_t k = 0; k < g->n_op; k++)
            if (!(done >> k & 1) && !(s->before[k] & ~done))
                done |= (uint64_t)1 << k, s->order[s->n++] = k;
    for (uint32_t k = 0; k < g->n_op && s->n < g->n_op; k++)
        if (!(done >> k & 1))
            return CD_FAIL(err, EINVALID,
                           "operator %u (%s) comes after itself: a cycle, or behind one", k,
                           g->op[k].name);
    return CDMPP_OK;
}

/* ---- one stage ---- */

static uint64_t part_of(const search *s, uint64_t set, uint64_t seed) {
    for (uint64_t part = seed;;) {
        uint64_t next = part;
        for (uint64_t m = part; m; m &= m - 1)
            next |= (s->before[__builtin_ctzll(m)] | s->behind[__builtin_ctzll(m)]) & set;
        if (next == part) return part;
        part = next;
    }
}

/* The stage of a set in lists: op and first have room for all. */
static cd_stage_step lay_out(const search *s, uint64_t set, uint32_t *op, uint32_t *first) {
    cd_stage_step out = {.first = first, .op = op};
    uint32_t n = 0;
    for (uint64_t left = set; left;) {
        const uint64_t part = part_of(s, set, left & ~(left - 1));
        first[out.n_group++] = n;
        for (uint32_t i = 0; i < s->n; i++)
            if (part >> s->order[i] & 1) op[n++] = s->order[i];
        left &= ~part;
    }
    first[out.n_group] = n;
    return out;
}

/* Infinity where it has too many groups: it cannot be. */
static cdmpp_status cost_of(search *s, uint64_t set, double *cost) {
    uint32_t op[CD_STAGE_OPS], first[CD_STAGE_OPS + 1];
    const cd_stage_step stage = lay_out(s, set, op, first);
    *cost = (double)INFINITY;
    if (s->ask->s && stage.n_group > s->ask->s) return CDMPP_OK;
    *cost = s->ask->time(&stage, s->ask->ctx);
    s->n_asked++;
    if (*cost >= 0) return CDMPP_OK;
    return CD_FAIL(s->err, ERANGE, "stage of %u operators with %s: %g seconds",
                   first[stage.n_group], s->g->op[op[0]].name, *cost);
}

static cdmpp_status stage_of(search *s, uint64_t set, entry *out) {
    const entry *known = find(&s->stages, set);
    if (known) return *out = *known, CDMPP_OK;
    *out = (entry){.set = set};
    CD_TRY(cost_of(s, set, &out->cost));
    return keep(&s->stages, out, s->err);
}

/* ---- endings: from the last operator to the first, each in or out ---- */

static cdmpp_status least(search *s, uint64_t set, double *cost);

static cdmpp_status endings(search *s, uint64_t set, uint32_t at, uint64_t end, entry *best) {
    while (at && !(set >> s->order[at - 1] & 1)) at--;
    if (!at) {
        double rest;
        entry stage;
        if (!end) return CDMPP_OK;
        if (++s->n_ending > s->most)
            return CD_FAIL(s->err, ERANGE, "more than %llu endings: prune (r, s), or cut the block",
                           (unsigned long long)s->most);
        CD_TRY(stage_of(s, end, &stage));
        if (isinf(stage.cost)) return CDMPP_OK;
        CD_TRY(least(s, set & ~end, &rest));
        if (rest + stage.cost < best->cost) best->cost = rest + stage.cost, best->ending = end;
        return CDMPP_OK;
    }
    const uint32_t k = s->order[--at], r = s->ask->r, groups = s->ask->s;
    const uint64_t with = end | (uint64_t)1 << k;
    bool can = !(s->behind[k] & set & ~end);
    /* groups only grow */
    if (can && r) can = __builtin_popcountll(part_of(s, with, (uint64_t)1 << k)) <= (int)r;
    if (can && r && groups) can = (uint64_t)__builtin_popcountll(with) <= (uint64_t)r * groups;
    if (can) CD_TRY(endings(s, set, at, with, best));
    return endings(s, set, at, end, best);
}

static cdmpp_status least(search *s, uint64_t set, double *cost) {
    *cost = 0;
    if (!set) return CDMPP_OK;
    const entry *known = find(&s->sets, set);
    if (known) return *cost = known->cost, CDMPP_OK;
    entry best = {.set = set, .cost = (double)INFINITY};
    CD_TRY(endings(s, set, s->n, 0, &best));
    *cost = best.cost;
    return keep(&s->sets, &best, s->err);
}

/* ---- the plan ---- */

/* The table has the last stage of each set, so the plan is written from its end to its
 * beginning. */
static cdmpp_status write_plan(search *s, uint64_t all, cd_stage_plan *out) {
    for (uint64_t set = all; set; set &= ~find(&s->sets, set)->ending) out->n_stage++;
    out->stage = CD_NEWN(&out->arena, cd_stage_step, (size_t)out->n_stage + 1);
    if (!out->stage) return CD_FAIL(s->err, ENOMEM, "%u stages", out->n_stage);
    uint32_t i = out->n_stage;
    for (uint64_t set = all; set; set &= ~find(&s->sets, set)->ending) {
        const uint64_t end = find(&s->sets, set)->ending;
        const size_t n = (size_t)__builtin_popcountll(end);
        uint32_t *op = CD_NEWN(&out->arena, uint32_t, n),
                 *first = CD_NEWN(&out->arena, uint32_t, n + 1);
        if (!op || !first) return CD_FAIL(s->err, ENOMEM, "stage of %zu operators", n);
        out->stage[--i] = lay_out(s, end, op, first);
        out->stage[i].seconds = find(&s->stages, end)->cost;
    }
    return CDMPP_OK;
}

/* Each operator is first costed as a stage of its own: the sum is the baseline, and one that cannot
 * be a stage is named when no plan exists. */
static cdmpp_status run(search *s, cd_stage_plan *out) {
    cdmpp_err *err = s->err;
    CD_TRY(prepare(s, err));
    const uint64_t all = s->n == 64 ? ~(uint64_t)0 : ((uint64_t)1 << s->n) - 1;
    uint32_t cannot = UINT32_MAX;
    for (uint32_t k = 0; k < s->n; k++) {
        double cost;
        CD_TRY(cost_of(s, (uint64_t)1 << k, &cost));
        out->alone_s += cost;
        if (isinf(cost) && cannot == UINT32_MAX) cannot = k;
    }
    CD_TRY(least(s, all, &out->total_s));
    out->n_ending = s->n_ending;
    out->n_asked = s->n_asked;
    if (isinf(out->total_s))
        return CD_FAIL(err, EINVALID,
                       "no stages can run all: operator %s cannot be a stage of its own",
                       s->g->op[cannot == UINT32_MAX ? 0 : cannot].name);
    return write_plan(s, all, out);
}

cdmpp_status cd_stage_search(const cd_stage_graph *g, const cd_stage_options *a, cd_stage_plan *out,
                             cdmpp_err *err) {
    search s = {.g = g, .ask = a, .most = a->most ? a->most : USUAL, .err = err};
    s.sets.a = s.stages.a = &s.own;
    *out = (cd_stage_plan){0};
    const cdmpp_status st = run(&s, out);
    cd_arena_free(&s.own);
    return st;
}

/* ---- blocks ---- */

/* Ends (n): of operators placed in an order, those after which all paths have met. */
static cdmpp_status meet(const cd_stage_graph *g, cd_arena *a, uint32_t *order, bool *ends,
                         cdmpp_err *err) {
    const size_t n = (size_t)g->n_op + 2;
    uint32_t *first = CD_NEWN(a, uint32_t, n), *to = CD_NEWN(a, uint32_t, (size_t)g->n_after + 1),
             *left = CD_NEWN(a, uint32_t, n), *open = CD_NEWN(a, uint32_t, n);
    if (!first || !to || !left || !open) return CD_FAIL(err, ENOMEM, "%u operators", g->n_op);
    for (uint32_t k = 0; k < g->n_op; k++)
        for (uint32_t j = 0; j < g->op[k].n_after; j++) first[g->after[g->op[k].first + j] + 2]++;
    for (uint32_t k = 0; k < g->n_op; k++) first[k + 2] += first[k + 1];
    for (uint32_t k = 0; k < g->n_op; k++)
        for (uint32_t j = 0; j < g->op[k].n_after; j++)
            to[first[g->after[g->op[k].first + j] + 1]++] = k;
    uint32_t end = 0, n_open = 0, roots = 0;
    for (uint32_t k = 0; k < g->n_op; k++) {
        open[k] = first[k + 1] - first[k];
        if (!(left[k] = g->op[k].n_after)) order[end++] = k, roots++;
    }
    for (uint32_t at = 0; at < end; at++) {
        const uint32_t k = order[at];
        for (uint32_t j = 0; j < g->op[k].n_after; j++)
            n_open -= !--open[g->after[g->op[k].first + j]];
        for (uint32_t j = first[k]; j < first[k + 1]; j++)
            if (!--left[to[j]]) order[end++] = to[j];
        n_open++; /* an operator without readers stays open: it could run beside all that follows */
        ends[at] = n_open == 1 && open[k] > 0 && at + 1 >= roots;
    }
    for (uint32_t k = 0; k < g->n_op && end < g->n_op; k++)
        if (left[k])
            return CD_FAIL(err, EINVALID,
                           "operator %u (%s) comes after itself: a cycle, or behind one", k,
                           g->op[k].name);
    return CDMPP_OK;
}

/* Each block is as long as possible: it ends at the last place within `most` operators where all
 * paths have met, or at `most` if there is none. */
cdmpp_status cd_stage_blocks(const cd_stage_graph *g, uint32_t most, uint32_t *block,
                             uint32_t *n_block, cdmpp_err *err) {
    cd_arena own = {0};
    uint32_t *order = CD_NEWN(&own, uint32_t, (size_t)g->n_op + 1);
    bool *ends = CD_NEWN(&own, bool, (size_t)g->n_op + 1);
    cdmpp_status st = order && ends ? check_edges(g, err)
                                    : (cdmpp_status)CD_FAIL(err, ENOMEM, "%u operators", g->n_op);
    if (!st && !most) st = CD_FAIL(err, ERANGE, "blocks of 0 operators");
    if (!st) st = meet(g, &own, order, ends, err);
    *n_block = 0;
    for (uint32_t i = 0; i < g->n_op && !st;) {
        uint32_t end = i + most < g->n_op && i + most > i ? i + most : g->n_op;
        for (uint32_t j = end; j > i && end < g->n_op; j--)
            if (ends[j - 1]) {
                end = j;
                break;
            }
        for (; i < end; i++) block[order[i]] = *n_block;
        ++*n_block;
    }
    cd_arena_free(&own);
    return st;
}
