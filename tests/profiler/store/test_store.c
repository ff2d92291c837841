/* store: what goes in comes out, once; near shapes; two writers; a killed writer; files that are
 * not ours. */
#include "profiler/store/store.h"
#include "check.h"
#include "fault.h"
#include "tmp.h"

#include "base/core/core.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define STR(s) ((cd_str){(s), sizeof(s) - 1})

static cdmpp_err err;

/* The k-th of made-up records: workload k % 5, schedule by k. */
static int put_line(char *to, size_t n, int k) {
    return snprintf(to, n,
                    "{\"i\": [[\"[\\\"abcd\\\", [1, %d, 56, 56], [64, 64, 3, 3]]\", \"cuda "
                    "-keys=cuda,gpu -model=v100\", [-1, 16, 64, 49152, "
                    "2147483647, 1024, 8, 32], \"\", 0, []], [[], [[\"CI\", 1], [\"SP\", 3, 0, "
                    "4096, [%d], 1]]]], \"r\": [[%.6g, %.6g], 0, 1.5, "
                    "%d], \"v\": \"v0.6\"}\n",
                    16 << (k % 5), k + 1, 1e-4 * (1 + k), 1.5e-4 * (1 + k), 1700000000 + k);
}

/* Lines [from, to) as a file. */
static const char *make_log(tmp_dir *d, const char *name, int from, int to) {
    char *text = calloc((size_t)(to - from) + 1, 512);
    size_t n = 0;
    for (int k = from; k < to; k++) n += (size_t)put_line(text + n, 512, k);
    const char *path = tmp_put(d, name, text, n);
    free(text);
    return path;
}

static cd_store *open_new(tmp_dir *d) {
    cd_store *s = NULL;
    assert_ok(cd_store_open(tmp_path(d, "s.db"), true, &s, &err));
    return s;
}

static cd_store_tally import(cd_store *s, const char *path) {
    const cd_store_import how = {.form = CD_STORE_AUTO};
    cd_store_tally t = {0};
    assert_ok(cd_store_import_path(s, path, &how, &t, &err));
    return t;
}

typedef struct seen {
    int n;
    double last_s, distance[16];
    cd_buf text;
    cd_arena a;
} seen;

static cdmpp_status see(void *ctx, const cd_store_hit *h, cdmpp_err *e) {
    seen *x = ctx;
    x->n++;
    x->last_s = h->row.latency.median_s;
    return cd_store_put_record(&x->text, &x->a, h, e);
}

static void free_seen(seen *x) {
    cd_buf_free(&x->text);
    cd_arena_free(&x->a);
}

TEST(records_come_back_as_they_were) {
    tmp_dir d = tmp_make();
    char want[40 * 512];
    size_t n = 0;
    seen x = {0};
    for (int k = 0; k < 20; k++) n += (size_t)put_line(want + n, sizeof want - n, k);
    cd_store *s = open_new(&d);
    const cd_store_tally t = import(s, tmp_put(&d, "log.json", want, n));
    assert_int_equal(t.added, 20);
    const cd_store_filter all = {0};
    assert_ok(cd_store_query(s, &all, see, &x, &err));
    assert_int_equal(x.n, 20);
    assert_int_equal(x.text.n, n);
    assert_memory_equal(x.text.p, want, n);
    free_seen(&x);
    cd_store_close(s);
    tmp_remove(&d);
}

TEST(the_same_is_stored_once) {
    tmp_dir d = tmp_make();
    cd_store *s = open_new(&d);
    assert_int_equal(import(s, make_log(&d, "a.json", 0, 30)).added, 30);
    cd_store_tally t = import(s, make_log(&d, "b.json", 20, 50)); /* overlaps, another file */
    assert_int_equal(t.added, 20);
    assert_int_equal(t.known, 10);
    t = import(s, tmp_path(&d, "a.json")); /* not changed: not even read */
    assert_int_equal(t.lines, 0);
    assert_int_equal(t.skipped_lines, 30);
    t = import(s, make_log(&d, "a.json", 0, 60)); /* has grown */
    assert_int_equal(t.added, 10);
    assert_int_equal(t.known, 50);
    cd_store_close(s);
    tmp_remove(&d);
}

TEST(best_of_a_task_on_a_device) {
    tmp_dir d = tmp_make();
    cd_store *s = open_new(&d);
    seen x = {0};
    import(s, make_log(&d, "a.json", 0, 50));
    cd_store_filter f = {.device = "v100",
                         .workload = "[\"abcd\", [1, 32, 56, 56], [64, 64, 3, 3]]",
                         .best_first = true,
                         .limit = 3};
    assert_ok(cd_store_query(s, &f, see, &x, &err)); /* records 1, 6, 11 */
    assert_int_equal(x.n, 3);
    assert_close(x.last_s, 1.25e-4 * 12, 1e-6, 0);
    x.n = 0;
    f.device = "a100";
    assert_ok(cd_store_query(s, &f, see, &x, &err));
    assert_int_equal(x.n, 0);
    free_seen(&x);
    cd_store_close(s);
    tmp_remove(&d);
}

static cdmpp_status see_near(void *ctx, const cd_store_near *n, cdmpp_err *e) {
    seen *x = ctx;
    (void)e;
    x->distance[x->n++ % 16] = n->distance;
    assert_true(n->hit.row.has_steps);
    return CDMPP_OK;
}

TEST(near_shapes_are_ordered) {
    tmp_dir d = tmp_make();
    cd_store *s = open_new(&d);
    seen x = {0};
    import(s, make_log(&d, "a.json", 0, 50));
    /* not in the store: 64, 32, 128, 16 */
    cd_store_filter f = {.workload = "[\"abcd\", [1, 60, 56, 56], [64, 64, 3, 3]]", .limit = 4};
    assert_ok(cd_store_find_near(s, &f, NULL, 1, see_near, &x, &err));
    assert_int_equal(x.n, 4);
    assert_close(x.distance[0], log2(64.0 / 60), 1e-12, 0);
    assert_close(x.distance[1], log2(60.0 / 32), 1e-12, 0);
    for (int i = 1; i < 4; i++) assert_true(x.distance[i] >= x.distance[i - 1]);
    x.n = 0;
    f = (cd_store_filter){.operator_name = "dag:abcd", .limit = 1};
    assert_ok(cd_store_find_near(s, &f, "[[1,16,56,56],[64,64,3,3]]", 3, see_near, &x, &err));
    assert_int_equal(x.n, 3);
    assert_true(x.distance[2] == 0);
    f.operator_name = "dag:none";
    assert_status(cd_store_find_near(s, &f, "[[1]]", 1, see_near, &x, &err), CDMPP_ENODATA);
    cd_store_close(s);
    tmp_remove(&d);
}

static void bad_lines_are_told(void *ctx, const cdmpp_err *e) {
    long *line = ctx;
    *line = e->line;
    assert_true(strstr(e->path, "bad.json") != NULL);
}

TEST(bad_lines_are_skipped) {
    static const char text[] = "# comment\n{\"i\": 1}\n";
    tmp_dir d = tmp_make();
    char all[2048];
    long line = 0;
    memcpy(all, text, sizeof text - 1);
    size_t n = sizeof text - 1;
    n += (size_t)put_line(all + n, 512, 3);
    cd_store *s = open_new(&d);
    cd_store_import how = {.form = CD_STORE_ANSOR, .bad = bad_lines_are_told, .ctx = &line};
    cd_store_tally t = {0};
    const char *path = tmp_put(&d, "bad.json", all, n);
    assert_ok(cd_store_import_path(s, path, &how, &t, &err));
    assert_int_equal(t.bad, 1);
    assert_int_equal(t.added, 1);
    assert_int_equal(line, 2);
    how.strict = true;
    cd_store_close(s);
    assert_int_equal(unlink(tmp_path(&d, "s.db")), 0);
    s = open_new(&d);
    assert_status(cd_store_import_path(s, path, &how, &t, &err), CDMPP_ESCHEMA);
    cd_store_close(s);
    tmp_remove(&d);
}

/* ---- many processes ---- */
static int64_t number(const char *path, const char *sql) {
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    int64_t x = -1;
    if (sqlite3_open(path, &db) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
        x = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return x;
}

static pid_t writer(const char *store, const char *log) {
    const pid_t pid = fork();
    if (pid) return pid;
    cd_store *s = NULL;
    const cd_store_import how = {.form = CD_STORE_ANSOR};
    cd_store_tally t = {0};
    cdmpp_status st = cd_store_open(store, true, &s, NULL);
    if (!st) st = cd_store_import_path(s, log, &how, &t, NULL);
    cd_store_close(s);
    _exit((int)st);
}

TEST(two_writers_at_once) {
    tmp_dir d = tmp_make();
    char a[256], b[256], db[256];
    snprintf(a, sizeof a, "%s", make_log(&d, "a.json", 0, 2000));
    snprintf(b, sizeof b, "%s", make_log(&d, "b.json", 1000, 3000));
    snprintf(db, sizeof db, "%s", tmp_path(&d, "s.db"));
    const pid_t one = writer(db, a), two = writer(db, b);
    int rc = -1;
    assert_int_equal(waitpid(one, &rc, 0), one);
    assert_int_equal(rc, 0);
    assert_int_equal(waitpid(two, &rc, 0), two);
    assert_int_equal(rc, 0);
    assert_int_equal(number(db, "SELECT count(*) FROM measurement"), 3000);
    assert_int_equal(number(db, "SELECT count(*) FROM workload"), 5);
    tmp_remove(&d);
}

/* Kill an import at many moments; afterwards it goes on and everything is there once. */
TEST(killed_writers_lose_nothing) {
    tmp_dir d = tmp_make();
    char log[256], db[256];
    snprintf(log, sizeof log, "%s", make_log(&d, "a.json", 0, 6000));
    snprintf(db, sizeof db, "%s", tmp_path(&d, "s.db"));
    int rc, killed = 0;
    for (int k = 0; k < 15; k++) {
        const pid_t pid = writer(db, log);
        usleep(1000 + 4000 * (useconds_t)k);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &rc, 0), pid);
        killed += WIFSIGNALED(rc);
        assert_true(
            number(db, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check<>'ok'") <=
            0);
    }
    assert_true(killed > 0);
    const pid_t pid = writer(db, log);
    assert_int_equal(waitpid(pid, &rc, 0), pid);
    assert_int_equal(rc, 0);
    assert_int_equal(number(db, "SELECT count(*) FROM measurement"), 6000);
    assert_int_equal(number(db, "SELECT count(*) FROM schedule"), 6000);
    assert_int_equal(number(db, "SELECT lines FROM source WHERE done"), 6000);
    tmp_remove(&d);
}

/* The disk is full in the middle (a limit on the size of files stands for it): an error, and later
 * it goes on. */
TEST(a_full_disk) {
    tmp_dir d = tmp_make();
    char log[256], db[256];
    int rc = -1;
    snprintf(log, sizeof log, "%s", make_log(&d, "a.json", 0, 4000));
    snprintf(db, sizeof db, "%s", tmp_path(&d, "s.db"));
    const pid_t pid = fork();
    if (!pid) {
        cd_store *s = NULL;
        const cd_store_import how = {.form = CD_STORE_ANSOR};
        const struct rlimit most = {300000, 300000};
        cd_store_tally t = {0};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &most);
        cdmpp_status st = cd_store_open(db, true, &s, NULL);
        if (!st) st = cd_store_import_path(s, log, &how, &t, NULL);
        cd_store_close(s);
        _exit((int)st);
    }
    assert_int_equal(waitpid(pid, &rc, 0), pid);
    assert_int_equal(WEXITSTATUS(rc), CDMPP_EIO);
    const pid_t again = writer(db, log);
    assert_int_equal(waitpid(again, &rc, 0), again);
    assert_int_equal(rc, 0);
    assert_int_equal(number(db, "SELECT count(*) FROM measurement"), 4000);
    tmp_remove(&d);
}

/* ---- stop, other files, values ---- */
TEST(a_stop_keeps_what_was_read) {
    tmp_dir d = tmp_make();
    volatile sig_atomic_t stop = 1;
    cd_store *s = open_new(&d);
    cd_store_import how = {.form = CD_STORE_ANSOR, .stop = &stop};
    cd_store_tally t = {0};
    const char *log = make_log(&d, "a.json", 0, 10);
    assert_status(cd_store_import_path(s, log, &how, &t, &err), CDMPP_EINTERRUPTED);
    assert_int_equal(t.added, 1);
    stop = 0;
    t = (cd_store_tally){0};
    assert_ok(cd_store_import_path(s, log, &how, &t, &err));
    assert_int_equal(t.skipped_lines, 1);
    assert_int_equal(t.added, 9);
    cd_store_close(s);
    tmp_remove(&d);
}

TEST(other_files_are_refused) {
    tmp_dir d = tmp_make();
    cd_store *s = NULL;
    assert_status(cd_store_open(tmp_path(&d, "none.db"), false, &s, &err), CDMPP_EIO);
    for (int create = 0; create < 2; create++) {
        assert_status(cd_store_open(tmp_path(&d, "nowhere/none.db"), create, &s, &err), CDMPP_EIO);
        assert_non_null(strstr(err.msg, "cannot open: "));
        assert_non_null(strstr(err.path, "nowhere/none.db"));
    }
    assert_status(cd_store_open(tmp_put(&d, "text.db", "this is no database, only some text", 35),
                                true, &s, &err),
                  CDMPP_ESCHEMA);
    number(tmp_path(&d, "other.db"), "SELECT 1");
    sqlite3 *db = NULL;
    sqlite3_open(tmp_path(&d, "other.db"), &db);
    sqlite3_exec(db, "CREATE TABLE x(y)", NULL, NULL, NULL);
    sqlite3_close(db);
    assert_status(cd_store_open(tmp_path(&d, "other.db"), true, &s, &err), CDMPP_ESCHEMA);
    s = open_new(&d);
    cd_store_close(s);
    sqlite3_open(tmp_path(&d, "s.db"), &db);
    sqlite3_exec(db, "PRAGMA user_version=99", NULL, NULL, NULL);
    sqlite3_close(db);
    assert_status(cd_store_open(tmp_path(&d, "s.db"), true, &s, &err), CDMPP_EUNSUPPORTED);
    tmp_remove(&d);
}

/* A store whose tables are views, or that has programs of its own. */
TEST(foreign_schemas) {
    static const char *const sql[] = {
        "CREATE TRIGGER t AFTER INSERT ON device BEGIN INSERT INTO device(name) SELECT "
        "hex(randomblob(8)) FROM measurement; END",
        "DROP TABLE device; CREATE VIEW device(id, name) AS WITH RECURSIVE c(x) AS (VALUES(1) "
        "UNION ALL SELECT x+1 FROM c) SELECT x, 'd' FROM c",
        "ALTER TABLE device ADD COLUMN long TEXT GENERATED ALWAYS AS (printf('%.100000000c','a'))"};
    for (size_t k = 0; k < sizeof sql / sizeof *sql; k++) {
        tmp_dir d = tmp_make();
        sqlite3 *db = NULL;
        cd_store *s = open_new(&d);
        cd_store_close(s);
        sqlite3_open(tmp_path(&d, "s.db"), &db);
        assert_int_equal(sqlite3_exec(db, sql[k], NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        assert_status(cd_store_open(tmp_path(&d, "s.db"), false, &s, &err), CDMPP_ESCHEMA);
        assert_non_null(strstr(err.msg, "expected tables of stored columns, found"));
        tmp_remove(&d);
    }
}

static cdmpp_status see_env(void *ctx, const cd_store_hit *h, cdmpp_err *e) {
    (void)e;
    cd_store_put_json(ctx, h);
    return CDMPP_OK;
}

TEST(own_measurements) {
    tmp_dir d = tmp_make();
    cd_store *s = open_new(&d);
    cd_buf b = {0};
    double t[] = {3e-3, 1e-3, 2e-3, 2e-3};
    const cd_store_env env = {
        .host = STR("box"), .governor = STR("performance"), .extra = STR("{\"load\":0.5}")};
    cd_store_row row = {.device = STR("cpu"),
                        .target = STR("llvm -mcpu=x"),
                        .target_tail = STR("[]"),
                        .workload_key = STR("[\"add\",[8,8]]"),
                        .operator_name = STR("add"),
                        .shape = STR("[[8,8]]"),
                        .dtype = STR("float32"),
                        .flop = 64,
                        .known = true,
                        .env = &env};
    cd_store_latency_of(t, 4, &row.latency);
    assert_close(row.latency.median_s, 2e-3, 1e-12, 0);
    assert_close(row.latency.mean_s, 2e-3, 1e-12, 0);
    assert_close(row.latency.std_s, sqrt(2e-6 / 3), 1e-12, 0);
    assert_int_equal(row.latency.flags, CD_STORE_NOISY);
    bool fresh = false;
    assert_ok(cd_store_add(s, &row, &fresh, &err));
    assert_true(fresh);
    assert_ok(cd_store_add(s, &row, &fresh, &err));
    assert_false(fresh);
    row.latency.min_s = (double)NAN;
    assert_status(cd_store_add(s, &row, &fresh, &err), CDMPP_ERANGE);
    const cd_store_filter f = {.target = "llvm", .dtype = "float32"};
    assert_ok(cd_store_query(s, &f, see_env, &b, &err));
    assert_non_null(strstr(b.p, "\"environment\":{\"host\":\"box\",\"governor\":\"performance\","
                                "\"extra\":{\"load\":0.5}}"));
    assert_non_null(strstr(b.p, "\"flags\":[\"noisy\"]"));
    cd_arena a = {0};
    const cd_json *v;
    assert_ok(cd_json_parse(&a, b.p, b.n, &v, &err));
    cd_arena_free(&a);
    cd_buf_clear(&b);
    assert_ok(cd_store_put_stats(&b, s, &err));
    assert_non_null(strstr(b.p, "\"measurements\":1,\"errors\":0"));
    cd_buf_free(&b);
    cd_store_close(s);
    tmp_remove(&d);
}

/* Two stores that overlap, into a third: nothing twice, nothing changed. */
TEST(stores_merge) {
    tmp_dir d = tmp_make();
    cd_store *s = NULL;
    char a[256], b[256];
    seen x = {0}, y = {0};
    const cd_store_filter all = {0};
    snprintf(a, sizeof a, "%s", tmp_path(&d, "a.db"));
    snprintf(b, sizeof b, "%s", tmp_path(&d, "b.db"));
    assert_ok(cd_store_open(a, true, &s, &err));
    import(s, make_log(&d, "a.json", 0, 20));
    cd_store_close(s);
    assert_ok(cd_store_open(b, true, &s, &err));
    import(s, make_log(&d, "b.json", 10, 30));
    cd_store_close(s);
    s = open_new(&d);
    assert_int_equal(import(s, a).added, 20);
    const cd_store_tally t = import(s, b);
    assert_int_equal(t.added, 10);
    assert_int_equal(t.known, 10);
    assert_int_equal(import(s, make_log(&d, "c.json", 0, 30)).known, 30);
    assert_ok(cd_store_query(s, &all, see, &x, &err));
    cd_store_close(s);
    assert_int_equal(unlink(tmp_path(&d, "s.db")), 0);
    s = open_new(&d);
    import(s, tmp_path(&d, "c.json"));
    assert_ok(cd_store_query(s, &all, see, &y, &err));
    assert_int_equal(x.text.n, y.text.n);
    assert_memory_equal(x.text.p, y.text.p, x.text.n);
    const cd_store_import how = {.form = CD_STORE_AUTO};
    cd_store_tally none = {0};
    cd_store_commit(s, NULL);
    assert_status(cd_store_import_path(s, tmp_path(&d, "s.db"), &how, &none, &err), CDMPP_EUSAGE);
    free_seen(&x);
    free_seen(&y);
    cd_store_close(s);
    tmp_remove(&d);
}

/* Any allocation may fail: an error, nothing lost, and the next try does it. */
static cdmpp_status all_of_it(const char *db, const char *log, seen *x) {
    cd_store *s = NULL;
    const cd_store_import how = {.form = CD_STORE_AUTO};
    const cd_store_filter f = {.workload = "[\"abcd\", [1, 32, 56, 56], [64, 64, 3, 3]]"};
    cd_store_tally t = {0};
    CD_TRY(cd_store_open(db, true, &s, &err));
    cdmpp_status st = cd_store_import_path(s, log, &how, &t, &err);
    if (!st) st = cd_store_query(s, &f, see, x, &err);
    if (!st) st = cd_store_find_near(s, &f, NULL, 1, see_near, x, &err);
    cd_store_close(s);
    return st;
}

TEST(failing_at_every_allocation) {
    tmp_dir d = tmp_make();
    char db[256], log[256];
    snprintf(log, sizeof log, "%s", make_log(&d, "a.json", 0, 6));
    FAULT_SWEEP(f, 1) {
        char name[32];
        seen x = {0};
        snprintf(name, sizeof name, "s%ld.db", f.k);
        snprintf(db, sizeof db, "%s", tmp_path(&d, name));
        f.st = all_of_it(db, log, &x);
        fault_off();
        free_seen(&x);
        if (!f.st || f.k % 8) continue;
        x = (seen){0};
        assert_ok(all_of_it(db, log, &x));
        assert_int_equal(number(db, "SELECT count(*) FROM measurement"), 6);
        free_seen(&x);
    }
    tmp_remove(&d);
}

TESTS(NULL, NULL, records_come_back_as_they_were, the_same_is_stored_once,
      best_of_a_task_on_a_device, near_shapes_are_ordered, bad_lines_are_skipped,
      two_writers_at_once, killed_writers_lose_nothing, a_full_disk, a_stop_keeps_what_was_read,
      other_files_are_refused, own_measurements, stores_merge, failing_at_every_allocation,
      foreign_schemas)
