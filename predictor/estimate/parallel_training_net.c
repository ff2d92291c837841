/* Data parallel and pipelined training as nets to replay. */
#include <math.h>

#include "predictor/estimate/estimate.h"

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
