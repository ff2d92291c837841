/* Requests of a stream: what each member becomes, and which members go together. */
#include <string.h>

#include "check.h"
#include "made_model.h"
#include "predictor/serve/serve_internal.h"

static cdmpp_err err;
static cd_arena mem;
static cd_task_registry *tasks;
static char key[200];

static int set_up(void **state) {
    (void)state;
    if (cd_task_registry_new(&tasks, &err) || cd_task_registry_load(tasks, MADE_TASKS, &err))
        return 1;
    snprintf(key, sizeof key, "%s", cd_task_registry_at(tasks, 0)->workload_key);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    cd_task_registry_free(tasks);
    cd_arena_free(&mem);
    return 0;
}

static cdmpp_status read_it(const char *line, cd_request *r) {
    cd_arena_reset(&mem);
    err = (cdmpp_err){0};
    return cd_request_read(&mem, NULL, (cd_str){line, strlen(line)}, true, r, &err);
}

static cd_request good(const char *line) {
    cd_request r;
    if (read_it(line, &r)) fail_msg("%s: %s %s", line, err.key, err.msg);
    return r;
}

TEST(commands) {
    cd_request r = good("{\"cmd\": \"hello\"}");
    assert_true(r.kind == CD_REQUEST_HELLO && !r.id.n);
    r = good(" \t{\"id\": 7, \"cmd\": \"stats\"}");
    assert_true(r.kind == CD_REQUEST_STATS && cd_str_is(r.id, "7"));
}

TEST(ids) {
    char line[400];
    cd_request r = good("{\"id\": \"a b\", \"rows\": []}");
    assert_true(cd_str_is(r.id, "\"a b\"") && r.kind == CD_REQUEST_SCORE);
    assert_true(cd_str_is(good("{\"rows\": [], \"id\": -1.5e3}").id, "-1.5e3"));
    for (int more = 0; more < 2; more++) { /* the longest, with its quotes, and one more */
        char id[CD_REQUEST_ID + 2] = "\"";
        memset(id + 1, 'x', CD_REQUEST_ID - 2 + (size_t)more);
        id[CD_REQUEST_ID - 1 + more] = '"';
        snprintf(line, sizeof line, "{\"id\": %s, \"cmd\": \"hello\"}", id);
        assert_int_equal(read_it(line, &r), more ? CDMPP_ERANGE : CDMPP_OK);
    }
}

TEST(what_a_candidate_has) {
    cd_request r = good("{\"i\": [1], \"r\": [[0.5]], \"v\": \"v0.6\", \"device\": \"here\"}");
    assert_true(r.ask.form == CD_CANDIDATE_PARTS && cd_str_is(r.ask.text, "[1]") &&
                cd_str_is(r.ask.version, "\"v0.6\"") && cd_str_is(r.aim.device, "here"));
    assert_true(r.aim.flop == -1 && !r.aim.has_hardware && !r.aim.task);
    /* a record of cdmpp-tune */
    assert_true(cd_str_is(good("{\"i\": [1], \"origin\": \"best of 160\"}").ask.text, "[1]"));
    r = good("{\"rows\": [[1]], \"task\": \"w\", \"target\": \"llvm\", \"flop\": 2.5e9}");
    assert_true(r.ask.form == CD_CANDIDATE_ROWS_TEXT && cd_str_is(r.ask.text, "[[1]]") &&
                cd_str_is(r.aim.target, "llvm") && r.aim.flop == 2.5e9 && !r.aim.device.n);
    assert_string_equal(r.aim.workload_key, "w");
    r = good("{\"steps\": [], \"task\": \"w\", \"hardware\": [1, 2, 3, 4, 5, 6, 7, -8]}");
    const cd_hardware *h = &r.aim.hardware;
    assert_true(r.ask.form == CD_CANDIDATE_STEPS && r.aim.has_hardware);
    assert_true(h->num_cores == 1 && h->vector_unit_bytes == 2 && h->cache_line_bytes == 3 &&
                h->max_shared_memory_per_block == 4 && h->max_local_memory_per_block == 5 &&
                h->max_threads_per_block == 6 && h->max_vthread_extent == 7 && h->warp_size == -8);
}

/* A task that the registry knows brings its target and its operations, where the request says
 * nothing else. */
TEST(what_a_task_brings) {
    cd_aim aim;
    const cd_task *t = cd_task_registry_at(tasks, 0);
    const cd_str none = {"", 0}, of_task = {key, strlen(key)};
    assert_ok(cd_request_aim(&mem, tasks, of_task, none, &aim, &err));
    assert_true(aim.task == t && aim.flop == cd_task_flop(t) && aim.flop > 0 &&
                cd_str_is(aim.target, t->target) && !aim.device.n);
    assert_string_equal(aim.workload_key, key);
    assert_ok(cd_request_aim(&mem, tasks, of_task, (cd_str){"cuda", 4}, &aim, &err));
    assert_true(cd_str_is(aim.target, "cuda"));
    assert_status(cd_request_aim(&mem, tasks, (cd_str){"[\"nobody\"]", 10}, none, &aim, &err),
                  CDMPP_ENOTASK);
    assert_string_equal(err.key, "task");
    assert_ok(cd_request_aim(&mem, NULL, none, none, &aim, &err));
    assert_true(!aim.workload_key[0] && !aim.task && aim.flop == -1);
}

TEST(mistakes) {
    static const struct {
        const char *line;
        cdmpp_status st;
        const char *key, *says;
    } t[] = {
        {"", CDMPP_EPARSE, "", "expected a JSON object, '{'"},
        {"[1]", CDMPP_EPARSE, "", "expected a JSON object, '{'"},
        {"{}", CDMPP_ESCHEMA, "", "expected one of i, rows, steps, cmd, found 0 of them"},
        {"{\"i\": 1, \"rows\": 2}", CDMPP_ESCHEMA, "", "found 2 of them"},
        {"{\"cmd\": \"hello\", \"steps\": 2, \"task\": \"a\"}", CDMPP_ESCHEMA, "",
         "found 2 of them"},
        {"{\"i\": 1, \"i\": 2}", CDMPP_ESCHEMA, "", "\"i\" comes twice"},
        {"{\"other\": 1}", CDMPP_ESCHEMA, "", "found \"other\""},
        {"{\"rows\": 1, \"r\": 1}", CDMPP_ESCHEMA, "", "\"r\" goes with i"},
        {"{\"rows\": 1, \"origin\": \"x\"}", CDMPP_ESCHEMA, "", "\"origin\" goes with i"},
        {"{\"steps\": 1, \"task\": \"a\", \"v\": 1}", CDMPP_ESCHEMA, "", "\"v\" goes with i"},
        {"{\"i\": 1, \"task\": \"a\"}", CDMPP_ESCHEMA, "", "\"task\" goes with rows or steps"},
        {"{\"i\": 1, \"target\": \"a\"}", CDMPP_ESCHEMA, "", "\"target\" goes with rows or steps"},
        {"{\"i\": 1, \"flop\": 1}", CDMPP_ESCHEMA, "", "\"flop\" goes with rows or steps"},
        {"{\"rows\": 1, \"hardware\": []}", CDMPP_ESCHEMA, "", "\"hardware\" goes with steps"},
        {"{\"steps\": 1}", CDMPP_ESCHEMA, "", "\"steps\" needs task"},
        {"{\"cmd\": \"hello\", \"device\": \"a\"}", CDMPP_ESCHEMA, "",
         "\"device\" goes with i, rows or steps"},
        {"{\"cmd\": \"jump\"}", CDMPP_ESCHEMA, "cmd", "expected hello or stats, found \"jump\""},
        {"{\"cmd\": 1}", CDMPP_ESCHEMA, "cmd", ""},
        {"{\"id\": [], \"rows\": 1}", CDMPP_ESCHEMA, "id", "expected a number or a string"},
        {"{\"id\": true, \"rows\": 1}", CDMPP_ESCHEMA, "id", "expected a number or a string"},
        {"{\"rows\": 1, \"device\": \"\"}", CDMPP_ESCHEMA, "device", "expected a name"},
        {"{\"rows\": 1, \"target\": 5}", CDMPP_ESCHEMA, "target", ""},
        {"{\"steps\": 1, \"task\": \"a\", \"hardware\": [1,2,3,4,5,6,7]}", CDMPP_ESCHEMA,
         "hardware", ""},
        {"{\"steps\": 1, \"task\": \"a\", \"hardware\": [1,2,3,4,5,6,7,8,9]}", CDMPP_ESCHEMA,
         "hardware", "expected 8 integers, found 9"},
        {"{\"steps\": 1, \"task\": \"a\", \"hardware\": [1,2,3.5,4,5,6,7,8]}", CDMPP_ESCHEMA,
         "hardware[2]", ""},
        {"{\"rows\": 1, \"flop\": 0}", CDMPP_ERANGE, "flop", "expected a number above 0, found 0"},
        {"{\"rows\": 1, \"flop\": -5}", CDMPP_ERANGE, "flop", "found -5"},
        {"{\"rows\": 1, \"flop\": 1e301}", CDMPP_ERANGE, "flop", ""},
        {"{\"rows\": 1, \"flop\": \"x\"}", CDMPP_ESCHEMA, "flop", ""},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cd_request r;
        const cdmpp_status st = read_it(t[k].line, &r);
        if (st != t[k].st || strcmp(err.key, t[k].key) != 0 || !strstr(err.msg, t[k].says))
            fail_msg("%s: %d \"%s\" \"%s\"", t[k].line, (int)st, err.key, err.msg);
    }
}

/* A line that is broken later still says whose it was; the first error is the one that is told. */
TEST(a_broken_line_has_its_id) {
    cd_request r;
    assert_status(read_it("{\"id\": 12, \"rows\": [1, 2", &r), CDMPP_EPARSE);
    assert_true(cd_str_is(r.id, "12"));
    assert_status(read_it("{\"id\": [], \"rows\": [1, 2", &r), CDMPP_EPARSE);
    assert_true(!r.id.n && !err.key[0]);
}

TESTS(set_up, tear_down, commands, ids, what_a_candidate_has, what_a_task_brings, mistakes,
      a_broken_line_has_its_id)
