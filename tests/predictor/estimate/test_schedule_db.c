/* Books of schedules: the best of logs by the median, files read again, and what a model picks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/core.h"
#include "check.h"
#include "made_model.h"
#include "predictor/estimate/estimate.h"
#include "predictor/estimate/estimate_internal.h"
#include "profiler/store/store.h"

#define CHIP "llvm -keys=cpu -model=chip"

static tmp_dir dir;

static int set_up(void **state) {
    (void)state;
    dir = tmp_make();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

static void put_record(cd_buf *b, const char *key, const char *target, int tile, const char *costs,
                       int error) {
    cd_buf_putf(b,
                "{\"i\": [[\"[\\\"%s\\\"]\", \"%s\", " MADE_HARDWARE
                ", \"\", 0, []], [[], [[\"SP\", 2, 0, 512, [%d], 1]]]], \"r\": [[%s], %d, 1, 1], "
                "\"v\": \"v0.6\"}\n",
                key, target, tile, costs, error);
}

static cd_schedule_db *read_text(const char *name, const cd_buf *b, cd_schedule_db_logs *io) {
    cdmpp_err err = {0};
    cd_schedule_db *book;
    const char *path[] = {tmp_put(&dir, name, b->p, b->n)};
    assert_ok(cd_schedule_db_new(&book, &err));
    assert_ok(cd_schedule_db_read_logs(book, path, 1, io, &err));
    return book;
}

/* The slow truth: all medians by sorting, the first of the least. */
static void test_best_is_the_least_median(void **state) {
    enum { TASKS = 7, RECORDS = 60 };
    double best[TASKS];
    int line[TASKS], tile[TASKS];
    cd_buf b = {0};
    cd_schedule_db_logs io = {0};
    (void)state;
    for (int k = 0; k < TASKS; k++) best[k] = HUGE_VAL;
    for (int i = 0; i < RECORDS; i++) {
        const int k = (int)(cd_rng_at(1, (uint64_t)i) % TASKS),
                  n = 1 + (int)(cd_rng_at(2, (uint64_t)i) % 4);
        double c[4];
        char key[16], costs[80] = "";
        for (int j = 0; j < n; j++) {
            c[j] = (double)(1 + cd_rng_at(3, (uint64_t)(8 * i + j)) % 50) / 1024;
            snprintf(costs + strlen(costs), sizeof costs - strlen(costs), "%s%.10f", j ? ", " : "",
                     c[j]);
        }
        for (int j = 0; j < n; j++) /* few: sorted by swaps */
            for (int m = j + 1; m < n; m++)
                if (c[m] < c[j]) {
                    const double t = c[m];
                    c[m] = c[j];
                    c[j] = t;
                }
        const double median = n % 2 ? c[n / 2] : (c[n / 2 - 1] + c[n / 2]) / 2;
        snprintf(key, sizeof key, "t%d", k);
        put_record(&b, key, CHIP, 1 + i, costs, i % 9 == 8 ? 2 : 0);
        if (i % 9 == 8 || !(median < best[k])) continue;
        best[k] = median;
        line[k] = i + 1;
        tile[k] = 1 + i;
    }
    cd_schedule_db *book = read_text("best.json", &b, &io);
    assert_int_equal(io.lines, RECORDS);
    assert_int_equal(io.bad, 0);
    assert_int_equal(io.failed, RECORDS / 9);
    for (int k = 0; k < TASKS; k++) {
        char key[32], want[40], end[40];
        snprintf(key, sizeof key, "[\"t%d\"]", k);
        snprintf(want, sizeof want, "512, [%d], 1", tile[k]);
        snprintf(end, sizeof end, "best.json:%d", line[k]);
        const cd_schedule_db_entry *s = cd_schedule_db_find(book, key);
        assert_non_null(s);
        assert_close(s->measured_s, best[k], 1e-9, 0);
        assert_non_null(strstr(s->line, want));
        assert_non_null(strstr(s->origin, end));
    }
    for (size_t i = 1; i < cd_schedule_db_count(book); i++)
        assert_true(strcmp(cd_schedule_db_at(book, i - 1)->key, cd_schedule_db_at(book, i)->key) <
                    0);
    assert_null(cd_schedule_db_find(book, "[\"t\"]"));
    assert_null(cd_schedule_db_find(book, ""));
    cd_schedule_db_free(book);
    cd_buf_free(&b);
}

/* Those measured besides the best: all where they are few, else as many as are kept, whatever the
 * order of the lines. */
static void test_slower_ones_are_kept(void **state) {
    enum { MANY = 100, FEW = 5 };
    cd_schedule_db_logs io = {0};
    char first[CD_SCHEDULE_DB_SLOWER][16] = {{0}};
    (void)state;
    for (int turn = 0; turn < 3; turn++) {
        cd_buf b = {0};
        for (int i = 0; i < MANY; i++) {
            const int k = turn == 1 ? MANY - 1 - i : turn == 2 ? (i * 37) % MANY : i;
            char cost[24];
            snprintf(cost, sizeof cost, "%.4f", 0.001 * (1 + (k * 61) % MANY));
            put_record(&b, "many", CHIP, 1 + k, cost, 0);
            if (k < FEW) put_record(&b, "few", CHIP, 1 + k, cost, k == 2 ? 4 : 0);
        }
        cd_schedule_db *book = read_text("slower.json", &b, &io);
        const cd_schedule_db_entry *few = cd_schedule_db_find(book, "[\"few\"]"),
                                   *many = cd_schedule_db_find(book, "[\"many\"]");
        assert_int_equal(few->n_slower, FEW - 2); /* one failed, one is the best */
        assert_int_equal(few->of_slower, FEW - 2);
        for (uint32_t i = 0; i < few->n_slower; i++)
            assert_string_not_equal(few->slower[i].line, few->line);
        assert_int_equal(many->n_slower, CD_SCHEDULE_DB_SLOWER);
        assert_int_equal(many->of_slower, MANY - 1);
        for (uint32_t i = 0; i < many->n_slower; i++) {
            const char *tile = strstr(many->slower[i].line, "512, [");
            assert_non_null(tile);
            assert_string_not_equal(many->slower[i].line, many->line);
            if (!turn) snprintf(first[i], sizeof first[i], "%.10s", tile);
            else assert_memory_equal(first[i], tile, 10);
        }
        cd_schedule_db_free(book);
        cd_buf_free(&b);
    }
}

/* A log whose tasks have schedules already is still one of these tasks and this device. */
static void test_wanted_are_counted(void **state) {
    cd_buf b = {0};
    cdmpp_err err = {0};
    const char *key[] = {"[\"a\"]", "[\"b\"]"};
    (void)state;
    put_record(&b, "a", CHIP, 1, "0.002", 0);
    put_record(&b, "a", CHIP, 2, "0.001", 0);
    put_record(&b, "c", CHIP, 1, "0.001", 0);
    put_record(&b, "b", "llvm -keys=cpu -model=other", 1, "0.001", 0);
    cd_schedule_db_logs io = {.device = "chip", .key = key, .n_key = 2}, again = io;
    cd_schedule_db *book = read_text("wanted.json", &b, &io);
    const char *path[] = {tmp_path(&dir, "wanted.json")};
    assert_int_equal(io.wanted, 2);
    assert_ok(cd_schedule_db_read_logs(book, path, 1, &again, &err));
    assert_int_equal(cd_schedule_db_count(book), 1);
    assert_int_equal(again.wanted, 2);
    cd_schedule_db_free(book);
    cd_buf_free(&b);
}

/* A file named twice, and the log beside the book that was made of it: no record stands for two. */
/* A log of an earlier TVM, whose keys have no lists inside. */
static void test_flat_keys_are_found(void **state) {
    cd_buf b = {0};
    const char *key[] = {"[\"h\", [1, 64], [56]]"};
    cd_schedule_db_logs io = {.key = key, .n_key = 1};
    (void)state;
    cd_buf_puts(&b,
                "{\"i\": [[\"[\\\"h\\\", 1, 64, 56]\", \"" CHIP "\", " MADE_HARDWARE
                ", \"\", 0, []], [[], [[\"SP\", 2, 0, 512, [1], 1]]]], \"r\": [[0.001], 0, 1, 1], "
                "\"v\": \"v0.6\"}\n");
    cd_schedule_db *book = read_text("flat.json", &b, &io);
    assert_non_null(cd_schedule_db_find(book, key[0]));
    cd_schedule_db_free(book);
    cd_buf_free(&b);
}

static void test_copies_are_one(void **state) {
    cd_buf b = {0};
    cd_schedule_db_logs io = {0};
    cdmpp_err err = {0};
    (void)state;
    put_record(&b, "a", CHIP, 1, "0.5", 0);
    put_record(&b, "a", CHIP, 2, "0.7", 0);
    cd_schedule_db *one = read_text("copies.json", &b, &io), *both;
    const char *log = tmp_put(&dir, "again.json", b.p, b.n);
    char book[300];
    snprintf(book, sizeof book, "%s.schedules", log);
    assert_ok(cd_schedule_db_write(one, book, &err));
    const char *path[] = {log, log, book};
    assert_ok(cd_schedule_db_new(&both, &err));
    assert_ok(cd_schedule_db_read_logs(both, path, 3, &io, &err));
    const cd_schedule_db_entry *s = cd_schedule_db_find(both, "[\"a\"]");
    assert_int_equal(s->n_slower, 1);
    assert_int_equal(s->of_slower, 1);
    assert_non_null(strstr(s->slower[0].line, "512, [2]"));
    cd_schedule_db_free(one);
    cd_schedule_db_free(both);
    cd_buf_free(&b);
}

static int n_warned;
static void on_warning(void *ctx, const cdmpp_err *why) {
    (void)ctx;
    n_warned++;
    assert_non_null(strstr(why->path, "mixed.json"));
    assert_int_equal(why->line, 2);
}

static void test_bad_lines_and_other_devices(void **state) {
    cd_buf b = {0};
    cd_schedule_db_logs io = {.device = "CHIP", .warn = on_warning};
    (void)state;
    put_record(&b, "a", CHIP, 1, "0.5", 0);
    cd_buf_puts(&b, "{\"i\": 3}\n\n# a comment\n");
    put_record(&b, "a", "llvm -keys=cpu -model=other", 2, "0.1", 0);
    put_record(&b, "b", CHIP, 3, "1e10", 8);
    cd_schedule_db *book = read_text("mixed.json", &b, &io);
    assert_int_equal(io.lines, 4);
    assert_int_equal(io.bad, 1);
    assert_int_equal(n_warned, 1);
    assert_int_equal(cd_schedule_db_count(book), 1); /* b has no time, and nobody chose it */
    assert_close(cd_schedule_db_at(book, 0)->measured_s, 0.5, 0, 0);
    cd_schedule_db_free(book);
    cd_buf_free(&b);
}

/* Who names no device, by its target or a folder, and who names another one. */
static void test_records_of_no_device_and_of_another(void **state) {
    cd_buf b = {0};
    cdmpp_err err = {0};
    cd_schedule_db *book;
    (void)state;
    put_record(&b, "plain", "llvm", 1, "0.5", 0);
    put_record(&b, "other", "llvm -keys=cpu -model=other", 2, "0.1", 0);
    put_record(&b, "gpu", "cuda", 3, "0.1", 0);
    put_record(&b, "gpu2", "cuda -model=v100", 3, "0.1", 0);
    const struct {
        cd_schedule_db_logs io;
        size_t n;
    } t[] = {{{.device = "chip"}, 0}, /* the folder is called something */
             {{.device = "chip", .unnamed = true}, 1},
             {{.device = "chip", .unnamed = true, .gpu = true}, 1},
             {{.device = "chip", .also = "Other"}, 1},
             {{.device = "chip", .elsewhere = true}, 2},
             {{.device = "chip", .elsewhere = true, .gpu = true}, 2}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        cd_schedule_db_logs io = t[i].io;
        book = read_text("who.json", &b, &io);
        assert_int_equal(cd_schedule_db_count(book), t[i].n);
        for (size_t k = 0; k < t[i].n; k++) /* another device's time */
            if (io.elsewhere) assert_true(isnan(cd_schedule_db_at(book, k)->measured_s));
        cd_schedule_db_free(book);
    }
    char *here = getcwd(NULL, 0);
    assert_int_equal(chdir(dir.path), 0); /* a file without a folder */
    const char *path[] = {"who.json"};
    cd_schedule_db_logs io = {.device = "chip"};
    assert_ok(cd_schedule_db_new(&book, &err));
    assert_ok(cd_schedule_db_read_logs(book, path, 1, &io, &err));
    assert_int_equal(chdir(here), 0);
    free(here);
    assert_int_equal(cd_schedule_db_count(book), 1);
    assert_close(cd_schedule_db_at(book, 0)->measured_s, 0.5, 0, 0);
    cd_schedule_db_free(book);
    cd_buf_free(&b);
}

static void test_first_reading_stays_and_names_replace(void **state) {
    cd_buf a = {0}, b = {0};
    cd_schedule_db_logs io = {0};
    cdmpp_err err = {0};
    cd_arena mem = {0};
    cd_record r;
    (void)state;
    put_record(&a, "a", CHIP, 1, "0.5", 0);
    put_record(&b, "a", CHIP, 2, "0.1", 0);
    put_record(&b, "b", CHIP, 3, "0.1", 0);
    cd_schedule_db *book = read_text("first.json", &a, &io);
    const char *more[] = {tmp_put(&dir, "more.json", b.p, b.n)};
    assert_ok(cd_schedule_db_read_logs(book, more, 1, &io, &err));
    assert_int_equal(cd_schedule_db_count(book), 2);
    assert_close(cd_schedule_db_find(book, "[\"a\"]")->measured_s, 0.5, 0, 0);
    assert_ok(cd_record_read(&mem, b.p, strcspn(b.p, "\n"), &r, &err));
    assert_ok(cd_schedule_db_add(book, &r, "the store", 0.1, &err));
    assert_int_equal(cd_schedule_db_count(book), 2);
    assert_close(cd_schedule_db_find(book, "[\"a\"]")->measured_s, 0.1, 0, 0);
    assert_string_equal(cd_schedule_db_find(book, "[\"a\"]")->origin, "the store");
    cd_arena_free(&mem);
    cd_schedule_db_free(book);
    cd_buf_free(&a);
    cd_buf_free(&b);
}

/* A store's best record of each task that is asked for, measured on that device; nothing comes in
 * place of what is there. */
static void test_best_of_a_store(void **state) {
    cd_buf b = {0};
    cdmpp_err err = {0};
    cd_store *store = NULL;
    cd_store_tally tally = {0};
    cd_schedule_db *book;
    const char *key[] = {"[\"a\"]", "[\"b\"]", "[\"d\"]"}, *path = tmp_path(&dir, "store.db");
    char kept[256], origin[300];
    (void)state;
    snprintf(kept, sizeof kept, "%s", path);
    put_record(&b, "a", CHIP, 1, "0.5", 0);
    put_record(&b, "a", CHIP, 2, "0.25", 0);
    put_record(&b, "a", "llvm -keys=cpu -model=other", 3, "0.125", 0);
    put_record(&b, "b", CHIP, 4, "0.5", 0);
    put_record(&b, "c", CHIP, 5, "0.5", 0); /* nobody asks for it */
    assert_ok(cd_store_open(kept, true, &store, &err));
    assert_ok(cd_store_import_path(store, tmp_put(&dir, "log.json", b.p, b.n),
                                   &(cd_store_import){.form = CD_STORE_AUTO}, &tally, &err));
    cd_store_close(store);
    cd_buf_clear(&b);
    put_record(&b, "b", CHIP, 6, "0.75", 0);
    cd_schedule_db_logs io = {0};
    book = read_text("before.json", &b, &io);
    assert_ok(cd_schedule_db_store_read(book, kept, "chip", key, 3, &err));
    assert_int_equal(cd_schedule_db_count(book), 2);
    const cd_schedule_db_entry *s = cd_schedule_db_find(book, key[0]);
    assert_close(s->measured_s, 0.25, 1e-9, 0);
    assert_non_null(strstr(s->line, "512, [2], 1"));
    snprintf(origin, sizeof origin, "%s#", kept);
    assert_int_equal(strncmp(s->origin, origin, strlen(origin)), 0);
    assert_close(cd_schedule_db_find(book, key[1])->measured_s, 0.75, 1e-9, 0);
    cd_schedule_db_free(book);
    assert_ok(cd_schedule_db_new(&book, &err));
    assert_status(cd_schedule_db_store_read(book, tmp_path(&dir, "none.db"), "chip", key, 3, &err),
                  CDMPP_EIO);
    cd_schedule_db_free(book);
    cd_buf_free(&b);
}

static void same_book(const cd_schedule_db *a, const cd_schedule_db *b) {
    assert_int_equal(cd_schedule_db_count(a), cd_schedule_db_count(b));
    for (size_t i = 0; i < cd_schedule_db_count(a); i++) {
        const cd_schedule_db_entry *x = cd_schedule_db_at(a, i), *y = cd_schedule_db_at(b, i);
        assert_string_equal(x->key, y->key);
        assert_string_equal(x->origin, y->origin);
        assert_true((isnan(x->measured_s) && isnan(y->measured_s)) ||
                    fabs(x->measured_s - y->measured_s) <= 1e-9);
    }
}

/* Written and read: the same book; read and written: the same bytes. */
static void test_file_reads_back(void **state) {
    cd_buf b = {0};
    cd_schedule_db_logs io = {0};
    cdmpp_err err = {0};
    char *x, *y;
    size_t nx, ny;
    char one[256], two[256];
    (void)state;
    for (int i = 0; i < 20; i++) {
        char key[16];
        snprintf(key, sizeof key, "t%d", i % 6);
        put_record(&b, key, CHIP, i + 1, i % 2 ? "0.25, 0.5" : "0.125", 0);
    }
    cd_schedule_db *book = read_text("some.json", &b, &io), *again;
    snprintf(one, sizeof one, "%s", tmp_path(&dir, "one.json"));
    snprintf(two, sizeof two, "%s", tmp_path(&dir, "two.json"));
    assert_ok(cd_schedule_db_write(book, one, &err));
    assert_ok(cd_schedule_db_new(&again, &err));
    assert_ok(cd_schedule_db_read_logs(again, (const char *[]){one}, 1, &io, &err));
    same_book(book, again);
    assert_ok(cd_schedule_db_write(again, two, &err));
    assert_ok(cd_file_read(one, 0, &x, &nx, &err));
    assert_ok(cd_file_read(two, 0, &y, &ny, &err));
    assert_int_equal(nx, ny);
    assert_memory_equal(x, y, nx);
    cd_mem_free(x);
    cd_mem_free(y);
    cd_schedule_db_free(book);
    cd_schedule_db_free(again);
    cd_buf_free(&b);
}

/* ---- the model's own ---- */
static cd_task_registry *tasks;
static cd_model *model;
static const char *key[1];

static int learn(void **state) {
    static const char *const set[] = {"train.rounds=20", "model.folds=2", "model.tuner=true",
                                      "fit.epochs=1", "net.device=false"};
    static const char *const target[] = {CHIP};
    cdmpp_err err = {0};
    char h5[256], path[256];
    (void)state;
    dir = tmp_make();
    cdmpp_status st = cd_task_registry_new(&tasks, &err);
    if (!st) st = cd_task_registry_load(tasks, MADE_TASKS, &err);
    if (!st) key[0] = cd_task_registry_at(tasks, 0)->workload_key;
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "book.cdmpp"));
    if (!st) st = made_extract(&dir, key[0], target, 1, h5, &err);
    if (!st) st = made_learn(h5, set, 5, path, &err);
    if (!st) st = cd_model_load(path, &model, &err);
    if (st) print_error("%s: %s\n", err.key, err.msg);
    return st != CDMPP_OK;
}

static int forget(void **state) {
    cd_model_free(model);
    cd_task_registry_free(tasks);
    return tear_down(state);
}

static cd_schedule_db *picked(uint32_t trials, uint64_t seed, int threads) {
    cdmpp_err err = {0};
    cd_schedule_db *book;
    cd_threads *pool = NULL;
    const cd_schedule_db_pick o = {.trials = trials, .seed = seed};
    if (threads > 1) assert_ok(cd_threads_new(threads, &pool, &err));
    assert_ok(cd_schedule_db_new(&book, &err));
    assert_ok(cd_schedule_db_predict(book, model, tasks, key, 1, &o, pool, &err));
    cd_threads_free(pool);
    return book;
}

static cd_model_prediction asked(const cd_model *m, bool sketch, const char *line) {
    cdmpp_err err = {0};
    cd_scorer *s;
    cd_scored out;
    const cd_predict_line l = {line, strlen(line), "", 1};
    assert_ok(cd_scorer_new(m, tasks, &(cd_scorer_options){.sketch = sketch}, &s, &err));
    assert_ok(cd_scorer_run(s, &l, 1, &out, &err));
    assert_ok(out.st);
    cd_scorer_free(s);
    return out.pred;
}

static double seconds_of(const char *line) { return asked(model, false, line).median_s; }

/* As candidates are compared. */
static double cautious_log_s(const char *line) {
    const cd_model_prediction p = asked(model, false, line);
    return log(p.median_s) + 0.5 * cd_model_expected_error(&p);
}

/* The slow truth: half of 512 drawn, the others mutations of the best 32 in two rounds, all of them
 * scored by the whole model. */
static const cd_schedule_db_search exhaustive = {
    .trials = 512, .drawn = 256, .round = 128, .parents = 32, .last = 0};

static void test_few_candidates_find_what_many_do(void **state) {
    enum { SEEDS = 8 };
    double sum = 0, worst = 0;
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        cdmpp_err err = {0};
        const cd_schedule_db_pick o = {.seed = seed};
        cd_schedule_db *slow, *fast = picked(0, seed, 1);
        assert_ok(cd_schedule_db_new(&slow, &err));
        assert_ok(
            cd_schedule_db_predict_by(slow, model, tasks, key, 1, &o, &exhaustive, NULL, &err));
        const double more = cautious_log_s(cd_schedule_db_at(fast, 0)->line) -
                            cautious_log_s(cd_schedule_db_at(slow, 0)->line);
        sum += more;
        worst = fmax(worst, more);
        cd_schedule_db_free(slow);
        cd_schedule_db_free(fast);
    }
    printf("few of many: mean %+.4f, worst %+.4f of ln seconds\n", sum / SEEDS, worst);
    assert_true(sum / SEEDS <= 0.03);
    assert_true(worst <= 0.2);
}

/* A model of one fold of fewer trees than a sketch asks is its own sketch; of two folds it is
 * not. */
static void test_sketch_of_a_small_model_is_the_model(void **state) {
    static const char *const set[] = {"train.rounds=20", "model.tuner=false",
                                      "model.members=[rows, program]", "model.folds=1"};
    static const char *const target[] = {CHIP};
    cdmpp_err err = {0};
    char h5[256], path[256];
    cd_model *one;
    (void)state;
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "one.cdmpp"));
    assert_ok(made_extract(&dir, key[0], target, 1, h5, &err));
    assert_ok(made_learn(h5, set, 4, path, &err));
    assert_ok(cd_model_load(path, &one, &err));
    cd_schedule_db *b = picked(8, 1, 1);
    const char *line = cd_schedule_db_at(b, 0)->line;
    const cd_model_prediction whole = asked(one, false, line), few = asked(one, true, line),
                              other = asked(model, true, line);
    assert_memory_equal(&whole, &few, sizeof whole);
    assert_true(other.median_s != seconds_of(line));
    cd_schedule_db_free(b);
    cd_model_free(one);
}

static void test_candidates_are_the_same_anywhere(void **state) {
    (void)state;
    cd_schedule_db *a = picked(64, 3, 1), *b = picked(64, 3, 3), *c = picked(64, 4, 1);
    assert_int_equal(cd_schedule_db_count(a), 1);
    assert_string_equal(cd_schedule_db_at(a, 0)->line, cd_schedule_db_at(b, 0)->line);
    assert_true(isnan(cd_schedule_db_at(a, 0)->measured_s));
    assert_non_null(strstr(cd_schedule_db_at(a, 0)->origin, "best of 64 predicted by "));
    assert_string_not_equal(cd_schedule_db_at(a, 0)->origin, cd_schedule_db_at(c, 0)->origin);
    /* a book of candidates is read as a book, though nobody measured them */
    cdmpp_err err = {0};
    cd_schedule_db_logs io = {0};
    cd_schedule_db *again;
    char path[256];
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "candidates.json"));
    assert_ok(cd_schedule_db_write(a, path, &err));
    assert_ok(cd_schedule_db_new(&again, &err));
    assert_ok(cd_schedule_db_read_logs(again, (const char *[]){path}, 1, &io, &err));
    same_book(a, again);
    cd_schedule_db_free(a);
    cd_schedule_db_free(b);
    cd_schedule_db_free(c);
    cd_schedule_db_free(again);
}

static void test_more_trials_are_no_worse(void **state) {
    (void)state;
    double one = 0, many = 0;
    for (uint64_t seed = 0; seed < 5; seed++) {
        cd_schedule_db *a = picked(1, seed, 1), *b = picked(256, seed, 1);
        one += log(seconds_of(cd_schedule_db_at(a, 0)->line));
        many += log(seconds_of(cd_schedule_db_at(b, 0)->line));
        cd_schedule_db_free(a);
        cd_schedule_db_free(b);
    }
    assert_true(many < one);
}

static void test_what_is_there_is_not_asked(void **state) {
    cdmpp_err err = {0};
    (void)state;
    cd_schedule_db *a = picked(8, 1, 1);
    const cd_schedule_db_pick o = {.trials = 8, .seed = 2};
    const char *unknown[] = {key[0], "[\"nobody\"]"};
    assert_ok(cd_schedule_db_predict(a, model, tasks, key, 1, &o, NULL, &err));
    assert_non_null(strstr(cd_schedule_db_at(a, 0)->origin, "seed 1"));
    assert_status(cd_schedule_db_predict(a, model, tasks, unknown, 2, &o, NULL, &err),
                  CDMPP_ENOTASK);
    assert_int_equal(cd_schedule_db_count(a), 1);
    cd_schedule_db_free(a);
}

static int run_suite(void) {
    const struct CMUnitTest test[] = {
        cmocka_unit_test_setup_teardown(test_best_is_the_least_median, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_slower_ones_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_flat_keys_are_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wanted_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_copies_are_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_lines_and_other_devices, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_records_of_no_device_and_of_another, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_first_reading_stays_and_names_replace, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_file_reads_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_best_of_a_store, set_up, tear_down),
    };
    const struct CMUnitTest model_test[] = {
        cmocka_unit_test(test_candidates_are_the_same_anywhere),
        cmocka_unit_test(test_more_trials_are_no_worse),
        cmocka_unit_test(test_few_candidates_find_what_many_do),
        cmocka_unit_test(test_sketch_of_a_small_model_is_the_model),
        cmocka_unit_test(test_what_is_there_is_not_asked),
    };
    const int failed = cmocka_run_group_tests(test, NULL, NULL);
    return failed + cmocka_run_group_tests(model_test, learn, forget);
}

SUITE(.run = run_suite)
