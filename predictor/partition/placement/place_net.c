/* Checks a placement problem and prepares it: a topological order, lists of who reads what, costs
 * of copies. Then what one placement costs: the sum directly, the makespan by a replay. */

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
