/* Which tasks are sums of products, by their loops; what is read of them; what is said of the
 * others. */
#include <string.h>

#include "made_template.h"

static void test_dense(void **state) {
    const cd_template_nest n = made_nest(*state, T_MM);
    assert_int_equal(n.op, 2);
    assert_int_equal(n.n_space, 2);
    assert_int_equal(n.n_axis, 3);
    assert_int_equal(n.extent[0], 24);
    assert_int_equal(n.extent[1], 40);
    assert_int_equal(n.extent[2], 12);
    assert_true(cd_template_touches(&n.in[0], 0) && !cd_template_touches(&n.in[0], 1) &&
                cd_template_touches(&n.in[0], 2));
    assert_true(!cd_template_touches(&n.in[1], 0) && cd_template_touches(&n.in[1], 1) &&
                cd_template_touches(&n.in[1], 2));
    assert_true(!n.in[0].packed && n.in[1].packed && !n.in[0].guarded && !n.in[1].guarded);
}

static void test_convolution(void **state) {
    const cd_template_nest n = made_nest(*state, T_CONV);
    assert_int_equal(n.n_space, 3);
    assert_int_equal(n.n_axis, 6);
    /* the padding has a nest of its own */
    assert_true(n.in[0].guarded && n.in[0].op == 1 && !n.in[1].guarded);
    assert_int_equal(n.in[0].factor[0][0], 1); /* row h + y */
    assert_int_equal(n.in[0].factor[0][3], 1);
    assert_int_equal(n.in[0].factor[1][3], 0);
    assert_int_equal(n.in[0].extent[0], 16);
}

static void test_batch(void **state) {
    const cd_template_nest n = made_nest(*state, T_BMM);
    assert_true(cd_template_touches(&n.in[0], 0) && cd_template_touches(&n.in[1], 0));
    assert_false(n.in[1].packed);
}

/* Words of four bytes: a product like another, but of eight operations. */
static void test_words(void **state) {
    const cd_template_nest n = made_nest(*state, T_DOT4), m = made_nest(*state, T_MM);
    assert_int_equal(n.n_axis, m.n_axis);
    assert_memory_equal(n.extent, m.extent, sizeof n.extent);
    assert_true(!n.in[0].packed && n.in[1].packed);
    assert_true(cd_task_registry_at(*state, T_DOT4)->dag->flop == 8.0 * 24 * 40 * 12);
}

/* Every refusal says what is missing. */
static void test_others_are_refused(void **state) {
    static const struct {
        size_t task;
        const char *why;
    } no[] = {{T_DEPTHWISE, "depthwise"}, {T_POOL, "no product"},    {T_MAX, "no plain sum"},
              {T_TWO, "2 reductions"},    {T_CROOKED, "not linear"}, {T_ADD, "0 reductions"},
              {T_INTEGER, "float32"}};
    cd_template_nest n;
    for (size_t k = 0; k < sizeof no / sizeof *no; k++) {
        cdmpp_err err = {0};
        assert_int_equal(
            cd_template_nest_read(cd_task_registry_at(*state, no[k].task), false, &n, &err),
            CDMPP_EUNSUPPORTED);
        if (!strstr(err.msg, no[k].why)) fail_msg("%zu: %s", no[k].task, err.msg);
    }
    cdmpp_err err = {0};
    assert_int_equal(cd_template_nest_read(cd_task_registry_at(*state, T_MM), true, &n, &err),
                     CDMPP_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "CPUs"));
    assert_int_equal(cd_template_nest_read(&(cd_task){.workload_key = "k"}, false, &n, &err),
                     CDMPP_ENOTASK);
}

TESTS(up, down, test_dense, test_convolution, test_batch, test_words, test_others_are_refused)
