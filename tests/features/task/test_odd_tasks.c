/* Odd task files and records. */
#include "features/task/task_internal.h"
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

static cdmpp_status target(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_arena a = {0};
    const char *is, *kind;
    (void)ctx;
    const cdmpp_status st = cd_task_target_parse(&a, (cd_str){text, n}, &is, &kind, err);
    cd_arena_free(&a);
    return st;
}

static cdmpp_status hardware(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_arena a = {0};
    cd_hardware h;
    (void)ctx;
    const cdmpp_status st = cd_task_hardware_parse(&a, (cd_str){text, n}, &h, err);
    cd_arena_free(&a);
    return st;
}

/* What TVM's save_json writes of a target and of the hardware, as pickles hold it. */
TEST(targets) {
    odd_all(
        "{\"root\": 1, \"nodes\": [{\"type_key\": \"\"}, {\"type_key\": \"Target\", \"attrs\": "
        "{\"attrs\": \"8\", \"host\": \"0\", \"keys\": \"7\", \"kind\": \"2\", \"tag\": \"6\"}}, "
        "{\"type_key\": \"TargetKind\", \"attrs\": {\"default_keys\": \"4\", \"device_type\": "
        "\"1\", \"name\": \"3\"}}, {\"type_key\": \"runtime.String\", \"repr_str\": \"llvm\"}, "
        "{\"type_key\": \"Array\", \"data\": [5]}, {\"type_key\": \"runtime.String\", "
        "\"repr_str\": \"cpu\"}, {\"type_key\": \"runtime.String\"}, {\"type_key\": \"Array\", "
        "\"data\": [5, 3]}, "
        "{\"type_key\": \"Map\", \"keys\": [\"mcpu\", \"link-params\", \"mattr\", \"link\"], "
        "\"data\": [3, 9, 10, 1]}, "
        "{\"type_key\": \"IntImm\", \"attrs\": {\"dtype\": \"bool\", \"span\": \"0\", \"value\": "
        "\"0\"}}, {\"type_key\": \"Array\", \"data\": [5, 9, 10, 3]}], \"b64ndarrays\": []}",
        target, NULL);
    odd_all("{\"root\": 1, \"nodes\": [{\"type_key\": \"\"}, {\"type_key\": \"Target\", \"attrs\": "
            "{\"attrs\": \"0\", \"keys\": \"3\", \"kind\": \"2\"}}, "
            "{\"type_key\": \"TargetKind\", \"repr_str\": \"cuda\"}, {\"type_key\": \"Array\"}]}",
            target, NULL);
    odd_all("{\"root\": 1, \"nodes\": [{\"type_key\": \"\"}, {\"type_key\": "
            "\"auto_scheduler.HardwareParams\", \"attrs\": {\"cache_line_bytes\": \"64\", "
            "\"max_local_memory_per_block\": \"0\", "
            "\"max_shared_memory_per_block\": \"0\", \"max_threads_per_block\": \"0\", "
            "\"max_vthread_extent\": \"0\", \"num_cores\": \"1\", \"vector_unit_bytes\": \"64\", "
            "\"warp_size\": \"-1\"}}]}",
            hardware, NULL);
}

TEST(task_files) { odd_all_of_seeds("tests/fuzz/seeds/taskfile", 1100, tasks, NULL); }
TEST(networks) {
    odd_all("{\"net\": [\"[\\\"a\\\"]\", {\"workload_key\": \"[\\\"b\\\", [1, 2]]\", \"weight\": "
            "3}], \"other\": []}",
            tasks, NULL);
}
TEST(records) { odd_all_of_seeds("tests/fuzz/seeds/record", 600, record, NULL); }

TESTS(NULL, NULL, targets, task_files, networks, records)
