/* The open file: its schema, its statements, its transactions. Many processes may write one store,
 * so a transaction is short (BATCH_S), and whoever waits polls in even, short steps: SQLite's own
 * busy handler backs off and starves. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profiler/store/store_internal.h"

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

static void store_forget(cd_store *s);

static void store_undo(cd_store *s) {
    if (s->open) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    s->open = false;
    store_forget(s);
}

cdmpp_status cd_store_commit(cd_store *s, cdmpp_err *err) {
    sqlite3_stmt *q = NULL;
    if (!s->open) return CDMPP_OK;
    cdmpp_status st = cd_store_stmt(s, CD_SQL_COMMIT, &q, err);
    if (!st) st = cd_store_done(s, q, err);
    if (st) store_undo(s);
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

/* One more row: settle now and then. */
static cdmpp_status store_step(cd_store *s, cdmpp_err *err) {
    return s->open && (++s->pending >= CD_STORE_BATCH || s->pending % 64 == 0)
               ? cd_store_settle(s, err)
               : CDMPP_OK;
}

/* Texts of a row become ids of their tables. Ids are remembered by a hash of the text: a log
 * repeats the same few thousand workloads. */

enum { FIRST_SLOTS = 1024 };

static void store_forget(cd_store *s) {
    if (s->known) memset(s->known, 0, s->n_slot * sizeof *s->known);
    s->n_known = 0;
}

static cd_store_known *slot_of(cd_store_known *table, size_t n, const cd_store_digest *d) {
    size_t i = (size_t)d->h[0] & (n - 1);
    while (table[i].id && memcmp(&table[i].of, d, sizeof *d) != 0) i = (i + 1) & (n - 1);
    return &table[i];
}

/* Out of memory is no error here: the id is looked up again next time. */
static void remember(cd_store *s, const cd_store_digest *d, int64_t id) {
    if (2 * (s->n_known + 1) > s->n_slot) {
        const size_t n = s->n_slot ? 2 * s->n_slot : FIRST_SLOTS;
        cd_store_known *grown = cd_mem_zalloc(n, sizeof *grown);
        if (!grown) return;
        for (size_t i = 0; i < s->n_slot; i++)
            if (s->known[i].id) *slot_of(grown, n, &s->known[i].of) = s->known[i];
        cd_mem_free(s->known);
        s->known = grown;
        s->n_slot = n;
    }
    *slot_of(s->known, s->n_slot, d) = (cd_store_known){*d, id};
    s->n_known++;
}

static int64_t recall(const cd_store *s, const cd_store_digest *d) {
    return s->n_slot ? slot_of(s->known, s->n_slot, d)->id : 0;
}

/* The id that statement `get`, bound, gives. */
static cdmpp_status fetch(cd_store *s, sqlite3_stmt *get, int64_t *id, cdmpp_err *err) {
    const int rc = sqlite3_step(get);
    if (rc == SQLITE_ROW) *id = sqlite3_column_int64(get, 0);
    const cdmpp_status st = rc == SQLITE_ROW ? CDMPP_OK : cd_store_fail(s, "look up", err);
    sqlite3_reset(get);
    return st;
}

/* Insert by `add`, with texts bound, and ask for the id by `get`, where (n_key) of them are the
 * key. */
static cdmpp_status put(cd_store *s, cd_store_sql add, const cd_str *text, int n_text, int n_key,
                        int64_t *id, cdmpp_err *err) {
    sqlite3_stmt *q, *get;
    CD_TRY(cd_store_stmt(s, add, &q, err));
    /* the map has _ADD and its _ID side by side */
    CD_TRY(cd_store_stmt(s, (cd_store_sql)(add + 1), &get, err));
    for (int i = 0; i < n_text; i++) cd_store_bind(q, i + 1, text[i]);
    CD_TRY(cd_store_done(s, q, err));
    for (int i = 0; i < n_key; i++) cd_store_bind(get, i + 1, text[i]);
    return fetch(s, get, id, err);
}

static void key_of(cd_store_digest *d, cd_store_sql add, const cd_str *text, int n) {
    cd_store_digest_init(d);
    cd_store_digest_word(d, (uint64_t)add);
    for (int i = 0; i < n; i++) cd_store_digest_text(d, text[i]);
}

/* Its first n_key texts are what makes it one of its kind. */
static cdmpp_status id_of_texts(cd_store *s, cd_store_sql add, const cd_str *text, int n_text,
                                int n_key, int64_t *id, cdmpp_err *err) {
    cd_store_digest d;
    key_of(&d, add, text, n_key);
    if ((*id = recall(s, &d))) return CDMPP_OK;
    CD_TRY(put(s, add, text, n_text, n_key, id, err));
    remember(s, &d, *id);
    return CDMPP_OK;
}

/* Ids, adding what is not there (store.c). */
static cdmpp_status store_id_text(cd_store *s, cd_store_sql add, cd_str text, int64_t *id,
                                  cdmpp_err *err) {
    return id_of_texts(s, add, &text, 1, 1, id, err);
}

static cdmpp_status store_id_target(cd_store *s, cd_str text, cd_str tail, int64_t *id,
                                    cdmpp_err *err) {
    size_t n = 0;
    while (n < text.n && text.p[n] != ' ') n++;
    const cd_str all[] = {text, tail, {text.p, n}};
    return id_of_texts(s, CD_SQL_TARGET_ADD, all, 3, 2, id, err);
}

static void workload_key(cd_store_digest *d, cd_str key, bool known) {
    key_of(d, CD_SQL_WORKLOAD_ADD, &key, 1);
    cd_store_digest_word(d, known);
}

/* Is this workload's id remembered? Then nothing but its key is needed. */
static bool store_has_workload(const cd_store *s, cd_str key, bool known) {
    cd_store_digest d;
    workload_key(&d, key, known);
    return recall(s, &d) != 0;
}

/* The memory's key holds whether the task is known, so that a workload first seen without its task
 * is updated later. */
static cdmpp_status store_id_workload(cd_store *s, const cd_store_row *r, int64_t *id,
                                      cdmpp_err *err) {
    sqlite3_stmt *q, *get;
    cd_store_digest d;
    int64_t op;
    workload_key(&d, r->workload_key, r->known);
    if ((*id = recall(s, &d))) return CDMPP_OK;
    CD_TRY(store_id_text(s, CD_SQL_OPERATOR_ADD, r->operator_name, &op, err));
    CD_TRY(cd_store_stmt(s, CD_SQL_WORKLOAD_ADD, &q, err));
    CD_TRY(cd_store_stmt(s, CD_SQL_WORKLOAD_ID, &get, err));
    cd_store_bind(q, 1, r->workload_key);
    sqlite3_bind_int64(q, 2, op);
    cd_store_bind(q, 3, r->shape);
    cd_store_bind(q, 4, r->dtype);
    cd_store_bind(q, 5, r->layout);
    if (r->flop >= 0) sqlite3_bind_double(q, 6, r->flop);
    else sqlite3_bind_null(q, 6);
    sqlite3_bind_int(q, 7, r->known);
    CD_TRY(cd_store_done(s, q, err));
    cd_store_bind(get, 1, r->workload_key);
    CD_TRY(fetch(s, get, id, err));
    remember(s, &d, *id);
    return CDMPP_OK;
}

static cdmpp_status store_id_schedule(cd_store *s, cd_str steps, const cd_store_digest *d,
                                      int64_t *id, cdmpp_err *err) {
    sqlite3_stmt *q, *get;
    CD_TRY(cd_store_stmt(s, CD_SQL_SCHEDULE_ADD, &q, err));
    sqlite3_bind_blob(q, 1, d->h, sizeof d->h, SQLITE_STATIC);
    cd_store_bind(q, 2, steps);
    CD_TRY(cd_store_done(s, q, err));
    if (sqlite3_changes(s->db)) {
        *id = sqlite3_last_insert_rowid(s->db);
        return CDMPP_OK;
    }
    CD_TRY(cd_store_stmt(s, CD_SQL_SCHEDULE_ID, &get, err));
    sqlite3_bind_blob(get, 1, d->h, sizeof d->h, SQLITE_STATIC);
    return fetch(s, get, id, err);
}

static cdmpp_status store_id_env(cd_store *s, const cd_store_env *e, const cd_store_digest *d,
                                 int64_t *id, cdmpp_err *err) {
    const cd_str text[] = {e->host, e->cpu, e->os, e->compiler, e->governor, e->tool, e->extra};
    sqlite3_stmt *q, *get;
    if ((*id = recall(s, d))) return CDMPP_OK;
    CD_TRY(cd_store_stmt(s, CD_SQL_ENV_ADD, &q, err));
    CD_TRY(cd_store_stmt(s, CD_SQL_ENV_ID, &get, err));
    sqlite3_bind_blob(q, 1, d->h, sizeof d->h, SQLITE_STATIC);
    for (int i = 0; i < 7; i++) cd_store_bind(q, i + 2, text[i]);
    CD_TRY(cd_store_done(s, q, err));
    sqlite3_bind_blob(get, 1, d->h, sizeof d->h, SQLITE_STATIC);
    CD_TRY(fetch(s, get, id, err));
    remember(s, d, *id);
    return CDMPP_OK;
}

/* A measurement becomes rows. Its digest covers everything that was measured and what came out, so
 * that reading a file again adds nothing. */

#define NOISY_CV 0.03

void cd_store_latency_of(double *x, size_t n, cd_store_latency *out) {
    double sum = 0, square = 0;
    *out = (cd_store_latency){.n = (uint32_t)n};
    if (!n) return;
    cd_sort_doubles(x, n);
    for (size_t i = 0; i < n; i++) sum += x[i];
    out->mean_s = sum / (double)n;
    for (size_t i = 0; i < n; i++) square += (x[i] - out->mean_s) * (x[i] - out->mean_s);
    out->min_s = x[0];
    out->median_s = cd_sort_median(x, n);
    out->std_s = n > 1 ? sqrt(square / (double)(n - 1)) : 0;
    out->cv = out->mean_s > 0 ? out->std_s / out->mean_s : 0;
    if (n >= 3 && out->cv > NOISY_CV) out->flags |= CD_STORE_NOISY;
}

static void digest_env(const cd_store_env *e, cd_store_digest *d) {
    const cd_str text[] = {e->host, e->cpu, e->os, e->compiler, e->governor, e->tool, e->extra};
    cd_store_digest_init(d);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) cd_store_digest_text(d, text[i]);
}

/* All that was measured and what came out; not where it was read. */
static void digest_row(const cd_store_row *r, const cd_store_digest *steps,
                       const cd_store_digest *env, cd_store_digest *d) {
    const cd_str text[] = {r->device, r->target, r->target_tail, r->workload_key, r->version};
    const double real[] = {r->latency.min_s, r->latency.median_s, r->latency.mean_s,
                           r->latency.std_s, r->total_s};
    cd_store_digest_init(d);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) cd_store_digest_text(d, text[i]);
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) cd_store_digest_real(d, real[i]);
    for (uint32_t i = 0; i < r->n_cost; i++) cd_store_digest_real(d, r->cost_s[i]);
    cd_store_digest_word(d, r->latency.n);
    cd_store_digest_word(d, r->latency.flags);
    cd_store_digest_word(d, (uint64_t)r->error_no);
    cd_store_digest_word(d, (uint64_t)r->timestamp);
    for (int i = 0; i < 2; i++) {
        if (r->has_steps) cd_store_digest_word(d, steps->h[i]);
        if (r->env) cd_store_digest_word(d, env->h[i]);
    }
}

static cdmpp_status check_add(const cd_store_row *r, cdmpp_err *err) {
    const cd_str text[] = {r->device, r->target, r->operator_name, r->workload_key,
                           r->shape,  r->dtype,  r->layout,        r->version};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        /* anything else would make JSON answers unreadable */
        if (!cd_str_is_utf8(text[i])) return CD_FAIL(err, ESCHEMA, "expected names in UTF-8");
    const double t[] = {r->latency.min_s, r->latency.median_s, r->latency.mean_s};
    for (size_t i = 0; i < 3 && !r->error_no; i++)
        if (!(t[i] > 0 && t[i] < 1e10))
            return CD_FAIL(err, ERANGE, "expected a time above 0, found %g s", t[i]);
    if (!isfinite(r->total_s)) return CD_FAIL(err, ERANGE, "total time is %g", r->total_s);
    return CDMPP_OK;
}

static void bind_times(sqlite3_stmt *q, const cd_store_row *r) {
    const double t[] = {r->latency.min_s, r->latency.median_s, r->latency.mean_s, r->latency.std_s,
                        r->latency.cv};
    for (int i = 0; i < 5; i++)
        if (r->error_no) sqlite3_bind_null(q, 10 + i);
        else sqlite3_bind_double(q, 10 + i, t[i]);
    if (r->n_cost > 1)
        sqlite3_bind_blob64(q, 17, r->cost_s, r->n_cost * sizeof *r->cost_s, SQLITE_STATIC);
    else sqlite3_bind_null(q, 17);
}

typedef struct ids {
    int64_t device, target, workload, schedule, env;
} ids;

static cdmpp_status find_ids(cd_store *s, const cd_store_row *r, const cd_store_digest *steps,
                             const cd_store_digest *env, ids *id, cdmpp_err *err) {
    *id = (ids){0};
    CD_TRY(store_id_text(s, CD_SQL_DEVICE_ADD, r->device, &id->device, err));
    CD_TRY(store_id_target(s, r->target, r->target_tail, &id->target, err));
    CD_TRY(store_id_workload(s, r, &id->workload, err));
    if (r->has_steps) CD_TRY(store_id_schedule(s, r->steps, steps, &id->schedule, err));
    if (r->env) CD_TRY(store_id_env(s, r->env, env, &id->env, err));
    return CDMPP_OK;
}

static void bind_id(sqlite3_stmt *q, int i, int64_t id) {
    if (id) sqlite3_bind_int64(q, i, id);
    else sqlite3_bind_null(q, i);
}

/* Parameters in the order of the statement ADD. */
static cdmpp_status insert(cd_store *s, const cd_store_row *r, cdmpp_err *err) {
    cd_store_digest steps = {{0}}, env = {{0}}, all;
    sqlite3_stmt *q;
    ids id;
    cd_store_digest_init(&steps);
    if (r->has_steps) cd_store_digest_text(&steps, r->steps);
    if (r->env) digest_env(r->env, &env);
    CD_TRY(find_ids(s, r, &steps, &env, &id, err));
    digest_row(r, &steps, &env, &all);
    CD_TRY(cd_store_stmt(s, CD_SQL_ADD, &q, err));
    sqlite3_bind_blob(q, 1, all.h, sizeof all.h, SQLITE_STATIC);
    bind_id(q, 2, id.device);
    bind_id(q, 3, id.target);
    bind_id(q, 4, id.workload);
    bind_id(q, 5, id.schedule);
    bind_id(q, 6, id.env);
    bind_id(q, 7, s->source);
    sqlite3_bind_int64(q, 8, r->line);
    sqlite3_bind_int64(q, 9, r->error_no);
    bind_times(q, r);
    sqlite3_bind_int64(q, 15, r->latency.n);
    sqlite3_bind_int64(q, 16, r->latency.flags);
    sqlite3_bind_double(q, 18, r->total_s);
    sqlite3_bind_int64(q, 19, r->timestamp);
    cd_store_bind(q, 20, r->version);
    return cd_store_done(s, q, err);
}

cdmpp_status cd_store_add(cd_store *s, const cd_store_row *row, bool *fresh, cdmpp_err *err) {
    CD_TRY(check_add(row, err));
    CD_TRY(cd_store_begin(s, err));
    const cdmpp_status st = insert(s, row, err);
    if (st) {
        store_undo(s);
        return st;
    }
    if (fresh) *fresh = sqlite3_changes(s->db) > 0;
    return store_step(s, err);
}

/* ---- records ---- */

/* "v100" of a target with "-model=v100"; empty when there is none, or "unknown". */
static cd_str model_of(cd_str target) {
    static const char mark[] = "-model=";
    const size_t n = sizeof mark - 1;
    for (size_t i = 0; i + n < target.n; i++) {
        if (memcmp(target.p + i, mark, n) != 0) continue;
        size_t end = i + n;
        while (end < target.n && target.p[end] != ' ') end++;
        const cd_str m = {target.p + i + n, end - i - n};
        return cd_str_is(m, "unknown") ? (cd_str){"", 0} : m;
    }
    return (cd_str){"", 0};
}

/* What a record has behind its target: "[[8 numbers], host, layout, [names]]". */
static void put_tail(cd_buf *b, const cd_record *r) {
    const cd_hardware *h = &r->hardware;
    const int64_t x[] = {h->num_cores,
                         h->vector_unit_bytes,
                         h->cache_line_bytes,
                         h->max_shared_memory_per_block,
                         h->max_local_memory_per_block,
                         h->max_threads_per_block,
                         h->max_vthread_extent,
                         h->warp_size};
    cd_buf_puts(b, "[");
    for (int i = 0; i < 8 && r->has_hardware; i++) {
        cd_buf_puts(b, i ? "," : "[");
        cd_buf_put_int(b, x[i]);
    }
    if (r->has_hardware) cd_buf_puts(b, "]");
    if (r->has_host) {
        cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, r->target_host.p, r->target_host.n);
    }
    if (r->has_layout) {
        cd_buf_puts(b, ",");
        cd_buf_put_int(b, r->layout_rewrite);
    }
    for (uint32_t i = 0; i < r->n_input; i++) {
        cd_buf_puts(b, i ? "," : ",[");
        cd_buf_put_json_str(b, r->input[i].p, r->input[i].n);
    }
    if (r->has_inputs) cd_buf_puts(b, r->n_input ? "]" : ",[]");
    cd_buf_puts(b, "]");
}

/* Tail and steps into s->text; NUL-free slices of it into the row. */
static cdmpp_status texts_of(cd_store *s, const cd_record *r, cd_store_row *row, cdmpp_err *err) {
    cd_buf_clear(&s->text);
    put_tail(&s->text, r);
    const size_t n = s->text.n;
    CD_TRY(cd_record_write_steps(&s->text, r, err));
    if (s->text.oom) return CD_FAIL(err, ENOMEM, "texts of a record");
    row->target_tail = (cd_str){s->text.p, n};
    row->steps = (cd_str){s->text.p + n, s->text.n - n};
    row->has_steps = true;
    return CDMPP_OK;
}

static cdmpp_status latency_of(cd_arena *a, const cd_record *r, const cd_store_latency *known,
                               cd_store_row *row, cdmpp_err *err) {
    double *x = cd_arena_alloc(a, r->n_cost, sizeof *x);
    if (!x) return CD_FAIL(err, ENOMEM, "costs");
    memcpy(x, r->cost_s, r->n_cost * sizeof *x);
    if (r->error_no) row->latency.n = r->n_cost;
    else if (known) row->latency = *known;
    else cd_store_latency_of(x, r->n_cost, &row->latency);
    row->n_cost = r->n_cost;
    row->cost_s = r->cost_s;
    row->error_no = r->error_no;
    return CDMPP_OK;
}

/* Operator and types are worked out only for workloads whose id is not remembered: that takes
 * longer than the insertion. */
cdmpp_status cd_store_add_record(cd_store *s, const cd_record *r, const cd_task *task,
                                 cd_str device, const cd_store_env *env,
                                 const cd_store_latency *latency, long line, bool *fresh,
                                 cdmpp_err *err) {
    const bool known = task && task->dag;
    cd_store_row row = {.device = device.n ? device : model_of(r->target),
                        .target = r->target,
                        .workload_key = r->workload_key,
                        .total_s = r->total_s,
                        .timestamp = r->timestamp,
                        .version = r->version,
                        .env = env,
                        .line = line,
                        .flop = -1,
                        .known = known};
    cd_arena_reset(&s->scratch);
    if (!store_has_workload(s, r->workload_key, known)) {
        CD_TRY(cd_store_describe_key(&s->scratch, r->workload_key, &row, err));
        if (known) CD_TRY(cd_store_describe_task(&s->scratch, task, &row, err));
    }
    CD_TRY(texts_of(s, r, &row, err));
    CD_TRY(latency_of(&s->scratch, r, latency, &row, err));
    return cd_store_add(s, &row, fresh, err);
}
