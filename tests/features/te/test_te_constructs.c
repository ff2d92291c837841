/* Categories of definitions, by their expressions. */
#include "check.h"
#include "prog.h"

#define ONE(body)                                                                                  \
    "\"ops\": [{\"name\": \"A\", \"shape\": [64, 64], \"dtype\": \"float32\"}, {\"name\": \"I\", " \
    "\"shape\": [64], \"dtype\": \"int32\"},"                                                      \
    "{\"name\": \"E\", \"axis\": [[\"i\", 0, 32], [\"j\", 0, 32]], \"body\": \"" body              \
    "\"}], \"args\": [\"A\", \"I\", \"E\"]"
#define SUM(more, body)                                                                            \
    "\"ops\": [{\"name\": \"A\", \"shape\": [64, 64], \"dtype\": \"int8\"},"                       \
    "{\"name\": \"S\", \"axis\": [[\"i\", 0, 32]], \"reduce_axis\": [[\"k\", 0, 32]], "            \
    "\"reduce\": \"sum\", " more "\"body\": \"" body "\"}], \"args\": [\"A\", \"S\"]"

TEST(categories) {
    static const struct {
        const char *text;
        unsigned want;
    } t[] = {
        {ONE("A[i, j] + 1"), CD_TE_BASIC},
        {ONE("A[2*i + j, j]"), CD_TE_BASIC}, /* what loops count */
        {ONE("A[i*j % 64, j]"), CD_TE_INDEX},
        {ONE("A[i // 2, j]"), CD_TE_INDEX},
        {ONE("A[I[i], j]"), CD_TE_INDEX},
        {ONE("select(i < 3, A[i, j], 0.0)"), CD_TE_CONDITION},
        {ONE("if_then_else(i // 2 < 3, A[i, j], 0.0)"), CD_TE_CONDITION},
        {ONE("select(i < 3, A[j, i % 7], 0.0)"), CD_TE_CONDITION | CD_TE_INDEX},
        {SUM("", "A[i, k]"), CD_TE_REDUCE},
        {SUM("", "A[i + k, k]"), CD_TE_REDUCE},
        {SUM("", "A[(i + k) // 2, k]"), CD_TE_REDUCE | CD_TE_INDEX},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cd_task_registry *tasks;
        cdmpp_err err = {0};
        assert_ok(prog_tasks(&t[k].text, 1, &tasks, &err));
        const unsigned got = cd_te_constructs_of(cd_task_registry_at(tasks, 0)->dag);
        if (got != t[k].want) fail_msg("%s: %u, not %u", t[k].text, got, t[k].want);
        cd_task_registry_free(tasks);
    }
    assert_string_equal(cd_te_construct_name(CD_TE_REDUCE), "reduce");
    assert_null(cd_te_construct_name(3));
    assert_null(cd_te_construct_name(16));
}

TEST(types) {
    static const char *const text = ONE("A[I[i], j]");
    cd_task_registry *tasks;
    cd_dtype type[CD_TE_TYPES];
    cdmpp_err err = {0};
    assert_ok(prog_tasks(&text, 1, &tasks, &err));
    assert_int_equal(cd_te_types_of(cd_task_registry_at(tasks, 0)->dag, type), 2);
    assert_true((type[0] == CD_F32 && type[1] == CD_I32) ||
                (type[0] == CD_I32 && type[1] == CD_F32));
    cd_task_registry_free(tasks);
}

TESTS(NULL, NULL, categories, types)
