/* Odd task files and records. */
#include "features/task/task.h"
#include "odd.h"

static cdmpp_status tasks(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_task_registry *t;
    (void)ctx;
    CD_TRY(cd_task_registry_new(&t, err));
    const cdmpp_status st = cd_task_registry_load_text(t, "t", text, n, err);
    cd_task_registry_free(t);
    return st;
}

static cdmpp_status record(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_arena a = {0};
    cd_record r;
    (void)ctx;
    const cdmpp_status st = cd_record_read(&a, text, n, &r, err);
    cd_arena_free(&a);
    return st;
}

TEST(task_files) { odd_all_of_seeds("tests/fuzz/seeds/taskfile", 1100, tasks, NULL); }
TEST(networks) { odd_all("{\"net\": [\"[\\\"a\\\"]\", {\"workload_key\": \"[\\\"b\\\", [1, 2]]\", \"weight\": 3}], \"other\": []}", tasks, NULL); }
TEST(records) { odd_all_of_seeds("tests/fuzz/seeds/record", 600, record, NULL); }

TESTS(NULL, NULL, task_files, networks, records)
