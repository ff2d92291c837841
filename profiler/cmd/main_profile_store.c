/* Mode "store" of cdmpp-profile: a store of measurements, filled and asked. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "profiler/cmd/main_profile.h"
#include "profiler/store/store.h"

#define VERBS "import|list|best|near|export|stats|tables"
typedef enum { IMPORT, LIST, BEST, NEAR, EXPORT, STATS, TABLES } verb;
enum { BEST_LIMIT = 10 };

static int verb_of(const cd_main_profile *o) {
    const char *w = o->operand.n ? o->operand.v[0] : "";
    return cd_enum_names_find(VERBS, (cd_str){w, strlen(w)});
}

cdmpp_status cd_main_profile_store_check(const cd_main_profile *o, cdmpp_err *err) {
    const int v = verb_of(o);
    if (v < 0)
        return CD_FAIL(err, EUSAGE, "store: expected one of %s, found '%.60s'", VERBS,
                       o->operand.n ? o->operand.v[0] : "");
    if (!o->store) return CD_FAIL(err, EUSAGE, "--store is missing");
    if (v == IMPORT && o->operand.n < 2) return CD_FAIL(err, EUSAGE, "nothing to import");
    if (v != IMPORT && o->operand.n > 1)
        return CD_FAIL(err, EUSAGE, "store: unexpected '%.60s'", o->operand.v[1]);
    if (v == BEST && !o->workload && !o->operator_name)
        return CD_FAIL(err, EUSAGE, "store best: expected --workload or --operator");
    if (v == NEAR && !o->workload && !(o->operator_name && o->shape))
        return CD_FAIL(err, EUSAGE, "store near: expected --workload, or --operator and --shape");
    return CDMPP_OK;
}

/* ---- import ---- */
typedef struct {
    cd_main_profile *o;
    cd_progress bar;
} importing;

static void on_bad(void *ctx, const cdmpp_err *e) {
    cd_main_profile_listener(((importing *)ctx)->o).bad(((importing *)ctx)->o, e);
}
static void on_said(void *ctx, const char *path, const cd_buf *lines) {
    cd_main_profile_said(((importing *)ctx)->o, path, lines);
}
static void on_progress(void *ctx, const cd_store_tally *t) {
    cd_progress_step(&((importing *)ctx)->bar, t->lines);
}

static cdmpp_status print_import(const cd_main_profile *o, const cd_store_tally *t,
                                 cdmpp_err *err) {
    cd_buf b = {0};
    cd_store_put_tally(&b, t, o->json);
    return cd_main_profile_print(o, "cdmpp.store_import", &b, err);
}

/* An import that leaves the store as it was is no success, unless all of it was there before. */
static cdmpp_status check_import(const cd_main_profile *o, const cd_store_tally *t,
                                 cdmpp_err *err) {
    const unsigned long long lines = t->lines, empty = t->empty, bad = t->bad;
    if (t->added) return CDMPP_OK;
    if (t->known || t->skipped_lines)
        return cd_log_put(o->log, CD_LOG_INFO,
                          "nothing was added: the store has all of it already"),
               CDMPP_OK;
    if (bad)
        return CD_FAIL(
            err, ENODATA,
            "nothing was imported: %llu of %llu lines are bad, and no other has a measurement", bad,
            lines);
    if (empty)
        return CD_FAIL(err, ENODATA, "nothing was imported: all %llu launches take 0 s", empty);
    return CD_FAIL(err, ENODATA, "nothing was imported: the %llu files have no measurement",
                   (unsigned long long)t->files);
}

/* An import that was interrupted keeps what it has read, so it is reported like one that ended. */
static cdmpp_status import(cd_main_profile *o, cd_store *s, cdmpp_err *err) {
    importing i = {.o = o};
    cd_task_registry *tasks = NULL;
    cd_store_tally t = {0};
    cdmpp_status st = o->task.n ? cd_main_profile_tasks_load(o, &tasks, err) : CDMPP_OK;
    const cd_store_import how = {.form = (cd_store_form)o->form,
                                 .tasks = tasks,
                                 .device = o->device,
                                 .strict = o->strict,
                                 .bad = on_bad,
                                 .progress = on_progress,
                                 .said = on_said,
                                 .ctx = &i,
                                 .stop = o->stop};
    if (!st) cd_progress_begin(&i.bar, o->log, "import", "lines", 0);
    for (size_t k = 1; k < o->operand.n && !st; k++)
        st = cd_store_import_path(s, o->operand.v[k], &how, &t, err);
    if (i.bar.done) cd_progress_end(&i.bar);
    if (!st || st == CDMPP_EINTERRUPTED) {
        const cdmpp_status printed = print_import(o, &t, st ? NULL : err);
        st = st ? st : printed;
    }
    if (!st) st = check_import(o, &t, err);
    cd_task_registry_free(tasks);
    return st;
}

/* Before the store is opened, which would make a file: a name that is misspelt leaves none
 * behind. */
static cdmpp_status all_there(const cd_main_profile *o, cdmpp_err *err) {
    for (size_t k = 1; k < o->operand.n; k++) {
        const char *path = o->operand.v[k];
        if (strcmp(path, "-") != 0 && access(path, R_OK) != 0)
            return cd_err_at(err, CD_FAIL(err, EIO, "cannot open: %s", strerror(errno)), path, 0);
    }
    return CDMPP_OK;
}

/* ---- is there anything to answer with? ---- */
static cdmpp_status seen(void *ctx, const cd_store_hit *h, cdmpp_err *err) {
    (void)h, (void)err;
    *(bool *)ctx = true;
    return CDMPP_OK;
}

static cdmpp_status fits(cd_store *s, cd_store_filter f, bool *any, cdmpp_err *err) {
    f.limit = 1;
    *any = false;
    return cd_store_query(s, &f, seen, any, err);
}

/* A device or operator that the store has nowhere is a misspelt one; what only together fits
 * nothing gets an empty answer, and that is said. */
static cdmpp_status check_filter(const cd_main_profile *o, cd_store *s, verb v,
                                 const cd_store_filter *f, cdmpp_err *err) {
    const struct {
        const char *option, *value;
        cd_store_filter alone;
    } part[] = {
        {"device", f->device, {.device = f->device, .errors = true}},
        {"operator",
         v == NEAR ? NULL : f->operator_name,
         {.operator_name = f->operator_name, .errors = true}},
    };
    bool any;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        if (!part[i].value) continue;
        CD_TRY(fits(s, part[i].alone, &any, err));
        if (!any)
            return cd_err_key(
                err,
                CD_FAIL(err, ENODATA,
                        "the store has nothing of '%.60s'; store stats lists what it has",
                        part[i].value),
                part[i].option);
    }
    if (v == NEAR) return CDMPP_OK;
    CD_TRY(fits(s, *f, &any, err));
    if (!any)
        cd_log_put(o->log, CD_LOG_WARNING, "no measurement%s fits these options",
                   o->errors ? "" : " without an error");
    return CDMPP_OK;
}

/* ---- the answers ---- */
static cdmpp_status ask(cd_main_profile *o, cd_store *s, verb v, cd_store_filter *f,
                        cdmpp_err *err) {
    static const char *const schema[] = {"cdmpp.store_list", "cdmpp.store_best",
                                         "cdmpp.store_near"};
    const cd_store_report_options ro = {(cd_store_report_kind)(v - LIST), o->json, o->steps,
                                        o->shape, (uint32_t)o->each};
    cd_buf b = {0};
    if (v == BEST && !f->limit) f->limit = BEST_LIMIT;
    const cdmpp_status st = cd_store_report(s, f, &ro, stdout, &b, err);
    if (!st && o->json) return cd_main_profile_print(o, schema[ro.kind], &b, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status export(cd_main_profile *o, cd_store *s, const cd_store_filter *f,
                           cdmpp_err *err) {
    size_t skipped = 0;
    CD_TRY(cd_store_export(s, f, (cd_store_export_form)o->as, o->out, o->stop, &skipped, err));
    if (skipped)
        cd_log_put(o->log, CD_LOG_WARNING, "%zu measurements were no records: --as csv has them",
                   skipped);
    return CDMPP_OK;
}

static cdmpp_status stats(const cd_main_profile *o, cd_store *s, cdmpp_err *err) {
    cd_buf b = {0};
    const cdmpp_status st =
        o->json ? cd_store_put_stats(&b, s, err) : cd_store_put_report(&b, s, err);
    return st ? cd_buf_free(&b), st : cd_main_profile_print(o, "cdmpp.store_stats", &b, err);
}

/* A file NAME.html becomes a page; else it is Markdown. */
static cdmpp_status tables(cd_main_profile *o, cd_store *s, cdmpp_err *err) {
    const size_t n = o->out ? strlen(o->out) : 0;
    const bool html = n > 5 && !strcmp(o->out + n - 5, ".html");
    cd_store_tables *t = NULL;
    cd_buf b = {0};
    CD_TRY(cd_store_tables_make(s, &t, err));
    cd_store_tables_print(&b, t,
                          o->json ? CD_STORE_TABLE_JSON
                          : html  ? CD_STORE_TABLE_HTML
                                  : CD_STORE_TABLE_MARKDOWN,
                          o->store);
    cd_store_tables_free(t);
    return o->json ? cd_main_profile_print(o, "cdmpp.store_tables", &b, err)
                   : cd_main_profile_write(o->out, &b, err);
}

cdmpp_status cd_main_profile_store(cd_main_profile *o, cdmpp_err *err) {
    const verb v = (verb)verb_of(o);
    cd_store_filter f = {.device = o->device,
                         .target = o->target,
                         .operator_name = o->operator_name,
                         .workload = o->workload,
                         .dtype = o->dtype,
                         .layout = o->layout,
                         .limit = (uint64_t)o->limit,
                         .errors = o->errors};
    cd_store *s = NULL;
    if (v == IMPORT) CD_TRY(all_there(o, err));
    CD_TRY(cd_store_open(o->store, v == IMPORT, &s, err));
    cdmpp_status st =
        v == IMPORT || v == STATS || v == TABLES ? CDMPP_OK : check_filter(o, s, v, &f, err);
    if (st) {
        cd_store_close(s);
        return st;
    }
    if (v == IMPORT) st = import(o, s, err);
    else if (v == EXPORT) st = export(o, s, &f, err);
    else if (v == STATS) st = stats(o, s, err);
    else if (v == TABLES) st = tables(o, s, err);
    else st = ask(o, s, v, &f, err);
    cd_store_close(s);
    return st;
}
