/* Closed forms of parallel training, and a training graph distributed over devices. The closed form
 * and the simulated net are computed from the same stages or buckets, so that they can be
 * compared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "predictor/estimate/estimate.h"

/* Data parallel and pipelined training as nets to replay. */

enum { MOST_OPS = 1 << 24 };

typedef struct writer {
    cd_parallel_net *to;
    cd_replay_op *op;
    uint32_t *after;
    cd_replay_device *device;
    cd_replay_link *link;
} writer;

static cdmpp_status room(writer *w, cd_parallel_net *to, uint64_t n_op, uint64_t n_after,
                         uint64_t n_device, uint64_t n_link, cdmpp_err *err) {
    *to = (cd_parallel_net){0};
    w->to = to;
    if (n_op > MOST_OPS || n_after > 4 * MOST_OPS)
        return CD_FAIL(err, ERANGE, "a net of %llu operators", (unsigned long long)n_op);
    w->op = cd_arena_zalloc(&to->arena, n_op, sizeof *w->op);
    w->after = cd_arena_alloc(&to->arena, n_after + 1, sizeof *w->after);
    w->device = cd_arena_zalloc(&to->arena, n_device, sizeof *w->device);
    w->link = cd_arena_zalloc(&to->arena, n_link + 1, sizeof *w->link);
    if (!w->op || !w->after || !w->device || !w->link) return CD_FAIL(err, ENOMEM, "net");
    to->net = (cd_replay_net){.op = w->op, .after = w->after, .device = w->device, .link = w->link};
    return CDMPP_OK;
}

static void put_device(writer *w, const char *name) {
    w->device[w->to->net.n_device++] =
        (cd_replay_device){.name = name, .workers = 1, .policy = CD_REPLAY_ORDER};
}

static void put_link(writer *w, uint32_t from, uint32_t to, cd_parallel_link l) {
    w->link[w->to->net.n_link++] = (cd_replay_link){from, to, l.latency_s, l.bytes_per_s};
}

static uint32_t put_op(writer *w, const char *name, uint32_t device, double seconds,
                       int64_t bytes) {
    const uint32_t i = w->to->net.n_op++;
    w->op[i] = (cd_replay_op){.name = name,
                              .device = device,
                              .like = UINT32_MAX,
                              .seconds = seconds,
                              .bytes = bytes,
                              .first = w->to->net.n_after};
    return i;
}

/* The operator put last comes after `before`. */
static void put_after(writer *w, uint32_t before) {
    w->after[w->to->net.n_after++] = before;
    w->op[w->to->net.n_op - 1].n_after++;
}

/* ---- data parallel ---- */

/* Steps of all rings of one bucket: chunk k goes on to the next device. last[d]: each ring's step
 * before, in and out. */
static void put_ring(writer *w, const cd_parallel_bucket *b, const uint32_t *ready, uint32_t *last,
                     bool first, uint32_t n) {
    const uint32_t steps = 2 * (n - 1);
    for (uint32_t k = 0; k <= steps; k++) {
        const uint32_t from = w->to->net.n_op;
        for (uint32_t d = 0; d < n; d++) {
            put_op(w, "ring", n + d, 0, k < steps ? (b->bytes + n - 1) / n : 0);
            if (!k) put_after(w, ready[d]);
            if (k || !first) put_after(w, k ? from - n + d : last[d]);
            if (k) put_after(w, from - n + (d + n - 1) % n);
        }
        for (uint32_t d = 0; k == steps && d < n; d++) last[d] = from + d;
    }
}

static void put_compute(writer *w, double seconds, uint32_t *ready, bool first, uint32_t n) {
    for (uint32_t d = 0; d < n; d++) {
        const uint32_t before = ready[d];
        ready[d] = put_op(w, "compute", d, seconds, 0);
        if (!first) put_after(w, before);
    }
}

static cdmpp_status check_buckets(double compute_s, const cd_parallel_bucket *b, uint32_t n_bucket,
                                  uint32_t n, cdmpp_err *err) {
    double t = 0;
    if (n < 1 || n > 4096 || !(compute_s >= 0) || !isfinite(compute_s))
        return CD_FAIL(err, ERANGE, "%u devices, %g s", n, compute_s);
    for (uint32_t i = 0; i < n_bucket; t = b[i++].ready_s)
        if (!(b[i].ready_s >= t) || !isfinite(b[i].ready_s) || b[i].bytes < 0)
            return cd_err_index(err,
                                CD_FAIL(err, ERANGE, "a bucket of %lld bytes at %g s",
                                        (long long)b[i].bytes, b[i].ready_s),
                                i);
    return CDMPP_OK;
}

/* Each device computes between two buckets and then goes on, while the rings sum the bucket: 2 (n -
 * 1) steps, each to the next device. A link between device and its ring takes no time. */
cdmpp_status cd_parallel_training_data_net(double compute_s, const cd_parallel_bucket *b,
                                           uint32_t n_bucket, uint32_t n, cd_parallel_link link,
                                           cd_parallel_net *out, cdmpp_err *err) {
    writer w = {0};
    double t = 0;
    *out = (cd_parallel_net){0};
    CD_TRY(check_buckets(compute_s, b, n_bucket, n, err));
    const uint64_t rings = n > 1 ? (uint64_t)n_bucket * (2 * n - 1) : 0;
    CD_TRY(room(&w, out, n * (n_bucket + 1 + rings), 2 * n * (n_bucket + 1 + rings), 2 * n, 2 * n,
                err));
    uint32_t *ready = cd_arena_zalloc(&out->arena, n, sizeof *ready),
             *last = cd_arena_zalloc(&out->arena, n, sizeof *last);
    if (!ready || !last) return CD_FAIL(err, ENOMEM, "net");
    for (uint32_t d = 0; d < n; d++) put_device(&w, "device");
    for (uint32_t d = 0; d < n; d++) put_device(&w, "ring");
    for (uint32_t d = 0; d < n && n > 1; d++) {
        put_link(&w, d, n + d, (cd_parallel_link){0, 1e18});
        put_link(&w, n + d, n + (d + 1) % n, link);
    }
    for (uint32_t i = 0; i < n_bucket; t = b[i++].ready_s) {
        put_compute(&w, b[i].ready_s - t, ready, !i, n);
        if (n > 1) put_ring(&w, &b[i], ready, last, !i, n);
    }
    put_compute(&w, fmax(0, compute_s - t), ready, !n_bucket, n);
    return CDMPP_OK;
}

/* ---- pipeline ---- */

/* Does step k of stage i go forward? GPipe: the first m; 1F1B: n - 1 - i ahead, then in turn. */
static bool goes_forward(cd_parallel_schedule is, uint32_t i, uint32_t n, uint32_t m, uint32_t k,
                         uint32_t done) {
    if (done == m) return false;
    const uint32_t ahead = is == CD_PARALLEL_GPIPE ? m : n - 1 - i;
    return k < ahead || (k - ahead) % 2 == 0;
}

/* Operators stage by stage in the order each stage runs them; number: of micro-batch j forward or
 * backward at stage i. */
static void number_all(uint32_t *number, uint32_t *order, uint32_t n, uint32_t m,
                       cd_parallel_schedule is) {
    for (uint32_t i = 0, at = 0; i < n; i++)
        for (uint32_t k = 0, f = 0, b = 0; k < 2 * m; k++, at++) {
            const bool forward = goes_forward(is, i, n, m, k, f);
            const uint32_t what = (forward ? f++ : m + b++);
            number[(size_t)i * 2 * m + what] = at;
            order[at] = what;
        }
}

/* A stage runs its micro-batches in the fixed order of the schedule, hence the edge to the operator
 * before. Forward waits for the stage before, backward for the stage behind; the last stage goes
 * from forward to backward by itself. */
cdmpp_status cd_parallel_training_pipeline_net(const cd_pipeline_stage *s, uint32_t n, uint32_t m,
                                               cd_parallel_schedule is, cd_parallel_link link,
                                               cd_parallel_net *out, cdmpp_err *err) {
    writer w = {0};
    *out = (cd_parallel_net){0};
    if (n < 1 || m < 1) return CD_FAIL(err, ERANGE, "%u stages, %u micro-batches", n, m);
    CD_TRY(room(&w, out, 2 * (uint64_t)n * m, 4 * (uint64_t)n * m, n, 2 * (uint64_t)n, err));
    uint32_t *number = cd_arena_alloc(&out->arena, 2 * (size_t)n * m, sizeof *number);
    uint32_t *order = cd_arena_alloc(&out->arena, 2 * (size_t)n * m, sizeof *order);
    if (!number || !order) return CD_FAIL(err, ENOMEM, "net");
    for (uint32_t i = 0; i < n; i++) put_device(&w, "stage");
    for (uint32_t i = 0; i + 1 < n; i++) {
        put_link(&w, i, i + 1, link);
        put_link(&w, i + 1, i, link);
    }
    number_all(number, order, n, m, is);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < 2 * m; k++) {
            const uint32_t what = order[(size_t)i * 2 * m + k], j = what % m;
            const bool forward = what < m;
            const int64_t bytes = forward ? (i + 1 < n ? s[i].bytes : 0) : (i ? s[i - 1].bytes : 0);
            const uint32_t at = put_op(&w, forward ? "forward" : "backward", i,
                                       forward ? s[i].forward_s : s[i].backward_s, bytes);
            if (k) put_after(&w, at - 1);
            if (forward && i) put_after(&w, number[(size_t)(i - 1) * 2 * m + j]);
            if (!forward)
                put_after(
                    &w,
                    number[i + 1 < n ? (size_t)(i + 1) * 2 * m + m + j : (size_t)i * 2 * m + j]);
        }
    return CDMPP_OK;
}

void cd_parallel_net_free(cd_parallel_net *c) {
    cd_arena_free(&c->arena);
    *c = (cd_parallel_net){0};
}

double cd_parallel_training_ring_s(int64_t bytes, uint32_t n, cd_parallel_link link) {
    if (n < 1 || bytes < 0 || !(link.bytes_per_s > 0) || !(link.latency_s >= 0)) return (double)NAN;
    const double steps = 2 * ((double)n - 1);
    return steps * (link.latency_s + (double)bytes / n / link.bytes_per_s);
}

double cd_parallel_training_data_s(double compute_s, const cd_parallel_bucket *b, uint32_t n_bucket,
                                   uint32_t n, cd_parallel_link link) {
    double end = 0;
    if (n == 1) return compute_s;
    for (uint32_t i = 0; i < n_bucket; i++)
        end = fmax(end, b[i].ready_s) + cd_parallel_training_ring_s(b[i].bytes, n, link);
    return end < compute_s ? compute_s : end; /* a NaN stays one */
}

static double send_s(int64_t bytes, cd_parallel_link link) {
    return link.latency_s + (double)bytes / link.bytes_per_s;
}

/* Equal jobs through machines in a row: the sum of one job, and the slowest machine for each
 * further one. */
double cd_parallel_training_pipeline_s(const cd_pipeline_stage *s, uint32_t n, uint32_t micro,
                                       cd_parallel_link link) {
    double sum = 0, slowest[2] = {0, 0};
    if (n < 1 || micro < 1 || !(link.bytes_per_s > 0)) return (double)NAN;
    for (uint32_t i = 0; i < n; i++) {
        const double send = i + 1 < n ? send_s(s[i].bytes, link) : 0;
        sum += s[i].forward_s + s[i].backward_s + 2 * send;
        slowest[0] = fmax(slowest[0], fmax(s[i].forward_s, send));
        slowest[1] = fmax(slowest[1], fmax(s[i].backward_s, send));
    }
    return sum + (micro - 1) * (slowest[0] + slowest[1]);
}

uint32_t cd_parallel_training_kept(cd_parallel_schedule is, uint32_t stage, uint32_t n,
                                   uint32_t micro) {
    const uint32_t ahead = stage < n ? n - stage : 1;
    return is == CD_PARALLEL_GPIPE || micro < ahead ? micro : ahead;
}

/* "%n" stays 0 or marks where the text goes on, so that "data:4x" is refused. */
cdmpp_status cd_parallel_plan_parse(const char *parallel, cd_parallel_plan *out, cdmpp_err *err) {
    int n = 0, micro = 1, end = 0;
    *out = (cd_parallel_plan){.bucket_bytes = 25 << 20};
    if (sscanf(parallel, "data:%d%n", &n, &end) == 1 && !parallel[end]) out->is = CD_PARALLEL_DATA;
    else if (sscanf(parallel, "tensor:%d%n", &n, &end) == 1 && !parallel[end])
        out->is = CD_PARALLEL_TENSOR;
    else if (sscanf(parallel, "pipeline:%dx%d%n", &n, &micro, &end) == 2 && !parallel[end])
        out->is = CD_PARALLEL_PIPELINE;
    else if (sscanf(parallel, "pipeline-1f1b:%dx%d%n", &n, &micro, &end) == 2 && !parallel[end]) {
        out->is = CD_PARALLEL_PIPELINE;
        out->schedule = CD_PARALLEL_1F1B;
    } else n = 0;
    if (n < 1 || n > 4096 || micro < 1 || micro > 4096)
        return CD_FAIL(
            err, EUSAGE,
            "expected data:4, pipeline:4x8, pipeline-1f1b:4x8 or tensor:4, found \"%.60s\"",
            parallel);
    out->n = (uint32_t)n;
    out->micro = (uint32_t)micro;
    return CDMPP_OK;
}

/* ---- a graph over many devices ---- */
static double node_s(const cd_network_graph *g, const cd_node_cost *c, uint32_t i) {
    return c->node[i].seconds * (double)g->node[i].repeat;
}

static cdmpp_status check(const cd_network_graph *g, const cd_node_cost *c, double *sum,
                          cdmpp_err *err) {
    *sum = 0;
    for (uint32_t i = 0; i < g->n_node; i++) {
        if (g->node[i].repeat && isnan(c->node[i].seconds))
            return CD_FAIL(err, ESCHEMA, "node \"%.60s\" has no time: %s", g->node[i].name,
                           c->node[i].why ? c->node[i].why : "");
        *sum += g->node[i].repeat ? node_s(g, c, i) : 0;
    }
    return CDMPP_OK;
}

/* An optimizer's step, once an iteration; library graphs have sums of gradients in that phase,
 * which every pass makes. */
static bool is_step(const cd_network_node *n) {
    return n->phase == CD_PHASE_UPDATE && !n->question;
}

static double steps_s(const cd_network_graph *g, const cd_node_cost *c) {
    double sum = 0;
    for (uint32_t i = 0; i < g->n_node; i++)
        sum += g->node[i].repeat && is_step(&g->node[i]) ? node_s(g, c, i) : 0;
    return sum;
}

/* Of a node's gradient: a sum of gradients is as large as its question says; a step reads one where
 * the backward part made it, and writes as much. ready: behind every node, steps left out. */
static cd_parallel_bucket gradient_of(const cd_network_graph *g, uint32_t i, const double *ready) {
    const cd_network_node *n = &g->node[i];
    cd_parallel_bucket b = {ready[i], 0};
    if (n->phase == CD_PHASE_UPDATE && n->question)
        b.bytes = (int64_t)(cd_library_op_dtype_bytes(n->question->dtype) * n->question->m *
                            n->question->n);
    for (uint32_t k = 0; is_step(n) && n->write_bytes > 0 && k < n->n_after; k++) {
        const uint32_t from = g->after[n->first + k];
        if (g->node[from].phase != CD_PHASE_BACKWARD) continue;
        b.ready_s = b.bytes ? fmax(b.ready_s, ready[from]) : ready[from];
        b.bytes = n->write_bytes;
    }
    return b;
}

static int by_time(const void *x, const void *y) {
    const cd_parallel_bucket a = *(const cd_parallel_bucket *)x, b = *(const cd_parallel_bucket *)y;
    return a.ready_s != b.ready_s ? (a.ready_s > b.ready_s) - (a.ready_s < b.ready_s)
                                  : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

/* Gradients in the order that they are ready in. How many. */
static uint32_t gradients(const cd_network_graph *g, const cd_node_cost *c, double *ready,
                          cd_parallel_bucket *b) {
    uint32_t n = 0;
    double t = 0;
    for (uint32_t i = 0; i < g->n_node; i++) {
        t += g->node[i].repeat && !is_step(&g->node[i]) ? node_s(g, c, i) : 0;
        ready[i] = t;
    }
    for (uint32_t i = 0; i < g->n_node; i++) {
        b[n] = gradient_of(g, i, ready);
        n += b[n].bytes > 0;
    }
    qsort(b, n, sizeof *b, by_time);
    return n;
}

/* Gradients in buckets of at least `least` bytes but the last; in place. How many. */
static uint32_t buckets(cd_parallel_bucket *b, uint32_t n, int64_t least) {
    uint32_t k = 0;
    bool open = false;
    for (uint32_t i = 0; i < n; i++) {
        const cd_parallel_bucket v = b[i];
        if (!open) b[k] = (cd_parallel_bucket){0, 0};
        b[k].ready_s = v.ready_s;
        b[k].bytes += v.bytes;
        open = b[k].bytes < least;
        k += !open;
    }
    return k + open;
}

/* The steps come when all sums are there, as in PyTorch's. */
static cdmpp_status data(const cd_network_graph *g, const cd_node_cost *c,
                         const cd_parallel_plan *p, cd_arena *a, cd_parallel_result *out,
                         cdmpp_err *err) {
    cd_parallel_bucket *b = cd_arena_alloc(a, (size_t)g->n_node + 1, sizeof *b);
    double *ready = cd_arena_alloc(a, (size_t)g->n_node + 1, sizeof *ready);
    const double last = steps_s(g, c), pass = fmax(0, out->one_s - last);
    cd_parallel_net net = {0};
    cd_replay r = {0};
    if (!b || !ready) return CD_FAIL(err, ENOMEM, "buckets");
    const uint32_t n = buckets(b, gradients(g, c, ready, b), p->bucket_bytes);
    if (!n)
        return CD_FAIL(err, ESCHEMA,
                       "network \"%.60s\" has no gradients of weights: it is not one of training",
                       g->name);
    for (uint32_t i = 0; i < n; i++) {
        out->sent_s += cd_parallel_training_ring_s(b[i].bytes, p->n, p->link);
        out->sent_bytes += 2 * (b[i].bytes - b[i].bytes / p->n);
    }
    out->closed_s = cd_parallel_training_data_s(pass, b, n, p->n, p->link) + last;
    cdmpp_status st = cd_parallel_training_data_net(pass, b, n, p->n, p->link, &net, err);
    if (!st) st = cd_replay_run(&net.net, &r, err);
    if (!st) out->replay_s = r.makespan_s + last;
    cd_replay_free(&r);
    cd_parallel_net_free(&net);
    return st;
}

/* Is it of the passes that every micro-batch makes, of this direction? */
static bool in_pass(const cd_network_node *n, bool forward) {
    return n->repeat && !is_step(n) && (n->phase == CD_PHASE_FORWARD) == forward;
}

/* Parts of consecutive nodes of the phases that take at most `most` each; how many are needed.
 * end[k]: behind part k. */
static uint32_t parts(const cd_network_graph *g, const cd_node_cost *c, bool forward, double most,
                      uint32_t *end, uint32_t n) {
    uint32_t k = 0;
    double t = 0;
    for (uint32_t i = 0; i < g->n_node; i++) {
        const double s = node_s(g, c, i);
        if (!in_pass(&g->node[i], forward)) continue;
        if (t > 0 && t + s > most) {
            if (k < n) end[k] = i;
            k++;
            t = 0;
        }
        t += s;
    }
    for (uint32_t j = k; j < n; j++) end[j] = g->n_node;
    return k + 1;
}

/* n parts whose slowest one is as fast as can be, to a millionth. */
static void balance(const cd_network_graph *g, const cd_node_cost *c, bool forward, uint32_t *end,
                    uint32_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < g->n_node; i++)
        if (in_pass(&g->node[i], forward)) sum += node_s(g, c, i);
    double low = sum / n * (1 - 1e-9), high = sum;
    for (int i = 0; i < 40 && high - low > 1e-6 * sum / n; i++) {
        const double half = (low + high) / 2;
        if (parts(g, c, forward, half, end, n) <= n) high = half;
        else low = half;
    }
    parts(g, c, forward, high * (1 + 1e-9), end, n);
}

/* Stages: forward parts in order, backward parts from the end. at[i]: the stage of node i of the
 * backward part. */
static void stages(const cd_network_graph *g, const cd_node_cost *c, uint32_t *end,
                   cd_pipeline_stage *s, uint32_t *at, uint32_t n) {
    for (int forward = 1; forward >= 0; forward--) {
        balance(g, c, forward, end, n);
        for (uint32_t i = 0, k = 0; i < g->n_node; i++) {
            const cd_network_node *v = &g->node[i];
            while (k + 1 < n && i >= end[k]) k++;
            if (!in_pass(v, forward)) continue;
            at[i] = forward ? 0 : n - 1 - k;
            if (!forward) s[n - 1 - k].backward_s += node_s(g, c, i);
            else s[k].forward_s += node_s(g, c, i);
            if (forward && v->kind != CD_NODE_FREE && v->write_bytes >= 0)
                s[k].bytes = v->write_bytes;
        }
    }
}

/* The stage whose steps take longest: a step belongs to the stage that made its gradient. sum: (n)
 * zeros. */
static double slowest_step(const cd_network_graph *g, const cd_node_cost *c, uint32_t *at,
                           double *sum, uint32_t n) {
    double most = 0;
    for (uint32_t i = 0; i < g->n_node; i++) {
        const cd_network_node *v = &g->node[i];
        if (!v->repeat || !is_step(v)) continue;
        at[i] = 0;
        for (uint32_t k = 0; k < v->n_after; k++)
            if (at[g->after[v->first + k]] > at[i]) at[i] = at[g->after[v->first + k]];
        sum[at[i]] += node_s(g, c, i);
    }
    for (uint32_t k = 0; k < n; k++) most = fmax(most, sum[k]);
    return most;
}

/* Cuts the graph into stages of equal time and runs them with the plan's schedule. The optimizer's
 * steps come once, behind all micro-batches, and the slowest stage decides how long they take. */
static cdmpp_status pipeline(const cd_network_graph *g, const cd_node_cost *c,
                             const cd_parallel_plan *p, cd_arena *a, cd_parallel_result *out,
                             cdmpp_err *err) {
    cd_pipeline_stage *s = cd_arena_zalloc(a, p->n, sizeof *s);
    uint32_t *end = cd_arena_zalloc(a, p->n, sizeof *end),
             *at = cd_arena_zalloc(a, (size_t)g->n_node + 1, sizeof *at);
    double *step = cd_arena_zalloc(a, p->n, sizeof *step);
    cd_parallel_net net = {0};
    cd_replay r = {0};
    if (!s || !end || !at || !step) return CD_FAIL(err, ENOMEM, "stages");
    stages(g, c, end, s, at, p->n);
    const double last = slowest_step(g, c, at, step, p->n);
    for (uint32_t i = 0; i + 1 < p->n; i++) {
        out->sent_bytes += 2 * s[i].bytes * p->micro;
        out->sent_s += 2 * p->micro * send_s(s[i].bytes, p->link);
    }
    out->kept = cd_parallel_training_kept(p->schedule, 0, p->n, p->micro);
    out->closed_s = p->schedule == CD_PARALLEL_GPIPE
                        ? cd_parallel_training_pipeline_s(s, p->n, p->micro, p->link) + last
                        : (double)NAN;
    cdmpp_status st =
        cd_parallel_training_pipeline_net(s, p->n, p->micro, p->schedule, p->link, &net, err);
    if (!st) st = cd_replay_run(&net.net, &r, err);
    if (!st) out->replay_s = r.makespan_s + last;
    cd_replay_free(&r);
    cd_parallel_net_free(&net);
    return st;
}

static bool is_norm(const cd_network_node *n) {
    return n->question &&
           cd_library_op_kind_class(n->question->kind) == CD_LIBRARY_OP_CLASS_LAYERNORM;
}
/* Stays whole on every device: norms and the sums in front of them. */
static bool is_whole(const cd_network_node *n) {
    return n->question && (is_norm(n) || n->question->kind == CD_LIBRARY_OP_ADD) &&
           n->phase != CD_PHASE_UPDATE;
}

/* Between two norms products are cut: a sum of activations stands before every norm but the first,
 * and one the way back. */
static cdmpp_status tensor(const cd_network_graph *g, const cd_node_cost *c,
                           const cd_parallel_plan *p, cd_parallel_result *out, cdmpp_err *err) {
    bool first = true;
    out->closed_s = 0;
    for (uint32_t i = 0; i < g->n_node; i++) {
        const cd_network_node *v = &g->node[i];
        if (!v->repeat) continue;
        out->closed_s += is_whole(v) ? node_s(g, c, i) : node_s(g, c, i) / p->n;
        if (v->phase != CD_PHASE_FORWARD || !is_norm(v)) continue;
        if (!first) {
            out->sent_s +=
                2 * cd_parallel_training_ring_s(v->write_bytes, p->n, p->link) * (double)v->repeat;
            out->sent_bytes += 4 * (v->write_bytes - v->write_bytes / p->n) * v->repeat;
        }
        first = false;
    }
    if (first && p->n > 1)
        return CD_FAIL(err, ESCHEMA,
                       "network \"%.60s\" has no norms of library operators: where its products "
                       "can be cut is not known",
                       g->name);
    out->closed_s += out->sent_s;
    out->replay_s = out->closed_s;
    return CDMPP_OK;
}

cdmpp_status cd_parallel_training_of(const cd_network_graph *g, const cd_node_cost *c,
                                     const cd_parallel_plan *p, cd_parallel_result *out,
                                     cdmpp_err *err) {
    cd_arena a = {0};
    *out = (cd_parallel_result){0};
    if (p->n < 1 || p->micro < 1 || !(p->link.bytes_per_s > 0))
        return CD_FAIL(err, ERANGE, "%u devices, %u micro-batches", p->n, p->micro);
    cdmpp_status st = check(g, c, &out->one_s, err);
    if (!st && p->is == CD_PARALLEL_DATA) st = data(g, c, p, &a, out, err);
    else if (!st && p->is == CD_PARALLEL_PIPELINE) st = pipeline(g, c, p, &a, out, err);
    else if (!st) st = tensor(g, c, p, out, err);
    cd_arena_free(&a);
    return st;
}
