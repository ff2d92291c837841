/* Operators' names from definitions that are made up, and from workload keys. */
#include <string.h>

#include "check.h"
#include "profiler/store/store_internal.h"

static cdmpp_err err;

enum { MOST = 6 };
typedef struct {
    const char *name, *tag;
    bool input;
} made;

/* Name, layout and type of a definition with these operators. */
static void describe(const made *m, uint32_t n, const char *name, const char *layout) {
    cd_te_op op[MOST];
    cd_dtype type[MOST][1];
    cd_arena a = {0};
    cd_store_row row = {0};
    memset(op, 0, sizeof op);
    for (uint32_t k = 0; k < n; k++) {
        type[k][0] = k + 1 == n ? CD_DTYPE(CD_T_INT, 8) : CD_F32;
        op[k].name = m[k].name, op[k].tag = m[k].tag, op[k].is_placeholder = m[k].input;
        op[k].dtype = type[k];
    }
    cd_te_dag dag = {.n_op = n, .op = op};
    const cd_task t = {.dag = &dag};
    assert_ok(cd_store_describe_task(&a, &t, &row, &err));
    if (!cd_str_is(row.operator_name, name))
        fail_msg("%.*s, not %s", (int)row.operator_name.n, row.operator_name.p, name);
    assert_true(cd_str_is(row.layout, layout));
    assert_true(cd_str_is(row.dtype, n ? "int8" : ""));
    cd_arena_free(&a);
}
#define DESCRIBE(name, layout, ...)                                                                \
    describe((const made[]){__VA_ARGS__}, sizeof((const made[]){__VA_ARGS__}) / sizeof(made),      \
             (name), (layout))

static void test_definitions(void **state) {
    (void)state;
    DESCRIBE("conv2d_nchw+add+relu", "nchw", {"data", "", true},
             {"pad_temp", "injective,pad", false}, {"conv", "conv2d_nchw", false},
             {"T_add", "broadcast", false}, {"T_relu", "elemwise", false});
    /* one tag, once */
    DESCRIBE("softmax_output", "", {"x", "", true}, {"m", "softmax_output", false},
             {"e", "softmax_output", false}, {"s", "softmax_output", false});
    DESCRIBE("add+relu+add", "", {"T_add", "broadcast", false}, {"T_relu", "elemwise", false},
             {"T_add", "broadcast", false});
    DESCRIBE("copy", "", {"x", "", true}, {"compile_engine_const", "", false},
             {"pad_temp.1", "", false});
    DESCRIBE("conv2d_NCHWc", "NCHWc", {"c", "conv2d_NCHWc", false}, {"x", "comm_reduce", true});
    /* of the first */
    DESCRIBE("conv2d_nhwc+conv2d_nchw", "nhwc", {"a", "conv2d_nhwc", false},
             {"b", "conv2d_nchw", false});
    DESCRIBE("plain", "", {"plain", "opaque", false});
    DESCRIBE("T", "", {"T", "comm_reduce_idx", false});
    DESCRIBE("dense_pack", "", {"x", "dense_pack", false});
    DESCRIBE("pool_io", "", {"x", "pool_io", false}); /* two letters are no layout */
    describe(NULL, 0, "copy", "");
}

static void test_keys(void **state) {
    static const struct {
        const char *key, *name, *shape;
    } row[] = {
        {"[\"abc\", 1, [2, -3], \"x\\\"\", [], 1.5, null]", "dag:abc",
         "[1,[2,-3],\"x\\\"\",[],null,null]"},
        {"[\"abc\"]", "dag:abc", "[]"},
        {"[1, 2]", "key:[1, 2]", "[]"},
        {"[]", "key:[]", "[]"},
        {"{\"a\": 1}", "key:{\"a\": 1}", "[]"},
        {"no json", "key:no json", "[]"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        cd_arena a = {0};
        cd_store_row r = {0};
        assert_ok(cd_store_describe_key(&a, (cd_str){row[k].key, strlen(row[k].key)}, &r, &err));
        if (!cd_str_is(r.operator_name, row[k].name) || !cd_str_is(r.shape, row[k].shape))
            fail_msg("%s: %.*s %.*s", row[k].key, (int)r.operator_name.n, r.operator_name.p,
                     (int)r.shape.n, r.shape.p);
        cd_arena_free(&a);
    }
}

TESTS(NULL, NULL, test_definitions, test_keys)
