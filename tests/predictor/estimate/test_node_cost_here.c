/* A model that is corrected for a machine answers for another device by what it was before: only
 * the machine was measured. */
#include "check.h"
#include "made_here.h"
#include "made_model.h"
#include "predictor/estimate/estimate.h"
#include "predictor/estimate/estimate_internal.h"

#define CHIP "llvm -keys=cpu -model=chip"

static tmp_dir dir;
static cd_task_registry *tasks;
static cd_model *plain, *here;
static cd_schedule_db *book;
static const char *key;

static cdmpp_status make(cdmpp_err *err) {
    static const char *const set[] = {"train.rounds=20", "model.folds=2", "model.members=rows"};
    static const char *const target[] = {CHIP};
    char h5[256], path[256];
    cd_buf b = {0};
    cd_schedule_db_logs io = {0};
    CD_TRY(cd_task_registry_new(&tasks, err));
    CD_TRY(cd_task_registry_load(tasks, MADE_TASKS, err));
    key = cd_task_registry_at(tasks, 0)->workload_key;
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "m.cdmpp"));
    CD_TRY(made_extract(&dir, key, target, 1, h5, err));
    CD_TRY(made_learn(h5, set, 3, path, err));
    CD_TRY(cd_model_load(path, &plain, err));
    CD_TRY(made_here(path, 0, 4, &here, err));
    made_record(&b, key, 0, CHIP, made_latency(0), 0);
    const char *log[] = {tmp_put(&dir, "log.json", b.p, b.n)};
    cd_buf_free(&b);
    CD_TRY(cd_schedule_db_new(&book, err));
    return cd_schedule_db_read_logs(book, log, 1, &io, err);
}

static int set_up(void **state) {
    cdmpp_err err = {0};
    (void)state;
    dir = tmp_make();
    const cdmpp_status st = make(&err);
    if (st) print_error("%s: %s\n", err.key, err.msg);
    return st != CDMPP_OK;
}

static int tear_down(void **state) {
    (void)state;
    cd_schedule_db_free(book);
    cd_model_free(plain);
    cd_model_free(here);
    cd_task_registry_free(tasks);
    tmp_remove(&dir);
    return 0;
}

/* Seconds of the task. */
static double seconds(const cd_model *m, const char *device, const char *stands) {
    cdmpp_err err = {0};
    cd_network_builder *b;
    cd_network_graph *g;
    cd_node_cost *c;
    uint32_t id;
    cd_network_node n = cd_network_node_init("a", "dense", CD_NODE_TASK);
    const cd_node_cost_options a = {.model = m,
                                    .tasks = tasks,
                                    .schedules = book,
                                    .device = device,
                                    .stands = stands,
                                    .alone = true};
    n.key = key;
    assert_ok(cd_network_builder_new("one", &b, &err));
    assert_ok(cd_network_builder_node(b, &n, &id, &err));
    assert_ok(cd_network_builder_finish(b, &g, &err));
    cd_network_builder_free(b);
    assert_ok(cd_node_cost_of(g, &a, &c, &err));
    assert_int_equal(c->node[0].source, CD_COST_MODEL);
    const double s = c->node[0].seconds;
    cd_node_cost_free(c);
    cd_network_graph_free(g);
    return s;
}

TEST(the_machine_is_corrected_and_what_it_stands_for_is_not) {
    const double before = seconds(plain, "chip", NULL);
    assert_close(seconds(here, "chip", NULL), before, 1e-12, 0);
    assert_true(seconds(here, "mine", NULL) > 1.2 * before);
    assert_close(seconds(here, "another", "chip"), seconds(plain, "another", "chip"), 1e-12, 0);
}

TESTS(set_up, tear_down, the_machine_is_corrected_and_what_it_stands_for_is_not)
