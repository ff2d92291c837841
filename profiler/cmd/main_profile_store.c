/* Mode "store" of cdmpp-profile: a store of measurements. */
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "base/cli/cli.h"
#include "base/text/text.h"
#include "profiler/cmd/main_profile.h"
#include "profiler/store/store.h"

#define VERBS "import|list|best|near|export|stats"
typedef enum { IMPORT, LIST, BEST, NEAR, EXPORT, STATS } verb;
enum { BEST_LIMIT = 10, FLUSH_BYTES = 1 << 20 };

static int verb_of(const cd_main_profile *o) {
    const char *w = o->operand.n ? o->operand.v[0] : "";
    return cd_enum_names_find(VERBS, (cd_str){w, strlen(w)});
}

cdmpp_status cd_main_profile_store_check(const cd_main_profile *o, cdmpp_err *err) {
    const int v = verb_of(o);
    if (v < 0) return CD_FAIL(err, EUSAGE, "store: expected one of %s, found '%.60s'", VERBS, o->operand.n ? o->operand.v[0] : "");
    if (!o->store) return CD_FAIL(err, EUSAGE, "--store is missing");
    if (v == IMPORT && o->operand.n < 2) return CD_FAIL(err, EUSAGE, "nothing to import");
    if (v != IMPORT && o->operand.n > 1) return CD_FAIL(err, EUSAGE, "store: unexpected '%.60s'", o->operand.v[1]);
    if (v == BEST && !o->workload && !o->operator_name) return CD_FAIL(err, EUSAGE, "store best: expected --workload or --operator");
    if (v == NEAR && !o->workload && !(o->operator_name && o->shape))
        return CD_FAIL(err, EUSAGE, "store near: expected --workload, or --operator and --shape");
    return CDMPP_OK;
}

static cd_store_filter filter_of(const cd_main_profile *o) {
    return (cd_store_filter){.device = o->device, .target = o->target, .operator_name = o->operator_name, .workload = o->workload,
                             .dtype = o->dtype, .layout = o->layout, .limit = (uint64_t)o->limit, .errors = o->errors};
}

/* ---- import ---- */
typedef struct importing {
    cd_main_profile *o;
    cd_progress bar;
} importing;

static void on_bad(void *ctx, const cdmpp_err *e) {
    importing *i = ctx;
    i->o->bad++;
    cd_log_err(i->o->log, CD_LOG_WARNING, e);
}

static void on_progress(void *ctx, const cd_store_tally *t) {
    importing *i = ctx;
    cd_progress_step(&i->bar, t->lines);
}

static cdmpp_status import_all(cd_main_profile *o, cd_store *s, const cd_task_registry *tasks, cd_store_tally *t, cdmpp_err *err) {
    importing i = {.o = o};
    const cd_store_import how = {.form = (cd_store_form)o->form, .tasks = tasks, .device = o->device, .strict = o->strict, .bad = on_bad,
                                 .progress = on_progress, .ctx = &i, .stop = o->stop};
    cdmpp_status st = CDMPP_OK;
    cd_progress_begin(&i.bar, o->log, "import", "lines", 0);
    for (size_t k = 1; k < o->operand.n && !st; k++) st = cd_store_import_path(s, o->operand.v[k], &how, t, err);
    if (i.bar.done) cd_progress_end(&i.bar);
    return st;
}

static cdmpp_status tell_import(const cd_main_profile *o, const cd_store_tally *t, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    if (!o->json) {
        cd_buf_putf(&b, "%llu files, %llu lines: %llu added, %llu known, %llu bad\n", (unsigned long long)t->files, (unsigned long long)t->lines,
                    (unsigned long long)t->added, (unsigned long long)t->known, (unsigned long long)t->bad);
        if (t->skipped_lines) cd_buf_putf(&b, "%llu lines were there already\n", (unsigned long long)t->skipped_lines);
        if (t->empty) cd_buf_putf(&b, "%llu launches of 0 s left out\n", (unsigned long long)t->empty);
        return cd_command_print(&b, err);
    }
    cd_buf_putf(&b, "{\"files\":%llu,\"lines\":%llu,\"added\":%llu,\"known\":%llu,\"bad\":%llu,\"skipped_lines\":%llu,\"empty\":%llu}",
                (unsigned long long)t->files, (unsigned long long)t->lines, (unsigned long long)t->added, (unsigned long long)t->known,
                (unsigned long long)t->bad, (unsigned long long)t->skipped_lines, (unsigned long long)t->empty);
    cd_command_json(&all, "cdmpp.store_import", "cdmpp-profile", &b);
    return cd_command_print(&all, err);
}

static cdmpp_status import(cd_main_profile *o, cd_store *s, cdmpp_err *err) {
    cd_task_registry *tasks = NULL;
    cd_store_tally t = {0};
    cdmpp_status st = o->task.n ? cd_task_registry_new(&tasks, err) : CDMPP_OK;
    for (size_t k = 0; k < o->task.n && !st; k++) st = cd_task_registry_load(tasks, o->task.v[k], err);
    if (!st) st = import_all(o, s, tasks, &t, err);
    if (!st || st == CDMPP_EINTERRUPTED) {
        const cdmpp_status told = tell_import(o, &t, st ? NULL : err);
        st = st ? st : told;
    }
    cd_task_registry_free(tasks);
    return st;
}

/* ---- what visitors write: to a file that appears whole, or to standard output ---- */
typedef struct sink {
    const cd_main_profile *o;
    cd_buf b;
    FILE *f;
    char *temp;
    uint64_t n;
    cd_arena scratch;
    size_t not_records;
} sink;

static cdmpp_status sink_open(sink *k, const char *path, cdmpp_err *err) {
    k->f = stdout;
    if (!path || !strcmp(path, "-")) return CDMPP_OK;
    CD_TRY(cd_file_temp(path, &k->temp, err));
    k->f = fopen(k->temp, "wb");
    return k->f ? CDMPP_OK : cd_err_at(err, CD_FAIL(err, EIO, "cannot write"), path, 0);
}

static cdmpp_status sink_flush(sink *k, size_t from, cdmpp_err *err) {
    if (k->b.oom) return CD_FAIL(err, ENOMEM, "output");
    if (k->b.n < from) return CDMPP_OK;
    if (k->b.n && fwrite(k->b.p, 1, k->b.n, k->f) != k->b.n) return CD_FAIL(err, EIO, "cannot write");
    cd_buf_clear(&k->b);
    return CDMPP_OK;
}

static cdmpp_status sink_close(sink *k, cdmpp_status st, cdmpp_err *err) {
    if (!st) st = sink_flush(k, 0, err);
    if (k->temp && k->f && fclose(k->f) && !st) st = CD_FAIL(err, EIO, "cannot write %.150s", k->o->out);
    if (k->temp && st) cd_file_discard(k->temp);
    else if (k->temp) st = cd_file_publish(k->temp, k->o->out, err);
    cd_buf_free(&k->b);
    cd_arena_free(&k->scratch);
    return st;
}

/* ---- list ---- */
static cdmpp_status list_one(void *ctx, const cd_store_work *w, cdmpp_err *err) {
    sink *k = ctx;
    cd_buf *b = &k->b;
    if (!k->o->json) {
        if (!k->n++) cd_buf_puts(b, "   best, ms  measured  failed  devices  operator, workload\n");
        if (isfinite(w->best_s)) cd_buf_putf(b, "%11.6g", 1e3 * w->best_s);
        else cd_buf_puts(b, "          -");
        cd_buf_putf(b, "%10llu%8llu%9llu  %.*s  %.*s\n", (unsigned long long)w->n, (unsigned long long)w->n_error, (unsigned long long)w->n_device,
                    (int)w->operator_name.n, w->operator_name.p, (int)w->key.n, w->key.p);
        return sink_flush(k, FLUSH_BYTES, err);
    }
    const cd_str text[] = {w->operator_name, w->key, w->dtype, w->layout};
    static const char *const name[] = {"operator", "workload_key", "dtype", "layout"};
    cd_buf_puts(b, k->n++ ? ",{" : "{");
    for (size_t i = 0; i < 4; i++) {
        cd_buf_putf(b, "\"%s\":", name[i]);
        cd_buf_put_json_str(b, text[i].p, text[i].n);
        cd_buf_puts(b, ",");
    }
    cd_buf_puts(b, "\"shape\":");
    cd_buf_put(b, w->shape.p, w->shape.n);
    cd_buf_puts(b, ",\"flop\":");
    cd_buf_put_json_real(b, w->flop >= 0 ? w->flop : (double)NAN);
    cd_buf_putf(b, ",\"measured\":%llu,\"errors\":%llu,\"devices\":%llu,\"best_s\":", (unsigned long long)w->n, (unsigned long long)w->n_error,
                (unsigned long long)w->n_device);
    cd_buf_put_json_real(b, w->best_s);
    cd_buf_puts(b, "}");
    return CDMPP_OK;
}

/* ---- best, near ---- */
static void put_line(sink *k, const cd_store_hit *h, double distance) {
    const cd_store_row *r = &h->row;
    cd_buf *b = &k->b;
    if (!k->n++) cd_buf_puts(b, distance < 0 ? " median, ms  cv, %  device, operator, shape, from\n" : "  octaves  median, ms  cv, %  device, operator, shape, from\n");
    if (distance >= 0) cd_buf_putf(b, "%9.3f ", distance);
    if (r->error_no) cd_buf_putf(b, " error %-4lld", (long long)r->error_no);
    else cd_buf_putf(b, "%11.6g", 1e3 * r->latency.median_s);
    if (r->latency.n > 1 && !r->error_no) cd_buf_putf(b, "%7.1f", 100 * r->latency.cv);
    else cd_buf_puts(b, "      -");
    cd_buf_putf(b, "  %.*s  %.*s  %.*s", (int)r->device.n, r->device.p, (int)r->operator_name.n, r->operator_name.p, (int)r->shape.n, r->shape.p);
    if (h->source.n) cd_buf_putf(b, "  %.*s:%ld", (int)h->source.n, h->source.p, r->line);
    cd_buf_puts(b, "\n");
    if (k->o->steps && r->has_steps) cd_buf_putf(b, "    %.*s\n", (int)r->steps.n, r->steps.p);
}

static cdmpp_status best_one(void *ctx, const cd_store_hit *h, cdmpp_err *err) {
    sink *k = ctx;
    if (!k->o->json) {
        put_line(k, h, -1);
        return sink_flush(k, FLUSH_BYTES, err);
    }
    if (k->n++) cd_buf_puts(&k->b, ",");
    cd_store_put_json(&k->b, h, true);
    return CDMPP_OK;
}

static cdmpp_status near_one(void *ctx, const cd_store_near *n, cdmpp_err *err) {
    sink *k = ctx;
    if (!k->o->json) {
        put_line(k, &n->hit, n->distance);
        return sink_flush(k, FLUSH_BYTES, err);
    }
    cd_buf_puts(&k->b, k->n++ ? ",{\"distance\":" : "{\"distance\":");
    cd_buf_put_json_real(&k->b, n->distance);
    cd_buf_putf(&k->b, ",\"rank\":%u,\"measurement\":", n->rank);
    cd_store_put_json(&k->b, &n->hit, true);
    cd_buf_puts(&k->b, "}");
    return CDMPP_OK;
}

/* list, best and near: lines, or one JSON document. */
static cdmpp_status ask(cd_main_profile *o, cd_store *s, verb v, cdmpp_err *err) {
    sink k = {.o = o};
    cd_store_filter f = filter_of(o);
    cdmpp_status st = sink_open(&k, NULL, err);
    if (o->json) cd_buf_puts(&k.b, "[");
    f.best_first = v == BEST;
    if (v == BEST && !f.limit) f.limit = BEST_LIMIT;
    if (!st && v == LIST) st = cd_store_workloads(s, &f, list_one, &k, err);
    if (!st && v == BEST) st = cd_store_query(s, &f, best_one, &k, err);
    if (!st && v == NEAR) st = cd_store_find_near(s, &f, o->shape, (uint32_t)o->each, near_one, &k, err);
    if (o->json && !st) {
        cd_buf all = {0};
        cd_buf_puts(&k.b, "]");
        cd_command_json(&all, v == LIST ? "cdmpp.store_list" : v == BEST ? "cdmpp.store_best" : "cdmpp.store_near", "cdmpp-profile", &k.b);
        k.b = all;
    }
    return sink_close(&k, st, err);
}

/* ---- export, stats ---- */
static cdmpp_status export_one(void *ctx, const cd_store_hit *h, cdmpp_err *err) {
    sink *k = ctx;
    const size_t before = k->b.n;
    if (k->o->as == 1) {
        cd_store_put_csv(&k->b, h);
    } else if (k->o->as == 2) {
        cd_store_put_json(&k->b, h, true);
        cd_buf_puts(&k->b, "\n");
    } else {
        const cdmpp_status st = cd_store_put_record(&k->b, &k->scratch, h, err);
        if (st == CDMPP_ENODATA) k->not_records++;
        else if (st) return st;
    }
    k->n += k->b.n > before;
    if (*k->o->stop) return CD_FAIL(err, EINTERRUPTED, "stopped");
    return sink_flush(k, FLUSH_BYTES, err);
}

static cdmpp_status export(cd_main_profile *o, cd_store *s, cdmpp_err *err) {
    sink k = {.o = o};
    const cd_store_filter f = filter_of(o);
    cdmpp_status st = sink_open(&k, o->out, err);
    if (!st && o->as == 1) cd_store_csv_header(&k.b);
    if (!st) st = cd_store_query(s, &f, export_one, &k, err);
    st = sink_close(&k, st, err);
    if (!st && k.not_records) cd_log_put(o->log, CD_LOG_WARNING, "%zu measurements were no records: --as csv has them", k.not_records);
    return st;
}

static cdmpp_status stats(const cd_main_profile *o, cd_store *s, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    cdmpp_status st = o->json ? cd_store_put_stats(&b, s, err) : cd_store_put_report(&b, s, err);
    if (st) cd_buf_free(&b);
    else if (o->json) cd_command_json(&all, "cdmpp.store_stats", "cdmpp-profile", &b);
    return st ? st : cd_command_print(o->json ? &all : &b, err);
}

cdmpp_status cd_main_profile_store(cd_main_profile *o, cdmpp_err *err) {
    const verb v = (verb)verb_of(o);
    cd_store *s = NULL;
    CD_TRY(cd_store_open(o->store, v == IMPORT, &s, err));
    cdmpp_status st;
    if (v == IMPORT) st = import(o, s, err);
    else if (v == EXPORT) st = export(o, s, err);
    else if (v == STATS) st = stats(o, s, err);
    else st = ask(o, s, v, err);
    cd_store_close(s);
    return st;
}
