/* store_print -- rows as records, CSV and JSON; what a store holds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "profiler/store/store_internal.h"

/* ---- records ---- */
static double cost_at(const cd_store_hit *h, uint32_t i) {
    double x;
    memcpy(&x, (const char *)h->costs + i * sizeof x, sizeof x);
    return x;
}

/* The record's text with costs as they are; the reader and the writer of records give it its
 * form. */
static void put_raw(cd_buf *b, const cd_store_hit *h) {
    const cd_store_row *r = &h->row;
    cd_buf_puts(b, "{\"i\":[[");
    cd_buf_put_json_str(b, r->workload_key.p, r->workload_key.n);
    cd_buf_puts(b, ",");
    cd_buf_put_json_str(b, r->target.p, r->target.n);
    if (r->target_tail.n > 2) cd_buf_puts(b, ",");
    if (r->target_tail.n > 2) cd_buf_put(b, r->target_tail.p + 1, r->target_tail.n - 2);
    cd_buf_puts(b, "],[[],");
    cd_buf_put(b, r->steps.p, r->steps.n);
    cd_buf_puts(b, "]],\"r\":[[");
    for (uint32_t i = 0; i < h->n_cost; i++) {
        if (i) cd_buf_puts(b, ",");
        cd_buf_put_json_real(b, cost_at(h, i));
    }
    if (!h->n_cost) cd_buf_put_json_real(b, r->error_no ? 1e10 : r->latency.mean_s);
    cd_buf_putf(b, "],%lld,", (long long)r->error_no);
    cd_buf_put_json_real(b, r->total_s);
    cd_buf_putf(b, ",%lld],\"v\":", (long long)r->timestamp);
    cd_buf_put_json_str(b, r->version.p, r->version.n);
    cd_buf_puts(b, "}");
}

cdmpp_status cd_store_put_record(cd_buf *out, cd_arena *scratch, const cd_store_hit *h,
                                 cdmpp_err *err) {
    cd_buf b = {0};
    cd_record rec;
    if (!h->row.has_steps || !h->row.version.n)
        return CD_FAIL(err, ENODATA, "measurement %lld was no record", (long long)h->id);
    put_raw(&b, h);
    cd_arena_reset(scratch);
    cdmpp_status st = CDMPP_OK;
    if (b.oom) st = CD_FAIL(err, ENOMEM, "record");
    if (!st) st = cd_record_read(scratch, b.p, b.n, &rec, err);
    if (!st) st = cd_record_write(out, &rec, err);
    cd_buf_free(&b);
    return st;
}

/* The shortest of 15 or 17 digits that reads back as the same number. */
static void put_real(cd_buf *b, double x) {
    char text[40];
    snprintf(text, sizeof text, "%.15g", x);
    if (isfinite(x) && strtod(text, NULL) == x && !strchr(text, ',')) cd_buf_puts(b, text);
    else cd_buf_put_json_real(b, x);
}

/* ---- CSV ---- */
static void put_csv(cd_buf *b, cd_str s) { cd_csv_fields_put_bare(b, s.p, s.n); }

static void store_csv_header(cd_buf *out) {
    cd_buf_puts(out, "id,device,target,operator,workload_key,shape,dtype,layout,flop,error_no,min_"
                     "s,median_s,mean_s,std_s,cv,n,flags,"
                     "total_s,timestamp,host,cpu,os,compiler,governor,tool,source,line,steps\n");
}

static void put_flags(cd_buf *b, uint32_t flags) {
    bool first = true;
    for (int k = 0; k < 4; k++) {
        if (!(flags >> k & 1)) continue;
        const cd_str w = cd_enum_names_at(CD_STORE_FLAGS, k);
        if (!first) cd_buf_puts(b, "|");
        cd_buf_put(b, w.p, w.n);
        first = false;
    }
}

static void put_times(cd_buf *b, const cd_store_row *r) {
    const double t[] = {r->latency.min_s, r->latency.median_s, r->latency.mean_s, r->latency.std_s,
                        r->latency.cv};
    for (size_t i = 0; i < 5; i++) {
        if (!r->error_no) put_real(b, t[i]);
        cd_buf_puts(b, ",");
    }
}

/* Columns in the order of store_csv_header. */
void cd_store_put_csv(cd_buf *out, const cd_store_hit *h) {
    const cd_store_row *r = &h->row;
    const cd_str text[] = {r->device, r->target, r->operator_name, r->workload_key,
                           r->shape,  r->dtype,  r->layout};
    const cd_str where[] = {h->env.host,     h->env.cpu,  h->env.os, h->env.compiler,
                            h->env.governor, h->env.tool, h->source};
    cd_buf_putf(out, "%lld,", (long long)h->id);
    for (size_t i = 0; i < 7; i++) put_csv(out, text[i]), cd_buf_puts(out, ",");
    if (r->flop >= 0) put_real(out, r->flop);
    cd_buf_putf(out, ",%lld,", (long long)r->error_no);
    put_times(out, r);
    cd_buf_putf(out, "%u,", r->latency.n);
    put_flags(out, r->latency.flags);
    cd_buf_puts(out, ",");
    put_real(out, r->total_s);
    cd_buf_putf(out, ",%lld,", (long long)r->timestamp);
    for (size_t i = 0; i < 7; i++) put_csv(out, where[i]), cd_buf_puts(out, ",");
    if (r->line) cd_buf_putf(out, "%ld", r->line);
    cd_buf_puts(out, ",");
    put_csv(out, r->steps);
    cd_buf_puts(out, "\n");
}

/* ---- JSON ---- */
static void member(cd_json_writer *w, const char *key, cd_str s) {
    cd_json_write_member_strn(w, key, s.p, s.n);
}

/* The text is JSON already. */
static void member_raw(cd_json_writer *w, const char *key, cd_str json) {
    cd_json_write_key(w, key);
    cd_json_write_raw(w, json.p, json.n);
}

static void member_real(cd_json_writer *w, const char *key, double x) {
    cd_json_write_key(w, key);
    cd_json_write_raw(w, "", 0); /* tells the writer that a value follows */
    put_real(w->out, x);
}

static void write_env(cd_json_writer *w, const cd_store_hit *h) {
    static const char *const name[] = {"host",     "cpu",  "os",   "compiler",
                                       "governor", "tool", "extra"};
    const cd_str env[] = {h->env.host,     h->env.cpu,  h->env.os,   h->env.compiler,
                          h->env.governor, h->env.tool, h->env.extra};
    cd_json_write_key(w, "environment");
    cd_json_write_open(w, '{');
    for (size_t i = 0; h->row.env && i < 7; i++)
        if (env[i].n) (i == 6 ? member_raw : member)(w, name[i], env[i]);
    cd_json_write_close(w, '}');
}

static void write_latency(cd_json_writer *w, const cd_store_latency *l) {
    static const char *const name[] = {"min_s", "median_s", "mean_s", "std_s", "cv"};
    const double t[] = {l->min_s, l->median_s, l->mean_s, l->std_s, l->cv};
    cd_json_write_open(w, '{');
    for (size_t i = 0; i < 5; i++) member_real(w, name[i], t[i]);
    cd_json_write_member_int(w, "n", l->n);
    cd_json_write_key(w, "flags");
    cd_json_write_open(w, '[');
    for (int k = 0; k < 4; k++) {
        const cd_str flag = cd_enum_names_at(CD_STORE_FLAGS, k);
        if (l->flags >> k & 1) cd_json_write_strn(w, flag.p, flag.n);
    }
    cd_json_write_close(w, ']');
    cd_json_write_close(w, '}');
}

void cd_store_put_json(cd_buf *out, const cd_store_hit *h) {
    const cd_store_row *r = &h->row;
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_json_write_member_int(&w, "id", h->id);
    member(&w, "device", r->device);
    member(&w, "target", r->target);
    member(&w, "operator", r->operator_name);
    member(&w, "workload_key", r->workload_key);
    member_raw(&w, "shape", r->shape);
    member(&w, "dtype", r->dtype);
    member(&w, "layout", r->layout);
    member_real(&w, "flop", r->flop >= 0 ? r->flop : (double)NAN);
    cd_json_write_member_int(&w, "error_no", r->error_no);
    cd_json_write_key(&w, "latency");
    if (r->error_no) cd_json_write_null(&w);
    else write_latency(&w, &r->latency);
    member_real(&w, "total_s", r->total_s);
    cd_json_write_member_int(&w, "timestamp", r->timestamp);
    write_env(&w, h);
    member(&w, "source", h->source);
    cd_json_write_member_int(&w, "line", r->line);
    member_raw(&w, "steps", r->has_steps ? r->steps : (cd_str){"null", 4});
    cd_json_write_close(&w, '}');
}

/* ---- what is in a store ---- */

/* A query whose only column is a whole JSON value, appended. */
static cdmpp_status put_query(cd_buf *out, cd_store *s, const char *name, const char *sql,
                              cdmpp_err *err) {
    sqlite3_stmt *q = NULL;
    if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK)
        return cd_store_fail(s, "query", err);
    const bool row = sqlite3_step(q) == SQLITE_ROW;
    const cd_str v = cd_store_text(q, 0);
    cd_buf_putf(out, ",\"%s\":", name);
    cd_buf_put(out, v.p, v.n);
    sqlite3_finalize(q);
    return row ? CDMPP_OK : cd_store_fail(s, "query", err);
}

/* Each member is one query whose only row is a JSON value. */
cdmpp_status cd_store_put_stats(cd_buf *out, cd_store *s, cdmpp_err *err) {
    static const struct {
        const char *name, *sql;
    } part[] = {
        {"measurements", "SELECT count(*) FROM measurement"},
        {"errors", "SELECT count(*) FROM measurement WHERE error_no<>0"},
        {"workloads", "SELECT count(*) FROM workload"},
        {"schedules", "SELECT count(*) FROM schedule"},
        {"environments", "SELECT count(*) FROM environment"},
        {"devices",
         "SELECT json_group_array(json_object('device',name,'measurements',n,'errors',bad)) FROM "
         "(SELECT d.name, count(*) n,"
         " sum(m.error_no<>0) bad FROM measurement m JOIN device d ON d.id=m.device GROUP BY d.id "
         "ORDER BY d.id)"},
        {"operators",
         "SELECT json_group_array(json_object('operator',name,'workloads',w,'measurements',n)) "
         "FROM (SELECT o.name,"
         " count(DISTINCT w.id) w, count(*) n FROM measurement m JOIN workload w ON "
         "w.id=m.workload JOIN operator o"
         " ON o.id=w.operator GROUP BY o.id ORDER BY o.id)"},
        {"sources", "SELECT "
                    "json_group_array(json_object('path',path,'form',form,'lines',lines,'done',"
                    "json(iif(done,'true','false'))))"
                    " FROM (SELECT * FROM source ORDER BY id)"},
    };
    CD_TRY(cd_store_commit(s, err));
    cd_buf_putf(out, "{\"version\":%d", CD_STORE_VERSION);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        CD_TRY(put_query(out, s, part[i].name, part[i].sql, err));
    cd_buf_puts(out, "}");
    return out->oom ? CD_FAIL(err, ENOMEM, "statistics") : CDMPP_OK;
}

/* Rows of a query, each as one line of its columns. */
static cdmpp_status put_lines(cd_buf *out, cd_store *s, const char *sql, cdmpp_err *err) {
    sqlite3_stmt *q = NULL;
    int rc = SQLITE_ROW;
    if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK)
        return cd_store_fail(s, "query", err);
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
        const cd_str v = cd_store_text(q, 0);
        cd_buf_put(out, v.p, v.n);
        cd_buf_puts(out, "\n");
    }
    sqlite3_finalize(q);
    return rc == SQLITE_DONE ? CDMPP_OK : cd_store_fail(s, "query", err);
}

cdmpp_status cd_store_put_report(cd_buf *out, cd_store *s, cdmpp_err *err) {
    static const char *const sql[] = {
        "SELECT printf('%d measurements (%d failed) of %d workloads and %d schedules, %d sources', "
        "count(*), ifnull(sum(error_no<>0),0),"
        " (SELECT count(*) FROM workload), (SELECT count(*) FROM schedule), (SELECT count(*) FROM "
        "source)) FROM measurement",
        "SELECT printf('%9d  device %s', count(*), iif(d.name='','(not known)',d.name)) FROM "
        "measurement m JOIN device d ON d.id=m.device"
        " GROUP BY d.id ORDER BY d.id",
        "SELECT printf('%9d  operator %s, %d workloads', count(*), o.name, count(DISTINCT w.id)) "
        "FROM measurement m JOIN workload w ON"
        " w.id=m.workload JOIN operator o ON o.id=w.operator GROUP BY o.id ORDER BY count(*) DESC, "
        "o.id LIMIT 30",
    };
    CD_TRY(cd_store_commit(s, err));
    for (size_t i = 0; i < sizeof sql / sizeof *sql; i++) CD_TRY(put_lines(out, s, sql[i], err));
    return out->oom ? CD_FAIL(err, ENOMEM, "report") : CDMPP_OK;
}

/* Prints what queries of a store find. Text is written in pieces of a mebibyte, because a store may
 * hold millions of workloads; JSON is collected, since the caller puts it into an envelope. */

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
    if (form == CD_STORE_EXPORT_CSV) store_csv_header(&x.b);
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
