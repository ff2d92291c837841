/* The open file: its schema, its statements, its transactions. Many processes may write one store,
 * so a transaction is short (BATCH_S), and whoever waits polls in even, short steps: SQLite's own
 * busy handler backs off and starves. */
#include "profiler/store/store_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCH_S 0.5

static const char schema[] =
    "CREATE TABLE device(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE target(id INTEGER PRIMARY KEY, text TEXT NOT NULL, kind TEXT NOT NULL, tail TEXT "
    "NOT NULL, UNIQUE(text, tail));"
    "CREATE TABLE operator(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE workload(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, operator INTEGER NOT "
    "NULL REFERENCES operator,"
    " shape TEXT NOT NULL, dtype TEXT NOT NULL, layout TEXT NOT NULL, flop REAL, known INTEGER NOT "
    "NULL);"
    "CREATE INDEX workload_operator ON workload(operator);"
    "CREATE TABLE schedule(id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, steps TEXT NOT "
    "NULL);"
    "CREATE TABLE environment(id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, host TEXT NOT "
    "NULL, cpu TEXT NOT NULL,"
    " os TEXT NOT NULL, compiler TEXT NOT NULL, governor TEXT NOT NULL, tool TEXT NOT NULL, extra "
    "TEXT NOT NULL);"
    "CREATE TABLE source(id INTEGER PRIMARY KEY, path TEXT NOT NULL, form TEXT NOT NULL, size "
    "INTEGER NOT NULL,"
    " mtime_ns INTEGER NOT NULL, lines INTEGER NOT NULL, done INTEGER NOT NULL, UNIQUE(path, "
    "form));"
    "CREATE TABLE measurement(id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, device INTEGER "
    "NOT NULL REFERENCES device,"
    " target INTEGER NOT NULL REFERENCES target, workload INTEGER NOT NULL REFERENCES workload,"
    " schedule INTEGER REFERENCES schedule, environment INTEGER REFERENCES environment, source "
    "INTEGER REFERENCES source,"
    " line INTEGER NOT NULL, error_no INTEGER NOT NULL, min_s REAL, median_s REAL, mean_s REAL, "
    "std_s REAL, cv REAL,"
    " n INTEGER NOT NULL, flags INTEGER NOT NULL, costs BLOB, total_s REAL NOT NULL, timestamp "
    "INTEGER NOT NULL,"
    " version TEXT NOT NULL);"
    "CREATE INDEX measurement_best ON measurement(workload, device, median_s) WHERE error_no = 0;";

static const char *const sql_text[CD_N_SQL] = {
#define CD_X(id, sql) sql,
    CD_STORE_SQL_MAP(CD_X)
#undef CD_X
};

/* ---- SQLite's errors as statuses ---- */
cdmpp_status cd_store_fail(const cd_store *s, const char *what, cdmpp_err *err) {
    const int code = s->db ? sqlite3_errcode(s->db) & 0xff : SQLITE_NOMEM;
    const char *why = s->db ? sqlite3_errmsg(s->db) : "out of memory";
    cdmpp_status st;
    if (code == SQLITE_NOMEM) st = CD_FAIL(err, ENOMEM, "%s", what);
    else if (code == SQLITE_CORRUPT)
        st = CD_FAIL(err, EPARSE, "%s: the file is damaged: %s", what, why);
    else if (code == SQLITE_NOTADB)
        st = CD_FAIL(err, ESCHEMA, "expected a store, found another kind of file");
    else if (code == SQLITE_BUSY)
        st = CD_FAIL(err, EIO, "%s: another process has held the store for %d s", what,
                     CD_STORE_WAIT_S);
    else if (code == SQLITE_INTERRUPT) st = cd_sqlite_bound_fail(&s->bound, err);
    else if (code == SQLITE_TOOBIG)
        st = CD_FAIL(err, ERANGE, "%s: a text or row of more than %d bytes", what,
                     CD_SQLITE_TEXT_MAX);
    else st = CD_FAIL(err, EIO, "%s: %s", what, why);
    return cd_err_at(err, st, s->path, 0);
}

cdmpp_status cd_store_stmt(cd_store *s, cd_store_sql which, sqlite3_stmt **out, cdmpp_err *err) {
    *out = NULL;
    if (!s->stmt[which] && sqlite3_prepare_v3(s->db, sql_text[which], -1, SQLITE_PREPARE_PERSISTENT,
                                              &s->stmt[which], NULL) != SQLITE_OK)
        return cd_store_fail(s, "prepare", err);
    *out = s->stmt[which];
    return CDMPP_OK;
}

cdmpp_status cd_store_done(cd_store *s, sqlite3_stmt *q, cdmpp_err *err) {
    const int rc = sqlite3_step(q);
    const cdmpp_status st = rc == SQLITE_DONE ? CDMPP_OK : cd_store_fail(s, "write", err);
    sqlite3_reset(q);
    return st;
}

void cd_store_bind(sqlite3_stmt *q, int i, cd_str text) {
    sqlite3_bind_text64(q, i, text.p ? text.p : "", text.n, SQLITE_STATIC, SQLITE_UTF8);
}

cd_str cd_store_text(sqlite3_stmt *q, int column) {
    const unsigned char *p = sqlite3_column_text(q, column);
    return (cd_str){p ? (const char *)p : "", p ? (size_t)sqlite3_column_bytes(q, column) : 0};
}

/* ---- hashing ---- */
static uint64_t turn(uint64_t x, int by) { return x << by | x >> (64 - by); }

void cd_store_digest_init(cd_store_digest *d) {
    *d = (cd_store_digest){{0x243f6a8885a308d3u, 0x13198a2e03707344u}};
}

void cd_store_digest_word(cd_store_digest *d, uint64_t x) {
    d->h[0] = (turn(d->h[0], 29) ^ x) * 0x9e3779b97f4a7c15u;
    d->h[1] = (turn(d->h[1], 37) + x) * 0xbf58476d1ce4e5b9u;
    d->h[0] ^= d->h[1] >> 32;
    d->h[1] ^= d->h[0] >> 29;
}

void cd_store_digest_real(cd_store_digest *d, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    cd_store_digest_word(d, bits);
}

void cd_store_digest_text(cd_store_digest *d, cd_str s) {
    size_t i = 0;
    cd_store_digest_word(d, s.n);
    for (; i + 8 <= s.n; i += 8) {
        uint64_t x;
        memcpy(&x, s.p + i, 8);
        cd_store_digest_word(d, x);
    }
    uint64_t rest = 0;
    if (i < s.n) memcpy(&rest, s.p + i, s.n - i);
    if (i < s.n) cd_store_digest_word(d, rest);
}

/* ---- opening ---- */
static int wait_for_others(void *ctx, int tried) {
    (void)ctx;
    const struct timespec t = {0, 1000000};
    nanosleep(&t, NULL); /* short and even: a store is never held longer than BATCH_S */
    return tried < CD_STORE_WAIT_S * 1000;
}

static cdmpp_status number_of(cd_store *s, const char *sql, int64_t *out, cdmpp_err *err) {
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_step(q);
    if (rc == SQLITE_ROW) *out = sqlite3_column_int64(q, 0);
    const cdmpp_status st = rc == SQLITE_ROW ? CDMPP_OK : cd_store_fail(s, "open", err);
    sqlite3_finalize(q);
    return st;
}

static cdmpp_status run(cd_store *s, const char *sql, const char *what, cdmpp_err *err) {
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? CDMPP_OK
                                                                   : cd_store_fail(s, what, err);
}

/* SQLite does not call the busy handler where two processes turn the same file into a WAL at
 * once. */
static cdmpp_status become_wal(cd_store *s, cdmpp_err *err) {
    for (int tried = 0;; tried++) {
        const cdmpp_status st =
            run(s, "PRAGMA page_size=8192; PRAGMA journal_mode=WAL", "open", err);
        if (!st || (sqlite3_errcode(s->db) & 0xff) != SQLITE_BUSY || !wait_for_others(NULL, tried))
            return st;
        if (err) *err = (cdmpp_err){0};
    }
}

/* Two processes may meet here: the second finds the tables made. */
static cdmpp_status make_tables(cd_store *s, cdmpp_err *err) {
    char stamp[96];
    int64_t tables = 0;
    snprintf(stamp, sizeof stamp, "PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT",
             CD_STORE_APPLICATION, CD_STORE_VERSION);
    CD_TRY(become_wal(s, err));
    CD_TRY(run(s, "BEGIN IMMEDIATE", "open", err));
    CD_TRY(number_of(s, "SELECT count(*) FROM sqlite_schema", &tables, err));
    if (tables) return run(s, "COMMIT", "open", err);
    CD_TRY(run(s, schema, "make tables", err));
    return run(s, stamp, "make tables", err);
}

/* A store has tables and indexes of stored columns. What computes (views, triggers, virtual tables,
 * generated columns) somebody else has put there. */
static cdmpp_status plain_tables(cd_store *s, cdmpp_err *err) {
    int64_t others = 0, computed = 0;
    CD_TRY(number_of(s,
                     "SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table','index') OR "
                     "sql LIKE 'create virtual%'",
                     &others, err));
    if (!others)
        CD_TRY(number_of(s,
                         "SELECT count(*) FROM sqlite_schema t, pragma_table_xinfo(t.name) c WHERE "
                         "t.type='table' AND c.hidden<>0",
                         &computed, err));
    if (!others && !computed) return CDMPP_OK;
    return cd_err_at(err,
                     CD_FAIL(err, ESCHEMA, "expected tables of stored columns, found %s",
                             others ? "views, triggers or virtual tables" : "computed columns"),
                     s->path, 0);
}

static cdmpp_status check(cd_store *s, bool create, cdmpp_err *err) {
    int64_t app = 0, version = 0, tables = 0;
    CD_TRY(number_of(s, "SELECT count(*) FROM sqlite_schema", &tables, err));
    if (!tables && create) CD_TRY(make_tables(s, err));
    CD_TRY(number_of(s, "PRAGMA application_id", &app, err));
    CD_TRY(number_of(s, "PRAGMA user_version", &version, err));
    if (app != CD_STORE_APPLICATION)
        return cd_err_at(err, CD_FAIL(err, ESCHEMA, "expected a store, found another database"),
                         s->path, 0);
    if (version != CD_STORE_VERSION)
        return cd_err_at(err,
                         CD_FAIL(err, EUNSUPPORTED, "store of version %lld, this program knows %d",
                                 (long long)version, CD_STORE_VERSION),
                         s->path, 0);
    CD_TRY(plain_tables(s, err));
    return run(s,
               "PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=16384; PRAGMA "
               "foreign_keys=OFF; PRAGMA cache_size=-131072; PRAGMA temp_store=MEMORY",
               "open", err);
}

/* A file of another program is opened but not written: its application id is checked first. */
cdmpp_status cd_store_open(const char *path, bool create, cd_store **out, cdmpp_err *err) {
    cd_store *s = cd_mem_zalloc(1, sizeof *s);
    if (!s || !(s->path = cd_mem_text(path))) {
        cd_mem_free(s);
        return CD_FAIL(err, ENOMEM, "store");
    }
    cdmpp_status st = CDMPP_OK;
    if (!create && access(path, F_OK))
        st = cd_err_at(err, CD_FAIL(err, EIO, "cannot open: %s", strerror(errno)), path, 0);
    if (!st && sqlite3_open_v2(path, &s->db,
                               SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0) |
                                   SQLITE_OPEN_NOMUTEX,
                               NULL) != SQLITE_OK)
        st = cd_store_fail(s, "cannot open", err);
    if (!st) {
        sqlite3_busy_handler(s->db, wait_for_others, NULL);
        cd_sqlite_bound_set(&s->bound, s->db, path, NULL);
        st = check(s, create, err);
    }
    if (st) cd_store_close(s);
    else *out = s;
    return st;
}

void cd_store_close(cd_store *s) {
    if (!s) return;
    if (s->open) cd_store_commit(s, NULL);
    for (int i = 0; i < CD_N_SQL; i++) sqlite3_finalize(s->stmt[i]);
    sqlite3_close(s->db);
    cd_buf_free(&s->text);
    cd_arena_free(&s->scratch);
    cd_mem_free(s->known);
    cd_mem_free(s->path);
    cd_mem_free(s);
}

/* ---- transactions ---- */
cdmpp_status cd_store_begin(cd_store *s, cdmpp_err *err) {
    sqlite3_stmt *q = NULL;
    if (s->open) return CDMPP_OK;
    CD_TRY(cd_store_stmt(s, CD_SQL_BEGIN, &q, err));
    CD_TRY(cd_store_done(s, q, err));
    s->open = true;
    s->pending = 0;
    s->since_s = cd_clock_wall();
    return CDMPP_OK;
}

void cd_store_undo(cd_store *s) {
    if (s->open) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    s->open = false;
    cd_store_forget(s);
}

cdmpp_status cd_store_commit(cd_store *s, cdmpp_err *err) {
    sqlite3_stmt *q = NULL;
    if (!s->open) return CDMPP_OK;
    cdmpp_status st = cd_store_stmt(s, CD_SQL_COMMIT, &q, err);
    if (!st) st = cd_store_done(s, q, err);
    if (st) cd_store_undo(s);
    s->open = false;
    return st;
}

cdmpp_status cd_store_settle(cd_store *s, cdmpp_err *err) {
    /* longer than a waiting writer sleeps: it gets its turn */
    const struct timespec gap = {0, 1500000};
    if (!s->open || (s->pending < CD_STORE_BATCH && cd_clock_wall() - s->since_s < BATCH_S))
        return CDMPP_OK;
    CD_TRY(cd_store_commit(s, err));
    nanosleep(&gap, NULL);
    return CDMPP_OK;
}

cdmpp_status cd_store_step(cd_store *s, cdmpp_err *err) {
    return s->open && (++s->pending >= CD_STORE_BATCH || s->pending % 64 == 0)
               ? cd_store_settle(s, err)
               : CDMPP_OK;
}
