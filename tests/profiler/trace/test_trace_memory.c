/* Traces of all forms without memory, stopped, and with a first bad line that ends the reading. */
#include <dirent.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "base/io/io.h"
#include "fault.h"
#include "traces.h"

static cdmpp_status no(void *ctx, cdmpp_status st, const cdmpp_err *e, cdmpp_err *err) {
    (void)ctx;
    if (err) *err = *e;
    return st;
}

static cdmpp_status read_it(const char *path, unsigned skip, const volatile sig_atomic_t *stop,
                            bool strict, cdmpp_err *err) {
    const cd_trace_reading how = {.skip = skip, .stop = stop, .bad = strict ? no : NULL};
    cd_trace *t = NULL;
    cdmpp_status st = cd_trace_read(path, &how, &t, err);
    if (!st) st = cd_trace_link(t, err);
    cd_trace_free(t);
    return st;
}

/* Each seed of the fuzz target; its first byte says the form. */
static void of_seeds(void (*with)(tmp_dir *d, const char *path)) {
    tmp_dir d = tmp_make();
    DIR *dir = opendir("tests/fuzz/seeds/trace");
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[400], *text;
        size_t n;
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "tests/fuzz/seeds/trace/%s", e->d_name);
        assert_int_equal(cd_file_read(path, 0, &text, &n, NULL), CDMPP_OK);
        snprintf(path, sizeof path, "%s", tmp_put(&d, "t", text + 1, n - 1));
        with(&d, path);
        cd_mem_free(text);
    }
    closedir(dir);
    tmp_remove(&d);
}

static void without_memory_of(tmp_dir *d, const char *path) {
    cdmpp_err err = {0};
    (void)d;
    if (read_it(path, 0, NULL, false, &err)) return; /* refused for what it is */
    FAULT_SWEEP(f, 0) f.st = read_it(path, 0, NULL, false, &f.err);
}

static void stopped_of(tmp_dir *d, const char *path) {
    const volatile sig_atomic_t stop = 1;
    cdmpp_err err = {0};
    (void)d;
    const cdmpp_status st = read_it(path, 0, &stop, false, &err);
    if (st == CDMPP_EINTERRUPTED)
        assert_non_null(strstr(err.msg, "nothing of this trace was kept"));
    (void)read_it(path, 0, NULL, true, &err);
    (void)read_it(path, ~0U, NULL, false, NULL);
}

TEST(seeds_without_memory) { of_seeds(without_memory_of); }
TEST(seeds_stopped) { of_seeds(stopped_of); }

/* ---- exports of Nsight Systems ---- */
#define NAMES                                                                                      \
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);INSERT INTO StringIds "            \
    "VALUES(1,'k'),(2,'range');"
#define KERNELS                                                                                    \
    NAMES "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId "    \
          "INT, shortName INT, correlationId INT);"                                                \
          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(1,3,2,7,1,4);"

static const char *export_of(tmp_dir *d, const char *sql) {
    const char *path = tmp_path(d, "n.sqlite");
    sqlite3 *db = NULL;
    unlink(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    return path;
}

/* want: events and bad lines, or the message. */
TEST(exports) {
    static const struct {
        const char *sql;
        cdmpp_status st;
        size_t n;
        int bad;
        const char *says;
    } of[] = {
        {KERNELS, CDMPP_OK, 1, 0, ""},
        {NAMES "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, deviceId INT, shortName INT);",
         CDMPP_ESCHEMA, 0, 0, "without kernels"},
        {NAMES "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(end INT, deviceId INT, shortName INT);",
         CDMPP_ESCHEMA, 0, 0, "without kernels"},
        {NAMES "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT);",
         CDMPP_ESCHEMA, 0, 0, "without kernels"},
        {"CREATE TABLE StringIds(id INT);CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end "
         "INT, shortName INT);",
         CDMPP_ESCHEMA, 0, 0, "without kernels"},
        {KERNELS "CREATE TABLE TARGET_INFO_GPU(id INT);", CDMPP_OK, 1, 0, ""},
        {KERNELS "CREATE TABLE TARGET_INFO_GPU(id INT, name TEXT);INSERT INTO TARGET_INFO_GPU "
                 "VALUES(2,'T4');",
         CDMPP_OK, 1, 0, ""},
        {KERNELS
         "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "
         "VALUES(5,NULL,2,7,1,4),(9,7,2,7,1,4),(-9,7,2,7,1,4),(9,9,2,7,1,4),(9,10,2,7,99,4);",
         CDMPP_OK, 1, 5, "expected a name of StringIds"},
        {KERNELS "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INT, end INT, deviceId INT, "
                 "streamId INT, bytes INT, copyKind INT);"
                 "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY "
                 "VALUES(1,2,0,7,8,0),(2,3,0,7,8,1),(3,4,0,7,8,2),(4,5,0,7,8,3),(5,6,0,7,8,8),(6,7,"
                 "0,7,NULL,10),(7,8,0,7,8,11),(8,9,0,7,8,NULL);",
         CDMPP_OK, 9, 0, ""},
        {KERNELS "CREATE TABLE NVTX_EVENTS(start INT, end INT, text TEXT, globalTid INT);INSERT "
                 "INTO NVTX_EVENTS VALUES(1,9,'r',1),(1,9,NULL,1),(1,NULL,'r',1),(9,1,'r',1);",
         CDMPP_OK, 2, 1, "expected an end after its start"},
        {KERNELS "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, globalTid INT);CREATE TABLE "
                 "CUPTI_ACTIVITY_KIND_MEMSET(end INT);",
         CDMPP_OK, 1, 0, ""},
    };
    traces *f = traces_begin();
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        cdmpp_err err = {0};
        cd_trace *t = NULL;
        const cd_trace_reading how = {.bad = traces_bad, .ctx = f};
        f->bad = 0;
        const cdmpp_status st = cd_trace_read(export_of(&f->d, of[k].sql), &how, &t, &err);
        if (st != of[k].st || (!st && (t->n != of[k].n || f->bad != of[k].bad)) ||
            !strstr(st       ? err.msg
                    : f->bad ? f->last_bad
                             : "",
                    of[k].says))
            fail_msg("%zu: %d, %zu events, %d bad, %s %s", k, (int)st, st ? 0 : t->n, f->bad,
                     err.msg, f->last_bad);
        cd_trace_free(t);
    }
    char path[256];
    snprintf(path, sizeof path, "%s", export_of(&f->d, of[8].sql));
    without_memory_of(NULL, path);
    stopped_of(NULL, path);
    traces_end(f);
}

/* A list that is given twice counts once; an id of a GPU that is no number names none. */
TEST(twice) {
    static const struct {
        const char *text;
        size_t n;
        const char *device;
    } of[] = {
        {"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"ts\":1,\"dur\":2},{"
         "\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"b\",\"ts\":4,\"dur\":2}],"
         "\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"c\",\"ts\":1,\"dur\":2}]}",
         1, NULL},
        {"{\"deviceProperties\":[{\"id\":0,\"name\":\"T4\"},{\"id\":\"x\",\"name\":\"A\"},{\"id\":"
         "1},{\"name\":\"B\"},{\"id\":1,\"name\":3},3],"
         "\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"ts\":1,\"dur\":2,"
         "\"args\":{\"device\":0}}]}",
         1, "T4"},
        {"{\"deviceProperties\":3,\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\","
         "\"ts\":1,\"dur\":2,\"args\":{\"device\":0}}]}",
         1, "cuda:0"}};
    traces *f = traces_begin();
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        char path[256];
        cdmpp_err err = {0};
        cd_trace *t = NULL;
        const cd_trace_reading how = {.bad = traces_bad, .ctx = f};
        snprintf(path, sizeof path, "%s", tmp_put(&f->d, "t.json", of[k].text, strlen(of[k].text)));
        assert_ok(cd_trace_read(path, &how, &t, &err));
        if (t->n != of[k].n ||
            (of[k].device && strcmp(cd_trace_text(t, t->event[0].device), of[k].device) != 0))
            fail_msg("%s: %zu events, %s", of[k].text, t->n,
                     t->n ? cd_trace_text(t, t->event[0].device) : "");
        if (!k) assert_string_equal(cd_trace_text(t, t->event[0].name), "c");
        if (!k) assert_non_null(strstr(t->said.p, "traceEvents is given twice"));
        cd_trace_free(t);
        without_memory_of(NULL, path);
    }
    traces_end(f);
}

TESTS(NULL, NULL, seeds_without_memory, seeds_stopped, exports, twice)
