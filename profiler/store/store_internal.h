/* store_internal -- what the files of the store share: the open file, its statements, texts as
 * parameters.
 *
 *   (1) one statement of each kind is prepared at its first use and kept;
 *   (2) ids of devices, targets, workloads and the like are remembered by a 128-bit hash of their
 *       texts; the memory is dropped whenever a transaction is undone.
 */
#ifndef CD_STORE_INTERNAL_H
#define CD_STORE_INTERNAL_H
#include <sqlite3.h>

#include "profiler/store/store.h"
#include "profiler/trace/trace.h"

/* X(id, sql): the statements of adding. */
#define CD_STORE_SQL_MAP(X)                                                                        \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(COMMIT, "COMMIT")                                                                            \
    X(DEVICE_ADD, "INSERT OR IGNORE INTO device(name) VALUES(?1)")                                 \
    X(DEVICE_ID, "SELECT id FROM device WHERE name=?1")                                            \
    X(TARGET_ADD, "INSERT OR IGNORE INTO target(text, tail, kind) VALUES(?1, ?2, ?3)")             \
    X(TARGET_ID, "SELECT id FROM target WHERE text=?1 AND tail=?2")                                \
    X(OPERATOR_ADD, "INSERT OR IGNORE INTO operator(name) VALUES(?1)")                             \
    X(OPERATOR_ID, "SELECT id FROM operator WHERE name=?1")                                        \
    X(WORKLOAD_ADD, "INSERT INTO workload(key, operator, shape, dtype, layout, flop, known) "      \
                    "VALUES(?1,?2,?3,?4,?5,"                                                       \
                    "?6,?7) ON CONFLICT(key) DO UPDATE SET operator=?2, shape=?3, dtype=?4, "      \
                    "layout=?5, flop=?6, "                                                         \
                    "known=?7 WHERE excluded.known > known")                                       \
    X(WORKLOAD_ID, "SELECT id FROM workload WHERE key=?1")                                         \
    X(SCHEDULE_ADD, "INSERT OR IGNORE INTO schedule(digest, steps) VALUES(?1, ?2)")                \
    X(SCHEDULE_ID, "SELECT id FROM schedule WHERE digest=?1")                                      \
    X(ENV_ADD,                                                                                     \
      "INSERT OR IGNORE INTO environment(digest, host, cpu, os, compiler, governor, tool, extra) " \
      "VALUES(?1,?2,?3,?4,?5,?6,?7,?8)")                                                           \
    X(ENV_ID, "SELECT id FROM environment WHERE digest=?1")                                        \
    X(SOURCE_ADD, "INSERT OR IGNORE INTO source(path, form, size, mtime_ns, lines, done) "         \
                  "VALUES(?1, ?2, -1, 0, 0, 0)")                                                   \
    X(SOURCE_GET, "SELECT id, size, mtime_ns, lines, done FROM source WHERE path=?1 AND form=?2")  \
    X(SOURCE_SET, "UPDATE source SET size=?2, mtime_ns=?3, lines=?4, done=?5 WHERE id=?1")         \
    X(ADD, "INSERT OR IGNORE INTO measurement(digest, device, target, workload, schedule, "        \
           "environment, source, line, "                                                           \
           "error_no, min_s, median_s, mean_s, std_s, cv, n, flags, costs, total_s, timestamp, "   \
           "version) "                                                                             \
           "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20)")

typedef enum cd_store_sql {
#define CD_X(id, sql) CD_SQL_##id,
    CD_STORE_SQL_MAP(CD_X)
#undef CD_X
        CD_N_SQL
} cd_store_sql;

typedef struct cd_store_digest {
    uint64_t h[2];
} cd_store_digest;

typedef struct cd_store_known {
    cd_store_digest of;
    int64_t id; /* 0: free */
} cd_store_known;

struct cd_store {
    sqlite3 *db;
    cd_sqlite_bound bound;
    char *path;
    sqlite3_stmt *stmt[CD_N_SQL];
    cd_store_known *known; /* (n_slot) open addressing */
    size_t n_slot, n_known;
    cd_buf text; /* scratch of adding records */
    cd_arena scratch;
    int64_t source;   /* of rows added now; 0: none */
    uint64_t pending; /* rows of the open transaction */
    double since_s;   /* when it began */
    bool open;        /* there is one */
};

/* The last SQLite error as a status with the file's name. `what` was done. */
cdmpp_status cd_store_fail(const cd_store *s, const char *what, cdmpp_err *err);
/* Statement `which`, reset, with nothing bound. Errors: as cd_store_fail. */
cdmpp_status cd_store_stmt(cd_store *s, cd_store_sql which, sqlite3_stmt **out, cdmpp_err *err);
/* Run a statement that gives no rows. */
cdmpp_status cd_store_done(cd_store *s, sqlite3_stmt *q, cdmpp_err *err);
void cd_store_bind(sqlite3_stmt *q, int i, cd_str text); /* borrowed until the next reset */
cd_str cd_store_text(sqlite3_stmt *q, int column);
/* Begin a transaction unless one is open; commit it when it is big or old enough; undo it. */
cdmpp_status cd_store_begin(cd_store *s, cdmpp_err *err);
cdmpp_status cd_store_settle(cd_store *s, cdmpp_err *err);

/* A hash of 128 bits, not cryptographic: add numbers and texts, in order. */
void cd_store_digest_init(cd_store_digest *d);
void cd_store_digest_word(cd_store_digest *d, uint64_t x);
void cd_store_digest_real(cd_store_digest *d, double x);
void cd_store_digest_text(cd_store_digest *d, cd_str s);

/* Operator, types and layout of a task's definition, into the arena (store_import.c). */
cdmpp_status cd_store_describe_task(cd_arena *a, const cd_task *t, cd_store_row *row,
                                    cdmpp_err *err);
/* Shape and operator by the key alone: "[[128,64,56,56],...]", "dag:<hash>". */
cdmpp_status cd_store_describe_key(cd_arena *a, cd_str key, cd_store_row *row, cdmpp_err *err);

/* One file of each form (store_<form>.c); path is the file, `first` the lines to skip. */
typedef struct cd_store_reading {
    cd_store *store;
    const cd_store_import *how;
    cd_store_tally *tally;
    const char *path;
    cd_str device;          /* by option or folder; empty: the file may name it */
    uint64_t first;         /* lines that are in the store already */
    int64_t size, mtime_ns; /* of the file; -1: it cannot be gone on with */
    bool waits;             /* the last transaction may go on with the next file's rows */
    cd_arena arena;
} cd_store_reading;
cdmpp_status cd_store_read_trace(cd_store_reading *r, cd_store_form form, cdmpp_err *err);
cdmpp_status cd_store_read_opbench(cd_store_reading *r, cdmpp_err *err);
cdmpp_status cd_store_read_autotvm(cd_store_reading *r, cdmpp_err *err);
#define CD_STORE_APPLICATION 0x63646d70 /* "cdmp" */
/* A bad line: count it, report it and go on (OK), or stop when strict or when it is no error of a
 * line. */
cdmpp_status cd_store_bad(cd_store_reading *r, cdmpp_status st, const cdmpp_err *e, cdmpp_err *err);
/* After `lines` lines were read: note it with the next commit, commit if it is time, check
 * *stop. */
cdmpp_status cd_store_mark(cd_store_reading *r, uint64_t lines, bool last, cdmpp_err *err);
/* Add and count. */
cdmpp_status cd_store_take(cd_store_reading *r, const cd_store_row *row, cdmpp_err *err);

/* Columns of a hit, in the order that cd_store_hit_read reads (store_query.c). */
#define CD_STORE_HIT_COLUMNS                                                                       \
    "m.id, d.name, t.text, t.tail, w.key, o.name, w.shape, w.dtype, w.layout, w.flop, w.known, "   \
    "c.steps, m.error_no, "                                                                        \
    "m.min_s, m.median_s, m.mean_s, m.std_s, m.cv, m.n, m.flags, m.costs, m.total_s, "             \
    "m.timestamp, m.version, "                                                                     \
    "e.host, e.cpu, e.os, e.compiler, e.governor, e.tool, e.extra, u.path, m.line"
#define CD_STORE_HIT_FROM                                                                          \
    " FROM measurement m JOIN workload w ON w.id=m.workload JOIN operator o ON o.id=w.operator "   \
    "JOIN device d ON d.id=m.device JOIN target t ON t.id=m.target LEFT JOIN schedule c ON "       \
    "c.id=m.schedule "                                                                             \
    "LEFT JOIN environment e ON e.id=m.environment LEFT JOIN source u ON u.id=m.source"

/* store_launches -- launches of a trace, gathered by what was launched.
 *
 *   (device, operator, shape, dtype, flags) -> times, line of the first
 *
 *   (1) groups come out in the order of their first launch. One thread. */

typedef struct cd_store_launch_group {
    cd_str device, target, operator_name, shape, dtype;
    uint32_t flags;
    long line;
    int64_t timestamp;
    /* of a row of a summary, whose time is the mean of so many runs; 0: times of single runs.
     * median_s: NaN, not known */
    double runs, median_s;
    cd_store_digest of;
    double *time_s; /* (n) */
    size_t n, cap;
} cd_store_launch_group;

typedef struct cd_store_launches {
    cd_arena arena;               /* texts */
    cd_store_launch_group *group; /* (n) */
    size_t n, cap, n_slot;
    uint32_t *slot; /* (n_slot) index + 1, open addressing; 0: free */
} cd_store_launches;

#endif
