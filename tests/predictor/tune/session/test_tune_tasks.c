/* Which tasks a tuner gets, from files and networks, and with which target, weight and name. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "predictor/tune/session/session.h"
#include "tmp.h"

/* Three tasks; the second has a target, the third one that nothing here runs; two networks. */
static const char file[] =
    "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": ["
    "{\"workload_key\": \"[\\\"a\\\"]\", \"ops\": [{\"name\": \"A\", \"shape\": [8], \"dtype\": "
    "\"float32\"}, {\"name\": \"B\", \"axis\": [[\"i\", 0, 8]], \"body\": \"A[i] + 1.0\"}]},"
    "{\"workload_key\": \"[\\\"ab\\\"]\", \"target\": \"cuda -model=x\", \"desc\": \"one more\", "
    "\"ops\": [{\"name\": \"A\", \"shape\": [4], \"dtype\": \"float32\"}, {\"name\": \"B\", "
    "\"axis\": [[\"i\", 0, 4]], \"body\": \"A[i] + 1.0\"}]},"
    "{\"workload_key\": \"[\\\"c\\\"]\", \"target\": \"hexagon\", "
    "\"ops\": [{\"name\": \"A\", \"shape\": [2], \"dtype\": \"float32\"}, {\"name\": \"B\", "
    "\"axis\": [[\"i\", 0, 2]], \"body\": \"A[i] + 1.0\"}]}], \"networks\": {"
    "\"first\": [{\"workload_key\": \"[\\\"a\\\"]\", \"weight\": 3}],"
    "\"second\": [{\"workload_key\": \"[\\\"ab\\\"]\", \"weight\": 5}, {\"workload_key\": "
    "\"[\\\"a\\\"]\", \"weight\": 7}]}}";

static cdmpp_err err;
static tmp_dir dir;
static const char *path[1];
static char kept[256], *said;
static size_t n_said;
static cd_log lg;
static FILE *out;
static cd_tune_tasks t;

static int set_up(void **state) {
    (void)state;
    dir = tmp_make();
    snprintf(kept, sizeof kept, "%s", tmp_put(&dir, "x.tasks.json", file, sizeof file - 1));
    path[0] = kept;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

static cdmpp_status read_it(cd_tune_tasks_options o) {
    t = (cd_tune_tasks){0};
    if (!o.network) o.file = (cd_texts){1, path};
    out = open_memstream(&said, &n_said);
    cd_log_init(&lg, "x", out);
    const cdmpp_status st = cd_tune_tasks_read(&o, &lg, &t, &err);
    (void)fflush(out);
    return st;
}

static void end(void) {
    cd_tune_tasks_free(&t);
    cd_log_done(&lg);
    (void)fclose(out);
    free(said);
}

static bool is(uint32_t k, const char *key, double weight, const char *name) {
    const cd_tune_unit *u = &t.unit[k];
    return k < t.n && !strcmp(u->of.task->workload_key, key) && u->weight == weight &&
           !strcmp(u->name, name);
}

TEST(all_of_a_file) {
    assert_ok(read_it((cd_tune_tasks_options){.threads = 3}));
    assert_true(t.n == 2 && t.n_left_out == 1 && is(0, "[\"a\"]", 1, "[\"a\"]") &&
                is(1, "[\"ab\"]", 1, "one more"));
    assert_string_equal(t.unit[0].of.target, "llvm");
    assert_string_equal(t.unit[1].of.target, "cuda -model=x");
    assert_true(!t.unit[0].of.gpu && t.unit[1].of.gpu && t.unit[0].of.hardware.num_cores == 3 &&
                t.unit[0].of.hardware.vector_unit_bytes == 64);
    assert_true(t.unit[0].of.flop == 8);
    assert_non_null(
        strstr(said, "[\"c\"] is left out: nothing here runs its target; use --target"));
    end();
    assert_ok(read_it((cd_tune_tasks_options){.target = "llvm -mcpu=all"}));
    assert_true(t.n == 3 && !t.unit[1].of.gpu);
    assert_string_equal(t.unit[1].of.target, "llvm -mcpu=all");
    end();
}

TEST(a_network_of_a_file) {
    assert_ok(read_it((cd_tune_tasks_options){.of_network = "second"}));
    assert_true(t.n == 2 && !t.n_left_out && is(0, "[\"ab\"]", 5, "one more") &&
                is(1, "[\"a\"]", 7, "[\"a\"]"));
    end();
    assert_ok(read_it((cd_tune_tasks_options){.of_network = "first"}));
    assert_true(t.n == 1 && is(0, "[\"a\"]", 3, "[\"a\"]"));
    end();
    assert_status(read_it((cd_tune_tasks_options){.of_network = "third"}), CDMPP_EUSAGE);
    assert_string_equal(err.msg, "--network: no task file knows 'third'");
    end();
    assert_status(read_it((cd_tune_tasks_options){.of_network = "secnod"}), CDMPP_EUSAGE);
    assert_string_equal(err.msg, "--network: no task file knows 'secnod', did you mean 'second'?");
    end();
}

/* By number or by the beginning of the key; each name fits something; twice is once. */
TEST(some_of_them) {
    const char *number[] = {"#1", "#1"}, *begin[] = {"[\"a"}, *both[] = {"[\"ab", "#0"};
    assert_ok(read_it((cd_tune_tasks_options){.only = {2, number}}));
    assert_true(t.n == 1 && is(0, "[\"ab\"]", 1, "one more"));
    end();
    assert_ok(read_it((cd_tune_tasks_options){.only = {1, begin}}));
    assert_int_equal(t.n, 2);
    end();
    assert_ok(read_it((cd_tune_tasks_options){.only = {2, both}}));
    assert_true(t.n == 2 && is(0, "[\"a\"]", 1, "[\"a\"]"));
    end();
    static const char *const wrong[] = {"#3", "#", "#1x", "[\"b"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        const char *only[] = {"#0", wrong[k]};
        assert_status(read_it((cd_tune_tasks_options){.only = {2, only}}), CDMPP_EUSAGE);
        assert_non_null(strstr(err.msg, "--task: none of 3 tasks is '"));
        end();
    }
    const char *third[] = {"#2"}; /* nothing is left */
    assert_status(read_it((cd_tune_tasks_options){.only = {1, third}}), CDMPP_ENOTASK);
    end();
}

/* Of a built-in network: tasks by their operators, as often as they run. */
TEST(a_built_in_network) {
    double runs = 0;
    bool dense = false;
    assert_ok(read_it((cd_tune_tasks_options){.network = "gcn", .target = "llvm", .threads = 1}));
    for (uint32_t k = 0; k < t.n; k++) {
        assert_true(t.unit[k].weight >= 1 && t.unit[k].of.task->dag);
        runs += t.unit[k].weight;
        dense = dense || strstr(t.unit[k].name, "MatMul");
    }
    assert_true(dense && runs >= t.n && t.n > 1);
    end();
}

/* Over a range of batches: the tasks of all its sizes; a task that two sizes share has the weight
 * of both. */
TEST(a_network_at_several_sizes) {
    const char *range[] = {"batch=1..4:3"}, *other[] = {"seq=1..4"};
    double one = 0, all = 0;
    uint32_t n = 0;
    for (int k = 1; k <= 4; k *= 2) {
        assert_ok(read_it(
            (cd_tune_tasks_options){.network = "gcn", .batch = k, .target = "llvm", .threads = 1}));
        for (uint32_t i = 0; i < t.n; i++) one += t.unit[i].weight;
        n += t.n;
        end();
    }
    assert_ok(read_it((cd_tune_tasks_options){
        .network = "gcn", .dim = {1, range}, .target = "llvm", .threads = 1}));
    assert_true(t.n > 3 && t.n <= n && !t.workload && cd_task_registry_count(t.tasks) == t.n);
    for (uint32_t i = 0; i < t.n; i++) {
        all += t.unit[i].weight;
        assert_non_null(t.unit[i].of.task->dag);
        for (uint32_t j = 0; j < i; j++) assert_ptr_not_equal(t.unit[i].of.task, t.unit[j].of.task);
    }
    assert_true(all == one);
    end();
    assert_status(read_it((cd_tune_tasks_options){.network = "gcn", .dim = {1, other}}),
                  CDMPP_EUSAGE);
    end();
}

TEST(several_sizes_without_memory) {
    const char *range[] = {"batch=1..4:3"};
    FAULT_SWEEP(f, 2) {
        cd_tune_tasks x = {0};
        f.step = 13;
        f.st = cd_tune_tasks_read(
            &(cd_tune_tasks_options){
                .network = "gcn", .input_size = 8, .dim = {1, range}, .threads = 1},
            NULL, &x, &f.err);
        cd_tune_tasks_free(&x);
    }
}

TESTS(set_up, tear_down, all_of_a_file, a_network_of_a_file, some_of_them, a_built_in_network,
      a_network_at_several_sizes, several_sizes_without_memory)
