/* trace -- the events of one file: added, freed, and read by the reader of the file's form. */
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "profiler/trace/trace_chrome.h"
#include "profiler/trace/trace_internal.h"

cd_trace_event cd_trace_event_init(cd_trace_kind kind, long line) {
    return (cd_trace_event){.kind = kind,
                            .question = CD_TRACE_NONE,
                            .sum = CD_TRACE_NONE,
                            .owner = CD_TRACE_NONE,
                            .line = line,
                            .link = -1,
                            .external = -1,
                            .start_ns = CD_TRACE_UNTIMED,
                            .called_ns = CD_TRACE_UNTIMED,
                            .bytes = NAN};
}

cdmpp_status cd_trace_number(cd_trace_reader *r, cd_str text, uint32_t *out, cdmpp_err *err) {
    if (!cd_str_is_utf8(text)) return CD_FAIL(err, ESCHEMA, "expected names in UTF-8");
    return cd_dict_add(&r->t->text, text, out, err);
}

cdmpp_status cd_trace_device_number(cd_trace_reader *r, cd_str text, uint32_t *out,
                                    cdmpp_err *err) {
    const char *said = r->how->device;
    return cd_trace_number(r, said ? (cd_str){said, strlen(said)} : text, out, err);
}

cdmpp_status cd_trace_add(cd_trace_reader *r, const cd_trace_event *e, cdmpp_err *err) {
    cd_trace *t = r->t;
    if (CD_GROW(t->event, t->n, t->cap)) return CD_FAIL(err, ENOMEM, "events of a trace");
    t->event[t->n++] = *e;
    return CDMPP_OK;
}

cdmpp_status cd_trace_add_question(cd_trace_reader *r, const cd_library_op_record *q, uint32_t *out,
                                   cdmpp_err *err) {
    cd_trace *t = r->t;
    if (CD_GROW(t->question, t->n_question, t->cap_question))
        return CD_FAIL(err, ENOMEM, "operators of a trace");
    *out = (uint32_t)t->n_question;
    t->question[t->n_question++] = *q;
    return CDMPP_OK;
}

cdmpp_status cd_trace_bad(cd_trace_reader *r, cdmpp_status st, const cdmpp_err *e, cdmpp_err *err) {
    const bool line =
        st == CDMPP_EPARSE || st == CDMPP_ESCHEMA || st == CDMPP_ERANGE || st == CDMPP_EUNSUPPORTED;
    if (!line) {
        cd_err_from(err, e);
        return st;
    }
    r->t->bad++;
    return r->how->bad ? r->how->bad(r->how->ctx, st, e, err) : CDMPP_OK;
}

cdmpp_status cd_trace_stopped(const cd_trace_reader *r, cdmpp_err *err) {
    return r->how->stop && *r->how->stop
               ? CD_FAIL(err, EINTERRUPTED, "stopped: nothing of this trace was kept")
               : CDMPP_OK;
}

const char *cd_trace_text(const cd_trace *t, uint32_t number) { return t->text.text[number]; }

/* The form of a file whose first (n) unpacked bytes are these; AUTO: none of them by its first
 * bytes. */
static cd_trace_form trace_form_of(const char *head, size_t n) {
    static const char sqlite[] = "SQLite format 3";
    size_t at = 0;
    if (n >= sizeof sqlite && !memcmp(head, sqlite, sizeof sqlite)) return CD_TRACE_NSYS;
    if (memchr(head, 0, n)) return CD_TRACE_AUTO;
    if (n >= 3 && !memcmp(head, "\xef\xbb\xbf", 3)) at = 3; /* a byte order mark */
    while (at < n && strchr(" \t\r\n", head[at])) at++;
    if (at < n && (head[at] == '[' || head[at] == '{')) return CD_TRACE_CHROME;
    return at < n ? CD_TRACE_CSV : CD_TRACE_AUTO;
}

enum { HEAD = 4096 };

static cdmpp_status look(const char *path, cd_trace_form *form, cdmpp_err *err) {
    cd_input_stream *s = NULL;
    char head[HEAD];
    size_t n = 0, got = 1;
    cdmpp_status st = CDMPP_OK;
    CD_TRY(cd_input_stream_open(path, &s, err));
    while (!st && got && n < HEAD) {
        st = cd_input_stream_read(s, head + n, HEAD - n, &got, err);
        n += st ? 0 : got;
    }
    cd_input_stream_close(s);
    if (st && !n) return st; /* what is there of a damaged file is read all the same */
    *form = trace_form_of(head, n);
    if (*form == CD_TRACE_AUTO)
        return cd_err_at(err,
                         CD_FAIL(err, ESCHEMA,
                                 "%s; export it first: nsys export --type sqlite, ncu --csv --page "
                                 "raw, nvprof --csv --print-gpu-trace",
                                 n ? "no text and no SQLite file" : "the file is empty"),
                         path, 0);
    return CDMPP_OK;
}

static cdmpp_status trace_read_nsys(cd_trace_reader *r, cdmpp_err *err);

cdmpp_status cd_trace_read(const char *path, const cd_trace_reading *how, cd_trace **out,
                           cdmpp_err *err) {
    cd_trace_reader r = {.how = how, .path = path, .t = cd_mem_zalloc(1, sizeof *r.t)};
    cd_trace_form form = how->form;
    uint32_t none;
    *out = NULL;
    if (!r.t) return CD_FAIL(err, ENOMEM, "trace");
    cdmpp_status st = form == CD_TRACE_AUTO ? look(path, &form, err) : CDMPP_OK;
    r.t->form = "";
    if (!st) st = cd_trace_number(&r, (cd_str){"", 0}, &none, err); /* number 0 is "" */
    if (!st && form == CD_TRACE_CHROME) st = cd_trace_read_chrome(&r, err);
    else if (!st && form == CD_TRACE_NSYS) st = trace_read_nsys(&r, err);
    else if (!st) st = cd_trace_read_csv(&r, err);
    if (!st) st = cd_trace_whole_events(r.t, err);
    if (!st && r.t->said.oom) st = CD_FAIL(err, ENOMEM, "trace");
    cd_arena_free(&r.arena);
    cd_buf_free(&r.text);
    if (st) cd_trace_free(r.t);
    else *out = r.t;
    return st;
}

void cd_trace_free(cd_trace *t) {
    if (!t) return;
    cd_dict_free(&t->text);
    cd_mem_free(t->event);
    cd_mem_free(t->question);
    cd_mem_free(t->sum);
    cd_buf_free(&t->said);
    cd_mem_free(t);
}

/* trace_nsys -- a SQLite export of Nsight Systems.
 *
 *   CUPTI_ACTIVITY_KIND_KERNEL(start, end [ns], deviceId, streamId, correlationId, demangledName |
 *   shortName -> StringIds, gridX .. blockZ)
 *   CUPTI_ACTIVITY_KIND_MEMCPY, _MEMSET(start, end, deviceId, streamId, correlationId, bytes,
 *   copyKind)
 *   CUPTI_ACTIVITY_KIND_RUNTIME(start, end, globalTid, correlationId)
 *   NVTX_EVENTS(start, end, text | textId -> StringIds, globalTid)
 *   TARGET_INFO_GPU(id, name)
 *
 * Tables and columns differ between versions: what is not there is not read. Without kernels the
 * file is refused. */

typedef struct nsys {
    cd_trace_reader *r;
    sqlite3 *db;
    cd_sqlite_bound bound;
    bool gpus; /* names of GPUs are there */
    /* launches say whose they are: correlations of several processes may be equal */
    bool processes;
} nsys;

static cdmpp_status fail(const nsys *n, cdmpp_err *err) {
    const int code = sqlite3_errcode(n->db) & 0xff;
    const char *why = sqlite3_errmsg(n->db);
    cdmpp_status st;
    if (code == SQLITE_NOMEM) st = CD_FAIL(err, ENOMEM, "read the export");
    else if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        st = CD_FAIL(err, EPARSE, "the export is damaged: %s", why);
    else if (code == SQLITE_INTERRUPT) st = cd_sqlite_bound_fail(&n->bound, err);
    else if (code == SQLITE_TOOBIG)
        st = CD_FAIL(err, ERANGE, "the export has a text or row of more than %d bytes",
                     CD_SQLITE_TEXT_MAX);
    /* what should be a table is a view, or lacks a column */
    else if (code == SQLITE_ERROR) st = CD_FAIL(err, ESCHEMA, "read the export: %s", why);
    else st = CD_FAIL(err, EIO, "read the export: %s", why);
    return cd_err_at(err, st, n->r->path, 0);
}

/* A stored column of a table: views are none, and columns that are computed are not among the rows
 * of table_info. */
static bool has(const nsys *n, const char *table, const char *column) {
    sqlite3_stmt *q = NULL;
    bool is = false;
    if (sqlite3_prepare_v2(n->db,
                           "SELECT 1 FROM pragma_table_info(?1) WHERE name=?2 AND EXISTS(SELECT 1 "
                           "FROM sqlite_schema t WHERE t.name=?1 AND t.type='table')",
                           -1, &q, NULL) == SQLITE_OK) {
        sqlite3_bind_text(q, 1, table, -1, SQLITE_STATIC);
        sqlite3_bind_text(q, 2, column, -1, SQLITE_STATIC);
        is = sqlite3_step(q) == SQLITE_ROW;
    }
    sqlite3_finalize(q);
    return is;
}

/* The columns of every query, in this order; what a table lacks is NULL. */
enum {
    ROW,
    START,
    END,
    NAME,
    DEVICE,
    STREAM,
    LINK,
    BYTES,
    GPU,
    GRID,
    COPY_KIND = GRID + 6,
    PROCESS
};

/* Puts "alias.column", or NULL where the table lacks it. */
static void put(const nsys *n, cd_buf *sql, const char *table, const char *column) {
    if (has(n, table, column)) cd_buf_putf(sql, ", e.%s", column);
    else cd_buf_puts(sql, ", NULL");
}

static void put_name(const nsys *n, cd_buf *sql, const char *table, const char *const *name) {
    cd_buf_puts(sql, ", coalesce(");
    for (; *name; name++) {
        if (!has(n, table, *name)) continue;
        if (!strcmp(*name, "text")) cd_buf_puts(sql, "e.text, ");
        else cd_buf_putf(sql, "(SELECT s.value FROM StringIds s WHERE s.id=e.%s), ", *name);
    }
    cd_buf_puts(sql, "NULL, NULL)");
}

static void query_of(const nsys *n, cd_buf *sql, const char *table, const char *const *name) {
    static const char *const dim[] = {"gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"};
    cd_buf_puts(sql, "SELECT e.rowid, e.start, e.end");
    put_name(n, sql, table, name);
    put(n, sql, table, "deviceId");
    put(n, sql, table, has(n, table, "streamId") ? "streamId" : "globalTid");
    put(n, sql, table, "correlationId");
    put(n, sql, table, "bytes");
    if (n->gpus && has(n, table, "deviceId"))
        cd_buf_puts(sql, ", (SELECT g.name FROM TARGET_INFO_GPU g WHERE g.id=e.deviceId LIMIT 1)");
    else cd_buf_puts(sql, ", NULL");
    for (size_t i = 0; i < 6; i++) put(n, sql, table, dim[i]);
    put(n, sql, table, "copyKind");
    if (!n->processes) cd_buf_puts(sql, ", 0");
    else
        cd_buf_puts(sql, has(n, table, "globalPid")   ? ", e.globalPid >> 24"
                         : has(n, table, "globalTid") ? ", e.globalTid >> 24"
                                                      : ", 0");
    cd_buf_putf(sql, " FROM %s e ORDER BY e.rowid", table);
}

static cd_str text_at(sqlite3_stmt *q, int column) {
    const char *p = (const char *)sqlite3_column_text(q, column);
    return (cd_str){p ? p : "", p ? (size_t)sqlite3_column_bytes(q, column) : 0};
}

/* What CUPTI calls the kinds of copies. */
static cd_str copy_name(int64_t kind) {
    static const char *const name[] = {[1] = "memcpy HtoD",
                                       [2] = "memcpy DtoH",
                                       [8] = "memcpy DtoD",
                                       [9] = "memcpy HtoH",
                                       [10] = "memcpy PtoP"};
    const char *s = kind >= 1 && kind <= 10 && name[kind] ? name[kind] : "memcpy";
    return (cd_str){s, strlen(s)};
}

static cdmpp_status name_and_shape(const nsys *n, sqlite3_stmt *q, cd_trace_event *e,
                                   cdmpp_err *err) {
    cd_str name = text_at(q, NAME);
    cd_buf *b = &n->r->text;
    cd_buf_clear(b);
    if (e->kind == CD_TRACE_COPY) name = copy_name(sqlite3_column_int64(q, COPY_KIND));
    if (e->kind == CD_TRACE_SET) name = (cd_str){"memset", 6};
    if (!name.n && e->kind != CD_TRACE_CALL)
        return CD_FAIL(err, ESCHEMA, "row %ld: expected a name of StringIds, found none", e->line);
    if (e->kind == CD_TRACE_KERNEL) {
        cd_buf_puts(b, "[[");
        for (int i = 0; i < 6; i++) {
            cd_buf_puts(b, i == 3 ? "],[" : i ? "," : "");
            cd_buf_put_int(b, sqlite3_column_int64(q, GRID + i));
        }
        cd_buf_puts(b, "]]");
    }
    if (b->oom) return CD_FAIL(err, ENOMEM, "event of a trace");
    CD_TRY(cd_trace_number(n->r, name, &e->name, err));
    return cd_trace_number(n->r, (cd_str){b->n ? b->p : "", b->n}, &e->shape, err);
}

static cdmpp_status take(const nsys *n, sqlite3_stmt *q, cd_trace_kind kind, cdmpp_err *err) {
    cd_trace_event e = cd_trace_event_init(kind, (long)sqlite3_column_int64(q, ROW));
    const int64_t start = sqlite3_column_int64(q, START), end = sqlite3_column_int64(q, END);
    const cd_str gpu = text_at(q, GPU);
    char number[32];
    /* a mark, or a range that never ended */
    const bool none = sqlite3_column_type(q, END) == SQLITE_NULL;
    if (kind == CD_TRACE_RANGE && (none || !text_at(q, NAME).n)) return CDMPP_OK;
    n->r->t->lines += kind != CD_TRACE_CALL;
    if (end < start || (end == start && kind <= CD_TRACE_SET) || none)
        return CD_FAIL(err, ERANGE, "row %ld: expected an end after its start", e.line);
    if (start < 0) return CD_FAIL(err, ERANGE, "row %ld: expected a start of 0 or more", e.line);
    CD_TRY(name_and_shape(n, q, &e, err));
    const int m =
        snprintf(number, sizeof number, "cuda:%lld", (long long)sqlite3_column_int64(q, DEVICE));
    const cd_str host = {"cpu", 3}, device = gpu.n ? gpu : (cd_str){number, (size_t)m};
    CD_TRY(cd_trace_device_number(n->r, kind >= CD_TRACE_OP ? host : device, &e.device, err));
    if (kind < CD_TRACE_OP) e.unit = (int32_t)sqlite3_column_int(q, DEVICE);
    e.start_ns = start;
    e.time_s = (double)(end - start) / 1e9;
    e.thread = sqlite3_column_int64(q, STREAM);
    if (sqlite3_column_type(q, LINK) != SQLITE_NULL)
        e.link = (int64_t)(cd_rng_at((uint64_t)sqlite3_column_int64(q, PROCESS),
                                     (uint64_t)sqlite3_column_int64(q, LINK)) >>
                           1);
    if (sqlite3_column_type(q, BYTES) != SQLITE_NULL)
        e.bytes = (double)sqlite3_column_int64(q, BYTES);
    return cd_trace_add(n->r, &e, err);
}

static cdmpp_status read_table(const nsys *n, const char *table, const char *const *name,
                               cd_trace_kind kind, cdmpp_err *err) {
    cd_buf sql = {0};
    sqlite3_stmt *q = NULL;
    int rc = SQLITE_DONE;
    cdmpp_status st = CDMPP_OK;
    query_of(n, &sql, table, name);
    if (sql.oom) st = CD_FAIL(err, ENOMEM, "query");
    if (!st && sqlite3_prepare_v2(n->db, sql.p, (int)sql.n, &q, NULL) != SQLITE_OK)
        st = fail(n, err);
    while (!st && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        cdmpp_err e = {0};
        const cdmpp_status one =
            cd_err_at(&e, take(n, q, kind, &e), n->r->path, (long)sqlite3_column_int64(q, ROW));
        if (one) st = cd_trace_bad(n->r, one, &e, err);
        if (!st) st = cd_trace_stopped(n->r, err);
    }
    if (!st && rc != SQLITE_DONE) st = fail(n, err);
    sqlite3_finalize(q);
    cd_buf_free(&sql);
    return st;
}

static cdmpp_status read_all(nsys *n, cdmpp_err *err) {
    static const char *const kernel[] = {"demangledName", "shortName", NULL};
    static const char *const text[] = {"text", "textId", NULL};
    static const char *const none[] = {NULL};
    static const struct {
        const char *table;
        const char *const *name;
        cd_trace_kind kind;
    } part[] = {{"CUPTI_ACTIVITY_KIND_KERNEL", kernel, CD_TRACE_KERNEL},
                {"CUPTI_ACTIVITY_KIND_MEMCPY", none, CD_TRACE_COPY},
                {"CUPTI_ACTIVITY_KIND_MEMSET", none, CD_TRACE_SET},
                {"CUPTI_ACTIVITY_KIND_RUNTIME", none, CD_TRACE_CALL},
                {"NVTX_EVENTS", text, CD_TRACE_RANGE}};
    const bool named = has(n, part[0].table, "demangledName") || has(n, part[0].table, "shortName");
    if (!named || !has(n, part[0].table, "start") || !has(n, part[0].table, "end") ||
        !has(n, "StringIds", "value"))
        return cd_err_at(
            err,
            CD_FAIL(err, ESCHEMA,
                    "expected tables CUPTI_ACTIVITY_KIND_KERNEL and StringIds: no Nsight Systems "
                    "export, or one of a run without kernels"),
            n->r->path, 0);
    n->processes = has(n, part[0].table, "globalPid");
    n->gpus = has(n, "TARGET_INFO_GPU", "id") && has(n, "TARGET_INFO_GPU", "name");
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (!(n->r->how->skip >> part[i].kind & 1) && has(n, part[i].table, "start") &&
            has(n, part[i].table, "end"))
            CD_TRY(read_table(n, part[i].table, part[i].name, part[i].kind, err));
    return CDMPP_OK;
}

static cdmpp_status trace_read_nsys(cd_trace_reader *r, cdmpp_err *err) {
    nsys n = {.r = r};
    cdmpp_status st = CDMPP_OK;
    r->t->form = "nsys";
    if (sqlite3_open_v2(r->path, &n.db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK) {
        if (n.db) st = fail(&n, err);
        else st = CD_FAIL(err, ENOMEM, "SQLite");
    }
    if (!st) cd_sqlite_bound_set(&n.bound, n.db, r->path, r->how->stop);
    if (!st) st = read_all(&n, err);
    sqlite3_close(n.db);
    return st;
}

/* trace_onnxruntime -- what a session of ONNX Runtime writes with enable_profiling.
 *
 *   {"cat": "Session", "ph": "X", "name": "model_run", "ts": us, "dur": us, "args": {}}
 *   {"cat": "Node", "ph": "X", "name": "conv1_kernel_time", "ts": us, "dur": us, "tid": 7,
 *    "args": {"op_name": "Conv", "provider": "CPUExecutionProvider", "input_type_shape": [{"float":
 *    [1, 3, 224, 224]}, {"float": [64, 3, 7, 7]}]}}
 *   {"cat": "Kernel", "ph": "X", "name": "sgemm", "ts": us, "dur": us, "args": {"op_name": "Conv",
 *   "stream": "7", "grid_x": "8", ..}}
 *
 * A node on the CPU is a kernel of its thread. A node of a provider that launches on a device has
 * the time of its launch: it is an operator where the trace has the device's kernels, which its
 * profiler only writes in some builds. */

#define DEVICE_NODE (-2) /* external of a node that launches on a device, until the trace is read */

static bool text_is(const cd_json *v, const char *word) {
    return v && v->kind == CD_JSON_STR && cd_str_is(v->u.s, word);
}
static cd_str text_of(const cd_json *v) {
    return v && v->kind == CD_JSON_STR ? v->u.s : (cd_str){"", 0};
}

/* Without `end`; false: it does not end so. */
static bool cut(cd_str *s, const char *end) {
    const size_t n = strlen(end);
    if (s->n < n || memcmp(s->p + s->n - n, end, n) != 0) return false;
    return s->n -= n, true;
}

/* Names of element types as ONNX and our tables have them. */
static cd_str type_name(cd_str s) {
    if (cd_str_is(s, "float")) return (cd_str){"float32", 7};
    return cd_str_is(s, "double") ? (cd_str){"float64", 7} : s;
}

/* "[[1,3,224,224],[64,3,7,7]]" of the inputs, and the type of the first. */
static void put_inputs(const cd_json *list, cd_buf *b, cd_str *type) {
    cd_buf_puts(b, "[");
    for (const cd_json *in = list && list->kind == CD_JSON_ARR ? list->u.child : NULL; in;
         in = in->next) {
        const cd_json *dims = in->kind == CD_JSON_OBJ ? in->u.child : NULL;
        if (in != list->u.child) cd_buf_puts(b, ",");
        cd_buf_puts(b, "[");
        for (const cd_json *d = dims && dims->kind == CD_JSON_ARR ? dims->u.child : NULL; d;
             d = d->next)
            cd_buf_putf(b, "%s%lld", d == dims->u.child ? "" : ",",
                        d->kind == CD_JSON_INT ? (long long)d->u.i : 0);
        cd_buf_puts(b, "]");
        if (dims && !type->n) *type = type_name(dims->key);
    }
    cd_buf_puts(b, "]");
}

static cdmpp_status sizes(cd_trace_reader *r, const cd_json *args, cd_trace_event *e,
                          cdmpp_err *err) {
    const cd_json *in = cd_json_get(args, "input_type_shape");
    cd_str type = {"", 0};
    if (!in) return CDMPP_OK;
    cd_buf_clear(&r->text);
    put_inputs(in, &r->text, &type);
    if (r->text.oom) return CD_FAIL(err, ENOMEM, "event of a trace");
    if (!type.n) return CDMPP_OK;
    CD_TRY(cd_trace_number(r, type, &e->dtype, err));
    return cd_trace_number(r, (cd_str){r->text.p, r->text.n}, &e->shape, err);
}

/* "cpu", "cuda:0"; of other providers their name in small letters. */
static cdmpp_status place(cd_trace_chrome *c, cd_str provider, cd_trace_event *e, cdmpp_err *err) {
    char name[40];
    const bool cpu = !provider.n || cd_str_is(provider, "CPUExecutionProvider"),
               cuda = cd_str_is(provider, "CUDAExecutionProvider") ||
                      cd_str_is(provider, "TensorrtExecutionProvider");
    if (!cpu && !c->nodes.device++)
        (void)snprintf(c->nodes.provider, sizeof c->nodes.provider, "%.*s",
                       cd_str_shown(provider, 39), provider.p);
    (void)cut(&provider, "ExecutionProvider");
    int n = snprintf(name, sizeof name, "%.*s", cd_str_shown(provider, 39), provider.p);
    for (char *p = name; *p; p++) *p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
    if (cpu || cuda) n = snprintf(name, sizeof name, "%s", cpu ? "cpu" : "cuda:0");
    if (!cpu) e->external = DEVICE_NODE;
    return cd_trace_device_number(c->r, (cd_str){name, (size_t)n}, &e->device, err);
}

static cdmpp_status times(const cd_json *v, cd_trace_event *e, cdmpp_err *err) {
    const cd_json *tid = cd_json_get(v, "tid");
    double ts, us;
    CD_TRY(cd_json_need_real(v, "ts", 0, 9e15, &ts, err));
    CD_TRY(cd_json_need_real(v, "dur", 0, 1e15, &us, err));
    e->start_ns = (int64_t)llround(ts * 1e3);
    e->time_s = us * 1e-6;
    if (tid && tid->kind == CD_JSON_INT) e->thread = tid->u.i;
    return CDMPP_OK;
}

static cdmpp_status node(cd_trace_chrome *c, const cd_json *v, cd_str name, long line,
                         cdmpp_err *err) {
    const cd_json *args = cd_json_get(v, "args");
    cd_trace_event e = cd_trace_event_init(CD_TRACE_KERNEL, line);
    c->r->t->lines++;
    CD_TRY(times(v, &e, err));
    if (!(e.time_s > 0)) return c->r->t->empty++, CDMPP_OK;
    CD_TRY(cd_trace_number(c->r, name, &e.name, err));
    CD_TRY(cd_trace_number(c->r, text_of(cd_json_get(args, "op_name")), &e.op, err));
    CD_TRY(sizes(c->r, args, &e, err));
    CD_TRY(place(c, text_of(cd_json_get(args, "provider")), &e, err));
    return cd_trace_add(c->r, &e, err);
}

static cdmpp_status run(cd_trace_chrome *c, const cd_json *v, long line, cdmpp_err *err) {
    cd_trace_event e = cd_trace_event_init(CD_TRACE_RANGE, line);
    if (!text_is(cd_json_get(v, "name"), "model_run") || c->r->how->skip >> CD_TRACE_RANGE & 1)
        return CDMPP_OK;
    CD_TRY(times(v, &e, err));
    CD_TRY(cd_trace_number(c->r, (cd_str){"model_run", 9}, &e.name, err));
    CD_TRY(cd_trace_number(c->r, (cd_str){"cpu", 3}, &e.device, err));
    return cd_trace_add(c->r, &e, err);
}

/* Fences and the session's own work are no kernels. */
cdmpp_status cd_trace_ort_event(cd_trace_chrome *c, const cd_json *v, long line, bool *mine,
                                cdmpp_err *err) {
    const cd_json *cat = cd_json_get(v, "cat");
    const bool session = text_is(cat, "Session");
    cd_str name = text_of(cd_json_get(v, "name"));
    *mine = (session || text_is(cat, "Node")) && text_is(cd_json_get(v, "ph"), "X");
    if (!*mine) return CDMPP_OK;
    c->ort = true;
    if (session) return run(c, v, line, err);
    return cut(&name, "_kernel_time") ? node(c, v, name, line, err) : CDMPP_OK;
}

cdmpp_status cd_trace_ort_end(cd_trace_chrome *c, cdmpp_err *err) {
    cd_trace *t = c->r->t;
    uint32_t cpu;
    if (!c->ort || !c->nodes.device) return CDMPP_OK;
    CD_TRY(cd_trace_number(c->r, (cd_str){"cpu", 3}, &cpu, err));
    for (size_t i = 0; i < t->n; i++) {
        cd_trace_event *e = &t->event[i];
        if (e->kind != CD_TRACE_KERNEL || e->external != DEVICE_NODE) continue;
        e->external = -1;
        if (c->nodes.kernels) e->kind = CD_TRACE_OP, e->device = cpu;
    }
    if (!c->nodes.kernels)
        cd_buf_putf(&t->said,
                    "the %llu nodes of %s and the like have the time that their launch took on the "
                    "host: the trace has no kernels of the device\n",
                    (unsigned long long)c->nodes.device, c->nodes.provider);
    return CDMPP_OK;
}

/* trace_trtexec -- what trtexec writes about the runs of a TensorRT engine.
 *
 *   -exportProfile  [{"count": 330}, {"name": "conv1 + relu1", "timeMs": 14.5, "averageMs": 0.0439,
 *                   "medianMs": 0.0438, "percentage": 48.0}, ..]
 *   -exportTimes    [{"startEnqMs": ..., "startH2dMs": 1.0, "endH2dMs": 1.1, "startComputeMs": 1.1,
 *                   "endComputeMs": 3.2, "startD2hMs": .., "endD2hMs": ..}, ..]
 *
 * A layer is a row of a summary: `averageMs` is of one of its runs, `timeMs` of all. Its figures
 * here are those of one inference, of which there were `count`. Of the times each row is one
 * inference: a range with a launch of the whole network and its copies. */

static cdmpp_status place_trtexec(cd_trace_chrome *c, const char *name, cd_trace_event *e,
                                  cdmpp_err *err) {
    /* trtexec does not tell it */
    CD_TRY(cd_trace_device_number(c->r, (cd_str){"", 0}, &e->device, err));
    return cd_trace_number(c->r, (cd_str){name, strlen(name)}, &e->name, err);
}

/* ---- the profile ---- */
static cdmpp_status layer(cd_trace_chrome *c, const cd_json *v, long line, cdmpp_err *err) {
    cd_trace *t = c->r->t;
    cd_trace_event e = cd_trace_event_init(CD_TRACE_KERNEL, line);
    cd_trace_sum s = {.n = 1, .min_s = NAN, .median_s = NAN, .max_s = NAN};
    double total, mean, median;
    cd_str name;
    t->lines++;
    CD_TRY(cd_json_need_str(v, "name", &name, err));
    CD_TRY(cd_json_need_real(v, "timeMs", 0, 1e12, &total, err));
    CD_TRY(cd_json_need_real(v, "averageMs", 0, 1e12, &mean, err));
    if (!(mean > 0)) return t->empty++, CDMPP_OK; /* a layer that became part of another one */
    if (cd_json_get(v, "medianMs")) {
        CD_TRY(cd_json_need_real(v, "medianMs", 0, 1e12, &median, err));
        s.median_s = median * 1e-3;
    }
    s.n = fmax(1, round(total / mean)); /* runs in all inferences, until their number is known */
    if (CD_GROW(t->sum, t->n_sum, t->cap_sum)) return CD_FAIL(err, ENOMEM, "layers of a profile");
    e.time_s = mean * 1e-3;
    e.sum = (uint32_t)t->n_sum;
    t->sum[t->n_sum++] = s;
    CD_TRY(place_trtexec(c, "", &e, err));
    CD_TRY(cd_trace_number(c->r, name, &e.name, err));
    return cd_trace_add(c->r, &e, err);
}

/* Averages have few digits, so a layer that ran nearly once in each inference ran once. */
void cd_trace_trt_end(cd_trace_chrome *c) {
    cd_trace *t = c->r->t;
    if (!c->trt || c->times) return;
    for (size_t i = 0; i < t->n_sum && !(c->runs > 0); i++)
        t->inferences = fmax(t->inferences, t->sum[i].n);
    if (c->runs > 0) t->inferences = c->runs;
    for (size_t i = 0; i < t->n_sum; i++) {
        const double each = t->sum[i].n / t->inferences, whole = fmax(1, round(each));
        t->sum[i].n = fabs(each - whole) < 0.02 * whole ? whole : each;
    }
}

/* ---- the times ---- */
static const struct {
    const char *old_start, *old_end, *start, *end, *name;
    cd_trace_kind kind;
} part[] = {{"startInMs", "endInMs", "startH2dMs", "endH2dMs", "memcpy HtoD", CD_TRACE_COPY},
            {"startComputeMs", "endComputeMs", "startComputeMs", "endComputeMs", "network",
             CD_TRACE_KERNEL},
            {"startOutMs", "endOutMs", "startD2hMs", "endD2hMs", "memcpy DtoH", CD_TRACE_COPY}};

static cdmpp_status span(cd_trace_chrome *c, const cd_json *v, size_t k, cd_trace_event *e,
                         cdmpp_err *err) {
    const bool old = !cd_json_get(v, part[k].start);
    double from, to;
    /* a launch of its own: inferences of several streams overlap, and the file does not name the
     * streams */
    e->link = e->line;
    CD_TRY(cd_json_need_real(v, old ? part[k].old_start : part[k].start, 0, 1e12, &from, err));
    CD_TRY(cd_json_need_real(v, old ? part[k].old_end : part[k].end, from, 1e12, &to, err));
    e->start_ns = (int64_t)llround(from * 1e6);
    e->time_s = (to - from) * 1e-3;
    return place_trtexec(c, part[k].name, e, err);
}

static cdmpp_status inference(cd_trace_chrome *c, const cd_json *v, long line, cdmpp_err *err) {
    cd_trace *t = c->r->t;
    cd_trace_event whole = cd_trace_event_init(CD_TRACE_RANGE, line);
    int64_t end = 0;
    for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
        cd_trace_event e = cd_trace_event_init(part[k].kind, line);
        if (part[k].kind == CD_TRACE_COPY && !cd_json_get(v, part[k].start) &&
            !cd_json_get(v, part[k].old_start))
            continue;
        t->lines += !(c->r->how->skip >> e.kind & 1);
        CD_TRY(span(c, v, k, &e, err));
        const int64_t last = e.start_ns + llround(e.time_s * 1e9);
        if (whole.start_ns == CD_TRACE_UNTIMED || e.start_ns < whole.start_ns)
            whole.start_ns = e.start_ns;
        if (last > end) end = last;
        if (c->r->how->skip >> e.kind & 1) continue;
        if (e.time_s > 0) CD_TRY(cd_trace_add(c->r, &e, err));
        else t->empty += e.kind == CD_TRACE_KERNEL;
    }
    whole.time_s = 1e-9 * (double)(end - whole.start_ns);
    if (c->r->how->skip >> CD_TRACE_RANGE & 1) return CDMPP_OK;
    CD_TRY(place_trtexec(c, "inference", &whole, err));
    return cd_trace_add(c->r, &whole, err);
}

cdmpp_status cd_trace_trt_row(cd_trace_chrome *c, const cd_json *v, long line, bool *mine,
                              cdmpp_err *err) {
    const cd_json *count = cd_json_get(v, "count");
    const bool times = cd_json_get(v, "startComputeMs") != NULL,
               row = cd_json_get(v, "timeMs") || cd_json_get(v, "averageMs");
    *mine = times || row || (count && v->n == 1);
    if (!*mine) return CDMPP_OK;
    c->trt = true;
    c->times |= times;
    if (times) return inference(c, v, line, err);
    return row ? layer(c, v, line, err) : cd_json_need_real(v, "count", 1, 1e15, &c->runs, err);
}
