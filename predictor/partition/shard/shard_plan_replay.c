/* A plan as a net for a replay. Devices and links are queues that work in the plan's order, so a
 * replay never takes longer than the plan's sum. */
#include <string.h>

#include "predictor/partition/shard/shard_plan_internal.h"

typedef struct maker {
    const cd_shard_plan *p;
    const cd_shard_net *net;
    cd_arena *a;
    cd_replay_op *op; /* the heap's, as `after` */
    uint32_t *after;
    uint32_t n_op, n_after, cap_op, cap_after, n_queue;
    /* (n_op + 1) of the plan's operator: the first of its parts; the join is the last */
    uint32_t *first;
    uint32_t *last;
    uint32_t copy_first; /* of the operator at hand: its copies' place in `op` */
    uint32_t lane[CD_MACHINE_DEVICES][CD_MACHINE_DEVICES]; /* queue of a link; 0: not used */
} maker;

static cdmpp_status begin(maker *m, const char *name, uint32_t queue, double seconds,
                          cdmpp_err *err) {
    if (CD_GROW(m->op, m->n_op, m->cap_op)) return CD_FAIL(err, ENOMEM, "a replay of a plan");
    if (!name) return CD_FAIL(err, ENOMEM, "a name");
    m->op[m->n_op++] = (cd_replay_op){
        .name = name, .device = queue, .like = UINT32_MAX, .seconds = seconds, .first = m->n_after};
    return CDMPP_OK;
}

/* The operator at hand comes after `other`; twice is once. */
static cdmpp_status behind(maker *m, uint32_t other, cdmpp_err *err) {
    cd_replay_op *o = &m->op[m->n_op - 1];
    for (uint32_t i = 0; i < o->n_after; i++)
        if (m->after[o->first + i] == other) return CDMPP_OK;
    if (CD_GROW(m->after, m->n_after, m->cap_after))
        return CD_FAIL(err, ENOMEM, "a replay of a plan");
    m->after[m->n_after++] = other;
    o->n_after++;
    return CDMPP_OK;
}

/* After all that operator `from` does; on one device: after its part there, if it has one. */
static cdmpp_status behind_op(maker *m, uint32_t from, uint32_t device, cdmpp_err *err) {
    if (from == CD_SHARD_NET_OUTSIDE) return CDMPP_OK;
    const bool joined = m->p->op[from].join != UINT32_MAX;
    for (uint32_t i = joined ? m->last[from] : m->first[from]; i <= m->last[from]; i++)
        if (device == UINT32_MAX || m->op[i].device == device) CD_TRY(behind(m, i, err));
    return CDMPP_OK;
}

static cdmpp_status put_copy(maker *m, uint32_t first, uint32_t at, cdmpp_err *err) {
    const cd_shard_plan_copy *c = &m->p->copy[at];
    const cd_shard_net_tensor *t = &m->net->tensor[c->tensor];
    const bool link = c->from != c->to && c->bytes > 0;
    const char *what = c->from == c->to ? "pack" : link ? "copy" : "wait for";
    CD_TRY(begin(m, cd_shard_planner_format(m->a, "%s %.200s", what, t->name),
                 link ? m->lane[c->from][c->to] : c->to, c->seconds, err));
    for (uint32_t i = first; i < at; i++) {
        const cd_shard_plan_copy *b = &m->p->copy[i];
        /* pack, link, unpack */
        const bool packed = link && b->from == b->to, came = c->from == c->to && b->from != b->to;
        if (b->tensor == c->tensor && b->bytes > 0 && b->to == c->from && (packed || came))
            CD_TRY(behind(m, m->copy_first + (i - first), err));
    }
    return behind_op(m, t->from, UINT32_MAX, err);
}

static cdmpp_status put_copies(maker *m, uint32_t *c, uint32_t before, cdmpp_err *err) {
    const uint32_t first = *c;
    m->copy_first = m->n_op;
    for (; *c < m->p->n_copy && m->p->copy[*c].before == before; ++*c)
        CD_TRY(put_copy(m, first, *c, err));
    return CDMPP_OK;
}

static cdmpp_status put_part(maker *m, uint32_t k, uint32_t i, uint32_t copy, uint32_t n_copy,
                             cdmpp_err *err) {
    const cd_shard_plan_op *o = &m->p->op[k];
    const cd_shard_plan_part *v = &o->part[i];
    const char *name = o->dim[0]
                           ? cd_shard_planner_format(m->a, "%.300s %s %lld..%lld", o->name, o->dim,
                                                     (long long)v->lo, (long long)v->hi)
                           : cd_shard_planner_format(m->a, "%.400s", o->name);
    CD_TRY(begin(m, name, v->device, v->seconds, err));
    for (uint32_t c = 0; c < n_copy; c++)
        if (m->p->copy[copy + c].to == v->device) CD_TRY(behind(m, m->copy_first + c, err));
    for (uint32_t a = 0; a < m->net->op[k].n_arg; a++) {
        const uint32_t from = m->net->tensor[m->net->op[k].arg[a]].from;
        if (from != k) CD_TRY(behind_op(m, from, v->device, err));
    }
    return CDMPP_OK;
}

static cdmpp_status put_op(maker *m, uint32_t k, uint32_t *copy, cdmpp_err *err) {
    const cd_shard_plan_op *o = &m->p->op[k];
    const uint32_t before = *copy;
    CD_TRY(put_copies(m, copy, k, err));
    const uint32_t first = m->n_op;
    for (uint32_t i = 0; i < o->n_part; i++) CD_TRY(put_part(m, k, i, before, *copy - before, err));
    if (o->join != UINT32_MAX) {
        CD_TRY(begin(m, cd_shard_planner_format(m->a, "%.400s join", o->name), o->join, o->join_s,
                     err));
        for (uint32_t i = first; i + 1 < m->n_op; i++) CD_TRY(behind(m, i, err));
    }
    m->first[k] = first, m->last[k] = m->n_op - 1;
    return CDMPP_OK;
}

static cdmpp_status check(const cd_shard_plan *p, const cd_shard_net *net, const cd_machine *m,
                          cdmpp_err *err) {
    if (p->n_op != net->n_op || p->n_device != m->n || m->n > CD_MACHINE_DEVICES)
        return CD_FAIL(err, EINVALID,
                       "a plan of %u operators on %u devices for a network of %u on %u", p->n_op,
                       p->n_device, net->n_op, m->n);
    for (uint32_t i = 0; i < p->n_copy; i++)
        if (p->copy[i].tensor >= net->n_tensor ||
            (i && p->copy[i].before < p->copy[i - 1].before) || p->copy[i].from >= m->n ||
            p->copy[i].to >= m->n ||
            (net->tensor[p->copy[i].tensor].from != CD_SHARD_NET_OUTSIDE &&
             net->tensor[p->copy[i].tensor].from >= p->copy[i].before))
            return CD_FAIL(err, EINVALID, "copy %u of the plan is none of network %s", i,
                           net->name);
    return CDMPP_OK;
}

/* A queue for each device and for each link that is used; copies are operators, so links between
 * queues cost nothing. */
static cdmpp_status put_queues(maker *m, cd_replay_net *out, cdmpp_err *err) {
    const cd_shard_plan *p = m->p;
    m->n_queue = p->n_device;
    for (uint32_t i = 0; i < p->n_copy; i++) {
        const cd_shard_plan_copy *c = &p->copy[i];
        if (c->from != c->to && c->bytes > 0 && !m->lane[c->from][c->to])
            m->lane[c->from][c->to] = m->n_queue++;
    }
    const uint32_t n = m->n_queue;
    cd_replay_device *d = CD_NEWN(m->a, cd_replay_device, (size_t)n + 1);
    cd_replay_link *l = CD_NEWN(m->a, cd_replay_link, (size_t)n * n + 1);
    if (!d || !l) return CD_FAIL(err, ENOMEM, "%u queues", n);
    for (uint32_t a = 0; a < p->n_device; a++)
        for (uint32_t b = 0; b < p->n_device; b++)
            if (m->lane[a][b] && !(d[m->lane[a][b]].name = cd_shard_planner_format(
                                       m->a, "%s > %s", p->device[a], p->device[b])))
                return CD_FAIL(err, ENOMEM, "a name");
    for (uint32_t a = 0; a < n; a++) {
        if (a < p->n_device && !(d[a].name = cd_shard_planner_format(m->a, "%s", p->device[a])))
            return CD_FAIL(err, ENOMEM, "a name");
        d[a].workers = 1, d[a].policy = CD_REPLAY_STREAM;
        for (uint32_t b = 0; b < n; b++)
            if (a != b) l[out->n_link++] = (cd_replay_link){a, b, 0, 1e12};
    }
    out->n_device = n, out->device = d, out->link = l;
    return CDMPP_OK;
}

/* Operators are emitted in the plan's order, each behind its copies; copies of results to the first
 * device come last. The lists grow on the heap and are copied to the arena once, at their final
 * size. */
static cdmpp_status build(maker *m, cd_replay_net *out, cdmpp_err *err) {
    uint32_t copy = 0;
    m->first = CD_NEWN(m->a, uint32_t, (size_t)m->p->n_op + 1),
    m->last = CD_NEWN(m->a, uint32_t, (size_t)m->p->n_op + 1);
    if (!m->first || !m->last) return CD_FAIL(err, ENOMEM, "%u operators", m->p->n_op);
    CD_TRY(put_queues(m, out, err));
    for (uint32_t k = 0; k < m->p->n_op; k++) CD_TRY(put_op(m, k, &copy, err));
    CD_TRY(put_copies(m, &copy, m->p->n_op, err));
    cd_replay_op *op = CD_NEWN(m->a, cd_replay_op, (size_t)m->n_op + 1);
    uint32_t *after = CD_NEWN(m->a, uint32_t, (size_t)m->n_after + 1);
    if (!op || !after) return CD_FAIL(err, ENOMEM, "%u operators", m->n_op);
    if (m->n_op) memcpy(op, m->op, m->n_op * sizeof *op);
    if (m->n_after) memcpy(after, m->after, m->n_after * sizeof *after);
    out->n_op = m->n_op, out->n_after = m->n_after, out->op = op, out->after = after;
    return CDMPP_OK;
}

cdmpp_status cd_shard_plan_replay(const cd_shard_plan *p, const cd_shard_net *net,
                                  const cd_machine *m, cd_arena *a, cd_replay_net *out,
                                  cdmpp_err *err) {
    maker k = {.p = p, .net = net, .a = a};
    *out = (cd_replay_net){0};
    CD_TRY(check(p, net, m, err));
    const cdmpp_status st = build(&k, out, err);
    cd_mem_free(k.op);
    cd_mem_free(k.after);
    return st;
}
