/* The tables of a store: settings that differ, devices that have no measurement, what is said of
 * them. */
#include <string.h>

#include "check.h"
#include "profiler/store/store.h"
#include "tmp.h"

#define STR(s) ((cd_str){(s), strlen(s)})

static cdmpp_err err;
static tmp_dir dir;
static cd_store *store;

static void add(const char *op, const char *key, const char *device, const char *steps,
                uint32_t flags, double s) {
    const cd_store_row row = {
        .device = STR(device),
        .target = STR("llvm"),
        .target_tail = STR("[]"),
        .workload_key = STR(key),
        .operator_name = STR(op),
        .shape = STR("[[8]]"),
        .dtype = STR("float32"),
        .layout = STR(""),
        .flop = 1000,
        .has_steps = steps != NULL,
        .steps = STR(steps ? steps : ""),
        .latency = {.min_s = s, .median_s = s, .mean_s = s, .n = 1, .flags = flags},
        .timestamp = 1700000000};
    assert_ok(cd_store_add(store, &row, NULL, &err));
}

static int set_up(void **state) {
    (void)state;
    dir = tmp_make();
    if (cd_store_open(tmp_path(&dir, "s.db"), true, &store, &err)) return 1;
    add("a|<b>", "k1", "one", "[[\"SP\", 1, 0, 8, [2], 1], [\"AN\", 1, 2, 3]]", 0, 1e-6);
    add("a|<b>", "k1", "one", "[[\"SP\", 1, 0, 8, [4], 1], [\"AN\", 1, 2, 3]]", 0, 2e-6);
    add("a|<b>", "k2", "one",
        "[[\"SP\", 1, 0, 8, [4], 1], [\"RE\", 1, [0, 1]], [\"AN\", 1, 2, 3], [\"AN\", 1, 0, 4]]", 0,
        4e-6);
    add("sum", "k3", "two", NULL, CD_STORE_COLD, 1e-3);
    return cd_store_commit(store, &err) != CDMPP_OK;
}

static int tear_down(void **state) {
    (void)state;
    cd_store_close(store);
    tmp_remove(&dir);
    return 0;
}

TEST(settings_that_differ) {
    cd_store_tables *t = NULL;
    assert_ok(cd_store_tables_make(store, &t, &err));
    assert_true(t->n_op == 2 && t->n_device == 2);
    const cd_store_table_operator *o = &t->op[0];
    assert_string_equal(o->name, "a|<b>");
    assert_int_equal(o->measured, 3);
    static const struct {
        cd_store_factor f;
        unsigned n;
    } want[] = {{CD_STORE_FACTOR_inputs, 2},    {CD_STORE_FACTOR_types, 1},
                {CD_STORE_FACTOR_tile, 2},      {CD_STORE_FACTOR_reorder, 2},
                {CD_STORE_FACTOR_parallel, 1},  {CD_STORE_FACTOR_unroll, 0},
                {CD_STORE_FACTOR_vectorize, 0}, {CD_STORE_FACTOR_fuse, 0},
                {CD_STORE_FACTOR_threads, 1},   {CD_STORE_FACTOR_cache, 1}};
    for (size_t k = 0; k < sizeof want / sizeof *want; k++)
        if (o->settings[want[k].f] != want[k].n)
            fail_msg("%s: %llu", cd_store_factor_name(want[k].f),
                     (unsigned long long)o->settings[want[k].f]);
    assert_true(t->cell[0].n == 2 && t->cell[1].n == 0 && t->cell[2].n == 0 && t->cell[3].n == 1);
    assert_close(t->cell[0].flop_s, 1e9, 1e-9, 0);
    assert_string_equal(t->device[0].name, "one");
    cd_store_tables_free(t);
}

static void has(const cd_store_tables *t, cd_store_table_form form, const char *want, bool there) {
    cd_buf b = {0};
    cd_store_tables_print(&b, t, form, "my.db");
    if ((strstr(b.p, want) != NULL) != there) fail_msg("%s: %s", want, b.p);
    cd_buf_free(&b);
}

TEST(what_is_printed) {
    cd_store_tables *t = NULL;
    assert_ok(cd_store_tables_make(store, &t, &err));
    has(t, CD_STORE_TABLE_MARKDOWN, "| a\\|<b> | 3 | 2 |  | 2 | 2 |  |", true);
    has(t, CD_STORE_TABLE_MARKDOWN, "| a\\|<b> | 2, 1 |  |\n| sum |  | 1, 0.001 |", true);
    has(t, CD_STORE_TABLE_MARKDOWN,
        "* sum: schedules: `cdmpp-profile records --tasks TASKS --store my.db", true);
    has(t, CD_STORE_TABLE_MARKDOWN, "* a\\|<b>: schedules:", false);
    has(t, CD_STORE_TABLE_MARKDOWN, "* a\\|<b>: two: ", true);
    has(t, CD_STORE_TABLE_MARKDOWN, "* a\\|<b>: one: ", false);
    has(t, CD_STORE_TABLE_MARKDOWN, "* a\\|<b>: sizes:", false);
    has(t, CD_STORE_TABLE_HTML, "<tr><th>a|&lt;b&gt;</th><td><i style=\"width:12px\"></i>3</td>",
        true);
    has(t, CD_STORE_TABLE_JSON,
        "\"devices\":{\"one\":{\"workloads\":2,\"flop_per_s\":1000000000},\"two\":{\"workloads\":0,"
        "\"flop_per_s\":null}}",
        true);
    cd_store_tables_free(t);
}

TESTS(set_up, tear_down, settings_that_differ, what_is_printed)
