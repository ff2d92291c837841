/* What a model's header says of the fastest programs: figures of a device before those of all, too
 * few tasks, names of tasks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "check.h"
#include "dataset/split/split.h"
#include "made_model.h"
#include "predictor/estimate/estimate.h"

static tmp_dir dir;
static char *file; /* of a trained model */
static size_t n_file;

static int set_up(void **state) {
    static const char *const set[] = {"train.rounds=2", "model.folds=2", "model.members=rows",
                                      "net.device=false"};
    static const char *const target[] = {"llvm -keys=cpu -model=chip"};
    cdmpp_err err = {0};
    cd_task_registry *tasks;
    char h5[256], path[256];
    (void)state;
    dir = tmp_make();
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "m.cdmpp"));
    cdmpp_status st = cd_task_registry_new(&tasks, &err);
    if (!st) st = cd_task_registry_load(tasks, MADE_TASKS, &err);
    if (!st)
        st = made_extract(&dir, cd_task_registry_at(tasks, 0)->workload_key, target, 1, h5, &err);
    if (!st) st = made_learn(h5, set, 4, path, &err);
    if (!st) st = cd_file_read(path, 0, &file, &n_file, &err);
    cd_task_registry_free(tasks);
    return st != CDMPP_OK;
}

static int tear_down(void **state) {
    (void)state;
    cd_mem_free(file);
    tmp_remove(&dir);
    return 0;
}

/* The model with another object under "best"; NULL: without it. */
static cd_model *with(const char *best) {
    cdmpp_err err = {0};
    cd_container c;
    cd_buf header = {0}, weights = {0}, out = {0};
    cd_model *m;
    assert_ok(cd_container_get(CD_CONTAINER_MODEL, file, n_file, &c, &err));
    cd_buf_put(&header, c.header.p, c.header.n);
    cd_buf_puts(&header, "");
    char *at = strstr(header.p, ",\"best\":{"), *end = at;
    assert_non_null(at);
    for (int deep = 0; end == at || deep || *end != '}'; end++) {
        if (*end == '{') deep++;
        if (*end == '}' && !--deep) break;
    }
    cd_buf made = {0};
    cd_buf_put(&made, header.p, (size_t)(at - header.p));
    if (best) cd_buf_putf(&made, ",\"best\":%s", best);
    cd_buf_puts(&made, end + 1);
    cd_buf_put(&weights, c.weights.p, c.weights.n);
    assert_ok(cd_container_put_as(CD_CONTAINER_MODEL, c.version, &out, &made, &weights, &err));
    assert_ok(cd_model_from_bytes(out.p, out.n, &m, &err));
    cd_buf_free(&made);
    cd_buf_free(&header);
    cd_buf_free(&weights);
    cd_buf_free(&out);
    return m;
}

#define ONE(n, ratio, spread)                                                                      \
    "{\"n\":" n ",\"ratio\":" ratio ",\"spread\":" spread ",\"within\":0.5,\"among\":1" ratio      \
    ",\"among_spread\":2" spread "}"
static const char devices[] = "{\"train\":" ONE("9", "2.5", "0.25") ",\"validation\":" ONE(
    "9", "3.5", "0.75") ","
                        "\"train_of\":{\"chip\":" ONE("8", "4.5", "0.125") ",\"few\":" ONE(
                            "7", "5.5", "0.5") "},"
                                               "\"validation_of\":{\"chip\":" ONE(
                                                   "9", "6.5", "0.625") "},\"tasks\":[]}";

static cd_node_cost_bias read_of(const char *best, const char *device) {
    cdmpp_err err = {0};
    cd_node_cost_bias b;
    cd_model *m = with(best);
    assert_ok(cd_node_cost_bias_read(m, device, &b, &err));
    cd_model_free(m);
    return b;
}

/* known: index. What ONE() made of ratio and spread. */
static void check(const cd_node_cost_bias *b, int known, double ratio, double spread) {
    assert_close(b->ratio[known], ratio, 0, 0);
    assert_close(b->spread[known], spread, 0, 0);
    assert_close(b->within[known], 0.5, 0, 0);
    assert_close(b->among[known], 10 + ratio, 0, 0);
    assert_close(b->among_spread[known], 20 + spread, 0, 0);
}

static void test_a_device_has_its_own_figures(void **state) {
    (void)state;
    cd_node_cost_bias b = read_of(devices, "chip");
    check(&b, 1, 4.5, 0.125);
    check(&b, 0, 6.5, 0.625);
    cd_node_cost_bias_free(&b);
    static const char *const others[] = {"other", NULL};
    for (int k = 0; k < 2; k++) {
        b = read_of(devices, others[k]);
        check(&b, 1, 2.5, 0.25);
        check(&b, 0, 3.5, 0.75);
        cd_node_cost_bias_free(&b);
    }
}

static void test_too_few_tasks_say_nothing(void **state) {
    (void)state;
    /* 7 tasks of training; none of validation: all devices' */
    cd_node_cost_bias b = read_of(devices, "few");
    assert_true(b.ratio[1] == 1 && b.spread[1] == -1 && b.within[1] == 0);
    check(&b, 0, 3.5, 0.75);
    cd_node_cost_bias_free(&b);
    b = read_of(NULL, "chip");
    for (int k = 0; k < 2; k++)
        assert_true(b.ratio[k] == 1 && b.spread[k] == -1 && b.within[k] == 0);
    assert_int_equal(b.tasks.n, 0);
    cd_node_cost_bias_free(&b);
}

/* Older files have neither devices nor what holds among the others. */
static void test_older_header(void **state) {
    (void)state;
    cd_node_cost_bias b = read_of("{\"train\":{\"n\":9,\"ratio\":2,\"spread\":0.5},\"validation\":{"
                                  "\"n\":9,\"ratio\":3,\"spread\":0.25},\"tasks\":[]}",
                                  "chip");
    assert_true(b.ratio[1] == 2 && b.spread[1] == 0.5 && b.within[1] == 0 && b.among[1] == 1);
    assert_true(b.ratio[0] == 3 && b.spread[0] == 0.25 && b.within[0] == 0 && b.among[0] == 1);
    cd_node_cost_bias_free(&b);
}

static void test_names_are_found(void **state) {
    enum { N = 37 };
    uint64_t id[N];
    cd_buf text = {0};
    char name[32];
    (void)state;
    for (int k = 0; k < N; k++) {
        snprintf(name, sizeof name, "task %d\nchip", k);
        id[k] = cd_stable_id_name(name);
    }
    for (int odd = 0; odd < 2; odd++) { /* an even number of them, and an odd one */
        const int n = N - 1 + odd;
        uint64_t sorted[N];
        memcpy(sorted, id, sizeof sorted);
        qsort(sorted, (size_t)n, sizeof *sorted, cd_sort_by_u64);
        cd_buf_clear(&text);
        cd_buf_puts(&text, "{\"train\":{\"n\":9,\"ratio\":2,\"spread\":0.5},\"validation\":{\"n\":"
                           "9,\"ratio\":3,\"spread\":0.25},\"tasks\":[");
        for (int k = 0; k < n; k++)
            cd_buf_putf(&text, "%s\"%016llx\"", k ? "," : "", (unsigned long long)sorted[k]);
        cd_buf_puts(&text, "]}");
        cd_node_cost_bias b = read_of(text.p, "chip");
        assert_int_equal(b.tasks.n, n);
        for (int k = 0; k < N + 20; k++) {
            snprintf(name, sizeof name, "task %d", k);
            assert_int_equal(cd_node_cost_bias_knows(&b, name, "chip"), k < n);
            assert_false(cd_node_cost_bias_knows(&b, name, "other"));
        }
        cd_node_cost_bias_free(&b);
    }
    cd_buf_free(&text);
}

static void test_wrong_headers_name_the_key(void **state) {
#define TASKS(x)                                                                                   \
    "{\"train\":{\"n\":9,\"ratio\":2,\"spread\":0},\"validation\":{\"n\":9,\"ratio\":3,"           \
    "\"spread\":0},\"tasks\":" x "}"
    static const struct {
        const char *best, *key;
        cdmpp_status want;
    } bad[] = {
        {"{\"validation\":{}}", "n", CDMPP_ESCHEMA},
        {TASKS("7"), "tasks", CDMPP_ESCHEMA},
        /* 15 digits */
        {TASKS("[\"00000000000000f\"]"), "tasks", CDMPP_ESCHEMA},
        {TASKS("[\"00000000000000g0\"]"), "tasks", CDMPP_ESCHEMA},
        {TASKS("[\"00000000000000f0\",\"00000000000000f0\"]"), "tasks", CDMPP_ESCHEMA}, /* twice */
        {TASKS("[\"00000000000000f1\",\"00000000000000f0\"]"), "tasks", CDMPP_ESCHEMA},
        {"{\"validation\":{\"n\":9,\"ratio\":0,\"spread\":0},\"train\":{},\"tasks\":[]}", "ratio",
         CDMPP_ERANGE},
        {"{\"validation\":{\"n\":9,\"ratio\":1,\"spread\":-1},\"train\":{},\"tasks\":[]}", "spread",
         CDMPP_ERANGE},
        {"{\"validation\":{\"n\":9,\"ratio\":1,\"spread\":1,\"within\":1,\"among\":0},\"train\":{},"
         "\"tasks\":[]}",
         "among", CDMPP_ERANGE},
    };
    (void)state;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        cdmpp_err err = {0};
        cd_node_cost_bias b;
        cd_model *m = with(bad[k].best);
        assert_status(cd_node_cost_bias_read(m, "chip", &b, &err), bad[k].want);
        if (strncmp(err.key, "best.", 5) != 0 || !strstr(err.key, bad[k].key))
            fail_msg("%zu: %s", k, err.key);
        cd_node_cost_bias_free(&b);
        cd_model_free(m);
    }
}

/* Of a machine that the model is corrected for, what was measured takes the place of what the error
 * of the model says; a program that was measured fastest has its own ratio. */
static void test_what_picks_take(void **state) {
    static const struct {
        cd_node_cost_fastest f;
        double want;
    } t[] = {{{.ratio = 1, .picks = 0.9}, 1.8},
             {{.ratio = 1}, 2 * 1.0832870676749586},
             {{true, true, 0.75, 0.1, 0.9}, 1.5}};
    (void)state;
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const cd_model_prediction p = {.latency_s = 1.5,
                                       .median_s = 2,
                                       .low_s = 1,
                                       .high_s = 4,
                                       .rel_std = 0.4,
                                       .like_std = 0.4};
        cd_node_cost_entry n = {0};
        cd_node_cost_predicted(&n, &t[k].f, &p, 0);
        assert_close(n.seconds, t[k].want, 1e-12, 0);
        assert_true(n.low_s <= n.seconds && n.seconds <= n.high_s);
    }
}

/* The ratio is that of the machine alone, under its own name. */
static void test_picks_are_of_the_machine(void **state) {
    cdmpp_err err = {0};
    cd_here h = {.stands = 0,
                 .name = "mine",
                 .cpu = "c",
                 .programs = 1,
                 .widen = 1,
                 .most = (double)INFINITY,
                 .picks = 0.75};
    const float x[CD_HERE_WIDTH] = {0};
    const double off = 0;
    cd_model *m;
    cd_buf b = {0};
    (void)state;
    assert_ok(cd_model_from_bytes(file, n_file, &m, &err));
    assert_ok(cd_here_fit(x, &off, 1, cd_here_width(m), 1, &h.trees, &err));
    assert_ok(cd_here_add(file, n_file, &h, "", &b, &err));
    cd_model_free(m);
    assert_ok(cd_model_from_bytes(b.p, b.n, &m, &err));
    static const char *const name[] = {"mine", "chip", NULL};
    for (int k = 0; k < 3; k++) {
        cd_node_cost_bias bias;
        assert_ok(cd_node_cost_bias_read(m, name[k], &bias, &err));
        assert_close(bias.picks, k ? 0 : 0.75, 0, 0);
        cd_node_cost_bias_free(&bias);
    }
    cd_model_free(m);
    cd_buf_free(&b);
    cd_xgb_free(h.trees.gbt);
}

TESTS(set_up, tear_down, test_a_device_has_its_own_figures, test_too_few_tasks_say_nothing,
      test_older_header, test_names_are_found, test_wrong_headers_name_the_key,
      test_what_picks_take, test_picks_are_of_the_machine)
