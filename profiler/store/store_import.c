/* store_import -- which files, of which form, from which line on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io/io.h"
#include "profiler/store/store_internal.h"

/* ---- what a file is: by its first bytes, unpacked ---- */
enum { HEAD = 4096 };

static bool holds(const char *text, const char *word) { return strstr(text, word) != NULL; }

static cd_store_form form_of(const char *head, size_t n) {
    static const char sqlite[] = "SQLite format 3";
    /* columns of their tables */
    static const char *const profiler[] = {"Duration",      "Metric Name", "gpu__time_duration.sum",
                                           "OperationKind", "Instances",   "Time(%)"};
    if (n >= sizeof sqlite && !memcmp(head, sqlite, sizeof sqlite)) return CD_STORE_NSYS;
    if (!strncmp(head, "\xef\xbb\xbf", 3)) head += 3; /* a byte order mark */
    while (*head == '#') {                            /* comments of a log */
        const char *end = strchr(head, '\n');
        head = end ? end + 1 : "";
    }
    head += strspn(head, " \t\r\n");
    if (*head == '[' ||
        (*head == '{' && (holds(head, "\"traceEvents\"") || holds(head, "\"schemaVersion\""))))
        return CD_STORE_KINETO;
    if (*head == '{' && holds(head, "\"i\"")) return CD_STORE_ANSOR;
    if (*head == '{' && holds(head, "\"input\"") && holds(head, "\"config\""))
        return CD_STORE_AUTOTVM;
    const size_t line = strcspn(head, "\n");
    char first[HEAD + 1];
    memcpy(first, head, line);
    first[line] = 0;
    if (holds(first, "points") && holds(first, "\t")) return CD_STORE_CURVES;
    for (char *p = first; *p; p++) *p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
    if (!strncmp(first, "op_name,", 8) || !strncmp(first, "a_name,", 7) ||
        !strncmp(first, "task_name,", 10))
        return CD_STORE_OPBENCH;
    if (holds(first, "opname") || !strncmp(first, "op,", 3)) return CD_STORE_TABLE;
    for (size_t i = 0; i < sizeof profiler / sizeof *profiler; i++)
        if (holds(head, profiler[i])) return CD_STORE_PROFILER;
    return CD_STORE_AUTO;
}

/* Not by the file's head: that may still be in the log beside it. */
static bool is_store(const char *path) {
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    bool is = false;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, "PRAGMA application_id", -1, &q, NULL) == SQLITE_OK &&
        sqlite3_step(q) == SQLITE_ROW)
        is = sqlite3_column_int64(q, 0) == CD_STORE_APPLICATION;
    sqlite3_finalize(q);
    sqlite3_close(db);
    return is;
}

static cdmpp_status look(const char *path, cd_store_form *form, cdmpp_err *err) {
    cd_input_stream *s = NULL;
    char head[HEAD + 1];
    size_t n = 0, got = 1;
    CD_TRY(cd_input_stream_open(path, &s, err));
    cdmpp_status st = CDMPP_OK;
    while (!st && got && n < HEAD) {
        st = cd_input_stream_read(s, head + n, HEAD - n, &got, err);
        n += st ? 0 : got;
    }
    cd_input_stream_close(s);
    if (st && !n) return st; /* what is there of a damaged file is read all the same */
    head[n] = 0;
    *form = form_of(head, n);
    if (*form == CD_STORE_NSYS && is_store(path)) *form = CD_STORE_STORE;
    if (*form == CD_STORE_AUTO)
        return cd_err_at(err,
                         CD_FAIL(err, ESCHEMA, "expected a log, table or trace of the forms %s",
                                 strchr(CD_STORE_FORMS, '|') + 1),
                         path, 0);
    return CDMPP_OK;
}

/* ---- bad lines, marks ---- */
cdmpp_status cd_store_bad(cd_store_reading *r, cdmpp_status st, const cdmpp_err *e,
                          cdmpp_err *err) {
    const bool line =
        st == CDMPP_EPARSE || st == CDMPP_ESCHEMA || st == CDMPP_ERANGE || st == CDMPP_EUNSUPPORTED;
    if (!line || r->how->strict) {
        if (err) *err = *e;
        return st;
    }
    r->tally->bad++;
    if (r->how->bad) r->how->bad(r->how->ctx, e);
    return CDMPP_OK;
}

static cdmpp_status note(cd_store_reading *r, uint64_t lines, bool done, cdmpp_err *err) {
    sqlite3_stmt *q;
    if (!r->store->source || !r->store->open) return CDMPP_OK;
    CD_TRY(cd_store_stmt(r->store, CD_SQL_SOURCE_SET, &q, err));
    sqlite3_bind_int64(q, 1, r->store->source);
    sqlite3_bind_int64(q, 2, r->size);
    sqlite3_bind_int64(q, 3, r->mtime_ns);
    sqlite3_bind_int64(q, 4, (int64_t)lines);
    sqlite3_bind_int(q, 5, done);
    return cd_store_done(r->store, q, err);
}

cdmpp_status cd_store_mark(cd_store_reading *r, uint64_t lines, bool last, cdmpp_err *err) {
    const bool stop = r->how->stop && *r->how->stop;
    if (!last && !stop && lines % 256) return CDMPP_OK;
    if (last) CD_TRY(cd_store_begin(r->store, err));
    CD_TRY(note(r, lines, last, err));
    if (r->how->progress) r->how->progress(r->how->ctx, r->tally);
    if ((last && !r->waits) || stop) CD_TRY(cd_store_commit(r->store, err));
    else CD_TRY(cd_store_settle(r->store, err));
    return stop ? CD_FAIL(err, EINTERRUPTED,
                          "stopped at line %llu; the same command goes on from there",
                          (unsigned long long)lines)
                : CDMPP_OK;
}

cdmpp_status cd_store_take(cd_store_reading *r, const cd_store_row *row, cdmpp_err *err) {
    bool fresh = false;
    CD_TRY(cd_store_add(r->store, row, &fresh, err));
    if (fresh) r->tally->added++;
    else r->tally->known++;
    return CDMPP_OK;
}

/* ---- one file ---- */

/* Its row among the sources; from which line to go on. */
static cdmpp_status enter(cd_store_reading *r, const char *form, bool *done, cdmpp_err *err) {
    cd_store *s = r->store;
    sqlite3_stmt *q;
    const cd_str path = {r->path, strlen(r->path)}, what = {form, strlen(form)};
    CD_TRY(cd_store_begin(s, err));
    CD_TRY(cd_store_stmt(s, CD_SQL_SOURCE_ADD, &q, err));
    cd_store_bind(q, 1, path);
    cd_store_bind(q, 2, what);
    CD_TRY(cd_store_done(s, q, err));
    CD_TRY(cd_store_stmt(s, CD_SQL_SOURCE_GET, &q, err));
    cd_store_bind(q, 1, path);
    cd_store_bind(q, 2, what);
    if (sqlite3_step(q) != SQLITE_ROW) {
        sqlite3_reset(q);
        return cd_store_fail(s, "look up", err);
    }
    s->source = sqlite3_column_int64(q, 0);
    const bool same = r->size >= 0 && sqlite3_column_int64(q, 1) == r->size &&
                      sqlite3_column_int64(q, 2) == r->mtime_ns;
    r->first = same ? (uint64_t)sqlite3_column_int64(q, 3) : 0;
    *done = same && sqlite3_column_int(q, 4);
    sqlite3_reset(q);
    return CDMPP_OK;
}

/* "v100" of ".../measure_records/v100/x.json". */
static cd_str folder_device(const char *path) {
    static const char mark[] = "measure_records/";
    const char *at = NULL;
    for (const char *p = path; (p = strstr(p, mark)); p++) at = p + sizeof mark - 1;
    const char *end = at ? strchr(at, '/') : NULL;
    return end ? (cd_str){at, (size_t)(end - at)} : (cd_str){"", 0};
}

static cdmpp_status read_form(cd_store_reading *r, cd_store_form form, cdmpp_err *err) {
    switch (form) {
    case CD_STORE_ANSOR: return cd_store_read_ansor(r, err);
    case CD_STORE_TABLE: return cd_store_read_table(r, err);
    case CD_STORE_CURVES: return cd_store_read_curves(r, err);
    case CD_STORE_STORE: return cd_store_read_store(r, err);
    case CD_STORE_OPBENCH: return cd_store_read_opbench(r, err);
    case CD_STORE_AUTOTVM: return cd_store_read_autotvm(r, err);
    default: return cd_store_read_trace(r, form, err);
    }
}

static void look_at_file(cd_store_reading *r, const char *path, char real[]) {
    struct stat f;
    r->size = r->mtime_ns = -1;
    if (strcmp(path, "-") && realpath(path, real)) r->path = real;
    if (strcmp(path, "-") && !stat(path, &f) && S_ISREG(f.st_mode)) {
        r->size = f.st_size;
        r->mtime_ns = (int64_t)f.st_mtim.tv_sec * 1000000000 + f.st_mtim.tv_nsec;
    }
}

/* `more`: another file follows. A commit writes all pages of the indices that its rows fell on,
 * which rows of a thousand lines and those of ten thousand do alike: logs of a folder share
 * transactions, as old as any becomes. Other forms may take long until their first row, with the
 * store locked. */
static cdmpp_status import_file(cd_store *s, const char *path, const cd_store_import *how,
                                bool more, cd_store_tally *t, cdmpp_err *err) {
    char real[4096]; /* PATH_MAX */
    cd_store_form form = how->form;
    cd_store_reading r = {.store = s, .how = how, .tally = t, .path = path};
    bool done = false;
    look_at_file(&r, path, real);
    if (form == CD_STORE_AUTO && !strcmp(path, "-")) form = CD_STORE_ANSOR;
    if (form == CD_STORE_AUTO) CD_TRY(look(path, &form, err));
    r.waits = more && form == CD_STORE_ANSOR;
    if (form != CD_STORE_ANSOR) CD_TRY(cd_store_commit(s, err));
    r.device = how->device ? (cd_str){how->device, strlen(how->device)} : folder_device(r.path);
    const cd_str word = cd_enum_names_at(CD_STORE_FORMS, (int)form);
    char name[16];
    snprintf(name, sizeof name, "%.*s", (int)word.n, word.p);
    CD_TRY(enter(&r, name, &done, err));
    t->files++;
    t->skipped_lines += r.first;
    cdmpp_status st = done ? CDMPP_OK : read_form(&r, form, err);
    cd_arena_free(&r.arena);
    if (st) cd_store_commit(s, NULL); /* what was read stays */
    else if (!r.waits) st = cd_store_commit(s, err);
    s->source = 0;
    return st;
}

static bool readable(const char *path, void *ctx) {
    static const char *const end[] = {".json",   ".jsonl",   ".log",     ".csv",      ".tsv",
                                      ".sqlite", ".json.gz", ".json.xz", ".json.zst", ".csv.gz",
                                      ".csv.xz", ".tsv.xz",  ".tsv.gz",  ".log.gz",   ".log.xz"};
    const size_t n = strlen(path);
    (void)ctx;
    for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
        const size_t m = strlen(end[i]);
        if (n > m && !strcmp(path + n - m, end[i])) return true;
    }
    return false;
}

cdmpp_status cd_store_import_path(cd_store *s, const char *path, const cd_store_import *how,
                                  cd_store_tally *t, cdmpp_err *err) {
    struct stat f;
    cd_arena a = {0};
    const char *const *file = NULL;
    size_t n = 0;
    if (!strcmp(path, "-")) return import_file(s, path, how, false, t, err);
    if (stat(path, &f))
        return cd_err_at(err, CD_FAIL(err, EIO, "cannot read: %s", strerror(errno)), path, 0);
    if (!S_ISDIR(f.st_mode)) return import_file(s, path, how, false, t, err);
    cdmpp_status st = cd_file_list(&a, path, readable, NULL, &file, &n, err);
    if (!st && !n)
        st = cd_err_at(err, CD_FAIL(err, ENODATA, "no file to read in this folder"), path, 0);
    for (size_t i = 0; i < n && !st; i++) {
        cdmpp_err e = {0};
        st = import_file(s, file[i], how, i + 1 < n, t, &e);
        /* another kind of file among them */
        if (st == CDMPP_ESCHEMA && how->form == CD_STORE_AUTO && !e.line) {
            cd_store_reading r = {.store = s, .how = how, .tally = t, .path = file[i]};
            st = cd_store_bad(&r, st, &e, err);
        } else if (st && err) {
            *err = e;
        }
    }
    /* the last file may not have been one to read */
    const cdmpp_status closed = cd_store_commit(s, st ? NULL : err);
    cd_arena_free(&a);
    return st ? st : closed;
}
