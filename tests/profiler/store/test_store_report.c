/* What a store prints of three measurements that are known: lists, the best, near ones, exports,
 * tallies. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "check.h"
#include "profiler/store/store.h"
#include "tmp.h"

#define STR(s) ((cd_str){(s), sizeof(s) - 1})

static cdmpp_err err;
static tmp_dir dir;
static cd_store *store;

/* A convolution twice as fast on the second device, where it once failed too; and a sum. */
static int set_up(void **state) {
    (void)state;
    dir = tmp_make();
    if (cd_store_open(tmp_path(&dir, "s.db"), true, &store, &err)) return 1;
    cd_store_row row = {
        .device = STR("v100"),
        .target = STR("cuda"),
        .target_tail = STR("[]"),
        .workload_key = STR("[\"c\", 8]"),
        .operator_name = STR("conv"),
        .shape = STR("[[8,16]]"),
        .dtype = STR("float32"),
        .layout = STR("nchw"),
        .flop = 1024,
        .latency =
            {.min_s = 0.25, .median_s = 0.5, .mean_s = 0.75, .std_s = 0.125, .cv = 0.0625, .n = 3},
        .total_s = 1.5,
        .timestamp = 1700000000,
        .line = 7};
    bool fresh;
    if (cd_store_add(store, &row, &fresh, &err)) return 1;
    row.device = STR("a \"t4\""),
    row.latency.median_s = row.latency.min_s = row.latency.mean_s = 0.25, row.latency.n = 1,
    row.line = 0;
    if (cd_store_add(store, &row, &fresh, &err)) return 1;
    row.error_no = 4, row.timestamp++;
    if (cd_store_add(store, &row, &fresh, &err)) return 1;
    row.error_no = 0, row.workload_key = STR("sum"), row.operator_name = STR("add"),
    row.shape = STR("[[2]]"), row.flop = -1, row.layout = STR("");
    if (cd_store_add(store, &row, &fresh, &err)) return 1;
    return cd_store_commit(store, &err) != CDMPP_OK;
}

static int tear_down(void **state) {
    (void)state;
    cd_store_close(store);
    tmp_remove(&dir);
    return 0;
}

/* Text and JSON of a report; the text through a file. */
static void report(cd_store_filter f, cd_store_report_options o, cd_buf *text) {
    cd_buf_clear(text);
    if (o.json) {
        assert_ok(cd_store_report(store, &f, &o, NULL, text, &err));
        return;
    }
    cd_buf b = {0};
    FILE *to = tmpfile();
    assert_non_null(to);
    assert_ok(cd_store_report(store, &f, &o, to, &b, &err));
    rewind(to);
    for (int c; (c = fgetc(to)) != EOF;) cd_buf_put(text, (const char[]){(char)c}, 1);
    fclose(to);
    cd_buf_free(&b);
    if (!text->p) cd_buf_puts(text, "");
}

static void test_workloads(void **state) {
    cd_buf b = {0};
    (void)state;
    report((cd_store_filter){.errors = true},
           (cd_store_report_options){.kind = CD_STORE_REPORT_LIST}, &b);
    assert_true(!strncmp(b.p, "   best, ms  measured  failed  devices  operator, workload\n", 58));
    assert_non_null(strstr(b.p, "\n        250         3       1        2  conv  [\"c\", 8]\n"));
    assert_non_null(strstr(b.p, "\n        250         1       0        1  add  sum\n"));
    report((cd_store_filter){.errors = true},
           (cd_store_report_options){.kind = CD_STORE_REPORT_LIST, .json = true}, &b);
    assert_non_null(strstr(b.p, "{\"operator\":\"conv\",\"workload_key\":\"[\\\"c\\\", "
                                "8]\",\"dtype\":\"float32\",\"layout\":\"nchw\",\"shape\":[[8,16]],"
                                "\"flop\":1024,\"measured\":3,\"errors\":1,"
                                "\"devices\":2,\"best_s\":0.25}"));
    assert_non_null(strstr(b.p, "\"shape\":[[2]],\"flop\":null,\"measured\":1,\"errors\":0,"
                                "\"devices\":1,\"best_s\":0.25}"));
    assert_true(b.p[0] == '[' && b.p[b.n - 1] == ']' && strstr(b.p, "},{"));
    cd_buf_free(&b);
}

static void test_best(void **state) {
    cd_buf b = {0};
    (void)state;
    report((cd_store_filter){.workload = "[\"c\", 8]"},
           (cd_store_report_options){.kind = CD_STORE_REPORT_BEST}, &b);
    assert_true(!strncmp(b.p, " median, ms  cv, %  device, operator, shape, from\n", 50));
    const char *fast = strstr(b.p, "        250      -  a \"t4\"  conv  [[8,16]]\n"),
               *slow = strstr(b.p, "        500    6.2  v100  conv  [[8,16]]");
    assert_true(fast && slow && fast < slow);
    cd_buf_free(&b);
}

static void test_tally(void **state) {
    const cd_store_tally t = {
        .files = 1, .lines = 2, .added = 3, .known = 4, .bad = 5, .skipped_lines = 6, .empty = 7};
    const cd_store_tally few = {.files = 1};
    cd_buf b = {0};
    (void)state;
    cd_store_put_tally(&b, &t, true);
    assert_string_equal(b.p, "{\"files\":1,\"lines\":2,\"added\":3,\"known\":4,\"bad\":5,\"skipped_"
                             "lines\":6,\"empty\":7}");
    cd_buf_clear(&b);
    cd_store_put_tally(&b, &t, false);
    assert_string_equal(b.p, "1 files, 2 lines: 3 added, 4 known, 5 bad\n6 lines were there "
                             "already\n7 launches of 0 s left out\n");
    cd_buf_clear(&b);
    cd_store_put_tally(&b, &few, false);
    assert_string_equal(b.p, "1 files, 0 lines: 0 added, 0 known, 0 bad\n");
    cd_buf_free(&b);
}

/* A line of CSV for each, quoted where needed; none of them is a record. */
static void test_exports(void **state) {
    static const volatile sig_atomic_t go = 0, end = 1;
    char path[256], *text;
    size_t n, skipped = 99;
    (void)state;
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "out"));
    assert_ok(cd_store_export(store, &(cd_store_filter){.workload = "[\"c\", 8]", .errors = true},
                              CD_STORE_EXPORT_CSV, path, &go, &skipped, &err));
    assert_int_equal(skipped, 0);
    assert_ok(cd_file_read(path, 0, &text, &n, &err));
    assert_true(!strncmp(text,
                         "id,device,target,operator,workload_key,shape,dtype,layout,flop,error_no,"
                         "min_s,median_s,mean_s,std_s,cv,n,flags,total_s,timestamp,",
                         129));
    assert_non_null(strstr(
        text,
        ",v100,cuda,conv,\"[\"\"c\"\", "
        "8]\",\"[[8,16]]\",float32,nchw,1024,0,0.25,0.5,0.75,0.125,0.0625,3,,1.5,1700000000,"));
    assert_non_null(strstr(
        text,
        ",\"a \"\"t4\"\"\",cuda,conv,\"[\"\"c\"\", 8]\",\"[[8,16]]\",float32,nchw,1024,4,,,,,,"));
    cd_mem_free(text);
    assert_ok(cd_store_export(store, &(cd_store_filter){.errors = true}, CD_STORE_EXPORT_RECORDS,
                              path, &go, &skipped, &err));
    assert_int_equal(skipped, 4);
    assert_ok(cd_file_read(path, 0, &text, &n, &err));
    assert_int_equal(n, 0);
    cd_mem_free(text);
    assert_ok(cd_store_export(store, &(cd_store_filter){.errors = true}, CD_STORE_EXPORT_JSON, path,
                              &go, &skipped, &err));
    assert_ok(cd_file_read(path, 0, &text, &n, &err));
    size_t lines = 0;
    for (size_t k = 0; k < n; k++) lines += text[k] == '\n';
    assert_int_equal(lines, 4);
    cd_mem_free(text);
    char other[256];
    snprintf(other, sizeof other, "%s", tmp_path(&dir, "other"));
    assert_status(cd_store_export(store, &(cd_store_filter){0}, CD_STORE_EXPORT_JSON, other, &end,
                                  &skipped, &err),
                  CDMPP_EINTERRUPTED);
    assert_int_equal(access(other, F_OK), -1); /* half a file is none */
    assert_status(cd_store_export(store, &(cd_store_filter){0}, CD_STORE_EXPORT_JSON, "/nowhere/x",
                                  &go, &skipped, &err),
                  CDMPP_EIO);
}

TESTS(set_up, tear_down, test_workloads, test_best, test_tally, test_exports)
