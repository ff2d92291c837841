/* Turns choices into a plan, with its copies, figures and reasons. The plan copies all texts, so it
 * does not depend on the network or the planner. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "predictor/partition/shard/shard_plan_internal.h"

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

cdmpp_status cd_shard_planner_result(const cd_shard_planner *s, const cd_shard_planner_solution *f,
                                     const uint32_t *choice, const char *base, cd_shard_plan **out,
                                     cdmpp_err *err) {
    cd_shard_plan *p = cd_mem_zalloc(1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "a plan");
    const cdmpp_status st = fill(s, f, choice, base, p, err);
    if (st) cd_shard_plan_free(p);
    else *out = p;
    return st;
}
