/* What a SQLite file of a stranger may do while it is read. Its tables may be views that compute
 * for ever, its columns expressions that make texts of a gigabyte, its triggers programs; and a
 * query that is quick with our indexes may take the square of the rows without them. */
#include <sqlite3.h>
#include <sys/stat.h>

#include "profiler/trace/trace.h"

#define EACH 4096 /* steps between two looks */

/* A new statement may take all steps again. */
static int begins(unsigned kind, void *ctx, void *statement, void *text) {
    cd_sqlite_bound *b = ctx;
    (void)kind, (void)statement, (void)text;
    b->used = 0;
    return 0;
}

static int look(void *ctx) {
    cd_sqlite_bound *b = ctx;
    b->used += EACH;
    b->over = b->used > b->most;
    return b->over || (b->stop && *b->stop);
}

void cd_sqlite_bound_set(cd_sqlite_bound *b, struct sqlite3 *db, const char *path,
                         const volatile sig_atomic_t *stop) {
    struct stat st;
    const int64_t bytes = stat(path, &st) == 0 && st.st_size > 0 ? (int64_t)st.st_size : 0;
    *b = (cd_sqlite_bound){.most = CD_SQLITE_STEPS_BASE + CD_SQLITE_STEPS_PER_BYTE * bytes,
                           .stop = stop};
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, CD_SQLITE_TEXT_MAX);
    sqlite3_trace_v2(db, SQLITE_TRACE_STMT, begins, b);
    sqlite3_progress_handler(db, EACH, look, b);
}

cdmpp_status cd_sqlite_bound_fail(const cd_sqlite_bound *b, cdmpp_err *err) {
    if (!b->over) return CD_FAIL(err, EINTERRUPTED, "stopped: a query was under way");
    return CD_FAIL(err, ERANGE,
                   "a query takes more than %lld steps of SQLite, more than tables of a file of "
                   "this size need",
                   (long long)b->most);
}
