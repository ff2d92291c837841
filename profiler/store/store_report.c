/* Prints what queries of a store find. Text is written in pieces of a mebibyte, because a store may
 * hold millions of workloads; JSON is collected, since the caller puts it into an envelope. */
#include "profiler/store/store_internal.h"

#include <math.h>
#include <string.h>

#include "base/io/io.h"

enum { FLUSH_BYTES = 1 << 20 };

typedef struct {
    const cd_store_report_options *o;
    cd_buf *b;
    FILE *to;
    uint64_t n; /* printed so far */
} sink;

/* Write the buffer out once it holds `from` bytes. */
static cdmpp_status flush(cd_buf *b, FILE *to, size_t from, cdmpp_err *err) {
    if (b->oom) return CD_FAIL(err, ENOMEM, "output");
    if (b->n < from) return CDMPP_OK;
    if (b->n && fwrite(b->p, 1, b->n, to) != b->n) return CD_FAIL(err, EIO, "cannot write");
    cd_buf_clear(b);
    return CDMPP_OK;
}

/* ---- workloads ---- */
static void put_work_line(sink *k, const cd_store_work *w) {
    cd_buf *b = k->b;
    if (!k->n++) cd_buf_puts(b, "   best, ms  measured  failed  devices  operator, workload\n");
    if (isfinite(w->best_s)) cd_buf_putf(b, "%11.6g", 1e3 * w->best_s);
    else cd_buf_puts(b, "          -");
    cd_buf_putf(b, "%10llu%8llu%9llu  %.*s  %.*s\n", (unsigned long long)w->n,
                (unsigned long long)w->n_error, (unsigned long long)w->n_device,
                (int)w->operator_name.n, w->operator_name.p, (int)w->key.n, w->key.p);
}

static void put_work_json(sink *k, const cd_store_work *work) {
    cd_json_writer w = {.out = k->b, .comma = k->n++ > 0};
    cd_json_write_open(&w, '{');
    cd_json_write_member_strn(&w, "operator", work->operator_name.p, work->operator_name.n);
    cd_json_write_member_strn(&w, "workload_key", work->key.p, work->key.n);
    cd_json_write_member_strn(&w, "dtype", work->dtype.p, work->dtype.n);
    cd_json_write_member_strn(&w, "layout", work->layout.p, work->layout.n);
    cd_json_write_key(&w, "shape");
    cd_json_write_raw(&w, work->shape.p, work->shape.n); /* JSON already */
    cd_json_write_member_real(&w, "flop", work->flop >= 0 ? work->flop : (double)NAN);
    cd_json_write_member_int(&w, "measured", (int64_t)work->n);
    cd_json_write_member_int(&w, "errors", (int64_t)work->n_error);
    cd_json_write_member_int(&w, "devices", (int64_t)work->n_device);
    cd_json_write_member_real(&w, "best_s", work->best_s);
    cd_json_write_close(&w, '}');
}

static cdmpp_status on_work(void *ctx, const cd_store_work *w, cdmpp_err *err) {
    sink *k = ctx;
    (k->o->json ? put_work_json : put_work_line)(k, w);
    return k->o->json ? CDMPP_OK : flush(k->b, k->to, FLUSH_BYTES, err);
}

/* ---- measurements ---- */

/* distance below 0: there is no such column. */
static void put_hit_line(sink *k, const cd_store_hit *h, double distance) {
    const cd_store_row *r = &h->row;
    cd_buf *b = k->b;
    if (!k->n++)
        cd_buf_puts(b, distance < 0
                           ? " median, ms  cv, %  device, operator, shape, from\n"
                           : "  octaves  median, ms  cv, %  device, operator, shape, from\n");
    if (distance >= 0) cd_buf_putf(b, "%9.3f ", distance);
    if (r->error_no) cd_buf_putf(b, " error %-4lld", (long long)r->error_no);
    else cd_buf_putf(b, "%11.6g", 1e3 * r->latency.median_s);
    /* a mean of a summary has none */
    const bool spread = r->latency.cv > 0 || !(r->latency.flags & CD_STORE_SUMMARY);
    if (r->latency.n > 1 && !r->error_no && spread) cd_buf_putf(b, "%7.1f", 100 * r->latency.cv);
    else cd_buf_puts(b, "      -");
    cd_buf_putf(b, "  %.*s  %.*s  %.*s", (int)r->device.n, r->device.p, (int)r->operator_name.n,
                r->operator_name.p, (int)r->shape.n, r->shape.p);
    if (h->source.n) cd_buf_putf(b, "  %.*s:%ld", (int)h->source.n, h->source.p, r->line);
    cd_buf_puts(b, "\n");
    if (k->o->steps && r->has_steps) cd_buf_putf(b, "    %.*s\n", (int)r->steps.n, r->steps.p);
}

static cdmpp_status on_best(void *ctx, const cd_store_hit *h, cdmpp_err *err) {
    sink *k = ctx;
    if (!k->o->json) {
        put_hit_line(k, h, -1);
        return flush(k->b, k->to, FLUSH_BYTES, err);
    }
    if (k->n++) cd_buf_puts(k->b, ",");
    cd_store_put_json(k->b, h);
    return CDMPP_OK;
}

static cdmpp_status on_near(void *ctx, const cd_store_near *n, cdmpp_err *err) {
    sink *k = ctx;
    if (!k->o->json) {
        put_hit_line(k, &n->hit, n->distance);
        return flush(k->b, k->to, FLUSH_BYTES, err);
    }
    cd_buf_puts(k->b, k->n++ ? ",{\"distance\":" : "{\"distance\":");
    cd_buf_put_json_real(k->b, n->distance);
    cd_buf_putf(k->b, ",\"rank\":%u,\"measurement\":", n->rank);
    cd_store_put_json(k->b, &n->hit);
    cd_buf_puts(k->b, "}");
    return CDMPP_OK;
}

cdmpp_status cd_store_report(cd_store *s, const cd_store_filter *filter,
                             const cd_store_report_options *o, FILE *to, cd_buf *b,
                             cdmpp_err *err) {
    sink k = {o, b, to, 0};
    cd_store_filter f = *filter;
    cdmpp_status st;
    f.best_first = o->kind == CD_STORE_REPORT_BEST;
    if (o->json) cd_buf_puts(b, "[");
    if (o->kind == CD_STORE_REPORT_LIST) st = cd_store_workloads(s, &f, on_work, &k, err);
    else if (o->kind == CD_STORE_REPORT_BEST) st = cd_store_query(s, &f, on_best, &k, err);
    else st = cd_store_find_near(s, &f, o->shape, o->each, on_near, &k, err);
    if (o->json) cd_buf_puts(b, "]");
    else if (!st) st = flush(b, to, 0, err);
    return st;
}

void cd_store_put_tally(cd_buf *b, const cd_store_tally *t, bool json) {
    const unsigned long long files = t->files, lines = t->lines, added = t->added, known = t->known,
                             bad = t->bad, skipped = t->skipped_lines, empty = t->empty;
    if (json) {
        cd_buf_putf(b,
                    "{\"files\":%llu,\"lines\":%llu,\"added\":%llu,\"known\":%llu,\"bad\":%llu,"
                    "\"skipped_lines\":%llu,\"empty\":%llu}",
                    files, lines, added, known, bad, skipped, empty);
        return;
    }
    cd_buf_putf(b, "%llu files, %llu lines: %llu added, %llu known, %llu bad\n", files, lines,
                added, known, bad);
    if (skipped) cd_buf_putf(b, "%llu lines were there already\n", skipped);
    if (empty) cd_buf_putf(b, "%llu launches of 0 s left out\n", empty);
}

/* ---- export ---- */
typedef struct {
    cd_store_export_form form;
    const volatile sig_atomic_t *stop;
    cd_buf b;
    FILE *to;
    cd_arena scratch;
    size_t skipped;
} exporter;

static cdmpp_status on_export(void *ctx, const cd_store_hit *h, cdmpp_err *err) {
    exporter *x = ctx;
    if (x->form == CD_STORE_EXPORT_CSV) {
        cd_store_put_csv(&x->b, h);
    } else if (x->form == CD_STORE_EXPORT_JSON) {
        cd_store_put_json(&x->b, h);
        cd_buf_puts(&x->b, "\n");
    } else {
        const cdmpp_status st = cd_store_put_record(&x->b, &x->scratch, h, err);
        /* it came from a table or a trace: there is no schedule */
        if (st == CDMPP_ENODATA) x->skipped++;
        else if (st) return st;
    }
    if (*x->stop) return CD_FAIL(err, EINTERRUPTED, "stopped");
    return flush(&x->b, x->to, FLUSH_BYTES, err);
}

/* Through a temporary file beside the real one, which replaces it only after the last byte was
 * written. */
cdmpp_status cd_store_export(cd_store *s, const cd_store_filter *f, cd_store_export_form form,
                             const char *path, const volatile sig_atomic_t *stop, size_t *skipped,
                             cdmpp_err *err) {
    exporter x = {.form = form, .stop = stop, .to = stdout};
    char *temp = NULL;
    cdmpp_status st = CDMPP_OK;
    if (path && strcmp(path, "-") != 0) {
        CD_TRY(cd_file_temp(path, &temp, err));
        x.to = fopen(temp, "wb");
        if (!x.to) st = cd_err_at(err, CD_FAIL(err, EIO, "cannot write"), path, 0);
    }
    if (form == CD_STORE_EXPORT_CSV) cd_store_csv_header(&x.b);
    if (!st) st = cd_store_query(s, f, on_export, &x, err);
    if (!st) st = flush(&x.b, x.to, 0, err);
    if (temp && x.to && fclose(x.to) && !st) st = CD_FAIL(err, EIO, "cannot write %s", path);
    if (temp && st) cd_file_discard(temp);
    else if (temp) st = cd_file_publish(temp, path, err);
    cd_buf_free(&x.b);
    cd_arena_free(&x.scratch);
    *skipped = x.skipped;
    return st;
}
