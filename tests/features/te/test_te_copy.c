/* Copies of definitions: equal, of the same text and hash, and with memory of their own. */
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "features/task/task.h"

#define MATMUL "tests/fuzz/seeds/taskfile/matmul.tasks.json"
#define RARE   "tests/fuzz/seeds/taskfile/rare.tasks.json"

TEST(test_copies_are_equal) {
    static const char *const path[] = {MATMUL, RARE};
    for (int f = 0; f < 2; f++) {
        cdmpp_err err = {0};
        cd_task_registry *t, *own;
        cd_buf x = {0}, y = {0};
        assert_ok(cd_task_registry_new(&t, &err));
        assert_ok(cd_task_registry_new(&own, &err));
        assert_ok(cd_task_registry_load(t, path[f], &err));
        const size_t n = cd_task_registry_count(t);
        char hash[64][33];
        assert_true(n > 0 && n <= 64);
        for (size_t i = 0; i < n; i++) {
            const cd_task *a = cd_task_registry_at(t, i), *b = NULL;
            cd_te_dag *c;
            assert_ok(cd_te_dag_copy(a->dag, &c, &err));
            assert_true(cd_te_dag_equal(a->dag, c));
            cd_te_dag_free(c);
            cd_te_dag_print(&x, a->dag);
            assert_ok(cd_te_dag_hash(a->dag, hash[i], &err));
            assert_ok(cd_task_registry_add(own, (cd_str){a->workload_key, strlen(a->workload_key)},
                                           a->dag, &b, &err));
            assert_true(b->dag != a->dag);
        }
        cd_task_registry_free(t); /* what is read from here on is the copies' own */
        for (size_t i = 0; i < n; i++) {
            char again[33];
            cd_te_dag_print(&y, cd_task_registry_at(own, i)->dag);
            assert_ok(cd_te_dag_hash(cd_task_registry_at(own, i)->dag, again, &err));
            assert_string_equal(hash[i], again);
        }
        assert_string_equal(x.p, y.p);
        cd_buf_free(&x);
        cd_buf_free(&y);
        cd_task_registry_free(own);
    }
}

/* More operands than most have. */
TEST(test_wide_calls_are_copied) {
    static const char text[] =
        "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [{\"workload_key\": \"k\", "
        "\"ops\": [{\"name\": \"A\", \"shape\": [8], \"dtype\": \"float32\"},"
        "{\"name\": \"B\", \"axis\": [[\"i\", 0, 8]], \"body\": \"f:float32(A[i], 1, 2, 3, 4, 5, "
        "6, 7, 8, A[i], 10)\"}]}]}";
    cdmpp_err err = {0};
    cd_task_registry *t;
    cd_te_dag *c;
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load_text(t, "x", text, sizeof text - 1, &err));
    assert_ok(cd_te_dag_copy(cd_task_registry_at(t, 0)->dag, &c, &err));
    assert_true(cd_te_dag_equal(cd_task_registry_at(t, 0)->dag, c));
    cd_te_dag_free(c);
    cd_task_registry_free(t);
}

TEST(test_one_key_one_definition) {
    cdmpp_err err = {0};
    cd_task_registry *t, *own;
    const cd_task *a, *b;
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_new(&own, &err));
    assert_ok(cd_task_registry_load(t, RARE, &err));
    assert_ok(cd_task_registry_load(t, MATMUL, &err));
    assert_int_equal(cd_task_registry_count(t), 2);
    const cd_str key = {"[\"x\"]", 5};
    assert_ok(cd_task_registry_add(own, key, cd_task_registry_at(t, 0)->dag, &a, &err));
    assert_ok(cd_task_registry_add(own, key, cd_task_registry_at(t, 0)->dag, &b, &err));
    assert_ptr_equal(a, b);
    assert_status(cd_task_registry_add(own, key, cd_task_registry_at(t, 1)->dag, &b, &err),
                  CDMPP_ESCHEMA);
    assert_status(
        cd_task_registry_add(own, (cd_str){"", 0}, cd_task_registry_at(t, 1)->dag, &b, &err),
        CDMPP_ESCHEMA);
    assert_int_equal(cd_task_registry_count(own), 1);
    cd_task_registry_free(t);
    cd_task_registry_free(own);
}

TESTS(NULL, NULL, test_copies_are_equal, test_wide_calls_are_copied, test_one_key_one_definition)
