/* Curves and correlations of tables: which points count, what is printed of a law that is known,
 * lists of sizes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "check.h"
#include "profiler/curves/curves_internal.h"
#include "tmp.h"

static cdmpp_err err;
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

static const char *put(const cd_buf *b) { return tmp_put(&dir, "t.csv", b->p, b->n); }

/* "@": a time. */
static void has(const char *text, const char *form, const double *s) {
    cd_buf want = {0};
    for (; *form; form++) {
        if (*form == '@') cd_units_put_seconds(&want, *s++);
        else cd_buf_put(&want, form, 1);
    }
    if (!strstr(text, want.p)) fail_msg("no\n%sin\n%s", want.p, text);
    cd_buf_free(&want);
}

/* ---- lists of sizes ---- */
static void test_sizes(void **state) {
    static const char *const bad[] = {
        "batch=1",     "batch=",      "batch",      "Batch=1,2",  "batch=2,1",
        "batch=1,1",   "batch=0,1",   "batch=1,2,", "batch=1,,2", "batch=1,1048577",
        "batch=1,2 ",  "batch=1,2;3", "size=1,2",   "batch=-1,2", "batch=1,99999999999999999999",
        "input=4..4",  "input=4..2",  "input=1..",  "input=1..x", "input=1..4,4",
        "input=1...4", "input=..4"};
    static const int doubled[] = {3, 4, 8, 16, 20, 21};
    cd_size_list l;
    (void)state;
    assert_true(cd_size_list_parse("batch=1,4,1048576", &l));
    assert_true(!l.input && l.n == 3 && l.v[0] == 1 && l.v[1] == 4 && l.v[2] == 1048576);
    assert_true(cd_size_list_parse("input=64,128", &l));
    assert_true(l.input && l.n == 2);
    assert_true(cd_size_list_parse("input=3..20,21", &l));
    assert_true(l.n == 6 && !memcmp(l.v, doubled, sizeof doubled));
    assert_true(cd_size_list_parse("input=1..1048576", &l) && l.n == 21);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        if (cd_size_list_parse(bad[k], &l)) fail_msg("%s", bad[k]);
    for (int most = 32; most < 34; most++) {
        cd_buf b = {0};
        for (int k = 1; k <= most; k++) cd_buf_putf(&b, "%s%d", k > 1 ? "," : "batch=", k);
        assert_int_equal(cd_size_list_parse(b.p, &l), most == 32);
        cd_buf_free(&b);
    }
}

/* ---- tables of curves ---- */
static size_t skips;
static void skip_it(void *ctx, const cdmpp_err *why) {
    (void)ctx;
    assert_non_null(strstr(why->key, "short"));
    skips++;
}

/* 1 ms and 2 us for each, in any order, some sizes twice; a flat one of 5 ms; one of too few
 * points. */
static cd_curve_set read_set(const char *op, size_t limit) {
    cd_buf b = {0};
    cd_curve_set c = {.op = op, .limit = limit, .skip = skip_it};
    cd_buf_puts(&b, "curve,seconds,size\nshort,1,1\n");
    for (int k = 20; k > 0; k--) {
        cd_buf_putf(&b, "line,%.17g,%d\nflat,5e-3,%d\n", 1e-3 + 2e-6 * 50 * k, 50 * k, k);
        /* slower: does not count */
        if (k % 3 == 0) cd_buf_putf(&b, "line,%.17g,%d\n", 9 * (1e-3 + 2e-6 * 50 * k), 50 * k);
    }
    skips = 0;
    assert_ok(cd_curve_set_read(&c, put(&b), &err));
    cd_buf_free(&b);
    return c;
}

static void test_points(void **state) {
    (void)state;
    cd_curve_set c = read_set(NULL, 0);
    assert_true(c.n == 2 && c.skipped == 1 && skips == 1);
    assert_string_equal(c.curve[0].name, "line");
    assert_string_equal(c.curve[1].op, "flat");
    assert_int_equal(c.curve[0].n, 20);
    for (int k = 1; k <= 20; k++) {
        assert_close(c.curve[0].x[k - 1], 50 * k, 0, 0);
        assert_close(c.curve[0].t[k - 1], 1e-3 + 2e-6 * 50 * k, 1e-15, 0);
    }
    assert_close(c.curve[0].fit.param[0], 1e-3, 1e-6, 0);
    assert_close(c.curve[0].fit.param[1], 2e-6, 1e-6, 0);
    cd_curve_set_free(&c);
    c = read_set("flat", 0);
    assert_true(c.n == 1 && skips == 0);
    cd_curve_set_free(&c);
    c = read_set(NULL, 1);
    assert_true(c.n == 1 && skips == 1 && !strcmp(c.curve[0].name, "line"));
    cd_curve_set_free(&c);
    static const char *const bad[] = {"size,seconds\n0,1\n1,1\n2,2\n", "size,seconds\n1,0\n2,1\n",
                                      "size\n1\n", "seconds,curve\n1,a\n", "size,seconds\n1,x\n"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        c = (cd_curve_set){0};
        assert_true(cd_curve_set_read(&c, tmp_put(&dir, "bad.csv", bad[k], strlen(bad[k])), &err) !=
                    CDMPP_OK);
        cd_curve_set_free(&c);
    }
}

static void test_curves_printed(void **state) {
    const double at[] = {100, 2000};
    cd_buf b = {0};
    cd_arena a = {0};
    const cd_json *o, *v;
    double low, high, got;
    (void)state;
    cd_curve_set c = read_set(NULL, 0);
    cd_curve_set_print(&c, at, 2, 0.9, &b);
    has(b.p,
        "line\n    affine, linear: @ and @ for each\n    20 points of 50..1000, noise 0.0 %\n    "
        "at 100: @, in ",
        (const double[]){1e-3, 2e-6, 1.2e-3});
    has(b.p, "\n    at 2000: @, in ", (const double[]){5e-3});
    has(b.p,
        " by 90 %, outside of the points\nflat\n    constant, flat: @\n    20 points of 1..20, "
        "noise 0.0 %\n",
        (const double[]){5e-3});
    has(b.p,
        "\noperator                curves     flat   linear  piecewise  unclear  turns at "
        "(median)\nline                         1        0        1          0        0  -\n"
        "flat                         1        1        0          0        0  -\n",
        NULL);
    cd_buf_clear(&b);
    cd_curve_set_print_json(&c, at, 2, 0.9, &b);
    assert_ok(cd_json_parse(&a, b.p, b.n, &o, &err));
    assert_int_equal(cd_json_get(o, "left_out")->u.i, 1);
    const cd_json *line = cd_json_get(o, "curves")->u.child;
    static const char *const key[] = {"points", "left_out", "least_size", "largest_size"};
    static const double want[] = {20, 0, 50, 1000};
    for (int k = 0; k < 4; k++) {
        assert_ok(cd_json_need_real(line, key[k], -1, 1e9, &got, &err));
        assert_close(got, want[k], 0, 0);
    }
    assert_int_equal(cd_json_get(line, "turns_at")->kind, CD_JSON_NULL);
    v = cd_json_get(line, "at")->u.child->next;
    cd_perf_curve_interval(&c.curve[0].fit, 2000, 0.9, &low, &high);
    assert_ok(cd_json_need_real(v, "seconds", 0, 1, &got, &err));
    assert_close(got, 5e-3, 1e-6, 0);
    assert_ok(cd_json_need_real(v, "low_s", 0, 1, &got, &err));
    assert_close(got, low, 1e-12, 0);
    assert_ok(cd_json_need_real(v, "high_s", 0, 1, &got, &err));
    assert_close(got, high, 1e-12, 0);
    assert_true(low <= high && cd_json_get(line, "parameters")->n == 2);
    v = cd_json_get(o, "operators")->u.child->next;
    assert_true(cd_json_get(v, "flat")->u.i == 1 && cd_json_get(v, "linear")->u.i == 0 &&
                cd_json_get(v, "curves")->u.i == 1);
    cd_curve_set_free(&c);
    cd_buf_free(&b);
    cd_arena_free(&a);
}

/* Forms that are made up: steps, a hinge, two breaks, a table. */
static void test_laws_printed(void **state) {
    static const struct {
        cd_perf_curve fit;
        const char *want;
        double s[4];
    } row[] = {
        {{.form = CD_PERF_CURVE_STAIRS, .n_param = 3, .n_break = 1, .param = {1e-3, 2e-3, 64}},
         ": @ and @ for every 64 begun",
         {1e-3, 2e-3}},
        {{.form = CD_PERF_CURVE_HINGE, .n_param = 3, .n_break = 1, .param = {1e-3, 2e-6, 32}},
         ": @ and @ for each beyond 32",
         {1e-3, 2e-6}},
        {{.form = CD_PERF_CURVE_AFFINE, .n_param = 2, .param = {3e-3, 4e-6}},
         ": @ and @ for each\n",
         {3e-3, 4e-6}},
        {{.form = CD_PERF_CURVE_TABLE, .n_knot = 7}, ": by 7 points of a table", {0}},
    };
    (void)state;
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        double knot[7] = {1, 2, 3, 4, 5, 6, 7};
        cd_curve_set_curve one = {.name = "n", .op = "o", .fit = row[k].fit};
        one.fit.knot_x = one.fit.knot_t = knot;
        one.fit.turn = (cd_perf_curve_turn){.low = NAN, .high = NAN};
        const cd_curve_set c = {.curve = &one, .n = 1};
        cd_buf b = {0};
        one.fit.n = 9, one.fit.n_left_out = 2, one.fit.warmup = k == 1, one.fit.noise = 0.125,
        one.fit.x_min = 1, one.fit.x_max = 99;
        cd_curve_set_print(&c, NULL, 0, 0.9, &b);
        has(b.p, row[k].want, row[k].s);
        has(b.p,
            k == 1 ? "\n    9 points of 1..99, noise 12.5 %, 2 left out (the first, as too slow)\n"
                   : "\n    9 points of 1..99, noise 12.5 %, 2 left out\n",
            NULL);
        cd_buf_free(&b);
    }
}

/* ---- correlations ---- */
static void test_correlations_printed(void **state) {
    static const char *name[] = {"a", "b", "c", "d", "e"};
    static cd_correlation_axis axis[] = {
        {.pearson = 0.5,
         .spearman = 0.75,
         .distance = 0.875,
         .partial = NAN,
         .strong = true,
         .turn = {12.5, 12, 13.25, false},
         .form = CD_PERF_CURVE_HINGE},
        {.pearson = -0.0,
         .spearman = -0.5,
         .distance = 0.25,
         .partial = -0.125,
         .strong = true,
         .falls = true,
         .turning = 8,
         .turn = {.low = NAN, .high = NAN}},
        {.spearman = 0.1, .turning = 7, .turn = {.low = NAN, .high = NAN}},
        {.strong = true, .falls = true, .turning = NAN, .turn = {.low = NAN, .high = NAN}},
        {.strong = true, .turn = {5, 4, 16, true}, .form = CD_PERF_CURVE_AFFINE}};
    const cd_correlation_table t = {.target = "s", .n_row = 17, .k = 5, .name = name, .axis = axis};
    cd_buf b = {0};
    cd_arena a = {0};
    const cd_json *o;
    (void)state;
    cd_correlation_table_print(&t, &b);
    assert_string_equal(
        b.p,
        "s by 5 settings, 17 rows\nsetting                 Spearman  distance   partial   Pearson\n"
        "a                          0.750     0.875         -     0.500  rises (hinge), turns at "
        "12.5, between 12 and 13.25\n"
        "b                         -0.500     0.250    -0.125     0.000  falls, no longer from 8 "
        "on\n"
        "c                          0.100     0.000     0.000     0.000  weak\n"
        "d                          0.000     0.000     0.000     0.000  falls\n"
        "e                          0.000     0.000     0.000     0.000  rises (affine), turns "
        "between 4 and 16\n");
    cd_buf_clear(&b);
    cd_correlation_table_print_json(&t, &b);
    assert_ok(cd_json_parse(&a, b.p, b.n, &o, &err));
    assert_int_equal(cd_json_get(o, "rows")->u.i, 17);
    const char *list = strstr(b.p, "\"settings\":[") + 12;
    static const char first[] =
        "{\"name\":\"a\",\"spearman\":0.75,\"distance\":0.875,\"partial\":null,\"pearson\":0.5,"
        "\"strong\":true,\"falls\":false,\"form\":\"hinge\",\"turns_at\":12.5,\"turns_low\":12,"
        "\"turns_high\":13.25},"
        "{\"name\":\"b\",\"spearman\":-0.5,\"distance\":0.25,\"partial\":-0.125,\"pearson\":";
    assert_true(!strncmp(list, first, sizeof first - 1));
    assert_non_null(strstr(b.p, "\"strong\":true,\"falls\":true,\"form\":null,\"turns_at\":8,"
                                "\"turns_low\":null,\"turns_high\":null}"));
    assert_non_null(strstr(b.p, "\"strong\":false,\"falls\":false,\"form\":null,\"turns_at\":null,"
                                "\"turns_low\":null,\"turns_high\":null}"));
    cd_buf_free(&b);
    cd_arena_free(&a);
}

/* y follows a, b runs against it a little less well, n is noise: in the order of their strength. */
static void test_table_of_settings(void **state) {
    cd_buf b = {0};
    cd_correlation_table t = {0};
    (void)state;
    cd_buf_puts(&b, "n,b,y,a\n");
    for (int k = 0; k < 30; k++)
        cd_buf_putf(&b, "%d,%d,%d,%d\n", k * 7 % 10, (k % 5 ? -k : k) * 3, 10 + k, k);
    char path[256];
    snprintf(path, sizeof path, "%s", put(&b));
    assert_ok(cd_correlation_table_read(path, "y", NULL, 0, &t, &err));
    assert_true(t.k == 3 && t.n_row == 30);
    assert_string_equal(t.name[0], "a");
    assert_string_equal(t.name[1], "b");
    assert_string_equal(t.name[2], "n");
    assert_close(t.axis[0].spearman, 1, 1e-12, 0);
    assert_close(t.axis[0].pearson, 1, 1e-12, 0);
    assert_true(t.axis[1].spearman < -0.3 && fabs(t.axis[2].spearman) < 0.3);
    cd_correlation_table_free(&t);
    t = (cd_correlation_table){0};
    assert_ok(cd_correlation_table_read(path, "y", "n,a", 0, &t, &err));
    assert_true(t.k == 2 && !strcmp(t.name[0], "a") && !strcmp(t.name[1], "n"));
    cd_correlation_table_free(&t);
    static const char *const axes[] = {"y", "a,a", "x", "", "a,", "n,b,a,n"};
    for (size_t k = 0; k < sizeof axes / sizeof *axes; k++) {
        t = (cd_correlation_table){0};
        assert_true(cd_correlation_table_read(path, "y", axes[k], 0, &t, &err) != CDMPP_OK);
        cd_correlation_table_free(&t);
    }
    assert_status(cd_correlation_table_read(tmp_put(&dir, "one.csv", "y\n1\n2\n3\n", 8), "y", NULL,
                                            0, &t, &err),
                  CDMPP_ESCHEMA);
    cd_correlation_table_free(&t);
    cd_buf_free(&b);
}

TESTS(set_up, tear_down, test_sizes, test_points, test_curves_printed, test_laws_printed,
      test_correlations_printed, test_table_of_settings)
