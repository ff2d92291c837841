/* A plan as a net for a replay. Devices and links are queues that work in the plan's order, so a
 * replay never takes longer than the plan's sum. */
#include <math.h>
#include <string.h>

#include "predictor/partition/shard/shard_plan.h"
#include "predictor/partition/shard/shard_plan_internal.h"

/* Writes a plan as JSON. The keys are documented in docs/reference/plan.md; shard_plan_read.c reads
 * them. */

static void text(cd_buf *b, const char *key, const char *v) {
    cd_buf_putf(b, "\"%s\": ", key);
    cd_buf_put_json_str(b, v, strlen(v));
}

static void real(cd_buf *b, const char *key, double v) {
    cd_buf_putf(b, ", \"%s\": ", key);
    cd_buf_put_json_real(b, v);
}

static void device(cd_buf *b, const char *key, const cd_shard_plan *p, uint32_t d) {
    cd_buf_puts(b, ", ");
    if (d < p->n_device) text(b, key, p->device[d]);
    else cd_buf_putf(b, "\"%s\": null", key);
}

static void put_parts(cd_buf *b, const cd_shard_plan *p, const cd_shard_plan_op *o) {
    cd_buf_puts(b, ", \"parts\": [");
    for (uint32_t i = 0; i < o->n_part; i++) {
        cd_buf_puts(b, i ? ", {" : "{");
        text(b, "device", p->device[o->part[i].device]);
        cd_buf_putf(b, ", \"lo\": %lld, \"hi\": %lld", (long long)o->part[i].lo,
                    (long long)o->part[i].hi);
        real(b, "seconds", o->part[i].seconds);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]");
}

/* The extent is not stored in the plan: shards cover the axis, so it is the end of the last one. */
static void put_op_write(cd_buf *b, const cd_shard_plan *p, const cd_shard_plan_op *o) {
    cd_buf_puts(b, "{");
    text(b, "name", o->name), cd_buf_puts(b, ", ");
    text(b, "type", o->type), cd_buf_puts(b, ", ");
    text(b, "key", o->key), cd_buf_puts(b, ", ");
    text(b, "dim", o->dim);
    if (o->dim[0])
        cd_buf_putf(b, ", \"reduce\": %s, \"way_op\": %u, \"axis\": %u, \"extent\": %lld",
                    o->reduce ? "true" : "false", o->way_op, o->axis,
                    (long long)o->part[o->n_part - 1].hi);
    put_parts(b, p, o);
    device(b, "join", p, o->join);
    real(b, "join_s", o->join_s);
    real(b, "seconds", o->seconds);
    real(b, "exchange_s", o->exchange_s);
    cd_buf_puts(b, ", \"alone_s\": [");
    for (uint32_t d = 0; d < p->n_device; d++) {
        if (d) cd_buf_puts(b, ", ");
        cd_buf_put_json_real(b, o->alone_s[d]);
    }
    cd_buf_puts(b, "]");
    real(b, "ceiling", o->ceiling);
    cd_buf_puts(b, ", ");
    text(b, "why", o->why);
    cd_buf_puts(b, "}");
}

static void put_copy_write(cd_buf *b, const cd_shard_plan *p, const cd_shard_plan_copy *c) {
    cd_buf_putf(b, "{\"tensor\": %u", c->tensor);
    device(b, "from", p, c->from);
    device(b, "to", p, c->to);
    cd_buf_putf(b, ", \"bytes\": %lld", (long long)c->bytes);
    real(b, "seconds", c->seconds);
    cd_buf_putf(b, ", \"before\": %u}", c->before);
}

static void text_or_null(cd_buf *b, const char *key, const char *v) {
    cd_buf_puts(b, ", ");
    if (v) text(b, key, v);
    else cd_buf_putf(b, "\"%s\": null", key);
}

static void put_source(cd_buf *b, const char *name, const cd_shard_plan_source *s) {
    const char *sep = "";
    cd_buf_puts(b, "{");
    text(b, "device", name);
    text_or_null(b, "as", s->as);
    text_or_null(b, "model", s->model);
    cd_buf_putf(b, ", \"default_model\": %s", s->by_default ? "true" : "false");
    text_or_null(b, "host", s->host);
    text_or_null(b, "stand_in", s->stands);
    text_or_null(b, "stand_in_by", s->scaled ? "roofline" : NULL);
    cd_buf_putf(b, ", \"guessed\": %s", s->guessed ? "true" : "false");
    real(b, "stand_in_spread", s->stands_spread);
    real(b, "network_cost_spread", s->costs_spread);
    real(b, "left", s->left > 0 ? s->left : (double)NAN);
    real(b, "unlike_share", s->unlike);
    cd_buf_puts(b, ", \"unlike_reasons\": {");
    for (uint32_t k = 0; k < CD_N_UNLIKE; k++) {
        if (!(s->unlike_of[k] > 0)) continue;
        cd_buf_putf(b, "%s\"%s\": ", sep, cd_trained_on_reason(k));
        cd_buf_put_json_real(b, s->unlike_of[k]);
        sep = ", ";
    }
    cd_buf_puts(b, "}}");
}

/* Infinity and NaN are written as null; cd_shard_plan_read knows for each key which of them it
 * means. */
static void put_head(cd_buf *b, const cd_shard_plan *p) {
    cd_buf_puts(b, "{\"schema\": \"cdmpp.plan\", \"version\": 1,\n ");
    text(b, "network", p->network);
    cd_buf_putf(b, ", \"batch\": %lld, \"devices\": [", (long long)p->batch);
    for (uint32_t d = 0; d < p->n_device; d++) {
        if (d) cd_buf_puts(b, ", ");
        cd_buf_put_json_str(b, p->device[d], strlen(p->device[d]));
    }
    cd_buf_puts(b, "],\n ");
    text(b, "verdict", p->verdict);
    cd_buf_putf(b, ", \"split\": %s, \"exact\": %s,\n \"rho\": ", p->split ? "true" : "false",
                p->exact ? "true" : "false");
    cd_buf_put_json_real(b, p->rho);
    real(b, "ceiling", p->ceiling);
    real(b, "predicted_s", p->predicted_s);
    real(b, "low_s", p->low_s);
    real(b, "high_s", p->high_s);
    text_or_null(b, "no_interval", p->no_interval);
    real(b, "bound_s", p->bound_s);
    real(b, "measured_s", p->measured_s);
    real(b, "others", p->others);
    real(b, "predicted_gain", p->predicted_gain);
    real(b, "measured_gain", p->measured_gain);
}

/* One line for each operator, copy and baseline, so that two plans can be compared line by line. */
void cd_shard_plan_write(const cd_shard_plan *p, cd_buf *b) {
    put_head(b, p);
    if (p->source) cd_buf_puts(b, ",\n \"sources\": [");
    for (uint32_t d = 0; p->source && d < p->n_device; d++)
        cd_buf_puts(b, d ? ",\n  " : "\n  "), put_source(b, p->device[d], &p->source[d]);
    if (p->source) cd_buf_puts(b, "]");
    cd_buf_puts(b, ",\n \"operators\": [");
    for (uint32_t k = 0; k < p->n_op; k++)
        cd_buf_puts(b, k ? ",\n  " : "\n  "), put_op_write(b, p, &p->op[k]);
    cd_buf_puts(b, "],\n \"copies\": [");
    for (uint32_t i = 0; i < p->n_copy; i++)
        cd_buf_puts(b, i ? ",\n  " : "\n  "), put_copy_write(b, p, &p->copy[i]);
    cd_buf_puts(b, "],\n \"baselines\": [");
    for (uint32_t i = 0; i < p->n_base; i++) {
        cd_buf_puts(b, i ? ",\n  {" : "\n  {");
        text(b, "name", p->base[i].name);
        real(b, "predicted_s", p->base[i].predicted_s);
        real(b, "measured_s", p->base[i].measured_s);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]}\n");
}

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
