/* Events in time. At each time first all that ends, then all that can start.
 *
 *   events  (heap by time)   device d finishes something · copy c ends · operator k is issued
 *   ready   (heap a device)  operators that could run, by the device's policy
 *   on      (list a device)  what runs, each with the time that is left to it alone */
#include <math.h>

#include "predictor/replay/replay_internal.h"

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
    c->end_s = c->start_s + cd_replay_copy_s(s->p, op, link);
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

cdmpp_status cd_replay_simulate(const cd_replay_sim *p, const double *seconds, cd_arena *scratch,
                                cd_replay *out, cdmpp_err *err) {
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
