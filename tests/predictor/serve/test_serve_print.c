/* The counts at the end of a stream and of files, for people and for programs: exact texts. */
#include <stdlib.h>

#include "check.h"
#include "predictor/serve/serve_internal.h"

static char *said;
static size_t n_said;
static FILE *to;
static cd_log out;

static void listen_to(void) {
    to = open_memstream(&said, &n_said);
    assert_non_null(to);
    cd_log_init(&out, "x", to);
    out.level = CD_LOG_DEBUG;
}

static void heard(const char *want) {
    (void)fclose(to);
    cd_log_done(&out);
    assert_string_equal(said, want);
    free(said);
    said = NULL;
}

TEST(counts_of_a_stream) {
    cd_serve_stats n = {
        .asked = 9, .scored = 6, .bad = 3, .batches = 2, .cache_asked = 5, .cache_found = 4};
    cd_buf b = {0};
    n.reason[CDMPP_ESCHEMA] = 2, n.reason[CDMPP_EPARSE] = 1, n.reason[CDMPP_OK] = 6;
    cd_serve_print_json(&b, &n);
    assert_string_equal(
        b.p, "{\"schema\":\"cdmpp.stream\",\"command\":\"cdmpp-predict\",\"requests\":9,\"scored\":"
             "6,\"bad\":3,\"batches\":2,"
             "\"cache\":{\"asked\":5,\"found\":4},\"reasons\":{\"EPARSE\":1,\"ESCHEMA\":2}}\n");
    cd_buf_free(&b);
    listen_to();
    cd_serve_print_log(&n, &out);
    heard("x: 9 requests in 2 batches, 6 scored, 3 bad; cache: 4 of 5 found\nx:          1  "
          "EPARSE\nx:          2  ESCHEMA\n");
}

TEST(counts_of_files) {
    cd_stream_stats n = {.lines = 9,
                         .scored = 6,
                         .bad = 3,
                         .unmeasured = 2,
                         .ranged = 5,
                         .inside = 4,
                         .out_of_range = 1,
                         .known = 3};
    const cd_metric m = {.n = 4, .mape = 0.25};
    cd_buf b = {0}, figures = {0}, want = {0};
    n.reason[CDMPP_ENOTASK] = 3, n.reason[CDMPP_OK] = 6;
    cd_stream_print_json(&b, &n, NULL);
    assert_string_equal(
        b.p, "{\"schema\":\"cdmpp.evaluation\",\"command\":\"cdmpp-predict\",\"lines\":9,"
             "\"scored\":6,\"unmeasured\":2,\"out_of_range\":1,"
             "\"with_interval\":5,\"inside_interval\":4,\"of_trained_tasks\":3,\"of_measured\":0,"
             "\"bad\":3,\"reasons\":{\"ENOTASK\":3},\"evaluation\":null}\n");
    cd_buf_clear(&b);
    cd_stream_print_json(&b, &n, &m);
    cd_metric_json(&figures, &m);
    cd_buf_putf(&want, "\"evaluation\":%s}\n", figures.p);
    assert_non_null(strstr(b.p, want.p));
    cd_buf_free(&b);
    cd_buf_free(&figures);
    cd_buf_clear(&want);
    listen_to();
    cd_stream_print_log(&n, NULL, &out);
    heard("x: warning: 3 of 9 lines could not be scored: 3 ENOTASK\n");
    listen_to();
    n.reason[CDMPP_ENOTASK] = 2, n.reason[CDMPP_EPARSE] = 1;
    cd_buf_puts(&want, "x: ");
    cd_metric_text(&want, "evaluation", "all records", &m);
    cd_buf_puts(&want, "x: 2 scored records whose measurement failed are not in these figures\n"
                       "x: warning: the model was trained on the tasks of 3 of these 4 records: "
                       "the figures do not say how good it is on tasks that it has not seen\nx: "
                       "warning: 3 of 9 lines could not be scored: 1 EPARSE, 2 ENOTASK\n");
    cd_stream_print_log(&n, &m, &out);
    heard(want.p);
    cd_buf_free(&want);
    n.bad = n.unmeasured = 0;
    listen_to();
    cd_stream_print_log(&n, NULL, &out);
    heard("");
}

/* An answer with its measured time, one without, one of a model without intervals, one by line. */
TEST(answers_as_json) {
    const cd_scored measured = {
        .pred = {.latency_s = 0.25, .low_s = 0.125, .high_s = 0.5, .rel_std = 0.75},
        .measured_s = 0.5};
    const cd_scored open = {.pred = {.latency_s = 0.25, .low_s = (double)NAN},
                            .measured_s = (double)NAN};
    cd_buf b = {0};
    cd_response_json(
        &b, &(cd_response){.id = {"7", 1}, .o = &measured, .answered = "t4", .costs = true});
    assert_non_null(strstr(b.p, "{\"id\":7,\"latency_s\":0.25,\"score\":"));
    assert_non_null(strstr(b.p, ",\"low_s\":0.125,\"high_s\":0.5,\"rel_std\":0.75,\"measured_s\":0."
                                "5,\"rel_error\":-0.5,\"flags\":["));
    cd_buf_clear(&b);
    cd_response_json(&b, &(cd_response){.line = 12, .o = &open, .answered = "t4", .costs = true});
    assert_non_null(strstr(b.p, "{\"line\":12,\"latency_s\":0.25,\"score\":"));
    assert_non_null(strstr(b.p, ",\"measured_s\":null,\"rel_error\":null,\"flags\":["));
    assert_null(strstr(b.p, "low_s"));
    cd_buf_clear(&b);
    cd_response_json(&b, &(cd_response){.line = 12, .o = &measured, .answered = "t4"});
    assert_null(strstr(b.p, "measured_s"));
    cd_buf_free(&b);
}

TESTS(NULL, NULL, answers_as_json, counts_of_a_stream, counts_of_files)
