/* What stands in the records that a model picks: the hardware, the target and the packing that were
 * asked for, or the task's, or the usual ones. */
#include <string.h>

#include "check.h"
#include "made_model.h"
#include "predictor/estimate/estimate.h"

#define CHIP "llvm -keys=cpu -model=chip"
#define OPS                                                                                        \
    "\"ops\": [{\"name\": \"A\", \"shape\": [64, 64], \"dtype\": \"float32\"}, {\"name\": \"B\", " \
    "\"shape\": [64, 64], \"dtype\": \"float32\", \"layout_free\": true},"                         \
    "{\"name\": \"C\", \"axis\": [[\"i\", 0, 64], [\"j\", 0, 64]], \"reduce_axis\": [[\"k\", 0, "  \
    "64]], \"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"}]}"
#define HARDWARE                                                                                   \
    "\"hardware\": {\"num_cores\": 5, \"vector_unit_bytes\": 16, \"cache_line_bytes\": 128, "      \
    "\"max_shared_memory_per_block\": 0, \"max_local_memory_per_block\": 0,"                       \
    "\"max_threads_per_block\": 0, \"max_vthread_extent\": 0, \"warp_size\": 0},"

static const char tasks_text[] =
    "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [{\"workload_key\": "
    "\"[\\\"bare\\\"]\"," OPS ","
    "{\"workload_key\": \"[\\\"own\\\"]\", \"target\": \"llvm -model=chip -mcpu=own\"," HARDWARE OPS
    ","
    "{\"workload_key\": \"[\\\"theirs\\\"]\", \"target\": \"cuda -model=card\"," HARDWARE OPS "]}";
static const char *const key[] = {"[\"bare\"]", "[\"own\"]", "[\"theirs\"]"};

static tmp_dir dir;
static cd_task_registry *tasks;
static cd_model *model;

static int up(void **state) {
    static const char *const set[] = {"train.rounds=10", "model.folds=2", "model.tuner=true",
                                      "fit.epochs=1", "net.device=false"};
    static const char *const target[] = {CHIP};
    cdmpp_err err = {0};
    char h5[256], path[256];
    (void)state;
    dir = tmp_make();
    cdmpp_status st = cd_task_registry_new(&tasks, &err);
    if (!st) st = cd_task_registry_load(tasks, MADE_TASKS, &err);
    if (!st)
        st = made_extract(&dir, cd_task_registry_at(tasks, 0)->workload_key, target, 1, h5, &err);
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "m.cdmpp"));
    if (!st) st = made_learn(h5, set, 5, path, &err);
    if (!st) st = cd_model_load(path, &model, &err);
    if (!st)
        st = cd_task_registry_load_text(tasks, "t.tasks.json", tasks_text, sizeof tasks_text - 1,
                                        &err);
    if (st) print_error("%s: %s\n", err.key, err.msg);
    return st != CDMPP_OK;
}

static int down(void **state) {
    (void)state;
    cd_model_free(model);
    cd_task_registry_free(tasks);
    tmp_remove(&dir);
    return 0;
}

/* Where nobody says anything: one core with vectors of 32 bytes. */
TEST(what_a_record_says) {
    static const cd_hardware given = {
        .num_cores = 3, .vector_unit_bytes = 64, .cache_line_bytes = 32};
    static const struct {
        cd_schedule_db_pick how;
        int task;
        const char *target, *hardware; /* as they stand in the record */
        int packed;
    } tab[] = {
        {{.trials = 4}, 0, "\"llvm\"", "[1, 32, 64, 0, 0, 0, 0, 0]", 2},
        {{.trials = 4, .target = "llvm -mcpu=other"},
         0,
         "\"llvm -mcpu=other\"",
         "[1, 32, 64, 0, 0, 0, 0, 0]",
         2},
        {{.trials = 4, .hardware = &given}, 0, "\"llvm\"", "[3, 64, 32, 0, 0, 0, 0, 0]", 2},
        {{.trials = 4, .plain = key, .n_plain = 2}, 0, "\"llvm\"", "[1, 32, 64, 0, 0, 0, 0, 0]", 0},
        {{.trials = 4, .device = "chip"}, 0, "\"llvm\"", "[1, 32, 64, 0, 0, 0, 0, 0]", 2},
        {{.trials = 4}, 1, "\"llvm -model=chip -mcpu=own\"", "[5, 16, 128, 0, 0, 0, 0, 0]", 2},
        {{.trials = 4, .target = CHIP, .hardware = &given},
         1,
         "\"" CHIP "\"",
         "[3, 64, 32, 0, 0, 0, 0, 0]",
         2},
        /* a processor stands for a card */
        {{.trials = 4, .target = CHIP}, 2, "\"" CHIP "\"", "[1, 32, 64, 0, 0, 0, 0, 0]", 2},
        {{.trials = 4, .plain = key, .n_plain = 1},
         1,
         "\"llvm -model=chip -mcpu=own\"",
         "[5, 16, 128, 0, 0, 0, 0, 0]",
         2},
    };
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        cd_schedule_db *b;
        cdmpp_err err = {0};
        cd_arena a = {0};
        cd_record r;
        char want[200];
        assert_ok(cd_schedule_db_new(&b, &err));
        assert_ok(
            cd_schedule_db_predict(b, model, tasks, &key[tab[k].task], 1, &tab[k].how, NULL, &err));
        assert_int_equal(cd_schedule_db_count(b), 1);
        const char *line = cd_schedule_db_at(b, 0)->line;
        snprintf(want, sizeof want, "%s, %s", tab[k].target, tab[k].hardware);
        if (!strstr(line, want)) fail_msg("%zu: no %s in %s", k, want, line);
        assert_ok(cd_record_read(&a, line, strlen(line), &r, &err));
        assert_int_equal(r.layout_rewrite, tab[k].packed);
        assert_true(r.n_cost == 1 && r.error_no != 0); /* never measured */
        cd_arena_free(&a);
        cd_schedule_db_free(b);
    }
}

TESTS(up, down, what_a_record_says)
