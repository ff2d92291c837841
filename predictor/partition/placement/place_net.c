/* Checks a placement problem and prepares it: a topological order, lists of who reads what, costs
 * of copies. Then what one placement costs: the sum directly, the makespan by a replay. */
#include <stdlib.h>
#include <string.h>

#include "predictor/partition/placement/place_internal.h"

static bool is_time(double s) { return s >= 0 && isfinite(s); }

/* The duplicate check is quadratic: there are at most CD_PLACE_MAX_DEVICE^2 different links. */
static cdmpp_status check_links(const cd_place_problem *p, cdmpp_err *err) {
    if (!p->n_device || p->n_device > CD_PLACE_MAX_DEVICE)
        return CD_FAIL(err, ERANGE, "%u devices: expected 1 to %d", p->n_device,
                       CD_PLACE_MAX_DEVICE);
    for (uint32_t k = 0; k < p->n_link; k++) {
        const cd_place_link *l = &p->link[k];
        if (l->from >= p->n_device || l->to >= p->n_device || l->from == l->to)
            return CD_FAIL(err, EINVALID, "link %u: devices %u to %u of %u", k, l->from, l->to,
                           p->n_device);
        if (!is_time(l->latency_s) || !(l->bytes_per_s > 0) || !is_time(l->packed) ||
            !is_time(l->convert_s) || !is_time(l->convert_s_per_byte))
            return CD_FAIL(
                err, ERANGE,
                "link %s to %s: %g s, %g bytes/s, packed %g, conversion %g s and %g s a byte",
                p->device[l->from].name, p->device[l->to].name, l->latency_s, l->bytes_per_s,
                l->packed, l->convert_s, l->convert_s_per_byte);
        for (uint32_t j = 0; j < k; j++)
            if (p->link[j].from == l->from && p->link[j].to == l->to)
                return CD_FAIL(err, EINVALID, "links %u and %u are both from %s to %s", j, k,
                               p->device[l->from].name, p->device[l->to].name);
    }
    return CDMPP_OK;
}

/* Infinity is no error: the device does not support the operator. NaN fails the test s >= 0. A pin
 * is never broken, so its device must support the operator. */
static cdmpp_status check_op(const cd_place_problem *p, uint32_t k, cdmpp_err *err) {
    const cd_place_op *o = &p->op[k];
    bool some = false;
    for (uint32_t d = 0; d < p->n_device; d++) {
        const double s = p->seconds[(size_t)k * p->n_device + d];
        if (!(s >= 0))
            return CD_FAIL(err, ERANGE, "operator %u (%s) on %s: %g seconds", k, o->name,
                           p->device[d].name, s);
        some = some || isfinite(s);
    }
    if (!some) return CD_FAIL(err, ESCHEMA, "operator %u (%s): no device supports it", k, o->name);
    if (o->pin == CD_PLACE_FREE) return CDMPP_OK;
    const char *why = o->pin_why ? o->pin_why : "pinned";
    if (o->pin >= p->n_device)
        return CD_FAIL(err, EINVALID, "operator %u (%s): %s: device %u of %u", k, o->name, why,
                       o->pin, p->n_device);
    if (!isfinite(p->seconds[(size_t)k * p->n_device + o->pin]))
        return CD_FAIL(err, EINVALID, "operator %u (%s): %s: %s does not support it", k, o->name,
                       why, p->device[o->pin].name);
    return CDMPP_OK;
}

/* A direct self-reference is found here; longer cycles are found by sort. */
static cdmpp_status check_values(const cd_place_problem *p, cdmpp_err *err) {
    for (uint32_t v = 0; v < p->n_value; v++) {
        const cd_place_value *x = &p->value[v];
        if (x->from >= p->n_op)
            return CD_FAIL(err, EINVALID, "value %u: of operator %u of %u", v, x->from, p->n_op);
        if (x->bytes < 0)
            return CD_FAIL(err, ERANGE, "value %u of %s: %lld bytes", v, p->op[x->from].name,
                           (long long)x->bytes);
        if (x->first > p->n_to || x->n_to > p->n_to - x->first)
            return CD_FAIL(err, EINVALID, "value %u of %s: readers %u to %u of %u", v,
                           p->op[x->from].name, x->first, x->first + x->n_to, p->n_to);
        for (uint32_t j = 0; j < x->n_to; j++) {
            const uint32_t to = p->to[x->first + j];
            if (to >= p->n_op)
                return CD_FAIL(err, EINVALID, "value %u of %s: read by operator %u of %u", v,
                               p->op[x->from].name, to, p->n_op);
            if (to == x->from)
                return CD_FAIL(err, EINVALID, "operator %u (%s) reads its own result: a cycle", to,
                               p->op[to].name);
        }
    }
    return CDMPP_OK;
}

/* ---- who reads what, once each ---- */

/* Pairs key -> item as lists by key; a pair that comes twice is one. In the order of the pairs. */
typedef struct {
    uint32_t key, item;
} pair;

/* A counting sort by key, then duplicates are removed in place: seen[item] is the last key (plus 1)
 * that had it. */
static cdmpp_status lists(cd_arena *a, const pair *e, size_t n, uint32_t n_key, uint32_t n_item,
                          uint32_t **first, uint32_t **item, cdmpp_err *err) {
    uint32_t *f = CD_NEWN(a, uint32_t, (size_t)n_key + 2), *raw = CD_NEWN(a, uint32_t, n + 1),
             *seen = CD_NEWN(a, uint32_t, (size_t)n_item + 1);
    if (!f || !raw || !seen) return CD_FAIL(err, ENOMEM, "%zu edges", n);
    for (size_t i = 0; i < n; i++) f[e[i].key + 2]++;
    for (uint32_t k = 0; k < n_key; k++) f[k + 2] += f[k + 1];
    for (size_t i = 0; i < n; i++) raw[f[e[i].key + 1]++] = e[i].item;
    uint32_t out = 0;
    for (uint32_t k = 0, from = 0; k < n_key; k++) {
        const uint32_t end = f[k + 1];
        f[k] = out;
        for (uint32_t j = from; j < end; j++)
            if (seen[raw[j]] != k + 1) seen[raw[j]] = k + 1, raw[out++] = raw[j];
        from = end;
    }
    f[n_key] = out;
    *first = f, *item = raw;
    return CDMPP_OK;
}

/* Bytes are summed by operator, because the replay sends all values of one operator to a device
 * together. Values without readers are never copied and count nothing. */
static cdmpp_status turn_around(cd_place_net *g, cdmpp_err *err) {
    const cd_place_problem *p = g->p;
    size_t n = 0, all = 0;
    for (uint32_t v = 0; v < p->n_value; v++) all += p->value[v].n_to;
    if (all >= UINT32_MAX / 2) return CD_FAIL(err, ERANGE, "%zu edges", all);
    pair *in = CD_NEWN(g->a, pair, all + 1), *out = CD_NEWN(g->a, pair, all + 1),
         *read = CD_NEWN(g->a, pair, all + 1);
    if (!in || !out || !read) return CD_FAIL(err, ENOMEM, "%zu edges", all);
    for (uint32_t v = 0; v < p->n_value; v++) {
        const cd_place_value *x = &p->value[v];
        for (uint32_t j = 0; j < x->n_to; j++, n++) {
            const uint32_t to = p->to[x->first + j];
            in[n] = (pair){to, x->from}, out[n] = (pair){x->from, to}, read[n] = (pair){v, to};
        }
        if (x->n_to && x->bytes > INT64_MAX - g->bytes[x->from])
            return CD_FAIL(err, ERANGE, "operator %u (%s): bytes of its values", x->from,
                           p->op[x->from].name);
        if (x->n_to) g->bytes[x->from] += x->bytes;
    }
    CD_TRY(lists(g->a, in, n, p->n_op, p->n_op, &g->first_in, &g->in, err));
    CD_TRY(lists(g->a, out, n, p->n_op, p->n_op, &g->first_out, &g->out, err));
    return lists(g->a, read, n, p->n_value, p->n_op, &g->first_reader, &g->reader, err);
}

static cdmpp_status sort(cd_place_net *g, uint32_t *left, cdmpp_err *err) {
    const uint32_t n = g->p->n_op;
    uint32_t end = 0;
    for (uint32_t k = 0; k < n; k++)
        if (!(left[k] = g->first_in[k + 1] - g->first_in[k])) g->order[end++] = k;
    for (uint32_t at = 0; at < end; at++) {
        const uint32_t k = g->order[at];
        g->pos[k] = at;
        for (uint32_t j = g->first_out[k]; j < g->first_out[k + 1]; j++)
            if (!--left[g->out[j]]) g->order[end++] = g->out[j];
    }
    if (end == n) return CDMPP_OK;
    uint32_t k = 0;
    while (!left[k]) k++;
    for (uint32_t i = 0; i < n; i++) { /* back along what is left: at last on the cycle itself */
        uint32_t j = g->first_in[k];
        while (!left[g->in[j]]) j++;
        k = g->in[j];
    }
    return CD_FAIL(err, EINVALID, "operator %u (%s) reads what comes after it: a cycle", k,
                   g->p->op[k].name);
}

/* A pair without a link keeps an infinite latency, which makes every copy over it infinite. Packing
 * and conversion are part of the rate. */
cdmpp_status cd_place_prepare(const cd_place_problem *p, cd_arena *a, cd_place_net *g,
                              cdmpp_err *err) {
    *g = (cd_place_net){.p = p, .a = a};
    CD_TRY(check_links(p, err));
    for (uint32_t k = 0; k < p->n_op; k++) CD_TRY(check_op(p, k, err));
    CD_TRY(check_values(p, err));
    for (uint32_t i = 0; i < CD_PLACE_MAX_DEVICE; i++)
        for (uint32_t j = 0; j < CD_PLACE_MAX_DEVICE; j++)
            g->latency[i][j] = (double)INFINITY, g->rate[i][j] = (double)INFINITY;
    for (uint32_t k = 0; k < p->n_link; k++) {
        const cd_place_link *l = &p->link[k];
        g->latency[l->from][l->to] = l->latency_s + l->convert_s;
        g->rate[l->from][l->to] =
            1 / ((l->packed > 0 ? l->packed : 1) / l->bytes_per_s + l->convert_s_per_byte);
    }
    uint32_t *left = CD_NEWN(a, uint32_t, (size_t)p->n_op + 1);
    g->order = CD_NEWN(a, uint32_t, (size_t)p->n_op + 1),
    g->pos = CD_NEWN(a, uint32_t, (size_t)p->n_op + 1);
    g->bytes = CD_NEWN(a, int64_t, (size_t)p->n_op + 1);
    if (!left || !g->order || !g->pos || !g->bytes)
        return CD_FAIL(err, ENOMEM, "%u operators", p->n_op);
    CD_TRY(turn_around(g, err));
    return sort(g, left, err);
}

/* ---- one placement ---- */

/* A value is copied once to each device that reads it: `had` are the devices that have it. */
double cd_place_sum(const cd_place_net *g, const uint32_t *where, cd_place_cost *out) {
    const cd_place_problem *p = g->p;
    cd_place_cost c = {0};
    for (uint32_t k = 0; k < p->n_op; k++) c.sum_s += cd_place_seconds(p, k, where[k]);
    for (uint32_t v = 0; v < p->n_value; v++) {
        const uint32_t a = where[p->value[v].from];
        uint32_t had = 1u << a;
        for (uint32_t j = g->first_reader[v]; j < g->first_reader[v + 1]; j++) {
            const uint32_t b = where[g->reader[j]];
            if (had >> b & 1) continue;
            had |= 1u << b;
            c.copies_s += cd_place_copy_s(g, p->value[v].bytes, a, b);
            c.bytes += p->value[v].bytes;
            c.n_copy++;
        }
    }
    c.sum_s += c.copies_s;
    if (out) *out = c;
    return c.sum_s;
}

/* An order without a value (0 bytes) still takes the latency of the link. CRITICAL: the longest
 * remaining chain first. */
static cdmpp_status replay_net(const cd_place_net *g, const uint32_t *where, cd_arena *a,
                               cd_replay_net *out, cdmpp_err *err) {
    const cd_place_problem *p = g->p;
    cd_replay_op *op = CD_NEWN(a, cd_replay_op, (size_t)p->n_op + 1);
    cd_replay_device *device = CD_NEWN(a, cd_replay_device, p->n_device);
    cd_replay_link *link = CD_NEWN(a, cd_replay_link, (size_t)p->n_link + 1);
    if (!op || !device || !link) return CD_FAIL(err, ENOMEM, "replay of %u operators", p->n_op);
    for (uint32_t k = 0; k < p->n_op; k++)
        op[k] = (cd_replay_op){.name = p->op[k].name,
                               .device = where[k],
                               .like = UINT32_MAX,
                               .seconds = cd_place_seconds(p, k, where[k]),
                               .bytes = g->bytes[k],
                               .first = g->first_in[k],
                               .n_after = g->first_in[k + 1] - g->first_in[k]};
    for (uint32_t d = 0; d < p->n_device; d++)
        device[d] = (cd_replay_device){.name = p->device[d].name,
                                       .workers = p->device[d].workers ? p->device[d].workers : 1,
                                       .policy = CD_REPLAY_CRITICAL};
    for (uint32_t k = 0; k < p->n_link; k++) {
        const uint32_t i = p->link[k].from, j = p->link[k].to;
        link[k] = (cd_replay_link){i, j, g->latency[i][j], g->rate[i][j]};
    }
    *out = (cd_replay_net){p->n_op, g->first_in[p->n_op], p->n_device, p->n_link, op, g->in, device,
                           link};
    return CDMPP_OK;
}

/* Effort is counted in replayed operators. A placement with an unsupported operator or a missing
 * link has an infinite sum and is not replayed. */
cdmpp_status cd_place_makespan(cd_place_net *g, const uint32_t *where, double *out, cd_replay *r,
                               cdmpp_err *err) {
    cd_replay own = {0}, *run = r ? r : &own;
    cd_arena a = {0};
    cd_replay_net n;
    *out = (double)INFINITY;
    if (r) *r = (cd_replay){0};
    g->looked += g->p->n_op;
    if (isinf(cd_place_sum(g, where, NULL))) return CDMPP_OK;
    cdmpp_status st = replay_net(g, where, &a, &n, err);
    if (!st) st = cd_replay_run(&n, run, err);
    if (!st) *out = run->makespan_s;
    cd_replay_free(&own);
    cd_arena_free(&a);
    return st;
}

cdmpp_status cd_place_evaluate(const cd_place_problem *p, const uint32_t *where, cd_place_cost *out,
                               cdmpp_err *err) {
    cd_arena own = {0};
    cd_place_net g;
    cdmpp_status st = cd_place_prepare(p, &own, &g, err);
    for (uint32_t k = 0; k < p->n_op && !st; k++)
        if (where[k] >= p->n_device)
            st = CD_FAIL(err, EINVALID, "operator %u (%s): device %u of %u", k, p->op[k].name,
                         where[k], p->n_device);
    if (!st) {
        cd_place_sum(&g, where, out);
        st = cd_place_makespan(&g, where, &out->makespan_s, NULL, err);
    }
    cd_arena_free(&own);
    return st;
}

/* The best placement that fits into the memories: each byte gets a price in seconds, which rises
 * until the solver's placement fits. Of small graphs every placement is tried too. */

enum { MOST_OPS = 24, DOUBLINGS = 40, HALVINGS = 8 };
/* replays are dear, and prices ask often */
static const uint64_t MOST_LOOKS = 2000000, PRICED_EFFORT = 20000;

typedef struct {
    const cd_place_limits *l;
    cd_place_net g;
    cd_place_goal goal;
    uint32_t *where, *best; /* (n_op) CD_PLACE_NONE: not placed */
    double *rest;           /* (n_op + 1) least seconds of all from there on */
    double best_s;
    uint64_t looks;
} within;

/* Does an operator that is placed in this memory make or read the value? */
static bool is_held(const within *w, const cd_place_value *v, uint32_t memory) {
    const uint32_t *to = w->g.p->to + v->first, at = w->where[v->from];
    bool held = at != CD_PLACE_NONE && w->l->memory[at] == memory;
    for (uint32_t i = 0; i < v->n_to && !held; i++)
        held = w->where[to[i]] != CD_PLACE_NONE && w->l->memory[w->where[to[i]]] == memory;
    return held;
}

static bool is_read(const within *w, const cd_place_shared *s, uint32_t memory) {
    for (uint32_t i = 0; i < s->n_op; i++)
        if (w->where[s->op[i]] != CD_PLACE_NONE && w->l->memory[w->where[s->op[i]]] == memory)
            return true;
    return false;
}

static double held(const within *w, uint32_t memory) {
    const cd_place_problem *p = w->g.p;
    double n = 0;
    for (uint32_t k = 0; k < p->n_op; k++)
        if (w->where[k] != CD_PLACE_NONE && w->l->memory[w->where[k]] == memory)
            n += w->l->weights[k];
    for (uint32_t s = 0; s < w->l->n_shared; s++)
        n += is_read(w, &w->l->shared[s], memory) ? w->l->shared[s].bytes : 0;
    for (uint32_t v = 0; v < p->n_value; v++)
        n += is_held(w, &p->value[v], memory) ? (double)p->value[v].bytes : 0;
    return n;
}

/* The fullest memory of those over their limit, what is there; CD_PLACE_NONE: all fit. */
static uint32_t over(const within *w, double *bytes) {
    uint32_t worst = CD_PLACE_NONE;
    double most = 1;
    for (uint32_t m = 0; m < w->l->n_memory; m++) {
        const double n = w->l->bytes[m] > 0 ? held(w, m) : 0;
        if (!(n > most * w->l->bytes[m]) || !(w->l->bytes[m] > 0)) continue;
        most = n / w->l->bytes[m], worst = m;
        if (bytes) *bytes = n;
    }
    return worst;
}

static cdmpp_status cost_of(within *w, double *out, cdmpp_err *err) {
    if (w->goal == CD_PLACE_MAKESPAN) return cd_place_makespan(&w->g, w->where, out, NULL, err);
    *out = cd_place_sum(&w->g, w->where, NULL);
    return CDMPP_OK;
}

static cdmpp_status offer(within *w, cdmpp_err *err) {
    double cost;
    CD_TRY(cost_of(w, &cost, err));
    if (!(cost < w->best_s)) return CDMPP_OK;
    w->best_s = cost;
    memcpy(w->best, w->where, w->g.p->n_op * sizeof *w->best);
    return CDMPP_OK;
}

/* ---- prices ---- */

static void put_prices(const within *w, const double *full_price, double scale, double *seconds) {
    double price[CD_PLACE_MAX_DEVICE]; /* of each device's memory */
    const cd_place_problem *p = w->g.p;
    const uint32_t D = p->n_device;
    for (uint32_t d = 0; d < D; d++) price[d] = scale * full_price[w->l->memory[d]];
    for (uint32_t k = 0; k < p->n_op; k++)
        for (uint32_t d = 0; d < D; d++)
            seconds[(size_t)k * D + d] =
                p->seconds[(size_t)k * D + d] + price[d] * w->l->weights[k];
    /* as dear for each reader as if it were alone: a guide, as for values */
    for (uint32_t s = 0; s < w->l->n_shared; s++)
        for (uint32_t i = 0; i < w->l->shared[s].n_op; i++)
            for (uint32_t d = 0; d < D; d++)
                seconds[(size_t)w->l->shared[s].op[i] * D + d] += price[d] * w->l->shared[s].bytes;
    for (uint32_t v = 0; v < p->n_value; v++)
        for (uint32_t d = 0; d < D; d++) {
            const double s = price[d] * (double)p->value[v].bytes;
            seconds[(size_t)p->value[v].from * D + d] += s;
            for (uint32_t i = 0; i < p->value[v].n_to; i++)
                seconds[(size_t)p->to[p->value[v].first + i] * D + d] += s;
        }
}

typedef struct {
    cd_place_problem dear;   /* with prices */
    double *price, *seconds; /* (n_memory), (n_op, n_device) */
    uint32_t full;           /* memory that the last placement is over; CD_PLACE_NONE: it fits */
    double bytes;            /* of the last that did not */
} prices;

static cdmpp_status priced(within *w, prices *x, double scale, cdmpp_err *err) {
    cd_place_plan r;
    put_prices(w, x->price, scale, x->seconds);
    const cdmpp_status st = cd_place_solve(
        &x->dear, w->goal, w->goal == CD_PLACE_MAKESPAN ? PRICED_EFFORT : 0, &r, err);
    if (!st) memcpy(w->where, r.where, w->g.p->n_op * sizeof *w->where);
    cd_place_plan_free(&r);
    CD_TRY(st);
    x->full = over(w, &x->bytes);
    return x->full == CD_PLACE_NONE ? offer(w, err) : CDMPP_OK;
}

/* Twice as dear each time for the memory that is fullest, until all fit; then as little as it
 * takes. */
static cdmpp_status raise_prices(within *w, double cost, prices *x, cdmpp_err *err) {
    const cd_place_problem *p = w->g.p;
    double lo = 0.25, hi = 1;
    x->price = CD_NEWN(w->g.a, double, (size_t)w->l->n_memory + 1),
    x->seconds = CD_NEWN(w->g.a, double, (size_t)p->n_op * p->n_device + 1);
    if (!x->price || !x->seconds) return CD_FAIL(err, ENOMEM, "%u operators", p->n_op);
    x->dear = *p;
    x->dear.seconds = x->seconds;
    for (int k = 0; k < DOUBLINGS && x->full != CD_PLACE_NONE; k++) {
        double *v = &x->price[x->full];
        *v = *v > 0 ? 2 * *v : 1e-3 * (cost > 0 ? cost : 1e-9) / w->l->bytes[x->full];
        CD_TRY(priced(w, x, 1, err));
    }
    for (int k = 0; k < HALVINGS && isfinite(w->best_s); k++) {
        const double mid = 0.5 * (lo + hi);
        CD_TRY(priced(w, x, mid, err));
        *(x->full == CD_PLACE_NONE ? &hi : &lo) = mid;
    }
    return CDMPP_OK;
}

/* ---- every placement ---- */

/* A lower bound. Sum: what is placed and the least of the rest. Makespan: the seconds of the
 * fullest device over its workers. */
static double bound(const within *w, uint32_t n, double sum) {
    const cd_place_problem *p = w->g.p;
    if (w->goal == CD_PLACE_SUM) return (sum + w->rest[n]) * (1 - 1e-12);
    double load[CD_PLACE_MAX_DEVICE] = {0}, most = 0;
    for (uint32_t i = 0; i < n; i++)
        load[w->where[w->g.order[i]]] +=
            cd_place_seconds(p, w->g.order[i], w->where[w->g.order[i]]);
    for (uint32_t d = 0; d < p->n_device; d++)
        most = fmax(most, load[d] / (p->device[d].workers ? p->device[d].workers : 1));
    return most * (1 - 1e-12);
}

static cdmpp_status step(within *w, uint32_t n, double sum, cdmpp_err *err) {
    const cd_place_problem *p = w->g.p;
    if (n == p->n_op) return offer(w, err);
    const uint32_t k = w->g.order[n];
    for (uint32_t d = 0; d < p->n_device && w->looks < MOST_LOOKS; d++) {
        const double s = cd_place_seconds(p, k, d);
        w->looks++;
        w->where[k] = d;
        if (isfinite(s) && bound(w, n + 1, sum + s) < w->best_s && over(w, NULL) == CD_PLACE_NONE)
            CD_TRY(step(w, n + 1, sum + s, err));
        w->where[k] = CD_PLACE_NONE;
    }
    return CDMPP_OK;
}

/* Depth first in the topological order. *all becomes true only if the search ended before
 * MOST_LOOKS, that is if the best one is exact. */
static cdmpp_status every_placement(within *w, bool *all, cdmpp_err *err) {
    const cd_place_problem *p = w->g.p;
    if (p->n_op > MOST_OPS) return CDMPP_OK;
    if (!(w->rest = CD_NEWN(w->g.a, double, (size_t)p->n_op + 1)))
        return CD_FAIL(err, ENOMEM, "%u operators", p->n_op);
    w->rest[p->n_op] = 0;
    for (uint32_t i = p->n_op; i-- > 0;) {
        double least = (double)INFINITY;
        for (uint32_t d = 0; d < p->n_device; d++)
            least = fmin(least, cd_place_seconds(p, w->g.order[i], d));
        w->rest[i] = w->rest[i + 1] + least;
        w->where[w->g.order[i]] = CD_PLACE_NONE;
    }
    CD_TRY(step(w, 0, 0, err));
    *all = w->looks < MOST_LOOKS;
    return CDMPP_OK;
}

/* ---- the best that fits ---- */

static cdmpp_status check(const cd_place_problem *p, const cd_place_limits *l, cdmpp_err *err) {
    for (uint32_t d = 0; d < p->n_device; d++)
        if (l->memory[d] >= l->n_memory)
            return CD_FAIL(err, EINVALID, "device %s has memory %u of %u", p->device[d].name,
                           l->memory[d], l->n_memory);
    for (uint32_t m = 0; m < l->n_memory; m++)
        if (!(l->bytes[m] >= 0 && isfinite(l->bytes[m])))
            return CD_FAIL(err, ERANGE, "memory %u has %g bytes", m, l->bytes[m]);
    for (uint32_t k = 0; k < p->n_op; k++)
        if (!(l->weights[k] >= 0 && isfinite(l->weights[k])))
            return CD_FAIL(err, ERANGE, "operator %s has %g bytes of weights", p->op[k].name,
                           l->weights[k]);
    for (uint32_t s = 0; s < l->n_shared; s++) {
        if (!(l->shared[s].bytes >= 0 && isfinite(l->shared[s].bytes)))
            return CD_FAIL(err, ERANGE, "a weight of %u operators has %g bytes", l->shared[s].n_op,
                           l->shared[s].bytes);
        for (uint32_t i = 0; i < l->shared[s].n_op; i++)
            if (l->shared[s].op[i] >= p->n_op)
                return CD_FAIL(err, EINVALID, "a weight is read by operator %u of %u",
                               l->shared[s].op[i], p->n_op);
    }
    return CDMPP_OK;
}

/* Prices come first: what they find prunes the complete search. The bound of the solution without
 * limits stays valid, because limits only remove placements. */
static cdmpp_status fit(within *w, prices *x, cd_place_plan *out, cdmpp_err *err) {
    const cd_place_problem *p = w->g.p;
    const double free_s = w->goal == CD_PLACE_SUM ? out->cost.sum_s : out->cost.makespan_s;
    bool all = false;
    uint32_t who = 0;
    CD_TRY(raise_prices(w, free_s, x, err));
    CD_TRY(every_placement(w, &all, err));
    if (!isfinite(w->best_s)) {
        while (x->full != CD_PLACE_NONE && w->l->memory[who] != x->full) who++;
        return CD_FAIL(err, EINVALID,
                       "no placement fits%s: %.6g GB would be in the memory of %s, which has %.6g",
                       all ? "" : " that was found", x->bytes * 1e-9, p->device[who].name,
                       x->full == CD_PLACE_NONE ? 0 : w->l->bytes[x->full] * 1e-9);
    }
    memcpy(out->where, w->best, p->n_op * sizeof *out->where);
    cd_place_sum(&w->g, out->where, &out->cost);
    CD_TRY(cd_place_makespan(&w->g, out->where, &out->cost.makespan_s, NULL, err));
    out->exact = all, out->method = all ? "every placement that fits" : "prices on bytes";
    if (all) out->bound_s = w->best_s;
    out->n_look += w->looks;
    return CDMPP_OK;
}

/* The placement without limits is tried first: if it fits, no other one is better. */
cdmpp_status cd_place_solve_within(const cd_place_problem *p, cd_place_goal goal, uint64_t effort,
                                   const cd_place_limits *l, cd_place_plan *out, cdmpp_err *err) {
    cd_arena own = {0};
    prices x = {.full = CD_PLACE_NONE};
    CD_TRY(cd_place_solve(p, goal, effort, out, err));
    within w = {.l = l,
                .goal = goal,
                .best_s = (double)INFINITY,
                .where = CD_NEWN(&own, uint32_t, (size_t)p->n_op + 1),
                .best = CD_NEWN(&own, uint32_t, (size_t)p->n_op + 1)};
    cdmpp_status st = check(p, l, err);
    if (!st && (!w.where || !w.best)) st = CD_FAIL(err, ENOMEM, "%u operators", p->n_op);
    if (!st) st = cd_place_prepare(p, &own, &w.g, err);
    if (!st) {
        memcpy(w.where, out->where, p->n_op * sizeof *w.where);
        x.full = over(&w, &x.bytes);
        if (x.full != CD_PLACE_NONE) st = fit(&w, &x, out, err);
    }
    cd_arena_free(&own);
    return st;
}

/* Regions of a placement: neighbours of one device are joined while no path leaves a region and
 * comes back. Then what each region costs on its device and would cost on another one, as the
 * reason for its place. */

typedef struct {
    const cd_place_net *g;
    const uint32_t *where;
    uint32_t *head, *next, *last; /* members of the region that operator k leads, a list */
    uint32_t *of;                 /* (n_op) leader */
    uint32_t *seen, *stack, stamp;
} merger;

void cd_place_regions_free(cd_place_regions *r) {
    cd_arena_free(&r->arena);
    *r = (cd_place_regions){0};
}

/* All that region `at` reads from goes on the stack but `skip`; true when `goal` is among them. */
static bool push_before(merger *m, uint32_t at, uint32_t goal, uint32_t skip, uint32_t *n) {
    for (uint32_t k = m->head[at]; k != CD_PLACE_NONE; k = m->next[k])
        for (uint32_t j = m->g->first_in[k]; j < m->g->first_in[k + 1]; j++) {
            const uint32_t x = m->of[m->g->in[j]];
            if (x == skip || x == at || m->seen[x] == m->stamp) continue;
            if (x == goal) return true;
            m->seen[x] = m->stamp;
            /* its first member may be early, its last one late: the order of operators prunes
             * nothing */
            m->stack[(*n)++] = x;
        }
    return false;
}

/* Is there a path from region a to region b that leads through a third one? */
static bool around(merger *m, uint32_t a, uint32_t b) {
    uint32_t n = 0;
    m->stamp++;
    push_before(m, b, a, a, &n);
    while (n)
        if (push_before(m, m->stack[--n], a, CD_PLACE_NONE, &n)) return true;
    return false;
}

static void join(merger *m, uint32_t a, uint32_t b) {
    for (uint32_t k = m->head[b]; k != CD_PLACE_NONE; k = m->next[k]) m->of[k] = a;
    m->next[m->last[a]] = m->head[b];
    m->last[a] = m->last[b];
}

static cdmpp_status merge_all(merger *m, cd_arena *a, cdmpp_err *err) {
    const cd_place_net *g = m->g;
    const size_t n = (size_t)g->p->n_op + 1;
    uint32_t **part[] = {&m->head, &m->next, &m->last, &m->of, &m->seen, &m->stack};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (!(*part[i] = CD_NEWN(a, uint32_t, n)))
            return CD_FAIL(err, ENOMEM, "%u operators", g->p->n_op);
    for (uint32_t k = 0; k < g->p->n_op; k++)
        m->head[k] = m->last[k] = m->of[k] = k, m->next[k] = CD_PLACE_NONE;
    /* One pass is enough: a path that forbids a join leads over another device, and operators of
     * that device never join either region. */
    for (uint32_t i = 0; i < g->p->n_op; i++)
        for (uint32_t k = g->order[i], j = g->first_in[k]; j < g->first_in[k + 1]; j++) {
            const uint32_t x = m->of[g->in[j]], y = m->of[k];
            if (x != y && m->where[x] == m->where[y] && !around(m, x, y)) join(m, x, y);
        }
    return CDMPP_OK;
}

/* ---- numbered, each behind those that it reads from ---- */

static cdmpp_status count(merger *m, cd_place_regions *out, uint32_t **left, cdmpp_err *err) {
    const uint32_t n = m->g->p->n_op;
    for (uint32_t k = 0; k < n; k++) out->n_region += m->of[k] == k;
    out->region = CD_NEWN(&out->arena, cd_place_region, (size_t)out->n_region + 1);
    out->member = CD_NEWN(&out->arena, uint32_t, (size_t)n + 1);
    out->of = CD_NEWN(&out->arena, uint32_t, (size_t)n + 1);
    *left = CD_NEWN(m->g->a, uint32_t, (size_t)n + 1);
    if (!out->region || !out->member || !out->of || !*left)
        return CD_FAIL(err, ENOMEM, "%u regions", out->n_region);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = m->g->first_in[k]; j < m->g->first_in[k + 1]; j++)
            (*left)[m->of[k]] += m->of[m->g->in[j]] != m->of[k];
    return CDMPP_OK;
}

/* Members by their place in the order. */
static void fill(merger *m, cd_place_regions *out, uint32_t leader, uint32_t id, uint32_t *at) {
    const uint32_t first = *at;
    for (uint32_t k = m->head[leader]; k != CD_PLACE_NONE; k = m->next[k])
        out->member[(*at)++] = m->g->pos[k], out->of[k] = id;
    qsort(out->member + first, *at - first, sizeof *out->member, cd_sort_by_u32);
    for (uint32_t i = first; i < *at; i++) out->member[i] = m->g->order[out->member[i]];
    out->region[id] = (cd_place_region){
        .device = m->where[leader], .first = first, .n_op = *at - first, .other = CD_PLACE_FREE};
}

static cdmpp_status number(merger *m, cd_place_regions *out, cdmpp_err *err) {
    uint32_t *left, n_stack = 0, id = 0, at = 0;
    CD_TRY(count(m, out, &left, err));
    for (uint32_t i = m->g->p->n_op; i-- > 0;) /* the first of the order on top */
        if (m->of[m->g->order[i]] == m->g->order[i] && !left[m->g->order[i]])
            m->stack[n_stack++] = m->g->order[i];
    while (n_stack) {
        const uint32_t leader = m->stack[--n_stack];
        fill(m, out, leader, id++, &at);
        for (uint32_t k = m->head[leader]; k != CD_PLACE_NONE; k = m->next[k])
            for (uint32_t j = m->g->first_out[k]; j < m->g->first_out[k + 1]; j++) {
                const uint32_t x = m->of[m->g->out[j]];
                if (x != leader && !--left[x]) m->stack[n_stack++] = x;
            }
    }
    return CDMPP_OK;
}

/* ---- costs: as it is, and all of it elsewhere ---- */

static double copies_at(const cd_place_net *g, const uint32_t *where, uint32_t v) {
    const uint32_t a = where[g->p->value[v].from];
    uint32_t had = 1u << a;
    double sum = 0;
    for (uint32_t j = g->first_reader[v]; j < g->first_reader[v + 1]; j++) {
        const uint32_t b = where[g->reader[j]];
        if (had >> b & 1) continue;
        had |= 1u << b;
        sum += cd_place_copy_s(g, g->p->value[v].bytes, a, b);
    }
    return sum;
}

/* Values that touch region id: of[first[id] .. first[id + 1]). */
static cdmpp_status touching(const cd_place_net *g, const cd_place_regions *r, uint32_t **first,
                             uint32_t **value, cdmpp_err *err) {
    const cd_place_problem *p = g->p;
    const size_t all = (size_t)p->n_value + g->first_reader[p->n_value];
    uint32_t *f = CD_NEWN(g->a, uint32_t, (size_t)r->n_region + 3),
             *of = CD_NEWN(g->a, uint32_t, all + 1),
             *seen = CD_NEWN(g->a, uint32_t, (size_t)r->n_region + 1);
    if (!f || !of || !seen) return CD_FAIL(err, ENOMEM, "%u regions", r->n_region);
    for (int fill_now = 0; fill_now < 2; fill_now++) {
        for (uint32_t v = 0; v < p->n_value; v++)
            for (uint32_t j = g->first_reader[v]; j <= g->first_reader[v + 1]; j++) {
                const uint32_t
                    id = r->of[j < g->first_reader[v + 1] ? g->reader[j] : p->value[v].from],
                    mark = 2 * v + 1 + (uint32_t)fill_now;
                if (seen[id] == mark) continue;
                seen[id] = mark;
                if (fill_now) of[f[id + 1]++] = v;
                else f[id + 2]++;
            }
        for (uint32_t k = 0; k < r->n_region && !fill_now; k++) f[k + 2] += f[k + 1];
    }
    *first = f, *value = of;
    return CDMPP_OK;
}

/* The whole region is put on each device in turn, all else held. Only values that touch it can
 * change their copies. `where` is restored at the end. */
static void cost_region(const cd_place_net *g, cd_place_regions *r, uint32_t id,
                        const uint32_t *value, uint32_t n, uint32_t *where) {
    cd_place_region *q = &r->region[id];
    double best = (double)INFINITY;
    const uint32_t home = q->device;
    for (uint32_t d = 0; d < g->p->n_device; d++) {
        double seconds = 0, copies = 0;
        for (uint32_t i = 0; i < q->n_op; i++) {
            where[r->member[q->first + i]] = d;
            seconds += cd_place_seconds(g->p, r->member[q->first + i], d);
        }
        for (uint32_t i = 0; i < n; i++) copies += copies_at(g, where, value[i]);
        if (d == home) q->seconds = seconds, q->copies_s = copies;
        else if (seconds + copies < best)
            best = seconds + copies, q->other = d, q->other_seconds = seconds,
            q->other_copies_s = copies;
    }
    for (uint32_t i = 0; i < q->n_op; i++) where[r->member[q->first + i]] = home;
}

static cdmpp_status cost_all(const cd_place_net *g, const uint32_t *where, cd_place_regions *r,
                             cdmpp_err *err) {
    uint32_t *first, *value, *own = CD_NEWN(g->a, uint32_t, (size_t)g->p->n_op + 1);
    if (!own) return CD_FAIL(err, ENOMEM, "%u operators", g->p->n_op);
    memcpy(own, where, g->p->n_op * sizeof *own);
    CD_TRY(touching(g, r, &first, &value, err));
    for (uint32_t id = 0; id < r->n_region; id++)
        cost_region(g, r, id, &value[first[id]], first[id + 1] - first[id], own);
    return CDMPP_OK;
}

cdmpp_status cd_place_merge_regions(const cd_place_problem *p, const uint32_t *where,
                                    cd_place_regions *out, cdmpp_err *err) {
    cd_arena own = {0};
    cd_place_net g;
    merger m = {.g = &g, .where = where};
    *out = (cd_place_regions){0};
    cdmpp_status st = cd_place_prepare(p, &own, &g, err);
    for (uint32_t k = 0; k < p->n_op && !st; k++)
        if (where[k] >= p->n_device)
            st = CD_FAIL(err, EINVALID, "operator %u (%s): device %u of %u", k, p->op[k].name,
                         where[k], p->n_device);
    if (!st) st = merge_all(&m, &own, err);
    if (!st) st = number(&m, out, err);
    if (!st) st = cost_all(&g, where, out, err);
    cd_arena_free(&own);
    return st;
}
