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
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "profiler/trace/trace_internal.h"

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

cdmpp_status cd_trace_read_nsys(cd_trace_reader *r, cdmpp_err *err) {
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
