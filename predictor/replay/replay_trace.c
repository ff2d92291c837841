/* The replay as Trace Event Format: a process for each device and link, a thread for each worker, a
 * slice for each operator and copy. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "predictor/replay/replay.h"
#include "predictor/replay/replay_internal.h"

/* Results alive: on the device that made one from its start to the last reader's or copy's end, on
 * another from the copy's start to the last reader's end there; what nobody reads stays. */

typedef struct change {
    double t;
    uint32_t device;
    int64_t bytes; /* negative: set free */
} change;

static int by_time(const void *pa, const void *pb) {
    const change *a = pa, *b = pb;
    if (a->t != b->t) return a->t < b->t ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes); /* freed first */
}

/* End of the last reader of k's result on a device; negative: none there. */
static double last_reader(const cd_replay_sim *p, const cd_replay *r, uint32_t k, uint32_t device) {
    double end = -1;
    for (uint32_t j = p->first[k]; j < p->first[k + 1]; j++)
        if (p->n->op[p->to[j]].device == device) end = fmax(end, r->op[p->to[j]].end_s);
    return end;
}

/* Every result becomes two changes, at its start and at its end; sorted by time their running sum
 * is what is alive. At equal times what is freed comes first. */
cdmpp_status cd_replay_memory(const cd_replay_sim *p, cd_arena *scratch, cd_replay *out,
                              cdmpp_err *err) {
    const cd_replay_net *n = p->n;
    cd_arena_reset(scratch);
    out->peak = CD_NEWN(&out->arena, int64_t, (size_t)n->n_device + 1);
    double *until = CD_NEWN(scratch, double, (size_t)n->n_op + 1);
    change *c = CD_NEWN(scratch, change, 2 * ((size_t)n->n_op + out->n_copy) + 1);
    int64_t *now = CD_NEWN(scratch, int64_t, (size_t)n->n_device + 1);
    if (!out->peak || !until || !c || !now)
        return CD_FAIL(err, ENOMEM, "memory of %u operators", n->n_op);
    size_t m = 0;
    for (uint32_t k = 0; k < n->n_op; k++) until[k] = last_reader(p, out, k, n->op[k].device);
    for (uint32_t i = 0; i < out->n_copy; i++) {
        const cd_replay_copy *w = &out->copy[i];
        const uint32_t to = n->link[w->link].to;
        until[w->op] = fmax(until[w->op], w->end_s);
        c[m++] = (change){w->start_s, to, n->op[w->op].bytes};
        c[m++] = (change){last_reader(p, out, w->op, to), to, -n->op[w->op].bytes};
    }
    for (uint32_t k = 0; k < n->n_op; k++) {
        c[m++] = (change){out->op[k].start_s, n->op[k].device, n->op[k].bytes};
        if (until[k] >= 0) c[m++] = (change){until[k], n->op[k].device, -n->op[k].bytes};
    }
    qsort(c, m, sizeof *c, by_time);
    for (size_t i = 0; i < m; i++) {
        now[c[i].device] += c[i].bytes;
        if (now[c[i].device] > out->peak[c[i].device]) out->peak[c[i].device] = now[c[i].device];
    }
    return CDMPP_OK;
}

static int64_t nanoseconds(double s) { return (int64_t)llround(s * 1e9); }

/* Trace times are microseconds. */
static void put_time(cd_buf *b, const char *key, int64_t ns) {
    cd_buf_putf(b, ",\"%s\":%" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

static void put_text(cd_buf *b, const char *text) { cd_buf_put_json_str(b, text, strlen(text)); }

static void put_name(cd_buf *b, const char *what, size_t pid, size_t tid, const char *name) {
    cd_buf_putf(b,
                "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%zu,\"tid\":%zu,\"args\":{\"name\":", what,
                pid, tid);
    put_text(b, name);
    cd_buf_puts(b, "}},\n");
}

static void put_slice(cd_buf *b, const char *name, const char *kind, size_t pid, size_t tid,
                      double start, double end) {
    const int64_t from = nanoseconds(start), to = nanoseconds(end);
    cd_buf_puts(b, "{\"ph\":\"X\",\"name\":");
    put_text(b, name);
    cd_buf_putf(b, ",\"cat\":\"%s\",\"pid\":%zu,\"tid\":%zu", kind, pid, tid);
    put_time(b, "ts", from);
    put_time(b, "dur", to - from);
}

/* Names of processes and threads; links are processes behind the devices. */
static void put_tracks(cd_buf *b, const cd_replay_net *n) {
    char text[32];
    for (size_t d = 0; d < n->n_device; d++) {
        put_name(b, "process_name", d, 0, n->device[d].name);
        for (size_t w = 0; w < n->device[d].workers; w++) {
            snprintf(text, sizeof text, "worker %zu", w);
            put_name(b, "thread_name", d, w, text);
        }
    }
    for (size_t k = 0; k < n->n_link; k++) {
        cd_buf name = {0};
        cd_buf_putf(&name, "%s > %s", n->device[n->link[k].from].name,
                    n->device[n->link[k].to].name);
        b->oom |= name.oom;
        if (!name.oom) put_name(b, "process_name", n->n_device + k, 0, name.p);
        cd_buf_free(&name);
    }
}

/* The last event, which sorts the first process, is there so that every slice may end in a
 * comma. */
cdmpp_status cd_replay_trace(cd_buf *out, const cd_replay_net *n, const cd_replay *r,
                             cdmpp_err *err) {
    if (!(r->makespan_s < 4e9)) return CD_FAIL(err, ERANGE, "a replay of %g s", r->makespan_s);
    cd_buf_puts(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    put_tracks(out, n);
    for (uint32_t k = 0; k < n->n_op; k++) {
        put_slice(out, n->op[k].name, "op", n->op[k].device, r->op[k].worker, r->op[k].start_s,
                  r->op[k].end_s);
        cd_buf_putf(out, ",\"args\":{\"op\":%u,\"bytes\":%" PRId64 "}},\n", k, n->op[k].bytes);
    }
    for (uint32_t k = 0; k < r->n_copy; k++) {
        const cd_replay_copy *c = &r->copy[k];
        put_slice(out, n->op[c->op].name, "copy", (size_t)n->n_device + c->link, 0, c->start_s,
                  c->end_s);
        cd_buf_putf(out, ",\"args\":{\"op\":%u,\"bytes\":%" PRId64 "}},\n", c->op,
                    n->op[c->op].bytes);
    }
    cd_buf_puts(out, "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":0,\"tid\":0,\"args\":{"
                     "\"sort_index\":0}}\n]}\n");
    return out->oom ? CD_FAIL(err, ENOMEM, "trace of %u operators", n->n_op) : CDMPP_OK;
}
