/* What measured neighbours say of an operator, by hand: rows of 1 us at m = 8 and 4 us at m = 32,
 * of which a model expects 2 us each. */
#include "learner/llm_op/llm_op_feature.h"
#include "made_llm_ops.h"

#include <math.h>

static double expect(const void *ctx, size_t row) {
    (void)ctx, (void)row;
    return log(2e-6);
}

typedef struct {
    cd_llm_op_table t;
    cd_device d;
    float x[CD_LLM_OP_N_FEATURE];
    double said;
} fixture;

static void put(fixture *f, double m, double n, double s) {
    cd_llm_op_record r = made_llm_gemm(m, n, 512, 0);
    cdmpp_err err = {0};
    r.latency_s = s;
    assert_ok(cd_llm_op_table_put(&f->t, &r, &f->d, &err));
}

static cd_llm_op_sides ask(fixture *f, double m, double n, double own) {
    const cd_llm_op_record r = made_llm_gemm(m, n, 512, 0);
    uint64_t curve[CD_LLM_OP_MAX_SIZE + 1];
    cd_llm_op_beside near;
    const cd_llm_op_near q = {.t = &f->t, .expect = expect, .curve = curve};
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_table_index(&f->t, &err));
    for (size_t i = 0; i < CD_LLM_OP_N_FEATURE; i++) f->x[i] = NAN;
    cd_llm_op_table_curves(&f->t, &r, 0, curve);
    cd_llm_op_feature_beside(&q, &r, 0, &near);
    return cd_llm_op_feature_near(&q, &r, 0, &near, own, f->x, &f->said);
}

static fixture make(void) {
    fixture f = {.d = {.name = "g", .kind = CD_DEVICE_GPU}};
    uint32_t k;
    cdmpp_err err = {0};
    assert_ok(cd_dict_add(&f.t.names, (cd_str){"", 0}, &k, &err));
    return f;
}

/* One is added to sizes: 16 stands at 0.4895 between 8 and 32. */
static const double at = 0.4894921;

TEST(between_two) {
    fixture f = make();
    put(&f, 8, 256, 1e-6), put(&f, 32, 256, 4e-6);
    put(&f, 8, 512, 1e-6), put(&f, 16, 512, 3e-6), put(&f, 32, 512, 4e-6);
    assert_int_equal(ask(&f, 16, 256, log(3e-6)), CD_LLM_OP_TWO_SIDES);
    assert_close(f.said, log(1e-6) + at * log(4), 1e-6, 0);
    assert_close((double)f.x[CD_LLM_OP_X_line0], 0, 0, 1e-6);
    assert_close((double)f.x[CD_LLM_OP_X_below0], -at * log(4), 1e-5, 0);
    assert_close((double)f.x[CD_LLM_OP_X_above0], (1 - at) * log(4), 1e-5, 0);
    assert_close((double)f.x[CD_LLM_OP_X_gap_below0], log2(17.0 / 9), 1e-5, 0);
    assert_close((double)f.x[CD_LLM_OP_X_gap_above0], log2(33.0 / 17), 1e-5, 0);
    assert_close((double)f.x[CD_LLM_OP_X_expect], log(3) - at * log(4), 1e-5, 0);
    /* as much slower than expected as its neighbours: half and twice, of three */
    assert_close((double)f.x[CD_LLM_OP_X_shape0], log(3) - log(2), 1e-5, 0);
    assert_close((double)f.x[CD_LLM_OP_X_shape_below0], log(1.5) - at * log(4), 1e-5, 0);
    assert_close((double)f.x[CD_LLM_OP_X_shape_above0], log(6) - at * log(4), 1e-5, 0);
    /* the curve beside, of n = 512, is bent up by 3 us against its line */
    assert_close((double)f.x[CD_LLM_OP_X_bend0 + 1], log(3) - at * log(4), 1e-5, 0);
    assert_close((double)f.x[CD_LLM_OP_X_gap_above0 + 1], log2(513.0 / 257), 1e-5, 0);
    assert_true(isnan(f.x[CD_LLM_OP_X_gap_below0 + 1]) && isnan(f.x[CD_LLM_OP_X_line0 + 1]));
    cd_llm_op_table_free(&f.t);
}

/* Beyond the end of a curve the nearest row counts, as far from what is expected of it. */
TEST(beyond_the_end) {
    fixture f = make();
    put(&f, 8, 256, 1e-6), put(&f, 32, 256, 4e-6), put(&f, 64, 1024, 9e-6);
    assert_int_equal(ask(&f, 64, 256, log(3e-6)), CD_LLM_OP_ONE_SIDE);
    assert_close(f.said, log(3e-6) + log(2), 1e-9, 0);
    assert_int_equal(ask(&f, 64, 900, log(3e-6)), CD_LLM_OP_ONE_SIDE);
    assert_close(f.said, log(3e-6) + log(4.5), 1e-9, 0);
    assert_int_equal(ask(&f, 7, 900, log(3e-6)), CD_LLM_OP_NO_SIDE);
    cd_llm_op_table_free(&f.t);
}

/* A row is never its own neighbour. */
TEST(on_a_row) {
    fixture f = make();
    put(&f, 8, 256, 1e-6), put(&f, 16, 256, 7e-6), put(&f, 32, 256, 4e-6);
    assert_int_equal(ask(&f, 16, 256, log(3e-6)), CD_LLM_OP_TWO_SIDES);
    assert_close(f.said, log(1e-6) + at * log(4), 1e-6, 0);
    assert_int_equal(ask(&f, 8, 256, log(3e-6)), CD_LLM_OP_ONE_SIDE);
    assert_close((double)f.x[CD_LLM_OP_X_gap_above0], log2(17.0 / 9), 1e-5, 0);
    cd_llm_op_table_free(&f.t);
}

TESTS(NULL, NULL, between_two, beyond_the_end, on_a_row)
