/* Makes a plan step by step: check, kinds of operators, options, exchanges, choice, result. Each
 * step is a file of its own; all work on one cd_shard_planner, whose arena is freed at the end. The
 * result has an arena of its own. */
#include "predictor/partition/shard/shard_plan.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "predictor/partition/shard/shard_plan_internal.h"

/* Reasons in one sentence, for printing: why an operator is split or not, and the verdict on the
 * plan. */

typedef struct said {
    char text[32];
} said;

static said time_text(double s) {
    said t;
    if (isinf(s)) snprintf(t.text, sizeof t.text, "infinite time");
    else if (s < 0.9995e-3) snprintf(t.text, sizeof t.text, "%.3g us", s * 1e6);
    else if (s < 0.9995) snprintf(t.text, sizeof t.text, "%.3g ms", s * 1e3);
    else snprintf(t.text, sizeof t.text, "%.3g s", s);
    return t;
}

static said bytes_text(int64_t n) {
    said t;
    if (n < 1024) snprintf(t.text, sizeof t.text, "%lld bytes", (long long)n);
    else if (n < 1 << 20) snprintf(t.text, sizeof t.text, "%.1f KiB", (double)n / 1024);
    else snprintf(t.text, sizeof t.text, "%.1f MiB", (double)n / (1 << 20));
    return t;
}
#define T(s) time_text(s).text

static const char *shares(const cd_shard_plan_op *o, char *text, size_t room) {
    size_t at = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < o->n_part && at + 24 < room; i++)
        at += (size_t)snprintf(text + at, room - at, "%s%lld", i ? "|" : "",
                               (long long)(o->part[i].hi - o->part[i].lo));
    return text;
}

static const cd_shard_planner_option *fastest_split(const cd_shard_planner *s, uint32_t op) {
    const cd_shard_planner_node *x = &s->node[op];
    const cd_shard_planner_kind *k = &s->kind[x->kind];
    const cd_shard_planner_option *best = NULL;
    for (uint32_t i = 0; i < x->n_all; i++) {
        const cd_shard_planner_option *o = &k->option[x->all[i]];
        if (o->way != CD_SHARD_PLANNER_NONE && (!best || o->seconds < best->seconds)) best = o;
    }
    return best;
}

static const char *why_split(const cd_shard_planner *s, const cd_shard_planner_kind *k,
                             const cd_shard_plan_op *o, int64_t bytes, cd_arena *a) {
    char part[128], against[96] = ", which no device can do alone";
    shares(o, part, sizeof part);
    if (k->fastest != CD_SHARD_PLANNER_NONE)
        snprintf(against, sizeof against, " against %s on %.48s", T(k->best),
                 s->m->device[k->fastest].name);
    if (o->exchange_s > 0 && bytes)
        return cd_shard_planner_format(a, "split %s %s: %s%s; exchanging %s before it costs %s",
                                       o->dim, part, T(o->seconds), against, bytes_text(bytes).text,
                                       T(o->exchange_s));
    if (o->exchange_s > 0)
        return cd_shard_planner_format(
            a, "split %s %s: %s%s; waiting for another device before it costs %s", o->dim, part,
            T(o->seconds), against, T(o->exchange_s));
    return cd_shard_planner_format(a, "split %s %s: %s%s; nothing to exchange before it", o->dim,
                                   part, T(o->seconds), against);
}

/* The fastest device other than `but`; CD_SHARD_PLANNER_NONE: no other can run it. */
static uint32_t second(const cd_shard_planner *s, const cd_shard_planner_kind *k, uint32_t but) {
    uint32_t d2 = CD_SHARD_PLANNER_NONE;
    for (uint32_t d = 0; d < s->n_device; d++)
        if (d != but && isfinite(k->alone[d]) &&
            (d2 == CD_SHARD_PLANNER_NONE || k->alone[d] < k->alone[d2]))
            d2 = d;
    return d2;
}

static double most_launch(const cd_shard_planner *s, const cd_shard_planner_kind *k) {
    double t = 0;
    for (uint32_t d = 0; d < s->n_device; d++)
        if (cd_shard_planner_allows(k, d)) t = fmax(t, s->m->device[d].launch_s);
    return t;
}

/* For an operator that could not save enough with any shares. */
static const char *why_not_worth(const cd_shard_planner *s, const cd_shard_planner_kind *k,
                                 const char *here, uint32_t other, cd_arena *a) {
    const double rho = k->alone[other] / k->best, launch = most_launch(s, k);
    if (rho >= 2 && k->least > 0 && s->n_device == 2)
        return cd_shard_planner_format(a, "all on %s: %s is %.3g times slower, at most %.2fx", here,
                                       s->m->device[other].name, rho, k->best / k->least);
    if (launch > 0.25 * k->best)
        return cd_shard_planner_format(a, "not split: %s is too short for a launch of %s; on %s",
                                       T(k->best), T(launch), here);
    return cd_shard_planner_format(a, "not split: of %s at most %s could be saved; on %s",
                                   T(k->best), T(k->best - k->least), here);
}

const char *cd_shard_planner_without_time(const cd_shard_planner *s, const cd_shard_planner_kind *k,
                                          uint32_t but, cd_arena *a) {
    uint32_t d = 0;
    while (d < s->n_device && (d == but || !cd_shard_planner_allows(k, d) || isfinite(k->alone[d])))
        d++;
    if (d == s->n_device) return NULL;
    const char *why = s->ask->why ? s->ask->why(s->ask->ctx, k->op, d, NULL) : NULL;
    return cd_shard_planner_format(a, "%s%s%.200s%s", s->m->device[d].name, why ? " (" : "",
                                   why ? why : "", why ? ")" : "");
}

/* Without a time nobody knows whether another device could: only rules say that it may not. */
static const char *why_only(const cd_shard_planner *s, const cd_shard_planner_kind *k,
                            const char *first, uint32_t on, cd_arena *a) {
    const char *here = s->m->device[on].name, *who = cd_shard_planner_without_time(s, k, on, a);
    if (!who)
        return cd_shard_planner_format(a, "%sall on %s: no other device may run it", first, here);
    return cd_shard_planner_format(a, "%sall on %s: no time is known on %s", first, here, who);
}

static const char *why_place(const cd_shard_planner *s, const cd_shard_planner_kind *k,
                             const char *first, uint32_t on, cd_arena *a) {
    const uint32_t other = second(s, k, on);
    const char *here = s->m->device[on].name;
    if (other == CD_SHARD_PLANNER_NONE) return why_only(s, k, first, on, a);
    if (k->alone[other] >= k->alone[on])
        return cd_shard_planner_format(a, "%son %s: %s against %s on %s", first, here,
                                       T(k->alone[on]), T(k->alone[other]),
                                       s->m->device[other].name);
    return cd_shard_planner_format(a, "%son %s: %s, with what must be copied better than %s on %s",
                                   first, here, T(k->alone[on]), T(k->alone[other]),
                                   s->m->device[other].name);
}

/* Reasons from the hard ones (impossible) to the soft ones (too small a gain); the first that holds
 * is reported. */
static const char *why_whole(const cd_shard_planner *s, const cd_shard_planner_solution *f,
                             uint32_t op, uint32_t on, cd_arena *a) {
    const cd_shard_planner_node *x = &s->node[op];
    const cd_shard_planner_kind *k = &s->kind[x->kind];
    const char *here = s->m->device[on].name;
    const cd_shard_planner_option *best = fastest_split(s, op);
    const uint32_t other = second(s, k, on);
    if (other == CD_SHARD_PLANNER_NONE || !s->ask->split) return why_place(s, k, "", on, a);
    if (!s->net->op[op].dag) return why_place(s, k, "not split, nobody defines it: ", on, a);
    if (!k->n_way) return why_place(s, k, "not split, no dimension can be: ", on, a);
    if (f->refused && k->option[f->wanted[op]].way != CD_SHARD_PLANNER_NONE)
        return cd_shard_planner_format(a,
                                       "on %s: split %s it would take %s against %s, but the "
                                       "network as a whole gains too little",
                                       here, k->option[f->wanted[op]].name,
                                       T(k->option[f->wanted[op]].seconds), T(k->alone[on]));
    if (!x->worth) return why_not_worth(s, k, here, other, a);
    if (!x->key)
        return cd_shard_planner_format(
            a,
            "not split: not among the operators that make up %.3g %% of what can be saved; on %s",
            100 * s->cover, here);
    if (!best) return why_place(s, k, "not split, no part of it can run: ", on, a);
    if (best->seconds + fmax(s->margin * k->best, s->least_s) > k->best)
        return cd_shard_planner_format(a, "not split: %s would take %s against %s on %s",
                                       best->name, T(best->seconds), T(k->best), here);
    return cd_shard_planner_format(
        a, "not split: %s would save %s, exchanging with its neighbours costs more; on %s",
        best->name, T(k->best - best->seconds), here);
}

const char *cd_shard_planner_explain(const cd_shard_planner *s, const cd_shard_planner_solution *f,
                                     uint32_t op, const cd_shard_plan_op *o, int64_t bytes,
                                     cd_arena *a) {
    const cd_shard_planner_kind *k = &s->kind[s->node[op].kind];
    const cd_shard_net_op *v = &s->net->op[op];
    if (o->dim[0]) return why_split(s, k, o, bytes, a);
    if (v->pin != UINT32_MAX)
        return cd_shard_planner_format(a, "on %s: pinned%s%s%s", s->m->device[v->pin].name,
                                       v->pin_why ? " (" : "", v->pin_why ? v->pin_why : "",
                                       v->pin_why ? ")" : "");
    return why_whole(s, f, op, o->part[0].device, a);
}

/* ---- the plan ---- */
/* Why a device has no time for the whole network: operators without a time, those that it may not
 * run, or its memory. */
static const char *why_not_all(const cd_shard_planner *s, const char *here, uint32_t d,
                               cd_arena *a) {
    uint32_t unknown = 0, forbidden = 0, first = 0;
    for (uint32_t op = s->net->n_op; op-- > 0;) {
        const cd_shard_planner_kind *k = &s->kind[s->node[op].kind];
        forbidden += !cd_shard_planner_allows(k, d);
        if (!cd_shard_planner_allows(k, d) || isfinite(k->alone[d])) continue;
        unknown++, first = op;
    }
    const char *name = s->m->device[d].name,
               *why = unknown && s->ask->why
                          ? s->ask->why(s->ask->ctx, s->kind[s->node[first].kind].op, d, NULL)
                          : NULL;
    if (unknown)
        return cd_shard_planner_format(a,
                                       "do not split, all on %s: %u of %u operators have no time "
                                       "on %s, the first is %.60s%s%.160s",
                                       here, unknown, s->net->n_op, name, s->net->op[first].name,
                                       why ? ": " : "", why ? why : "");
    if (forbidden)
        return cd_shard_planner_format(a,
                                       "do not split, all on %s: %s may not run %u of %u operators",
                                       here, name, forbidden, s->net->n_op);
    return cd_shard_planner_format(
        a, "do not split, all on %s: all of it does not fit into %s, or cannot be brought there",
        here, name);
}

static const char *why_refused(const cd_shard_planner *s, const cd_shard_planner_solution *f,
                               const cd_shard_plan *p, cd_arena *a) {
    /* rho where the ceiling is the margin */
    const double most = s->margin > 0 ? (1 - s->margin) / s->margin : (double)INFINITY;
    uint32_t slow = 0;
    for (uint32_t d = 0; d < s->n_device; d++)
        if (f->base_s[d] > f->base_s[slow] || slow == f->alone) slow = d;
    const char *here = s->m->device[f->alone].name;
    if (s->n_device == 2 && isinf(f->rho)) return why_not_all(s, here, slow, a);
    if (s->n_device == 2 && f->rho > most)
        return cd_shard_planner_format(a,
                                       "do not split, all on %s: %s is %.3g times slower and would "
                                       "have to be %.3g times faster to be worth it; at most %.2fx",
                                       here, s->m->device[slow].name, f->rho, f->rho / most,
                                       p->ceiling);
    return cd_shard_planner_format(
        a, "do not split, all on %s: no split saves %.3g %% of %s; at most %.2fx", here,
        100 * s->margin, T(f->alone_s), p->ceiling);
}

static const char *verdict(const cd_shard_planner *s, const cd_shard_planner_solution *f,
                           const cd_shard_plan *p, cd_arena *a) {
    uint32_t split = 0, used = 0, bit = 0;
    for (uint32_t k = 0; k < p->n_op; k++) {
        split += p->op[k].dim[0] != 0;
        for (uint32_t i = 0; i < p->op[k].n_part; i++) bit |= 1U << p->op[k].part[i].device;
    }
    for (uint32_t d = 0; d < p->n_device; d++) used += bit >> d & 1;
    if (split)
        return cd_shard_planner_format(
            a, "split %u of %u operators: %s against %s, %.2fx of at most %.2fx", split, p->n_op,
            T(p->predicted_s), T(p->predicted_s * p->predicted_gain), p->predicted_gain,
            p->ceiling);
    if (used > 1)
        return cd_shard_planner_format(
            a, "split none, placed on %u devices: %s, %.2fx of at most %.2fx", used,
            T(p->predicted_s), p->predicted_gain, p->ceiling);
    if (s->ask->split && s->n_device > 1 && f->alone != CD_SHARD_PLANNER_NONE)
        return why_refused(s, f, p, a);
    return cd_shard_planner_format(a, "all on %s",
                                   p->n_op ? p->device[p->op[0].part[0].device] : p->device[0]);
}

const char *cd_shard_planner_verdict(const cd_shard_planner *s, const cd_shard_planner_solution *f,
                                     const cd_shard_plan *p, cd_arena *a) {
    const char *says = verdict(s, f, p, a);
    if (!says || f->tight == CD_SHARD_PLANNER_NONE) return says;
    return cd_shard_planner_format(a, "%s; a better plan does not fit into %.6g GB of %s", says,
                                   s->limit[f->tight] * 1e-9, s->m->device[f->tight].name);
}

/* Turns choices into a plan, with its copies, figures and reasons. The plan copies all texts, so it
 * does not depend on the network or the planner. */

const char *cd_shard_planner_format(cd_arena *a, const char *format, ...) {
    char text[512];
    va_list v;
    va_start(v, format);
    const int n = vsnprintf(text, sizeof text, format, v);
    va_end(v);
    const size_t len = n < 0 ? 0 : n < (int)sizeof text ? (size_t)n : sizeof text - 1;
    char *p = cd_arena_alloc(a, len + 1, 1);
    if (p) memcpy(p, text, len), p[len] = 0;
    return p;
}

static const char *copy_text(cd_arena *a, const char *t) {
    const size_t n = t ? strlen(t) : 0;
    char *p = cd_arena_alloc(a, n + 1, 1);
    if (p && n) memcpy(p, t, n);
    if (p) p[n] = 0;
    return p;
}

static const cd_shard_planner_option *option_of(const cd_shard_planner *s, uint32_t op,
                                                const uint32_t *choice) {
    return &s->kind[s->node[op].kind].option[choice[op]];
}

static void *copied(cd_arena *a, const void *from, size_t n, size_t size) {
    void *p = cd_arena_alloc(a, n + 1, size);
    if (p && n) memcpy(p, from, n * size);
    return p;
}

static cdmpp_status put_op(const cd_shard_planner *s, uint32_t op, const cd_shard_planner_option *c,
                           cd_shard_plan *p, cdmpp_err *err) {
    const cd_shard_net_op *v = &s->net->op[op];
    const cd_shard_planner_kind *k = &s->kind[s->node[op].kind];
    cd_shard_plan_op *o = &p->op[op];
    const bool split = c->way != CD_SHARD_PLANNER_NONE;
    *o = (cd_shard_plan_op){.name = copy_text(&p->arena, v->name),
                            .type = copy_text(&p->arena, v->type),
                            .key = copy_text(&p->arena, v->key),
                            .n_part = c->n_part,
                            .dim = copy_text(&p->arena, split ? k->way[c->way].name : ""),
                            .join = c->join,
                            .join_s = c->join_s,
                            .seconds = c->seconds,
                            .part = copied(&p->arena, c->part, c->n_part, sizeof *c->part),
                            .alone_s = copied(&p->arena, k->alone, s->n_device, sizeof *k->alone),
                            .ceiling = k->least > 0 && isfinite(k->best) ? k->best / k->least : 1};
    if (split)
        o->reduce = k->way[c->way].reduce, o->way_op = k->way[c->way].op,
        o->axis = k->way[c->way].axis;
    if (o->name && o->type && o->key && o->dim && o->part && o->alone_s) return CDMPP_OK;
    return CD_FAIL(err, ENOMEM, "plan of %s", v->name);
}

/* All copies, by what they come before. */
static cdmpp_status put_moves(const cd_shard_planner *s, const uint32_t *choice, cd_shard_plan *p,
                              cdmpp_err *err) {
    cd_shard_planner_moves m = {0};
    uint32_t e = 0;
    for (uint32_t op = 0; op < s->net->n_op; op++) {
        m.before = op;
        p->op[op].exchange_s = cd_shard_planner_inputs(s, op, option_of(s, op, choice), &m);
        for (; e < s->n_edge && s->edge[e].to == op; e++)
            p->op[op].exchange_s +=
                cd_shard_planner_exchange(s, s->edge[e].from, option_of(s, s->edge[e].from, choice),
                                          op, option_of(s, op, choice), &m);
    }
    m.before = s->net->n_op;
    for (uint32_t op = 0; op < s->net->n_op; op++)
        cd_shard_planner_results(s, op, option_of(s, op, choice), &m);
    p->n_copy = m.n;
    p->copy = cd_arena_alloc(&p->arena, (size_t)m.n + 1, sizeof *p->copy);
    for (uint32_t i = 0; p->copy && i < m.n; i++) p->copy[i] = m.move[i].copy;
    cd_mem_free(m.move);
    return m.oom || !p->copy ? CD_FAIL(err, ENOMEM, "%u copies", m.n) : CDMPP_OK;
}

static cdmpp_status put_bases(const cd_shard_planner_solution *f, cd_shard_plan *p,
                              cdmpp_err *err) {
    p->n_base = f->n_base;
    if (!(p->base = CD_NEWN(&p->arena, cd_shard_plan_baseline, (size_t)f->n_base + 1)))
        return CD_FAIL(err, ENOMEM, "baselines");
    for (uint32_t i = 0; i < f->n_base; i++) {
        p->base[i] =
            (cd_shard_plan_baseline){copy_text(&p->arena, f->name[i]), f->base_s[i], (double)NAN};
        if (!p->base[i].name) return CD_FAIL(err, ENOMEM, "baselines");
    }
    return CDMPP_OK;
}

/* A plan is the sum of its operators' options and of exchanges, which are never below 0: so no gain
 * is above the ceiling. */
static void figures(const cd_shard_planner *s, const cd_shard_planner_solution *f,
                    const uint32_t *choice, bool base, cd_shard_plan *p) {
    double least = 0;
    for (uint32_t op = 0; op < s->net->n_op; op++) {
        least += s->kind[s->node[op].kind].least;
        p->split = p->split || p->op[op].dim[0];
    }
    p->predicted_s = cd_shard_planner_cost(s, choice, NULL);
    p->bound_s = f->bound_s, p->exact = !base && f->exact, p->rho = f->rho;
    p->measured_s = p->measured_gain = p->others = p->low_s = p->high_s = (double)NAN;
    /* none can run all: the placement, the baseline behind the devices */
    const double over = isfinite(f->alone_s) ? f->alone_s : f->base_s[s->n_device];
    p->predicted_gain = p->predicted_s > 0 && isfinite(over) ? over / p->predicted_s : 1;
    p->ceiling = least > 0 && isfinite(over) ? fmax(1, over / least) : 1;
}

static cdmpp_status put_reasons(const cd_shard_planner *s, const cd_shard_planner_solution *f,
                                const char *base, cd_shard_plan *p, cdmpp_err *err) {
    uint32_t c = 0;
    for (uint32_t op = 0; op < s->net->n_op; op++) {
        int64_t bytes = 0;
        for (; c < p->n_copy && p->copy[c].before == op; c++) bytes += p->copy[c].bytes;
        p->op[op].why = base ? cd_shard_planner_format(&p->arena, "as the baseline %s has it", base)
                             : cd_shard_planner_explain(s, f, op, &p->op[op], bytes, &p->arena);
        if (!p->op[op].why) return CD_FAIL(err, ENOMEM, "reasons");
    }
    p->verdict = base ? cd_shard_planner_format(&p->arena, "baseline %s", base)
                      : cd_shard_planner_verdict(s, f, p, &p->arena);
    return p->verdict ? CDMPP_OK : CD_FAIL(err, ENOMEM, "reasons");
}

static cdmpp_status fill(const cd_shard_planner *s, const cd_shard_planner_solution *f,
                         const uint32_t *choice, const char *base, cd_shard_plan *p,
                         cdmpp_err *err) {
    p->network = copy_text(&p->arena, s->net->name), p->batch = s->net->batch,
    p->n_device = s->n_device, p->n_op = s->net->n_op;
    p->device = CD_NEWN(&p->arena, const char *, (size_t)s->n_device + 1);
    p->op = CD_NEWN(&p->arena, cd_shard_plan_op, (size_t)s->net->n_op + 1);
    if (!p->network || !p->device || !p->op)
        return CD_FAIL(err, ENOMEM, "a plan of %u operators", s->net->n_op);
    for (uint32_t d = 0; d < s->n_device; d++)
        if (!(p->device[d] = copy_text(&p->arena, s->m->device[d].name)))
            return CD_FAIL(err, ENOMEM, "a plan");
    for (uint32_t op = 0; op < s->net->n_op; op++)
        CD_TRY(put_op(s, op, option_of(s, op, choice), p, err));
    CD_TRY(put_moves(s, choice, p, err));
    CD_TRY(put_bases(f, p, err));
    figures(s, f, choice, base != NULL, p);
    return put_reasons(s, f, base, p, err);
}

/* A plan as a value of its own from choices. base: name of the baseline that it is; NULL: the plan
 * itself. Errors: ENOMEM. */
static cdmpp_status shard_planner_result(const cd_shard_planner *s,
                                         const cd_shard_planner_solution *f, const uint32_t *choice,
                                         const char *base, cd_shard_plan **out, cdmpp_err *err) {
    cd_shard_plan *p = cd_mem_zalloc(1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "a plan");
    const cdmpp_status st = fill(s, f, choice, base, p, err);
    if (st) cd_shard_plan_free(p);
    else *out = p;
    return st;
}

void cd_shard_plan_free(cd_shard_plan *p) {
    if (!p) return;
    cd_arena own = p->arena;
    cd_mem_free(p);
    cd_arena_free(&own);
}

void cd_shard_plan_free_all(cd_shard_plan **p, size_t n) {
    for (size_t i = 0; p && i < n; i++) cd_shard_plan_free(p[i]);
    cd_mem_free(p);
}

static bool same_op(const cd_shard_plan_op *a, const cd_shard_plan_op *b) {
    bool same = a->n_part == b->n_part && a->join == b->join && !strcmp(a->dim, b->dim) &&
                a->way_op == b->way_op && a->axis == b->axis;
    for (uint32_t i = 0; same && i < a->n_part; i++)
        same = a->part[i].device == b->part[i].device && a->part[i].lo == b->part[i].lo &&
               a->part[i].hi == b->part[i].hi;
    return same;
}

bool cd_shard_plan_same(const cd_shard_plan *a, const cd_shard_plan *b) {
    bool same = a->n_op == b->n_op;
    for (uint32_t k = 0; same && k < a->n_op; k++) same = same_op(&a->op[k], &b->op[k]);
    return same;
}

static cdmpp_status base_plans(const cd_shard_planner *s, const cd_shard_planner_solution *f,
                               cd_shard_plan ***out, cdmpp_err *err) {
    cd_shard_plan **p = cd_mem_zalloc(f->n_base, sizeof *p);
    cdmpp_status st = p ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%u baselines", f->n_base);
    for (uint32_t i = 0; i < f->n_base && !st; i++)
        if (f->base[i]) st = shard_planner_result(s, f, f->base[i], f->name[i], &p[i], err);
    if (st) cd_shard_plan_free_all(p, f->n_base);
    else *out = p;
    return st;
}

static cdmpp_status make(cd_shard_planner *s, const cd_shard_plan_options *a, cd_shard_plan **out,
                         cd_shard_plan ***base, cdmpp_err *err) {
    cd_shard_planner_solution f;
    CD_TRY(cd_shard_planner_begin(s, a, err));
    CD_TRY(cd_shard_planner_kinds(s, err));
    CD_TRY(cd_shard_planner_nodes(s, err));
    CD_TRY(cd_shard_planner_edges(s, err));
    CD_TRY(cd_shard_planner_choose(s, &f, err));
    CD_TRY(shard_planner_result(s, &f, f.choice, NULL, out, err));
    const cdmpp_status st = base ? base_plans(s, &f, base, err) : CDMPP_OK;
    if (st) cd_shard_plan_free(*out), *out = NULL;
    return st;
}

cdmpp_status cd_shard_plan_make(const cd_shard_plan_options *a, cd_shard_plan **out,
                                cd_shard_plan ***base, cdmpp_err *err) {
    cd_shard_planner s;
    *out = NULL;
    if (base) *base = NULL;
    const cdmpp_status st = make(&s, a, out, base, err);
    cd_arena_free(&s.arena);
    return st;
}
