/* store_import -- which files, of which form, from which line on. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io/io.h"
#include "features/operators/operators.h"
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

static cdmpp_status store_read_ansor(cd_store_reading *r, cdmpp_err *err);

static cdmpp_status store_read_table(cd_store_reading *r, cdmpp_err *err);

static cdmpp_status store_read_curves(cd_store_reading *r, cdmpp_err *err);

static cdmpp_status store_read_store(cd_store_reading *r, cdmpp_err *err);

static cdmpp_status read_form(cd_store_reading *r, cd_store_form form, cdmpp_err *err) {
    switch (form) {
    case CD_STORE_ANSOR: return store_read_ansor(r, err);
    case CD_STORE_TABLE: return store_read_table(r, err);
    case CD_STORE_CURVES: return store_read_curves(r, err);
    case CD_STORE_STORE: return store_read_store(r, err);
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

/* store_ansor -- logs of TVM's auto_scheduler. */

static cdmpp_status one_line(cd_store_reading *r, const char *line, size_t len, long number,
                             cdmpp_err *err) {
    cd_record rec;
    bool fresh = false;
    cd_arena_reset(&r->arena);
    CD_TRY(cd_record_read(&r->arena, line, len, &rec, err));
    const cd_task *task =
        r->how->tasks ? cd_task_registry_find(r->how->tasks, rec.workload_key) : NULL;
    CD_TRY(cd_store_add_record(r->store, &rec, task, r->device, r->how->env, NULL, number, &fresh,
                               err));
    if (fresh) r->tally->added++;
    else r->tally->known++;
    return CDMPP_OK;
}

/* Read all of it. Errors: EIO, EPARSE, ESCHEMA, EINTERRUPTED, ENOMEM; of a line those that
 * cd_store_bad returns. */
static cdmpp_status store_read_ansor(cd_store_reading *r, cdmpp_err *err) {
    cd_file_lines *l = NULL;
    char *line = NULL;
    size_t len = 0;
    uint64_t n = 0;
    CD_TRY(cd_file_lines_open(r->path, CD_RECORD_LINE_MAX, &l, err));
    cdmpp_status st = CDMPP_OK;
    while (!st) {
        cdmpp_err e = {0};
        st = cd_file_lines_next(l, &line, &len, &e);
        const bool end = !st && !line, broken = st && st != CDMPP_ERANGE;
        if (end) break;
        n++;
        if (!st && n > r->first && !cd_record_is_comment(line, len)) {
            r->tally->lines++;
            st = cd_err_at(&e, one_line(r, line, len, cd_file_lines_number(l), &e), r->path,
                           cd_file_lines_number(l));
        }
        if (st) st = cd_store_bad(r, st, &e, err);
        if (broken) break; /* the file cannot be read further; what was before it stays */
        if (!st && n > r->first) st = cd_store_mark(r, n, false, err);
    }
    if (!st) st = cd_store_mark(r, n, true, err);
    cd_file_lines_close(l);
    return st;
}

/* store_describe -- what operator a workload is: by its task's definition, or by its key alone. */

static bool starts(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

/* Tags that say how an operator is computed, not what it is. */
static bool generic(const char *tag) {
    static const char *const word[] = {
        "", "elemwise", "broadcast", "injective", "comm_reduce", "comm_reduce_idx", "opaque"};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (!strcmp(tag, word[i])) return true;
    return false;
}

/* "T_relu" -> "relu", "conv2d_nchw" by its tag; "" for helpers: padding, dilation, constants. */
static const char *word_of(const cd_te_op *op) {
    if (op->is_placeholder || starts(op->tag, "injective,") ||
        starts(op->name, "compile_engine_const") || starts(op->name, "pad_temp"))
        return "";
    if (!generic(op->tag)) return op->tag;
    return starts(op->name, "T_") ? op->name + 2 : op->name;
}

/* "nchw" of "conv2d_nchw"; "" when the tag has none. */
static cd_str layout_of(const char *tag) {
    const char *at = strrchr(tag, '_');
    if (!at || strspn(at + 1, "nchwdkioNCHWDKIO0123456789") != strlen(at + 1) || strlen(at + 1) < 3)
        return (cd_str){"", 0};
    return (cd_str){at + 1, strlen(at + 1)};
}

/* The name joins the words of the operators in order: "conv2d_nchw+add+relu". */
cdmpp_status cd_store_describe_task(cd_arena *a, const cd_task *t, cd_store_row *row,
                                    cdmpp_err *err) {
    const cd_te_dag *g = t->dag;
    cd_buf b = {0};
    const char *last = "";
    cd_str layout = {"", 0};
    char type[24];
    for (uint32_t i = 0; i < g->n_op; i++) {
        const char *w = word_of(&g->op[i]);
        if (!*w || !strcmp(w, last)) continue; /* the stages of a softmax have one tag */
        if (b.n) cd_buf_puts(&b, "+");
        cd_buf_puts(&b, w);
        if (!layout.n) layout = layout_of(w);
        last = w;
    }
    if (!b.n) cd_buf_puts(&b, "copy");
    const char *types =
        g->n_op ? cd_expr_dtype_format(g->op[g->n_op - 1].dtype[0], type, sizeof type) : "";
    row->operator_name = (cd_str){b.oom ? NULL : cd_str_dup(a, (cd_str){b.p, b.n}), b.n};
    row->dtype = (cd_str){cd_str_dup(a, (cd_str){types, strlen(types)}), strlen(types)};
    row->layout = layout;
    row->flop = cd_task_flop(t);
    cd_buf_free(&b);
    return row->operator_name.p && row->dtype.p ? CDMPP_OK
                                                : CD_FAIL(err, ENOMEM, "operator's name");
}

/* ---- by the key: ["<hash of the DAG>", sizes or lists of sizes ...] ---- */
static void put_sizes(cd_buf *b, const cd_json *first) {
    cd_buf_puts(b, "[");
    for (const cd_json *c = first; c; c = c->next) {
        if (c != first) cd_buf_puts(b, ",");
        if (c->kind == CD_JSON_INT) cd_buf_put_int(b, c->u.i);
        else if (c->kind == CD_JSON_ARR) put_sizes(b, c->u.child);
        else if (c->kind == CD_JSON_STR) cd_buf_put_json_str(b, c->u.s.p, c->u.s.n);
        else cd_buf_puts(b, "null");
    }
    cd_buf_puts(b, "]");
}

static cdmpp_status dup_buf(cd_arena *a, cd_buf *b, cd_str *out, cdmpp_err *err) {
    *out = (cd_str){b->oom ? NULL : cd_str_dup(a, (cd_str){b->p, b->n}), b->n};
    cd_buf_free(b);
    return out->p ? CDMPP_OK : CD_FAIL(err, ENOMEM, "text");
}

cdmpp_status cd_store_describe_key(cd_arena *a, cd_str key, cd_store_row *row, cdmpp_err *err) {
    const cd_json *v = NULL;
    cd_buf shape = {0}, name = {0};
    const cdmpp_status st = cd_json_parse(a, key.p, key.n, &v, NULL);
    const bool form = !st && v->kind == CD_JSON_ARR && v->n && v->u.child->kind == CD_JSON_STR;
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "workload key");
    put_sizes(&shape, form ? v->u.child->next : NULL);
    cd_buf_puts(&name, form ? "dag:" : "key:");
    if (form) cd_buf_put(&name, v->u.child->u.s.p, v->u.child->u.s.n);
    else cd_buf_put(&name, key.p, key.n);
    const cdmpp_status made = dup_buf(a, &shape, &row->shape, err);
    CD_TRY(dup_buf(a, &name, &row->operator_name, err));
    return made;
}

/* store_merge -- all measurements of another store. */

static cdmpp_status one(void *ctx, const cd_store_hit *h, cdmpp_err *err) {
    cd_store_reading *r = ctx;
    cd_store_row row = h->row;
    double *cost = cd_arena_alloc(&r->arena, h->n_cost, sizeof *cost);
    if (!cost) return CD_FAIL(err, ENOMEM, "costs");
    if (h->n_cost) memcpy(cost, h->costs, h->n_cost * sizeof *cost);
    /* one cost is kept as the mean: as a cost it is part of the digest of a record */
    if (!h->n_cost && row.has_steps) cost = &row.latency.mean_s;
    const double failed = 1e10;
    row.n_cost = h->n_cost ? h->n_cost : row.has_steps;
    row.cost_s = row.error_no && !h->n_cost ? &failed : cost;
    row.line = (long)h->id;
    r->tally->lines++;
    const cdmpp_status st = cd_store_take(r, &row, err);
    cd_arena_reset(&r->arena);
    if (st) return st;
    return cd_store_mark(r, r->tally->lines, false, err);
}

static cdmpp_status store_read_store(cd_store_reading *r, cdmpp_err *err) {
    struct stat a, b;
    cd_store *from = NULL;
    const cd_store_filter all = {.errors = true};
    if (!stat(r->path, &a) && !stat(r->store->path, &b) && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino)
        return cd_err_at(err, CD_FAIL(err, EUSAGE, "a store is not imported into itself"), r->path,
                         0);
    r->size = r->mtime_ns = -1; /* what is in its log file does not show in these */
    CD_TRY(cd_store_open(r->path, false, &from, err));
    cdmpp_status st = cd_store_query(from, &all, one, r, err);
    if (!st) st = cd_store_mark(r, r->tally->lines, true, err);
    cd_store_close(from);
    return st;
}

/* store_table -- CSV tables of library operators (features/operators/library_op_record.h) and
 * tables of curves.
 *
 *   set  host    operator   device_id  varied            shape
 *                                                        points_n:ms
 *   a    dell01  nn.conv2d  0          ((4, 4), (0, 0))  ((-1, 3, 91, 81), (32, 3, 3, 3))  1:0.0030
 *     2:0.0031 ...
 *
 * Of a curve every point is a measurement: n takes the place of -1 in the shape. */

/* ---- library operators ---- */
static void put_op_shape(cd_buf *b, const cd_library_op_record *o) {
    const cd_library_op_class c = cd_library_op_kind_class(o->kind);
    if (c == CD_LIBRARY_OP_CLASS_CONV) {
        const double side = floor((o->size + 2 * o->pad - o->ksize) / o->stride) + 1;
        cd_buf_putf(b, "[%.0f,%.0f,%.0f,%.0f],[%.0f,%.0f,%.0f,%.0f],[%.0f,%.0f]",
                    o->m / (side * side), o->cin, o->size, o->size, o->n, o->cin, o->ksize,
                    o->ksize, o->stride, o->pad);
    } else if (c == CD_LIBRARY_OP_CLASS_BMM || c == CD_LIBRARY_OP_CLASS_LINEAR) {
        cd_buf_putf(b, "[%.0f,%.0f,%.0f],[%.0f,%.0f]", o->b, o->m, o->k, o->k, o->n);
    } else {
        cd_buf_putf(b, "[%.0f,%.0f]", o->m, o->n);
    }
}

/* Operations where the operator is a product, else not known. */
static double op_flop(const cd_library_op_record *o) {
    const cd_library_op_class c = cd_library_op_kind_class(o->kind);
    return c == CD_LIBRARY_OP_CLASS_CONV || c == CD_LIBRARY_OP_CLASS_BMM ||
                   c == CD_LIBRARY_OP_CLASS_LINEAR
               ? 2 * o->b * o->m * o->n * o->k
               : -1;
}

/* The shape goes into the row and, with kind and type, into the workload key; both are slices of
 * one buffer. */
static cdmpp_status take_op(cd_store_reading *r, const cd_library_op_record *o, const char *device,
                            long line, cd_buf *b, cdmpp_err *err) {
    double t = o->latency_s;
    const char *name = cd_library_op_kind_name(o->kind),
               *dtype = cd_library_op_dtype_name(o->dtype);
    cd_buf_clear(b);
    cd_buf_puts(b, "[");
    put_op_shape(b, o);
    cd_buf_puts(b, "]");
    const size_t n = b->n;
    cd_buf_putf(b, "[\"%s\",", name);
    put_op_shape(b, o);
    cd_buf_putf(b, ",\"%s\"]", dtype);
    if (b->oom) return CD_FAIL(err, ENOMEM, "workload key");
    if (!(t > 0))
        return cd_err_at(err, CD_FAIL(err, ESCHEMA, "expected a latency, found none"), r->path,
                         line);
    cd_store_row row = {.device = r->device.n ? r->device : (cd_str){device, strlen(device)},
                        .target = {"library", 7},
                        .target_tail = {"[]", 2},
                        .workload_key = {b->p + n, b->n - n},
                        .operator_name = {name, strlen(name)},
                        .shape = {b->p, n},
                        .dtype = {dtype, strlen(dtype)},
                        .flop = op_flop(o),
                        .known = true,
                        .env = r->how->env,
                        .line = line};
    cd_store_latency_of(&t, 1, &row.latency);
    return cd_store_take(r, &row, err);
}

static cdmpp_status store_read_table(cd_store_reading *r, cdmpp_err *err) {
    cd_op_reader *in = NULL;
    cd_buf b = {0};
    uint64_t n = 1; /* the header */
    CD_TRY(cd_library_op_reader_open(r->path, &in, err));
    for (cdmpp_status st = CDMPP_OK;;) {
        cd_library_op_record o;
        const char *device = "";
        cdmpp_err e = {0};
        bool more = false;
        st = cd_library_op_reader_next(in, &o, &device, &more, &e);
        if (st || more) n = (uint64_t)cd_op_reader_line(in);
        if (!st && more && n > r->first) {
            r->tally->lines++;
            st = cd_err_at(&e, take_op(r, &o, device, (long)n, &b, &e), r->path, (long)n);
        }
        if (st) st = cd_store_bad(r, st, &e, err);
        if (!st && (n > r->first || !more)) st = cd_store_mark(r, n, !more, err);
        if (!more || st) {
            cd_op_reader_close(in);
            cd_buf_free(&b);
            return st;
        }
    }
}

/* ---- curves ---- */
enum { SET, HOST, OPERATOR, DEVICE_ID, VARIED, SHAPE, POINTS, N_FIELD };
static const char *const field_name[N_FIELD] = {"set",    "host",  "operator", "device_id",
                                                "varied", "shape", "points"};

typedef struct curves {
    cd_store_reading *r;
    int of[N_FIELD]; /* column of each field */
    cd_buf shape, key, device, extra;
} curves;

/* Fields of a line, cut in place; how many. */
static int split(char *line, char *out[], int max) {
    int n = 0;
    for (char *p = line; p && n < max; n++) {
        out[n] = p;
        p = strchr(p, '\t');
        if (p) *p++ = 0;
    }
    return n;
}

static cdmpp_status read_header(curves *c, char *line, cdmpp_err *err) {
    char *f[32];
    const int n = split(line, f, 32);
    for (int k = 0; k < N_FIELD; k++) {
        c->of[k] = -1;
        for (int i = 0; i < n; i++)
            if (!strncmp(f[i], field_name[k], strlen(field_name[k]))) c->of[k] = i;
        if (c->of[k] < 0)
            return CD_FAIL(err, ESCHEMA, "expected a column '%s' in the first line", field_name[k]);
    }
    return CDMPP_OK;
}

/* "((-1, 3), (71,))" as "[[n,3],[71]]". */
static void put_shape(cd_buf *b, const char *s, long n) {
    for (; *s; s++) {
        if (*s == '(') cd_buf_puts(b, "[");
        else if (*s == ')') cd_buf_puts(b, "]");
        else if (*s == ',') cd_buf_puts(b, s[1 + strspn(s + 1, " ")] == ')' ? "" : ",");
        else if (!strncmp(s, "-1", 2)) cd_buf_put_int(b, n), s++;
        else if (*s != ' ') cd_buf_put(b, s, 1);
    }
}

/* One measurement: the point's size stands in the shape in place of -1. */
static cdmpp_status take_point(curves *c, char *const f[], long n, double ms, long line,
                               cdmpp_err *err) {
    const char *op = f[c->of[OPERATOR]];
    double t = ms / 1e3;
    cd_store_env env = c->r->how->env ? *c->r->how->env : (cd_store_env){0};
    cd_buf_clear(&c->shape);
    cd_buf_clear(&c->key);
    put_shape(&c->shape, f[c->of[SHAPE]], n);
    cd_buf_puts(&c->key, "[");
    cd_buf_put_json_str(&c->key, op, strlen(op));
    cd_buf_puts(&c->key, ",");
    if (c->shape.n > 2) cd_buf_put(&c->key, c->shape.p + 1, c->shape.n - 2);
    cd_buf_puts(&c->key, "]");
    if (c->shape.oom || c->key.oom) return CD_FAIL(err, ENOMEM, "workload key");
    env.extra = (cd_str){c->extra.p, c->extra.n};
    cd_store_row row = {.device =
                            c->r->device.n ? c->r->device : (cd_str){c->device.p, c->device.n},
                        .target = {"tvm", 3},
                        .target_tail = {"[]", 2},
                        .workload_key = {c->key.p, c->key.n},
                        .operator_name = {op, strlen(op)},
                        .shape = {c->shape.p, c->shape.n},
                        .dtype = {"float32", 7},
                        .flop = -1,
                        .known = true,
                        .env = &env,
                        .line = line};
    cd_store_latency_of(&t, 1, &row.latency);
    return cd_store_take(c->r, &row, err);
}

/* Lists of sizes, or lists of lists of them? */
static bool is_shape(const cd_json *v, int depth) {
    if (v->kind != CD_JSON_ARR) return v->kind == CD_JSON_INT && depth > 0;
    for (const cd_json *c = v->u.child; c; c = c->next)
        if (!is_shape(c, depth + 1)) return false;
    return true;
}

static cdmpp_status check_shape(curves *c, const char *s, cdmpp_err *err) {
    const cd_json *v = NULL;
    cd_buf_clear(&c->shape);
    put_shape(&c->shape, s, 1);
    cd_arena_reset(&c->r->arena);
    if (c->shape.oom) return CD_FAIL(err, ENOMEM, "shape");
    if (!c->shape.n || cd_json_parse(&c->r->arena, c->shape.p, c->shape.n, &v, NULL) ||
        !is_shape(v, 0))
        return CD_FAIL(err, ESCHEMA, "expected a shape ((-1, 3), (71,)), found '%.40s'", s);
    return CDMPP_OK;
}

/* The shape is checked before the first point is added; a bad point ends the line. */
static cdmpp_status take_curve(curves *c, char *line, long number, cdmpp_err *err) {
    char *f[32];
    const int n = split(line, f, 32);
    for (int k = 0; k < N_FIELD; k++)
        if (c->of[k] >= n)
            return CD_FAIL(err, ESCHEMA, "expected a field '%s', found %d fields", field_name[k],
                           n);
    const char *id = f[c->of[DEVICE_ID]], *set = f[c->of[SET]];
    CD_TRY(check_shape(c, f[c->of[SHAPE]], err));
    cd_buf_clear(&c->device);
    cd_buf_clear(&c->extra);
    cd_buf_puts(&c->device, f[c->of[HOST]]);
    if (strcmp(id, "0")) cd_buf_putf(&c->device, ":%s", id);
    cd_buf_puts(&c->extra, "{\"set\":");
    cd_buf_put_json_str(&c->extra, set, strlen(set));
    cd_buf_puts(&c->extra, "}");
    if (c->device.oom || c->extra.oom) return CD_FAIL(err, ENOMEM, "device of a curve");
    for (char *p = f[c->of[POINTS]]; *p;) {
        char *end;
        const long at = strtol(p, &end, 10);
        const double ms = end > p && *end == ':' ? strtod(p = end + 1, &end) : -1;
        if (!(ms > 0) || end == p || (*end && *end != ' '))
            return CD_FAIL(err, ESCHEMA, "expected points n:milliseconds, found '%.30s'", p);
        CD_TRY(take_point(c, f, at, ms, number, err));
        p = end + strspn(end, " ");
    }
    return CDMPP_OK;
}

/* A file that breaks off keeps what was read before it. */
static cdmpp_status read_curves(curves *c, cd_file_lines *l, cdmpp_err *err) {
    cd_store_reading *r = c->r;
    char *line;
    size_t len;
    uint64_t n = 0;
    for (;;) {
        cdmpp_err e = {0};
        cdmpp_status st = cd_file_lines_next(l, &line, &len, &e);
        const bool broken = st && st != CDMPP_ERANGE;
        if (!st && !line) return cd_store_mark(r, n, true, err);
        n++;
        if (!st && n == 1) {
            st = cd_err_at(&e, read_header(c, line, &e), r->path, 1);
            if (st && err) *err = e;
            if (st) return st;
        } else if (!st && n > r->first && *line) {
            r->tally->lines++;
            st = cd_err_at(&e, take_curve(c, line, (long)n, &e), r->path, (long)n);
        }
        if (st) CD_TRY(cd_store_bad(r, st, &e, err));
        if (broken) return cd_store_mark(r, n, true, err);
        if (n > r->first) CD_TRY(cd_store_mark(r, n, false, err));
    }
}

static cdmpp_status store_read_curves(cd_store_reading *r, cdmpp_err *err) {
    curves c = {.r = r};
    cd_file_lines *l = NULL;
    CD_TRY(cd_file_lines_open(r->path, 0, &l, err));
    const cdmpp_status st = read_curves(&c, l, err);
    cd_buf *const b[] = {&c.shape, &c.key, &c.device, &c.extra};
    for (size_t i = 0; i < 4; i++) cd_buf_free(b[i]);
    cd_file_lines_close(l);
    return st;
}
