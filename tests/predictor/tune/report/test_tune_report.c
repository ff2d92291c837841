/* What cdmpp-tune prints, from results that are made up: every number is another one. */
#include <string.h>

#include "check.h"
#include "predictor/tune/report/report.h"

static void is(cd_buf *b, const char *want) {
    assert_string_equal(b->p, want);
    cd_buf_clear(b);
}

/* ---- two tasks; a session in which nothing was searched ---- */
static cd_task task[2] = {{.workload_key = "[\"a\", [1, 3, 64, 64], [7]]"}, {.workload_key = "b"}};
static cd_tune_unit unit[2] = {
    {.of = {.task = &task[0], .target = "llvm", .flop = 3e6}, .weight = 2, .name = "first"},
    {.of = {.task = &task[1], .target = "cuda", .flop = -1},
     .weight = 0.5,
     .name = "a name of more than thirty-six letters, cut"}};
static cd_tune_tasks tasks = {.unit = unit, .n = 2};
static cd_tune_result result[2];

static cd_tune_session session(void) {
    result[0] = (cd_tune_result){.untuned = {.seconds = 8e-3},
                                 .tuned = {.seconds = 2e-3, .checked = true, .max_error = 0.125},
                                 .verdict = CD_TUNE_BETTER};
    result[1] = (cd_tune_result){.untuned = {.seconds = 4e-3},
                                 .tuned = {.seconds = CD_TUNE_FAILED_S},
                                 .verdict = CD_TUNE_FAILS};
    return (cd_tune_session){.what = &tasks, .result = result};
}

static void test_session(void **state) {
    cd_buf b = {0};
    (void)state;
    cd_tune_session s = session();
    cd_tune_session_print_text(&b, &s);
    cd_buf want = {0};
    cd_buf_putf(&want,
                "task                                 weight  trials untuned ms   tuned ms   ratio "
                " GFLOP/s  verdict  shapes\n"
                "first                                     2       0          8          2    4.00 "
                "     1.5  %-8s [1,3,64,64],[7]\n"
                "a name of more than thirty-six lette    0.5       0          4          -       - "
                "       -  %-8s b\n"
                "sum of weight x time: 18 ms untuned, 6 ms kept, ratio 3.00\n",
                cd_tune_verdict_name(CD_TUNE_BETTER), cd_tune_verdict_name(CD_TUNE_FAILS));
    is(&b, want.p);
    cd_tune_session_print_json(&b, &s);
    cd_buf_clear(&want);
    cd_buf_putf(&want,
                "{\"tasks\":[{\"workload_key\":\"[\\\"a\\\", [1, 3, 64, 64], "
                "[7]]\",\"name\":\"first\",\"weight\":2,\"flop\":3000000,\"untuned_s\":0."
                "0080000000000000002,\"tuned_s\":0.002,\"max_error\":0.125,\"gflops\":1.5,\"peak_"
                "share\":null,\"verdict\":\"%s\"},"
                "{\"workload_key\":\"b\",\"name\":\"a name of more than thirty-six letters, "
                "cut\",\"weight\":0.5,\"flop\":null,\"untuned_s\":0.0040000000000000001,\"tuned_"
                "s\":null,\"gflops\":null,\"peak_share\":null,\"verdict\":\"%s\"}],"
                "\"untuned_total_s\":0.018000000000000002,\"kept_total_s\":0.0060000000000000001}",
                cd_tune_verdict_name(CD_TUNE_BETTER), cd_tune_verdict_name(CD_TUNE_FAILS));
    is(&b, want.p);
    result[1].untuned.seconds = CD_TUNE_FAILED_S; /* one without a program: no sum */
    cd_tune_session_print_text(&b, &s);
    assert_null(strstr(b.p, "sum of"));
    cd_buf_clear(&b);
    cd_tune_session_print_json(&b, &s);
    assert_non_null(strstr(b.p, "\"untuned_total_s\":null,\"kept_total_s\":null}"));
    cd_buf_free(&b);
    cd_buf_free(&want);
}

/* The peak of a core times the cores of the program; the command stands in a line of its own. */
TEST(test_peak_and_use) {
    cd_buf b = {0};
    cd_tune_session s = session();
    s.peak_gflops = 5, s.use = "cdmpp-replay --network n --records t.json";
    unit[0].of.hardware.num_cores = 3;
    cd_tune_session_print_text(&b, &s);
    assert_non_null(strstr(b.p, "   ratio  GFLOP/s  peak %  verdict  shapes\n"));
    assert_non_null(strstr(b.p, "    4.00      1.5    10.0  better "));
    assert_non_null(strstr(b.p, "\nTo use it:\n  cdmpp-replay --network n --records t.json\n"));
    cd_buf_clear(&b);
    cd_tune_session_print_json(&b, &s);
    assert_non_null(strstr(b.p, "\"gflops\":1.5,\"peak_share\":0.1"));
    assert_non_null(strstr(b.p, "\"use\":\"cdmpp-replay --network n --records t.json\""));
    unit[0].of.hardware.num_cores = 0;
    cd_buf_free(&b);
}

static void test_tasks(void **state) {
    cd_buf b = {0};
    (void)state;
    cd_tune_tasks_print_text(&b, &tasks);
    is(&b, "task                                 weight      MFLOP  shapes  target\nfirst          "
           "                           2          3  [1,3,64,64],[7]  llvm\n"
           "a name of more than thirty-six lette    0.5          -  b  cuda\n");
    cd_tune_tasks_print_json(&b, &tasks);
    is(&b, "{\"tasks\":[{\"workload_key\":\"[\\\"a\\\", [1, 3, 64, 64], "
           "[7]]\",\"target\":\"llvm\",\"weight\":2},{\"workload_key\":\"b\",\"target\":\"cuda\","
           "\"weight\":0.5}]}");
    cd_buf_free(&b);
}

/* ---- a comparison: two tasks and their sum, two tuners, two numbers of trials ---- */
static void test_comparison(void **state) {
    static double seconds[3 * 2 * 3] = {
        0.5, 0.25, 0.125, 1, CD_TUNE_FAILED_S, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    const cd_tune_compare_plan plan = {.tuner = {cd_tune_tuner_at(0), cd_tune_tuner_at(1)},
                                       .n_tuner = 2,
                                       .at = {10, 50},
                                       .n_at = 2};
    cd_tune_compare c = {.plan = &plan, .n_task = 2, .seconds = seconds};
    const char *x = plan.tuner[0]->name, *y = plan.tuner[1]->name;
    cd_buf b = {0}, want = {0};
    (void)state;
    cd_tune_compare_print_csv(&b, &c, &tasks, "net");
    cd_buf_putf(&want,
                "modelname,tuner,0,10,50\n\"[\"\"a\"\", [1, 3, 64, 64], "
                "[7]]\",%s,500,250,125\n\"[\"\"a\"\", [1, 3, 64, 64], "
                "[7]]\",%s,1000,,2000\n\"b\",%s,3000,4000,5000\n\"b\",%s,6000,7000,8000\n"
                "\"net\",%s,9000,10000,11000\n\"net\",%s,12000,13000,14000\n",
                x, y, x, y, x, y);
    is(&b, want.p);
    cd_tune_compare_print_json(&b, &c, &tasks, "net");
    cd_buf_clear(&want);
    cd_buf_putf(&want,
                "{\"at\":[0,10,50],\"rows\":[{\"modelname\":\"[\\\"a\\\", [1, 3, 64, 64], "
                "[7]]\",\"tuner\":\"%s\",\"ms\":[500,250,125]},{\"modelname\":\"[\\\"a\\\", [1, 3, "
                "64, 64], [7]]\",\"tuner\":\"%s\",\"ms\":[1000,null,2000]},"
                "{\"modelname\":\"b\",\"tuner\":\"%s\",\"ms\":[3000,4000,5000]},{\"modelname\":"
                "\"b\",\"tuner\":\"%s\",\"ms\":[6000,7000,8000]},"
                "{\"modelname\":\"net\",\"tuner\":\"%s\",\"ms\":[9000,10000,11000]},{\"modelname\":"
                "\"net\",\"tuner\":\"%s\",\"ms\":[12000,13000,14000]}]}",
                x, y, x, y, x, y);
    is(&b, want.p);
    c.n_task = 1; /* its sum says nothing new */
    cd_tune_compare_print_csv(&b, &c, &tasks, "net");
    assert_null(strstr(b.p, "net"));
    cd_buf_free(&b);
    cd_buf_free(&want);
}

/* ---- a replay: one log of three candidates, two tuners, two seeds ---- */
static void test_replay(void **state) {
    static const double seconds[] = {4, 2, CD_TUNE_FAILED_S};
    static const double cost[] = {0.5, 0.25, 8};
    static const double search[] = {0.1, 0.2, 0.3};
    static const uint32_t up[] = {2, 0, 1}, down[] = {1, 0};
    static cd_tune_replay_log log = {
        .key = "k,1", .device = "v100", .n = 3, .seconds = seconds, .cost_s = cost, .best_s = 2};
    static cd_tune_replay_run run[4] = {
        {3, up, search}, {2, down, search}, {2, down, search}, {3, up, search}};
    const cd_tune_tuner *const tuner[] = {cd_tune_tuner_at(0), cd_tune_tuner_at(1)};
    const cd_tune_replay_logs logs = {.log = &log, .n = 1};
    const cd_tune_replay r = {.n_log = 1, .n_tuner = 2, .n_seed = 2, .run = run};
    const cd_tune_replay_spec spec = {.tuner = tuner, .n_tuner = 2, .n_seed = 2, .seed = 7};
    const size_t at[] = {10};
    const cd_tune_replay_shown s = {&logs, &r, &spec, at, 1};
    const cd_tune_replay_row row[] = {{.tuner = 1,
                                       .trials = 10,
                                       .low = 0.25,
                                       .median = 0.5,
                                       .high = 0.75,
                                       .mean = 0.625,
                                       .measure_s = 12.5,
                                       .search_s = 0.125,
                                       .n_task = 3,
                                       .n_seed = 2,
                                       .wins = 4},
                                      {.tuner = 0,
                                       .trials = 50,
                                       .low = 0.125,
                                       .median = 1,
                                       .high = 1,
                                       .mean = 0.875,
                                       .measure_s = 2,
                                       .search_s = 1,
                                       .n_task = 5,
                                       .n_seed = 6,
                                       .wins = 7}};
    const char *x = tuner[0]->name, *y = tuner[1]->name;
    cd_buf b = {0}, want = {0};
    (void)state;
    cd_tune_replay_text(&b, &s, row);
    cd_buf_putf(&want,
                "best known / best found over 3 tasks, mean of 2 seeds each, in %%\n%-12s %7s %8s "
                "%8s %8s %8s %6s %11s %9s\n",
                "tuner", "trials", "lower", "median", "upper", "mean", "wins", "measuring s",
                "search s");
    cd_buf_putf(
        &want,
        "%-12s      10    25.00    50.00    75.00    62.50      4        12.5     0.125\n%-12s     "
        " 50    12.50   100.00   100.00    87.50      7         2.0     1.000\n",
        y, x);
    is(&b, want.p);
    cd_tune_replay_json(&b, &s, row);
    cd_buf_clear(&want);
    cd_buf_putf(
        &want,
        "[{\"tuner\":\"%s\",\"trials\":10,\"lower\":0.250000,\"median\":0.500000,\"upper\":0."
        "750000,\"mean\":0.625000,\"wins\":4,\"tasks\":3,\"seeds\":2,\"measure_s\":12.5,\"search_"
        "s\":0.125},"
        "{\"tuner\":\"%s\",\"trials\":50,\"lower\":0.125000,\"median\":1.000000,\"upper\":1.000000,"
        "\"mean\":0.875000,\"wins\":7,\"tasks\":5,\"seeds\":6,\"measure_s\":2,\"search_s\":1}]",
        y, x);
    is(&b, want.p);
    cd_tune_replay_csv(&b, &s);
    cd_buf_clear(&want);
    cd_buf_puts(&want, "task,device,tuner,seed,trial,seconds,best_s,ratio,measure_s,search_s\n");
    for (int t = 0; t < 2; t++)
        for (int k = 0; k < 2; k++) {
            char head[64];
            snprintf(head, sizeof head, "\"k,1\",v100,%s,%d", t ? y : x, 7 + k);
            if (t == k)
                cd_buf_putf(&want,
                            "%s,1,,,0.000000,8,0.1\n%s,2,4,4,0.500000,8.5,0.2\n%s,3,2,2,1.000000,8."
                            "75,0.3\n",
                            head, head, head);
            else
                cd_buf_putf(&want, "%s,1,2,2,1.000000,0.25,0.1\n%s,2,4,2,1.000000,0.75,0.2\n", head,
                            head);
        }
    is(&b, want.p);
    cd_tune_replay_op_costs(&b, &s, 0, 0); /* beside the second tuner, which has 2 s at once */
    is(&b, "task_name,trial,costs (s),\"all_cost (s, incl. "
           "build)\",best_cost,best_all_cost,cmp\n\"k,1\",1,,8,,,\n\"k,1\",2,4,0.5,4,0.5,0."
           "500000\n\"k,1\",3,2,0.25,2,0.25,1.000000\n");
    cd_buf_free(&b);
    cd_buf_free(&want);
}

/* A line and an object for each tuner, which say what it needs. */
TEST(test_list_of_tuners) {
    cd_buf text = {0}, json = {0};
    cd_arena a = {0};
    cdmpp_err err = {0};
    const cd_json *list;
    const cd_tune_tuner *t;
    size_t n = 0, needs = 0;
    cd_tune_tuner_print_text(&text);
    cd_tune_tuner_print_json(&json);
    assert_ok(cd_json_parse(&a, json.p, json.n, &list, &err));
    const char *line = text.p;
    for (const cd_json *o = list->u.child; (t = cd_tune_tuner_at(n)); n++, o = o->next) {
        char want[300];
        const bool model = cd_tune_tuner_needs_model(t);
        const int length = snprintf(want, sizeof want, "%-14s %s%s\n", t->name, t->brief,
                                    model ? " (needs --cost-model)" : "");
        assert_int_equal(strncmp(line, want, (size_t)length), 0);
        line += length;
        assert_true(cd_str_is(cd_json_get(o, "name")->u.s, t->name) &&
                    cd_str_is(cd_json_get(o, "brief")->u.s, t->brief) &&
                    cd_json_get(o, "needs_model")->u.i == model);
        needs += model;
    }
    assert_true(!*line && list->n == n && needs > 0 && needs < n);
    cd_buf_free(&text);
    cd_buf_free(&json);
    cd_arena_free(&a);
}

TESTS(NULL, NULL, test_list_of_tuners, test_session, test_peak_and_use, test_tasks, test_comparison,
      test_replay)
