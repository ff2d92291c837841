/* SQLite exports of Nsight Systems: kernels, copies, NVTX ranges through calls, exports of other
 * versions, damage. */
#include "profiler/trace/trace.h"

#include <sqlite3.h>

#include "traces.h"

static cdmpp_err err;

#define KERNELS                                                                                    \
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT NOT NULL);INSERT INTO StringIds "   \
    "VALUES(1,'gemm(int)'),(2,'relu'),(3,'layer2');"                                               \
    "CREATE TABLE TARGET_INFO_GPU(id INT, name TEXT);INSERT INTO TARGET_INFO_GPU "                 \
    "VALUES(0,'NVIDIA H200');"                                                                     \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT, "     \
    "correlationId INT, globalPid INT, shortName INT,"                                             \
    " gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT);"                       \
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "                                                      \
    "VALUES(1000,3000,0,7,1,16777216,1,80,1,1,256,1,1),(4000,8000,0,7,2,16777216,2,80,1,1,256,1,"  \
    "1),"                                                                                          \
    "(9000,9500,0,7,1,33554432,2,8,1,1,256,1,1),(9600,9600,0,7,4,16777216,2,8,1,1,256,1,1),(9600," \
    "9700,0,7,4,16777216,99,8,1,1,256,1,1);"

#define CALLS                                                                                      \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT, correlationId "   \
    "INT);"                                                                                        \
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME "                                                     \
    "VALUES(100,120,16777217,1),(200,220,16777217,2),(100,120,33554433,1);"                        \
    "CREATE TABLE NVTX_EVENTS(start INT, end INT, text TEXT, textId INT, globalTid INT);"          \
    "INSERT INTO NVTX_EVENTS "                                                                     \
    "VALUES(50,150,'layer1',NULL,16777217),(10,900,NULL,3,16777217),(60,NULL,'mark',NULL,"         \
    "16777217);"                                                                                   \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INT, end INT, deviceId INT, streamId INT, "     \
    "correlationId INT, bytes INT, copyKind INT);"                                                 \
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(500,600,0,7,9,4096,1),(700,800,0,7,9,4096,77);" \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INT, end INT, deviceId INT, streamId INT, "     \
    "bytes INT);INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES(610,620,0,7,64);"

static const char *export_of(traces *f, const char *sql) {
    const char *path = tmp_path(&f->d, "n.sqlite");
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    return path;
}

static const cd_trace_event *at(const traces *f, int64_t start) {
    for (size_t i = 0; i < f->t[0]->n; i++)
        if (f->t[0]->event[i].start_ns == start) return &f->t[0]->event[i];
    fail_msg("no event at %lld", (long long)start);
    return NULL;
}

static const char *text_at(const traces *f, int64_t start) {
    return cd_trace_text(f->t[0], at(f, start)->name);
}

static const char *owner_at(const traces *f, int64_t start) {
    const uint32_t o = at(f, start)->owner;
    return o == CD_TRACE_NONE ? "" : cd_trace_text(f->t[0], f->t[0]->event[o].name);
}

TEST(launches_and_ranges) {
    traces *f = traces_begin();
    assert_ok(traces_read(f, export_of(f, KERNELS CALLS), &err));
    assert_string_equal(f->t[0]->form, "nsys");
    assert_int_equal(f->bad, 2); /* ends as it starts; no name */
    assert_string_equal(text_at(f, 1000), "gemm(int)");
    assert_string_equal(cd_trace_text(f->t[0], at(f, 1000)->device), "NVIDIA H200");
    assert_string_equal(cd_trace_text(f->t[0], at(f, 1000)->shape), "[[80,1,1],[256,1,1]]");
    assert_close(at(f, 1000)->time_s, 2e-6, 1e-12, 0);
    assert_int_equal(at(f, 1000)->thread, 7);
    assert_string_equal(owner_at(f, 1000), "layer1");
    assert_string_equal(owner_at(f, 4000), "layer2");
    assert_string_equal(owner_at(f, 9000), ""); /* the call with its number is another process's */
    assert_string_equal(text_at(f, 500), "memcpy HtoD");
    assert_string_equal(text_at(f, 700), "memcpy");
    assert_close(at(f, 500)->bytes, 4096, 0, 0);
    assert_int_equal(at(f, 610)->kind, CD_TRACE_SET);
    traces_end(f);
}

/* Tables and columns that are not there are not read; without kernels it is no trace. */
TEST(other_exports) {
    traces *f = traces_begin();
    assert_ok(traces_read(
        f,
        export_of(f,
                  "CREATE TABLE StringIds(id INT, value TEXT);INSERT INTO StringIds VALUES(1,'k');"
                  "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, "
                  "demangledName INT);"
                  "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(1,3,2,1),(-5,3,2,1);"),
        &err));
    assert_int_equal(f->t[0]->n, 1);
    assert_int_equal(f->bad, 1);
    assert_string_equal(cd_trace_text(f->t[0], traces_event(f, 0)->device), "cuda:2");
    assert_int_equal(traces_event(f, 0)->link, -1);
    traces_end(f);
    f = traces_begin();
    assert_status(
        traces_read(f, export_of(f, KERNELS "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL"), &err),
        CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "without kernels"));
    traces_end(f);
}

TEST(damage) {
    traces *f = traces_begin();
    const char *path = export_of(f, KERNELS CALLS);
    char *text = NULL;
    size_t n;
    assert_ok(cd_file_read(path, 0, &text, &n, &err));
    assert_true(n > 5000);
    memset(text + 100, 0xff, 3000);
    const cdmpp_status st = traces_read(f, tmp_put(&f->d, "bad.sqlite", text, n), &err);
    assert_true(st == CDMPP_EPARSE || st == CDMPP_ESCHEMA);
    assert_status(traces_read(f, tmp_put(&f->d, "cut.sqlite", text, 60), &err), CDMPP_ESCHEMA);
    cd_mem_free(text);
    traces_end(f);
}

/* What computes instead of being stored: a view without an end, a column that makes long texts, a
 * look-up without an index. */
TEST(rows_that_are_computed) {
#define TABLE                                                                                      \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT, "     \
    "shortName INT);INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(1,2,0,7,1);"
#define MANY "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x<20000)"
    static const struct {
        const char *sql;
        cdmpp_status st;
        const char *says;
    } bad[] = {{"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL(rowid, start, end, deviceId, streamId, "
                "shortName) AS WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c) "
                "SELECT x, 1, 2, 0, 7, 1 FROM c WHERE x<0;"
                "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);",
                CDMPP_ESCHEMA, "expected tables"},
               {TABLE "CREATE VIEW StringIds(id, value) AS WITH RECURSIVE c(x) AS (VALUES(1) UNION "
                      "ALL SELECT x+1 FROM c) SELECT x, 'k' FROM c;",
                CDMPP_ESCHEMA, "expected tables"},
               {TABLE "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT GENERATED ALWAYS "
                      "AS (printf('%.100000000c','a')));INSERT INTO StringIds(id) VALUES(1);",
                CDMPP_ESCHEMA, "expected tables"},
               {TABLE "CREATE TABLE StringIds(id INT, value TEXT);" MANY
                      "INSERT INTO StringIds SELECT 2,'x' FROM c;" MANY
                      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT x,x+1,0,7,1 FROM c;",
                CDMPP_ERANGE, "a query takes more than"}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        traces *f = traces_begin();
        assert_status(traces_read(f, export_of(f, bad[k].sql), &err), bad[k].st);
        if (!strstr(err.msg, bad[k].says)) fail_msg("%s", err.msg);
        assert_non_null(strstr(err.path, "n.sqlite"));
        traces_end(f);
    }
}

TESTS(NULL, NULL, launches_and_ranges, other_exports, damage, rows_that_are_computed)
