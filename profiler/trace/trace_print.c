/* trace_print -- the summary for people and as JSON. */
#include <math.h>
#include <stdlib.h>

#include "profiler/trace/trace_combine.h"
#include "profiler/trace/trace_internal.h"

/* trace_link -- which operator or range launched what.
 *
 *   launch ─ External id ─> operator
 *   launch ─ correlation ─> call ── External id ──> operator
 *                            └───── same thread, around its start ─> innermost operator or range */

typedef struct key {
    int64_t id;
    uint32_t event;
} link_key;

typedef struct linking {
    cd_trace *t;
    link_key *op, *call;    /* (n_op), (n_call) sorted by id */
    uint32_t *host, *stack; /* (n_host) by thread, start, the longer one first */
    size_t n_op, n_call, n_host;
} linking;

static int64_t end_of(const cd_trace_event *e) { return e->start_ns + llround(e->time_s * 1e9); }

static int by_start(const void *a, const void *b) {
    const cd_trace_event *x = a, *y = b;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static int by_id(const void *a, const void *b) {
    const link_key *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

static int by_thread(const void *a, const void *b, void *events) {
    const cd_trace_event *e = events, *x = &e[*(const uint32_t *)a], *y = &e[*(const uint32_t *)b];
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    if (x->time_s != y->time_s) return x->time_s > y->time_s ? -1 : 1;
    return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind) : (x > y) - (x < y);
}

/* The first event with that id; CD_TRACE_NONE. */
static uint32_t find(const link_key *k, size_t n, int64_t id) {
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (k[mid].id < id) lo = mid + 1;
        else hi = mid;
    }
    return id >= 0 && lo < n && k[lo].id == id ? k[lo].event : CD_TRACE_NONE;
}

/* Host events know the innermost operator or range around them. */
static void nest(linking *l) {
    cd_trace_event *e = l->t->event;
    size_t depth = 0;
    for (size_t i = 0; i < l->n_host; i++) {
        cd_trace_event *x = &e[l->host[i]];
        if (i && e[l->host[i - 1]].thread != x->thread) depth = 0;
        while (depth && end_of(&e[l->stack[depth - 1]]) <= x->start_ns) depth--;
        x->owner = depth ? l->stack[depth - 1] : CD_TRACE_NONE;
        if (x->kind != CD_TRACE_CALL) l->stack[depth++] = l->host[i];
    }
}

static void own(const linking *l, cd_trace_event *e) {
    const uint32_t call = find(l->call, l->n_call, e->link);
    if (call != CD_TRACE_NONE) e->called_ns = l->t->event[call].start_ns;
    e->owner = find(l->op, l->n_op, e->external);
    if (e->owner != CD_TRACE_NONE || call == CD_TRACE_NONE) return;
    const cd_trace_event *c = &l->t->event[call];
    const uint32_t said = find(l->op, l->n_op, c->external);
    e->owner = said != CD_TRACE_NONE ? said : c->owner;
}

static void gather(linking *l) {
    for (size_t i = 0; i < l->t->n; i++) {
        const cd_trace_event *e = &l->t->event[i];
        if (e->kind < CD_TRACE_OP || e->start_ns == CD_TRACE_UNTIMED) continue;
        l->host[l->n_host++] = (uint32_t)i;
        if (e->kind == CD_TRACE_OP && e->external >= 0)
            l->op[l->n_op++] = (link_key){e->external, (uint32_t)i};
        if (e->kind == CD_TRACE_CALL && e->link >= 0)
            l->call[l->n_call++] = (link_key){e->link, (uint32_t)i};
    }
    qsort(l->op, l->n_op, sizeof *l->op, by_id);
    qsort(l->call, l->n_call, sizeof *l->call, by_id);
    qsort_r(l->host, l->n_host, sizeof *l->host, by_thread, l->t->event);
}

cdmpp_status cd_trace_link(cd_trace *t, cdmpp_err *err) {
    const size_t n = t->n + 1;
    linking l = {.t = t,
                 .op = cd_mem_zalloc(n, sizeof *l.op),
                 .call = cd_mem_zalloc(n, sizeof *l.call),
                 .host = cd_mem_zalloc(n, sizeof *l.host),
                 .stack = cd_mem_zalloc(n, sizeof *l.stack)};
    const bool good = l.op && l.call && l.host && l.stack && t->n < CD_TRACE_NONE;
    if (good) {
        if (t->n) qsort(t->event, t->n, sizeof *t->event, by_start);
        gather(&l);
        nest(&l);
        for (size_t i = 0; i < t->n; i++)
            if (t->event[i].kind < CD_TRACE_OP) own(&l, &t->event[i]);
    }
    cd_mem_free(l.op);
    cd_mem_free(l.call);
    cd_mem_free(l.host);
    cd_mem_free(l.stack);
    return good ? CDMPP_OK : CD_FAIL(err, ENOMEM, "links of a trace");
}

static const char *const kind_word[] = {"kernel", "copy", "fill", "operator", "range", "call"};

/* ---- text ---- */
static void put_seconds(cd_buf *b, double s) {
    cd_buf_puts(b, " ");
    if (isfinite(s)) cd_units_put_seconds_wide(b, s);
    else cd_buf_putf(b, "%9s", "-");
}

static void put_percent(cd_buf *b, double share) {
    if (isfinite(share)) cd_buf_putf(b, " %6.1f %%", 100 * share);
    else cd_buf_putf(b, " %8s", "-");
}

static void put_runs(cd_buf *b, const cd_trace_runs *r) {
    const cd_trace_run *k = &r->run[r->first];
    cd_buf_putf(b, "%zu of %zu repeats (%s), %zu launches each", r->n_kept, r->n_run,
                k->trace->form, k->n);
    if (isfinite(r->wall_s)) {
        cd_buf_puts(b, ", ");
        cd_units_put_seconds(b, r->wall_s);
        cd_buf_puts(b, " from the first to the end of the last");
    }
    cd_buf_puts(b, "\n");
    if (k->trace->inferences > 0)
        cd_buf_putf(b, "figures are those of one inference, means of %.0f\n", k->trace->inferences);
}

static void put_devices(cd_buf *b, const cd_trace_runs *r) {
    if (!r->n_device) {
        cd_buf_puts(b, "\nno time line: the file has no starts of launches\n");
        return;
    }
    cd_buf_putf(b, "\n%-32s %8s %8s %9s %9s %8s %9s %9s %8s %9s\n", "device", "streams", "kernels",
                "span", "busy", "of it", "copying", "idle", "gaps", "median");
    for (size_t i = 0; i < r->n_device; i++) {
        const cd_trace_device *d = &r->device[i];
        cd_buf_putf(b, "%-28.28s %3d %8u %8.6g", *d->name ? d->name : "?", (int)d->unit,
                    (unsigned)d->stream, d->n);
        put_seconds(b, d->span_s);
        put_seconds(b, d->busy_s);
        put_percent(b, d->busy_s / d->span_s);
        put_seconds(b, d->copy_s);
        put_seconds(b, d->idle_s);
        cd_buf_putf(b, " %8.6g", d->gaps);
        put_seconds(b, d->gap_s);
        cd_buf_puts(b, "\n");
        for (size_t k = 0; d->stream > 1 && k < r->n_stream; k++) {
            if (r->stream[k].device != i) continue;
            cd_buf_putf(b, "  stream %-23lld %8s %8.6g %9s", (long long)r->stream[k].id, "",
                        r->stream[k].n, "");
            put_seconds(b, r->stream[k].busy_s);
            put_percent(b, r->stream[k].busy_s / d->span_s);
            cd_buf_puts(b, "\n");
        }
    }
}

static void put_groups(cd_buf *b, const cd_trace_group *g, size_t n, const char *title,
                       size_t limit) {
    if (!n) return;
    const size_t shown = limit && limit < n ? limit : n;
    cd_buf_putf(b, "\n%-44s %9s %9s %8s %9s %9s %9s %9s %8s\n", title, "launches", "total", "share",
                "mean", "median", "min", "max", "spread");
    for (size_t i = 0; i < shown; i++) {
        cd_buf_putf(b, "%-44.44s %9.6g", g[i].name, g[i].n);
        put_seconds(b, g[i].total_s);
        put_percent(b, g[i].share);
        put_seconds(b, g[i].mean_s);
        put_seconds(b, g[i].median_s);
        put_seconds(b, g[i].min_s);
        put_seconds(b, g[i].max_s);
        put_percent(b, g[i].spread);
        if (*g[i].shape && g[i].inputs) cd_buf_putf(b, "  %.60s", g[i].shape);
        cd_buf_puts(b, "\n");
    }
    if (shown < n) cd_buf_putf(b, "... and %zu more (--limit)\n", n - shown);
}

void cd_trace_put_text(cd_buf *b, const cd_trace_runs *r, size_t limit) {
    size_t kernels = 0;
    while (kernels < r->n_kernel && r->kernel[kernels].kind == CD_TRACE_KERNEL) kernels++;
    put_runs(b, r);
    put_devices(b, r);
    put_groups(b, r->kernel, kernels, "kernel", limit);
    put_groups(b, r->kernel + kernels, r->n_kernel - kernels, "copy or fill", limit);
    put_groups(b, r->op, r->n_op, "operator", limit);
    if (r->n_op && r->unmatched > 0) {
        cd_buf_putf(b, "%.6g launches of kernels (", r->unmatched);
        cd_units_put_seconds(b, r->unmatched_s);
        cd_buf_puts(b, ") belong to no operator\n");
    }
}

/* ---- JSON ---- */
static void json_runs(cd_json_writer *w, const cd_trace_runs *r) {
    cd_json_write_key(w, "repeats");
    cd_json_write_open(w, '[');
    for (size_t i = 0; i < r->n_run; i++) {
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "file", r->run[i].path);
        cd_json_write_member_str(w, "range", r->run[i].range);
        cd_json_write_member_str(w, "form", r->run[i].trace->form);
        cd_json_write_member_int(w, "launches", (int64_t)r->run[i].n);
        if (r->run[i].trace->inferences > 0)
            cd_json_write_member_real(w, "inferences", r->run[i].trace->inferences);
        cd_json_write_member_bool(w, "kept", !r->run[i].why);
        if (r->run[i].why) cd_json_write_member_str(w, "reason", r->run[i].why);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
}

static void json_devices(cd_json_writer *w, const cd_trace_runs *r) {
    cd_json_write_key(w, "devices");
    cd_json_write_open(w, '[');
    for (size_t i = 0; i < r->n_device; i++) {
        const cd_trace_device *d = &r->device[i];
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "name", d->name);
        cd_json_write_member_int(w, "number", d->unit);
        cd_json_write_member_real(w, "kernels", d->n);
        cd_json_write_member_real(w, "span_s", d->span_s);
        cd_json_write_member_real(w, "busy_s", d->busy_s);
        cd_json_write_member_real(w, "utilisation", d->busy_s / d->span_s);
        cd_json_write_member_real(w, "kernel_s", d->kernel_s);
        cd_json_write_member_real(w, "copy_s", d->copy_s);
        cd_json_write_member_real(w, "idle_s", d->idle_s);
        cd_json_write_member_real(w, "gaps", d->gaps);
        cd_json_write_member_real(w, "median_gap_s", d->gap_s);
        cd_json_write_key(w, "streams");
        cd_json_write_open(w, '[');
        for (size_t k = 0; k < r->n_stream; k++) {
            if (r->stream[k].device != i) continue;
            cd_json_write_open(w, '{');
            cd_json_write_member_int(w, "stream", r->stream[k].id);
            cd_json_write_member_real(w, "launches", r->stream[k].n);
            cd_json_write_member_real(w, "busy_s", r->stream[k].busy_s);
            cd_json_write_close(w, '}');
        }
        cd_json_write_close(w, ']');
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
}

static void json_groups(cd_json_writer *w, const char *key, const cd_trace_group *g, size_t n) {
    cd_json_write_key(w, key);
    cd_json_write_open(w, '[');
    for (size_t i = 0; i < n; i++) {
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "name", g[i].name);
        cd_json_write_member_str(w, "kind", kind_word[g[i].kind]);
        if (*g[i].shape) {
            cd_json_write_key(w, g[i].inputs ? "inputs" : "launch");
            cd_json_write_raw(w, g[i].shape, strlen(g[i].shape));
        }
        cd_json_write_member_real(w, "launches", g[i].n);
        cd_json_write_member_real(w, "total_s", g[i].total_s);
        cd_json_write_member_real(w, "share", g[i].share);
        cd_json_write_member_real(w, "mean_s", g[i].mean_s);
        cd_json_write_member_real(w, "median_s", g[i].median_s);
        cd_json_write_member_real(w, "min_s", g[i].min_s);
        cd_json_write_member_real(w, "max_s", g[i].max_s);
        cd_json_write_member_real(w, "spread", g[i].spread);
        if (g[i].kind == CD_TRACE_COPY || g[i].kind == CD_TRACE_SET)
            cd_json_write_member_real(w, "bytes", g[i].bytes);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
}

/* Kernels that no operator launched, each name once with its launches. */
static void json_unmatched(cd_json_writer *w, const cd_trace_runs *r) {
    cd_json_write_key(w, "unmatched");
    cd_json_write_open(w, '{');
    cd_json_write_member_real(w, "launches", r->unmatched);
    cd_json_write_member_real(w, "total_s", r->unmatched_s);
    cd_json_write_key(w, "kernels");
    cd_json_write_open(w, '[');
    for (size_t i = 0; i < r->n_step; i++)
        if (!*r->step[i].op && r->step[i].kind == CD_TRACE_KERNEL)
            cd_json_write_str(w, r->step[i].name);
    cd_json_write_close(w, ']');
    cd_json_write_close(w, '}');
}

void cd_trace_put_json(cd_buf *b, const cd_trace_runs *r) {
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '{');
    json_runs(&w, r);
    cd_json_write_member_int(&w, "kept", (int64_t)r->n_kept);
    cd_json_write_member_real(&w, "span_s", r->wall_s);
    json_devices(&w, r);
    json_groups(&w, "kernels", r->kernel, r->n_kernel);
    json_groups(&w, "operators", r->op, r->n_op);
    json_unmatched(&w, r);
    cd_json_write_close(&w, '}');
}
