/* One replay, and an interval for its latency: operators get random times with their spread, and
 * the network is replayed some hundred times. Errors of operators are partly common (`shared`), so
 * that they do not average out over a large network. */
#include "predictor/replay/replay.h"

#include <math.h>
#include <string.h>

#include "learner/inputs/inputs.h"
#include "predictor/replay/replay_internal.h"

/* A network checked and turned around: who comes after whom. */

static bool is_time(double s) { return s >= 0 && isfinite(s); }

/* What is added up in a replay stays finite, also where durations are drawn many times as long;
 * bytes of all results, each on every device, can be counted. */
static const double LONGEST_S = 1e100;
/* Sums that the simulation forms must stay finite, and bytes below 2^63: checked here, so that it
 * need not check at every step. */
static cdmpp_status check_sums(const cd_replay_net *n, cdmpp_err *err) {
    double s = 0;
    int64_t bytes = 0, all;
    for (uint32_t k = 0; k < n->n_op; k++) {
        const cd_replay_device *d = &n->device[n->op[k].device];
        s += n->op[k].seconds + d->gap_s + cd_replay_runs(&n->op[k]) * d->issue_s;
        if (!(s <= LONGEST_S))
            return CD_FAIL(err, ERANGE, "more than %g s up to operator %u (%s)", LONGEST_S, k,
                           n->op[k].name);
        if (__builtin_add_overflow(bytes, n->op[k].bytes, &bytes) ||
            __builtin_mul_overflow(bytes, (int64_t)n->n_device, &all))
            return CD_FAIL(err, ERANGE, "results of more than 2^63 bytes up to operator %u (%s)", k,
                           n->op[k].name);
    }
    for (uint32_t k = 0; k < n->n_link; k++)
        if (!(n->link[k].latency_s + (double)bytes / n->link[k].bytes_per_s <= LONGEST_S))
            return CD_FAIL(err, ERANGE, "link %u: %g s, %g bytes/s for %lld bytes", k,
                           n->link[k].latency_s, n->link[k].bytes_per_s, (long long)bytes);
    return CDMPP_OK;
}

/* Numbers and edges of each operator; *n_edge: all edges. */
static cdmpp_status check_ops(const cd_replay_net *n, size_t *n_edge, cdmpp_err *err) {
    *n_edge = 0;
    for (uint32_t k = 0; k < n->n_op; k++) {
        const cd_replay_op *o = &n->op[k];
        if (!is_time(o->seconds) || !is_time(o->spread) || !(o->shared >= 0 && o->shared <= 1) ||
            !is_time(o->runs) || !(o->memory_share >= 0 && o->memory_share <= 1) || o->bytes < 0)
            return CD_FAIL(err, ERANGE,
                           "operator %u (%s): %g s, spread %g, memory share %g, %lld bytes", k,
                           o->name, o->seconds, o->spread, o->memory_share, (long long)o->bytes);
        if (o->device >= n->n_device)
            return CD_FAIL(err, EINVALID, "operator %u (%s): device %u of %u", k, o->name,
                           o->device, n->n_device);
        if (o->first > n->n_after || o->n_after > n->n_after - o->first)
            return CD_FAIL(err, EINVALID, "operator %u (%s): edges %u to %u of %u", k, o->name,
                           o->first, o->first + o->n_after, n->n_after);
        for (uint32_t j = 0; j < o->n_after; j++)
            if (n->after[o->first + j] >= n->n_op)
                return CD_FAIL(err, EINVALID, "operator %u (%s) comes after %u of %u", k, o->name,
                               n->after[o->first + j], n->n_op);
        *n_edge += o->n_after;
    }
    if (*n_edge >= UINT32_MAX) return CD_FAIL(err, ERANGE, "%zu edges", *n_edge);
    return CDMPP_OK;
}

static cdmpp_status check_devices(const cd_replay_net *n, cdmpp_err *err) {
    if (n->n_device > CD_REPLAY_MAX_DEVICE)
        return CD_FAIL(err, ERANGE, "%u devices, at most %d", n->n_device, CD_REPLAY_MAX_DEVICE);
    for (uint32_t d = 0; d < n->n_device; d++) {
        const cd_replay_device *v = &n->device[d];
        if (v->workers < 1 || v->workers > CD_REPLAY_MAX_WORKER || !is_time(v->gap_s) ||
            !is_time(v->issue_s) || v->memory < 0)
            return CD_FAIL(err, ERANGE, "device %u (%s): %u workers, gap %g s, issue %g s", d,
                           v->name, v->workers, v->gap_s, v->issue_s);
    }
    for (uint32_t k = 0; k < n->n_link; k++) {
        const cd_replay_link *l = &n->link[k];
        if (l->from >= n->n_device || l->to >= n->n_device)
            return CD_FAIL(err, EINVALID, "link %u: devices %u to %u", k, l->from, l->to);
        if (!is_time(l->latency_s) || !(l->bytes_per_s > 0))
            return CD_FAIL(err, ERANGE, "link %u: %g s, %g bytes/s", k, l->latency_s,
                           l->bytes_per_s);
    }
    return CDMPP_OK;
}

/* Edges into an operator become edges out of it: a counting sort by the operator that they come
 * from. */
static void turn_around(const cd_replay_net *n, cd_replay_sim *p) {
    for (uint32_t e = 0; e < n->n_op; e++)
        for (uint32_t j = 0; j < n->op[e].n_after; j++)
            p->first[n->after[n->op[e].first + j] + 1]++;
    for (uint32_t k = 0; k < n->n_op; k++) p->first[k + 1] += p->first[k];
    /* from the end: first[k+1] walks down to where k's begin */
    for (uint32_t e = n->n_op; e-- > 0;)
        for (uint32_t j = 0; j < n->op[e].n_after; j++)
            p->to[--p->first[n->after[n->op[e].first + j] + 1]] = e;
    memmove(p->first, p->first + 1, n->n_op * sizeof *p->first);
    uint32_t all = 0;
    for (uint32_t e = 0; e < n->n_op; e++) all += n->op[e].n_after;
    p->first[n->n_op] = all;
}

/* Every operator behind those that it comes after. */
static cdmpp_status sort(const cd_replay_net *n, cd_replay_sim *p, uint32_t *left, cdmpp_err *err) {
    uint32_t end = 0;
    for (uint32_t k = 0; k < n->n_op; k++)
        if (!(left[k] = n->op[k].n_after)) p->order[end++] = k;
    for (uint32_t at = 0; at < end; at++)
        for (uint32_t j = p->first[p->order[at]]; j < p->first[p->order[at] + 1]; j++)
            if (!--left[p->to[j]]) p->order[end++] = p->to[j];
    for (uint32_t k = 0; k < n->n_op && end < n->n_op; k++)
        if (left[k])
            return CD_FAIL(err, EINVALID,
                           "operator %u (%s) comes after itself: a cycle, or behind one", k,
                           n->op[k].name);
    return CDMPP_OK;
}

static cdmpp_status check_links(const cd_replay_sim *p, cdmpp_err *err) {
    const cd_replay_net *n = p->n;
    for (uint32_t k = 0; k < n->n_op; k++)
        for (uint32_t j = p->first[k]; j < p->first[k + 1]; j++) {
            const uint32_t from = n->op[k].device, to = n->op[p->to[j]].device;
            if (from != to && p->link[(size_t)from * n->n_device + to] == CD_REPLAY_NONE)
                return CD_FAIL(
                    err, EINVALID,
                    "operator %u (%s) comes after %u on another device: no link from %s to %s",
                    p->to[j], n->op[p->to[j]].name, k, n->device[from].name, n->device[to].name);
        }
    return CDMPP_OK;
}

/* Into the arena. Errors: those of cd_replay_run.
 *
 * The first link of a pair of devices counts. */
static cdmpp_status replay_prepare(const cd_replay_net *n, cd_arena *a, cd_replay_sim *out,
                                   cdmpp_err *err) {
    size_t n_edge;
    CD_TRY(check_ops(n, &n_edge, err));
    CD_TRY(check_devices(n, err));
    CD_TRY(check_sums(n, err));
    const size_t pairs = (size_t)n->n_device * n->n_device;
    uint32_t *left = CD_NEWN(a, uint32_t, (size_t)n->n_op + 1);
    *out = (cd_replay_sim){.n = n,
                           .first = CD_NEWN(a, uint32_t, (size_t)n->n_op + 2),
                           .to = CD_NEWN(a, uint32_t, n_edge + 1),
                           .order = CD_NEWN(a, uint32_t, (size_t)n->n_op + 1),
                           .link = CD_NEWN(a, uint32_t, pairs + 1),
                           .tail = CD_NEWN(a, double, (size_t)n->n_op + 1)};
    if (!left || !out->first || !out->to || !out->order || !out->link || !out->tail)
        return CD_FAIL(err, ENOMEM, "network");
    memset(out->link, 0xff, pairs * sizeof *out->link);
    for (uint32_t k = n->n_link; k-- > 0;)
        out->link[(size_t)n->link[k].from * n->n_device + n->link[k].to] = k;
    turn_around(n, out);
    CD_TRY(sort(n, out, left, err));
    return check_links(out, err);
}

static double replay_copy_s(const cd_replay_sim *p, uint32_t op, uint32_t link) {
    const cd_replay_link *l = &p->n->link[link];
    return l->latency_s + (double)p->n->op[op].bytes / l->bytes_per_s;
}

/* seconds (n_op) of each operator, gaps left out. Fills tail; returns the longest chain with
 * copies. */
static double replay_chains(cd_replay_sim *p, const double *seconds, double *end) {
    const cd_replay_net *n = p->n;
    double longest = 0;
    for (uint32_t i = n->n_op; i-- > 0;) {
        const uint32_t k = p->order[i];
        double behind = 0;
        for (uint32_t j = p->first[k]; j < p->first[k + 1]; j++)
            behind = fmax(behind, p->tail[p->to[j]]);
        p->tail[k] = seconds[k] + n->device[n->op[k].device].gap_s + behind;
    }
    for (uint32_t i = 0; i < n->n_op; i++) {
        const uint32_t k = p->order[i];
        const cd_replay_op *o = &n->op[k];
        double start = n->device[o->device].issue_s;
        for (uint32_t j = 0; j < o->n_after; j++) {
            const uint32_t from = n->after[o->first + j], d = n->op[from].device;
            const double copy =
                d == o->device
                    ? 0
                    : replay_copy_s(p, from, p->link[(size_t)d * n->n_device + o->device]);
            start = fmax(start, end[from] + copy);
        }
        const double alone = seconds[k] + n->device[o->device].gap_s, runs = cd_replay_runs(o);
        end[k] = start + alone;
        /* the last one's turn */
        if (runs > 1) end[k] = fmax(end[k], runs * n->device[o->device].issue_s + alone / runs);
        longest = fmax(longest, end[k]);
    }
    return longest;
}

/* Events in time. At each time first all that ends, then all that can start.
 *
 *   events  (heap by time)   device d finishes something · copy c ends · operator k is issued
 *   ready   (heap a device)  operators that could run, by the device's policy
 *   on      (list a device)  what runs, each with the time that is left to it alone */

enum { FINISH, COPIED, ISSUED };

typedef struct event {
    double t;
    uint32_t kind, id, version; /* version: of the device; an older one is void */
} event;

typedef struct running {
    uint32_t op, worker;
    double since, left, stretch, end; /* left: alone, at `since` */
} running;

typedef struct device {
    uint32_t *ready, n_ready;     /* heap */
    uint32_t *mine, n_mine, next; /* its operators by number; the next one to start, for a stream */
    running *on;                  /* (workers) */
    uint32_t n_on, version;
    uint32_t *last; /* (workers) the last operator of each */
    bool *taken;    /* (workers) */
    bool touched;
} device;

typedef struct sim {
    const cd_replay_sim *p;
    const double *seconds;
    cd_replay *out;
    uint32_t *left; /* (n_op) what each waits for */
    double *issued; /* (n_op) when its last run is handed out; 0: no host in the way */
    event *heap;
    size_t n_event;
    device *dev; /* (n_device) */
    uint32_t *touched, n_touched;
    double *link_free; /* (n_link) */
    uint32_t *mark;    /* (n_device) operator whose copy went there last */
} sim;

/* ---- heap of events ---- */

static bool earlier(const event *a, const event *b) {
    if (a->t != b->t) return a->t < b->t;
    return a->kind != b->kind ? a->kind < b->kind : a->id < b->id;
}

static void push(sim *s, event e) {
    size_t k = s->n_event++;
    for (; k && earlier(&e, &s->heap[(k - 1) / 2]); k = (k - 1) / 2)
        s->heap[k] = s->heap[(k - 1) / 2];
    s->heap[k] = e;
}

static event pop(sim *s) {
    const event top = s->heap[0], e = s->heap[--s->n_event];
    size_t k = 0, c;
    for (; (c = 2 * k + 1) < s->n_event; k = c) {
        if (c + 1 < s->n_event && earlier(&s->heap[c + 1], &s->heap[c])) c++;
        if (!earlier(&s->heap[c], &e)) break;
        s->heap[k] = s->heap[c];
    }
    if (s->n_event) s->heap[k] = e;
    return top;
}

/* ---- ready operators of a device ---- */

static bool sooner(const sim *s, cd_replay_policy policy, uint32_t a, uint32_t b) {
    if (policy == CD_REPLAY_CRITICAL && s->p->tail[a] != s->p->tail[b])
        return s->p->tail[a] > s->p->tail[b];
    return a < b;
}

static void add_ready(sim *s, device *d, cd_replay_policy policy, uint32_t op) {
    uint32_t k = d->n_ready++;
    for (; k && sooner(s, policy, op, d->ready[(k - 1) / 2]); k = (k - 1) / 2)
        d->ready[k] = d->ready[(k - 1) / 2];
    d->ready[k] = op;
}

static uint32_t take_ready(sim *s, device *d, cd_replay_policy policy) {
    const uint32_t top = d->ready[0], e = d->ready[--d->n_ready];
    uint32_t k = 0, c;
    for (; (c = 2 * k + 1) < d->n_ready; k = c) {
        if (c + 1 < d->n_ready && sooner(s, policy, d->ready[c + 1], d->ready[c])) c++;
        if (!sooner(s, policy, d->ready[c], e)) break;
        d->ready[k] = d->ready[c];
    }
    if (d->n_ready) d->ready[k] = e;
    return top;
}

static void touch(sim *s, uint32_t d) {
    if (s->dev[d].touched) return;
    s->dev[d].touched = true;
    s->touched[s->n_touched++] = d;
}

/* One thing less to wait for; `since` ended at t, CD_REPLAY_NONE: it was issued. */
static void one_less(sim *s, uint32_t op, uint32_t since, double t) {
    s->out->op[op].since = since;
    if (--s->left[op]) return;
    const uint32_t d = s->p->n->op[op].device;
    s->out->op[op].ready_s = t;
    add_ready(s, &s->dev[d], s->p->n->device[d].policy, op);
    touch(s, d);
}

/* ---- what runs ---- */

/* After something began or ended on the device at t: how fast each goes now, and when the first one
 * ends. */
static void reckon(sim *s, uint32_t id, double t) {
    device *d = &s->dev[id];
    double busy = 0, first = INFINITY;
    for (uint32_t k = 0; k < d->n_on; k++) busy += s->p->n->op[d->on[k].op].memory_share;
    for (uint32_t k = 0; k < d->n_on; k++) {
        running *r = &d->on[k];
        const double share = s->p->n->op[r->op].memory_share,
                     stretch = busy > 1 ? 1 - share + share * busy : 1;
        if (stretch != r->stretch) {
            r->left = fmax(0, r->left - (t - r->since) / r->stretch);
            r->since = t;
            r->stretch = stretch;
            r->end = t + r->left * stretch;
        }
        first = fmin(first, r->end);
    }
    d->version++;
    if (d->n_on) push(s, (event){first, FINISH, id, d->version});
}

/* An operator that was ready but did not start: its worker was busy, or, in a stream, the one
 * before was not ready. */
static uint32_t waited_for(const sim *s, const device *d, uint32_t worker, double t) {
    const uint32_t last = d->last[worker];
    if (last != CD_REPLAY_NONE && s->out->op[last].end_s == t) return last;
    return d->next > 1 ? s->out->op[d->mine[d->next - 2]].since : CD_REPLAY_NONE;
}

static void start(sim *s, uint32_t id, uint32_t op, double t) {
    device *d = &s->dev[id];
    uint32_t w = 0;
    while (d->taken[w]) w++;
    d->taken[w] = true;
    cd_replay_ran *ran = &s->out->op[op];
    ran->start_s = t;
    ran->worker = w;
    if (t > ran->ready_s) ran->since = waited_for(s, d, w, t);
    const double alone = s->seconds[op] + s->p->n->device[id].gap_s;
    /* short runs wait for the host */
    const double left = fmax(alone, s->issued[op] + alone / cd_replay_runs(&s->p->n->op[op]) - t);
    d->on[d->n_on++] = (running){op, w, t, left, 1, t + left};
}

static void dispatch(sim *s, uint32_t id, double t) {
    device *d = &s->dev[id];
    const cd_replay_device *v = &s->p->n->device[id];
    while (d->n_on < v->workers && d->n_ready) {
        if (v->policy == CD_REPLAY_STREAM && d->ready[0] != d->mine[d->next]) break;
        d->next++;
        start(s, id, take_ready(s, d, v->policy), t);
    }
    d->touched = false;
    reckon(s, id, t);
}

/* ---- what ends ---- */

static void copy_out(sim *s, uint32_t op, uint32_t to, double t) {
    const uint32_t link = s->p->link[(size_t)s->p->n->op[op].device * s->p->n->n_device + to];
    cd_replay_copy *c = &s->out->copy[s->out->n_copy];
    *c = (cd_replay_copy){
        .op = op, .link = link, .ready_s = t, .start_s = fmax(t, s->link_free[link])};
    c->end_s = c->start_s + replay_copy_s(s->p, op, link);
    s->link_free[link] = c->end_s;
    push(s, (event){c->end_s, COPIED, s->out->n_copy++, 0});
}

static void ended(sim *s, uint32_t op, double t) {
    const cd_replay_sim *p = s->p;
    const uint32_t here = p->n->op[op].device;
    for (uint32_t j = p->first[op]; j < p->first[op + 1]; j++) {
        const uint32_t there = p->n->op[p->to[j]].device;
        if (there == here) one_less(s, p->to[j], op, t);
        else if (s->mark[there] != op) {
            s->mark[there] = op;
            copy_out(s, op, there, t);
        }
    }
}

/* Of what ends by t, the operator of the lowest number: copies are asked for in that order. False:
 * nothing more. */
static bool next_ended(const device *d, double t, uint32_t *at) {
    bool found = false;
    for (uint32_t k = 0; k < d->n_on; k++)
        if (d->on[k].end <= t && (!found || d->on[k].op < d->on[*at].op)) {
            *at = k;
            found = true;
        }
    return found;
}

static void finish(sim *s, uint32_t id, double t) {
    device *d = &s->dev[id];
    for (uint32_t k = 0; next_ended(d, t, &k);) {
        const running r = d->on[k];
        d->on[k] = d->on[--d->n_on];
        d->taken[r.worker] = false;
        d->last[r.worker] = r.op;
        s->out->op[r.op].end_s = t;
        s->out->busy_s[id] += t - s->out->op[r.op].start_s;
        ended(s, r.op, t);
    }
    touch(s, id);
}

static void copied(sim *s, uint32_t copy, double t) {
    const cd_replay_copy *c = &s->out->copy[copy];
    const cd_replay_sim *p = s->p;
    const uint32_t there = p->n->link[c->link].to;
    for (uint32_t j = p->first[c->op]; j < p->first[c->op + 1]; j++)
        if (p->n->op[p->to[j]].device == there) one_less(s, p->to[j], c->op, t);
}

/* ---- set up and run ---- */

/* Arrays of each device are as long as the number of its operators: the whole room is known before
 * the run. */
static bool device_room(sim *s, cd_arena *a) {
    const cd_replay_net *n = s->p->n;
    uint32_t *count = CD_NEWN(a, uint32_t, (size_t)n->n_device + 1);
    if (!count) return false;
    for (uint32_t k = 0; k < n->n_op; k++) count[n->op[k].device]++;
    for (uint32_t d = 0; d < n->n_device; d++) {
        const uint32_t w = n->device[d].workers;
        s->dev[d] = (device){.ready = CD_NEWN(a, uint32_t, (size_t)count[d] + 1),
                             .mine = CD_NEWN(a, uint32_t, (size_t)count[d] + 1),
                             .on = CD_NEWN(a, running, w),
                             .last = CD_NEWN(a, uint32_t, w),
                             .taken = CD_NEWN(a, bool, w)};
        if (!s->dev[d].ready || !s->dev[d].mine || !s->dev[d].on || !s->dev[d].last ||
            !s->dev[d].taken)
            return false;
        for (uint32_t k = 0; k < w; k++) s->dev[d].last[k] = CD_REPLAY_NONE;
        s->mark[d] = CD_REPLAY_NONE;
    }
    for (uint32_t k = 0; k < n->n_op; k++) {
        device *d = &s->dev[n->op[k].device];
        d->mine[d->n_mine++] = k;
    }
    return true;
}

/* The host hands out one run after the other, whatever the device does meanwhile. */
static void hand_out(sim *s, uint32_t id) {
    const double each = s->p->n->device[id].issue_s;
    double before = 0;
    for (uint32_t j = 0; each > 0 && j < s->dev[id].n_mine; j++) {
        const uint32_t op = s->dev[id].mine[j];
        push(s, (event){(before + 1) * each, ISSUED, op, 0});
        before += cd_replay_runs(&s->p->n->op[op]);
        if (s->p->n->op[op].runs > 1) s->issued[op] = before * each;
    }
}

static void begin(sim *s) {
    const cd_replay_net *n = s->p->n;
    for (uint32_t d = 0; d < n->n_device; d++) hand_out(s, d);
    for (uint32_t k = 0; k < n->n_op; k++) {
        const bool issued = n->device[n->op[k].device].issue_s > 0;
        s->left[k] = n->op[k].n_after + issued;
        if (s->left[k]) continue;
        s->left[k] = 1;
        one_less(s, k, CD_REPLAY_NONE, 0);
    }
}

/* At each time all events come before any dispatch: an operator that becomes ready and a worker
 * that becomes free at the same time must see each other. An event of an older version of its
 * device is void. */
static void run(sim *s) {
    double t = 0;
    for (;;) {
        for (uint32_t k = 0; k < s->n_touched; k++) dispatch(s, s->touched[k], t);
        s->n_touched = 0;
        if (!s->n_event) break;
        t = s->heap[0].t;
        while (s->n_event && s->heap[0].t == t) {
            const event e = pop(s);
            if (e.kind == COPIED) copied(s, e.id, t);
            else if (e.kind == ISSUED) one_less(s, e.id, CD_REPLAY_NONE, t);
            else if (e.version == s->dev[e.id].version) finish(s, e.id, t);
        }
    }
    for (uint32_t k = 0; k < s->p->n->n_op; k++)
        s->out->makespan_s = fmax(s->out->makespan_s, s->out->op[k].end_s);
}

static uint32_t crossings(const cd_replay_sim *p) {
    uint32_t c = 0;
    for (uint32_t k = 0; k < p->n->n_op; k++)
        for (uint32_t j = p->first[k]; j < p->first[k + 1]; j++)
            c += p->n->op[p->to[j]].device != p->n->op[k].device;
    return c;
}

/* Times of operators and copies into *out. scratch is reset. Errors: ENOMEM. */
static cdmpp_status replay_simulate(const cd_replay_sim *p, const double *seconds,
                                    cd_arena *scratch, cd_replay *out, cdmpp_err *err) {
    const cd_replay_net *n = p->n;
    const size_t room = (size_t)n->n_op + 1, edges = p->first[n->n_op], copies = crossings(p);
    out->op = CD_NEWN(&out->arena, cd_replay_ran, room);
    out->copy = CD_NEWN(&out->arena, cd_replay_copy, copies + 1);
    out->busy_s = CD_NEWN(&out->arena, double, (size_t)n->n_device + 1);
    cd_arena_reset(scratch);
    /* Each end and each operator that becomes ready may have a device reckoned anew. */
    sim s = {.p = p,
             .seconds = seconds,
             .out = out,
             .left = CD_NEWN(scratch, uint32_t, room),
             .issued = CD_NEWN(scratch, double, room),
             .heap = CD_NEWN(scratch, event, 3 * room + edges),
             .dev = CD_NEWN(scratch, device, (size_t)n->n_device + 1),
             .touched = CD_NEWN(scratch, uint32_t, (size_t)n->n_device + 1),
             .link_free = CD_NEWN(scratch, double, (size_t)n->n_link + 1),
             .mark = CD_NEWN(scratch, uint32_t, (size_t)n->n_device + 1)};
    if (!out->op || !out->copy || !out->busy_s || !s.left || !s.issued || !s.heap || !s.dev ||
        !s.touched || !s.link_free || !s.mark || !device_room(&s, scratch))
        return CD_FAIL(err, ENOMEM, "replay of %u operators", n->n_op);
    begin(&s);
    run(&s);
    return CDMPP_OK;
}

/* at most so many replays of a network, and operators in all of them */
enum { DRAWS = 400, DRAW_OPS = 4000000 };

void cd_replay_free(cd_replay *r) {
    cd_arena_free(&r->arena);
    *r = (cd_replay){0};
}

/* Backwards from the operator that ends last. */
static cdmpp_status walk_back(const cd_replay_net *n, cd_replay *r, cdmpp_err *err) {
    uint32_t last = CD_REPLAY_NONE, m = 0;
    for (uint32_t k = 0; k < n->n_op; k++)
        if (last == CD_REPLAY_NONE || r->op[k].end_s > r->op[last].end_s) last = k;
    for (uint32_t k = last; k != CD_REPLAY_NONE; k = r->op[k].since) m++;
    r->path = CD_NEWN(&r->arena, uint32_t, (size_t)m + 1);
    if (!r->path) return CD_FAIL(err, ENOMEM, "path of %u operators", m);
    r->n_path = m;
    for (uint32_t k = last; k != CD_REPLAY_NONE; k = r->op[k].since) r->path[--m] = k;
    return CDMPP_OK;
}

static double sum_of(const cd_replay_sim *p, const cd_replay *r) {
    double sum = 0;
    for (uint32_t k = 0; k < p->n->n_op; k++) {
        const cd_replay_device *d = &p->n->device[p->n->op[k].device];
        sum += p->n->op[k].seconds + d->gap_s + cd_replay_runs(&p->n->op[k]) * d->issue_s;
    }
    for (uint32_t k = 0; k < r->n_copy; k++)
        sum += replay_copy_s(p, r->copy[k].op, r->copy[k].link);
    return sum;
}

static cdmpp_status replay(const cd_replay_net *n, cd_arena *own, cd_arena *scratch, cd_replay *out,
                           cdmpp_err *err) {
    cd_replay_sim p;
    CD_TRY(replay_prepare(n, own, &p, err));
    double *seconds = CD_NEWN(own, double, (size_t)n->n_op + 1),
           *end = CD_NEWN(own, double, (size_t)n->n_op + 1);
    if (!seconds || !end) return CD_FAIL(err, ENOMEM, "replay of %u operators", n->n_op);
    for (uint32_t k = 0; k < n->n_op; k++) seconds[k] = n->op[k].seconds;
    out->chain_s = replay_chains(&p, seconds, end);
    CD_TRY(replay_simulate(&p, seconds, scratch, out, err));
    out->sum_s = sum_of(&p, out);
    CD_TRY(cd_replay_memory(&p, scratch, out, err));
    return walk_back(n, out, err);
}

cdmpp_status cd_replay_run(const cd_replay_net *n, cd_replay *out, cdmpp_err *err) {
    cd_arena own = {0}, scratch = {0};
    *out = (cd_replay){0};
    const cdmpp_status st = replay(n, &own, &scratch, out, err);
    cd_arena_free(&own);
    cd_arena_free(&scratch);
    return st;
}

/* ---- intervals ---- */

/* Normal number i of a seed, by Box and Muller. */
static double normal(uint64_t seed, uint64_t i) {
    const double u = 1 - cd_rng_unit(seed, 2 * i), v = cd_rng_unit(seed, 2 * i + 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static void draw_seconds(const cd_replay_net *n, double shared, uint64_t seed, double *seconds) {
    const double all = normal(seed, 0);
    for (uint32_t k = 0; k < n->n_op; k++) {
        const cd_replay_op *o = &n->op[k];
        const uint64_t key = o->like == UINT32_MAX ? (uint64_t)1 << 40 | k : (uint64_t)o->like + 1;
        const double part = o->shared > shared ? o->shared : shared;
        seconds[k] = o->spread > 0
                         ? o->seconds * exp(o->spread *
                                            (sqrt(part) * all + sqrt(1 - part) * normal(seed, key)))
                         : o->seconds;
    }
}

/* m replays with drawn times into took (m). The net is prepared once; only times change. */
static cdmpp_status sample(const cd_replay_net *n, double shared, uint64_t seed, cd_arena *own,
                           double *took, uint32_t m, cdmpp_err *err) {
    cd_replay_sim p;
    cd_arena scratch = {0};
    CD_TRY(replay_prepare(n, own, &p, err));
    double *seconds = CD_NEWN(own, double, (size_t)n->n_op + 1),
           *end = CD_NEWN(own, double, (size_t)n->n_op + 1);
    cdmpp_status st =
        seconds && end ? CDMPP_OK : CD_FAIL(err, ENOMEM, "replay of %u operators", n->n_op);
    for (uint32_t i = 0; i < m && !st; i++) {
        cd_replay r = {0};
        draw_seconds(n, shared, cd_rng_at(seed, i), seconds);
        replay_chains(&p, seconds, end);
        st = replay_simulate(&p, seconds, &scratch, &r, err);
        took[i] = r.makespan_s;
        cd_replay_free(&r);
    }
    cd_arena_free(&scratch);
    return st;
}

/* Fewer draws of large networks, so that all draws together stay below DRAW_OPS operators.
 * Quantiles are order statistics of the draws. */
cdmpp_status cd_replay_sample(const cd_replay_net *n, double level, double shared, uint64_t seed,
                              cd_replay_interval *out, cdmpp_err *err) {
    if (!(level > 0 && level < 1) || !(shared >= 0 && shared <= 1))
        return CD_FAIL(err, ERANGE, "level %g, shared %g: expected 0 to 1", level, shared);
    const uint32_t by_work = (uint32_t)(DRAW_OPS / ((uint64_t)n->n_op + 1)),
                   m = by_work > DRAWS ? DRAWS
                       : by_work < 20  ? 20
                                       : by_work;
    double took[DRAWS], sum = 0;
    cd_arena own = {0};
    const cdmpp_status st = sample(n, shared, seed, &own, took, m, err);
    cd_arena_free(&own);
    if (st) return st;
    cd_sort_doubles(took, m);
    for (uint32_t i = 0; i < m; i++) sum += took[i];
    const double cut = (1 - level) / 2 * (m - 1);
    *out = (cd_replay_interval){took[(uint32_t)cut], took[m - 1 - (uint32_t)cut], sum / m};
    return CDMPP_OK;
}

cdmpp_status cd_replay_interval_of(const cd_replay_net *n, double makespan_s, double level,
                                   double shared, uint64_t seed, cd_replay_interval *out,
                                   cdmpp_err *err) {
    for (uint32_t k = 0; k < n->n_op; k++)
        if (n->op[k].spread > 0) return cd_replay_sample(n, level, shared, seed, out, err);
    *out = (cd_replay_interval){.low_s = makespan_s, .high_s = makespan_s, .mean_s = makespan_s};
    return CDMPP_OK;
}

void cd_replay_widen(double middle, double spread, double level, double *low, double *high) {
    const double z = spread * cd_normal_quantile(0.5 + level / 2);
    if (!(middle > 0) || !(*low > 0) || !(*high > 0)) return;
    *low = middle * exp(-hypot(log(middle / fmin(*low, middle)), z));
    *high = middle * exp(hypot(log(fmax(*high, middle) / middle), z));
}

void cd_replay_interval_finish(double makespan_s, double spread, double least_s, double level,
                               cd_replay_interval *i) {
    if (spread > 0) cd_replay_widen(makespan_s, spread, level, &i->low_s, &i->high_s);
    if (i->low_s < least_s) i->low_s = least_s; /* NaN stays */
    if (!(i->low_s < i->high_s)) i->low_s = i->high_s = (double)NAN;
}
