/* device_open: a file of the user's comes first, ours stands behind it. */
#include "features/device/device.h"
#include "check.h"
#include "fault.h"
#include "tmp.h"

#include <string.h>

#include "base/io/io.h"

static tmp_dir dir;
static cdmpp_err err;

static int up(void **state) {
    (void)state;
    dir = tmp_make();
    return 0;
}

static int down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

/* What is opened for `wanted`, "": no file is named. */
static cd_device_table *opened(const char *wanted, const char *config) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cd_device_table *l = NULL;
    const char *path = NULL;
    assert_ok(cd_device_table_open(&a, wanted, config, &diag, &path, &l, &err));
    assert_int_equal(diag.n, 0);
    if (wanted[0]) assert_string_equal(path, wanted);
    cd_arena_free(&a);
    return l;
}

static cd_device_table *over(const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s", tmp_put(&dir, "mine.yaml", text, strlen(text)));
    return opened(path, NULL);
}

static const cd_device *named(const cd_device_table *l, const char *name) {
    const cd_device *d;
    assert_ok(cd_device_table_find(l, name, &d, &err));
    return d;
}

static size_t usual(void) {
    cd_device_table *l = opened("", NULL);
    const size_t n = cd_device_table_count(l);
    for (size_t i = 0; i < n; i++) assert_true(cd_device_table_own(l, cd_device_table_at(l, i)));
    cd_device_table_free(l);
    return n;
}

TEST(one_device_and_ours) {
    cd_device_table *l = over("- {name: board, kind: gpu, clock_mhz: 1000}\n");
    const cd_device *d;
    assert_int_equal(cd_device_table_count(l), usual() + 1);
    assert_ptr_equal(named(l, "board"), cd_device_table_at(l, 0));
    assert_true(cd_device_table_own(l, named(l, "board")) &&
                !cd_device_table_own(l, named(l, "h200")) && named(l, "NVIDIA H200")->cores > 100);
    assert_string_equal(cd_device_table_replaced(l), "");
    assert_status(cd_device_table_find(l, "h9000", &d, &err), CDMPP_ESCHEMA);
    cd_device_table_free(l);
}

/* Ours is not there a second time, and its other names are the own device's. */
TEST(what_both_describe) {
    cd_device_table *l = over("- {name: H100, kind: gpu, clock_mhz: 1234}\n- {name: mine, aliases: "
                              "[t4, l4], kind: gpu, clock_mhz: 1000}\n");
    const size_t n = usual();
    assert_int_equal(cd_device_table_count(l), n - 3 + 2);
    assert_close(named(l, "h100")->clock_mhz, 1234, 0, 0);
    assert_ptr_equal(named(l, "NVIDIA H100 80GB HBM3"), named(l, "h100"));
    assert_ptr_equal(named(l, "Tesla T4"), named(l, "mine"));
    assert_ptr_equal(named(l, "NVIDIA L4"), named(l, "mine"));
    assert_non_null(strstr(cd_device_table_replaced(l),
                           "mine.yaml replaces what cdmpp says of t4, l4, h100\n"));
    for (size_t i = 0; i < cd_device_table_count(l); i++)
        assert_ptr_equal(named(l, cd_device_table_at(l, i)->name), cd_device_table_at(l, i));
    cd_device_table_free(l);
}

TEST(a_copy_replaces_nothing) {
    char *text;
    size_t n;
    assert_ok(cd_file_read("configs/devices.yaml", 0, &text, &n, &err));
    cd_device_table *l = over(text);
    assert_int_equal(cd_device_table_count(l), usual());
    assert_string_equal(cd_device_table_replaced(l), "");
    cd_device_table_free(l);
    cd_mem_free(text);
}

/* Of a configuration: the file that it names, the one beside it, the usual one. */
TEST(three_files) {
    static const char beside[] =
        "- {name: second, kind: gpu}\n- {name: first, kind: gpu, clock_mhz: 7}\n",
                      own[] = "- {name: first, kind: gpu, clock_mhz: 5}\n";
    char config[256], path[256];
    snprintf(config, sizeof config, "%s", tmp_put(&dir, "train.yaml", "", 0));
    snprintf(path, sizeof path, "%s", tmp_put(&dir, "own.yaml", own, sizeof own - 1));
    (void)tmp_put(&dir, CD_DEVICE_FILE, beside, sizeof beside - 1);
    cd_device_table *l = opened(path, config);
    assert_close(named(l, "first")->clock_mhz, 5, 0, 0);
    assert_true(cd_device_table_own(l, named(l, "first")) &&
                !cd_device_table_own(l, named(l, "second")) && named(l, "h100")->cores > 100);
    assert_non_null(
        strstr(cd_device_table_replaced(l), "own.yaml replaces what cdmpp says of first\n"));
    cd_device_table_free(l);
    l = opened("", config);
    assert_true(cd_device_table_own(l, named(l, "second")) && named(l, "h100")->cores > 100);
    cd_device_table_free(l);
    /* damaged: of a file behind the first nobody asked */
    (void)tmp_put(&dir, CD_DEVICE_FILE, "- {name: ", 9);
    l = opened(path, config);
    assert_int_equal(cd_device_table_count(l), 1);
    cd_device_table_free(l);
}

TEST(mistakes) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cd_device_table *l = NULL;
    char path[256];
    snprintf(path, sizeof path, "%s",
             tmp_put(&dir, "bad.yaml", "- {name: x, kind: gpu, clock: 5}\n", 33));
    assert_status(cd_device_table_open(&a, path, NULL, &diag, NULL, &l, &err), CDMPP_ESCHEMA);
    assert_int_equal(diag.n, 1);
    assert_status(cd_device_table_open(&a, "none.yaml", NULL, &diag, NULL, &l, &err), CDMPP_EIO);
    assert_null(l);
    cd_diag_free(&diag);
    cd_arena_free(&a);
}

TEST(faults) {
    char path[256];
    snprintf(path, sizeof path, "%s",
             tmp_put(&dir, "mine.yaml", "- {name: h100, kind: gpu, clock_mhz: 5}\n", 40));
    FAULT_SWEEP(g, 3) {
        cd_arena a = {0};
        cd_diag diag = {0};
        cd_device_table *l = NULL;
        g.st = cd_device_table_open(&a, path, NULL, &diag, NULL, &l, &g.err);
        /* never silently */
        if (!g.st && cd_device_table_count(l) == 1)
            g.st = CD_FAIL(&g.err, ENOMEM, "ours is not there");
        cd_device_table_free(l);
        cd_diag_free(&diag);
        cd_arena_free(&a);
    }
}

TESTS(up, down, one_device_and_ours, what_both_describe, a_copy_replaces_nothing, three_files,
      mistakes, faults)
