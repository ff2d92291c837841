/* Library operators in a queue of a GPU: what a table's single call waits for is taken off. */
#include <math.h>

#include "check.h"
#include "predictor/estimate/estimate_internal.h"

static cdmpp_err err;
static cd_library_op_model *m;
static cd_device_table *devices;

static int set_up(void **state) {
    cd_diag diag = {0};
    (void)state;
    return cd_library_op_model_load("tests/golden/operators_v1.cdmpp", &m, &err) ||
           cd_device_table_load("configs/devices.yaml", &diag, &devices, &err);
}

static int tear_down(void **state) {
    (void)state;
    cd_library_op_model_free(m);
    cd_device_table_free(devices);
    return 0;
}

static double alone(cd_library_op_kind kind, double rows, double columns, const cd_device *d) {
    const cd_library_op_record r = {
        .kind = kind, .dtype = CD_LIBRARY_OP_DTYPE_F32, .b = 1, .m = rows, .n = columns, .k = 1};
    double s;
    assert_ok(cd_library_op_model_predict(m, &r, &d, 1, &s, &err));
    return s;
}

TEST(what_calls_wait_for) {
    static const cd_library_op_kind t[] = {CD_LIBRARY_OP_ADD, CD_LIBRARY_OP_GELU,
                                           CD_LIBRARY_OP_MULU};
    const cd_device *d;
    cd_node_cost_wait w = {0};
    assert_ok(cd_device_table_find(devices, "v100", &d, &err));
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const cd_library_op_record r = {
            .kind = t[k], .dtype = CD_LIBRARY_OP_DTYPE_F32, .b = 1, .m = 4096, .n = 1024, .k = 1};
        const double s = alone(t[k], 4096, 1024, d), one = alone(t[k], 1, 1, d);
        const cd_library_op_range v = cd_library_op_model_range(m, &r, d, s, 0.9);
        cd_node_cost_entry n = {0};
        assert_false(w.known[t[k]]);
        assert_ok(cd_node_cost_library(m, &r, d, &w, &n, &err));
        assert_true(w.known[t[k]] && w.seconds[t[k]] == one && one > 0);
        assert_close(n.seconds, fmax(s - one, 0) + 2e-6, 1e-12, 0);
        assert_int_equal(n.source, CD_COST_LIBRARY);
        if (isnan(v.low_s)) assert_true(isnan(n.low_s) && isnan(n.high_s));
        else {
            assert_close(n.low_s / n.seconds, v.low_s / s, 1e-9, 0);
            assert_close(n.high_s / n.seconds, v.high_s / s, 1e-9, 0);
        }
        assert_true(n.spread == v.spread && n.shared == v.shared &&
                    (n.flags != 0) == (v.unlike != 0) && (n.reason != 0) == (v.unlike != 0));
        w.seconds[t[k]] = 1; /* what is known is not asked again; no time is below a start */
        assert_ok(cd_node_cost_library(m, &r, d, &w, &n, &err));
        assert_close(n.seconds, 2e-6, 1e-12, 0);
    }
    const cd_library_op_record product = {.kind = CD_LIBRARY_OP_LINEAR,
                                          .dtype = CD_LIBRARY_OP_DTYPE_F32,
                                          .b = 1,
                                          .m = 64,
                                          .n = 64,
                                          .k = 64};
    cd_node_cost_entry n = {0};
    /* the model knows none */
    assert_status(cd_node_cost_library(m, &product, d, &w, &n, &err), CDMPP_EMODEL);
    assert_false(w.known[CD_LIBRARY_OP_LINEAR]);
}

TESTS(set_up, tear_down, what_calls_wait_for)
