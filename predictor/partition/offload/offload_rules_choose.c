/* Chooses the matches that are worth it: the cover of the graph by matches that do not overlap with
 * the least sum of times. Each cover is a placement problem; all covers are tried if they are few,
 * else local search starts from the better of the empty and the greedy cover. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "predictor/partition/offload/offload_rules_internal.h"
#include "predictor/partition/placement/placement.h"

/* Prints rules as they were parsed. */

static void put_links(const cd_offload_rule *q, cd_buf *out) {
    for (uint32_t i = 0; i < q->n_link; i++)
        cd_buf_putf(out, "%s%s%s",
                    i == 0                          ? ""
                    : q->kind == CD_OFFLOAD_PATTERN ? " -> "
                                                    : " ",
                    q->link[i].type, q->link[i].maybe ? "?" : "");
}

static void put_conds(const cd_offload_rule *q, cd_buf *out) {
    static const char *const sign[] = {
        [CD_RULE_CMP_EQ] = "=",  [CD_RULE_CMP_NE] = "!=", [CD_RULE_CMP_LE] = "<=",
        [CD_RULE_CMP_GE] = ">=", [CD_RULE_CMP_LT] = "<",  [CD_RULE_CMP_GT] = ">",
        [CD_CMP_DIV] = "%"};
    for (uint32_t i = 0; i < q->n_cond; i++) {
        const cd_offload_cond *c = &q->cond[i];
        cd_buf_puts(out, q->kind == CD_OFFLOAD_FORMAT ? " " : i ? ", " : " where ");
        if (c->link) cd_buf_putf(out, "%u.", c->link);
        cd_buf_putf(out, "%s%s%s", c->key, sign[c->cmp], c->value);
    }
}

/* Printed from the parsed rules, not from the text, so that a user sees how a line was
 * understood. */
void cd_offload_print(const cd_offload_rules *r, uint32_t only, bool patterns, cd_buf *out) {
    static const char *const kind[] = {"host", "pattern", "support", "refuse", "place", "format"};
    for (uint32_t i = 0; i < r->n_rule; i++) {
        const cd_offload_rule *q = &r->rule[i];
        if ((only != UINT32_MAX && q->device != only) ||
            (patterns && q->kind != CD_OFFLOAD_PATTERN))
            continue;
        cd_buf_putf(out, "%5ld  %-8s", q->line, kind[q->kind]);
        if (q->kind == CD_OFFLOAD_PLACE) cd_buf_putf(out, "%s ", q->name);
        cd_buf_puts(out, r->device[q->device]);
        if (q->kind == CD_OFFLOAD_PATTERN) cd_buf_putf(out, " %s:", q->name);
        if (q->n_link) cd_buf_puts(out, " ");
        put_links(q, out);
        put_conds(q, out);
        cd_buf_puts(out, "\n");
    }
}

enum { ALL_COVERS = 4096, LOOKS = 2000 };

typedef struct {
    const cd_offload_rules *r;
    const cd_offload_graph *g;
    const cd_offload *o;
    const cd_offload_options *ask;
    cd_offload_plan *out;
    cd_arena own, once;          /* for all covers; for one */
    bool *in, *best_in;          /* (n_match) */
    uint32_t *node_of, *free_of; /* (n_op); the match that covers an operator now, UINT32_MAX */
    uint64_t n_cover, n_look;
    cd_place_device *device;
    struct placed {
        char text[64]; /* "plan.rules:7" */
    } * placed;        /* (n_op) */
    bool all_exact;
    cdmpp_err last; /* why a cover cannot be placed */
} chooser;

static const cd_offload_match *match_of(const chooser *c, uint32_t op) {
    return c->free_of[op] == UINT32_MAX ? NULL : &c->o->match[c->free_of[op]];
}

static bool overlaps(const chooser *c, uint32_t i) {
    for (uint32_t j = 0; j < c->o->match[i].n_op; j++)
        if (c->free_of[c->o->member[c->o->match[i].first + j]] != UINT32_MAX) return true;
    return false;
}

static void set(chooser *c, uint32_t i, bool in) {
    c->in[i] = in;
    for (uint32_t j = 0; j < c->o->match[i].n_op; j++)
        c->free_of[c->o->member[c->o->match[i].first + j]] = in ? i : UINT32_MAX;
}

/* ---- one cover as a placement problem: a match is one operator, pinned ---- */

static void node_seconds(const chooser *c, uint32_t op, const cd_offload_match *m,
                         double *seconds) {
    for (uint32_t d = 0; d < c->r->n_device; d++) {
        if (m)
            seconds[d] = d == m->device
                             ? c->ask->seconds(m, c->o->member + m->first, m->n_op, d, c->ask->ctx)
                             : (double)INFINITY;
        else
            seconds[d] = c->o->able[(size_t)op * c->r->n_device + d]
                             ? c->ask->seconds(NULL, &op, 1, d, c->ask->ctx)
                             : (double)INFINITY;
    }
}

/* The first member of a match stands for all of it, and what members pass to each other is not
 * copied. Lists of readers: counts, prefix sums, then a second walk. */
static cdmpp_status make_problem(chooser *c, cd_place_problem *p, cdmpp_err *err) {
    const uint32_t n = c->g->n_op, D = c->r->n_device;
    cd_arena_reset(&c->once);
    cd_place_op *op = CD_NEWN(&c->once, cd_place_op, (size_t)n + 1);
    cd_place_value *value = CD_NEWN(&c->once, cd_place_value, (size_t)n + 1);
    uint32_t *to = CD_NEWN(&c->once, uint32_t, (size_t)c->g->n_in + 1),
             *count = CD_NEWN(&c->once, uint32_t, (size_t)n + 1);
    double *seconds = CD_NEWN(&c->once, double, ((size_t)n + 1) * D);
    if (!op || !value || !to || !count || !seconds) return CD_FAIL(err, ENOMEM, "%u operators", n);
    *p = (cd_place_problem){0,      n, 0, D, c->ask->n_link, op, value, to, c->device, c->ask->link,
                            seconds};
    for (uint32_t k = 0; k < n; k++) {
        const cd_offload_match *m = match_of(c, k);
        if (m && c->o->member[m->first] != k) c->node_of[k] = c->node_of[c->o->member[m->first]];
        else {
            const bool pin = !m && c->o->place[k] != UINT32_MAX;
            node_seconds(c, k, m, &seconds[(size_t)p->n_op * D]);
            op[p->n_op] =
                (cd_place_op){m ? m->pattern : c->g->op[k].name,
                              pin ? c->o->place[k] : CD_PLACE_FREE, pin ? c->placed[k].text : NULL};
            c->node_of[k] = p->n_op++;
        }
    }
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = 0; j < c->g->op[k].n_in; j++)
            count[c->g->in[c->g->op[k].first + j]] +=
                c->node_of[c->g->in[c->g->op[k].first + j]] != c->node_of[k];
    for (uint32_t k = 0; k < n; k++) {
        value[k] = (cd_place_value){c->node_of[k], c->ask->bytes[k], p->n_to, 0};
        p->n_to += count[k];
    }
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = 0; j < c->g->op[k].n_in; j++) {
            cd_place_value *v = &value[c->g->in[c->g->op[k].first + j]];
            if (v->from != c->node_of[k]) to[v->first + v->n_to++] = c->node_of[k];
        }
    return CDMPP_OK;
}

/* The plan of the present cover; kept if it is the best so far. A cover for which no placement is
 * possible costs infinity. */
static cdmpp_status look(chooser *c, double *cost, cdmpp_err *err) {
    cd_place_problem p;
    cd_place_plan plan;
    cdmpp_err why = {0};
    *cost = (double)INFINITY;
    c->n_look++;
    CD_TRY(make_problem(c, &p, err));
    cdmpp_status st = cd_place_solve(&p, CD_PLACE_SUM, 0, &plan, &why);
    /* without this match a place line or an operator has nowhere to go */
    if (st == CDMPP_EINVALID || st == CDMPP_ESCHEMA) {
        cd_place_plan_free(&plan);
        c->last = why;
        return CDMPP_OK;
    }
    if (st && err) *err = why;
    if (!st) *cost = plan.cost.sum_s, c->all_exact = c->all_exact && plan.exact;
    if (!st && *cost < c->out->sum_s) {
        c->out->sum_s = *cost;
        memcpy(c->best_in, c->in, c->o->n_match * sizeof *c->in);
        for (uint32_t k = 0; k < c->g->n_op; k++)
            c->out->where[k] = plan.where[c->node_of[k]], c->out->match[k] = c->free_of[k];
    }
    cd_place_plan_free(&plan);
    return st;
}

/* ---- covers ---- */

static cdmpp_status every(chooser *c, uint32_t i, bool count, cdmpp_err *err) {
    double cost;
    if (count && c->n_cover > ALL_COVERS) return CDMPP_OK;
    if (i == c->o->n_match) {
        c->n_cover += count;
        return count ? CDMPP_OK : look(c, &cost, err);
    }
    CD_TRY(every(c, i + 1, count, err));
    if (overlaps(c, i)) return CDMPP_OK;
    set(c, i, true);
    const cdmpp_status st = every(c, i + 1, count, err);
    set(c, i, false);
    return st;
}

static void adopt(chooser *c, const bool *in) {
    for (uint32_t i = 0; i < c->o->n_match; i++)
        if (c->in[i]) set(c, i, false);
    for (uint32_t i = 0; i < c->o->n_match; i++)
        if (in[i]) set(c, i, true);
}

/* Match i in or out; what it overlaps with goes out. */
static void flip(chooser *c, uint32_t i) {
    if (c->in[i]) {
        set(c, i, false);
        return;
    }
    for (uint32_t j = 0; j < c->o->match[i].n_op; j++) {
        const uint32_t k = c->free_of[c->o->member[c->o->match[i].first + j]];
        if (k != UINT32_MAX) set(c, k, false);
    }
    set(c, i, true);
}

/* Local search: each step changes one match of the best cover so far (look keeps it up to date) and
 * ends after a round without improvement. */
static cdmpp_status search(chooser *c, cdmpp_err *err) {
    bool *now = CD_NEWN(&c->own, bool, (size_t)c->o->n_match + 1);
    if (!now) return CD_FAIL(err, ENOMEM, "%u matches", c->o->n_match);
    for (bool better = true; better && c->n_look < LOOKS;) {
        better = false;
        for (uint32_t i = 0; i < c->o->n_match && c->n_look < LOOKS; i++) {
            const double was = c->out->sum_s;
            double cost;
            memcpy(now, c->best_in, c->o->n_match * sizeof *now);
            adopt(c, now);
            flip(c, i);
            CD_TRY(look(c, &cost, err));
            better = better || cost < was;
        }
    }
    return CDMPP_OK;
}

/* ---- what it is compared with ---- */

/* The problem as it is now, on given places: device of every operator by `host`, or the first but
 * the host that can. */
static cdmpp_status cost_at(chooser *c, bool host, double *out, cdmpp_err *err) {
    cd_place_problem p;
    cd_place_cost cost;
    CD_TRY(make_problem(c, &p, err));
    uint32_t *where = CD_NEWN(&c->once, uint32_t, (size_t)p.n_op + 1);
    if (!where) return CD_FAIL(err, ENOMEM, "%u operators", p.n_op);
    for (uint32_t k = 0; k < p.n_op; k++) {
        if (p.op[k].pin != CD_PLACE_FREE) where[k] = p.op[k].pin;
        for (uint32_t d = p.n_device; d-- > 1 && p.op[k].pin == CD_PLACE_FREE && !host;)
            if (isfinite(p.seconds[(size_t)k * p.n_device + d])) where[k] = d;
    }
    *out = (double)INFINITY;
    const cdmpp_status st = cd_place_evaluate(&p, where, &cost, err);
    if (!st) *out = cost.sum_s;
    return st == CDMPP_EINVALID || st == CDMPP_ESCHEMA ? CDMPP_OK : st;
}

static cdmpp_status start(chooser *c, cdmpp_err *err) {
    const size_t n = (size_t)c->g->n_op + 1, m = (size_t)c->o->n_match + 1;
    c->in = CD_NEWN(&c->own, bool, m), c->best_in = CD_NEWN(&c->own, bool, m),
    c->node_of = CD_NEWN(&c->own, uint32_t, n), c->free_of = CD_NEWN(&c->own, uint32_t, n);
    c->device = CD_NEWN(&c->own, cd_place_device, c->r->n_device),
    c->placed = CD_NEWN(&c->own, struct placed, n);
    c->out->where = CD_NEWN(&c->out->arena, uint32_t, n),
    c->out->match = CD_NEWN(&c->out->arena, uint32_t, n);
    if (!c->in || !c->best_in || !c->node_of || !c->free_of || !c->device || !c->placed ||
        !c->out->where || !c->out->match)
        return CD_FAIL(err, ENOMEM, "%u operators", c->g->n_op);
    memset(c->free_of, 0xff, n * sizeof *c->free_of);
    for (uint32_t d = 0; d < c->r->n_device; d++)
        c->device[d] = (cd_place_device){c->r->device[d], 0};
    for (uint32_t k = 0; k < c->g->n_op; k++)
        if (c->o->place_line[k])
            snprintf(c->placed[k].text, sizeof c->placed[k].text, "%.40s:%ld", c->r->path,
                     c->o->place_line[k]);
    c->out->sum_s = (double)INFINITY;
    return CDMPP_OK;
}

/* The empty cover and TVM's greedy one come first, so the result is never worse than either. Covers
 * are counted before the full search is chosen. */
static cdmpp_status choose(chooser *c, cdmpp_err *err) {
    double cost;
    CD_TRY(start(c, err));
    CD_TRY(cost_at(c, true, &c->out->host_s, err));
    CD_TRY(look(c, &cost, err));
    for (uint32_t i = 0; i < c->o->n_match; i++)
        if (c->o->match[i].taken) set(c, i, true);
    CD_TRY(cost_at(c, false, &c->out->byoc_s, err));
    CD_TRY(look(c, &cost, err));
    const bool *none = CD_NEWN(&c->own, bool, (size_t)c->o->n_match + 1);
    if (!none) return CD_FAIL(err, ENOMEM, "%u matches", c->o->n_match);
    adopt(c, none);
    CD_TRY(every(c, 0, true, err));
    CD_TRY(c->n_cover <= ALL_COVERS ? every(c, 0, false, err) : search(c, err));
    c->out->exact = c->n_cover <= ALL_COVERS && c->all_exact;
    if (isfinite(c->out->sum_s)) return CDMPP_OK;
    if (err) *err = c->last;
    return CDMPP_EINVALID;
}

cdmpp_status cd_offload_choose(const cd_offload_rules *r, const cd_offload_graph *g,
                               const cd_offload *o, const cd_offload_options *a,
                               cd_offload_plan *out, cdmpp_err *err) {
    chooser c = {.r = r, .g = g, .o = o, .ask = a, .out = out, .all_exact = true};
    *out = (cd_offload_plan){0};
    const cdmpp_status st = choose(&c, err);
    cd_arena_free(&c.own);
    cd_arena_free(&c.once);
    return st;
}

void cd_offload_plan_free(cd_offload_plan *p) {
    cd_arena_free(&p->arena);
    *p = (cd_offload_plan){0};
}
