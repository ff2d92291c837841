/* store_nsys -- kernels of an Nsight Systems SQLite export.
 *
 *   CUPTI_ACTIVITY_KIND_KERNEL(start, end [ns], deviceId, demangledName | shortName -> StringIds, gridX .. blockZ, ...)
 *   TARGET_INFO_GPU(id, name), where the export has it
 *
 * Launches of one kernel with one grid and block become one row; shape: [[grid],[block]]. */

#include "profiler/store/store_internal.h"

typedef struct nsys {
    cd_store_reading *r;
    sqlite3 *db;
    cd_store_launches g;
} nsys;

static cdmpp_status fail(const nsys *n, cdmpp_err *err) {
    const int code = sqlite3_errcode(n->db) & 0xff;
    const char *why = sqlite3_errmsg(n->db);
    cdmpp_status st;
    if (code == SQLITE_NOMEM) st = CD_FAIL(err, ENOMEM, "read the export");
    else if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) st = CD_FAIL(err, EPARSE, "the export is damaged: %s", why);
    else st = CD_FAIL(err, EIO, "read the export: %s", why);
    return cd_err_at(err, st, n->r->path, 0);
}

static bool has_column(const nsys *n, const char *table, const char *column) {
    sqlite3_stmt *q = NULL;
    bool has = false;
    if (sqlite3_prepare_v2(n->db, "SELECT 1 FROM pragma_table_info(?1) WHERE name=?2", -1, &q, NULL) == SQLITE_OK) {
        sqlite3_bind_text(q, 1, table, -1, SQLITE_STATIC);
        sqlite3_bind_text(q, 2, column, -1, SQLITE_STATIC);
        has = sqlite3_step(q) == SQLITE_ROW;
    }
    sqlite3_finalize(q);
    return has;
}

/* The query by what this export has: rowid, start, end, name, device, grid, block. */
static cdmpp_status query_of(const nsys *n, cd_buf *sql, cdmpp_err *err) {
    static const char kernel[] = "CUPTI_ACTIVITY_KIND_KERNEL";
    const char *name = has_column(n, kernel, "demangledName") ? "demangledName" : has_column(n, kernel, "shortName") ? "shortName" : NULL;
    const bool gpu = has_column(n, "TARGET_INFO_GPU", "id") && has_column(n, "TARGET_INFO_GPU", "name");
    if (!name || !has_column(n, kernel, "start") || !has_column(n, kernel, "end") || !has_column(n, "StringIds", "value"))
        return cd_err_at(err, CD_FAIL(err, ESCHEMA, "expected tables CUPTI_ACTIVITY_KIND_KERNEL and StringIds: no Nsight Systems "
                                                    "export, or one of a run without kernels"), n->r->path, 0);
    cd_buf_putf(sql, "SELECT k.rowid, k.start, k.end, s.value, k.deviceId, k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY, k.blockZ, %s "
                     "FROM %s k LEFT JOIN StringIds s ON s.id=k.%s ORDER BY k.rowid",
                gpu ? "(SELECT g.name FROM TARGET_INFO_GPU g WHERE g.id=k.deviceId LIMIT 1)" : "NULL", kernel, name);
    return sql->oom ? CD_FAIL(err, ENOMEM, "query") : CDMPP_OK;
}

/* The GPU's name where the export has it, else its number. */
static cdmpp_status launch(nsys *n, sqlite3_stmt *q, cd_buf *b, cdmpp_err *err) {
    const long row = (long)sqlite3_column_int64(q, 0);
    const int64_t start = sqlite3_column_int64(q, 1), end = sqlite3_column_int64(q, 2);
    const cd_str name = cd_store_text(q, 3), gpu = cd_store_text(q, 11);
    if (!name.n) return cd_err_at(err, CD_FAIL(err, ESCHEMA, "row %ld: expected a name of StringIds, found none", row), n->r->path, row);
    if (end <= start) return cd_err_at(err, CD_FAIL(err, ERANGE, "row %ld: expected an end after its start", row), n->r->path, row);
    cd_buf_clear(b);
    cd_buf_puts(b, "[[");
    for (int i = 0; i < 6; i++) {
        cd_buf_puts(b, i == 3 ? "],[" : i ? "," : "");
        cd_buf_put_int(b, sqlite3_column_int64(q, 5 + i));
    }
    cd_buf_puts(b, "]]");
    const size_t shape = b->n;
    if (gpu.n) cd_buf_put(b, gpu.p, gpu.n);
    else cd_buf_putf(b, "cuda:%lld", (long long)sqlite3_column_int64(q, 4));
    if (b->oom) return CD_FAIL(err, ENOMEM, "launch");
    const cd_store_launch_group like = {.device = n->r->device.n ? n->r->device : (cd_str){b->p + shape, b->n - shape}, .target = {"cuda", 4},
                           .operator_name = name, .shape = {b->p, shape}, .line = row};
    return cd_store_launches_add(&n->g, &like, (double)(end - start) / 1e9, err);
}

/* A bad row is reported and skipped, like a bad line. */
static cdmpp_status read_launches(nsys *n, cdmpp_err *err) {
    cd_buf sql = {0}, b = {0};
    sqlite3_stmt *q = NULL;
    int rc = SQLITE_DONE;
    cdmpp_status st = query_of(n, &sql, err);
    if (!st && sqlite3_prepare_v2(n->db, sql.p, (int)sql.n, &q, NULL) != SQLITE_OK) st = fail(n, err);
    while (!st && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        cdmpp_err e = {0};
        n->r->tally->lines++;
        const cdmpp_status one = launch(n, q, &b, &e);
        if (one) st = cd_store_bad(n->r, one, &e, err);
    }
    if (!st && rc != SQLITE_DONE) st = fail(n, err);
    sqlite3_finalize(q);
    cd_buf_free(&b);
    cd_buf_free(&sql);
    return st;
}

cdmpp_status cd_store_read_nsys(cd_store_reading *r, cdmpp_err *err) {
    nsys n = {.r = r};
    cdmpp_status st = CDMPP_OK;
    if (sqlite3_open_v2(r->path, &n.db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        if (n.db) st = fail(&n, err);
        else st = CD_FAIL(err, ENOMEM, "SQLite");
    }
    if (!st) st = read_launches(&n, err);
    if (!st) st = cd_store_launches_save(&n.g, r, err);
    if (!st) st = cd_store_mark(r, n.g.n, true, err);
    cd_store_launches_free(&n.g);
    sqlite3_close(n.db);
    return st;
}
