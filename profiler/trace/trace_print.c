/* trace_print -- the summary for people and as JSON. */
#include <math.h>

#include "profiler/trace/trace_combine.h"

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
