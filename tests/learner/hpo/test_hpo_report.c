/* A search printed: events, the table by rank, the result; each number is another one. */
#include <string.h>

#include "check.h"
#include "learner/hpo/hpo.h"
#include "learner/hpo/hpo_internal.h"

static void is(cd_buf *b, const char *want) {
    assert_string_equal(b->p, want);
    cd_buf_clear(b);
}

static void test_events(void **state) {
    cd_buf b = {0};
    (void)state;
    cd_hpo_event e = {.trial = 7,
                      .rung = 2,
                      .budget = 12.5,
                      .error = 0.25,
                      .state = CD_HPO_DONE,
                      .known = false,
                      .seconds = 1.5,
                      .params = "{\"a\":1}",
                      .reason = ""};
    cd_hpo_event_json(&b, &e);
    is(&b, "{\"trial\":7,\"rung\":2,\"budget\":12.5,\"state\":\"done\",\"valid_error\":0.25,"
           "\"known\":false,\"seconds\":1.500,\"params\":{\"a\":1}}\n");
    cd_hpo_event_text(&b, &e);
    is(&b, "trial 7, budget 12.5: error 0.25, 1.5 s");
    e.known = true;
    cd_hpo_event_text(&b, &e);
    is(&b, "trial 7, budget 12.5: error 0.25, from the journal");
    e.state = CD_HPO_FAILED, e.reason = "no \"x\"";
    cd_hpo_event_json(&b, &e);
    is(&b, "{\"trial\":7,\"rung\":2,\"budget\":12.5,\"state\":\"failed\",\"valid_error\":null,"
           "\"reason\":\"no \\\"x\\\"\",\"known\":true,\"seconds\":1.500,\"params\":{\"a\":1}}\n");
    cd_hpo_event_text(&b, &e);
    is(&b, "trial 7, budget 12.5: failed: no \"x\", from the journal");
    e.state = CD_HPO_RUNNING;
    cd_hpo_event_json(&b, &e);
    is(&b, "{\"trial\":7,\"rung\":2,\"budget\":12.5,\"state\":\"running\",\"valid_error\":null,"
           "\"params\":{\"a\":1}}\n");
    cd_buf_free(&b);
}

/* Seven trials on three rungs of 1, 3 and 9 rounds: higher rungs first, then smaller errors, then
 * the order of the trials; one failed, one was not trained. */
static void test_table(void **state) {
    static double error[7 * 3] = {0.5, 0.25,   NAN,      0.125, NAN,   NAN, 0.75,
                                  0.5, 0.375,  INFINITY, NAN,   NAN,   NAN, NAN,
                                  NAN, 0.0625, NAN,      NAN,   0.125, NAN, NAN};
    static const char *reason[7] = {NULL, NULL, NULL, "out of memory"};
    static const cd_hpo_trial trial[7] = {{.params = "{0}"}, {.params = "{1}"}, {.params = "{2}"},
                                          {.params = "{3}"}, {.params = "{4}"}, {.params = "{5}"},
                                          {.params = "{6}"}};
    static const cd_conf_key rounds = {.type = CD_CONF_INT};
    cd_hpo_run_state s = {.found = {.n_trial = 7,
                                    .trial = trial,
                                    .n_rung = 3,
                                    .error = error,
                                    .reason = reason,
                                    .best = 2,
                                    .best_error = 0.375}};
    cd_buf b = {0};
    (void)state;
    s.space.tune.max_budget = 9, s.space.tune.min_budget = 1, s.space.tune.eta = 3,
    s.space.budget = &rounds;
    assert_int_equal(cd_hpo_space_rungs(&s.space), 3);
    cd_hpo_result_table(&b, &s.found, &s.space, 9);
    is(&b, " trial     budget  valid error  parameters\n     2          9        0.375  {2}\n     "
           "0          3         0.25  {0}\n     5          1       0.0625  {5}\n     1          1 "
           "       0.125  {1}\n"
           "     6          1        0.125  {6}\n"
           "     3          1       failed  {3}\n       out of memory\n");
    cd_hpo_result_table(&b, &s.found, &s.space, 1);
    is(&b, " trial     budget  valid error  parameters\n     2          9        0.375  {2}\n5 "
           "more are in the journal\n");
    cd_hpo_result_table(&b, &s.found, &s.space, 6);
    assert_null(strstr(b.p, "journal"));
    cd_buf_clear(&b);
    cd_hpo_run_text(&b, &s, "best.yaml");
    assert_non_null(strstr(b.p, "\ntrial 2, MAPE 0.375 on the validation part: best.yaml\n"));
    cd_buf_clear(&b);
    cd_hpo_run_json(&b, &s, "b\"est");
    is(&b, "{\"schema\":\"cdmpp.search\",\"command\":\"cdmpp-train\",\"trials\":7,\"best\":2,"
           "\"valid_error\":0.375,\"config_file\":\"b\\\"est\",\"params\":{2}}\n");
    cd_buf_free(&b);
}

TESTS(NULL, NULL, test_events, test_table)
