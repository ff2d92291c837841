/* What is printed of measured records: every number is another one, so each stands in its own
 * place; and the fastest record of each workload. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "check.h"
#include "profiler/records/record_best.h"
#include "profiler/records/record_corun.h"
#include "profiler/records/records.h"
#include "profiler/records/schedule_sweep.h"
#include "tmp.h"

static cdmpp_err err;

static void is(cd_buf *b, const char *want) {
    assert_string_equal(b->p, want);
    cd_buf_clear(b);
}

/* ---- sweeps: the base of 2 ms, two tiles, a failure, an unroll that is slower ---- */
enum { ROWS = 5 };
static cd_variant variant[ROWS] = {{.factor = CD_VARY_BASE, .value = "base"},
                                   {.factor = CD_VARY_TILE, .value = "step3[1]=8"},
                                   {.factor = CD_VARY_TILE, .value = "a<b>&c"},
                                   {.factor = CD_VARY_UNROLL, .value = "512"},
                                   {.factor = CD_VARY_TILE, .value = "16"}};
static cd_schedule_sweep_row row[ROWS];
static cd_schedule_sweep sweep = {.base = {.workload_key = {"[\"k\"]", 5}},
                                  .row = row,
                                  .measured = {.n = 3, .low_s = 1.75e-3, .high_s = 2e-3}};

static void make_sweep(void) {
    static const double median[ROWS] = {2e-3, 1e-3, 0, 8e-3, 1.5e-3};
    static const double ratio[ROWS] = {1, 0.5, 0, 4, 0.75};
    for (int k = 0; k < ROWS; k++) {
        row[k] = (cd_schedule_sweep_row){.v = &variant[k],
                                         .ratio = ratio[k],
                                         .ratio_low = k == 4 ? (double)NAN : ratio[k] - 0.125,
                                         .ratio_high = ratio[k] + 0.25,
                                         .disturbed = k == 3};
        row[k].out.time.median_s = median[k], row[k].out.time.ci = 0.125 * (k + 1),
        row[k].out.error_no = k == 2 ? 4 : 0;
    }
}

static void test_sweep(void **state) {
    cd_buf b = {0};
    (void)state;
    make_sweep();
    sweep.n = ROWS;
    assert_ok(cd_schedule_sweep_csv(&b, &sweep, &err));
    is(&b, "factor,value,median_s,ci,ratio,error_no,ratio_low,ratio_high,disturbed\nbase,base,0."
           "002,0.125,1,0,0.875,1.25,0\ntile,step3[1]=8,0.001,0.25,0.5,0,0.375,0.75,0\n"
           "tile,a<b>&c,,,,4,,,\nunroll,512,0.008,0.5,4,0,3.875,4.25,1\ntile,16,0.0015,0.625,0.75,"
           "0,,,0\n");
    sweep.n = 3;
    assert_ok(cd_schedule_sweep_json(&b, &sweep, &err));
    is(&b, "{\"workload_key\":\"[\\\"k\\\"]\",\"base\":{\"measurements\":3,\"least_s\":0.00175,"
           "\"most_s\":0.002},\"variants\":[{\"factor\":\"base\",\"value\":\"base\",\"error_no\":0,"
           "\"median_s\":0.002,\"ci\":0.125,\"ratio\":1,\"ratio_low\":0.875,\"ratio_high\":1.25,"
           "\"disturbed\":false},"
           "{\"factor\":\"tile\",\"value\":\"step3[1]=8\",\"error_no\":0,\"median_s\":0.001,\"ci\":"
           "0.25,\"ratio\":0.5,\"ratio_low\":0.375,\"ratio_high\":0.75,\"disturbed\":false},"
           "{\"factor\":\"tile\",\"value\":\"a<b>&c\",\"error_no\":4}]}");
    sweep.n = ROWS;
    assert_ok(cd_schedule_sweep_text(&b, &sweep, &err));
    is(&b, "base 1.7500 to 2.0000 ms, measured 3 times\nfactor      variants  failed  best         "
           "  worst\ntile               3       1  0.500 step3[1]=8   0.750 16\n"
           "unroll             1       0  4.000? 512   4.000? 512\n");
    row[0].out.error_no = 4; /* without a base there is no ratio */
    row[3].ratio = 0;
    sweep.n = 4, sweep.measured.n = 0;
    assert_ok(cd_schedule_sweep_text(&b, &sweep, &err));
    is(&b, "factor      variants  failed  best           worst\ntile               2       1  "
           "0.500 step3[1]=8   0.500 step3[1]=8\nunroll             1       0\n");
    cd_buf_free(&b);
}

/* One decade each way: a bar of ratio r ends at 430 + 210 lg r, which stays between 220 and 640. */
static void test_sweep_drawn(void **state) {
    cd_buf b = {0};
    (void)state;
    make_sweep();
    row[4].ratio = 1000;
    sweep.n = ROWS;
    assert_ok(cd_schedule_sweep_svg(&b, &sweep, &err));
    assert_non_null(
        strstr(b.p, "<svg xmlns='http://www.w3.org/2000/svg' width='720' height='130' "));
    assert_non_null(strstr(b.p, "<text x='430' y='16' text-anchor='middle'>time over"));
    static const double tick[] = {0.1, 0.2, 0.5, 1, 2, 5, 10};
    char text[300];
    for (int k = 0; k < 7; k++) {
        const double x = 430 + 210 * log10(tick[k]);
        snprintf(text, sizeof text,
                 "<line x1='%.1f' x2='%.1f' y1='40' y2='122' stroke='#ccc'/><text x='%.1f' y='36' "
                 "text-anchor='middle'>%g</text>\n",
                 x, x, x, tick[k]);
        assert_non_null(strstr(b.p, text));
    }
    const double half = 210 * log10(2), four = 210 * log10(4);
    snprintf(text, sizeof text,
             "<text x='214' y='51' text-anchor='end'>tile step3[1]=8</text><rect x='%.1f' y='42' "
             "width='%.1f' height='12' fill='#2a7'/><text x='646' y='51'>0.50</text>\n",
             430 - half, half + 1);
    assert_non_null(strstr(b.p, text));
    assert_non_null(strstr(b.p, "<text x='214' y='67' text-anchor='end'>tile "
                                "a&lt;b&gt;&amp;c</text><text x='646' y='67'>error 4</text>\n"));
    snprintf(text, sizeof text,
             "<rect x='430.0' y='74' width='%.1f' height='12' fill='#c63'/><text x='646' "
             "y='83'>4.00?</text>\n",
             four + 1);
    assert_non_null(strstr(b.p, text));
    assert_non_null(strstr(b.p, "<rect x='430.0' y='90' width='211.0' height='12' "
                                "fill='#c63'/><text x='646' y='99'>1000.00</text>\n</svg>\n"));
    cd_buf_free(&b);
}

/* ---- pairs ---- */
static void test_pairs(void **state) {
    static cd_record_corun c; /* large */
    static cd_codegen_buffer buffer[] = {{.bytes = 100}, {.bytes = 20}, {.bytes = 3}};
    static cd_record_corun_row rows[2] = {
        {.first = 0,
         .second = 1,
         .sharing = CD_CORUN_SHARED,
         .out = {.solo_s = {1e-3, 2e-3},
                 .corun_s = {3e-3, 5e-3},
                 .slowdown = {3, 2.5},
                 .spread = 0.0625}},
        {.first = 1, .second = 1, .sharing = CD_CORUN_DISJOINT, .out = {.error_no = 7, .at = 1}}};
    cd_buf b = {0};
    cd_arena a = {0};
    const cd_json *v;
    (void)state;
    c = (cd_record_corun){.n = 2, .n_row = 2, .threads = 3, .row = rows};
    c.best[0] = (cd_record_best){.key = {"[\"a\", 1]", 8}, .path = "x.json", .number = 7};
    c.best[1] = (cd_record_best){.key = {"b", 1}, .path = "y.json", .number = 9};
    c.job[0].flop = 1024,
    c.job[0].code = (cd_codegen_code){.n_arg = 2, .n_buffer = 3, .buffer = buffer};
    c.job[1].flop = -1,
    c.job[1].code = (cd_codegen_code){.n_arg = 3, .n_buffer = 3, .buffer = buffer};
    cd_record_corun_csv(&b, &c);
    is(&b, "first,second,sharing,threads,first_solo_s,second_solo_s,first_corun_s,second_corun_s,"
           "first_slowdown,second_slowdown,spread,first_flop,second_flop,first_bytes,"
           "second_bytes,error_no\n\"[\"\"a\"\", "
           "1]\",\"b\",shared,3,0.001,0.002,0.003,0.005,3,2.5,0.0625,1024,-1,120,123,0\n\"b\","
           "\"b\",disjoint,3,,,,,,,,-1,-1,123,123,7\n");
    cd_record_corun_json(&b, &c);
    assert_ok(cd_json_parse(&a, b.p, b.n, &v, &err));
    assert_int_equal(cd_json_get(v, "threads")->u.i, 3);
    const char *programs = strstr(b.p, "\"programs\":");
    assert_string_equal(
        programs,
        "\"programs\":[{\"workload_key\":\"[\\\"a\\\", "
        "1]\",\"file\":\"x.json\",\"line\":7,\"flop\":1024,\"bytes\":120},"
        "{\"workload_key\":\"b\",\"file\":\"y.json\",\"line\":9,\"flop\":-1,\"bytes\":123}],"
        "\"pairs\":["
        "{\"first\":0,\"second\":1,\"sharing\":\"shared\",\"error_no\":0,\"solo_s\":[0.001,0.002],"
        "\"corun_s\":[0.003,0.005],\"slowdown\":[3,2.5],"
        "\"spread\":0.0625},{\"first\":1,\"second\":1,\"sharing\":\"disjoint\",\"error_no\":7}]}");
    cd_buf_clear(&b);
    cd_record_corun_text(&b, &c);
    is(&b, "  0  [\"a\", 1]\n  1  b\nfirst second  sharing   alone, ms           together, ms      "
           "  slowdown     spread\n"
           "    0      1  shared       1.0000    2.0000     3.0000    5.0000   3.00  2.50    6.2 "
           "%\n    1      1  disjoint  error 7\n");
    cd_buf_free(&b);
    cd_arena_free(&a);
}

/* ---- statistics ---- */
static cd_measure_result result(void) {
    cd_measure_result m = {.flags = CD_MEASURE_NOISY | CD_MEASURE_CHECKED,
                           .attempts = 11,
                           .build_s = 0.5,
                           .run_s = 0.25,
                           .quiet_before = 0.75,
                           .quiet_after = 0.875,
                           .max_error = 0.03125,
                           .cycles = 21,
                           .instructions = 22,
                           .cache_misses = 23,
                           .at = 1600000000};
    m.time.n = 5, m.time.n_kept = 4, m.time.number = 6, m.time.disturbed = 3;
    m.time.min_s = 1.5, m.time.median_s = 2.5, m.time.mean_s = 3.5, m.time.std_s = 4.5,
    m.time.cv = 5.5, m.time.ci = 6.5;
    return m;
}

#define LINE_HEAD                                                                                  \
    "{\"file\":\"f.json\",\"line\":7,\"record\":9,\"workload_key\":\"[\\\"k\\\"]\",\"target\":"    \
    "\"llvm\",\"id\":\"000000000000000a000000000000000b\",\"at\":1600000000"
static void test_lines(void **state) {
    cd_buf b = {0};
    (void)state;
    cd_record_program j = {
        .path = "f.json", .number = 7, .target = "llvm", .id = {10, 11}, .flop = 12};
    j.record.workload_key = (cd_str){"[\"k\"]", 5};
    cd_measure_result m = result();
    cd_record_stats_line(&b, &j, 9, &m, "far");
    is(&b, LINE_HEAD ",\"host\":\"far\",\"flop\":12,\"build_s\":0.5,\"run_s\":0.25,\"error_no\":0,"
                     "\"n\":5,\"kept\":4,\"number\":6,\"disturbed\":3,\"attempts\":11,"
                     "\"min_s\":1.5,\"median_s\":2.5,\"mean_s\":3.5,\"std_s\":4.5,\"cv\":5.5,"
                     "\"ci\":6.5,\"quiet_before\":0.75,\"quiet_after\":0.875,\"cycles\":21,"
                     "\"instructions\":22,\"cache_misses\":23,\"max_error\":0.03125,\"flags\":["
                     "\"noisy\",\"checked\"]}\n");
    m.cycles = m.instructions = m.cache_misses = -1, m.flags = CD_MEASURE_WIDE | CD_MEASURE_CACHED,
    j.flop = -1;
    cd_record_stats_line(&b, &j, 9, &m, NULL);
    is(&b, LINE_HEAD
       ",\"build_s\":0.5,\"run_s\":0.25,\"error_no\":0,\"n\":5,\"kept\":4,\"number\":6,"
       "\"disturbed\":3,\"attempts\":11,"
       "\"min_s\":1.5,\"median_s\":2.5,\"mean_s\":3.5,\"std_s\":4.5,\"cv\":5.5,\"ci\":6.5,\"quiet_"
       "before\":0.75,\"quiet_after\":0.875,\"flags\":[\"wide\",\"cached\"]}\n");
    m.flags = 0, m.error_no = 2, j.flop = 0;
    snprintf(m.err.msg, sizeof m.err.msg, "no");
    cd_record_stats_line(&b, &j, 9, &m, NULL);
    is(&b, LINE_HEAD ",\"flop\":0,\"build_s\":0.5,\"run_s\":0.25,\"error_no\":2,\"error\":\"no\","
                     "\"flags\":[]}\n");
    cd_buf_free(&b);
}

/* Four of three kinds: two measured, one of them noisy and wide, one cached; errors 2 and of no
 * number. */
static void test_counts(void **state) {
    cd_record_stats s;
    cd_buf b = {0};
    (void)state;
    cd_record_stats_begin(&s, 100);
    s.begin.steal = -1; /* not known here: no share of it */
    cd_measure_result m = result();
    m.flags = CD_MEASURE_NOISY | CD_MEASURE_WIDE;
    cd_record_stats_add(&s, &m);
    m.flags = CD_MEASURE_CACHED;
    cd_record_stats_add(&s, &m);
    m.error_no = 2, m.flags = CD_MEASURE_NOISY | CD_MEASURE_WIDE | CD_MEASURE_CACHED;
    cd_record_stats_add(&s, &m);
    m.error_no = 99;
    cd_record_stats_add(&s, &m);
    s.lines = 12, s.known = 5, s.bad = 3, s.reason[CDMPP_ENOTASK] = 2, s.reason[CDMPP_EPARSE] = 1;
    cd_record_stats_json(&b, &s, 108);
    cd_buf want = {0};
    const cdmpp_status first = CDMPP_ENOTASK < CDMPP_EPARSE ? CDMPP_ENOTASK : CDMPP_EPARSE,
                       second = first == CDMPP_EPARSE ? CDMPP_ENOTASK : CDMPP_EPARSE;
    cd_buf_putf(
        &want,
        "{\"records\":12,\"measured\":2,\"failed\":2,\"known\":5,\"bad\":3,\"noisy\":1,\"wide\":1,"
        "\"cached\":1,\"errors\":{\"2\":1,\"8\":1},\"reasons\":{\"%s\":%zu,\"%s\":%zu},"
        "\"seconds\":8,\"programs_per_s\":0.5,\"build_s\":2,\"run_s\":1}",
        cdmpp_status_name(first), s.reason[first], cdmpp_status_name(second), s.reason[second]);
    is(&b, want.p);
    cd_record_stats_text(&b, &s, 108);
    is(&b, "12 records: 2 measured, 2 failed, 5 measured before, 3 cannot be used\n         1  "
           "compile error\n         1  unknown\n         1  measured while something else ran\n"
           "8.0 s, 0.5 programs/s\n");
    cd_record_stats_begin(&s, 100);
    cd_record_stats_text(&b, &s, 108); /* nothing was measured: no rate */
    is(&b, "0 records: 0 measured, 0 failed, 0 measured before, 0 cannot be used\n");
    assert_string_equal(cd_record_stats_error(8), "unknown");
    assert_string_equal(cd_record_stats_error(-1), "unknown");
    assert_string_equal(cd_record_stats_error(7), "running took too long");
    assert_string_equal(cd_record_stats_error(0), "");
    cd_buf_free(&b);
    cd_buf_free(&want);
}

static void test_head(void **state) {
    cd_buf b = {0};
    cd_arena a = {0};
    const cd_json *v;
    double x;
    (void)state;
    const cd_host_info h = {0};
    const cd_timing_policy p = {.cold = true,
                                .min_repeat = 3,
                                .max_repeat = 70,
                                .budget_s = 0.5,
                                .warmup_s = 0.25,
                                .min_repeat_s = 0.125,
                                .ci = 0.0625};
    cd_record_stats_head(&b, &h, "a \"w\"", &p, 6, "little");
    assert_ok(cd_json_parse(&a, b.p, b.n, &v, &err));
    const char *policy = strstr(b.p, ",\"warnings\"");
    assert_string_equal(policy,
                        ",\"warnings\":\"a "
                        "\\\"w\\\"\",\"core_type\":\"little\",\"threads\":6,\"policy\":{\"cold\":"
                        "true,\"cool\":false,\"min_repeat\":3,\"max_repeat\":70,\"budget_s\":0.5,"
                        "\"warmup_s\":0.25,\"min_repeat_s\":0.125,\"ci\":0.0625}}\n");
    assert_ok(cd_json_need_real(cd_json_get(v, "policy"), "ci", 0, 1, &x, &err));
    cd_buf_free(&b);
    cd_arena_free(&a);
}

/* ---- the fastest ---- */
static void put_record(cd_buf *b, const char *key, const char *costs, int error) {
    cd_buf_putf(b,
                "{\"i\": [[\"[\\\"%s\\\"]\", \"llvm\", [1, 64, 64, 0, 0, 0, 0, 0], \"\", 0, []], "
                "[[], []]], \"r\": [[%s], %d, 1, 1600000000], \"v\": \"v0.6\"}\n",
                key, costs, error);
}

/* Of equal ones the first stays; one that failed is slower than any. Means decide, not the
 * least. */
static void test_fastest_of_each(void **state) {
    tmp_dir dir = tmp_make();
    cd_buf b = {0};
    (void)state;
    put_record(&b, "a", "3e-3", 0);       /* 1 */
    put_record(&b, "b", "1e10", 4);       /* 2: failed */
    put_record(&b, "a", "1e-3, 4e-3", 0); /* 3: 2.5 ms, the fastest */
    cd_buf_puts(&b, "no record\n");       /* 4 */
    put_record(&b, "a", "2.5e-3", 0);     /* 5: equal */
    put_record(&b, "b", "9", 0);          /* 6 */
    put_record(&b, "c", "1e10", 7);       /* 7: alone */
    put_record(&b, "a", "1e-9", 4);       /* 8: failed, whatever it says */
    put_record(&b, "d", "1e-9", 0);       /* 9: one too many */
    char path[256];
    snprintf(path, sizeof path, "%s", tmp_put(&dir, "log.json", b.p, b.n));
    const char *const list[] = {path};
    cd_record_best_options o = {.path = list, .n_path = 1, .max = 3};
    cd_record_best best[4];
    cd_arena a = {0};
    size_t n;
    assert_ok(cd_record_best_read(&a, &o, best, &n, &err));
    static const long line[] = {3, 6, 7};
    static const char *const key[] = {"[\"a\"]", "[\"b\"]", "[\"c\"]"};
    assert_int_equal(n, 3);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(best[k].number, line[k]);
        assert_true(cd_str_is(best[k].key, key[k]));
        assert_string_equal(best[k].path, path);
        assert_int_equal(strlen(best[k].text), best[k].len);
    }
    assert_close(best[0].cost_s, 2.5e-3, 1e-12, 0);
    assert_close(best[1].cost_s, 9, 0, 0);
    o.workload = key[1], o.max = 1;
    assert_ok(cd_record_best_read(&a, &o, best, &n, &err));
    assert_true(n == 1 && best[0].number == 6);
    static const volatile sig_atomic_t now = 1;
    o.stop = &now;
    assert_ok(cd_record_best_read(&a, &o, best, &n, &err));
    assert_int_equal(n, 0);
    cd_arena_free(&a);
    cd_buf_free(&b);
    tmp_remove(&dir);
}

TESTS(NULL, NULL, test_sweep, test_sweep_drawn, test_pairs, test_lines, test_counts, test_head,
      test_fastest_of_each)
